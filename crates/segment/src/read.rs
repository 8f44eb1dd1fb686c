//! Reads a segment, in whatever state the program left it.
//!
//! Nothing in the file is trusted: it is memory into which another process wrote until it was killed. Every number is
//! compared with the layout's limits, every reference with what it refers to. An entry that is half-written is left
//! out, and counted as damaged only if something refers to it. No content of the file makes the reader fail: errors
//! are for files that are no segment, and for those that cannot be read.
//!
//! What two threads entered at the same time is one here: alike nodes are one [`Frame`], alike rows one [`Row`].
//!
//! ```no_run
//! let file = std::fs::File::open("/tmp/segment")?;
//! let snapshot = heaptally_segment::read::read(&file)?;
//! for area in &snapshot.areas {
//!     let allocations: u64 = area.rows.iter().map(|row| row.counts.allocations).sum();
//!     println!("{}: {allocations} allocations", area.pid);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem::offset_of;
use std::borrow::ToOwned;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::vec;
use std::vec::Vec;

use crate::layout::{
    AREA_BYTES, AREA_LIMIT, ASYNC_ORIGIN, FIRST_AREA, FileHeader, MAGIC, NAMES_BYTES, NODE_ASYNC, PAGE, Root,
    VERSION, WINDOW_AUTOMATIC, WINDOW_FUNCTION, WINDOW_PROCESS, WINDOW_THREAD,
};
use source::{Bytes, Source};

mod area;
mod attempt;
mod child;
mod counter;
mod module;
mod plan;
mod source;
mod stack;
mod thread;

#[cfg(test)]
mod tests;

pub use plan::{Answer, NewPlan, Plan, Request, answer, requests, see};

/// Why a file could not be read as a segment.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused to read.
    Read {
        /// Where in the file, in bytes.
        offset: u64,
        /// What it said.
        source: io::Error,
    },
    /// The file does not begin as a segment does.
    NotASegment {
        /// Its first eight bytes.
        found: u64,
    },
    /// It is of another version of the layout.
    Version {
        /// The version that it states.
        found: u32,
    },
    /// It states another size of its areas than this version has.
    AreaSize {
        /// The size that it states, in bytes.
        found: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { offset, source } => {
                write!(formatter, "cannot read the segment at byte {offset}: {source}")
            }
            Self::NotASegment { found } => {
                write!(formatter, "not a segment: it begins with {found:#018x}, not with {MAGIC:#018x}")
            }
            Self::Version { found } => write!(formatter, "a segment of version {found}, not of {VERSION}"),
            Self::AreaSize { found } => {
                write!(formatter, "a segment with areas of {found} bytes, not of {AREA_BYTES}")
            }
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Everything that a segment holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The `OPTION_*` bits under which it was recorded.
    pub options: u32,
    /// The windows that were asked for by name.
    pub names: Vec<Vec<u8>>,
    /// The images that recorded, in the order in which they came.
    pub areas: Vec<Area>,
    /// Images that took an area and were gone before they wrote anything.
    pub empty_areas: u32,
    /// Images for which there was no area.
    pub without_area: u32,
    /// Images that opened the file and could not map it.
    pub refused: u32,
    /// Child processes that were not recorded.
    pub children: Children,
}

/// Child processes that were not recorded, as far as they were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Children {
    /// How many run which program: the end of its path, and a number above 0. In order of their names.
    pub programs: Vec<(Vec<u8>, u64)>,
    /// Those whose program had no place in the table.
    pub unnamed: u64,
}

impl Children {
    /// How many there are.
    pub fn total(&self) -> u64 {
        self.programs.iter().fold(self.unnamed, |sum, (_, count)| sum.saturating_add(*count))
    }
}

/// How far an image came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It ended while the recorder attached.
    Attaching,
    /// It recorded to its end.
    Attached,
    /// It recorded until another image replaced it (exec).
    Replaced,
}

