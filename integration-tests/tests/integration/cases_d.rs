//! Group D, as far as recording goes.

use integration_tests::check::Tolerance;
use integration_tests::run::Run;

use crate::standard;

#[test]
fn d01_places_change_and_the_total_does_not() {
    let Some((case, scratch)) = standard::build("D01") else { return };
    standard::run(&case, &scratch, 0, Tolerance::default());
    let after = Run::new(&scratch, ["./D01after"]).run();
    let window = after.report().window("w");
    let counts = ["swap_a", "swap_b", "old_name", "new_name", "gone", "fresh", "steady", "moved"]
        .map(|name| window.calls_with(name));
    assert_eq!((window.calls(), counts), (28, [0, 10, 0, 5, 0, 4, 8, 1]), "{}", window.text());
}

/// Equal counts come out in one order.
#[test]
fn d02_ties_have_an_order() {
    let Some((case, scratch)) = standard::build("D02") else { return };
    let tolerance = Tolerance { other_rows: true, ..Tolerance::default() };
    let first = standard::run(&case, &scratch, 0, tolerance);
    assert_eq!(first.report().window("w").calls(), 78);
    let second = standard::run(&case, &scratch, 0, tolerance);
    assert_eq!(first.window_json("w"), second.window_json("w"));
}

/// 65,536 stacks of one allocation each.
#[test]
fn d03_very_many_stacks() {
    let Some((case, scratch)) = standard::build("D03") else { return };
    let outcome = Run::new(&scratch, [case.program()]).without_frames().run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let window = outcome.report().window("w");
    let calls = (window.calls(), window.counts.calls(), window.complete_calls());
    assert_eq!(calls, (65_536, 65_536, 65_536));
    let ones = window.rows.iter().filter(|row| row.counts.calls() == 1).count();
    assert_eq!((window.rows.len(), ones), (65_536, 65_536));
    assert_eq!(outcome.report().losses_text(), "");
}
