//! Group C: stacks and names.

use std::fs;

use integration_tests::check::{self, Tolerance};
use integration_tests::report::Report;
use integration_tests::run::Run;
use integration_tests::tool;

use crate::standard;

macro_rules! plain {
    ($($name:ident: $id:literal;)*) => {
        $(#[test]
        fn $name() {
            standard::case($id, 0);
        })*
    };
}

plain! {
    c01_no_frame_pointers: "C01";
    c02_deep_recursion: "C02";
    c03_inlined_callers: "C03";
    c10_clone_suffixes: "C10";
    c11_frame_pointers_that_point_nowhere: "C11";
    c15_spaces_and_bytes_that_are_not_utf8_in_the_path: "C15";
}

/// The rows of a window as text that knows no addresses of this run.
fn rows(report: &Report) -> Vec<String> {
    let mut rows: Vec<String> = report.window("w").rows.iter().map(|row| row.text()).collect();
    rows.sort();
    rows
}

/// Names from the file that `.gnu_debuglink` names; none where it is gone; none where it is of another build.
#[test]
fn c06_stripped_with_a_separate_debug_file() {
    if !tool::have(&["objcopy", "strip"]) {
        return;
    }
    let Some((case, scratch)) = standard::build("C06") else { return };
    standard::run(&case, &scratch, 0, Tolerance::default());

    fs::remove_file(scratch.path("C06.debug")).expect("remove the debug file");
    let first = Run::new(&scratch, [case.program()]).run();
    let second = Run::new(&scratch, [case.program()]).run();
    let without = first.report();
    assert_eq!(without.window("w").calls(), 5, "{}", without.window("w").text());
    assert_eq!(without.window("w").calls_with("work"), 0, "{}", without.window("w").text());
    assert_eq!(rows(without), rows(second.report()), "not the same in two runs");

    let other = "gcc -O2 -g -o other C06.c && objcopy --only-keep-debug other C06.debug";
    scratch.shell(other);
    let stale = Run::new(&scratch, [case.program()]).run();
    let stale = stale.report();
    assert_eq!(stale.window("w").calls(), 5, "{}", stale.window("w").text());
    assert_eq!(
        stale.window("w").calls_with("work"),
        0,
        "names of another build:\n{}",
        stale.window("w").text()
    );
}

/// ET_EXEC and PIE, and the same report in spite of address randomisation.
#[test]
fn c07_any_load_address_gives_the_same_report() {
    let Some((case, scratch)) = standard::build("C07") else { return };
    standard::run(&case, &scratch, 0, Tolerance::default());
    scratch.shell("gcc -O0 -g -pie -fPIE -o C07 C07.c");
    let mut seen = Vec::new();
    for _ in 0..5 {
        let outcome = standard::run(&case, &scratch, 0, Tolerance::default());
        seen.push(outcome.window_json("w"));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "reports differ from run to run: {seen:#?}");
}

#[test]
fn c08_folded_functions() {
    if tool::have(&["ld.gold"]) {
        standard::case("C08", 0);
    }
}

/// A name of more than 20,000 bytes is whole in the JSON.
#[test]
fn c13_an_enormous_name() {
    let Some(outcome) = standard::case("C13", 0) else { return };
    let window = outcome.report().window("w");
    let longest = window.rows.iter().flat_map(|row| &row.frames).map(|frame| frame.function.len()).max();
    assert!(longest > Some(20_000), "the longest name has {longest:?} bytes");
}

/// The program replaces its own file: names of the impostor must not appear.
#[test]
fn c16_the_executable_is_replaced_while_it_runs() {
    let Some((case, scratch)) = standard::build("C16") else { return };
    fs::copy(scratch.path("C16"), scratch.path("C16.tmp.bin")).expect("copy the program");
    let outcome = Run::new(&scratch, ["./C16.tmp.bin", "go"]).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let window = outcome.report().window("w");
    assert_eq!(window.calls(), 3, "{}", window.text());
    assert_eq!(window.complete_calls(), 3, "{}", window.text());
    let is_named = window.rows.iter().any(|row| row.has("work"));
    if is_named {
        check::case(&case, &outcome);
    }
}
