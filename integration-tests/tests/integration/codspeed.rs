//! Benchmarks that CodSpeed's library brackets: a small stand-in for it, and its crates with suites that were counted by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use integration_tests::command::target_folder;
use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

use crate::cargo::{counts, errors, record_with};

fn program(scratch: &Scratch, output: &str, flags: &[&str]) {
    program::build(scratch, "codspeed_hooks.c", output, &[&["-O2"], flags].concat());
}

fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

#[track_caller]
fn check(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let report = outcome.report();
    // A benchmark that is measured again is one window; what was left without an end has no name.
    let long = format!("{}…", "a".repeat(1021));
    let expected = [
        ("a.c::one", [3, 3, 19]),
        ("a.c::two", [1, 1, 12]),
        (&*long, [1, 1, 1]),
        ("a.c::last", [1, 1, 6]),
        ("codspeed", [1, 1, 11]),
    ];
    for (name, numbers) in expected {
        let window = report.window(name);
        assert_eq!([window.entries, window.iterations, window.counts.allocations], numbers, "{name}");
        // The set-up of the next one is in what was left open.
        let outside = if name == "codspeed" { 10 } else { 0 };
        assert_eq!(window.calls_with("measured"), numbers[2] - outside);
        assert_eq!(window.complete_calls(), window.calls());
        assert!(!window.unfinished);
    }
    assert_eq!(report.losses_text(), "");
    assert!(report.sum_mismatches.is_empty(), "{:?}", report.sum_mismatches);
}

#[test]
fn a_window_has_the_name_that_comes_at_its_end() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program(&scratch, "program", &[]);
    let outcome = Run::new(&scratch, ["./program"]).run();
    check(&outcome);
    assert_eq!(outcome.report().windows.len(), 6, "and what came before");
    assert!(
        outcome.stderr.contains("window `codspeed`: its benchmarks were not named"),
        "{}",
        outcome.stderr
    );
    assert!(!text(&outcome).contains("Checked"), "it was told that it is measured");

    // What the harness itself tells is left alone where the library measures it.
    program(&scratch, "copy", &["-DCOPY"]);
    check(&Run::new(&scratch, ["./copy"]).run());

    let outcome = Run::new(&scratch, ["./program"]).options(["--harness", "none"]).run();
    assert_eq!(outcome.report().windows.len(), 1);
    assert!(text(&outcome).contains("Checked: a.c::one"), "it is left alone");

    let outcome =
        Run::new(&scratch, ["env", "UNNAMED=1", "./program"]).options(["--harness", "codspeed"]).run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let window = outcome.report().window("codspeed");
    assert_eq!((window.entries, window.calls()), (3, 15));
    assert_eq!(outcome.report().window("a.c::last").calls(), 6);
}

#[test]
fn behind_another_program_and_in_a_library() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program(&scratch, "program", &[]);
    let asked = ["--harness", "codspeed"];
    check(&Run::new(&scratch, ["env", "A=1", "./program"]).options(asked).run());
    program(&scratch, "loader", &["-DLOADER", "-ldl"]);
    program(&scratch, "library.so", &["-DPLUGIN", "-shared", "-fPIC"]);
    check(&Run::new(&scratch, ["./loader", "./library.so"]).options(asked).run());

    let outcome = Run::new(&scratch, ["/bin/true"]).options(asked).run();
    assert_eq!(outcome.code, 125);
    let said = "no function that was loaded is `instrument_hooks_start_benchmark`";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    program(&scratch, "stripped", &["-s"]);
    let outcome = Run::new(&scratch, ["./stripped"]).options(asked).run();
    assert!(outcome.code == 125 && outcome.stderr.contains(said), "{}", outcome.stderr);
}

const FLAGS: (&str, &str) = ("RUSTFLAGS", "--cfg codspeed");

