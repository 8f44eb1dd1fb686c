//! The report for programs: one JSON object, `schema/report.v1.schema.json` describes it.
//!
//! ```text
//! {"schema":"heaptally-report","version":1,
//!  "environment":{…},"images":[…],"modules":[…],
//!  "windows":[{"name":"parse",…,"counts":{…},"per_iteration":{…},"captures":{…},
//!              "rows":[{"counts":{…},…,"call_site":7,"stack":[0,3,7,8]}]}],
//!  "frames":[{"function":"malloc",…},…],"threads":[…],"losses":{…},"sum_mismatches":[]}
//! ```
//!
//! Names are the model's. Frames stand in a table of their own, each once, and rows refer to it by index: with jq,
//! `.frames[.windows[0].rows[0].call_site]`. It holds every row of every window that the options ask for, the automatic one too, in the
//! order of the text. Process and thread ids are left out: they differ between runs that are otherwise equal. Fields
//! may be added within a version; a change of what is there raises it.

use std::collections::BTreeSet;

use heaptally_profile::call_site::CallSites;
use heaptally_profile::frame::{self, location_frames};
use heaptally_profile::kind::{Kind, Kinds};
use heaptally_profile::model::{
    self, Capture, Children, Counts, Environment, FrameKind, LocationId, Losses, Metric, Module, Profile,
    RepeatValue, ThreadLife, ThreadTotal, Window, WindowId, WindowKind,
};
use heaptally_profile::total::{CaptureEvents, Sum};
use heaptally_profile::view::{RowView, Selection, WindowView};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::Options;
use crate::escape::escape_json;
use crate::executor::{self, Executors};

/// The report's `schema`.
const SCHEMA: &str = "heaptally-report";
/// The version that is written.
pub const VERSION: u32 = 1;

/// The report of a profile, ended by a line feed.
pub fn json(profile: &Profile, options: &Options) -> String {
    let sites = CallSites::new(profile, &options.rules);
    let view = options.view(profile, &sites);
    let mut frames = FrameTable::default();
    let executors = Executors::new(profile);
    let kinds = Kinds::new(profile, &options.rules);
    let known = (&sites, &executors, &kinds);
    let windows =
        view.windows.iter().map(|view| WindowReport::of(profile, view, known, &mut frames)).collect();
    let threads = profile.threads.iter().map(|thread| Thread::of(profile, thread, &mut frames)).collect();
    let report = Report {
        schema: SCHEMA,
        version: VERSION,
        environment: &profile.environment,
        images: profile.images.iter().map(Image::of).collect(),
        modules: &profile.modules,
        selection: SelectionReport::of(&options.selection),
        windows,
        threads,
        frames: frames.frames,
        losses: &profile.losses,
        children: &profile.children,
        sum_mismatches: mismatches(profile),
    };
    // NOTE: numbers, text, sequences and structs only, which JSON can always hold.
    let mut json = escape_json(&serde_json::to_string(&report).unwrap_or_default()).into_owned();
    json.push('\n');
    json
}

/// The frames of a report, each once.
#[derive(Default)]
struct FrameTable<'p> {
    frames: Vec<Frame<'p>>,
    known: FxHashMap<(LocationId, usize), usize>,
}

impl<'p> FrameTable<'p> {
    fn index(&mut self, profile: &'p Profile, frame: &frame::Frame<'p>) -> usize {
        *self.known.entry((frame.location, frame.line_index)).or_insert_with(|| {
            self.frames.push(Frame::of(profile, frame));
            self.frames.len() - 1
        })
    }
}

/// What was asked for: patterns as they were given.
#[derive(Serialize)]
struct SelectionReport<'o> {
    windows: &'o [String],
    under: Vec<&'o str>,
    filter: Vec<&'o str>,
    exclude: Vec<&'o str>,
    root: Vec<&'o str>,
}

impl<'o> SelectionReport<'o> {
    fn of(selection: &'o Selection) -> Self {
        Self {
            windows: &selection.windows,
            under: selection.under.iter().map(|pattern| pattern.as_str()).collect(),
            filter: selection.filter.iter().map(|pattern| pattern.as_str()).collect(),
            exclude: selection.exclude.iter().map(|pattern| pattern.as_str()).collect(),
            root: selection.root.iter().map(|pattern| pattern.as_str()).collect(),
        }
    }
}

