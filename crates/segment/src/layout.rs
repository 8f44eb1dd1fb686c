//! Where everything lies in the segment.
//!
//! All integers are little-endian, all entries are aligned to their size, and every field that two sides may touch
//! at the same time is an atomic. Offsets inside an area are relative to the area's start. The sizes of the tables
//! are limits, not use: the file is sparse.
//!
//! A worked example: the counters of row 70 in shard 2. Directory 2 starts at `DIRECTORIES.offset + 2 *
//! DIRECTORY_BYTES`; its entry `70 / ROWS_PER_CHUNK` = 2 holds a chunk's number plus one, say 9; then the counters
//! lie at `COUNTERS.offset + 8 * CHUNK_BYTES + (70 % ROWS_PER_CHUNK) * size_of::<Counters>()`.

use core::mem::size_of;
use core::sync::atomic::{AtomicU32, AtomicU64};

mod child;
mod plan;
mod row;
mod thread;
mod window;

pub use crate::entry_point::EntryPoint;
pub use child::{
    CHILD_NAME_BYTES, CHILD_NAME_LIMIT, CHILD_NAME_TAKEN, CHILD_NAME_WRITTEN, CHILDREN_BYTES,
    CHILDREN_OFFSET, ChildName, Children,
};
pub use plan::{
    ACTION_BEGIN, ACTION_BRACKET_BEGIN, ACTION_BRACKET_END, ACTION_BRACKET_NAME, ACTION_CALL, ACTION_END,
    ACTION_KIND_SHIFT, ACTION_LOOP_BEGIN, ACTION_LOOP_END, ACTION_LOOP_NAME, ACTION_LOOP_PAUSE,
    ACTION_LOOP_RESUME, ACTION_LOOP_SKIP, ACTION_PAUSE, ACTION_RESUME, ACTION_TURN, CodeRange,
    FIXUP_DISTANCE, FIXUP_HIGH, FIXUP_LOW, PLAN_ACTIONS, PLAN_APPLIED, PLAN_CODE, PLAN_DAMAGED, PLAN_DIFFERS,
    PLAN_FIXUPS, PLAN_NO_ROOM, PLAN_ORIGINAL, PLAN_PROTECTED, PLAN_STEPS, PLAN_THREADS, PLAN_WRITTEN, Plan,
    PlanFixup, PlanStep,
};
pub use row::{Counters, ENTERED_ENTRY_BITS, Row, TwinRows};
pub use thread::{THREAD_ALIVE, THREAD_ENDED, THREAD_MERGED, ThreadLife, ThreadTotal};
pub use window::{
    PEAK_BATCH_BYTES, WINDOW_AUTOMATIC, WINDOW_FUNCTION, WINDOW_NAMED_LATE, WINDOW_PROCESS, WINDOW_THREAD,
    Window,
};

/// The first eight bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HTALLYSG");
/// Raised with every change of anything in this module. Both sides come from one build, so a mismatch is an error.
pub const VERSION: u32 = 11;
/// The unit in which everything is placed, in bytes.
pub const PAGE: u64 = 4096;
/// How many images (executions of a program, and forked children) one file can hold at most; [`FileHeader::area_limit`]
/// says how many it has room for.
pub const AREA_LIMIT: u32 = 16384;

