//! Limits: how much the windows of a profile may allocate, and by how much that may grow.
//!
//! The file is TOML, one table for each window or pattern of names (`*` stands for any run of characters):
//!
//! ```toml
//! [window."parse*"]
//! allocs = 75                                 # at most, per iteration; equal passes
//! bytes = { max = 4_114, soft_grow = "10 %" } # soft: a warning; grow: more than the baseline has
//! live = { min = 0, max = 0 }
//! total.allocs = 75_000                       # of a whole run
//! stacks = { new = "fail", grow = 0 }         # each stack by itself, against the baseline (renamed = "warn")
//! unstable = false                            # whether what differs between runs is judged too, by its average
//!
//! [measurement]                               # what may be missing at most of a window's allocations
//! lost = "0 %"
//! cut = "1 %"
//!
//! [[ignore]]                                  # stacks that do not count, for a time
//! window = "parse*"
//! stack = "Parser::name"                      # a pattern for a frame; a list: each has to fit one
//! reason = "waits for the new parser"
//! until = 2027-01-31                          # the last day
//! ```
//!
//! | key | holds a count to |
//! |---|---|
//! | `max`, `min` | at most, at least that number |
//! | `grow`, `shrink` | at most so much more, less than in the baseline: a number, or percent of the baseline's |
//! | `soft_…` | the same, as a warning |
//!
//! Counts: `allocs`, `bytes`, `live` (not freed in the window), `live_bytes`, `temporary` (freed before their thread
//! allocated again), `reallocs`. `10 %` of 10 allows 11, not 12.
//!
//! **Which limit holds.** For each count of a window those of the nearest table: its own name before patterns, then the
//! pattern with more characters of its own, then the earlier one. The same for `stacks` and `unstable`.
//!
//! [`read`] turns a file into [`Limits`], [`update`] writes numbers into one and leaves all else as it is, and
//! [`threshold`] does both with the files of Swift's package-benchmark.

mod date;
mod nearest;
mod rate;
pub mod read;
pub mod threshold;
pub mod update;

use std::fmt;
use std::sync::Arc;

use regex::Regex;

use crate::glob;
use crate::model::Counts;

pub use date::Date;
pub use nearest::nearest;
pub use rate::Rate;

/// Of a window's allocations at most so many percent may have a cut stack, unless a file says otherwise.
pub const CUT_PERCENT: u64 = 1;

/// All limits of a check.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// What is held to what, in the order of the files.
    pub gates: Vec<Gate>,
    /// Whether unstable counts are judged: pattern of windows, answer.
    pub unstable: Vec<(Pattern, bool)>,
    /// Stacks that do not count.
    pub ignores: Vec<Ignore>,
    /// How many percent of a window's allocations may be lost; `None`: none.
    pub lost: Option<Rate>,
    /// How many percent may have a cut stack; `None`: [`CUT_PERCENT`].
    pub cut: Option<Rate>,
}

/// Which windows are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Those whose name fits; `*` stands for any run of characters.
    Glob(String),
    /// The one with this name as it is written in a file's name (see [`threshold::in_file_name`]).
    FileName(String),
}

/// One limit.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Of which windows.
    pub window: Pattern,
    /// Where it is stated.
    pub origin: Origin,
    /// What it says.
    pub rule: Rule,
    /// What happens if it is not kept.
    pub severity: Severity,
    /// The number that the file states, where the rule's is another one (with a tolerance).
    pub stated: Option<Rate>,
}

/// Where a limit is stated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// In a file.
    File {
        /// The file, as it was named.
        path: Arc<str>,
        /// The line, from 1.
        line: u32,
    },
    /// On the command line, by this option.
    Option(&'static str),
    /// Nowhere: it holds where nothing else is stated.
    Default,
}

/// What a limit says.
#[derive(Clone, Debug)]
pub enum Rule {
    /// A count of a window.
    Count(CountRule),
    /// Each stack of a window.
    Stack(StackRule),
}

