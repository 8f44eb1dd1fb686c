//! The report for people.
//!
//! ```text
//! window "parse"   1,000 iterations   76.00 allocs/iter   4,138 B/iter   0 live at end   76,000 allocations, 4,138,000 B
//!
//!   allocs/iter  B/iter   share  call site
//!         40.00   1,920  52.6 %  Header::push_value  src/header.rs:88
//!                                  malloc
//!                                  alloc::raw_vec::finish_grow  library/alloc/src/raw_vec.rs:500
//!                                  Header::push_value  src/header.rs:88 (inlined)
//!                                  walk  src/tree.rs:12  × 3,000
//!                                  main  src/main.rs:5
//! ```
//!
//! Frames stand leaf first. A frame that follows itself is shown once with its number; so are up to eight frames that
//! take turns at least three times. Nothing depends on the width of the terminal.

use std::collections::HashSet;

use heaptally_profile::call_site::{CallSites, Rules};
use heaptally_profile::model::{Capture, Profile};
use heaptally_profile::total::{CaptureEvents, Sum};

use crate::Options;
use crate::escape::escape;
use crate::frame::frames;
use crate::loss::phrases;
use crate::number::{bytes_per_iteration, count, counted, fine_share, per_iteration, share};
use crate::window::{RowView, WindowView, windows};

/// The longest sequence of frames that is looked for as recursion.
const LONGEST_CYCLE: usize = 8;

/// The report of a profile.
pub fn text(profile: &Profile, options: &Options) -> String {
    let mut report = Report { profile, options, out: String::new() };
    let views = windows(profile, options);
    report.missing_windows();
    if profile.windows.is_empty() {
        report.line("no window was opened");
    }
    let sites = CallSites::new(profile, Rules::embedded());
    for (at, view) in views.iter().enumerate() {
        if at > 0 {
            report.line("");
        }
        report.window(view, &sites);
    }
    report.captures(&views);
    report.losses();
    report.warnings();
    report.out
}

/// A report that is being written.
struct Report<'a> {
    profile: &'a Profile,
    options: &'a Options,
    out: String,
}

