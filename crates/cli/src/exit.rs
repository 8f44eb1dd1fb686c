//! Exit codes, and the errors that carry one.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | all is well |
//! | 1 | internal error |
//! | 2 | usage, a configuration that is wrong included (`run`: 125, since its other codes are the program's) |
//! | 3 | `check`: a limit is broken; `diff --exit-code`: something differs |
//! | 4 | could not measure, read or compare, or not print what came of it; `check`: `--strict` was not met |
//! | 5 | `check --exit-on-improvement`: all limits are kept, and something is better than they ask for |
//! | 125 | `run`: the recorder failed or refused, a named window never opened, or `--strict` was not met |
//! | 126 | `run`: the program cannot be executed |
//! | 127 | `run`: the program was not found |
//!
//! Else `run` ends with the program's own code, or with 128 + the number of the signal that ended it.

use std::fmt;

/// Something went wrong that has no code of its own.
pub(crate) const INTERNAL: u8 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// A limit is broken, or something differs that was not to.
pub(crate) const REGRESSION: u8 = 3;
/// Could not measure, read or compare, or not print what came of it.
pub(crate) const UNREADABLE: u8 = 4;
/// Something is better than it has to be.
pub(crate) const IMPROVEMENT: u8 = 5;
/// The recorder failed or refused.
pub(crate) const RECORDER: u8 = 125;
/// The program cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The program was not found.
pub(crate) const NOT_FOUND: u8 = 127;

/// An expected error: its exit code and its words, of which the second line says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The recorder failed or refused.
    pub(crate) fn recorder(message: impl Into<String>) -> Self {
        Self::new(RECORDER, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The exit code of an error.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    error.downcast_ref::<Failure>().map_or(INTERNAL, |failure| failure.code)
}