#[derive(Serialize)]
struct Report<'p> {
    schema: &'static str,
    version: u32,
    environment: &'p Environment,
    images: Vec<Image<'p>>,
    modules: &'p [Module],
    selection: SelectionReport<'p>,
    windows: Vec<WindowReport<'p>>,
    threads: Vec<Thread>,
    frames: Vec<Frame<'p>>,
    losses: &'p Losses,
    children: &'p Children,
    sum_mismatches: Vec<Mismatch<'p>>,
}

#[derive(Serialize)]
struct Image<'p> {
    label: &'p str,
    path: &'p str,
    replaced: bool,
    in_path: bool,
    allocator: &'p str,
    warnings: &'p [String],
    processes: u64,
}

impl<'p> Image<'p> {
    fn of(image: &'p model::Image) -> Self {
        Self {
            label: &image.label,
            path: &image.path,
            replaced: image.replaced,
            in_path: image.in_path,
            allocator: &image.allocator,
            warnings: &image.warnings,
            processes: image.processes,
        }
    }
}

/// What tells more of rows.
type Lookups<'k, 'p> = (&'k CallSites<'p>, &'k Executors<'p>, &'k Kinds<'p>);

#[derive(Serialize)]
struct WindowReport<'p> {
    name: &'p str,
    /// Index into the report's images.
    image: usize,
    image_label: &'p str,
    kind: WindowKind,
    /// Phrases as `begin a::b`; empty: the program opens it.
    definition: &'p BTreeSet<String>,
    entries: u64,
    discarded_entries: u64,
    iterations: u64,
    iterations_told: bool,
    /// By run of the program; empty when there was one.
    iterations_per_repeat: &'p [u64],
    unfinished: bool,
    crossed_ends: u64,
    stray_ends: u64,
    ended_by_thread: u64,
    peak_bytes: Option<u64>,
    peak_uncertainty_bytes: u64,
    lost: u64,
    #[serde(flatten)]
    counted: Counted,
    captures: Captures,
    /// What the selection does not hold of it.
    left_out: LeftOut,
    rows: Vec<RowReport<'p>>,
}

impl<'p> WindowReport<'p> {
    fn of(
        profile: &'p Profile,
        view: &WindowView<'p>,
        known: Lookups<'_, 'p>,
        frames: &mut FrameTable<'p>,
    ) -> Self {
        let window = view.window;
        Self {
            name: &window.name,
            image: window.image,
            image_label: view.image.map_or("", |image| &image.label),
            kind: window.kind,
            definition: &window.definition,
            entries: window.entries,
            discarded_entries: window.discarded_entries,
            iterations: window.iterations,
            iterations_told: window.iterations_told,
            iterations_per_repeat: &window.iterations_per_repeat,
            unfinished: window.unfinished,
            crossed_ends: window.crossed_ends,
            stray_ends: window.stray_ends,
            ended_by_thread: window.ended_by_thread,
            peak_bytes: window.peak_bytes,
            peak_uncertainty_bytes: window.peak_uncertainty_bytes,
            lost: window.lost,
            counted: Counted::of(view.counts, window, &profile.environment),
            captures: Captures::of(view.captures),
            left_out: LeftOut {
                not_under_stacks: view.left_out.not_under_stacks,
                not_under: view.left_out.not_under,
                filtered_stacks: view.left_out.filtered_stacks,
                filtered: view.left_out.filtered,
            },
            rows: view.rows.iter().map(|row| RowReport::of(profile, view, row, known, frames)).collect(),
        }
    }
}

/// Counts and what follows from them.
#[derive(Serialize)]
struct Counted {
    counts: Known<u64>,
    /// These are `null` where blocks were not followed.
    live: Option<u64>,
    live_bytes: Option<u64>,
    live_at_exit: Option<u64>,
    live_at_exit_bytes: Option<u64>,
    /// Each count per iteration; `null` when there was no iteration.
    per_iteration: Option<Known<f64>>,
}

impl Counted {
    fn of(counts: Counts, window: &Window, environment: &Environment) -> Self {
        let known = |value: u64| environment.lifetimes.then_some(value);
        Self {
            counts: Known::of(&counts, environment, |value| value),
            live: known(counts.live()),
            live_bytes: known(counts.live_bytes()),
            live_at_exit: known(counts.live_at_exit()),
            live_at_exit_bytes: known(counts.live_at_exit_bytes()),
            per_iteration: (window.iterations > 0)
                .then(|| Known::of(&counts, environment, |value| window.per_iteration(value).unwrap_or(0.0))),
        }
    }
}