/// A limit of a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountRule {
    /// Which count.
    pub metric: Metric,
    /// Of what.
    pub per: Per,
    /// In which direction.
    pub bound: Bound,
    /// How much.
    pub amount: Amount,
}

/// A limit of stacks.
#[derive(Clone, Debug)]
pub struct StackRule {
    /// What stacks may not do.
    pub what: StackChange,
    /// Stacks with a frame that fits one of these only; empty: all.
    pub under: Vec<Regex>,
    /// Stacks of threads that began in such a function only; empty: all.
    pub root: Vec<Regex>,
}

/// What a stack may not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackChange {
    /// Allocate though the baseline does not have it.
    New,
    /// Grow by more than that.
    Grow(Metric, Amount),
    /// Allocate as the baseline's did whose call site has a name that is much alike, and which is gone: taken for renamed.
    Renamed,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Allocations.
    Allocs,
    /// Their bytes.
    Bytes,
    /// Blocks not freed while the window was open.
    Live,
    /// Their bytes.
    LiveBytes,
    /// Blocks freed by their thread before its next allocation.
    Temporary,
    /// Allocations by realloc of a live block.
    Reallocs,
}

/// What a count is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Per {
    /// The iterations.
    Iteration,
    /// The runs.
    Run,
}

/// The direction of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bound {
    /// At most.
    Max,
    /// At least.
    Min,
    /// At most so much more than the baseline.
    Grow,
    /// At most so much less than the baseline.
    Shrink,
}

/// How much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number.
    Exact(Rate),
    /// Percent of the baseline's.
    Percent(Rate),
}

/// What happens if a limit is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The check fails.
    Hard,
    /// It is said.
    Soft,
    /// Nothing: the limit only stands before those of patterns that are less near.
    Off,
}

/// Stacks that do not count.
#[derive(Clone, Debug)]
pub struct Ignore {
    /// Of which windows.
    pub window: Pattern,
    /// Each has to fit a frame.
    pub stack: Vec<Regex>,
    /// Why.
    pub reason: String,
    /// The last day on which it holds.
    pub until: Date,
    /// Where it is stated.
    pub origin: Origin,
}

impl Pattern {
    /// Whether a window's name fits.
    pub fn fits(&self, name: &str) -> bool {
        match self {
            Self::Glob(pattern) => glob::matches(pattern, name),
            Self::FileName(of_file) => threshold::in_file_name(of_file) == threshold::in_file_name(name),
        }
    }

    /// The number that becomes a count's limit in a file that names its windows so: in TOML with two decimals at most, in a
    /// threshold a whole one, rounded up, so that the count keeps to it.
    pub fn number_of(&self, count: Rate) -> String {
        match self {
            Self::Glob(_) => update::written(count),
            Self::FileName(_) => count.rounded_up(0),
        }
    }

    /// It as it was written.
    pub fn text(&self) -> &str {
        match self {
            Self::Glob(text) | Self::FileName(text) => text,
        }
    }

    /// Whether it is a name and no pattern.
    pub fn is_name(&self) -> bool {
        match self {
            Self::Glob(pattern) => !pattern.contains('*'),
            Self::FileName(_) => true,
        }
    }

    /// How near it is to the names that fit; greater is nearer.
    pub fn nearness(&self) -> (bool, usize) {
        (self.is_name(), self.text().chars().filter(|character| *character != '*').count())
    }
}

impl Limits {
    /// Adds those of another file behind. What a file says of a measurement stands before what one behind it says.
    pub fn extend(&mut self, other: Self) {
        self.gates.extend(other.gates);
        self.unstable.extend(other.unstable);
        self.ignores.extend(other.ignores);
        self.lost = self.lost.or(other.lost);
        self.cut = self.cut.or(other.cut);
    }

    /// Whether unstable counts of a window are judged, as far as is stated.
    pub fn judges_unstable(&self, window: &str) -> Option<bool> {
        let fitting = self.unstable.iter().filter(|(pattern, _)| pattern.fits(window));
        fitting.rev().max_by_key(|(pattern, _)| pattern.nearness()).map(|(_, answer)| *answer)
    }
}

