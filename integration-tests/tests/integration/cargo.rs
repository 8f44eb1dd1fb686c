//! `cargo heaptally` on benchmarks and tests that are as people write them: the suites in `suites/`, counted by hand.
//!
//! They are built once, into a folder of their own beside what is built of the workspace.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use integration_tests::command::{heaptally, target_folder};
use integration_tests::report::Report;
use integration_tests::scratch::Scratch;

/// The suites' workspace.
fn suites() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("suites")
}

fn target() -> PathBuf {
    target_folder().join("suites")
}

/// `cargo heaptally`, in a folder of the suites.
fn cargo_heaptally(folder: &str, words: &[&str]) -> Command {
    let path = heaptally().with_file_name("cargo-heaptally");
    let mut command = Command::new(path);
    // As Cargo calls it.
    command.arg("heaptally").args(words).arg("--target-dir").arg(target());
    command.current_dir(suites().join(folder));
    for name in ["CARGO_TARGET_DIR", "CARGO_PROFILE_BENCH_DEBUG", "CARGO_PROFILE_RELEASE_DEBUG", "NEXTEST"] {
        command.env_remove(name);
    }
    command
}

/// The same with a profile of its own; what it printed, and the report.
#[track_caller]
fn record(folder: &str, words: &[&str], code: i32) -> (Output, Report) {
    record_with(folder, words, code, &[])
}

/// The same with variables.
#[track_caller]
pub(crate) fn record_with(
    folder: &str,
    words: &[&str],
    code: i32,
    variables: &[(&str, &str)],
) -> (Output, Report) {
    let scratch = Scratch::new();
    let file = scratch.path("p.pb.gz");
    let (words, rest) = words.split_at(words.iter().position(|word| *word == "--").unwrap_or(words.len()));
    let words: Vec<&str> =
        words.iter().copied().chain(["-o", file.to_str().expect("a path of text"), "--locked"]).collect();
    let mut command = cargo_heaptally(folder, &words);
    let output = command.args(rest).envs(variables.iter().copied()).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}:\n{errors}");
    let report = Command::new(heaptally()).args(["report", "--json"]).arg(&file).output().expect("it starts");
    let report = serde_json::from_slice(&report.stdout).unwrap_or_else(|error| panic!("{error}:\n{errors}"));
    (output, report)
}

