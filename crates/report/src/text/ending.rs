//! What stands below the windows: threads, how well stacks were walked, what was lost, what to know.

use std::collections::{BTreeMap, HashSet};

use heaptally_profile::frame::{file_name, location_frames};
use heaptally_profile::model::{Capture, Metric, Profile, ThreadTotal};
use heaptally_profile::total::{CaptureEvents, Sum};
use heaptally_profile::view::{View, WindowView};

use super::page::Page;
use super::{Context, limited};
use crate::escape::{escape, quote};
use crate::loss::phrases;
use crate::number::{count, counted, fine_share, share};

/// How many threads are shown of each window, unless everything is.
const THREADS: usize = 5;

pub(super) fn ending(page: &mut Page, context: &Context<'_>, view: &View<'_>) {
    let windows: Vec<&WindowView<'_>> = view.windows.iter().filter(|view| !view.in_background).collect();
    for window in windows.iter().take(limited(windows.len(), context.options.limit)) {
        page.part(
            &threads_title(window, windows.len(), context.options.selection.takes_all_stacks()),
            &threads(context, window),
        );
    }
    if context.profile.environment.knows(Metric::Captures) {
        captures(page, &windows);
    }
    let mut lost = phrases(&context.profile.losses);
    lost.extend(mismatches(context.profile));
    page.part("not recorded", &lost);
    page.part("warnings", &warnings(context.profile));
    page.part("names", &symbol_problems(context));
    legend(page, context, &windows);
}

fn threads_title(window: &WindowView<'_>, windows: usize, takes_all_stacks: bool) -> String {
    // A harness's window has no threads: they are counted where it allocated.
    let whole = match (window.counts.discarded > 0, takes_all_stacks) {
        (true, _) => ", with what was discarded",
        (false, true) => "",
        (false, false) => ", all of its stacks",
    };
    match windows {
        1 if whole.is_empty() => "threads".to_owned(),
        _ => format!("threads in {}{whole}", quote(&window.window.name)),
    }
}

/// The threads that allocated in a window, most first; nothing when there is but one.
fn threads(context: &Context<'_>, window: &WindowView<'_>) -> Vec<String> {
    let profile = context.profile;
    // Lives of one name and start are one line.
    let mut totals: BTreeMap<(String, String), (u64, ThreadTotal)> = BTreeMap::new();
    for thread in &profile.threads {
        let Some(total) = thread.totals.get(&window.id) else { continue };
        let start = thread.start.and_then(|at| location_frames(profile, at).last());
        let start = start.map(|frame| crate::frame::short_name(&frame)).unwrap_or_default();
        let mut name = escape(&thread.name).into_owned();
        if thread.last_name != thread.name && !thread.last_name.is_empty() {
            name = format!("{name}, later {}", escape(&thread.last_name));
        }
        let (lives, sum) = totals.entry((name, start)).or_default();
        *lives = lives.saturating_add(thread.lives);
        sum.allocations = sum.allocations.saturating_add(total.allocations);
        sum.bytes = sum.bytes.saturating_add(total.bytes);
    }
    totals.retain(|_, (_, total)| total.allocations > 0);
    if totals.values().map(|(lives, _)| *lives).fold(0, u64::saturating_add) < 2 {
        return Vec::new();
    }
    let all = totals.values().map(|(_, total)| total.allocations).fold(0, u64::saturating_add);
    let mut totals: Vec<_> = totals.into_iter().collect();
    totals.sort_by_key(|(_, (_, total))| std::cmp::Reverse((total.allocations, total.bytes)));
    let shown = if context.options.full || context.options.limit == 0 {
        totals.len()
    } else {
        totals.len().min(THREADS)
    };
    let mut lines: Vec<String> = totals
        .iter()
        .take(shown)
        .map(|((name, start), (lives, total))| {
            let lives = if *lives > 1 { format!("{} × ", count(*lives)) } else { String::new() };
            let start = if start.is_empty() { String::new() } else { format!(" (began in {start})") };
            format!(
                "{lives}{name}{start}: {}, {} B, {}",
                counted(total.allocations, "allocation", "allocations"),
                count(total.bytes),
                share(total.allocations, all)
            )
        })
        .collect();
    if shown < totals.len() {
        lines.push(format!(
            "{} more; --full shows all",
            counted((totals.len() - shown) as u64, "thread", "threads")
        ));
    }
    lines
}

