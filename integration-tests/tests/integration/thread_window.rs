//! Windows and pauses, and the threads that begin and end them.

use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

fn recorded(way: &str) -> Option<Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "thread_windows.c", "program", &["-O1"]);
    let outcome = Run::new(&scratch, ["./program", way]).run();
    assert_eq!(outcome.code, 0, "{way}; stderr:\n{}", outcome.stderr);
    Some(outcome)
}

#[test]
fn a_window_that_another_thread_ends() {
    let Some(outcome) = recorded("crossing") else { return };
    let window = outcome.report().window("w");
    assert_eq!((window.calls_with("thread_alloc"), window.calls_with("main_alloc")), (5, 0));
    assert!(!window.unfinished);
    assert_eq!((window.entries, window.stray_ends), (1, 0));
    assert_eq!(outcome.report().losses_text(), "");
}

/// A thread's window is not another thread's to end: that is a stray end, and the window goes on.
#[test]
fn a_threads_window_that_another_thread_ends() {
    let Some(outcome) = recorded("foreign") else { return };
    let window = outcome.report().window("mine");
    assert_eq!(window.calls_with("main_alloc"), 4, "{}", window.text());
    assert_eq!((window.entries, window.stray_ends, window.ended_by_thread), (1, 1, 0));
}

#[test]
fn threads_that_end_with_their_window_open() {
    let Some(outcome) = recorded("open") else { return };
    let window = outcome.report().window("mine");
    assert_eq!((window.calls_with("thread_alloc"), window.calls()), (18, 18), "{}", window.text());
    assert_eq!((window.entries, window.ended_by_thread, window.unfinished), (9, 9, false));
    let (_, text, _) =
        integration_tests::run::heaptally_output(["report".as_ref(), outcome.profile.as_os_str()]);
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("9 entries closed by the thread's end"), "{text}");
}

#[test]
fn a_resume_without_a_pause_is_said() {
    let Some(outcome) = recorded("resume") else { return };
    let report = outcome.report();
    assert_eq!(report.window("w").calls_with("thread_alloc"), 2);
    assert_eq!(report.losses_text(), "stray_resumes 3");
    assert!(outcome.stderr.contains("3 resumes by threads that were not paused"), "{}", outcome.stderr);
}

#[test]
fn threads_that_come_and_go_in_an_open_window() {
    let Some(outcome) = recorded("churn") else { return };
    let report = outcome.report();
    let window = report.window("w");
    assert_eq!((window.entries, window.calls_with("thread_alloc")), (5, 600), "{}", window.text());
    let sum = report.threads("program", "worker", "w");
    assert_eq!((sum.lives, sum.allocations, sum.freed), (200, 600, 600));
    for row in window.rows_with("thread_alloc") {
        assert_eq!(row.entries, Some(5), "{}", row.text());
    }
    assert_eq!(report.losses_text(), "");
}
