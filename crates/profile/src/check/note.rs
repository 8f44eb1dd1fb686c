//! What a check says beside broken limits.

use crate::diff::{Condition, Side};
use crate::limit::{Date, Metric, Origin, Per, Rate};

use super::{Spread, WindowAt};

/// What is to be known beside broken limits.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A count is better than its limit or its baseline.
    Improvement {
        /// The window.
        window: WindowAt,
        /// The count.
        metric: Metric,
        /// Of what.
        per: Per,
        /// How much it is.
        measured: Spread,
        /// The limit, or what the baseline has.
        than: Rate,
        /// Whether that is the baseline.
        is_base: bool,
        /// Where the limit is stated.
        origin: Origin,
    },
    /// A limit that no window has.
    UnusedLimit {
        /// Where it is stated.
        origin: Origin,
        /// For which windows.
        pattern: String,
        /// Windows fit, but each has a nearer limit.
        has_nearer: bool,
    },
    /// A window that no limit is for.
    NoLimit {
        /// The window.
        window: WindowAt,
        /// It is held against the baseline all the same.
        has_defaults: bool,
    },
    /// A window that the baseline does not have.
    NotInBase {
        /// The window.
        window: WindowAt,
    },
    /// A window that the baseline alone has.
    NotInChange {
        /// Its name.
        window: String,
    },
    /// Limits that need a baseline, and there is none.
    NeedsBase {
        /// The first of them.
        origin: Origin,
    },
    /// A count keeps to a limit in some runs only.
    Unstable {
        /// The window.
        window: WindowAt,
        /// The count.
        metric: Metric,
        /// Of what.
        per: Per,
        /// From which to which.
        measured: Spread,
        /// Where the limit is stated.
        origin: Origin,
    },
    /// Stacks that some runs alone have or have more of.
    UnstableStacks {
        /// The window.
        window: WindowAt,
        /// How many.
        stacks: u64,
    },
    /// Stacks that do not count.
    Ignored {
        /// Where that is stated.
        origin: Origin,
        /// Why.
        reason: String,
        /// Until when.
        until: Date,
        /// How many.
        stacks: u64,
        /// How often they allocate.
        allocations: u64,
    },
    /// Stacks that do not count, and none is there.
    UnusedIgnore {
        /// Where that is stated.
        origin: Origin,
    },
    /// Stacks that did not count until lately.
    ExpiredIgnore {
        /// Where that is stated.
        origin: Origin,
        /// Until when.
        until: Date,
        /// Why.
        reason: String,
    },
    /// Something that is not the same on both sides.
    Condition(Condition),
    /// What the recorder knows of what it may have missed.
    Coverage {
        /// Of which profile.
        side: Side,
        /// In its words.
        warning: String,
    },
}

impl Note {
    /// Whether it is a failure where everything has to be as it is stated.
    pub fn fails_strict(&self) -> bool {
        match self {
            Self::Improvement { .. }
            | Self::UnusedLimit { .. }
            | Self::NoLimit { .. }
            | Self::NotInBase { .. }
            | Self::NotInChange { .. }
            | Self::NeedsBase { .. }
            | Self::UnusedIgnore { .. }
            | Self::ExpiredIgnore { .. }
            | Self::Coverage { .. } => true,
            Self::Unstable { .. }
            | Self::UnstableStacks { .. }
            | Self::Ignored { .. }
            | Self::Condition(_) => false,
        }
    }
}
