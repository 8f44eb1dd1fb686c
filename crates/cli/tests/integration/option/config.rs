//! `config`.

use super::{Bench, Row};

pub(super) const ROWS: &[Row] = &[Row { command: "config show", option: "--json", check: json }];

fn json(bench: &Bench) {
    assert!(bench.output(&["config", "show"]).starts_with("file: none\n"));
    let shown: serde_json::Value =
        serde_json::from_str(&bench.output(&["config", "show", "--json"])).unwrap();
    assert_eq!((&shown["schema"], &shown["version"]), (&"heaptally-config".into(), &1.into()));
}
