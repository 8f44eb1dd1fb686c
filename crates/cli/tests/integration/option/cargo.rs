//! The options of `heaptally cargo`, with a Cargo that builds nothing: it notes its words, and says that the demonstration, or
//! a script in its place, is what it built.
//!
//! What is of a report or of a check is compared with what these commands make of the same profile.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Bench, Row};
use crate::sandbox::{Outcome, outcome};

macro_rules! rows {
    ($($option:literal: $check:expr),+ $(,)?) => {
        pub(super) const ROWS: &[Row] = &[$(Row { command: "cargo", option: $option, check: $check }),+];
    };
}

rows! {
    "ACTION": action,
    "FILTER": filter_word,
    "ARGUMENTS": arguments,
    "--package": |bench| goes_on(bench, &["--package", "a"]),
    "--workspace": |bench| goes_on(bench, &["--workspace"]),
    "--exclude-package": exclude_package,
    "--lib": |bench| goes_on(bench, &["--lib"]),
    "--bin": |bench| goes_on(bench, &["--bin", "demo"]),
    "--bins": |bench| goes_on(bench, &["--bins"]),
    "--example": |bench| goes_on(bench, &["--example", "a"]),
    "--examples": |bench| goes_on(bench, &["--examples"]),
    "--test": |bench| goes_on(bench, &["--test", "a"]),
    "--tests": |bench| goes_on(bench, &["--tests"]),
    "--bench": |bench| goes_on(bench, &["--bench", "a"]),
    "--benches": |bench| goes_on(bench, &["--benches"]),
    "--all-targets": |bench| goes_on(bench, &["--all-targets"]),
    "--features": |bench| goes_on(bench, &["--features", "a b"]),
    "--all-features": |bench| goes_on(bench, &["--all-features"]),
    "--no-default-features": |bench| goes_on(bench, &["--no-default-features"]),
    "--profile": profile,
    "--release": release,
    "--target": |bench| goes_on(bench, &["--target", "x86_64-unknown-linux-gnu"]),
    "--target-dir": target_dir,
    "--manifest-path": |bench| goes_on(bench, &["--manifest-path", "Cargo.toml"]),
    "--jobs": |bench| goes_on(bench, &["--jobs", "1"]),
    "--locked": |bench| goes_on(bench, &["--locked"]),
    "--offline": |bench| goes_on(bench, &["--offline"]),
    "--frozen": |bench| goes_on(bench, &["--frozen"]),
    "--output": output,
    "--save-baseline": save_baseline,
    "--no-fail-fast": no_fail_fast,
    "--show-output": show_output,
    "--repeat": repeat,
    "--follow-children": follow_children,
    "--harness": harness,
    "--no-lifetimes": no_lifetimes,
    "--task-origins": task_origins,
    "--segment-dir": segment_dir,
    "--window-in": |bench| at_functions(bench, &["--window-in", "w=heaptally_demo::parse"]),
    "--window-at": |bench| at_functions(bench, AT),
    "--window-pause": |bench| at_functions(bench, &[AT, &["--window-pause", "w=heaptally_demo::insert"]].concat()),
    "--window-resume": |bench| at_functions(bench, &[AT, &["--window-resume", "w=heaptally_demo::insert"]].concat()),
    "--window-restart": |bench| at_functions(bench, &[AT, &["--window-restart", "w"]].concat()),
    "--window-harness": |bench| at_functions(bench, &[AT, &["--window-harness", "w=heaptally_demo::insert"]].concat()),
    "--window": |bench| reports(bench, &["--window", "parse"]),
    "--under": |bench| reports(bench, &["--under", "insert"]),
    "--filter": |bench| reports(bench, &["--filter", "insert"]),
    "--exclude": |bench| reports(bench, &["--exclude", "insert"]),
    "--root": |bench| reports(bench, &["--root", "nobody"]),
    "--rules": rules,
    "--sort": |bench| reports(bench, &["--sort", "bytes"]),
    "--by": |bench| reports(bench, &["--by", "site"]),
    "--tree": |bench| reports(bench, &["--tree"]),
    "--limit": |bench| reports(bench, &["--limit", "1"]),
    "--min": |bench| reports(bench, &["--min", "4"]),
    "--full": |bench| reports(bench, &["--full"]),
    "--width": |bench| reports(bench, &["--width", "60"]),
    "--format": |bench| reports(bench, &["--format", "folded"]),
    "--json": |bench| reports(bench, &["--json"]),
    "--baseline": baseline,
    "--limits": limits,
    "--grow": |bench| checks(bench, &["--grow", "200%"]),
    "--per-stack": |bench| checks(bench, &["--per-stack", "off"]),
    "--unstable": |bench| checks(bench, &["--unstable"]),
    "--max-lost": |bench| checks(bench, &["--max-lost", "1"]),
    "--max-cut": |bench| checks(bench, &["--max-cut", "2"]),
    "--same-environment": |bench| checks(bench, &["--same-environment"]),
    "--accept-failed": accept_failed,
    "--accept-incomplete": |bench| checks(bench, &["--accept-incomplete"]),
    "--strict": |bench| checks(bench, &["--strict"]),
    "--exit-on-improvement": |bench| checks(bench, &["--exit-on-improvement"]),
    "--fold-recursion": |bench| checks(bench, &["--fold-recursion"]),
    "--fold-generics": |bench| checks(bench, &["--fold-generics"]),
    "--write": write,
    "--report": report,
}

