//! What the hooks tell: allocations and frees.
#![expect(unsafe_code, reason = "walks the calling thread's stack")]

use heaptally_segment::layout::{EntryPoint, NODE_ADDRESS_MASK, Root};
use heaptally_tally::{Allocation, Block, Entered, Event, FreeKind, Tally};
use heaptally_unwind::{End, Entry, FrameState, Walk};

use crate::armed;
use crate::async_chain::{self, Physical};
use crate::child;
use crate::local::{CANCELLABLE, IDLE, IN_ALLOCATOR, Local, QUIET, RECORDING, local};
use crate::recorder::{CodeView, Recorder, recorder};
use crate::task_origin::{self, Origin};
use crate::thread::ThreadState;

/// The caller of an allocation function, at that function's first instruction.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The stack pointer: it points to the return address.
    pub sp: u64,
    /// The frame pointer register, whatever the caller uses it for.
    pub bp: u64,
    /// r14: in Swift's async functions the context, unless it was saved.
    pub context: u64,
}

/// A hook's turn: from before the real function until after recording.
///
/// While one lives, what the thread calls (or a signal handler on it) is not the program's own call.
#[derive(Debug)]
pub struct Turn {
    recorder: &'static Recorder,
    local: *mut Local,
    /// What [`Local::leave`] is told.
    idle: u32,
}

/// What a hook is to do.
#[derive(Debug)]
pub enum Admission {
    /// Call the real function and record.
    Record(Turn),
    /// Call the real function only.
    Pass,
}

/// Asks for a turn. `is_allocation` says whether a refusal is a loss to count.
#[inline(always)]
pub fn enter(is_allocation: bool) -> Admission {
    match recorder().or_else(decided) {
        Some(recorder) => take_turn(recorder, is_allocation),
        None => Admission::Pass,
    }
}

#[inline(always)]
fn take_turn(recorder: &'static Recorder, is_allocation: bool) -> Admission {
    let local = local();
    let Some(idle) = local.enter(IN_ALLOCATOR) else {
        if is_allocation {
            inside_slow(recorder, local.busy);
        }
        return Admission::Pass;
    };
    Admission::Record(Turn { recorder, local, idle })
}

/// A process that records. The real functions are known in it.
#[derive(Clone, Copy, Debug)]
pub struct Armed(&'static Recorder);

/// Whether this process is one.
#[inline(always)]
pub fn armed() -> Option<Armed> {
    recorder().map(Armed)
}

impl Armed {
    /// Whether no window is open for the thread, so that nothing which it allocates is recorded.
    ///
    /// PERF: then an allocation needs no turn. A thread that is interrupted or cancelled in the real function is where
    /// it would be without us.
    #[inline(always)]
    pub fn is_closed(self) -> bool {
        is_closed(self.0) && !self.0.tally.wants_every_stack()
    }

    /// The block that such an allocation gave; 0: none.
    #[inline(always)]
    pub fn passed(self, block: usize) {
        self.0.tally.passed(block);
    }

    /// Asks for a turn, for an allocation.
    #[inline(always)]
    pub fn enter(self) -> Admission {
        take_turn(self.0, true)
    }
}

/// Whether neither the process nor the thread has a window open that records.
#[inline(always)]
fn is_closed(recorder: &'static Recorder) -> bool {
    if recorder.tally.current_of_process().window != 0 {
        return false;
    }
    let local = local();
    // A thread without a state of its own has no windows.
    local.thread.is_null() || recorder.thread(local).is_none_or(|thread| !thread.tally().has_open_windows())
}

/// A block is about to be given back.
///
/// PERF: what was not recorded needs no turn where no window is open, nor where blocks are not followed.
#[inline(always)]
pub fn freeing(address: usize) {
    let Some(recorder) = recorder().or_else(decided) else { return };
    if recorder.resumers.are_there() {
        recorder.note_going(address);
        // PERF: as the last call, so that nothing has to be kept over it.
        if recorder.origins.are_wanted() {
            return freeing_slow(recorder, address);
        }
    }
    going(recorder, address);
}

/// The same where a task may have lived in the block.
#[cold]
#[inline(never)]
fn freeing_slow(recorder: &'static Recorder, address: usize) {
    task_origin::freeing(address);
    going(recorder, address);
}

#[inline(always)]
fn going(recorder: &'static Recorder, address: usize) {
    let known = recorder.tally.take_block(address);
    if known.is_none() && (!recorder.tally.has_lifetimes() || is_closed(recorder)) {
        return;
    }
    freed(recorder, address, known);
}

#[inline(never)]
fn freed(recorder: &'static Recorder, address: usize, known: Option<Block>) {
    let local = local();
    match local.enter(IN_ALLOCATOR) {
        Some(idle) => Turn { recorder, local, idle }.freed(address, known, FreeKind::Free),
        None if known.is_some() => recorder.tally.freed(None, address, known, FreeKind::Free),
        None => {}
    }
}

/// Memory of the program's has gone away, or changed its place.
pub fn unmapped() {
    async_chain::note_gone();
}

impl Recorder {
    /// A block is about to be given back, where async callers are read: one that has a mapping of its own takes pages with it.
    #[inline(always)]
    fn note_going(&self, block: usize) {
        if self.has_libc_malloc {
            async_chain::note_block(block);
        }
    }
}

/// In a process where the recorder is off: a child that is to record has its recorder from here on.
#[inline(always)]
pub(crate) fn decided() -> Option<&'static Recorder> {
    if armed::is_undecided() { child::decide() } else { None }
}

