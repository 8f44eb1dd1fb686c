//! The call sites that changed, and their order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::alignment::ALIKE;
use super::key::{Item, Key};
use super::line::{LineChange, LineCounts, line_changes};
use super::pairing::Sides;
use super::rate::{compare, difference, is_once, is_one_off, iterations};
use super::stack::{Entry as AllocationFunction, Shape, site};
use super::{Entry, How, Kind, Pair, Side, order, parting};
use crate::model::{Counts, Row};
use crate::view::Sort;

/// What becomes an entry: the pairs of one call site that changed.
struct Draft {
    site: Key,
    /// Whether there is more (1), less (-1), or as much on other ways (0).
    sign: i8,
    /// The call site of the other side, where it has another name.
    other: Option<Key>,
    pairs: Vec<usize>,
    counts: [Counts; 2],
}

/// The entries; how many stacks are unchanged, and how many pairs are unstable.
pub(super) fn entries(sides: Sides<'_, '_>, pairs: &[Pair], sort: Sort) -> (Vec<Entry>, u64, u64) {
    let maker = Maker { sides, pairs };
    let (mut drafts, unchanged, unstable) = maker.drafts();
    if drafts.is_empty() {
        return (Vec::new(), unchanged, unstable);
    }
    let totals = maker.site_totals();
    for draft in &mut drafts {
        draft.pairs.sort_by_key(|&pair| {
            let [allocations, bytes] = maker.differences(&maker.own_counts(pair, draft.other, draft.sign));
            let own = if allocations == 0 { bytes } else { allocations };
            let is_against = own.signum() == -i128::from(draft.sign);
            (is_against, Reverse((allocations.unsigned_abs(), bytes.unsigned_abs())), pair)
        });
    }
    let mut entries: Vec<Entry> = drafts.iter().map(|draft| maker.entry(draft, &totals)).collect();
    maker.link(&drafts, &mut entries);
    let sites: Vec<Key> = drafts.iter().map(|draft| draft.site).collect();
    let signs: Vec<i8> = drafts.iter().map(|draft| draft.sign).collect();
    let order = order::in_window(&entries, sides.views, sort, &sites, &signs);
    let mut place = vec![0; entries.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new;
    }
    let mut sorted: Vec<Entry> = order.iter().map(|&old| entries[old].clone()).collect();
    for entry in &mut sorted {
        entry.counterpart = entry.counterpart.map(|old| place[old]);
    }
    parting::find(sides, &mut sorted);
    (sorted, unchanged, unstable)
}

/// The functions that call a call site, and the allocation function.
type Callers = (Vec<Key>, AllocationFunction);

struct Maker<'a, 'p> {
    sides: Sides<'a, 'p>,
    pairs: &'a [Pair],
}

