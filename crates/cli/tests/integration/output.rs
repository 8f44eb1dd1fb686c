//! `-o`: found writable before the program starts, and the file is there only when it is whole.

use std::fs;

use crate::sandbox::{Sandbox, entries};

#[test]
fn what_cannot_be_written_is_said_before_the_start() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.work("folder")).unwrap();
    for file in ["nowhere/a.pb.gz", "folder", "/proc/a.pb.gz"] {
        let outcome = sandbox.call(["run", "-o", file, "--", "sh", "-c", "echo > ran"]);
        outcome.expect(125).says(&["cannot write the profile", &format!("`{file}`"), "was not started"]);
        assert!(!sandbox.work("ran").exists(), "the program ran: {outcome:#?}");
    }
    assert_eq!(entries(&sandbox.work("")), [sandbox.work("folder")]);
}

#[test]
fn the_program_does_not_see_it() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.call(["run", "-o", "a.pb.gz", "--", "ls", "-A"]);
    assert_eq!(outcome.expect(0).output, "");
    outcome.says(&["→ a.pb.gz"]);
    assert_eq!(entries(&sandbox.work("")), [sandbox.work("a.pb.gz")]);
}

#[test]
fn an_older_profile_stays_when_the_program_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("a.pb.gz", "older", 0o644);
    sandbox.call(["run", "-o", "a.pb.gz", "no-such-program-anywhere"]).expect(127);
    assert_eq!(fs::read(sandbox.work("a.pb.gz")).unwrap(), b"older");
    sandbox.call(["run", "-o", "a.pb.gz", "true"]).expect(0);
    sandbox.call(["report", "a.pb.gz"]).expect(0);
}

#[test]
fn a_disk_that_is_full_is_said() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.call(["run", "-o", "/dev/full", "--", "echo", "word"]);
    assert_eq!(outcome.expect(125).output, "word\n");
    outcome.says(&["cannot write the profile `/dev/full`"]);
}
