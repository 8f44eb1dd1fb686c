//! Code at which windows are defined: which window does a frame's address begin?
#![expect(unsafe_code, reason = "keeps its entries in mapped memory")]

use core::slice;

use crate::os::Os;

/// A part of a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionRange {
    /// Its first address.
    pub start: u64,
    /// One past its last.
    pub end: u64,
    /// The window's number.
    pub window: u32,
}

/// An entry with the highest end of this range and those before it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    range: FunctionRange,
    end_so_far: u64,
}

/// Ranges in order of their starts, of equal ones the larger first. Used under the lock of who owns it.
#[derive(Debug)]
pub(crate) struct FunctionRanges {
    memory: *mut Entry,
    limit: usize,
    used: usize,
}

// SAFETY: the memory is this value's own, and stays mapped.
unsafe impl Send for FunctionRanges {}

impl FunctionRanges {
    pub(crate) const fn new() -> Self {
        Self { memory: core::ptr::null_mut(), limit: 0, used: 0 }
    }

    fn entries(&mut self) -> &mut [Entry] {
        if self.memory.is_null() {
            return &mut [];
        }
        // SAFETY: the first `used` entries are written.
        unsafe { slice::from_raw_parts_mut(self.memory, self.used) }
    }

    /// Adds ranges. How many found no place.
    pub(crate) fn add(&mut self, os: Os, limit: usize, ranges: impl Iterator<Item = FunctionRange>) -> usize {
        if self.memory.is_null() {
            self.memory = (os.map)((limit * size_of::<Entry>()).next_multiple_of(4096)).cast();
            self.limit = if self.memory.is_null() { 0 } else { limit };
        }
        let mut lost = 0;
        for range in ranges {
            if self.used == self.limit || range.start >= range.end {
                lost += 1;
                continue;
            }
            // SAFETY: the place is inside the mapping, which only this value uses.
            unsafe { self.memory.add(self.used).write(Entry { range, end_so_far: 0 }) };
            self.used += 1;
        }
        self.sort();
        lost
    }

    /// Forgets ranges in code that is gone.
    pub(crate) fn retain(&mut self, mut is_there: impl FnMut(u64) -> bool) {
        let mut kept = 0;
        let entries = self.entries();
        for at in 0..entries.len() {
            let Some(entry) = entries.get(at).copied() else { break };
            if is_there(entry.range.start)
                && let Some(place) = entries.get_mut(kept)
            {
                *place = entry;
                kept += 1;
            }
        }
        self.used = kept;
        self.sort();
    }

    fn sort(&mut self) {
        let entries = self.entries();
        entries.sort_unstable_by_key(|entry| (entry.range.start, u64::MAX - entry.range.end));
        let mut end_so_far = 0;
        for entry in entries {
            end_so_far = entry.range.end.max(end_so_far);
            entry.end_so_far = end_so_far;
        }
    }

    /// The window of the innermost range that holds an address; 0: none does.
    pub(crate) fn window(&mut self, address: u64) -> u32 {
        let entries = self.entries();
        let below = entries.partition_point(|entry| entry.range.start <= address);
        let candidates = entries[..below].iter().rev().take_while(|entry| entry.end_so_far > address);
        candidates.map(|entry| entry.range).find(|range| address < range.end).map_or(0, |range| range.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(bytes: usize) -> *mut u8 {
        let layout = std::alloc::Layout::from_size_align(bytes, 4096).unwrap();
        // SAFETY: the size is not 0.
        unsafe { std::alloc::alloc_zeroed(layout) }
    }

    fn ranges(of: &[(u64, u64, u32)], limit: usize) -> (FunctionRanges, usize) {
        let os = Os { map, open: |_, _| true, thread: |_| 1 };
        let mut ranges = FunctionRanges::new();
        let of =
            of.iter().map(|(start, end, window)| FunctionRange { start: *start, end: *end, window: *window });
        let lost = ranges.add(os, limit, of);
        (ranges, lost)
    }

    #[test]
    fn the_innermost_range_counts() {
        let (mut ranges, lost) =
            ranges(&[(40, 60, 3), (10, 100, 1), (45, 50, 1), (200, 210, 2), (40, 90, 2)], 8);
        assert_eq!(lost, 0);
        let found: Vec<u32> =
            [9, 10, 39, 40, 45, 49, 50, 60, 89, 90, 99, 100, 200, 210].map(|at| ranges.window(at)).into();
        assert_eq!(found, [0, 1, 1, 3, 1, 1, 3, 2, 2, 1, 1, 0, 2, 0]);
        ranges.retain(|start| start != 10 && start != 200);
        assert_eq!([10, 45, 99, 200].map(|at| ranges.window(at)), [0, 1, 0, 0]);
    }

    #[test]
    fn what_has_no_place_is_counted() {
        let (mut ranges, lost) = ranges(&[(1, 2, 1), (3, 4, 2), (5, 6, 3), (9, 9, 4)], 2);
        assert_eq!((lost, ranges.window(3), ranges.window(5)), (2, 2, 0));
        assert_eq!(FunctionRanges::new().window(3), 0);
    }
}
