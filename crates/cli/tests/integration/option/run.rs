//! `run`.

use std::fs;

use super::{Bench, Row};
use crate::elf_copy;
use crate::sandbox::entries;

pub(super) const ROWS: &[Row] = &[
    Row { command: "run", option: "--output", check: output },
    Row { command: "run", option: "--save-baseline", check: save_baseline },
    Row { command: "run", option: "--window", check: window },
    Row { command: "run", option: "--window-at", check: window_at },
    Row { command: "run", option: "--window-in", check: window_in },
    Row { command: "run", option: "--window-pause", check: window_pause },
    Row { command: "run", option: "--window-resume", check: window_resume },
    Row { command: "run", option: "--window-restart", check: window_restart },
    Row { command: "run", option: "--window-harness", check: window_harness },
    Row { command: "run", option: "--harness", check: harness },
    Row { command: "run", option: "--repeat", check: repeat },
    Row { command: "run", option: "--follow-children", check: follow_children },
    Row { command: "run", option: "--strict", check: strict },
    Row { command: "run", option: "--no-lifetimes", check: no_lifetimes },
    Row { command: "run", option: "--task-origins", check: task_origins },
    Row { command: "run", option: "--json-status", check: json_status },
    Row { command: "run", option: "--segment-dir", check: segment_dir },
    Row { command: "run", option: "--quiet", check: quiet },
    Row { command: "run", option: "PROGRAM", check: program },
];

fn output(bench: &Bench) {
    bench.output(&["run", "--output", "long.pb.gz", "true"]);
    bench.output(&["run", "-o", "short.pb.gz", "true"]);
    let work = |name| bench.sandbox.work(name);
    assert_eq!(entries(&work("")), [work("long.pb.gz"), work("short.pb.gz")]);
    bench.output(&["run", "true"]);
    assert!(work("true.pb.gz").is_file());
}

fn save_baseline(bench: &Bench) {
    bench.output(&["run", "true"]);
    assert_eq!(bench.output(&["baseline", "list"]).lines().count(), 1);
    bench.output(&["run", "--save-baseline", "main", "true"]);
    assert!(bench.output(&["baseline", "list"]).contains("\n  main  "));
    bench.output(&["diff", "main", "true.pb.gz"]);
}

