//! Which entries stand before which, in a window and over all of them.
//!
//! ```text
//! what changed a number    the greatest difference per iteration first, whichever way; of equal ones what was added
//! what changed none        renamed, moved, reached by other callers: behind all of that, though it may count more
//! ```

use std::cmp::{Ordering, Reverse};

use super::rate::{difference, iterations};
use super::{Diff, Entry, WindowDiff};
use crate::view::{Sort, WindowView};

/// How much more the change has in an entry and in the one that belongs to it: allocations, bytes, times the iterations of
/// both sides. A function that was renamed has as much less under its old name.
fn net(entries: &[Entry], entry: &Entry, views: [&WindowView<'_>; 2]) -> [i128; 2] {
    let of = |entry: &Entry| {
        let [base, change] = &entry.counts;
        [
            difference([base.allocations, change.allocations], views),
            difference([base.bytes, change.bytes], views),
        ]
    };
    let own = of(entry);
    match entry.counterpart.and_then(|at| entries.get(at)) {
        Some(other) => [0, 1].map(|what| own[what].saturating_add(of(other)[what])),
        None => own,
    }
}

/// What an entry has more (1) or less (-1), in the numbers that are sorted by first; 0: nothing.
fn sign(net: [i128; 2]) -> i128 {
    net.into_iter().map(i128::signum).find(|sign| *sign != 0).unwrap_or(0)
}

/// The order of the entries of a window, as indices. `sites` has for each entry its call site, and that of the entry that
/// belongs to it; `signs` whether it is the one with more (1).
pub(super) fn in_window(
    entries: &[Entry],
    views: [&WindowView<'_>; 2],
    sort: Sort,
    sites: &[u32],
    signs: &[i8],
) -> Vec<usize> {
    let key = |at: usize| {
        let entry = &entries[at];
        let net = net(entries, entry, views);
        let sizes = sorted(net.map(i128::unsigned_abs), sort);
        let group = entry.counterpart.map_or(sites[at], |other| sites[other].min(sites[at]));
        (sign(net) == 0, Reverse(sizes), sign(net) < 0, group, signs[at] < 0, sites[at], at)
    };
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_cached_key(|&at| key(at));
    order
}

fn sorted<T>([allocations, bytes]: [T; 2], sort: Sort) -> [T; 2] {
    if sort == Sort::Bytes { [bytes, allocations] } else { [allocations, bytes] }
}

impl WindowDiff<'_> {
    /// Whether an entry leaves the numbers of the window as they are: it is as large as before, or the entry that belongs
    /// to it has what it has not.
    pub fn is_even(&self, entry: &Entry) -> bool {
        sign(self.net(entry)) == 0
    }

    /// Whether something is added (1) or gone (-1) by an entry and the one that belongs to it, allocations before bytes.
    pub fn net_sign(&self, entry: &Entry) -> i8 {
        sign(self.net(entry)) as i8
    }

    fn net(&self, entry: &Entry) -> [i128; 2] {
        net(&self.entries, entry, self.views.each_ref())
    }

    /// The same per iteration, without signs.
    fn net_per_iteration(&self, entry: &Entry) -> [f64; 2] {
        let [base, change] = self.views.each_ref().map(|view| iterations(view.window) as f64);
        self.net(entry).map(|net| net.unsigned_abs() as f64 / (base * change))
    }
}

/// Whether an entry is even, its sizes per iteration, and whether it is a decrease.
type Weight = (bool, [f64; 2], bool);

impl Diff<'_> {
    /// The entries of all windows that are compared, the most important one first: the window, the entry in it. Windows are
    /// in their own order where that leaves them equal.
    pub fn order(&self) -> Vec<(usize, usize)> {
        let mut order: Vec<(Weight, (usize, usize))> = Vec::new();
        for (at, window) in self.windows.iter().enumerate().filter(|(_, window)| !window.is_in_background()) {
            for (entry_at, entry) in window.entries.iter().enumerate() {
                let sizes = sorted(window.net_per_iteration(entry), self.sort);
                let sign = window.net_sign(entry);
                order.push(((sign == 0, sizes, sign < 0), (at, entry_at)));
            }
        }
        order.sort_by(|(a, a_at), (b, b_at)| {
            let by_size = b.1.iter().zip(&a.1).map(|(b, a)| b.total_cmp(a)).find(|order| order.is_ne());
            a.0.cmp(&b.0).then(by_size.unwrap_or(Ordering::Equal)).then(a.2.cmp(&b.2)).then(a_at.cmp(b_at))
        });
        order.into_iter().map(|(_, at)| at).collect()
    }

    /// The entry that stands first of all.
    pub fn first(&self) -> Option<(&WindowDiff<'_>, &Entry)> {
        let (window, entry) = *self.order().first()?;
        let window = self.windows.get(window)?;
        Some((window, window.entries.get(entry)?))
    }
}
