//! `report` of files that are no profile.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::sandbox::{HEAPTALLY, Sandbox};

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A file that is refused, by its name and with a reason.
#[track_caller]
fn refused(sandbox: &Sandbox, content: &[u8], reason: &str) {
    sandbox.write("bad.pb.gz", content, 0o644);
    for option in ["--limit=3", "--json"] {
        let outcome = sandbox.call(["report", option, "bad.pb.gz"]);
        outcome.expect(4).says(&["heaptally: cannot read `bad.pb.gz`: ", reason]);
        assert_eq!(outcome.output, "");
    }
}

#[test]
fn of_a_file_that_is_not_there() {
    let sandbox = Sandbox::new();
    sandbox.call(["report", "nowhere.pb.gz"]).expect(4).says(&["`nowhere.pb.gz`", "No such file"]);
    sandbox.call(["report", "."]).expect(4).says(&["cannot read `.`"]);
}

#[test]
fn of_foreign_files() {
    let sandbox = Sandbox::new();
    refused(&sandbox, b"", "not a profile");
    refused(&sandbox, b"text\n", "not a profile");
    refused(&sandbox, &fs::read(HEAPTALLY).unwrap()[..100_000], "not a profile");
    refused(&sandbox, &gzip(b"\xff\xff\xff\xff"), "protobuf");
    refused(&sandbox, &gzip(b""), "no samples");
    // Another tool's: sample_type { type: 1, unit: 2 }, string_table: "", "cpu", "nanoseconds".
    let other = b"\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x03cpu\x32\x0bnanoseconds";
    refused(&sandbox, &gzip(other), "cpu");
}

#[test]
fn of_truncated_and_damaged_files() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-o", "good.pb.gz", "sh", "-c", "true"]).expect(0);
    let good = fs::read(sandbox.work("good.pb.gz")).unwrap();
    for len in [1, 2, 9, 10, 11, good.len() / 3, good.len() / 2, good.len() - 8, good.len() - 1] {
        refused(&sandbox, &good[..len], "profile");
    }
    for at in (0..good.len()).step_by(good.len() / 23) {
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        sandbox.write("bad.pb.gz", bad, 0o644);
        let outcome = sandbox.call(["report", "bad.pb.gz"]);
        // Some bytes of gzip's header carry no meaning.
        outcome.expect(if outcome.code == Some(0) && at < 10 { 0 } else { 4 });
    }
    let mut longer = good.clone();
    longer.extend_from_slice(b"more");
    refused(&sandbox, &longer, "4 bytes follow");
}

#[test]
fn into_a_reader_that_has_seen_enough() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-o", "a.pb.gz", "sh", "-c", "true"]).expect(0);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "\"$0\" report --json a.pb.gz | :", HEAPTALLY]).current_dir(sandbox.work(""));
    assert_eq!(crate::sandbox::outcome(&mut shell).expect(0).errors, "");
    let full = format!("{HEAPTALLY} report a.pb.gz > /dev/full");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &full]).current_dir(sandbox.work(""));
    crate::sandbox::outcome(&mut shell).expect(4).says(&["heaptally: "]);
}

#[test]
fn of_files_without_end() {
    let sandbox = Sandbox::new();
    for endless in ["/dev/zero", "/dev/urandom"] {
        sandbox.call(["report", endless]).expect(4).says(&["not a profile"]);
    }
    sandbox.call(["run", "-q", "-o", "a.pb.gz", "true"]).expect(0);
    sandbox.call(["report", "--rules", "/dev/zero", "a.pb.gz"]).expect(2).says(&["cannot use the rules"]);
}

#[test]
fn of_what_was_not_followed() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-q", "--no-lifetimes", "-o", "a.pb.gz", "true"]).expect(0);
    for sort in ["live", "temporary"] {
        sandbox.call(["report", "--sort", sort, "a.pb.gz"]).expect(4).says(&["--no-lifetimes"]);
    }
    sandbox.call(["report", "--sort", "bytes", "a.pb.gz"]).expect(0);
}

#[test]
fn options_that_would_mean_nothing_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-q", "-o", "a.pb.gz", "true"]).expect(0);
    for options in [["--json", "--by=site"], ["--format=csv", "--tree"], ["--format=folded", "--full"]] {
        let words = ["report"].iter().chain(&options).chain(&["a.pb.gz"]);
        sandbox.call(words).expect(2).says(&["are of the text form"]);
    }
    sandbox.call(["report", "--min", "nan", "a.pb.gz"]).expect(2).says(&["finite"]);
}
