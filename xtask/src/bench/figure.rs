//! What many runs say together.

use super::measure::Run;
use super::mode::Mode;
use serde_json::{Value, json};

/// Median, minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of any numbers; none of an empty list.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median = if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) };
        Some(Spread { median, min: *values.first()?, max: *values.last()? })
    }

    /// Each of the three after `change`, which keeps their order.
    pub(crate) fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Spread { median: change(self.median), min: change(self.min), max: change(self.max) }
    }

    /// As text with so many digits behind the point.
    pub(crate) fn show(self, digits: usize) -> String {
        format!("{:.digits$} ({:.digits$}–{:.digits$})", self.median, self.min, self.max)
    }
}

/// All runs of one workload in one mode.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) workload: String,
    pub(crate) what: String,
    pub(crate) mode: Mode,
    /// What the program was asked for, where it can be asked.
    pub(crate) events: Option<u64>,
    /// Allocations of one run.
    pub(crate) allocations: u64,
    pub(crate) runs: Vec<Run>,
    /// Why there are no runs, or no more.
    pub(crate) failure: Option<String>,
}

impl Series {
    /// Of all runs that have the value.
    pub(crate) fn spread(&self, value: impl Fn(&Run) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(value))
    }

    /// Nanoseconds an allocation: of the program's own clock, else from the start to the program's end.
    pub(crate) fn per_allocation_ns(&self) -> Option<Spread> {
        let allocations = self.allocations.max(1) as f64;
        self.spread(|run| Some(run.program_time_ns() as f64 / allocations))
    }

    /// The same by the CPU clock of the program's thread.
    pub(crate) fn per_allocation_cpu_ns(&self) -> Option<Spread> {
        let allocations = self.allocations.max(1) as f64;
        self.spread(|run| Some(run.own?.cpu_ns? as f64 / allocations))
    }

    /// From the start to the program's end and what the tool does then.
    pub(crate) fn whole_ms(&self) -> Option<Spread> {
        self.spread(|run| Some(run.wall_ns as f64 / 1e6))
    }

    /// From the program's end to the end of the tool, and of the command that shows the result, where there was one.
    pub(crate) fn end_to_report_ms(&self) -> Option<Spread> {
        self.spread(|run| Some((run.wall_ns - run.program_ns?) as f64 / 1e6 + run.report_ns? as f64 / 1e6))
    }

    /// The most memory of the largest process.
    pub(crate) fn peak_rss_bytes(&self) -> Option<Spread> {
        self.spread(|run| Some(run.peak_rss_bytes as f64))
    }

    /// The program's own peak, without the command's.
    pub(crate) fn own_peak_rss_bytes(&self) -> Option<Spread> {
        self.spread(|run| Some(run.own?.peak_rss_bytes? as f64))
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "workload": self.workload,
            "what": self.what,
            "mode": self.mode.name(),
            "events": self.events,
            "allocations": self.allocations,
            "failure": self.failure,
            "runs": self.runs.iter().map(Run::to_json).collect::<Vec<_>>(),
        })
    }
}

/// All series of one invocation, to look up.
#[derive(Debug)]
pub(crate) struct Figures(pub(crate) Vec<Series>);

impl Figures {
    pub(crate) fn find(&self, workload: &str, mode: Mode) -> Option<&Series> {
        self.0.iter().find(|series| series.workload == workload && series.mode == mode)
    }

    /// Nanoseconds more for each allocation than natively, by the wall's clock.
    pub(crate) fn added_ns(&self, workload: &str, mode: Mode) -> Option<Spread> {
        let native = self.find(workload, Mode::Native)?.per_allocation_ns()?.median;
        Some(self.find(workload, mode)?.per_allocation_ns()?.map(|time| time - native))
    }

    /// How many times as long as natively an allocation takes.
    pub(crate) fn ratio(&self, workload: &str, mode: Mode) -> Option<Spread> {
        let native = self.find(workload, Mode::Native)?.per_allocation_ns()?.median;
        Some(self.find(workload, mode)?.per_allocation_ns()?.map(|time| time / native))
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn spread_of_odd_even_and_no_values() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(of(&[]), None);
    }
}
