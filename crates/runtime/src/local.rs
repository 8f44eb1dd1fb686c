//! What the recorder keeps in thread-local storage: very little, see [`Local`].
#![expect(unsafe_code, reason = "hands out the thread's own words")]

use heaptally_tally::Life;

use crate::sys;
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

/// The thread is not inside the recorder, and may be cancelled at any instruction: each turn holds that back.
pub(crate) const CANCELLABLE: u32 = 4;

/// A thread's words. All zero in a new thread.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Local {
    /// What the thread records with; null until its first event.
    pub(crate) thread: *mut ThreadState,
    /// One of [`IDLE`], [`IN_ALLOCATOR`], [`RECORDING`], [`QUIET`], [`CANCELLABLE`].
    pub(crate) busy: u32,
    /// How often the thread's destructor ran; as often as it can once the state is given back.
    pub(crate) rounds: u16,
    /// How many shells that this thread waits for have been lent the command's variables.
    pub(crate) lent: u16,
    /// What the thread's life is while it has no state of its own: after its end, or where there is no place for one.
    pub(crate) life: Life,
    /// The block that its latest recorded allocation gave, for that time.
    pub(crate) last_block: usize,
    /// How many allocations it recorded in that time.
    pub(crate) late_allocations: u64,
    /// How deep it is paused, for that time.
    pub(crate) paused: u32,
}

/// The calling thread's words.
#[inline]
pub(crate) fn local() -> &'static mut Local {
    // SAFETY: the words belong to the calling thread. Code that holds the reference makes no call back into the
    // recorder but for signal handlers, which see `busy` and touch nothing else.
    unsafe { &mut *x86_64::local::local() }
}

impl Local {
    /// Goes into the recorder, as `busy`; what [`leave`](Self::leave) is to be told, or `None`: the thread is inside.
    #[inline(always)]
    pub(crate) fn enter(&mut self, busy: u32) -> Option<u32> {
        let idle = self.busy;
        if idle != IDLE {
            if idle != CANCELLABLE {
                return None;
            }
            sys::hold_cancellation();
        }
        self.busy = busy;
        Some(idle)
    }

    /// Leaves the recorder. A thread that was cancelled meanwhile ends here.
    #[inline(always)]
    pub(crate) fn leave(&mut self, idle: u32) {
        self.busy = idle;
        if idle != IDLE {
            sys::release_cancellation();
        }
    }
}
