//! Two profiles compared, for programs: one JSON object, `schema/diff.v1.schema.json` describes it.
//!
//! ```text
//! {"schema":"heaptally-diff","version":1,"differs":true,
//!  "base":{"environment":{…}},"change":{…},"selection":{…},"conditions":[…],
//!  "first":{"window":0,"entry":0},
//!  "windows":[{"name":"parse","iterations":{"base":1000,"change":1000},
//!              "allocations":{"base":75000,"change":76000,"delta_per_iteration":1.0,…},"bytes":{…},"pairing":{…},
//!              "entries":[{"kind":"new","call_site":7,"allocations":{…},"stack":[0,3,7,8],…}]}],
//!  "unpaired":[{"side":"base","name":"old",…}],"frames":[{"function":"malloc",…},…]}
//! ```
//!
//! Windows in the background are left out, but for those that were asked for. Entries are in the order of the text, and all
//! of them are there; `first` says which one the text begins with. Frames stand in a table of their own; `call_site` and `stack` refer to it by index. A percentage of
//! nothing is `null`. Fields may be added within a version; a change of what is there raises it.

use heaptally_profile::call_site::CallSites;
use heaptally_profile::diff::{Diff, Entry, Kind, LineChange, Pairing, Side, What, WindowDiff};
use heaptally_profile::frame;
use heaptally_profile::kind::{Kind as AllocationKind, Kinds};
use heaptally_profile::model::{Counts, Environment, FrameKind, LocationId, Profile};
use heaptally_profile::view::{RowView, Selection, WindowView};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::Options;
use crate::escape::escape_json;

/// The diff's `schema`.
const SCHEMA: &str = "heaptally-diff";
/// The version that is written.
pub const VERSION: u32 = 1;

/// The diff, ended by a line feed.
pub fn diff_json(diff: &Diff<'_>, options: &Options) -> String {
    let sites = diff.profiles.map(|profile| CallSites::new(profile, &options.rules));
    let kinds = diff.profiles.map(|profile| Kinds::new(profile, &options.rules));
    let mut frames = FrameTable { frames: Vec::new(), known: FxHashMap::default(), told: (&sites, &kinds) };
    let windows = diff.compared().map(|window| WindowReport::of(diff, window, &mut frames)).collect();
    let unpaired = [Side::Base, Side::Change].into_iter().flat_map(|side| {
        let windows = diff.unpaired[side.index()].iter().filter(|view| !view.in_background);
        windows.map(move |view| Unpaired::of(side, view))
    });
    let report = Report {
        schema: SCHEMA,
        version: VERSION,
        differs: diff.differs(),
        base: Recording::of(diff.profiles[0]),
        change: Recording::of(diff.profiles[1]),
        selection: SelectionReport::of(&options.selection, &diff.stack),
        conditions: diff.conditions.iter().map(ConditionReport::of).collect(),
        first: First::of(diff),
        windows,
        unpaired: unpaired.collect(),
        frames: frames.frames,
    };
    // NOTE: numbers, text, sequences and structs only, which JSON can always hold.
    let mut json = escape_json(&serde_json::to_string(&report).unwrap_or_default()).into_owned();
    json.push('\n');
    json
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    version: u32,
    differs: bool,
    base: Recording<'a>,
    change: Recording<'a>,
    selection: SelectionReport<'a>,
    conditions: Vec<ConditionReport<'a>>,
    first: Option<First>,
    windows: Vec<WindowReport<'a>>,
    unpaired: Vec<Unpaired<'a>>,
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Recording<'a> {
    environment: &'a Environment,
    images: Vec<&'a str>,
}

impl<'a> Recording<'a> {
    fn of(profile: &'a Profile) -> Self {
        let images = profile.images.iter().map(|image| image.label.as_str()).collect();
        Self { environment: &profile.environment, images }
    }
}

/// What was asked for: patterns as they were given.
#[derive(Serialize)]
struct SelectionReport<'a> {
    windows: &'a [String],
    under: Vec<&'a str>,
    filter: Vec<&'a str>,
    exclude: Vec<&'a str>,
    root: Vec<&'a str>,
    stack: Vec<&'a str>,
}

impl<'a> SelectionReport<'a> {
    fn of(selection: &'a Selection, stack: &'a [String]) -> Self {
        Self {
            windows: &selection.windows,
            under: selection.under.iter().map(|pattern| pattern.as_str()).collect(),
            filter: selection.filter.iter().map(|pattern| pattern.as_str()).collect(),
            exclude: selection.exclude.iter().map(|pattern| pattern.as_str()).collect(),
            root: selection.root.iter().map(|pattern| pattern.as_str()).collect(),
            stack: stack.iter().map(String::as_str).collect(),
        }
    }
}

#[derive(Serialize)]
struct ConditionReport<'a> {
    what: &'static str,
    base: &'a str,
    change: &'a str,
}