/// [`FileHeader::options`]: do not follow blocks after their allocation (no frees, no live bytes, no peak).
pub const OPTION_NO_LIFETIMES: u32 = 1;
/// [`FileHeader::options`]: only the windows in [`FileHeader::names`] exist, and the run does not start in `process`.
pub const OPTION_NAMED_WINDOWS: u32 = 1 << 1;
/// [`FileHeader::options`]: compare each remembered walk with a full one and with libgcc's (debug builds of the
/// recorder only).
pub const OPTION_ORACLE: u32 = 1 << 2;
/// [`FileHeader::options`]: child processes are recorded, each in areas of its own.
pub const OPTION_FOLLOW_CHILDREN: u32 = 1 << 3;
/// [`FileHeader::options`]: windows at functions are wanted: the recorder asks the command for plans.
pub const OPTION_FUNCTION_WINDOWS: u32 = 1 << 4;
/// [`FileHeader::options`]: a benchmark harness's loops open no windows by themselves.
pub const OPTION_NO_HARNESS: u32 = 1 << 5;
/// [`FileHeader::options`]: the recorder tells how a process of package-benchmark was called and what it was asked to run.
pub const OPTION_BENCHMARK_NAMES: u32 = 1 << 6;
/// [`FileHeader::options`]: of child processes those are recorded that run benchmarks of package-benchmark for its tool. The others
/// get the recorder, too, and do no more than hand it on.
pub const OPTION_FOLLOW_BENCHMARKS: u32 = 1 << 7;
/// [`FileHeader::options`]: of each task of Swift's the stack that created it is looked for. It stands behind bits 8..16.
pub const OPTION_TASK_ORIGINS: u32 = 1 << 16;
/// [`FileHeader::options`], with [`OPTION_ORACLE`]: bits 8..16 hold which kind of unwind rule to make wrong on
/// purpose, so that a test can see that the oracle finds it. 0: none.
pub const OPTION_MUTATION_SHIFT: u32 = 8;

/// The window of package-benchmark's measurements, as the recorder calls it: which benchmark it is, the command finds out.
pub const PACKAGE_BENCHMARK: &str = "package-benchmark";
/// The window around all iterations of a harness that reads its counters at the edges of each.
pub const PACKAGE_BENCHMARK_LOOP: &str = "package-benchmark (loop)";
/// The longest command line, and the longest request, that an area keeps, in bytes.
pub const REQUEST_LIMIT: u32 = 1 << 16;

/// How many bytes of window names a file header can hold.
pub const NAMES_BYTES: usize = 2048;

/// Page 0 of the file. Written by the command before the program starts; only the atomics change later.
#[repr(C)]
#[derive(Debug)]
pub struct FileHeader {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// `OPTION_*` bits.
    pub options: u32,
    /// The length of one area, [`AREA_BYTES`].
    pub area_bytes: u64,
    /// How many areas the file has room for, at most [`AREA_LIMIT`].
    pub area_limit: u32,
    /// How many areas were asked for. Above `area_limit`: images that found no place.
    pub areas_taken: AtomicU32,
    /// How many bytes of `names` are used.
    pub names_len: u32,
    /// Images that opened the file and could not map it.
    pub refused: AtomicU32,
    /// How often a recorder asked for plans: the command waits here.
    pub requests: AtomicU32,
    /// Not 0: the command's process answers requests.
    pub answering: AtomicU32,
    /// How many of `names`, from the first on, are of windows that can be restarted; at most [`RESTART_LIMIT`].
    pub restartable: u32,
    /// Reserved, zero.
    pub reserved: u32,
    /// The names of the windows that were asked for, each ended by a NUL.
    pub names: [u8; NAMES_BYTES],
}

/// [`AreaHeader::state`]: the recorder has taken the area and fills in the header.
pub const STATE_ATTACHING: u32 = 1;
/// [`AreaHeader::state`]: the recorder records.
pub const STATE_ATTACHED: u32 = 2;
/// [`AreaHeader::state`]: the image was replaced by another one (exec). Recording stopped there.
pub const STATE_REPLACED: u32 = 3;

/// [`AreaHeader::flags`]: the program's `malloc` is this recorder's (`dlsym` of the name finds ours first).
pub const FLAG_MALLOC_IS_OURS: u32 = 1;
/// [`AreaHeader::flags`]: a look-up of `operator new` finds a C++ runtime's behind ours (it calls malloc).
pub const FLAG_NEW_IS_RUNTIME: u32 = 1 << 1;
/// [`AreaHeader::flags`]: a look-up of `operator new` finds another allocator's behind ours.
pub const FLAG_NEW_IS_ALLOCATOR: u32 = 1 << 2;
/// [`AreaHeader::flags`]: the next `malloc` behind ours is the C library's.
pub const FLAG_LIBC_ALLOCATOR: u32 = 1 << 3;
/// [`AreaHeader::flags`]: loads and unloads are seen through the loader's debugger hook.
pub const FLAG_LOADER_WATCHED: u32 = 1 << 4;
/// [`AreaHeader::flags`]: a forked child is told apart by a page that the kernel wipes. Where it is not set, the
/// recorder asked for it and was refused, and forked children stop recording by an atfork handler only.
pub const FLAG_FORK_SAFE: u32 = 1 << 5;
/// [`AreaHeader::flags`]: the address space is limited (`ulimit -v`), and the tables were made small for that.
pub const FLAG_SMALL_TABLES: u32 = 1 << 6;
/// [`AreaHeader::flags`]: this build of the recorder has the oracle, and it is on.
pub const FLAG_ORACLE: u32 = 1 << 7;
/// [`AreaHeader::flags`]: when the image went on to its next program, the recorder's library or this file could not be
/// opened any more: the process had changed its user, its root folder or its namespace.
pub const FLAG_OUT_OF_REACH: u32 = 1 << 8;

