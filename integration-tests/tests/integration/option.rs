//! Options of `run` that change what is recorded or what passes.

use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

fn recorded(source: &str, options: &[&str]) -> Option<Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, source, "program", &["-O1"]);
    Some(Run::new(&scratch, ["./program"]).options(options.iter().copied()).run())
}

/// Whole stacks and nothing lost: the program's own exit code. A cut stack: 125, and the profile is there.
#[test]
fn strict_lets_only_whole_results_pass() {
    let Some(whole) = recorded("start.c", &["--strict"]) else { return };
    assert_eq!(whole.code, 3, "stderr:\n{}", whole.stderr);
    let Some(cut) = recorded("made_code.c", &["--strict"]) else { return };
    assert_eq!(cut.code, 125, "stderr:\n{}", cut.stderr);
    assert!(cut.report.is_some(), "stderr:\n{}", cut.stderr);
    let Some(without) = recorded("made_code.c", &[]) else { return };
    assert_eq!(without.code, 0, "stderr:\n{}", without.stderr);
}

/// The same allocations on the same stacks; nothing of their frees.
#[test]
fn without_lifetimes() {
    let Some(with) = recorded("threads.c", &[]) else { return };
    let Some(without) = recorded("threads.c", &["--no-lifetimes"]) else { return };
    let (with, without) = (with.report().window("w"), without.report().window("w"));
    assert_eq!(
        (with.counts.allocations, with.counts.bytes),
        (without.counts.allocations, without.counts.bytes)
    );
    assert_eq!(with.rows.len(), without.rows.len());
    assert!(with.counts.freed >= 2000, "{:?}", with.counts);
    assert_eq!((without.counts.freed, without.counts.freed_later), (0, 0));
}

/// The status tells the program and the recorder apart.
#[test]
fn the_status_file() {
    let Some(outcome) = recorded("start.c", &[]) else { return };
    assert!(outcome.status.is_object(), "status {}", outcome.status);
    let text = outcome.status.to_string();
    assert!(text.contains(":3"), "the program's exit code is not in {text}");
}
