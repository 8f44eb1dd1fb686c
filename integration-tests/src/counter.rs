//! The counting library of `counter/counter.c`: an independent witness behind the recorder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::command::heaptally;
use crate::program::compile;
use crate::run::{Outcome, Run};
use crate::scratch::Scratch;

/// The functions, in the order of the library's page.
const FUNCTIONS: [&str; 9] = [
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "free",
];
const MAGIC: u64 = 0x0072_6574_6e75_6f63;
const PARENT_AT: usize = 2 + FUNCTIONS.len() + 1;
const PROGRAM_AT: usize = 8 * (PARENT_AT + 1);

/// The calls of each function. `free` of null is not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls(pub BTreeMap<&'static str, u64>);

impl Calls {
    /// The calls of all functions but `names`.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        Self(
            self.0
                .iter()
                .filter(|(name, _)| !names.contains(name))
                .map(|(name, count)| (*name, *count))
                .collect(),
        )
    }

    /// Adds the calls of `other`.
    pub fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    /// The calls of allocation functions, of all but `free`.
    pub fn allocations(&self) -> u64 {
        self.0.iter().filter(|(name, _)| **name != "free").map(|(_, count)| count).sum()
    }
}

/// The library, built.
#[derive(Debug)]
pub struct Counter {
    scratch: Scratch,
    library: PathBuf,
    runs: AtomicU32,
}

impl Counter {
    /// Builds it.
    ///
    /// # Panics
    /// When gcc fails.
    pub fn build() -> Self {
        let scratch = Scratch::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("counter/counter.c");
        let flags = ["-O2", "-fPIC", "-shared", "-ftls-model=initial-exec", "-fno-builtin"];
        let library = compile("gcc", &["-std=gnu11"], &source, &scratch, "libcounter.so", &flags);
        Self { scratch, library, runs: AtomicU32::new(0) }
    }

    /// Runs `run` with the counter preloaded (behind the recorder, where there is one), and says what each process
    /// called.
    ///
    /// # Panics
    /// When the run does not start.
    pub fn count(&self, run: Run) -> (Outcome, Vec<ImageCalls>) {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let out = self.scratch.path(format!("run{number}"));
        fs::create_dir_all(&out).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
        // Another user may run it.
        for (folder, mode) in [(self.scratch.folder(), 0o755), (&out, 0o777)] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode))
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        }
        let is_recorded = run.is_recorded();
        let running = run
            .environment("LD_PRELOAD", self.library.as_os_str())
            .environment("COUNTER_OUT", out.join("calls").as_os_str())
            .start();
        let first = u64::from(running.command_id());
        let outcome = running.wait();
        let command = fs::canonicalize(heaptally()).unwrap_or_else(|_| heaptally().to_owned());
        let mut images = pages(&out);
        if is_recorded {
            // The command itself, and what it was before it was the command.
            images.retain(|image| image.pid != first && image.program != command);
        }
        for image in &mut images {
            image.is_main = if is_recorded { image.parent == first } else { image.pid == first };
        }
        (outcome, images)
    }

    /// As [`Counter::count`], and what the only process of `program` called.
    ///
    /// # Panics
    /// When no such process left counts, or several did.
    pub fn witness(&self, run: Run, program: &Path) -> (Outcome, Calls) {
        let (outcome, images) = self.count(run);
        let program = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        let mut found: Vec<Calls> =
            images.into_iter().filter(|image| image.program == program).map(|image| image.calls).collect();
        assert!(found.len() == 1, "{} processes of {} left counts", found.len(), program.display());
        (outcome, found.remove(0))
    }
}

/// What an image of a process called.
#[derive(Clone, Debug)]
pub struct ImageCalls {
    /// The process.
    pub pid: u64,
    /// Its parent.
    parent: u64,
    /// Whether it is of the process that was started, and of none of its children.
    pub is_main: bool,
    /// The program.
    pub program: PathBuf,
    /// Its calls.
    pub calls: Calls,
}

/// The images of all processes that wrote to `folder`.
fn pages(folder: &Path) -> Vec<ImageCalls> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read(entry.path()).ok())
        .filter(|page| word(page, 0) == MAGIC)
        .map(|page| {
            let counts =
                FUNCTIONS.iter().enumerate().map(|(at, name)| (*name, word(&page, 2 + at))).collect();
            let text = page.get(PROGRAM_AT..).unwrap_or_default();
            let program: Vec<u8> = text.iter().copied().take_while(|byte| *byte != 0).collect();
            ImageCalls {
                pid: word(&page, 1),
                parent: word(&page, PARENT_AT),
                is_main: false,
                program: PathBuf::from(String::from_utf8_lossy(&program).into_owned()),
                calls: Calls(counts),
            }
        })
        .collect()
}

fn word(page: &[u8], at: usize) -> u64 {
    page.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
