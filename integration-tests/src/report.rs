//! What `heaptally report --json` says, as far as the tests look.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// A report.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// The programs that ran.
    pub images: Vec<Image>,
    /// The objects that hold code.
    modules: Vec<Module>,
    /// The windows.
    pub windows: Vec<Window>,
    /// The frames that rows refer to.
    frames: Vec<Frame>,
    /// Its threads.
    threads: Vec<Thread>,
    /// What could not be recorded.
    pub losses: BTreeMap<String, u64>,
    /// The program's child processes.
    pub children: Children,
    /// Sums that differ between the rows and the threads of a window.
    pub sum_mismatches: Vec<Mismatch>,
}

/// A sum that differs between the rows and the threads of a window.
#[derive(Clone, Debug, Deserialize)]
pub struct Mismatch {
    /// The window's name.
    pub window: String,
    /// What was summed.
    pub sum: String,
    /// Over its rows.
    pub rows: u64,
    /// Over its threads.
    pub threads: u64,
}

/// A thread's life, or several that are merged.
#[derive(Clone, Debug, Deserialize)]
struct Thread {
    name: String,
    lives: u64,
    /// The index of the start function's frame.
    start: Option<usize>,
    totals: Vec<ThreadTotal>,
}

#[derive(Clone, Debug, Deserialize)]
struct ThreadTotal {
    window: String,
    allocations: u64,
    bytes: u64,
    freed: u64,
}

/// What all threads of one name that began in one function did in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSum {
    /// The entries of the report that were summed.
    pub entries: u64,
    /// How many threads that were.
    pub lives: u64,
    /// Their allocations.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The window's blocks that they freed.
    pub freed: u64,
}

/// A program that ran.
#[derive(Clone, Debug, Deserialize)]
pub struct Image {
    /// Its file name.
    pub label: String,
    /// Whether it went on to another by exec.
    pub replaced: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// How many children ran it, where it is theirs.
    pub processes: u64,
}

/// A program's child processes.
#[derive(Clone, Debug, Deserialize)]
pub struct Children {
    /// Whether they were to be recorded.
    pub followed: bool,
    /// Those that were not recorded.
    pub not_recorded: Vec<ChildProgram>,
    /// How many were recorded.
    pub recorded: u64,
    /// How many ran on.
    pub still_running: u64,
}

/// Children of one program.
#[derive(Clone, Debug, Deserialize)]
pub struct ChildProgram {
    /// Its file name.
    pub program: String,
    /// How many.
    pub count: u64,
}

impl Children {
    /// Those that were not recorded, as text.
    pub fn text(&self) -> String {
        let texts = self.not_recorded.iter().map(|child| format!("{} ×{}", child.program, child.count));
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// A window.
#[derive(Clone, Debug, Deserialize)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// The file name of the program that opened it.
    pub image_label: String,
    /// How often it was entered.
    pub entries: u64,
    /// Entries that a restart discarded.
    pub discarded_entries: u64,
    /// What per-iteration numbers are divided by.
    pub iterations: u64,
    /// Whether it was open when the program ended.
    pub unfinished: bool,
    /// Ends while it was not open.
    pub stray_ends: u64,
    /// Entries that their thread's end closed.
    pub ended_by_thread: u64,
    /// The highest live bytes.
    pub peak_bytes: Option<u64>,
    /// How far that may be off.
    pub peak_uncertainty_bytes: u64,
    /// Allocations whose stack was not recorded.
    pub lost: u64,
    /// The sums over its rows, as the report states them.
    pub counts: Counts,
    /// Its stacks.
    pub rows: Vec<Row>,
}

/// A stack in a window.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// What was counted.
    pub counts: Counts,
    /// In how many entries of its window it occurred.
    pub entries: Option<u64>,
    /// `complete`, `frame_pointer` or `cut`.
    pub capture: String,
    /// Why it was cut.
    pub cut_reason: Option<String>,
    /// Leaf first; the first is the allocation function.
    #[serde(skip)]
    pub frames: Vec<Frame>,
    /// The same, by index.
    stack: Vec<usize>,
}

