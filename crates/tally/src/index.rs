//! A private hash index from keys to entry numbers.
//!
//! Look-ups run at any time, without waiting. Inserts come one at a time: whoever makes an entry holds the lock of its
//! table, and has looked a second time under it.
#![expect(unsafe_code, reason = "slots in mapped memory")]

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::{BLOCK_ROW_BITS, NODE_LIMIT};

use crate::os::Os;

/// A slot, from its low bits up: the entry's number, a row, and some bits of the hash.
const NUMBER_BITS: u32 = NODE_LIMIT.trailing_zeros();
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;
const ROW: u64 = ((1 << BLOCK_ROW_BITS) - 1) << NUMBER_BITS;
const TAG: u64 = !(NUMBER | ROW);

const FIRST_SLOTS: usize = 1 << 12;
/// Behind this many slots that hold something else, a look-up gives up.
const PROBE_LIMIT: usize = 64;

#[repr(C)]
struct Header {
    mask: usize,
    used: AtomicU32,
}

const HEADER_BYTES: usize = 64;

/// Hash to entry number. A slot that is 0 is free.
#[derive(Debug)]
pub(crate) struct Index {
    slots: AtomicPtr<u8>,
    os: Os,
}

/// Spreads a key's bits over a hash.
#[inline]
pub(crate) fn spread(key: u64) -> u64 {
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 32)
}

impl Index {
    pub(crate) fn new(os: Os) -> Self {
        Self { slots: AtomicPtr::new(ptr::null_mut()), os }
    }

    /// The first entry of that hash for which `is_it` holds; it is told the number, and the row that was set last.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32, u32) -> bool) -> Option<u32> {
        let slot = self.slot_of(hash, is_it)?;
        Some(number_of(slot.load(Ordering::Relaxed)))
    }

    #[inline]
    fn slot_of(&self, hash: u64, is_it: impl Fn(u32, u32) -> bool) -> Option<&AtomicU64> {
        let table = self.slots.load(Ordering::Acquire);
        if table.is_null() {
            return None;
        }
        let mask = mask(table);
        for step in 0..PROBE_LIMIT {
            let slot = slot(table, (hash as usize).wrapping_add(step) & mask);
            let found = slot.load(Ordering::Acquire);
            if found == 0 {
                return None;
            }
            if (found ^ hash) & TAG == 0 && is_it(number_of(found), row_of(found)) {
                return Some(slot);
            }
        }
        None
    }

    /// Remembers a row together with an entry, for [`Index::find`] to tell.
    pub(crate) fn set_row(&self, hash: u64, number: u32, row: u32) {
        if let Some(slot) = self.slot_of(hash, |found, _| found == number) {
            let before = slot.load(Ordering::Relaxed);
            let after = before & !ROW | u64::from(row) << NUMBER_BITS;
            // What was forgotten in the meantime stays so.
            let _ = slot.compare_exchange(before, after, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Remembers an entry, if there is place. To be called by one thread at a time. `hash_of` says the hashes of those
    /// that are there.
    pub(crate) fn insert(&self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        let mut table = self.slots.load(Ordering::Acquire);
        if table.is_null() || used(table).load(Ordering::Relaxed) as usize * 2 > mask(table) {
            self.grow(&hash_of);
            table = self.slots.load(Ordering::Acquire);
        }
        if table.is_null() || put_counted(table, hash, u64::from(number)) {
            return;
        }
        // A run of used slots that is longer than a look-up goes comes at times in a table that is not half full yet.
        // An entry that is not found would be made again, time after time.
        if used(table).load(Ordering::Relaxed) as usize > mask(table) / 8 {
            self.grow(&hash_of);
            put_counted(self.slots.load(Ordering::Acquire), hash, u64::from(number));
        }
    }

    /// Forgets everything. Not to be called together with an insert.
    ///
    /// In place: a new table for each library that goes would take more and more memory, and at times the very place
    /// that the library leaves to the next one.
    pub(crate) fn clear(&self) {
        let table = self.slots.load(Ordering::Acquire);
        if table.is_null() {
            return;
        }
        for at in 0..=mask(table) {
            slot(table, at).store(0, Ordering::Release);
        }
        used(table).store(0, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn grow(&self, hash_of: &impl Fn(u32) -> u64) {
        let old = self.slots.load(Ordering::Acquire);
        let old_slots = if old.is_null() { 0 } else { mask(old) + 1 };
        let slots = (old_slots * 4).max(FIRST_SLOTS);
        let new = (self.os.map)((HEADER_BYTES + slots * 8).next_multiple_of(4096));
        if new.is_null() {
            return;
        }
        // SAFETY: the mapping is new, ours alone, and large enough for the header.
        unsafe { new.cast::<Header>().write(Header { mask: slots - 1, used: AtomicU32::new(0) }) };
        let mut copied = 0;
        for at in 0..old_slots {
            let entry = slot(old, at).load(Ordering::Acquire);
            if entry != 0 && put(new, hash_of(number_of(entry)), entry & !TAG) {
                copied += 1;
            }
        }
        used(new).store(copied, Ordering::Relaxed);
        self.slots.store(new, Ordering::Release);
    }
}

// The helpers below take the pointer of a table that `grow` made: it starts with a header, is followed by `mask + 1`
// slots, and is never unmapped.

fn mask(table: *mut u8) -> usize {
    // SAFETY: see above; the mask never changes.
    unsafe { (*table.cast::<Header>()).mask }
}

fn used<'a>(table: *mut u8) -> &'a AtomicU32 {
    // SAFETY: see above.
    unsafe { &(*table.cast::<Header>()).used }
}

#[inline]
fn slot<'a>(table: *mut u8, at: usize) -> &'a AtomicU64 {
    // SAFETY: see above; callers pass a place below the number of slots.
    unsafe { &*table.add(HEADER_BYTES).cast::<AtomicU64>().add(at) }
}

fn number_of(slot: u64) -> u32 {
    (slot & NUMBER) as u32
}

fn row_of(slot: u64) -> u32 {
    ((slot & ROW) >> NUMBER_BITS) as u32
}

/// `entry` is a slot but for its tag.
fn put_counted(table: *mut u8, hash: u64, entry: u64) -> bool {
    let is_put = put(table, hash, entry);
    if is_put {
        used(table).fetch_add(1, Ordering::Relaxed);
    }
    is_put
}

fn put(table: *mut u8, hash: u64, entry: u64) -> bool {
    let mask = mask(table);
    for step in 0..PROBE_LIMIT {
        let slot = slot(table, (hash as usize).wrapping_add(step) & mask);
        if slot.load(Ordering::Relaxed) == 0
            && slot.compare_exchange(0, hash & TAG | entry, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::alloc::{Layout, alloc_zeroed};

    use super::*;

    fn map(bytes: usize) -> *mut u8 {
        let layout = Layout::from_size_align(bytes, 4096).unwrap();
        // SAFETY: the layout has a size; the memory is never given back, as a mapping of the recorder's is not.
        unsafe { alloc_zeroed(layout) }
    }

    /// Of four million entries none is lost between two growths, where runs of used slots are longest.
    #[test]
    fn every_entry_is_found_again() {
        let os = Os { map, open: |_, _| true, thread: |_| 0 };
        let index = Index::new(os);
        let key = |number: u32| spread(u64::from(number) * 0x1_0000_0010);
        for number in 1..4_000_000 {
            index.insert(key(number), number, key);
        }
        let lost = (1..4_000_000).filter(|number| index.find(key(*number), |at, _| at == *number).is_none());
        assert_eq!(lost.count(), 0);
    }
}
