//! Libraries that come and go, and take each other's place.

use integration_tests::check::{self, Tolerance};
use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

const ROUNDS: u64 = 60;
const THREAD_CALLS: u64 = 20_000;
const ATTEMPTS: usize = 12;

fn run(threads: u64, is_watched: bool) {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    let library = |name: &str, size: &str| {
        let flags = ["-O1", "-fPIC", "-shared", &format!("-DNAME={name}"), &format!("-DSIZE={size}")];
        program::build(&scratch, "unload_library.c", &format!("libunload_{name}.so"), &flags);
    };
    library("a", "24");
    library("b", "1032");
    program::build(&scratch, "unload_loop.c", "unload_loop", &["-O1"]);
    program::build(&scratch, "deny_writable_code.c", "deny", &[]);
    // Where the kernel finds room is chance: in some layouts of the address space the two take turns in two places.
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let words = ["./unload_loop".to_owned(), ROUNDS.to_string(), threads.to_string()];
        let run = Run::new(&scratch, words);
        let outcome = if is_watched { run.run() } else { run.behind(["./deny"]).run() };
        assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
        let same: u64 = String::from_utf8_lossy(&outcome.stdout).trim().parse().expect("a number");
        check_libraries(&outcome, threads);
        let is_said =
            outcome.report().warnings().iter().any(|warning| warning.contains("could not be watched"));
        assert_eq!(is_said, !is_watched, "{:?}", outcome.report().warnings());
        if same > ROUNDS / 2 {
            return;
        }
        seen.push(same);
    }
    panic!("the libraries lay at the same address {seen:?} times only: the test shows nothing");
}

fn check_libraries(outcome: &Outcome, threads: u64) {
    let expected = check::expectation(&format!(
        "w: total=0 [{}* main -> use_library -> outer_a -> inner_a -> malloc] \
         [{}* main -> use_library -> outer_b -> inner_b -> malloc] [{}* busy -> thread_alloc -> malloc]",
        ROUNDS * 10,
        ROUNDS * 7,
        threads * THREAD_CALLS
    ));
    // The loader's own allocations lie in the window too.
    let tolerance = Tolerance { other_rows: true, ..Tolerance::default() };
    check::window(outcome.report(), &expected, tolerance);
    let window = outcome.report().window("w");
    let mixed = window.rows.iter().filter(|row| {
        let library = ["inner_a", "outer_a"].iter().any(|name| row.has(name));
        library && ["inner_b", "outer_b"].iter().any(|name| row.has(name))
    });
    assert_eq!(mixed.count(), 0, "stacks of both libraries:\n{}", window.text());
    let named = ["inner_a", "inner_b"].map(|name| window.calls_with(name));
    assert_eq!(named, [ROUNDS * 10, ROUNDS * 7], "{}", window.text());
    assert_eq!(outcome.report().losses_text(), "");
}

#[test]
fn libraries_that_take_each_others_place() {
    run(0, true);
}

#[test]
fn libraries_that_take_each_others_place_while_threads_allocate() {
    run(3, true);
}

/// Where no code can be made writable, so that the loader does not tell of what comes and goes.
#[test]
fn libraries_that_take_each_others_place_unwatched() {
    run(3, false);
}

#[test]
#[ignore = "takes minutes"]
fn libraries_that_take_each_others_place_a_hundred_times() {
    for _ in 0..100 {
        run(3, true);
    }
}
