//! Stacks together: those of one call site, those of one function.

use std::collections::BTreeMap;

use heaptally_profile::model::{Counts, FrameKind};
use heaptally_profile::view::{RowView, WindowView};

use super::function::{FunctionIndex, FunctionTable};
use super::page::Page;
use super::stack::{self, Parts, callers, in_room};
use super::table::{Columns, Place, Table, sum};
use super::{Context, limited};
use crate::frame::source_at;
use crate::number::counted;
use crate::path::shorten;

/// The stacks of one call site.
pub(super) struct Site<'v, 'p> {
    pub(super) counts: Counts,
    stacks: u64,
    /// The first of its rows, so the one that counts most.
    pub(super) first: &'v RowView<'p>,
}

/// The call sites of a window, most first.
pub(super) fn sites_of<'v, 'p>(context: &Context<'p>, window: &'v WindowView<'p>) -> Vec<Site<'v, 'p>> {
    let functions = FunctionTable::new(context.profile);
    let mut sites: BTreeMap<_, Site<'_, '_>> = BTreeMap::new();
    for row in &window.rows {
        let frame = row.call_site(context.profile, context.sites).map(|(_, frame)| frame);
        let frame = frame.or_else(|| row.frames(context.profile).last());
        let key = frame.map(|frame| (functions.index(&frame), frame.line));
        let site = sites.entry(key).or_insert(Site { counts: Counts::default(), stacks: 0, first: row });
        site.counts.add(&row.row.counts);
        site.stacks += 1;
    }
    let sort = context.options.sort;
    let mut sites: Vec<Site<'v, 'p>> = sites.into_values().collect();
    // Equal ones stay in the order of their keys.
    sites.sort_by_key(|site| std::cmp::Reverse(sort.key(&site.counts)));
    sites
}

/// A line for each call site.
pub(super) fn sites(page: &mut Page, context: &Context<'_>, window: &WindowView<'_>) {
    let sort = context.options.sort;
    let sites = sites_of(context, window);
    let columns = Columns::of(window.window, sort, window.counts).known_to(&context.profile.environment);
    let min = context.options.min;
    let (large, small): (Vec<_>, Vec<_>) =
        sites.into_iter().partition(|site| columns.reaches(&site.counts, min));
    let (shown, hidden) = large.split_at(limited(large.len(), context.options.limit));
    let mut table = Table::new(columns.titles(), "call site");
    for site in shown {
        table.push(columns.cells(&site.counts));
    }
    let rest = [(hidden, "; --limit 0 shows all"), (&small[..], " below --min")];
    let rest = rest.into_iter().filter(|(sites, _)| !sites.is_empty());
    for (sites, _) in rest.clone() {
        table.push(columns.cells(&sum(sites.iter().map(|site| &site.counts))));
    }
    let place = Place::of(&table, context.options.width);
    let mut lines = table.lines();
    page.line(&lines.next().unwrap_or_default());
    for site in shown {
        let parts = Parts::of(context, site.first);
        page.row(&lines.next().unwrap_or_default(), &stack::site(context, &parts, place.room), place);
        let mut details = callers(context, &parts, place.room);
        if site.stacks > 1 {
            details.insert(0, format!("in {}, of which the first:", counted(site.stacks, "stack", "stacks")));
        }
        for line in details {
            page.detail(&format!("  {line}"), place);
        }
    }
    for (sites, why) in rest {
        let more = counted(sites.len() as u64, "more call site", "more call sites");
        page.line(&format!("{}{more}{why}", lines.next().unwrap_or_default()));
    }
}

/// A line for each function: what it allocates itself, as a call site, and with all that it calls.
pub(super) fn functions(page: &mut Page, context: &Context<'_>, window: &WindowView<'_>) {
    #[derive(Clone, Default)]
    struct Sums {
        itself: Counts,
        below: Counts,
        /// The latest row that it is in, from 1: once for a row, however often it called itself.
        latest_row: usize,
    }
    let table = FunctionTable::new(context.profile);
    let mut sums = vec![Sums::default(); table.len()];
    for (at, row) in window.rows.iter().enumerate() {
        let site = row.call_site(context.profile, context.sites).map(|(_, frame)| frame);
        let site = site.or_else(|| row.frames(context.profile).last());
        if let Some(sums) = site.and_then(|site| sums.get_mut(table.index(&site) as usize)) {
            sums.itself.add(&row.row.counts);
        }
        let of_stack = row
            .frames(context.profile)
            .filter(|frame| !matches!(frame.kind, FrameKind::Elided | FrameKind::TaskOrigin))
            .filter(|frame| context.options.full || !stack::is_listed(context.profile, context.sites, frame));
        for frame in of_stack.chain(site) {
            if let Some(sums) = sums.get_mut(table.index(&frame) as usize)
                && sums.latest_row != at + 1
            {
                sums.latest_row = at + 1;
                sums.below.add(&row.row.counts);
            }
        }
    }
    let functions = table;
    let sort = context.options.sort;
    let columns = Columns::of(window.window, sort, window.counts).known_to(&context.profile.environment);
    let mut sums: Vec<(FunctionIndex, Sums)> =
        (0..).zip(sums).filter(|(_, sums)| sums.latest_row > 0).collect();
    sums.sort_by_key(|(_, sums)| std::cmp::Reverse((sort.key(&sums.itself), sort.key(&sums.below))));
    let all = sums.len();
    sums.retain(|(_, sums)| columns.reaches(&sums.below, context.options.min));
    let small = all - sums.len();
    let shown = limited(sums.len(), context.options.limit);
    let hidden = sums.len() - shown;

    let mut titles = columns.titles();
    titles.push("with callees".to_owned());
    titles.push("share".to_owned());
    let mut table = Table::new(titles, "function");
    for (_, sums) in sums.iter().take(shown) {
        let mut cells = columns.cells(&sums.itself);
        let below = columns.cells(&sums.below);
        cells.extend(below.get(columns.sorted_by()).cloned());
        cells.extend(below.last().cloned());
        table.push(cells);
    }
    let place = Place::of(&table, context.options.width);
    let mut lines = table.lines();
    page.line(&lines.next().unwrap_or_default());
    for ((function, _), cells) in sums.iter().zip(lines) {
        let Some(function) = functions.get(*function) else { continue };
        let project = context.options.project.as_deref();
        let file = (!function.file.is_empty()).then(|| source_at(&shorten(function.file, project), 0));
        let [name, short] = function.texts();
        page.row(&cells, &in_room(&name, &short, None, file, place.room), place);
    }
    for (count, why) in [(hidden, "; --limit 0 shows all"), (small, " below --min")] {
        if count > 0 {
            page.line(&format!("  {}{why}", counted(count as u64, "more function", "more functions")));
        }
    }
}
