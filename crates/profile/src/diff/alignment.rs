//! How far two stacks can be the same place in the program, built differently.
//!
//! ```text
//! base      malloc ← push ← header ← parse ← main
//! change    malloc ←        header ← parse_all ← main      push is inlined; parse has another name
//! ```
//!
//! **Call sites first.** They have to be the same function; or one of the other's next callers, when what lies between
//! can have been inlined or left by a tail call; or a function that has another name, which is much alike (or is another
//! instance of the same generic function), and neither
//! name exists on the other side. Otherwise two stacks are not alike, whatever their callers; but for those of equal counts
//! without debug information, where both call sites may have been inlined, on one side each.
//!
//! **Then the callers**, by the cheapest alignment:
//!
//! | difference | cost |
//! |---|---|
//! | a frame on one side only that is marked as inlined, and the other side does not know of inlined functions | 0.1 |
//! | … that is not marked, and the other side does not know of inlined functions | 0.2 |
//! | … that is marked, although the other side knows of inlined functions | 0.35 |
//! | … that a tail call may have left: the frame within is not inlined | 0.5 |
//! | … any other | 0.9 |
//! | the same name in another file | 0.2 |
//! | functions with shared code (folded by the linker) | 0.1 |
//! | instances of one generic function, of which one side has but one (folded by an optimiser) | 0.2 |
//! | a name that only one side has for one that only the other side has | 1 − 0.7 × similarity |
//! | another name that is alike (similarity from 0.6 on) | 0.3 + 1.2 × (1 − similarity) |
//! | any other name | never |
//!
//! A difference that occurs again in a stack, as in a recursion, costs a tenth. Frames that one side alone has where the
//! other alone has others cost 0.3 more, and 0.03 for each two that follow. What concerns the call site costs twice as
//! much, but for the first two. The sum may be 0.6, and 0.3 for each frame that both have, be it in another file, the call
//! site included, and 0.5 where the call sites are the same; else the stacks are no pair.

use std::collections::BTreeSet;

use super::key::{Item, Key, Keys};
use super::stack::Shape;

/// From this similarity on a call site may have another name.
pub(super) const ALIKE: f64 = 0.5;
/// How far the other side's call site may be from the leaf.
const FARTHEST_SITE: usize = 8;
/// How far from the leaf the first function may be that both have, where neither has the other's call site.
const FARTHEST_HIDDEN: usize = 4;
/// Larger parts of stacks that differ are not compared: frames times frames.
const MAX_CELLS: usize = 1 << 16;

/// How much may still be compared in all: frames times frames. What comes later is no pair.
#[derive(Debug)]
pub(super) struct Budget {
    cells: usize,
    /// Memory of the latest alignment, for the next one.
    costs: Vec<f64>,
    ways: Vec<Way>,
}

impl Budget {
    /// About a second.
    pub(super) fn new() -> Self {
        Self { cells: 1 << 27, costs: Vec::new(), ways: Vec::new() }
    }

    fn take(&mut self, cells: usize) -> bool {
        match self.cells.checked_sub(cells) {
            Some(rest) if cells <= MAX_CELLS => {
                self.cells = rest;
                true
            }
            _ => false,
        }
    }
}

/// Larger parts that differ in names only are compared place by place: there is hardly a better way, and it takes far less
/// time.
const FEW_CELLS: usize = 256;
/// Of a difference that occurs again, so much counts.
const AGAIN: f64 = 0.1;
/// What it costs that two frames stand in one place, each on one side only.
const INSTEAD: f64 = 0.3;
/// What is never the same.
const NEVER: f64 = 1e9;

/// How two stacks can be one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fit {
    /// From 0, hardly, to 1, equal.
    pub(super) quality: f64,
    /// Whether the call sites are functions of different names.
    pub(super) site_renamed: bool,
    /// Whether the call site of one is further out in the other.
    pub(super) site_skipped: bool,
    /// Whether any function has another name or another file.
    pub(super) renamed: bool,
    /// Whether neither call site is in the other stack: only equal counts speak for the pair then.
    pub(super) sites_hidden: bool,
}

/// What an alignment did with frames of the two sides, by their index from the call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Both(usize, usize),
    Renamed(usize, usize),
    BaseOnly(usize),
    ChangeOnly(usize),
}

/// Compares two stacks; `None`: they are no pair.
pub(super) fn fit(keys: &Keys, a: &Shape, b: &Shape, budget: &mut Budget) -> Option<Fit> {
    best(keys, a, b, budget).map(|(fit, ..)| fit)
}

