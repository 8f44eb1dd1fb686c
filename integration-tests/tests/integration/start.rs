//! How programs start, and how they cannot: kinds of executables, environments, exit codes, signals.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use integration_tests::check::{self, Tolerance};
use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;
use rustix::process::{Pid, Signal, kill_process};

/// `start.c`, built with `flags`; `None` where gcc is missing.
fn built(flags: &[&str]) -> Option<Scratch> {
    built_from("start.c", flags)
}

fn built_from(source: &str, flags: &[&str]) -> Option<Scratch> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, source, "start", flags);
    Some(scratch)
}

fn check_started(outcome: &Outcome, what: &str) {
    assert_eq!(outcome.code, 3, "{what}; stderr:\n{}", outcome.stderr);
    assert_eq!(outcome.stdout, b"started\n", "{what}");
    let expected = check::expectation("start: total=4 [4* main -> work -> malloc]");
    check::window(outcome.report(), &expected, Tolerance::default());
    assert_eq!(outcome.report().losses_text(), "", "{what}");
}

/// Builds, runs and checks the window.
fn starts(flags: &[&str]) {
    starts_from("start.c", flags);
}

fn starts_from(source: &str, flags: &[&str]) {
    let Some(scratch) = built_from(source, flags) else { return };
    let alone = Run::new(&scratch, ["./start"]).unrecorded().run();
    assert_eq!((alone.code, alone.stdout.as_slice()), (3, b"started\n".as_slice()), "{flags:?}");
    check_started(&Run::new(&scratch, ["./start"]).run(), &format!("{flags:?}"));
}

#[test]
fn a_position_independent_executable() {
    starts(&["-O0", "-pie", "-fPIE"]);
    starts(&["-O2", "-pie", "-fPIE", "-fomit-frame-pointer"]);
}

#[test]
fn an_executable_at_a_fixed_address() {
    starts(&["-O1", "-no-pie", "-fno-pie"]);
}

/// It seems to define malloc, and does not.
#[test]
fn an_executable_that_takes_the_address_of_malloc() {
    starts_from("address_of_malloc.c", &["-O1", "-no-pie", "-fno-pie"]);
    starts_from("address_of_malloc.c", &["-O1", "-no-pie", "-fno-pie", "-rdynamic"]);
    starts_from("address_of_malloc.c", &["-O1", "-pie", "-fPIE"]);
}

#[test]
fn link_time_optimisation() {
    starts(&["-O2", "-flto"]);
}

#[test]
fn symbols_bound_at_once_and_late() {
    starts(&["-O1", "-Wl,-z,now", "-Wl,-z,relro"]);
    starts(&["-O1", "-Wl,-z,lazy"]);
    starts(&["-O1", "-fno-plt"]);
}

#[test]
fn the_bfd_linker() {
    if tool::have(&["ld.bfd"]) {
        starts(&["-O1", "-fuse-ld=bfd"]);
        starts(&["-O1", "-fuse-ld=bfd", "-Wl,--hash-style=sysv"]);
    }
}

#[test]
fn the_gold_linker() {
    if tool::have(&["ld.gold"]) {
        starts(&["-O1", "-fuse-ld=gold"]);
    }
}

#[test]
fn the_lld_linker() {
    if tool::have(&["ld.lld"]) {
        starts(&["-O1", "-fuse-ld=lld"]);
    }
}

#[test]
fn static_executables_are_refused_by_name() {
    for flags in [["-static"], ["-static-pie"]] {
        let Some(scratch) = built(&flags) else { return };
        let outcome = Run::new(&scratch, ["./start"]).run();
        assert_eq!(outcome.code, 125, "{flags:?}; stderr:\n{}", outcome.stderr);
        assert!(outcome.stderr.contains("static"), "{flags:?}; stderr:\n{}", outcome.stderr);
    }
}

#[test]
fn an_empty_environment() {
    let Some(scratch) = built(&["-O1"]) else { return };
    check_started(&Run::new(&scratch, ["./start"]).without_environment().run(), "env -i");
}

