//! What stands in the segment, and the same of the model, in one form that can be compared.
#![expect(unsafe_code, reason = "reads the tables' memory as the layout says it lies")]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering::Relaxed;

use heaptally_segment::layout::{
    ATTEMPTS_BYTES, CHUNK_BYTES, Counters, DIRECTORY_BYTES, ENTERED_ENTRY_BITS, EntryPoint, FIRST_NODE, Node,
    ROWS_PER_CHUNK, ThreadLife, ThreadTotal, TwinRows, WINDOW_AUTOMATIC, WINDOW_PROCESS, WINDOW_THREAD,
    Window,
};
use heaptally_tally::TableMap;

use super::{Tables, frames};
use crate::model::Model;
use crate::model::generate::STACKS;
use crate::model::op::{Call, Name, Stack};
use crate::model::row::{Row, Total};
use crate::model::window::Kind;

/// What names a window.
pub(crate) type WindowKey = (u32, String);

/// What is compared of a window at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowFacts {
    pub(crate) depth: u64,
    pub(crate) entries: u64,
    pub(crate) discarded_entries: u64,
    pub(crate) iterations: u64,
    pub(crate) iteration_calls: u64,
    pub(crate) crossed_ends: u64,
    pub(crate) stray_ends: u64,
}

/// What is compared of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowFacts {
    /// Without its entries.
    pub(crate) counts: Row,
    /// In how many entries it occurred. Two rows that are alike know only what lies between the larger number and the sum.
    pub(crate) entries: (u64, u64),
    /// Of process windows.
    pub(crate) first_and_last: Option<(u64, u64)>,
}

impl RowFacts {
    /// Adds what an alike row holds.
    fn merge(&mut self, other: Self) {
        add(&mut self.counts, &other.counts);
        self.entries = (self.entries.0.max(other.entries.0), self.entries.1 + other.entries.1);
        let ends = self.first_and_last.zip(other.first_and_last);
        self.first_and_last = ends.map(|(one, two)| (one.0.min(two.0), one.1.max(two.1)));
    }
}

/// A window's bytes, which threads hand in late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) live: i64,
    pub(crate) peak: i64,
    /// How far the peak may be off.
    pub(crate) bound: i64,
}

/// All that was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) windows: BTreeMap<WindowKey, WindowFacts>,
    pub(crate) rows: BTreeMap<(WindowKey, Call), RowFacts>,
    /// By life and window; those that count nothing are left out.
    pub(crate) totals: BTreeMap<(usize, WindowKey), Total>,
    pub(crate) frees_from_before: u64,
    pub(crate) unseen_frees: u64,
    /// Ends of windows, and iterations, for names that no window has.
    pub(crate) stray_calls: u64,
    /// Calls that belong to a window and have no row, by window.
    pub(crate) lost: BTreeMap<WindowKey, u64>,
    pub(crate) lost_windows: u64,
}

fn key(kind: Kind, name: Name) -> WindowKey {
    let kind = match kind {
        Kind::Automatic => WINDOW_AUTOMATIC,
        Kind::Process => WINDOW_PROCESS,
        Kind::Thread => WINDOW_THREAD,
    };
    (kind, name.to_owned())
}

impl Reading {
    /// What names a window of the model.
    pub(crate) fn key_of(window: &crate::model::window::Window) -> WindowKey {
        key(window.kind, window.name)
    }

    /// What the model counted.
    pub(crate) fn of_model(model: &Model) -> Self {
        let key = |window: usize| key(model.windows[window].kind, model.windows[window].name);
        let windows = model.windows.iter().enumerate().map(|(id, window)| {
            let facts = WindowFacts {
                depth: model.depth(id),
                entries: window.entries - window.discarded.len() as u64,
                discarded_entries: window.discarded.len() as u64,
                iterations: window.iterations,
                iteration_calls: window.iteration_calls,
                crossed_ends: window.crossed_ends,
                stray_ends: window.stray_ends,
            };
            (key(id), facts)
        });
        let kept = model.kept_rows();
        let rows = kept.iter().map(|(row_key, row)| {
            let ends = row.entries.first().copied().zip(row.entries.last().copied());
            let facts = RowFacts {
                counts: Row { entries: Default::default(), ..row.clone() },
                entries: (row.entries.len() as u64, row.entries.len() as u64),
                first_and_last: (model.windows[row_key.window].kind != Kind::Thread)
                    .then(|| ends.unwrap_or_default()),
            };
            ((key(row_key.window), row_key.call), facts)
        });
        let totals = model.totals.iter().map(|((life, window), total)| ((*life, key(*window)), *total));
        Self {
            windows: windows.collect(),
            rows: rows.collect(),
            totals: totals.collect(),
            frees_from_before: model.frees_from_before,
            unseen_frees: model.unseen_frees,
            stray_calls: model.stray_ends + model.stray_iterations,
            lost: BTreeMap::new(),
            lost_windows: 0,
        }
    }

