//! The windows of a check, whether there is something to hold them against or not.

use crate::call_site::CallSites;
use crate::diff::{Diff, DiffOptions, WindowDiff, diff};
use crate::limit::{Metric, Per};
use crate::model::Profile;
use crate::view::{View, WindowView};

use super::{Spread, Subject};

/// The windows of a profile, and those of its baseline.
#[derive(Debug)]
pub struct Compared<'p> {
    /// The profile that is checked.
    pub change: &'p Profile,
    /// It beside its baseline, if there is one.
    pub diff: Option<Diff<'p>>,
    /// It alone, if there is none.
    view: Option<View<'p>>,
}

/// A window of the profile that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WindowAt {
    /// It has one in the baseline: an index into the windows of the diff.
    Pair(usize),
    /// It has none: an index into the windows without a partner.
    Alone(usize),
}

impl<'p> Compared<'p> {
    pub(super) fn new(subject: &'p Subject, options: &DiffOptions) -> Self {
        let change = &subject.change;
        let diff = subject.base.as_ref().map(|base| diff(base, change, options));
        let view = diff.is_none().then(|| {
            let sites = CallSites::new(change, &options.rules);
            View::new(change, &options.selection, &sites, options.sort)
        });
        Self { change, diff, view }
    }

    /// The windows, in the order in which they were opened.
    pub fn windows(&self) -> Vec<WindowAt> {
        let pairs = self.diff.as_ref().map_or(0, |diff| diff.windows.len());
        let mut windows: Vec<WindowAt> =
            (0..pairs).map(WindowAt::Pair).chain((0..self.alone().len()).map(WindowAt::Alone)).collect();
        windows.sort_by_key(|at| self.window(*at).map(|view| view.id));
        windows
    }

    /// The windows in which something was added: the one with the greatest addition first, as a diff has it.
    pub(super) fn grown(&self) -> Vec<WindowAt> {
        let Some(diff) = &self.diff else { return Vec::new() };
        let grows = |(window, entry): (usize, usize)| {
            let window = &diff.windows[window];
            window.net_sign(&window.entries[entry]) > 0
        };
        let mut grown: Vec<WindowAt> = Vec::new();
        for (window, _) in diff.order().into_iter().filter(|at| grows(*at)) {
            if !grown.contains(&WindowAt::Pair(window)) {
                grown.push(WindowAt::Pair(window));
            }
        }
        grown
    }

    fn alone(&self) -> &[WindowView<'p>] {
        match (&self.diff, &self.view) {
            (Some(diff), _) => &diff.unpaired[1],
            (None, Some(view)) => &view.windows,
            (None, None) => &[],
        }
    }

    /// The windows of both sides, those without a partner included.
    pub fn views(&self) -> impl Iterator<Item = &WindowView<'p>> {
        let paired = self.diff.iter().flat_map(|diff| &diff.windows).flat_map(|window| &window.views);
        let of_base = self.diff.iter().flat_map(|diff| &diff.unpaired[0]);
        paired.chain(of_base).chain(self.alone())
    }

    /// A window of the profile that is checked.
    pub fn window(&self, at: WindowAt) -> Option<&WindowView<'p>> {
        match at {
            WindowAt::Pair(at) => Some(&self.diff.as_ref()?.windows.get(at)?.views[1]),
            WindowAt::Alone(at) => self.alone().get(at),
        }
    }

    /// It beside that of the baseline.
    pub fn pair(&self, at: WindowAt) -> Option<&WindowDiff<'p>> {
        match at {
            WindowAt::Pair(at) => self.diff.as_ref()?.windows.get(at),
            WindowAt::Alone(_) => None,
        }
    }

    /// The name of a window.
    pub fn name(&self, at: WindowAt) -> &'p str {
        self.window(at).map_or("", |view| view.window.name.as_str())
    }

    /// A count of a window.
    pub fn measured(&self, at: WindowAt, what: (Metric, Per)) -> Spread {
        self.window(at).map_or(Spread::ZERO, |view| Spread::of_view(view, what, self.change))
    }

    /// The same of the baseline.
    pub fn of_base(&self, at: WindowAt, what: (Metric, Per)) -> Option<Spread> {
        let pair = self.pair(at)?;
        let diff = self.diff.as_ref()?;
        Some(Spread::of_view(&pair.views[0], what, diff.profiles[0]))
    }
}