/// An allocation inside a turn: a signal handler's, or one that the allocator makes for itself. The C library's makes
/// none through its own functions' names, so behind that it is a handler's, and lost.
#[cold]
#[inline(never)]
fn inside_slow(recorder: &Recorder, busy: u32) {
    if busy == RECORDING || (busy == IN_ALLOCATOR && recorder.has_libc_malloc) {
        recorder.tally.lose_reentrant();
    }
}

impl Drop for Turn {
    #[inline(always)]
    fn drop(&mut self) {
        self.local().leave(self.idle);
    }
}

impl Turn {
    #[inline(always)]
    fn local(&self) -> &'static mut Local {
        // SAFETY: a turn stays on the thread that took it.
        unsafe { &mut *self.local }
    }

    /// The real function has returned: from here on the thread is in the recorder.
    #[inline(always)]
    fn recording(&self) -> &'static mut Local {
        let local = self.local();
        local.busy = RECORDING;
        local
    }

    /// A successful allocation.
    #[inline(always)]
    pub fn allocated(
        &self,
        caller: Caller,
        entry_point: EntryPoint,
        block: usize,
        size: u64,
        kind: Allocation,
    ) {
        let local = self.recording();
        let recorder = self.recorder;
        let is_told = with_thread(recorder, local, |thread| {
            let entered = recorder.tally.current(thread.tally());
            let event = if recorder.tally.wants_every_stack() {
                let event = event_by_stack(recorder, thread, caller, entry_point, entered);
                if let Some(origin) = thread.creating.take() {
                    recorder.origins.add(block as u64, size, origin);
                }
                event
            } else {
                event_in_window(recorder, thread, caller, entry_point, entered)
            };
            match event {
                Some(event) => recorder.tally.allocated(thread.tally(), event, block, size, kind),
                None => recorder.tally.passed(block),
            }
        });
        if !is_told {
            recorder.tally.passed(block);
            recorder.tally.lose_thread();
        }
    }

    /// An allocation that got no memory.
    #[cold]
    pub fn failed(&self, caller: Caller, entry_point: EntryPoint) {
        self.told(caller, entry_point, |tally, thread, event| tally.failed(thread.tally(), event));
    }

    /// A realloc to size 0 that freed its block.
    #[cold]
    pub fn reallocated_to_zero(&self, caller: Caller, entry_point: EntryPoint) {
        self.told(caller, entry_point, |tally, thread, event| {
            tally.reallocated_to_zero(thread.tally(), event)
        });
    }

    fn told(
        &self,
        caller: Caller,
        entry_point: EntryPoint,
        tell: impl FnOnce(&'static Tally, &mut ThreadState, Event),
    ) {
        let local = self.recording();
        let recorder = self.recorder;
        let is_told = with_thread(recorder, local, |thread| {
            let entered = recorder.tally.current(thread.tally());
            if let Some(event) = event(recorder, thread, caller, entry_point, entered) {
                tell(&recorder.tally, thread, event);
            }
        });
        if !is_told {
            recorder.tally.lose_thread();
        }
    }

    /// Whether a block is what this thread's latest recorded allocation gave.
    pub fn is_latest(&self, block: usize) -> bool {
        let local = self.local();
        let last_block = local.last_block;
        self.recorder.thread(local).map_or(last_block == block, |thread| thread.tally().is_latest(block))
    }

    /// [`Turn::take_block`], for a block that an `operator new` was told to have given; others stay known.
    pub fn take_new_block(&self, block: usize) -> Option<Block> {
        let known = self.take_block(block)?;
        let entry_point = self.recorder.tally.entry_point(known);
        if entry_point.is_some_and(EntryPoint::is_new) {
            return Some(known);
        }
        self.keep(block, Some(known));
        None
    }

    /// Forgets a block that is about to be given back or moved.
    #[inline(always)]
    pub fn take_block(&self, block: usize) -> Option<Block> {
        if self.recorder.resumers.are_there() {
            self.recorder.note_going(block);
        }
        self.recorder.tally.take_block(block)
    }

    /// It was not given back after all.
    #[cold]
    pub fn keep(&self, address: usize, block: Option<Block>) {
        if let Some(block) = block {
            self.recorder.tally.keep(address, block);
        }
    }

    /// A block was given back, or is about to be.
    #[inline(always)]
    pub fn freed(&self, address: usize, known: Option<Block>, kind: FreeKind) {
        let local = self.recording();
        let recorder = self.recorder;
        // A thread that only frees what was never recorded needs no state.
        let is_told = (known.is_some() || !local.thread.is_null())
            && with_thread(recorder, local, |thread| {
                recorder.tally.freed(Some(thread.tally()), address, known, kind);
            });
        if !is_told {
            recorder.tally.freed(None, address, known, kind);
        }
        self.local().busy = IN_ALLOCATOR;
    }
}

