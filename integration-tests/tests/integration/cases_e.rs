//! Group E: the end of the program, its descriptors and its output.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use integration_tests::check::{self, Tolerance};
use integration_tests::command::heaptally;
use integration_tests::disk::SmallDisk;
use integration_tests::program;
use integration_tests::report::Report;
use integration_tests::run::{Outcome, Run, report_json};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

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

/// A folder that cannot be written to: said before the start. Root may write where permissions deny it, but not on a
/// disk that is mounted read-only.
#[test]
fn e13_an_output_folder_that_is_read_only() {
    let scratch = Scratch::new();
    let disk = if tool::is_root() {
        let Some(disk) = SmallDisk::mount(&scratch, "size=64k,ro") else { return };
        Some(disk)
    } else {
        scratch.shell("mkdir small && chmod 555 small");
        None
    };
    let profile = scratch.path("small/a.pb.gz");
    let outcome = Run::new(&scratch, ["touch", "started"]).profile(&profile).run();
    drop(disk);
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
    assert!(!scratch.path("started").exists(), "the program ran");
    let message = outcome.messages();
    assert!(message.contains("cannot write the profile") && message.contains("small/a.pb.gz"), "{message}");
    assert!(message.contains("was not started"), "{message}");
    assert!(outcome.status["profile"].is_null(), "{}", outcome.status);
}

/// Names are looked up in the command, after the program: a program with debug information of many megabytes needs as
/// much memory as without. The program is this command itself, which has that.
#[test]
fn e14_names_cost_the_program_no_memory() {
    const LEAST_BYTES: u64 = 30 << 20;
    const TOLERANCE_KIB: u64 = 8 << 10;
    if !tool::have(&["gcc", "strip", "env"]) {
        return;
    }
    let scratch = Scratch::new();
    fs::copy(heaptally(), scratch.path("large")).expect("copy the command");
    scratch.shell("strip -o small large");
    let bytes = |name: &str| fs::metadata(scratch.path(name)).expect("a size").len();
    if bytes("large") < bytes("small") + LEAST_BYTES {
        tool::skip(&format!("{} has no debug information", heaptally().display()));
        return;
    }
    let library = program::build(&scratch, "peak.c", "peak.so", &["-shared", "-fPIC"]);
    Run::new(&scratch, ["true"]).profile(scratch.path("a.pb.gz")).run();
    let run = |name: &str| {
        // NOTE: by env, so that the command that records is not the one that is measured.
        let preload = format!("LD_PRELOAD={}", library.display());
        let file = format!("PEAK_FILE={}", scratch.path("peak").display());
        let program = format!("./{name}");
        let words = ["env", &preload, &file, &program, "report", "a.pb.gz", "--json"];
        let outcome = Run::new(&scratch, words).run();
        assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
        let peak = fs::read_to_string(scratch.path("peak")).expect("the peak");
        fs::remove_file(scratch.path("peak")).expect("remove the peak");
        let windows = &outcome.report().windows;
        let frames = windows.iter().flat_map(|window| &window.rows).flat_map(|row| &row.frames);
        let named = frames.filter(|frame| frame.function.contains("heaptally_report::")).count();
        (peak.trim().parse::<u64>().expect("a number"), named)
    };
    let (small, named_small) = run("small");
    let (large, named_large) = run("large");
    // The debug information was read: by someone else.
    assert!(named_large > 5 && named_small == 0, "{named_large} and {named_small} names");
    assert!(small > 1 << 10, "{small} KiB are no program");
    assert!(large <= small + TOLERANCE_KIB, "{large} KiB with debug information, {small} without");
}

/// A disk that fills up: the reason in plain words, nothing half-written stays, and the report is not printed instead.
#[test]
fn e18_a_disk_that_is_too_small_for_the_profile() {
    let Some((case, scratch)) = standard::build("D03") else { return };
    let Some(disk) = SmallDisk::mount(&scratch, "size=64k") else { return };
    let run = |program: &str| {
        let outcome =
            Run::new(&scratch, [program]).profile(scratch.path("small/a.pb.gz")).without_frames().run();
        let left = fs::read_dir(scratch.path("small")).expect("the disk").count();
        (outcome, left)
    };
    let (full, left) = run(&case.program());
    let (fits, left_of_fitting) = run("true");
    drop(disk);
    assert_eq!((full.code, left), (125, 0), "stderr:\n{}", full.stderr);
    let message = full.messages();
    for words in ["cannot write the profile", "small/a.pb.gz", "No space left on device", "make room"] {
        assert!(message.contains(words), "no {words:?} in:\n{message}");
    }
    assert!(full.stderr.len() < 1_000 && full.stdout.is_empty(), "{}", full.stderr);
    // On the same disk: what fits is written.
    assert_eq!((fits.code, left_of_fitting), (0, 1), "stderr:\n{}", fits.stderr);
}

