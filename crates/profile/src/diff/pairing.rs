//! The stacks of a window on both sides, paired.
//!
//! ```text
//! groups of equal rows ─1─▶ equal stacks
//!        │ left over
//!        ├─2─▶ equal but for library frames: same call site, callers and allocation function
//!        ├─3─▶ alignment: the best of all possible pairs; first among stacks whose shared functions are the same
//!        └─4─▶ joined: what one side of a pair has too much, and the other side of another one
//! ```
//!
//! 3 is told in [`alignment`](super::alignment), [`candidate`](super::candidate) and [`assignment`](super::assignment).
//! Counts break ties there, nothing else, and the size of the blocks decides between fits of nearly one quality. 4 is for the stack that one inlining decision parts in two: where the base has
//! more in one pair (or in a stack that is alone) and the change in another, and the two fit, they become one, as long as
//! both amounts are of one size. One of them has to be alone, unless there is no debug information: with it, two stacks
//! that both sides have are not one.
//!
//! Nothing depends on which side is the base: where an order matters, that of the stacks' texts is taken.

use std::collections::{BTreeMap, BTreeSet};

use super::alignment::{ALIKE, Budget, fit};
use super::assignment::{Edge, assign};
use super::candidate::candidates;
use super::key::Key;
use super::name::similarity;
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
struct Made {
    groups: [Vec<usize>; 2],
    how: How,
}

