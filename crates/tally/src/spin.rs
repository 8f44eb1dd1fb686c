//! A lock for rare, short work: growing a table, opening a window.
#![expect(unsafe_code, reason = "lends what the lock guards")]

use core::cell::UnsafeCell;
use core::fmt;
use core::hint::spin_loop;
use core::mem::transmute;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// After this many turns of the loop whoever has the lock is not running.
const TURNS: u32 = 2000;

/// What a waiting thread does then: a `fn()`, or null.
static REST: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Says what a thread that waits for long does in between: it lets others run for a moment, those of a lower priority
/// too. Else one that must not be preempted would wait for ever for one that cannot run.
pub fn set_rest(rest: fn()) {
    REST.store(rest as *mut (), Ordering::Release);
}

#[cold]
fn rest() {
    let rest = REST.load(Ordering::Acquire);
    if !rest.is_null() {
        // SAFETY: `set_rest` stored a function of that type.
        unsafe { transmute::<*mut (), fn()>(rest)() };
    }
}

/// A value behind a spinning lock.
///
/// Whoever holds it neither allocates nor waits for another lock, and is not interrupted by a signal handler that
/// wants it too: the recorder's guard keeps handlers out.
pub struct Spin<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives the value to one thread at a time, so sending the value is what sharing the lock needs.
unsafe impl<T: Send> Sync for Spin<T> {}

impl<T> fmt::Debug for Spin<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spin").finish_non_exhaustive()
    }
}

impl<T> Spin<T> {
    /// An open lock around a value.
    pub const fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the value.
    pub fn lock(&self) -> SpinGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            let mut turns = 0;
            while self.locked.load(Ordering::Relaxed) {
                spin_loop();
                turns += 1;
                if turns == TURNS {
                    rest();
                    turns = 0;
                }
            }
        }
    }

    /// Takes the value, whoever has it: in a forked child the thread that held the lock does not exist.
    ///
    /// # Safety
    /// No other thread of this process is inside the lock, nor is a frame of the calling one.
    pub unsafe fn seize(&self) -> SpinGuard<'_, T> {
        self.locked.store(true, Ordering::Relaxed);
        SpinGuard { spin: self }
    }

    /// Takes the value if nobody has it.
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        self.locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| SpinGuard { spin: self })
    }
}

/// The value of a [`Spin`] while it is held.
pub struct SpinGuard<'a, T> {
    spin: &'a Spin<T>,
}

impl<T> fmt::Debug for SpinGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinGuard").finish_non_exhaustive()
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its thread holds the lock.
        unsafe { &*self.spin.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists only while its thread holds the lock.
        unsafe { &mut *self.spin.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    fn drop(&mut self) {
        self.spin.locked.store(false, Ordering::Release);
    }
}
