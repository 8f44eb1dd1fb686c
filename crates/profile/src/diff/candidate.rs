//! Which stacks are compared with which, when not all can be.
//!
//! Up to [`ALL_PAIRS`] pairs all are compared. Of more stacks each is compared with its neighbours in three orders, at most
//! [`NEIGHBOURS`] of the other side before and behind it: by the frames from the call site outwards, the same without the
//! functions that one side alone has (new names, what is inlined everywhere), and by the frames from the outside. So the
//! work grows as the stacks do; what is missed is a stack that differs from its counterpart near both ends and in shared
//! functions.

use std::rc::Rc;

use super::key::{Key, Keys};
use super::stack::Shape;

/// So many pairs are all compared.
const ALL_PAIRS: usize = 1 << 18;
/// Neighbours of the other side, before and behind.
const NEIGHBOURS: usize = 4;
/// How far neighbours are looked for.
const FARTHEST: usize = 32;

/// Whether each of so many stacks is compared with each of the other side.
pub(super) fn are_all_compared(left: usize, right: usize) -> bool {
    left.saturating_mul(right) <= ALL_PAIRS
}

/// Pairs of indices, each once, in ascending order.
pub(super) fn candidates(keys: &Keys, left: &[Rc<Shape>], right: &[Rc<Shape>]) -> Vec<(usize, usize)> {
    if are_all_compared(left.len(), right.len()) {
        return (0..left.len()).flat_map(|at| (0..right.len()).map(move |other| (at, other))).collect();
    }
    let outwards = |shape: &Shape| shape.keys().collect::<Vec<Key>>();
    let shared = |shape: &Shape| shape.keys().filter(|&key| !keys.is_one_sided(key)).collect::<Vec<Key>>();
    let inwards = |shape: &Shape| {
        let mut keys: Vec<Key> = shape.keys().collect();
        keys.reverse();
        keys
    };
    let mut pairs = Vec::new();
    for order in [&outwards as &dyn Fn(&Shape) -> Vec<Key>, &shared, &inwards] {
        neighbours(order, left, right, &mut pairs);
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

fn neighbours(
    order: &dyn Fn(&Shape) -> Vec<Key>,
    left: &[Rc<Shape>],
    right: &[Rc<Shape>],
    pairs: &mut Vec<(usize, usize)>,
) {
    let of = |side: usize, shapes: &[Rc<Shape>]| {
        shapes.iter().enumerate().map(|(at, shape)| (order(shape), at, side)).collect::<Vec<_>>()
    };
    let mut all = of(0, left);
    all.extend(of(1, right));
    // Of equal ones the nth of one side stands beside the nth of the other.
    all.sort_unstable();
    for (place, (_, at, side)) in all.iter().enumerate() {
        let (before, behind) = all.split_at(place);
        let mut take = |others: &mut dyn Iterator<Item = &(Vec<Key>, usize, usize)>| {
            let others = others.take(FARTHEST).filter(|(_, _, other)| other != side);
            for (_, other, _) in others.take(NEIGHBOURS) {
                pairs.push(if *side == 0 { (*at, *other) } else { (*other, *at) });
            }
        };
        take(&mut before.iter().rev());
        take(&mut behind.iter().skip(1));
    }
}
