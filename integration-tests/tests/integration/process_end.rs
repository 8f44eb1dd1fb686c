//! A process that ends while its threads allocate: what was recorded until then is there.

use std::fs;

use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

const THREADS: u64 = 8;

/// The report, and how many calls the threads had finished.
fn ended(way: &str, code: i32) -> Option<(Outcome, u64)> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "process_ends.c", "program", &["-O1"]);
    let page = scratch.path("page");
    let outcome = Run::new(&scratch, ["./program".into(), way.into(), page.clone()]).run();
    assert_eq!(outcome.code, code, "{way}; stderr:\n{}", outcome.stderr);
    let words = fs::read(page).expect("the program's page");
    let words = words.as_chunks::<8>().0.iter().take(THREADS as usize);
    let finished = words.map(|word| u64::from_le_bytes(*word)).sum();
    assert_eq!(outcome.report().lost().collect::<Vec<_>>(), [""; 0], "{way}");
    assert_eq!(outcome.report().sum_mismatches.len(), 0, "{way}: {}", outcome.report().losses_text());
    let window = outcome.report().window("w");
    assert!(window.unfinished, "{way}");
    assert_eq!(window.calls_with("main_work"), 6, "{way}:\n{}", window.text());
    Some((outcome, finished))
}

/// A call that had begun when the process ended may be recorded and not be finished.
fn check_busy(way: &str, outcome: &Outcome, finished: u64) {
    let window = outcome.report().window("w");
    let calls = window.calls_with("busy_work");
    assert!((finished..=finished + THREADS).contains(&calls), "{way}: {finished}\n{}", window.text());
}

#[test]
fn main_returns_while_detached_threads_go_on() {
    let Some((outcome, finished)) = ended("return", 4) else { return };
    check_busy("return", &outcome, finished);
}

#[test]
fn main_ends_and_its_threads_outlive_it() {
    let Some((outcome, finished)) = ended("pthread_exit", 4) else { return };
    assert_eq!(finished, THREADS * 500);
    let window = outcome.report().window("w");
    assert_eq!(window.calls_with("busy_work"), finished, "{}", window.text());
}

#[test]
fn a_thread_ends_the_process() {
    for (way, code) in [("quick_exit", 4), ("_exit", 4), ("exit", 4), ("abort", 134)] {
        let Some((outcome, finished)) = ended(way, code) else { return };
        check_busy(way, &outcome, finished);
        assert_eq!(outcome.report().window("w").calls_with("end_work"), 9, "{way}");
    }
}

#[test]
fn a_thread_becomes_another_program() {
    let Some((outcome, finished)) = ended("exec", 4) else { return };
    check_busy("exec", &outcome, finished);
    let report = outcome.report();
    assert_eq!(report.window("w").calls_with("end_work"), 9);
    assert_eq!(report.window("again").calls(), 11, "{}", report.window("again").text());
    assert_eq!(report.images.iter().map(|image| image.replaced).collect::<Vec<_>>(), [true, false]);
}
