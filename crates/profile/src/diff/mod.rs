//! Two profiles compared: which call sites allocate more, which less.
//!
//! ```text
//! base   ─┐                                   ┌─ pairs    every stack of either side, once
//! change ─┴─ windows by name ── stacks paired ┴─ entries  the call sites that differ, the most important first
//! ```
//!
//! **Identity.** A stack is its logical frames, inlined ones expanded, from the allocation function outwards; the listed
//! frames at its outer end, where programs and threads start, are left out. A frame is its function's name, without what
//! differs from build to build (hashes, clone suffixes, numbers of closures and lambdas), and its file where functions in
//! several files have that name; files are compared as paths below the sources' common folder. Lines and addresses are not
//! compared. What is not equal is paired by resemblance; the files of this module tell how.
//!
//! **Numbers** are compared per iteration, exactly. A row that differs between the runs of one profile counts as changed
//! only where no run of one side had what a run of the other had. What each side does once is no difference where they have
//! other numbers of iterations, though it is less per iteration then.
//!
//! **Entries** are call sites whose stacks changed. Their differences add up to the difference of the windows, but for what
//! is unstable, and for what is done once. The order is total, in a window and over all of them ([`Diff::order`]): entries
//! whose difference something else cancels (a function that was renamed, a call site that is reached on other ways) stand
//! last; before that the greatest difference per iteration stands first, whichever way, of allocations, then of bytes (or
//! the other way round, as [`Sort`] says); then what was added before what is gone; then names.
//!
//! The base and the change can be exchanged: the same pairs come out, and differences of the other sign.
//!
//! ```
//! use heaptally_profile::diff::{DiffOptions, diff};
//! use heaptally_profile::model::Profile;
//!
//! let profile = Profile::default();
//! assert!(!diff(&profile, &profile, &DiffOptions::default()).differs());
//! ```

mod alignment;
mod assignment;
mod bare;
mod candidate;
mod condition;
mod entry;
mod explain;
mod file;
mod key;
mod line;
mod name;
mod order;
mod pairing;
mod parting;
mod rate;
mod sourceless;
mod stack;
mod sum;
mod window;

use regex::Regex;

use crate::call_site::{CallSites, Rules};
use crate::model::{Counts, Profile};
use crate::view::{RowView, Selection, Sort, View, WindowView};

pub use condition::{Condition, What};
pub use explain::{Explained, Relation};
pub use line::LineChange;

/// How profiles are compared.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// Which stacks of which windows, on either side before anything is paired.
    pub selection: Selection,
    /// Pairs with a frame that fits on either side, after all are paired; empty: all of them.
    pub stack: Vec<Regex>,
    /// By what entries are sorted.
    pub sort: Sort,
    /// What is not looked at when a call site is looked for.
    pub rules: Rules,
    /// Whether a recursion is the same however deep it is.
    pub fold_recursion: bool,
    /// Whether instances of a generic function or template are one.
    pub fold_generics: bool,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            stack: Vec::new(),
            sort: Sort::Count,
            rules: Rules::embedded().clone(),
            fold_recursion: false,
            fold_generics: false,
        }
    }
}

/// One of the two profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The one that is compared with.
    Base,
    /// The one that is compared.
    Change,
}

impl Side {
    /// Its index in what is kept by side.
    pub fn index(self) -> usize {
        match self {
            Self::Base => 0,
            Self::Change => 1,
        }
    }
}

/// What two profiles have in common, and what not. By side: the base is first.
#[derive(Debug)]
pub struct Diff<'p> {
    /// The profiles.
    pub profiles: [&'p Profile; 2],
    /// The windows that both have, in the order of the change.
    pub windows: Vec<WindowDiff<'p>>,
    /// The windows that one side alone has; where some stacks are asked for, those with such a stack.
    pub unpaired: [Vec<WindowView<'p>>; 2],
    /// What may make numbers differ although the program is the same.
    pub conditions: Vec<Condition>,
    /// The patterns of which one has to fit a stack of a pair ([`DiffOptions::stack`]), as they were given.
    pub stack: Vec<String>,
    /// How many stacks the windows of either side have that are compared, whatever the selection leaves of them.
    pub recorded_stacks: u64,
    sort: Sort,
    keys: key::Keys,
    fold_recursion: bool,
}

/// A window of both sides.
#[derive(Debug)]
pub struct WindowDiff<'p> {
    /// It on either side, with the rows that the selection holds.
    pub views: [WindowView<'p>; 2],
    /// Every row, in exactly one pair.
    pub pairs: Vec<Pair>,
    /// The sum of the pairs, by side.
    pub counts: [Counts; 2],
    /// What of that each side has once, whatever its iterations ([`is_one_off`](Self::is_one_off)): its allocations and
    /// bytes are the same on both.
    pub one_off: Counts,
    /// What changed.
    pub entries: Vec<Entry>,
    /// How many stacks were paired how.
    pub pairing: Pairing,
}

/// Stacks of both sides that are one.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// By side: indices into the rows of the view, the one that stands for them first. One side may have none.
    pub rows: [Vec<usize>; 2],
    /// Their sum, by side.
    pub counts: [Counts; 2],
    /// Why they are paired.
    pub how: How,
}

