//! The configuration: layers, places, and files that are no such.

use std::fs;

use serde_json::Value;

use crate::doctor::schema;
use crate::sandbox::{Outcome, Sandbox, entries, outcome};

/// A sandbox with a configuration in its working folder.
fn configured(text: impl AsRef<[u8]>) -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.work(".config")).unwrap();
    sandbox.write(".config/heaptally.toml", text, 0o644);
    sandbox
}

/// The value of a key, and where it is from: as text of `config show --json`.
fn value(outcome: &Outcome, command: &str, key: &str) -> (Value, Value) {
    let shown: Value = serde_json::from_str(&outcome.expect(0).output).unwrap();
    let values = shown["values"].as_array().unwrap();
    let found = values.iter().find(|value| value["command"] == command && value["key"] == key).unwrap();
    (found["values"].clone(), found["source"].clone())
}

const SHOW: [&str; 3] = ["config", "show", "--json"];

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let sandbox = configured("[run]\nrepeat = 2\n");
    let runs = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = sandbox.command(["run"].iter().chain(words).chain(&["echo", "word"]));
        outcome(command.envs(variables.iter().copied())).expect(0).output.lines().count()
    };
    assert_eq!(runs(&[], &[]), 2);
    assert_eq!(runs(&[], &[("HEAPTALLY_REPEAT", "3")]), 3);
    assert_eq!(runs(&[], &[("HEAPTALLY_REPEAT", "3"), ("HEAPTALLY_RUN_REPEAT", "4")]), 4);
    assert_eq!(runs(&["--repeat", "1"], &[("HEAPTALLY_RUN_REPEAT", "4")]), 1);
    assert_eq!(runs(&["--no-config"], &[]), 1);
    assert_eq!(runs(&[], &[("HEAPTALLY_RUN_REPEAT", "")]), 2);

    let shown = |variables: &[(&str, &str)]| {
        let outcome = outcome(sandbox.command(SHOW).envs(variables.iter().copied()));
        value(&outcome, "run", "repeat")
    };
    let file = serde_json::json!({"kind": "file", "file": ".config/heaptally.toml", "line": 2, "column": 10});
    assert_eq!(shown(&[]), (["2"].into(), file));
    let variable = serde_json::json!({"kind": "variable", "variable": "HEAPTALLY_RUN_REPEAT"});
    assert_eq!(shown(&[("HEAPTALLY_RUN_REPEAT", "4")]), (["4"].into(), variable));
    let outcome = sandbox.call(SHOW);
    assert_eq!(value(&outcome, "run", "strict"), (["false"].into(), serde_json::json!({"kind": "default"})));
    assert!(sandbox.call(["config", "show"]).output.contains(".config/heaptally.toml:2\n"));
}

#[test]
fn a_key_at_the_top_is_of_every_command_and_a_table_of_one() {
    let sandbox = configured("limit = 3\nsort = 'bytes'\n[diff]\nlimit = 4\n");
    let shown = sandbox.call(SHOW);
    assert_eq!(value(&shown, "report", "limit").0, Value::from(["3"]));
    assert_eq!(value(&shown, "diff", "limit").0, Value::from(["4"]));
    assert_eq!(value(&shown, "diff", "sort").0, Value::from(["bytes"]));

    // What one of them does not know is an error that names it.
    let sandbox = configured("sort = 'live'\n");
    sandbox.call(["report", "a.pb.gz"]).expect(2).says(&[
        ".config/heaptally.toml:1:8: invalid value 'live' for '--sort <WHAT>'",
        "it stands for every command; [diff] can have its own",
    ]);
}

#[test]
fn a_switch_that_is_configured_can_be_taken_away() {
    let sandbox = configured("[run]\nquiet = true\n");
    assert_eq!(sandbox.call(["run", "true"]).expect(0).errors, "");
    assert_ne!(sandbox.call(["run", "--no-quiet", "true"]).expect(0).errors, "");
    assert_eq!(sandbox.call(["run", "--no-quiet", "--quiet", "true"]).expect(0).errors, "");
    let mut command = sandbox.command(["run", "true"]);
    assert_ne!(outcome(command.env("HEAPTALLY_QUIET", "0")).expect(0).errors, "");
    assert!(!sandbox.call(["run", "--help"]).output.contains("--no-quiet"));
}

