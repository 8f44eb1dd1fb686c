//! The functions of the header: kinds of windows, iterations, pauses.

use integration_tests::program;
use integration_tests::run::Run;
use integration_tests::scratch::Scratch;
use integration_tests::tool;

fn recorded(options: &[&str]) -> Option<integration_tests::run::Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "window_kinds.c", "kinds", &["-O1"]);
    Some(Run::new(&scratch, ["./kinds"]).options(options.iter().copied()).run())
}

#[test]
fn entries_iterations_pauses_and_thread_windows() {
    let Some(outcome) = recorded(&[]) else { return };
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    let window = report.window("loop");
    assert_eq!((window.entries, window.iterations), (10, 50));
    assert_eq!(window.calls_with("loop_work"), 200, "{}", window.text());
    assert_eq!(window.calls_with("paused_work"), 0, "{}", window.text());
    assert_eq!(window.calls(), 200, "{}", window.text());
    let mine = report.window("mine");
    assert_eq!((mine.calls_with("thread_work"), mine.calls()), (7, 7), "{}", mine.text());
    assert_eq!(report.losses_text(), "");
}

#[test]
fn only_the_windows_that_were_asked_for() {
    let Some(outcome) = recorded(&["--window", "mine"]) else { return };
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    assert_eq!(report.window("mine").calls(), 7);
    assert!(!report.has_window("loop") && !report.has_window("process"));
}

#[test]
fn a_window_that_never_opens_is_an_error() {
    let Some(outcome) = recorded(&["--window", "nowhere"]) else { return };
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
    assert!(outcome.stderr.contains("nowhere"), "stderr:\n{}", outcome.stderr);
}

/// What the header says of itself: the loader's error and its text, once, and nothing that `dlerror` would still tell.
#[test]
fn the_header_allocates_twice_where_there_is_no_recorder() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "header_alone.c", "program", &["-O1"]);
    assert_eq!(scratch.shell("./program"), "2 0 none\n");
}