/// The loader parts `LD_PRELOAD` at spaces: the command, its cache, the home and the working folder have some.
#[test]
fn e19_spaces_in_every_path() {
    let Some((case, scratch)) = standard::build("C07") else { return };
    scratch.shell("mkdir 'my tools' 'my cache' 'my home' 'my temporary files' 'my work'");
    fs::copy(heaptally(), scratch.path("my tools/heaptally")).expect("copy the command");
    fs::copy(scratch.path("C07"), scratch.path("my work/C07")).expect("copy the program");
    let profile = scratch.path("my work/my profile.pb.gz");
    for variable in [None, Some("XDG_CACHE_HOME"), Some("HOME"), Some("TMPDIR")] {
        let tool = scratch.path("my tools/heaptally");
        let words = [tool.as_os_str(), "run".as_ref(), "-o".as_ref(), profile.as_os_str(), "--".as_ref()];
        let program = scratch.path("my work/C07");
        let mut run = Run::new(&scratch, words.into_iter().chain([program.as_os_str()])).unrecorded();
        // All of them, or each with the others as they are.
        for (name, folder) in
            [("XDG_CACHE_HOME", "my cache"), ("HOME", "my home"), ("TMPDIR", "my temporary files")]
        {
            if variable.is_none_or(|variable| variable == name) {
                run = run.environment(name, scratch.path(folder));
            }
        }
        let outcome = run.run();
        assert_eq!(outcome.code, 0, "{variable:?}; stderr:\n{}", outcome.stderr);
        assert!(!outcome.stderr.contains("ld.so"), "{variable:?}; stderr:\n{}", outcome.stderr);
        let report = Report::parse(&report_json(&profile)).expect("a report");
        for window in &case.windows {
            check::window(&report, window, Tolerance::default());
        }
        fs::remove_file(&profile).expect("remove the profile");
    }
}

/// Children, however they are started, have the descriptors that they have without the recorder.
#[test]
fn e20_children_get_no_descriptors() {
    const SCRIPT: &str = r#"
import os, subprocess, sys
list_all = ["ls", "-l", "/proc/self/fd"]
def told(text):
    # What the child's own ls opens has a random number in it.
    return sorted(line.split(" -> ")[0].split()[-1] for line in text.splitlines() if " -> " in line)
def piped(start):
    reading, writing = os.pipe()
    saved = os.dup(1)
    os.dup2(writing, 1)
    os.close(writing)
    start()
    os.dup2(saved, 1)
    os.close(saved)
    with os.fdopen(reading) as file:
        return told(file.read())
def wait(pid):
    os.waitpid(pid, 0)
def forked():
    pid = os.fork()
    if pid == 0:
        os.execvp("ls", list_all)
    wait(pid)
print("own", sorted(os.listdir("/proc/self/fd")))
print("subprocess", told(subprocess.run(list_all, close_fds=False, stdout=subprocess.PIPE, text=True).stdout))
print("fork", piped(forked))
print("posix_spawn", piped(lambda: wait(os.posix_spawnp("ls", list_all, os.environ))))
print("system", piped(lambda: os.system("ls -l /proc/self/fd; true")))
print("popen", told(os.popen("ls -l /proc/self/fd").read()))
"#;
    if !tool::have(&["python3", "ls"]) {
        return;
    }
    let scratch = Scratch::new();
    scratch.write("children.py", SCRIPT);
    scratch.shell("mkdir segments");
    let python = tool::system("python3").expect("python3");
    let run = |adapt: fn(Run) -> Run| -> Outcome {
        let outcome = adapt(Run::new(&scratch, [python.as_os_str(), "children.py".as_ref()])).run();
        assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
        outcome
    };
    let text = |outcome: &Outcome| String::from_utf8_lossy(&outcome.stdout).into_owned();
    let alone = text(&run(Run::unrecorded));
    assert_eq!(alone.lines().count(), 6, "{alone}");
    assert!(
        ["'0'", "'1'", "'2'"].iter().all(|number| alone.lines().all(|line| line.contains(number))),
        "{alone}"
    );
    for options in [|run: Run| run, |run: Run| run.options(["--segment-dir", "segments"])] {
        let recorded = run(options);
        assert_eq!(text(&recorded), alone);
        assert!(
            recorded.report().windows.iter().any(|window| window.calls() > 1_000),
            "nothing was recorded"
        );
    }
}
