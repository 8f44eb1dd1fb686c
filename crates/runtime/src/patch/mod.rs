//! Windows at functions: entries that are patched in this process.
//!
//! The recorder knows no names and no instructions. It asks the command, which answers with plans
//! ([`Plan`]): what lies at an entry, what is to run elsewhere instead, and what an entry does. Here the
//! bytes are compared and written: at the start, while the process has one thread, and when the loader tells of a new
//! library, in which no thread can be yet.
#![expect(unsafe_code, reason = "writes code")]

mod island;

use core::sync::atomic::{AtomicU32, Ordering};

use heaptally_segment::layout::{
    ACTION_BEGIN, ACTION_CALL, ACTION_END, ACTION_KIND_SHIFT, ACTION_PAUSE, ACTION_RESUME, ACTION_TURN,
    CodeRange, FileHeader, OPTION_FUNCTION_WINDOWS, PACKAGE_BENCHMARK, PLAN_APPLIED, PLAN_CODE, PLAN_DAMAGED,
    PLAN_DIFFERS, PLAN_FIXUPS, PLAN_LIMIT, PLAN_NO_ROOM, PLAN_ORIGINAL, PLAN_PROTECTED, PLAN_STEPS,
    PLAN_THREADS, Plan, RANGE_LIMIT,
};
use heaptally_tally::{FunctionRange, Os, Pages, TableMap};

use crate::child;
use crate::codspeed;
use crate::event::{Caller, called, decided};
use crate::google_benchmark::Step;
use crate::local::{RECORDING, local};
use crate::package_benchmark;
use crate::recorder::{Recorder, recorder};
use crate::sys;
use crate::x86_64::trampoline;
use island::NewBlock;

/// How long it is waited until the command has seen a request, and until it has answered one that it has seen.
const SEEN_SECONDS: u32 = 2;
const ANSWER_SECONDS: u32 = 30;
/// `jmp`, four bytes of distance.
const JUMP_BYTES: usize = 5;

/// The plans of this process's area.
#[derive(Debug)]
pub(crate) struct Plans {
    pages: Pages,
    limit: u32,
    /// How many were looked at.
    done: AtomicU32,
    ranges: Pages,
    range_limit: u32,
    ranges_done: AtomicU32,
}

impl Plans {
    /// Over the area's tables of plans and of ranges.
    pub(crate) fn new([plans, ranges]: [TableMap; 2], os: Os) -> Self {
        let count =
            |map: TableMap, size: usize, limit: u32| (map.bytes / size as u64).min(u64::from(limit)) as u32;
        Self {
            pages: Pages::new(plans, os),
            limit: count(plans, size_of::<Plan>(), PLAN_LIMIT),
            done: AtomicU32::new(0),
            ranges: Pages::new(ranges, os),
            range_limit: count(ranges, size_of::<CodeRange>(), RANGE_LIMIT),
            ranges_done: AtomicU32::new(0),
        }
    }

    /// A range whose pages are open.
    fn range(&self, number: u32) -> CodeRange {
        // SAFETY: the pages are open and stay; the command does not change what it has answered with.
        unsafe {
            self.ranges.address(u64::from(number) * size_of::<CodeRange>() as u64).cast::<CodeRange>().read()
        }
    }

    /// A plan that was looked at.
    fn get(&self, id: u32) -> Option<&'static Plan> {
        (id < self.done.load(Ordering::Acquire)).then(|| self.at(id))
    }

    /// A plan whose pages are open.
    fn at(&self, id: u32) -> &'static Plan {
        // SAFETY: the pages are open and stay; the command does not change what it has answered with.
        unsafe { &*self.pages.address(u64::from(id) * size_of::<Plan>() as u64).cast::<Plan>() }
    }

    fn open(&self, count: u32) -> bool {
        count <= self.limit && self.pages.reserve(u64::from(count) * size_of::<Plan>() as u64)
    }

    /// Takes over what the parent's entries do, in a forked child: the same ids.
    pub(crate) fn inherit(&self, parent: &Self, module: impl Fn(u32) -> u32) -> u32 {
        let count = parent.done.load(Ordering::Acquire);
        if !self.open(count) {
            return 0;
        }
        for id in 0..count {
            let from = parent.at(id);
            let into = self.pages.address(u64::from(id) * size_of::<Plan>() as u64).cast::<Plan>();
            // SAFETY: both are plans of open pages, the child's own is new and nobody reads it yet.
            unsafe { into.copy_from_nonoverlapping(from, 1) };
            // SAFETY: as above.
            let own = unsafe { &mut *into };
            *own.hits.get_mut() = 0;
            own.windows.iter_mut().for_each(|window| *window.get_mut() = 0);
            own.module = module(from.module);
        }
        self.done.store(count, Ordering::Release);
        count
    }

    /// Takes over the parent's ranges, likewise; [`adopt`] has them used.
    pub(crate) fn inherit_ranges(&self, parent: &Self, module: impl Fn(u32) -> u32) -> u32 {
        let count = parent.ranges_done.load(Ordering::Acquire);
        if !self.ranges.reserve(u64::from(count) * size_of::<CodeRange>() as u64) {
            return 0;
        }
        for number in 0..count {
            let range = parent.range(number);
            let range = CodeRange { module: module(range.module), ..range };
            let into = self.ranges.address(u64::from(number) * size_of::<CodeRange>() as u64);
            // SAFETY: the pages are open, the child's own, and nobody reads them yet.
            unsafe { into.cast::<CodeRange>().write(range) };
        }
        count
    }
}