impl Report<'_> {
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// A line that begins a part.
    fn head(&mut self, line: &str) {
        if self.options.color {
            self.line(&format!("\x1b[1m{line}\x1b[0m"));
        } else {
            self.line(line);
        }
    }

    fn missing_windows(&mut self) {
        let missing = self.options.missing_windows(self.profile);
        if missing.is_empty() {
            return;
        }
        let quoted = |names: &mut dyn Iterator<Item = &str>| {
            names.map(|name| format!("\"{}\"", escape(name))).collect::<Vec<_>>().join(", ")
        };
        let there = quoted(&mut self.profile.windows.iter().map(|window| window.name.as_str()));
        let there = if there.is_empty() { "there is none".to_owned() } else { format!("there is {there}") };
        self.line(&format!("no window {}; {there}", quoted(&mut missing.into_iter())));
    }

    fn window(&mut self, view: &WindowView<'_>, sites: &CallSites<'_>) {
        let head = self.window_head(view);
        self.head(&head);
        for note in self.window_notes(view) {
            self.line(&format!("  {note}"));
        }
        if view.in_background {
            let name = escape(&view.window.name);
            self.line(&format!("  before the first window; its stacks are shown with --window {name}"));
            return;
        }
        self.line("");
        if view.rows.is_empty() {
            self.line("  nothing was allocated in it");
            return;
        }
        self.rows(view, sites);
    }

    fn window_head(&self, view: &WindowView<'_>) -> String {
        let WindowView { window, counts, .. } = view;
        let mut parts = vec![format!("window \"{}\"", escape(&window.name))];
        if let Some(image) = view.image.filter(|_| self.profile.images.len() > 1) {
            parts[0].push_str(&format!(" of {}", escape(&image.label)));
        }
        parts.push(if window.iterations_told {
            counted(window.iterations, "iteration", "iterations")
        } else {
            counted(window.entries, "entry", "entries")
        });
        parts.push(format!("{} allocs/iter", per_iteration(window.per_iteration(counts.allocations))));
        parts.push(format!("{} B/iter", bytes_per_iteration(window.per_iteration(counts.bytes))));
        if self.profile.environment.lifetimes {
            parts.push(match counts.live() {
                0 => "0 live at end".to_owned(),
                live => format!("{} live at end ({} B)", count(live), count(counts.live_bytes())),
            });
        }
        let allocations = counted(counts.allocations, "allocation", "allocations");
        parts.push(format!("{allocations}, {} B", count(counts.bytes)));
        parts.join("   ")
    }

    /// What else is to be known of a window.
    fn window_notes(&self, view: &WindowView<'_>) -> Vec<String> {
        let WindowView { window, counts, .. } = view;
        let mut notes = Vec::new();
        if window.unfinished {
            let image = self.profile.images.get(window.image);
            let how = if image.is_some_and(|image| image.replaced) {
                "another program replaced this one (exec)"
            } else {
                "the program ended"
            };
            notes.push(format!("still open when {how}"));
        }
        if window.iterations_told && window.entries != 1 {
            notes.push(format!("entered {}", counted(window.entries, "time", "times")));
        }
        if window.crossed_ends > 0 {
            notes.push(format!(
                "{} while another window was the innermost one",
                counted(window.crossed_ends, "end", "ends")
            ));
        }
        if window.stray_ends > 0 {
            notes.push(format!("{} while it was not open", counted(window.stray_ends, "end", "ends")));
        }
        if window.lost > 0 {
            let lost = counted(window.lost, "more allocation", "more allocations");
            notes.push(format!("{lost} whose stack was not recorded"));
        }
        if counts.failed > 0 {
            notes.push(format!("{} that returned no memory", counted(counts.failed, "call", "calls")));
        }
        if let Some(peak) = window.peak_bytes {
            let bound = match window.peak_uncertainty_bytes {
                0 => String::new(),
                bound => format!(" ± {}", count(bound)),
            };
            notes.push(format!("peak of live bytes {}{bound} B", count(peak)));
        }
        notes
    }

    fn rows(&mut self, view: &WindowView<'_>, sites: &CallSites<'_>) {
        let shown = match self.options.limit {
            0 => view.rows.len(),
            limit => limit.min(view.rows.len()),
        };
        let (shown, hidden) = view.rows.split_at(shown);
        let cells = |allocations: u64, bytes: u64| {
            [
                per_iteration(view.window.per_iteration(allocations)),
                bytes_per_iteration(view.window.per_iteration(bytes)),
                share(allocations, view.counts.allocations),
            ]
        };
        let mut table: Vec<[String; 3]> = vec![["allocs/iter", "B/iter", "share"].map(str::to_owned)];
        table.extend(shown.iter().map(|row| cells(row.row.counts.allocations, row.row.counts.bytes)));
        if !hidden.is_empty() {
            let sum = |of: fn(&RowView<'_>) -> u64| hidden.iter().map(of).fold(0, u64::saturating_add);
            table.push(cells(sum(|row| row.row.counts.allocations), sum(|row| row.row.counts.bytes)));
        }
        let widths: [usize; 3] = std::array::from_fn(|column| {
            table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        });
        let mut lines = table.iter().map(|[allocations, bytes, share]| {
            format!("  {allocations:>0$}  {bytes:>1$}  {share:>2$}  ", widths[0], widths[1], widths[2])
        });
        let indent = " ".repeat(2 + widths.iter().sum::<usize>() + 3 * 2);

        let header = lines.next().unwrap_or_default();
        self.line(&format!("{header}call site"));
        for (row, cells) in shown.iter().zip(&mut lines) {
            let site = row.call_site(self.profile, sites);
            let site = site.map_or_else(|| "unknown".to_owned(), |(_, frame)| frame.name_and_source());
            self.line(&format!("{cells}{site}"));
            if let Some(facts) = facts(self.profile, view, row) {
                self.line(&format!("{indent}{facts}"));
            }
            for frame in stack_lines(self.profile, row) {
                self.line(&format!("{indent}  {frame}"));
            }
        }
        if let Some(cells) = lines.next() {
            let more = counted(hidden.len() as u64, "more stack", "more stacks");
            self.line(&format!("{cells}{more}; all are shown with --limit 0"));
        }
    }

    /// How well the stacks were walked, over the windows that are shown.
    fn captures(&mut self, views: &[WindowView<'_>]) {
        let mut sum = CaptureEvents::default();
        for view in views {
            sum.add(Capture::Complete, view.captures.complete);
            sum.add(Capture::FramePointer, view.captures.frame_pointer);
            sum.add(Capture::Cut, view.captures.cut);
        }
        if sum.total() == 0 {
            return;
        }
        let part =
            |part: u64, words: &str| format!("{} {words} ({})", count(part), fine_share(part, sum.total()));
        self.line("");
        if sum.complete == sum.total() {
            self.line(&format!("captured: all {} complete", count(sum.total())));
            return;
        }
        self.line(&format!(
            "captured: {}, {}, {}",
            part(sum.complete, "complete"),
            part(sum.frame_pointer, "by frame pointer"),
            part(sum.cut, "cut")
        ));
    }

    fn losses(&mut self) {
        let mut lines = phrases(&self.profile.losses);
        for mismatch in self.profile.check_sums() {
            let name = self.profile.windows.get(mismatch.window).map_or("", |window| &window.name);
            let what = match mismatch.sum {
                Sum::Allocations => "allocations",
                Sum::Bytes => "bytes",
                Sum::Freed => "frees",
                Sum::FreedBytes => "freed bytes",
            };
            lines.push(format!(
                "{what} of window \"{}\" do not add up: {} by stacks, {} by threads",
                escape(name),
                count(mismatch.rows),
                count(mismatch.threads)
            ));
        }
        self.part("not recorded", &lines);
    }

    fn warnings(&mut self) {
        let mut lines = Vec::new();
        for image in &self.profile.images {
            if !image.in_path && !image.replaced {
                lines.push(format!(
                    "{}: its malloc was not the recorder's, nothing was counted",
                    escape(&image.label)
                ));
            }
            for warning in &image.warnings {
                lines.push(format!("{}: {}", escape(&image.label), escape(warning)));
            }
        }
        for module in &self.profile.modules {
            if let Some(problem) = &module.symbol_problem {
                lines.push(format!("{}: {}", escape(&module.path), escape(problem)));
            }
        }
        let mut seen = HashSet::new();
        lines.retain(|line| seen.insert(line.clone()));
        self.part("warnings", &lines);
    }

    /// A titled list, left out when it is empty.
    fn part(&mut self, title: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.line("");
        self.head(title);
        for line in lines {
            self.line(&format!("  {line}"));
        }
    }
}

/// What else is to be known of a row, if anything.
fn facts(profile: &Profile, view: &WindowView<'_>, row: &RowView<'_>) -> Option<String> {
    let counts = &row.row.counts;
    let mut facts = Vec::new();
    if counts.reallocs > 0 {
        let by = counted(counts.reallocs, "realloc", "reallocs");
        let (moved, stayed) = (count(counts.reallocs_moved), count(counts.reallocs_in_place));
        facts.push(format!("{by} ({moved} moved, {stayed} in place)"));
    }
    if counts.temporary > 0 {
        facts.push(format!("{} temporary", count(counts.temporary)));
    }
    if profile.environment.lifetimes && counts.live() > 0 {
        facts.push(format!("{} live at end ({} B)", count(counts.live()), count(counts.live_bytes())));
    }
    if counts.failed > 0 {
        facts.push(format!("{} failed", count(counts.failed)));
    }
    if counts.reallocs_to_zero > 0 {
        facts.push(counted(counts.reallocs_to_zero, "realloc to 0", "reallocs to 0"));
    }
    if let Some(entries) = row.row.entries.filter(|entries| *entries != view.window.entries) {
        let range = match (row.row.first_entry, row.row.last_entry) {
            (Some(first), Some(last)) if first == last => format!(": number {}", count(first)),
            (Some(first), Some(last)) => format!(": numbers {} to {}", count(first), count(last)),
            _ => String::new(),
        };
        facts.push(format!("in {} of {} entries{range}", count(entries), count(view.window.entries)));
    }
    (!facts.is_empty()).then(|| format!("[{}]", facts.join("; ")))
}

/// The lines of a stack, leaf first.
fn stack_lines(profile: &Profile, row: &RowView<'_>) -> Vec<String> {
    let lines: Vec<String> = frames(profile, row.stack)
        .map(|frame| match frame.mark() {
            Some(mark) => format!("{} {mark}", frame.name_and_source()),
            None => frame.name_and_source(),
        })
        .collect();
    let mut folded = fold_recursion(&lines);
    if row.stack.capture == Capture::Cut {
        let reason = match row.stack.cut_reason.as_str() {
            "" => "the walk stopped here",
            reason => reason,
        };
        folded.push(format!("(cut: {})", escape(reason)));
    }
    folded
}

/// Shows what repeats once, with how often it is there.
fn fold_recursion(lines: &[String]) -> Vec<String> {
    let mut folded = Vec::new();
    let mut rest = lines;
    while !rest.is_empty() {
        let cycle = (1..=LONGEST_CYCLE.min(rest.len() / 2)).find_map(|len| {
            let (cycle, _) = rest.split_at(len);
            let times = rest.chunks_exact(len).take_while(|chunk| *chunk == cycle).count();
            let least = if len == 1 { 2 } else { 3 };
            (times >= least).then_some((len, times))
        });
        let (len, times) = cycle.unwrap_or((1, 1));
        let (shown, _) = rest.split_at(len);
        match (shown, times) {
            (_, 1) => folded.extend_from_slice(shown),
            ([one], times) => folded.push(format!("{one}  × {}", count(times as u64))),
            (several, times) => {
                folded.extend_from_slice(several);
                folded.push(format!("(the {len} frames above × {})", count(times as u64)));
            }
        }
        rest = rest.get(len * times..).unwrap_or_default();
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::fold_recursion;

    fn fold(lines: &str) -> Vec<String> {
        fold_recursion(&lines.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_frame_that_follows_itself_is_shown_once() {
        assert_eq!(fold("a b b b c"), ["a", "b  × 3", "c"]);
        assert_eq!(fold("a b c"), ["a", "b", "c"]);
        assert_eq!(fold(""), [""; 0]);
        assert_eq!(fold(&"x ".repeat(3000)), ["x  × 3,000"]);
    }

    #[test]
    fn frames_that_take_turns_are_shown_once() {
        assert_eq!(fold("m a b a b a b z"), ["m", "a", "b", "(the 2 frames above × 3)", "z"]);
        assert_eq!(fold("a b a b"), ["a", "b", "a", "b"]);
        assert_eq!(fold("a b b a b b a b b"), ["a", "b", "b", "(the 3 frames above × 3)"]);
    }
}
