//! `doctor`.

use serde_json::Value;

use super::{Bench, Row};

pub(super) const ROWS: &[Row] = &[
    Row { command: "doctor", option: "PROGRAM", check: program },
    Row { command: "doctor", option: "--json", check: json },
];

fn program(bench: &Bench) {
    assert!(!bench.call(&["doctor"]).output.contains("`true`"));
    assert!(bench.call(&["doctor", "true"]).output.contains("`true`"));
    bench.call(&["doctor", "no-such-program-anywhere"]).expect(4);
}

fn json(bench: &Bench) {
    let findings = bench.call(&["doctor", "--json"]).output;
    assert!(serde_json::from_str::<Value>(&findings).unwrap().is_object());
    assert!(serde_json::from_str::<Value>(&bench.call(&["doctor"]).output).is_err());
}
