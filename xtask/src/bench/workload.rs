//! What is measured, and where it is built.

use crate::process::succeed;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The word of a command that stands for the number of events.
pub(crate) const EVENTS: &str = "EVENTS";

/// Which modes a workload is run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peers {
    /// All that can run it.
    Every,
    /// Natively and under heaptally, under all others with `--all`.
    WhenAsked,
    /// Natively and under heaptally: no other tool has windows, or it says nothing about others.
    None,
}

/// How many allocations a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allocations {
    /// As many as events; one where their number cannot be chosen.
    Events,
    /// The witness of the integration tests counts them.
    Counted,
}

/// A program with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// As `--only` takes it.
    pub(crate) name: String,
    pub(crate) what: String,
    /// The program's words, one of them [`EVENTS`] where their number can be chosen.
    pub(crate) command: Vec<String>,
    /// The same program with another allocator in it, for dhat-rs.
    pub(crate) dhat_command: Option<Vec<String>>,
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    /// For memray: how many words of the command are the interpreter's.
    pub(crate) python: Option<usize>,
    pub(crate) events: Option<u64>,
    pub(crate) allocations: Allocations,
    pub(crate) peers: Peers,
    pub(crate) has_frame_pointers: bool,
    /// The only window that heaptally is to record.
    pub(crate) window: Option<&'static str>,
    /// How often it is run to make one figure of: for very short programs.
    pub(crate) repeats: usize,
    /// Whether the commands that show the results are measured, too.
    pub(crate) has_report: bool,
}

impl Workload {
    /// With what most have: no window, every peer, one run, allocations as they are counted.
    pub(crate) fn new(name: &str, what: &str, command: &[&str], events: Option<u64>) -> Self {
        Workload {
            name: name.to_owned(),
            what: what.to_owned(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            dhat_command: None,
            environment: Vec::new(),
            python: None,
            events,
            allocations: Allocations::Counted,
            peers: Peers::Every,
            has_frame_pointers: false,
            window: None,
            repeats: 1,
            has_report: false,
        }
    }

    /// `command` with so many events.
    pub(crate) fn with_events(command: &[String], events: Option<u64>) -> Vec<String> {
        let events = events.map_or(String::new(), |events| events.to_string());
        command.iter().map(|word| if word == EVENTS { events.clone() } else { word.clone() }).collect()
    }
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

    pub(crate) fn path(&self, name: &str) -> PathBuf {
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

/// The first line that `program` prints with `arguments`, if it can.
pub(crate) fn first_line(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = succeed(Command::new(program).args(arguments)).ok()?;
    output.lines().next().map(str::to_owned)
}