/// How many allocations this thread recorded in the window that is open now: if it grows while an operator runs, that
/// called `malloc`. 0 where nothing is recorded.
pub fn recorded() -> u64 {
    let Some(recorder) = recorder() else { return 0 };
    let local = local();
    if !matches!(local.busy, IDLE | CANCELLABLE) {
        return 0;
    }
    if local.thread.is_null() {
        return local.late_allocations;
    }
    recorder.thread(local).map_or(0, |thread| {
        if recorder.tally.has_function_windows() {
            return thread.tally().recorded_anywhere();
        }
        let window = recorder.tally.current(thread.tally()).window;
        thread.tally().recorded(window)
    })
}

/// A free inside a turn (a signal handler, or the allocator's own): charged without the thread's state.
#[inline(always)]
pub fn freed_inside(address: usize) {
    if let Some(recorder) = recorder()
        && let Some(block) = recorder.tally.take_block(address)
    {
        recorder.tally.freed(None, address, Some(block), FreeKind::Free);
    }
}

/// Runs with the thread's state; without one (the thread has ended, but for its last calls, or there are too many) with
/// the one that all such threads share. False: there is none either.
#[inline(always)]
pub(crate) fn with_thread(
    recorder: &'static Recorder,
    local: &mut Local,
    run: impl FnOnce(&mut ThreadState),
) -> bool {
    match recorder.thread(local) {
        Some(thread) => {
            run(thread);
            true
        }
        None => with_late(recorder, local, run),
    }
}

