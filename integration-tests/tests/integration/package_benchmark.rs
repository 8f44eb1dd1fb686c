//! Benchmarks of Swift's package-benchmark: windows by themselves, by hand and as its tool runs them.

use integration_tests::program;
use integration_tests::report::{Counts, Report, Row, Window};
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::swift;
use integration_tests::tool;

/// What lies between two functions has the names that Swift's compiler gives these closures.
const CLOSURES: &str = "$s9Benchmark0A8ExecutorV3runySayAA0A6ResultVGA2ACF";
const SAMPLER: &str = "$s9Benchmark28OperatingSystemStatsProducerC13startSamplingyySiF";

/// A stand-in with benchmarks, and its tool, which has not the closures; `None`: there is no compiler. `closure`: how the type of
/// the closures is mangled.
fn stand_in(closure: &str) -> Option<Scratch> {
    if !tool::have(&["gcc", "objcopy", "strip"]) {
        return None;
    }
    let scratch = Scratch::new();
    let flags = ["-O2", "-fno-optimize-sibling-calls"];
    program::build(&scratch, "package_benchmark.c", "tool", &[&flags[..], &["-DNO_HELP"]].concat());
    program::build(&scratch, "package_benchmark.c", "unnamed", &flags);
    let rename = |old: &str, new: &str| format!("--redefine-sym '{old}={new}'");
    scratch.shell(&format!(
        "objcopy {} {} {} unnamed probe && strip -o stripped probe",
        rename("pre", &format!("{CLOSURES}{closure}U0_")),
        rename("post", &format!("{CLOSURES}{closure}U1_")),
        rename("startSampling", SAMPLER),
    ));
    Some(scratch)
}

fn run(scratch: &Scratch, options: &[&str], words: &[&str]) -> Outcome {
    let outcome = Run::new(scratch, words.iter().copied()).options(options.iter().copied()).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    outcome
}

/// Entries, entries that were discarded, allocations, and those that were discarded.
fn numbers(window: &Window) -> [u64; 4] {
    [window.entries, window.discarded_entries, window.counts.allocations, window.counts.discarded]
}

/// By reading: 10 iterations of 3 blocks; of 2 behind 5 of set-up, which starts over. The harness takes 8 and 4 each time.
#[track_caller]
fn check(report: &Report, name: &str, kind: &str) {
    let [own, harness] = match kind {
        "plain" => [[10, 0, 30, 0], [10, 0, 120, 0]],
        _ => [[10, 10, 20, 50], [10, 0, 120, 120]],
    };
    let (measured, beside) = (report.window(name), report.window(&format!("{name} (harness)")));
    assert_eq!(numbers(measured), own, "{}", measured.text());
    assert_eq!(numbers(beside), harness, "{}", beside.text());
    assert!(!measured.unfinished);
    assert!(report.sum_mismatches.is_empty(), "{:?}", report.sum_mismatches);
    assert_eq!(report.losses_text(), "");
}

#[test]
fn benchmarks_that_are_run_by_hand() {
    for closure in ["ySbcf", "yycf"] {
        let Some(scratch) = stand_in(closure) else { return };
        for name in ["plain", "explicit"] {
            let outcome = run(&scratch, &[], &["./probe", "--filter", name, "--quiet", "true"]);
            check(outcome.report(), name, name);
            assert_eq!(outcome.report().warnings(), [""; 0]);
        }
    }
    let Some(scratch) = stand_in("ySbcf") else { return };
    // Nothing says which of the two it is.
    let outcome = run(&scratch, &[], &["./probe"]);
    let window = outcome.report().window("package-benchmark");
    assert_eq!(numbers(window), [20, 10, 50, 50], "{}", window.text());
    let outcome = run(&scratch, &["--harness", "none"], &["./probe"]);
    assert_eq!(outcome.report().windows.len(), 1, "the whole run");
    // Behind another program it has to be asked for.
    let behind = ["env", "A=1", "./probe", "--filter", "plain"];
    let outcome = run(&scratch, &["--harness", "package-benchmark"], &behind);
    check(outcome.report(), "plain", "plain");
    assert!(run(&scratch, &[], &behind).report().windows.iter().all(|window| window.name == "process"));
}

