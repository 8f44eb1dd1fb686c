//! The ways to run a program: by itself, under heaptally, under other recorders, under the reference lines.

use super::measure::Invocation;
use super::workload::{Peers, Workload};
use std::path::Path;

/// How a workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Native,
    Heaptally,
    HeaptallyNoLifetimes,
    HeaptrackRaw,
    Heaptrack,
    Dhat,
    Gperftools,
    Jemalloc,
    DhatRs,
    Memray,
    Memusage,
    Empty,
    Count,
    Frames,
}

impl Mode {
    pub(crate) const ALL: [Mode; 14] = [
        Mode::Native,
        Mode::Heaptally,
        Mode::HeaptallyNoLifetimes,
        Mode::HeaptrackRaw,
        Mode::Heaptrack,
        Mode::Dhat,
        Mode::Gperftools,
        Mode::Jemalloc,
        Mode::DhatRs,
        Mode::Memray,
        Mode::Memusage,
        Mode::Empty,
        Mode::Count,
        Mode::Frames,
    ];

    /// As tables show it and `--modes` takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Native => "native",
            Mode::Heaptally => "heaptally",
            Mode::HeaptallyNoLifetimes => "heaptally-no-lifetimes",
            Mode::HeaptrackRaw => "heaptrack-raw",
            Mode::Heaptrack => "heaptrack",
            Mode::Dhat => "dhat",
            Mode::Gperftools => "gperftools",
            Mode::Jemalloc => "jemalloc",
            Mode::DhatRs => "dhat-rs",
            Mode::Memray => "memray",
            Mode::Memusage => "memusage",
            Mode::Empty => "empty",
            Mode::Count => "count",
            Mode::Frames => "frames",
        }
    }

    /// What has to be known to compare it.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Mode::Native => "the program by itself",
            Mode::Heaptally => "heaptally run",
            Mode::HeaptallyNoLifetimes => "heaptally run --no-lifetimes",
            Mode::HeaptrackRaw => "heaptrack --raw: its recorder; the log is interpreted later",
            Mode::Heaptrack => "heaptrack: with its interpreter, which runs at the same time",
            Mode::Dhat => "valgrind --tool=dhat --num-callers=500",
            Mode::Gperftools => {
                "gperftools' HEAPPROFILE, each allocation, HEAP_PROFILE_ALLOCATION_INTERVAL=0 (no files before the end); \
                 its stacks have 32 frames at most; its own allocator"
            }
            Mode::Jemalloc => "jemalloc with prof:true,lg_prof_sample:0,prof_accum:true; its own allocator",
            Mode::DhatRs => "the allocator of the crate dhat, whole stacks; one Rust program",
            Mode::Memray => "memray run --native; one Python program",
            Mode::Memusage => "libmemusage.so: counts sizes, knows no stacks",
            Mode::Empty => "reference line: a preloaded library that passes malloc, free, calloc, realloc on",
            Mode::Count => "reference line: counts calls and bytes",
            Mode::Frames => {
                "reference line: a plain frame-pointer walk into one hash table, no lifetimes; programs with frame pointers"
            }
        }
    }

    /// Of how many events one is made: what takes microseconds an event is run with fewer.
    pub(crate) fn divisor(self) -> u64 {
        match self {
            Mode::Heaptrack | Mode::HeaptrackRaw => 4,
            Mode::Dhat | Mode::Gperftools | Mode::Jemalloc | Mode::DhatRs => 20,
            Mode::Memray => 4,
            _ => 1,
        }
    }

    /// Whether it is a kind of heaptally.
    pub(crate) fn is_heaptally(self) -> bool {
        matches!(self, Mode::Heaptally | Mode::HeaptallyNoLifetimes)
    }

    /// Whether it can run the workload, and is to.
    pub(crate) fn applies(self, workload: &Workload, is_all: bool) -> bool {
        let is_possible = match self {
            Mode::DhatRs => workload.dhat_command.is_some(),
            Mode::Memray => workload.python.is_some(),
            Mode::Frames => workload.has_frame_pointers,
            _ => true,
        };
        let is_wanted = match workload.peers {
            Peers::None => matches!(self, Mode::Native | Mode::Heaptally),
            Peers::WhenAsked if !is_all => matches!(self, Mode::Native | Mode::Heaptally),
            Peers::WhenAsked | Peers::Every => true,
        };
        is_possible && is_wanted
    }
}

