//! Windows at functions: finding a function by name, and what is to be written over its entry.
//!
//! ```text
//! pattern ──find──▶ functions of a module ──entry──▶ moved instructions ──plan──▶ the segment ──▶ the recorder writes
//! ```
//!
//! The recorder decodes nothing: it compares an entry's bytes with those that were read from the file, and writes what
//! it was given. So everything that has to be known of instructions is known here.

pub(crate) mod code;
pub(crate) mod definition;
pub(crate) mod desk;
mod distance;
pub(crate) mod entry;
pub(crate) mod finder;
pub(crate) mod harness;
mod import;
pub(crate) mod module;
pub(crate) mod near;
pub(crate) mod outcome;
pub(crate) mod pattern;
mod plan;
mod pointer;
mod refusal;
mod remark;