/// Why stacks are paired. In the order of how far they are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Their frames are equal.
    Equal,
    /// Frames within the call site differ, of libraries that rules list.
    Library,
    /// Frames are missing on one side, as inlining, tail calls and less recursion have it; or one stack of one side is
    /// several of the other.
    Inlining,
    /// A caller has another name or another file.
    Renamed,
    /// The call site has another name or another file.
    OtherSite,
    /// Not at all: they stand alone.
    Alone,
}

/// How many stacks were paired how. Stacks are rows of the change, or of the base where the change has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pairing {
    /// Stacks that differ in nothing that is compared, and have the same counts.
    pub unchanged: u64,
    /// Of these, those that each side has once, whatever its iterations, which differ.
    pub one_off: u64,
    /// Of all stacks, those with equal frames.
    pub equal: u64,
    /// … that differ in frames of libraries.
    pub library: u64,
    /// … in frames that inlining or a tail call explains.
    pub inlining: u64,
    /// … in a name or file of a caller.
    pub renamed: u64,
    /// … in that of the call site.
    pub other_site: u64,
    /// Stacks of the base that are not paired.
    pub base_only: u64,
    /// Stacks of the change that are not paired.
    pub change_only: u64,
    /// Pairs whose runs differ so much that nothing can be said.
    pub unstable: u64,
}

/// What happened at a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It did not allocate before.
    New,
    /// It does not allocate any more.
    Gone,
    /// It allocates more often.
    More,
    /// It allocates less often.
    Fewer,
    /// It allocates as often, and more bytes.
    Larger,
    /// It allocates as often, and fewer bytes.
    Smaller,
    /// It allocated once, and does so in each iteration now.
    Repeated,
    /// It allocated in each iteration, and does so once now.
    Once,
    /// It allocates as much, in stacks with other callers.
    Rerouted,
    /// It allocates what [`Entry::counterpart`] did, whose name is much alike and which is not there any more.
    RenamedFrom,
    /// [`Entry::counterpart`] allocates what it did, with a name that is much alike; it is not there any more.
    RenamedTo,
    /// It allocates as much more as [`Entry::counterpart`] allocates less.
    MovedFrom,
    /// It allocates as much less as [`Entry::counterpart`] allocates more.
    MovedTo,
}

/// A call site that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What happened.
    pub kind: Kind,
    /// Indices into the window's pairs: the greatest difference first.
    pub pairs: Vec<usize>,
    /// The allocations and bytes of those pairs that belong to it, by side.
    pub counts: [Counts; 2],
    /// The stack that stands for it: the side, and an index into that side's rows.
    pub row: (Side, usize),
    /// Where the call site stands among the frames of that row.
    pub site: usize,
    /// Whether the other side, which knows no lines, leaves open which line of the call site changed: the row's own need
    /// not be it.
    pub is_line_open: bool,
    /// By line of the call site, where that is known: those that changed, the greatest difference first.
    pub lines: Vec<LineChange>,
    /// The innermost frame of that row that the other side has too, with all of its callers: its place among the row's
    /// frames. `None`: the whole stack is there, or nothing of it.
    pub parting: Option<usize>,
    /// The entry of the window that belongs to it: one that was renamed, or moved; of a new and a gone one, which count
    /// the same below the same callers, the other one.
    pub counterpart: Option<usize>,
}

