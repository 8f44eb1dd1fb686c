//! `report`.
//!
//! The profile is the demonstration's: in its window `parse` the function `insert` allocates 1,200 times, by way of
//! `parse`, in `look up` the function `describe` 300 times.

use serde_json::Value;

use super::{Bench, Row};

pub(super) const ROWS: &[Row] = &[
    Row { command: "report", option: "FILE", check: file },
    Row { command: "report", option: "--window", check: window },
    Row { command: "report", option: "--under", check: under },
    Row { command: "report", option: "--filter", check: filter },
    Row { command: "report", option: "--exclude", check: exclude },
    Row { command: "report", option: "--root", check: root },
    Row { command: "report", option: "--rules", check: rules },
    Row { command: "report", option: "--sort", check: sort },
    Row { command: "report", option: "--by", check: by },
    Row { command: "report", option: "--tree", check: tree },
    Row { command: "report", option: "--limit", check: limit },
    Row { command: "report", option: "--min", check: min },
    Row { command: "report", option: "--full", check: full },
    Row { command: "report", option: "--width", check: width },
    Row { command: "report", option: "--format", check: format },
    Row { command: "report", option: "--json", check: json },
    Row { command: "report", option: "--strict", check: strict },
];

/// Reports the profile with these options.
#[track_caller]
fn report(bench: &Bench, options: &[&str]) -> String {
    let profile = if bench.sandbox.work("demo.pb.gz").exists() { "demo.pb.gz" } else { bench.profile() };
    let words: Vec<&str> = ["report"].iter().chain(options).chain([&profile]).copied().collect();
    bench.output(&words)
}

/// The allocations of `parse` and of `look up`.
#[track_caller]
fn allocations(bench: &Bench, options: &[&str]) -> [u64; 2] {
    let words: Vec<&str> = ["--json"].iter().chain(options).copied().collect();
    let report: Value = serde_json::from_str(&report(bench, &words)).unwrap();
    let windows = report["windows"].as_array().unwrap();
    ["parse", "look up"].map(|name| {
        let window = windows.iter().find(|window| window["name"] == name).unwrap();
        window["counts"]["allocations"].as_u64().unwrap()
    })
}

const ALL: [u64; 2] = [1200, 300];

fn file(bench: &Bench) {
    bench.output(&["run", "-o", "true.pb.gz", "true"]);
    assert!(report(bench, &[]).contains("\"parse\""));
    assert!(!bench.output(&["report", "true.pb.gz"]).contains("\"parse\""));
    bench.call(&["report"]).expect(2);
}

fn window(bench: &Bench) {
    let all = report(bench, &[]);
    let one = report(bench, &["--window", "look up"]);
    assert!(all.contains("\"parse\"") && all.contains("\"look up\""), "{all}");
    assert!(!one.contains("\"parse\"") && one.contains("\"look up\""), "{one}");
}

fn under(bench: &Bench) {
    assert_eq!(allocations(bench, &[]), ALL);
    assert_eq!(allocations(bench, &["--under", "demo::parse$"]), [ALL[0], 0]);
    assert_eq!(allocations(bench, &["--under", "demo::parse$", "--under", "describe"]), ALL);
    // Callers are cut off.
    assert!(report(bench, &["--full"]).contains("heaptally_demo::main"));
    assert!(!report(bench, &["--full", "--under", "demo::parse$"]).contains("heaptally_demo::main"));
}

fn filter(bench: &Bench) {
    assert_eq!(allocations(bench, &["--filter", "describe"]), [0, ALL[1]]);
    assert!(report(bench, &["--full", "--filter", "describe"]).contains("heaptally_demo::main"));
}

fn exclude(bench: &Bench) {
    assert_eq!(allocations(bench, &["--exclude", "describe"]), [ALL[0], 0]);
}

fn root(bench: &Bench) {
    assert_eq!(allocations(bench, &["--root", "main"]), ALL);
    assert_eq!(allocations(bench, &["--root", "nowhere"]), [0, 0]);
}

