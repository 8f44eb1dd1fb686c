//! What begins, ends and pauses windows.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::tally::Tally;
use crate::thread_table::ThreadTally;

impl Tally {
    /// Begins a window that counts all threads.
    pub fn window_begin(&self, name: &[u8]) {
        self.windows.begin(name);
    }

    /// Ends it.
    pub fn window_end(&self, name: &[u8]) {
        self.windows.end(name);
    }

    /// Begins a window that counts all threads, at a function's entry. `known` keeps its number, 0 at first; once it is
    /// known no function of the C library is called.
    #[inline]
    pub fn window_begin_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        self.windows.begin_known(known, name);
    }

    /// Ends it, likewise.
    #[inline]
    pub fn window_end_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        self.windows.end_known(known, name);
    }

    /// Begins it if it is not open, else ends it, likewise.
    #[inline]
    pub fn window_turn_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        self.windows.turn_known(known, name);
    }

    /// Nothing is recorded in such a window from here on, on whatever thread; nests, and ends with the window.
    #[inline]
    pub fn window_pause_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        self.windows.pause_known(known, name);
    }

    /// Undoes one pause.
    #[inline]
    pub fn window_resume_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        self.windows.resume_known(known, name);
    }

    /// Begins a window of this thread.
    pub fn thread_window_begin(&self, thread: &mut ThreadTally, name: &[u8]) {
        self.windows.begin_thread(&mut thread.nesting, name);
    }

    /// Ends it.
    pub fn thread_window_end(&self, thread: &mut ThreadTally, name: &[u8]) {
        self.windows.end_thread(&mut thread.nesting, name);
    }

    /// Adds to a window's iterations.
    pub fn window_iterations(&self, name: &[u8], count: u64) {
        self.windows.iterations(name, count);
    }

    /// This thread's allocations are not recorded from here on; nests.
    pub fn pause(&self, thread: &mut ThreadTally) {
        thread.paused = thread.paused.saturating_add(1);
    }

    /// Undoes one pause; one that was not is counted.
    pub fn resume(&self, thread: &mut ThreadTally) {
        if thread.paused == 0 {
            self.header.stray_resumes.fetch_add(1, Ordering::Relaxed);
        }
        thread.paused = thread.paused.saturating_sub(1);
    }
}
