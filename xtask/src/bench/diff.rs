//! What comparing profiles of very many stacks takes.
//!
//! ```text
//! cargo xtask bench diff [--rounds N] [--heaptally PATH]
//! ```

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::figure::Spread;
use super::measure::{self, Run};
use super::workload::Workspace;
use crate::process::{in_workspace, succeed};

/// Two to the power of so many stacks.
const DEPTHS: [u32; 2] = [16, 19];
/// What the change has otherwise, and how it is built.
const CHANGES: [(&str, &str); 3] = [
    ("nothing", "SAME"),
    ("another name for a function in all of them", "RENAMED"),
    ("one more caller of all of them", "CALLED"),
];

/// Records base and changes, compares them and returns a table.
pub(crate) fn run(heaptally: &Path, rounds: usize, workspace: &Workspace) -> Result<String, String> {
    let folder = workspace.empty_folder("stacks")?;
    let path = |name: &str| folder.join(name).display().to_string();
    let mut text = String::from(
        "| stacks on each side | what differs | whole command, ms | its CPU time, ms | peak RSS, MiB |\n|--:|---|--:|--:|--:|\n",
    );
    for (_, macro_name) in CHANGES {
        build(macro_name, &path(macro_name))?;
    }
    let heaptally = heaptally.display().to_string();
    for depth in DEPTHS {
        let profile = |name: &str| path(&format!("{name}.{depth}.pb.gz"));
        for (_, name) in CHANGES {
            eprintln!("bench: recording 2^{depth} stacks, {name}");
            let words =
                [&heaptally, "run", "-q", "-o", &profile(name), "--", &path(name), &depth.to_string()];
            measure::run(&words.map(str::to_owned))?;
        }
        for (what, name) in CHANGES {
            let words = [&heaptally, "diff", &profile("SAME"), &profile(name)].map(ToString::to_string);
            let runs: Vec<Run> = (0..rounds).map(|_| measure::run(&words)).collect::<Result<_, _>>()?;
            let show = |spread: Option<Spread>| spread.map_or(String::from("–"), |spread| spread.show(0));
            let times = show(Spread::of(runs.iter().map(|run| run.wall_ns as f64 / 1e6)));
            let cpu = show(Spread::of(runs.iter().map(|run| run.cpu_ns as f64 / 1e6)));
            let memory = runs.iter().map(|run| run.peak_rss_bytes).max().unwrap_or(0) as f64 / 1048576.0;
            // NOTE: a String takes any text.
            let _ = writeln!(text, "| {} | {what} | {times} | {cpu} | {memory:.0} |", 1_u64 << depth);
        }
    }
    Ok(text)
}

/// Builds one of [`CHANGES`].
fn build(macro_name: &str, program: &str) -> Result<(), String> {
    let mut command = Command::new("gcc");
    command.args(["-O1", "-g", "-fno-optimize-sibling-calls", &format!("-D{macro_name}"), "-o", program]);
    succeed(command.arg(in_workspace("bench/programs/stacks.c"))).map(|_| ())
}

/// What a report of 65,536 stacks takes, and a comparison with as many in which a function has another name.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) report: Vec<Run>,
    pub(crate) diff: Vec<Run>,
}

impl Shown {
    /// Median and spread of one of them, in milliseconds.
    pub(crate) fn ms(runs: &[Run]) -> Option<Spread> {
        Spread::of(runs.iter().map(|run| run.wall_ns as f64 / 1e6))
    }
}

/// Records both sides once, and shows them so many times.
pub(crate) fn shown(heaptally: &Path, rounds: usize, workspace: &Workspace) -> Result<Shown, String> {
    let folder = workspace.empty_folder("stacks")?;
    let path = |name: &str| folder.join(name).display().to_string();
    let heaptally = heaptally.display().to_string();
    for name in ["SAME", "RENAMED"] {
        build(name, &path(name))?;
        let profile = path(&format!("{name}.pb.gz"));
        let words = [&heaptally, "run", "-q", "-o", &profile, "--", &path(name), "16"];
        measure::run(&words.map(str::to_owned))?;
    }
    let report = [&heaptally, "report", &path("SAME.pb.gz")].map(str::to_owned);
    let diff = [&heaptally, "diff", &path("SAME.pb.gz"), &path("RENAMED.pb.gz")].map(str::to_owned);
    let (mut shown, mut round) = (Shown { report: Vec::new(), diff: Vec::new() }, 0);
    while round < rounds {
        eprintln!("bench: report and diff of 65,536 stacks, round {} of {rounds}", round + 1);
        shown.report.push(measure::run(&report)?);
        shown.diff.push(measure::run(&diff)?);
        round += 1;
    }
    Ok(shown)
}
