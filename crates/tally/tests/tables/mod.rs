//! The real tables, driven by the model's steps.
#![expect(unsafe_code, reason = "vouches for the mappings")]

mod loop_window;
pub(crate) mod memory;
pub(crate) mod reading;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use heaptally_segment::layout::{ATTEMPTS_BYTES, DIRECTORY_BYTES, EntryPoint, PAGE, Root};
use heaptally_tally::{Allocation, AreaMap, Event, FreeKind, Options, Tally, ThreadTally};

use crate::model::op::{Block, Call, Name, Op, Outcome, Stack, ThreadId};
use memory::{Memory, os};

/// Shards that have a directory; so many threads can live at once.
const SHARDS: u64 = 8;

/// The tables, and the memory that they lie in.
pub(crate) struct Tables {
    map: AreaMap,
    tally: Tally,
    spacing: u32,
    /// Lives begun, in order of the threads' first steps.
    lives: AtomicU32,
    /// Last, so that it goes last.
    memory: Arc<Memory>,
}

// SAFETY: the tables are shared by their own rules; the pointers in `map` are used after the threads were joined.
unsafe impl Sync for Tables {}

impl Tables {
    /// Empty tables. After so many openings of pages there are no more.
    pub(crate) fn new(asked_for: Option<&[Name]>, spacing: u32, openings: u32) -> Self {
        Self::with_restarts((asked_for, 0), spacing, openings)
    }

    /// The same. So many of the names that are asked for, from the first on, are of windows that can be restarted.
    pub(crate) fn with_restarts(
        (asked_for, restartable): (Option<&[Name]>, u32),
        spacing: u32,
        openings: u32,
    ) -> Self {
        let memory = Memory::new(openings);
        memory.enter(0);
        let page = || memory.table(PAGE);
        let map = AreaMap {
            header: page(),
            windows: page(),
            rows: memory.table(4 * PAGE),
            nodes: page(),
            modules: page(),
            strings: page(),
            threads: memory.table(16 * PAGE),
            totals: memory.table(16 * PAGE),
            directories: memory.table(SHARDS * DIRECTORY_BYTES),
            counters: memory.table(64 * PAGE),
            attempts: memory.table(3 * ATTEMPTS_BYTES),
        };
        let joined = |names: &[Name]| -> &'static [u8] {
            let names: Vec<u8> = names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect();
            names.leak()
        };
        let only = asked_for.map(joined);
        let restartable =
            asked_for.and_then(|names| names.get(..restartable as usize)).map_or(&[][..], joined);
        // SAFETY: the mappings are new and zeroed, and live as long as the value that holds the tables.
        let tally =
            unsafe { Tally::new(&map, os(), Options { lifetimes: true, only, restartable, spacing }) };
        Self { map, tally, spacing, lives: AtomicU32::new(0), memory }
    }

    /// The address that stands for a block: neighbours where the tables' parts meet, others far apart.
    fn address(&self, block: Block) -> usize {
        let half = usize::from(block % 2) << 34;
        0x2000_0000_0000 + half + (1 << 20) + (usize::from(block) << self.spacing) - (8 << self.spacing)
    }
}

/// A frame as an unwinder hands it over, with the node that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    address: u64,
    node: u32,
}

/// Where a stack ends, and its frames' addresses, root first. Stacks share callers; stack 1 is a caller's of stack 2.
pub(crate) fn frames(stack: Stack) -> (Root, Vec<u64>) {
    let addresses: &[u64] = match stack {
        0 => &[0x10],
        1 => &[0x10, 0x20],
        2 => &[0x10, 0x20, 0x30],
        3 => &[0x10, 0x20, 0x31],
        _ => &[0x11, 0x20, 0x30],
    };
    (if stack < 4 { Root::Complete } else { Root::CutDepth }, addresses.to_vec())
}

/// One thread of the program, from its first step to its end.
struct Worker {
    tally: ThreadTally,
    life: u32,
    /// The last stack: a new one keeps the nodes of what they have in common, as a remembered walk does.
    last: Option<(Root, Vec<Frame>)>,
}

