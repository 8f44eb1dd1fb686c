//! Random programs: sequences of [`Op`]s that a real program under a real allocator could do.
//!
//! What is drawn are drafts ("free the third of the live blocks"), so that a failing case shrinks well; [`program`]
//! turns them into steps with an allocator's memory of what is live. It hands the block that was freed last out first,
//! as allocators do, so that one address goes from thread to thread and from window to window.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::op::{Block, Call, Name, Op, Outcome, ThreadId};

/// Threads that a program has.
pub(crate) const THREADS: u8 = 4;
/// Call stacks that it allocates on.
pub(crate) const STACKS: u8 = 5;
/// The functions that it calls.
pub(crate) const ENTRY_POINTS: u8 = 3;
/// Addresses that its allocator hands out.
pub(crate) const BLOCKS: Block = 16;
/// Names of its windows. The first is the automatic window's too, which is another window all the same.
pub(crate) const NAMES: [Name; 3] = ["process", "parse", "render"];

/// Which windows exist, and what the program does.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) asked_for: Option<Vec<Name>>,
    pub(crate) ops: Vec<Op>,
}

/// How often a property is tried: 256 times, or as `PROPTEST_CASES` says. A failure is fixed and gets a test of its own;
/// no seed is kept.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Random cases of up to `steps` steps.
pub(crate) fn case(steps: usize) -> impl Strategy<Value = Case> {
    let asked_for = prop_oneof![6 => Just(None), 1 => Just(Some(vec!["parse"])), 1 => Just(Some(vec!["process", "render"]))];
    (asked_for, program(steps)).prop_map(|(asked_for, ops)| Case { asked_for, ops })
}

/// Random cases in which windows of the process can be restarted: how many of the names, from the first on.
pub(crate) fn case_with_restarts(steps: usize) -> impl Strategy<Value = (Case, usize)> {
    (program(steps), 0..=NAMES.len())
        .prop_map(|(ops, restartable)| (Case { asked_for: Some(NAMES.to_vec()), ops }, restartable))
}

/// One program for each thread. What they do does not depend on how their steps fall between each other: each has its
/// own blocks and its own thread window, and the windows of the process stay as they are.
pub(crate) fn independent_programs(steps: usize) -> impl Strategy<Value = Vec<Vec<Op>>> {
    vec(program(steps), usize::from(THREADS)).prop_map(|programs| {
        let threads = (0..THREADS).zip(programs);
        threads.map(|(thread, ops)| ops.into_iter().filter_map(|op| apart(op, thread)).collect()).collect()
    })
}

fn apart(op: Op, thread: ThreadId) -> Option<Op> {
    let own = |block: Block| block + Block::from(thread) * 2 * BLOCKS;
    let name = ["first", "second", "third", "fourth"][usize::from(thread)];
    Some(match op.by(thread) {
        Op::Allocate { thread, call, block, size } => Op::Allocate { thread, call, block: own(block), size },
        Op::Free { thread, block } => Op::Free { thread, block: block.map(own) },
        Op::Reallocate { thread, call, old, outcome } => {
            let outcome = match outcome {
                Outcome::Block { block, size } => Outcome::Block { block: own(block), size },
                other => other,
            };
            Op::Reallocate { thread, call, old: old.map(own), outcome }
        }
        Op::ThreadWindowBegin { thread, .. } => Op::ThreadWindowBegin { thread, name },
        Op::ThreadWindowEnd { thread, .. } => Op::ThreadWindowEnd { thread, name },
        Op::Iterations { thread, n, .. } => Op::Iterations { thread, name, n },
        Op::WindowBegin { .. } | Op::WindowEnd { .. } | Op::ThreadEnd { .. } => return None,
        op @ (Op::AllocateFailed { .. } | Op::Pause { .. } | Op::Resume { .. }) => op,
    })
}

/// Random programs of up to `steps` steps.
pub(crate) fn program(steps: usize) -> impl Strategy<Value = Vec<Op>> {
    vec((0..THREADS, draft()), 0..=steps).prop_map(|drafts| {
        let mut heap = Heap::new();
        drafts.into_iter().filter_map(|(thread, draft)| heap.step(thread, draft)).collect()
    })
}

