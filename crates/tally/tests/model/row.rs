//! What is counted: per row, and per thread as an independent sum.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Allocations in entries that were discarded, and their bytes: they are in none of the counts above but those of what was
    /// freed.
    pub(crate) discarded: u64,
    pub(crate) discarded_bytes: u64,
    /// The entries of its window in which it occurred: in which something was allocated, failed or went to zero.
    pub(crate) entries: BTreeSet<u64>,
}

impl Row {
    /// Adds what was counted in one entry.
    fn add(&mut self, of_entry: &Self) {
        let Self { allocations, bytes, temporary, temporary_bytes, .. } = of_entry;
        let Self { reallocs, reallocs_in_place, reallocs_moved, failed, reallocs_to_zero, .. } = of_entry;
        self.allocations += allocations;
        self.bytes += bytes;
        self.temporary += temporary;
        self.temporary_bytes += temporary_bytes;
        self.reallocs += reallocs;
        self.reallocs_in_place += reallocs_in_place;
        self.reallocs_moved += reallocs_moved;
        self.failed += failed;
        self.reallocs_to_zero += reallocs_to_zero;
    }

    /// What it is without entries that were discarded. `by_entry`: what was counted in each, without frees.
    pub(crate) fn without(&self, discarded: &BTreeSet<u64>, by_entry: &BTreeMap<u64, Self>) -> Self {
        let mut kept = Self {
            freed: self.freed,
            freed_bytes: self.freed_bytes,
            freed_later: self.freed_later,
            freed_later_bytes: self.freed_later_bytes,
            freed_by_realloc: self.freed_by_realloc,
            ..Self::default()
        };
        for (entry, counts) in by_entry {
            if discarded.contains(entry) {
                kept.discarded += counts.allocations;
                kept.discarded_bytes += counts.bytes;
            } else {
                kept.add(counts);
            }
        }
        // Numbered as if the others had never been.
        let number = |entry: &u64| entry - discarded.range(..entry).count() as u64;
        kept.entries = self.entries.difference(discarded).map(number).collect();
        kept
    }

    /// Blocks and bytes: allocated − freed while open.
    pub(crate) fn live(&self) -> (u64, u64) {
        (self.allocations + self.discarded - self.freed, self.bytes + self.discarded_bytes - self.freed_bytes)
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
