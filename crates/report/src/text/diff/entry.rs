//! The call sites that changed, one below the other.

use heaptally_profile::diff::{Entry, Kind, Side, WindowDiff};
use heaptally_profile::frame::Frame;
use heaptally_profile::view::RowView;

use super::{Numbers, Sides, allocations, bytes};
use crate::frame::{mark, name, short_name, source};
use crate::number::counted;
use crate::text::limited;
use crate::text::page::Page;
use crate::text::stack::{self, Parts};
use crate::text::table::{Place, Table};
use crate::width::cut_middle;

/// What happened, in a word.
pub(crate) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::New => "new",
        Kind::Gone => "gone",
        Kind::More => "more",
        Kind::Fewer => "fewer",
        Kind::Larger => "larger",
        Kind::Smaller => "smaller",
        Kind::Repeated => "each iteration",
        Kind::Once => "once",
        Kind::Rerouted => "other callers",
        Kind::RenamedFrom | Kind::RenamedTo => "renamed",
        Kind::MovedFrom | Kind::MovedTo => "moved",
    }
}

/// The row that stands for an entry.
pub(super) fn row<'w, 'p>(window: &'w WindowDiff<'p>, entry: &Entry) -> Option<&'w RowView<'p>> {
    let (side, row) = entry.row;
    window.views[side.index()].rows.get(row)
}

/// The call site of an entry, as a report shows it.
pub(super) fn site(
    sides: &Sides<'_, '_>,
    window: &WindowDiff<'_>,
    entry: &Entry,
    room: Option<usize>,
) -> Vec<String> {
    let Some(row) = row(window, entry) else { return vec!["unknown".to_owned()] };
    let context = &sides.contexts[entry.row.0.index()];
    let mut parts = Parts::of(context, row);
    if let Some(frame) = parts.site.as_mut().filter(|_| entry.is_line_open) {
        frame.line = 0;
    }
    stack::site(context, &parts, room).to_vec()
}

/// The table of entries.
pub(super) fn entries(page: &mut Page, sides: &Sides<'_, '_>, window: &WindowDiff<'_>) {
    if window.entries.is_empty() {
        return;
    }
    let options = sides.options;
    let is_large = |entry: &&Entry| window.delta(allocations(entry)).abs() >= options.min;
    let (large, small): (Vec<&Entry>, Vec<&Entry>) = window.entries.iter().partition(is_large);
    let (shown, hidden) = large.split_at(limited(large.len(), options.limit));
    table(page, sides, window, shown);
    for (entries, why) in [(hidden, "; --limit 0 shows all"), (&small[..], " below --min")] {
        if !entries.is_empty() {
            let more = counted(entries.len() as u64, "more call site", "more call sites");
            page.line(&format!("  {more} changed{why}"));
        }
    }
}

/// The lines of some entries, with their heading.
pub(super) fn table(page: &mut Page, sides: &Sides<'_, '_>, window: &WindowDiff<'_>, shown: &[&Entry]) {
    let numbers = Numbers::of(window);
    let options = sides.options;
    let columns = |allocations: String, bytes: String, kind: &str| {
        let bytes = sides.has_bytes().then_some(bytes);
        [Some(allocations), bytes, Some(kind.to_owned())].into_iter().flatten().collect::<Vec<String>>()
    };
    let mut table = Table::new(columns(numbers.unit("allocs"), numbers.unit("B"), "change"), "call site");
    for entry in shown {
        let allocations = numbers.delta(window, allocations(entry), false);
        table.push(columns(allocations, numbers.delta(window, bytes(entry), true), kind(entry.kind)));
    }
    let place = Place::of(&table, options.width);
    let mut lines = table.lines();
    page.line(&lines.next().unwrap_or_default());
    for (entry, cells) in shown.iter().zip(lines) {
        page.row(&cells, &site(sides, window, entry, place.room), place);
        for detail in details(sides, window, entry, place.room.map(|room| room.saturating_sub(2))) {
            page.detail(&format!("  {detail}"), place);
        }
    }
}

fn details(
    sides: &Sides<'_, '_>,
    window: &WindowDiff<'_>,
    entry: &Entry,
    room: Option<usize>,
) -> Vec<String> {
    let Some(row) = row(window, entry) else { return Vec::new() };
    let context = &sides.contexts[entry.row.0.index()];
    let parts = Parts::of(context, row);
    let mut lines = facts(sides, window, entry);
    if sides.options.full {
        lines.extend(parts.kind_words(context));
        lines.extend(all_frames(sides, window, entry, room));
    } else {
        lines.extend(stack::callers(context, &parts, room));
    }
    lines
}

