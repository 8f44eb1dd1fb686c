//! Which stacks broke a limit.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::diff::WindowDiff;
use crate::limit::{Bound, Metric};

use super::{Compared, WindowAt};

/// So many are named of a limit.
const MOST: usize = 200;
/// So many stacks of a window, where there is nothing to hold it against.
const MOST_ROWS: usize = 10;

/// Something that broke a limit, in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guilty {
    /// A call site that changed: an index into the entries of the window.
    Entry(usize),
    /// A stack whose call site does not show it, since other stacks there changed the other way: an index into the
    /// pairs of the window.
    Pair(usize),
    /// A stack of a window that nothing says more about: an index into its rows.
    Row(usize),
}

/// What made a count of a window too large or too small.
pub(super) fn of_count(compared: &Compared<'_>, at: WindowAt, metric: Metric, bound: Bound) -> Vec<Guilty> {
    let is_up = matches!(bound, Bound::Max | Bound::Grow);
    let mut guilty = compared.pair(at).map_or_else(Vec::new, |pair| match metric {
        Metric::Allocs | Metric::Bytes => of_entries(pair, metric, is_up),
        _ => of_pairs(pair, metric, is_up),
    });
    // Call sites whose runs overlap are no entries of a diff, but they are what there is.
    if let (true, Some(pair)) = (guilty.is_empty(), compared.pair(at)) {
        guilty = of_pairs(pair, metric, is_up);
    }
    if guilty.is_empty() && is_up {
        guilty = largest(compared, at, metric);
    }
    guilty.truncate(MOST);
    guilty
}

fn of_entries(pair: &WindowDiff<'_>, metric: Metric, is_up: bool) -> Vec<Guilty> {
    let sign = if is_up { 1 } else { -1 };
    let moves = pair.entries.iter().enumerate().filter(|(_, entry)| {
        pair.sign(entry.counts.map(|counts| metric.of(&counts))) == sign
            // What was only renamed has its counterpart on the other side.
            && !entry.kind.is_moved()
    });
    moves.map(|(at, _)| Guilty::Entry(at)).collect()
}

fn of_pairs(pair: &WindowDiff<'_>, metric: Metric, is_up: bool) -> Vec<Guilty> {
    let sign = if is_up { 1 } else { -1 };
    let counts = |at: usize| pair.pairs[at].counts.map(|counts| metric.of(&counts));
    let mut moves: Vec<usize> = (0..pair.pairs.len()).filter(|at| pair.sign(counts(*at)) == sign).collect();
    moves.sort_by(|a, b| {
        let [a_delta, b_delta] = [*a, *b].map(|at| pair.delta(counts(at)).abs());
        b_delta.total_cmp(&a_delta).then(a.cmp(b))
    });
    moves.into_iter().map(Guilty::Pair).collect()
}

/// The stacks with the most.
fn largest(compared: &Compared<'_>, at: WindowAt, metric: Metric) -> Vec<Guilty> {
    let Some(view) = compared.window(at) else { return Vec::new() };
    let count = |row: &usize| view.rows.get(*row).map_or(0, |row| metric.of(&row.row.counts));
    let mut rows: Vec<usize> = (0..view.rows.len()).filter(|row| count(row) > 0).collect();
    rows.sort_by_key(|row| (Reverse(count(row)), *row));
    rows.truncate(MOST_ROWS);
    rows.into_iter().map(Guilty::Row).collect()
}

/// Stacks by the call sites that the diff names them with, in its order; those that it does not show by themselves come
/// behind. `pairs` are in the order of their size.
pub(super) fn of_stacks(window: &WindowDiff<'_>, pairs: &[usize]) -> Vec<Guilty> {
    let mut entries: HashMap<usize, usize> = HashMap::new();
    for (at, entry) in window.entries.iter().enumerate() {
        let counts = entry.counts.map(|counts| [counts.allocations, counts.bytes]);
        let grows = window.sign([counts[0][0], counts[1][0]]) > 0
            || (counts[0][0] == counts[1][0] && window.sign([counts[0][1], counts[1][1]]) > 0);
        if grows {
            for pair in &entry.pairs {
                entries.entry(*pair).or_insert(at);
            }
        }
    }
    let mut guilty: Vec<Guilty> = pairs
        .iter()
        .map(|pair| entries.get(pair).map_or(Guilty::Pair(*pair), |at| Guilty::Entry(*at)))
        .collect();
    let mut place: HashMap<Guilty, usize> = HashMap::new();
    for (at, one) in guilty.iter().enumerate() {
        place.entry(*one).or_insert(at);
    }
    guilty.sort_by_key(|one| match one {
        Guilty::Entry(at) => (0, *at),
        other => (1, place.get(other).copied().unwrap_or(0)),
    });
    guilty.dedup();
    guilty.truncate(MOST);
    guilty
}
