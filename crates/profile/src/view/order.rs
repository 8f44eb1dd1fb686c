//! The order of rows: total, and the same for equal recordings.

use std::cmp::Ordering;

use super::RowView;
use crate::frame::location_frames;
use crate::model::{Counts, FrameKind, Profile, Stack};

/// By what rows are sorted, most first.
///
/// Equal ones: by allocations, then by bytes, most first; then by the stacks' frames from the leaf, names, files and
/// lines before modules, kinds and addresses; then by capture, and by how many frames are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Allocations.
    #[default]
    Count,
    /// Allocated bytes.
    Bytes,
    /// Blocks that were live when the window ended.
    Live,
    /// Blocks freed by their thread before its next allocation.
    Temporary,
}

impl Sort {
    /// The count that it sorts by.
    pub fn value(self, counts: &Counts) -> u64 {
        match self {
            Self::Count => counts.allocations,
            Self::Bytes => counts.bytes,
            Self::Live => counts.live(),
            Self::Temporary => counts.temporary,
        }
    }

    /// The sort key of some counts; greater stands first.
    pub fn key(self, counts: &Counts) -> (u64, u64, u64) {
        (self.value(counts), counts.allocations, counts.bytes)
    }
}

/// The order of a profile's stacks.
pub(super) struct StackOrder {
    /// By location: its rank among them by what is seen of its frames first. Equal ones have equal ranks.
    ranks: Vec<usize>,
}

impl StackOrder {
    pub(super) fn new(profile: &Profile) -> Self {
        let compare = |&a: &usize, &b: &usize| compare_locations(profile, a, b);
        let mut sorted: Vec<usize> = (0..profile.locations.len()).collect();
        sorted.sort_by(compare);
        let mut ranks = vec![0; sorted.len()];
        let mut rank = 0;
        let mut before: Option<usize> = None;
        for at in sorted {
            if before.is_some_and(|before| compare(&before, &at) != Ordering::Equal) {
                rank += 1;
            }
            before = Some(at);
            if let Some(of) = ranks.get_mut(at) {
                *of = rank;
            }
        }
        Self { ranks }
    }

    pub(super) fn sort(&self, rows: &mut [RowView<'_>], sort: Sort) {
        rows.sort_by(|a, b| {
            sort.key(&b.row.counts)
                .cmp(&sort.key(&a.row.counts))
                .then_with(|| self.compare(a.stack, b.stack))
                .then_with(|| a.frame_count.cmp(&b.frame_count))
        });
    }

    fn compare(&self, a: &Stack, b: &Stack) -> Ordering {
        let rank = |at: &usize| self.ranks.get(*at);
        let by_frames = a.locations.iter().map(rank).cmp(b.locations.iter().map(rank));
        by_frames.then_with(|| (a.capture, &a.cut_reason).cmp(&(b.capture, &b.cut_reason)))
    }
}

fn compare_locations(profile: &Profile, a: usize, b: usize) -> Ordering {
    fn seen(profile: &Profile, at: usize) -> impl Iterator<Item = (Option<&str>, Option<&str>, u32)> {
        location_frames(profile, at).map(|frame| {
            let function = frame.function;
            (function.map(|f| f.name.as_str()), function.map(|f| f.file.as_str()), frame.line)
        })
    }
    fn unseen(profile: &Profile, at: usize) -> Option<(Option<&str>, FrameKind, u64)> {
        let location = profile.locations.get(at)?;
        let module = location.module.and_then(|module| profile.modules.get(module));
        Some((module.map(|module| module.path.as_str()), location.kind, location.address))
    }
    let by_seen = seen(profile, a).cmp(seen(profile, b));
    by_seen.then_with(|| unseen(profile, a).cmp(&unseen(profile, b)))
}
