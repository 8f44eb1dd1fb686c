//! What each thread records with, from its first event to its end.
#![expect(unsafe_code, reason = "thread states live in mapped memory and are handed from thread to thread")]

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;

use heaptally_tally::ThreadTally;
use heaptally_unwind::WalkMemory;

use crate::async_chain::ChainMemory;
use crate::local::{Local, RECORDING, local};
use crate::memory_map::BUFFER_BYTES;
use crate::recorder::{Late, Recorder, recorder};
use crate::sys;
use crate::task_origin::Origin;

/// A thread's tables and memories. The walk's memory lies right behind it, then that of async callers.
#[derive(Debug)]
pub(crate) struct ThreadState {
    tally: MaybeUninit<ThreadTally>,
    pub(crate) walk: *mut WalkMemory,
    pub(crate) chain: *mut ChainMemory,
    /// The bounds of the stack that was asked for last.
    pub(crate) stack: (u64, u64),
    pub(crate) buffer: [u8; BUFFER_BYTES],
    /// A benchmark that was given up before its loop began: its object, and the run.
    pub(crate) given_up: (usize, u32),
    /// What the latest allocation is to a task that gets its memory by it.
    pub(crate) creating: Option<Origin>,
    /// The kernel's id of the thread that uses it; 0: none, or all that have no state of their own.
    owner: u32,
    /// The next one that is free.
    next_free: *mut Self,
    /// The one that was mapped before.
    next_mapped: *mut Self,
}

impl ThreadState {
    const BYTES: usize = size_of::<Self>().next_multiple_of(sys::PAGE);

    /// The thread's tables; valid from `Recorder::take_thread` to `give_back`.
    pub(crate) fn tally(&mut self) -> &mut ThreadTally {
        // SAFETY: `take_thread` writes the tables before it hands the state out.
        unsafe { self.tally.assume_init_mut() }
    }
}

/// How often the C library runs a thread's destructors; in the last round the state is given back at the latest.
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
        local.thread = self.take_thread(true)?;
        self.watch_end(local);
        self.reserve_late();
        // SAFETY: as in `thread`.
        Some(unsafe { &mut *local.thread })
    }

    /// Where there are many threads there may come to be too many: what those share that find no place is set aside.
    fn reserve_late(&self) {
        const MANY: u32 = 4;
        let count = self.free_threads.lock().count;
        if count >= MANY {
            self.fill_late(&mut self.late.lock());
        }
    }

    /// Makes the state that all threads without one share, if it is not there and can be made.
    pub(crate) fn fill_late(&self, late: &mut Late) {
        if late.0.is_null() {
            late.0 = self.take_thread(false).unwrap_or(ptr::null_mut());
        }
    }

    fn watch_end(&self, local: &Local) {
        if let Some(end) = self.thread_end {
            // SAFETY: the function and the key are the C library's; the value is not null, so the destructor runs.
            unsafe { (end.set)(end.key, local.thread.cast()) };
        }
    }

    /// A state for the calling thread, or (not `is_owned`) for several; `None`: there is no place, or no memory.
    pub(crate) fn take_thread(&self, is_owned: bool) -> Option<*mut ThreadState> {
        if self.free_threads.lock().is_search_due() {
            self.give_back_gone();
        }
        let tally = match self.tally.begin_thread() {
            Some(tally) => tally,
            None => self.begin_thread_slow()?,
        };
        let mut threads = self.free_threads.lock();
        let mut state = threads.first;
        if state.is_null() {
            state = Self::map_thread();
            if state.is_null() {
                drop(threads);
                self.tally.end_thread(tally);
                return None;
            }
            // SAFETY: the state is new, and this caller's alone.
            unsafe { (*state).next_mapped = threads.mapped };
            threads.mapped = state;
            threads.count += 1;
        } else {
            // SAFETY: states in the list are nobody's, and linked under this lock.
            threads.first = unsafe { (*state).next_free };
        }
        // SAFETY: the state is this caller's alone now, and its walk memory is laid out.
        unsafe {
            (*state).tally = MaybeUninit::new(tally);
            (*(*state).walk).forget();
            (*state).stack = (0, 0);
            (*state).given_up = (0, 0);
            (*state).owner = if is_owned { sys::thread_id() } else { 0 };
        }
        Some(state)
    }

    /// All shards are taken, some perhaps by threads that ended without a word. Not looked at each time: a thread without
    /// a state asks with each event.
    #[cold]
    fn begin_thread_slow(&self) -> Option<ThreadTally> {
        const EACH: u32 = 4096;
        let refusals = {
            let mut threads = self.free_threads.lock();
            threads.refusals = threads.refusals.wrapping_add(1);
            threads.refusals
        };
        if refusals % EACH == 1 {
            self.give_back_gone();
        }
        self.tally.begin_thread()
    }

    /// Gives back the states of threads that ended without a word: by a system call of their own, or having begun in the
    /// last round of destructors.
    #[cold]
    fn give_back_gone(&self) {
        let mut threads = self.free_threads.lock();
        let mut state = threads.mapped;
        while !state.is_null() {
            // SAFETY: states stay mapped; owners change under this lock only.
            let (owner, next) = unsafe { ((*state).owner, (*state).next_mapped) };
            if owner != 0 && sys::is_gone(owner) {
                // SAFETY: its thread does not run any more, and did not give it back.
                self.tally.end_gone_thread(unsafe { threads.push(state) });
            }
            state = next;
        }
    }

    fn map_thread() -> *mut ThreadState {
        let walk_bytes = WalkMemory::BYTES.next_multiple_of(sys::PAGE);
        let chain_bytes = ChainMemory::BYTES.next_multiple_of(sys::PAGE);
        let memory = sys::map_private(ThreadState::BYTES + walk_bytes + chain_bytes);
        if memory.is_null() {
            return ptr::null_mut();
        }
        let state: *mut ThreadState = memory.cast();
        // SAFETY: the mapping is new, zeroed and large enough for all three; all-zero bytes are a valid state of each.
        unsafe {
            (*state).walk = WalkMemory::init(memory.add(ThreadState::BYTES));
            (*state).chain = memory.add(ThreadState::BYTES + walk_bytes).cast();
        }
        state
    }

    fn give_back(&self, state: *mut ThreadState) {
        // SAFETY: the caller's thread owned the state and does not use it any more.
        let tally = unsafe { self.free_threads.lock().push(state) };
        self.tally.end_thread(tally);
    }
}

