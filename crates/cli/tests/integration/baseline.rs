//! Baselines: saved whole or not at all, and never compared when they are stale.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use heaptally_profile::pprof;

use crate::sandbox::{Sandbox, entries};

fn saved(sandbox: &Sandbox, name: &str) -> std::path::PathBuf {
    sandbox.work(".heaptally").join(name)
}

#[test]
fn a_run_that_fails_leaves_the_old_one_which_is_then_stale() {
    let sandbox = Sandbox::new();
    sandbox
        .call(["run", "--save-baseline", "main", "true"])
        .expect(0)
        .says(&["saved as the baseline `main`"]);
    sandbox.call(["run", "-o", "other.pb.gz", "true"]).expect(0);
    let old = fs::read(saved(&sandbox, "main.pb.gz")).unwrap();
    assert_eq!(pprof::read(&old).unwrap().environment.command, ["true"]);
    let failures: [(&[&str], i32, &str); 6] = [
        (&["false"], 1, "the program ended with 1"),
        (&["sh", "-c", "kill -9 $$"], 137, "the program ended with 137"),
        (&["no-such-program"], 127, "cannot find"),
        (&["--window", "no", "true"], 125, "never opened"),
        (&["--segment-dir", "no-such-folder", "true"], 125, "cannot make the segment"),
        (&["--repeat", "3", "false"], 1, "the program ended with 1"),
    ];
    for (words, code, why) in failures {
        let run = sandbox.call(["run", "--save-baseline", "main"].iter().chain(words));
        run.expect(code).says(&["the baseline `main` was not replaced: "]);
        assert_eq!(fs::read(saved(&sandbox, "main.pb.gz")).unwrap(), old, "{words:?}");
        for diff in [["diff", "main", "other.pb.gz"], ["diff", "other.pb.gz", "main"]] {
            let refused = sandbox.call(diff);
            refused.expect(4).says(&["the baseline `main` is stale: ", "--save-baseline", "baseline keep"]);
            if why != "cannot find" {
                refused.says(&[why]);
            }
            assert_eq!(refused.output, "");
        }
        assert!(sandbox.call(["baseline", "list"]).output.contains("stale: "));
        sandbox.call(["run", "--save-baseline", "main", "true"]).expect(0);
        sandbox.call(["diff", "main", "true.pb.gz"]).expect(0);
        assert_eq!(entries(&sandbox.work(".heaptally")).len(), 2, "something was left behind");
    }
    // Nothing that failed left a baseline where there was none.
    sandbox.call(["run", "--save-baseline", "first", "false"]).expect(1);
    assert!(!saved(&sandbox, "first.pb.gz").exists());
    sandbox.call(["diff", "first", "main"]).expect(4).says(&["there is no baseline `first`", "`main`"]);
}

#[test]
fn a_run_that_is_killed_leaves_it_stale() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "--save-baseline", "main", "true"]).expect(0);
    let mut run = sandbox.command(["run", "--save-baseline", "main", "sleep", "60"]);
    let mut run = run.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    let sleeps = || {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.id())).unwrap();
        children.split_whitespace().next().map(str::to_owned)
    };
    let child = loop {
        if let Some(child) = sleeps() {
            break child;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the program was not started");
        thread::sleep(Duration::from_millis(10));
    };
    sandbox.call(["diff", "main", "true.pb.gz"]).expect(4).says(&["is being replaced by a run that goes on"]);
    sandbox
        .call(["run", "--save-baseline", "main", "true"])
        .expect(125)
        .says(&["another run is about to replace"]);
    sandbox.call(["baseline", "delete", "main"]).expect(4);
    run.kill().unwrap();
    run.wait().unwrap();
    Command::new("kill").arg(child).status().unwrap();
    sandbox.call(["diff", "main", "true.pb.gz"]).expect(4).says(&["is stale", "it was killed"]);
    sandbox.call(["run", "--save-baseline", "main", "true"]).expect(0);
    sandbox.call(["diff", "main", "true.pb.gz"]).expect(0);
}

