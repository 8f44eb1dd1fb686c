//! The options of `heaptally check`.

use std::fs;

use heaptally_profile::model::{Capture, Profile};
use serde_json::Value;

use super::diff::sides;
use super::{Bench, Row};
use crate::sandbox::Outcome;

macro_rules! rows {
    ($($option:literal: $check:ident),+ $(,)?) => {
        pub(super) const ROWS: &[Row] = &[$(Row { command: "check", option: $option, check: $check }),+];
    };
}

rows! {
    "CHANGE": change,
    "PROGRAM": program,
    "--baseline": baseline,
    "--limits": limits,
    "--grow": grow,
    "--per-stack": per_stack,
    "--unstable": unstable,
    "--max-lost": max_lost,
    "--max-cut": max_cut,
    "--same-environment": same_environment,
    "--accept-failed": accept_failed,
    "--accept-incomplete": accept_incomplete,
    "--strict": strict,
    "--exit-on-improvement": exit_on_improvement,
    "--fold-recursion": fold_recursion,
    "--fold-generics": fold_generics,
    "--window": window,
    "--under": under,
    "--filter": filter,
    "--exclude": exclude,
    "--root": root,
    "--rules": rules,
    "--format": format,
    "--json": json,
    "--write": write_forms,
    "--report": report,
    "--full": full,
    "--width": width,
    "--repeat": repeat,
    "--follow-children": follow_children,
    "--window-at": window_at,
    "--window-in": window_in,
    "--window-pause": window_pause,
    "--window-resume": window_resume,
    "--window-restart": window_restart,
    "--window-harness": window_harness,
    "--harness": harness,
    "--no-lifetimes": no_lifetimes,
    "--task-origins": task_origins,
    "--segment-dir": segment_dir,
    "--output": output,
    "--save-baseline": save_baseline,
    "--self-test": self_test,
}

/// Checks the change against the base: in `parse` there are a third more allocations, in `look up` more bytes.
fn check(bench: &Bench, options: &[&str]) -> Outcome {
    if !bench.sandbox.work("change.pb.gz").exists() {
        sides(bench);
        // The threads' own sums say what they were before.
        for name in ["base.pb.gz", "change.pb.gz"] {
            edit(bench, name, |_| {});
        }
    }
    let words: Vec<&str> =
        ["check", "change.pb.gz", "--baseline", "base.pb.gz"].iter().chain(options).copied().collect();
    bench.call(&words)
}

/// Edits a profile in its place; threads lose their sums.
fn edit(bench: &Bench, name: &str, edit: impl FnOnce(&mut Profile)) {
    let bytes = fs::read(bench.sandbox.work(name)).unwrap();
    let mut profile = heaptally_profile::pprof::read(&bytes).unwrap();
    profile.threads.clear();
    edit(&mut profile);
    profile.normalize().unwrap();
    bench.sandbox.write(name, heaptally_profile::pprof::write(&profile), 0o644);
}

/// The base as both sides, the change as `make` makes it.
fn same_but(bench: &Bench, make: impl FnOnce(&mut Profile)) {
    check(bench, &[]);
    fs::copy(bench.sandbox.work("base.pb.gz"), bench.sandbox.work("change.pb.gz")).unwrap();
    edit(bench, "change.pb.gz", make);
}

fn json_of(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.output).unwrap()
}

fn change(bench: &Bench) {
    check(bench, &[]).expect(3);
    let call = |files: &[&str]| {
        let words: Vec<&str> = ["check", "--baseline", "base.pb.gz"].iter().chain(files).copied().collect();
        bench.call(&words)
    };
    call(&["base.pb.gz"]).expect(0);
    call(&["nowhere.pb.gz"]).expect(4).says(&["nowhere.pb.gz"]);
    call(&[]).expect(2).says(&["name a profile"]);
    // What not all runs have is not judged.
    call(&["change.pb.gz", "base.pb.gz"]).expect(0);
    call(&["change.pb.gz", "change.pb.gz"]).expect(3);
}

