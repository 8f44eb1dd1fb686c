//! The programs that are measured, built from sources of this workspace.

use crate::counter::Counter;
use crate::process::{in_workspace, succeed};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pairs of one run: long enough that a start of some milliseconds does not show.
const PAIRS: u64 = 2_000_000;

/// A program with its arguments.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) words: Vec<String>,
    /// Calls that allocate in one run.
    pub(crate) allocations: u64,
}

/// The folder of built programs and of what the tools write; removed when dropped.
#[derive(Debug)]
pub(crate) struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    pub(crate) fn new() -> Result<Self, String> {
        let folder = env::temp_dir().join(format!("heaptally-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Workspace { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A folder of that name with nothing in it.
    pub(crate) fn empty_folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.path(name);
        let failed = |error| format!("{}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(failed)?;
        }
        fs::create_dir(&folder).map_err(failed)?;
        Ok(folder)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What stays lies in the temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// All workloads, built.
pub(crate) fn all(workspace: &Workspace) -> Result<Vec<Workload>, String> {
    let source = in_workspace("bench/programs/pairs.c");
    let program = workspace.path("pairs");
    succeed(Command::new("gcc").args(["-O2", "-fomit-frame-pointer", "-o"]).arg(program).arg(source))?;
    let pairs = |name, depth, paths| Workload {
        name,
        words: pairs(workspace, PAIRS, depth, paths),
        allocations: PAIRS,
    };
    Ok(vec![
        pairs("pairs, depth 5", 5, 1),
        pairs("pairs, depth 20", 20, 1),
        pairs("pairs, depth 60", 60, 1),
        pairs("pairs, depth 20, 1,000 stacks", 20, 1_000),
        compiler(workspace)?,
    ])
}

/// `bench/programs/pairs.c` with its arguments; it must have been built.
pub(crate) fn pairs(workspace: &Workspace, pairs: u64, depth: u32, paths: u64) -> Vec<String> {
    let program = workspace.path("pairs").display().to_string();
    vec![program, pairs.to_string(), depth.to_string(), paths.to_string()]
}

/// The C++ compiler proper on a preprocessed file: few events a stack, many stacks.
fn compiler(workspace: &Workspace) -> Result<Workload, String> {
    let preprocessed = workspace.path("headers.ii");
    let source = in_workspace("bench/programs/headers.cpp");
    succeed(Command::new("g++").args(["-std=c++17", "-E", "-o"]).arg(&preprocessed).arg(source))?;
    let compiler = succeed(Command::new("g++").arg("-print-prog-name=cc1plus"))?.trim().to_owned();
    let options = ["-quiet", "-fpreprocessed", "-std=c++17", "-O0", "-o", "/dev/null"].map(str::to_owned);
    let mut words = vec![compiler];
    words.extend(options);
    words.push(preprocessed.display().to_string());
    let counts = workspace.empty_folder("counter")?;
    let allocations = Counter::build(&counts)?.allocations(&words)?;
    Ok(Workload { name: "cc1plus -O0", words, allocations })
}

/// The first line that `program` prints with `arguments`, if it can.
pub(crate) fn first_line(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = succeed(Command::new(program).args(arguments)).ok()?;
    output.lines().next().map(str::to_owned)
}
