//! The runs of a profile: which rows differ between them.
//!
//! A row is *unstable* when its allocations or its bytes per iteration are not the same in all runs. That is compared
//! exactly, as fractions: a harness that chose other numbers of iterations and allocated as much in each is stable. A
//! run in which the window had no iteration has no such fraction; it is equal to another of that kind by its counts,
//! and to one with iterations only when both counted nothing.

use crate::model::{Environment, Profile, RepeatValue, Row, Window};

impl Environment {
    /// How many runs of the program the profile holds, at least 1.
    pub fn runs(&self) -> u64 {
        self.repeats.max(1)
    }
}

impl RepeatValue {
    /// Adds `other`; a sum that does not fit stays at the highest number.
    pub fn add(&mut self, other: &Self) {
        self.allocations = self.allocations.saturating_add(other.allocations);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Row {
    /// Whether allocations or bytes per iteration differ between runs. Never when the profile holds one run.
    ///
    /// `window` is the row's window.
    pub fn is_unstable(&self, window: &Window) -> bool {
        let mut runs = self.runs(window);
        let Some((first, first_iterations)) = runs.next() else { return false };
        runs.any(|(value, iterations)| {
            !is_same((value.allocations, iterations), (first.allocations, first_iterations))
                || !is_same((value.bytes, iterations), (first.bytes, first_iterations))
        })
    }

    /// The least and the greatest number of allocations per iteration among the runs that had iterations; `None` when
    /// the profile holds one run, or none had any.
    ///
    /// `window` is the row's window.
    pub fn range(&self, window: &Window) -> Option<(f64, f64)> {
        let values = self.runs(window).filter(|(_, iterations)| *iterations > 0);
        let rates = values.map(|(value, iterations)| value.allocations as f64 / iterations as f64);
        rates.fold(None, |range, rate| match range {
            Some((least, greatest)) => Some((rate.min(least), rate.max(greatest))),
            None => Some((rate, rate)),
        })
    }

    /// Adds the values by run of `other`, a row out of the same runs.
    pub fn add_repeats(&mut self, other: &Self) {
        if self.repeats.len() < other.repeats.len() {
            self.repeats.resize(other.repeats.len(), RepeatValue::default());
        }
        for (sum, value) in self.repeats.iter_mut().zip(&other.repeats) {
            sum.add(value);
        }
    }

    /// The values by run, with the iterations of the window in that run.
    fn runs(&self, window: &Window) -> impl Iterator<Item = (RepeatValue, u64)> {
        self.repeats.iter().copied().zip(window.iterations_per_repeat.iter().copied())
    }
}

/// Whether two counts are the same per iteration. See the [module](self).
fn is_same((count, iterations): (u64, u64), (other_count, other_iterations): (u64, u64)) -> bool {
    if iterations == 0 || other_iterations == 0 {
        return count == other_count && (iterations == other_iterations || count == 0);
    }
    u128::from(count) * u128::from(other_iterations) == u128::from(other_count) * u128::from(iterations)
}

impl Profile {
    /// How many rows of each window are unstable, by [`WindowId`](crate::model::WindowId).
    pub fn window_unstable(&self) -> Vec<u64> {
        let mut sums = vec![0_u64; self.windows.len()];
        for row in &self.rows {
            if let (Some(sum), Some(window)) = (sums.get_mut(row.window), self.windows.get(row.window)) {
                *sum += u64::from(row.is_unstable(window));
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row and its window, by run: allocations, bytes, iterations.
    fn runs(runs: &[[u64; 3]]) -> (Row, Window) {
        let repeats =
            runs.iter().map(|&[allocations, bytes, _]| RepeatValue { allocations, bytes }).collect();
        let iterations_per_repeat = runs.iter().map(|run| run[2]).collect();
        (Row { repeats, ..Row::default() }, Window { iterations_per_repeat, ..Window::default() })
    }

    #[track_caller]
    fn unstable(values: &[[u64; 3]], expected: bool) {
        let mut values = values.to_vec();
        for _ in 0..values.len() {
            let (row, window) = runs(&values);
            assert_eq!(row.is_unstable(&window), expected, "{values:?}");
            values.rotate_left(1);
        }
    }

    #[test]
    fn one_run_is_stable() {
        assert!(!Row::default().is_unstable(&Window::default()));
        assert_eq!(Row::default().range(&Window::default()), None);
    }

    #[test]
    fn what_is_allocated_per_iteration_is_compared() {
        unstable(&[[3, 30, 10], [6, 60, 20], [9, 90, 30]], false);
        unstable(&[[3, 30, 10], [6, 60, 20], [10, 90, 30]], true);
        unstable(&[[3, 30, 10], [6, 61, 20]], true);
        unstable(&[[3, 30, 10], [3, 30, 20]], true);
    }

    #[test]
    fn the_comparison_is_exact() {
        // As floating-point numbers the two are the same.
        let many = 1 << 60;
        unstable(&[[many, many, many - 1], [many + 1, many, many - 1]], true);
        unstable(&[[u64::MAX, 0, u64::MAX], [1, 0, 1]], false);
    }

    #[test]
    fn a_run_without_iterations() {
        unstable(&[[0, 0, 0], [0, 0, 10]], false);
        unstable(&[[0, 0, 0], [5, 50, 10]], true);
        unstable(&[[5, 50, 0], [0, 0, 10]], true);
        unstable(&[[5, 50, 0], [5, 50, 0]], false);
        unstable(&[[5, 50, 0], [6, 50, 0]], true);
    }

    #[test]
    fn the_range_is_of_the_runs_with_iterations() {
        let (row, window) = runs(&[[3, 0, 10], [9, 0, 0], [8, 0, 20], [1, 0, 10]]);
        assert_eq!(row.range(&window), Some((0.1, 0.4)));
        let (row, window) = runs(&[[3, 0, 0], [9, 0, 0]]);
        assert_eq!(row.range(&window), None);
    }

    #[test]
    fn unstable_rows_are_counted_by_window() {
        let (row, window) = runs(&[[1, 1, 1], [2, 1, 1]]);
        let profile = Profile {
            windows: vec![window.clone(), window],
            rows: vec![Row { window: 1, ..row.clone() }, Row { window: 9, ..row }],
            ..Profile::default()
        };
        assert_eq!(profile.window_unstable(), [0, 1]);
    }
}