/// What a step is to be, without knowing which blocks there are.
#[derive(Clone, Copy, Debug)]
enum Draft {
    Allocate {
        call: Call,
        place: Place,
        size: u64,
    },
    AllocateFailed {
        call: Call,
    },
    Free {
        which: Which,
    },
    FreeNull,
    FreeUnknown {
        block: Block,
    },
    /// The program gives a block back behind the recorder's back.
    Forget {
        which: Which,
    },
    Move {
        call: Call,
        which: Which,
        place: Place,
        size: u64,
    },
    InPlace {
        call: Call,
        which: Which,
        size: u64,
    },
    ReallocFailed {
        call: Call,
        which: Which,
    },
    ReallocZero {
        call: Call,
        which: Which,
    },
    ReallocNull {
        call: Call,
        place: Place,
        size: u64,
    },
    ReallocUnknown {
        call: Call,
        block: Block,
        place: Place,
        size: u64,
    },
    WindowBegin {
        name: Name,
    },
    WindowEnd {
        name: Name,
    },
    ThreadWindowBegin {
        name: Name,
    },
    ThreadWindowEnd {
        name: Name,
    },
    Iterations {
        name: Name,
        n: u64,
    },
    Pause,
    Resume,
    ThreadEnd,
}

/// Where the allocator finds room.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The block that was freed last.
    Last,
    Any(Index),
}

/// Which live block is meant.
#[derive(Clone, Copy, Debug)]
enum Which {
    /// The latest that this thread allocated.
    OwnLatest,
    /// The latest that anyone allocated.
    Latest,
    Any(Index),
}

fn draft() -> impl Strategy<Value = Draft> {
    let call = || (0..STACKS, 0..ENTRY_POINTS).prop_map(|(stack, entry_point)| Call { stack, entry_point });
    let name = || select(&NAMES[..]);
    let size = || prop_oneof![1 => Just(0), 8 => 1..5000u64, 1 => 60_000..300_000u64];
    let place = || prop_oneof![2 => Just(Place::Last), 1 => any::<Index>().prop_map(Place::Any)];
    let which = || {
        prop_oneof![
            3 => Just(Which::OwnLatest),
            1 => Just(Which::Latest),
            3 => any::<Index>().prop_map(Which::Any),
        ]
    };
    let unknown = || BLOCKS..BLOCKS + 4;
    prop_oneof![
        24 => (call(), place(), size()).prop_map(|(call, place, size)| Draft::Allocate { call, place, size }),
        2 => call().prop_map(|call| Draft::AllocateFailed { call }),
        18 => which().prop_map(|which| Draft::Free { which }),
        1 => Just(Draft::FreeNull),
        2 => unknown().prop_map(|block| Draft::FreeUnknown { block }),
        1 => which().prop_map(|which| Draft::Forget { which }),
        4 => (call(), which(), place(), size())
            .prop_map(|(call, which, place, size)| Draft::Move { call, which, place, size }),
        3 => (call(), which(), size()).prop_map(|(call, which, size)| Draft::InPlace { call, which, size }),
        1 => (call(), which()).prop_map(|(call, which)| Draft::ReallocFailed { call, which }),
        2 => (call(), which()).prop_map(|(call, which)| Draft::ReallocZero { call, which }),
        1 => (call(), place(), size()).prop_map(|(call, place, size)| Draft::ReallocNull { call, place, size }),
        1 => (call(), unknown(), place(), size())
            .prop_map(|(call, block, place, size)| Draft::ReallocUnknown { call, block, place, size }),
        5 => name().prop_map(|name| Draft::WindowBegin { name }),
        5 => name().prop_map(|name| Draft::WindowEnd { name }),
        4 => name().prop_map(|name| Draft::ThreadWindowBegin { name }),
        4 => name().prop_map(|name| Draft::ThreadWindowEnd { name }),
        2 => (name(), 0..1000u64).prop_map(|(name, n)| Draft::Iterations { name, n }),
        2 => Just(Draft::Pause),
        4 => Just(Draft::Resume),
        2 => Just(Draft::ThreadEnd),
    ]
}

