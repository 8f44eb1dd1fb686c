//! A count of a window or of a stack, over the runs of a profile.

use crate::limit::{Metric, Per, Rate};
use crate::model::{Counts, Profile, RepeatValue, Row, Window};
use crate::view::WindowView;

/// What a count was in the runs of a profile. Of one run, or of a count that is not kept by run, all three are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// In the run with the least.
    pub least: Rate,
    /// In the run with the most.
    pub greatest: Rate,
    /// Of all runs.
    pub average: Rate,
}

impl Spread {
    /// Nothing, in every run.
    pub const ZERO: Self = Self { least: Rate::ZERO, greatest: Rate::ZERO, average: Rate::ZERO };

    /// A count of `rows`, whose sum is `counts`, in a window of a profile of so many runs.
    pub(super) fn of<'r>(
        counts: &Counts,
        rows: impl Iterator<Item = &'r Row>,
        window: &Window,
        (metric, per): (Metric, Per),
        runs: u64,
    ) -> Self {
        let divisor = match per {
            Per::Iteration => window.iterations,
            Per::Run => runs,
        };
        let average = Rate::new(metric.of(counts), divisor);
        let one = Self { least: average, greatest: average, average };
        let of_run: fn(&RepeatValue) -> u64 = match metric {
            Metric::Allocs => |value| value.allocations,
            Metric::Bytes => |value| value.bytes,
            _ => return one,
        };
        let iterations = &window.iterations_per_repeat;
        if iterations.len() < 2 {
            return one;
        }
        let mut sums = vec![0_u64; iterations.len()];
        for row in rows {
            for (sum, value) in sums.iter_mut().zip(&row.repeats) {
                *sum = sum.saturating_add(of_run(value));
            }
        }
        let rates = sums.iter().zip(iterations).filter_map(|(sum, iterations)| match per {
            Per::Iteration => (*iterations > 0).then(|| Rate::new(*sum, *iterations)),
            Per::Run => Some(Rate::new(*sum, 1)),
        });
        rates
            .fold(None, |range: Option<Self>, rate| {
                Some(range.map_or(Self { least: rate, greatest: rate, average }, |range| Self {
                    least: range.least.min(rate),
                    greatest: range.greatest.max(rate),
                    average,
                }))
            })
            .unwrap_or(one)
    }

    /// A count of a window.
    pub fn of_view(view: &WindowView<'_>, what: (Metric, Per), profile: &Profile) -> Self {
        let rows = view.rows.iter().map(|row| &*row.row);
        Self::of(&view.counts, rows, view.window, what, profile.environment.runs())
    }

    /// The average alone.
    pub(super) fn averaged(self) -> Self {
        Self { least: self.average, greatest: self.average, average: self.average }
    }

    /// Whether runs differ.
    pub fn is_unstable(&self) -> bool {
        self.least != self.greatest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of runs with (allocations, iterations), and its only row.
    fn spread(runs: &[(u64, u64)], per: Per) -> Spread {
        let window = Window {
            iterations: runs.iter().map(|run| run.1).sum(),
            iterations_per_repeat: runs.iter().map(|run| run.1).collect(),
            ..Window::default()
        };
        let repeats = runs.iter().map(|run| RepeatValue { allocations: run.0, bytes: 0 }).collect();
        let counts = Counts { allocations: runs.iter().map(|run| run.0).sum(), ..Counts::default() };
        let row = Row { counts, repeats, ..Row::default() };
        Spread::of(&counts, [&row].into_iter(), &window, (Metric::Allocs, per), runs.len() as u64)
    }

    #[test]
    fn runs_are_told_apart() {
        let of = spread(&[(300, 100), (620, 200), (290, 100)], Per::Iteration);
        assert_eq!(of.least, Rate::new(29, 10));
        assert_eq!(of.greatest, Rate::new(31, 10));
        assert_eq!(of.average, Rate::new(1210, 400));
        let of = spread(&[(300, 100), (620, 200)], Per::Run);
        assert_eq!(
            (of.least, of.greatest, of.average),
            (Rate::new(300, 1), Rate::new(620, 1), Rate::new(460, 1))
        );
    }

    #[test]
    fn runs_without_iterations_are_passed_over() {
        let of = spread(&[(300, 100), (0, 0)], Per::Iteration);
        assert!(!of.is_unstable());
        assert_eq!(of.least, Rate::new(3, 1));
        assert!(!spread(&[(5, 0), (5, 0)], Per::Iteration).is_unstable());
        assert!(!spread(&[(300, 100)], Per::Iteration).is_unstable());
    }
}
