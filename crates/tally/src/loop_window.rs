//! Windows of benchmark loops, as a harness's own functions tell of them.
//!
//! A harness pauses and resumes on its way in and out of a loop, too, and leaves loops by more than one way: so what does not
//! fit is no fault of anybody's here. It does nothing, and is not counted.

use core::sync::atomic::Ordering;

use heaptally_segment::layout::{WINDOW_NAMED_LATE, WINDOW_PROCESS, WINDOW_THREAD, Window};

use crate::nesting::Open;
use crate::tally::Tally;
use crate::thread_table::ThreadTally;
use crate::window_table::WindowTable;

/// What a loop counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopScope {
    /// All threads: the benchmark has one, and may start others.
    Process,
    /// The calling thread's part: the benchmark runs on several at once.
    Thread,
}

impl Tally {
    /// A benchmark's loop begins on this thread.
    pub fn loop_begin(&self, thread: &mut ThreadTally, scope: LoopScope, name: &[u8]) {
        match scope {
            LoopScope::Process => self.window_begin(name),
            LoopScope::Thread => self.thread_window_begin(thread, name),
        }
    }

    /// It ends, after so many iterations; `None`: nobody knows how many. False: it is not open.
    pub fn loop_end(
        &self,
        thread: &mut ThreadTally,
        scope: LoopScope,
        name: &[u8],
        iterations: Option<u64>,
    ) -> bool {
        let ended = match scope {
            LoopScope::Process => self.windows.end_loop(name),
            LoopScope::Thread => self.windows.end_thread_loop(thread, name),
        };
        let Some(window) = ended else { return false };
        match iterations {
            Some(count) => WindowTable::add_iterations(window, count),
            None => {
                window.untold_entries.fetch_add(1, Ordering::Relaxed);
            }
        }
        true
    }

    /// A benchmark ends whose window is called `unnamed` until it is named: the number by which it can be; 0: it cannot.
    pub fn unnamed_end(&self, unnamed: &[u8]) -> u32 {
        self.windows.end_loop(unnamed);
        self.windows.set_apart(unnamed).unwrap_or(0)
    }

    /// Names the benchmark of that number.
    pub fn name_ended(&self, number: u32, name: &[u8]) {
        self.windows.name_late(number, name);
    }

    /// It is paused, or goes on. Does not nest.
    pub fn loop_pause(&self, thread: &mut ThreadTally, scope: LoopScope, name: &[u8], is_paused: bool) {
        match scope {
            LoopScope::Process => self.windows.pause_loop(name, is_paused),
            LoopScope::Thread => self.windows.pause_thread_loop(thread, name, is_paused),
        }
    }
}

impl WindowTable {
    fn end_loop(&self, name: &[u8]) -> Option<&'static Window> {
        let number = self.find(WINDOW_PROCESS, name)?;
        let mut nesting = self.nesting.lock();
        nesting.position(number)?;
        if self.close(&mut nesting, number) {
            self.current.store(nesting.recording().pack(), Ordering::Release);
        }
        Some(self.get(number))
    }

    /// Takes a window that is not open out of those that are found by their names.
    fn set_apart(&self, name: &[u8]) -> Option<u32> {
        let _nesting = self.nesting.lock();
        let number = self.find(WINDOW_PROCESS, name)?;
        let window = self.get(number);
        if window.depth.load(Ordering::Relaxed) != 0 || window.attempts.load(Ordering::Relaxed) != 0 {
            return None;
        }
        window.kind.store(WINDOW_NAMED_LATE, Ordering::Release);
        Some(number)
    }

    /// Names such a window, once.
    fn name_late(&self, number: u32, name: &[u8]) {
        let count = self.header.windows.load(Ordering::Acquire);
        if number == 0 || number >= count || !self.exists(name) {
            return;
        }
        let _nesting = self.nesting.lock();
        let window = self.get(number);
        let is_apart = window.kind.load(Ordering::Relaxed) == WINDOW_NAMED_LATE;
        if !is_apart || window.attempts.load(Ordering::Relaxed) != 0 {
            return;
        }
        match self.find_or_make(WINDOW_PROCESS, name) {
            Some(into) => window.attempts.store(into, Ordering::Release),
            None => {
                self.header.lost_windows.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn end_thread_loop(&self, thread: &mut ThreadTally, name: &[u8]) -> Option<&'static Window> {
        let number = self.find(WINDOW_THREAD, name)?;
        thread.nesting.position(number)?;
        self.pause_thread_loop(thread, name, false);
        self.end_thread(&mut thread.nesting, name);
        Some(self.get(number))
    }

    fn pause_loop(&self, name: &[u8], is_paused: bool) {
        let Some(number) = self.find(WINDOW_PROCESS, name) else { return };
        let mut nesting = self.nesting.lock();
        if let Some(at) = nesting.position(number) {
            nesting.open[at].paused = u32::from(is_paused);
            self.current.store(nesting.recording().pack(), Ordering::Release);
        }
    }

    /// The thread is paused as the C function does it, so that an allocation has one word to look at.
    fn pause_thread_loop(&self, thread: &mut ThreadTally, name: &[u8], is_paused: bool) {
        let Some(number) = self.find(WINDOW_THREAD, name) else { return };
        let Some(at) = thread.nesting.position(number) else { return };
        let Open { paused, .. } = &mut thread.nesting.open[at];
        let was_paused = *paused > 0;
        *paused = u32::from(is_paused);
        match (was_paused, is_paused) {
            (false, true) => thread.paused = thread.paused.saturating_add(1),
            (true, false) => thread.paused = thread.paused.saturating_sub(1),
            _ => {}
        }
    }
}
