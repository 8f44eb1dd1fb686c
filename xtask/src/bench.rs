//! What recording costs: programs run by themselves, under heaptally and under heaptrack, in turn.
//!
//! ```text
//! cargo xtask bench [--rounds N] [--heaptally PATH] [--json FILE]
//! cargo xtask bench diff [--rounds N] [--heaptally PATH]
//! ```
//!
//! Without `--heaptally` the command is built first. Each round runs every workload once in every mode, beginning with
//! another mode each time, so that a slow spell of the machine meets all of them. The results are printed as Markdown
//! tables, medians with minimum and maximum; `--json` keeps every single run.

mod diff;
mod machine;
mod measure;
mod table;
mod workload;

use crate::process;
use measure::Run;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use workload::{Workload, Workspace};

const USAGE: &str = "usage: cargo xtask bench [diff] [--rounds N] [--heaptally PATH] [--json FILE]";
/// Pairs of the two runs whose memory is compared.
const MEMORY_PAIRS: [u64; 2] = [1_000_000, 10_000_000];

/// How a workload is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Native,
    Heaptally,
    HeaptallyNoLifetimes,
    Heaptrack,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Native => "native",
            Mode::Heaptally => "heaptally",
            Mode::HeaptallyNoLifetimes => "heaptally --no-lifetimes",
            Mode::Heaptrack => "heaptrack --raw",
        }
    }

    /// The words before the program's own; the tool writes below `output`.
    fn prefix(self, heaptally: &Path, output: &Path) -> Vec<String> {
        let words: &[&str] = match self {
            Mode::Native => &[],
            Mode::Heaptally => &["HEAPTALLY", "run", "-o", "PROFILE", "--"],
            Mode::HeaptallyNoLifetimes => &["HEAPTALLY", "run", "-o", "PROFILE", "--no-lifetimes", "--"],
            Mode::Heaptrack => &["heaptrack", "--raw", "-o", "LOG"],
        };
        let fill = |word: &&str| match *word {
            "HEAPTALLY" => heaptally.display().to_string(),
            "PROFILE" => output.join("profile.pb.gz").display().to_string(),
            "LOG" => output.join("heaptrack").display().to_string(),
            other => other.to_owned(),
        };
        words.iter().map(fill).collect()
    }
}

/// All runs of one workload in one mode.
#[derive(Debug)]
struct Series {
    workload: &'static str,
    /// Allocations of one run, for the added time of each.
    allocations: u64,
    mode: Mode,
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Options {
    rounds: usize,
    heaptally: Option<PathBuf>,
    json: Option<PathBuf>,
}

/// Runs the comparison and prints it.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let mut words = words.peekable();
    let is_diff = words.next_if(|word| word == "diff").is_some();
    let options = parse(words)?;
    let heaptally = match options.heaptally {
        Some(path) => path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?,
        None => process::build_heaptally()?,
    };
    let workspace = Workspace::new()?;
    if is_diff {
        print!("{}", diff::run(&heaptally, options.rounds, &workspace)?);
        return Ok(());
    }
    let workloads = workload::all(&workspace)?;
    let mut modes = vec![Mode::Native, Mode::Heaptally, Mode::HeaptallyNoLifetimes];
    if machine::has("heaptrack") {
        modes.push(Mode::Heaptrack);
    }
    let series = compare(&workloads, &modes, options.rounds, &heaptally, &workspace)?;
    let memory = memory(&heaptally, &workspace)?;
    let machine = machine::describe(&heaptally);

    print!("{}", table::machine(&machine));
    print!("{}", table::times(&series));
    print!("{}", table::memory(&memory));
    if let Some(path) = options.json {
        let whole = json!({
            "schema": "heaptally-bench/1",
            "machine": machine,
            "series": series.iter().map(Series::to_json).collect::<Vec<_>>(),
            "memory": memory.iter().map(|(pairs, run)| json!({"pairs": pairs, "run": run.to_json()}))
                .collect::<Vec<_>>(),
        });
        fs::write(&path, format!("{whole:#}\n")).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { rounds: 7, heaptally: None, json: None };
    while let Some(word) = words.next() {
        let value = words.next().ok_or(USAGE)?;
        match word.as_str() {
            "--rounds" => options.rounds = value.parse().map_err(|_| USAGE)?,
            "--heaptally" => options.heaptally = Some(value.into()),
            "--json" => options.json = Some(value.into()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    if options.rounds == 0 { Err(USAGE.to_owned()) } else { Ok(options) }
}

/// One unmeasured run of each, then `rounds` measured ones.
fn compare(
    workloads: &[Workload],
    modes: &[Mode],
    rounds: usize,
    heaptally: &Path,
    workspace: &Workspace,
) -> Result<Vec<Series>, String> {
    let mut all = Vec::new();
    for workload in workloads {
        let empty = |mode: &Mode| Series {
            workload: workload.name,
            allocations: workload.allocations,
            mode: *mode,
            runs: Vec::new(),
        };
        let mut series: Vec<Series> = modes.iter().map(empty).collect();
        for round in 0..=rounds {
            eprintln!("bench: {}, round {round} of {rounds}", workload.name);
            for at in 0..modes.len() {
                let at = (at + round) % modes.len();
                let run = run_once(modes[at], &workload.words, heaptally, workspace)?;
                if round > 0 {
                    series[at].runs.push(run);
                }
            }
        }
        all.append(&mut series);
    }
    Ok(all)
}

fn run_once(mode: Mode, program: &[String], heaptally: &Path, workspace: &Workspace) -> Result<Run, String> {
    let output = workspace.empty_folder("output")?;
    let mut words = mode.prefix(heaptally, &output);
    words.extend_from_slice(program);
    let run = measure::run(&words)?;
    let bytes = fs::read_dir(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let written_bytes = bytes.flatten().filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
    if mode != Mode::Native && written_bytes == 0 {
        return Err(format!("{words:?} wrote nothing"));
    }
    Ok(Run { written_bytes, ..run })
}

/// Peak memory of recording few and many events on the same thousand stacks.
fn memory(heaptally: &Path, workspace: &Workspace) -> Result<Vec<(u64, Run)>, String> {
    let one = |pairs: u64| {
        let program = workload::pairs(workspace, pairs, 20, 1_000);
        Ok((pairs, run_once(Mode::Heaptally, &program, heaptally, workspace)?))
    };
    MEMORY_PAIRS.into_iter().map(one).collect()
}

impl Series {
    fn to_json(&self) -> Value {
        json!({
            "workload": self.workload,
            "allocations": self.allocations,
            "mode": self.mode.name(),
            "runs": self.runs.iter().map(Run::to_json).collect::<Vec<_>>(),
        })
    }
}
