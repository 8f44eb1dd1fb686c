//! What is printed arrives, or the exit code says that it did not.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::sandbox::{HEAPTALLY, Sandbox, outcome};

const SIGPIPE: i32 = 13;

/// Commands whose purpose is their output.
const CALLS: [&[&str]; 10] = [
    &["--help"],
    &["--version"],
    &["help", "report"],
    &["diff", "a.pb.gz", "a.pb.gz"],
    &["report", "a.pb.gz"],
    &["report", "--json", "a.pb.gz"],
    &["demo"],
    &["completions", "bash"],
    &["man"],
    &["options"],
];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-o", "a.pb.gz", "true"]).expect(0);
    sandbox
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let sandbox = sandbox();
    for words in CALLS {
        for redirection in [">&-", ">/dev/full", "1</dev/null"] {
            let script = format!("exec \"$@\" {redirection}");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script, "sh", HEAPTALLY]).args(words).current_dir(sandbox.work(""));
            shell.env("HOME", sandbox.path("home")).env("XDG_CACHE_HOME", sandbox.path("cache"));
            outcome(&mut shell).expect(4).says(&["heaptally: cannot print: ", "standard output"]);
        }
    }
}

/// The codes of `run` below 125 are the program's.
#[test]
fn help_of_run_that_cannot_be_printed_is_an_error() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" >/dev/full", "sh", HEAPTALLY, "run", "--help"]);
    outcome(&mut shell).expect(125).says(&["heaptally: cannot print: "]);
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_silently() {
    let sandbox = sandbox();
    for words in CALLS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = sandbox.command(words.iter());
        let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.signal(), Some(SIGPIPE), "{words:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words:?}");
    }
}

#[test]
fn files_and_pipes_get_the_same_bytes() {
    let sandbox = sandbox();
    for words in CALLS {
        let file = File::create(sandbox.work("output")).unwrap();
        assert!(sandbox.command(words.iter()).stdout(file).status().unwrap().success());
        let written = std::fs::read_to_string(sandbox.work("output")).unwrap();
        assert_eq!(sandbox.call(words.iter()).expect(0).output, written, "{words:?}");
    }
}