/// [`AreaHeader::flags`]: the image runs in a descendant of the process that the command started.
pub const FLAG_CHILD: u32 = 1 << 9;
/// [`AreaHeader::flags`]: benchmark loops began whose benchmark was not named: their windows have their functions' names, or one
/// for all.
pub const FLAG_LOOPS_UNNAMED: u32 = 1 << 10;
/// [`AreaHeader::flags`]: the process runs benchmarks for package-benchmark's tool, and what it is to run could not be seen.
pub const FLAG_REQUEST_UNSEEN: u32 = 1 << 11;

/// Page 0 of an area.
#[repr(C)]
#[derive(Debug)]
pub struct AreaHeader {
    /// `STATE_*`; 0 while nobody took the area.
    pub state: AtomicU32,
    /// The process id in the program's own pid namespace.
    pub pid: AtomicU32,
    /// `FLAG_*` bits.
    pub flags: AtomicU32,
    /// The highest number of areas that existed when this one was taken, itself included.
    pub ordinal: AtomicU32,

    /// Used entries of each table. An entry below this number may still be half-written: see each kind's docs. Window
    /// 0 is never used.
    pub windows: AtomicU32,
    /// Used rows; row 0 is no row: its counters' `freed` are frees of blocks that no row owns.
    pub rows: AtomicU32,
    /// Used nodes; those below [`FIRST_NODE`] are the roots.
    pub nodes: AtomicU32,
    /// Used module entries.
    pub modules: AtomicU32,
    /// Used bytes of the string table.
    pub strings: AtomicU32,
    /// Used thread lives; life 0 is never used.
    pub threads: AtomicU32,
    /// Used thread totals; total 0 is never used.
    pub totals: AtomicU32,
    /// Shards that have a directory; shard 0 is the shared one.
    pub shards: AtomicU32,
    /// Used chunks of counters.
    pub chunks: AtomicU32,
    /// How often code went away (a library was unloaded).
    pub unloads: AtomicU32,

    /// Allocations that could not be recorded, since they came from inside the recorder (a signal handler that
    /// interrupted it).
    pub lost_reentrant: AtomicU64,
    /// Allocations whose window is known and whose row or counters had no place; also counted in
    /// [`Window::lost_full`].
    pub lost_full: AtomicU64,
    /// Allocations in a thread for which no memory could be had.
    pub lost_thread: AtomicU64,
    /// Blocks that were recorded and could not be remembered: their free will not be seen.
    pub lost_blocks: AtomicU64,
    /// Blocks whose address was handed out again though their free was never seen (freed behind our back).
    pub unseen_frees: AtomicU64,
    /// Frees, while a window was open, of blocks that no row owns: allocated before, or elsewhere. Only those outside of
    /// any thread's shard; the others are [`Counters::freed`] of row 0.
    pub frees_from_before: AtomicU64,
    /// Begins of windows for which the table had no place.
    pub lost_windows: AtomicU64,
    /// Calls of window functions from inside the recorder (a signal handler), which did nothing.
    pub lost_window_calls: AtomicU64,
    /// Ends of windows whose name is not known.
    pub stray_ends: AtomicU64,
    /// Resumes by threads that were not paused.
    pub stray_resumes: AtomicU64,
    /// Modules for which the table had no place.
    pub lost_modules: AtomicU64,
    /// Thread totals that had no place: events whose thread's total is short. The rows are right.
    pub lost_totals: AtomicU64,
    /// Allocations that the bootstrap arena served (before the real functions were known).
    pub bootstrap_allocations: AtomicU64,

