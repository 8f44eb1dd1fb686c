//! Windows that can be restarted: what of their rows was discarded.

use core::mem::{offset_of, size_of};
use std::collections::HashMap;
use std::vec;
use std::vec::Vec;

use super::source::{AreaSource, Bytes};
use super::{Counts, Error};
use crate::layout::{
    ATTEMPT_LIMIT, ATTEMPTS, ATTEMPTS_BYTES, CHUNK_BYTES, CHUNK_LIMIT, COUNTERS, Counters, DIRECTORIES,
    DIRECTORY_BYTES, ENTERED_ENTRY_BITS, RESTART_LIMIT, ROW_LIMIT, ROWS_PER_CHUNK, SHARD_LIMIT, TwinRows,
};

/// Which attempts at a window's entries were discarded.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    marks: Vec<u64>,
    /// How many were discarded before each word's first.
    before: Vec<u64>,
}

impl Attempts {
    /// Those of a window. `place` is its place plus one, 0 if it cannot be restarted; `attempts`: how many there were.
    pub(super) fn read(area: AreaSource<'_>, place: u32, attempts: u64) -> Result<Self, Error> {
        let Some(place) = place.checked_sub(1).filter(|place| *place < RESTART_LIMIT) else {
            return Ok(Self::default());
        };
        let offset = ATTEMPTS.offset + u64::from(place) * ATTEMPTS_BYTES;
        let in_file = area.source.len.saturating_sub(area.start.saturating_add(offset)).div_ceil(8);
        let words = attempts.saturating_add(1).min(ATTEMPT_LIMIT).div_ceil(64).min(in_file) as usize;
        let mut bytes = vec![0; words * 8];
        area.read(offset, &mut bytes)?;
        let marks: Vec<u64> = bytes.chunks_exact(8).map(|word| Bytes::new(word).u64(0)).collect();
        let mut sum = 0;
        let mut next = |word: &u64| {
            let before = sum;
            sum += u64::from(word.count_ones());
            before
        };
        let before = marks.iter().map(&mut next).collect();
        Ok(Self { marks, before })
    }

    /// Whether an attempt was discarded.
    pub(super) fn is_discarded(&self, attempt: u64) -> bool {
        let word = usize::try_from(attempt / 64).ok().and_then(|at| self.marks.get(at));
        word.is_some_and(|word| word >> (attempt % 64) & 1 == 1)
    }

    /// Which entry an attempt was, by number, if those before it that were discarded are none.
    pub(super) fn entry(&self, attempt: u64) -> u64 {
        let at = usize::try_from(attempt / 64).ok();
        let discarded = match at.and_then(|at| self.marks.get(at).zip(self.before.get(at))) {
            Some((word, before)) => before + u64::from((word & ((1 << (attempt % 64)) - 1)).count_ones()),
            None => self
                .before
                .last()
                .zip(self.marks.last())
                .map_or(0, |(before, word)| before + u64::from(word.count_ones())),
        };
        attempt.saturating_sub(discarded)
    }
}

/// A row with twins.
#[derive(Clone, Copy, Debug)]
pub(super) struct TwinnedRow {
    pub(super) number: u32,
    pub(super) window: u32,
    pub(super) twins: TwinRows,
}

/// What was discarded of each of these rows, by its number: sums over the shards.
pub(super) fn discarded(
    area: AreaSource<'_>,
    rows: &[TwinnedRow],
    attempts: &HashMap<u32, Attempts>,
    (shards, chunks): (u32, u32),
) -> Result<HashMap<u32, Counts>, Error> {
    let mut sums: HashMap<u32, Counts> = HashMap::new();
    if rows.is_empty() {
        return Ok(sums);
    }
    let mut counters = [const { [0; size_of::<Counters>()] }; 3];
    for shard in 0..shards.min(SHARD_LIMIT) {
        for row in rows {
            let Some(attempts) = attempts.get(&row.window) else { continue };
            let numbers = [row.number, row.twins.before, row.twins.discarded];
            for (number, bytes) in numbers.into_iter().zip(&mut counters) {
                read_counters(area, (shard, number), chunks, bytes)?;
            }
            let sum = sums.entry(row.number).or_default();
            add(sum, counters.each_ref().map(|bytes| Bytes::new(bytes)), attempts);
        }
    }
    Ok(sums)
}

/// A shard's counters of a row; zeroes where it has none.
fn read_counters(
    area: AreaSource<'_>,
    (shard, row): (u32, u32),
    chunks: u32,
    bytes: &mut [u8],
) -> Result<(), Error> {
    bytes.fill(0);
    if row >= ROW_LIMIT {
        return Ok(());
    }
    let mut entry = [0; 4];
    let at = u64::from(shard) * DIRECTORY_BYTES + u64::from(row / ROWS_PER_CHUNK) * 4;
    area.read(DIRECTORIES.offset + at, &mut entry)?;
    match u32::from_le_bytes(entry).checked_sub(1) {
        Some(chunk) if chunk < chunks.min(CHUNK_LIMIT) => {
            let at = u64::from(row % ROWS_PER_CHUNK) * size_of::<Counters>() as u64;
            area.read(COUNTERS.offset + u64::from(chunk) * CHUNK_BYTES + at, bytes)
        }
        _ => Ok(()),
    }
}

/// Adds what a shard discarded of a row: see [`TwinRows`].
fn add(sum: &mut Counts, [row, before, discarded]: [Bytes<'_>; 3], attempts: &Attempts) {
    let entered = row.u64(offset_of!(Counters, entered)) & ((1 << ENTERED_ENTRY_BITS) - 1);
    let is_latest_discarded = attempts.is_discarded(entered);
    let unfinished = discarded.u64(offset_of!(Counters, entered));
    let fields = [
        &mut sum.allocations,
        &mut sum.bytes,
        &mut sum.temporary,
        &mut sum.temporary_bytes,
        &mut sum.reallocs,
        &mut sum.reallocs_in_place,
        &mut sum.reallocs_moved,
        &mut sum.failed,
        &mut sum.reallocs_to_zero,
    ];
    for ((number, offset), field) in (1..).zip(TwinRows::FIELDS).zip(fields) {
        let pending = row.u64(offset).saturating_sub(before.u64(offset));
        let value = if unfinished == number {
            before.u64(offset_of!(Counters, freed))
        } else {
            discarded.u64(offset).saturating_add(if is_latest_discarded { pending } else { 0 })
        };
        *field = field.saturating_add(value);
    }
}

/// Takes what was discarded from what was counted.
pub(super) fn take_out(counts: &mut Counts, discarded: &Counts) {
    let pairs = [
        (&mut counts.allocations, discarded.allocations),
        (&mut counts.bytes, discarded.bytes),
        (&mut counts.temporary, discarded.temporary),
        (&mut counts.temporary_bytes, discarded.temporary_bytes),
        (&mut counts.reallocs, discarded.reallocs),
        (&mut counts.reallocs_in_place, discarded.reallocs_in_place),
        (&mut counts.reallocs_moved, discarded.reallocs_moved),
        (&mut counts.failed, discarded.failed),
        (&mut counts.reallocs_to_zero, discarded.reallocs_to_zero),
    ];
    for (count, discarded) in pairs {
        *count = count.saturating_sub(discarded);
    }
    (counts.discarded, counts.discarded_bytes) = (discarded.allocations, discarded.bytes);
}
