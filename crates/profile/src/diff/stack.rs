//! Stacks as they are compared: of the frames what tells a place in the program, and where its call site is.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::DiffOptions;
use super::key::{Item, Key, Keys};
use crate::model::Counts;
use crate::swift_name::SwiftFrame;
use crate::view::{RowView, WindowView};

/// The longest cycle of a recursion that folds.
const LONGEST_CYCLE: usize = 8;

/// What compares the stacks of one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'k> {
    pub(super) keys: &'k Keys,
    pub(super) side: usize,
    pub(super) fold_recursion: bool,
}

impl<'k> Reader<'k> {
    pub(super) fn new(keys: &'k Keys, side: usize, options: &DiffOptions) -> Self {
        Self { keys, side, fold_recursion: options.fold_recursion }
    }

    /// The frames of a row that are compared, leaf first, each with its place among the row's frames. The listed ones at
    /// the outer end, where a program or a thread starts, are left out, unless all are listed.
    pub(super) fn frames(&self, row: &RowView<'_>) -> Vec<(Item, u32)> {
        let mut frames = Vec::with_capacity(row.frame_count.min(2 * row.stack.locations.len()));
        self.read(row, &mut frames);
        frames
    }

    /// The same, instead of what `frames` held.
    fn read(&self, row: &RowView<'_>, frames: &mut Vec<(Item, u32)>) {
        frames.clear();
        let mut place = 0;
        for &location in &row.stack.locations {
            for item in self.keys.items(self.side, location) {
                frames.push((*item, place));
                place += 1;
            }
        }
        frames.truncate(row.frame_count);
        join_swift(frames);
        if self.keys.is_entry_one_sided
            && frames.len() > 1
            && frames.first().is_some_and(|(item, _)| item.entry)
        {
            frames.remove(0);
        }
        if let Some(last) = frames.iter().rposition(|(item, _)| !item.listed) {
            frames.truncate(last + 1);
        }
        if self.fold_recursion {
            *frames = fold(frames);
        }
    }

    /// The rows of a window by their frames: equal ones together, but for those whose call site has no source: there rows
    /// at different addresses may be different inlined functions. In the order of the frames, then of the counts.
    pub(super) fn groups(&self, view: &WindowView<'_>) -> Vec<Group> {
        let mut known: FxHashMap<Box<[Key]>, usize> = FxHashMap::default();
        known.reserve(view.rows.len());
        let mut groups: Vec<Group> = Vec::with_capacity(view.rows.len());
        let (mut frames, mut keys) = (Vec::new(), Vec::new());
        for (at, row) in view.rows.iter().enumerate() {
            self.read(row, &mut frames);
            keys.clear();
            keys.extend(frames.iter().map(|(item, _)| item.key));
            let site = frames.iter().find(|(item, _)| !item.listed);
            let is_known = site.is_some_and(|(item, _)| item.has_source);
            let group = match known.get(&keys[..]).filter(|_| is_known) {
                Some(&group) => group,
                None if is_known => {
                    known.insert(keys[..].into(), groups.len());
                    groups.push(Group::default());
                    groups.len() - 1
                }
                None => {
                    groups.push(Group { keys: keys[..].into(), ..Group::default() });
                    groups.len() - 1
                }
            };
            if let Some(group) = groups.get_mut(group) {
                group.rows.push(at);
                group.counts.add(&row.row.counts);
            }
        }
        for (keys, at) in known {
            if let Some(group) = groups.get_mut(at) {
                group.keys = keys;
            }
        }
        let counts = |group: &Group| (group.counts.allocations, group.counts.bytes);
        groups.sort_by(|a, b| {
            a.keys.cmp(&b.keys).then_with(|| (counts(a), &a.rows).cmp(&(counts(b), &b.rows)))
        });
        groups
    }

    /// The shape of a group of a window.
    pub(super) fn shape(&self, view: &WindowView<'_>, group: &Group) -> Shape {
        let row = group.rows.first().and_then(|&row| view.rows.get(row));
        let frames = row.map_or_else(Vec::new, |row| self.frames(row));
        Shape::new(self.keys, &frames.into_iter().map(|(item, _)| item).collect::<Vec<Item>>())
    }
}

/// Makes frames of Swift one that are one function, and leaves out those that are nobody's: another build has others.
fn join_swift(frames: &mut Vec<(Item, u32)>) {
    if frames.iter().all(|(item, _)| item.swift == SwiftFrame::default()) {
        return;
    }
    let mut callee = SwiftFrame::default();
    frames.retain(|(item, _)| {
        if item.swift.is_nobodys() || item.swift.is_one_with(callee) {
            return false;
        }
        callee = item.swift;
        true
    });
}

/// Cycles of frames that follow themselves, once each.
fn fold(frames: &[(Item, u32)]) -> Vec<(Item, u32)> {
    let mut folded: Vec<(Item, u32)> = Vec::with_capacity(frames.len());
    for frame in frames {
        folded.push(*frame);
        let repeated = (1..=LONGEST_CYCLE.min(folded.len() / 2)).find(|&len| {
            let (before, last) = folded.split_at(folded.len() - len);
            let cycle = before.get(before.len() - len..).unwrap_or_default();
            cycle.iter().map(|(item, _)| item.key).eq(last.iter().map(|(item, _)| item.key))
        });
        if let Some(len) = repeated {
            folded.truncate(folded.len() - len);
        }
    }
    folded
}

/// Rows of one window whose frames are equal.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) keys: Box<[Key]>,
    /// Indices into the window's rows.
    pub(super) rows: Vec<usize>,
    pub(super) counts: Counts,
}

/// A stack, parted at its call site.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    /// The family of the allocation function.
    pub(super) entry: Entry,
    /// What the call site called: the outermost listed frame within, the allocation function if there is no other.
    pub(super) callee: Option<Key>,
    /// The call site and its callers, without listed ones.
    pub(super) user: Vec<Item>,
}

/// Allocation functions that a compiler may exchange for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Entry {
    #[default]
    None,
    /// `malloc`, and `calloc`, which an optimiser makes of it where the block is cleared.
    Plain,
    Other(Key),
}

impl Shape {
    pub(super) fn new(keys: &Keys, frames: &[Item]) -> Self {
        let entry = match frames.first().filter(|item| item.entry) {
            Some(item) if matches!(keys.name(item.key), "malloc" | "calloc") => Entry::Plain,
            Some(item) => Entry::Other(item.key),
            None => Entry::None,
        };
        let site = site(frames);
        let rest = frames.get(site..).unwrap_or_default();
        let mut user = Vec::with_capacity(rest.len());
        user.extend(rest.iter().filter(|item| !item.listed));
        if user.is_empty() {
            user = rest.to_vec();
        }
        Self { entry, callee: site.checked_sub(1).and_then(|at| frames.get(at)).map(|item| item.key), user }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.user.iter().map(|item| item.key)
    }

    /// The order of two stacks, by all that an alignment looks at.
    pub(super) fn user_order(&self, other: &Self) -> Ordering {
        let all = |item: &Item| (item.key, item.inlined, item.has_source, item.listed, item.entry);
        self.user.iter().map(all).cmp(other.user.iter().map(all)).then(self.callee.cmp(&other.callee))
    }
}

/// Where the call site is: the innermost of the frames that are nearest to the user.
pub(super) fn site(frames: &[Item]) -> usize {
    let nearest = frames.iter().enumerate().filter_map(|(at, item)| Some((item.standing?, at))).min();
    nearest.map_or(0, |(_, at)| at)
}
