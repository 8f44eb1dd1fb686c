//! Cargo's programs: built as `heaptally cargo` needs them, found, and recorded one benchmark or test at a time.
//!
//! ```text
//! argument ──words──▶ cargo ──messages──▶ build: programs ──▶ harness: lists ──▶ record: a process each ──sum──▶ profile
//! ```
//!
//! Cargo builds, and says what it built; the programs are started from here, with the folder and the environment that
//! Cargo would give them ([`environment`]).

pub(crate) mod argument;
pub(crate) mod build;
mod debug_setting;
mod environment;
pub(crate) mod exec;
pub(crate) mod record;
mod setting;
