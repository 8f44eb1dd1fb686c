//! A lock for rare, short work: growing a table, opening a window.
#![expect(unsafe_code, reason = "lends what the lock guards")]

use core::cell::UnsafeCell;
use core::fmt;
use core::hint::spin_loop;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// After this many turns of the loop whoever has the lock is probably not running.
const TURNS: u32 = 100;

/// Nobody has it.
const FREE: u32 = 0;
/// Somebody has it.
const HELD: u32 = 1;
/// Somebody has it, and others may sleep until it is free.
const AWAITED: u32 = 2;

/// How a thread sleeps until a lock is free. Else a lock that thousands want would go round among those that look at it,
/// and one that must not be preempted would wait for ever for one that cannot run.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Sleeps until [`wake`](Self::wake) of the same word, unless that is not (any more) the value given. May return at
    /// any time.
    pub wait: fn(&AtomicU32, u32),
    /// Wakes one that sleeps.
    pub wake: fn(&AtomicU32),
}

/// A [`Waiting`], or null: then threads that wait look again and again.
static WAITING: AtomicPtr<Waiting> = AtomicPtr::new(ptr::null_mut());

/// Says how threads wait that have to wait for long.
pub fn set_waiting(waiting: &'static Waiting) {
    WAITING.store(ptr::from_ref(waiting).cast_mut(), Ordering::Release);
}

fn waiting() -> Option<&'static Waiting> {
    // SAFETY: `set_waiting` stored a reference that stays.
    unsafe { WAITING.load(Ordering::Acquire).as_ref() }
}

/// A value behind a lock, for which one spins for a moment and then sleeps.
///
/// Whoever holds it neither allocates nor waits for another lock, and is not interrupted by a signal handler that
/// wants it too: the recorder's guard keeps handlers out.
pub struct Spin<T> {
    /// [`FREE`], [`HELD`] or [`AWAITED`].
    state: AtomicU32,
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
        Self { state: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Waits for the value.
    pub fn lock(&self) -> SpinGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.lock_slow())
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) -> SpinGuard<'_, T> {
        let mut taken = HELD;
        loop {
            for _ in 0..TURNS {
                if self.state.load(Ordering::Relaxed) == FREE && self.try_take(taken) {
                    return SpinGuard { spin: self };
                }
                spin_loop();
            }
            let Some(waiting) = waiting() else { continue };
            // Who sleeps, or has slept, leaves it awaited: there may be others, of whom the next one does not know.
            taken = AWAITED;
            if self.state.swap(AWAITED, Ordering::Acquire) == FREE {
                return SpinGuard { spin: self };
            }
            (waiting.wait)(&self.state, AWAITED);
        }
    }

    #[inline]
    fn try_take(&self, taken: u32) -> bool {
        self.state.compare_exchange(FREE, taken, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the value, whoever has it: in a forked child the thread that held the lock does not exist.
    ///
    /// # Safety
    /// No other thread of this process is inside the lock, nor is a frame of the calling one.
    pub unsafe fn seize(&self) -> SpinGuard<'_, T> {
        self.state.store(HELD, Ordering::Relaxed);
        SpinGuard { spin: self }
    }

    /// Takes the value if nobody has it.
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        self.try_take(HELD).then(|| SpinGuard { spin: self })
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
        if self.spin.state.swap(FREE, Ordering::Release) == AWAITED
            && let Some(waiting) = waiting()
        {
            (waiting.wake)(&self.spin.state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    static LOOKS: AtomicU32 = AtomicU32::new(0);

    fn wait(word: &AtomicU32, value: u32) {
        // As the system does: it may return for no reason.
        LOOKS.fetch_add(1, Ordering::Relaxed);
        while word.load(Ordering::Acquire) == value {
            thread::sleep(Duration::from_micros(10));
        }
    }

    /// With the waiting of this test a wake-up is seen by the word alone, so one that is not made does not hang it; the
    /// recorder's own tests with thousands of threads see that.
    #[test]
    fn all_get_their_turn() {
        set_waiting(&Waiting { wait, wake: |_| () });
        let sum = Spin::new(0_u64);
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let mut sum = sum.lock();
                        let before = *sum;
                        if before.is_multiple_of(64) {
                            thread::sleep(Duration::from_micros(100));
                        }
                        *sum = before + 1;
                    }
                });
            }
        });
        assert_eq!(*sum.lock(), 3200);
        assert!(LOOKS.load(Ordering::Relaxed) > 0, "none had to wait: the test shows nothing");
    }
}
