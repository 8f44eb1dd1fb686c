//! What a profile holds: one recording, symbolised or not.
//!
//! Everything is in tables, and the tables refer to each other by index. Stacks are leaf first. Addresses are SVMAs
//! (as the file of the module states them), so that two runs of one build give equal profiles.
//!
//! ```text
//! row ── window ── image
//!  └──── stack ── location ── module
//!                    └─ lines (innermost inlined function first) ── function
//! ```
//!
//! **Repeats.** One profile may hold several runs of one program ([`Environment::repeats`], [`merge`](mod@crate::merge)).
//! Its counts, entries, iterations, thread totals and losses are then the sums over the runs, so that a number per
//! iteration is the average; beside them stand the values of each run, in the order of the runs:
//!
//! ```text
//! run                              1     2     3     sum
//! window  iterations_per_repeat  100   100   200     400   iterations
//! row     repeats: allocations   300   310   600    1210   counts.allocations
//! per iteration                    3   3.1     3   3.025   3 to 3.1: unstable
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// An index into [`Profile::images`].
pub type ImageId = usize;
/// An index into [`Profile::modules`].
pub type ModuleId = usize;
/// An index into [`Profile::functions`].
pub type FunctionId = usize;
/// An index into [`Profile::locations`].
pub type LocationId = usize;
/// An index into [`Profile::stacks`].
pub type StackId = usize;
/// An index into [`Profile::windows`].
pub type WindowId = usize;

/// One recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The programs that ran, in the order in which they attached.
    pub images: Vec<Image>,
    /// The ELF objects that were loaded.
    pub modules: Vec<Module>,
    /// The functions that locations name.
    pub functions: Vec<Function>,
    /// The places in code that stacks are made of.
    pub locations: Vec<Location>,
    /// The stacks, each once.
    pub stacks: Vec<Stack>,
    /// The windows, in the order in which they were first opened.
    pub windows: Vec<Window>,
    /// What was counted.
    pub rows: Vec<Row>,
    /// What stood behind async functions when they were resumed, which is no part of their stacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<Executor>,
    /// The threads that recorded.
    pub threads: Vec<ThreadLife>,
    /// What could not be recorded.
    pub losses: Losses,
    /// The program's child processes.
    #[serde(default, skip_serializing_if = "Children::is_empty")]
    pub children: Children,
    /// The machine and the tools.
    pub environment: Environment,
}

/// One execution of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// The file name of its program, without folders.
    pub label: String,
    /// The path of its program; bytes that are not UTF-8 are written as `\xNN`.
    pub path: String,
    /// The process id in its own namespace; 0 when the profile holds several runs.
    pub pid: u32,
    /// Whether it went on to another image by exec.
    pub replaced: bool,
    /// Whether it recorded (`false`: it attached and its `malloc` was not the recorder's).
    pub in_path: bool,
    /// The path of the module whose allocator was behind the recorder.
    pub allocator: String,
    /// What the user should know of it, each a sentence fragment (coverage is incomplete because …).
    pub warnings: Vec<String>,
    /// How many child processes ran it, where it is theirs; 0: the program's own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processes: u64,
}

/// How each warning of an image begins that tells of allocations which were not seen.
pub const INCOMPLETE: &str = "coverage is incomplete: ";

impl Image {
    /// The warnings that tell of allocations which were not seen.
    pub fn incomplete(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str).filter(|warning| warning.starts_with(INCOMPLETE))
    }

    /// Whether its allocations went past the recorder, and it did not go on to another image.
    pub fn is_by_passed(&self) -> bool {
        !self.in_path && !self.replaced
    }
}