fn program(bench: &Bench) {
    let demo = bench.demo();
    bench.profile();
    bench.call(&["check", "--baseline", "demo.pb.gz", "--", &demo]).expect(0).says(&["2 windows"]);
    bench
        .call(&["check", "--baseline", "demo.pb.gz", "--", "false"])
        .expect(1)
        .says(&["nothing was checked"]);
    bench.call(&["check", "--baseline", "demo.pb.gz", "--", "/no/program"]).expect(4).says(&["/no/program"]);
    bench.call(&["check", "demo.pb.gz", "--baseline", "demo.pb.gz", "--", &demo]).expect(2);
}

fn baseline(bench: &Bench) {
    check(bench, &[]).expect(3);
    bench.call(&["check", "change.pb.gz", "--baseline", "change.pb.gz"]).expect(0);
    bench.call(&["check", "change.pb.gz"]).expect(2).says(&["--baseline", "--limits"]);
    bench
        .call(&["check", "change.pb.gz", "--baseline", "main"])
        .expect(4)
        .says(&["there is no baseline `main`"]);
    // Two runs of the base, of which one is the change: it does not exceed both.
    check(bench, &["--baseline", "change.pb.gz"]).expect(0);
}

fn limits(bench: &Bench) {
    bench.profile();
    bench.sandbox.write(
        "limits.toml",
        "[window.parse]\nallocs = 11.99\n[window.\"look up\"]\nallocs = 3\n",
        0o644,
    );
    let outcome = bench.call(&["check", "demo.pb.gz", "--limits", "limits.toml"]);
    assert!(outcome.expect(3).output.contains("12.00 allocs/iter, at most 11.99 allowed"), "{outcome:#?}");
    assert!(outcome.output.contains("limits.toml:2"), "{outcome:#?}");
    bench.sandbox.write("limits.toml", "[window.parse]\nallocs = 12\n", 0o644);
    bench.call(&["check", "demo.pb.gz", "--limits", "limits.toml"]).expect(0);
}

fn grow(bench: &Bench) {
    // Some stacks grow by a little more than all of them together.
    let of = |grow| check(bench, &["--per-stack", "off", "--grow", grow]).code;
    assert_eq!(
        (of("0"), of("33%"), of("32.99%"), of("3.96"), of("3.95")),
        (Some(3), Some(0), Some(3), Some(0), Some(3))
    );
    check(bench, &["--grow", "much"]).expect(2);
}

fn per_stack(bench: &Bench) {
    let of = |what| check(bench, &["--grow", "33%", "--per-stack", what]);
    of("fail").expect(3);
    assert!(of("warn").expect(0).output.contains("warning"));
    assert!(!of("off").expect(0).output.contains("grew"));
}

fn unstable(bench: &Bench) {
    check(bench, &[]);
    let words = ["check", "--baseline", "base.pb.gz", "change.pb.gz", "base.pb.gz"];
    bench.call(&words).expect(0);
    bench.call(&[&words[..], &["--unstable"]].concat()).expect(3);
}

fn max_lost(bench: &Bench) {
    same_but(bench, |profile| profile.losses.table_full = 10);
    assert!(check(bench, &[]).expect(4).output.contains("10 allocations were lost"));
    check(bench, &["--max-lost", "1"]).expect(0);
}

fn max_cut(bench: &Bench) {
    same_but(bench, |profile| profile.stacks.iter_mut().for_each(|stack| stack.capture = Capture::Cut));
    assert!(check(bench, &[]).expect(4).output.contains("a cut stack"));
    check(bench, &["--max-cut", "100"]).expect(0);
    check(bench, &["--max-cut", "101"]).expect(2);
}

fn same_environment(bench: &Bench) {
    same_but(bench, |profile| profile.environment.compilers = vec!["rustc 9.9".into()]);
    assert!(check(bench, &[]).expect(0).output.contains("rustc 9.9 in the change"));
    assert!(check(bench, &["--same-environment"]).expect(4).output.contains("rustc 9.9 in the change"));
}

