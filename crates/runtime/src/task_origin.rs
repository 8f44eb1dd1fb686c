//! Which stack created a task of Swift's, where that is wanted.
//!
//! ```text
//! swift_task_create_common ─ malloc ─▶ block:  task │ … │ first context │ …
//! swift_asyncLet_begin(place, …)       place:  … task │ … │ first context │ …
//! chain of a stack in the task:        context ─▶ context ─▶ the task's first context
//! ```
//! The runtime puts a task and its first context into one block, or into the place that `async let` has in its function's own
//! context. So the stack that asked for the memory in which the last context of a chain lies is the one that created the task.
//! A block is known until it is freed, and such a place until `swift_asyncLet_finish`.
#![expect(unsafe_code, reason = "a table in mapped memory")]

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use heaptally_tally::Spin;

use crate::event::{self, Caller};
use crate::local::{Local, RECORDING, local};
use crate::recorder::{Recorder, recorder};
use crate::sys;

/// So many functions create tasks: those of one runtime, or of two.
const CREATORS: usize = 4;
/// So many tasks at a time; for more than three quarters the origins are not known.
const PLACES: usize = 1 << 17;
/// Memory is told apart by so many bytes.
const STEP: u64 = 16;
/// A task and what stands before its first context are smaller.
const REACH: u64 = 4096;
/// The place of an `async let` (`NumWords_AsyncLet` of swift/ABI/MetadataValues.h).
const ASYNC_LET_BYTES: u64 = 80 * 8;
/// So many creators of creators are told.
const DEPTH: u32 = 8;

/// The stack that created a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its node.
    pub(crate) node: u32,
    /// How many origins that tells of, with itself.
    pub(crate) depth: u32,
}

/// Memory in which there is a task. Zero is a valid value: none.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Place {
    start: u64,
    bytes: u64,
    origin: Origin,
}

/// Tasks by the starts of their memory: the next free place behind the one that a start's hash says.
#[derive(Debug)]
struct Table {
    places: *mut Place,
    used: usize,
}

// SAFETY: whoever holds the lock around it uses the memory alone.
unsafe impl Send for Table {}

/// The tasks that live, and who created them.
#[derive(Debug)]
pub(crate) struct Origins {
    is_on: AtomicBool,
    /// Raised with every change.
    changes: AtomicU32,
    /// The functions in which tasks get their memory: first address, and one past the last; an end of 0: none.
    creators: [(AtomicU64, AtomicU64); CREATORS],
    creator_count: AtomicU32,
    table: Spin<Table>,
}