/// The library without the command: it stays quiet and harms nothing.
#[test]
fn the_library_preloaded_by_hand() {
    let Some(scratch) = built(&["-O1"]) else { return };
    let maps = Run::new(&scratch, ["/bin/cat", "/proc/self/maps"]).run();
    let maps = String::from_utf8_lossy(&maps.stdout).into_owned();
    let library = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.contains("heaptally") && path.ends_with(".so"))
        .unwrap_or_else(|| panic!("no library in\n{maps}"))
        .to_owned();
    for segment in [None, Some("/nonexistent/segment"), Some("")] {
        let mut run = Run::new(&scratch, ["./start"]).unrecorded().environment("LD_PRELOAD", &library);
        if let Some(segment) = segment {
            run = run.environment("HEAPTALLY_SEGMENT", segment);
        }
        let outcome = run.run();
        assert_eq!(outcome.code, 3, "segment {segment:?}; stderr:\n{}", outcome.stderr);
        assert_eq!(outcome.stdout, b"started\n", "segment {segment:?}");
        assert_eq!(outcome.stderr, "", "segment {segment:?}");
    }
    let bare = Run::new(&scratch, ["/usr/bin/env", "-i", &format!("LD_PRELOAD={library}"), "./start"])
        .unrecorded()
        .run();
    assert_eq!((bare.code, bare.stderr.as_str()), (3, ""));
}

#[test]
fn a_missing_program() {
    let scratch = Scratch::new();
    let outcome = Run::new(&scratch, ["./nowhere"]).run();
    assert_eq!(outcome.code, 127, "stderr:\n{}", outcome.stderr);
    assert!(outcome.stderr.contains("nowhere"), "stderr:\n{}", outcome.stderr);
    let by_name = Run::new(&scratch, ["no-such-program-anywhere"]).run();
    assert_eq!(by_name.code, 127, "stderr:\n{}", by_name.stderr);
}

#[test]
fn a_program_that_is_not_executable() {
    let scratch = Scratch::new();
    let file = scratch.write("plain", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).expect("permissions");
    let outcome = Run::new(&scratch, ["./plain"]).run();
    assert_eq!(outcome.code, 126, "stderr:\n{}", outcome.stderr);
    let folder = Run::new(&scratch, ["/"]).run();
    assert_eq!(folder.code, 126, "stderr:\n{}", folder.stderr);
}

/// The interpreter is the program.
#[test]
fn a_script() {
    let scratch = Scratch::new();
    let file = scratch.write("script", "#!/bin/sh\necho \"from $1\"\nexit 7\n");
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("permissions");
    let outcome = Run::new(&scratch, ["./script", "here"]).run();
    assert_eq!(outcome.code, 7, "stderr:\n{}", outcome.stderr);
    assert_eq!(outcome.stdout, b"from here\n");
    assert!(outcome.report().window("process").calls() > 0);
}

#[test]
fn an_interpreter_that_is_missing() {
    let scratch = Scratch::new();
    let file = scratch.write("script", "#!/nonexistent/interpreter\n");
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("permissions");
    let outcome = Run::new(&scratch, ["./script"]).run();
    assert_eq!(outcome.code, 127, "stderr:\n{}", outcome.stderr);
}

/// The command fails before it starts the program.
#[test]
fn a_profile_that_cannot_be_written() {
    let scratch = Scratch::new();
    let outcome =
        Run::new(&scratch, ["touch", "started"]).profile(scratch.path("no-folder/profile.pb.gz")).run();
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
    assert!(!scratch.path("started").exists(), "the program ran");
    assert!(outcome.stderr.contains("no-folder"), "stderr:\n{}", outcome.stderr);
}