impl<'a> ConditionReport<'a> {
    fn of(condition: &'a heaptally_profile::diff::Condition) -> Self {
        let what = match condition.what {
            What::Architecture => "architecture",
            What::Machine => "machine",
            What::Libc => "libc",
            What::Allocator => "allocator",
            What::Compilers => "compilers",
            What::Recorder => "recorder",
            What::Lifetimes => "lifetimes",
            What::TaskOrigins => "task_origins",
            What::Sampling => "sampling",
            What::Incomplete => "incomplete",
            What::Ending => "ending",
            What::Windows => "windows",
            What::Definitions => "definitions",
            What::Nameless => "nameless",
            What::Estimates => "estimates",
            What::LiveOnly => "live_only",
        };
        let [base, change] = &condition.values;
        Self { what, base, change }
    }
}

/// The most important entry: its window and itself, by index.
#[derive(Serialize)]
struct First {
    window: usize,
    entry: usize,
}

impl First {
    fn of(diff: &Diff<'_>) -> Option<Self> {
        let (window, entry) = *diff.order().first()?;
        // Windows in the background are left out.
        let before = diff.windows.iter().take(window).filter(|window| window.is_in_background()).count();
        Some(Self { window: window - before, entry })
    }
}

/// A value of both sides.
#[derive(Serialize)]
struct Both<T> {
    base: T,
    change: T,
}

impl<T> Both<T> {
    fn of([base, change]: [T; 2]) -> Self {
        Self { base, change }
    }
}

/// A count of both sides.
#[derive(Serialize)]
struct Numbers {
    base: u64,
    change: u64,
    base_per_iteration: f64,
    change_per_iteration: f64,
    delta_per_iteration: f64,
    /// Of the base's; `null` when that is 0.
    percent: Option<f64>,
}

impl Numbers {
    fn of(window: &WindowDiff<'_>, counts: &[Counts; 2], what: fn(&Counts) -> u64) -> Self {
        let [base, change] = counts.each_ref().map(what);
        Self::new(window, [base, change])
    }

    fn new(window: &WindowDiff<'_>, [base, change]: [u64; 2]) -> Self {
        let base_per_iteration = window.per_iteration(Side::Base, base);
        let delta_per_iteration = window.delta([base, change]);
        Self {
            base,
            change,
            base_per_iteration,
            change_per_iteration: window.per_iteration(Side::Change, change),
            delta_per_iteration,
            percent: (base > 0).then(|| delta_per_iteration / base_per_iteration * 100.0),
        }
    }
}

#[derive(Serialize)]
struct WindowReport<'a> {
    name: &'a str,
    image_labels: Both<&'a str>,
    entries_of_window: Both<u64>,
    iterations: Both<u64>,
    allocations: Numbers,
    bytes: Numbers,
    pairing: PairingReport,
    entries: Vec<EntryReport>,
}

impl<'a> WindowReport<'a> {
    fn of(diff: &Diff<'a>, window: &WindowDiff<'a>, frames: &mut FrameTable<'a, '_>) -> Self {
        let views = &window.views;
        let label = |view: &WindowView<'a>| view.image.map_or("", |image| image.label.as_str());
        Self {
            name: &views[1].window.name,
            image_labels: Both::of(views.each_ref().map(label)),
            entries_of_window: Both::of(views.each_ref().map(|view| view.window.entries)),
            iterations: Both::of(views.each_ref().map(|view| view.window.iterations)),
            allocations: Numbers::of(window, &window.counts, |counts| counts.allocations),
            bytes: Numbers::of(window, &window.counts, |counts| counts.bytes),
            pairing: PairingReport::of(&window.pairing),
            entries: window
                .entries
                .iter()
                .map(|entry| EntryReport::of(diff, window, entry, frames))
                .collect(),
        }
    }
}

#[derive(Serialize)]
struct PairingReport {
    unchanged: u64,
    one_off: u64,
    equal: u64,
    library: u64,
    inlining: u64,
    renamed: u64,
    other_site: u64,
    base_only: u64,
    change_only: u64,
    unstable: u64,
}

impl PairingReport {
    fn of(pairing: &Pairing) -> Self {
        // Without `..`: a new way to pair must be told here.
        let Pairing {
            unchanged,
            one_off,
            equal,
            library,
            inlining,
            renamed,
            other_site,
            base_only,
            change_only,
            unstable,
        } = *pairing;
        Self {
            unchanged,
            one_off,
            equal,
            library,
            inlining,
            renamed,
            other_site,
            base_only,
            change_only,
            unstable,
        }
    }
}

#[derive(Serialize)]
struct EntryReport {
    kind: &'static str,
    /// What is allocated: a kind, and of a class's instance the class.
    allocation_kind: Option<String>,
    allocated_type: Option<String>,
    allocations: Numbers,
    bytes: Numbers,
    /// The side that `call_site` and `stack` are of.
    side: &'static str,
    /// Index into the diff's frames.
    call_site: Option<usize>,
    /// Where it stands in the stack.
    call_site_position: usize,
    /// The line of it that changed, where that is known.
    line: Option<u32>,
    /// Indices into the diff's frames, leaf first.
    stack: Vec<usize>,
    /// The position in the stack from which outwards both sides have it.
    parting: Option<usize>,
    /// Lines of the call site that changed.
    lines: Vec<LineReport>,
    /// How many pairs of stacks changed.
    pairs: usize,
    /// Index into the window's entries.
    counterpart: Option<usize>,
}

