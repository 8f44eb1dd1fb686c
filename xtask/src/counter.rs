//! The witness of the integration tests: a library that counts calls and knows nothing of the recorder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{in_workspace, succeed};

/// Of the nine counts, `free` is the last.
const ALLOCATING: usize = 8;

/// The library, built.
#[derive(Debug)]
pub(crate) struct Counter {
    library: PathBuf,
    folder: PathBuf,
}

impl Counter {
    /// Builds it into `folder`, which exists.
    pub(crate) fn build(folder: &Path) -> Result<Self, String> {
        let source = in_workspace("integration-tests/counter/counter.c");
        let library = folder.join("counter.so");
        let options =
            ["-std=gnu11", "-O2", "-fPIC", "-shared", "-ftls-model=initial-exec", "-fno-builtin", "-o"];
        succeed(Command::new("gcc").args(options).arg(&library).arg(source))?;
        Ok(Self { library, folder: folder.join("counts") })
    }

    /// Calls of the allocating functions while `words` run.
    pub(crate) fn allocations(&self, words: &[String]) -> Result<u64, String> {
        self.allocations_with(words, &[])
    }

    /// The same with more variables in the environment.
    pub(crate) fn allocations_with(
        &self,
        words: &[String],
        environment: &[(&str, &str)],
    ) -> Result<u64, String> {
        let failed = |error| format!("{}: {error}", self.folder.display());
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).map_err(failed)?;
        }
        fs::create_dir(&self.folder).map_err(failed)?;
        let (program, arguments) = words.split_first().ok_or("no command")?;
        let mut command = Command::new(program);
        let out = self.folder.join("calls");
        command.envs(environment.iter().copied());
        succeed(command.args(arguments).env("LD_PRELOAD", &self.library).env("COUNTER_OUT", out))?;
        let pages = fs::read_dir(&self.folder).map_err(failed)?;
        let pages = pages.flatten().filter_map(|entry| fs::read(entry.path()).ok());
        // A page: the magic number, the process, the counts.
        let total = pages.map(|page| (2..2 + ALLOCATING).map(|at| word(&page, at)).sum::<u64>()).sum();
        if total == 0 { Err(format!("{program} allocates nothing")) } else { Ok(total) }
    }
}

fn word(page: &[u8], at: usize) -> u64 {
    let bytes = page.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}