/// Whether windows at functions are wanted.
fn wanted() -> Option<&'static FileHeader> {
    child::head().filter(|head| head.options & OPTION_FUNCTION_WINDOWS != 0)
}

/// Asks for plans for the modules that are loaded now, and writes them. `is_new`: no thread can be in what was loaded since
/// the last time. Not inside of an allocation.
pub(crate) fn ask(recorder: &Recorder, is_new: bool) {
    let Some(head) = wanted() else { return };
    let header = recorder.tally.header();
    header.plan_limit.store(recorder.plans.limit, Ordering::Relaxed);
    header.range_limit.store(recorder.plans.range_limit, Ordering::Relaxed);
    let number = header.plan_requests.fetch_add(1, Ordering::AcqRel) + 1;
    head.requests.fetch_add(1, Ordering::AcqRel);
    sys::wake_shared(&head.requests);
    if !wait(head, &header.plan_answers, &header.plans_seen, number) {
        header.plans_late.fetch_add(1, Ordering::Relaxed);
        return;
    }
    add_ranges(recorder, head);
    let count = header.plans.load(Ordering::Acquire);
    let done = recorder.plans.done.load(Ordering::Relaxed);
    if count <= done || !recorder.plans.open(count) {
        return;
    }
    trampoline::prepare();
    recorder.plans.done.store(count, Ordering::Release);
    let is_safe = is_new || sys::is_single_threaded();
    let mut first = done;
    while first < count {
        let module = recorder.plans.at(first).module;
        let mut end = first + 1;
        while end < count && recorder.plans.at(end).module == module {
            end += 1;
        }
        write_module(recorder, module, first..end, is_safe);
        first = end;
    }
}

/// In a forked child: what was inherited is used.
pub(crate) fn adopt(recorder: &Recorder) {
    if let Some(head) = wanted() {
        add_ranges(recorder, head);
    }
}

/// Takes over the code of functions beneath which windows are.
fn add_ranges(recorder: &Recorder, head: &'static FileHeader) {
    let (header, plans) = (recorder.tally.header(), &recorder.plans);
    let count = header.ranges.load(Ordering::Acquire).min(plans.range_limit);
    let done = plans.ranges_done.swap(count, Ordering::Relaxed);
    if count <= done || !plans.ranges.reserve(u64::from(count) * size_of::<CodeRange>() as u64) {
        return;
    }
    let mut lost = 0;
    let ranges = (done..count).filter_map(|number| {
        let range = plans.range(number);
        let window = recorder.tally.function_window(name(head, range.window));
        let code = recorder.modules.code_of(range.module)?;
        let (start, end) = (range.start.wrapping_add(code.bias), range.end.wrapping_add(code.bias));
        let is_known = window != 0 && code.whole.0 <= start && end <= code.whole.1;
        lost += usize::from(!is_known);
        is_known.then_some(FunctionRange { start, end, window })
    });
    let full = recorder.tally.add_function_ranges(ranges);
    header.lost_ranges.fetch_add((lost + full) as u32, Ordering::Relaxed);
}

/// Waits for the answer to a request. False: it did not come in time.
fn wait(head: &FileHeader, answers: &AtomicU32, seen: &AtomicU32, number: u32) -> bool {
    for second in 0..ANSWER_SECONDS {
        // Four times a second it is looked whether the command is there at all.
        for _ in 0..4 {
            let now = answers.load(Ordering::Acquire);
            if now == number {
                return true;
            }
            sys::wait_shared(answers, now, 250);
        }
        let is_busy = head.answering.load(Ordering::Acquire) != 0;
        if seen.load(Ordering::Acquire) != number && second + 1 >= SEEN_SECONDS && !is_busy {
            return false;
        }
    }
    answers.load(Ordering::Acquire) == number
}