#[test]
fn a_profile_that_the_last_run_did_not_write_is_not_compared() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-o", "base.pb.gz", "true"]).expect(0);
    sandbox.call(["run", "-o", "change.pb.gz", "true"]).expect(0);
    let old = fs::read(sandbox.work("change.pb.gz")).unwrap();
    let failed = sandbox.call(["run", "-o", "change.pb.gz", "no-such-program"]);
    let marked = "`change.pb.gz` is of an earlier run: marked as stale";
    failed.expect(127).says(&[marked]);
    // `check` says it in the same words.
    let check = ["check", "--baseline", "./base.pb.gz", "-o", "change.pb.gz", "--", "no-such-program"];
    sandbox.call(check).expect(4).says(&[marked]);
    for diff in [["base.pb.gz", "change.pb.gz"], ["change.pb.gz", "base.pb.gz"]] {
        sandbox
            .call(["diff"].iter().chain(&diff))
            .expect(4)
            .says(&["is of an earlier run", "change.pb.gz.stale"]);
    }
    assert_eq!(fs::read(sandbox.work("change.pb.gz")).unwrap(), old);
    sandbox.call(["run", "-o", "change.pb.gz", "true"]).expect(0);
    sandbox.call(["diff", "base.pb.gz", "change.pb.gz"]).expect(0);
    assert_eq!(entries(&sandbox.work("")).len(), 2, "the mark was left behind");
    // A first run that fails leaves nothing at all.
    sandbox.call(["run", "-o", "new.pb.gz", "no-such-program"]).expect(127);
    assert_eq!(entries(&sandbox.work("")).len(), 2);
}

#[test]
fn names_are_checked_before_anything_runs() {
    let sandbox = Sandbox::new();
    for name in ["", "a/b", "../main", "-", ".hidden", "a b", "x.pb.gz", "\u{1b}[31m"] {
        let option = format!("--save-baseline={name}");
        let refused = sandbox.call(["run", &option, "touch", "ran"]);
        refused.expect(125).says(&["cannot be the name of a baseline", "letters, digits"]);
        assert!(!refused.errors.contains('\u{1b}'), "{refused:#?}");
    }
    assert_eq!(entries(&sandbox.work("")).len(), 0);
}

#[test]
fn damaged_baselines_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "--save-baseline", "main", "true"]).expect(0);
    let good = fs::read(saved(&sandbox, "main.pb.gz")).unwrap();
    for bytes in [&good[..100], b"", b"\x1f\x8b", b"{}", &[0; 4096]] {
        fs::write(saved(&sandbox, "main.pb.gz"), bytes).unwrap();
        sandbox.call(["diff", "main", "true.pb.gz"]).expect(4).says(&["cannot read", "main.pb.gz"]);
        sandbox.call(["baseline", "show", "main"]).expect(4);
        sandbox.call(["baseline", "list"]).expect(0);
    }
    // A mark that is no mark of ours is one all the same.
    fs::write(saved(&sandbox, "main.pb.gz"), &good).unwrap();
    for mark in [&b""[..], b"\xff\xff\x1b[31m", &[b'x'; 100_000]] {
        fs::write(saved(&sandbox, "main.pb.gz.stale"), mark).unwrap();
        let refused = sandbox.call(["diff", "main", "true.pb.gz"]);
        refused.expect(4).says(&["is stale"]);
        assert!(!refused.errors.contains('\u{1b}'), "{refused:#?}");
    }
    fs::remove_file(saved(&sandbox, "main.pb.gz.stale")).unwrap();
    fs::create_dir(saved(&sandbox, "main.pb.gz.stale")).unwrap();
    sandbox.call(["diff", "main", "true.pb.gz"]).expect(4);
}

#[test]
fn another_environment_is_a_note_or_an_error() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "--save-baseline", "main", "true"]).expect(0);
    let mut profile = pprof::read(&fs::read(saved(&sandbox, "main.pb.gz")).unwrap()).unwrap();
    profile.environment.libc = "glibc 2.17".into();
    profile.environment.machine = "Abacus, 1 processor".into();
    fs::write(saved(&sandbox, "main.pb.gz"), pprof::write(&profile)).unwrap();
    let noted = sandbox.call(["diff", "main", "true.pb.gz"]);
    for word in [
        "another C library: glibc 2.17 in the base, glibc 2.",
        "another machine: Abacus, 1 processor in the base, ",
    ] {
        assert!(noted.expect(0).output.contains(word), "{noted:#?}");
    }
    let refused = sandbox.call(["diff", "--same-environment", "main", "true.pb.gz"]);
    refused.expect(4).says(&["glibc 2.17 in the base, glibc 2.", "Abacus", "record the base again"]);
}

