//! What was not measured, so that nothing can be said of it: no check passes with it.

use std::collections::BTreeSet;

use crate::diff::Condition;
use crate::limit::{CUT_PERCENT, Limits, Metric, Origin, Rate};
use crate::model::{Image, Profile};
use crate::view::WindowView;

use super::{CheckOptions, Compared, Side, Subject, gate};

/// Why a check cannot pass though no limit is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmeasured {
    /// Of which profile.
    pub side: Side,
    /// The window, where it is of one.
    pub window: Option<String>,
    /// Why.
    pub why: Why,
}

/// Why something was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The profile has no window.
    NoWindow,
    /// The program did not end with 0, so it may not have done what is to be measured.
    Failed {
        /// Its exit code, or 128 + the signal's number.
        exit_code: i32,
    },
    /// In this program the recorder was not in the way of allocations.
    NotInPath {
        /// The program.
        program: String,
    },
    /// The recorder knows of allocations that it did not see.
    Incomplete {
        /// In its words.
        warning: String,
    },
    /// Children were to be recorded, and some were not.
    Children {
        /// How many.
        count: u64,
    },
    /// More allocations were lost than the limits accept.
    Lost {
        /// How many.
        lost: u64,
        /// Of how many, those that were recorded included.
        of: u64,
        /// How many percent are accepted.
        accepted: Rate,
    },
    /// More allocations have a cut stack than the limits accept.
    Cut {
        /// How many.
        cut: u64,
        /// Of how many.
        of: u64,
        /// How many percent are accepted.
        accepted: Rate,
    },
    /// Windows, programs or parts of the record are missing, so many.
    Missing {
        /// How many.
        count: u64,
    },
    /// Rows and threads do not add up to the same.
    Sums,
    /// A limit is of a count that is known only where blocks are followed; they were not.
    NoLifetimes {
        /// The count.
        metric: Metric,
        /// The limit.
        origin: Origin,
    },
    /// The recordings were made under conditions that differ, and were not to.
    Environment(Condition),
    /// No stack fits the patterns that choose stacks.
    NothingFits {
        /// Each with its kind (see [`Selection::patterns`](crate::view::Selection::patterns)).
        patterns: Vec<(&'static str, String)>,
        /// Whether stacks of windows fit that are not looked at unless they are asked for.
        fit_in_background: bool,
    },
    /// No limit was judged.
    NothingJudged(Lack),
}

/// What there would have to be for a limit to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// A limit.
    Limit,
    /// A baseline, since the limits compare with one.
    Base,
    /// A window that has a limit or is in the baseline.
    Window,
}

/// What was not measured, whatever the limits of counts and stacks say.
pub fn unmeasured(subject: &Subject, limits: &Limits, options: &CheckOptions) -> Vec<Unmeasured> {
    of_compared(&Compared::new(subject, &options.diff), subject, limits, options)
}

pub(super) fn of_compared(
    compared: &Compared<'_>,
    subject: &Subject,
    limits: &Limits,
    options: &CheckOptions,
) -> Vec<Unmeasured> {
    let mut found = subject.unmeasured.clone();
    found.extend(nothing_fits(compared, limits, options));
    for (side, profile) in subject.sides() {
        found.extend(lost(profile, side, limits));
    }
    for at in compared.windows() {
        let Some(view) = compared.window(at).filter(|view| gate::is_looked_at(limits, view)) else {
            continue;
        };
        found.extend(cut(view, Side::Change, limits));
        found.extend(compared.pair(at).and_then(|pair| cut(&pair.views[0], Side::Base, limits)));
    }
    found
}

/// Where a selection leaves nothing of what was recorded: nothing of it grows, nor is anything below a limit.
fn nothing_fits(compared: &Compared<'_>, limits: &Limits, options: &CheckOptions) -> Option<Unmeasured> {
    let (own, background): (Vec<_>, Vec<_>) =
        compared.views().partition(|view| gate::is_looked_at(limits, view));
    let fits = |views: &[&WindowView<'_>]| views.iter().any(|view| !view.rows.is_empty());
    let left_out = own.iter().any(|view| view.left_out.stacks() > 0);
    if fits(&own) || !left_out {
        return None;
    }
    let patterns = options.diff.selection.patterns();
    let why = Why::NothingFits {
        patterns: patterns.map(|(kind, pattern)| (kind, pattern.to_string())).collect(),
        fit_in_background: fits(&background),
    };
    Some(Unmeasured { side: Side::Change, window: None, why })
}

/// What is missing of a profile as a whole.
pub(super) fn of_profile(profile: &Profile, side: Side, options: &CheckOptions) -> Vec<Unmeasured> {
    let mut found = Vec::new();
    let mut add = |why| found.push(Unmeasured { side, window: None, why });
    if profile.windows.is_empty() {
        add(Why::NoWindow);
    }
    let exit_code = profile.environment.exit_code.unwrap_or(0);
    if exit_code != 0 && !options.accepts_failed {
        add(Why::Failed { exit_code });
    }
    for image in profile.images.iter().filter(|image| image.is_by_passed()) {
        add(Why::NotInPath { program: image.label.clone() });
    }
    if !options.accepts_incomplete {
        // One library may have been loaded by several programs.
        let warnings: BTreeSet<&str> = profile.images.iter().flat_map(Image::incomplete).collect();
        for warning in warnings {
            add(Why::Incomplete { warning: warning.to_owned() });
        }
        if profile.children.is_incomplete() {
            add(Why::Children { count: profile.children.not_recorded_total() });
        }
    }
    let losses = &profile.losses;
    let missing = [losses.windows, losses.images, losses.damaged].into_iter().fold(0, u64::saturating_add);
    if missing > 0 {
        add(Why::Missing { count: missing });
    }
    if !profile.check_sums().is_empty() {
        add(Why::Sums);
    }
    found
}

/// What is missing of a profile's events. Whose window they were of is not known of all that were lost.
fn lost(profile: &Profile, side: Side, limits: &Limits) -> Option<Unmeasured> {
    let lost = profile.lost_allocations();
    let recorded = profile.rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.counts.allocations));
    let accepted = limits.lost.unwrap_or(Rate::ZERO);
    let of = recorded.saturating_add(lost);
    is_above(lost, of, accepted).then_some(Unmeasured {
        side,
        window: None,
        why: Why::Lost { lost, of, accepted },
    })
}

/// What is missing of a window.
fn cut(view: &WindowView<'_>, side: Side, limits: &Limits) -> Option<Unmeasured> {
    let accepted = limits.cut.unwrap_or(Rate::new(CUT_PERCENT, 1));
    let (cut, of) = (view.captures.cut, view.captures.total());
    let window = Some(view.window.name.clone());
    is_above(cut, of, accepted).then_some(Unmeasured { side, window, why: Why::Cut { cut, of, accepted } })
}

/// Whether a part is more than so many percent of the whole.
fn is_above(part: u64, whole: u64, percent: Rate) -> bool {
    part > 0 && Rate::new(part, 1) > Rate::new(whole, 1).percent(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_equal_is_accepted() {
        assert!(!is_above(1, 100, Rate::new(1, 1)));
        assert!(is_above(2, 199, Rate::new(1, 1)));
        assert!(is_above(1, u64::MAX, Rate::ZERO));
        assert!(!is_above(0, 0, Rate::ZERO));
    }
}