impl Origins {
    pub(crate) const fn new() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            changes: AtomicU32::new(1),
            creators: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; CREATORS],
            creator_count: AtomicU32::new(0),
            table: Spin::new(Table { places: core::ptr::null_mut(), used: 0 }),
        }
    }

    /// They are wanted.
    pub(crate) fn turn_on(&self) {
        self.is_on.store(true, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn are_wanted(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// What is known of tasks is the same as long as this number is.
    #[inline]
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// A function in which tasks get their memory: its first address, and one past its last.
    pub(crate) fn add_creator(&self, (first, last): (u64, u64)) {
        let at = self.creator_count.fetch_add(1, Ordering::Relaxed) as usize % CREATORS;
        if let Some((start, end)) = self.creators.get(at) {
            end.store(0, Ordering::Release);
            start.store(first, Ordering::Relaxed);
            end.store(last, Ordering::Release);
        }
    }

    /// In a forked child: what its parent had found. Its tasks are the parent's.
    pub(crate) fn inherit(&self, parent: &Self) {
        for (start, end) in &parent.creators {
            match end.load(Ordering::Acquire) {
                0 => {}
                end => self.add_creator((start.load(Ordering::Relaxed), end)),
            }
        }
        self.is_on.store(parent.are_wanted(), Ordering::Release);
    }

    /// Whether code is that of such a function.
    pub(crate) fn is_creator(&self, pc: u64) -> bool {
        self.creators
            .iter()
            .any(|(start, end)| start.load(Ordering::Relaxed) <= pc && pc < end.load(Ordering::Acquire))
    }

    /// There is a task in that memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn add(&self, start: u64, bytes: u64, origin: Origin) {
        let mut table = self.table.lock();
        if table.places.is_null() {
            table.places = sys::map_private(PLACES * size_of::<Place>()).cast();
        }
        if table.remove(start) | table.put(Place { start, bytes, origin }) {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// That memory is given back.
    pub(crate) fn remove(&self, start: u64) {
        if self.table.lock().remove(start) {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Who created the task in whose memory a context lies.
    pub(crate) fn of(&self, context: u64) -> Option<Origin> {
        let table = self.table.lock();
        let first = context / STEP * STEP;
        (0..REACH / STEP)
            .map_while(|steps| first.checked_sub(steps * STEP))
            .find_map(|start| table.get(start))
            .filter(|place| context - place.start < place.bytes)
            .map(|place| place.origin)
    }
}

impl Table {
    fn places(&mut self) -> &mut [Place] {
        if self.places.is_null() {
            return &mut [];
        }
        // SAFETY: the mapping has that many, zeroed ones, and whoever holds the lock uses it alone.
        unsafe { core::slice::from_raw_parts_mut(self.places, PLACES) }
    }

    fn get(&self, start: u64) -> Option<Place> {
        if self.places.is_null() {
            return None;
        }
        // SAFETY: as above.
        let places = unsafe { core::slice::from_raw_parts(self.places, PLACES) };
        let mut at = home(start);
        loop {
            let place = places.get(at)?;
            match place.start {
                0 => return None,
                known if known == start => return Some(*place),
                _ => at = (at + 1) % PLACES,
            }
        }
    }

    /// False: there is no room.
    fn put(&mut self, new: Place) -> bool {
        if self.used >= PLACES / 4 * 3 || new.start == 0 {
            return false;
        }
        let places = self.places();
        let mut at = home(new.start);
        loop {
            match places.get_mut(at) {
                None => return false,
                Some(place) if place.start == 0 => {
                    *place = new;
                    self.used += 1;
                    return true;
                }
                Some(_) => at = (at + 1) % PLACES,
            }
        }
    }

    /// Whether it was there. Those behind it move up, so that there are no gaps before them.
    fn remove(&mut self, start: u64) -> bool {
        if start == 0 || self.get(start).is_none() {
            return false;
        }
        let places = self.places();
        let mut gap = home(start);
        while places.get(gap).is_some_and(|place| place.start != start) {
            gap = (gap + 1) % PLACES;
        }
        let mut at = gap;
        loop {
            at = (at + 1) % PLACES;
            let Some(place) = places.get(at).copied().filter(|place| place.start != 0) else { break };
            // One whose home lies behind the gap stays.
            let distance = |from: usize, to: usize| (to + PLACES - from) % PLACES;
            if distance(home(place.start), at) >= distance(gap, at) {
                if let Some(free) = places.get_mut(gap) {
                    *free = place;
                }
                gap = at;
            }
        }
        if let Some(free) = places.get_mut(gap) {
            *free = Place::default();
        }
        self.used -= 1;
        true
    }
}

fn home(start: u64) -> usize {
    ((start / STEP).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % PLACES
}

impl Origin {
    /// What a task's origin is whose creator's node and own origins are told; `bare` is that node without them.
    pub(crate) fn below(node: u32, bare: u32, depth: u32) -> Self {
        // Tasks that create each other without end would make as many stacks.
        if depth < DEPTH { Self { node, depth: depth + 1 } } else { Self { node: bare, depth: 1 } }
    }
}

/// `swift_asyncLet_begin`: a task comes to be in the place that its caller has for it. `caller` as for an allocation function.
pub fn async_let_begins(caller: Caller, place: u64) {
    where_wanted(|recorder, local| {
        if let Some(origin) = event::creating(recorder, local, caller) {
            recorder.origins.add(place, ASYNC_LET_BYTES, origin);
        }
    });
}

/// `swift_asyncLet_finish`: the task in that place is over.
pub fn async_let_ends(place: u64) {
    where_wanted(|recorder, _| recorder.origins.remove(place));
}

/// A block is about to be given back, in which there may be a task.
#[cold]
#[inline(never)]
pub(crate) fn freeing(block: usize) {
    where_wanted(|recorder, _| recorder.origins.remove(block as u64));
}

/// Runs in the recorder, where there is one and origins are wanted.
fn where_wanted(run: impl FnOnce(&'static Recorder, &mut Local)) {
    let Some(recorder) = recorder().filter(|recorder| recorder.origins.are_wanted()) else { return };
    let local = local();
    let Some(idle) = local.enter(RECORDING) else { return };
    run(recorder, local);
    local.leave(idle);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn origin(node: u32) -> Origin {
        Origin { node, depth: 1 }
    }

    #[test]
    fn a_context_belongs_to_the_memory_that_it_lies_in() {
        let origins = Origins::new();
        assert_eq!(origins.of(0x1_0000), None);
        origins.add(0x1_0000, 320, origin(7));
        origins.add(0x1_0200, 320, origin(8));
        assert_eq!([0x1_0000, 0x1_013f].map(|context| origins.of(context)), [Some(origin(7)); 2]);
        assert_eq!(origins.of(0x1_0210), Some(origin(8)));
        // Between the two, behind them, before them.
        for context in [0x1_0140, 0x1_01f8, 0x1_0340, 0xfff0, 0, u64::MAX] {
            assert_eq!(origins.of(context), None, "{context:#x}");
        }
        let changes = origins.changes();
        origins.remove(0x5_0000);
        assert_eq!(origins.changes(), changes);
        origins.remove(0x1_0200);
        assert_ne!(origins.changes(), changes);
        assert_eq!(origins.of(0x1_0210), None);
    }

    /// A million changes by chance, beside a map of the standard library.
    #[test]
    fn tasks_come_and_go_as_in_a_map() {
        let mut table = Table { places: sys::map_private(PLACES * size_of::<Place>()).cast(), used: 0 };
        let mut model: HashMap<u64, u32> = HashMap::new();
        let mut random = 1_u64;
        for step in 0..1_000_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let start = (1 + (random >> 33) % 150_000) * STEP;
            let was_there = model.remove(&start).is_some();
            assert_eq!(table.remove(start), was_there);
            if random >> 32 & 1 == 0 {
                let is_put = table.put(Place { start, bytes: STEP, origin: origin(step) });
                assert_eq!(is_put, model.len() < PLACES / 4 * 3);
                if is_put {
                    model.insert(start, step);
                }
            }
        }
        assert_eq!(table.used, model.len());
        for start in (1..=150_000).map(|at| at * STEP) {
            let found = table.get(start).map(|place| place.origin.node);
            assert_eq!(found, model.get(&start).copied());
        }
    }

    #[test]
    fn tasks_that_create_each_other_come_to_an_end() {
        let mut origin = Origin::below(1, 1, 0);
        let mut told = 1;
        for at in 2..100 {
            origin = Origin::below(at, 1000 + at, origin.depth);
            told = if origin.node >= 1000 { 1 } else { told + 1 };
            assert_eq!(origin.depth, told);
            assert!(told <= DEPTH);
        }
    }
}
