//! Stacks of every kind: signals, exceptions, coroutines, contexts, code made at run time, depth, threads.

use integration_tests::check::{self, Tolerance};
use integration_tests::name::Name;
use integration_tests::program;
use integration_tests::report::Row;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

fn recorded(source: &str, flags: &[&str], arguments: &[&str]) -> Option<Outcome> {
    if !tool::have(&[if source.ends_with(".cpp") { "g++" } else { "gcc" }]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, source, "program", flags);
    let outcome = Run::new(&scratch, ["./program"].iter().chain(arguments)).run();
    assert_eq!(outcome.code, 0, "{source}: exit code; stderr:\n{}", outcome.stderr);
    assert_eq!(outcome.report().losses_text(), "", "{source}");
    Some(outcome)
}

const EXACT: Tolerance = Tolerance { other_rows: false, incomplete: false, losses: false };
const OTHER_ROWS: Tolerance = Tolerance { other_rows: true, incomplete: false, losses: false };

#[test]
fn signal_handlers_on_small_stacks() {
    for flags in [["-O0"], ["-O2"]] {
        let Some(outcome) = recorded("signal_stack.c", &flags, &[]) else { return };
        let expected = check::expectation(
            "w: total=51 [40* main -> descend -> ...raise... -> <signal> -> on_alternate -> ...malloc] \
             [5* main -> raise... -> <signal> -> on_outer -> ...raise... -> <signal> -> nested -> ...malloc] \
             [6* main -> raise... -> <signal> -> on_ordinary -> ...malloc]",
        );
        // At -O2 a handler leaves to `take` by a jump, and is gone from the stack.
        let tolerance = if flags == ["-O0"] { EXACT } else { OTHER_ROWS };
        if flags == ["-O0"] {
            check::window(outcome.report(), &expected, tolerance);
        }
        let window = outcome.report().window("w");
        assert_eq!((window.calls(), window.complete_calls()), (51, 51), "{}", window.text());
    }
}

#[test]
fn exceptions() {
    let Some(outcome) = recorded("exceptions.cpp", &["-O1", "-fno-optimize-sibling-calls"], &[]) else {
        return;
    };
    let expected = check::expectation(
        "w: total=1400 [200* main -> handle... -> rethrower -> ...thrower -> __cxa_allocate_exception -> malloc] \
         [1000* main -> handle... -> ...Guard::~Guard -> take -> malloc] [200* main -> handle -> take -> malloc]",
    );
    check::window(outcome.report(), &expected, EXACT);
}

#[test]
fn coroutines() {
    for flags in [["-O0"], ["-O2"]] {
        let Some(outcome) = recorded("coroutines.cpp", &flags, &[]) else { return };
        let window = outcome.report().window("w");
        assert_eq!(window.calls_with("item"), 8, "{}", window.text());
        let resumed = |by: &str| -> u64 {
            window.rows_with("item").filter(|row| row.has(by)).map(|row| row.counts.calls()).sum()
        };
        assert_eq!([resumed("drain_left"), resumed("drain_right")], [4, 4], "{}", window.text());
        assert_eq!(window.calls_with("operator new"), 4, "{}", window.text());
        assert_eq!((window.calls(), window.complete_calls()), (12, 12), "{}", window.text());
    }
}

#[test]
fn contexts_on_stacks_of_their_own() {
    let Some(outcome) = recorded("contexts.c", &["-O1", "-fno-optimize-sibling-calls"], &[]) else { return };
    let window = outcome.report().window("w");
    let levels = |count: usize| -> u64 {
        let is_at = |row: &&Row| {
            row.frames.iter().filter(|frame| Name::new(&frame.function).head == "sink_down").count()
                == count + 1
        };
        window.rows.iter().filter(is_at).map(|row| row.counts.calls()).sum()
    };
    assert_eq!([levels(1), levels(2), levels(3)], [100, 100, 100], "{}", window.text());
    let of_contexts = || window.rows_with("deepest");
    assert!(of_contexts().all(|row| row.has("context_body")), "{}", window.text());
    assert!(of_contexts().all(|row| !row.has("main") && !row.has("run")), "mixed stacks:\n{}", window.text());
    assert!(of_contexts().all(Row::is_complete), "{}", window.text());
}