/// A window from one function of the demonstration to another.
const AT: &[&str] = &["--window-at", "w=heaptally_demo::parse .. heaptally_demo::describe"];

/// Two benchmarks of a harness, as far as can be seen from outside: the first one fails where a file says so.
const HARNESS: &str = "#!/bin/sh
# DIVAN_SAMPLE_COUNT heaptally_abi_v1
case \"$*\" in
*--list*) echo 'one: benchmark'; echo 'two: benchmark'; exit ;;
*' one') echo said; [ ! -e fails ] || exit 3 ;;
esac
exec DEMO
";

/// A Cargo in the working folder that built `program`, as a program or as that of benchmarks.
fn install(bench: &Bench, program: &Path) {
    let work = bench.sandbox.work("");
    let work = work.to_str().unwrap().trim_end_matches('/');
    let id = format!("path+file://{work}#demo@0.1.0");
    let target = |kind: &str| json!({"kind": [kind], "crate_types": ["bin"], "name": "demo", "src_path": "main.rs", "edition": "2024"});
    let package = json!({"name": "demo", "version": "0.1.0", "id": id, "source": null, "dependencies": [], "targets": [target("bin")], "features": {}, "manifest_path": format!("{work}/Cargo.toml"), "categories": [], "keywords": [], "authors": [], "edition": "2024"});
    let metadata = json!({"packages": [package], "workspace_members": [id], "resolve": null, "workspace_root": work, "target_directory": format!("{work}/target"), "version": 1, "metadata": null});
    let artifact = |kind: &str, debug: u8| json!({"reason": "compiler-artifact", "package_id": id, "manifest_path": format!("{work}/Cargo.toml"), "target": target(kind), "profile": {"opt_level": "3", "debuginfo": debug, "debug_assertions": false, "overflow_checks": false, "test": kind == "bench"}, "features": [], "filenames": [program], "executable": program, "fresh": true});
    let script = format!(
        "#!/bin/sh\necho \"$@\" \"debug=$CARGO_PROFILE_BENCH_DEBUG$CARGO_PROFILE_RELEASE_DEBUG$CARGO_PROFILE_OWN_DEBUG\" >> calls\n\
         case $1 in metadata) echo '{metadata}' ;; build) echo '{}' ;; *) echo '{}' ;; esac\n",
        artifact("bin", 2),
        artifact("bench", 1),
    );
    bench.sandbox.write("cargo", script, 0o755);
    bench.sandbox.write("Cargo.toml", "[profile.own]\ninherits = 'release'\n", 0o644);
}

/// Calls `heaptally cargo` with that Cargo.
fn call(bench: &Bench, words: &[&str]) -> Outcome {
    if !bench.sandbox.work("cargo").exists() {
        install(bench, &bench.sandbox.demo());
    }
    let mut command = bench.sandbox.command([&["cargo"], words].concat());
    outcome(command.env("CARGO", bench.sandbox.work("cargo")))
}

/// The words of the call of Cargo that built.
fn build_words(bench: &Bench) -> String {
    let calls = fs::read_to_string(bench.sandbox.work("calls")).unwrap();
    calls.lines().rfind(|line| !line.starts_with("metadata")).unwrap().to_owned()
}

