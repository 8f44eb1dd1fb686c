//! Why stacks are paired, frame by frame.

use super::alignment::{Step, steps};
use super::key::Item;
use super::stack::{Shape, site};
use super::{Diff, Pair, Side, WindowDiff};
use crate::frame::Frame;

/// What is said of a frame of either side, or of one on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It is the same function.
    Same,
    /// It has another name, or another file.
    Renamed,
    /// The base alone has it.
    BaseOnly,
    /// The change alone has it.
    ChangeOnly,
}

/// A line of an explanation.
#[derive(Clone, Copy, Debug)]
pub struct Explained<'p> {
    /// How the two belong together.
    pub relation: Relation,
    /// The frame, by side.
    pub frames: [Option<Frame<'p>>; 2],
}

impl<'p> Diff<'p> {
    /// The frames of a pair, from the call site outwards, those that rules list left out: of the first row of either side.
    pub fn explain(&self, window: &WindowDiff<'p>, pair: &Pair) -> Vec<Explained<'p>> {
        let sides = [Side::Base, Side::Change].map(|side| self.user_frames(window, pair, side));
        let frame = |side: usize, at: usize| sides[side].1.get(at).copied();
        let one = |side: Side, at: usize| {
            let mut frames = [None, None];
            frames[side.index()] = frame(side.index(), at);
            frames
        };
        if sides.iter().any(|(_, frames)| frames.is_empty()) {
            let (side, relation) = if sides[0].1.is_empty() {
                (Side::Change, Relation::ChangeOnly)
            } else {
                (Side::Base, Relation::BaseOnly)
            };
            let len = sides[side.index()].1.len();
            return (0..len).map(|at| Explained { relation, frames: one(side, at) }).collect();
        }
        let steps = steps(&self.keys, &sides[0].0, &sides[1].0).unwrap_or_default();
        let explained = |step: Step| match step {
            Step::Both(a, b) => Explained { relation: Relation::Same, frames: [frame(0, a), frame(1, b)] },
            Step::Renamed(a, b) => {
                Explained { relation: Relation::Renamed, frames: [frame(0, a), frame(1, b)] }
            }
            Step::BaseOnly(a) => Explained { relation: Relation::BaseOnly, frames: one(Side::Base, a) },
            Step::ChangeOnly(b) => Explained { relation: Relation::ChangeOnly, frames: one(Side::Change, b) },
        };
        steps.into_iter().map(explained).collect()
    }

    fn user_frames(&self, window: &WindowDiff<'p>, pair: &Pair, side: Side) -> (Shape, Vec<Frame<'p>>) {
        let view = &window.views[side.index()];
        let row = pair.rows[side.index()].first().and_then(|&row| view.rows.get(row));
        let Some(row) = row else { return (Shape::default(), Vec::new()) };
        let frames = self.reader(side).frames(row);
        let items: Vec<Item> = frames.iter().map(|(item, _)| *item).collect();
        let all: Vec<Frame<'p>> = row.frames(self.profiles[side.index()]).collect();
        let from = site(&items);
        let rest = frames.get(from..).unwrap_or_default();
        let keeps_all = rest.iter().all(|(item, _)| item.listed);
        let places = rest.iter().filter(|(item, _)| keeps_all || !item.listed).map(|(_, at)| *at as usize);
        (Shape::new(&self.keys, &items), places.filter_map(|at| all.get(at).copied()).collect())
    }
}
