//! The rounds: every workload in every mode, in turn.

use super::figure::Series;
use super::measure::{self, Run};
use super::mode::{Mode, Tool};
use super::workload::{Allocations, Workload, Workspace};
use crate::counter::Counter;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// A slow tool runs a program that cannot be made shorter so many times at most.
const SLOW_ROUNDS: usize = 3;
/// From this divisor on a tool is slow.
const SLOW_DIVISOR: u64 = 10;

/// One unmeasured run of each, then `rounds` measured ones, each beginning with another mode.
pub(crate) fn all(
    workloads: &[Workload],
    tools: &[Tool],
    rounds: usize,
    is_all: bool,
    workspace: &Workspace,
) -> Result<Vec<Series>, String> {
    let mut figures = Vec::new();
    for (number, workload) in workloads.iter().enumerate() {
        let tools: Vec<&Tool> = tools.iter().filter(|tool| tool.mode.applies(workload, is_all)).collect();
        let mut counted = HashMap::new();
        let mut series = tools
            .iter()
            .map(|tool| begin(workload, tool.mode, &mut counted, workspace))
            .collect::<Result<Vec<_>, _>>()?;
        for round in 0..=rounds {
            eprintln!(
                "bench: {} ({} of {}), round {round} of {rounds}",
                workload.name,
                number + 1,
                workloads.len()
            );
            for at in 0..tools.len() {
                let at = (at + round) % tools.len();
                let (tool, one) = (tools[at], &mut series[at]);
                let is_slow = workload.events.is_none() && tool.mode.divisor() >= SLOW_DIVISOR;
                if one.failure.is_some() || (is_slow && round > SLOW_ROUNDS) {
                    continue;
                }
                // The others' reports are measured once: some take minutes.
                let has_report = workload.has_report && (tool.mode.is_heaptally() || round == 1);
                match run_once(tool, workload, one.events, has_report, workspace) {
                    Ok(run) if round > 0 => one.runs.push(run),
                    Ok(_) => {}
                    Err(error) => {
                        eprintln!("bench: {}: {error}", tool.mode.name());
                        one.failure = Some(error.lines().next().unwrap_or_default().to_owned());
                    }
                }
            }
        }
        figures.append(&mut series);
    }
    Ok(figures)
}

/// Nothing measured yet. `counted` has the allocations of each number of events that a run of this workload had.
fn begin(
    workload: &Workload,
    mode: Mode,
    counted: &mut HashMap<Option<u64>, u64>,
    workspace: &Workspace,
) -> Result<Series, String> {
    let events = workload.events.map(|events| (events / mode.divisor()).max(1));
    let allocations = match (workload.allocations, events, counted.get(&events)) {
        (Allocations::Events, events, _) => events.unwrap_or(1),
        (_, _, Some(known)) => *known,
        _ => {
            let command = Workload::with_events(&workload.command, events);
            let counter = Counter::build(&workspace.empty_folder("counter")?)?;
            let calls = counter.allocations_with(&command, &workload.environment)?;
            counted.insert(events, calls);
            calls
        }
    };
    Ok(Series {
        workload: workload.name.clone(),
        what: workload.what.clone(),
        mode,
        events,
        allocations,
        runs: Vec::new(),
        failure: None,
    })
}

/// The run, or of several the one whose time is in the middle.
fn run_once(
    tool: &Tool,
    workload: &Workload,
    events: Option<u64>,
    has_report: bool,
    workspace: &Workspace,
) -> Result<Run, String> {
    let mut runs = (0..workload.repeats)
        .map(|_| run_alone(tool, workload, events, has_report, workspace))
        .collect::<Result<Vec<_>, _>>()?;
    runs.sort_by_key(|run| run.wall_ns);
    Ok(runs.swap_remove(runs.len() / 2))
}

fn run_alone(
    tool: &Tool,
    workload: &Workload,
    events: Option<u64>,
    has_report: bool,
    workspace: &Workspace,
) -> Result<Run, String> {
    let output = workspace.empty_folder("output")?;
    let command = match (tool.mode, &workload.dhat_command) {
        (Mode::DhatRs, Some(command)) => command,
        _ => &workload.command,
    };
    let command = Workload::with_events(command, events);
    let invocation = tool.invocation(workload, command.clone(), &output);
    let mut run = measure::run_in(&invocation)?;
    if invocation.followed.is_none() {
        // The recorder is in the program: what it does at the end is over when the program is.
        run.program_ns = Some(run.wall_ns);
    }
    run.written_bytes = size(&output)?;
    if tool.mode.is_heaptally() && run.written_bytes == 0 {
        return Err(format!("{:?} wrote nothing", invocation.words));
    }
    let report = tool.report(&command[0], &output).filter(|_| has_report);
    run.report_ns = report.map(|words| measure::run(&words)).transpose()?.map(|report| report.wall_ns);
    Ok(run)
}

fn size(folder: &Path) -> Result<u64, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.flatten().filter_map(|entry| Some(entry.metadata().ok()?.len())).sum())
}