    /// Oracle: events whose remembered walk was compared with a full walk.
    pub oracle_full: AtomicU64,
    /// Oracle: events whose remembered walk was compared with libgcc's.
    pub oracle_libgcc: AtomicU64,
    /// Oracle: differences from the full walk.
    pub oracle_full_differs: AtomicU64,
    /// Oracle: differences from libgcc's walk.
    pub oracle_libgcc_differs: AtomicU64,
    /// Oracle: events not compared with libgcc's walk, by reason: see [`OracleSkip`].
    pub oracle_skips: [AtomicU64; 8],
    /// Oracle: the first difference: leaf-first addresses of the remembered walk, then of the other one.
    pub oracle_first: [[AtomicU64; 64]; 2],

    /// glibc's version as text, NUL-padded.
    pub libc_version_words: [AtomicU32; 8],
    /// Offset in the string table of the path of the module whose `malloc` is behind ours.
    pub allocator_path: AtomicU32,
    /// Its length in bytes.
    pub allocator_path_len: AtomicU32,
    /// Offset in the string table of the path of the image (`/proc/self/exe`).
    pub image_path: AtomicU32,
    /// Its length in bytes.
    pub image_path_len: AtomicU32,
    /// Offset in the string table of the path of the module that defines the `malloc` which the program calls, where
    /// it is not ours.
    pub foreign_path: AtomicU32,
    /// Its length in bytes.
    pub foreign_path_len: AtomicU32,
    /// Offset in the string table of the program to which the image went on (exec), as it named it.
    pub next_program: AtomicU32,
    /// Its length in bytes.
    pub next_program_len: AtomicU32,

    /// Offset in the string table of the image's command line, each word ended by a NUL, where [`OPTION_BENCHMARK_NAMES`] wants it.
    pub command: AtomicU32,
    /// Its length in bytes.
    pub command_len: AtomicU32,
    /// Offset in the string table of the request that package-benchmark's tool sent first: JSON.
    pub request: AtomicU32,
    /// Its length in bytes.
    pub request_len: AtomicU32,

    /// How many plans the area has room for.
    pub plan_limit: AtomicU32,
    /// How often the recorder asked for plans.
    pub plan_requests: AtomicU32,
    /// Which request the command has seen.
    pub plans_seen: AtomicU32,
    /// Which request the command has answered: the recorder waits here. Stored last.
    pub plan_answers: AtomicU32,
    /// How many plans there are.
    pub plans: AtomicU32,
    /// Requests that were not answered in time.
    pub plans_late: AtomicU32,
    /// How many ranges of code there are.
    pub ranges: AtomicU32,
    /// How many the recorder has room for.
    pub range_limit: AtomicU32,
    /// Ranges for which there was no place.
    pub lost_ranges: AtomicU32,
    /// In a forked child: the modules below this number are its parent's, whose plans it has.
    pub inherited_modules: AtomicU32,
    /// Windows that can be restarted and have a place in [`ATTEMPTS`].
    pub restartable: AtomicU32,
    /// Restarts that could not be noted: what their entries held is counted still.
    pub lost_restarts: AtomicU64,
    /// Allocations whose stack was cut below no function beneath which a window is: the rest of it may have one.
    pub unplaced: AtomicU64,
}

/// Why an event was not compared with libgcc's walk; the index into [`AreaHeader::oracle_skips`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum OracleSkip {
    /// libgcc's unwinder could not be found in the process.
    NoUnwinder = 0,
    /// libgcc's walk was itself at work (an allocation inside it).
    Nested = 1,
    /// The remembered walk was cut: libgcc guesses or stops elsewhere there.
    Cut = 2,
    /// The remembered walk used a frame pointer where there is no unwind information.
    FramePointer = 3,
    /// The stack was deeper than what is compared.
    TooDeep = 4,
    /// libgcc's walk never came past the recorder's own frames.
    NotFound = 5,
}

