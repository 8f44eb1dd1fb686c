//! What is checked: the profiles without the stacks that limits leave out.

use crate::call_site::{CallSites, Rules};
use crate::limit::{Ignore, Limits};
use crate::model::Profile;
use crate::view::stacks_with;

use super::measurement::{self, Unmeasured};
use super::{CheckOptions, Note, Side};

/// Profiles to be checked.
#[derive(Debug)]
pub struct Subject {
    /// The one that is checked, without the rows that are ignored.
    pub change: Profile,
    /// What it is held against, likewise.
    pub base: Option<Profile>,
    /// What could not be measured, as far as it is of the profiles whole.
    pub(super) unmeasured: Vec<Unmeasured>,
    /// What is to be said of ignored stacks.
    pub(super) notes: Vec<Note>,
}

impl Subject {
    /// Takes profiles, and leaves out what is ignored.
    pub fn new(
        mut change: Profile,
        mut base: Option<Profile>,
        limits: &Limits,
        options: &CheckOptions,
    ) -> Self {
        // Before rows are taken away: the threads' own sums know nothing of that.
        let mut unmeasured = measurement::of_profile(&change, Side::Change, options);
        if let Some(base) = &base {
            unmeasured.extend(measurement::of_profile(base, Side::Base, options));
        }
        let mut notes = Vec::new();
        for ignore in &limits.ignores {
            let origin = ignore.origin.clone();
            if ignore.until < options.today {
                let (until, reason) = (ignore.until, ignore.reason.clone());
                notes.push(Note::ExpiredIgnore { origin, until, reason });
                continue;
            }
            let of_change = leave_out(&mut change, ignore, &options.diff.rules);
            let of_base =
                base.as_mut().map_or(Left::default(), |base| leave_out(base, ignore, &options.diff.rules));
            if of_change.stacks + of_base.stacks == 0 {
                notes.push(Note::UnusedIgnore { origin });
            } else {
                let (reason, until) = (ignore.reason.clone(), ignore.until);
                notes.push(Note::Ignored {
                    origin,
                    reason,
                    until,
                    stacks: of_change.stacks,
                    allocations: of_change.allocations,
                });
            }
        }
        Self { change, base, unmeasured, notes }
    }

    /// The profiles, the base first.
    pub(super) fn sides(&self) -> impl Iterator<Item = (Side, &Profile)> {
        let base = self.base.iter().map(|base| (Side::Base, base));
        base.chain([(Side::Change, &self.change)])
    }
}

/// What was left out.
#[derive(Default)]
struct Left {
    stacks: u64,
    allocations: u64,
}

fn leave_out(profile: &mut Profile, ignore: &Ignore, rules: &Rules) -> Left {
    let sites = CallSites::new(profile, rules);
    let mut fits = vec![true; profile.stacks.len()];
    for pattern in &ignore.stack {
        let of_pattern = stacks_with(profile, std::slice::from_ref(pattern), &sites);
        fits.iter_mut().zip(of_pattern).for_each(|(all, one)| *all &= one);
    }
    let windows: Vec<bool> = profile.windows.iter().map(|window| ignore.window.fits(&window.name)).collect();
    let mut left = Left::default();
    profile.rows.retain(|row| {
        let is_out =
            [windows.get(row.window), fits.get(row.stack)].iter().all(|is| is.copied() == Some(true));
        if is_out {
            left.stacks += 1;
            left.allocations = left.allocations.saturating_add(row.counts.allocations);
        }
        !is_out
    });
    left
}
