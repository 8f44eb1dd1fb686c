//! What came of windows at functions, for the report and for the exit code.

use std::collections::{BTreeMap, BTreeSet};

use heaptally_profile::model::INCOMPLETE;
use heaptally_segment::layout::{
    PLAN_APPLIED, PLAN_DAMAGED, PLAN_DIFFERS, PLAN_NO_ROOM, PLAN_PROTECTED, PLAN_THREADS,
};
use heaptally_segment::read::{Snapshot, Window};

use super::definition::Role;
use super::finder::Finder;
use crate::exit::Failure;
use crate::harness::codspeed;
use crate::harness::google_benchmark::{self, Step};
use crate::harness::package_benchmark::{self, Part};
use crate::message::{quote, quote_bytes};

/// What is to be said.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Of windows that did open.
    pub(crate) warnings: Vec<String>,
    /// Windows whose calls could not all be counted.
    pub(crate) uncounted: Vec<String>,
    /// Why windows did not open or close.
    pub(crate) failure: Option<Failure>,
    /// The same for the profile, one of each: it may be read without its run's exit code.
    pub(crate) marks: Vec<String>,
}

/// How often the entries of an edge were patched, and used.
#[derive(Default)]
struct Use {
    applied: usize,
    hits: u64,
    problems: BTreeMap<String, usize>,
    /// Of which libraries they are.
    libraries: BTreeSet<String>,
}

/// Looks at what the recorders did with the plans. `has_benchmark`: the window of a benchmark of package-benchmark opened.
pub(crate) fn outcome(finder: &Finder, snapshot: &Snapshot, has_benchmark: bool) -> Outcome {
    let edges = &finder.definitions().edges;
    let mut uses: Vec<Use> = edges.iter().map(|_| Use::default()).collect();
    let plans = snapshot.areas.iter().flat_map(|area| area.plans.iter().map(move |plan| (area, plan)));
    for (area, plan) in plans {
        let Some(planned) = finder.planned.get(&(plan.path.clone(), plan.at)) else { continue };
        for index in &planned.edges {
            let Some(used) = uses.get_mut(*index) else { continue };
            used.hits = used.hits.saturating_add(plan.hits);
            if plan.path != area.image_path {
                used.libraries.insert(quote_bytes(&plan.path));
            }
            match problem(plan.state) {
                None => used.applied += 1,
                Some(why) => {
                    let problem = format!("{} was not patched: {why}", quote(&planned.function));
                    *used.problems.entry(problem).or_default() += 1;
                }
            }
        }
    }
    let late: u64 = snapshot.areas.iter().map(|area| u64::from(area.plans_late)).sum();
    let mut outcome = Outcome::default();
    let mut failures: Vec<String> = Vec::new();
    outcome.failure = loops(finder, &uses, &mut outcome.warnings)
        .or_else(|| benchmarks(finder, &uses, has_benchmark, &mut outcome.warnings));
    let failure = brackets(finder, &uses, snapshot, &mut outcome.warnings);
    outcome.failure = outcome.failure.or(failure);
    for ((edge, found), used) in edges.iter().zip(&finder.found).zip(&uses) {
        if matches!(edge.role, Role::Loop(_) | Role::Benchmark(_) | Role::Bracket(_)) {
            continue;
        }
        let mut problems: Vec<String> = found.problems.clone();
        problems.extend(used.problems.keys().cloned());
        let text = quote(&edge.text);
        if found.functions == 0 && problems.is_empty() {
            problems.push(format!("no function that was loaded fits {text}"));
            if looks_like_regex(&edge.text) {
                problems
                    .push(format!("as a regular expression it is {}", quote(format!("re:{}", edge.text))));
            }
            let near = finder.near(&edge.text);
            if !near.is_empty() {
                problems.push(format!("near it: {}", near.join(", ")));
            }
        } else if used.applied > 0 && used.hits == 0 {
            let of = used.libraries.iter().map(|library| format!(" of {library}")).collect::<Vec<_>>();
            problems.push(format!("{text}{} was never called", of.join(" and")));
        }
        let window = quote(&edge.window);
        let is_in = edge.role == Role::In;
        let is_harness = edge.role == Role::Harness && found.functions > 0;
        if is_in && (found.inlined > 0 || found.refused > 0 || used.applied < found.functions - found.refused)
        {
            outcome.uncounted.push(edge.window.clone());
            if found.inlined > 0 {
                problems.push(format!(
                    "{} inlined, whose calls cannot be counted: the numbers are totals",
                    copies(found.inlined, &text)
                ));
            }
        } else if (is_in || is_harness) && found.is_inlined_unknown {
            problems
                .push(format!("without debug information calls of {text} that were inlined are not seen"));
        }
        // A program need not pause whatever it measures.
        let is_pause = matches!(edge.role, Role::Pause | Role::Resume) && used.applied > 0;
        let is_used = used.hits > 0 || is_harness || is_pause || is_in && has_rows(snapshot, &edge.window);
        if !is_used {
            failures.push(format!("window {window}, {}: {}", edge.role, problems.join("; ")));
        } else {
            let of_window = |problem: String| format!("window {window}, {}: {problem}", edge.role);
            outcome.warnings.extend(problems.into_iter().map(of_window));
        }
    }
    for window in &finder.definitions().windows {
        let windows = snapshot.areas.iter().flat_map(|area| &area.windows);
        let of_it = windows.filter(|found| found.name == window.as_bytes());
        let stray: u64 = of_it.map(|found| found.stray_pauses).fold(0, u64::saturating_add);
        if stray > 0 {
            let (calls, window) = (if stray == 1 { "call" } else { "calls" }, quote(window));
            outcome.warnings.push(format!(
                "window {window}: {stray} {calls} of functions at which it is paused or resumed came while it was not open, \
                 or not paused, and did nothing"
            ));
        }
    }
    let lost: u64 = snapshot.areas.iter().map(|area| u64::from(area.lost_ranges)).sum();
    if lost > 0 {
        let lost = format!(
            "{lost} parts of functions found no place: windows beneath them have less than there was"
        );
        outcome.warnings.push(format!("{INCOMPLETE}{lost}"));
    }
    if late > 0 {
        let late = format!("this command did not answer the recorder in time ({late} times)");
        outcome.warnings.push(late);
    }
    if !failures.is_empty() {
        outcome.marks = failures.iter().map(|failure| format!("{INCOMPLETE}{failure}")).collect();
        let mut lines = vec!["a window at functions could not be opened or closed".to_owned()];
        lines.append(&mut failures);
        lines.append(&mut outcome.warnings);
        lines
            .push("`heaptally symbols PROGRAM PATTERN` lists functions, and which can be patched".to_owned());
        outcome.failure = Some(Failure::recorder(lines.join("\n")));
    }
    outcome
}