fn accept_failed(bench: &Bench) {
    same_but(bench, |profile| profile.environment.exit_code = Some(7));
    assert!(check(bench, &[]).expect(4).output.contains("ended with 7"));
    check(bench, &["--accept-failed"]).expect(0);
}

fn accept_incomplete(bench: &Bench) {
    let warning = "coverage is incomplete: libx.so calls another allocator";
    same_but(bench, |profile| profile.images[0].warnings.push(warning.into()));
    assert!(check(bench, &[]).expect(4).output.contains(&format!("{warning}: --accept-incomplete")));
    assert!(check(bench, &["--accept-incomplete"]).expect(0).output.contains(warning));
}

fn strict(bench: &Bench) {
    same_but(bench, |profile| profile.windows[1].name = "other".into());
    let outcome = check(bench, &[]);
    assert!(outcome.expect(0).output.contains("is new"), "{outcome:#?}");
    assert!(check(bench, &["--strict"]).expect(4).output.starts_with("FAILED, since --strict"));
}

fn exit_on_improvement(bench: &Bench) {
    check(bench, &[]);
    let words = ["check", "base.pb.gz", "--baseline", "change.pb.gz"];
    assert!(bench.call(&words).expect(0).output.contains("improved"));
    bench.call(&[&words[..], &["--exit-on-improvement"]].concat()).expect(5);
    check(bench, &["--exit-on-improvement"]).expect(3);
}

fn fold_recursion(bench: &Bench) {
    same_but(bench, |profile| {
        for stack in &mut profile.stacks {
            let last = stack.locations.len() - 4;
            let again = stack.locations[last];
            stack.locations.insert(last, again);
        }
    });
    // Either way they are paired; folded they are equal.
    check(bench, &["--fold-recursion"]).expect(0);
    check(bench, &["--fold-recursion", "--strict"]).expect(0);
}

fn fold_generics(bench: &Bench) {
    check(bench, &[]);
    for (file, argument) in [("base.pb.gz", "<u8>"), ("change.pb.gz", "<u16>")] {
        fs::copy(bench.sandbox.work("demo.pb.gz"), bench.sandbox.work(file)).unwrap();
        edit(bench, file, |profile| {
            let functions = profile.functions.iter_mut();
            for function in functions.filter(|function| function.name.ends_with("demo::insert")) {
                function.name.push_str(argument);
            }
        });
    }
    let warns = |options: &[&str]| check(bench, options).expect(0).output.contains("renamed");
    assert_eq!((warns(&[]), warns(&["--fold-generics"])), (true, false));
}

fn window(bench: &Bench) {
    check(bench, &["--window", "parse"]).expect(3);
    check(bench, &["--window", "look up"]).expect(0);
    check(bench, &["--window", "nowhere"]).expect(4).says(&["no window `nowhere`"]);
}

fn under(bench: &Bench) {
    check(bench, &["--under", "demo::parse$"]).expect(3);
    check(bench, &["--under", "demo::describe"]).expect(0);
}

fn filter(bench: &Bench) {
    check(bench, &["--filter", "demo::insert"]).expect(3);
    check(bench, &["--filter", "demo::describe"]).expect(0);
}

fn exclude(bench: &Bench) {
    check(bench, &["--exclude", "demo::insert"]).expect(0);
    check(bench, &["--exclude", "demo::describe"]).expect(3);
}

fn root(bench: &Bench) {
    check(bench, &["--root", "main"]).expect(3);
    let nowhere = check(bench, &["--root", "nowhere"]);
    assert!(nowhere.expect(4).output.starts_with("NOT MEASURED: no stack fits"), "{nowhere:#?}");
}

fn rules(bench: &Bench) {
    bench.sandbox.write("rules.txt", "[function]\n*demo::insert\n", 0o644);
    let first = |options: &[&str]| check(bench, options).expect(3).output.lines().next().unwrap().to_owned();
    assert!(first(&[]).contains("demo::insert"));
    assert!(first(&["--rules", "rules.txt"]).contains("demo::parse"));
}

