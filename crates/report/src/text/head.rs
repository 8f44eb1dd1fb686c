//! What stands above a window's rows.

use heaptally_profile::model::Metric;
use heaptally_profile::view::WindowView;

use super::Context;
use super::page::Page;
use super::table::Columns;
use crate::child::image_name;
use crate::escape::{escape, quote};
use crate::number::{count, counted, share};

/// The head line and what else is to be known of a window.
pub(super) fn head(page: &mut Page, context: &Context<'_>, view: &WindowView<'_>) {
    page.head(&line(context, view));
    for note in notes(context, view) {
        page.line(&format!("  {note}"));
    }
}

/// A line for the windows that are not what is looked for.
pub(super) fn background(page: &mut Page, context: &Context<'_>, views: &[&WindowView<'_>]) {
    let (of_harness, before): (Vec<&WindowView<'_>>, Vec<_>) = views
        .iter()
        .filter(|view| view.counts.allocations > 0)
        .partition(|view| view.window.harnessed().is_some());
    let told = |views: &[&WindowView<'_>]| {
        views.iter().map(|view| named(context, view)).collect::<Vec<_>>().join(", ")
    };
    if !before.is_empty() {
        page.note(&format!("before the windows: {}; --window process shows the stacks", told(&before)));
        page.line("");
    }
    if !of_harness.is_empty() {
        page.note(&format!("the harness's own: {}; --full shows the stacks", told(&of_harness)));
        page.line("");
    }
}

/// A window in the background, and how much was allocated in it.
fn named(context: &Context<'_>, view: &WindowView<'_>) -> String {
    let mut name = quote(&view.window.name);
    if let Some(image) = view.image.filter(|_| context.profile.images.len() > 1) {
        name.push_str(&format!(" of {}", image_name(image)));
    }
    let allocations = counted(view.counts.allocations, "allocation", "allocations");
    let of = if view.image.is_some_and(|image| image.replaced) { ", before exec" } else { "" };
    format!("{name} ({allocations}{of})")
}

/// `window "parse"   1,000 iterations   76.00 allocs/iter   4,138 B/iter   0 live at end`.
pub(super) fn line(context: &Context<'_>, view: &WindowView<'_>) -> String {
    let WindowView { window, counts, .. } = view;
    let mut parts = vec![format!("window {}", quote(&window.name))];
    if let Some(image) = view.image.filter(|_| context.profile.images.len() > 1) {
        parts[0].push_str(&format!(" of {}", image_name(image)));
    }
    let environment = &context.profile.environment;
    if environment.knows(Metric::Windows) {
        parts.push(if window.iterations_told {
            counted(window.iterations, "iteration", "iterations")
        } else {
            counted(window.entries, "entry", "entries")
        });
    }
    let columns = Columns::of(window, context.options.sort, *counts).known_to(environment);
    if columns.is_divided() {
        parts.push(format!("{} allocs/iter", columns.number(counts.allocations)));
    } else {
        parts.push(counted(counts.allocations, "allocation", "allocations"));
    }
    parts.push(match (columns.has_bytes(), columns.is_divided()) {
        (false, _) => "bytes unknown".to_owned(),
        (true, true) => format!("{} B/iter", columns.bytes(counts.bytes)),
        (true, false) => format!("{} B", count(counts.bytes)),
    });
    if context.profile.environment.lifetimes {
        parts.push(match counts.live() {
            0 => "0 live at end".to_owned(),
            live => format!("{} live at end ({} B)", count(live), count(counts.live_bytes())),
        });
    }
    parts.join("   ")
}

fn notes(context: &Context<'_>, view: &WindowView<'_>) -> Vec<String> {
    let window = view.window;
    let mut notes = Vec::new();
    let environment = &context.profile.environment;
    // Without frees, a recording of one entry has said it all in its head line.
    if view.counts.allocations.max(view.counts.discarded) > 0
        && (environment.lifetimes || environment.knows(Metric::Windows))
    {
        notes.push(blocks(context, view));
    }
    if window.discarded_entries > 0 {
        let entries = counted(window.discarded_entries, "entry", "entries");
        notes.push(format!("{entries} discarded, since it was restarted"));
    }
    notes.extend(left_out(context, view));
    if context.options.full && !window.definition.is_empty() {
        let phrases: Vec<_> = window.definition.iter().map(|phrase| escape(phrase)).collect();
        notes.push(format!("defined by functions: {}", phrases.join(", ")));
    }
    if window.unfinished {
        let image = context.profile.images.get(window.image);
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
        let ends = counted(window.crossed_ends, "end", "ends");
        notes.push(format!("{ends} while another window was the innermost one"));
    }
    if window.stray_ends > 0 {
        notes.push(format!("{} while it was not open", counted(window.stray_ends, "end", "ends")));
    }
    if window.ended_by_thread > 0 {
        let entries = counted(window.ended_by_thread, "entry", "entries");
        notes.push(format!("{entries} closed by the thread's end"));
    }
    if window.lost > 0 {
        let lost = counted(window.lost, "more allocation", "more allocations");
        notes.push(format!("{lost} whose stack was not recorded"));
    }
    if view.counts.failed > 0 {
        notes.push(format!("{} that returned no memory", counted(view.counts.failed, "call", "calls")));
    }
    // It is the whole window's.
    if let Some(peak) = window.peak_bytes.filter(|_| context.options.selection.takes_all_stacks()) {
        let bound = match window.peak_uncertainty_bytes {
            0 => String::new(),
            bound => format!(" (up to {} more or less: several threads)", count(bound)),
        };
        notes.push(format!("peak of live bytes {}{bound}", count(peak)));
    }
    notes
}

/// What became of the blocks, in all.
fn blocks(context: &Context<'_>, view: &WindowView<'_>) -> String {
    let counts = &view.counts;
    let allocations = counted(counts.allocations, "allocation", "allocations");
    let mut note = match context.profile.environment.knows(Metric::Bytes) {
        true => format!("{allocations} of {} B", count(counts.bytes)),
        false => allocations,
    };
    if counts.discarded > 0 {
        note.push_str(&format!(
            ", and {} of {} B discarded",
            count(counts.discarded),
            count(counts.discarded_bytes)
        ));
    }
    if context.profile.environment.lifetimes {
        note.push_str(&format!(
            ": {} freed while it was open, {} later, {} still live at exit",
            count(counts.freed),
            count(counts.freed_later),
            count(counts.live_at_exit())
        ));
        if counts.temporary > 0 {
            note.push_str(&format!("; {} temporary", share(counts.temporary, counts.allocations)));
        }
    }
    if counts.reallocs > 0 {
        note.push_str(&format!("; {}", reallocs(counts.reallocs, counts.reallocs_in_place)));
    }
    note
}

/// `3 reallocs (1 in place)`.
pub(super) fn reallocs(reallocs: u64, in_place: u64) -> String {
    format!("{} ({} in place)", counted(reallocs, "realloc", "reallocs"), count(in_place))
}

/// What the selection does not hold.
fn left_out(context: &Context<'_>, view: &WindowView<'_>) -> Vec<String> {
    let out = &view.left_out;
    let mut notes = Vec::new();
    let told = |stacks: u64, allocations: u64| {
        format!(
            "{} in {}",
            counted(allocations, "allocation", "allocations"),
            counted(stacks, "stack", "stacks")
        )
    };
    if out.not_under_stacks > 0 {
        let out = told(out.not_under_stacks, out.not_under.allocations);
        notes.push(format!("left out: {out} that hold no frame of --under"));
    }
    if out.filtered_stacks > 0 {
        let out = told(out.filtered_stacks, out.filtered.allocations);
        notes.push(format!("left out: {out} by --filter, --exclude or --root"));
    }
    if !context.options.selection.takes_all_stacks() && notes.is_empty() {
        notes.push("nothing was left out".to_owned());
    }
    notes
}

/// What a recording is that another tool made, and what is therefore not known. Nothing for heaptally's own.
pub(super) fn origin(page: &mut Page, context: &Context<'_>) {
    let environment = &context.profile.environment;
    let Some(origin) = &environment.origin else { return };
    let mut unknown: Vec<&str> = environment.unknown.iter().map(|metric| word(*metric)).collect();
    if !environment.lifetimes {
        unknown.insert(0, "frees");
    }
    page.line(&format!("from a {}; not known: {}", escape(&origin.format), unknown.join(", ")));
    if !origin.sampling.is_empty() {
        page.line(&sampled(&escape(&origin.sampling)));
    }
    if origin.live_only {
        page.line(LIVE_ONLY);
    }
    page.line("");
}

/// What is said of numbers that stand for blocks that were still live.
pub(super) const LIVE_ONLY: &str =
    "live blocks only: what had been freed when the file was written is not counted";

/// What is said of numbers that samples were multiplied to. The words are escaped.
pub(super) fn sampled(sampling: &str) -> String {
    format!("sampled ({sampling}): the numbers are estimates")
}

fn word(metric: Metric) -> &'static str {
    match metric {
        Metric::Windows => "windows",
        Metric::Bytes => "bytes",
        Metric::Reallocs => "reallocs",
        Metric::Temporary => "temporary blocks",
        Metric::Failed => "failed calls",
        Metric::Captures => "whether stacks are whole",
        Metric::Threads => "threads",
    }
}
