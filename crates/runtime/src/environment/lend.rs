//! The environment of a shell that `system` or `popen` starts.
//!
//! Those two start it inside the C library, with the program's own `environ`. While one of them runs, `environ` points
//! to a copy that holds the command's variables too. The real functions are called, not rebuilt: how `system` treats
//! signals and cancellation, and what `popen` keeps for `pclose`, differ between versions and cannot be had otherwise.
//! `setenv` is not used, which would change the array under the eyes of other threads: they see the one array or the
//! other, each of them whole, and the variables' texts are the same in both.
//!
//! Where the program changes its environment meanwhile (another thread's `setenv`), the changed copy stays, and the
//! command's variables are taken out of it.
#![expect(unsafe_code, reason = "replaces the C library's pointer")]

use core::ffi::c_char;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use heaptally_tally::Spin;

use super::{PRELOAD, SEGMENT, environ, for_next_image, has_prefix, take_out};
use crate::child::Place;
use crate::next_image::preloads_first_of_all;
use crate::sys;

/// How many copies that are not used any more stay mapped, since another thread may still look at one.
const KEPT: usize = 16;

#[derive(Debug)]
struct Loan {
    /// How many calls it serves.
    calls: u32,
    /// What `environ` was.
    original: *mut *mut c_char,
    /// What it is meanwhile.
    copy: *mut *mut c_char,
    bytes: usize,
    old: [(*mut u8, usize); KEPT],
    next_old: usize,
}

// SAFETY: the pointers are to memory of the process, used under the lock.
unsafe impl Send for Loan {}

static LOAN: Spin<Loan> = Spin::new(Loan {
    calls: 0,
    original: ptr::null_mut(),
    copy: ptr::null_mut(),
    bytes: 0,
    old: [(ptr::null_mut(), 0); KEPT],
    next_old: 0,
});

fn pointer() -> &'static AtomicPtr<*mut c_char> {
    // SAFETY: the C library's own pointer, which is aligned and stays.
    unsafe { AtomicPtr::from_ptr(&raw mut environ) }
}

/// Puts the command's variables into the environment. True: [`take_back`] is owed.
pub(crate) fn lend(place: Place) -> bool {
    let mut loan = LOAN.lock();
    if loan.calls == 0 {
        let original = pointer().load(Ordering::Acquire);
        // SAFETY: the C library's own array.
        if !super::is_in_reach() || unsafe { preloads_first_of_all(original.cast_const().cast()) } {
            return false;
        }
        // SAFETY: as above.
        let Some(next) = (unsafe { for_next_image(original.cast_const().cast(), Some(place)) }) else {
            return false;
        };
        let (memory, bytes) = next.into_memory();
        loan.original = original;
        loan.copy = memory.cast();
        loan.bytes = bytes;
        pointer().store(loan.copy, Ordering::Release);
    }
    loan.calls += 1;
    true
}

/// Takes them out again, at the last of the calls that needed them.
pub(crate) fn take_back() {
    let mut loan = LOAN.lock();
    loan.calls = loan.calls.saturating_sub(1);
    if loan.calls == 0 {
        end(&mut loan);
    }
}

fn end(loan: &mut Loan) {
    let now = pointer().load(Ordering::Acquire);
    // SAFETY: both arrays are the process's own, and stay.
    if now == loan.copy && unsafe { is_unchanged(loan.original, loan.copy) } {
        pointer().store(loan.original, Ordering::Release);
        let at = loan.next_old % KEPT;
        let (old, bytes) = core::mem::replace(&mut loan.old[at], (loan.copy.cast(), loan.bytes));
        if !old.is_null() {
            sys::unmap(old, bytes);
        }
        loan.next_old += 1;
    } else {
        if !now.is_null() {
            // SAFETY: it is the program's environment; the variables' texts are in memory that was mapped for the copy.
            unsafe { take_out(now) };
        }
    }
    loan.copy = ptr::null_mut();
}

/// Whether a copy still holds what it was made from.
unsafe fn is_unchanged(mut original: *mut *mut c_char, mut copy: *mut *mut c_char) -> bool {
    // SAFETY: both end with a null pointer, by the caller.
    unsafe {
        while !original.is_null() && !(*original).is_null() {
            let is_list = has_prefix(*original, PRELOAD);
            if (*copy).is_null() || !(*original == *copy || (is_list && has_prefix(*copy, PRELOAD))) {
                return false;
            }
            original = original.add(1);
            copy = copy.add(1);
        }
        while !(*copy).is_null() {
            if !has_prefix(*copy, PRELOAD) && !has_prefix(*copy, SEGMENT) {
                return false;
            }
            copy = copy.add(1);
        }
    }
    true
}

/// In the child of a fork: what other threads had lent ends here, and what they held is free.
pub(crate) fn after_fork() {
    // SAFETY: the thread that forked is the only one here, and it is not in these functions.
    let mut loan = unsafe { LOAN.seize() };
    if !loan.copy.is_null() && pointer().load(Ordering::Acquire) == loan.copy {
        end(&mut loan);
    }
    loan.calls = 0;
    loan.copy = ptr::null_mut();
}