/// One of an area's tables.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// From the area's start, in bytes.
    pub offset: u64,
    /// The most that it can hold, in bytes.
    pub bytes: u64,
}

impl Region {
    const fn after(previous: Self, bytes: u64) -> Self {
        assert!(bytes.is_multiple_of(PAGE));
        Self { offset: previous.offset + previous.bytes, bytes }
    }
}

/// The most windows of an area.
pub const WINDOW_LIMIT: u32 = 4096;
/// The most rows. A row's number must fit [`BLOCK_ROW_BITS`] bits.
pub const ROW_LIMIT: u32 = 1 << 22;
/// The most nodes.
pub const NODE_LIMIT: u32 = 1 << 25;
/// The most modules, unloaded ones included.
pub const MODULE_LIMIT: u32 = 1 << 15;
/// The most bytes of names and paths.
pub const STRING_LIMIT: u32 = 1 << 24;
/// The most thread lives that are told apart; later ones are merged by name and start function.
pub const THREAD_LIMIT: u32 = 4096;
/// Further life entries, into which those beyond [`THREAD_LIMIT`] are merged.
pub const MERGED_THREAD_LIMIT: u32 = 4096;
/// The most (life, window) pairs with a total.
pub const TOTAL_LIMIT: u32 = 1 << 18;
/// The most shards: threads that record at the same time, and the shared one.
pub const SHARD_LIMIT: u32 = 8192;
/// Rows whose counters lie side by side in one chunk.
pub const ROWS_PER_CHUNK: u32 = 32;
/// Bytes of a chunk: one page.
pub const CHUNK_BYTES: u64 = ROWS_PER_CHUNK as u64 * size_of::<Counters>() as u64;
/// The most chunks of counters.
pub const CHUNK_LIMIT: u32 = 1 << 22;
/// Bytes of one shard's directory.
pub const DIRECTORY_BYTES: u64 = (ROW_LIMIT / ROWS_PER_CHUNK) as u64 * 4;
/// The most functions whose entries are patched.
pub const PLAN_LIMIT: u32 = 1 << 16;
/// The most ranges of code in which windows are.
pub const RANGE_LIMIT: u32 = 1 << 18;
/// The most windows that can be restarted.
pub const RESTART_LIMIT: u32 = 16;
/// The most attempts at entries of such a window of which can be noted whether they were discarded.
pub const ATTEMPT_LIMIT: u64 = 1 << 27;
/// Bytes for one such window's attempts.
pub const ATTEMPTS_BYTES: u64 = ATTEMPT_LIMIT / 8;
/// How many bits of a remembered block hold its row's number.
pub const BLOCK_ROW_BITS: u32 = 22;

/// The area's header.
pub const HEADER: Region = Region { offset: 0, bytes: PAGE };
/// [`Window`]s.
pub const WINDOWS: Region = Region::after(HEADER, WINDOW_LIMIT as u64 * size_of::<Window>() as u64);
/// [`Row`]s.
pub const ROWS: Region = Region::after(WINDOWS, ROW_LIMIT as u64 * size_of::<Row>() as u64);
/// [`Node`]s.
pub const NODES: Region = Region::after(ROWS, NODE_LIMIT as u64 * size_of::<Node>() as u64);
/// [`Module`]s.
pub const MODULES: Region = Region::after(NODES, MODULE_LIMIT as u64 * size_of::<Module>() as u64);
/// Bytes of names and paths, without terminators.
pub const STRINGS: Region = Region::after(MODULES, STRING_LIMIT as u64);
/// [`ThreadLife`]s.
pub const THREADS: Region =
    Region::after(STRINGS, (THREAD_LIMIT + MERGED_THREAD_LIMIT) as u64 * size_of::<ThreadLife>() as u64);
/// [`ThreadTotal`]s.
pub const TOTALS: Region = Region::after(THREADS, TOTAL_LIMIT as u64 * size_of::<ThreadTotal>() as u64);
/// One directory per shard: for each chunk of rows a `u32`, the chunk's number plus one, or 0.
pub const DIRECTORIES: Region = Region::after(TOTALS, SHARD_LIMIT as u64 * DIRECTORY_BYTES);
/// Chunks of [`Counters`].
pub const COUNTERS: Region = Region::after(DIRECTORIES, CHUNK_LIMIT as u64 * CHUNK_BYTES);
/// [`Plan`]s.
pub const PLANS: Region =
    Region::after(COUNTERS, (PLAN_LIMIT as u64 * size_of::<Plan>() as u64).next_multiple_of(PAGE));
