//! Children of every kind: counted and named, or recorded, each with its exact numbers.

use std::path::PathBuf;
use std::time::Duration;

use integration_tests::program;
use integration_tests::report::Report;
use integration_tests::run::{Outcome, Run, report_json};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// What the parent allocates, in `parent_work` and `parent_after`.
const PARENT: [(&str, u64); 2] = [("parent_work", 5), ("parent_after", 6)];
/// What a child allocates that stays the program.
const FORKED: [(&str, u64); 1] = [("child_work", 7)];
/// What one allocates that is started anew.
const WORKER: [(&str, u64); 1] = [("worker_work", 11)];
/// What one allocates that does the one and then becomes the other.
const BOTH: [(&str, u64); 2] = [("child_work", 7), ("worker_work", 11)];

fn built() -> Option<Scratch> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "children.c", "children", &["-O1"]);
    program::build(&scratch, "fork_storm.c", "fork_storm", &["-O1"]);
    Some(scratch)
}

/// The calls that a function made, in all windows of a report.
fn calls(report: &Report, function: &str) -> u64 {
    report.windows.iter().map(|window| window.calls_with(function)).sum()
}

/// A process that was recorded.
struct Process {
    is_child: bool,
    report: Report,
}

fn processes(outcome: &Outcome) -> Vec<Process> {
    let processes = outcome.status["processes"].as_array().into_iter().flatten();
    let process = |process: &serde_json::Value| {
        let profile = PathBuf::from(process["profile"].as_str().expect("a profile"));
        let report = Report::parse(&report_json(&profile)).expect("a report");
        let sum: u64 = report.windows.iter().map(|window| window.counts.allocations).sum();
        assert_eq!(process["allocations"], sum, "{process}");
        Process { is_child: process["child"].as_bool().expect("child or not"), report }
    };
    processes.map(process).collect()
}

fn check_process(process: &Process, expected: &[(&str, u64)], what: &str) {
    for function in ["parent_work", "parent_after", "child_work", "worker_work"] {
        let count = expected.iter().find(|(name, _)| *name == function).map_or(0, |(_, count)| *count);
        assert_eq!(calls(&process.report, function), count, "{what}: {function}");
    }
    assert_eq!(process.report.losses_text(), "", "{what}");
}

/// Runs a kind alone and both ways recorded: output and exit code are the same, the parent's numbers too. By default its
/// children are named as `counted`; followed, they have the numbers of `children`.
fn check_kind(kind: &str, counted: &str, children: &[&[(&str, u64)]]) {
    let Some(scratch) = built() else { return };
    let run = || Run::new(&scratch, ["./children", kind]);
    let alone = run().unrecorded().run();
    assert_eq!(alone.code, 5, "{kind}: {}", alone.stderr);

    let outcome = run().run();
    assert_eq!((outcome.code, &outcome.stdout), (5, &alone.stdout), "{kind}; stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    for (function, count) in PARENT {
        assert_eq!(calls(report, function), count, "{kind}: {function}");
    }
    for function in ["child_work", "worker_work"] {
        assert_eq!(calls(report, function), 0, "{kind}: {function} of a child that is not recorded");
    }
    assert_eq!(report.children.text(), counted, "{kind}");
    assert_eq!(report.losses_text(), "", "{kind}");
    let last = outcome.stderr.lines().last().unwrap_or_default();
    let is_said = last.contains("not recorded (") && last.contains("--follow-children records");
    assert_eq!(is_said, !counted.is_empty(), "{kind}: {last}");

    let outcome = run().options(["--follow-children", "--strict"]).run();
    assert_eq!((outcome.code, &outcome.stdout), (5, &alone.stdout), "{kind}; stderr:\n{}", outcome.stderr);
    assert_eq!(outcome.report().children.text(), "", "{kind}");
    assert_eq!(outcome.report().losses_text(), "", "{kind}");
    assert_eq!(outcome.report().children.recorded, children.len() as u64, "{kind}:\n{}", outcome.stderr);
    let all = processes(&outcome);
    assert_eq!(all.len(), children.len() + 1, "{kind}:\n{}", outcome.stderr);
    for process in all.iter().filter(|process| !process.is_child) {
        check_process(process, &PARENT, kind);
    }
    for (process, expected) in all.iter().filter(|process| process.is_child).zip(children) {
        check_process(process, expected, kind);
    }
}

macro_rules! kinds {
    ($($test:ident: $kind:literal, $counted:literal, $children:expr;)*) => {
        $(#[test]
        fn $test() {
            check_kind($kind, $counted, $children);
        })*
    };
}