    /// Calls that belong to a window, with those that were lost.
    pub(crate) fn calls(&self, window: &WindowKey) -> u64 {
        let rows = self.rows.iter().filter(|((of, _), _)| of == window).map(|(_, row)| &row.counts);
        let counted: u64 = rows.map(|row| row.allocations + row.failed + row.reallocs_to_zero).sum();
        counted + self.lost.get(window).copied().unwrap_or(0)
    }
}

impl Tables {
    /// What stands in the segment.
    pub(crate) fn read(&self) -> Reading {
        let header = self.tally.header();
        let mut reading = Reading {
            frees_from_before: header.frees_from_before.load(Relaxed),
            unseen_frees: header.unseen_frees.load(Relaxed),
            stray_calls: header.stray_ends.load(Relaxed),
            lost_windows: header.lost_windows.load(Relaxed),
            ..Reading::default()
        };
        for (number, window) in self.windows() {
            let facts = WindowFacts {
                depth: window.depth.load(Relaxed).into(),
                entries: window.entries.load(Relaxed) - window.discarded_entries.load(Relaxed),
                discarded_entries: window.discarded_entries.load(Relaxed),
                iterations: window.iterations.load(Relaxed),
                iteration_calls: u64::from(window.iteration_calls.load(Relaxed)),
                crossed_ends: window.crossed_ends.load(Relaxed),
                stray_ends: window.stray_ends.load(Relaxed),
            };
            assert!(reading.windows.insert(self.window_key(number), facts).is_none(), "two windows are one");
            match window.lost_full.load(Relaxed) {
                0 => {}
                lost => drop(reading.lost.insert(self.window_key(number), lost)),
            }
        }
        self.read_counters(0, |counters| reading.frees_from_before += counters.freed.load(Relaxed));
        for number in 1..header.rows.load(Relaxed) {
            self.read_row(number, &mut reading);
        }
        for number in 1..header.threads.load(Relaxed) {
            self.read_life(number, &mut reading);
        }
        reading
    }

    /// The bytes of each window.
    pub(crate) fn bytes(&self) -> BTreeMap<WindowKey, Bytes> {
        let bytes = |window: &Window| {
            let others = window.recorders.load(Relaxed).saturating_sub(1);
            Bytes {
                live: window.live_bytes.load(Relaxed),
                peak: window.peak_bytes.load(Relaxed),
                bound: i64::from(others) * heaptally_segment::layout::PEAK_BATCH_BYTES,
            }
        };
        self.windows().map(|(number, window)| (self.window_key(number), bytes(window))).collect()
    }

    fn windows(&self) -> impl Iterator<Item = (u32, &Window)> {
        let used = self.tally.header().windows.load(Relaxed);
        (1..used).map(|number| (number, entry::<Window>(self.map.windows, number)))
    }

    fn window_key(&self, number: u32) -> WindowKey {
        let window: &Window = entry(self.map.windows, number);
        let offset = window.name.load(Relaxed);
        let bytes = offset..offset + window.name_len.load(Relaxed);
        let name = bytes.map(|at| *entry::<u8>(self.map.strings, at)).collect();
        (window.kind.load(Relaxed), String::from_utf8(name).expect("names are text"))
    }