/// A loaded ELF object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Module {
    /// Its path; bytes that are not UTF-8 are written as `\xNN`. `[vdso]` for the vdso.
    pub path: String,
    /// Its build-id in hex, empty where it has none.
    pub build_id: String,
    /// The lowest SVMA of its code.
    pub text_svma: u64,
    /// One past the highest SVMA of its code.
    pub text_svma_end: u64,
    /// The file offset of its code.
    pub text_offset: u64,
    /// What the symboliser could not find for it, as a reason for the user; `None` when all is well or unknown.
    pub symbol_problem: Option<String>,
}

/// A function as debug information or a symbol table names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Function {
    /// The name for people, demangled.
    pub name: String,
    /// The name as the file has it, mangled. Equal to `name` where there is nothing to demangle.
    pub system_name: String,
    /// The source file, empty when unknown.
    pub file: String,
    /// Whether other functions share its code (identical code folding).
    pub is_folded: bool,
}

/// How a frame came to be in the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// A return address.
    #[default]
    Return,
    /// A signal interrupted it: the address is that of the next instruction.
    Interrupted,
    /// A signal trampoline.
    Signal,
    /// Reached by a frame pointer, since its callee had no unwind information.
    FramePointer,
    /// An async caller, not on the stack.
    Async,
    /// No frame: here the middle of a very deep stack was left out.
    Elided,
    /// No frame: here a task of Swift's begins, and what follows is the stack that created it.
    TaskOrigin,
    /// The allocation function that the program called: no address, the line's function names it.
    EntryPoint,
}

/// A place in code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Location {
    /// The module, where the address lies in one.
    pub module: Option<ModuleId>,
    /// The SVMA in the module; the AVMA outside of modules.
    pub address: u64,
    /// How it came to be in the stack.
    pub kind: FrameKind,
    /// The logical frames there, innermost inlined one first. The last one is the function that holds the code.
    /// Empty where no name is known.
    pub lines: Vec<Line>,
}

/// One logical frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Line {
    /// The function.
    pub function: FunctionId,
    /// The line in its file, 0 when unknown.
    pub line: u32,
}

/// How completely a stack was walked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// To the start of the program, thread or coroutine, by unwind information alone.
    #[default]
    Complete,
    /// To the start, with at least one step by a frame pointer.
    FramePointer,
    /// It stopped elsewhere.
    Cut,
    /// To the async function that was resumed, some or all of whose callers were not found.
    AsyncUnknown,
}

/// A call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stack {
    /// Leaf first; the first is the allocation function ([`FrameKind::EntryPoint`]).
    pub locations: Vec<LocationId>,
    /// How completely it was walked.
    pub capture: Capture,
    /// Why it was cut, for people; empty when it was not.
    pub cut_reason: String,
}

/// The frames of an executor, from what resumed an async function to the thread's root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Executor {
    /// The stack of the async function.
    pub stack: StackId,
    /// The frames, the innermost one first.
    pub locations: Vec<LocationId>,
    /// How many allocations on that stack were made with this executor, in all windows.
    pub allocations: u64,
}

/// What a window counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// All threads.
    #[default]
    Process,
    /// The threads that opened it.
    Thread,
    /// From the start to the first window: `process`.
    Automatic,
    /// What runs beneath some functions; it counts as open as long as the program runs.
    Function,
    /// What the harness allocated in another window: see [`Window::of_harness`].
    Harness,
}

/// A named span of recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its name; bytes that are not UTF-8 are written as `\xNN`.
    pub name: String,
    /// The image that opened it.
    pub image: ImageId,
    /// What it counts.
    pub kind: WindowKind,
    /// How it is defined, where that is at functions: in any order, phrases as `begin a::b`, `end a::c`. Empty: the program opens
    /// it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub definition: BTreeSet<String>,
    /// How often it was entered, without entries that were discarded.
    pub entries: u64,
    /// Entries that a restart discarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub discarded_entries: u64,
    /// What per-iteration numbers are divided by.
    pub iterations: u64,
    /// Whether the program told the iterations (else they are the entries); of several runs, whether it did in any.
    pub iterations_told: bool,
    /// The iterations of each run, 0 where it did not open the window; empty when the profile holds one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations_per_repeat: Vec<u64>,
    /// It was still open when the program ended.
    pub unfinished: bool,
    /// Ends while another window was the innermost one.
    pub crossed_ends: u64,
    /// Ends while it was not open.
    pub stray_ends: u64,
    /// Of a thread's window: entries that the thread's end closed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ended_by_thread: u64,
    /// The highest live bytes, of several runs those of the highest one; `None` where blocks were not followed.
    pub peak_bytes: Option<u64>,
    /// How far that peak may be off, in bytes, either way. 0: exact.
    pub peak_uncertainty_bytes: u64,
    /// Allocations in it whose stack was not recorded.
    pub lost: u64,
}