/// [`CodeRange`]s.
pub const RANGES: Region =
    Region::after(PLANS, (RANGE_LIMIT as u64 * size_of::<CodeRange>() as u64).next_multiple_of(PAGE));
/// For each window that can be restarted [`ATTEMPTS_BYTES`] of `u64`: a bit for each attempt at an entry, 1 if it was
/// discarded. Attempt n has bit n % 64 of word n / 64.
pub const ATTEMPTS: Region = Region::after(RANGES, RESTART_LIMIT as u64 * ATTEMPTS_BYTES);

/// The length of an area.
pub const AREA_BYTES: u64 = ATTEMPTS.offset + ATTEMPTS.bytes;
/// Where the first area begins in the file.
pub const FIRST_AREA: u64 = CHILDREN_OFFSET + CHILDREN_BYTES;
/// The length of the file.
pub const FILE_BYTES: u64 = FIRST_AREA + AREA_LIMIT as u64 * AREA_BYTES;

/// Nodes below this number are no frames but the roots of all stacks: [`Root`].
pub const FIRST_NODE: u32 = 16;

/// How a walk ended; the number of the root node below which the stack hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Root {
    /// The start of a program, thread or coroutine, or a return address of 0.
    Complete = 1,
    /// No unwind information, and no believable frame pointer.
    CutNoInformation = 2,
    /// Unwind information that could not be read or followed.
    CutBadInformation = 3,
    /// The walk did not advance or left the stack.
    CutBadStack = 4,
    /// More frames than could be followed.
    CutDepth = 5,
}

impl Root {
    /// The root of a number, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Complete,
            2 => Self::CutNoInformation,
            3 => Self::CutBadInformation,
            4 => Self::CutBadStack,
            5 => Self::CutDepth,
            _ => return None,
        })
    }
}

/// One frame of a stack, hanging below its caller's. Valid when `address` is not 0.
///
/// Two nodes may be alike (address and parent): the reader takes them for one. A node belongs to the modules that
/// were loaded when it was made: see [`Module::load_node`].
#[repr(C)]
#[derive(Debug)]
pub struct Node {
    /// The return address (AVMA) in the low 48 bits, and `NODE_*` flags. Stored last.
    pub address: AtomicU64,
    /// The caller's node, or the root's.
    pub parent: AtomicU32,
    /// The recorder's own: the child that was looked for last, or the row of a leaf.
    pub last_child: AtomicU32,
}

/// [`Node::address`]: the bits of the address.
pub const NODE_ADDRESS_MASK: u64 = (1 << 48) - 1;
/// [`Node::address`]: where the number of the window begins which is defined by a function and to which the stack belongs; 0:
/// none.
pub const NODE_WINDOW_SHIFT: u32 = 48;
/// [`Node::address`]: the bits of that. Windows with higher numbers cannot be defined by functions.
pub const NODE_WINDOW_MASK: u64 = 0x3ff << NODE_WINDOW_SHIFT;
/// [`Node::address`]: the frame is, or was called by, a function that resumes suspended async functions.
pub const NODE_RESUMED: u64 = 1 << 58;
/// [`Node::address`]: this frame was reached by its callee's frame pointer, since there was no unwind information.
pub const NODE_FRAME_POINTER: u64 = 1 << 63;
/// [`Node::address`]: the address is that of the next instruction to run (a signal interrupted the frame there), not a
/// return address. Look it up as it is, not one byte before it.
pub const NODE_INTERRUPTED: u64 = 1 << 62;
/// [`Node::address`]: this frame is an async caller, not on the stack, and the address is where that goes on: the start of a
/// function. Callers follow the stack's leaf, the nearest one first, behind a node of this kind that says how many frames
/// from the leaf on belong to the async function and what it called ([`ASYNC_FRAMES`]).
pub const NODE_ASYNC: u64 = 1 << 61;
/// The address of the first [`NODE_ASYNC`] node below a leaf: the number of frames, the async function's included.
pub const ASYNC_FRAMES: u64 = (1 << 15) - 1;
/// The address of the first [`NODE_ASYNC`] node below a leaf, beside the number: the callers were not found.
pub const ASYNC_UNKNOWN: u64 = 1 << 15;
/// The address of the last [`NODE_ASYNC`] node of a stack: there are more callers, which were not found.
pub const ASYNC_BROKEN: u64 = (1 << 16) - 1;
/// The address of the last [`NODE_ASYNC`] node of a stack, beside a node's number: the task that is at its end there was created by
/// that node's stack, of which the innermost frames are those of Swift's runtime.
pub const ASYNC_ORIGIN: u64 = 1 << 47;
/// [`Node::address`]: no frame, but the place where the middle of a very deep stack was left out.
pub const NODE_ELIDED: u64 = 1 << 60;
/// [`Node::address`]: this frame is a signal trampoline.
pub const NODE_SIGNAL: u64 = 1 << 59;

