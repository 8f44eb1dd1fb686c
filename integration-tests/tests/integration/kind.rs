//! Kinds of failure of other recorders, each with a small program.

use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// Builds a program and runs it alone and recorded: output and exit code are the same, nothing is lost.
fn same(source: &str, flags: &[&str], arguments: &[&str]) -> Option<Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, source, "program", flags);
    program::build(
        &scratch,
        "unload_library.c",
        "library.so",
        &["-shared", "-fPIC", "-DNAME=a", "-DSIZE=24"],
    );
    let run = || Run::new(&scratch, ["./program"].iter().chain(arguments));
    let alone = run().unrecorded().run();
    let recorded = run().run();
    assert_eq!(
        (recorded.code, &recorded.stdout),
        (alone.code, &alone.stdout),
        "stderr:\n{}",
        recorded.stderr
    );
    assert_eq!(recorded.report().losses_text(), "");
    Some(recorded)
}

/// `dlsym` and `dlerror` allocate inside the loader before the program does, and their errors are the program's to see.
#[test]
fn a24_a_name_that_is_not_there_is_looked_up_first() {
    let Some(outcome) = same("missing_symbol.c", &["-O1"], &[]) else { return };
    let stdout = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert_eq!(outcome.code, 4);
    assert!(
        stdout.contains("undefined symbol: heaptally_test_no_such_name") && stdout.ends_with("\n1\n"),
        "{stdout}"
    );
    let window = outcome.report().window("w");
    assert_eq!((window.calls(), window.calls_with("main_work")), (3, 3), "{}", window.text());
}

/// The standard library's backtraces take a lock and allocate under it.
#[test]
fn a32_backtraces_in_another_thread() {
    const ROUNDS: u64 = 20_000;
    if tool::which("rustc").is_none() && !tool::have(&["rustc"]) {
        return;
    }
    let scratch = Scratch::new();
    let source = program::source("backtrace.rs");
    scratch.shell(&format!("rustc --edition 2024 -O -g -o program '{}'", source.display()));
    let outcome = Run::new(&scratch, ["./program", &ROUNDS.to_string()]).run();
    assert_eq!((outcome.code, outcome.stdout), (0, format!("{ROUNDS}\n").into_bytes()), "{}", outcome.stderr);
    let report = outcome.report.as_ref().expect("a report");
    let window = report.window("process");
    assert_eq!(window.calls_with("backtrace::boxes"), ROUNDS);
    assert!(window.calls_with("backtrace::captures") >= ROUNDS);
    assert_eq!(window.complete_calls(), window.calls());
    assert_eq!(report.losses_text(), "");
}

/// The recorder calls no unwinder, demangler or language run time that a program could have another version of.
#[test]
fn a33_unwinders_of_the_program() {
    for flags in [&["-O1", "-rdynamic"][..], &["-O1", "-rdynamic", "-no-pie", "-fno-pie"]] {
        let Some(outcome) = same("unwinder_names.c", flags, &[]) else { return };
        assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
        let window = outcome.report().window("w");
        assert_eq!(window.calls_with("work"), 10, "{}", window.text());
    }
}

/// The callback of `dl_iterate_phdr` allocates under the loader's lock, which others want.
#[test]
fn a37_allocations_under_the_loaders_lock() {
    let Some(outcome) = same("loader_walk.c", &["-O1"], &["./library.so"]) else { return };
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let window = outcome.report().window("w");
    assert_eq!(window.calls_with("callback"), 200, "{}", window.text());
    assert_eq!(window.calls_with("thread_alloc"), 60_000, "{}", window.text());
}

/// Runs differ by who was served: the stacks that differ are unstable, with their least and greatest; others are not.
#[test]
fn b19_scheduling_changes_counts() {
    const RUNS: usize = 4;
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "queue.c", "program", &["-O1"]);
    scratch.write("runs", "0\n");
    let outcome = Run::new(&scratch, ["./program"]).options(["--repeat", &RUNS.to_string()]).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let told = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let told: Vec<u64> = told.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(told.len(), RUNS);
    let report = outcome.report();
    let window = report.window("w");
    assert_eq!(window.calls_with("grow"), told.iter().sum::<u64>(), "{}", window.text());
    assert_eq!(window.calls_with("first_room"), 4 * RUNS as u64, "{}", window.text());
    let document = outcome.window_json("w");
    let rows = document["rows"].as_array().expect("rows");
    let of_count =
        |count: u64| rows.iter().filter(move |row| row["counts"]["allocations"] == count).collect::<Vec<_>>();
    let runs = |row: &serde_json::Value| {
        let runs = row["repeats"].as_array().into_iter().flatten();
        runs.filter_map(|run| run["allocations"].as_u64()).collect::<Vec<_>>()
    };
    let grown = of_count(told.iter().sum());
    assert_eq!(grown.len(), 1, "{document}");
    assert_eq!((runs(grown[0]), &grown[0]["unstable"]), (told, &true.into()));
    // One for each thread, one in main.
    for (count, each) in [(4 * RUNS as u64, 4), (RUNS as u64, 1)] {
        let fixed = of_count(count);
        assert!(!fixed.is_empty(), "{document}");
        for row in fixed {
            assert_eq!((runs(row), &row["unstable"]), (vec![each; RUNS], &false.into()));
        }
    }
}

/// What is dropped inside a window and made before it is no part of the window's numbers, and not negative.
#[test]
fn b22_a_fixture_is_dropped_inside_or_behind_the_window() {
    for place in ["inside", "behind"] {
        let Some(outcome) = same("fixture.c", &["-O1"], &[place]) else { return };
        let counts = outcome.report().window("w").counts;
        let told = (counts.allocations, counts.bytes, counts.freed, counts.freed_later);
        assert_eq!(told, (12, 1014, 10, 2), "{place}");
    }
}
