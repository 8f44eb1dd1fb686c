//! Two profiles compared, for people.
//!
//! ```text
//! +1.00 allocs/iter in "parse": Parser::name  src/parser.rs:118 (new)
//!
//! window "parse"   75.00 → 76.00 allocs/iter (+1.00, +1.3 %)   4,114 → 4,138 B/iter (+24)
//!
//!   allocs/iter  B/iter  change  call site
//!         +1.00     +24     new  Parser::name  src/parser.rs:118
//!                                  was not allocating before
//!                                  the base has this stack from Parser::header outwards
//!                                  calls String::clone, from Parser::header ← main
//!   unchanged: 60 stacks   (paired although they differ: 12 by inlining)
//! ```
//!
//! The first line is the answer: the first entry of all windows.

mod answer;
mod entry;
mod explain;
mod note;
mod tree;

use heaptally_profile::call_site::CallSites;
use heaptally_profile::diff::{Diff, Entry, Kind, Side, WindowDiff};
use heaptally_profile::model::{Counts, Metric};
use heaptally_profile::view::WindowView;

use super::Context;
use super::page::Page;
use crate::Options;
use crate::escape::escape;
use crate::number::{count, counted, per_iteration};

pub use note::words;

/// What is shown of each window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// The call sites that changed.
    #[default]
    Entries,
    /// A tree of functions with the differences carried up.
    Tree,
    /// How each stack was paired.
    Pairing,
}

/// A diff with what its words are made from.
pub(super) struct Sides<'a, 'p> {
    pub(super) diff: &'a Diff<'p>,
    pub(super) contexts: [Context<'a>; 2],
    pub(super) options: &'a Options,
}

impl Sides<'_, '_> {
    /// Whether both sides know bytes.
    pub(super) fn has_bytes(&self) -> bool {
        self.diff.profiles.iter().all(|profile| profile.environment.knows(Metric::Bytes))
    }
}

/// The diff. Of the options those for text count.
pub fn text(diff: &Diff<'_>, options: &Options, show: Show) -> String {
    let sites = diff.profiles.map(|profile| CallSites::new(profile, &options.rules));
    let contexts = [0, 1].map(|side| Context::new(diff.profiles[side], options, &sites[side]));
    let sides = Sides { diff, contexts, options };
    let mut page = Page::new(options.color);
    page.head(&answer::answer(&sides));
    for note in diff.conditions.iter().map(words).chain(note::background(diff)) {
        page.line(&format!("note: {note}"));
    }
    for window in diff.compared() {
        page.line("");
        page.head(&head(&sides, window));
        page.line("");
        match show {
            Show::Entries => entry::entries(&mut page, &sides, window),
            Show::Tree => tree::tree(&mut page, &sides, window),
            Show::Pairing => explain::pairs(&mut page, &sides, window),
        }
        page.line(&format!("  {}", pairing(window)));
    }
    unpaired(&mut page, diff, sides.has_bytes());
    page.text()
}

/// What happened to an entry, in a word.
pub(crate) fn kind(kind: Kind) -> &'static str {
    entry::kind(kind)
}

/// Some entries of a window, with their heading.
pub(super) fn table(page: &mut Page, sides: &Sides<'_, '_>, window: &WindowDiff<'_>, entries: &[&Entry]) {
    entry::table(page, sides, window, entries);
}

/// The entries of all windows in their order, in five cells: the window, allocations, bytes, the kind, the call site.
pub(crate) fn cells(diff: &Diff<'_>, options: &Options) -> Vec<[String; 5]> {
    let sites = diff.profiles.map(|profile| CallSites::new(profile, &options.rules));
    let contexts = [0, 1].map(|side| Context::new(diff.profiles[side], options, &sites[side]));
    let sides = Sides { diff, contexts, options };
    let cells = |(window, entry): (usize, usize)| {
        let window = &diff.windows[window];
        let (numbers, entry) = (Numbers::of(window), &window.entries[entry]);
        [
            escape(&window.views[1].window.name).into_owned(),
            numbers.allocations(&numbers.delta(window, allocations(entry), false)),
            match sides.has_bytes() {
                true => format!("{} {}", numbers.delta(window, bytes(entry), true), numbers.unit("B")),
                false => "unknown".to_owned(),
            },
            entry::kind(entry.kind).to_owned(),
            entry::site(&sides, window, entry, None).join(" "),
        ]
    };
    diff.order().into_iter().map(cells).collect()
}

