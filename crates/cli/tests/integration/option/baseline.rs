//! `baseline`.

use serde_json::Value;

use super::{Bench, Row};

pub(super) const ROWS: &[Row] = &[
    Row { command: "baseline list", option: "--json", check: list_json },
    Row { command: "baseline show", option: "NAME", check: show_name },
    Row { command: "baseline show", option: "--json", check: show_json },
    Row { command: "baseline keep", option: "NAME", check: keep },
    Row { command: "baseline delete", option: "NAME", check: delete },
];

fn save(bench: &Bench, names: &[&str]) {
    for name in names {
        bench.output(&["run", "--save-baseline", name, "true"]);
    }
}

fn json(bench: &Bench, words: &[&str]) -> Value {
    serde_json::from_str(&bench.output(words)).unwrap()
}

fn list_json(bench: &Bench) {
    save(bench, &["b", "a"]);
    assert!(bench.output(&["baseline", "list"]).starts_with("2 baselines in "));
    let list = json(bench, &["baseline", "list", "--json"]);
    assert_eq!((&list["schema"], &list["version"]), (&"heaptally-baselines".into(), &1.into()));
    assert_eq!((&list["baselines"][0]["name"], &list["baselines"][1]["name"]), (&"a".into(), &"b".into()));
    assert_eq!(list["baselines"][0]["state"]["kind"], "fresh");
}

fn show_name(bench: &Bench) {
    save(bench, &["main"]);
    let shown = bench.output(&["baseline", "show", "main"]);
    for word in ["command       true", "C library     glibc", "window        \"process\""] {
        assert!(shown.contains(word), "{shown}");
    }
    bench.call(&["baseline", "show", "other"]).expect(4).says(&["`main`"]);
    bench.call(&["baseline", "show", "a/b"]).expect(2);
    bench.call(&["baseline", "show"]).expect(2);
}

fn show_json(bench: &Bench) {
    save(bench, &["main"]);
    let shown = json(bench, &["baseline", "show", "--json", "main"]);
    assert_eq!((&shown["schema"], &shown["name"]), (&"heaptally-baseline".into(), &"main".into()));
    assert_eq!(shown["environment"]["command"][0], "true");
}

fn keep(bench: &Bench) {
    save(bench, &["main"]);
    bench.call(&["run", "--save-baseline", "main", "false"]).expect(1);
    bench.call(&["diff", "main", "main"]).expect(4);
    bench.call(&["baseline", "keep", "main"]).expect(0);
    bench.call(&["diff", "main", "main"]).expect(0);
    bench.call(&["baseline", "keep", "other"]).expect(4);
}

fn delete(bench: &Bench) {
    save(bench, &["a", "b", "c"]);
    bench.call(&["baseline", "delete", "a", "no"]).expect(4);
    assert!(bench.output(&["baseline", "list"]).contains("  a  "), "one of two was deleted");
    bench.call(&["baseline", "delete", "a", "b"]).expect(0);
    assert!(bench.output(&["baseline", "list"]).starts_with("1 baseline in "));
}
