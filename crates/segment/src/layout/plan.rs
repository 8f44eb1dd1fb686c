//! What is to be written over functions' entries: asked for by the recorder, answered by the command.
//!
//! ```text
//! recorder  publishes its modules; plan_requests += 1; FileHeader::requests += 1, woken      (and waits)
//! command   finds the functions, decodes them; writes plans, then plans, then plan_answers = the request, woken
//! recorder  compares, writes islands and jumps; says in each plan's state what came of it
//! ```

use core::mem::size_of;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// How many actions one entry can have: edges of several windows.
pub const PLAN_ACTIONS: usize = 6;
/// The most bytes of instructions that are moved: up to four, and one more of the greatest length.
pub const PLAN_ORIGINAL: usize = 24;
/// The most bytes that come to the island.
pub const PLAN_CODE: usize = 104;
/// The most places in them that depend on where they lie.
pub const PLAN_FIXUPS: usize = 16;
/// The most steps from moved instructions to their addresses.
pub const PLAN_STEPS: usize = 10;

/// [`Plan::state`]: written by the command, not looked at yet.
pub const PLAN_WRITTEN: u32 = 1;
/// [`Plan::state`]: a jump stands at the entry.
pub const PLAN_APPLIED: u32 = 2;
/// [`Plan::state`]: the bytes in memory are others than those of the file.
pub const PLAN_DIFFERS: u32 = 3;
/// [`Plan::state`]: there is no room for an island within reach.
pub const PLAN_NO_ROOM: u32 = 4;
/// [`Plan::state`]: the system lets no code be written.
pub const PLAN_PROTECTED: u32 = 5;
/// [`Plan::state`]: other threads ran already, which may be in these instructions.
pub const PLAN_THREADS: u32 = 6;
/// [`Plan::state`]: it makes no sense.
pub const PLAN_DAMAGED: u32 = 7;

/// [`Plan::actions`]: where the action's kind begins; below it is the window's name, an offset in
/// [`FileHeader::names`](super::FileHeader::names).
pub const ACTION_KIND_SHIFT: u32 = 16;
/// An entry opens a process window.
pub const ACTION_BEGIN: u32 = 1;
/// An entry closes it.
pub const ACTION_END: u32 = 2;
/// An entry that no other of the window's functions is above on the stack is one of the window that runs beneath them.
pub const ACTION_CALL: u32 = 3;

/// From an entry on nothing is recorded in a process window, until as many resumes as pauses came or it is closed.
pub const ACTION_PAUSE: u32 = 4;
/// Undoes one pause.
pub const ACTION_RESUME: u32 = 5;

/// An entry opens a process window that is not open, and closes one that is.
pub const ACTION_TURN: u32 = 6;

/// The next loop's benchmark is named: the second argument is Google Benchmark's `BenchmarkName`. Of this and the actions below
/// the window is the benchmark's, and no name of the header.
pub const ACTION_LOOP_NAME: u32 = 7;
/// A benchmark's loop begins: the first argument, here and below, is Google Benchmark's `State`.
pub const ACTION_LOOP_BEGIN: u32 = 8;
/// It ends.
pub const ACTION_LOOP_END: u32 = 9;
/// It is paused.
pub const ACTION_LOOP_PAUSE: u32 = 10;
/// It goes on.
pub const ACTION_LOOP_RESUME: u32 = 11;
/// Its benchmark is given up.
pub const ACTION_LOOP_SKIP: u32 = 12;

/// A benchmark begins that CodSpeed's library brackets. Of this and the two actions below the window's name comes last.
pub const ACTION_BRACKET_BEGIN: u32 = 13;
/// It ends.
pub const ACTION_BRACKET_END: u32 = 14;
/// The one that ended is named: the third argument is a C string.
pub const ACTION_BRACKET_NAME: u32 = 15;

/// [`PlanFixup::kind`]: the distance from the end of the instruction.
pub const FIXUP_DISTANCE: u32 = 1;
/// [`PlanFixup::kind`]: the address's lower 32 bits.
pub const FIXUP_LOW: u32 = 2;
/// [`PlanFixup::kind`]: its upper 32 bits.
pub const FIXUP_HIGH: u32 = 3;

/// Four bytes of the island that depend on places.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanFixup {
    /// The address (SVMA).
    pub target: u64,
    /// `FIXUP_*`.
    pub kind: u32,
    /// Where the four bytes are, from the first moved byte.
    pub at: u16,
    /// Where their instruction ends.
    pub end: u16,
}

/// From which byte of the island on it stands for which address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanStep {
    /// The address (SVMA).
    pub original: u64,
    /// The first byte, from the first moved one.
    pub at: u16,
    /// How many words more than there are on the stack.
    pub pushed: u16,
    /// Reserved.
    pub reserved: u32,
}

/// Code of a function at which a window is defined, inlined copies included.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeRange {
    /// Its first byte (SVMA).
    pub start: u64,
    /// One past its last.
    pub end: u64,
    /// The module: the number of its entry.
    pub module: u32,
    /// The window's name, an offset in [`FileHeader::names`](super::FileHeader::names).
    pub window: u32,
}

/// What is to be done at one function's entry. The command writes all but what is said to be the recorder's.
#[repr(C)]
#[derive(Debug)]
pub struct Plan {
    /// `PLAN_*`; the recorder's from [`PLAN_WRITTEN`] on.
    pub state: AtomicU32,
    /// The module: the number of its entry.
    pub module: u32,
    /// Where the jump comes (SVMA).
    pub at: u64,
    /// How often the function was entered; the recorder's.
    pub hits: AtomicU64,
    /// What an entry does, in this order; 0: nothing.
    pub actions: [u32; PLAN_ACTIONS],
    /// The numbers of the actions' windows once they are known, else 0; the recorder's.
    pub windows: [AtomicU32; PLAN_ACTIONS],
    /// How many bytes of `original` there are.
    pub original_len: u32,
    /// How many bytes of `code` there are.
    pub code_len: u32,
    /// How many fix-ups there are.
    pub fixups_len: u32,
    /// How many steps there are.
    pub steps_len: u32,
    /// What the file has at the entry.
    pub original: [u8; PLAN_ORIGINAL],
    /// What comes to the island, with zeroes where there are fix-ups.
    pub code: [u8; PLAN_CODE],
    /// Its fix-ups.
    pub fixups: [PlanFixup; PLAN_FIXUPS],
    /// Its steps, in order.
    pub steps: [PlanStep; PLAN_STEPS],
}

const _: () = assert!(size_of::<PlanFixup>() == 16 && size_of::<PlanStep>() == 16);
const _: () = assert!(size_of::<Plan>() == 632 && size_of::<CodeRange>() == 24);
