//! Group B: counts.

use crate::standard;

macro_rules! plain {
    ($($name:ident: $id:literal;)*) => {
        $(#[test]
        fn $name() {
            standard::case($id, 0);
        })*
    };
}

plain! {
    b03_the_aligned_family: "B03";
    b07_operator_new: "B07";
    b08_small_strings_and_growth: "B08";
    b09_what_the_compiler_removed: "B09";
    b10_first_use_buffers: "B10";
    b12_other_threads: "B12";
    b15_millions_of_events: "B15";
    b16_thread_creation: "B16";
    b17_exceptions: "B17";
}

/// Six calls, five allocations: the realloc to size 0 frees.
#[test]
fn b01_realloc() {
    let Some(outcome) = standard::case("B01", 0) else { return };
    let totals = outcome.report().window("w").counts;
    assert_eq!((totals.allocations, totals.reallocs_to_zero, totals.failed), (5, 1, 0), "{totals:?}");
    let to_zero: u64 =
        outcome.report().window("w").rows_with("to_zero").map(|row| row.counts.reallocs_to_zero).sum();
    assert_eq!(to_zero, 1, "the free belongs to the stack that asked for it");
}

#[test]
fn b04_no_bytes_and_free_of_null() {
    let Some(outcome) = standard::case("B04", 0) else { return };
    let totals = outcome.report().window("w").counts;
    assert_eq!((totals.allocations, totals.bytes), (3, 0), "{totals:?}");
}

/// Bytes as asked for, not as given.
#[test]
fn b05_usable_size() {
    let Some(outcome) = standard::case("B05", 0) else { return };
    assert_eq!(outcome.report().window("w").counts.bytes, 13 + 1 + 5 * 7 + 50);
}

/// One entry: the program says nothing of its ten iterations.
#[test]
fn b11_a_value_with_a_remainder() {
    let Some(outcome) = standard::case("B11", 0) else { return };
    assert_eq!(outcome.report().window("w").entries, 1);
}