/// The crates as they are without CodSpeed: copies of criterion and divan.
#[test]
#[ignore = "builds CodSpeed's criterion and divan: a minute"]
fn the_crates_without_codspeed() {
    let (output, report) = record_with("codspeed", &["bench"], 0, &[]);
    let expected = [
        ("batched", (6, 1)),
        ("batched ref, 2", (2, 1)),
        ("group/times/1", (6, 1)),
        ("group/times/2", (12, 1)),
        ("iter", (6, 1)),
        ("large drop", (6, 1)),
        ("codspeed_divan::inputs", (60, 10)),
        ("codspeed_divan::one_box::u32", (10, 10)),
        ("codspeed_divan::one_box::u64", (10, 10)),
        ("codspeed_divan::plain", (60, 10)),
        ("codspeed_divan::set_up", (60, 10)),
        ("codspeed_divan::times::1", (60, 10)),
        ("codspeed_divan::times::2", (120, 10)),
    ];
    let mut found = counts(&report);
    // What measures itself holds the start of CodSpeed's library, too.
    let custom = found.remove("custom");
    assert!(custom.is_some_and(|(calls, iterations)| calls >= 6 && iterations == 1), "{custom:?}");
    assert_eq!(found, BTreeMap::from(expected), "{}", errors(&output));
}

/// What CodSpeed measures: one iteration, behind its warm-up.
#[test]
#[ignore = "builds CodSpeed's criterion and divan: a minute"]
fn the_crates_as_codspeed_builds_them() {
    let (output, report) = record_with("codspeed", &["bench"], 0, &[FLAGS]);
    let file = "integration-tests/suites/codspeed/divan.rs";
    let of_divan = [
        ("inputs", 6),
        ("one_box[u32]", 1),
        ("one_box[u64]", 1),
        ("plain", 6),
        ("set_up", 6),
        ("times[1]", 6),
        ("times[2]", 12),
    ];
    let of_criterion = [
        ("batched", 6),
        ("batched ref, 2", 2),
        ("group::times[1]", 6),
        ("group::times[2]", 12),
        ("iter", 6),
        ("large drop", 6),
    ];
    let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    expected.extend(of_divan.map(|(name, count)| (name.to_owned(), (count, 1))));
    expected.extend(of_criterion.map(|(name, count)| (format!("benches::all::{name}"), (count, 1))));
    let found = counts(&report);
    let without_file = |name: &str| name.split_once(".rs::").map_or(name, |(_, rest)| rest).to_owned();
    let found: BTreeMap<String, (u64, u64)> =
        found.into_iter().map(|(name, numbers)| (without_file(name), numbers)).collect();
    assert_eq!(found, expected, "{file}: {}", errors(&output));
    assert!(report.images.iter().all(|image| image.warnings.is_empty()));

    // All in one process, each with its name; and by child processes, which is said.
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites/codspeed");
    let built = Command::new("cargo")
        .args(["bench", "--no-run", "--locked", "--bench", "codspeed_divan", "--target-dir"])
        .arg(target_folder().join("suites"))
        .current_dir(&suite)
        .env(FLAGS.0, FLAGS.1)
        .env("CARGO_PROFILE_BENCH_DEBUG", "1")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    let said = errors(&built);
    let path = said.rsplit_once('(').and_then(|(_, path)| path.trim_end().strip_suffix(')'));
    let path = PathBuf::from(path.unwrap_or_else(|| panic!("{said}")));
    let scratch = Scratch::new();
    let run = |isolation: &str| {
        let isolation = format!("CODSPEED_PROCESS_ISOLATION={isolation}");
        let words = ["env", &isolation, path.to_str().unwrap()];
        Run::new(&scratch, words).options(["--harness", "codspeed"]).run()
    };
    let outcome = run("0");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for (name, count) in of_divan {
        let window =
            outcome.report().windows.iter().find(|window| window.name.ends_with(&format!("::{name}")));
        assert_eq!(window.map(|window| (window.calls(), window.entries)), Some((count, 1)), "{name}");
    }
    let outcome = run("1");
    assert!(
        outcome.code == 125 && outcome.stderr.contains("CODSPEED_PROCESS_ISOLATION=0"),
        "{}",
        outcome.stderr
    );
}