/// A mode that this machine has.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) mode: Mode,
    pub(crate) version: String,
    /// The command or the library.
    pub(crate) path: String,
}

impl Tool {
    /// Runs `command`, the workload's own, so that the tool writes into `output`.
    pub(crate) fn invocation(&self, workload: &Workload, command: Vec<String>, output: &Path) -> Invocation {
        let file = |name: &str| output.join(name).display().to_string();
        let prefix: Vec<String> = match self.mode {
            Mode::Heaptally | Mode::HeaptallyNoLifetimes => {
                let mut words = [&self.path, "run", "-o", &file("profile.pb.gz")].map(str::to_owned).to_vec();
                if self.mode == Mode::HeaptallyNoLifetimes {
                    words.push("--no-lifetimes".to_owned());
                }
                if let Some(window) = workload.window {
                    words.extend(["--window", window].map(str::to_owned));
                }
                words.push("--".to_owned());
                words
            }
            Mode::HeaptrackRaw => [&self.path, "--raw", "-o", &file("heaptrack")].map(str::to_owned).to_vec(),
            Mode::Heaptrack => [&self.path, "-o", &file("heaptrack")].map(str::to_owned).to_vec(),
            Mode::Dhat => {
                let out = format!("--dhat-out-file={}", file("dhat"));
                [&self.path, "--tool=dhat", "--num-callers=500", &out].map(str::to_owned).to_vec()
            }
            _ => Vec::new(),
        };
        let preload = ("LD_PRELOAD", self.path.clone());
        let variables: Vec<(&str, String)> = match self.mode {
            Mode::Gperftools => vec![
                preload,
                ("HEAPPROFILE", file("heap")),
                ("HEAP_PROFILE_ALLOCATION_INTERVAL", "0".to_owned()),
                ("HEAP_PROFILE_INUSE_INTERVAL", "0".to_owned()),
            ],
            Mode::Jemalloc => vec![
                preload,
                (
                    "MALLOC_CONF",
                    format!(
                        "prof:true,lg_prof_sample:0,prof_accum:true,prof_final:true,prof_prefix:{}",
                        file("je")
                    ),
                ),
            ],
            Mode::Memusage => vec![preload, ("MEMUSAGE_OUTPUT", file("memusage"))],
            Mode::Empty => vec![preload],
            Mode::Count | Mode::Frames => vec![preload, ("REFERENCE_OUT", file("counts"))],
            Mode::DhatRs => vec![("DHAT_OUT", file("dhat"))],
            _ => Vec::new(),
        };
        let is_process_of_its_own =
            self.mode.is_heaptally() || matches!(self.mode, Mode::Heaptrack | Mode::HeaptrackRaw);
        let followed = command.first().filter(|_| is_process_of_its_own).map(Into::into);
        let mut words = prefix;
        match (self.mode, workload.python) {
            (Mode::Memray, Some(script)) => {
                let python = command.iter().take(script);
                words.extend(python.cloned());
                words.extend(
                    ["-m", "memray", "run", "--native", "-q", "-o", &file("memray")].map(str::to_owned),
                );
                words.extend(command.into_iter().skip(script));
            }
            _ => words.extend(command),
        }
        let own = workload.environment.iter().map(|(name, value)| (name.to_string(), value.into()));
        let tools = variables.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
        Invocation { words, environment: own.chain(tools).collect(), followed }
    }

    /// The command that shows what was written into `output`, if the tool has one.
    pub(crate) fn report(&self, program: &str, output: &Path) -> Option<Vec<String>> {
        let first = |start: &str| {
            let files = output.read_dir().ok()?.flatten();
            let mut files = files.filter(|file| file.file_name().to_string_lossy().starts_with(start));
            files.next().map(|file| file.path().display().to_string())
        };
        let words: &[&str] = match self.mode {
            Mode::Heaptally | Mode::HeaptallyNoLifetimes => &[&self.path, "report", &first("profile")?],
            Mode::Heaptrack => &["heaptrack_print", "-f", &first("heaptrack")?],
            Mode::Gperftools => &["google-pprof", "--text", program, &first("heap")?],
            Mode::Jemalloc => &["jeprof", "--text", program, &first("je")?],
            _ => return None,
        };
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }
}
