//! The word that arms the hooks.
//!
//! It lies in a page of its own that the kernel wipes in a forked child, however it was forked: there the hooks find 0
//! and pass everything on, so a child never touches its parent's counters.
//!
//! ```text
//! WIPED ──arm──> ARMED            the process that was started, or that records after a fork
//!   ▲              │ fork: the kernel wipes the page
//!   └──────────────┘
//! WIPED ──defer──> PENDING        a forked child that is to record from its first hook on
//! WIPED | PENDING ──claim──> INERT ──arm──> ARMED, or it stays inert
//! ```

use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

#[repr(C, align(4096))]
struct Page {
    word: AtomicU32,
    rest: [u8; sys::PAGE - 4],
}

/// Nothing is decided: a new process, or a child that was forked just now.
const WIPED: u32 = 0;
/// The recorder is on.
const ARMED: u32 = 1;
/// This process is not recorded, and everything about that has been noted.
const INERT: u32 = 2;
/// This process is a forked child that attaches at its first hook.
const PENDING: u32 = 3;

static PAGE: Page = Page { word: AtomicU32::new(WIPED), rest: [0; sys::PAGE - 4] };

/// Whether the recorder is on in this process.
#[inline(always)]
pub(crate) fn is_armed() -> bool {
    PAGE.word.load(Ordering::Acquire) == ARMED
}

/// Whether something is to be done before this process's hooks can just pass on.
#[inline(always)]
pub(crate) fn is_undecided() -> bool {
    matches!(PAGE.word.load(Ordering::Acquire), WIPED | PENDING)
}

/// Whether a fork handler has seen that this is a child.
pub(crate) fn is_pending() -> bool {
    PAGE.word.load(Ordering::Acquire) == PENDING
}

/// Turns the recorder on. The result says whether forked children will find it off.
pub(crate) fn arm() -> bool {
    let page: *const Page = &PAGE;
    let is_wiped = sys::wipe_on_fork(page.cast());
    PAGE.word.store(ARMED, Ordering::Release);
    is_wiped
}

/// Turns it off, in a forked child: where the kernel does not wipe the page, this is what does it.
pub(crate) fn disarm() {
    PAGE.word.store(WIPED, Ordering::Release);
}

/// This process attaches at its first hook.
pub(crate) fn defer() {
    PAGE.word.store(PENDING, Ordering::Release);
}

/// Takes the decision on: true for one caller only. Until it arms, the process is inert.
pub(crate) fn claim() -> bool {
    let take = |from| PAGE.word.compare_exchange(from, INERT, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    take(WIPED) || take(PENDING)
}