/// The same, with the steps from the call site outwards.
pub(super) fn steps(keys: &Keys, a: &Shape, b: &Shape) -> Option<Vec<Step>> {
    let (_, skipped, aligned) = best(keys, a, b, &mut Budget::new())?;
    let mut steps: Vec<Step> = (0..skipped[0]).map(Step::BaseOnly).collect();
    steps.extend((0..skipped[1]).map(Step::ChangeOnly));
    let is_same =
        |i: usize, j: usize| a.user.get(i).map(|item| item.key) == b.user.get(j).map(|item| item.key);
    let both = |i, j| if is_same(i, j) { Step::Both(i, j) } else { Step::Renamed(i, j) };
    steps.push(both(skipped[0], skipped[1]));
    let (mut i, mut j) = (skipped[0] + 1, skipped[1] + 1);
    for way in aligned.ways {
        match way {
            Way::Both => {
                steps.push(both(i, j));
                i += 1;
                j += 1;
            }
            Way::A => {
                steps.push(Step::BaseOnly(i));
                i += 1;
            }
            Way::B => {
                steps.push(Step::ChangeOnly(j));
                j += 1;
            }
        }
    }
    Some(steps)
}

fn best(keys: &Keys, a: &Shape, b: &Shape, budget: &mut Budget) -> Option<(Fit, [usize; 2], Aligned)> {
    if a.entry != b.entry {
        return None;
    }
    let callee = if a.callee == b.callee { 0.0 } else { 0.1 };
    let mut best: Option<(Fit, [usize; 2], Aligned)> = None;
    let mut ways = sites(keys, a, b);
    let sites_hidden = ways.is_empty();
    if sites_hidden {
        ways.extend(hidden_sites(keys, a, b));
    }
    for (skipped, site_cost, site_renamed) in ways {
        let aligned = align(keys, &a.user, &b.user, [skipped[0] + 1, skipped[1] + 1], budget);
        let is_same = skipped == [0, 0] && !site_renamed;
        let limit = 0.6 + 0.3 * (aligned.shared as f64 + 1.0) + if is_same { 0.5 } else { 0.0 };
        let cost = site_cost + aligned.cost + callee;
        if cost >= limit {
            continue;
        }
        let quality = 1.0 - cost / limit;
        if best.as_ref().is_none_or(|(fit, ..)| quality > fit.quality) {
            let renamed = site_renamed || aligned.renamed;
            let site_skipped = skipped != [0, 0];
            best =
                Some((Fit { quality, site_renamed, site_skipped, renamed, sites_hidden }, skipped, aligned));
        }
    }
    best
}

/// How many frames are skipped on either side, at what cost, and whether the call site has another name.
type SiteWay = ([usize; 2], f64, bool);

/// The ways in which the call sites can be one.
fn sites(keys: &Keys, a: &Shape, b: &Shape) -> Vec<SiteWay> {
    let (Some(first_a), Some(first_b)) = (a.user.first(), b.user.first()) else { return Vec::new() };
    let mut ways = Vec::new();
    if first_a.key == first_b.key {
        ways.push(([0, 0], 0.0, false));
        return ways;
    }
    if keys.is_folded(first_a.key) && keys.is_folded(first_b.key) {
        ways.push(([0, 0], 0.2, false));
    }
    if keys.are_folded_instances(first_a.key, first_b.key) {
        ways.push(([0, 0], 0.4, false));
    }
    if keys.is_same_name(first_a.key, first_b.key) {
        ways.push(([0, 0], 0.4, true));
    } else if keys.are_named(first_a.key, first_b.key)
        && keys.is_one_sided(first_a.key)
        && keys.is_one_sided(first_b.key)
    {
        let alike = keys.similarity(first_a.key, first_b.key);
        // Of folded instances each side may have kept another one; or the type is another one now.
        let alike = if keys.are_instances(first_a.key, first_b.key) { alike.max(ALIKE) } else { alike };
        if alike >= ALIKE {
            ways.push(([0, 0], 2.0 * (1.0 - 0.7 * alike), true));
        }
    }
    let skip = |inner: &[Item], outer: &Item| -> Option<(usize, f64)> {
        let at = inner.iter().take(FARTHEST_SITE + 1).position(|item| item.key == outer.key)?;
        let skipped = inner.get(..at).unwrap_or_default();
        // What the call site calls is never inlined into it: it is outside of the program's own code.
        let cost = skipped_cost(keys, skipped, outer);
        Some((at, if outer.has_source { 2.0 * cost } else { cost }))
    };
    if let Some((at, cost)) = skip(&a.user, first_b) {
        ways.push(([at, 0], cost, false));
    }
    if let Some((at, cost)) = skip(&b.user, first_a) {
        ways.push(([0, at], cost, false));
    }
    ways
}

