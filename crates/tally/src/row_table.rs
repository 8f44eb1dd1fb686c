//! Rows: a window's use of a stack.

use core::sync::atomic::{AtomicU32, Ordering};

use heaptally_segment::layout::{EntryPoint, Row};

use crate::index::{Index, spread};
use crate::os::{Os, TableMap};
use crate::spin::Spin;
use crate::stack_table::StackTable;
use crate::table::Table;

/// All rows.
#[derive(Debug)]
pub(crate) struct RowTable {
    rows: Table<Row>,
    index: Index,
    /// Held while a row is made, so that a stack has one in a window: its entries are counted there.
    making: Spin<()>,
}

impl RowTable {
    pub(crate) fn new(map: TableMap, os: Os, used: &'static AtomicU32) -> Self {
        Self { rows: Table::new(map, os, used, 1), index: Index::new(os), making: Spin::new(()) }
    }

    #[inline]
    pub(crate) fn get(&self, row: u32) -> &'static Row {
        self.rows.get(row)
    }

    /// The row of a leaf in a window; `None`: the table is full. `can_restart`: whether the window can be restarted.
    pub(crate) fn find(
        &self,
        stacks: &StackTable,
        leaf: u32,
        window: u32,
        entry_point: EntryPoint,
        can_restart: impl FnOnce() -> bool,
    ) -> Option<u32> {
        if let Some(row) = stacks.row_hint(leaf, entry_point)
            && self.is(row, leaf, window, entry_point)
        {
            return Some(row);
        }
        self.find_slow(stacks, leaf, window, entry_point, can_restart)
    }

    #[cold]
    #[inline(never)]
    fn find_slow(
        &self,
        stacks: &StackTable,
        leaf: u32,
        window: u32,
        entry_point: EntryPoint,
        can_restart: impl FnOnce() -> bool,
    ) -> Option<u32> {
        let hash = hash_of(leaf, window, entry_point as u32);
        let find = || self.index.find(hash, |row, _| self.is(row, leaf, window, entry_point));
        let row = match find() {
            Some(row) => row,
            None => {
                let _making = self.making.lock();
                match find() {
                    Some(row) => row,
                    None => self.make(hash, leaf, window, entry_point, can_restart())?,
                }
            }
        };
        stacks.set_row_hint(leaf, entry_point, row);
        Some(row)
    }

    /// With the lock held.
    fn make(
        &self,
        hash: u64,
        leaf: u32,
        window: u32,
        entry_point: EntryPoint,
        has_twins: bool,
    ) -> Option<u32> {
        let number = self.rows.take()?;
        let twins = match has_twins {
            // One behind the other: nobody else takes rows while the lock is held.
            true => self.rows.take().zip(self.rows.take())?.0,
            false => 0,
        };
        let row = self.rows.get(number);
        row.window.store(window, Ordering::Relaxed);
        row.entry_point.store(entry_point as u32, Ordering::Relaxed);
        row.twins.store(twins, Ordering::Relaxed);
        row.node.store(leaf, Ordering::Release);
        self.index.insert(hash, number, |number| {
            let row = self.rows.get(number);
            let [leaf, window, entry_point] =
                [&row.node, &row.window, &row.entry_point].map(|field| field.load(Ordering::Acquire));
            hash_of(leaf, window, entry_point)
        });
        Some(number)
    }

    #[inline]
    fn is(&self, number: u32, leaf: u32, window: u32, entry_point: EntryPoint) -> bool {
        let row = self.rows.get(number);
        row.node.load(Ordering::Acquire) == leaf
            && row.window.load(Ordering::Relaxed) == window
            && row.entry_point.load(Ordering::Relaxed) == entry_point as u32
    }
}

#[inline]
fn hash_of(leaf: u32, window: u32, entry_point: u32) -> u64 {
    spread(u64::from(leaf) | (u64::from(window) << 32) | (u64::from(entry_point) << 56))
}

/// Notes that a row occurred in an entry of its process window.
///
/// The highest entry seen decides, so that two threads count an entry once and a thread that comes late from an
/// earlier entry takes nothing back.
#[inline]
pub(crate) fn note_entry(row: &Row, entry: u64) {
    if row.last_entry.load(Ordering::Relaxed) != entry {
        note_entry_slow(row, entry);
    }
}

#[cold]
#[inline(never)]
fn note_entry_slow(row: &Row, entry: u64) {
    let before = row.last_entry.fetch_max(entry, Ordering::Relaxed);
    if before < entry {
        row.entries.fetch_add(1, Ordering::Relaxed);
    }
    if before == 0 {
        row.first_entry.store(entry, Ordering::Relaxed);
    } else if before > entry {
        row.first_entry.fetch_min(entry, Ordering::Relaxed);
    }
}
