//! `--json-status`: program and recorder told apart.

use std::fs;

use serde_json::{Value, json};

use crate::doctor::schema;
use crate::sandbox::Sandbox;

/// Calls `run` with a status file, and reads it. It is as its schema says.
#[track_caller]
fn status(sandbox: &Sandbox, code: i32, arguments: &[&str]) -> Value {
    let options = ["run", "--json-status", "status.json"];
    let output: &[&str] = if arguments.contains(&"-o") { &[] } else { &["-o", "a.pb.gz"] };
    sandbox.call(options.iter().chain(output).chain(arguments)).expect(code);
    let text = fs::read_to_string(sandbox.work("status.json")).unwrap();
    let status: Value = serde_json::from_str(&text).unwrap();
    let schema: Value = serde_json::from_str(include_str!("../../schema/status.v1.schema.json")).unwrap();
    let (mut errors, mut names) = (Vec::new(), Vec::new());
    schema::check(&schema, &schema, &status, "", &mut errors);
    schema::undescribed(&schema, &schema, &status, "", &mut names);
    assert_eq!((errors, names), (vec![], vec![]), "{text}");
    assert_eq!((&status["schema"], &status["version"]), (&json!("heaptally-status"), &json!(1)));
    status
}

#[test]
fn of_a_good_run() {
    let sandbox = Sandbox::new();
    let status = status(&sandbox, 0, &["sh", "-c", "exit 0"]);
    assert_eq!(status["program"], json!({"exit_code": 0, "signal": null}));
    let recorder = &status["recorder"];
    assert_eq!(
        (&recorder["ok"], &recorder["error"], &recorder["profile"]),
        (&json!(true), &json!(null), &json!("a.pb.gz"))
    );
    assert_eq!((&recorder["windows"], &recorder["complete"]), (&json!(1), &json!(true)));
    let reported = &sandbox.json("a.pb.gz");
    assert!(recorder["allocations"].as_u64().unwrap() > 0, "{status}");
    assert!(reported.to_string().contains(&recorder["allocations"].to_string()), "{reported}");
}

#[test]
fn of_a_program_that_fails() {
    let sandbox = Sandbox::new();
    let failed = status(&sandbox, 3, &["sh", "-c", "exit 3"]);
    assert_eq!(failed["program"], json!({"exit_code": 3, "signal": null}));
    assert_eq!((&failed["recorder"]["ok"], &failed["recorder"]["error"]), (&json!(true), &json!(null)));

    let killed = status(&sandbox, 128 + 15, &["sh", "-c", "kill -TERM $$"]);
    assert_eq!(killed["program"], json!({"exit_code": null, "signal": 15}));
    assert_eq!(killed["recorder"]["ok"], json!(true));

    // What only the program's code can tell without this file.
    let pretends = status(&sandbox, 125, &["sh", "-c", "exit 125"]);
    assert_eq!(pretends["program"], json!({"exit_code": 125, "signal": null}));
    assert_eq!(pretends["recorder"]["ok"], json!(true));
}

#[test]
fn of_several_runs_and_of_children() {
    let sandbox = Sandbox::new();
    let runs = status(&sandbox, 0, &["--repeat", "2", "sh", "-c", "true | cat"]);
    assert_eq!(runs["runs"], json!([{"exit_code": 0, "signal": null}, {"exit_code": 0, "signal": null}]));
    let children = status(&sandbox, 0, &["--follow-children", "sh", "-c", "/bin/true | /bin/cat"]);
    assert!(children["processes"].as_array().unwrap().len() > 1, "{children}");
    assert_eq!(children["children"]["followed"], json!(true));
}

#[test]
fn of_a_refusal() {
    let sandbox = Sandbox::new();
    let status = status(&sandbox, 127, &["no-such-program-anywhere"]);
    assert_eq!(status["program"], json!(null));
    let recorder = &status["recorder"];
    assert_eq!((&recorder["ok"], &recorder["profile"]), (&json!(false), &json!(null)));
    assert!(recorder["error"].as_str().unwrap().contains("`no-such-program-anywhere`"), "{status}");
}

#[test]
fn of_a_profile_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    let status = status(&sandbox, 125, &["-o", "nowhere/b.pb.gz", "true"]);
    assert_eq!((&status["program"], &status["recorder"]["ok"]), (&json!(null), &json!(false)));
}

#[test]
fn of_a_window_that_never_opened() {
    let sandbox = Sandbox::new();
    let status = status(&sandbox, 125, &["--window", "nowhere", "true"]);
    assert_eq!(status["program"], json!({"exit_code": 0, "signal": null}));
    let recorder = &status["recorder"];
    assert_eq!((&recorder["ok"], &recorder["profile"]), (&json!(false), &json!("a.pb.gz")));
    assert!(recorder["error"].as_str().unwrap().contains("`nowhere`"), "{status}");
}

#[test]
fn that_cannot_be_written() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.call(["run", "--json-status", "nowhere/status.json", "true"]);
    outcome.expect(125).says(&["status", "`nowhere/status.json`", "was not started"]);
    let program = ["--", "sh", "-c", "echo > ran"];
    for path in ["nowhere/status.json", ".", "/proc/status.json"] {
        let outcome = sandbox.call(["run", "--json-status", path].iter().chain(&program));
        outcome.expect(125).says(&["cannot write the status", &format!("`{path}`"), "--json-status"]);
        assert!(!sandbox.work("ran").exists(), "the program ran: {outcome:#?}");
    }
}

#[test]
fn that_is_the_profile_too() {
    let sandbox = Sandbox::new();
    sandbox.write("there", "older", 0o644);
    std::os::unix::fs::symlink("there", sandbox.work("link")).unwrap();
    let folder = sandbox.work("").file_name().unwrap().to_str().unwrap().to_owned();
    let around = format!("../{folder}/a");
    for (profile, status) in [("a", "a"), ("a", "./a"), (&around, "a"), ("there", "link"), ("", "sh.pb.gz")] {
        let output: &[&str] = if profile.is_empty() { &[] } else { &["-o", profile] };
        let options = ["run", "--json-status", status];
        let outcome = sandbox.call(options.iter().chain(output).chain(&["--", "sh", "-c", "echo > ran"]));
        outcome.expect(125).says(&["cannot write the status", "the profile goes there", "was not started"]);
    }
    assert_eq!(fs::read(sandbox.work("there")).unwrap(), b"older");
    for name in ["a", "ran", "sh.pb.gz"] {
        assert!(!sandbox.work(name).exists(), "{name}");
    }
    sandbox.call(["run", "--json-status", "/dev/null", "-o", "/dev/null", "true"]).expect(0);
}