fn format(bench: &Bench) {
    let of = |form| check(bench, &["--format", form]).expect(3).output.clone();
    assert_eq!(of("text"), check(bench, &[]).output);
    assert_eq!(of("json"), check(bench, &["--json"]).output);
    assert!(of("markdown").starts_with("**heaptally:** `FAILED"));
    assert!(of("github").starts_with("::error "));
    for (form, pointer) in [
        ("sarif", "/runs/0/results/0/ruleId"),
        ("gitlab", "/0/fingerprint"),
        ("bencher", "/parse/allocations-per-iteration/value"),
        ("benchmark-action", "/0/value"),
    ] {
        let value: Value = serde_json::from_str(&of(form)).unwrap();
        assert!(value.pointer(pointer).is_some(), "{form}: {value}");
    }
}

fn json(bench: &Bench) {
    let report = json_of(check(bench, &["--json"]).expect(3));
    assert_eq!((&report["schema"], &report["outcome"]), (&"heaptally-check".into(), &"regression".into()));
    assert_eq!(report["findings"][0]["measured"]["average"], 15.96);
    assert!(serde_json::from_str::<Value>(&check(bench, &[]).output).is_err());
}

fn write_forms(bench: &Bench) {
    check(bench, &["--write", "sarif=a.sarif", "--write", "json=b.json"]).expect(3);
    let read = |name| fs::read_to_string(bench.sandbox.work(name)).unwrap();
    assert_eq!(read("a.sarif"), check(bench, &["--format", "sarif"]).output);
    assert_eq!(read("b.json"), check(bench, &["--json"]).output);
    check(bench, &["--write", "sarif"]).expect(2);
    check(bench, &["--write", "json=/no/folder/b.json"]).expect(4).says(&["/no/folder/b.json"]);
}

fn report(bench: &Bench) {
    check(bench, &["--report", "whole.txt"]).expect(3);
    let whole = fs::read_to_string(bench.sandbox.work("whole.txt")).unwrap();
    assert_eq!(whole, check(bench, &[]).output);
    assert!(!bench.sandbox.work("heaptally-check.txt").exists(), "it is not long");
    let long = check(bench, &["--full", "--report", "whole.txt"]).output;
    let whole = fs::read_to_string(bench.sandbox.work("whole.txt")).unwrap();
    assert!(long.lines().count() <= 40 && whole.lines().count() > 40, "{long}");
    assert!(long.contains("more lines: whole.txt"), "{long}");
}

fn full(bench: &Bench) {
    assert!(!check(bench, &[]).output.contains("_start"));
    check(bench, &["--full", "--report", "whole.txt"]).expect(3);
    assert!(fs::read_to_string(bench.sandbox.work("whole.txt")).unwrap().contains("_start"));
}

fn width(bench: &Bench) {
    let widest = |options: &[&str]| {
        let text = check(bench, options).output;
        text.lines()
            .filter(|line| line.contains("calls alloc::"))
            .map(|line| line.chars().count())
            .max()
            .unwrap()
    };
    assert!(widest(&["--width", "60"]) <= 60);
    assert!(widest(&[]) > 60);
}

/// Records with these options, and holds it against the program's own profile.
fn record(bench: &Bench, options: &[&str], program: &str) -> Outcome {
    bench.profile();
    let words = [&["check", "--baseline", "demo.pb.gz"], options, &["--", program]].concat();
    bench.call(&words)
}

fn repeat(bench: &Bench) {
    let demo = bench.demo();
    record(bench, &["--repeat", "2"], &demo).expect(0).says(&["2 runs: "]);
    check(bench, &["--repeat", "2"]).expect(2);
}

fn follow_children(bench: &Bench) {
    let demo = bench.demo();
    let script = bench.sandbox.write("script", format!("#!/bin/sh\n{demo}\n"), 0o755);
    let script = script.to_str().unwrap();
    assert!(record(bench, &[], script).output.contains("in the base only"));
    assert!(!record(bench, &["--follow-children"], script).output.contains("in the base only"));
}