/// Without unwind information a stack may be cut or go on by frame pointers, and is marked so. What it shows must be
/// true: known frames in their order, and none twice.
#[test]
fn code_made_at_run_time() {
    const TRUE_ORDER: [&str; 3] = ["malloc", "call_made", "main"];
    for flags in [["-O1", "-fno-omit-frame-pointer"], ["-O2", "-fomit-frame-pointer"]] {
        let Some(outcome) = recorded("made_code.c", &flags, &[]) else { return };
        for (name, calls) in [("framed", 5), ("frameless", 6), ("junk", 7), ("stack", 8), ("unmapped", 9)] {
            let window = outcome.report().window(name);
            assert_eq!(window.calls(), calls, "{flags:?} {}", window.text());
            for row in &window.rows {
                let named: Vec<usize> = row
                    .frames
                    .iter()
                    .filter(|frame| !frame.inlined)
                    .filter_map(|frame| {
                        TRUE_ORDER.iter().position(|known| Name::new(known).same(&Name::new(&frame.function)))
                    })
                    .collect();
                let in_order = named.windows(2).all(|pair| pair[0] < pair[1]);
                assert!(in_order && named.first() == Some(&0), "{flags:?} {name}: {}", row.text());
                assert!(!row.is_complete(), "{flags:?} {name}: said to be complete: {}", row.text());
                if row.capture == "frame_pointer" && name == "framed" {
                    assert_eq!(named, [0, 1, 2], "{flags:?} {name}: {}", row.text());
                }
                if name == "stack" || name == "unmapped" {
                    assert_eq!(row.capture, "cut", "{flags:?} {name}: {}", row.text());
                }
            }
        }
        let framed = outcome.report().window("framed");
        if flags[0] == "-O1" {
            let by_frame_pointer = framed.rows.iter().all(|row| row.capture == "frame_pointer");
            assert!(by_frame_pointer, "frame pointers were there: {}", framed.text());
        }
    }
}

#[test]
fn three_thousand_frames() {
    let flags = ["-O1", "-fno-optimize-sibling-calls"];
    let Some(outcome) = recorded("deep.c", &flags, &["3000"]) else { return };
    let window = outcome.report().window("w");
    assert_eq!(window.calls_with("bottom"), 5, "{}", window.text());
    for row in window.rows_with("bottom") {
        let dives = row.frames.iter().filter(|frame| frame.function == "dive").count();
        assert!(row.is_complete(), "{}", row.text());
        assert_eq!(dives, 3000, "{}", row.text());
        assert!(row.has("start_dive"), "{}", row.text());
    }
}

/// Too deep to be kept: the events are all there, the leaf's side is right, and the stack is marked unless it is whole.
#[test]
fn a_hundred_thousand_frames() {
    let flags = ["-O1", "-fno-optimize-sibling-calls"];
    let Some(outcome) = recorded("deep.c", &flags, &["100000"]) else { return };
    let window = outcome.report().window("w");
    assert_eq!(window.calls_with("bottom"), 5, "{}", window.text());
    for row in window.rows_with("bottom") {
        let dives = row.frames.iter().filter(|frame| frame.function == "dive").count();
        let is_elided = row.frames.iter().any(|frame| frame.kind == "elided");
        assert!(
            dives == 100_000 && row.is_complete() || row.capture == "cut" || is_elided,
            "{dives} frames of dive, and nothing is said: {}",
            row.text()
        );
        assert!(dives > 100, "{}", row.text());
    }
}

#[test]
fn sixty_four_threads() {
    let Some(outcome) = recorded("threads.c", &["-O1"], &["64"]) else { return };
    let window = outcome.report().window("w");
    assert_eq!(window.calls_with("odd_job"), 32_000, "{}", window.text());
    assert_eq!(window.calls_with("even_job"), 32_000, "{}", window.text());
    assert_eq!(window.calls(), window.complete_calls(), "{}", window.text());
    let freed: u64 = window.rows_with("worker").map(|row| row.counts.freed).sum();
    assert_eq!(freed, 64_000, "each block is freed by another thread:\n{}", window.text());
}
