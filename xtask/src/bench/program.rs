//! The list of workloads. A program is built when the first workload that is asked for needs it.

use super::find::python;
use super::workload::{Allocations, EVENTS, Peers, Workload, Workspace};
use crate::process::{cargo, in_workspace, succeed};
use std::env;
use std::path::PathBuf;
use std::process::Command;

const DEPTHS: [u32; 4] = [5, 20, 60, 200];
const STACKS: [u64; 4] = [1, 100, 10_000, 100_000];
/// The depth and the number of stacks at which every peer is run, each with all of the other.
const CORE_DEPTH: u32 = 20;
const CORE_STACKS: u64 = 100;
/// Pairs of one run on few stacks: long enough that a start of some milliseconds does not show.
const PAIRS: u64 = 2_000_000;
/// On many: a stack comes back 40 times at least, so that the first time does not count for much.
const PAIRS_ON_MANY: u64 = 4_000_000;
const QUERY: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) \
    INSERT INTO t SELECT i, printf('row %d', i), i / 7.0 FROM n; CREATE INDEX u ON t(name); \
    SELECT count(*), sum(length(x)) FROM (SELECT upper(a.name) || '/' || b.name AS x FROM t a JOIN t b \
    ON b.id = 50000 - a.id ORDER BY x); UPDATE t SET name = name || '!' WHERE id % 3 = 0;";

/// What the list says of a program that this machine does not have.
pub(crate) type Missing = (String, String);

/// All workloads whose name `is_wanted`, built, and those that this machine lacks a program for.
pub(crate) fn all(
    workspace: &Workspace,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<(Vec<Workload>, Vec<Missing>), String> {
    let list = List::fill(workspace, is_wanted);
    build(workspace, &list.workloads)?;
    Ok((list.workloads, list.missing))
}

/// The names of those that this machine has all for, and what they are.
pub(crate) fn names(workspace: &Workspace) -> Vec<(String, String)> {
    let list = List::fill(workspace, &|_| true);
    list.workloads.into_iter().map(|workload| (workload.name, workload.what)).collect()
}

struct List<'a> {
    workspace: &'a Workspace,
    is_wanted: &'a dyn Fn(&str) -> bool,
    workloads: Vec<Workload>,
    missing: Vec<Missing>,
}

impl<'a> List<'a> {
    fn fill(workspace: &'a Workspace, is_wanted: &'a dyn Fn(&str) -> bool) -> Self {
        let mut list = List { workspace, is_wanted, workloads: Vec::new(), missing: Vec::new() };
        list.pairs();
        list.windows();
        list.others();
        list.programs();
        list
    }

    fn push(&mut self, workload: Workload) {
        if (self.is_wanted)(&workload.name) {
            self.workloads.push(workload);
        }
    }

    fn built(&self, name: &str) -> String {
        self.workspace.path(name).display().to_string()
    }

    /// `leaves.c` with everything that it can be asked for.
    fn pairs(&mut self) {
        for (has_frame_pointers, ending) in [(false, ""), (true, "-fp")] {
            let program = self.built(if has_frame_pointers { "leaves-fp" } else { "leaves" });
            for (threads, count) in [("1", ""), ("2", "-2t")] {
                for (depth, stacks) in DEPTHS.iter().flat_map(|depth| STACKS.map(|stacks| (*depth, stacks))) {
                    let pairs = if stacks > CORE_STACKS { PAIRS_ON_MANY } else { PAIRS };
                    let words = [&program, EVENTS, &depth.to_string(), &stacks.to_string(), threads];
                    let what = format!(
                        "pairs, depth {depth}, {stacks} stacks{}{}",
                        if has_frame_pointers { ", frame pointers" } else { "" },
                        if threads == "1" { "" } else { ", two threads" },
                    );
                    let name = format!("pairs-{depth}-{stacks}{ending}{count}");
                    let is_core = threads == "1" && (depth == CORE_DEPTH || stacks == CORE_STACKS);
                    self.push(Workload {
                        allocations: Allocations::Events,
                        peers: if is_core { Peers::Every } else { Peers::WhenAsked },
                        has_frame_pointers,
                        ..Workload::new(&name, &what, &words, Some(pairs))
                    });
                }
            }
        }
        let program = self.built("pairs");
        let words = [&program, EVENTS, "20", "1000"];
        self.push(Workload {
            allocations: Allocations::Events,
            ..Workload::new(
                "whole-20-1000",
                "pairs, depth 20, 1,000 stacks in runs of 200",
                &words,
                Some(PAIRS),
            )
        });
    }