/// What it costs to skip the innermost frames of a stack, up to one; of a function that occurs again, a tenth.
fn skipped_cost(keys: &Keys, skipped: &[Item], outer: &Item) -> f64 {
    let own = |(at, item): (usize, &Item)| {
        let is_again = skipped.iter().take(at).any(|before| before.key == item.key);
        gap(keys, item, None, Some(outer)) * if is_again { AGAIN } else { 1.0 }
    };
    skipped.iter().enumerate().map(own).sum()
}

/// The way in which both call sites were inlined, each into a function of the other stack:
///
/// ```text
/// in the source   malloc ← fill ← build ← parse
/// base            malloc ← fill ←         parse       no debug information: nothing tells of `build`
/// change          malloc ←        build ← parse
/// ```
///
/// If both functions are known to both sides, one may as well have taken over what the other one did: then they count as
/// call sites of other names.
fn hidden_sites(keys: &Keys, a: &Shape, b: &Shape) -> Option<SiteWay> {
    let (first_a, first_b) = (a.user.first()?, b.user.first()?);
    if first_a.has_source || first_b.has_source {
        return None;
    }
    let reachable = |shape: &Shape| shape.user.len().min(FARTHEST_HIDDEN + 1);
    let places = (1..reachable(a)).flat_map(|i| (1..reachable(b)).map(move |j| [i, j]));
    let [i, j] = places
        .filter(|[i, j]| a.user[*i].key == b.user[*j].key)
        .min_by_key(|[i, j]| (i + j, i.abs_diff(*j)))?;
    let cost = |shape: &Shape, at: usize| skipped_cost(keys, &shape.user[..at], &shape.user[at]);
    let is_moved = keys.is_one_sided(first_a.key) == keys.is_one_sided(first_b.key);
    Some(([i, j], cost(a, i) + cost(b, j), is_moved))
}

/// What it costs that a frame is missing between two others, `inner` and `outer`.
fn gap(keys: &Keys, item: &Item, inner: Option<&Item>, outer: Option<&Item>) -> f64 {
    let knows_inlined = outer.or(inner).is_some_and(|item| item.has_source);
    let left_by_tail_call = inner.is_none_or(|inner| !inner.inlined);
    match (item.inlined, knows_inlined) {
        (true, false) => 0.1,
        (false, false) => 0.2,
        (true, true) => 0.35,
        (false, true) if left_by_tail_call || keys.is_one_sided(item.key) => 0.5,
        (false, true) => 0.9,
    }
}

