//! The counting library of `counter/counter.c`: an independent witness behind the recorder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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
const PROGRAM_AT: usize = 8 * (2 + FUNCTIONS.len() + 1);

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
        Self { scratch, library }
    }

    /// Runs `run` with the counter preloaded (behind the recorder, where there is one), and says what the process of
    /// `program` called. `name` keeps the files of several runs apart.
    ///
    /// # Panics
    /// When no such process left counts, or several did.
    pub fn witness(&self, run: Run, name: &str, program: &Path) -> (Outcome, Calls) {
        let out = self.scratch.path(name);
        fs::create_dir_all(&out).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
        let outcome = run
            .environment("LD_PRELOAD", self.library.as_os_str())
            .environment("COUNTER_OUT", out.join("calls").as_os_str())
            .run();
        let program = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        let mut found: Vec<Calls> =
            pages(&out).into_iter().filter(|(path, _)| *path == program).map(|(_, calls)| calls).collect();
        assert!(found.len() == 1, "{} processes of {} left counts", found.len(), program.display());
        (outcome, found.remove(0))
    }
}

/// The programs and calls of all processes that wrote to `folder`.
fn pages(folder: &Path) -> Vec<(PathBuf, Calls)> {
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
            (PathBuf::from(String::from_utf8_lossy(&program).into_owned()), Calls(counts))
        })
        .collect()
}

fn word(page: &[u8], at: usize) -> u64 {
    page.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