/// Pairs all rows of a window. Each row is in exactly one pair; a pair of one side only has no rows on the other.
pub(super) fn pair(sides: Sides<'_, '_>) -> Vec<Pair> {
    let groups = [0, 1].map(|side| sides.readers[side].groups(sides.views[side]));
    let mut made = Vec::new();
    let mut left = equal(&groups, &mut made);
    if !left[0].is_empty() || !left[1].is_empty() {
        let mut matcher = Matcher::new(sides, &groups);
        matcher.by_callers(&mut left, &mut made, true);
        matcher.by_callers(&mut left, &mut made, false);
        let apart = matcher.set_apart(&mut left);
        matcher.by_shared_functions(&mut left, &mut made);
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
fn equal(groups: &[Vec<Group>; 2], made: &mut Vec<Made>) -> [Vec<usize>; 2] {
    let mut left = [Vec::new(), Vec::new()];
    let (mut base, mut change) = (0, 0);
    loop {
        let order = match (groups[0].get(base), groups[1].get(change)) {
            (Some(a), Some(b)) => a.keys.cmp(&b.keys),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return left,
        };
        if order.is_eq() {
            made.push(Made { groups: [vec![base], vec![change]], how: How::Equal });
        } else if order.is_lt() {
            left[0].push(base);
        } else {
            left[1].push(change);
        }
        base += usize::from(order.is_le());
        change += usize::from(order.is_ge());
    }
}

struct Matcher<'a, 'p> {
    sides: Sides<'a, 'p>,
    groups: &'a [Vec<Group>; 2],
    /// Of the groups that were looked at.
    shapes: [BTreeMap<usize, Shape>; 2],
    budget: Budget,
}

impl<'a, 'p> Matcher<'a, 'p> {
    fn new(sides: Sides<'a, 'p>, groups: &'a [Vec<Group>; 2]) -> Self {
        Self { sides, groups, shapes: [BTreeMap::new(), BTreeMap::new()], budget: Budget::new() }
    }

    fn shape(&mut self, side: usize, group: usize) -> Shape {
        let Self { sides, groups, shapes, .. } = self;
        let made = || match groups[side].get(group) {
            Some(group) => sides.readers[side].shape(sides.views[side], group),
            None => Shape::default(),
        };
        shapes[side].entry(group).or_insert_with(made).clone()
    }

    /// Allocations, and bytes, of some groups of one side.
    fn counts(&self, side: usize, groups: &[usize]) -> Counts {
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
        let mut places: BTreeMap<Place, [Vec<usize>; 2]> = BTreeMap::new();
        for side in [0, 1] {
            for group in std::mem::take(&mut left[side]) {
                let shape = self.shape(side, group);
                let callee = shape.callee.filter(|_| with_callee);
                let place = (shape.entry.clone(), callee, shape.keys().collect());
                places.entry(place).or_default()[side].push(group);
            }
        }
        for groups in places.into_values() {
            if groups.iter().all(|groups| !groups.is_empty()) {
                made.push(Made { groups, how: How::Library });
            } else {
                let [base, change] = groups;
                left[0].extend(base);
                left[1].extend(change);
            }
        }
        left.iter_mut().for_each(|left| left.sort_unstable());
    }

    /// Takes out what looks like a function with another name that is not alike: a call site that one side alone has, and on
    /// the other side one with the same counts below the same callers. Nothing proves that they are one, so they stay
    /// alone; but neither is it the counterpart of a third.
    fn set_apart(&mut self, left: &mut [Vec<usize>; 2]) -> [Vec<usize>; 2] {
        type Place = (Entry, Vec<Key>, [u128; 2]);
        let keys = self.sides.readers[0].keys;
        let mut places: BTreeMap<Place, [Vec<usize>; 2]> = BTreeMap::new();
        for side in [0, 1] {
            let others = u128::from(iterations(self.sides.views[1 - side].window));
            for &group in &left[side] {
                let shape = self.shape(side, group);
                if !shape.user.first().is_some_and(|site| keys.is_one_sided(site.key)) {
                    continue;
                }
                let callers = shape.keys().skip(1).filter(|&key| !keys.is_one_sided(key)).collect();
                let counts = self.counts(side, &[group]);
                let amounts = [counts.allocations, counts.bytes].map(|count| u128::from(count) * others);
                places.entry((shape.entry, callers, amounts)).or_default()[side].push(group);
            }
        }
        let mut apart = [Vec::new(), Vec::new()];
        for groups in places.into_values().filter(|groups| groups.iter().all(|groups| !groups.is_empty())) {
            let names = [0, 1].map(|side| -> BTreeSet<&str> {
                let sites = groups[side].iter().filter_map(|&group| self.shape(side, group).keys().next());
                sites.map(|key| keys.name(key)).collect()
            });
            let is_alike = |a: &&str| names[1].iter().any(|b| similarity(a, b) >= ALIKE);
            if !names[0].iter().any(is_alike) {
                apart.iter_mut().zip(groups).for_each(|(apart, groups)| apart.extend(groups));
            }
        }
        for (left, apart) in left.iter_mut().zip(&mut apart) {
            apart.sort_unstable();
            left.retain(|group| apart.binary_search(group).is_err());
        }
        apart
    }

    /// Aligns stacks that are the same in the functions whose names both sides have.
    fn by_shared_functions(&mut self, left: &mut [Vec<usize>; 2], made: &mut Vec<Made>) {
        let keys = self.sides.readers[0].keys;
        type Place = (Entry, Vec<Option<Key>>);
        let mut places: BTreeMap<Place, [Vec<usize>; 2]> = BTreeMap::new();
        for side in [0, 1] {
            for &group in &left[side] {
                let shape = self.shape(side, group);
                let mut shared: Vec<Option<Key>> = shape.keys().map(|key| keys.shared_name(key)).collect();
                shared.dedup_by(|a, b| a.is_none() && b.is_none());
                places.entry((shape.entry, shared)).or_default()[side].push(group);
            }
        }
        let mut paired = [BTreeSet::new(), BTreeSet::new()];
        for groups in places.into_values().filter(|groups| groups.iter().all(|groups| !groups.is_empty())) {
            let of_place = self.by_alignment(&groups, made);
            paired.iter_mut().zip(of_place).for_each(|(paired, more)| paired.extend(more));
        }
        take_out(left, &paired);
    }

    /// Aligns groups; returns those that are paired.
    fn by_alignment(&mut self, of: &[Vec<usize>; 2], made: &mut Vec<Made>) -> [BTreeSet<usize>; 2] {
        let shapes: [Vec<Shape>; 2] =
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
            let likeness = self.likeness(first, [counts(first, at), counts(second, other)]);
            // A pair more is no reason to make bad ones.
            let weight = 0.02 + fit.quality * fit.quality + likeness;
            edges.push(Edge { left: at, right: other, weight });
            let how = match (fit.site_renamed, fit.renamed) {
                (true, _) => How::OtherSite,
                (false, true) => How::Renamed,
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

    /// How much alike counts are, as far as it may decide: blocks of the same size, and then as many of them.
    fn likeness(&self, side: usize, counts: [Counts; 2]) -> f64 {
        let [a, b] = counts.map(|counts| [counts.allocations, counts.bytes].map(u128::from));
        let is_one_size = a[1] * b[0] == b[1] * a[0];
        let rate = |side: usize, count: u128| count as f64 / iterations(self.sides.views[side].window) as f64;
        let (a, b) = (rate(side, a[0]), rate(1 - side, b[0]));
        let as_many = if a + b > 0.0 { 1.0 - (a - b).abs() / (a + b) } else { 1.0 };
        if is_one_size { 0.15 + 0.001 * as_many } else { 0.001 * as_many }
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
        let shapes: [Vec<Shape>; 2] =
            [0, 1].map(|side| givers[side].iter().map(|&(_, group)| self.shape(side, group)).collect());
        let keys = self.sides.readers[0].keys;
        let mut budget = Budget::new();
        // How much would be left of what is too much, and how bad the fit is; who they are.
        let mut possible: Vec<((u64, f64), [usize; 2])> = Vec::new();
        for (base, change) in candidates(keys, &shapes[0], &shapes[1]) {
            let (Some(a), Some(b)) = (shapes[0].get(base), shapes[1].get(change)) else { continue };
            let both = [givers[0][base].0, givers[1][change].0];
            let is_alone = both.iter().any(|&at| made[at].how == How::Alone);
            let is_known = [a, b].iter().all(|shape| shape.user.first().is_some_and(|site| site.has_source));
            // Where inlined functions are known, equal stacks on both sides are no accident.
            if (!is_alone && is_known) || !can_join(more[both[0]], more[both[1]]) {
                continue;
            }
            let fit = fit(keys, a, b, &mut budget).filter(|fit| !fit.site_renamed);
            let Some(fit) = fit else { continue };
            let left = [&more, &bytes].map(|of| u64::from(of[both[0]].saturating_add(of[both[1]]) != 0));
            let left: u64 = left.iter().sum();
            possible.push(((left, 1.0 - fit.quality), both));
        }
        let text = |at: usize, side: usize| {
            let group = made[at].groups[side].first().and_then(|&at| self.groups[side].get(at));
            group.map_or(&[][..], |group| &*group.keys)
        };
        let texts = |both: [usize; 2]| {
            let (a, b) = (text(both[0], 0), text(both[1], 1));
            (a.min(b), a.max(b))
        };
        possible.sort_by(|(a, of_a), (b, of_b)| {
            let costs = a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
            costs.then_with(|| texts(*of_a).cmp(&texts(*of_b))).then(of_a.cmp(of_b))
        });
        // Who was joined with whom: the one that is further to the front.
        let mut more = more;
        let mut joined: Vec<usize> = (0..made.len()).collect();
        for (_, both) in possible {
            let [a, b] = both.map(|at| root(&mut joined, at));
            if a == b || !can_join(more[a], more[b]) {
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

fn take_out(left: &mut [Vec<usize>; 2], paired: &[BTreeSet<usize>; 2]) {
    for (left, paired) in left.iter_mut().zip(paired) {
        left.retain(|group| !paired.contains(group));
    }
}

/// Whether one has too much of what the other has too little of, and both of one size.
fn can_join(a: i128, b: i128) -> bool {
    let (small, large) = (a.unsigned_abs().min(b.unsigned_abs()), a.unsigned_abs().max(b.unsigned_abs()));
    a.signum() == -b.signum() && small.saturating_mul(2) >= large
}

fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}