#[test]
fn benchmarks_that_were_asked_for_by_name() {
    let Some(scratch) = stand_in("ySbcf") else { return };
    let words = ["./probe", "--filter", "plain"];
    let outcome = run(&scratch, &["--window", "plain"], &words);
    check(outcome.report(), "plain", "plain");
    assert_eq!(outcome.report().windows.len(), 2);
    let outcome = Run::new(&scratch, words).options(["--window", "other"]).run();
    assert_eq!(outcome.code, 125);
    assert!(outcome.stderr.contains("the window `other` never opened"), "{}", outcome.stderr);
    assert!(outcome.report().windows.is_empty(), "{:?}", outcome.report().windows);
}

const TAGGED: &str = r#"{"run":{"benchmark":{"target":"Probe","name":"plain","configuration":
    {"tags":{"size":"8","kind":"\"x\""},"scalingFactor":1000}}}}"#;
const EXPLICIT: &str = r#"{"run":{"benchmark":{"configuration":{"thresholds":{"name":1},"scalingFactor":1},"name":"explicit"}}}"#;

/// The tool starts a process for each benchmark and tells it by a pipe which one it is; the first request is late. What it starts
/// besides is left alone, and counted.
#[test]
fn benchmarks_that_the_tool_runs() {
    let Some(scratch) = stand_in("ySbcf") else { return };
    let demanded = ["--harness", "package-benchmark"];
    for (how, not_recorded) in [("tool", 2), ("package", 3)] {
        let outcome = run(&scratch, &demanded, &["./tool", how, "./probe", TAGGED, EXPLICIT]);
        let report = outcome.report();
        let tagged = "plain (kind: \"x\", size: 8)";
        check(report, tagged, "plain");
        check(report, "explicit", "explicit");
        assert_eq!(report.window(tagged).iterations, 10_000, "10 of 1,000 each");
        assert_eq!(report.window("explicit").iterations, 10);
        let said = format!("{not_recorded} child processes were not recorded (");
        assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
        let starts = if how == "tool" { "(true ×2)" } else { "(true ×2, tool)" };
        assert!(outcome.stderr.contains(starts), "{}", outcome.stderr);
        // Itself, the one that lists, and the two.
        assert!(outcome.stderr.contains("4 processes recorded"), "{}", outcome.stderr);
    }
    // By its option it is known without asking. That its own program has the closures does not matter.
    let words = ["./probe", "tool", "./probe", EXPLICIT, "--benchmark-executable-paths"];
    let outcome = Run::new(&scratch, words).run();
    check(outcome.report(), "explicit", "explicit");
    // With all children, the others are recorded, too.
    let options = ["--harness", "package-benchmark", "--follow-children"];
    let outcome = run(&scratch, &options, &["./tool", "tool", "./probe", EXPLICIT]);
    check(outcome.report(), "explicit", "explicit");
    assert!(!outcome.stderr.contains("not recorded"), "{}", outcome.stderr);
}