fn rules(bench: &Bench) {
    bench.sandbox.write("rules.txt", "[function]\n*demo::insert\n", 0o644);
    // A call site's place stands behind its name.
    let [of_insert, of_parse] = ["demo::insert  ", "demo::parse  "];
    let without = report(bench, &["--by", "site"]);
    assert!(without.contains(of_insert) && !without.contains(of_parse), "{without}");
    let with = report(bench, &["--by", "site", "--rules", "rules.txt"]);
    assert!(!with.contains(of_insert) && with.contains(of_parse), "{with}");
}

fn sort(bench: &Bench) {
    // The stack with one allocation of 544 bytes is the last by count.
    let largest_is_first = |options: &[&str]| {
        let report = report(bench, options);
        report.find(" 544 ").unwrap() < report.find(" 288 ").unwrap()
    };
    assert!(!largest_is_first(&["--window", "parse"]));
    assert!(!largest_is_first(&["--window", "parse", "--sort", "count"]));
    assert!(largest_is_first(&["--window", "parse", "--sort", "bytes"]));
    for by in ["live", "temporary"] {
        assert_ne!(report(bench, &["--sort", by]), report(bench, &[]), "{by}");
    }
}

fn by(bench: &Bench) {
    let [stack, site, function] = ["stack", "site", "function"].map(|by| report(bench, &["--by", by]));
    assert_eq!(stack, report(bench, &[]));
    // All of a window's stacks have one call site.
    assert!(site.lines().count() < stack.lines().count(), "{site}");
    assert!(function.contains("with callees") && !site.contains("with callees"), "{function}");
}

fn tree(bench: &Bench) {
    let tree = report(bench, &["--tree"]);
    assert_eq!(report(bench, &["--tree=top-down"]), tree);
    let is_before = |text: &str, first, second| text.find(first).unwrap() < text.find(second).unwrap();
    assert!(is_before(&tree, "demo::parse", "demo::insert"), "{tree}");
    let bottom_up = report(bench, &["--tree=bottom-up"]);
    assert!(is_before(&bottom_up, "demo::insert", "demo::parse"), "{bottom_up}");
    assert!(!report(bench, &[]).contains('→'));
}

fn limit(bench: &Bench) {
    let lens = ["1", "2", "0"].map(|limit| report(bench, &["--limit", limit]).len());
    assert!(lens.is_sorted_by(|one, next| one < next), "{lens:?}");
    assert_eq!(report(bench, &["--limit", "20"]), report(bench, &[]));
}

fn min(bench: &Bench) {
    let lens =
        ["0", "2", "100"].map(|min| report(bench, &["--window", "parse", "--min", min]).lines().count());
    assert!(lens.is_sorted_by(|one, next| one > next), "{lens:?}");
}

fn full(bench: &Bench) {
    assert!(!report(bench, &[]).contains("_start"));
    assert!(report(bench, &["--full"]).contains("_start"));
}

fn width(bench: &Bench) {
    let widest = |options: &[&str]| {
        let report = report(bench, options);
        let frames = report.lines().filter(|line| line.contains("alloc::"));
        frames.map(|line| line.chars().count()).max().unwrap()
    };
    assert!(widest(&["--full"]) > 100);
    assert!(widest(&["--full", "--width", "80"]) <= 80);
    assert_eq!(report(bench, &["--width", "0"]), report(bench, &[]));
}

fn format(bench: &Bench) {
    let [text, json, folded, csv] =
        ["text", "json", "folded", "csv"].map(|form| report(bench, &["--format", form]));
    assert_eq!(text, report(bench, &[]));
    assert_eq!(json, report(bench, &["--json"]));
    let has_count = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().is_ok();
    assert!(folded.lines().count() > 0 && folded.lines().all(has_count), "{folded}");
    let columns = csv.lines().next().unwrap().matches(',').count();
    assert!(columns > 1 && csv.lines().count() > 7, "{csv}");
}

fn json(bench: &Bench) {
    let json = report(bench, &["--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["schema"], "heaptally-report");
    assert!(serde_json::from_str::<Value>(&report(bench, &[])).is_err());
}

fn strict(bench: &Bench) {
    report(bench, &["--strict"]);
    let incomplete = bench.incomplete_profile();
    bench.call(&["report", incomplete]).expect(0);
    bench.call(&["report", "--strict", incomplete]).expect(4).says(&["--strict"]);
}