/// How well the stacks were walked, over the windows that are shown.
fn captures(page: &mut Page, windows: &[&WindowView<'_>]) {
    let mut sum = CaptureEvents::default();
    for view in windows {
        sum.add(Capture::Complete, view.captures.complete);
        sum.add(Capture::FramePointer, view.captures.frame_pointer);
        sum.add(Capture::Cut, view.captures.cut);
        sum.add(Capture::AsyncUnknown, view.captures.async_unknown);
    }
    if sum.total() == 0 {
        return;
    }
    let part =
        |part: u64, words: &str| format!("{} {words} ({})", count(part), fine_share(part, sum.total()));
    page.line("");
    if sum.complete == sum.total() {
        page.line(&format!("captured: all {} complete", count(sum.total())));
        return;
    }
    page.line(&format!(
        "captured: {}, {}, {}{}",
        part(sum.complete, "complete"),
        part(sum.frame_pointer, "by frame pointer"),
        part(sum.cut, "cut"),
        match sum.async_unknown {
            0 => String::new(),
            unknown => format!(", {}", part(unknown, "with async callers unknown")),
        }
    ));
}

fn mismatches(profile: &Profile) -> Vec<String> {
    let line = |mismatch: heaptally_profile::total::SumMismatch| {
        let name = profile.windows.get(mismatch.window).map_or("", |window| &window.name);
        let what = match mismatch.sum {
            Sum::Allocations => "allocations",
            Sum::Bytes => "bytes",
            Sum::Freed => "frees",
            Sum::FreedBytes => "freed bytes",
        };
        format!(
            "{what} of window {} do not add up: {} by stacks, {} by threads",
            quote(name),
            count(mismatch.rows),
            count(mismatch.threads)
        )
    };
    profile.check_sums().into_iter().map(line).collect()
}

fn warnings(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    for image in &profile.images {
        if image.is_by_passed() {
            lines.push(format!(
                "{}: its malloc was not the recorder's, nothing was counted",
                escape(&image.label)
            ));
        }
        for warning in &image.warnings {
            lines.push(match image.label.as_str() {
                "" => escape(warning).into_owned(),
                label => format!("{}: {}", escape(label), escape(warning)),
            });
        }
    }
    lines.extend(crate::child::sentences(&profile.children));
    let mut seen = HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines
}

/// What could not be named, modules with the same problem together: in the short form the first part of it.
fn symbol_problems(context: &Context<'_>) -> Vec<String> {
    let mut modules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for module in &context.profile.modules {
        let Some(problem) = module.symbol_problem.as_deref() else { continue };
        let (problem, name) = if context.options.full {
            (problem, module.path.as_str())
        } else {
            (problem.split(';').next().unwrap_or(problem), file_name(&module.path))
        };
        modules.entry(problem).or_default().push(escape(name).into_owned());
    }
    modules.into_iter().map(|(problem, names)| format!("{}: {}", names.join(", "), escape(problem))).collect()
}

/// The words that were used and need to be explained.
fn legend(page: &mut Page, context: &Context<'_>, windows: &[&WindowView<'_>]) {
    let mut lines = Vec::new();
    if windows.iter().any(|view| view.counts.temporary > 0) {
        lines.push("temporary: freed by the thread that allocated it before its next allocation".to_owned());
    }
    if context.profile.environment.lifetimes && windows.iter().any(|view| view.counts.live() > 0) {
        lines.push("live at end: allocated in the window and not freed while it was open".to_owned());
    }
    if page.has("← …") || page.has("… ←") {
        lines.push("…: frames that the rules list, or too many; --full shows them".to_owned());
    }
    if windows.iter().any(|view| view.captures.cut > 0) {
        lines.push("cut: not all callers are known".to_owned());
    }
    if context.profile.functions.iter().any(|function| function.is_folded) {
        lines.push(
            "folded: the linker gave several functions this code, of which any may be meant".to_owned(),
        );
    }
    if !lines.is_empty() {
        page.line("");
    }
    for line in lines {
        page.note(&line);
    }
}
