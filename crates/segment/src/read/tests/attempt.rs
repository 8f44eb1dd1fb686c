//! Windows that were restarted.

use super::*;
use crate::layout::{ATTEMPTS, TwinRows};

/// A window with 5 attempts, of which 2 and 3 were discarded, and its row 1 with the twins 2 and 3; counters in chunk 0 of
/// shard 0 and chunk 1 of shard 1.
fn maker(row_entries: [u64; 3], kept: [u64; 3]) -> Maker {
    let maker = Maker::new();
    maker.window(1, WINDOW_PROCESS, "w");
    let at = FIRST_AREA + WINDOWS.offset + size_of::<crate::layout::Window>() as u64;
    maker.u32(at + offset_of!(crate::layout::Window, attempts) as u64, 1);
    maker.u64(at + offset_of!(crate::layout::Window, discarded_entries) as u64, 2);
    maker.u64(FIRST_AREA + ATTEMPTS.offset, 0b1100);
    maker.node(FIRST_NODE, 0x1000, Root::Complete as u32);
    maker.row(1, 1, FIRST_NODE, row_entries);
    let at = FIRST_AREA + ROWS.offset + size_of::<crate::layout::Row>() as u64;
    maker.u32(at + offset_of!(crate::layout::Row, twins) as u64, 2);
    maker.u64(at + offset_of!(crate::layout::Row, discarded_entries) as u64, kept[0]);
    maker.u64(at + offset_of!(crate::layout::Row, first_kept) as u64, kept[1]);
    maker.u64(at + offset_of!(crate::layout::Row, last_kept) as u64, kept[2]);
    maker.used(offset_of!(AreaHeader, rows), 4);
    maker.chunk(0, 0, 0);
    maker.chunk(1, 0, 1);
    maker
}

const ENTERED: usize = offset_of!(Counters, entered);
const BYTES: usize = offset_of!(Counters, bytes);

fn entered(attempt: u64) -> u64 {
    1 << ENTERED_ENTRY_BITS | attempt
}

#[test]
fn what_was_discarded_is_told_apart() {
    let maker = maker([5, 1, 5], [2, 1, 4]);
    // Settled: 10 of 17 were discarded, and the latest attempt is kept.
    for (row, allocations) in [(1, 17), (2, 15), (3, 10)] {
        maker.counter(0, row, ALLOCATIONS, allocations);
    }
    maker.counter(0, 1, ENTERED, entered(5));
    // Counted last in attempt 3, which was discarded: 4 of 6.
    for (row, allocations) in [(1, 6), (2, 2)] {
        maker.counter(1, row, ALLOCATIONS, allocations);
    }
    maker.counter(1, 1, ENTERED, entered(3));
    maker.counter(1, 1, offset_of!(Counters, freed), 6);
    let area = maker.area();
    assert_eq!((area.windows[0].entries, area.windows[0].discarded_entries), (3, 2));
    assert_eq!(area.rows.len(), 1, "twins are no rows");
    let row = &area.rows[0];
    assert_eq!((row.counts.allocations, row.counts.discarded, row.counts.freed), (9, 14, 6));
    assert_eq!((row.entries, row.first_entry, row.last_entry), (Some(3), Some(1), Some(3)));
}

/// Killed between the two stores of a field: the sum is in the scratch, and the pending part is not added to it.
#[test]
fn a_process_killed_while_it_settled_is_read_exactly() {
    for is_sum_stored in [false, true] {
        let maker = maker([1, 2, 2], [0, 0, 0]);
        maker.counter(0, 1, ALLOCATIONS, 9);
        maker.counter(0, 2, ALLOCATIONS, 9);
        maker.counter(0, 3, ALLOCATIONS, 5);
        maker.counter(0, 1, BYTES, 90);
        maker.counter(0, 2, BYTES, 40);
        maker.counter(0, 3, BYTES, if is_sum_stored { 60 } else { 10 });
        maker.counter(0, 1, ENTERED, entered(2));
        assert_eq!(TwinRows::FIELDS[1], BYTES);
        maker.counter(0, 3, ENTERED, 2);
        maker.counter(0, 2, offset_of!(Counters, freed), 60);
        let row = maker.area().rows.remove(0);
        assert_eq!((row.counts.discarded, row.counts.allocations), (5, 4));
        assert_eq!((row.counts.discarded_bytes, row.counts.bytes), (60, 30));
        assert_eq!((row.entries, row.first_entry, row.last_entry), (None, None, None));
    }
}
