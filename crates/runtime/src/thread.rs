//! What each thread records with, from its first event to its end.
#![expect(unsafe_code, reason = "thread states live in mapped memory and are handed from thread to thread")]

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;

use heaptally_tally::ThreadTally;
use heaptally_unwind::WalkMemory;

use crate::local::{IDLE, Local, RECORDING, local};
use crate::memory_map::BUFFER_BYTES;
use crate::recorder::{Recorder, recorder};
use crate::sys;

/// A thread's tables and memories. The walk's memory lies right behind it.
#[derive(Debug)]
pub(crate) struct ThreadState {
    tally: MaybeUninit<ThreadTally>,
    pub(crate) walk: *mut WalkMemory,
    /// The bounds of the stack that was asked for last.
    pub(crate) stack: (u64, u64),
    pub(crate) buffer: [u8; BUFFER_BYTES],
    /// The next one that is free.
    pub(crate) next_free: *mut Self,
}

impl ThreadState {
    const BYTES: usize = size_of::<Self>().next_multiple_of(sys::PAGE);

    /// The thread's tables; valid from `Recorder::take_thread` to `give_back`.
    pub(crate) fn tally(&mut self) -> &mut ThreadTally {
        // SAFETY: `take_thread` writes the tables before it hands the state out.
        unsafe { self.tally.assume_init_mut() }
    }
}

/// How often the C library runs a thread's destructors; in the last round the state is given back.
const ROUNDS: u16 = 4;

/// The C library's functions for a destructor per thread, looked up once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadEnd {
    pub(crate) key: u32,
    pub(crate) set: unsafe extern "C" fn(u32, *const c_void) -> c_int,
}

impl Recorder {
    /// The calling thread's state; `None`: there is no memory for one.
    #[inline]
    pub(crate) fn thread<'a>(&'static self, local: &mut Local) -> Option<&'a mut ThreadState> {
        if local.thread.is_null() {
            self.thread_slow(local)
        } else {
            // SAFETY: the state belongs to the calling thread until its end.
            Some(unsafe { &mut *local.thread })
        }
    }

    #[cold]
    #[inline(never)]
    fn thread_slow<'a>(&'static self, local: &mut Local) -> Option<&'a mut ThreadState> {
        if local.rounds >= ROUNDS {
            return None;
        }
        local.thread = self.take_thread()?;
        self.watch_end(local);
        // SAFETY: as in `thread`.
        Some(unsafe { &mut *local.thread })
    }

    fn watch_end(&self, local: &Local) {
        if let Some(end) = self.thread_end {
            // SAFETY: the function and the key are the C library's; the value is not null, so the destructor runs.
            unsafe { (end.set)(end.key, local.thread.cast()) };
        }
    }

    /// A state of its own for whoever asks.
    pub(crate) fn take_thread(&self) -> Option<*mut ThreadState> {
        let tally = self.tally.begin_thread()?;
        let free = {
            let mut first = self.free_threads.lock();
            let free = first.0;
            if !free.is_null() {
                // SAFETY: states in the list are nobody's, and linked under this lock.
                first.0 = unsafe { (*free).next_free };
            }
            free
        };
        let state = if free.is_null() { Self::map_thread() } else { free };
        if state.is_null() {
            self.tally.end_thread(tally);
            return None;
        }
        // SAFETY: the state is this caller's alone now, and its walk memory is laid out.
        unsafe {
            (*state).tally = MaybeUninit::new(tally);
            (*(*state).walk).forget();
            (*state).stack = (0, 0);
        }
        Some(state)
    }

    fn map_thread() -> *mut ThreadState {
        let memory = sys::map_private(ThreadState::BYTES + WalkMemory::BYTES.next_multiple_of(sys::PAGE));
        if memory.is_null() {
            return ptr::null_mut();
        }
        let state: *mut ThreadState = memory.cast();
        // SAFETY: the mapping is new, zeroed and large enough for both; all-zero bytes are a valid `ThreadState`.
        unsafe { (*state).walk = WalkMemory::init(memory.add(ThreadState::BYTES)) };
        state
    }

    fn give_back(&self, state: *mut ThreadState) {
        // SAFETY: the caller's thread owned the state and does not use it any more.
        let tally = unsafe { (*state).tally.assume_init_read() };
        self.tally.end_thread(tally);
        let mut first = self.free_threads.lock();
        // SAFETY: as above; the list is linked under its lock.
        unsafe { (*state).next_free = first.0 };
        first.0 = state;
    }
}

/// States of threads that have ended.
#[derive(Debug)]
pub(crate) struct FreeThreads(pub(crate) *mut ThreadState);

// SAFETY: the states in the list belong to no thread.
unsafe impl Send for FreeThreads {}

/// Runs at a thread's end, with its state.
///
/// Destructors of the program's own may still allocate, in this round or the next: the state is kept until the last
/// round, then given back. What comes after that is recorded with the state that all ended threads share.
pub(crate) unsafe extern "C" fn end_thread(_: *mut c_void) {
    let Some(recorder) = recorder() else { return };
    let local = local();
    // It was cancelled while it waited for a shell.
    for _ in 0..core::mem::take(&mut local.lent) {
        crate::environment::take_back();
    }
    if local.thread.is_null() {
        return;
    }
    local.rounds += 1;
    if local.rounds < ROUNDS {
        recorder.watch_end(local);
        return;
    }
    local.busy = RECORDING;
    let state = core::mem::replace(&mut local.thread, ptr::null_mut());
    recorder.give_back(state);
    local.busy = IDLE;
}