impl Gate {
    /// Whether the greatest count of its windows has [`update`](mod@update) write a lower number than there is.
    pub fn would_be_lower(&self, greatest: Rate) -> bool {
        let Rule::Count(CountRule { bound: Bound::Max, amount: Amount::Exact(most), .. }) = &self.rule else {
            return false;
        };
        let number = Rate::parse(&self.window.number_of(greatest));
        number.is_some_and(|number| number < self.stated.unwrap_or(*most))
    }
}

impl Rule {
    /// What makes limits stand in for each other where several patterns fit.
    pub fn group(&self) -> Option<(Metric, Per)> {
        match self {
            Self::Count(rule) => Some((rule.metric, rule.per)),
            Self::Stack(_) => None,
        }
    }
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Allocs, Self::Bytes, Self::Live, Self::LiveBytes, Self::Temporary, Self::Reallocs];

    /// Its name in files and options.
    pub fn key(self) -> &'static str {
        match self {
            Self::Allocs => "allocs",
            Self::Bytes => "bytes",
            Self::Live => "live",
            Self::LiveBytes => "live_bytes",
            Self::Temporary => "temporary",
            Self::Reallocs => "reallocs",
        }
    }

    /// What it counts, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Allocs => "Allocations",
            Self::Bytes => "Their bytes",
            Self::Live => "Blocks not freed while the window was open",
            Self::LiveBytes => "Their bytes",
            Self::Temporary => "Blocks freed by their thread before its next allocation",
            Self::Reallocs => "Allocations by realloc of a live block",
        }
    }

    /// It, by [`key`](Self::key).
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.key() == key)
    }

    /// The count.
    pub fn of(self, counts: &Counts) -> u64 {
        match self {
            Self::Allocs => counts.allocations,
            Self::Bytes => counts.bytes,
            Self::Live => counts.live(),
            Self::LiveBytes => counts.live_bytes(),
            Self::Temporary => counts.temporary,
            Self::Reallocs => counts.reallocs,
        }
    }

    /// Whether it is known only where blocks were followed.
    pub fn needs_lifetimes(self) -> bool {
        matches!(self, Self::Live | Self::LiveBytes | Self::Temporary | Self::Reallocs)
    }

    /// Whether it counts bytes.
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::Bytes | Self::LiveBytes)
    }
}

impl Amount {
    /// It of a baseline's value.
    pub fn of(self, base: Rate) -> Rate {
        match self {
            Self::Exact(amount) => amount,
            Self::Percent(percent) => base.percent(percent),
        }
    }

    /// What a text states: a number, or percent.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => Rate::parse(percent.trim()).map(Self::Percent),
            None => Rate::parse(text.trim()).map(Self::Exact),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(formatter, "{path}:{line}"),
            Self::Option(option) => formatter.write_str(option),
            Self::Default => formatter.write_str("the default"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_pattern_says_whether_unstable_counts_are_judged() {
        let limits = Limits {
            unstable: [("*", false), ("parse*", true), ("parse", false), ("*", true)]
                .map(|(pattern, answer)| (Pattern::Glob(pattern.into()), answer))
                .to_vec(),
            ..Limits::default()
        };
        assert_eq!(limits.judges_unstable("parse"), Some(false));
        assert_eq!(limits.judges_unstable("parser"), Some(true));
        assert_eq!(limits.judges_unstable("other"), Some(false), "of equally near ones the first");
        assert_eq!(Limits::default().judges_unstable("other"), None);
    }

    #[test]
    fn amounts_are_numbers_or_percent() {
        assert_eq!(Amount::parse("10 %"), Amount::parse("10%"));
        assert_eq!(Amount::parse("2").unwrap().of(Rate::ZERO), Rate::new(2, 1));
        assert_eq!(Amount::parse("50%").unwrap().of(Rate::new(3, 1)), Rate::new(3, 2));
        for wrong in ["", "%", "-1", "10 per cent", "1e2", "NaN"] {
            assert_eq!(Amount::parse(wrong), None, "{wrong}");
        }
    }
}