/// An option for Cargo goes there, and is not there otherwise.
fn goes_on(bench: &Bench, option: &[&str]) {
    call(bench, &["bench"]).expect(0);
    assert!(!format!("{} ", build_words(bench)).contains(&format!(" {} ", option[0])));
    call(bench, &[&["bench"], option].concat()).expect(0);
    assert!(build_words(bench).contains(&option.join(" ")), "{}", build_words(bench));
    // The short form, where there is one.
    let short = match option[0] {
        "--package" => "-p",
        "--features" => "-F",
        "--jobs" => "-j",
        _ => return,
    };
    call(bench, &["bench", short, option[1]]).expect(0);
    assert!(build_words(bench).contains(&option.join(" ")));
}

fn exclude_package(bench: &Bench) {
    call(bench, &["bench", "--workspace", "--exclude-package", "a"]).expect(0);
    assert!(build_words(bench).contains(" --exclude a"), "{}", build_words(bench));
}

fn action(bench: &Bench) {
    call(bench, &["run"]).expect(0);
    assert!(build_words(bench).starts_with("build --bins --message-format"), "{}", build_words(bench));
    assert!(bench.sandbox.work("target/heaptally/last/run.pb.gz").is_file());
    for action in ["bench", "test"] {
        call(bench, &[action]).expect(0);
        assert!(build_words(bench).starts_with(&format!("{action} --no-run ")));
    }
    call(bench, &["fly"]).expect(2);
}

fn filter_word(bench: &Bench) {
    script(bench);
    let outcome = call(bench, &["bench", "x y"]);
    outcome.expect(0);
    call(bench, &["run", "x"]).expect(2).says(&["behind --"]);
}

fn arguments(bench: &Bench) {
    call(bench, &["run", "-o", "plain.pb.gz"]).expect(0);
    call(bench, &["run", "-o", "change.pb.gz", "--", "change"]).expect(0);
    assert!(bench.call(&["diff", "plain.pb.gz", "change.pb.gz", "--exit-code"]).code == Some(3));
    let demo = bench.demo();
    call(bench, &["exec", "-o", "folder", "--", &demo]).expect(0);
    assert_eq!(fs::read_dir(bench.sandbox.work("folder")).unwrap().count(), 1);
    call(bench, &["exec"]).expect(2).says(&["behind --"]);
    call(bench, &["exec", "--baseline", "b", "--", &demo]).expect(2);
}

fn profile(bench: &Bench) {
    goes_on(bench, &["--profile", "own"]);
    assert!(build_words(bench).ends_with("debug=1"), "{}", build_words(bench));
    bench.sandbox.write("Cargo.toml", "[profile.own]\ninherits = 'release'\ndebug = 0\n", 0o644);
    call(bench, &["bench", "--profile", "own"]).expect(0);
    assert!(build_words(bench).ends_with("debug="), "what the user says stays: {}", build_words(bench));
}

fn release(bench: &Bench) {
    call(bench, &["test"]).expect(0);
    assert!(build_words(bench).ends_with("debug="));
    for option in ["--release", "-r"] {
        call(bench, &["test", option]).expect(0);
        assert!(build_words(bench).contains(" --release "), "{}", build_words(bench));
        assert!(build_words(bench).ends_with("debug=1"));
    }
    call(bench, &["bench", "--release"]).expect(2).says(&["has no --release"]);
}

fn target_dir(bench: &Bench) {
    goes_on(bench, &["--target-dir", "elsewhere"]);
    assert!(bench.sandbox.work("elsewhere/heaptally/last/bench.pb.gz").is_file());
}

fn output(bench: &Bench) {
    for (option, file) in [("-o", "short.pb.gz"), ("--output", "long.pb.gz")] {
        call(bench, &["run", option, file]).expect(0).says(&[file]);
        assert!(bench.sandbox.work(file).is_file());
    }
    call(bench, &["run", "-o", "no/folder.pb.gz"]).expect(4).says(&["no/folder.pb.gz"]);
}

/// Benchmarks of a harness, in place of the demonstration.
fn script(bench: &Bench) {
    let demo = bench.demo();
    let script = bench.sandbox.write("harness", HARNESS.replace("DEMO", &demo), 0o755);
    install(bench, &script);
}