#[cold]
#[inline(never)]
fn with_late(recorder: &'static Recorder, local: &mut Local, run: impl FnOnce(&mut ThreadState)) -> bool {
    let mut late = recorder.late.lock();
    recorder.fill_late(&mut late);
    if late.0.is_null() {
        return false;
    }
    // SAFETY: the lock is held, so the state is this thread's for now.
    let thread = unsafe { &mut *late.0 };
    // SAFETY: each state has its walk memory behind it. The stack is another than the last one's.
    unsafe { (*thread.walk).forget() };
    thread.tally().lend(local.life, local.last_block, local.paused);
    run(thread);
    let before = local.last_block;
    (local.life, local.last_block, local.paused) = thread.tally().standing();
    if local.last_block != 0 && local.last_block != before {
        local.late_allocations = local.late_allocations.wrapping_add(1);
    }
    true
}

/// An event with its window and its stack; `None`: it belongs to no window. `entered` is the one that is open.
#[inline(always)]
fn event(
    recorder: &'static Recorder,
    thread: &mut ThreadState,
    caller: Caller,
    entry_point: EntryPoint,
    entered: Entered,
) -> Option<Event> {
    if recorder.tally.wants_every_stack() {
        return event_by_stack(recorder, thread, caller, entry_point, entered);
    }
    event_in_window(recorder, thread, caller, entry_point, entered)
}

/// The same where the window that is open decides.
#[inline(always)]
fn event_in_window(
    recorder: &'static Recorder,
    thread: &mut ThreadState,
    caller: Caller,
    entry_point: EntryPoint,
    entered: Entered,
) -> Option<Event> {
    if entered.window == 0 {
        return None;
    }
    let (leaf, _) = stack(recorder, thread, caller, false);
    let start = if thread.tally().wants_start() { start_address(thread) } else { 0 };
    Some(Event { entered, leaf, entry_point, start })
}

/// The same where the stack is wanted in any case: windows that are defined by functions are told by it, and whether a task
/// is created.
#[cold]
#[inline(never)]
fn event_by_stack(
    recorder: &'static Recorder,
    thread: &mut ThreadState,
    caller: Caller,
    entry_point: EntryPoint,
    other: Entered,
) -> Option<Event> {
    let is_paused = thread.tally().is_paused();
    if is_paused && !recorder.origins.are_wanted() {
        return None;
    }
    let (leaf, root) = stack(recorder, thread, caller, false);
    if recorder.origins.are_wanted() {
        thread.creating = origin_slow(recorder, thread, leaf);
        if is_paused {
            return None;
        }
    }
    let entered = match recorder.tally.has_function_windows() {
        true => recorder.tally.window_of_stack(thread.tally(), (leaf, root), other),
        false => other,
    };
    if entered.window == 0 {
        return None;
    }
    let start = if thread.tally().wants_start() { start_address(thread) } else { 0 };
    Some(Event { entered, leaf, entry_point, start })
}

/// What the latest stack is to a task, if it is one in which a task gets its memory.
#[cold]
#[inline(never)]
fn origin_slow(recorder: &Recorder, thread: &mut ThreadState, leaf: Option<u32>) -> Option<Origin> {
    /// Between an allocation function and the one that creates tasks there are no more frames of the runtime's.
    const FRAMES: usize = 6;
    // SAFETY: each state has its walk memory behind it, used by its thread alone.
    let entries = unsafe { &*thread.walk }.entries();
    let is_creator = |entry: &Entry| {
        let pc = (entry.address & NODE_ADDRESS_MASK).wrapping_sub(1);
        recorder.origins.is_creator(pc)
    };
    entries.iter().rev().take(FRAMES).any(is_creator).then_some(())?;
    // SAFETY: each state has its chain memory, used by its thread alone.
    Some(unsafe { &*thread.chain }.origin_of(leaf?))
}

/// What the stack of a function that is just called is to the task that it creates. The thread is in the recorder.
pub(crate) fn creating(recorder: &'static Recorder, local: &mut Local, caller: Caller) -> Option<Origin> {
    let mut origin = None;
    with_thread(recorder, local, |thread| {
        let (leaf, _) = stack(recorder, thread, caller, true);
        // SAFETY: each state has its chain memory, used by its thread alone.
        origin = leaf.map(|leaf| unsafe { &*thread.chain }.origin_of(leaf));
    });
    origin
}