/// All states that were mapped, and those of threads that have ended.
#[derive(Debug)]
pub(crate) struct FreeThreads {
    first: *mut ThreadState,
    mapped: *mut ThreadState,
    count: u32,
    /// How many there were when gone threads were looked for.
    searched: u32,
    refusals: u32,
}

// SAFETY: the states in the list belong to no thread.
unsafe impl Send for FreeThreads {}

impl FreeThreads {
    pub(crate) const fn new() -> Self {
        Self { first: ptr::null_mut(), mapped: ptr::null_mut(), count: 0, searched: 0, refusals: 0 }
    }

    /// Whether one more is to be mapped though some of them might be nobody's: looked at each time their number has
    /// doubled.
    fn is_search_due(&mut self) -> bool {
        const LEAST: u32 = 64;
        let is_due = self.first.is_null() && self.count >= LEAST && self.count >= self.searched * 2;
        if is_due {
            self.searched = self.count;
        }
        is_due
    }

    /// Puts a state into the list, and hands out its tables.
    ///
    /// # Safety
    /// Nobody uses the state any more, and its tables are in place.
    unsafe fn push(&mut self, state: *mut ThreadState) -> ThreadTally {
        // SAFETY: by the caller.
        let tally = unsafe { (*state).tally.assume_init_read() };
        // SAFETY: as above; the list is linked under its lock.
        unsafe {
            (*state).owner = 0;
            (*state).next_free = self.first;
        }
        self.first = state;
        tally
    }
}

/// Runs at a thread's end, with its state.
///
/// Destructors of the program's own may still allocate, in this round or the next. What comes then is recorded with the
/// state that all threads without one share. Only while the thread has windows open the state is kept, to the last round:
/// the windows end with it.
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
    // SAFETY: the state is the calling thread's own.
    if local.rounds < ROUNDS && unsafe { (*local.thread).tally() }.has_open_windows() {
        recorder.watch_end(local);
        return;
    }
    local.rounds = ROUNDS;
    let before = core::mem::replace(&mut local.busy, RECORDING);
    let state = core::mem::replace(&mut local.thread, ptr::null_mut());
    // SAFETY: it is the calling thread's own until it is given back.
    (local.life, local.last_block, local.paused) = unsafe { (*state).tally() }.standing();
    recorder.give_back(state);
    local.busy = before;
}
