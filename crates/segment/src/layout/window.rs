//! Windows.

use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// [`Window::kind`]: opened by the recorder itself at the start, ended by the first begin.
pub const WINDOW_AUTOMATIC: u32 = 1;
/// [`Window::kind`]: counts all threads.
pub const WINDOW_PROCESS: u32 = 2;
/// [`Window::kind`]: counts the threads that opened it.
pub const WINDOW_THREAD: u32 = 3;

/// [`Window::kind`]: what runs beneath some functions on their thread; found from stacks. It counts as open from the start
/// on, since nobody sees a function's end.
pub const WINDOW_FUNCTION: u32 = 4;

/// [`Window::kind`]: a process window that is over, and is named afterwards: it counts for the one whose number is in
/// [`Window::attempts`], behind those before it that do; 0: nobody named it, and it counts for all those of its own name.
pub const WINDOW_NAMED_LATE: u32 = 5;

/// One window. Valid when `kind` is not 0.
///
/// Two windows of one name and different kinds are two entries.
#[repr(C)]
#[derive(Debug)]
pub struct Window {
    /// `WINDOW_*`, stored last.
    pub kind: AtomicU32,
    /// Offset of the name in the string table.
    pub name: AtomicU32,
    /// The name's length in bytes.
    pub name_len: AtomicU32,
    /// How deep it is open now: nested begins (process), threads (thread window). Not 0 at the program's end: it was
    /// never closed.
    pub depth: AtomicU32,
    /// How often it was entered; the number of the latest entry, from 1. Of a window that can be restarted these are attempts at
    /// entries, those that were discarded among them.
    pub entries: AtomicU64,
    /// The sum of the iterations that were told.
    pub iterations: AtomicU64,
    /// How often iterations were told, at most as often as fits. 0: the entries are the iterations.
    pub iteration_calls: AtomicU32,
    /// Entries of a benchmark's loop that was left without saying how far it had come.
    pub untold_entries: AtomicU32,
    /// Ends while another window was the innermost one.
    pub crossed_ends: AtomicU64,
    /// Ends while it was not open.
    pub stray_ends: AtomicU64,
    /// Thread windows: entries that their thread's end closed.
    pub ended_by_thread: AtomicU64,
    /// Live bytes, but for what threads have not yet handed in.
    pub live_bytes: AtomicI64,
    /// The highest live bytes that a thread saw.
    pub peak_bytes: AtomicI64,
    /// The most threads at a time that hand in late: each adds up to [`PEAK_BATCH_BYTES`] to the peak's uncertainty, but
    /// for the first.
    pub recorders: AtomicU32,
    /// The recorder's own: such threads that live now.
    pub recorders_now: AtomicU32,
    /// Allocations whose row or counters had no place.
    pub lost_full: AtomicU64,
    /// Allocations that came from inside the recorder while this window was the innermost open one.
    pub lost_reentrant: AtomicU64,
    /// Allocations in a thread for which no memory could be had.
    pub lost_thread: AtomicU64,
    /// Pauses while it was not open, and resumes while it was not paused.
    pub stray_pauses: AtomicU32,
    /// Its place in [`ATTEMPTS`](super::ATTEMPTS) plus one; 0: it cannot be restarted. Of a [`WINDOW_NAMED_LATE`] one: the number
    /// of the window that it counts for.
    pub attempts: AtomicU32,
    /// How many attempts at its entries were discarded.
    pub discarded_entries: AtomicU64,
}

/// How many live bytes a thread keeps to itself before it hands them in.
pub const PEAK_BATCH_BYTES: i64 = 64 * 1024;
