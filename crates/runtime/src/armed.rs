//! The word that arms the hooks.
//!
//! It lies in a page of its own that the kernel wipes in a forked child, however it was forked: there the hooks find 0
//! and pass everything on, so a child never touches its parent's counters.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

#[repr(C, align(4096))]
struct Page {
    word: AtomicU32,
    rest: [u8; sys::PAGE - 4],
}

static PAGE: Page = Page { word: AtomicU32::new(0), rest: [0; sys::PAGE - 4] };

/// Whether the recorder is on in this process.
#[inline(always)]
pub(crate) fn is_armed() -> bool {
    PAGE.word.load(Ordering::Acquire) != 0
}

/// Turns the recorder on. The result says whether forked children will find it off.
pub(crate) fn arm() -> bool {
    let page: *const Page = &PAGE;
    let is_wiped = sys::wipe_on_fork(page.cast());
    PAGE.word.store(1, Ordering::Release);
    is_wiped
}

/// Turns it off: where the kernel does not wipe the page, a forked child does this itself; and before an exec.
pub(crate) fn disarm() {
    PAGE.word.store(0, Ordering::Release);
}
