//! What most cases need: build, run alone, run under the recorder, compare.

use integration_tests::case::Case;
use integration_tests::check::{self, Tolerance};
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// Builds the case. `None` where its compiler is missing.
pub(crate) fn build(id: &str) -> Option<(Case, Scratch)> {
    let case = Case::load(id);
    let compiler = case.compiler().to_owned();
    if !tool::have(&[&compiler]) {
        return None;
    }
    let scratch = Scratch::of_case(&case);
    Some((case, scratch))
}

/// Runs the built case and checks its exit code, output and counts.
pub(crate) fn run(case: &Case, scratch: &Scratch, code: i32, tolerance: Tolerance) -> Outcome {
    let outcome = Run::new(scratch, [case.program()]).run();
    assert_eq!(outcome.code, code, "{}: exit code; stderr:\n{}", case.id, outcome.stderr);
    check::case_with(case, &outcome, tolerance);
    outcome
}

/// The whole of it for a case that ends with exit code `code`.
pub(crate) fn case(id: &str, code: i32) -> Option<Outcome> {
    let (case, scratch) = build(id)?;
    Some(run(&case, &scratch, code, Tolerance::default()))
}

/// As [`case()`], but lets something pass.
pub(crate) fn case_with(id: &str, code: i32, tolerance: Tolerance) -> Option<Outcome> {
    let (case, scratch) = build(id)?;
    Some(run(&case, &scratch, code, tolerance))
}

/// Runs a case that the recorder is to refuse: exit code 125, and a message that holds all of `words`.
pub(crate) fn refused(id: &str, words: &[&str]) -> Option<Outcome> {
    let (case, scratch) = build(id)?;
    let outcome = Run::new(&scratch, [case.program()]).run();
    assert_eq!(outcome.code, 125, "{id}: exit code; stderr:\n{}", outcome.stderr);
    for word in words {
        assert!(outcome.stderr.contains(word), "{id}: no {word:?} in the message:\n{}", outcome.stderr);
    }
    Some(outcome)
}