/// What is counted for one stack in one window. All values are additive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Successful allocations.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Blocks given back while the window was open.
    pub freed: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Blocks given back later.
    pub freed_later: u64,
    /// Their bytes.
    pub freed_later_bytes: u64,
    /// Allocations that were a realloc of a live block.
    pub reallocs: u64,
    /// Those that stayed in place.
    pub reallocs_in_place: u64,
    /// Those that moved.
    pub reallocs_moved: u64,
    /// Blocks freed by the allocating thread before its next recorded allocation.
    pub temporary: u64,
    /// Their bytes.
    pub temporary_bytes: u64,
    /// Calls that returned no memory.
    pub failed: u64,
    /// Calls of `realloc(p, 0)` that freed p and returned null.
    pub reallocs_to_zero: u64,
    /// Allocations in entries that a restart discarded. None of the counts above has them, but for those of freed blocks: they
    /// exist, and are live until they are freed.
    #[serde(default)]
    pub discarded: u64,
    /// Their bytes.
    #[serde(default)]
    pub discarded_bytes: u64,
}

/// One stack in one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The window.
    pub window: WindowId,
    /// The stack.
    pub stack: StackId,
    /// What was counted.
    pub counts: Counts,
    /// In how many entries of the window it occurred; `None` when unknown.
    pub entries: Option<u64>,
    /// The first of them, from 1; of several runs the least.
    pub first_entry: Option<u64>,
    /// The latest of them; of several runs the greatest.
    pub last_entry: Option<u64>,
    /// What was counted in each run, 0 where it did not occur; empty when the profile holds one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<RepeatValue>,
}

/// What was counted for one stack in one window in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RepeatValue {
    /// Successful allocations.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
}

/// One thread, or several of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadLife {
    /// The image.
    pub image: ImageId,
    /// The kernel's id, 0 where lives are merged.
    pub tid: u32,
    /// How many lives these are.
    pub lives: u64,
    /// Its name at its first event.
    pub name: String,
    /// Its name at its end, or at the latest look.
    pub last_name: String,
    /// The location of the start function's frame, if known.
    pub start: Option<LocationId>,
    /// Exact totals, by window.
    pub totals: BTreeMap<WindowId, ThreadTotal>,
}

/// What one thread did in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadTotal {
    /// Successful allocations.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Blocks of that window which it freed.
    pub freed: u64,
    /// Their bytes.
    pub freed_bytes: u64,
}

/// What could not be recorded. All zero: nothing was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Allocations from inside the recorder (a signal handler that interrupted it).
    pub reentrant: u64,
    /// Allocations for whose row or counters there was no place.
    pub table_full: u64,
    /// Allocations in threads for which no memory could be had.
    pub thread: u64,
    /// Blocks whose free could not be followed.
    pub blocks: u64,
    /// Blocks whose address came back without a free that was seen.
    pub unseen_frees: u64,
    /// Windows that found no place.
    pub windows: u64,
    /// Window calls from inside the recorder: of a signal handler that interrupted it, or of a thread that such a handler took out
    /// of it by `longjmp`.
    pub window_calls: u64,
    /// Window calls whose window the process never began, or without a name.
    pub stray_ends: u64,
    /// Resumes by threads that were not paused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stray_resumes: u64,
    /// Restarts of windows that could not be noted: what they discard is counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
    /// Allocations of which a cut stack does not tell whether they were beneath the function of a window. They may be in
    /// another window, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unplaced: u64,
    /// Modules that found no place.
    pub modules: u64,
    /// Thread totals that are short.
    pub thread_totals: u64,
    /// Images that could not be attached.
    pub images: u64,
    /// Entries of the segment that were half-written or did not make sense.
    pub damaged: u64,
}