    fn windows(&mut self) {
        let program = self.built("leaves");
        let kinds = [
            ("windows-1", "a window opened and closed, 1 stack known", "1", "windows", 1_000_000),
            (
                "windows-10000",
                "a window opened and closed, 10,000 stacks known",
                "10000",
                "windows",
                1_000_000,
            ),
            ("before", "pairs before the first window", "100", "before", PAIRS),
            ("after", "pairs after a window with 10,000 live blocks", "100", "after", PAIRS),
        ];
        for (name, what, stacks, when, events) in kinds {
            let words = [&program, EVENTS, "20", stacks, "1", when];
            self.push(Workload {
                allocations: Allocations::Events,
                peers: Peers::None,
                window: Some("measured"),
                ..Workload::new(name, what, &words, Some(events))
            });
        }
        for (name, pairs) in [("memory-1m", 1_000_000), ("memory-10m", 10_000_000)] {
            let what = format!("memory of {pairs} pairs, depth 20, 10,000 stacks");
            self.push(Workload {
                allocations: Allocations::Events,
                peers: Peers::None,
                ..Workload::new(name, &what, &[&program, EVENTS, "20", "10000", "1"], Some(pairs))
            });
        }
    }

    /// Other programs of ours.
    fn others(&mut self) {
        let program = self.built("live");
        self.push(Workload {
            allocations: Allocations::Events,
            ..Workload::new(
                "live",
                "pairs among a million live blocks, random order",
                &[&program, EVENTS, "1000000"],
                Some(2_000_000),
            )
        });
        let program = rust(false).display().to_string();
        let dhat = [rust(true).display().to_string(), EVENTS.to_owned()];
        self.push(Workload {
            dhat_command: Some(dhat.to_vec()),
            ..Workload::new("rust-json", "Rust, serde_json", &[&program, EVENTS], Some(1_000))
        });
        let program = self.built("mix");
        self.push(Workload::new(
            "cpp-mix",
            "C++, maps, strings and vectors",
            &[&program, EVENTS],
            Some(4_000),
        ));
        let program = self.built("sites");
        self.push(Workload {
            has_report: true,
            ..Workload::new("sites", "25 MB of debug information, 10,000 addresses", &[&program], None)
        });
        let program = self.built("start");
        self.push(Workload {
            allocations: Allocations::Events,
            peers: Peers::None,
            ..Workload::new("start", "from exec to main", &[&program, EVENTS], Some(20))
        });
    }

