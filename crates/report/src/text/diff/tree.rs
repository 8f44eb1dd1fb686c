//! Differences carried up: a caller shows what its callees grew by.
//!
//! ```text
//!   allocs/iter          →         B/iter
//!   75.00 → 76.00   +1.00     +24  main → run → parse
//!   40.00 → 41.00   +1.00     +24    Parser::name
//! ```
//!
//! What did not change is left out, and so is what changed by less than the least that is asked for, unless something below
//! it changed by more. A pair of stacks stands at the change's one, but for call sites
//! with other names, which are two.

use heaptally_profile::diff::{How, Pair, Side, WindowDiff};
use heaptally_profile::model::Counts;
use rustc_hash::FxHashMap;

use super::{Numbers, Sides};
use crate::frame::short_name;
use crate::number::counted;
use crate::text::limited;
use crate::text::page::Page;
use crate::text::stack::is_listed;
use crate::text::table::{Place, Table};
use crate::width::cut_middle;

#[derive(Default)]
struct Node {
    name: String,
    counts: [Counts; 2],
    children: Vec<usize>,
}

/// The tree of a window, from where threads begin.
pub(super) fn tree(page: &mut Page, sides: &Sides<'_, '_>, window: &WindowDiff<'_>) {
    let mut nodes = vec![Node::default()];
    let mut known: FxHashMap<(usize, String), usize> = FxHashMap::default();
    // What is done once is no difference, and is not carried up as one.
    let pairs = window.pairs.iter().filter(|pair| !window.is_one_off(pair));
    let ways = pairs.flat_map(|pair| ways(pair).into_iter().map(move |way| (pair, way)));
    for (pair, (side, counts)) in ways {
        let mut at = 0;
        add(&mut nodes[0].counts, &counts);
        for name in path(sides, window, pair, side) {
            // A function that called itself is there already.
            if at != 0 && nodes[at].name == name {
                continue;
            }
            let next = *known.entry((at, name.clone())).or_insert(nodes.len());
            if next == nodes.len() {
                nodes.push(Node { name, ..Node::default() });
                nodes[at].children.push(next);
            }
            add(&mut nodes[next].counts, &counts);
            at = next;
        }
    }
    let delta = |at: usize| {
        let of =
            |what: fn(&Counts) -> u64| window.delta([what(&nodes[at].counts[0]), what(&nodes[at].counts[1])]);
        (of(|counts| counts.allocations), of(|counts| counts.bytes))
    };
    // Whether anything below it changed, though its own sum may be as before. Children come behind their parents.
    let with_callers = |mut marks: Vec<bool>| {
        for at in (0..nodes.len()).rev() {
            marks[at] = marks[at] || nodes[at].children.iter().any(|&child| marks[child]);
        }
        marks
    };
    let is_changed = |at: &usize| delta(*at) != (0.0, 0.0);
    let all = with_callers((0..nodes.len()).map(|at| is_changed(&at)).collect());
    let is_large = |at: usize| is_changed(&at) && delta(at).0.abs() >= sides.options.min;
    let changed = with_callers((0..nodes.len()).map(is_large).collect());
    let small = all.iter().skip(1).filter(|is_changed| **is_changed).count()
        - changed.iter().skip(1).filter(|is_changed| **is_changed).count();
    let children = |at: usize| {
        let mut children: Vec<usize> =
            nodes[at].children.iter().copied().filter(|&child| changed[child]).collect();
        children.sort_by(|&a, &b| {
            let key = |at: usize| (delta(at).0.abs(), delta(at).1.abs());
            key(b)
                .partial_cmp(&key(a))
                .unwrap_or(std::cmp::Ordering::Equal)
                .then_with(|| nodes[a].name.cmp(&nodes[b].name))
        });
        children
    };
    let mut lines: Vec<(usize, String, usize)> = Vec::new();
    let mut open: Vec<(usize, usize)> = children(0).into_iter().rev().map(|at| (at, 0)).collect();
    while let Some((first, depth)) = open.pop() {
        let (mut at, mut text) = (first, nodes[first].name.clone());
        // Functions that are the only way on are one line.
        let mut below = children(at);
        while let [only] = below[..]
            && nodes[only].counts == nodes[at].counts
        {
            at = only;
            text.push_str(" → ");
            text.push_str(&nodes[at].name);
            below = children(at);
        }
        lines.push((depth, text, at));
        open.extend(below.into_iter().rev().map(|child| (child, depth + 1)));
    }
    let numbers = Numbers::of(window);
    let below_min = |page: &mut Page| {
        if small > 0 {
            let more = counted(small as u64, "more function", "more functions");
            page.line(&format!("  {more} changed below --min"));
        }
    };
    if lines.is_empty() {
        below_min(page);
        return;
    }
    let shown = limited(lines.len(), sides.options.limit);
    let titles = ["base", "change"].map(|side| format!("{side} {}", numbers.unit("allocs")));
    let [base, change] = titles;
    let mut table = Table::new(vec![base, change, "delta".to_owned(), numbers.unit("B")], "function");
    for (_, _, at) in lines.iter().take(shown) {
        let counts = |what: fn(&Counts) -> u64| [what(&nodes[*at].counts[0]), what(&nodes[*at].counts[1])];
        let allocations = counts(|counts| counts.allocations);
        table.push(vec![
            numbers.value(window, Side::Base, allocations[0], false),
            numbers.value(window, Side::Change, allocations[1], false),
            numbers.delta(window, allocations, false),
            numbers.delta(window, counts(|counts| counts.bytes), true),
        ]);
    }
    let place = Place::of(&table, sides.options.width);
    let mut cells = table.lines();
    page.line(&cells.next().unwrap_or_default());
    for ((depth, text, _), cells) in lines.iter().zip(cells) {
        let indent = "  ".repeat(*depth);
        let text = place
            .room
            .map_or_else(|| text.clone(), |room| cut_middle(text, room.saturating_sub(indent.len()).max(24)));
        page.row(&cells, &[format!("{indent}{text}")], place);
    }
    if shown < lines.len() {
        let more = counted((lines.len() - shown) as u64, "more", "more");
        page.line(&format!("  … {more}; --limit 0 shows all"));
    }
    below_min(page);
    page.line("");
}

fn add(counts: &mut [Counts; 2], own: &[Counts; 2]) {
    counts.iter_mut().zip(own).for_each(|(sum, own)| sum.add(own));
}

/// The sides whose stacks of a pair stand in the tree, and with which counts.
fn ways(pair: &Pair) -> Vec<(usize, [Counts; 2])> {
    let [base, change] = pair.counts;
    match pair.how {
        How::OtherSite => vec![(0, [base, Counts::default()]), (1, [Counts::default(), change])],
        _ => vec![(usize::from(!pair.rows[1].is_empty()), pair.counts)],
    }
}

/// The functions of a pair's stack, from the outside to the call site.
fn path(sides: &Sides<'_, '_>, window: &WindowDiff<'_>, pair: &Pair, side: usize) -> Vec<String> {
    let context = &sides.contexts[side];
    let Some(row) = pair.rows[side].first().and_then(|&row| window.views[side].rows.get(row)) else {
        return Vec::new();
    };
    let frames: Vec<_> = row.frames(context.profile).collect();
    let listed =
        |frame: &heaptally_profile::frame::Frame<'_>| is_listed(context.profile, context.sites, frame);
    let keeps_all = sides.options.full || frames.iter().all(listed);
    let own = frames.iter().rev().filter(|frame| keeps_all || !listed(frame));
    own.map(|frame| short_name(frame)).collect()
}