/// A loaded ELF object. Valid when `state` is not 0.
#[repr(C)]
#[derive(Debug)]
pub struct Module {
    /// 1 while loaded, 2 after it was unloaded; stored last.
    pub state: AtomicU32,
    /// Offset of the path in the string table. Empty for the vdso.
    pub path: AtomicU32,
    /// The path's length in bytes.
    pub path_len: AtomicU32,
    /// How many bytes of `build_id` are used; 0: it has none.
    pub build_id_len: AtomicU32,
    /// The ELF note's bytes.
    pub build_id: [AtomicU32; 8],
    /// AVMA = SVMA + bias.
    pub bias: AtomicU64,
    /// The lowest AVMA of its segments.
    pub start: AtomicU64,
    /// One past the highest.
    pub end: AtomicU64,
    /// The executable segments' lowest SVMA.
    pub text_svma: AtomicU64,
    /// One past their highest SVMA.
    pub text_svma_end: AtomicU64,
    /// File offset of the lowest executable segment.
    pub text_offset: AtomicU64,
    /// How many nodes there were when it was seen to be loaded: it owns only later ones.
    pub load_node: AtomicU32,
    /// How many nodes there were when it was unloaded: it owns only earlier ones. `u32::MAX` while loaded.
    pub unload_node: AtomicU32,
    /// Its inode, 0 when unknown.
    pub inode: AtomicU64,
    /// Its device number.
    pub device: AtomicU64,
    /// `NOTE_*` bits, which may come later than the rest.
    pub notes: AtomicU32,
    /// Reserved.
    pub padding: u32,
}

/// [`Module::notes`]: its calls of the allocation functions go past the recorder (it was loaded with `RTLD_DEEPBIND`).
pub const NOTE_BYPASS: u32 = 1;
/// [`Module::notes`]: it lies in a namespace of its own (`dlmopen`, `LD_AUDIT`), where it has another C library.
pub const NOTE_NAMESPACE: u32 = 1 << 1;
/// [`Module::notes`]: it is the first of its namespace, for which the others were loaded.
pub const NOTE_NAMESPACE_FIRST: u32 = 1 << 2;
/// [`Module::notes`]: it has Swift's concurrency runtime in it, and no symbols that tell where that resumes functions: their
/// async callers are unknown.
pub const NOTE_HIDDEN_RESUMERS: u32 = 1 << 3;

const _: () = {
    assert!(size_of::<FileHeader>() <= PAGE as usize);
    assert!(size_of::<AreaHeader>() <= PAGE as usize);
    assert!(size_of::<Window>() == 128);
    assert!(size_of::<Row>() == 64);
    assert!(size_of::<Counters>() == 128);
    assert!(size_of::<Node>() == 16);
    assert!(size_of::<Module>() == 128);
    assert!(size_of::<ThreadLife>() == 128);
    assert!(size_of::<ThreadTotal>() == 64);
    assert!(CHUNK_BYTES == PAGE);
    assert!(ROW_LIMIT <= 1 << BLOCK_ROW_BITS);
};
