//! The profile: its model, its normal form, and pprof in and out.
//!
//! A [`Profile`](model::Profile) is one recording. This crate says what it holds ([`model`]), brings it into a form
//! in which equal recordings are equal ([`canonical`]), adds it up ([`total`]), finds the frame of each stack that the
//! user can act on ([`call_site`]), lets one look at a part of it ([`view`], [`frame`]), and writes and reads it as a pprof file ([`pprof`]). [`path_text`] says how paths
//! that are not UTF-8 are written as text. [`diff`] compares two profiles; [`limit`] says what they may allocate, and
//! [`check`] whether they do. Several runs become one profile by [`merge`](mod@merge), and [`repeat`] says
//! which rows differ between them. [`import`] reads the files of other tools.
//!
//! It does *not* record, symbolise or print, it touches no file, and it reads no clock: the caller hands over bytes
//! and gets bytes. Whoever builds a profile owes valid indices; [`Profile::validate`](model::Profile::validate) checks
//! them, and reading a file always does.
//!
//! ```
//! use heaptally_profile::model::{Counts, Image, Location, Profile, Row, Stack, Window};
//! use heaptally_profile::pprof;
//!
//! let mut profile = Profile {
//!     images: vec![Image { label: "bench".into(), ..Image::default() }],
//!     windows: vec![Window { name: "parse".into(), entries: 1, iterations: 10, ..Window::default() }],
//!     locations: vec![Location { address: 0x1234, ..Location::default() }],
//!     stacks: vec![Stack { locations: vec![0], ..Stack::default() }],
//!     rows: vec![Row { counts: Counts { allocations: 20, bytes: 640, ..Counts::default() }, ..Row::default() }],
//!     ..Profile::default()
//! };
//! profile.normalize()?;
//! let file = pprof::write(&profile);
//! assert_eq!(pprof::read(&file)?, profile);
//! # Ok::<(), heaptally_profile::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod call_site;
pub mod canonical;
pub mod check;
pub mod diff;
mod error;
pub mod frame;
mod glob;
pub mod import;
pub mod kind;
pub mod limit;
pub mod merge;
pub mod model;
pub mod name_part;
pub mod part;
pub mod path_text;
pub mod pprof;
mod process;
pub mod repeat;
pub mod short_name;
pub mod swift_name;
pub mod total;
mod validate;
pub mod view;

pub use error::Error;