/// What is to be said of the functions of a harness that was linked in. The failure: it was asked for and is not there.
fn loops(finder: &Finder, uses: &[Use], warnings: &mut Vec<String>) -> Option<Failure> {
    let definitions = finder.definitions();
    let mut failure = None;
    for ((edge, found), used) in definitions.edges.iter().zip(&finder.found).zip(uses) {
        let Role::Loop(step) = edge.role else { continue };
        let lack = if used.applied == 0 { format!("; {}", step.lack()) } else { String::new() };
        let problems = found.problems.iter().chain(used.problems.keys());
        let mut problems: Vec<String> =
            problems.map(|problem| format!("Google Benchmark: {problem}{lack}")).collect();
        if found.inlined > 0 {
            problems.push(format!(
                "Google Benchmark: {} inlined into other functions (link-time optimisation?), and there {}",
                copies(found.inlined, &quote(&edge.text)),
                step.lack()
            ));
        }
        let is_missing = used.applied == 0 || used.hits == 0 && found.inlined > 0;
        if step == Step::Begin && definitions.needs_loops && is_missing {
            if found.functions == 0 {
                problems.push(format!(
                    "no function that was loaded is {}: there is none, the file is stripped, or link-time optimisation \
                     inlined it",
                    quote(&edge.text)
                ));
            }
            problems.insert(0, "the loops of Google Benchmark could not be made windows".to_owned());
            problems.push(google_benchmark::ADVICE.to_owned());
            failure = Some(Failure::recorder(problems.join("\n")));
        } else {
            warnings.append(&mut problems);
        }
    }
    failure
}