/// The fields of [`Counts`], `null` where they were not measured.
#[derive(Serialize)]
struct Known<T> {
    allocations: T,
    bytes: Option<T>,
    freed: Option<T>,
    freed_bytes: Option<T>,
    freed_later: Option<T>,
    freed_later_bytes: Option<T>,
    reallocs: Option<T>,
    reallocs_in_place: Option<T>,
    reallocs_moved: Option<T>,
    temporary: Option<T>,
    temporary_bytes: Option<T>,
    failed: Option<T>,
    reallocs_to_zero: Option<T>,
    discarded: Option<T>,
    discarded_bytes: Option<T>,
}

impl<T> Known<T> {
    fn of(counts: &Counts, environment: &Environment, value: impl Fn(u64) -> T) -> Self {
        let known = |metric: Metric, count: u64| environment.knows(metric).then(|| value(count));
        // A recording of heaptally's without frees has zeros here.
        let freed =
            |count: u64| (environment.lifetimes || environment.origin.is_none()).then(|| value(count));
        Self {
            allocations: value(counts.allocations),
            bytes: known(Metric::Bytes, counts.bytes),
            freed: freed(counts.freed),
            freed_bytes: freed(counts.freed_bytes),
            freed_later: freed(counts.freed_later),
            freed_later_bytes: freed(counts.freed_later_bytes),
            reallocs: known(Metric::Reallocs, counts.reallocs),
            reallocs_in_place: known(Metric::Reallocs, counts.reallocs_in_place),
            reallocs_moved: known(Metric::Reallocs, counts.reallocs_moved),
            temporary: known(Metric::Temporary, counts.temporary),
            temporary_bytes: known(Metric::Temporary, counts.temporary_bytes),
            failed: known(Metric::Failed, counts.failed),
            reallocs_to_zero: known(Metric::Reallocs, counts.reallocs_to_zero),
            discarded: known(Metric::Windows, counts.discarded),
            discarded_bytes: known(Metric::Windows, counts.discarded_bytes),
        }
    }
}

#[derive(Serialize)]
struct Captures {
    complete: u64,
    frame_pointer: u64,
    cut: u64,
    #[serde(skip_serializing_if = "is_zero")]
    async_unknown: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Captures {
    fn of(events: CaptureEvents) -> Self {
        let CaptureEvents { complete, frame_pointer, cut, async_unknown } = events;
        Self { complete, frame_pointer, cut, async_unknown }
    }
}

#[derive(Serialize)]
struct LeftOut {
    not_under_stacks: u64,
    not_under: Counts,
    filtered_stacks: u64,
    filtered: Counts,
}

#[derive(Serialize)]
struct RowReport<'p> {
    #[serde(flatten)]
    counted: Counted,
    /// Of the window's allocations, from 0 to 1.
    share: f64,
    entries: Option<u64>,
    first_entry: Option<u64>,
    last_entry: Option<u64>,
    /// By run of the program; empty when there was one.
    repeats: Vec<RepeatValue>,
    unstable: bool,
    /// What is allocated, where that is certain.
    kind: Option<String>,
    /// Of a class's instance: the class.
    allocated_type: Option<String>,
    capture: Capture,
    cut_reason: Option<&'p str>,
    /// Callers were left out (`under`).
    trimmed: bool,
    /// Index into the report's frames.
    call_site: Option<usize>,
    /// Where it stands in the stack.
    call_site_position: Option<usize>,
    /// Indices into the report's frames, leaf first.
    stack: Vec<usize>,
    /// Of an async function's stack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    executors: Vec<ExecutorReport>,
}

/// What stood behind an async function when it was resumed.
#[derive(Serialize)]
struct ExecutorReport {
    /// Of the stack, in all windows.
    allocations: u64,
    /// Indices into the report's frames, the innermost one first.
    stack: Vec<usize>,
}