fn window_at(bench: &Bench) {
    let demo = bench.demo();
    record(bench, &["--window-at", "no_such..thing"], &demo).expect(4).says(&["no_such"]);
    let at = ["--window-at", "parse=heaptally_demo::parse .. heaptally_demo::describe"];
    assert!(record(bench, &at, &demo).output.contains("window \"parse\""));
}

fn window_pause(bench: &Bench) {
    record(bench, &["--window-pause", "w=parse"], &bench.demo()).expect(4).says(&["--window-at"]);
}

fn window_resume(bench: &Bench) {
    record(bench, &["--window-resume", "w=parse"], &bench.demo()).expect(4).says(&["--window-at"]);
}

fn window_restart(bench: &Bench) {
    record(bench, &["--window-restart", "w"], &bench.demo()).expect(4).says(&["no window of that name"]);
}

fn window_harness(bench: &Bench) {
    record(bench, &["--window-harness", "w=parse"], &bench.demo())
        .expect(4)
        .says(&["no window of that name"]);
}

fn harness(bench: &Bench) {
    let demo = bench.demo();
    record(bench, &["--harness", "none"], &demo).expect(0);
    let missing = record(bench, &["--harness", "google-benchmark"], &demo);
    missing.expect(4).says(&["could not be made windows", "StartKeepRunning"]);
}

fn window_in(bench: &Bench) {
    let demo = bench.demo();
    record(bench, &["--window-in", "no_such_thing"], &demo).expect(4).says(&["no_such_thing"]);
    assert!(
        record(bench, &["--window-in", "parse=heaptally_demo::parse"], &demo)
            .output
            .contains("window \"parse\"")
    );
}

fn no_lifetimes(bench: &Bench) {
    let demo = bench.demo();
    let says = |options: &[&str]| record(bench, options, &demo).expect(0).output.contains("not followed");
    assert_eq!((says(&["--no-lifetimes"]), says(&[])), (true, false));
}

fn task_origins(bench: &Bench) {
    let demo = bench.demo();
    let says = |options: &[&str]| record(bench, options, &demo).expect(0).output.contains("--task-origins");
    assert_eq!((says(&["--task-origins"]), says(&[])), (true, false));
}

fn segment_dir(bench: &Bench) {
    let demo = bench.demo();
    record(bench, &["--segment-dir", "."], &demo).expect(0);
    record(bench, &["--segment-dir", "/no/folder"], &demo).expect(4).says(&["/no/folder"]);
}

fn output(bench: &Bench) {
    let demo = bench.demo();
    record(bench, &["-o", "new.pb.gz"], &demo).expect(0);
    bench.call(&["check", "new.pb.gz", "--baseline", "demo.pb.gz"]).expect(0);
    record(bench, &["-o", "/no/folder/new.pb.gz"], &demo).expect(4);
}

fn save_baseline(bench: &Bench) {
    let demo = bench.demo();
    record(bench, &["--save-baseline", "main"], &demo).expect(0).says(&["saved as the baseline `main`"]);
    bench.call(&["check", "--baseline", "main", "--", &demo]).expect(0);
    check(bench, &["--save-baseline", "main"]).expect(2).says(&["for a program behind --"]);
    record(bench, &["--save-baseline", "a/b"], &demo).expect(2).says(&["cannot be the name"]);
    record(bench, &["--save-baseline", "main", "--self-test"], &demo).expect(2);
}

fn self_test(bench: &Bench) {
    check(bench, &[]).expect(3);
    check(bench, &["--self-test"]).expect(0).says(&["self-test passed", "2 windows"]);
    bench.sandbox.write("soft.toml", "[window.\"*\"]\nallocs = { soft_max = 1 }\n", 0o644);
    let words = ["check", "base.pb.gz", "--limits", "soft.toml", "--self-test"];
    bench.call(&words).expect(4).says(&["self-test failed", "nothing guards"]);
}
