//! The results as Markdown.

use super::measure::Run;
use super::{Mode, Series};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Median, minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// Of any numbers; none of an empty list.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median = if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) };
        Some(Spread { median, min: *values.first()?, max: *values.last()? })
    }
}

/// What everything was measured on.
pub(crate) fn machine(facts: &Map<String, Value>) -> String {
    let fact = |(name, value): (&String, &Value)| format!("{name} {}", value.as_str().unwrap_or_default());
    format!("{}\n\n", facts.iter().map(fact).collect::<Vec<_>>().join("; "))
}

/// One row for each workload and mode. `series` has the native runs of a workload before its others.
pub(crate) fn times(series: &[Series]) -> String {
    let mut text = String::from(
        "| workload | mode | whole command, ms | × native | program's loop, ns/pair (CPU) | added wall ns/allocation \
         | peak RSS, MiB | written, KiB |\n|---|---|---|---|---|---|---|---|\n",
    );
    for one in series {
        let native = series.iter().find(|other| other.workload == one.workload && other.mode == Mode::Native);
        let row = native.and_then(|native| row(one, native));
        let Some(row) = row else { continue };
        text.push_str(&row);
    }
    text + "\n"
}

fn row(one: &Series, native: &Series) -> Option<String> {
    let wall = spread(one, |run| Some(run.wall_ns as f64 / 1e6))?;
    let native_wall = spread(native, |run| Some(run.wall_ns as f64 / 1e6))?;
    let memory = spread(one, |run| Some(run.peak_rss_bytes as f64 / 1048576.0))?;
    let written = spread(one, |run| Some(run.written_bytes as f64 / 1024.0))?;
    let pair = |run: &Run| run.own.map(|own| own.cpu_ns as f64 / own.pairs as f64);
    let pair = spread(one, pair).map_or(String::from("–"), |pair| show(pair, 1));
    let is_native = one.mode == Mode::Native;
    Some(format!(
        "| {} | {} | {} | {} | {pair} | {} | {:.1} | {} |\n",
        one.workload,
        one.mode.name(),
        show(wall, 0),
        if is_native { "1".to_owned() } else { format!("{:.2}", wall.median / native_wall.median) },
        if is_native { "–".to_owned() } else { added(one, native)? },
        memory.median,
        if is_native { "–".to_owned() } else { format!("{:.0}", written.median) },
    ))
}

/// What an allocation takes longer than natively: by the program's own clock where it has one, else by the whole
/// command's, in which the tool's start and end are spread over the allocations.
fn added(one: &Series, native: &Series) -> Option<String> {
    let own = |run: &Run| run.own.map(|own| own.wall_ns as f64 / own.pairs as f64);
    let whole = |run: &Run| Some(run.wall_ns as f64 / one.allocations as f64);
    let (with, without) = match (spread(one, own), spread(native, own)) {
        (Some(with), Some(without)) => (with, without),
        _ => (spread(one, whole)?, spread(native, whole)?),
    };
    let (low, high) = (with.min - without.median, with.max - without.median);
    Some(show(Spread { median: with.median - without.median, min: low, max: high }, 0))
}

fn spread(series: &Series, value: impl Fn(&Run) -> Option<f64>) -> Option<Spread> {
    Spread::of(series.runs.iter().filter_map(value))
}

/// Median, minimum and maximum of some numbers, as text.
pub(crate) fn spread_of(values: impl Iterator<Item = f64>) -> String {
    Spread::of(values).map_or(String::from("–"), |spread| show(spread, 0))
}

fn show(spread: Spread, digits: usize) -> String {
    format!("{:.digits$} ({:.digits$}–{:.digits$})", spread.median, spread.min, spread.max)
}

/// Memory must not grow with the number of events.
pub(crate) fn memory(runs: &[(u64, Run)]) -> String {
    let mut text = String::from("| pairs on 1,000 stacks | peak RSS, MiB | profile, KiB |\n|---|---|---|\n");
    for (pairs, run) in runs {
        let (memory, written) = (run.peak_rss_bytes as f64 / 1048576.0, run.written_bytes as f64 / 1024.0);
        // NOTE: a String takes any text.
        let _ = writeln!(text, "| {pairs} | {memory:.1} | {written:.0} |");
    }
    text
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
