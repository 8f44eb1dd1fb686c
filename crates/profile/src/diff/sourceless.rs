//! Call sites that one side knows by symbols only.
//!
//! Where one side has debug information and the other has none, functions that were inlined are frames of one side alone, and
//! which stack of the one is which of the other can not always be told:
//!
//! ```text
//! base                           change, without debug information
//! 3 malloc < f                   5 malloc < f
//! 4 malloc < f < copy < main     2 malloc < f < main
//! ```
//!
//! If what is left of a call site counts the same in all, it is no difference: it has other names for its callers, and that is
//! what is to be expected. It becomes one pair. Where both sides have debug information, other callers are a difference.

use std::collections::BTreeMap;

use super::key::{Item, Key};
use super::pairing::Sides;
use super::rate::{compare, difference, is_one_off};
use super::stack::site;
use super::{How, Pair};
use crate::model::Counts;

/// Joins pairs of one call site that cancel each other, where one side alone has its source.
pub(super) fn join(sides: Sides<'_, '_>, pairs: Vec<Pair>) -> Vec<Pair> {
    let mut sites: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (at, pair) in pairs.iter().enumerate().filter(|(_, pair)| differs(sides, pair)) {
        let of = |side: usize| Some(item(sides, side, *pair.rows[side].first()?)?.key);
        if let Some(site) = of(1).or(of(0)) {
            sites.entry(site).or_default().push(at);
        }
    }
    let mut joined: Vec<Option<Pair>> = pairs.into_iter().map(Some).collect();
    for of_site in sites.into_values() {
        let members = of_site.iter().filter_map(|&at| joined.get(at)?.as_ref());
        let Some(whole) = one(sides, members) else { continue };
        for &at in &of_site {
            joined[at] = None;
        }
        if let Some(first) = of_site.first() {
            joined[*first] = Some(whole);
        }
    }
    joined.into_iter().flatten().collect()
}

/// Whether a pair would be told as a difference of its call site.
fn differs(sides: Sides<'_, '_>, pair: &Pair) -> bool {
    let counts = pair.counts.map(|counts| [counts.allocations, counts.bytes]);
    let rows = [&pair.rows[0][..], &pair.rows[1][..]];
    pair.how != How::OtherSite
        && !is_one_off(sides.views, rows, counts)
        && compare(sides.views, rows, counts).0 != [0, 0]
}

/// The call site of a row.
fn item(sides: Sides<'_, '_>, side: usize, row: usize) -> Option<Item> {
    let row = sides.views[side].rows.get(row)?;
    let items: Vec<Item> = sides.readers[side].frames(row).into_iter().map(|(item, _)| item).collect();
    items.get(site(&items)).copied()
}

/// Several pairs as one, if they cancel each other, and one side has the source of all of its stacks' call sites, and the other
/// of none.
fn one<'a>(sides: Sides<'_, '_>, members: impl Iterator<Item = &'a Pair>) -> Option<Pair> {
    let mut whole =
        Pair { rows: [Vec::new(), Vec::new()], counts: [Counts::default(); 2], how: How::Inlining };
    for member in members {
        for side in [0, 1] {
            whole.rows[side].extend(&member.rows[side]);
            whole.counts[side].add(&member.counts[side]);
        }
    }
    let is_equal = |of: fn(&Counts) -> u64| difference(whole.counts.each_ref().map(of), sides.views) == 0;
    let has_source = |side: usize| {
        let mut known =
            whole.rows[side].iter().map(|&row| item(sides, side, row).is_some_and(|item| item.has_source));
        let first = known.next()?;
        known.all(|other| other == first).then_some(first)
    };
    let is_one_sided = has_source(0)? != has_source(1)?;
    (is_one_sided && is_equal(|of| of.allocations) && is_equal(|of| of.bytes)).then_some(whole)
}