    /// Adds a row to those that are like it.
    fn read_row(&self, number: u32, reading: &mut Reading) {
        let row: &heaptally_segment::layout::Row = entry(self.map.rows, number);
        // A twin of another.
        if row.node.load(Relaxed) == 0 {
            return;
        }
        let window = self.window_key(row.window.load(Relaxed));
        let entry_point = row.entry_point.load(Relaxed);
        let entry_point = EntryPoint::ALL.iter().position(|(known, _)| *known as u32 == entry_point);
        let call = Call {
            stack: self.stack(row.node.load(Relaxed)),
            entry_point: entry_point.expect("entry points are known") as u8,
        };
        let mut sum = Row::default();
        let mut entries = row.entries.load(Relaxed);
        self.read_counters(number, |counters| {
            add(&mut sum, &counts(counters));
            entries += counters.entries.load(Relaxed);
        });
        // A row may have been made for a call whose counters then had no place.
        if sum == Row::default() {
            return;
        }
        let mut ends = (row.first_entry.load(Relaxed), row.last_entry.load(Relaxed));
        if let Some(twins) = TwinRows::from_number(row.twins.load(Relaxed)) {
            (entries, ends) = self.settle(number, twins, &mut sum);
        }
        let first_and_last = (window.0 != WINDOW_THREAD).then_some(ends);
        let facts = RowFacts { counts: sum, entries: (entries, entries), first_and_last };
        match reading.rows.entry((window, call)) {
            Entry::Vacant(vacant) => drop(vacant.insert(facts)),
            Entry::Occupied(mut alike) => alike.get_mut().merge(facts),
        }
    }

    /// Takes what was discarded out of a row's sum; in how many entries it occurred, the first and the last.
    fn settle(&self, number: u32, twins: TwinRows, sum: &mut Row) -> (u64, (u64, u64)) {
        let row: &heaptally_segment::layout::Row = entry(self.map.rows, number);
        let window: &Window = entry(self.map.windows, row.window.load(Relaxed));
        let place = u64::from(window.attempts.load(Relaxed) - 1) * ATTEMPTS_BYTES;
        // Each attempt that was discarded, in order.
        let discarded: Vec<u64> = (0..=window.entries.load(Relaxed))
            .filter(|attempt| {
                let word = entry::<u64>(self.map.attempts, ((place + attempt / 64 * 8) / 8) as u32);
                word >> (attempt % 64) & 1 == 1
            })
            .collect();
        assert_eq!(discarded.len() as u64, window.discarded_entries.load(Relaxed));
        for shard in 0..self.tally.header().shards.load(Relaxed) {
            let of = |row: u32| {
                self.counters(shard, row).map_or((Row::default(), 0), |counters| {
                    (counts(counters), counters.entered.load(Relaxed) & ((1 << ENTERED_ENTRY_BITS) - 1))
                })
            };
            let (counted, latest) = of(number);
            let ((before, _), (mut gone, unfinished)) = (of(twins.before), of(twins.discarded));
            assert_eq!(unfinished, 0, "nothing is half-written");
            if discarded.contains(&latest) {
                add(&mut gone, &counted);
                subtract(&mut gone, &before);
            }
            subtract(sum, &gone);
            sum.discarded += gone.allocations;
            sum.discarded_bytes += gone.bytes;
        }
        let number_of =
            |attempt: u64| attempt - discarded.iter().filter(|gone| **gone < attempt).count() as u64;
        let mut kept: Vec<u64> = vec![row.first_kept.load(Relaxed), row.last_kept.load(Relaxed)];
        let last = row.last_entry.load(Relaxed);
        kept.extend(Some(last).filter(|last| !discarded.contains(last)));
        kept.retain(|attempt| *attempt != 0);
        let gone = row.discarded_entries.load(Relaxed) + u64::from(discarded.contains(&last));
        let entries = row.entries.load(Relaxed) - gone;
        let ends = kept
            .first()
            .zip(kept.last())
            .map_or((0, 0), |(first, last)| (number_of(*first), number_of(*last)));
        (entries, ends)
    }

    fn counters(&self, shard: u32, row: u32) -> Option<&Counters> {
        let directory = shard * (DIRECTORY_BYTES as u32 / 4);
        let chunk = entry::<u32>(self.map.directories, directory + row / ROWS_PER_CHUNK).checked_sub(1)?;
        assert!(u64::from(chunk) * CHUNK_BYTES < self.map.counters.bytes);
        Some(entry(self.map.counters, chunk * ROWS_PER_CHUNK + row % ROWS_PER_CHUNK))
    }

    fn read_counters(&self, row: u32, mut with: impl FnMut(&Counters)) {
        for shard in 0..self.tally.header().shards.load(Relaxed) {
            if let Some(counters) = self.counters(shard, row) {
                with(counters);
            }
        }
    }

