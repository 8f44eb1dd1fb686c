//! The line that ends a run.
//!
//! ```text
//! 2 windows, 1,204,000 allocations, 61 stacks, all complete
//! 1 window, 15,000 allocations, 8 stacks, 99.98 % complete, 3 cut; not recorded: 1 allocation from signal handlers …
//! ```

use std::collections::BTreeSet;

use heaptally_profile::model::{Profile, WindowKind};
use heaptally_profile::total::CaptureEvents;

use crate::loss::phrases;
use crate::number::{count, counted, fine_share};
use crate::window::has_named_windows;

/// The summary of a profile, without a line feed. An automatic `process` window beside others is left out.
pub fn summary(profile: &Profile) -> String {
    let has_named = has_named_windows(profile);
    let is_counted = |kind: WindowKind| kind != WindowKind::Automatic || !has_named;
    let mut windows = 0;
    let mut captures = CaptureEvents::default();
    let mut lost = 0_u64;
    for (window, window_captures) in profile.windows.iter().zip(profile.window_captures()) {
        if is_counted(window.kind) {
            windows += 1;
            captures.complete = captures.complete.saturating_add(window_captures.complete);
            captures.frame_pointer = captures.frame_pointer.saturating_add(window_captures.frame_pointer);
            captures.cut = captures.cut.saturating_add(window_captures.cut);
            lost = lost.saturating_add(window.lost);
        }
    }
    let rows =
        profile.rows.iter().filter(|row| profile.windows.get(row.window).is_some_and(|w| is_counted(w.kind)));
    let stacks: BTreeSet<_> = rows.map(|row| row.stack).collect();

    let mut parts = vec![
        counted(windows, "window", "windows"),
        counted(captures.total(), "allocation", "allocations"),
        counted(stacks.len() as u64, "stack", "stacks"),
    ];
    if captures.total() > 0 {
        parts.extend(capture_parts(&captures));
    }
    let mut line = parts.join(", ");
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
fn capture_parts(captures: &CaptureEvents) -> Vec<String> {
    if captures.complete == captures.total() {
        return vec!["all complete".to_owned()];
    }
    let mut parts = vec![format!("{} complete", fine_share(captures.complete, captures.total()))];
    if captures.frame_pointer > 0 {
        parts.push(format!("{} by frame pointer", count(captures.frame_pointer)));
    }
    if captures.cut > 0 {
        parts.push(format!("{} cut", count(captures.cut)));
    }
    parts
}
