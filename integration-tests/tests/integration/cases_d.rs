//! Group D, as far as programs go; what a gate does with edited profiles, the command's own tests look at.

use std::process::Command;

use integration_tests::check::Tolerance;
use integration_tests::command::heaptally;
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

/// D01 as a gate sees it, D08, D14: a new stack fails though the total is the same, both directions are told, and what may
/// be a rename is said.
#[test]
fn d08_a_gate_sees_both_directions() {
    let Some((_, scratch)) = standard::build("D01") else { return };
    let call = |words: &str| {
        let output = Command::new(heaptally()).args(words.split(' ')).current_dir(scratch.folder()).output();
        let output = output.expect("heaptally starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for (program, file) in [("./D01", "base.pb.gz"), ("./D01after", "change.pb.gz")] {
        assert_eq!(call(&format!("run -q -o {file} {program}")).0, Some(0));
    }
    let (code, text) = call("check change.pb.gz --baseline base.pb.gz");
    assert_eq!(code, Some(3), "{text}");
    assert!(text.starts_with("FAILED: +4 allocs (new) in \"w\": fresh"), "{text}");
    let renamed = "warning: window \"w\": 2 stacks are taken for renamed ones, the most with 10 allocs";
    assert!(text.contains(renamed) && text.contains("renamed from swap_a"), "{text}");
    let (_, diff) = call("diff base.pb.gz change.pb.gz");
    assert!(["+10", "-10", "+4", "-4"].iter().all(|delta| diff.contains(delta)), "{diff}");
    assert!(!diff.contains("steady") && !diff.contains("moved("), "{diff}");
    assert_eq!(call("check change.pb.gz --baseline base.pb.gz --per-stack off").0, Some(0));

    scratch.write("limits.toml", "[window.w]\nallocs = 27\n");
    let (code, text) = call("check change.pb.gz --limits limits.toml");
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("28 allocs, at most 27 allowed (+1): limits.toml:2"), "{text}");
    scratch.write("limits.toml", "[window.w]\nstacks = { new = \"pass\", renamed = \"fail\" }\n");
    let (code, text) = call("check change.pb.gz --baseline base.pb.gz --limits limits.toml");
    assert_eq!(code, Some(3), "{text}");
    assert!(text.starts_with("FAILED: +5 allocs (renamed) in \"w\": new_name"), "{text}");
}