/// A process that the tool started and then forgot: it waits, and then goes on as it would.
#[test]
fn a_request_that_does_not_come_is_said() {
    let Some(scratch) = stand_in("ySbcf") else { return };
    let request = format!("({{ sleep 12; printf '\\014\\0\\0\\0\\0\\0\\0\\0{}'; }})", r#"{"run":true}"#);
    let script = format!("{request} | (exec ./probe --input-fd 0 --output-fd 1 >/dev/null; exit 0)");
    let options = ["--follow-children", "--harness", "package-benchmark"];
    let outcome = Run::new(&scratch, ["sh", "-c", &script]).options(options).run();
    let said = "which benchmark it ran could not be seen: no request came within 10 s";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    check(outcome.report(), "package-benchmark", "plain");
}

#[test]
fn what_cannot_be_found_is_said() {
    let Some(scratch) = stand_in("ySbcf") else { return };
    let outcome = run(&scratch, &[], &["./stripped", "--filter", "plain"]);
    let said = "package-benchmark is linked in, and its functions have no names in the file (stripped)";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    let demanded = ["--harness", "package-benchmark"];
    for words in [&["./stripped", "--filter", "plain"][..], &["true"]] {
        let outcome = Run::new(&scratch, words.iter().copied()).options(demanded).run();
        assert_eq!(outcome.code, 125, "{}", outcome.stderr);
        let said = ["no benchmark of package-benchmark became a window", "stripped", "--window-in FUNCTION"];
        assert!(said.iter().all(|said| outcome.stderr.contains(said)), "{}", outcome.stderr);
    }
    let outcome = Run::new(&scratch, ["./probe", "--filter", "neither"]).options(demanded).run();
    assert_eq!(outcome.code, 125);
    assert!(outcome.stderr.contains("no benchmark ran"), "{}", outcome.stderr);
    // In a debug file of its own the names are found.
    scratch.shell(
        "objcopy --only-keep-debug probe probe.debug && objcopy --strip-all --add-gnu-debuglink=probe.debug probe linked",
    );
    let outcome = run(&scratch, &[], &["./linked", "--filter", "explicit"]);
    check(outcome.report(), "explicit", "explicit");
    // Another version's executor, without the closures.
    scratch.shell("objcopy --redefine-sym pre='$s9Benchmark0A8ExecutorV3runyyF' unnamed other");
    let outcome = run(&scratch, &[], &["./other", "--filter", "plain"]);
    assert!(outcome.stderr.contains("inlined, or another version"), "{}", outcome.stderr);
}

/// The sum of a count over the rows with a function whose name, as the file has it, holds `part`.
fn through(window: &Window, part: &str, count: fn(&Counts) -> u64) -> u64 {
    let has = |row: &&Row| row.frames.iter().any(|frame| frame.function.contains(part));
    window.rows.iter().filter(has).map(|row| count(&row.counts)).sum()
}

/// As the README of the programs has it, from a debugger: entries, those that are started over, allocations of the benchmark in
/// all, and of its set-up in those that are started over.
#[test]
fn a_swift_harness_without_options() {
    for (name, expected) in [
        ("sync", [10, 0, 30, 0]),
        ("explicit", [10, 10, 20, 50]),
        ("twice", [20, 10, 20, 0]),
        ("start-only", [10, 10, 10, 30]),
        ("async", [10, 0, 20, 0]),
    ] {
        let scratch = Scratch::new();
        let Some(run) = swift::run(&scratch, "S19_benchmark_harness", &[name]) else { return };
        let outcome = run.run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let report = outcome.report();
        let (window, own) =
            (report.window("package-benchmark"), report.window("package-benchmark (harness)"));
        let found = [
            window.entries,
            window.discarded_entries,
            through(window, "makeNode", |counts| counts.allocations),
            through(window, "makeNode", |counts| counts.discarded),
        ];
        assert_eq!(found, expected, "{name}: {}", window.text());
        // Two jobs of Task.yield in each entry.
        let others = if name == "async" { 20 } else { 0 };
        assert_eq!(window.counts.allocations, expected[2] + others, "{name}: {}", window.text());
        let [entries, restarts, ..] = expected;
        assert_eq!((own.counts.allocations, own.counts.discarded), (3 * entries, 3 * restarts), "{name}");
        assert_eq!(report.losses_text(), "");
        assert!(report.sum_mismatches.is_empty(), "{:?}", report.sum_mismatches);
    }
}

/// Harnesses that only tell their counters: a hook around all iterations, or readings around each.
#[test]
fn swift_harnesses_by_their_counters() {
    let record = |program: &str| {
        let scratch = Scratch::new();
        let outcome = swift::run(&scratch, program, &[])?.run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(outcome.report().sum_mismatches.is_empty(), "{:?}", outcome.report().sum_mismatches);
        Some(outcome)
    };
    let Some(outcome) = record("S13_harness_hook") else { return };
    // The hook itself has seen them, too: the call was handed on.
    assert_eq!(outcome.stdout, b"34 20\n");
    let window = outcome.report().window("package-benchmark");
    assert_eq!((window.entries, window.counts.allocations), (1, 20), "{}", window.text());
    assert_eq!(through(window, "benchmarkBody", |counts| counts.allocations), 20, "{}", window.text());

    let Some(outcome) = record("S14_harness_counters") else { return };
    let window = outcome.report().window("package-benchmark");
    assert_eq!((window.entries, window.counts.allocations), (20, 40), "{}", window.text());
    assert_eq!(through(window, "benchmarkBody", |counts| counts.allocations), 40, "{}", window.text());
    let own = outcome.report().window("package-benchmark (harness)");
    assert_eq!(through(own, "bookkeeping", |counts| counts.allocations), 20, "{}", own.text());
    assert_eq!((own.entries, own.counts.allocations), (1, 20), "{}", own.text());
}
