//! Which of many possible pairs are made.
//!
//! Possible pairs form a graph, and its connected parts are looked at one by one. In a small part the pairs are those
//! whose weights are the greatest in sum, found by the Hungarian method with potentials (Kuhn, Munkres; the form of
//! Jonker and Volgenant that adds one row at a time). Large parts are solved greedily, best pair first: those with more
//! than [`MOST`] stacks on either side, and those that come when [`BUDGET`] is used up; the small ones come first.

use std::collections::BTreeMap;

/// How many stacks a part may have on either side to be solved exactly.
pub(super) const MOST: usize = 400;
/// How many steps exact solutions may take in all: about a tenth of a second.
const BUDGET: usize = 60_000_000;

/// A possible pair: an index on either side, and how good it is, above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edge {
    pub(super) left: usize,
    pub(super) right: usize,
    pub(super) weight: f64,
}

/// The pairs that are made: each left one and each right one at most once. Ties go to the lower indices.
pub(super) fn assign(edges: &[Edge]) -> Vec<(usize, usize)> {
    if let [edge] = edges {
        return vec![(edge.left, edge.right)];
    }
    let mut parts = parts(edges);
    parts.sort_by_key(|part| (part.steps(), part.edges.first().map(|edge| (edge.left, edge.right))));
    let mut budget = BUDGET;
    let mut pairs = Vec::new();
    for part in parts {
        let is_small = part.lefts.len() <= MOST && part.rights.len() <= MOST;
        match budget.checked_sub(part.steps()).filter(|_| is_small) {
            Some(rest) => {
                budget = rest;
                pairs.extend(part.exact());
            }
            None => pairs.extend(part.greedy()),
        }
    }
    pairs.sort_unstable();
    pairs
}

/// A connected part of the graph.
struct Part {
    edges: Vec<Edge>,
    lefts: Vec<usize>,
    rights: Vec<usize>,
}

