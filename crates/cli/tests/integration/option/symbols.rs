//! `symbols`.

use serde_json::Value;

use super::{Bench, Row};
use crate::doctor::schema;

pub(super) const ROWS: &[Row] = &[
    Row { command: "symbols", option: "PROGRAM", check: program },
    Row { command: "symbols", option: "PATTERN", check: pattern },
    Row { command: "symbols", option: "--json", check: json },
];

fn program(bench: &Bench) {
    assert!(bench.output(&["symbols", &bench.demo()]).contains("heaptally_demo::parse"));
    bench.call(&["symbols", "no-such-program-anywhere"]).expect(4);
    // Of a script the program is meant that runs it, as it is recorded.
    let script = bench.sandbox.path("script");
    std::fs::write(&script, format!("#!{}\n", bench.demo())).unwrap();
    let script = script.to_str().unwrap();
    assert!(bench.output(&["symbols", script]).contains("heaptally_demo::parse"));
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
    let all = bench.output(&["symbols", "--json", &bench.demo(), "*"]);
    for listed in [&found, &serde_json::from_str(&all).unwrap()] {
        let schema = include_str!("../../../schema/symbols.v1.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let (mut errors, mut names) = (Vec::new(), Vec::new());
        schema::check(&schema, &schema, listed, "", &mut errors);
        schema::undescribed(&schema, &schema, listed, "", &mut names);
        assert_eq!((errors, names), (vec![], vec![]));
    }
    let function = &found["functions"][0];
    assert_eq!(function["patchable"], true, "{function}");
    assert!(
        function["file"].as_str().unwrap().ends_with("main.rs") && function["line"].as_u64().unwrap() > 0
    );
}
