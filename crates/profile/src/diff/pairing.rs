//! The stacks of a window on both sides, paired.
//!
//! ```text
//! groups of equal rows ─1─▶ equal stacks
//!        │ left over
//!        ├─2─▶ equal but for library frames: same call site, callers and allocation function
//!        ├─2a▶ the only stacks of the other side that have the same sum, where this side has no debug information
//!        ├─3─▶ alignment: the best of all possible pairs; first among stacks whose shared functions are the same (of very
//!        │     many stacks also without the places of the others among them)
//!        └─4─▶ joined: what one side of a pair has too much, and the other side of another one
//! ```
//!
//! 3 is told in [`alignment`](super::alignment), [`candidate`](super::candidate) and [`assignment`](super::assignment).
//! Counts break ties there, nothing else, and the size of the blocks decides between fits of nearly one quality; only
//! where there is no debug information, equal counts say more than frames. 4 is for the stack that one inlining decision parts in two: where the base has
//! more in one pair (or in a stack that is alone) and the change in another, and the two fit, they become one. With debug
//! information only if both amounts are of one size and one of them is alone: then two stacks that both sides have are
//! not one, nor is a stack parted in many.
//!
//! Nothing depends on which side is the base: where an order matters, that of the stacks' texts is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::alignment::{ALIKE, Budget, Fit, fit};
use super::assignment::{Edge, assign};
use super::candidate::{self, candidates};
use super::key::Key;
use super::rate::{difference, iterations};
use super::stack::{Entry, Group, Reader, Shape};
use super::{How, Pair};
use crate::model::{Counts, Profile};
use crate::view::WindowView;

