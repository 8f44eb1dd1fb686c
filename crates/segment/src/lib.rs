//! The shared-memory file in which the recorded process and heaptally's command meet.
//!
//! The command creates the file (a memfd, or a file in a folder that the user names) at its full, sparse size. The
//! recorder in the program maps it and counts into it; after the program has ended, however it ended, the command
//! reads it. Nothing has to be written at exit.
//!
//! This crate holds the layout ([`layout`]) and, for the command, a reader that trusts nothing (`read`, behind the
//! feature of that name). It does *not* map anything, allocate pages or know what a window or a stack means: the
//! tables' rules are `heaptally-tally`'s.
//!
//! ```text
//! file    = file header (1 page) | children (2 pages) | area 0 | area 1 | …     an area per recorded image, by a counter
//! area    = area header (1 page) | windows | rows | nodes | modules | strings | threads | totals | directories | counters
//!           | plans | ranges
//! ```
//!
//! The reader may find the file in any state, since a program can be killed between two stores. Each kind of entry
//! states in its docs which field makes it valid; that field is stored last, with release order.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "read")]
extern crate std;

mod entry_point;
pub mod layout;
#[cfg(feature = "read")]
pub mod read;
