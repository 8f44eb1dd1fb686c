//! What the recorder keeps in thread-local storage: very little, see [`Local`].
#![expect(unsafe_code, reason = "hands out the thread's own words")]

use crate::thread::ThreadState;
use crate::x86_64;

/// The thread is not inside the recorder.
pub(crate) const IDLE: u32 = 0;
/// The thread is inside the real allocation function: what it calls is not the program's call.
pub(crate) const IN_ALLOCATOR: u32 = 1;
/// The thread is inside the recorder itself.
pub(crate) const RECORDING: u32 = 2;

/// The thread calls the loader for the recorder: what that allocates is nobody's.
pub(crate) const QUIET: u32 = 3;

/// A thread's words. All zero in a new thread.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Local {
    /// What the thread records with; null until its first event.
    pub(crate) thread: *mut ThreadState,
    /// One of [`IDLE`], [`IN_ALLOCATOR`], [`RECORDING`], [`QUIET`].
    pub(crate) busy: u32,
    /// How often the thread's destructor ran: it gives the state back in the last round.
    pub(crate) rounds: u16,
    /// How many shells that this thread waits for have been lent the command's variables.
    pub(crate) lent: u16,
}

/// The calling thread's words.
#[inline]
pub(crate) fn local() -> &'static mut Local {
    // SAFETY: the words belong to the calling thread. Code that holds the reference makes no call back into the
    // recorder but for signal handlers, which see `busy` and touch nothing else.
    unsafe { &mut *x86_64::local::local() }
}
