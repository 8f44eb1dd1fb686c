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
    refused(&sandbox, &gzip(b""), "not heaptally's");
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
