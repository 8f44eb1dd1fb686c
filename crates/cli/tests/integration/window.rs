//! `--window`, and the windows that a program opens by itself.

use serde_json::Value;

use crate::sandbox::Sandbox;

fn names(report: &Value) -> Vec<&str> {
    report["windows"].as_array().unwrap().iter().map(|window| window["name"].as_str().unwrap()).collect()
}

#[test]
fn the_demonstration_names_its_own_lines() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.call(["demo"]);
    for word in ["\"parse\"", "\"look up\"", "100 iterations", "insert", "describe", "main.rs:"] {
        assert!(outcome.expect(0).output.contains(word), "nothing says {word}: {outcome:#?}");
    }
    assert_eq!(outcome.errors, "");
    assert_eq!(sandbox.call(["demo"]).output, outcome.output, "two runs give two reports");
}

#[test]
fn a_named_window_is_recorded_alone() {
    let sandbox = Sandbox::new();
    let demo = sandbox.demo();
    let demo = demo.to_str().unwrap();
    sandbox.call(["run", "-o", "all.pb.gz", demo]).expect(0);
    let all = sandbox.json("all.pb.gz");
    assert!(names(&all).ends_with(&["parse", "look up"]), "{all}");

    sandbox.call(["run", "--window", "parse", "-o", "one.pb.gz", demo]).expect(0);
    let one = sandbox.json("one.pb.gz");
    assert_eq!(names(&one), ["parse"]);
    let counts = |report: &Value| {
        let windows = report["windows"].as_array().unwrap();
        let mut counts = windows.iter().find(|window| window["name"] == "parse").unwrap()["counts"].clone();
        // The last block is freed before the next recorded allocation when what comes behind is not recorded.
        for name in ["temporary", "temporary_bytes"] {
            assert!(counts.as_object_mut().unwrap().remove(name).is_some());
        }
        counts
    };
    assert_eq!(counts(&one)["allocations"], 1200);
    assert_eq!(counts(&one), counts(&all));
}

#[test]
fn a_window_that_never_opens_is_an_error() {
    let sandbox = Sandbox::new();
    let demo = sandbox.demo();
    let arguments = ["run", "--window", "parse", "--window", "n\to", "-o", "a.pb.gz", demo.to_str().unwrap()];
    let outcome = sandbox.call(arguments);
    outcome.expect(125).says(&["the window `n\\u{9}o` never opened"]);
    assert!(!outcome.errors.contains("`parse`"), "{outcome:#?}");
    assert_eq!(names(&sandbox.json("a.pb.gz")), ["parse"], "the profile was not written");
}

/// Its profile is there all the same, and says so to whom it is given.
#[test]
fn a_profile_without_a_window_that_was_asked_for_is_no_measurement() {
    let sandbox = Sandbox::new();
    let demo = sandbox.demo();
    let run = ["run", "--window", "parse", "--window", "later", "-o", "a.pb.gz", demo.to_str().unwrap()];
    let outcome = sandbox.call(run);
    outcome.expect(125).says(&["the window `later` never opened"]);
    assert_eq!(outcome.errors.matches("never opened").count(), 1, "{outcome:#?}");
    let mark = "coverage is incomplete: the window `later` never opened";
    let check = ["check", "a.pb.gz", "--baseline", "a.pb.gz"];
    let refused = sandbox.call(check);
    assert!(refused.expect(4).output.starts_with("NOT MEASURED: "), "{refused:#?}");
    assert!(refused.output.contains(mark), "{refused:#?}");
    sandbox.call([&check[..], &["--accept-incomplete"]].concat()).expect(0);
    let update = sandbox.call(["limits", "update", "a.pb.gz", "--limits", "l.toml"]);
    update.expect(4).says(&["NOT MEASURED", mark, "no limit was written"]);
    assert!(!update.errors.contains("--accept"), "it has no such option: {update:#?}");
    assert!(!sandbox.work("l.toml").exists());
}

#[test]
fn a_window_that_a_profile_lacks() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-o", "a.pb.gz", "true"]).expect(0);
    let outcome = sandbox.call(["report", "--window", "nowhere", "a.pb.gz"]);
    outcome.expect(4).says(&["`a.pb.gz` has no window `nowhere`", "`process`"]);
}