#[test]
fn closed_standard_descriptors() {
    let Some(scratch) = built(&["-O1"]) else { return };
    for closed in ["<&-", ">&-", "2>&-", "<&- 2>&-"] {
        let script = format!("exec \"$@\" {closed}");
        let outcome = Run::new(&scratch, ["./start"]).behind_shell(&script).run();
        // The program's output goes nowhere: it says so by its exit code.
        let code = if closed == ">&-" { 4 } else { 3 };
        let alone = Run::new(&scratch, ["./start"]).unrecorded().behind_shell(&script).run();
        assert_eq!(outcome.code, alone.code, "{closed}; stderr:\n{}", outcome.stderr);
        assert!(outcome.code == code || outcome.code == 3, "{closed}");
        assert_eq!(outcome.report().window("start").calls(), 4, "{closed}");
    }
    let all = Run::new(&scratch, ["./start"]).behind_shell("exec \"$@\" <&- >&- 2>&-").run();
    assert_eq!(all.report().window("start").calls(), 4);
}

#[test]
fn exit_codes_are_the_programs_own() {
    let scratch = Scratch::new();
    for code in [0, 1, 2, 42, 125, 126, 127, 128, 255] {
        let outcome = Run::new(&scratch, ["sh", "-c", &format!("exit {code}")]).run();
        assert_eq!(outcome.code, code, "stderr:\n{}", outcome.stderr);
    }
}

#[test]
fn signals_are_128_and_their_number() {
    let scratch = Scratch::new();
    for (name, number) in
        [("HUP", 1), ("INT", 2), ("QUIT", 3), ("ABRT", 6), ("KILL", 9), ("SEGV", 11), ("TERM", 15)]
    {
        let outcome =
            Run::new(&scratch, ["sh", "-c", &format!("ulimit -c 0; kill -{name} $$; sleep 5")]).run();
        assert_eq!(outcome.code, 128 + number, "{name}; stderr:\n{}", outcome.stderr);
        assert!(outcome.report.is_some(), "{name}: no profile; stderr:\n{}", outcome.stderr);
    }
}

/// A signal that a process sends to the command reaches the program, and the profile is still written.
#[test]
fn signals_to_the_command_are_passed_on() {
    let scratch = Scratch::new();
    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1)] {
        let marker = scratch.path(format!("running{number}"));
        // exec: the program itself, not a shell around it, gets the signal.
        let script = format!(": > {}; exec sleep 60", marker.display());
        let running = Run::new(&scratch, ["sh", "-c", &script]).start();
        let started = Instant::now();
        while !marker.exists() {
            assert!(started.elapsed() < Duration::from_secs(20), "the program does not start");
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(50));
        let command = Pid::from_raw(i32::try_from(running.command_id()).expect("a pid")).expect("a pid");
        kill_process(command, signal).expect("kill");
        let outcome = running.wait();
        assert!(outcome.elapsed < Duration::from_secs(30), "{signal:?} did not reach the program");
        assert_eq!(outcome.code, 128 + number, "stderr:\n{}", outcome.stderr);
        assert!(outcome.report.is_some(), "{signal:?}: no profile; stderr:\n{}", outcome.stderr);
    }
}

/// The program and its children see the environment that the command was given.
#[test]
fn the_environment_is_as_it_was() {
    let scratch = Scratch::new();
    let environment = |run: Run| {
        let outcome = run.environment("HEAPTALLY_TEST_MARK", "x").run();
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let ignored = ["_=", "SHLVL=", "PWD=", "OLDPWD="];
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| !ignored.iter().any(|name| line.starts_with(name)))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    for program in [vec!["env"], vec!["sh", "-c", "env"]] {
        let alone = environment(Run::new(&scratch, &program).unrecorded());
        let recorded = environment(Run::new(&scratch, &program));
        assert_eq!(alone, recorded, "{program:?}");
    }
}

/// Nothing that the recorder opens stays open in the program or goes to its children.
#[test]
fn no_descriptor_is_left_open() {
    let scratch = Scratch::new();
    // The program itself, and a child of it.
    for program in [vec!["ls", "/proc/self/fd"], vec!["sh", "-c", "ls /proc/self/fd; true"]] {
        let alone = Run::new(&scratch, &program).unrecorded().run();
        let recorded = Run::new(&scratch, &program).run();
        assert_eq!(String::from_utf8_lossy(&alone.stdout), String::from_utf8_lossy(&recorded.stdout));
    }
}