impl<'p> RowReport<'p> {
    fn of(
        profile: &'p Profile,
        view: &WindowView<'p>,
        row: &RowView<'p>,
        (sites, executors, kinds): Lookups<'_, 'p>,
        frames: &mut FrameTable<'p>,
    ) -> Self {
        let counts = row.row.counts;
        let share = match view.counts.allocations {
            0 => 0.0,
            all => counts.allocations as f64 / all as f64,
        };
        let site = row.call_site(profile, sites);
        let kind = kinds.of(row, sites).map(|kind| kinds.kind(kind));
        Self {
            counted: Counted::of(counts, view.window, &profile.environment),
            share,
            entries: row.row.entries,
            first_entry: row.row.first_entry,
            last_entry: row.row.last_entry,
            repeats: row.row.repeats.clone(),
            unstable: row.row.is_unstable(view.window),
            kind: kind.as_ref().map(Kind::name),
            allocated_type: kind.and_then(|kind| kind.of_type),
            capture: row.stack.capture,
            cut_reason: known(&row.stack.cut_reason),
            trimmed: row.is_trimmed,
            call_site: site.map(|(_, frame)| frames.index(profile, &frame)),
            call_site_position: site.map(|(at, _)| at),
            stack: row.frames(profile).map(|frame| frames.index(profile, &frame)).collect(),
            executors: executors
                .of(row.row.stack)
                .iter()
                .map(|&executor| ExecutorReport {
                    allocations: executor.allocations,
                    stack: executor::frames(profile, executor)
                        .map(|frame| frames.index(profile, &frame))
                        .collect(),
                })
                .collect(),
        }
    }
}

/// A logical frame; what is unknown is `null`.
#[derive(Serialize)]
struct Frame<'p> {
    function: Option<&'p str>,
    system_name: Option<&'p str>,
    file: Option<&'p str>,
    line: Option<u32>,
    inlined: bool,
    kind: FrameKind,
    is_folded: bool,
    /// Index into the report's modules.
    module: Option<usize>,
    /// The SVMA; the AVMA outside of modules.
    address: u64,
}

impl<'p> Frame<'p> {
    fn of(profile: &'p Profile, frame: &frame::Frame<'p>) -> Self {
        let function = frame.function;
        Self {
            function: function.and_then(|function| known(&function.name)),
            system_name: function.and_then(|function| known(&function.system_name)),
            file: function.and_then(|function| known(&function.file)),
            line: (frame.line > 0).then_some(frame.line),
            inlined: frame.inlined,
            kind: frame.kind,
            is_folded: function.is_some_and(|function| function.is_folded),
            module: profile.locations.get(frame.location).and_then(|location| location.module),
            address: frame.address,
        }
    }
}

#[derive(Serialize)]
struct Thread {
    /// Index into the report's images.
    image: usize,
    lives: u64,
    name: String,
    last_name: String,
    /// Index into the report's frames.
    start: Option<usize>,
    totals: Vec<Total>,
}

#[derive(Serialize)]
struct Total {
    /// The window's name.
    window: String,
    /// Index into the report's images, of the window's image.
    image: usize,
    allocations: u64,
    bytes: u64,
    freed: u64,
    freed_bytes: u64,
}

impl Thread {
    fn of<'p>(profile: &'p Profile, thread: &'p ThreadLife, frames: &mut FrameTable<'p>) -> Self {
        let start = thread.start.and_then(|at| location_frames(profile, at).last());
        let total = |(&id, total): (&WindowId, &ThreadTotal)| {
            let window = profile.windows.get(id);
            Total {
                window: window.map_or_else(String::new, |window| window.name.clone()),
                image: window.map_or(0, |window| window.image),
                allocations: total.allocations,
                bytes: total.bytes,
                freed: total.freed,
                freed_bytes: total.freed_bytes,
            }
        };
        Self {
            image: thread.image,
            lives: thread.lives,
            name: thread.name.clone(),
            last_name: thread.last_name.clone(),
            start: start.map(|frame| frames.index(profile, &frame)),
            totals: thread.totals.iter().map(total).collect(),
        }
    }
}

/// A sum that differs between the rows and the threads of a window.
#[derive(Serialize)]
struct Mismatch<'p> {
    window: &'p str,
    sum: &'static str,
    rows: u64,
    threads: u64,
    lost: u64,
}

fn mismatches(profile: &Profile) -> Vec<Mismatch<'_>> {
    profile
        .check_sums()
        .into_iter()
        .map(|mismatch| Mismatch {
            window: profile.windows.get(mismatch.window).map_or("", |window| &window.name),
            sum: match mismatch.sum {
                Sum::Allocations => "allocations",
                Sum::Bytes => "bytes",
                Sum::Freed => "freed",
                Sum::FreedBytes => "freed_bytes",
            },
            rows: mismatch.rows,
            threads: mismatch.threads,
            lost: mismatch.lost,
        })
        .collect()
}

/// A text that is not empty.
fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