/// What one image recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// How far it came.
    pub state: State,
    /// The process id in the program's own namespace.
    pub pid: u32,
    /// `FLAG_*` bits.
    pub flags: u32,
    /// glibc's version, for instance `2.36`.
    pub libc_version: Vec<u8>,
    /// The path of the image.
    pub image_path: Vec<u8>,
    /// The path of the module whose `malloc` is behind the recorder's.
    pub allocator_path: Vec<u8>,
    /// The path of the module whose `malloc` the program calls, where that is not the recorder's.
    pub foreign_path: Vec<u8>,
    /// The program to which the image went on last, or tried to (exec), as it named it.
    pub next_program: Vec<u8>,
    /// Its command line, each word ended by a NUL, where that was wanted.
    pub command: Vec<u8>,
    /// What package-benchmark's tool asked it for first: JSON.
    pub request: Vec<u8>,
    /// The windows, in the order in which they were first opened.
    pub windows: Vec<Window>,
    /// The loaded objects, unloaded ones included.
    pub modules: Vec<Module>,
    /// The frames of all stacks: a caller comes before its callees.
    pub frames: Vec<Frame>,
    /// The stacks that created tasks, by the number that [`ASYNC_ORIGIN`](crate::layout::ASYNC_ORIGIN) stands beside; a damaged one is
    /// not there.
    pub origins: HashMap<u32, Link>,
    /// What was counted, in order of its first appearance.
    pub rows: Vec<Row>,
    /// The threads that recorded.
    pub threads: Vec<ThreadLife>,
    /// What could not be recorded.
    pub losses: Losses,
    /// Frees, while a window was open, of blocks that no row owns.
    pub frees_from_before: u64,
    /// Allocations before the real functions were known.
    pub bootstrap_allocations: u64,
    /// How often code went away.
    pub unloads: u32,
    /// What the recorder's self-comparison found; all zero unless it was on.
    pub oracle: Oracle,
    /// What was to be written over functions' entries, and what came of it.
    pub plans: Vec<Plan>,
    /// Requests for plans that were not answered in time.
    pub plans_late: u32,
    /// Ranges of code for which there was no place.
    pub lost_ranges: u32,
}

/// What an area could not record. All zero: nothing was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Allocations from inside the recorder.
    pub reentrant: u64,
    /// Allocations whose row or counters had no place.
    pub full: u64,
    /// Allocations in threads for which no memory could be had.
    pub thread: u64,
    /// Blocks whose free will not be seen.
    pub blocks: u64,
    /// Blocks that were freed unseen.
    pub unseen_frees: u64,
    /// Begins of windows that had no place.
    pub windows: u64,
    /// Window calls from inside the recorder.
    pub window_calls: u64,
    /// Ends of windows that are not known.
    pub stray_ends: u64,
    /// Resumes by threads that were not paused.
    pub stray_resumes: u64,
    /// Restarts of windows that could not be noted: what they discard is counted.
    pub restarts: u64,
    /// Allocations of which a cut stack does not tell whether they were beneath a window's function.
    pub unplaced: u64,
    /// Modules that had no place.
    pub modules: u64,
    /// Thread totals that had no place.
    pub totals: u64,
    /// Entries that something refers to and that are half-written or make no sense.
    pub damaged: u64,
}

/// What the comparison of remembered walks with other walks found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oracle {
    /// Events compared with a full walk.
    pub full: u64,
    /// Events compared with libgcc's walk.
    pub libgcc: u64,
    /// Differences from the full walk.
    pub full_differs: u64,
    /// Differences from libgcc's walk.
    pub libgcc_differs: u64,
    /// Events not compared with libgcc's walk, by [`OracleSkip`](crate::layout::OracleSkip).
    pub skips: [u64; 8],
    /// The first difference: the remembered walk and the other one, leaf first.
    pub first: [Vec<u64>; 2],
}

