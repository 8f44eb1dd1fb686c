//! What a report shows.

use heaptally_profile::call_site::{CallSites, Rules};
use heaptally_profile::model::{Profile, WindowKind};
use heaptally_profile::view::{Selection, Sort, View};

/// What a report shows. What every form heeds stands first.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which stacks of which windows. Without windows: all, and of an automatic `process` window beside others its
    /// head line only.
    pub selection: Selection,
    /// In which order. The folded form takes its values from it.
    pub sort: Sort,
    /// What is not looked at when a call site is looked for.
    pub rules: Rules,
    /// How many lines are shown of each window, and how many windows; 0: all. Text only.
    pub limit: usize,
    /// Fewer allocations per iteration are summed up in one line. Text only.
    pub min: f64,
    /// What a line stands for. Text only.
    pub layout: Layout,
    /// Whether every frame is shown, one on a line. Text only.
    pub full: bool,
    /// Whether to write terminal colours. Text only.
    pub color: bool,
    /// How many columns there are: longer names lose their middle. `None`: names are whole. Text only.
    pub width: Option<usize>,
    /// The folder of the user's own sources, without a `/` at its end. Their paths are shown from there, and where a
    /// call site lies outside, the frame that led to it is named. Text only.
    pub project: Option<String>,
}

/// What a line of the text stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// A stack.
    #[default]
    Stack,
    /// A call site.
    Site,
    /// A function: what it allocates itself, and what is allocated below it.
    Function,
    /// A function below those that called it.
    TopDown,
    /// A function below those that it called, call sites first.
    BottomUp,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            sort: Sort::Count,
            rules: Rules::embedded().clone(),
            limit: 20,
            min: 0.0,
            layout: Layout::Stack,
            full: false,
            color: false,
            width: None,
            project: None,
        }
    }
}

impl Options {
    /// The profile as these options look at it.
    pub(crate) fn view<'p>(&self, profile: &'p Profile, sites: &CallSites<'p>) -> View<'p> {
        let mut view = View::new(profile, &self.selection, sites, self.sort);
        for window in view.windows.iter_mut().filter(|view| view.window.kind == WindowKind::Harness) {
            window.in_background &= !self.full;
        }
        view
    }
}
