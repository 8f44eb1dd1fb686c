//! Benchmarks by Google Benchmark: their loops are windows, with nothing done for it.

use std::path::Path;

use integration_tests::program;
use integration_tests::report::Report;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// The suite, built for the shared library; `None`: that is not there.
fn suite() -> Option<Scratch> {
    if !tool::have(&["g++"]) {
        return None;
    }
    if !Path::new("/usr/include/benchmark/benchmark.h").is_file() {
        tool::skip("libbenchmark-dev missing");
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "benchmark_suite.cpp", "suite", &["-O2", "-lbenchmark"]);
    Some(scratch)
}

fn run(scratch: &Scratch, options: &[&str], words: &[&str]) -> Outcome {
    let words = ["./suite"].iter().chain(words).copied();
    let outcome = Run::new(scratch, words).options(options.iter().copied()).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    outcome
}

/// Entries, iterations and allocations of the window, where nothing is in it that is not measured.
#[track_caller]
fn numbers(report: &Report, name: &str) -> [u64; 3] {
    let window = report.window(name);
    for outside in ["set_up", "paused", "tear_down"] {
        assert_eq!(window.calls_with(outside), 0, "{outside}:\n{}", window.text());
    }
    assert_eq!(window.calls_with("measured"), window.calls(), "{}", window.text());
    assert_eq!((window.unfinished, window.stray_ends, window.ended_by_thread), (false, 0, 0), "{name}");
    assert_eq!(window.complete_calls(), window.calls(), "{}", window.text());
    [window.entries, window.iterations, window.counts.allocations]
}

const LONG: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx y/iterations:10";

#[test]
fn each_benchmark_is_a_window() {
    let Some(scratch) = suite() else { return };
    let outcome = run(&scratch, &[], &[]);
    let report = outcome.report();
    let expected = [
        ("plain/iterations:1000", [1, 1000, 6000]),
        ("repeated/iterations:20/repeats:3", [3, 60, 360]),
        ("with_arguments/2/iterations:10", [1, 10, 20]),
        ("with_arguments/5/iterations:10", [1, 10, 50]),
        ("named/count:3/4/iterations:10", [1, 10, 30]),
        ("pausing/iterations:100", [1, 100, 600]),
        ("threaded/iterations:100/threads:1", [1, 100, 600]),
        ("threaded/iterations:100/threads:2", [2, 200, 1200]),
        ("threaded/iterations:100/threads:8", [8, 800, 4800]),
        ("keep_running/iterations:50", [1, 50, 300]),
        ("batch/iterations:95", [1, 100, 600]),
        ("fixture/method/iterations:10", [1, 10, 60]),
        ("generic<char>/iterations:10", [1, 10, 10]),
        ("generic<int>/iterations:10", [1, 10, 40]),
        ("kept_running_until_given_up/iterations:10", [1, 4, 24]),
        ("after/iterations:10", [1, 10, 60]),
        ("with_own_window/iterations:10", [1, 10, 60]),
        (LONG, [1, 10, 60]),
    ];
    for (name, numbers_of_it) in expected {
        assert_eq!(numbers(report, name), numbers_of_it, "{name}");
    }
    // Only these, and those that the tests below look at.
    let mut others: Vec<&str> = report.windows.iter().map(|window| window.name.as_str()).collect();
    others.retain(|name| expected.iter().all(|(known, _)| known != name));
    others.sort_unstable();
    let all = ["around", "given_up_inside/iterations:10", "grown/min_time:0.020", "own", "process"];
    assert_eq!(others, [&all[..], &["with_workers/iterations:10"]].concat());
    assert_eq!(report.losses_text(), "");
    assert!(report.sum_mismatches.is_empty(), "{:?}", report.sum_mismatches);
}

#[test]
fn iterations_are_those_of_all_runs() {
    let Some(scratch) = suite() else { return };
    let outcome = run(&scratch, &[], &["--benchmark_filter=^grown"]);
    let [entries, iterations, allocations] = numbers(outcome.report(), "grown/min_time:0.020");
    assert!(entries > 1, "the harness begins with one iteration: {entries}");
    assert_eq!(allocations, iterations * 6);
}

/// How far a loop by iterators had come, nobody knows.
#[test]
fn a_loop_that_is_left_early_is_said() {
    let Some(scratch) = suite() else { return };
    let outcome = run(&scratch, &[], &["--benchmark_filter=given_up|never|after"]);
    let report = outcome.report();
    assert_eq!(numbers(report, "given_up_inside/iterations:10"), [1, 1, 24]);
    assert_eq!(numbers(report, "after/iterations:10"), [1, 10, 60]);
    let warned = "window `given_up_inside/iterations:10`: 1 run of the benchmark left its loop early";
    assert!(outcome.stderr.contains(warned), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches("left its loop early").count(), 1, "{}", outcome.stderr);
    assert!(report.windows.iter().all(|window| !window.name.starts_with("never_begun")));
    assert!(report.windows.iter().all(|window| !window.name.starts_with("given_up_before")));
}