fn windows(bench: &Bench, profile: &str) -> Vec<String> {
    let report = bench.sandbox.json(profile);
    let windows = report["windows"].as_array().unwrap();
    windows.iter().map(|window| window["name"].as_str().unwrap().to_owned()).collect()
}

fn save_baseline(bench: &Bench) {
    call(bench, &["run", "--save-baseline", "main"]).expect(0).says(&["saved as the baseline"]);
    assert!(bench.output(&["baseline", "list"]).contains("\n  main  "));
    call(bench, &["run", "--save-baseline", "main", "--baseline", "main", "--", "change"])
        .expect(3)
        .says(&["was not replaced"]);
    script(bench);
    bench.sandbox.write("fails", "", 0o644);
    call(bench, &["bench", "--save-baseline", "main"])
        .expect(3)
        .says(&["was not replaced", "nothing was recorded"]);
}

fn no_fail_fast(bench: &Bench) {
    script(bench);
    call(bench, &["bench", "-o", "all.pb.gz"]).expect(0).says(&["demo: 2 benchmarks (divan"]);
    let found = windows(bench, "all.pb.gz");
    assert!(
        found.contains(&"one: parse".to_owned()) && found.contains(&"two: look up".to_owned()),
        "{found:?}"
    );
    bench.sandbox.write("fails", "", 0o644);
    call(bench, &["bench"]).expect(3).says(&["`one` ended with 3", "nothing was recorded"]);
    call(bench, &["bench", "-o", "rest.pb.gz", "--no-fail-fast"]).expect(3).says(&["`one` ended with 3"]);
    let found = windows(bench, "rest.pb.gz");
    assert!(
        found.contains(&"two: parse".to_owned()) && !found.contains(&"one: parse".to_owned()),
        "{found:?}"
    );
}

fn show_output(bench: &Bench) {
    script(bench);
    assert!(!call(bench, &["bench"]).expect(0).output.contains("said"));
    assert!(call(bench, &["bench", "--show-output"]).expect(0).output.starts_with("said\n"));
}

fn repeat(bench: &Bench) {
    script(bench);
    call(bench, &["bench", "-o", "p.pb.gz", "--repeat", "3"]).expect(0);
    let report = bench.sandbox.json("p.pb.gz");
    assert_eq!(report["environment"]["repeats"], 3);
    let windows = report["windows"].as_array().unwrap();
    let parse = windows.iter().find(|window| window["name"] == "one: parse").unwrap();
    assert_eq!(parse["counts"]["allocations"], 3600);
}

/// The report of the program that ran with some options.
fn recorded(bench: &Bench, options: &[&str]) -> Value {
    call(bench, &[&["run", "-o", "p.pb.gz"], options].concat()).expect(0);
    bench.sandbox.json("p.pb.gz")
}

fn follow_children(bench: &Bench) {
    assert_eq!(recorded(bench, &[])["children"]["followed"], false);
    assert_eq!(recorded(bench, &["--follow-children"])["children"]["followed"], true);
}

fn harness(bench: &Bench) {
    script(bench);
    call(bench, &["bench", "-o", "p.pb.gz", "--harness", "auto"]).expect(0);
    assert!(windows(bench, "p.pb.gz").contains(&"one: parse".to_owned()));
    call(bench, &["bench", "-o", "p.pb.gz", "--harness", "none"]).expect(0);
    // Of the script and of the program that it becomes.
    assert_eq!(windows(bench, "p.pb.gz"), ["look up", "parse", "process", "process"]);
}

fn no_lifetimes(bench: &Bench) {
    assert_eq!(recorded(bench, &[])["environment"]["lifetimes"], true);
    assert_eq!(recorded(bench, &["--no-lifetimes"])["environment"]["lifetimes"], false);
}

fn task_origins(bench: &Bench) {
    assert!(recorded(bench, &[])["environment"]["task_origins"].is_null());
    assert_eq!(recorded(bench, &["--task-origins"])["environment"]["task_origins"], true);
}

fn segment_dir(bench: &Bench) {
    recorded(bench, &["--segment-dir", "."]);
    call(bench, &["run", "--segment-dir", "/no/folder"]).expect(4).says(&["/no/folder"]);
}

