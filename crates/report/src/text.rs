//! The report for people.
//!
//! ```text
//! window "parse"   1,000 iterations   76.00 allocs/iter   4,138 B/iter   0 live at end
//!   76,000 allocations of 4,138,000 B: 76,000 freed while it was open, 0 later, 0 still live at exit
//!
//!   allocs/iter  B/iter   share  call site
//!         40.00   1,920  52.6 %  Header::push_value  src/header.rs:88
//!                                  calls alloc::vec::Vec<T>::push (inlined), from parse_line (inlined) ← parse ← main
//! ```
//!
//! A line is a stack, a call site, a function or a part of a tree, as [`Layout`] says. In the short form frames that the
//! rules list are folded, and of many callers the middle is; `full` shows every frame on a line of its own. Recursion
//! is shown once, with how often it is there. Names are whole unless there is a width to keep.

pub mod check;
pub mod diff;
mod ending;
mod function;
mod group;
mod head;
mod page;
mod recursion;
mod stack;
mod table;
mod tree;
mod word;

use heaptally_profile::call_site::CallSites;
use heaptally_profile::kind::Kinds;
use heaptally_profile::model::{Profile, Row};
use heaptally_profile::swift_name::SwiftFrames;
use heaptally_profile::view::{RowView, View, WindowView};
use rustc_hash::FxHashMap;

use crate::Options;
use crate::escape::quote;
use crate::executor::Executors;
use crate::number::{count, counted};
use crate::options::Layout;
use page::Page;
use table::{Columns, Place, Table};

/// What the parts of a report are made from.
pub(crate) struct Context<'a> {
    profile: &'a Profile,
    options: &'a Options,
    sites: &'a CallSites<'a>,
    executors: Executors<'a>,
    swift: SwiftFrames,
    kinds: Kinds<'a>,
    words: word::Words,
}

impl<'a> Context<'a> {
    fn new(profile: &'a Profile, options: &'a Options, sites: &'a CallSites<'a>) -> Self {
        Self {
            profile,
            options,
            sites,
            executors: Executors::new(profile),
            swift: SwiftFrames::new(profile),
            kinds: Kinds::new(profile, &options.rules),
            words: word::Words::default(),
        }
    }
}

/// The report of a profile.
pub fn text(profile: &Profile, options: &Options) -> String {
    let sites = CallSites::new(profile, &options.rules);
    let context = Context::new(profile, options, &sites);
    let view = shown(options, profile, &sites);
    let mut page = Page::new(options.color);
    head::origin(&mut page, &context);
    missing_windows(&mut page, &context);
    if profile.windows.is_empty() {
        page.line("no window was opened");
    }
    let (background, windows): (Vec<_>, Vec<_>) =
        view.windows.iter().partition(|window| window.in_background);
    head::background(&mut page, &context, &background);
    let (windows, more) = windows.split_at(limited(windows.len(), options.limit));
    for (at, window) in windows.iter().enumerate() {
        if at > 0 {
            page.line("");
        }
        head::head(&mut page, &context, window);
        rows(&mut page, &context, window);
    }
    if !more.is_empty() {
        let allocations = more.iter().map(|view| view.counts.allocations).fold(0, u64::saturating_add);
        page.line("");
        page.line(&format!(
            "{} with {}; --limit 0 shows all, --window NAME one",
            counted(more.len() as u64, "more window", "more windows"),
            counted(allocations, "allocation", "allocations"),
        ));
    }
    ending::ending(&mut page, &context, &view);
    page.text()
}

/// The first call sites of each window, for the end of a run. At most `limit` windows and stacks of each.
pub fn brief(profile: &Profile, options: &Options) -> String {
    let sites = CallSites::new(profile, &options.rules);
    let context = Context::new(profile, options, &sites);
    let view = shown(options, profile, &sites);
    let mut page = Page::new(options.color);
    let windows = view.windows.iter().filter(|view| !view.in_background && !view.rows.is_empty());
    for window in windows.take(options.limit) {
        page.head(&head::line(&context, window));
        let shown = limited(window.rows.len(), options.limit);
        let columns =
            Columns::of(window.window, options.sort, window.counts).known_to(&context.profile.environment);
        let mut table = Table::new(columns.titles(), "call site");
        let sites = group::sites_of(&context, window);
        for site in sites.iter().take(shown) {
            table.push(columns.cells(&site.counts));
        }
        let place = Place::of(&table, options.width);
        let mut lines = table.lines();
        page.line(&lines.next().unwrap_or_default());
        for (cells, site) in lines.zip(&sites) {
            page.row(
                &cells,
                &stack::site(&context, &stack::Parts::of(&context, site.first), place.room),
                place,
            );
        }
    }
    page.text()
}

/// The profile as the options look at it. What restarts discarded is a sum in the short form.
fn shown<'p>(options: &Options, profile: &'p Profile, sites: &CallSites<'p>) -> View<'p> {
    let mut view = options.view(profile, sites);
    let is_kept = |row: &RowView<'_>| {
        let counts = &row.row.counts;
        counts.discarded == 0 || counts.allocations > 0 || counts.failed > 0 || counts.reallocs_to_zero > 0
    };
    for window in view.windows.iter_mut().filter(|_| !options.full) {
        window.rows.retain(is_kept);
    }
    view
}

fn missing_windows(page: &mut Page, context: &Context<'_>) {
    let missing = context.options.selection.missing_windows(context.profile);
    if missing.is_empty() {
        return;
    }
    let quoted = |names: &mut dyn Iterator<Item = &str>| names.map(quote).collect::<Vec<_>>().join(", ");
    let there = quoted(&mut context.profile.windows.iter().map(|window| window.name.as_str()));
    let there = if there.is_empty() { "there is none".to_owned() } else { format!("there is {there}") };
    page.line(&format!("no window {}; {there}", quoted(&mut missing.into_iter())));
}