impl Losses {
    /// How many allocations were not recorded, as far as each was counted.
    pub fn allocations(&self) -> u64 {
        [self.reentrant, self.table_full, self.thread, self.unplaced].into_iter().fold(0, u64::saturating_add)
    }
}

/// The program's child processes, and theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Children {
    /// Whether they were to be recorded (`run --follow-children`).
    pub followed: bool,
    /// Which were seen and not recorded, in order of their programs.
    pub not_recorded: Vec<ChildProgram>,
    /// Those of them whose program is not known.
    pub unnamed: u64,
    /// How many were recorded.
    pub recorded: u64,
    /// How many of these ran on when the profile was written.
    pub still_running: u64,
}

/// Children that ran one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChildProgram {
    /// The program's file name, as it was started; bytes that are not UTF-8 are written as `\xNN`.
    pub program: String,
    /// How many.
    pub count: u64,
}

impl Children {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many were not recorded.
    pub fn not_recorded_total(&self) -> u64 {
        self.not_recorded.iter().fold(self.unnamed, |sum, program| sum.saturating_add(program.count))
    }
}

/// The machine and the tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// heaptally's version.
    pub recorder: String,
    /// `x86_64`.
    pub architecture: String,
    /// The processor's model, and how many of them the command could use; empty: unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// For instance `glibc 2.36`.
    pub libc: String,
    /// The program and its arguments, as they were given.
    pub command: Vec<String>,
    /// The compilers that debug information names, sorted.
    pub compilers: Vec<String>,
    /// Whether blocks were followed after their allocation.
    pub lifetimes: bool,
    /// Frees while a window was open of blocks that no row owns.
    pub frees_from_before: u64,
    /// How the program ended: its exit code, or 128 + the signal's number. Of several runs that of the first which did
    /// not end with 0.
    pub exit_code: Option<i32>,
    /// How many runs of the program the profile holds; 0 reads as 1. See [`runs`](Self::runs).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeats: u64,
    /// The file of another tool that the profile was read from; `None`: heaptally recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Whether behind the last async caller of a stack stands the stack that created its task, where that was found.
    #[serde(default, skip_serializing_if = "is_false")]
    pub task_origins: bool,
    /// What was not measured, beside what became of blocks ([`lifetimes`](Self::lifetimes)): the fields for it hold 0, or
    /// 1 entry and iteration, and mean nothing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown: BTreeSet<Metric>,
}

/// Where a profile comes from that heaptally did not record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What the file is, for instance `heaptrack recording`.
    pub format: String,
    /// How the allocations were chosen of which each stands for several, in words; empty: all were counted.
    pub sampling: String,
    /// Only blocks were counted that were live when the file was written.
    pub live_only: bool,
}

/// Something that a recording may not have measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Windows: their entries and iterations, and in which entries a row occurred.
    Windows,
    /// Bytes of allocations.
    Bytes,
    /// Which allocations were a realloc.
    Reallocs,
    /// Which blocks were freed before their thread's next allocation.
    Temporary,
    /// Calls that returned no memory.
    Failed,
    /// How completely stacks were walked.
    Captures,
    /// Threads.
    Threads,
}

impl Environment {
    /// Whether something was measured.
    pub fn knows(&self, metric: Metric) -> bool {
        !self.unknown.contains(&metric)
    }
}

/// So that files of one run need not say so.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
