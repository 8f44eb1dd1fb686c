//! The profile: its model, and pprof in and out.
#![forbid(unsafe_code)]

pub mod model;
