//! The results as Markdown.

use super::figure::{Figures, Series, Spread};
use super::find;
use super::mode::{Mode, Tool};
use super::program;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// What everything was measured on.
pub(crate) fn machine(facts: &Map<String, Value>) -> String {
    let fact = |(name, value): (&String, &Value)| format!("{name} {}", value.as_str().unwrap_or_default());
    format!("{}\n\n", facts.iter().map(fact).collect::<Vec<_>>().join("; "))
}

/// The modes with their versions, then what this machine lacks.
pub(crate) fn modes(tools: &[Tool], missing: &[find::Missing], programs: &[program::Missing]) -> String {
    let mut text = String::from("| mode | what it is | version | events |\n|---|---|---|--:|\n");
    for tool in tools {
        let events = match tool.mode.divisor() {
            1 => "all".to_owned(),
            divisor => format!("1/{divisor}"),
        };
        let (name, note) = (tool.mode.name(), tool.mode.note());
        // NOTE: a String takes any text.
        let _ = writeln!(text, "| {name} | {note} | {} | {events} |", tool.version);
    }
    text.push('\n');
    for (mode, reason) in missing {
        let _ = writeln!(text, "Not measured: {} ({reason}).", mode.name());
    }
    for (workload, reason) in programs {
        let _ = writeln!(text, "Not measured: the workload {workload} ({reason}).");
    }
    if !missing.is_empty() || !programs.is_empty() {
        text.push('\n');
    }
    text
}

/// One row for each workload and mode.
pub(crate) fn times(figures: &Figures) -> String {
    let mut text = String::from(
        "| workload | mode | runs | ns/allocation | of it CPU | × native | added ns/allocation | heaptally's added × \
         | whole command, ms | end to report, ms | peak RSS, MiB | written, KiB |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for series in &figures.0 {
        row(&mut text, figures, series);
    }
    text + "\n"
}

fn row(text: &mut String, figures: &Figures, series: &Series) {
    let none = || String::from("–");
    let show = |spread: Option<Spread>, digits| spread.map_or_else(none, |spread| spread.show(digits));
    let one = |spread: Option<Spread>, digits: usize| {
        spread.map_or_else(none, |spread| format!("{:.digits$}", spread.median))
    };
    let (workload, mode) = (series.workload.as_str(), series.mode);
    let is_native = mode == Mode::Native;
    let added = figures.added_ns(workload, mode).filter(|_| !is_native);
    let ours = figures.added_ns(workload, Mode::Heaptally).filter(|ours| ours.median > 0.0);
    let against = added.zip(ours).map(|(added, ours)| format!("{:.2}", added.median / ours.median));
    let written = series.spread(|run| Some(run.written_bytes as f64 / 1024.0)).filter(|_| !is_native);
    let memory = series.peak_rss_bytes().map(|bytes| bytes.map(|bytes| bytes / 1048576.0));
    // NOTE: a String takes any text.
    let _ = writeln!(
        text,
        "| {workload} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        mode.name(),
        series.runs.len(),
        show(series.per_allocation_ns(), 1),
        one(series.per_allocation_cpu_ns(), 1),
        one(figures.ratio(workload, mode), 2),
        show(added, 1),
        against.unwrap_or_else(none),
        show(series.whole_ms(), 0),
        show(series.end_to_report_ms().filter(|_| !is_native), 0),
        one(memory, 1),
        one(written, 0),
    );
    if let Some(failure) = &series.failure {
        let _ = writeln!(text, "| {workload} | {}: {} | | | | | | | | | | |", mode.name(), cell(failure));
    }
}

/// One line without what ends a cell.
fn cell(text: &str) -> String {
    text.chars()
        .take(200)
        .map(|letter| if letter == '|' || letter.is_control() { ' ' } else { letter })
        .collect()
}
