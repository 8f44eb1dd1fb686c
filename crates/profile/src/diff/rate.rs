//! Counts of two windows, compared exactly.

use crate::model::{RepeatValue, Row, Window};
use crate::view::{RowView, WindowView};

/// What a window's counts are divided by, at least 1.
pub(super) fn iterations(window: &Window) -> u64 {
    window.iterations.max(1)
}

/// How much more per iteration the change has, times the iterations of both.
pub(super) fn difference(counts: [u64; 2], views: [&WindowView<'_>; 2]) -> i128 {
    let times = |count: u64, other: &WindowView<'_>| {
        i128::try_from(u128::from(count) * u128::from(iterations(other.window))).unwrap_or(i128::MAX)
    };
    times(counts[1], views[0]).saturating_sub(times(counts[0], views[1]))
}

/// Whether allocations are of what a run does once, and not in each iteration: in one entry of their window or, where
/// there is only one, at most one in ten iterations.
pub(super) fn is_once<'r>(
    window: &Window,
    mut rows: impl Iterator<Item = &'r Row>,
    allocations: u64,
) -> bool {
    let runs = runs(window);
    let in_one_entry = if window.entries > runs {
        rows.all(|row| row.entries.is_some_and(|entries| (1..=runs).contains(&entries)))
    } else {
        allocations.saturating_mul(10) <= iterations(window)
    };
    allocations > 0 && allocations < iterations(window) && in_one_entry
}

/// Whether rows differ per iteration only because the sides have other numbers of iterations: what each run does once, as
/// much on both sides.
pub(super) fn is_one_off(views: [&WindowView<'_>; 2], rows: [&[usize]; 2], counts: [[u64; 2]; 2]) -> bool {
    let windows = views.map(|view| view.window);
    let is_once_on = |side: usize| {
        let rows = rows[side].iter().filter_map(|&row| views[side].rows.get(row)).map(|row| &*row.row);
        is_once(windows[side], rows, counts[side][0])
    };
    counts[0] == counts[1]
        && iterations(windows[0]) != iterations(windows[1])
        && runs(windows[0]) == runs(windows[1])
        && (0..2).all(is_once_on)
}

/// How many runs a window's numbers are the sum of.
fn runs(window: &Window) -> u64 {
    window.iterations_per_repeat.len().max(1) as u64
}

/// The least and the greatest per iteration over the runs of a profile: allocations, then bytes. `None` where the profile
/// holds one run, or no run had an iteration.
pub(super) fn ranges(view: &WindowView<'_>, rows: &[usize]) -> Option<[(f64, f64); 2]> {
    let iterations = &view.window.iterations_per_repeat;
    if iterations.len() < 2 {
        return None;
    }
    let mut sums = vec![RepeatValue::default(); iterations.len()];
    for row in rows.iter().filter_map(|&row| view.rows.get(row)) {
        add(&mut sums, row);
    }
    let runs = sums.iter().zip(iterations).filter(|(_, iterations)| **iterations > 0);
    let rates = |of: fn(&RepeatValue) -> u64| {
        let rates = runs.clone().map(|(value, iterations)| of(value) as f64 / *iterations as f64);
        rates.fold(None, |range: Option<(f64, f64)>, rate| {
            Some(range.map_or((rate, rate), |(least, most)| (least.min(rate), most.max(rate))))
        })
    };
    Some([rates(|value| value.allocations)?, rates(|value| value.bytes)?])
}

fn add(sums: &mut [RepeatValue], row: &RowView<'_>) {
    for (sum, value) in sums.iter_mut().zip(&row.row.repeats) {
        sum.add(value);
    }
}

/// Whether the change has more (1), less (-1) or the same (0), in allocations and in bytes. Where runs of one side differ,
/// less and more mean: outside of what any run of the other side had.
pub(super) fn compare(
    views: [&WindowView<'_>; 2],
    rows: [&[usize]; 2],
    counts: [[u64; 2]; 2],
) -> ([i8; 2], bool) {
    let ranges = [0, 1].map(|side| ranges(views[side], rows[side]));
    let is_unstable =
        |range: &Option<[(f64, f64); 2]>| range.is_some_and(|of| of.iter().any(|of| of.0 < of.1));
    let exact = [0, 1].map(|what| difference([counts[0][what], counts[1][what]], views).signum() as i8);
    if !ranges.iter().any(is_unstable) {
        return (exact, false);
    }
    let range = |side: usize, what: usize| {
        let rate = counts[side][what] as f64 / iterations(views[side].window) as f64;
        ranges[side].map_or((rate, rate), |of| of[what])
    };
    let signs = [0, 1].map(|what| {
        let (base, change) = (range(0, what), range(1, what));
        if change.0 > base.1 {
            1
        } else if change.1 < base.0 {
            -1
        } else {
            0
        }
    });
    (signs, exact != [0, 0])
}