#[test]
fn what_is_configured_gives_way_to_what_is_given() {
    let sandbox = configured("[report]\nby = 'site'\nfull = false\n[diff]\ntree = true\n");
    let demo = sandbox.demo();
    sandbox.call(["run", "-q", "-o", "a.pb.gz", demo.to_str().unwrap()]).expect(0);
    // Neither would do together.
    for words in [&["--json"][..], &["--format", "csv"], &["--full"], &["--tree"]] {
        sandbox.call(["report", "a.pb.gz"].iter().chain(words)).expect(0);
    }
    let by_site = sandbox.call(["report", "a.pb.gz"]).output;
    assert_eq!(sandbox.call(["--no-config", "report", "--by", "site", "a.pb.gz"]).output, by_site);
    let tree = sandbox.call(["diff", "a.pb.gz", "a.pb.gz"]);
    let explained = sandbox.call(["diff", "--explain", "a.pb.gz", "a.pb.gz"]);
    assert_eq!(
        explained.expect(0).output,
        sandbox.call(["--no-config", "diff", "--explain", "a.pb.gz", "a.pb.gz"]).output
    );
    assert_ne!(tree.expect(0).output, explained.output);
}

#[test]
fn paths_are_relative_to_the_folder_that_holds_the_configuration() {
    let sandbox = configured(
        "rules = ['my.rules']\nbaseline-folder = 'perf'\ncache-folder = 'unpacked'\n[run]\nsegment-dir = 'segments'\n",
    );
    for folder in ["segments", "inner"] {
        fs::create_dir(sandbox.work(folder)).unwrap();
    }
    let inside = |words: &[&str]| outcome(sandbox.command(words).current_dir(sandbox.work("inner")));
    let seen = inside(&["run", "--save-baseline", "main", "ls", "../segments"]);
    assert!(seen.expect(0).output.starts_with("heaptally-"), "{seen:#?}");
    assert!(sandbox.work("perf/main.pb.gz").is_file());
    let unpacked = entries(&sandbox.work("unpacked"));
    assert!(unpacked[0].to_str().unwrap().contains("/libheaptally_preload-"), "{unpacked:?}");
    inside(&["report", "ls.pb.gz"]).expect(2).says(&["work/my.rules"]);
    let work = sandbox.work("");
    let shown = inside(&SHOW);
    assert_eq!(value(&shown, "report", "rules").0, Value::from([work.join("my.rules").to_str().unwrap()]));

    // Of a variable they are relative to the working folder.
    let mut command = sandbox.command(["baseline", "list"]);
    let listed =
        outcome(command.current_dir(sandbox.work("inner")).env("HEAPTALLY_BASELINE_FOLDER", "../perf"));
    assert!(listed.expect(0).output.contains("  main  "), "{listed:#?}");
}

#[test]
fn rules_for_call_sites_can_stand_in_it() {
    let sandbox = configured("[call-site]\n'function rust' = ['heaptally_demo::insert']\n");
    let demo = sandbox.demo();
    sandbox.call(["run", "-q", "-o", "a.pb.gz", demo.to_str().unwrap()]).expect(0);
    let sites = |words: &[&str]| {
        let words = words.iter().chain(&["report", "--window", "parse", "--by", "site", "a.pb.gz"]);
        sandbox.call(words).expect(0).output.clone()
    };
    assert!(sites(&["--no-config"]).contains("%  heaptally_demo::insert"));
    let passed_over = sites(&[]);
    assert!(!passed_over.contains("%  heaptally_demo::insert"), "{passed_over}");
    assert!(passed_over.contains("%  heaptally_demo::parse"), "{passed_over}");
    assert!(sandbox.call(["config", "show"]).output.contains("more patterns"));
}