/// Writes the plans of one module.
fn write_module(recorder: &Recorder, module: u32, ids: core::ops::Range<u32>, is_safe: bool) {
    let plans = &recorder.plans;
    let tell = |id: u32, state: u32| plans.at(id).state.store(state, Ordering::Release);
    let Some(found) = recorder.modules.code_of(module) else {
        return ids.for_each(|id| tell(id, PLAN_DAMAGED));
    };
    let count = ids.end - ids.start;
    let mut usable = 0;
    for id in ids.clone() {
        let state = examine(plans.at(id), found.text, found.bias, is_safe);
        usable += u32::from(state.is_none());
        if let Some(state) = state {
            tell(id, state);
        }
    }
    if usable == 0 {
        return;
    }
    let is_open = |id: &u32| plans.at(*id).state.load(Ordering::Relaxed) < PLAN_APPLIED;
    let Some(block) = NewBlock::near(found.whole, count) else {
        return ids.filter(is_open).for_each(|id| tell(id, PLAN_NO_ROOM));
    };
    let mut islands = 0;
    for id in ids.clone().filter(is_open) {
        match block.write(id - ids.start, id, plans.at(id), found.bias) {
            Some(_) => islands += 1,
            None => tell(id, PLAN_NO_ROOM),
        }
    }
    let first_address = plans.at(ids.start).at.wrapping_add(found.bias);
    if islands == 0 || !block.publish(ids.start, found.bias, first_address) {
        ids.filter(is_open).for_each(|id| tell(id, PLAN_PROTECTED));
        return block.discard();
    }
    for id in ids.clone().filter(is_open) {
        let plan = plans.at(id);
        let island = block.address(id - ids.start);
        let is_written = write_jump(plan.at.wrapping_add(found.bias), island, &plan.original);
        if is_written && plan.actions.iter().any(|action| begins_benchmark(*action)) {
            package_benchmark::set_edges_patched();
        }
        tell(id, if is_written { PLAN_APPLIED } else { PLAN_PROTECTED });
    }
}

/// Why a plan cannot be followed; `None`: it can.
fn examine(plan: &Plan, text: (u64, u64), bias: u64, is_safe: bool) -> Option<u32> {
    let original = plan.original_len as usize;
    let is_whole = (JUMP_BYTES..=PLAN_ORIGINAL).contains(&original)
        && plan.code_len as usize <= PLAN_CODE
        && plan.fixups_len as usize <= PLAN_FIXUPS
        && plan.steps_len as usize <= PLAN_STEPS;
    let at = plan.at.wrapping_add(bias);
    if !is_whole || at < text.0 || at.checked_add(original as u64).is_none_or(|end| end > text.1) {
        return Some(PLAN_DAMAGED);
    }
    let is_same = plan.original.iter().take(original).enumerate().all(|(offset, byte)| {
        // SAFETY: it lies in the code of a loaded module.
        unsafe { ((at + offset as u64) as *const u8).read() == *byte }
    });
    match (is_same, is_safe) {
        (false, _) => Some(PLAN_DIFFERS),
        (true, false) => Some(PLAN_THREADS),
        (true, true) => None,
    }
}

/// Writes the jump to an island over a function's entry. False: refused, and nothing is changed.
fn write_jump(at: u64, island: u64, original: &[u8; PLAN_ORIGINAL]) -> bool {
    let Some(distance) = island::distance(at + JUMP_BYTES as u64, island) else { return false };
    let page = at as usize & !(sys::PAGE - 1);
    let bytes = (at as usize + JUMP_BYTES - page).next_multiple_of(sys::PAGE);
    if !sys::set_code_writable(page, bytes, true) {
        return false;
    }
    let [one, two, three, four] = distance;
    let write = |bytes: &[u8]| {
        for (offset, byte) in bytes.iter().enumerate().take(JUMP_BYTES) {
            // SAFETY: code that is writable now, and in which no thread is.
            unsafe { ((at + offset as u64) as *mut u8).write_volatile(*byte) };
        }
    };
    write(&[0xe9, one, two, three, four]);
    if sys::set_code_writable(page, bytes, false) {
        return true;
    }
    // A hardened system does not let code run that was written.
    write(original);
    sys::set_code_writable(page, bytes, false);
    false
}

/// Libraries went away: their islands with them.
pub(crate) fn forget(recorder: &Recorder) {
    if wanted().is_some() {
        let is_loaded = |address| recorder.modules.find(address).is_some();
        island::forget(is_loaded);
        recorder.tally.retain_function_ranges(is_loaded);
    }
}

