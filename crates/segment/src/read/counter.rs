//! Counters, summed over the shards.

use core::mem::{offset_of, size_of};
use std::collections::HashSet;
use std::vec;
use std::vec::Vec;

use super::source::{AreaSource, Bytes};
use super::{Counts, Error};
use crate::layout::{
    CHUNK_BYTES, CHUNK_LIMIT, COUNTERS, Counters, DIRECTORIES, DIRECTORY_BYTES, ENTERED_ENTRY_BITS,
    ROW_LIMIT, ROWS_PER_CHUNK, SHARD_LIMIT,
};

/// A row's sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) counts: Counts,
    /// Thread windows: in how many entries it occurred.
    pub(super) entries: u64,
    /// Thread windows: the latest of them.
    pub(super) last_entry: u64,
}

/// All rows' sums, and how many chunks made no sense.
#[derive(Debug)]
pub(super) struct Sums {
    pub(super) rows: Vec<Sum>,
    pub(super) damaged: u64,
}

/// Sums up rows 0 to `rows` - 1.
pub(super) fn read(area: AreaSource<'_>, rows: u32, shards: u32, chunks: u32) -> Result<Sums, Error> {
    let rows = rows.min(ROW_LIMIT);
    let mut sums = Sums { rows: vec![Sum::default(); rows as usize], damaged: 0 };
    let mut directory = vec![0; rows.div_ceil(ROWS_PER_CHUNK) as usize * 4];
    let mut page = vec![0; CHUNK_BYTES as usize];
    let mut seen = HashSet::new();
    for shard in 0..shards.min(SHARD_LIMIT) {
        area.read(DIRECTORIES.offset + u64::from(shard) * DIRECTORY_BYTES, &mut directory)?;
        let groups = sums.rows.chunks_mut(ROWS_PER_CHUNK as usize);
        for (entry, group) in directory.chunks_exact(4).zip(groups) {
            let Some(chunk) = Bytes::new(entry).u32(0).checked_sub(1) else { continue };
            // A chunk belongs to one directory: a second one would count it twice.
            if chunk >= chunks.min(CHUNK_LIMIT) || !seen.insert(chunk) {
                sums.damaged += 1;
                continue;
            }
            area.read(COUNTERS.offset + u64::from(chunk) * CHUNK_BYTES, &mut page)?;
            for (counters, sum) in page.chunks_exact(size_of::<Counters>()).zip(group) {
                add(sum, Bytes::new(counters));
            }
        }
    }
    Ok(sums)
}

/// Adds a second of two alike things.
pub(super) fn merge(sum: &mut Counts, other: &Counts) {
    let pairs = [
        (&mut sum.allocations, other.allocations),
        (&mut sum.bytes, other.bytes),
        (&mut sum.freed, other.freed),
        (&mut sum.freed_bytes, other.freed_bytes),
        (&mut sum.temporary, other.temporary),
        (&mut sum.temporary_bytes, other.temporary_bytes),
        (&mut sum.freed_later, other.freed_later),
        (&mut sum.freed_later_bytes, other.freed_later_bytes),
        (&mut sum.reallocs, other.reallocs),
        (&mut sum.reallocs_in_place, other.reallocs_in_place),
        (&mut sum.reallocs_moved, other.reallocs_moved),
        (&mut sum.failed, other.failed),
        (&mut sum.freed_by_realloc, other.freed_by_realloc),
        (&mut sum.reallocs_to_zero, other.reallocs_to_zero),
        (&mut sum.discarded, other.discarded),
        (&mut sum.discarded_bytes, other.discarded_bytes),
    ];
    for (total, amount) in pairs {
        *total = total.saturating_add(amount);
    }
}

fn add(sum: &mut Sum, counters: Bytes<'_>) {
    let counts = Counts {
        allocations: counters.u64(offset_of!(Counters, allocations)),
        bytes: counters.u64(offset_of!(Counters, bytes)),
        freed: counters.u64(offset_of!(Counters, freed)),
        freed_bytes: counters.u64(offset_of!(Counters, freed_bytes)),
        temporary: counters.u64(offset_of!(Counters, temporary)),
        temporary_bytes: counters.u64(offset_of!(Counters, temporary_bytes)),
        freed_later: counters.u64(offset_of!(Counters, freed_later)),
        freed_later_bytes: counters.u64(offset_of!(Counters, freed_later_bytes)),
        reallocs: counters.u64(offset_of!(Counters, reallocs)),
        reallocs_in_place: counters.u64(offset_of!(Counters, reallocs_in_place)),
        reallocs_moved: counters.u64(offset_of!(Counters, reallocs_moved)),
        failed: counters.u64(offset_of!(Counters, failed)),
        freed_by_realloc: counters.u64(offset_of!(Counters, freed_by_realloc)),
        reallocs_to_zero: counters.u64(offset_of!(Counters, reallocs_to_zero)),
        ..Counts::default()
    };
    merge(&mut sum.counts, &counts);
    sum.entries = sum.entries.saturating_add(counters.u64(offset_of!(Counters, entries)));
    let entry = counters.u64(offset_of!(Counters, entered)) & ((1 << ENTERED_ENTRY_BITS) - 1);
    sum.last_entry = sum.last_entry.max(entry);
}