impl EntryReport {
    fn of<'a>(
        diff: &Diff<'a>,
        window: &WindowDiff<'a>,
        entry: &Entry,
        frames: &mut FrameTable<'a, '_>,
    ) -> Self {
        let (side, row) = entry.row;
        let row = window.views[side.index()].rows.get(row);
        let stack = row.map_or_else(Vec::new, |row| frames.stack(diff, side, row));
        let line = |line: &LineChange| LineReport {
            base_line: line.lines[0],
            change_line: line.lines[1],
            allocations: Numbers::new(window, line.allocations),
            bytes: Numbers::new(window, line.bytes),
        };
        let allocated = row.and_then(|row| frames.kind(side, row));
        Self {
            kind: kind(entry.kind),
            allocation_kind: allocated.as_ref().map(AllocationKind::name),
            allocated_type: allocated.and_then(|allocated| allocated.of_type),
            allocations: Numbers::of(window, &entry.counts, |counts| counts.allocations),
            bytes: Numbers::of(window, &entry.counts, |counts| counts.bytes),
            side: name(side),
            call_site: stack.get(entry.site).copied(),
            call_site_position: entry.site,
            line: line_of(diff, entry, row),
            stack,
            parting: entry.parting,
            lines: entry.lines.iter().map(line).collect(),
            pairs: entry.pairs.len(),
            counterpart: entry.counterpart,
        }
    }
}

fn line_of(diff: &Diff<'_>, entry: &Entry, row: Option<&RowView<'_>>) -> Option<u32> {
    let frame = row?.frames(diff.profiles[entry.row.0.index()]).nth(entry.site)?;
    (frame.line > 0 && !entry.is_line_open).then_some(frame.line)
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::New => "new",
        Kind::Gone => "gone",
        Kind::More => "more",
        Kind::Fewer => "fewer",
        Kind::Larger => "larger",
        Kind::Smaller => "smaller",
        Kind::Repeated => "repeated",
        Kind::Once => "once",
        Kind::Rerouted => "rerouted",
        Kind::RenamedFrom => "renamed_from",
        Kind::RenamedTo => "renamed_to",
        Kind::MovedFrom => "moved_from",
        Kind::MovedTo => "moved_to",
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Base => "base",
        Side::Change => "change",
    }
}

#[derive(Serialize)]
struct LineReport {
    base_line: Option<u32>,
    change_line: Option<u32>,
    allocations: Numbers,
    bytes: Numbers,
}

#[derive(Serialize)]
struct Unpaired<'a> {
    side: &'static str,
    name: &'a str,
    image_label: &'a str,
    iterations: u64,
    allocations: u64,
    bytes: u64,
}

impl<'a> Unpaired<'a> {
    fn of(side: Side, view: &WindowView<'a>) -> Self {
        Self {
            side: name(side),
            name: &view.window.name,
            image_label: view.image.map_or("", |image| &image.label),
            iterations: view.window.iterations,
            allocations: view.counts.allocations,
            bytes: view.counts.bytes,
        }
    }
}

/// The frames of a diff, each once for either side.
struct FrameTable<'a, 'r> {
    frames: Vec<Frame<'a>>,
    known: FxHashMap<(Side, LocationId, usize), usize>,
    /// By side.
    told: (&'r [CallSites<'a>; 2], &'r [Kinds<'a>; 2]),
}

impl<'a> FrameTable<'a, '_> {
    /// What a row's allocations are.
    fn kind(&self, side: Side, row: &RowView<'a>) -> Option<AllocationKind> {
        let (sites, kinds) = self.told;
        let kinds = &kinds[side.index()];
        kinds.of(row, &sites[side.index()]).map(|kind| kinds.kind(kind))
    }

    fn stack(&mut self, diff: &Diff<'a>, side: Side, row: &RowView<'a>) -> Vec<usize> {
        let frames = row.frames(diff.profiles[side.index()]);
        let index = |frame: frame::Frame<'a>| {
            *self.known.entry((side, frame.location, frame.line_index)).or_insert_with(|| {
                self.frames.push(Frame::of(&frame));
                self.frames.len() - 1
            })
        };
        frames.map(index).collect()
    }
}

/// A logical frame; what is unknown is `null`.
#[derive(Serialize)]
struct Frame<'a> {
    function: Option<&'a str>,
    system_name: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    inlined: bool,
    kind: FrameKind,
    module: Option<&'a str>,
    /// The SVMA; the AVMA outside of modules.
    address: u64,
}

impl<'a> Frame<'a> {
    fn of(frame: &frame::Frame<'a>) -> Self {
        let known = |text: &'a str| (!text.is_empty()).then_some(text);
        Self {
            function: frame.name(),
            system_name: frame.function.and_then(|function| known(&function.system_name)),
            file: frame.file(),
            line: (frame.line > 0).then_some(frame.line),
            inlined: frame.inlined,
            kind: frame.kind,
            module: frame.module.map(|module| module.path.as_str()),
            address: frame.address,
        }
    }
}
