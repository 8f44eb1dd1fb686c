//! What the fuzz targets share: inputs in the form that reaches deepest, and what has to hold of a result.
//!
//! A target is a program in `targets/`: libFuzzer hands it bytes, and a panic, an endless loop or a memory use beyond
//! the limit is a fault. `cargo xtask fuzz` builds and runs them, and says how to run one again with the input that was
//! found.

#![forbid(unsafe_code)]

pub mod diff;
pub mod elf;
pub mod import;
pub mod message;
pub mod model;
pub mod profile;
pub mod seed;
pub mod segment;