/// What is to be known beside the stack.
fn facts(sides: &Sides<'_, '_>, window: &WindowDiff<'_>, entry: &Entry) -> Vec<String> {
    let numbers = Numbers::of(window);
    let mut facts = Vec::new();
    let other = entry.counterpart.and_then(|at| window.entries.get(at));
    let named = other.map(|other| site(sides, window, other, None).join(" ")).unwrap_or_default();
    let times = |entry: &Entry, side: Side| {
        numbers.allocations(&numbers.value(window, side, allocations(entry)[side.index()], false))
    };
    facts.push(match (entry.kind, other) {
        (Kind::New, Some(_)) => {
            format!("was not allocating before; as much as is gone from {named}: perhaps another name")
        }
        (Kind::Gone, Some(_)) => {
            format!("does not allocate any more; as much as is new in {named}: perhaps another name")
        }
        (Kind::New, None) => "was not allocating before".to_owned(),
        (Kind::Gone, None) => "does not allocate any more".to_owned(),
        (Kind::RenamedFrom, Some(other)) => {
            format!("renamed from {named}, {} there", times(other, Side::Base))
        }
        (Kind::RenamedTo, Some(other)) => format!("renamed to {named}, {} there", times(other, Side::Change)),
        (Kind::MovedFrom, Some(_)) => format!("moved from {named}, which has as much less"),
        (Kind::MovedTo, Some(_)) => format!("moved to {named}, which has as much more"),
        (Kind::Rerouted, _) => {
            format!("as much as before ({}), by other callers", times(entry, Side::Change))
        }
        (kind, _) => {
            let mut fact = format!(
                "{} → {}",
                numbers.value(window, Side::Base, allocations(entry)[0], false),
                times(entry, Side::Change)
            );
            match kind {
                Kind::Larger | Kind::Smaller => {
                    let [base, change] = [Side::Base, Side::Change]
                        .map(|side| numbers.value(window, side, bytes(entry)[side.index()], true));
                    fact = format!("as often, {base} → {change} {}", numbers.unit("B"));
                }
                Kind::Repeated => fact.push_str("; allocated once, and now in each iteration"),
                Kind::Once => fact.push_str("; allocated in each iteration, and now once"),
                _ => {}
            }
            fact
        }
    });
    if let [first, _, ..] = &entry.lines[..] {
        let line = |line: Option<u32>| line.map_or_else(|| "–".to_owned(), |line| line.to_string());
        let more = entry.lines.len() as u64 - 1;
        facts.push(format!(
            "line {} → {} changed most, and {}",
            line(first.lines[0]),
            line(first.lines[1]),
            counted(more, "other line", "other lines")
        ));
    }
    if entry.pairs.len() > 1 {
        facts.push(format!(
            "in {}, of which the first:",
            counted(entry.pairs.len() as u64, "stack", "stacks")
        ));
    }
    let (side, others) = match entry.row.0 {
        Side::Base => ("this stack is the base's", "the change has it"),
        Side::Change => ("", "the base has this stack"),
    };
    if entry.row.0 == Side::Base {
        facts.push(side.to_owned());
    }
    if entry.is_line_open {
        facts.push("which line of it changed is not known: one side has no debug information".to_owned());
    }
    if let Some(frame) =
        entry.parting.filter(|_| !sides.options.full).and_then(|at| frame(sides, window, entry, at))
    {
        facts.push(format!("{others} from {} outwards only", short_name(&frame)));
    }
    facts
}

fn frame<'p>(sides: &Sides<'_, 'p>, window: &WindowDiff<'p>, entry: &Entry, at: usize) -> Option<Frame<'p>> {
    row(window, entry)?.frames(sides.diff.profiles[entry.row.0.index()]).nth(at)
}

/// Every frame on a line, leaf first, and where both sides part.
fn all_frames(
    sides: &Sides<'_, '_>,
    window: &WindowDiff<'_>,
    entry: &Entry,
    room: Option<usize>,
) -> Vec<String> {
    let Some(row) = row(window, entry) else { return Vec::new() };
    let mut lines = Vec::new();
    for (at, frame) in row.frames(sides.diff.profiles[entry.row.0.index()]).enumerate() {
        if entry.parting == Some(at) {
            lines.push("── from here outwards both sides have the stack ──".to_owned());
        }
        let mut line = name(&frame);
        if let Some(source) = source(&frame) {
            line.push_str("  ");
            line.push_str(&source);
        }
        if let Some(mark) = mark(&frame) {
            line.push(' ');
            line.push_str(mark);
        }
        lines.push(room.map_or_else(|| line.clone(), |room| cut_middle(&line, room)));
    }
    lines
}