/// Compares two profiles. Both have valid indices; profiles that were read have. Whether their numbers can be compared,
/// [`make_comparable`](crate::merge::make_comparable) says.
pub fn diff<'p>(base: &'p Profile, change: &'p Profile, options: &DiffOptions) -> Diff<'p> {
    let profiles = [base, change];
    let sites = profiles.map(|profile| CallSites::new(profile, &options.rules));
    let keys = key::Keys::new(profiles, [&sites[0], &sites[1]], options);
    let views = [0, 1].map(|side| View::new(profiles[side], &options.selection, &sites[side], options.sort));
    let recorded = |view: &WindowView<'_>| {
        view.rows.len() as u64 + view.left_out.not_under_stacks + view.left_out.filtered_stacks
    };
    let compared = views.iter().flat_map(|view| &view.windows).filter(|view| !view.in_background);
    let recorded_stacks = compared.map(recorded).sum();
    let fits = [0, 1].map(|side| {
        let patterns = &options.stack;
        (!patterns.is_empty()).then(|| crate::view::stacks_with(profiles[side], patterns, &sites[side]))
    });
    let (paired, mut unpaired) = window::pair(views);
    for (windows, fits) in unpaired.iter_mut().zip(&fits) {
        let fits =
            |row: &RowView<'_>| fits.as_ref().is_none_or(|fits| fits.get(row.row.stack) == Some(&true));
        windows.retain(|view| options.stack.is_empty() || view.rows.iter().any(fits));
    }
    let windows =
        paired.into_iter().map(|views| WindowDiff::new(profiles, views, &keys, &fits, options)).collect();
    Diff {
        profiles,
        windows,
        unpaired,
        conditions: condition::conditions(profiles, [&sites[0], &sites[1]]),
        stack: options.stack.iter().map(|pattern| pattern.as_str().to_owned()).collect(),
        recorded_stacks,
        sort: options.sort,
        keys,
        fold_recursion: options.fold_recursion,
    }
}

impl<'p> Diff<'p> {
    /// Whether anything differs: a call site, or a window that one side alone has and in which it allocates. Windows in the
    /// background are not compared.
    pub fn differs(&self) -> bool {
        let is_difference = |view: &WindowView<'_>| !view.in_background && !view.rows.is_empty();
        self.compared().any(|window| !window.entries.is_empty())
            || self.unpaired.iter().flatten().any(is_difference)
    }

    /// The windows that are compared: those of both sides that are not in the background.
    pub fn compared(&self) -> impl Iterator<Item = &WindowDiff<'p>> {
        self.windows.iter().filter(|window| !window.is_in_background())
    }

    /// How many stacks of either side are compared.
    pub fn compared_stacks(&self) -> usize {
        self.compared().map(WindowDiff::stacks).sum()
    }

    /// How many stacks of either side are not compared since their windows are in the background.
    pub fn background_stacks(&self) -> usize {
        let paired = self.windows.iter().filter(|window| window.is_in_background());
        let unpaired = self.unpaired.iter().flatten().filter(|view| view.in_background);
        paired.map(WindowDiff::stacks).sum::<usize>() + unpaired.map(|view| view.rows.len()).sum::<usize>()
    }

    /// What reads the stacks of a side as they were compared.
    fn reader(&self, side: Side) -> stack::Reader<'_> {
        stack::Reader { keys: &self.keys, side: side.index(), fold_recursion: self.fold_recursion }
    }
}

impl<'p> WindowDiff<'p> {
    /// Whether it is in the background on both sides.
    pub fn is_in_background(&self) -> bool {
        self.views.iter().all(|view| view.in_background)
    }

    /// How many stacks of either side it has.
    fn stacks(&self) -> usize {
        self.pairs.iter().flat_map(|pair| &pair.rows).map(Vec::len).sum()
    }

    /// A count of a side per iteration; a window without iterations counts as one.
    pub fn per_iteration(&self, side: Side, count: u64) -> f64 {
        let view = &self.views[side.index()];
        count as f64 / rate::iterations(view.window) as f64
    }

    /// How much more per iteration the change has of two counts, by side.
    pub fn delta(&self, counts: [u64; 2]) -> f64 {
        let views = [&self.views[0], &self.views[1]];
        let iterations = rate::iterations(views[0].window) as f64 * rate::iterations(views[1].window) as f64;
        rate::difference(counts, views) as f64 / iterations
    }

    /// Whether a pair is of what each side does once, though the sides have other numbers of iterations. That is no
    /// difference, unless its call site has another name.
    pub fn is_one_off(&self, pair: &Pair) -> bool {
        let counts = pair.counts.map(|counts| [counts.allocations, counts.bytes]);
        pair.how != How::OtherSite
            && rate::is_one_off(self.views.each_ref(), [&pair.rows[0], &pair.rows[1]], counts)
    }

    /// Whether allocations of an entry grew (1), shrank (-1) or stayed (0).
    pub fn sign(&self, counts: [u64; 2]) -> i8 {
        rate::difference(counts, [&self.views[0], &self.views[1]]).signum() as i8
    }
}

impl Kind {
    /// Whether another entry cancels it.
    pub fn is_moved(self) -> bool {
        matches!(self, Self::RenamedFrom | Self::RenamedTo | Self::MovedFrom | Self::MovedTo)
    }
}
