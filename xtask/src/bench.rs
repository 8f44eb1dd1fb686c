//! What recording costs: programs run by themselves, under heaptally, under other recorders and under reference lines,
//! in turn.
//!
//! ```text
//! cargo xtask bench [--rounds N] [--only WORKLOAD,…] [--modes MODE,…] [--all] [--heaptally PATH] [--json FILE]
//! cargo xtask bench list
//! cargo xtask bench diff [--rounds N] [--heaptally PATH]
//! ```
//!
//! Without `--heaptally` the command is built first. Each round runs every workload once in every mode, beginning with
//! another mode each time, so that a slow spell of the machine meets all of them. The results are printed as Markdown
//! tables, medians with minimum and maximum; `--json` keeps every single run. `--only` takes names of workloads and
//! beginnings of them: `pairs-20` is all pairs at depth 20. `--all` runs every mode on every workload, which takes hours.

mod compare;
mod diff;
mod figure;
mod find;
mod machine;
mod measure;
mod mode;
mod program;
mod table;
mod wanted;
mod watch;
mod workload;

use crate::process;
use figure::{Figures, Series};
use mode::Mode;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use workload::Workspace;

const USAGE: &str = "usage: cargo xtask bench [list|diff] [--rounds N] [--only WORKLOAD,…] [--modes MODE,…] [--all] \
                     [--heaptally PATH] [--json FILE]";
/// The name that `--only` has for the commands which show many stacks.
const SHOWN: &str = "shown-65536";

#[derive(Debug)]
struct Options {
    rounds: usize,
    only: Option<Vec<String>>,
    modes: Vec<Mode>,
    is_all: bool,
    heaptally: Option<PathBuf>,
    json: Option<PathBuf>,
}

impl Options {
    /// Whether `--only` has the name or a beginning of it that ends before a hyphen.
    fn wants(&self, name: &str) -> bool {
        let fits = |word: &String| {
            name.strip_prefix(word.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.only.as_ref().is_none_or(|words| words.iter().any(fits))
    }
}

/// Runs the comparison and prints it.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let mut words = words.peekable();
    let command = words.next_if(|word| word == "diff" || word == "list");
    let options = parse(words)?;
    let workspace = Workspace::new()?;
    if command.as_deref() == Some("list") {
        return list(&workspace);
    }
    let heaptally = match &options.heaptally {
        Some(path) => path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?,
        None => process::build_heaptally()?,
    };
    match command {
        Some(_) => print!("{}", diff::run(&heaptally, options.rounds, &workspace)?),
        None => return compare(&options, &heaptally, &workspace),
    }
    Ok(())
}

/// Measures, prints the tables, and writes the JSON, if it is wanted.
fn compare(options: &Options, heaptally: &Path, workspace: &Workspace) -> Result<(), String> {
    let wants = |name: &str| options.wants(name);
    let (workloads, missing_programs) = program::all(workspace, &wants)?;
    if workloads.is_empty() && missing_programs.is_empty() && !wants(SHOWN) {
        return Err("--only fits no workload\n`cargo xtask bench list` has their names".to_owned());
    }
    let (tools, missing) = find::all(&options.modes, heaptally, workspace)?;
    let series = compare::all(&workloads, &tools, options.rounds, options.is_all, workspace)?;
    let figures = Figures(series);
    let shown = wants(SHOWN).then(|| diff::shown(heaptally, options.rounds, workspace)).transpose()?;
    let machine = machine::describe(heaptally);
    let lines = wanted::all(&figures, shown.as_ref());

    if let Some(path) = &options.json {
        let tool = |tool: &mode::Tool| json!({"mode": tool.mode.name(), "version": tool.version});
        let runs = |runs: &[measure::Run]| runs.iter().map(measure::Run::to_json).collect::<Vec<_>>();
        let whole: Value = json!({
            "schema": "heaptally-bench/2",
            "machine": machine,
            "rounds": options.rounds,
            "modes": tools.iter().map(tool).collect::<Vec<_>>(),
            "missing_modes": missing.iter().map(|(mode, reason)| (mode.name().to_owned(), json!(reason)))
                .collect::<serde_json::Map<_, _>>(),
            "missing_workloads": missing_programs.iter().map(|(name, reason)| (name.clone(), json!(reason)))
                .collect::<serde_json::Map<_, _>>(),
            "series": figures.0.iter().map(Series::to_json).collect::<Vec<_>>(),
            "shown": shown.as_ref().map(|shown| json!({"report": runs(&shown.report), "diff": runs(&shown.diff)})),
            "wanted": wanted::to_json(&lines),
        });
        fs::write(path, format!("{whole:#}\n")).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    print!("{}", table::machine(&machine));
    print!("{}", table::modes(&tools, &missing, &missing_programs));
    print!("{}", table::times(&figures));
    print!("{}", wanted::table(&lines));
    let is_ours = |series: &&Series| series.mode == Mode::Native || series.mode.is_heaptally();
    match figures.0.iter().filter(is_ours).find_map(|series| series.failure.as_ref()) {
        Some(failure) => Err(failure.clone()),
        None => Ok(()),
    }
}

/// The names that `--only` and `--modes` take.
fn list(workspace: &Workspace) -> Result<(), String> {
    println!("Modes:");
    for mode in Mode::ALL {
        println!("  {:24} {}", mode.name(), mode.note());
    }
    println!("Workloads:");
    for (name, what) in program::names(workspace) {
        println!("  {name:24} {what}");
    }
    println!("  {SHOWN:24} report and diff of 65,536 stacks");
    Ok(())
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        rounds: 7,
        only: None,
        modes: Mode::ALL.to_vec(),
        is_all: false,
        heaptally: None,
        json: None,
    };
    while let Some(word) = words.next() {
        if word == "--all" {
            options.is_all = true;
            continue;
        }
        let value = words.next().ok_or(USAGE)?;
        match word.as_str() {
            "--rounds" => options.rounds = value.parse().map_err(|_| USAGE)?,
            "--only" => options.only = Some(value.split(',').map(str::to_owned).collect()),
            "--modes" => options.modes = modes(&value)?,
            "--heaptally" => options.heaptally = Some(value.into()),
            "--json" => options.json = Some(value.into()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    if options.rounds == 0 { Err(USAGE.to_owned()) } else { Ok(options) }
}

/// The modes by their names, in the order of [`Mode::ALL`], with the native one, which all are compared with.
fn modes(names: &str) -> Result<Vec<Mode>, String> {
    let names: Vec<&str> = names.split(',').collect();
    if let Some(name) = names.iter().find(|name| Mode::ALL.iter().all(|mode| mode.name() != **name)) {
        return Err(format!("{name:?} is no mode\n`cargo xtask bench list` has their names"));
    }
    let is_wanted = |mode: &Mode| *mode == Mode::Native || names.contains(&mode.name());
    Ok(Mode::ALL.into_iter().filter(is_wanted).collect())
}