/// What a window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowKind {
    /// From the start to the first window.
    Automatic,
    /// All threads.
    Process,
    /// The threads that opened it.
    Thread,
    /// What runs beneath some functions.
    Function,
}

impl WindowKind {
    fn from_number(number: u32) -> Option<Self> {
        match number {
            WINDOW_AUTOMATIC => Some(Self::Automatic),
            WINDOW_PROCESS => Some(Self::Process),
            WINDOW_THREAD => Some(Self::Thread),
            WINDOW_FUNCTION => Some(Self::Function),
            _ => None,
        }
    }
}

/// A window. The fields mean what [`layout::Window`](crate::layout::Window)'s do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its name.
    pub name: Vec<u8>,
    /// What it counts.
    pub kind: WindowKind,
    /// How deep it was open at the end.
    pub depth: u32,
    /// How often it was entered, without entries that were discarded.
    pub entries: u64,
    /// Entries that were discarded: it was restarted.
    pub discarded_entries: u64,
    /// The sum of the iterations that were told.
    pub iterations: u64,
    /// How often iterations were told.
    pub iteration_calls: u64,
    /// Entries of a benchmark's loop that was left without saying how far it had come.
    pub untold_entries: u64,
    /// Ends while another window was the innermost one.
    pub crossed_ends: u64,
    /// Ends while it was not open.
    pub stray_ends: u64,
    /// Thread windows: entries that their thread's end closed.
    pub ended_by_thread: u64,
    /// Pauses while it was not open, and resumes while it was not paused.
    pub stray_pauses: u64,
    /// The highest live bytes that a thread saw.
    pub peak_bytes: i64,
    /// The most threads at a time that handed in late.
    pub recorders: u32,
    /// Allocations in it that were not recorded, for whatever reason.
    pub lost: u64,
}

/// A loaded object. The fields mean what [`layout::Module`](crate::layout::Module)'s do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its path, empty for the vdso.
    pub path: Vec<u8>,
    /// The bytes of its build-id note.
    pub build_id: Vec<u8>,
    /// AVMA = SVMA + bias.
    pub bias: u64,
    /// Its lowest AVMA.
    pub start: u64,
    /// One past its highest AVMA.
    pub end: u64,
    /// The lowest SVMA of its code.
    pub text_svma: u64,
    /// One past the highest SVMA of its code.
    pub text_svma_end: u64,
    /// The file offset of its code.
    pub text_offset: u64,
    /// It owns nodes from this one on.
    pub load_node: u32,
    /// It owns nodes below this one.
    pub unload_node: u32,
    /// Its inode, 0 when unknown.
    pub inode: u64,
    /// Its device.
    pub device: u64,
    /// `NOTE_*` bits.
    pub notes: u32,
}

/// Where a stack goes on towards its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// At a frame: an index into [`Area::frames`].
    Frame(usize),
    /// Nowhere: so it ended.
    Root(Root),
}

impl Hash for Link {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Frame(id) => (0_u8, *id).hash(state),
            Self::Root(root) => (1_u8, *root as u32).hash(state),
        }
    }
}

/// One frame below its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The AVMA.
    pub address: u64,
    /// `NODE_*` bits.
    pub flags: u64,
    /// The module that held the address when the frame was recorded: an index into [`Area::modules`].
    pub module: Option<usize>,
    /// The caller.
    pub caller: Link,
}

impl Frame {
    /// Where it is a note on what created a task: its key in [`Area::origins`].
    pub fn origin(&self) -> Option<u32> {
        let is_one = self.flags & NODE_ASYNC != 0 && self.address & ASYNC_ORIGIN != 0;
        u32::try_from(self.address & !ASYNC_ORIGIN).ok().filter(|_| is_one)
    }
}

/// A window's use of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// An index into [`Area::windows`].
    pub window: usize,
    /// The innermost frame.
    pub leaf: Link,
    /// The function that the program called.
    pub entry_point: crate::layout::EntryPoint,
    /// In how many entries of the window it occurred; `None` when unknown.
    pub entries: Option<u64>,
    /// The first of them; `None` when unknown.
    pub first_entry: Option<u64>,
    /// The latest of them; `None` when unknown.
    pub last_entry: Option<u64>,
    /// The sums over all shards.
    pub counts: Counts,
}