/// Allocations of each window, by its name, and by how many iterations they were.
pub(crate) fn counts(report: &Report) -> BTreeMap<&str, (u64, u64)> {
    assert_eq!(report.losses_text(), "");
    assert!(report.sum_mismatches.is_empty());
    report.windows.iter().map(|window| (window.name.as_str(), (window.calls(), window.iterations))).collect()
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What every version of criterion measures in `criterion/stock.rs`.
const STOCK: [(&str, (u64, u64)); 7] = [
    ("batched", (6, 1)),
    ("batched ref, 2", (2, 1)),
    ("custom", (6, 1)),
    ("group/times/1", (6, 1)),
    ("group/times/2", (12, 1)),
    ("iter", (6, 1)),
    ("large drop", (6, 1)),
];

#[track_caller]
fn stock_criterion(version: &str) {
    let bench = format!("stock_{}", version.replace('-', "_"));
    let (output, report) = record(&format!("criterion-{version}"), &["bench", "--bench", &bench], 0);
    assert_eq!(counts(&report), BTreeMap::from(STOCK), "{}", errors(&output));
    assert!(errors(&output).contains(": 7 benchmarks (criterion; one iteration each"), "{}", errors(&output));
    // What else there is in a window is said, and of that window only.
    let warnings: Vec<&String> = report.images.iter().flat_map(|image| &image.warnings).collect();
    assert!(
        warnings.iter().all(|warning| warning.starts_with("window `custom` holds all that runs beneath")),
        "{warnings:?}"
    );
    assert_eq!(warnings.len(), 1);
    assert_eq!(report.images[0].label, bench);
}

#[track_caller]
fn windowed_criterion(version: &str) {
    let bench = format!("windowed_{}", version.replace('-', "_"));
    let folder = format!("criterion-{version}");
    let (output, report) = record(&folder, &["bench", "--bench", &bench], 0);
    let expected = BTreeMap::from([("batched", (6, 1)), ("iter", (6, 1))]);
    let mut found = counts(&report);
    found.retain(|name, _| *name != "process");
    assert_eq!(found, expected, "{}", errors(&output));
}

#[test]
fn criterion_0_5_as_it_is() {
    stock_criterion("0-5");
}

/// Its list has another form, and it knows no whole names.
#[test]
#[ignore = "builds another criterion: half a minute"]
fn criterion_0_4_as_it_is() {
    stock_criterion("0-4");
}

#[test]
#[ignore = "builds another criterion: half a minute"]
fn criterion_0_6_as_it_is() {
    stock_criterion("0-6");
}

#[test]
#[ignore = "builds another criterion: half a minute"]
fn criterion_0_7_as_it_is() {
    stock_criterion("0-7");
}

#[test]
fn criterion_0_8_as_it_is() {
    stock_criterion("0-8");
}

#[test]
fn criterion_with_the_adapter() {
    windowed_criterion("0-5");
    windowed_criterion("0-8");
}

#[test]
#[ignore = "builds two more criterions: a minute"]
fn criterion_with_the_adapter_of_the_versions_between() {
    windowed_criterion("0-6");
    windowed_criterion("0-7");
}

#[test]
fn divan_as_it_is() {
    let (output, report) = record("divan", &["bench"], 0);
    let expected = [
        ("divan::inputs", (60, 10)),
        ("divan::one_box::u32", (10, 10)),
        ("divan::one_box::u64", (10, 10)),
        ("divan::plain", (60, 10)),
        ("divan::set_up", (60, 10)),
        ("divan::threads", (60, 10)),
        ("divan::times::1", (60, 10)),
        ("divan::times::2", (120, 10)),
    ];
    assert_eq!(counts(&report), BTreeMap::from(expected), "{}", errors(&output));
    assert!(report.images.iter().all(|image| image.warnings.is_empty()));

    // What is chosen, the harness says.
    let (_, report) = record("divan", &["bench", "times", "--", "--skip", "2$"], 0);
    assert_eq!(counts(&report).into_keys().collect::<Vec<_>>(), ["divan::times::1"]);
    let (_, report) = record("divan", &["bench", "ignored", "--", "--include-ignored"], 0);
    assert_eq!(counts(&report), BTreeMap::from([("divan::ignored", (60, 10))]));
}

#[test]
fn tango_with_the_metric() {
    let (_, report) = record("tango", &["bench", "--", "solo", "--samples", "5"], 0);
    let window = report.window("tango");
    // The harness does not tell iterations: whole ones all the same.
    assert!(window.calls() > 0 && window.calls() % 6 == 0, "{}", window.text());
}

#[test]
fn a_benchmark_of_no_harness_by_its_own_windows() {
    let (output, report) = record("plain", &["bench"], 0);
    let mut found = counts(&report);
    found.retain(|name, _| *name != "process");
    assert_eq!(found, BTreeMap::from([("own", (24, 4))]), "{}", errors(&output));
}

#[test]
fn tests_each_in_a_process_of_its_own() {
    let (output, report) = record("plain", &["test", "allocation"], 0);
    let expected =
        [("inner::twelve_allocations", (12, 1)), ("no_allocation", (0, 1)), ("six_allocations", (6, 1))];
    assert_eq!(counts(&report), BTreeMap::from(expected), "{}", errors(&output));
    let (_, report) = record("plain", &["test", "--", "--ignored"], 0);
    assert_eq!(counts(&report), BTreeMap::from([("ignored", (6, 1))]));
    let (_, report) = record("plain", &["test", "--test", "tests"], 0);
    assert_eq!(report.windows.len(), 6, "all but the ignored one");
}

#[test]
fn a_test_that_fails_ends_with_its_code_and_is_shown() {
    let scratch = Scratch::new();
    let file = scratch.path("p.pb.gz");
    let words = ["test", "--no-fail-fast", "-o", file.to_str().unwrap()];
    let output = cargo_heaptally("plain", &words).env("SUITE_FAILS", "1").output().unwrap();
    let words = errors(&output);
    assert_eq!(output.status.code(), Some(101), "{words}");
    for word in ["as it was asked to", "`may_fail` ended with 101", "5 windows"] {
        assert!(words.contains(word), "nothing says {word:?}:\n{words}");
    }
}

#[test]
fn a_program_with_its_words_and_its_code() {
    let (_, report) = record("plain", &["run", "--", "a", "b"], 0);
    assert_eq!(counts(&report).get("words"), Some(&(12, 1)));
    let (_, report) = record("plain", &["run", "--release", "--", "--code", "7"], 7);
    assert_eq!(counts(&report).get("words"), Some(&(12, 1)));
}

#[test]
fn a_baseline_is_saved_and_checked() {
    let name = format!("suite-{}", std::process::id());
    let call = |words: &[&str]| {
        let output = cargo_heaptally("divan", words).output().unwrap();
        (output.status.code(), errors(&output), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, words, _) = call(&["bench", "times::1", "--save-baseline", &name]);
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("saved as the baseline"), "{words}");
    let (code, words, _) = call(&["bench", "times::1", "--baseline", &name]);
    assert_eq!(code, Some(0), "{words}");
    // Other code in the window of that name.
    let limits = Scratch::new();
    let file = limits.path("limits.toml");
    std::fs::write(&file, "[window.\"divan::times::2\"]\nallocs = 11\n").unwrap();
    let (file, report) = (file.to_str().unwrap(), limits.path("report.txt"));
    let words = ["bench", "times::2", "--limits", file, "--report", report.to_str().unwrap()];
    let (code, words, output) = call(&words);
    assert_eq!(code, Some(3), "{words}{output}");
    assert!(output.contains("divan::times::2"), "{output}");
    std::fs::remove_file(target().join(format!("heaptally/{name}.pb.gz"))).unwrap();
}

#[test]
fn a_runner_of_the_configuration_is_kept() {
    let scratch = Scratch::new();
    let file = scratch.path("p.pb.gz");
    let note = scratch.path("note");
    let runner = scratch.path("runner");
    let text = format!("#!/bin/sh\necho \"$@\" >> {}\nexec \"$@\"\n", note.display());
    std::fs::write(&runner, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&runner, mode).unwrap();
    let words = ["test", "six_allocations", "-o", file.to_str().unwrap()];
    let mut command = cargo_heaptally("plain", &words);
    let output = command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", &runner).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let note = std::fs::read_to_string(note).unwrap();
    assert!(note.contains("--list") && note.contains("--exact six_allocations"), "{note}");
}

/// nextest starts each test by way of the command, and sees nothing of it.
#[test]
fn under_nextest() {
    static HAVE: OnceLock<bool> = OnceLock::new();
    let have = *HAVE.get_or_init(|| {
        Command::new("cargo")
            .args(["nextest", "--version"])
            .output()
            .is_ok_and(|output| output.status.success())
    });
    if !have {
        integration_tests::tool::skip("cargo-nextest missing");
        return;
    }
    let scratch = Scratch::new();
    let folder = scratch.path("profiles");
    let runner = format!(
        "{} exec -o {} --",
        heaptally().with_file_name("cargo-heaptally").display(),
        folder.display()
    );
    let output = Command::new("cargo")
        .args(["nextest", "run", "--locked", "-E", "test(allocation)"])
        .current_dir(suites().join("plain"))
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let report = Command::new(heaptally())
        .args(["report", "--json"])
        .arg(folder.join("tests.inner__twelve_allocations.pb.gz"))
        .output()
        .unwrap();
    let report: Report = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(counts(&report), BTreeMap::from([("inner::twelve_allocations", (12, 1))]));
}
