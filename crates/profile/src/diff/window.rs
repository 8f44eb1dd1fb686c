//! Windows of two profiles.

use super::entry::entries;
use super::key::Keys;
use super::pairing::{Sides, pair as pair_rows};
use super::sourceless;
use super::stack::Reader;
use super::{DiffOptions, How, Pair, Pairing, WindowDiff};
use crate::model::{Counts, Profile};
use crate::view::{View, WindowView};

type Windows<'p> = Vec<WindowView<'p>>;

/// The windows of one name, kind and image; then of one name and image; then of one name. Each in the order in which
/// they were opened. What is left of either side comes behind.
pub(super) fn pair<'p>(views: [View<'p>; 2]) -> (Vec<[WindowView<'p>; 2]>, [Windows<'p>; 2]) {
    let [base, change] = views;
    let mut bases: Vec<Option<WindowView<'p>>> = base.windows.into_iter().map(Some).collect();
    let mut changes: Vec<(Option<WindowView<'p>>, Option<WindowView<'p>>)> =
        change.windows.into_iter().map(|view| (None, Some(view))).collect();
    let label = |view: &WindowView<'p>| view.image.map(|image| image.label.as_str());
    for strictness in [2, 1, 0] {
        for (partner, view) in &mut changes {
            let Some(view) = view.as_ref().filter(|_| partner.is_none()) else { continue };
            let found = bases.iter_mut().find(|other| {
                other.as_ref().is_some_and(|other| {
                    other.window.name == view.window.name
                        && (strictness < 1 || label(other) == label(view))
                        && (strictness < 2 || other.window.kind == view.window.kind)
                })
            });
            *partner = found.and_then(Option::take);
        }
    }
    let mut pairs = Vec::new();
    let mut left = Vec::new();
    for (base, change) in changes {
        match (base, change) {
            (Some(base), Some(change)) => pairs.push([base, change]),
            (None, Some(change)) => left.push(change),
            (_, None) => {}
        }
    }
    (pairs, [bases.into_iter().flatten().collect(), left])
}

impl<'p> WindowDiff<'p> {
    pub(super) fn new(
        profiles: [&'p Profile; 2],
        views: [WindowView<'p>; 2],
        keys: &Keys,
        fits: &[Option<Vec<bool>>; 2],
        options: &DiffOptions,
    ) -> Self {
        let sides = Sides {
            readers: [Reader::new(keys, 0, options), Reader::new(keys, 1, options)],
            views: [&views[0], &views[1]],
            profiles,
        };
        let mut pairs = sourceless::join(sides, pair_rows(sides));
        let holds = |side: usize, row: &usize| {
            let row = views[side].rows.get(*row);
            let fits = fits[side].as_ref().zip(row).and_then(|(fits, row)| fits.get(row.row.stack));
            fits.copied().unwrap_or(false)
        };
        if fits.iter().any(Option::is_some) {
            pairs.retain(|pair| (0..2).any(|side| pair.rows[side].iter().any(|row| holds(side, row))));
        }
        let mut counts = [Counts::default(); 2];
        for (side, sum) in counts.iter_mut().enumerate() {
            pairs.iter().for_each(|pair| sum.add(&pair.counts[side]));
        }
        let (entries, unchanged, unstable) = entries(sides, &pairs, options.sort);
        let pairing = Pairing { unchanged, unstable, ..pairing(&pairs) };
        let mut window = Self { views, pairs, counts, one_off: Counts::default(), entries, pairing };
        for at in 0..window.pairs.len() {
            let pair = &window.pairs[at];
            if window.is_one_off(pair) {
                window.one_off.add(&pair.counts[0]);
                window.pairing.one_off += pair.rows[1].len() as u64;
            }
        }
        window
    }
}

fn pairing(pairs: &[Pair]) -> Pairing {
    let mut sums = Pairing::default();
    for pair in pairs {
        let [base, change] = [0, 1].map(|side| pair.rows[side].len() as u64);
        let stacks = if change > 0 { change } else { base };
        match pair.how {
            How::Equal => sums.equal += stacks,
            How::Library => sums.library += stacks,
            How::Inlining => sums.inlining += stacks,
            How::Renamed => sums.renamed += stacks,
            How::OtherSite => sums.other_site += stacks,
            How::Alone if change > 0 => sums.change_only += change,
            How::Alone => sums.base_only += base,
        }
    }
    sums
}
