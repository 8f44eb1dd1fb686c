//! The programs that are measured, built from sources of this workspace.

use super::{cargo, in_workspace};
use serde_json::Value;
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

/// Builds the command and returns its path.
pub(crate) fn build_heaptally() -> Result<PathBuf, String> {
    let arguments =
        ["build", "--release", "--package", "heaptally-cli", "--message-format", "json-render-diagnostics"];
    let output = succeed(Command::new(cargo()).current_dir(in_workspace(".")).args(arguments))?;
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = messages
        .filter(|message| message["target"]["name"] == "heaptally")
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    executables.next().ok_or_else(|| "cargo built no executable named heaptally".to_owned())
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
    let allocations = count(workspace, &words)?;
    Ok(Workload { name: "cc1plus -O0", words, allocations })
}

/// Calls of the allocating functions, by the witness of the integration tests.
fn count(workspace: &Workspace, words: &[String]) -> Result<u64, String> {
    /// Of the nine counts, `free` is the last.
    const ALLOCATING: usize = 8;
    let source = in_workspace("integration-tests/counter/counter.c");
    let library = workspace.path("counter.so");
    let options = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-ftls-model=initial-exec", "-fno-builtin", "-o"];
    succeed(Command::new("gcc").args(options).arg(&library).arg(source))?;
    let folder = workspace.empty_folder("counts")?;
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    succeed(command.args(arguments).env("LD_PRELOAD", library).env("COUNTER_OUT", folder.join("calls")))?;
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let pages = entries.flatten().filter_map(|entry| fs::read(entry.path()).ok());
    // A page: the magic number, the process, the counts.
    let total = pages.map(|page| (2..2 + ALLOCATING).map(|at| word(&page, at)).sum::<u64>()).sum();
    if total == 0 { Err(format!("{program} allocates nothing")) } else { Ok(total) }
}

fn word(page: &[u8], at: usize) -> u64 {
    let bytes = page.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

/// What `command` says, if it succeeds.
fn succeed(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed ({})\n{words}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first line that `program` prints with `arguments`, if it can.
pub(crate) fn first_line(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = succeed(Command::new(program).args(arguments)).ok()?;
    output.lines().next().map(str::to_owned)
}
