//! Group E: the end of the program, its descriptors and its output.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use integration_tests::check;
use integration_tests::command::heaptally;
use integration_tests::run::Run;

use crate::standard;

/// A case that ends inside the window "open".
fn ends_inside(id: &str, code: i32) {
    let Some(outcome) = standard::case(id, code) else { return };
    let report = outcome.report();
    assert!(report.window("open").unfinished, "{id}: \"open\" is not said to be unfinished");
    assert!(!report.window("done").unfinished, "{id}: \"done\" is said to be unfinished");
}

#[test]
fn e01_exit_in_the_window() {
    ends_inside("E01", 5);
}

#[test]
fn e03_terminated_in_the_window() {
    ends_inside("E03", 143);
}

#[test]
fn e04_a_crash_in_the_window() {
    ends_inside("E04", 139);
}

#[test]
fn e05_killed_in_the_window() {
    ends_inside("E05", 137);
}

#[test]
fn e07_folder_environment_and_descriptors_are_gone() {
    standard::case("E07", 9);
}

#[test]
fn e08_descriptor_numbers_are_used_again() {
    standard::case("E08", 0);
}

#[test]
fn e10_standard_input_and_output_pass_through() {
    let Some((case, scratch)) = standard::build("E10") else { return };
    let mut bytes: Vec<u8> =
        (0..100_000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    bytes.extend([0, 255, 0, 10, 255]);
    let input = scratch.write("input", &bytes);
    let outcome = Run::new(&scratch, [case.program()]).stdin(&input).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    assert!(outcome.stdout == bytes, "{} bytes came out of {}", outcome.stdout.len(), bytes.len());
    assert!(outcome.stderr.starts_with("done\n"), "stderr:\n{}", outcome.stderr);
    check::case(&case, &outcome);

    // A reader that goes away ends the program by SIGPIPE, as without the recorder.
    let pipe = |words: &[&std::ffi::OsStr]| {
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .current_dir(scratch.folder())
            .stdin(File::open(&input).expect("open the input"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("start");
        drop(child.stdout.take());
        let status = child.wait().expect("wait");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    };
    let profile = scratch.path("broken.pb.gz");
    let alone = pipe(&["./E10".as_ref()]);
    let recorded = pipe(&[
        heaptally().as_os_str(),
        "run".as_ref(),
        "-o".as_ref(),
        profile.as_os_str(),
        "--".as_ref(),
        "./E10".as_ref(),
    ]);
    // NOTE: std gives the child the default action for SIGPIPE, though this process ignores it.
    assert_eq!(alone, recorded, "exit code with a closed reader");
}

/// The process that the command started ends at once: its end is the run's end, and nothing of the grandchild adds.
#[test]
fn e11_a_daemon() {
    let Some((case, scratch)) = standard::build("E11") else { return };
    let outcome = Run::new(&scratch, [case.program()]).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    if let Some(report) = &outcome.report
        && report.has_window("w")
    {
        assert_eq!(report.window("w").calls_with("work"), 4, "{}", report.window("w").text());
    }
    let started = Instant::now();
    while !scratch.path("E11.daemon.done").exists() {
        assert!(started.elapsed() < Duration::from_secs(20), "the grandchild did not come to its end");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(fs::metadata(scratch.path("E11.daemon.done")).is_ok());
}

#[test]
fn e12_a_window_in_an_exit_handler() {
    standard::case("E12", 37);
}
