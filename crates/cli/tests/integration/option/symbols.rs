//! `symbols`.

use serde_json::Value;

use super::{Bench, Row};

pub(super) const ROWS: &[Row] = &[
    Row { command: "symbols", option: "PROGRAM", check: program },
    Row { command: "symbols", option: "PATTERN", check: pattern },
    Row { command: "symbols", option: "--json", check: json },
];

fn program(bench: &Bench) {
    assert!(bench.output(&["symbols", &bench.demo()]).contains("heaptally_demo::parse"));
    bench.call(&["symbols", "no-such-program-anywhere"]).expect(4);
}

fn pattern(bench: &Bench) {
    let demo = bench.demo();
    let all = bench.output(&["symbols", &demo]).lines().count();
    let some = bench.output(&["symbols", &demo, "heaptally_demo::main"]);
    assert!(some.contains("heaptally_demo::main") && some.lines().count() < all, "{some}");
    bench
        .call(&["symbols", &demo, "heaptally_demo::mian"])
        .expect(4)
        .says(&["near it", "heaptally_demo::main"]);
    bench.call(&["symbols", &demo, "re:("]).expect(2);
}

fn json(bench: &Bench) {
    let found = bench.output(&["symbols", "--json", &bench.demo(), "heaptally_demo::main"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["schema"], "heaptally-symbols");
    let function = &found["functions"][0];
    assert_eq!(function["patchable"], true, "{function}");
    assert!(
        function["file"].as_str().unwrap().ends_with("main.rs") && function["line"].as_u64().unwrap() > 0
    );
}