/// The address in the thread's start function, of the stack that was walked last.
fn start_address(thread: &ThreadState) -> u64 {
    // SAFETY: each state has its walk memory behind it, used by its thread alone.
    unsafe { &*thread.walk }.entries().get(2).map_or(0, |entry| entry.address)
}

/// The node of the caller's stack (of its last async caller, if it has any), and how its walk ended. `is_entry`: see
/// [`Physical::is_entry`].
#[inline(always)]
fn stack(
    recorder: &'static Recorder,
    thread: &mut ThreadState,
    caller: Caller,
    is_entry: bool,
) -> (Option<u32>, Root) {
    // SAFETY: each state has its walk memory behind it, used by its thread alone.
    let walk_memory = unsafe { &mut *thread.walk };
    let code = CodeView { recorder, thread };
    // SAFETY: `sp` points to the return address of the hook's own caller.
    let pc = unsafe { (caller.sp as *const u64).read() };
    let state = FrameState { pc, sp: caller.sp + 8, bp: caller.bp };
    // SAFETY: the state is that of a frame of the calling thread, which stays while we are called from it.
    let Walk { end, kept } = unsafe { recorder.unwinder(&code).walk(walk_memory, state) };
    #[cfg(feature = "oracle")]
    crate::oracle::compare(recorder, &code, walk_memory, state, end);
    let root = root(end);
    let leaf = recorder.tally.stack(
        thread.tally(),
        walk_memory.entries_mut(),
        kept,
        root,
        |entry| entry.address,
        |entry| &mut entry.node,
    );
    let leaf = match leaf {
        Some(leaf) if recorder.tally.is_resumed(leaf) => {
            // SAFETY: each state has its chain memory, used by its thread alone.
            let memory = unsafe { &mut *thread.chain };
            let code = &code;
            let stack =
                Physical { recorder, code, walk: walk_memory, leaf, register: caller.context, is_entry };
            // SAFETY: the walk is that of the calling thread, from the function that called ours.
            unsafe { stack.with_callers(memory) }
        }
        leaf => leaf,
    };
    if leaf.is_none() {
        walk_memory.forget();
    }
    (leaf, root)
}

/// A function beneath which a window is was called; `caller` as for an allocation function. The thread is in the
/// recorder.
pub(crate) fn called(recorder: &'static Recorder, local: &mut Local, window: u32, caller: Caller) {
    let is_told = with_thread(recorder, local, |thread| {
        let (leaf, _) = stack(recorder, thread, caller, true);
        recorder.tally.called(thread.tally(), window, leaf);
    });
    if !is_told {
        recorder.tally.lose_window();
    }
}

#[inline(always)]
fn root(end: End) -> Root {
    match end {
        End::Complete => Root::Complete,
        End::CutNoInformation => Root::CutNoInformation,
        End::CutBadInformation => Root::CutBadInformation,
        End::CutBadStack => Root::CutBadStack,
        End::CutDepth => Root::CutDepth,
    }
}

/// Runs with this thread's allocations taken for the recorder's own: they are neither recorded nor counted as lost.
pub fn quietly(run: impl FnOnce()) {
    let local = local();
    let before = core::mem::replace(&mut local.busy, QUIET);
    run();
    local.busy = before;
}

/// Whether this thread may be cancelled at any instruction, as it just said.
///
/// Then each turn holds that back until its end: else a lock of the recorder, or of the allocator, could be held for ever.
pub fn set_cancellable(anywhere: bool) {
    let local = local();
    if matches!(local.busy, IDLE | CANCELLABLE) {
        local.busy = if anywhere { CANCELLABLE } else { IDLE };
    }
}

/// Before a `dlclose`, and at the program's end if it comes to that: what can still be said of the libraries.
pub fn before_unload() {
    crate::loader::before_unload();
}

/// After a `dlclose`.
pub fn after_dlclose() {
    crate::loader::after_dlclose();
}