#[test]
fn a_check_that_fails_never_destroys_what_it_compares_with() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "--save-baseline", "main", "true"]).expect(0);
    let old = fs::read(saved(&sandbox, "main.pb.gz")).unwrap();
    let check = |program: &[&str]| {
        let words = ["check", "--baseline", "main", "--save-baseline", "main", "--"];
        sandbox.call(words.iter().chain(program))
    };
    sandbox.write("min.toml", "[window.process]\nallocs = { min = 1000000 }\n", 0o644);
    let failures: [(&[&str], i32); 4] = [
        (&["false"], 1),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["no-such-program"], 4),
        (&["env", "-i", "sh", "-c", "exit 9"], 9),
    ];
    for (program, code) in failures {
        check(program).expect(code).says(&["the baseline `main` was not replaced: "]);
        assert_eq!(fs::read(saved(&sandbox, "main.pb.gz")).unwrap(), old, "{program:?}");
        sandbox.call(["check", "true.pb.gz", "--baseline", "main"]).expect(0);
    }
    // A limit that is broken, and one that cannot be read.
    let words =
        ["check", "--baseline", "main", "--limits", "min.toml", "--save-baseline", "main", "--", "true"];
    sandbox.call(words).expect(3).says(&["the baseline `main` was not replaced: the check failed"]);
    sandbox.call(words.map(|word| if word == "min.toml" { "none.toml" } else { word })).expect(4);
    assert_eq!(fs::read(saved(&sandbox, "main.pb.gz")).unwrap(), old);
    // Of another name that is replaced after a check that fails, the old one is stale.
    sandbox.call(["run", "--save-baseline", "other", "true"]).expect(0);
    let words =
        ["check", "--baseline", "main", "--limits", "min.toml", "--save-baseline", "other", "--", "true"];
    sandbox.call(words).expect(3);
    sandbox.call(["diff", "other", "main"]).expect(4).says(&["the baseline `other` is stale"]);
    check(&["true"]).expect(0).says(&["saved as the baseline `main`"]);
    sandbox.call(["diff", "main", "true.pb.gz"]).expect(0);
}

#[test]
fn a_check_takes_names_and_refuses_what_is_stale() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "--save-baseline", "main", "true"]).expect(0);
    sandbox.call(["check", "true.pb.gz", "--baseline", "main"]).expect(0);
    sandbox.call(["check", "--baseline", "main", "--", "true"]).expect(0);
    fs::create_dir(sandbox.work(".config")).unwrap();
    let config = "repeat = 2\n[check]\nbaseline = 'main'\n";
    sandbox.write(".config/heaptally.toml", config, 0o644);
    // What is configured for recording is not for a profile.
    sandbox.call(["check", "true.pb.gz"]).expect(0);
    sandbox.call(["check", "--", "true"]).expect(0).says(&["2 runs"]);

    sandbox.call(["--no-config", "run", "--save-baseline", "main", "false"]).expect(1);
    sandbox.call(["check", "true.pb.gz"]).expect(4).says(&["the baseline `main` is stale"]);
    sandbox.call(["check", "true.pb.gz", "--baseline", "no"]).expect(4).says(&["there is no baseline `no`"]);
    sandbox.call(["baseline", "keep", "main"]).expect(0);
    sandbox.call(["check", "true.pb.gz"]).expect(0);

    // A change that the last run did not write.
    sandbox.call(["run", "-o", "true.pb.gz", "no-such-program"]).expect(127);
    sandbox.call(["check", "true.pb.gz"]).expect(4).says(&["`true.pb.gz` is of an earlier run"]);
    sandbox
        .call(["limits", "update", "true.pb.gz", "--limits", "l.toml"])
        .expect(4)
        .says(&["is of an earlier run"]);
    sandbox.call(["report", "true.pb.gz"]).expect(0).says(&["note: `true.pb.gz` is of an earlier run"]);
    sandbox.call(["check", "-o", "true.pb.gz", "--", "true"]).expect(0);
    sandbox.call(["check", "true.pb.gz"]).expect(0);
    sandbox.call(["check", "-o", "true.pb.gz", "--", "no-such-program"]).expect(4);
    sandbox.call(["check", "true.pb.gz"]).expect(4).says(&["`true.pb.gz` is of an earlier run"]);
}
