//! Compares what was recorded with what was expected.

use crate::case::{Case, ExpectedWindow};
use crate::report::{Report, Window};
use crate::run::Outcome;

/// What a comparison lets pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    /// Rows that no expected stack names.
    pub other_rows: bool,
    /// Stacks that are not complete.
    pub incomplete: bool,
    /// Losses.
    pub losses: bool,
}

/// Checks all windows of a case: totals, counts by stack, nothing beside them, all stacks complete, nothing lost.
///
/// # Panics
/// When something differs: with all differences and all rows.
pub fn case(case: &Case, outcome: &Outcome) {
    case_with(case, outcome, Tolerance::default());
}

/// As [`case()`], but lets something pass.
///
/// # Panics
/// When something differs.
pub fn case_with(case: &Case, outcome: &Outcome, tolerance: Tolerance) {
    let report = outcome.report();
    let mut problems = Vec::new();
    for expected in &case.windows {
        problems.extend(window_problems(report, expected, tolerance));
    }
    if !tolerance.losses && !report.losses_text().is_empty() {
        problems.push(format!("lost: {}", report.losses_text()));
    }
    assert!(problems.is_empty(), "{}: {}\nstderr:\n{}", case.id, problems.join("\n"), outcome.stderr);
}

/// Checks one window.
///
/// # Panics
/// When something differs.
pub fn window(report: &Report, expected: &ExpectedWindow, tolerance: Tolerance) {
    let problems = window_problems(report, expected, tolerance);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The expectation of a window, as a case's first line has it: `w: total=7 [4* main -> a -> malloc]`.
///
/// # Panics
/// When the text cannot be read.
pub fn expectation(text: &str) -> ExpectedWindow {
    let mut windows = crate::case::parse_windows(text);
    assert!(windows.len() == 1, "{text:?} is not one window");
    windows.remove(0)
}

fn window_problems(report: &Report, expected: &ExpectedWindow, tolerance: Tolerance) -> Vec<String> {
    let found: Vec<&Window> = report.windows.iter().filter(|window| window.name == expected.name).collect();
    let [window] = found.as_slice() else {
        let names: Vec<&str> = report.windows.iter().map(|window| window.name.as_str()).collect();
        return vec![format!("{} windows {:?} in {names:?}", found.len(), expected.name)];
    };
    let mut problems = Vec::new();
    let calls = window.calls();
    if window.counts.calls() != calls {
        problems.push(format!("the window's total says {}, its rows {calls}", window.counts.calls()));
    }
    if let Some(total) = expected.total
        && !tolerance.other_rows
        && calls != total
    {
        problems.push(format!("{calls} calls, not {total}"));
    }
    // Of several chains that match a row the longest says most.
    let mut counted = vec![0_u64; expected.stacks.len()];
    for row in window.rows.iter().filter(|row| row.counts.calls() > 0) {
        let best = (0..expected.stacks.len())
            .filter(|at| expected.stacks[*at].1.matches(&row.frames))
            .max_by_key(|at| expected.stacks[*at].1.length());
        match best {
            Some(at) => counted[at] += row.counts.calls(),
            None if tolerance.other_rows || expected.stacks.is_empty() => {}
            None => problems.push(format!("not expected: {}", row.text().trim())),
        }
        if row.frames.iter().any(|frame| is_recorder(&frame.module)) {
            problems.push(format!("the recorder's own: {}", row.text().trim()));
        }
        if !tolerance.incomplete && !row.is_complete() {
            problems.push(format!("not complete: {}", row.text().trim()));
        }
    }
    for ((count, chain), counted) in expected.stacks.iter().zip(counted) {
        if *count != counted {
            problems.push(format!("{counted}, not {count}, of {}", chain.text()));
        }
    }
    if !problems.is_empty() {
        problems.push(window.text());
    }
    problems
}

/// Whether a module is the library that is preloaded.
fn is_recorder(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or_default();
    name.contains("heaptally") && name.ends_with(".so")
}
