//! The table of child processes that are not recorded: how many, and which programs.
//!
//! ```text
//! Children = unnamed | 126 names of 64 bytes (state, length, count, the end of the program's path)
//! ```
//!
//! Whoever sees a child begin adds one to its program's name; whoever sees that it is recorded after all, or that it was
//! not started, takes one away. Nothing is ever removed, so that a name's number stays good while a child starts.

use core::mem::size_of;
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::PAGE;

/// Where the table begins in the file.
pub const CHILDREN_OFFSET: u64 = PAGE;
/// Its length.
pub const CHILDREN_BYTES: u64 = 2 * PAGE;
/// How many programs can be told apart.
pub const CHILD_NAME_LIMIT: usize = 126;
/// How many bytes of a program's name are kept.
pub const CHILD_NAME_BYTES: usize = 48;

/// [`ChildName::state`]: someone is writing the name.
pub const CHILD_NAME_TAKEN: u32 = 1;
/// [`ChildName::state`]: the name is written, and never changes.
pub const CHILD_NAME_WRITTEN: u32 = 2;

/// The table.
#[repr(C)]
#[derive(Debug)]
pub struct Children {
    /// Children for whose name there was no place.
    pub unnamed: AtomicU64,
    /// Reserved.
    pub reserved: [u64; 15],
    /// The names.
    pub names: [ChildName; CHILD_NAME_LIMIT],
}

/// A program's name and how many children run it unrecorded. Valid when `state` is [`CHILD_NAME_WRITTEN`].
///
/// Two entries may have one name (two processes made them at the same time): the reader adds them up.
#[repr(C)]
#[derive(Debug)]
pub struct ChildName {
    /// `CHILD_NAME_*`, or 0.
    pub state: AtomicU32,
    /// The name's length in bytes, at most [`CHILD_NAME_BYTES`].
    pub len: AtomicU32,
    /// How many.
    pub count: AtomicU64,
    /// The name, in the words' memory order, NUL-padded.
    pub words: [AtomicU64; CHILD_NAME_BYTES / 8],
}

const _: () = {
    assert!(size_of::<ChildName>() == 64);
    assert!(size_of::<Children>() as u64 == CHILDREN_BYTES);
};