    /// Programs of the system.
    fn programs(&mut self) {
        let path = |name: &str| in_workspace("bench/programs").join(name).display().to_string();
        let which = |name: &str| {
            let folders = env::var_os("PATH").unwrap_or_default();
            env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
        };
        if let Some(python) = self.system("python-json", "python3", python()) {
            self.push(Workload {
                python: Some(1),
                environment: vec![("PYTHONMALLOC", "malloc")],
                ..Workload::new(
                    "python-json",
                    "python3, JSON, PYTHONMALLOC=malloc",
                    &[&python, &path("rows.py"), EVENTS],
                    Some(300),
                )
            });
        }
        if let Some(perl) = self.system("perl", "perl", which("perl")) {
            let words = [&perl, &path("text.pl"), EVENTS];
            self.push(Workload::new("perl", "perl, words of a text", &words, Some(400)));
        }
        if let Some(jq) = self.system("jq", "jq", which("jq")) {
            let words = [&jq, "-n", "--argjson", "rounds", EVENTS, "-f", &path("rows.jq")];
            self.push(Workload::new("jq", "jq, groups of objects", &words, Some(20_000)));
        }
        if let Some(sqlite) = self.system("sqlite3", "sqlite3", which("sqlite3")) {
            let table = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, value REAL);";
            let words = [&sqlite, ":memory:", &format!("{table} {QUERY}")];
            self.push(Workload::new("sqlite3", "sqlite3, a join in memory", &words, None));
        }
        if let Some(node) = self.system("node", "node", which("node")) {
            self.push(Workload::new("node", "node, JSON", &[&node, &path("rows.js"), EVENTS], Some(500)));
        }
        if let Some(compiler) = self.system("cc1plus", "g++", compiler()) {
            let source = self.built("headers.ii");
            let words =
                [&compiler, "-quiet", "-fpreprocessed", "-std=c++17", "-O0", "-o", "/dev/null", &source];
            self.push(Workload {
                has_report: true,
                ..Workload::new("cc1plus", "the C++ compiler proper, eight headers, -O0", &words, None)
            });
        }
        if let Some(program) = self.system("true", "true", which("true")) {
            self.push(Workload {
                repeats: 20,
                allocations: Allocations::Events,
                ..Workload::new("true", "true, start to end", &[&program], None)
            });
        }
    }

    /// The path as text, or a note that `program` is missing.
    fn system(&mut self, workload: &str, program: &str, path: Option<PathBuf>) -> Option<String> {
        if path.is_none() && (self.is_wanted)(workload) {
            self.missing.push((workload.to_owned(), format!("{program} is not in PATH")));
        }
        path.map(|path| path.display().to_string())
    }
}

fn compiler() -> Option<PathBuf> {
    let said = succeed(Command::new("g++").arg("-print-prog-name=cc1plus")).ok()?;
    Some(PathBuf::from(said.trim())).filter(|path| path.is_file())
}

/// Where cargo builds the Rust program: beside the workspace, so that it is built once.
fn rust_target(is_dhat: bool) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| in_workspace("target"), PathBuf::from);
    target.join(if is_dhat { "bench-json-dhat" } else { "bench-json" })
}

fn rust(is_dhat: bool) -> PathBuf {
    rust_target(is_dhat).join("release/bench-json")
}

/// Builds what the workloads run.
fn build(workspace: &Workspace, workloads: &[Workload]) -> Result<(), String> {
    let runs = |program: &str| {
        let path = workspace.path(program).display().to_string();
        workloads.iter().any(|workload| workload.command.contains(&path))
    };
    let c = ["-std=gnu11", "-O2", "-pthread"];
    let frame_pointers = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
    let programs: [(&str, &str, Vec<&str>); 7] = [
        ("leaves", "leaves.c", [&c[..], &["-fomit-frame-pointer"]].concat()),
        ("leaves-fp", "leaves.c", [&c[..], &frame_pointers].concat()),
        ("pairs", "pairs.c", [&c[..], &["-fomit-frame-pointer"]].concat()),
        ("live", "live.c", c.to_vec()),
        ("start", "start.c", c.to_vec()),
        ("mix", "mix.cpp", vec!["-std=c++17", "-O2"]),
        ("sites", "sites.cpp", vec!["-std=c++17", "-O0", "-g"]),
    ];
    for (name, source, options) in programs {
        if runs(name) {
            eprintln!("bench: building {name}");
            let source = in_workspace("bench/programs").join(source);
            let compiler = if source.extension().is_some_and(|end| end == "cpp") { "g++" } else { "gcc" };
            succeed(Command::new(compiler).args(options).arg(source).arg("-o").arg(workspace.path(name)))?;
        }
    }
    if runs("headers.ii") {
        let source = in_workspace("bench/programs/headers.cpp");
        let mut command = Command::new("g++");
        succeed(command.args(["-std=c++17", "-E", "-o"]).arg(workspace.path("headers.ii")).arg(source))?;
    }
    if workloads.iter().any(|workload| workload.dhat_command.is_some()) {
        eprintln!("bench: building bench-json");
        let manifest = in_workspace("bench/programs/json/Cargo.toml");
        for is_dhat in [false, true] {
            let mut command = Command::new(cargo());
            command.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]).arg(&manifest);
            command.arg("--target-dir").arg(rust_target(is_dhat));
            succeed(command.args(["--features", "dhat"].iter().filter(|_| is_dhat)))?;
        }
    }
    Ok(())
}
