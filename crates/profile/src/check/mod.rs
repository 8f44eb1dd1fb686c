//! Whether a profile keeps to its limits, and which stacks are to blame if not.
//!
//! ```text
//! change ─┐           ┌─ Limits: of files, of options
//! base   ─┴─ Subject ─┴─ check ──▶ Verdict ── findings   limits that are broken, each with its guilty stacks
//!                                          ── unmeasured what cannot be said: it never passes
//!                                          ── notes      improvements, limits without use, …
//! ```
//!
//! **Exact.** Counts and limits are fractions of whole numbers; what is equal passes.
//!
//! **Runs.** Where a profile holds several runs, a limit is broken if no run keeps to it whatever run of the baseline it
//! is held against; what some runs keep to is a note. With [`CheckOptions::judges_unstable`], or where a limits file
//! says so, the average is judged.
//!
//! **Stacks** are those of the [`diff`](crate::diff): paired ones are held against each other, so a function that was
//! inlined is no new stack, and one that was renamed is only warned of.
//!
//! ```
//! use heaptally_profile::check::{CheckOptions, Outcome, Subject, check};
//! use heaptally_profile::limit::read::read;
//! use heaptally_profile::model::{Counts, Image, Profile, Row, Stack, Window};
//!
//! let profile = Profile {
//!     images: vec![Image { in_path: true, ..Image::default() }],
//!     windows: vec![Window { name: "parse".into(), iterations: 10, ..Window::default() }],
//!     stacks: vec![Stack::default()],
//!     rows: vec![Row { counts: Counts { allocations: 30, ..Counts::default() }, ..Row::default() }],
//!     ..Profile::default()
//! };
//! let (limits, options) = (read("[window.parse]\nallocs = 2", "limits.toml")?, CheckOptions::default());
//! let subject = Subject::new(profile, None, &limits, &options);
//! let verdict = check(&subject, &limits, &options);
//! assert_eq!(verdict.outcome(false), Outcome::Regression);
//! assert_eq!(verdict.findings[0].origin.to_string(), "limits.toml:2");
//! # Ok::<(), heaptally_profile::Error>(())
//! ```

mod checker;
mod compared;
mod gate;
mod guilty;
mod measurement;
mod note;
mod spread;
mod stack;
mod subject;

use crate::diff::DiffOptions;
use crate::limit::{
    Amount, Bound, CountRule, Date, Gate, Metric, Origin, Pattern, Per, Rate, Rule, Severity, StackChange,
    StackRule,
};

pub use crate::diff::Side;
pub use checker::check;
pub use compared::{Compared, WindowAt};
pub use guilty::Guilty;
pub use measurement::{Lack, Unmeasured, Why, unmeasured};
pub use note::Note;
pub use spread::Spread;
pub use subject::Subject;

/// How a profile is checked.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// How it is compared with the baseline, and what of it is looked at.
    pub diff: DiffOptions,
    /// The limits of windows that no file has limits for, if there is a baseline.
    pub defaults: Vec<Gate>,
    /// The day on which it is checked.
    pub today: Date,
    /// Whether counts that differ between runs are judged, by their average.
    pub judges_unstable: bool,
    /// Whether programs that did not end with 0 are checked.
    pub accepts_failed: bool,
    /// Whether recordings that are known not to have seen all allocations are checked.
    pub accepts_incomplete: bool,
    /// Whether recordings of unlike environments cannot be compared.
    pub needs_same_environment: bool,
    /// Whether limits were stated that windows can be missing from.
    pub has_files: bool,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            diff: DiffOptions::default(),
            defaults: Vec::new(),
            today: Date { year: 1970, month: 1, day: 1 },
            judges_unstable: false,
            accepts_failed: false,
            accepts_incomplete: false,
            needs_same_environment: false,
            has_files: true,
        }
    }
}