/// An object that holds code.
#[derive(Clone, Debug, Deserialize)]
struct Module {
    path: String,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Counts {
    /// Successful allocations.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// Blocks given back while the window was open.
    pub freed: u64,
    /// Blocks given back later.
    pub freed_later: u64,
    /// Blocks that their thread gave back before its next allocation.
    pub temporary: u64,
    /// Allocations that were a realloc.
    pub reallocs: u64,
    /// Calls that returned no memory.
    pub failed: u64,
    /// Calls of `realloc(p, 0)` that freed and returned null.
    pub reallocs_to_zero: u64,
    /// Allocations in entries that a restart discarded.
    pub discarded: u64,
}

impl Counts {
    /// Calls of allocation functions, as the cases and the counting library count them.
    pub fn calls(&self) -> u64 {
        self.allocations + self.failed + self.reallocs_to_zero
    }
}

/// A frame.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Frame {
    /// Its function; empty when unknown.
    #[serde(deserialize_with = "text_or_null")]
    pub function: String,
    /// Its name in the file; empty when unknown.
    #[serde(default, deserialize_with = "text_or_null")]
    pub system_name: String,
    /// The module that holds its code; empty when unknown.
    #[serde(skip)]
    pub module: String,
    #[serde(rename = "module")]
    module_index: Option<usize>,
    /// Whether it is inlined.
    pub inlined: bool,
    /// How it came to be in the stack.
    pub kind: String,
    /// The address as the module's file states it.
    pub address: u64,
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Frame {
    /// Its name: of Swift's functions the one in the file, which no demangler changes.
    pub fn stable_name(&self) -> &str {
        if self.system_name.starts_with("$s") { &self.system_name } else { &self.function }
    }

    /// Whether it is a signal's trampoline.
    pub fn is_signal(&self) -> bool {
        self.kind == "signal" || self.function == "<signal>" || self.function.ends_with("restore_rt")
    }

    #[cfg(test)]
    pub(crate) fn test(function: &str, inlined: bool) -> Self {
        Self { function: function.to_owned(), inlined, ..Self::default() }
    }
}

impl Report {
    /// Reads the JSON document.
    ///
    /// # Errors
    /// When it is another kind of document.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let mut report = Self::parse_without_frames(bytes)?;
        for frame in &mut report.frames {
            let module = frame.module_index.and_then(|at| report.modules.get(at));
            frame.module = module.map(|module| module.path.clone()).unwrap_or_default();
        }
        for row in report.windows.iter_mut().flat_map(|window| &mut window.rows) {
            row.frames = row.stack.iter().map(|&at| report.frames[at].clone()).collect();
        }
        Ok(report)
    }

