//! Which line of a call site changed.
//!
//! Lines drift: what stands in line 10 of the base may stand in line 15 of the change. Their order stays. So the lines of
//! both sides are aligned so that the counts of those that stand for each other differ as little as possible:
//!
//! ```text
//! base      10: 4           20: 1
//! change    15: 4   17: 1   25: 1      line 17 is new
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// More lines than that are not aligned: equal ones stand for each other then.
const MOST: usize = 200;

/// A line of a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// Its number, by side; `None` where it does not allocate, or is not there.
    pub lines: [Option<u32>; 2],
    /// Its allocations, by side.
    pub allocations: [u64; 2],
    /// Its bytes, by side.
    pub bytes: [u64; 2],
}

/// Allocations and bytes of a line.
pub(super) type LineCounts = BTreeMap<u32, [u64; 2]>;

/// The lines that changed, by `difference`: how much more of two counts the change has. The greatest first.
pub(super) fn line_changes(
    sides: &[LineCounts; 2],
    difference: impl Fn([u64; 2]) -> i128,
) -> Vec<LineChange> {
    let lines = [0, 1]
        .map(|side: usize| sides[side].iter().map(|(line, counts)| (*line, *counts)).collect::<Vec<_>>());
    let change = |base: Option<&(u32, [u64; 2])>, change: Option<&(u32, [u64; 2])>| {
        let of = |what: usize| [base, change].map(|line| line.map_or(0, |(_, counts)| counts[what]));
        LineChange {
            lines: [base, change].map(|line| line.map(|(line, _)| *line)),
            allocations: of(0),
            bytes: of(1),
        }
    };
    let cost = |change: &LineChange| {
        let [allocations, bytes] = [change.allocations, change.bytes].map(|of| difference(of).unsigned_abs());
        // Of equal costs the one with fewer lines that changed, and then with equal lines.
        let changed = u32::from(allocations > 0 || bytes > 0);
        (allocations, changed, bytes, u32::from(change.lines[0] != change.lines[1]))
    };
    let mut changes = if lines.iter().any(|lines| lines.len() > MOST) {
        let all: BTreeMap<u32, ()> =
            sides.iter().flat_map(|lines| lines.keys().map(|line| (*line, ()))).collect();
        let of = |side: usize, line: u32| sides[side].get(&line).map(|counts| (line, *counts));
        all.into_keys().map(|line| change(of(0, line).as_ref(), of(1, line).as_ref())).collect()
    } else {
        align(&lines, change, cost)
    };
    changes.retain(|change| cost(change).1 > 0);
    changes.sort_by_key(|change| {
        let (allocations, _, bytes, _) = cost(change);
        (Reverse((allocations, bytes)), change.lines[1], change.lines[0])
    });
    changes
}

type Cost = (u128, u32, u128, u32);

fn align(
    lines: &[Vec<(u32, [u64; 2])>; 2],
    change: impl Fn(Option<&(u32, [u64; 2])>, Option<&(u32, [u64; 2])>) -> LineChange,
    cost: impl Fn(&LineChange) -> Cost,
) -> Vec<LineChange> {
    let (height, width) = (lines[0].len(), lines[1].len());
    let add = |a: Cost, b: Cost| (a.0.saturating_add(b.0), a.1 + b.1, a.2.saturating_add(b.2), a.3 + b.3);
    // Ways: both, the base alone, the change alone.
    let mut best: Vec<Vec<(Cost, [usize; 2])>> = vec![vec![((0, 0, 0, 0), [0, 0]); width + 1]; height + 1];
    let step = |i: usize, j: usize, way: [usize; 2]| {
        let base = (way[0] > 0).then(|| lines[0].get(i - 1)).flatten();
        let other = (way[1] > 0).then(|| lines[1].get(j - 1)).flatten();
        change(base, other)
    };
    for i in 0..=height {
        for j in 0..=width {
            let ways = [[1, 1], [1, 0], [0, 1]].into_iter().filter(|way| way[0] <= i && way[1] <= j);
            let reached = ways.map(|way| (add(best[i - way[0]][j - way[1]].0, cost(&step(i, j, way))), way));
            if let Some(reached) = reached.min() {
                best[i][j] = reached;
            }
        }
    }
    let mut changes = Vec::new();
    let (mut i, mut j) = (height, width);
    while i > 0 || j > 0 {
        let (_, way) = best[i][j];
        changes.push(step(i, j, way));
        i -= way[0];
        j -= way[1];
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as (line, allocations), of 8 bytes each.
    fn changes(base: &[(u32, u64)], change: &[(u32, u64)]) -> Vec<([Option<u32>; 2], [u64; 2])> {
        let of =
            |lines: &[(u32, u64)]| lines.iter().map(|&(line, count)| (line, [count, 8 * count])).collect();
        let difference = |of: [u64; 2]| i128::from(of[1]) - i128::from(of[0]);
        let changes = line_changes(&[of(base), of(change)], difference);
        changes.into_iter().map(|change| (change.lines, change.allocations)).collect()
    }

    #[test]
    fn lines_drift() {
        assert_eq!(changes(&[(10, 4), (20, 1)], &[(15, 4), (25, 1)]), []);
        assert_eq!(changes(&[(10, 4), (20, 1)], &[(15, 4), (17, 1), (25, 1)]).len(), 1);
        assert_eq!(changes(&[(10, 4)], &[(15, 4), (17, 1)]), [([None, Some(17)], [0, 1])]);
        assert_eq!(changes(&[(15, 4), (17, 1)], &[(10, 4)]), [([Some(17), None], [1, 0])]);
        assert_eq!(changes(&[(10, 4)], &[(9, 1), (15, 4)]), [([None, Some(9)], [0, 1])]);
        assert_eq!(changes(&[(10, 4)], &[(12, 5)]), [([Some(10), Some(12)], [4, 5])]);
    }

    #[test]
    fn the_greatest_change_stands_first() {
        let changes = changes(&[(10, 4), (20, 9)], &[(10, 5), (20, 30)]);
        assert_eq!(changes, [([Some(20), Some(20)], [9, 30]), ([Some(10), Some(10)], [4, 5])]);
    }

    #[test]
    fn many_lines_stand_for_themselves() {
        let base: Vec<_> = (1..=300).map(|line| (line, 1)).collect();
        let mut change = base.clone();
        change[7].1 = 3;
        assert_eq!(changes(&base, &change), [([Some(8), Some(8)], [1, 3])]);
    }
}
