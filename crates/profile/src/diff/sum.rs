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

use super::rate::iterations;
use super::{WindowView, pairing::Amounts};

/// Among so many stacks a sum is looked for.
const MOST: usize = 24;
/// So many sums are tried.
const TRIES: usize = 1 << 16;

/// Allocations and bytes of a side, in units of both sides' iterations.
pub(super) fn amounts(allocations: u64, bytes: u64, other: &WindowView<'_>) -> Amounts {
    let others = u128::from(iterations(other.window));
    [allocations, bytes].map(|count| u128::from(count) * others)
}

/// The only choice of `parts` whose sum is `whole`: their indices. `None`: there is none, or several, or too many to try.
pub(super) fn only_choice(parts: &[Amounts], whole: Amounts) -> Option<Vec<usize>> {
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
