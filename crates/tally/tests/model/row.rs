//! What is counted: per row, and per thread as an independent sum.

use std::collections::BTreeSet;

use super::op::Call;
use super::window::WindowId;

/// What identifies a row: a stack's use in one window, by the function that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    pub(crate) window: WindowId,
    pub(crate) call: Call,
}

/// The counts of a row. All of them only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// Successful allocations, reallocs to a size above 0 among them.
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    /// Blocks of the row that were given back while its window was open, in whatever entry.
    pub(crate) freed: u64,
    pub(crate) freed_bytes: u64,
    /// Blocks of the row that were given back while its window was not open.
    pub(crate) freed_later: u64,
    pub(crate) freed_later_bytes: u64,
    /// Blocks that the allocating thread freed before its next recorded allocation. Among `freed` and `freed_later`.
    pub(crate) temporary: u64,
    pub(crate) temporary_bytes: u64,
    /// Blocks that went by a realloc. Among `freed` and `freed_later`.
    pub(crate) freed_by_realloc: u64,
    /// Allocations that were a realloc of a block.
    pub(crate) reallocs: u64,
    pub(crate) reallocs_in_place: u64,
    pub(crate) reallocs_moved: u64,
    /// Calls that should have returned memory and did not.
    pub(crate) failed: u64,
    /// Calls of `realloc(p, 0)` that returned null.
    pub(crate) reallocs_to_zero: u64,
    /// The entries of its window in which it occurred: in which something was allocated, failed or went to zero.
    pub(crate) entries: BTreeSet<u64>,
}

impl Row {
    /// Blocks and bytes: allocated − freed while open.
    pub(crate) fn live(&self) -> (u64, u64) {
        (self.allocations - self.freed, self.bytes - self.freed_bytes)
    }

    /// Blocks and bytes: allocated − all freed.
    pub(crate) fn still_live(&self) -> (u64, u64) {
        let (blocks, bytes) = self.live();
        (blocks - self.freed_later, bytes - self.freed_later_bytes)
    }
}

/// What one thread did in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    /// Blocks of the window that this thread freed, whoever allocated them, whenever, also by realloc.
    pub(crate) freed: u64,
    pub(crate) freed_bytes: u64,
}