impl<'a> Maker<'a, '_> {
    fn differences(&self, counts: &[Counts; 2]) -> [i128; 2] {
        let views = self.sides.views;
        [
            difference([counts[0].allocations, counts[1].allocations], views),
            difference([counts[0].bytes, counts[1].bytes], views),
        ]
    }

    /// The call site of a row: its function, and its place among the row's frames.
    fn site(&self, side: usize, row: usize) -> Option<(Key, usize)> {
        let (item, at) = self.site_item(side, row)?;
        Some((item.key, at))
    }

    fn site_item(&self, side: usize, row: usize) -> Option<(Item, usize)> {
        let row = self.sides.views[side].rows.get(row)?;
        let frames = self.sides.readers[side].frames(row);
        let items: Vec<_> = frames.iter().map(|(item, _)| *item).collect();
        let (item, at) = frames.get(site(&items))?;
        Some((*item, *at as usize))
    }

    fn drafts(&self) -> (Vec<Draft>, u64, u64) {
        let mut drafts: BTreeMap<(Key, i8, Option<Key>), Draft> = BTreeMap::new();
        let (mut unchanged, mut unstable) = (0, 0);
        for (at, pair) in self.pairs.iter().enumerate() {
            let counts = pair.counts.map(|counts| [counts.allocations, counts.bytes]);
            let rows = [&pair.rows[0][..], &pair.rows[1][..]];
            if pair.how != How::OtherSite && is_one_off(self.sides.views, rows, counts) {
                unchanged += rows[1].len() as u64;
                continue;
            }
            let ([allocations, bytes], is_noise) = compare(self.sides.views, rows, counts);
            let sign = if allocations == 0 { bytes } else { allocations };
            if sign == 0 && (is_noise || pair.how != How::OtherSite) {
                match is_noise {
                    true => unstable += 1,
                    false => unchanged += rows[1].len().max(usize::from(!rows[0].is_empty())) as u64,
                }
                continue;
            }
            let site = |side: usize| self.site_item(side, *pair.rows[side].first()?).map(|(site, _)| site);
            let mut add = |site: Key, sign: i8, other: Option<Key>| {
                let draft = drafts.entry((site, sign, other)).or_insert_with(|| Draft {
                    site,
                    sign,
                    other,
                    pairs: Vec::new(),
                    counts: [Counts::default(); 2],
                });
                draft.pairs.push(at);
                let own = self.own_counts(at, other, sign);
                draft.counts.iter_mut().zip(&own).for_each(|(sum, own)| sum.add(own));
            };
            match (pair.how, site(0), site(1)) {
                (How::OtherSite, Some(base), Some(change)) => {
                    add(base.key, -1, Some(change.key));
                    add(change.key, 1, Some(base.key));
                }
                // Where only one side has debug information, it alone knows what was inlined into what.
                (_, Some(base), Some(change)) if base.has_source && !change.has_source => {
                    add(base.key, 0, None);
                }
                (_, base, change) => {
                    if let Some(site) = change.or(base) {
                        add(site.key, 0, None);
                    }
                }
            }
        }
        let mut drafts: Vec<Draft> = drafts.into_values().collect();
        for draft in drafts.iter_mut().filter(|draft| draft.other.is_none()) {
            let [allocations, bytes] = self.differences(&draft.counts);
            draft.sign = if allocations == 0 { bytes } else { allocations }.signum() as i8;
        }
        (drafts, unchanged, unstable)
    }

    /// What of a pair's counts belongs to a draft: where call sites have other names, one side.
    fn own_counts(&self, pair: usize, other: Option<Key>, sign: i8) -> [Counts; 2] {
        let counts = self.pairs.get(pair).map_or([Counts::default(); 2], |pair| pair.counts);
        match (other, sign) {
            (None, _) => counts,
            (Some(_), 1..) => [Counts::default(), counts[1]],
            (Some(_), _) => [counts[0], Counts::default()],
        }
    }

    /// The allocations of each call site, by side.
    fn site_totals(&self) -> [HashMap<Key, u64>; 2] {
        [0, 1].map(|side| {
            let mut totals: HashMap<Key, u64> = HashMap::new();
            for row in 0..self.sides.views[side].rows.len() {
                if let Some((site, _)) = self.site(side, row) {
                    let total = totals.entry(site).or_default();
                    *total = total.saturating_add(self.sides.views[side].rows[row].row.counts.allocations);
                }
            }
            totals
        })
    }

    fn entry(&self, draft: &Draft, totals: &[HashMap<Key, u64>; 2]) -> Entry {
        let lines = self.lines(draft);
        let row = self.row(draft, &lines);
        let has_source = [0, 1].map(|side| self.has_source(draft, side));
        let is_open =
            draft.other.is_none() && has_source.contains(&Some(false)) && has_source.contains(&Some(true));
        Entry {
            kind: self.kind(draft, totals),
            pairs: draft.pairs.clone(),
            counts: draft.counts,
            row,
            site: self.site(row.0.index(), row.1).map_or(0, |(_, at)| at),
            is_line_open: is_open && !self.has_one_line(draft, row.0),
            lines: if is_open { Vec::new() } else { lines },
            parting: None,
            counterpart: None,
        }
    }

    fn kind(&self, draft: &Draft, totals: &[HashMap<Key, u64>; 2]) -> Kind {
        let keys = self.sides.readers[0].keys;
        let is_up = draft.sign > 0;
        if let Some(other) = draft.other {
            let is_moved = keys.is_same_name(draft.site, other)
                || (keys.similarity(draft.site, other) < ALIKE && !keys.are_instances(draft.site, other))
                || !keys.is_one_sided(draft.site)
                || !keys.is_one_sided(other);
            return match (is_up, is_moved) {
                (true, false) => Kind::RenamedFrom,
                (false, false) => Kind::RenamedTo,
                (true, true) => Kind::MovedFrom,
                (false, true) => Kind::MovedTo,
            };
        }
        let is_absent = |side: usize| {
            draft.counts[side].allocations == 0 && totals[side].get(&draft.site).copied().unwrap_or(0) == 0
        };
        if draft.sign == 0 {
            return Kind::Rerouted;
        }
        let [allocations, _] = self.differences(&draft.counts);
        match (is_up, allocations) {
            (true, _) if is_absent(0) => Kind::New,
            (false, _) if is_absent(1) => Kind::Gone,
            (true, _) if self.is_once(draft, 0) && self.is_each(draft, 1) => Kind::Repeated,
            (false, _) if self.is_each(draft, 0) && self.is_once(draft, 1) => Kind::Once,
            (true, 1..) => Kind::More,
            (true, _) => Kind::Larger,
            (false, ..=-1) => Kind::Fewer,
            (false, _) => Kind::Smaller,
        }
    }

    fn rows(&self, draft: &Draft, side: usize) -> impl Iterator<Item = (usize, &'a Row)> {
        let pairs = draft.pairs.iter().filter_map(|&pair| self.pairs.get(pair));
        let rows: Vec<usize> = pairs.flat_map(|pair| pair.rows[side].iter().copied()).collect();
        let view = self.sides.views[side];
        rows.into_iter().filter_map(move |at| Some((at, &*view.rows.get(at)?.row)))
    }

    /// Whether it allocated in one of many iterations.
    fn is_once(&self, draft: &Draft, side: usize) -> bool {
        let rows = self.rows(draft, side).map(|(_, row)| row);
        is_once(self.sides.views[side].window, rows, draft.counts[side].allocations)
    }

    /// Whether it allocated in each iteration, as far as can be known.
    fn is_each(&self, draft: &Draft, side: usize) -> bool {
        let window = self.sides.views[side].window;
        let in_each_entry =
            self.rows(draft, side).any(|(_, row)| row.entries.is_none_or(|in_| in_ >= window.entries));
        draft.counts[side].allocations >= iterations(window) && in_each_entry
    }

    fn lines(&self, draft: &Draft) -> Vec<LineChange> {
        let sides = [0, 1].map(|side| {
            let mut lines = LineCounts::new();
            if draft.other.is_none() || (draft.sign > 0) == (side == 1) {
                for (at, row) in self.rows(draft, side) {
                    if let Some(line) = self.line(draft, side, at).filter(|line| *line > 0) {
                        let [allocations, bytes] = lines.entry(line).or_default();
                        *allocations = allocations.saturating_add(row.counts.allocations);
                        *bytes = bytes.saturating_add(row.counts.bytes);
                    }
                }
            }
            lines
        });
        line_changes(&sides, |counts| difference(counts, self.sides.views))
    }

    /// Whether the source of a call site is known on a side; `None` where it does not allocate.
    fn has_source(&self, draft: &Draft, side: usize) -> Option<bool> {
        let mut sites = self.rows(draft, side).filter_map(|(row, _)| self.site_item(side, row)).peekable();
        sites.peek()?;
        Some(sites.any(|(item, _)| item.has_source))
    }

    /// Whether all that a side has of a draft is in one line, and the other side has less: then the difference is there.
    fn has_one_line(&self, draft: &Draft, side: Side) -> bool {
        let is_more_here = (draft.sign > 0) == (side == Side::Change) && draft.sign != 0;
        let lines = self.rows(draft, side.index()).map(|(at, _)| self.line(draft, side.index(), at));
        is_more_here && lines.collect::<BTreeSet<_>>().len() == 1
    }

    /// The line of a row in the call site of a draft.
    fn line(&self, draft: &Draft, side: usize, row: usize) -> Option<u32> {
        let (_, at) = self.site(side, row).filter(|(site, _)| *site == draft.site)?;
        let row = self.sides.views[side].rows.get(row)?;
        row.frames(self.sides.profiles[side]).nth(at).map(|frame| frame.line)
    }

    /// The row that stands for a draft: at the line that changed most in its direction, on the side that has it.
    fn row(&self, draft: &Draft, lines: &[LineChange]) -> (Side, usize) {
        let sign = |line: &&LineChange| {
            let allocations = difference(line.allocations, self.sides.views);
            let of = if allocations == 0 { difference(line.bytes, self.sides.views) } else { allocations };
            of.signum() == i128::from(draft.sign)
        };
        let line = lines.iter().find(sign).or(lines.first());
        let is_own = |side: Side| draft.other.is_none() || (draft.sign > 0) == (side == Side::Change);
        let wanted = line.and_then(|line| match line.lines {
            [_, Some(number)] => Some((Side::Change, number)),
            [Some(number), None] => Some((Side::Base, number)),
            [None, None] => None,
        });
        if let Some((side, number)) = wanted {
            for &pair in &draft.pairs {
                let rows = self.pairs.get(pair).map_or(&[][..], |pair| &pair.rows[side.index()]);
                let fits =
                    rows.iter().copied().filter(|&row| self.line(draft, side.index(), row) == Some(number));
                let view = self.sides.views[side.index()];
                let count = |row: usize| view.rows.get(row).map(|row| row.row.counts.allocations);
                if let Some(row) = fits.max_by_key(|&row| (count(row), Reverse(row))) {
                    return (side, row);
                }
            }
        }
        for side in [Side::Change, Side::Base] {
            let pairs = draft.pairs.iter().filter_map(|&pair| self.pairs.get(pair));
            if is_own(side)
                && let Some(row) = pairs.filter_map(|pair| pair.rows[side.index()].first()).next()
            {
                return (side, *row);
            }
        }
        (Side::Change, 0)
    }

    /// Finds the entries that belong together.
    fn link(&self, drafts: &[Draft], entries: &mut [Entry]) {
        // Two sites may each stand for the other, in stacks of their own: so by direction, too.
        let named: HashMap<(Key, Key, i8), usize> = drafts
            .iter()
            .enumerate()
            .filter_map(|(at, draft)| Some(((draft.site, draft.other?, draft.sign), at)))
            .collect();
        for (entry, draft) in entries.iter_mut().zip(drafts) {
            let other = draft.other.and_then(|other| named.get(&(other, draft.site, -draft.sign)));
            entry.counterpart = other.copied();
        }
        // What grew here and shrank there: by the same amounts, below the same callers.
        type Place = ([u128; 2], Vec<Callers>);
        let mut places: BTreeMap<Place, [Vec<usize>; 2]> = BTreeMap::new();
        for (at, draft) in drafts.iter().enumerate().filter(|(_, of)| of.other.is_none() && of.sign != 0) {
            let side = usize::from(draft.sign > 0);
            let amounts = self.differences(&draft.counts).map(i128::unsigned_abs);
            places.entry((amounts, self.callers(draft, side))).or_default()[side].push(at);
        }
        for place in places.into_values() {
            let ([down], [up]) = (&place[0][..], &place[1][..]) else { continue };
            let (down, up) = (*down, *up);
            let sum = |at: usize| self.differences(&drafts[at].counts);
            let (less, more) = (sum(down), sum(up));
            if less[0] != -more[0] || less[1] != -more[1] || drafts[down].site == drafts[up].site {
                continue;
            }
            let keys = self.sides.readers[0].keys;
            let are_apart = keys.is_one_sided(drafts[down].site) && keys.is_one_sided(drafts[up].site);
            let renamed = named.get(&(drafts[up].site, drafts[down].site, 1)).map(|&at| entries[at].kind);
            if renamed == Some(Kind::RenamedFrom) {
                // Further stacks of a function that is known to have another name: it calls itself.
                entries[down].kind = Kind::RenamedTo;
                entries[up].kind = Kind::RenamedFrom;
            } else if !are_apart {
                entries[down].kind = Kind::MovedTo;
                entries[up].kind = Kind::MovedFrom;
            }
            entries[down].counterpart = Some(up);
            entries[up].counterpart = Some(down);
        }
    }

    /// The callers of a draft's rows on a side, in order; those that both sides have.
    fn callers(&self, draft: &Draft, side: usize) -> Vec<Callers> {
        let reader = self.sides.readers[side];
        let of = |(row, _): (usize, &Row)| {
            let row = self.sides.views[side].rows.get(row)?;
            let items: Vec<_> = reader.frames(row).into_iter().map(|(item, _)| item).collect();
            let shape = Shape::new(reader.keys, &items);
            let callers = shape.keys().skip(1).filter(|&key| !reader.keys.is_one_sided(key));
            Some((callers.collect(), shape.entry))
        };
        let mut callers: Vec<Callers> = self.rows(draft, side).filter_map(of).collect();
        callers.sort_unstable();
        callers
    }
}