    /// The stack that hangs at a leaf.
    fn stack(&self, leaf: u32) -> Stack {
        let mut addresses = Vec::new();
        let mut number = leaf;
        while number >= FIRST_NODE {
            let node: &Node = entry(self.map.nodes, number);
            addresses.push(node.address.load(Relaxed));
            number = node.parent.load(Relaxed);
        }
        addresses.reverse();
        let is = |stack: &Stack| {
            let (root, expected) = frames(*stack);
            root as u32 == number && expected == addresses
        };
        (0..STACKS).find(is).expect("the stack is one of those that allocate")
    }

    fn read_life(&self, number: u32, reading: &mut Reading) {
        let life: &ThreadLife = entry(self.map.threads, number);
        let mut next = life.totals.load(Relaxed);
        while next != 0 {
            let total: &ThreadTotal = entry(self.map.totals, next);
            let key = (life.tid.load(Relaxed) as usize, self.window_key(total.window.load(Relaxed)));
            let facts = Total {
                allocations: total.allocations.load(Relaxed),
                bytes: total.bytes.load(Relaxed),
                freed: total.freed.load(Relaxed),
                freed_bytes: total.freed_bytes.load(Relaxed),
            };
            assert!(reading.totals.insert(key, facts).is_none(), "a life has one total per window");
            next = total.next.load(Relaxed);
        }
    }
}

fn add(one: &mut Row, two: &Row) {
    one.allocations += two.allocations;
    one.bytes += two.bytes;
    one.freed += two.freed;
    one.freed_bytes += two.freed_bytes;
    one.freed_later += two.freed_later;
    one.freed_later_bytes += two.freed_later_bytes;
    one.temporary += two.temporary;
    one.temporary_bytes += two.temporary_bytes;
    one.freed_by_realloc += two.freed_by_realloc;
    one.reallocs += two.reallocs;
    one.reallocs_in_place += two.reallocs_in_place;
    one.reallocs_moved += two.reallocs_moved;
    one.failed += two.failed;
    one.reallocs_to_zero += two.reallocs_to_zero;
    one.discarded += two.discarded;
    one.discarded_bytes += two.discarded_bytes;
}

/// Takes away what attempts are told apart by.
fn subtract(one: &mut Row, two: &Row) {
    one.allocations -= two.allocations;
    one.bytes -= two.bytes;
    one.temporary -= two.temporary;
    one.temporary_bytes -= two.temporary_bytes;
    one.reallocs -= two.reallocs;
    one.reallocs_in_place -= two.reallocs_in_place;
    one.reallocs_moved -= two.reallocs_moved;
    one.failed -= two.failed;
    one.reallocs_to_zero -= two.reallocs_to_zero;
}

fn counts(counters: &Counters) -> Row {
    Row {
        allocations: counters.allocations.load(Relaxed),
        bytes: counters.bytes.load(Relaxed),
        freed: counters.freed.load(Relaxed),
        freed_bytes: counters.freed_bytes.load(Relaxed),
        freed_later: counters.freed_later.load(Relaxed),
        freed_later_bytes: counters.freed_later_bytes.load(Relaxed),
        temporary: counters.temporary.load(Relaxed),
        temporary_bytes: counters.temporary_bytes.load(Relaxed),
        freed_by_realloc: counters.freed_by_realloc.load(Relaxed),
        reallocs: counters.reallocs.load(Relaxed),
        reallocs_in_place: counters.reallocs_in_place.load(Relaxed),
        reallocs_moved: counters.reallocs_moved.load(Relaxed),
        failed: counters.failed.load(Relaxed),
        reallocs_to_zero: counters.reallocs_to_zero.load(Relaxed),
        discarded: 0,
        discarded_bytes: 0,
        entries: Default::default(),
    }
}

/// An entry of a table.
fn entry<'a, T>(table: TableMap, number: u32) -> &'a T {
    let offset = number as usize * size_of::<T>();
    assert!(offset + size_of::<T>() <= table.bytes as usize, "entry {number} lies outside of its table");
    // SAFETY: the offset lies inside the table, which the memory keeps; every entry is made of numbers.
    unsafe { &*table.base.add(offset).cast::<T>() }
}