#[test]
fn the_programs_own_windows_are_inside_and_around() {
    let Some(scratch) = suite() else { return };
    let outcome = run(&scratch, &[], &["--benchmark_filter=with_own_window"]);
    let report = outcome.report();
    assert_eq!(report.window("own").calls_with("worker"), 20);
    let around = report.window("around");
    assert_eq!((around.calls_with("set_up"), around.calls_with("tear_down")), (2, 3));
    assert_eq!(around.calls_with("measured"), 0);
}

#[test]
fn other_threads_of_a_benchmark_count() {
    let Some(scratch) = suite() else { return };
    let outcome = run(&scratch, &[], &["--benchmark_filter=with_workers"]);
    let window = outcome.report().window("with_workers/iterations:10");
    assert_eq!((window.calls_with("measured"), window.calls_with("worker")), (60, 40), "{}", window.text());
}

#[test]
fn windows_by_name_and_none_at_all() {
    let Some(scratch) = suite() else { return };
    let name = "with_arguments/5/iterations:10";
    let outcome = run(&scratch, &["--window", name], &["--benchmark_filter=with_arguments"]);
    let names: Vec<&str> = outcome.report().windows.iter().map(|window| window.name.as_str()).collect();
    assert_eq!(names, [name]);
    assert_eq!(numbers(outcome.report(), name), [1, 10, 50]);

    let outcome = run(&scratch, &["--harness", "none"], &["--benchmark_filter=with_arguments"]);
    let names: Vec<&str> = outcome.report().windows.iter().map(|window| window.name.as_str()).collect();
    assert_eq!(names, ["process"]);
    assert_eq!(outcome.report().window("process").calls_with("measured"), 70);
}

#[test]
fn the_programs_output_is_its_own() {
    let Some(scratch) = suite() else { return };
    let words = ["--benchmark_list_tests"];
    let recorded = run(&scratch, &[], &words);
    let alone = Run::new(&scratch, ["./suite"].iter().chain(&words).copied()).unrecorded().run();
    assert_eq!((recorded.stdout, recorded.code), (alone.stdout, alone.code));
}

/// What the small harness's benchmarks come to, wherever it is linked into.
#[track_caller]
fn check_linked_in(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    for (name, expected) in [
        ("pausing", [1, 20, 120]),
        ("pausing_with_an_argument/8/threads:1", [1, 20, 120]),
        ("pausing/threads:8", [8, 160, 960]),
        ("given_up", [1, 4, 24]),
        ("after", [1, 20, 120]),
    ] {
        let window = report.window(name);
        assert_eq!([window.entries, window.iterations, window.counts.allocations], expected, "{name}");
        assert_eq!(window.calls_with("measured"), window.calls(), "{}", window.text());
        assert!(!window.unfinished);
    }
    assert_eq!(report.windows.len(), 6, "and what came before");
    assert_eq!(report.losses_text(), "");
    assert_eq!(report.warnings(), [""; 0]);
}

fn linked_in(scratch: &Scratch, output: &str, flags: &[&str]) {
    program::build(scratch, "benchmark_linked_in.cpp", output, &[&["-O2"], flags].concat());
}

#[test]
fn a_harness_that_is_linked_in_is_patched() {
    if !tool::have(&["g++", "strip"]) {
        return;
    }
    let scratch = Scratch::new();
    for parts in ["-DPARTS=8", "-DPARTS=7"] {
        linked_in(&scratch, "program", &[parts]);
        check_linked_in(&Run::new(&scratch, ["./program"]).run());
    }
    let asked = ["--harness", "google-benchmark"];
    // What is behind another program is not looked at unless it is asked for.
    check_linked_in_behind(&scratch, &asked);
    let outcome = Run::new(&scratch, ["./program"]).options(["--harness", "none"]).run();
    assert_eq!(outcome.report().windows.len(), 1);

    linked_in(&scratch, "stripped", &["-s"]);
    let outcome = Run::new(&scratch, ["./stripped"]).run();
    let said = "Google Benchmark is linked in, and its functions have no names in the file";
    assert!(outcome.code == 0 && outcome.stderr.contains(said), "{}", outcome.stderr);
    let outcome = Run::new(&scratch, ["./stripped"]).options(asked).run();
    let said = ["could not be made windows", "StartKeepRunning", "--window-in BM_name"];
    assert_eq!(outcome.code, 125);
    assert!(said.iter().all(|said| outcome.stderr.contains(said)), "{}", outcome.stderr);
}

fn check_linked_in_behind(scratch: &Scratch, options: &[&str]) {
    let words = ["env", "A=1", "./program"];
    let outcome = Run::new(scratch, words).options(options.iter().copied()).run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let window = outcome.report().window("pausing/threads:8");
    assert_eq!([window.entries, window.iterations, window.counts.allocations], [8, 160, 960]);
    let outcome = Run::new(scratch, words).run();
    assert!(outcome.report().windows.iter().all(|window| window.name == "process"));
}