fn rows<'p>(page: &mut Page, context: &Context<'p>, window: &WindowView<'p>) {
    page.line("");
    if window.rows.is_empty() {
        page.line(if context.options.selection.takes_all_stacks() {
            "  nothing was allocated in it"
        } else {
            "  nothing in it fits the selection"
        });
        return;
    }
    match context.options.layout {
        Layout::Stack => stacks(page, context, window),
        Layout::Site => group::sites(page, context, window),
        Layout::Function => group::functions(page, context, window),
        Layout::TopDown => tree::tree(page, context, window, tree::Direction::TopDown),
        Layout::BottomUp => tree::tree(page, context, window, tree::Direction::BottomUp),
    }
}

/// A line of the table of stacks.
struct Line<'p> {
    row: RowView<'p>,
    parts: stack::Parts<'p>,
    /// How many stacks it stands for.
    stacks: u64,
}

/// A line for each stack; in the short form, for those that look the same. Those that one entry alone had stand apart:
/// per iteration they mean nothing.
fn stacks<'p>(page: &mut Page, context: &Context<'p>, window: &WindowView<'p>) {
    let is_once =
        |row: &&RowView<'_>| window.window.entries > 1 && row.row.entries == Some(1) && !row.is_trimmed;
    let (once, often): (Vec<_>, Vec<_>) = window.rows.iter().partition(is_once);
    let columns = Columns::of(window.window, context.options.sort, window.counts)
        .known_to(&context.profile.environment);
    if !often.is_empty() {
        stack_table(page, context, window, &columns, lines(context, &often));
    }
    if !once.is_empty() {
        if !often.is_empty() {
            page.line("");
        }
        page.line(&format!("  {}", once_title(once.iter().map(|row| &*row.row))));
        stack_table(page, context, window, &columns.totals(), lines(context, &once));
    }
}

fn lines<'p>(context: &Context<'p>, rows: &[&RowView<'p>]) -> Vec<Line<'p>> {
    let mut lines: Vec<Line<'p>> = Vec::new();
    let mut known: FxHashMap<stack::StackKey, usize> = FxHashMap::default();
    for row in rows {
        let parts = stack::Parts::of(context, row);
        let key = (!context.options.full).then(|| parts.key(context, row.stack.capture));
        if let Some(line) = key.as_ref().and_then(|key| known.get(key)).and_then(|&at| lines.get_mut(at)) {
            line.row.join(row);
            line.stacks += 1;
            continue;
        }
        if let Some(key) = key {
            known.insert(key, lines.len());
        }
        lines.push(Line { row: (*row).clone(), parts, stacks: 1 });
    }
    // Equal ones stay in the order of their first stacks.
    lines.sort_by_key(|line| std::cmp::Reverse(context.options.sort.key(&line.row.row.counts)));
    lines
}

/// `first entry only: 6 allocations, 480 B`.
fn once_title<'r>(rows: impl Iterator<Item = &'r Row>) -> String {
    let (mut allocations, mut bytes, mut all_first) = (0_u64, 0_u64, true);
    for row in rows {
        allocations = allocations.saturating_add(row.counts.allocations);
        bytes = bytes.saturating_add(row.counts.bytes);
        all_first &= row.first_entry == Some(1);
    }
    let which = if all_first { "first entry only" } else { "in one entry only" };
    format!("{which}: {}, {} B", counted(allocations, "allocation", "allocations"), count(bytes))
}

fn stack_table(
    page: &mut Page,
    context: &Context<'_>,
    window: &WindowView<'_>,
    columns: &Columns,
    lines: Vec<Line<'_>>,
) {
    let options = context.options;
    let is_large = |line: &Line<'_>| columns.reaches(&line.row.row.counts, options.min);
    let (large, small): (Vec<_>, Vec<_>) = lines.into_iter().partition(is_large);
    let (shown, hidden) = large.split_at(limited(large.len(), options.limit));
    let mut table = Table::new(columns.titles(), "call site");
    for line in shown {
        table.push(columns.cells(&line.row.row.counts));
    }
    let sum = |lines: &[Line<'_>]| table::sum(lines.iter().map(|line| &line.row.row.counts));
    let is_spread = options.sort.value(&sum(hidden)) > options.sort.value(&window.counts) / 2;
    let why = if is_spread {
        "; --by site puts those of one call site together, --limit 0 shows all"
    } else {
        "; --limit 0 shows all"
    };
    let rest = [(hidden, why), (&small[..], " below --min")];
    let rest = rest.into_iter().filter(|(lines, _)| !lines.is_empty());
    for (lines, _) in rest.clone() {
        table.push(columns.cells(&sum(lines)));
    }
    let place = Place::of(&table, options.width);
    let mut texts = table.lines();
    page.line(&texts.next().unwrap_or_default());
    for line in shown {
        let cells = texts.next().unwrap_or_default();
        page.row(&cells, &stack::site(context, &line.parts, place.room), place);
        for detail in stack::details(context, window, &line.row, &line.parts, line.stacks, place.room) {
            page.detail(&detail, place);
        }
    }
    for (lines, why) in rest {
        let more = counted(lines.iter().map(|line| line.stacks).sum(), "more stack", "more stacks");
        page.line(&format!("{}{more}{why}", texts.next().unwrap_or_default()));
    }
}

/// How many of `all` are shown.
fn limited(all: usize, limit: usize) -> usize {
    if limit == 0 { all } else { limit.min(all) }
}