fn parts(edges: &[Edge]) -> Vec<Part> {
    let lefts = edges.iter().map(|edge| edge.left + 1).max().unwrap_or(0);
    let rights = edges.iter().map(|edge| edge.right + 1).max().unwrap_or(0);
    let mut parents: Vec<usize> = (0..lefts + rights).collect();
    fn root(parents: &mut [usize], mut at: usize) -> usize {
        while parents[at] != at {
            parents[at] = parents[parents[at]];
            at = parents[at];
        }
        at
    }
    for edge in edges {
        let (a, b) = (root(&mut parents, edge.left), root(&mut parents, lefts + edge.right));
        parents[a.max(b)] = a.min(b);
    }
    let mut parts: BTreeMap<usize, Vec<Edge>> = BTreeMap::new();
    for edge in edges {
        parts.entry(root(&mut parents, edge.left)).or_default().push(*edge);
    }
    let part = |edges: Vec<Edge>| {
        let sorted = |of: fn(&Edge) -> usize| {
            let mut all: Vec<usize> = edges.iter().map(of).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        Part { lefts: sorted(|edge| edge.left), rights: sorted(|edge| edge.right), edges }
    };
    parts.into_values().map(part).collect()
}

impl Part {
    fn steps(&self) -> usize {
        let (short, long) = self.sides();
        short.saturating_mul(short).saturating_mul(long)
    }

    fn sides(&self) -> (usize, usize) {
        let (a, b) = (self.lefts.len(), self.rights.len());
        (a.min(b), a.max(b))
    }

    fn greedy(mut self) -> Vec<(usize, usize)> {
        self.edges.sort_by(|a, b| {
            b.weight.total_cmp(&a.weight).then_with(|| (a.left, a.right).cmp(&(b.left, b.right)))
        });
        let mut is_free = [vec![true; self.lefts.len()], vec![true; self.rights.len()]];
        let mut pairs = Vec::new();
        for edge in &self.edges {
            let places = (self.lefts.binary_search(&edge.left), self.rights.binary_search(&edge.right));
            let (Ok(left), Ok(right)) = places else { continue };
            if is_free[0][left] && is_free[1][right] {
                (is_free[0][left], is_free[1][right]) = (false, false);
                pairs.push((edge.left, edge.right));
            }
        }
        pairs
    }

    fn exact(self) -> Vec<(usize, usize)> {
        let is_turned = self.lefts.len() > self.rights.len();
        let (rows, columns) =
            if is_turned { (&self.rights, &self.lefts) } else { (&self.lefts, &self.rights) };
        let width = columns.len();
        let mut weights = vec![0.0_f64; rows.len() * width];
        for edge in &self.edges {
            let (row, column) = if is_turned { (edge.right, edge.left) } else { (edge.left, edge.right) };
            if let (Ok(row), Ok(column)) = (rows.binary_search(&row), columns.binary_search(&column)) {
                weights[row * width + column] = edge.weight;
            }
        }
        let chosen = greatest(&weights, rows.len(), width);
        let pairs =
            chosen.into_iter().enumerate().filter(|&(row, column)| weights[row * width + column] > 0.0);
        pairs
            .map(|(row, column)| {
                let (row, column) = (rows[row], columns[column]);
                if is_turned { (column, row) } else { (row, column) }
            })
            .collect()
    }
}

/// For each row of a matrix a column of its own, so that the sum of the weights is the greatest. There are at least as
/// many columns as rows.
fn greatest(weights: &[f64], rows: usize, columns: usize) -> Vec<usize> {
    // Rows and columns are counted from 1 here; 0 is the row that is being added.
    let cost = |row: usize, column: usize| -weights[(row - 1) * columns + column - 1];
    let mut of_row = vec![0.0_f64; rows + 1];
    let mut of_column = vec![0.0_f64; columns + 1];
    let mut row_of = vec![0_usize; columns + 1];
    let mut before = vec![0_usize; columns + 1];
    for row in 1..=rows {
        row_of[0] = row;
        let mut least = vec![f64::INFINITY; columns + 1];
        let mut is_done = vec![false; columns + 1];
        let mut column = 0;
        // Grows a tree of cheapest ways until it reaches a column that is free.
        loop {
            is_done[column] = true;
            let at = row_of[column];
            let (mut step, mut next) = (f64::INFINITY, 0);
            for other in 1..=columns {
                if is_done[other] {
                    continue;
                }
                let reduced = cost(at, other) - of_row[at] - of_column[other];
                if reduced < least[other] {
                    least[other] = reduced;
                    before[other] = column;
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            for other in 0..=columns {
                if is_done[other] {
                    of_row[row_of[other]] += step;
                    of_column[other] -= step;
                } else {
                    least[other] -= step;
                }
            }
            column = next;
            if row_of[column] == 0 {
                break;
            }
        }
        while column != 0 {
            let from = before[column];
            row_of[column] = row_of[from];
            column = from;
        }
    }
    let mut chosen = vec![0; rows];
    for (column, &row) in row_of.iter().enumerate().skip(1) {
        if row > 0 {
            chosen[row - 1] = column - 1;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edges(weights: &[(usize, usize, f64)]) -> Vec<Edge> {
        weights.iter().map(|&(left, right, weight)| Edge { left, right, weight }).collect()
    }

    #[test]
    fn the_sum_counts_and_not_the_best_pair() {
        let edges = edges(&[(0, 0, 0.9), (0, 1, 0.8), (1, 0, 0.8), (2, 3, 0.1)]);
        assert_eq!(assign(&edges), [(0, 1), (1, 0), (2, 3)]);
    }

    #[test]
    fn no_edge_no_pair() {
        assert_eq!(assign(&[]), []);
        assert_eq!(assign(&edges(&[(3, 0, 0.5), (5, 0, 0.4)])), [(3, 0)]);
    }

    #[test]
    fn a_large_part_is_solved_greedily() {
        let star: Vec<_> = (0..=MOST).map(|left| (left, 0, 0.1 + left as f64 / 1e4)).collect();
        assert_eq!(assign(&edges(&star)), [(MOST, 0)]);
    }

    proptest! {
        /// Compared with all possible assignments.
        #[test]
        fn the_sum_is_the_greatest(weights in prop::collection::vec(0..20_u32, 20)) {
            let (rows, columns) = (4, 5);
            let edges: Vec<Edge> = weights.iter().enumerate().filter(|(_, weight)| **weight > 0)
                .map(|(at, weight)| Edge { left: at / columns, right: at % columns, weight: f64::from(*weight) })
                .collect();
            let weight_of = |left: usize, right: usize| weights[left * columns + right];
            fn most(row: usize, rows: usize, used: u32, columns: usize, of: &dyn Fn(usize, usize) -> u32) -> u32 {
                if row == rows { return 0; }
                let skipped = most(row + 1, rows, used, columns, of);
                (0..columns).filter(|column| used & (1 << column) == 0)
                    .map(|column| of(row, column) + most(row + 1, rows, used | (1 << column), columns, of))
                    .fold(skipped, u32::max)
            }
            let sum: u32 = assign(&edges).into_iter().map(|(left, right)| weight_of(left, right)).sum();
            prop_assert_eq!(sum, most(0, rows, 0, columns, &weight_of));
        }
    }
}
