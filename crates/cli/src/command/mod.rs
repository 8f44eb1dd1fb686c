//! One file per subcommand: its arguments, and what it does.

pub(crate) mod baseline;
pub(crate) mod cargo;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod limits;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod options;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod symbols;