/// What it costs that one function stands for another.
fn exchange(keys: &Keys, a: &Item, b: &Item) -> f64 {
    if a.key == b.key {
        return 0.0;
    }
    if keys.is_same_name(a.key, b.key) {
        return 0.2;
    }
    if !keys.are_named(a.key, b.key) {
        return NEVER;
    }
    if keys.is_folded(a.key) && keys.is_folded(b.key) {
        return 0.1;
    }
    if keys.are_folded_instances(a.key, b.key) {
        return 0.2;
    }
    let alike = keys.similarity(a.key, b.key);
    if keys.is_one_sided(a.key) && keys.is_one_sided(b.key) {
        1.0 - 0.7 * alike
    } else if alike >= 0.6 {
        0.3 + 1.2 * (1.0 - alike)
    } else {
        NEVER
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Both,
    A,
    B,
}

#[derive(Debug)]
struct Aligned {
    cost: f64,
    /// How many frames are the same.
    shared: usize,
    renamed: bool,
    /// From the inner end.
    ways: Vec<Way>,
}

/// What it costs that each frame stands for the one at its place; `None` unless those that differ are functions that one
/// side alone has. Counts the frames that are the same.
fn in_place(keys: &Keys, a: &[Item], b: &[Item], shared: &mut usize) -> Option<f64> {
    let mut seen: Vec<(Key, Key)> = Vec::new();
    let (mut cost, mut same) = (0.0, 0);
    for (a, b) in a.iter().zip(b) {
        if a.key == b.key {
            same += 1;
            continue;
        }
        let is_exchanged = keys.is_one_sided(a.key) && keys.is_one_sided(b.key);
        let own = if is_exchanged { exchange(keys, a, b) } else { NEVER };
        if own >= NEVER {
            return None;
        }
        same += usize::from(keys.is_same_name(a.key, b.key));
        if seen.contains(&(a.key, b.key)) {
            cost += own * AGAIN;
        } else {
            seen.push((a.key, b.key));
            cost += own;
        }
    }
    *shared += same;
    Some(cost)
}

/// Aligns what lies outside of the first frames of two stacks.
fn align(keys: &Keys, a: &[Item], b: &[Item], from: [usize; 2], budget: &mut Budget) -> Aligned {
    let (all_a, all_b) = (a.get(from[0]..).unwrap_or_default(), b.get(from[1]..).unwrap_or_default());
    // What is the same at either end costs nothing.
    let is_same = |(a, b): &(&Item, &Item)| a.key == b.key;
    let front = all_a.iter().zip(all_b).take_while(is_same).count();
    let (a_rest, b_rest) = (all_a.get(front..).unwrap_or_default(), all_b.get(front..).unwrap_or_default());
    let back = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(is_same).count();
    let (height, width) = (a_rest.len() - back, b_rest.len() - back);
    let mut aligned =
        Aligned { cost: 0.0, shared: front + back, renamed: false, ways: vec![Way::Both; front] };
    let cells = (height + 1).saturating_mul(width + 1);
    if cells > FEW_CELLS
        && height == width
        && let Some(cost) = in_place(keys, &a_rest[..height], &b_rest[..width], &mut aligned.shared)
    {
        aligned.renamed = true;
        aligned.ways.extend(std::iter::repeat_n(Way::Both, height + back));
        return Aligned { cost, ..aligned };
    }
    if !budget.take(cells) {
        aligned.cost = NEVER;
        return aligned;
    }
    // The frames within and outside of those that differ are their neighbours.
    let (start_a, start_b) = (from[0] + front, from[1] + front);
    let neighbours = |side: &[Item], at: usize| -> (Option<Item>, Option<Item>) {
        (at.checked_sub(1).and_then(|at| side.get(at)).copied(), side.get(at).copied())
    };
    let gap_of = |item: Option<&Item>, other: &[Item], at: usize| -> f64 {
        let (inner, outer) = neighbours(other, at);
        item.map_or(NEVER, |item| gap(keys, item, inner.as_ref(), outer.as_ref()))
    };
    let columns = width + 1;
    let Budget { costs, ways, .. } = budget;
    costs.clear();
    costs.resize((height + 1) * columns, 0.0);
    ways.clear();
    ways.resize((height + 1) * columns, Way::Both);
    for i in 0..=height {
        for j in 0..=width {
            if i == 0 && j == 0 {
                continue;
            }
            let mut best = (NEVER * 4.0, Way::Both);
            let mut consider = |cost: f64, way: Way| {
                if cost < best.0 {
                    best = (cost, way);
                }
            };
            let cell = |i: usize, j: usize| i * columns + j;
            if i > 0 && j > 0 {
                let pair = a_rest.get(i - 1).zip(b_rest.get(j - 1));
                let cost = pair.map_or(NEVER, |(a, b)| exchange(keys, a, b));
                consider(costs[cell(i - 1, j - 1)] + cost, Way::Both);
            }
            if i > 0 {
                consider(costs[cell(i - 1, j)] + gap_of(a_rest.get(i - 1), b, start_b + j), Way::A);
            }
            if j > 0 {
                consider(costs[cell(i, j - 1)] + gap_of(b_rest.get(j - 1), a, start_a + i), Way::B);
            }
            costs[cell(i, j)] = best.0;
            ways[cell(i, j)] = best.1;
        }
    }
    let mut middle = Vec::with_capacity(height + width);
    // What differs in the same way again, as in a recursion, is hardly another difference.
    let mut seen: BTreeSet<(Option<Key>, Option<Key>)> = BTreeSet::new();
    let (mut i, mut j) = (height, width);
    while i > 0 || j > 0 {
        let cost = costs[i * columns + j];
        let way = ways[i * columns + j];
        middle.push(way);
        i -= usize::from(way != Way::B);
        j -= usize::from(way != Way::A);
        let key = |rest: &[Item], at: usize| rest.get(at).map(|item| item.key);
        let pair = match way {
            Way::Both => (key(a_rest, i), key(b_rest, j)),
            Way::A => (key(a_rest, i), None),
            Way::B => (None, key(b_rest, j)),
        };
        if way == Way::Both && pair.0 == pair.1 {
            aligned.shared += 1;
            continue;
        }
        aligned.renamed |= way == Way::Both;
        if let (Some(a), Some(b)) = pair {
            aligned.shared += usize::from(keys.is_same_name(a, b));
        }
        let own = cost - costs[i * columns + j];
        aligned.cost += if own >= NEVER / 2.0 || seen.insert(pair) { own } else { own * AGAIN };
    }
    middle.reverse();
    let mut instead = 0;
    for run in middle.split(|way| *way == Way::Both) {
        let of_a = run.iter().filter(|way| **way == Way::A).count();
        instead += of_a.min(run.len() - of_a);
    }
    if instead > 0 {
        aligned.cost += INSTEAD * AGAIN.mul_add(instead as f64 - 1.0, 1.0).min(instead as f64);
    }
    aligned.ways.extend(middle);
    aligned.ways.extend(std::iter::repeat_n(Way::Both, back));
    aligned
}
