//! Reports: a profile as text for people, and in forms that programs read.
//!
//! Every form is one file with one function of a profile and [`Options`], which returns the whole report:
//! [`text`](mod@text), [`json`](mod@json), [`folded`](mod@folded), [`csv`](mod@csv); [`summary`](mod@summary) is the one
//! line that ends a run. Of two profiles that were compared: [`text::diff`], [`diff_json`](mod@diff_json),
//! [`diff_folded`](mod@diff_folded), [`diff_markdown`](mod@diff_markdown). Of a check: [`text::check`] and `check_*`. The same profile and options give the same bytes.
//!
//! This crate does *not* read or write files and does not look at the terminal; colours and width are options. What a
//! profile holds is data: names are escaped, so that they cannot command a terminal ([`escape`](mod@escape)). The
//! caller owes a profile whose indices are valid (one that was read from a file is); what an invalid one refers to is
//! left out.
//!
//! ```
//! use heaptally_profile::model::{Counts, Image, Profile, Row, Stack, Window};
//! use heaptally_report::{Options, summary::summary, text::text};
//!
//! let profile = Profile {
//!     images: vec![Image::default()],
//!     windows: vec![Window { name: "parse".into(), iterations: 10, iterations_told: true, ..Window::default() }],
//!     stacks: vec![Stack::default()],
//!     rows: vec![Row { counts: Counts { allocations: 3, bytes: 90, ..Counts::default() }, ..Row::default() }],
//!     ..Profile::default()
//! };
//! assert_eq!(summary(&profile), "1 window, 3 allocations, 1 stack, all complete");
//! assert!(text(&profile, &Options::default()).starts_with("window \"parse\"   10 iterations   0.30 allocs/iter"));
//! ```
#![forbid(unsafe_code)]

pub mod check_bencher;
pub mod check_benchmark_action;
pub mod check_github;
pub mod check_gitlab;
pub mod check_json;
pub mod check_markdown;
pub mod check_sarif;
pub mod child;
pub mod csv;
pub mod diff_folded;
pub mod diff_json;
pub mod diff_markdown;
pub mod ending;
pub mod escape;
mod executor;
mod fingerprint;
pub mod folded;
mod frame;
pub mod json;
mod loss;
mod markdown;
mod number;
mod options;
mod path;
pub mod summary;
pub mod text;
mod verdict;
mod width;

pub use options::{Layout, Options};