/// Windows at functions are as `heaptally run` has them.
fn at_functions(bench: &Bench, options: &[&str]) {
    let demo = bench.demo();
    let of_run = bench.call(&[&["run", "-q", "-o", "r.pb.gz"], options, &[&demo]].concat());
    let code = if of_run.code == Some(0) { 0 } else { 4 };
    call(bench, &[&["run", "-o", "p.pb.gz"], options].concat()).expect(code);
    if code != 0 {
        return;
    }
    let [one, other] = ["r.pb.gz", "p.pb.gz"].map(|file| {
        let report = bench.sandbox.json(file);
        let windows = report["windows"].as_array().unwrap().iter();
        windows.map(|window| (window["name"].clone(), window["counts"].clone())).collect::<Vec<_>>()
    });
    assert_eq!(one, other);
    assert!(one.iter().any(|(name, _)| name == "w"));
}

/// An option of a report has the effect that it has there.
fn reports(bench: &Bench, options: &[&str]) {
    let own = call(bench, &[&["run", "-o", "p.pb.gz"], options].concat());
    let of_report = bench.output(&[&["report", "p.pb.gz"], options].concat());
    assert_eq!(own.expect(0).output, of_report);
    assert_ne!(of_report, bench.output(&["report", "p.pb.gz"]), "the option has no effect");
    if !["--window", "--under", "--filter", "--root", "--rules", "--exclude", "--full", "--width"]
        .contains(&options[0])
    {
        call(bench, &[&["run", "--baseline", "p.pb.gz"], options].concat())
            .expect(2)
            .says(&["are of the report"]);
    }
}

fn rules(bench: &Bench) {
    bench.sandbox.write("rules.txt", "[function]\nheaptally_demo::insert\n", 0o644);
    reports(bench, &["--rules", "rules.txt"]);
}

/// An option of a check has the effect that it has there.
fn checks(bench: &Bench, options: &[&str]) {
    call(bench, &["run", "-o", "base.pb.gz"]).expect(0);
    let own = [&["run", "-o", "p.pb.gz", "--baseline", "base.pb.gz"], options, &["--", "change"]].concat();
    let own = call(bench, &own);
    let of_check = bench.call(&[&["check", "p.pb.gz", "--baseline", "base.pb.gz"], options].concat());
    assert_eq!((own.code, &own.output), (of_check.code, &of_check.output), "{own:#?}");
    if options[0] != "--strict" {
        call(bench, &[&["run"], options].concat()).expect(2).says(&["nothing to check against"]);
    }
}

fn baseline(bench: &Bench) {
    call(bench, &["run", "-o", "base.pb.gz"]).expect(0);
    call(bench, &["run", "--baseline", "base.pb.gz"]).expect(0);
    call(bench, &["run", "--baseline", "base.pb.gz", "--", "change"]).expect(3);
    fs::remove_file(bench.sandbox.work("calls")).unwrap();
    call(bench, &["run", "--baseline", "none"]).expect(4).says(&["there is no baseline `none`"]);
    let calls = fs::read_to_string(bench.sandbox.work("calls")).unwrap();
    assert!(calls.lines().all(|call| call.starts_with("metadata")), "nothing is built: {calls}");
}

fn limits(bench: &Bench) {
    bench.sandbox.write("limits.toml", "[window.\"look up\"]\nallocs = 3\n", 0o644);
    call(bench, &["run", "--limits", "limits.toml"]).expect(0);
    call(bench, &["run", "--limits", "limits.toml", "--", "change"]).expect(3);
}

fn accept_failed(bench: &Bench) {
    script(bench);
    call(bench, &["bench", "-o", "base.pb.gz"]).expect(0);
    bench.sandbox.write("fails", "", 0o644);
    let words = ["bench", "--no-fail-fast", "--baseline", "base.pb.gz"];
    call(bench, &words).expect(3).says(&["nothing was checked"]);
    let accepted = call(bench, &[&words[..], &["--accept-failed"]].concat());
    assert!(accepted.output.contains("limits in"), "{accepted:#?}");
}

fn write(bench: &Bench) {
    checks(bench, &["--write", "json=verdict.json"]);
    assert!(fs::read_to_string(bench.sandbox.work("verdict.json")).unwrap().contains("look up"));
}

fn report(bench: &Bench) {
    checks(bench, &["--report", "verdict.txt"]);
    assert!(fs::read_to_string(bench.sandbox.work("verdict.txt")).unwrap().contains("look up"));
}
