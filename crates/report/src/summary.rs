//! The line that ends a run.
//!
//! ```text
//! 2 windows, 1,204,000 allocations, 61 stacks, all complete
//! 1 window, 15,000 allocations, 8 stacks, 99.98 % complete, 3 cut; not recorded: 1 allocation from signal handlers …
//! 1 window, 15,000 allocations, 8 stacks, these complete; not recorded: 2 allocations for which there was no place …
//! 2 windows, 1,500 allocations, 7 stacks, all complete; before the windows: 11 allocations
//! 3 runs: 2 windows, 3,612,000 allocations, 61 stacks, 2 unstable, all complete
//! ```
//!
//! Of several runs the allocations are those of all of them; *unstable* are stacks that did not allocate the same per
//! iteration in every run.

use std::collections::BTreeSet;

use heaptally_profile::model::{Losses, Metric, Profile};
use heaptally_profile::total::CaptureEvents;
use heaptally_profile::view::is_in_background;

use crate::loss::phrases;
use crate::number::{count, counted, fine_share};

/// The summary of a profile, without a line feed. What an automatic `process` window beside others counted, or that of an
/// image that another one replaced, is told apart.
pub fn summary(profile: &Profile) -> String {
    let is_counted: Vec<bool> =
        profile.windows.iter().map(|window| !is_in_background(profile, window)).collect();
    let mut windows = 0;
    let mut captures = CaptureEvents::default();
    let (mut lost, mut before, mut of_harness) = (0_u64, 0_u64, 0_u64);
    let window_captures = profile.window_captures();
    for ((window, window_captures), &is_counted) in
        profile.windows.iter().zip(window_captures).zip(&is_counted)
    {
        if is_counted {
            windows += 1;
            captures.complete = captures.complete.saturating_add(window_captures.complete);
            captures.frame_pointer = captures.frame_pointer.saturating_add(window_captures.frame_pointer);
            captures.cut = captures.cut.saturating_add(window_captures.cut);
            captures.async_unknown = captures.async_unknown.saturating_add(window_captures.async_unknown);
            lost = lost.saturating_add(window.lost);
        } else if window.harnessed().is_some() {
            of_harness = of_harness.saturating_add(window_captures.total());
        } else {
            before = before.saturating_add(window_captures.total());
        }
    }
    let rows = profile.rows.iter().filter(|row| is_counted.get(row.window).copied().unwrap_or(false));
    let mut stacks = BTreeSet::new();
    let mut unstable = BTreeSet::new();
    for row in rows {
        stacks.insert(row.stack);
        if profile.windows.get(row.window).is_some_and(|window| row.is_unstable(window)) {
            unstable.insert(row.stack);
        }
    }

    let mut parts = vec![
        counted(windows, "window", "windows"),
        counted(captures.total(), "allocation", "allocations"),
        counted(stacks.len() as u64, "stack", "stacks"),
    ];
    let runs = profile.environment.runs();
    if runs > 1 && !stacks.is_empty() {
        parts.push(match unstable.len() as u64 {
            0 => "all stable".to_owned(),
            unstable => format!("{} unstable", count(unstable)),
        });
    }
    if captures.total() > 0 && profile.environment.knows(Metric::Captures) {
        parts.extend(capture_parts(&captures, profile.losses == Losses::default() && lost == 0));
    }
    let mut line = parts.join(", ");
    if runs > 1 {
        line.insert_str(0, &format!("{} runs: ", count(runs)));
    }
    if before > 0 {
        line.push_str("; before the windows: ");
        line.push_str(&counted(before, "allocation", "allocations"));
    }
    if of_harness > 0 {
        line.push_str("; the harness's own: ");
        line.push_str(&counted(of_harness, "allocation", "allocations"));
    }
    let mut losses = phrases(&profile.losses);
    // The losses say why; windows may know of some that they do not.
    if lost > 0 && losses.is_empty() {
        losses.push(format!("{} in these windows", counted(lost, "allocation", "allocations")));
    }
    if !losses.is_empty() {
        line.push_str("; not recorded: ");
        line.push_str(&losses.join(", "));
    }
    line
}

/// How well the stacks were walked, by allocations.
fn capture_parts(captures: &CaptureEvents, is_all: bool) -> Vec<String> {
    if captures.complete == captures.total() {
        return vec![if is_all { "all complete" } else { "these complete" }.to_owned()];
    }
    let mut parts = vec![format!("{} complete", fine_share(captures.complete, captures.total()))];
    if captures.frame_pointer > 0 {
        parts.push(format!("{} by frame pointer", count(captures.frame_pointer)));
    }
    if captures.cut > 0 {
        parts.push(format!("{} cut", count(captures.cut)));
    }
    if captures.async_unknown > 0 {
        parts.push(format!("{} with async callers unknown", count(captures.async_unknown)));
    }
    parts
}