    /// As [`parse`](Self::parse), but leaves the frames of rows out: for very many stacks.
    ///
    /// # Errors
    /// When it is another kind of document.
    pub fn parse_without_frames(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The window `name`.
    ///
    /// # Panics
    /// When the report has none, or several.
    pub fn window(&self, name: &str) -> &Window {
        let found: Vec<&Window> = self.windows.iter().filter(|window| window.name == name).collect();
        let names: Vec<&str> = self.windows.iter().map(|window| window.name.as_str()).collect();
        assert!(found.len() == 1, "{} windows {name:?} in {names:?}", found.len());
        found[0]
    }

    /// Whether there is a window `name`.
    pub fn has_window(&self, name: &str) -> bool {
        self.windows.iter().any(|window| window.name == name)
    }

    /// The loss `name`, 0 where the report does not say it.
    pub fn loss(&self, name: &str) -> u64 {
        self.losses.get(name).copied().unwrap_or(0)
    }

    /// The losses that are not 0 and the sums that do not agree, as text; empty when all is well.
    pub fn losses_text(&self) -> String {
        let differences = self.sum_mismatches.iter().map(|mismatch| format!("{mismatch:?}"));
        self.lost().chain(differences).collect::<Vec<_>>().join(", ")
    }

    /// The losses that are not 0, as text.
    pub fn lost(&self) -> impl Iterator<Item = String> {
        self.losses.iter().filter(|(_, count)| **count > 0).map(|(name, count)| format!("{name} {count}"))
    }

    /// What the threads called `name` that began in `start` did in `window`. An empty `start`: those of which it is not
    /// known.
    pub fn threads(&self, name: &str, start: &str, window: &str) -> ThreadSum {
        let began = |thread: &Thread| {
            let frame = thread.start.and_then(|at| self.frames.get(at));
            crate::name::Name::new(frame.map_or("", |frame| &frame.function))
        };
        let start = crate::name::Name::new(start);
        let mut sum = ThreadSum::default();
        for thread in self.threads.iter().filter(|thread| thread.name == name && began(thread).same(&start)) {
            sum.entries += 1;
            sum.lives += thread.lives;
            for total in thread.totals.iter().filter(|total| total.window == window) {
                sum.allocations += total.allocations;
                sum.bytes += total.bytes;
                sum.freed += total.freed;
            }
        }
        sum
    }

    /// What the user should know, of all images.
    pub fn warnings(&self) -> Vec<&str> {
        self.images.iter().flat_map(|image| &image.warnings).map(String::as_str).collect()
    }
}

impl Window {
    /// The sums over the rows that hold a frame of the function `name`.
    pub fn counts_with(&self, name: &str) -> Counts {
        let mut sum = Counts::default();
        for row in self.rows_with(name) {
            sum.allocations += row.counts.allocations;
            sum.bytes += row.counts.bytes;
            sum.freed += row.counts.freed;
            sum.freed_later += row.counts.freed_later;
            sum.temporary += row.counts.temporary;
            sum.reallocs += row.counts.reallocs;
            sum.failed += row.counts.failed;
            sum.reallocs_to_zero += row.counts.reallocs_to_zero;
        }
        sum
    }

    /// The calls in all rows.
    pub fn calls(&self) -> u64 {
        self.rows.iter().map(|row| row.counts.calls()).sum()
    }

    /// The rows that hold a frame of the function `name`.
    pub fn rows_with<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.has(name))
    }

    /// The calls in the rows that hold a frame of the function `name`.
    pub fn calls_with(&self, name: &str) -> u64 {
        self.rows_with(name).map(|row| row.counts.calls()).sum()
    }

    /// The calls in rows of complete stacks.
    pub fn complete_calls(&self) -> u64 {
        self.rows.iter().filter(|row| row.is_complete()).map(|row| row.counts.calls()).sum()
    }

    /// All rows as text, for messages.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.rows.iter().map(Row::text).collect();
        lines.sort();
        format!("window {:?}, {} calls\n{}", self.name, self.calls(), lines.join("\n"))
    }
}

impl Row {
    /// Whether a frame is of the function `name`.
    pub fn has(&self, name: &str) -> bool {
        let name = crate::name::Name::new(name);
        self.frames.iter().any(|frame| crate::name::Name::new(&frame.function).same(&name))
    }

    /// Whether the walk came to the start of the program, a thread or a coroutine by unwind information alone.
    pub fn is_complete(&self) -> bool {
        self.capture == "complete"
    }

    /// The stack, root first, with its calls.
    pub fn text(&self) -> String {
        const SHOWN: usize = 40;
        let name = |frame: &Frame| {
            let address =
                format!("{}+{:#x}", frame.module.rsplit('/').next().unwrap_or_default(), frame.address);
            let function = match (frame.kind.as_str(), frame.function.as_str()) {
                ("signal", _) => "<signal>",
                ("elided", _) => "<elided>",
                (_, "") => &address,
                (_, function) => function,
            };
            let short: String = function.chars().take(80).collect();
            if frame.inlined { format!("+{short}") } else { short }
        };
        let names: Vec<String> = self.frames.iter().rev().map(name).collect();
        let text = if names.len() > SHOWN {
            let (head, tail) = (&names[..SHOWN / 2], &names[names.len() - SHOWN / 2..]);
            format!("{} -> … {} frames … -> {}", head.join(" -> "), names.len() - SHOWN, tail.join(" -> "))
        } else {
            names.join(" -> ")
        };
        format!("  {}* [{}] {text}", self.counts.calls(), self.capture)
    }
}
