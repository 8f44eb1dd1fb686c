//! `heaptally run` that is interrupted, killed, stopped, or whose terminal goes away.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use integration_tests::program;
use integration_tests::report::Report;
use integration_tests::run::{Run, report_json};
use integration_tests::scratch::Scratch;
use integration_tests::terminal::{script, start};
use integration_tests::tool;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Mallocs per entry of the window in `kill_loop.c`.
const PER_ENTRY: u64 = 7;

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The program's process id and its finished entries, once there are some.
fn page(path: &Path) -> Option<(Pid, u64)> {
    let bytes = fs::read(path).ok()?;
    let words = bytes.as_chunks::<8>().0;
    let word = |at: usize| words.get(at).map(|word| u64::from_le_bytes(*word));
    let pid = Pid::from_raw(i32::try_from(word(0)?).ok()?)?;
    Some((pid, word(1)?)).filter(|(_, finished)| *finished > 0)
}

fn built() -> Option<(Scratch, PathBuf)> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "kill_loop.c", "kill_loop", &["-O1"]);
    let counts = scratch.path("counts");
    Some((scratch, counts))
}

/// What was recorded is what the program had finished, but for the entry in which it ended.
fn check(report: &Report, counts: &Path, what: &str) {
    let (_, finished) = page(counts).expect("the program's page");
    assert_eq!(report.lost().collect::<Vec<_>>(), [""; 0], "{what}");
    let window = report.window("w");
    let calls = window.calls_with("entry_work");
    assert!(
        (finished * PER_ENTRY..=(finished + 1) * PER_ENTRY).contains(&calls),
        "{what}: {calls} calls, the program finished {finished} entries of {PER_ENTRY}"
    );
    assert_eq!(calls, window.complete_calls(), "{what}:\n{}", window.text());
}

#[test]
fn a_signal_to_the_command_ends_the_program_and_the_profile_is_whole() {
    let signals = [
        (Signal::INT, 2),
        (Signal::TERM, 15),
        (Signal::HUP, 1),
        (Signal::QUIT, 3),
        (Signal::USR1, 10),
        (Signal::USR2, 12),
        (Signal::ALARM, 14),
        (Signal::XCPU, 24),
        (Signal::POWER, 30),
    ];
    for (signal, number) in signals {
        let Some((scratch, counts)) = built() else { return };
        let running = Run::new(&scratch, ["./kill_loop".into(), counts.clone()])
            .behind_shell("ulimit -c 0; exec \"$@\"")
            .start();
        wait_for("the program", || page(&counts));
        running.signal(signal);
        let outcome = running.wait();
        assert_eq!(outcome.code, 128 + number, "{signal:?}; stderr:\n{}", outcome.stderr);
        check(outcome.report(), &counts, &format!("{signal:?}"));
    }
}

/// Where the command is killed the program goes on, and ends as it would: its memory and its files are its own. Nothing is
/// written; with `--segment-dir` the file is left.
#[test]
fn the_command_is_killed() {
    for folder in [None, Some("segments")] {
        let Some((scratch, counts)) = built() else { return };
        scratch.shell("mkdir segments");
        let options: Vec<&str> =
            folder.map(|folder| ["--segment-dir", folder]).into_iter().flatten().collect();
        let profile = scratch.path("profile.pb.gz");
        let running = Run::new(&scratch, ["./kill_loop".into(), counts.clone()])
            .options(options)
            .profile(profile.clone())
            .start();
        let (program, _) = wait_for("the program", || page(&counts));
        running.signal(Signal::KILL);
        let outcome = running.wait();
        assert_eq!(outcome.code, 137);
        assert!(!profile.exists());
        let (_, before) = page(&counts).expect("the program's page");
        wait_for("more entries", || page(&counts).filter(|(_, finished)| *finished > before + 1000));
        assert!(test_kill_process(program).is_ok(), "the program ended with the command");
        kill_process(program, Signal::KILL).expect("kill");
        let left = fs::read_dir(scratch.path("segments")).expect("the folder").count();
        assert_eq!(left, usize::from(folder.is_some()), "{folder:?}");
    }
}

/// A program that the recorded one becomes when there is no command any more is not recorded, and works.
#[test]
fn the_command_is_killed_before_an_exec() {
    let Some((scratch, _)) = built() else { return };
    let words = "echo $$ > began; while ! test -e go; do sleep 0.01; done; exec sh -c 'echo went on > done'";
    let running = Run::new(&scratch, ["sh", "-c", words]).start();
    wait_for("the program", || {
        fs::read_to_string(scratch.path("began")).ok().filter(|text| text.ends_with('\n'))
    });
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, 137);
    scratch.write("go", "");
    let done = wait_for("the end", || {
        fs::read_to_string(scratch.path("done")).ok().filter(|text| text.ends_with('\n'))
    });
    assert_eq!(done, "went on\n");
}

fn state(process: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

#[test]
fn a_program_that_is_stopped_and_continued() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "process_ends.c", "program", &["-O1"]);
    for ending in [Signal::CONT, Signal::KILL] {
        let running = Run::new(&scratch, ["./program", "stop"]).start();
        let program = wait_for("the program", || running.program_id().filter(|id| state(*id) == Some('T')));
        // The command waits: it neither ends nor writes.
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(state(program), Some('T'));
        kill_process(program, ending).expect("kill");
        let outcome = running.wait();
        let (code, behind) = if ending == Signal::CONT { (4, 9) } else { (137, 0) };
        assert_eq!(outcome.code, code, "stderr:\n{}", outcome.stderr);
        let window = outcome.report().window("w");
        assert_eq!((window.calls_with("main_work"), window.calls_with("end_work")), (6, behind));
    }
}

/// The terminal goes away: program and command are told by SIGHUP, the program ends, and the profile is written though
/// nobody can be told.
#[test]
fn the_terminal_is_closed() {
    let Some((scratch, counts)) = built() else { return };
    if !tool::have(&["script", "stty"]) {
        return;
    }
    let mut terminal = start(script(&scratch, 80, "run -o a.pb.gz ./kill_loop counts"));
    let (program, _) = wait_for("the program", || page(&counts));
    terminal.kill().expect("kill");
    terminal.wait().expect("wait");
    wait_for("the program's end", || test_kill_process(program).is_err().then_some(()));
    let profile = scratch.path("a.pb.gz");
    wait_for("the profile", || profile.exists().then_some(()));
    let report = Report::parse(&report_json(&profile)).expect("a report");
    check(&report, &counts, "closed terminal");
}

/// ^\ at the terminal goes to program and command alike: the program ends, the command writes what was recorded.
#[test]
fn quit_at_the_terminal() {
    use std::io::Write;
    use std::process::Stdio;

    let Some((scratch, counts)) = built() else { return };
    if !tool::have(&["script", "stty"]) {
        return;
    }
    let mut command = script(&scratch, 80, "run -o a.pb.gz ./kill_loop counts");
    command.stdin(Stdio::piped());
    let mut terminal = start(command);
    wait_for("the program", || page(&counts));
    let mut keyboard = terminal.stdin.take().expect("an input");
    keyboard.write_all(b"\x1c").expect("typing");
    keyboard.flush().expect("typing");
    let shown = integration_tests::terminal::wait(terminal);
    assert_eq!(shown.code, 131, "{shown:?}");
    // The shell of the terminal ends by the same signal, and does not wait for the command.
    let profile = scratch.path("a.pb.gz");
    wait_for("the profile", || profile.exists().then_some(()));
    let report = Report::parse(&report_json(&profile)).expect("a report");
    check(&report, &counts, "quit");
}
