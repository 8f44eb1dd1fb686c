//! Windows whose number the caller keeps: what functions' entries do.

use core::sync::atomic::{AtomicU32, Ordering};

use heaptally_segment::layout::WINDOW_PROCESS;

use crate::nesting::Open;
use crate::window_table::WindowTable;

impl WindowTable {
    /// As [`begin`](Self::begin), for a caller who keeps the window's number, 0 at first.
    ///
    /// PERF: a function's entry is not to take 30 ns longer; comparing names takes most of that.
    #[inline]
    pub(crate) fn begin_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        match known.load(Ordering::Relaxed) {
            0 => self.begin_slow(known, name()),
            number => self.open(&mut self.nesting.lock(), number),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_slow(&self, known: &AtomicU32, name: &[u8]) {
        self.begin(name);
        known.store(self.find(WINDOW_PROCESS, name).unwrap_or(0), Ordering::Relaxed);
    }

    /// As [`end`](Self::end), likewise.
    #[inline]
    pub(crate) fn end_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        match known.load(Ordering::Relaxed) {
            0 => self.end_slow(known, name()),
            number => {
                let mut nesting = self.nesting.lock();
                if self.close(&mut nesting, number) {
                    self.current.store(nesting.recording().pack(), Ordering::Release);
                }
            }
        }
    }

    /// Begins a window that is not open, and ends one that is. `known` is as for [`begin_known`](Self::begin_known).
    #[inline]
    pub(crate) fn turn_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        let number = match known.load(Ordering::Relaxed) {
            0 => self.know_slow(known, name()),
            number => number,
        };
        if number == 0 {
            self.header.lost_windows.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut nesting = self.nesting.lock();
        if nesting.position(number).is_none() {
            self.open(&mut nesting, number);
        } else if self.close(&mut nesting, number) {
            self.current.store(nesting.recording().pack(), Ordering::Release);
        }
    }

    /// A window that is defined by functions exists before its first begin.
    #[cold]
    #[inline(never)]
    fn end_slow(&self, known: &AtomicU32, name: &[u8]) {
        self.know_slow(known, name);
        self.end(name);
    }

    /// Nothing is recorded in a process window from here on; nests. `known` is as for [`begin_known`](Self::begin_known).
    #[inline]
    pub(crate) fn pause_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        self.with_known(known, name, |open| {
            open.paused = open.paused.saturating_add(1);
            true
        });
    }

    /// Undoes one pause.
    #[inline]
    pub(crate) fn resume_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        self.with_known(known, name, |open| {
            let is_paused = open.paused > 0;
            open.paused = open.paused.saturating_sub(1);
            is_paused
        });
    }

    /// Changes how an open process window is paused; what makes no sense (`change` says false, or it is not open) is
    /// counted.
    #[inline]
    fn with_known<'n>(
        &self,
        known: &AtomicU32,
        name: impl FnOnce() -> &'n [u8],
        change: impl FnOnce(&mut Open) -> bool,
    ) {
        let number = match known.load(Ordering::Relaxed) {
            0 => self.know_slow(known, name()),
            number => number,
        };
        if number == 0 {
            self.header.lost_windows.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut nesting = self.nesting.lock();
        let is_right = match nesting.position(number) {
            Some(at) => change(&mut nesting.open[at]),
            None => false,
        };
        if is_right {
            self.current.store(nesting.recording().pack(), Ordering::Release);
        } else {
            self.get(number).stray_pauses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of a process window, which it has before its first begin; 0: there is no place for it.
    #[cold]
    #[inline(never)]
    fn know_slow(&self, known: &AtomicU32, name: &[u8]) -> u32 {
        let _nesting = self.nesting.lock();
        let number = self.find_or_make(WINDOW_PROCESS, name).unwrap_or(0);
        known.store(number, Ordering::Relaxed);
        number
    }
}
