//! Rows, and what each shard counts for them.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// A window's use of a stack: what is counted. Valid when `node` is not 0.
///
/// Two rows may be alike (two threads made them at the same time): the reader adds them up.
#[repr(C)]
#[derive(Debug)]
pub struct Row {
    /// The stack's leaf node, stored last.
    pub node: AtomicU32,
    /// The window's number, from 1.
    pub window: AtomicU32,
    /// An [`EntryPoint`](super::EntryPoint).
    pub entry_point: AtomicU32,
    /// Of a window that can be restarted, else 0: the first of its [`TwinRows`].
    pub twins: AtomicU32,
    /// In how many entries of its window it occurred; for process windows. A thread window's are in [`Counters`].
    pub entries: AtomicU64,
    /// The first such entry.
    pub first_entry: AtomicU64,
    /// The latest such entry.
    pub last_entry: AtomicU64,
    /// Of a window that can be restarted: how many of `entries` before the latest were discarded.
    pub discarded_entries: AtomicU64,
    /// Likewise: the first entry before the latest that was not; 0: none.
    pub first_kept: AtomicU64,
    /// Likewise: the last of them.
    pub last_kept: AtomicU64,
}

/// Two more rows, without a node, beside one of a window that can be restarted. With their counters a shard tells what was
/// discarded of the row's own:
///
/// ```text
/// row         all that was counted; entered: the attempt in which that was last
/// before      what the row had counted when that attempt began there; freed: see `discarded`
/// discarded   the sum of what was discarded in earlier attempts; entered: n + 1 while its field n is being written
///             (see FIELDS), whose value is in `before`'s freed then
///
/// what was discarded = discarded, and if the attempt in `entered` was: + row − before
/// ```
///
/// So a restart moves nothing, however many stacks are known, and the numbers are right at every instruction.
#[derive(Clone, Copy, Debug)]
pub struct TwinRows {
    /// The row of what was counted before the latest attempt.
    pub before: u32,
    /// The row of what was discarded.
    pub discarded: u32,
}

impl TwinRows {
    /// The counters that are told apart by attempts. What is freed is not: a block that was discarded exists all the same.
    pub const FIELDS: [usize; 9] = [
        offset_of!(Counters, allocations),
        offset_of!(Counters, bytes),
        offset_of!(Counters, temporary),
        offset_of!(Counters, temporary_bytes),
        offset_of!(Counters, reallocs),
        offset_of!(Counters, reallocs_in_place),
        offset_of!(Counters, reallocs_moved),
        offset_of!(Counters, failed),
        offset_of!(Counters, reallocs_to_zero),
    ];

    /// Those that [`Row::twins`] names.
    pub fn from_number(twins: u32) -> Option<Self> {
        (twins != 0).then(|| Self { before: twins, discarded: twins.saturating_add(1) })
    }
}

/// [`Counters::entered`]: how many bits the entry's number has.
pub const ENTERED_ENTRY_BITS: u32 = 48;

/// What one shard counts for one row. All numbers only grow and start at 0.
#[repr(C)]
#[derive(Debug)]
pub struct Counters {
    /// Successful allocations.
    pub allocations: AtomicU64,
    /// Their requested bytes.
    pub bytes: AtomicU64,
    /// Blocks given back while the window was open.
    pub freed: AtomicU64,
    /// Their bytes.
    pub freed_bytes: AtomicU64,
    /// Blocks freed by the allocating thread before its next recorded allocation.
    pub temporary: AtomicU64,
    /// Their bytes.
    pub temporary_bytes: AtomicU64,
    /// The latest entry (of this shard's threads) in which the row occurred, in the low [`ENTERED_ENTRY_BITS`] bits, and
    /// the row's window above them; 0: it has not yet occurred in this shard.
    pub entered: AtomicU64,
    /// Thread windows: in how many entries the row occurred, over the shard's threads.
    pub entries: AtomicU64,
    /// Blocks given back while the window was not open.
    pub freed_later: AtomicU64,
    /// Their bytes.
    pub freed_later_bytes: AtomicU64,
    /// Allocations that were a realloc of a live block.
    pub reallocs: AtomicU64,
    /// Those that stayed at their address.
    pub reallocs_in_place: AtomicU64,
    /// Those that moved.
    pub reallocs_moved: AtomicU64,
    /// Calls that returned no memory.
    pub failed: AtomicU64,
    /// Blocks of this row that were freed by a realloc (they are counted in `freed` or `freed_later` too).
    pub freed_by_realloc: AtomicU64,
    /// Calls of `realloc(p, 0)` with a live p that returned null on this stack: a free of p, and no allocation.
    pub reallocs_to_zero: AtomicU64,
}