/// Its calls come to the recorder's functions, as it calls them by name, and the loader knows none behind these.
#[test]
fn a_harness_in_a_library_that_is_loaded_later() {
    if !tool::have(&["g++"]) {
        return;
    }
    let scratch = Scratch::new();
    linked_in(&scratch, "loader", &["-DLOADER"]);
    linked_in(&scratch, "library.so", &["-shared", "-fPIC"]);
    check_linked_in(&Run::new(&scratch, ["./loader", "./library.so"]).run());
    let options = ["--harness", "google-benchmark"];
    check_linked_in(&Run::new(&scratch, ["./loader", "./library.so"]).options(options).run());
    // One that calls itself without the loader has to be asked for.
    linked_in(&scratch, "library.so", &["-shared", "-fPIC", "-Wl,-Bsymbolic"]);
    check_linked_in(&Run::new(&scratch, ["./loader", "./library.so"]).options(options).run());
}

/// The harness's runner calls its own function for the name, which so cannot be interposed.
#[test]
fn a_shared_harness_that_calls_itself() {
    if !tool::have(&["g++"]) {
        return;
    }
    let scratch = Scratch::new();
    let shared = ["-DHARNESS", "-shared", "-fPIC", "-Wl,-Bsymbolic-functions"];
    linked_in(&scratch, "libharness.so", &shared);
    linked_in(&scratch, "program", &["-DBENCHMARKS", "-L.", "-lharness", "-Wl,-rpath,$ORIGIN"]);
    check_linked_in(&Run::new(&scratch, ["./program"]).run());
    let behind = ["env", "A=1", "./program"];
    let outcome = Run::new(&scratch, behind).run();
    assert_eq!(outcome.code, 0);
    assert!(outcome.report().window("google-benchmark").calls_with("measured") > 0);
    let said = "the names of Google Benchmark's benchmarks were not seen";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    let outcome = Run::new(&scratch, behind).options(["--harness", "google-benchmark"]).run();
    let window = outcome.report().window("pausing/threads:8");
    assert_eq!([window.entries, window.iterations, window.counts.allocations], [8, 160, 960]);
    assert!(!outcome.stderr.contains(said), "{}", outcome.stderr);
}

/// Where nothing else is left of the harness, its loops tell by themselves.
#[test]
fn loops_of_the_header() {
    if !tool::have(&["g++"]) {
        return;
    }
    let scratch = Scratch::new();
    let check = |options: &[&str]| {
        let outcome = Run::new(&scratch, ["./program"]).options(options.iter().copied()).run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let report = outcome.report();
        for (name, expected) in [
            ("plain", [1, 20, 120]),
            ("pausing", [1, 20, 120]),
            ("named/2", [1, 20, 40]),
            ("named/5", [1, 20, 100]),
            ("left_early", [1, 4, 24]),
            ("threaded", [4, 80, 480]),
        ] {
            let window = report.window(name);
            assert_eq!([window.entries, window.iterations, window.counts.allocations], expected, "{name}");
            assert_eq!(window.counts.bytes, expected[2] * 64, "{}", window.text());
            assert!(!window.unfinished);
        }
        assert_eq!(report.windows.len(), 7, "and what came before");
        assert_eq!((report.losses_text(), report.warnings()), (String::new(), Vec::new()));
    };
    let flags = ["-O2", "-Wall", "-Wextra", "-Werror"];
    for build in [&["-flto", "-s"][..], &["-std=c++11"], &["-O0"]] {
        program::build(&scratch, "benchmark_loop.cpp", "program", &[&flags, build].concat());
        check(&[]);
    }
    if Path::new("/usr/include/benchmark/benchmark.h").is_file() {
        let link = ["-DREAL", "-flto", "-s", "-lbenchmark"];
        program::build(&scratch, "benchmark_loop.cpp", "program", &[&flags[..], &link].concat());
        check(&["--harness", "none"]);
    } else {
        tool::skip("libbenchmark-dev missing");
    }
}

/// The functions are exported for that alone, and so are found in a stripped program.
#[test]
fn functions_that_the_build_keeps() {
    if !tool::have(&["g++"]) {
        return;
    }
    let scratch = Scratch::new();
    let export = "-Wl,--export-dynamic-symbol=_ZN9benchmark5State*,--export-dynamic-symbol=_ZNK9benchmark13BenchmarkName*";
    linked_in(&scratch, "program", &["-s", export]);
    let outcome = Run::new(&scratch, ["./program"]).run();
    for (name, expected) in
        [("pausing", [1, 20, 120]), ("pausing/threads:8", [8, 160, 960]), ("given_up", [1, 4, 24])]
    {
        let window = outcome.report().window(name);
        assert_eq!([window.entries, window.iterations, window.counts.allocations], expected, "{name}");
    }
}