/// What is to be said of the closures between which package-benchmark measures. The failure: it was asked for, and no benchmark
/// is a window.
fn benchmarks(
    finder: &Finder,
    uses: &[Use],
    has_benchmark: bool,
    warnings: &mut Vec<String>,
) -> Option<Failure> {
    let definitions = finder.definitions();
    if !definitions.has_benchmarks() {
        return None;
    }
    let mut problems = Vec::new();
    let (mut is_begin_there, mut is_patched) = (false, false);
    for ((edge, found), used) in definitions.edges.iter().zip(&finder.found).zip(uses) {
        let Role::Benchmark(part) = edge.role else { continue };
        if part == Part::Own {
            continue;
        }
        if part == Part::Begin {
            (is_begin_there, is_patched) = (found.functions > 0, used.applied > 0);
        }
        let lack = match part {
            Part::End if used.applied == 0 && is_patched => "; a benchmark's window is not closed",
            _ => "",
        };
        if !lack.is_empty() && found.functions == 0 {
            problems.push(format!("package-benchmark: there is no {}{lack}", quote(&edge.text)));
        }
        let all = found.problems.iter().chain(used.problems.keys());
        problems.extend(all.map(|problem| format!("package-benchmark: {problem}{lack}")));
    }
    if has_benchmark || !definitions.needs_benchmarks {
        warnings.append(&mut problems);
        return None;
    }
    problems.insert(0, "no benchmark of package-benchmark became a window".to_owned());
    problems.push(match (is_begin_there, is_patched) {
        (_, true) => "no benchmark ran: see which the program has (`swift package benchmark list`), and what --filter says".to_owned(),
        (true, false) => "record on a system that lets code be changed, or name a function by --window-in".to_owned(),
        (false, _) => format!(
            "no program that was recorded has its closures ({}): package-benchmark is not linked in, the file is stripped, or it is \
             another version than 1.0 or later\n{}",
            definitions.edges.iter().find(|edge| edge.role == Role::Benchmark(Part::Begin)).map_or("", |edge| &edge.text),
            package_benchmark::ADVICE
        ),
    });
    Some(Failure::recorder(problems.join("\n")))
}

/// The same of the functions of CodSpeed's library.
fn brackets(
    finder: &Finder,
    uses: &[Use],
    snapshot: &Snapshot,
    warnings: &mut Vec<String>,
) -> Option<Failure> {
    let definitions = finder.definitions();
    let mut failure = None;
    let mut is_begun = false;
    for ((edge, found), used) in definitions.edges.iter().zip(&finder.found).zip(uses) {
        let Role::Bracket(step) = edge.role else { continue };
        is_begun |= step == codspeed::Step::Begin && used.hits > 0;
        let lack = if used.applied == 0 { format!("; {}", step.lack()) } else { String::new() };
        let problems = found.problems.iter().chain(used.problems.keys());
        let mut problems: Vec<String> =
            problems.map(|problem| format!("CodSpeed: {problem}{lack}")).collect();
        if step == codspeed::Step::Begin && definitions.needs_brackets && used.hits == 0 {
            problems.insert(0, "no benchmark of CodSpeed's library was run".to_owned());
            problems.push(match used.applied {
                0 => format!(
                    "no function that was loaded is {}: its library is not there, or its file is stripped",
                    quote(&edge.text)
                ),
                _ => format!("{} was never called", quote(&edge.text)),
            });
            problems.push(codspeed::ADVICE.to_owned());
            failure = Some(Failure::recorder(problems.join("\n")));
        } else {
            warnings.append(&mut problems);
        }
    }
    let is_unnamed = |window: &Window| window.name == codspeed::WINDOW.as_bytes() && window.entries > 0;
    if is_begun && snapshot.areas.iter().flat_map(|area| &area.windows).any(is_unnamed) {
        warnings.push(format!("window {}: {}", quote(codspeed::WINDOW), codspeed::UNNAMED));
    }
    failure
}

/// Whether a name was meant for a regular expression: it has marks that no name has there.
fn looks_like_regex(text: &str) -> bool {
    !text.starts_with("re:") && (text.starts_with('^') || text.ends_with('$') || text.contains(".*"))
}

fn copies(count: usize, of: &str) -> String {
    if count == 1 { format!("1 copy of {of} was") } else { format!("{count} copies of {of} were") }
}

fn has_rows(snapshot: &Snapshot, name: &str) -> bool {
    snapshot.areas.iter().any(|area| {
        let is_it =
            |window: usize| area.windows.get(window).is_some_and(|window| window.name == name.as_bytes());
        area.rows.iter().any(|row| is_it(row.window))
    })
}

/// Why an entry was not patched.
fn problem(state: u32) -> Option<&'static str> {
    match state {
        PLAN_APPLIED => None,
        PLAN_DIFFERS => Some("what is in memory is not what its file has (another tool may have changed it)"),
        PLAN_NO_ROOM => Some("there is no free memory within reach of its module"),
        PLAN_PROTECTED => Some("the system lets no code be changed (a hardened kernel, or a sandbox)"),
        PLAN_THREADS => {
            Some("threads ran before the recorder could look: its module came unseen, or threads came first")
        }
        PLAN_DAMAGED => Some("its plan makes no sense to the recorder"),
        _ => Some("the recorder did not come to it"),
    }
}