/// What is counted for a row. The fields mean what [`layout::Counters`](crate::layout::Counters)' do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Successful allocations.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks given back while the window was open.
    pub freed: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Blocks freed by the allocating thread before its next recorded allocation.
    pub temporary: u64,
    /// Their bytes.
    pub temporary_bytes: u64,
    /// Blocks given back while the window was not open.
    pub freed_later: u64,
    /// Their bytes.
    pub freed_later_bytes: u64,
    /// Allocations that were a realloc of a live block.
    pub reallocs: u64,
    /// Those that stayed in place.
    pub reallocs_in_place: u64,
    /// Those that moved.
    pub reallocs_moved: u64,
    /// Calls that returned no memory.
    pub failed: u64,
    /// Blocks that were freed by a realloc.
    pub freed_by_realloc: u64,
    /// Calls of `realloc(p, 0)` that freed p.
    pub reallocs_to_zero: u64,
    /// Allocations in entries that were discarded. They are in none of the numbers above but those of freed blocks.
    pub discarded: u64,
    /// Their bytes.
    pub discarded_bytes: u64,
}

/// One thread, or several of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLife {
    /// A `THREAD_*` number.
    pub state: u32,
    /// The kernel's thread id.
    pub tid: u32,
    /// How many lives these are.
    pub lives: u32,
    /// The name at the first event.
    pub name: Vec<u8>,
    /// The name at the end or at the latest look.
    pub last_name: Vec<u8>,
    /// The frame in the start function: an index into [`Area::frames`].
    pub start: Option<usize>,
    /// What it did, by window (an index into [`Area::windows`]).
    pub totals: Vec<(usize, ThreadTotal)>,
}

/// What one thread did in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTotal {
    /// Successful allocations.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks of that window that it freed.
    pub freed: u64,
    /// Their bytes.
    pub freed_bytes: u64,
}

/// Reads a segment.
///
/// # Errors
/// The file is no segment of this version, or the system refuses to read it. See [`Error`].
pub fn read(file: &File) -> Result<Snapshot, Error> {
    let source = Source::new(file)?;
    let mut page = vec![0; PAGE as usize];
    source.read(0, &mut page)?;
    let header = Bytes::new(&page);
    let found = header.u64(offset_of!(FileHeader, magic));
    if found != MAGIC {
        return Err(Error::NotASegment { found });
    }
    let found = header.u32(offset_of!(FileHeader, version));
    if found != VERSION {
        return Err(Error::Version { found });
    }
    let found = header.u64(offset_of!(FileHeader, area_bytes));
    if found != AREA_BYTES {
        return Err(Error::AreaSize { found });
    }

    let names_len = (header.u32(offset_of!(FileHeader, names_len)) as usize).min(NAMES_BYTES);
    let names = header.slice(offset_of!(FileHeader, names), names_len);
    let limit = header.u32(offset_of!(FileHeader, area_limit)).min(AREA_LIMIT);
    let taken = header.u32(offset_of!(FileHeader, areas_taken));
    let mut snapshot = Snapshot {
        options: header.u32(offset_of!(FileHeader, options)),
        names: names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(ToOwned::to_owned)
            .collect(),
        areas: Vec::new(),
        empty_areas: 0,
        without_area: taken.saturating_sub(limit),
        refused: header.u32(offset_of!(FileHeader, refused)),
        children: child::read(source)?,
    };
    for number in 0..taken.min(limit) {
        match area::read(source, FIRST_AREA + u64::from(number) * AREA_BYTES)? {
            Some(area) => snapshot.areas.push(area),
            None => snapshot.empty_areas += 1,
        }
    }
    Ok(snapshot)
}