/// A window on both sides.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a, 'p> {
    pub(super) readers: [Reader<'a>; 2],
    pub(super) views: [&'a WindowView<'p>; 2],
    pub(super) profiles: [&'p Profile; 2],
}

/// A pair that is being made: groups of either side by their index.
pub(super) struct Made {
    pub(super) groups: [Vec<usize>; 2],
    pub(super) how: How,
}

/// Pairs all rows of a window. Each row is in exactly one pair; a pair of one side only has no rows on the other.
pub(super) fn pair(sides: Sides<'_, '_>) -> Vec<Pair> {
    let groups = [0, 1].map(|side| sides.readers[side].groups(sides.views[side]));
    let mut made = Vec::new();
    let mut left = equal(sides, &groups, &mut made);
    let mut held = hold(sides, &groups, &mut made);
    if left.iter().chain(&held).any(|left| !left.is_empty()) {
        let mut matcher = Matcher::new(sides, &groups);
        for with_callee in [true, false] {
            let mut library = Vec::new();
            matcher.by_callers(&mut left, &mut library, with_callee);
            let more = hold(sides, &groups, &mut library);
            held.iter_mut().zip(more).for_each(|(held, more)| held.extend(more));
            made.append(&mut library);
        }
        let apart = matcher.set_apart(&mut left);
        matcher.by_shared_functions(&mut left, &mut made, true);
        if !candidate::are_all_compared(left[0].len(), left[1].len()) {
            matcher.by_shared_functions(&mut left, &mut made, false);
        }
        for (left, held) in left.iter_mut().zip(held) {
            left.extend(held);
            left.sort_unstable();
        }
        matcher.by_sums(&mut left, &mut made);
        let paired = matcher.by_alignment(&left, &mut made);
        take_out(&mut left, &paired);
        add_alone(&mut made, &left);
        matcher.join(&mut made);
        add_alone(&mut made, &apart);
    }
    let rows = |side: usize, made: &Made| -> Vec<usize> {
        let rows = made.groups[side].iter().filter_map(|&at| groups[side].get(at));
        rows.flat_map(|group| group.rows.iter().copied()).collect()
    };
    let sum = |side: usize, made: &Made| {
        let mut sum = Counts::default();
        made.groups[side].iter().filter_map(|&at| groups[side].get(at)).for_each(|g| sum.add(&g.counts));
        sum
    };
    made.iter()
        .map(|made| Pair {
            rows: [0, 1].map(|side| rows(side, made)),
            counts: [0, 1].map(|side| sum(side, made)),
            how: made.how,
        })
        .collect()
}

/// Takes pairs apart again whose counts differ, where the functions that were inlined into their call sites are not known:
/// the stack may stand for another one then.
fn hold(sides: Sides<'_, '_>, groups: &[Vec<Group>; 2], made: &mut Vec<Made>) -> [Vec<usize>; 2] {
    let mut held = [Vec::new(), Vec::new()];
    made.retain(|made| {
        let sum = |side: usize| {
            let mut sum = Counts::default();
            made.groups[side]
                .iter()
                .filter_map(|&at| groups[side].get(at))
                .for_each(|group| sum.add(&group.counts));
            sum
        };
        let [base, change] = [sum(0), sum(1)];
        let is_equal = difference([base.allocations, change.allocations], sides.views) == 0
            && difference([base.bytes, change.bytes], sides.views) == 0;
        let is_known = |side: usize| {
            let group = made.groups[side].first().and_then(|&at| groups[side].get(at));
            let shape = group.map(|group| sides.readers[side].shape(sides.views[side], group));
            shape.is_some_and(|shape| shape.user.first().is_some_and(|site| site.has_source))
        };
        let keeps = is_equal || (0..2).all(is_known);
        if !keeps {
            held.iter_mut().zip(&made.groups).for_each(|(held, groups)| held.extend(groups));
        }
        keeps
    });
    held
}

fn add_alone(made: &mut Vec<Made>, left: &[Vec<usize>; 2]) {
    for (side, left) in left.iter().enumerate() {
        for &group in left {
            let mut groups = [Vec::new(), Vec::new()];
            groups[side].push(group);
            made.push(Made { groups, how: How::Alone });
        }
    }
}

/// Groups of equal frames. Both lists are sorted by them. Returns what is left over.
fn equal(sides: Sides<'_, '_>, groups: &[Vec<Group>; 2], made: &mut Vec<Made>) -> [Vec<usize>; 2] {
    let mut left = [Vec::new(), Vec::new()];
    let (mut base, mut change) = (0, 0);
    // The end of the run of groups that have the same frames as the first one.
    let run = |side: usize, from: usize| {
        let rest = groups[side].get(from..).unwrap_or_default();
        from + rest.iter().take_while(|group| group.keys == rest[0].keys).count()
    };
    loop {
        let order = match (groups[0].get(base), groups[1].get(change)) {
            (Some(a), Some(b)) => a.keys.cmp(&b.keys),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return left,
        };
        let ends = [
            if order.is_le() { run(0, base) } else { base },
            if order.is_ge() { run(1, change) } else { change },
        ];
        equal_run(sides, groups, [base..ends[0], change..ends[1]], &mut left, made);
        [base, change] = ends;
    }
}

/// Groups that all have the same frames: those with the same counts are pairs, and so are the last ones of either side.
fn equal_run(
    sides: Sides<'_, '_>,
    groups: &[Vec<Group>; 2],
    runs: [Range<usize>; 2],
    left: &mut [Vec<usize>; 2],
    made: &mut Vec<Made>,
) {
    let mut open = runs.map(Iterator::collect::<Vec<usize>>);
    let mut pair = |base: usize, change: usize| {
        made.push(Made { groups: [vec![base], vec![change]], how: How::Equal });
    };
    if open.iter().any(|open| open.len() > 1) {
        let mut by_counts: BTreeMap<[u128; 2], [Vec<usize>; 2]> = BTreeMap::new();
        for side in [0, 1] {
            let others = u128::from(iterations(sides.views[1 - side].window));
            for at in open[side].drain(..) {
                let counts = groups[side].get(at).map_or_else(Counts::default, |group| group.counts);
                let counts = [counts.allocations, counts.bytes].map(|count| u128::from(count) * others);
                by_counts.entry(counts).or_default()[side].push(at);
            }
        }
        for [bases, changes] in by_counts.into_values() {
            let both = bases.len().min(changes.len());
            bases.iter().zip(&changes).for_each(|(&base, &change)| pair(base, change));
            open[0].extend(bases.into_iter().skip(both));
            open[1].extend(changes.into_iter().skip(both));
        }
    }
    if let ([base], [change]) = (&open[0][..], &open[1][..]) {
        pair(*base, *change);
    } else {
        left.iter_mut().zip(open).for_each(|(left, open)| left.extend(open));
    }
}

pub(super) struct Matcher<'a, 'p> {
    pub(super) sides: Sides<'a, 'p>,
    pub(super) groups: &'a [Vec<Group>; 2],
    /// Of the groups that were looked at.
    shapes: [Vec<Option<Rc<Shape>>>; 2],
    pub(super) budget: Budget,
}

impl<'a, 'p> Matcher<'a, 'p> {
    fn new(sides: Sides<'a, 'p>, groups: &'a [Vec<Group>; 2]) -> Self {
        let shapes = groups.each_ref().map(|groups| vec![None; groups.len()]);
        Self { sides, groups, shapes, budget: Budget::new() }
    }

    pub(super) fn shape(&mut self, side: usize, group: usize) -> Rc<Shape> {
        let Self { sides, groups, shapes, .. } = self;
        let made = || match groups[side].get(group) {
            Some(group) => Rc::new(sides.readers[side].shape(sides.views[side], group)),
            None => Rc::default(),
        };
        match shapes[side].get_mut(group) {
            Some(shape) => Rc::clone(shape.get_or_insert_with(made)),
            None => made(),
        }
    }

    /// Allocations, and bytes, of some groups of one side.
    pub(super) fn counts(&self, side: usize, groups: &[usize]) -> Counts {
        let mut sum = Counts::default();
        groups.iter().filter_map(|&at| self.groups[side].get(at)).for_each(|group| sum.add(&group.counts));
        sum
    }

    /// How many more allocations the change has, in units of both sides' iterations.
    fn more(&self, base: &[usize], change: &[usize]) -> i128 {
        let counts = [self.counts(0, base).allocations, self.counts(1, change).allocations];
        difference(counts, self.sides.views)
    }

    /// Groups that have their call sites, callers and allocation functions in common, and what was called there if that
    /// is asked for: all of them of both sides are one pair.
    fn by_callers(&mut self, left: &mut [Vec<usize>; 2], made: &mut Vec<Made>, with_callee: bool) {
        type Place = (Entry, Option<Key>, Vec<Key>);
        let mut places: Places<Place> = Places::default();
        for side in [0, 1] {
            for group in std::mem::take(&mut left[side]) {
                let shape = self.shape(side, group);
                let callee = shape.callee.filter(|_| with_callee);
                let place = (shape.entry.clone(), callee, shape.keys().collect());
                places.entry(place).or_default()[side].push(group);
            }
        }
        let both = of_both(places, left);
        made.extend(both.into_iter().map(|groups| Made { groups, how: How::Library }));
        left.iter_mut().for_each(|left| left.sort_unstable());
    }

    /// Takes out what looks like a function with another name that is not alike: a call site that one side alone has, and on
    /// the other side one with the same counts below the same callers. Nothing proves that they are one, so they stay
    /// alone; but neither is it the counterpart of a third. Without debug information they stay in: a function may be on
    /// one side alone because the other side inlined it.
    fn set_apart(&mut self, left: &mut [Vec<usize>; 2]) -> [Vec<usize>; 2] {
        type Place = (Entry, Vec<Key>, [u128; 2]);
        let keys = self.sides.readers[0].keys;
        let mut places: BTreeMap<Place, [Vec<usize>; 2]> = BTreeMap::new();
        for side in [0, 1] {
            let others = u128::from(iterations(self.sides.views[1 - side].window));
            for &group in &left[side] {
                let shape = self.shape(side, group);
                if !shape.user.first().is_some_and(|site| site.has_source && keys.is_one_sided(site.key)) {
                    continue;
                }
                let callers = shape.keys().skip(1).filter(|&key| !keys.is_one_sided(key)).collect();
                let counts = self.counts(side, &[group]);
                let amounts = [counts.allocations, counts.bytes].map(|count| u128::from(count) * others);
                places.entry((shape.entry.clone(), callers, amounts)).or_default()[side].push(group);
            }
        }
        let mut apart = [Vec::new(), Vec::new()];
        for groups in places.into_values().filter(|groups| groups.iter().all(|groups| !groups.is_empty())) {
            let sites = [0, 1].map(|side| -> BTreeSet<Key> {
                groups[side].iter().filter_map(|&group| self.shape(side, group).keys().next()).collect()
            });
            let is_alike = |a: Key, b: Key| keys.are_instances(a, b) || keys.similarity(a, b) >= ALIKE;
            if !sites[0].iter().any(|&a| sites[1].iter().any(|&b| is_alike(a, b))) {
                apart.iter_mut().zip(groups).for_each(|(apart, groups)| apart.extend(groups));
            }
        }
        for (left, apart) in left.iter_mut().zip(&mut apart) {
            apart.sort_unstable();
            left.retain(|group| apart.binary_search(group).is_err());
        }
        apart
    }

    /// Aligns stacks that are the same in the functions whose names both sides have; with or without the places of the
    /// others among them.
    fn by_shared_functions(&mut self, left: &mut [Vec<usize>; 2], made: &mut Vec<Made>, with_places: bool) {
        let keys = self.sides.readers[0].keys;
        type Place = (Entry, Vec<Option<Key>>);
        let mut places: Places<Place> = Places::default();
        for side in [0, 1] {
            for &group in &left[side] {
                let shape = self.shape(side, group);
                let mut shared: Vec<Option<Key>> = shape.keys().map(|key| keys.shared_name(key)).collect();
                if with_places {
                    shared.dedup_by(|a, b| a.is_none() && b.is_none());
                } else {
                    shared.retain(Option::is_some);
                }
                places.entry((shape.entry.clone(), shared)).or_default()[side].push(group);
            }
        }
        let mut paired = [BTreeSet::new(), BTreeSet::new()];
        for groups in of_both(places, &mut [Vec::new(), Vec::new()]) {
            let mut of_place = Vec::new();
            self.by_alignment(&groups, &mut of_place);
            hold(self.sides, self.groups, &mut of_place);
            for made in &of_place {
                paired.iter_mut().zip(&made.groups).for_each(|(paired, groups)| paired.extend(groups));
            }
            made.append(&mut of_place);
        }
        take_out(left, &paired);
    }

    /// Aligns groups; returns those that are paired.
    fn by_alignment(&mut self, of: &[Vec<usize>; 2], made: &mut Vec<Made>) -> [BTreeSet<usize>; 2] {
        let shapes: [Vec<Rc<Shape>>; 2] =
            [0, 1].map(|side| of[side].iter().map(|&at| self.shape(side, at)).collect());
        // Which side is the first one follows from the stacks.
        let texts = |side: usize| -> Vec<&[Key]> {
            of[side].iter().filter_map(|&at| Some(&*self.groups[side].get(at)?.keys)).collect()
        };
        let first = usize::from(texts(1) < texts(0));
        let second = 1 - first;
        let keys = self.sides.readers[0].keys;
        let mut fits: BTreeMap<(usize, usize), How> = BTreeMap::new();
        let mut edges = Vec::new();
        for (at, other) in candidates(keys, &shapes[first], &shapes[second]) {
            let (Some(a), Some(b)) = (shapes[first].get(at), shapes[second].get(other)) else { continue };
            let Some(fit) = fit(keys, a, b, &mut self.budget) else { continue };
            let counts = |side: usize, at: usize| {
                of[side].get(at).map_or_else(Counts::default, |&group| self.counts(side, &[group]))
            };
            let is_known = [a, b].iter().all(|shape| shape.user.first().is_some_and(|site| site.has_source));
            let counts = [counts(first, at), counts(second, other)];
            if fit.sites_hidden && !self.are_equal(first, counts) {
                continue;
            }
            // What was inlined is known: another call site with blocks of another size is another allocation.
            if fit.site_skipped && is_known && !is_one_size(&counts[0], &counts[1]) {
                continue;
            }
            let likeness = self.likeness(first, counts, is_known);
            // A pair more is no reason to make bad ones.
            let weight = 0.02 + fit.quality * fit.quality + likeness;
            edges.push(Edge { left: at, right: other, weight });
            let is_equal = a.user.len() == b.user.len() && a.keys().eq(b.keys());
            let how = match (fit.site_renamed, fit.renamed) {
                (true, _) => How::OtherSite,
                (false, true) => How::Renamed,
                (false, false) if is_equal => How::Library,
                (false, false) => How::Inlining,
            };
            fits.insert((at, other), how);
        }
        let mut paired = [BTreeSet::new(), BTreeSet::new()];
        for (at, other) in assign(&edges) {
            let how = fits.get(&(at, other)).copied().unwrap_or(How::Inlining);
            let mut groups = [Vec::new(), Vec::new()];
            for (side, at) in [(first, at), (second, other)] {
                if let Some(&group) = of[side].get(at) {
                    groups[side].push(group);
                    paired[side].insert(group);
                }
            }
            made.push(Made { groups, how });
        }
        paired
    }

    /// How much alike counts are, as far as it may decide: blocks of the same size, and then as many of them. Where it is not
    /// known what was inlined, the same counts say more than the frames.
    fn likeness(&self, side: usize, counts: [Counts; 2], is_known: bool) -> f64 {
        let is_one_size = is_one_size(&counts[0], &counts[1]);
        let rate = |side: usize, count: u64| count as f64 / iterations(self.sides.views[side].window) as f64;
        let (a, b) = (rate(side, counts[0].allocations), rate(1 - side, counts[1].allocations));
        let as_many = if a + b > 0.0 { 1.0 - (a - b).abs() / (a + b) } else { 1.0 };
        match (is_one_size, as_many >= 1.0) {
            (true, true) if !is_known => 1.0,
            (true, _) => 0.15 + 0.001 * as_many,
            (false, _) => 0.001 * as_many,
        }
    }

    /// Whether counts are the same, per iteration; the first ones are of a side.
    fn are_equal(&self, side: usize, counts: [Counts; 2]) -> bool {
        let own = [counts[side], counts[1 - side]];
        difference(own.map(|counts| counts.allocations), self.sides.views) == 0
            && difference(own.map(|counts| counts.bytes), self.sides.views) == 0
    }

    /// How many more bytes the change has.
    fn more_bytes(&self, base: &[usize], change: &[usize]) -> i128 {
        let counts = [self.counts(0, base).bytes, self.counts(1, change).bytes];
        difference(counts, self.sides.views)
    }

    /// Joins pairs and stacks that are alone, where one side of one has too much and the other side of the other.
    fn join(&mut self, made: &mut Vec<Made>) {
        let more: Vec<i128> = made.iter().map(|made| self.more(&made.groups[0], &made.groups[1])).collect();
        let bytes: Vec<i128> =
            made.iter().map(|made| self.more_bytes(&made.groups[0], &made.groups[1])).collect();
        let of_sign = |sign: i128, side: usize| -> Vec<(usize, usize)> {
            let is_fit =
                |(at, made): &(usize, &Made)| more[*at].signum() == sign && made.how != How::OtherSite;
            let unequal = made.iter().enumerate().filter(is_fit);
            unequal.filter_map(|(at, made)| Some((at, *made.groups[side].first()?))).collect()
        };
        // The base has too much, and the change has.
        let givers = [of_sign(-1, 0), of_sign(1, 1)];
        if givers.iter().any(Vec::is_empty) {
            return;
        }
        let shapes: [Vec<Rc<Shape>>; 2] =
            [0, 1].map(|side| givers[side].iter().map(|&(_, group)| self.shape(side, group)).collect());
        let keys = self.sides.readers[0].keys;
        let mut budget = Budget::new();
        // How much would be left of what is too much, and how bad the fit is; who they are.
        let mut possible: Vec<((u64, f64), [usize; 2], bool)> = Vec::new();
        for (base, change) in candidates(keys, &shapes[0], &shapes[1]) {
            let (Some(a), Some(b)) = (shapes[0].get(base), shapes[1].get(change)) else { continue };
            let both = [givers[0][base].0, givers[1][change].0];
            let is_alone = both.iter().any(|&at| made[at].how == How::Alone);
            let is_known = [a, b].iter().all(|shape| shape.user.first().is_some_and(|site| site.has_source));
            // Where inlined functions are known, equal stacks on both sides are no accident.
            if (!is_alone && is_known) || !can_join(more[both[0]], more[both[1]], is_known) {
                continue;
            }
            // In the order of the stacks, whichever is the base's.
            let (first, second) = if a.user_order(b).is_le() { (a, b) } else { (b, a) };
            let is_possible = |fit: &Fit| !fit.site_renamed && !fit.sites_hidden;
            let fit = fit(keys, first, second, &mut budget).filter(is_possible);
            let Some(fit) = fit else { continue };
            let left = [&more, &bytes].map(|of| u64::from(of[both[0]].saturating_add(of[both[1]]) != 0));
            let left: u64 = left.iter().sum();
            // What was inlined is known: only what is exactly as much elsewhere can be the same, with blocks of one size.
            if is_known && fit.site_skipped {
                let size = |side: usize, at: usize| self.counts(side, &made[at].groups[side]);
                if left != 0 || !is_one_size(&size(0, both[0]), &size(1, both[1])) {
                    continue;
                }
            }
            possible.push(((left, 1.0 - fit.quality), both, is_known));
        }
        let text = |at: usize, side: usize| {
            let group = made[at].groups[side].first().and_then(|&at| self.groups[side].get(at));
            group.map_or(&[][..], |group| &*group.keys)
        };
        // With how much each has too much, or too little.
        let texts = |both: [usize; 2]| {
            let of = |side: usize| {
                let at = both[side];
                (text(at, side), more[at].unsigned_abs(), bytes[at].unsigned_abs())
            };
            let (a, b) = (of(0), of(1));
            (a.min(b), a.max(b))
        };
        possible.sort_by(|(a, of_a, _), (b, of_b, _)| {
            let costs = a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
            costs.then_with(|| texts(*of_a).cmp(&texts(*of_b))).then(of_a.cmp(of_b))
        });
        // Who was joined with whom: the one that is further to the front.
        let mut more = more.clone();
        let mut joined: Vec<usize> = (0..made.len()).collect();
        for (_, both, is_known) in possible {
            let [a, b] = both.map(|at| root(&mut joined, at));
            if a == b || !can_join(more[a], more[b], is_known) {
                continue;
            }
            let (into, from) = if more[a].unsigned_abs() >= more[b].unsigned_abs() { (a, b) } else { (b, a) };
            more[into] = more[into].saturating_add(more[from]);
            joined[from] = into;
            let groups = std::mem::take(&mut made[from].groups);
            made[into].groups.iter_mut().zip(groups).for_each(|(into, from)| into.extend(from));
            let how = made[from].how;
            let how = [how, made[into].how].into_iter().filter(|how| *how != How::Alone).max();
            made[into].how = how.unwrap_or(How::Inlining).max(How::Inlining);
        }
        made.retain(|made| made.groups.iter().any(|groups| !groups.is_empty()));
    }
}

/// Groups of either side, by what they have in common. PERF: looked up by hash: as a tree of long lists it was most of the
/// time of 65,536 stacks that all differ.
type Places<P> = FxHashMap<P, [Vec<usize>; 2]>;

/// The groups of what both sides have, in the order of the places; `left` gets the others.
fn of_both<P: Ord>(places: Places<P>, left: &mut [Vec<usize>; 2]) -> Vec<[Vec<usize>; 2]> {
    let mut both = Vec::new();
    for (place, groups) in places {
        if groups.iter().all(|groups| !groups.is_empty()) {
            both.push((place, groups));
        } else {
            left.iter_mut().zip(groups).for_each(|(left, groups)| left.extend(groups));
        }
    }
    both.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    both.into_iter().map(|(_, groups)| groups).collect()
}

pub(super) fn take_out(left: &mut [Vec<usize>; 2], paired: &[BTreeSet<usize>; 2]) {
    for (left, paired) in left.iter_mut().zip(paired) {
        left.retain(|group| !paired.contains(group));
    }
}

/// Whether blocks have the same size on average.
fn is_one_size(a: &Counts, b: &Counts) -> bool {
    let [a, b] = [a, b].map(|counts| [counts.allocations, counts.bytes].map(u128::from));
    a[1] * b[0] == b[1] * a[0]
}

/// Whether one has too much of what the other has too little of; and both of one size, where inlined functions are known:
/// there a stack is not parted in many.
fn can_join(a: i128, b: i128, is_known: bool) -> bool {
    let (small, large) = (a.unsigned_abs().min(b.unsigned_abs()), a.unsigned_abs().max(b.unsigned_abs()));
    a.signum() == -b.signum() && (!is_known || small.saturating_mul(2) >= large)
}

fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}