/// What an address in an island stands for: see [`island::moved`].
pub(crate) fn moved(recorder: &Recorder, pc: u64) -> Option<(u64, u64)> {
    if recorder.plans.done.load(Ordering::Relaxed) == 0 {
        return None;
    }
    island::moved(pc, |id| recorder.plans.get(id))
}

/// A patched function was entered. `sp` points to its return address; `bp` and `context` (r14) are its caller's, `first`
/// and `second` its arguments.
///
/// Vector registers: where everything is known the recorder calls no function of the C library.
pub(crate) extern "C" fn on_entry(id: u32, sp: u64, bp: u64, first: usize, second: usize, context: u64) {
    // SAFETY: the trampoline kept it there.
    let third = unsafe { (sp.wrapping_sub(trampoline::THIRD_BELOW) as *const usize).read() };
    let call = Call { caller: Caller { sp, bp, context }, first, second, third };
    match recorder().and_then(|recorder| Some((recorder, recorder.plans.get(id)?))) {
        Some((recorder, plan)) if is_known(plan) => enter(recorder, plan, call),
        _ => enter_slow(id, call),
    }
}

/// A call of a patched function.
#[derive(Clone, Copy)]
struct Call {
    caller: Caller,
    first: usize,
    second: usize,
    third: usize,
}

/// Whether an entry is one of many: its windows have their numbers, and the thread has its state. Those of benchmark loops,
/// whose windows are other ones each time, never get a number.
#[inline]
fn is_known(plan: &Plan) -> bool {
    let mut actions = plan.actions.iter().zip(&plan.windows).take_while(|(action, _)| **action != 0);
    !local().thread.is_null() && actions.all(|(_, known)| known.load(Ordering::Relaxed) != 0)
}

#[cold]
#[inline(never)]
fn enter_slow(id: u32, call: Call) {
    trampoline::keep_vectors(|| {
        let Some(recorder) = recorder().or_else(decided) else { return };
        if let Some(plan) = recorder.plans.get(id) {
            // Not for the sake of a window alone, if the thread is inside already.
            let local = local();
            if let Some(idle) = local.enter(RECORDING) {
                recorder.thread(local);
                local.leave(idle);
            }
            enter(recorder, plan, call);
        }
    });
}

#[inline]
fn enter(recorder: &'static Recorder, plan: &Plan, call: Call) {
    let Some(head) = child::head() else { return };
    plan.hits.fetch_add(1, Ordering::Relaxed);
    let local = local();
    let Some(idle) = local.enter(RECORDING) else {
        recorder.tally.header().lost_window_calls.fetch_add(1, Ordering::Relaxed);
        return;
    };
    for (action, known) in plan.actions.iter().zip(&plan.windows) {
        let name = || name(head, action & ((1 << ACTION_KIND_SHIFT) - 1));
        match action >> ACTION_KIND_SHIFT {
            ACTION_BEGIN => recorder.tally.window_begin_known(known, name),
            ACTION_END => recorder.tally.window_end_known(known, name),
            ACTION_TURN => recorder.tally.window_turn_known(known, name),
            ACTION_PAUSE => recorder.tally.window_pause_known(known, name),
            ACTION_RESUME => recorder.tally.window_resume_known(known, name),
            ACTION_CALL => {
                let mut window = known.load(Ordering::Relaxed);
                if window == 0 {
                    window = recorder.tally.function_window(name());
                    known.store(window, Ordering::Relaxed);
                }
                if window != 0 {
                    called(recorder, local, window, call.caller);
                }
            }
            kind => match (Step::of_action(kind), codspeed::Step::of_action(kind)) {
                // SAFETY: the command found the function by its name, which has these arguments.
                (Some(step), _) => unsafe { step.take_patched(recorder, local, call.first, call.second) },
                // SAFETY: as above.
                (None, Some(step)) => unsafe { step.take(recorder, call.third) },
                (None, None) => break,
            },
        }
    }
    local.leave(idle);
}

/// Whether an action opens the window of package-benchmark's measurements.
fn begins_benchmark(action: u32) -> bool {
    let is_its = |head| name(head, action & ((1 << ACTION_KIND_SHIFT) - 1)) == PACKAGE_BENCHMARK.as_bytes();
    action >> ACTION_KIND_SHIFT == ACTION_BEGIN && child::head().is_some_and(is_its)
}

/// The name at an offset.
#[inline]
fn name(head: &'static FileHeader, offset: u32) -> &'static [u8] {
    let names = head.names.get(..head.names_len as usize).unwrap_or(&head.names);
    let rest = names.get(offset as usize..).unwrap_or_default();
    let len = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    rest.get(..len).unwrap_or_default()
}