impl Worker {
    fn event(&mut self, tables: &Tables, call: Call) -> Option<Event> {
        let entered = tables.tally.current(&self.tally);
        if entered.window == 0 {
            return None;
        }
        let (root, addresses) = frames(call.stack);
        let mut frames: Vec<_> =
            addresses.iter().map(|address| Frame { address: *address, node: 0 }).collect();
        let mut kept = 0;
        if let Some((_, last)) = self.last.take().filter(|(last, _)| *last == root) {
            while kept < frames.len()
                && last.get(kept).is_some_and(|last| last.address == frames[kept].address)
            {
                frames[kept] = last[kept];
                kept += 1;
            }
        }
        let leaf = tables.tally.stack(
            &self.tally,
            &mut frames,
            kept,
            root,
            |frame| frame.address,
            |frame| &mut frame.node,
        );
        if leaf.is_some() {
            self.last = Some((root, frames));
        }
        let (entry_point, _) = EntryPoint::ALL[usize::from(call.entry_point)];
        Some(Event { entered, leaf, entry_point, start: 0x10 })
    }

    fn allocate(&mut self, tables: &Tables, call: Call, block: Block, size: u64, kind: Allocation) {
        let address = tables.address(block);
        match self.event(tables, call) {
            Some(event) => tables.tally.allocated(&mut self.tally, event, address, size, kind),
            None => tables.tally.passed(address),
        }
    }

    fn free(&mut self, tables: &Tables, block: Block, kind: FreeKind) {
        let address = tables.address(block);
        let known = tables.tally.take_block(address);
        tables.tally.freed(Some(&mut self.tally), address, known, kind);
    }

    fn fail(&mut self, tables: &Tables, call: Call) {
        if let Some(event) = self.event(tables, call) {
            tables.tally.failed(&mut self.tally, event);
        }
    }

    fn reallocate(&mut self, tables: &Tables, call: Call, old: Option<Block>, outcome: Outcome) {
        match (old, outcome) {
            (None, Outcome::Block { block, size }) => {
                self.allocate(tables, call, block, size, Allocation::New)
            }
            (Some(old), Outcome::Block { block, size }) => {
                self.free(tables, old, FreeKind::Realloc);
                let kind = if block == old { Allocation::ReallocInPlace } else { Allocation::ReallocMoved };
                self.allocate(tables, call, block, size, kind);
            }
            (Some(old), Outcome::Zero) => {
                self.free(tables, old, FreeKind::Realloc);
                if let Some(event) = self.event(tables, call) {
                    tables.tally.reallocated_to_zero(&mut self.tally, event);
                }
            }
            (Some(old), Outcome::Failed) => {
                let address = tables.address(old);
                if let Some(known) = tables.tally.take_block(address) {
                    tables.tally.keep(address, known);
                }
                self.fail(tables, call);
            }
            (None, Outcome::Zero | Outcome::Failed) => self.fail(tables, call),
        }
    }
}

/// Some threads of the program, as one thread of the test does their steps.
#[derive(Default)]
pub(crate) struct Workers {
    workers: BTreeMap<ThreadId, Worker>,
}

impl Workers {
    /// Takes one step.
    pub(crate) fn apply(&mut self, tables: &Tables, op: &Op) {
        let worker = self.workers.entry(op.thread()).or_insert_with(|| Worker {
            tally: tables.tally.begin_thread().expect("there are more shards than threads"),
            life: tables.lives.fetch_add(1, Ordering::Relaxed),
            last: None,
        });
        tables.memory.enter(worker.life);
        let (tally, thread) = (&tables.tally, &mut worker.tally);
        match *op {
            Op::Allocate { call, block, size, .. } => {
                worker.allocate(tables, call, block, size, Allocation::New);
            }
            Op::AllocateFailed { call, .. } => worker.fail(tables, call),
            Op::Free { block: None, .. } => {}
            Op::Free { block: Some(block), .. } => worker.free(tables, block, FreeKind::Free),
            Op::Reallocate { call, old, outcome, .. } => worker.reallocate(tables, call, old, outcome),
            Op::WindowBegin { name, .. } => tally.window_begin(name.as_bytes()),
            Op::WindowEnd { name, .. } => tally.window_end(name.as_bytes()),
            Op::ThreadWindowBegin { name, .. } => tally.thread_window_begin(thread, name.as_bytes()),
            Op::ThreadWindowEnd { name, .. } => tally.thread_window_end(thread, name.as_bytes()),
            Op::Iterations { name, n, .. } => tally.window_iterations(name.as_bytes(), n),
            Op::Pause { .. } => tally.pause(thread),
            Op::Resume { .. } => tally.resume(thread),
            Op::ThreadEnd { thread } => {
                if let Some(worker) = self.workers.remove(&thread) {
                    tally.end_thread(worker.tally);
                }
            }
        }
    }

    /// Ends all threads: what they held back is handed in.
    pub(crate) fn end(self, tables: &Tables) {
        for worker in self.workers.into_values() {
            tables.tally.end_thread(worker.tally);
        }
    }
}