#[test]
fn a_file_that_is_no_configuration_is_wrong_usage_with_its_place() {
    let cases: [(&[u8], &[&str]); 9] = [
        (b"[run]\nreapet = 3\n", &[":2:1: unknown key `reapet` in [run]", "the nearest is `repeat`"]),
        (b"[run]\nrepeat = 0\n", &[":2:10: invalid value '0' for '--repeat <N>': 0 is not in 1"]),
        (b"[run]\nrepeat = 'x'\n", &[":2:10: invalid value 'x'"]),
        (b"[run]\nstrict = 'yes'\n", &[":2:10: `strict` is true or false, not `yes`"]),
        (b"[run]\nwindow = true\n", &[":2:10: `window` takes a value"]),
        (b"[run]\nrepeat = [1]\n", &[":2:10: `repeat` takes one value"]),
        (b"baseline-folder = 3.5\n[report]\nunder = '('\n", &[":3:9: invalid value '('"]),
        (b"\x1f\x8b\x08\x00", &[":1:2: this is not UTF-8"]),
        (b"a = \"\x1b]0;x\x07\"", &[":1:", "this is not TOML"]),
    ];
    for (text, words) in cases {
        let sandbox = configured(text);
        for (command, code) in
            [(&["run", "true"][..], 125), (&["report", "a.pb.gz"], 2), (&["config", "show"], 2)]
        {
            let outcome = sandbox.call(command);
            outcome.expect(code).says(words).says(&["heaptally: .config/heaptally.toml:"]);
            assert!(!outcome.errors.contains('\u{1b}'), "{outcome:#?}");
        }
        // What helps does not depend on it.
        for command in [
            &["--help"][..],
            &["run", "--help"],
            &["completions", "bash"],
            &["man"],
            &["--no-config", "doctor"],
        ] {
            sandbox.call(command).expect(0);
        }
        assert!(entries(&sandbox.work("")).iter().all(|path| path.ends_with(".config")), "something was run");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_said() {
    let huge = vec![b'#'; (1 << 20) + 1];
    configured(huge)
        .call(["config", "show"])
        .expect(2)
        .says(&["it has more than 1048576 bytes", "--no-config"]);
    configured("").call(["config", "show"]).expect(0);

    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.work(".config/heaptally.toml")).unwrap();
    sandbox.call(["config", "show"]).expect(2).says(&["cannot read the configuration", "directory"]);
    sandbox.call(["--config", "no.toml", "config", "show"]).expect(2).says(&["no.toml", "No such file"]);
    let mut command = sandbox.command(["--no-config", "config", "show"]);
    outcome(command.env("HEAPTALLY_CONFIG", "no.toml")).expect(0);
    let mut command = sandbox.command(["config", "show"]);
    outcome(command.env("HEAPTALLY_CONFIG", "no.toml")).expect(2).says(&["no.toml"]);
    let mut command = sandbox.command(["--no-config", "run", "true"]);
    outcome(command.env("HEAPTALLY_RUN_REPEAT", "0"))
        .expect(125)
        .says(&["variable HEAPTALLY_RUN_REPEAT: invalid value"]);
}

#[test]
fn a_variable_that_is_no_key_is_noted() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["config", "show"]);
    let shown = outcome(command.env("HEAPTALLY_RUN_REAPET", "3").env("HEAPTALLY_WINDOW", "a\nb"));
    assert!(shown.expect(0).output.contains("HEAPTALLY_RUN_REAPET is no key"), "{shown:#?}");
    assert!(shown.output.contains("a, b"), "{shown:#?}");
}

#[test]
fn the_schemas_describe_the_json() {
    let sandbox = configured("limit = 3\n[call-site]\nfunction = ['x']\n");
    sandbox.call(["run", "--save-baseline", "main", "true"]).expect(0);
    sandbox.call(["run", "--save-baseline", "other", "true"]).expect(0);
    sandbox.call(["run", "--save-baseline", "other", "false"]).expect(1);
    let cases: [(&[&str], &str); 4] = [
        (&SHOW, include_str!("../../schema/config.v1.schema.json")),
        (&["baseline", "list", "--json"], include_str!("../../schema/baselines.v1.schema.json")),
        (&["baseline", "show", "--json", "main"], include_str!("../../schema/baseline.v1.schema.json")),
        (&["baseline", "show", "--json", "other"], include_str!("../../schema/baseline.v1.schema.json")),
    ];
    for (words, schema) in cases {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let mut command = sandbox.command(words);
        let printed = outcome(command.env("HEAPTALLY_REPEAT", "2").env("HEAPTALLY_NO_KEY", "1"));
        let value: Value = serde_json::from_str(&printed.expect(0).output).unwrap();
        let mut errors = Vec::new();
        schema::check(&schema, &schema, &value, "", &mut errors);
        assert_eq!(errors, Vec::<String>::new(), "{words:?}");
        let mut wrong = value.clone();
        wrong["version"] = 2.into();
        schema::check(&schema, &schema, &wrong, "", &mut errors);
        assert_eq!(errors.len(), 1);
    }
}