/// `window "parse"   75.00 → 76.00 allocs/iter (+1.00, +1.3 %)   4,114 → 4,138 B/iter (+24)`.
fn head(sides: &Sides<'_, '_>, window: &WindowDiff<'_>) -> String {
    let numbers = Numbers::of(window);
    let view = &window.views[1];
    let mut name = format!("window \"{}\"", escape(&view.window.name));
    if let Some(image) = view.image.filter(|_| sides.diff.profiles[1].images.len() > 1) {
        name.push_str(&format!(" of {}", escape(&image.label)));
    }
    let iterations = window.views.each_ref().map(|view| view.window.iterations);
    if iterations[0] != iterations[1] {
        name.push_str(&format!(
            "   {} → {}",
            count(iterations[0]),
            counted(iterations[1], "iteration", "iterations")
        ));
    }
    let part = |what: fn(&Counts) -> u64, is_bytes: bool| {
        let counts = [0, 1].map(|side| what(&window.counts[side]));
        let [base, change] = [Side::Base, Side::Change]
            .map(|side| numbers.value(window, side, counts[side.index()], is_bytes));
        let change = match is_bytes {
            true => format!("{change} {}", numbers.unit("B")),
            false => numbers.allocations(&change),
        };
        if window.sign(counts) == 0 {
            return format!("{change} (no change)");
        }
        let once = what(&window.one_off);
        if once > 0 && window.sign(counts.map(|count| count.saturating_sub(once))) == 0 {
            return format!("{base} → {change} (no change but for what is done once)");
        }
        let percent = match window.per_iteration(Side::Base, counts[0]) {
            base if base > 0.0 => format!(", {:+.1} %", window.delta(counts) / base * 100.0),
            _ => String::new(),
        };
        format!("{base} → {change} ({}{percent})", numbers.delta(window, counts, is_bytes))
    };
    let allocations = part(|of| of.allocations, false);
    match sides.has_bytes() {
        true => format!("{name}   {allocations}   {}", part(|of| of.bytes, true)),
        false => format!("{name}   {allocations}   bytes unknown"),
    }
}

/// `unchanged: 60 stacks   (paired although they differ: 12 by inlining)`.
fn pairing(window: &WindowDiff<'_>) -> String {
    let pairing = &window.pairing;
    let differing: Vec<String> = [
        (pairing.library, "library frames"),
        (pairing.inlining, "inlining"),
        (pairing.renamed, "names of callers"),
        (pairing.other_site, "the name of the call site"),
    ]
    .into_iter()
    .filter(|(stacks, _)| *stacks > 0)
    .map(|(stacks, what)| format!("{} by {what}", count(stacks)))
    .collect();
    let mut line = format!("unchanged: {}", counted(pairing.unchanged, "stack", "stacks"));
    let mut notes = Vec::new();
    if !differing.is_empty() {
        notes.push(format!("paired although they differ: {}", differing.join(", ")));
    }
    for (stacks, side) in [(pairing.base_only, "base"), (pairing.change_only, "change")] {
        if stacks > 0 {
            notes.push(format!("in the {side} only: {}", count(stacks)));
        }
    }
    if pairing.one_off > 0 {
        notes.push(format!("once in all on both sides, whatever the iterations: {}", count(pairing.one_off)));
    }
    if pairing.unstable > 0 {
        notes.push(format!("within what runs differ by: {}", count(pairing.unstable)));
    }
    if !notes.is_empty() {
        line.push_str(&format!("   ({})", notes.join("; ")));
    }
    line
}

fn unpaired(page: &mut Page, diff: &Diff<'_>, has_bytes: bool) {
    let told = |side: usize, name: &str| -> Vec<String> {
        let windows = diff.unpaired[side].iter().filter(|window| !window.in_background);
        let line = |view: &WindowView<'_>| {
            format!(
                "\"{}\" in the {name} only: {}, {}",
                escape(&view.window.name),
                counted(view.counts.allocations, "allocation", "allocations"),
                if has_bytes {
                    format!("{} B", count(view.counts.bytes))
                } else {
                    "bytes unknown".to_owned()
                }
            )
        };
        windows.map(line).collect()
    };
    let mut lines = told(0, "base");
    lines.extend(told(1, "change"));
    page.part("windows of one side", &lines);
}

/// How the numbers of a window are written: divided by iterations where either side has several.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    is_divided: bool,
}

impl Numbers {
    pub(super) fn of(window: &WindowDiff<'_>) -> Self {
        Self { is_divided: window.views.iter().any(|view| view.window.iterations > 1) }
    }

    pub(super) fn unit(self, unit: &str) -> String {
        if self.is_divided { format!("{unit}/iter") } else { unit.to_owned() }
    }

    /// A number of allocations with its unit: `+1 alloc`, `2 allocs`, `1.00 allocs/iter`.
    pub(super) fn allocations(self, number: &str) -> String {
        let is_one = number.trim_start_matches(['+', '-']) == "1";
        format!("{number} {}", if is_one { "alloc".to_owned() } else { self.unit("allocs") })
    }

    pub(super) fn value(self, window: &WindowDiff<'_>, side: Side, value: u64, is_bytes: bool) -> String {
        self.number(window.per_iteration(side, value), is_bytes)
    }

    /// With its sign.
    pub(super) fn delta(self, window: &WindowDiff<'_>, counts: [u64; 2], is_bytes: bool) -> String {
        let sign = match window.sign(counts) {
            1 => "+",
            -1 => "-",
            _ => "",
        };
        format!("{sign}{}", self.number(window.delta(counts).abs(), is_bytes))
    }

    fn number(self, value: f64, is_bytes: bool) -> String {
        match self.is_divided {
            false => count(value as u64),
            true if is_bytes => crate::number::bytes_per_iteration(Some(value)),
            true => per_iteration(Some(value)),
        }
    }
}

/// Of an entry, allocations of both sides.
pub(super) fn allocations(entry: &Entry) -> [u64; 2] {
    entry.counts.each_ref().map(|counts| counts.allocations)
}

/// … and bytes.
pub(super) fn bytes(entry: &Entry) -> [u64; 2] {
    entry.counts.each_ref().map(|counts| counts.bytes)
}