/// The program's allocator: which addresses are free, which are live.
struct Heap {
    /// The last is the one that was freed last.
    free: Vec<Block>,
    /// In order of their allocation, with the thread that allocated.
    live: Vec<(ThreadId, Block)>,
}

impl Heap {
    fn new() -> Self {
        Self { free: (0..BLOCKS).rev().collect(), live: Vec::new() }
    }

    /// The step that a draft asks for; `None` if there is no such block, or no room.
    fn step(&mut self, thread: ThreadId, draft: Draft) -> Option<Op> {
        Some(match draft {
            Draft::Allocate { call, place, size } => {
                Op::Allocate { thread, call, block: self.take(thread, place)?, size }
            }
            Draft::AllocateFailed { call } => Op::AllocateFailed { thread, call },
            Draft::Free { which } => Op::Free { thread, block: Some(self.give_back(thread, which)?) },
            Draft::FreeNull => Op::Free { thread, block: None },
            Draft::FreeUnknown { block } => Op::Free { thread, block: Some(block) },
            Draft::Forget { which } => {
                self.give_back(thread, which)?;
                return None;
            }
            Draft::Move { call, which, place, size } => {
                // The new block is found while the old one is still in use.
                let at = self.at(thread, which)?;
                let old = self.live[at].1;
                let block = self.take(thread, place)?;
                self.live.remove(at);
                self.free.push(old);
                Op::Reallocate { thread, call, old: Some(old), outcome: Outcome::Block { block, size } }
            }
            Draft::InPlace { call, which, size } => {
                let at = self.at(thread, which)?;
                let (_, block) = self.live.remove(at);
                self.live.push((thread, block));
                Op::Reallocate { thread, call, old: Some(block), outcome: Outcome::Block { block, size } }
            }
            Draft::ReallocFailed { call, which } => {
                let old = Some(self.live[self.at(thread, which)?].1);
                Op::Reallocate { thread, call, old, outcome: Outcome::Failed }
            }
            Draft::ReallocZero { call, which } => {
                let old = Some(self.give_back(thread, which)?);
                Op::Reallocate { thread, call, old, outcome: Outcome::Zero }
            }
            Draft::ReallocNull { call, place, size } => {
                let block = self.take(thread, place)?;
                Op::Reallocate { thread, call, old: None, outcome: Outcome::Block { block, size } }
            }
            Draft::ReallocUnknown { call, block: old, place, size } => {
                let block = self.take(thread, place)?;
                Op::Reallocate { thread, call, old: Some(old), outcome: Outcome::Block { block, size } }
            }
            Draft::WindowBegin { name } => Op::WindowBegin { thread, name },
            Draft::WindowEnd { name } => Op::WindowEnd { thread, name },
            Draft::ThreadWindowBegin { name } => Op::ThreadWindowBegin { thread, name },
            Draft::ThreadWindowEnd { name } => Op::ThreadWindowEnd { thread, name },
            Draft::Iterations { name, n } => Op::Iterations { thread, name, n },
            Draft::Pause => Op::Pause { thread },
            Draft::Resume => Op::Resume { thread },
            Draft::ThreadEnd => Op::ThreadEnd { thread },
        })
    }

    fn take(&mut self, thread: ThreadId, place: Place) -> Option<Block> {
        let last = self.free.len().checked_sub(1)?;
        let block = self.free.remove(match place {
            Place::Last => last,
            Place::Any(index) => index.index(last + 1),
        });
        self.live.push((thread, block));
        Some(block)
    }

    fn at(&self, thread: ThreadId, which: Which) -> Option<usize> {
        match which {
            Which::OwnLatest => self.live.iter().rposition(|(owner, _)| *owner == thread),
            Which::Latest => self.live.len().checked_sub(1),
            Which::Any(_) if self.live.is_empty() => None,
            Which::Any(index) => Some(index.index(self.live.len())),
        }
    }

    fn give_back(&mut self, thread: ThreadId, which: Which) -> Option<Block> {
        let (_, block) = self.live.remove(self.at(thread, which)?);
        self.free.push(block);
        Some(block)
    }
}
