//! One file per subcommand: its arguments, and what it does.

pub(crate) mod demo;
pub(crate) mod report;
pub(crate) mod run;
