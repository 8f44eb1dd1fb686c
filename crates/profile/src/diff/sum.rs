//! Stacks of a call site that one side knows by symbols only, found among those of the other side by their sums.
//!
//! ```text
//! base, without debug information     change
//! 2 malloc < main                     10 malloc < copy < request < main      100 bytes
//! 8 malloc < main                     10 malloc < extra < request < main     110 bytes
//! 9 malloc < main                     10 malloc < last < request < main       80 bytes
//! 1 malloc < main                     the base's four: 20, 180 bytes
//! ```
//!
//! An unrolled loop has one place in the source and many in the code, so neither the frames nor the counts of single stacks
//! say which is which. But what is unchanged has the same allocations and bytes in all: if exactly one choice of the other
//! side's stacks has that sum, it is the one.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::How;
use super::alignment::fit;
use super::key::Key;
use super::pairing::{Made, Matcher, take_out};
use super::rate::iterations;
use super::stack::Shape;
use crate::view::WindowView;

/// Allocations and bytes.
type Amounts = [u128; 2];

/// Of so many stacks on a side sums are looked at.
const MOST_STACKS: usize = 1 << 10;

/// Among so many stacks a sum is looked for.
const MOST: usize = 24;
/// So many sums are tried.
const TRIES: usize = 1 << 16;

/// Allocations and bytes of a side, in units of both sides' iterations.
fn amounts_of(allocations: u64, bytes: u64, other: &WindowView<'_>) -> Amounts {
    let others = u128::from(iterations(other.window));
    [allocations, bytes].map(|count| u128::from(count) * others)
}

/// The only choice of `parts` whose sum is `whole`: their indices. `None`: there is none, or several, or too many to try.
fn only_choice(parts: &[Amounts], whole: Amounts) -> Option<Vec<usize>> {
    if parts.len() > MOST || whole == [0, 0] {
        return None;
    }
    // The largest first: a sum that is too large is left early.
    let mut order: Vec<usize> = (0..parts.len()).filter(|&at| parts[at] != [0, 0]).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(parts[at]));
    let mut rests = vec![[0_u128; 2]; order.len() + 1];
    for place in (0..order.len()).rev() {
        rests[place] = add(rests[place + 1], parts[order[place]]);
    }
    let mut search = Search { parts, order: &order, rests: &rests, tries: TRIES, found: Vec::new() };
    search.go(0, whole, &mut Vec::new());
    if search.tries == 0 {
        return None;
    }
    match &mut search.found[..] {
        [only] => {
            let mut only = std::mem::take(only);
            only.sort_unstable();
            Some(only)
        }
        _ => None,
    }
}

fn add(a: Amounts, b: Amounts) -> Amounts {
    [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])]
}

struct Search<'a> {
    parts: &'a [Amounts],
    order: &'a [usize],
    /// The sum of what comes from each place on.
    rests: &'a [Amounts],
    tries: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn go(&mut self, place: usize, left: Amounts, chosen: &mut Vec<usize>) {
        if self.tries == 0 || self.found.len() > 1 {
            return;
        }
        self.tries -= 1;
        if left == [0, 0] {
            self.found.push(chosen.clone());
            return;
        }
        let Some(&at) = self.order.get(place) else { return };
        if self.rests[place][0] < left[0] || self.rests[place][1] < left[1] {
            return;
        }
        let own = self.parts[at];
        if own[0] <= left[0] && own[1] <= left[1] {
            chosen.push(at);
            self.go(place + 1, [left[0] - own[0], left[1] - own[1]], chosen);
            chosen.pop();
        }
        self.go(place + 1, left, chosen);
    }
}

impl Matcher<'_, '_> {
    /// Stacks without source that are the same but for addresses, with those of the other side, with source, that have their
    /// sum and can be them.
    pub(super) fn by_sums(&mut self, left: &mut [Vec<usize>; 2], made: &mut Vec<Made>) {
        let keys = self.sides.readers[0].keys;
        for poor in [0, 1] {
            let rich = 1 - poor;
            let mut families: BTreeMap<Vec<Key>, Vec<usize>> = BTreeMap::new();
            for &group in &left[poor] {
                let shape = self.shape(poor, group);
                if shape.user.first().is_some_and(|site| !site.has_source) {
                    families.entry(self.groups[poor][group].keys.to_vec()).or_default().push(group);
                }
            }
            let of_rich: Vec<(usize, Rc<Shape>)> =
                left[rich].iter().map(|&group| (group, self.shape(rich, group))).collect();
            let mut of_rich: Vec<(usize, Rc<Shape>)> = of_rich
                .into_iter()
                .filter(|(_, shape)| shape.user.first().is_some_and(|site| site.has_source))
                .collect();
            if of_rich.len() > MOST_STACKS || families.len() > MOST_STACKS {
                continue;
            }
            let mut families: Vec<Vec<usize>> = families.into_values().collect();
            let mut taken: [BTreeSet<usize>; 2] = Default::default();
            // What one family takes may leave another one choice only.
            loop {
                let before = families.len();
                families.retain(|family| {
                    let Some(&first) = family.first() else { return false };
                    let shape = self.shape(poor, first);
                    let fitting: Vec<usize> = (0..of_rich.len())
                        .filter(|&at| {
                            let other = &of_rich[at].1;
                            let (a, b) = if shape.user_order(other).is_le() {
                                (&*shape, &**other)
                            } else {
                                (&**other, &*shape)
                            };
                            fit(keys, a, b, &mut self.budget)
                                .is_some_and(|fit| !fit.site_renamed && !fit.sites_hidden)
                        })
                        .collect();
                    let amounts = |side: usize, groups: &[usize]| {
                        let counts = self.counts(side, groups);
                        amounts_of(counts.allocations, counts.bytes, self.sides.views[1 - side])
                    };
                    let parts: Vec<Amounts> =
                        fitting.iter().map(|&at| amounts(rich, &[of_rich[at].0])).collect();
                    let Some(choice) = only_choice(&parts, amounts(poor, family)) else { return true };
                    let mut chosen: Vec<usize> = choice.into_iter().map(|at| fitting[at]).collect();
                    let mut groups = [Vec::new(), Vec::new()];
                    groups[poor].clone_from(family);
                    while let Some(at) = chosen.pop() {
                        groups[rich].push(of_rich.remove(at).0);
                    }
                    groups[rich].sort_unstable();
                    taken.iter_mut().zip(&groups).for_each(|(taken, groups)| taken.extend(groups));
                    made.push(Made { groups, how: How::Inlining });
                    false
                });
                if families.len() == before {
                    break;
                }
            }
            take_out(left, &taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_choice_has_the_sum() {
        let parts = [[10, 245], [10, 255], [10, 80]];
        assert_eq!(only_choice(&parts, [20, 325]), Some(vec![0, 2]));
        assert_eq!(only_choice(&parts, [10, 255]), Some(vec![1]));
        assert_eq!(only_choice(&parts, [30, 580]), Some(vec![0, 1, 2]));
    }

    #[test]
    fn none_or_several_say_nothing() {
        assert_eq!(only_choice(&[[10, 245], [10, 255]], [20, 325]), None);
        assert_eq!(only_choice(&[[10, 80], [10, 80], [5, 1]], [10, 80]), None);
        assert_eq!(only_choice(&[], [1, 1]), None);
        assert_eq!(only_choice(&[[1, 1]], [0, 0]), None);
        assert_eq!(only_choice(&vec![[1, 1]; MOST + 1], [MOST as u128 + 1, MOST as u128 + 1]), None);
    }
}