kinds! {
    a_fork: "fork", "children ×1", &[&FORKED];
    a_fork_by_raw_clone: "raw_fork", "children ×1", &[&FORKED];
    a_fork_that_does_nothing: "quiet_fork", "children ×1", &[];
    a_grandchild: "grandchild", "children ×2", &[&FORKED, &FORKED];
    forks_of_another_user: "other_user", "children ×2", &[&FORKED, &FORKED];
    a_fork_in_another_root_folder: "other_root", "children ×1", &[&FORKED];
    fork_and_exec: "fork_exec", "children ×1", &[&WORKER];
    raw_clone_and_exec: "raw_fork_exec", "children ×1", &[&WORKER];
    fork_and_work_and_exec: "fork_work_exec", "children ×1", &[&BOTH];
    vfork_and_exec: "vfork_exec", "children ×1", &[&WORKER];
    vfork_and_an_exec_that_fails: "vfork_fail", "", &[];
    clone_in_the_parents_memory_and_exec: "clone_vfork", "children ×1", &[&WORKER];
    posix_spawn: "spawn", "children ×1", &[&WORKER];
    a_posix_spawn_that_fails: "spawn_fail", "", &[];
    posix_spawnp: "spawnp", "children ×1", &[&WORKER];
    system: "system", "sh ×1", &[&WORKER];
    popen: "popen", "sh ×1", &[&WORKER];
}

/// A window that is open at a fork is the parent's: the child starts in `process`, and has the windows that it opens.
#[test]
fn a_child_has_windows_of_its_own() {
    let Some(scratch) = built() else { return };
    let outcome = Run::new(&scratch, ["./children", "window_fork"]).options(["--follow-children"]).run();
    assert_eq!(outcome.code, 5, "stderr:\n{}", outcome.stderr);
    let all = processes(&outcome);
    let (parent, child) = (&all[0].report, &all[1].report);
    assert_eq!(parent.window("outer").calls(), 5, "{}", parent.window("outer").text());
    assert!(!parent.has_window("inner") && !child.has_window("outer"));
    assert_eq!(child.window("process").calls_with("child_work"), 7);
    assert_eq!(child.window("inner").calls(), 7, "{}", child.window("inner").text());
}

/// What a child gives back of its parent's is freed from before, and still live in the parent.
#[test]
fn a_parents_block_is_freed_from_before() {
    let Some(scratch) = built() else { return };
    let outcome = Run::new(&scratch, ["./children", "fork"]).options(["--follow-children"]).run();
    let all = processes(&outcome);
    let child = all.iter().find(|process| process.is_child).unwrap();
    let window = child.report.window("process");
    assert_eq!((window.counts.allocations, window.counts.freed), (7, 7), "{}", window.text());
}

/// Children of one program are one image of the profile of all.
#[test]
fn alike_children_are_summed() {
    let Some(scratch) = built() else { return };
    let outcome = Run::new(&scratch, ["./children", "spawn", "9"]).options(["--follow-children"]).run();
    let report = outcome.report();
    let images: Vec<_> = report.images.iter().map(|image| (image.label.as_str(), image.processes)).collect();
    assert_eq!(images, [("children", 0), ("children", 9)]);
    assert_eq!(calls(report, "worker_work"), 9 * 11);
    assert_eq!(processes(&outcome).len(), 10);
    let repeated = Run::new(&scratch, ["./children", "spawn", "9"])
        .options(["--follow-children", "--repeat", "2"])
        .run();
    assert_eq!(repeated.code, 5, "it ends with 5, so it runs once:\n{}", repeated.stderr);
    assert_eq!(calls(repeated.report(), "worker_work"), 9 * 11);
}

fn storm(forks: u64, threads: u64) {
    let Some(scratch) = built() else { return };
    for options in [&[][..], &["--follow-children"]] {
        let outcome = Run::new(&scratch, ["./fork_storm", &forks.to_string(), &threads.to_string()])
            .options(options.iter().copied())
            .timeout(Duration::from_secs(300))
            .run();
        assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
        let stdout = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let (bad, allocated) = stdout.trim().split_once(' ').expect("two numbers");
        assert_eq!(bad, "0", "children that did not end well");
        let report = outcome.report();
        assert_eq!(report.losses_text(), "");
        assert_eq!(calls(report, "thread_work").to_string(), allocated);
        if options.is_empty() {
            assert_eq!(report.children.text(), format!("fork_storm ×{forks}"));
            assert_eq!(calls(report, "child_work"), 0);
        } else {
            assert_eq!(report.children.recorded, forks);
            assert_eq!(calls(report, "child_work"), 7 * forks);
            let own = outcome.status["processes"].as_array().expect("processes");
            assert!(own.iter().skip(1).all(|process| process["allocations"] == 7), "{own:?}");
        }
    }
}

#[test]
fn forks_under_load() {
    storm(200, 4);
}

#[test]
#[ignore = "takes minutes"]
fn forks_under_load_a_hundred_times() {
    for _ in 0..100 {
        storm(200, 8);
    }
}