/// The limits that hold where nothing else is stated: no window allocates more often than by `grow`, and as warnings no
/// more bytes. As `stacks` says no stack is new, and none grows by more than `grow`: where a window may, what grows in it
/// may, too.
pub fn default_gates(grow: (Amount, Origin), stacks: (Severity, Origin)) -> Vec<Gate> {
    let count = |metric, amount, severity, origin: &Origin| Gate {
        window: Pattern::Glob("*".into()),
        origin: origin.clone(),
        rule: Rule::Count(CountRule { metric, per: Per::Iteration, bound: Bound::Grow, amount }),
        severity,
        stated: None,
    };
    let stack = |what, severity| Gate {
        window: Pattern::Glob("*".into()),
        origin: stacks.1.clone(),
        rule: Rule::Stack(StackRule { what, under: Vec::new(), root: Vec::new() }),
        severity,
        stated: None,
    };
    // What decides about a stack that grew is how much it may, where that is stated.
    let of_growth = if matches!(grow.1, Origin::Default) { stacks.1.clone() } else { grow.1.clone() };
    vec![
        count(Metric::Allocs, grow.0, Severity::Hard, &grow.1),
        count(Metric::Bytes, grow.0, Severity::Soft, &grow.1),
        stack(StackChange::New, stacks.0),
        Gate { origin: of_growth, ..stack(StackChange::Grow(Metric::Allocs, grow.0), stacks.0) },
        stack(StackChange::Renamed, stacks.0.max(Severity::Soft)),
    ]
}

/// What came of a check.
#[derive(Debug)]
pub struct Verdict<'p> {
    /// The windows that were looked at.
    pub compared: Compared<'p>,
    /// Limits that are broken: hard ones first, of these those of counts, then the window with the greatest addition; else
    /// in the order of the windows.
    pub findings: Vec<Finding>,
    /// What could not be measured.
    pub unmeasured: Vec<Unmeasured>,
    /// What else is to be known.
    pub notes: Vec<Note>,
    /// What was checked.
    pub checked: Vec<Checked>,
}

/// A window with what it was held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The window.
    pub window: WindowAt,
    /// How many limits.
    pub limits: u64,
    /// For each count at most one number that it may not pass: of hard limits the least.
    pub most: Vec<(Metric, Per, Rate)>,
}

/// A limit that is broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The window.
    pub window: WindowAt,
    /// Where the limit is stated.
    pub origin: Origin,
    /// How it is broken.
    pub broken: Broken,
    /// Which count; of stacks: of the one that is furthest over.
    pub metric: Metric,
    /// Of what.
    pub per: Per,
    /// The count.
    pub measured: Spread,
    /// That of the baseline, where there is one.
    pub base: Option<Spread>,
    /// What was held against the limit.
    pub judged: Rate,
    /// What it should not have passed.
    pub allowed: Rate,
    /// Which stacks, the most important first.
    pub guilty: Vec<Guilty>,
}

/// How a limit is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A count passes this limit.
    Count(Bound, Amount),
    /// Stacks allocate that the baseline does not have.
    NewStack {
        /// How many.
        stacks: u64,
    },
    /// Stacks are taken for renamed ones of the baseline.
    RenamedStack {
        /// How many.
        stacks: u64,
    },
    /// Stacks grew by more than that.
    StackGrew {
        /// By how much they may.
        amount: Amount,
        /// How many.
        stacks: u64,
    },
}

/// What a check ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// All limits are kept.
    Passed,
    /// All limits are kept, and something is better than it has to be.
    Improvement,
    /// All limits are kept, but notes were to be failures.
    NotStrict,
    /// A hard limit is broken.
    Regression,
    /// Something that is needed was not measured, or no limit was judged.
    Unmeasured,
}

impl Verdict<'_> {
    /// What the check ends with. What was not measured stands before what is broken, since it may be the reason of it.
    pub fn outcome(&self, is_strict: bool) -> Outcome {
        if !self.unmeasured.is_empty() {
            return Outcome::Unmeasured;
        }
        if self.findings.iter().any(|finding| finding.severity == Severity::Hard) {
            return Outcome::Regression;
        }
        if is_strict && self.notes.iter().any(Note::fails_strict) {
            return Outcome::NotStrict;
        }
        match self.notes.iter().any(|note| matches!(note, Note::Improvement { .. })) {
            true => Outcome::Improvement,
            false => Outcome::Passed,
        }
    }
}

impl Broken {
    fn is_count(self) -> bool {
        matches!(self, Self::Count(..))
    }
}