fn window(bench: &Bench) {
    let demo = bench.demo();
    let windows = |profile| {
        let report = bench.sandbox.json(profile);
        let windows = report["windows"].as_array().unwrap();
        windows.iter().map(|window| window["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    bench.output(&["run", "-o", "all.pb.gz", &demo]);
    assert_eq!(windows("all.pb.gz"), ["process", "parse", "look up"]);
    bench.output(&["run", "-o", "one.pb.gz", "--window", "look up", &demo]);
    assert_eq!(windows("one.pb.gz"), ["look up"]);
    bench.output(&["run", "-o", "two.pb.gz", "--window", "look up", "--window", "parse", &demo]);
    assert_eq!(windows("two.pb.gz").len(), 2);
}

fn window_at(bench: &Bench) {
    let demo = bench.demo();
    let at = "asked=heaptally_demo::parse .. heaptally_demo::describe";
    bench.output(&["run", "-o", "at.pb.gz", "--window-at", at, &demo]);
    let report = bench.sandbox.json("at.pb.gz");
    assert_eq!(report["windows"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["windows"][0]["name"], "asked");
    bench.call(&["run", "--window-at", "one", "true"]).expect(125).says(&["BEGIN..END"]);
}

/// How many allocations the window between two functions of the demo has.
fn paused(bench: &Bench, options: &[&str]) -> u64 {
    let demo = bench.demo();
    let at =
        ["run", "-o", "paused.pb.gz", "--window-at", "w=heaptally_demo::parse .. heaptally_demo::describe"];
    bench.output(&[&at[..], options, &[&demo]].concat());
    bench.sandbox.json("paused.pb.gz")["windows"][0]["counts"]["allocations"].as_u64().unwrap()
}

fn window_pause(bench: &Bench) {
    assert!(paused(bench, &[]) > 0);
    assert_eq!(paused(bench, &["--window-pause", "w=heaptally_demo::parse"]), 0);
    bench.call(&["run", "--window-pause", "parse", "true"]).expect(125).says(&["NAME=FUNCTION"]);
    bench.call(&["run", "--window-pause", "w=parse", "true"]).expect(125).says(&["--window-at"]);
}

fn window_resume(bench: &Bench) {
    let demo = bench.demo();
    let at = ["run", "--window-at", "w=heaptally_demo::parse .. heaptally_demo::describe"];
    let call = bench.call(&[&at[..], &["--window-resume", "w=heaptally_demo::parse", &demo]].concat());
    call.expect(0).says(&["not paused"]);
    bench.call(&["run", "--window-resume", "w=parse", "true"]).expect(125).says(&["--window-at"]);
}

fn window_restart(bench: &Bench) {
    let demo = bench.demo();
    // The demo never closes it: all but the last entry are discarded.
    let at = "w=heaptally_demo::parse .. heaptally_demo::demo";
    let options = ["run", "-o", "restart.pb.gz", "--window-at", at, "--window-restart", "w"];
    bench.call(&[&options[..], &[&demo]].concat());
    let report = bench.sandbox.json("restart.pb.gz");
    assert_eq!(
        (&report["windows"][0]["entries"], &report["windows"][0]["discarded_entries"]),
        (&1.into(), &99.into())
    );
    bench.call(&["run", "--window-restart", "w", "true"]).expect(125).says(&["no window of that name"]);
}

fn harness(bench: &Bench) {
    let demo = bench.demo();
    for choice in ["auto", "none"] {
        bench.output(&["run", "--harness", choice, &demo]);
    }
    let missing = bench.call(&["run", "--harness", "google-benchmark", &demo]);
    missing.expect(125).says(&["could not be made windows", "StartKeepRunning", "--window-in BM_name"]);
    bench.call(&["run", "--harness", "other", "true"]).expect(125).says(&["auto, none, google-benchmark"]);
}

fn window_harness(bench: &Bench) {
    let demo = bench.demo();
    let options = ["run", "-o", "harness.pb.gz", "--window", "parse", "--window-harness"];
    bench.output(&[&options[..], &["parse=heaptally_demo::insert", &demo]].concat());
    let report = bench.sandbox.json("harness.pb.gz");
    let windows = report["windows"].as_array().into_iter().flatten();
    let kinds: Vec<(&str, &str)> =
        windows.filter_map(|window| window["name"].as_str().zip(window["kind"].as_str())).collect();
    assert_eq!(kinds, [("parse", "process"), ("parse (harness)", "harness")]);
    bench.call(&["run", "--window-harness", "w", "true"]).expect(125).says(&["NAME=FUNCTION"]);
}

fn window_in(bench: &Bench) {
    let demo = bench.demo();
    bench.output(&["run", "-o", "in.pb.gz", "--window-in", "asked=heaptally_demo::describe", &demo]);
    let report = bench.sandbox.json("in.pb.gz");
    assert_eq!(report["windows"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&report["windows"][0]["name"], &report["windows"][0]["kind"]),
        (&"asked".into(), &"function".into())
    );
    bench.call(&["run", "--window-in", "re:(", "true"]).expect(125).says(&["regex"]);
}

fn follow_children(bench: &Bench) {
    let children = |options: &[&str]| {
        let script = ["sh", "-c", "true; /bin/true; /bin/true"];
        let options = options.iter().chain(&["-o", "sh.pb.gz"]).copied();
        bench.output(&["run"].into_iter().chain(options).chain(script).collect::<Vec<_>>());
        bench.sandbox.json("sh.pb.gz")["children"].clone()
    };
    let counted = children(&[]);
    assert_eq!(counted["not_recorded"][0]["program"], "true");
    assert_eq!((&counted["not_recorded"][0]["count"], &counted["recorded"]), (&2.into(), &0.into()));
    let recorded = children(&["--follow-children"]);
    assert_eq!((&recorded["not_recorded"], &recorded["recorded"]), (&serde_json::json!([]), &2.into()));
    let files = entries(&bench.sandbox.work(""));
    assert_eq!(files.len(), 4, "one of all, and one of each process: {files:?}");
}

fn repeat(bench: &Bench) {
    assert_eq!(bench.output(&["run", "echo", "word"]), "word\n");
    assert_eq!(bench.output(&["run", "--repeat", "2", "echo", "word"]), "word\nword\n");
}

fn strict(bench: &Bench) {
    let by_passing = bench.sandbox.write("by-passing", elf_copy::with_symbol("_rjem_malloc"), 0o755);
    let by_passing = by_passing.to_str().unwrap();
    bench.call(&["run", by_passing]).expect(0).says(&["jemalloc"]);
    bench.call(&["run", "--strict", by_passing]).expect(125).says(&["--strict"]);
    bench.call(&["run", "--strict", "true"]).expect(0);
}

fn no_lifetimes(bench: &Bench) {
    let demo = bench.demo();
    let freed = |profile| bench.sandbox.json(profile)["windows"][1]["counts"]["freed"].as_u64();
    let allocations = |profile| bench.sandbox.json(profile)["windows"][1]["counts"]["allocations"].clone();
    bench.output(&["run", "-o", "with.pb.gz", &demo]);
    bench.output(&["run", "-o", "without.pb.gz", "--no-lifetimes", &demo]);
    assert!(freed("with.pb.gz").unwrap() > 0);
    assert_eq!(freed("without.pb.gz").unwrap_or(0), 0);
    assert_eq!(allocations("with.pb.gz"), allocations("without.pb.gz"));
}

fn task_origins(bench: &Bench) {
    let demo = bench.demo();
    bench.output(&["run", "-o", "without.pb.gz", &demo]);
    bench.output(&["run", "-o", "with.pb.gz", "--task-origins", &demo]);
    let told = |profile| bench.sandbox.json(profile)["environment"]["task_origins"].clone();
    assert_eq!(told("with.pb.gz"), true);
    assert!(told("without.pb.gz").is_null());
    let allocations = |profile| bench.sandbox.json(profile)["windows"][1]["counts"]["allocations"].clone();
    assert_eq!(allocations("with.pb.gz"), allocations("without.pb.gz"));
}

fn json_status(bench: &Bench) {
    bench.output(&["run", "true"]);
    assert!(!bench.sandbox.work("status.json").exists());
    bench.output(&["run", "--json-status", "status.json", "true"]);
    let status = fs::read(bench.sandbox.work("status.json")).unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    assert_eq!(status["schema"], "heaptally-status");
}

fn segment_dir(bench: &Bench) {
    let folder = bench.sandbox.work("segments");
    fs::create_dir(&folder).unwrap();
    assert_eq!(bench.output(&["run", "--", "ls", "segments"]), "");
    let seen = bench.output(&["run", "--segment-dir", "segments", "--", "ls", "segments"]);
    assert!(seen.starts_with("heaptally-"), "{seen}");
    assert!(entries(&folder).is_empty(), "the segment was left behind");
}

fn quiet(bench: &Bench) {
    assert!(!bench.call(&["run", "true"]).expect(0).errors.is_empty());
    for option in ["-q", "--quiet"] {
        assert_eq!(bench.call(&["run", option, "true"]).expect(0).errors, "");
    }
}

fn program(bench: &Bench) {
    bench.call(&["run"]).expect(125);
    assert_eq!(bench.output(&["run", "echo", "-q", "--", "word"]), "-q -- word\n");
}
