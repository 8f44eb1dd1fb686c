//! Windows that are what runs beneath functions, of programs that know nothing of the recorder (`--window-in`).

use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

fn edges(options: &[&str], mode: &str, count: u64) -> Option<Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "function_edges.c", "edges", &["-O2"]);
    program::build(&scratch, "function_plugin.c", "libplugin.so", &["-O1", "-fPIC", "-shared"]);
    let words = ["./edges".to_owned(), mode.to_owned(), count.to_string()];
    Some(Run::new(&scratch, words).options(options.iter().copied()).run())
}

/// Entries, and the allocations as the rows and the threads have them; nothing is lost or cut.
#[track_caller]
fn check(outcome: &Outcome, name: &str, entries: u64, calls: u64) {
    let window = outcome.report().window(name);
    assert_eq!((window.entries, window.calls()), (entries, calls), "{}", window.text());
    assert_eq!(window.complete_calls(), window.calls(), "{}", window.text());
    assert_eq!(outcome.report().losses_text(), "");
    assert!(outcome.report().sum_mismatches.is_empty());
    assert!(!outcome.report().has_window("process"));
}

#[test]
fn threads_signals_and_libraries() {
    for threads in [2, 8, 64] {
        let Some(outcome) = edges(&["--window-in", "w=work"], "threads", threads) else { return };
        assert_eq!(outcome.code, 4, "stderr:\n{}", outcome.stderr);
        check(&outcome, "w", threads * 1000, threads * 1000);
    }
    let Some(outcome) = edges(&["--window-in", "w=work", "--window-in", "h=handler"], "signal", 11) else {
        return;
    };
    check(&outcome, "w", 22, 33);
    assert_eq!((outcome.report().window("h").entries, outcome.report().has_window("h")), (11, true));
    let Some(outcome) = edges(&["--window-in", "h=handler"], "signal", 11) else { return };
    check(&outcome, "h", 11, 11);
    for mode in ["library", "late"] {
        let Some(outcome) = edges(&["--window-in", "w=plugin_entry"], mode, 30) else { return };
        check(&outcome, "w", 30, 150);
    }
}

/// What means all that fit means those of each module, whenever it comes.
#[test]
fn functions_of_several_modules() {
    let Some(outcome) = edges(&["--window-in", "w=re:^(work|plugin_entry)$"], "both", 30) else { return };
    check(&outcome, "w", 60, 210);
}

/// Builds a program that takes a number of rounds, and records it.
fn rounds(source: &str, count: u64, options: &[&str]) -> Option<Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, source, "rounds", &["-O2"]);
    let words = ["./rounds".to_owned(), count.to_string()];
    Some(Run::new(&scratch, words).options(options.iter().copied()).run())
}

/// What a compiler made of a function for some of its callers is the function, too; a part of it is no entry.
#[test]
fn clones_beside_the_plain_function() {
    for pattern in ["w=enlarge", "w=re:^enlarge$", "w=enlarge*"] {
        let Some(outcome) = rounds("function_clones.c", 10, &["--window-in", pattern]) else { return };
        check(&outcome, "w", 20, 60);
        // Each ends with a jump to a function that allocates nothing, but might.
        let warnings = outcome.report().warnings().join("\n");
        assert!(warnings.contains("may be left by a jump to another function (a tail call)"), "{warnings}");
    }
    let Some(outcome) = rounds("function_clones.c", 10, &["--window-at", "w=enlarge..outside"]) else {
        return;
    };
    check(&outcome, "w", 20, 50);
    let Some(outcome) = rounds("function_clones.c", 10, &["--window-in", "w=enlarge.constprop.0"]) else {
        return;
    };
    check(&outcome, "w", 10, 20);
}

/// Functions of one name that are written at different places are different functions.
#[test]
fn functions_of_one_name_in_two_files() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "function_twins.c", "other.o", &["-O2", "-c", "-DOTHER"]);
    program::build(&scratch, "function_twins.c", "twins", &["-O2", "other.o"]);
    let run = |options: &[&str]| Run::new(&scratch, ["./twins", "10"]).options(options.iter().copied()).run();
    for options in [&["--window-in", "w=prepare"], &["--window-at", "w=prepare..second"]] {
        let outcome = run(options);
        assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
        for words in ["2 functions (`prepare at ", "function_twins.c:100`, ", "function_twins.c:200`) of "] {
            assert!(outcome.stderr.contains(words), "stderr:\n{}", outcome.stderr);
        }
    }
    for (line, calls) in [(100, 20), (200, 30)] {
        check(&run(&["--window-in", &format!("w=function_twins.c:{line}")]), "w", 10, calls);
    }
    check(&run(&["--window-in", "w=re:^prepare$"]), "w", 20, 50);
}

/// A library's function is not taken where the program has one that may be meant.
#[test]
fn a_name_that_is_the_last_part_of_one_of_the_program() {
    if !tool::have(&["g++"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "function_kinds.cpp", "kinds", &["-O2"]);
    let outcome = Run::new(&scratch, ["./kinds"]).options(["--window-in", "w=qsort"]).run();
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
    for words in ["`qsort` is a function of `", "and the program has `own::qsort()`: name that one whole"] {
        assert!(outcome.stderr.contains(words), "stderr:\n{}", outcome.stderr);
    }
    let outcome = Run::new(&scratch, ["./kinds"]).options(["--window-in", "w=own::qsort"]).run();
    check(&outcome, "w", 10, 10);
}

/// An allocation whose stack does not reach the function may be beneath it all the same.
#[test]
fn stacks_that_are_cut_below_the_function() {
    let Some(outcome) = rounds("function_cut.c", 10, &["--window-in", "w=work"]) else { return };
    let window = outcome.report().window("w");
    assert_eq!((window.entries, window.calls()), (10, 20), "{}", window.text());
    assert_eq!(outcome.report().losses_text(), "unplaced 40");
    let said = "not recorded: 40 allocations whose stack was cut: whether they were beneath the function";
    assert!(outcome.stderr.contains(said), "stderr:\n{}", outcome.stderr);
    let Some(outcome) = rounds("function_cut.c", 10, &["--strict", "--window-in", "w=work"]) else { return };
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
}

#[test]
fn forked_children_that_are_recorded() {
    let Some(outcome) = edges(&["--follow-children", "--window-in", "w=work"], "fork", 3) else { return };
    let windows = outcome.report().windows.iter().filter(|window| window.name == "w");
    let mut found: Vec<(u64, u64)> = windows.map(|window| (window.entries, window.calls())).collect();
    found.sort_unstable();
    assert_eq!(found, [(1, 3), (3, 9)], "stderr:\n{}", outcome.stderr);
}

#[test]
fn nobody_calls_the_function() {
    let Some(outcome) = edges(&["--window-in", "w=end_by_jump"], "plain", 3) else { return };
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
    assert!(outcome.stderr.contains("`end_by_jump` was never called"), "stderr:\n{}", outcome.stderr);
}

#[test]
fn a_function_that_longjmp_leaves() {
    let Some(outcome) = edges(&["--window-in", "w=leave"], "leave", 13) else { return };
    check(&outcome, "w", 13, 39);
}

/// What an allocation belongs to is one window: a second one beneath the same function would stay empty.
#[test]
fn two_windows_beneath_one_function_are_refused() {
    let options = ["--window-in", "a=work", "--window-in", "b=re:^work$"];
    let Some(outcome) = edges(&options, "plain", 3) else { return };
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
    let words = "window `b`, function: `re:^work$` is the function of window `a` already";
    assert!(outcome.stderr.contains(words), "stderr:\n{}", outcome.stderr);
    let Some(outcome) = edges(&["--window-in", "a=work", "--window-in", "a=re:^work$"], "plain", 3) else {
        return;
    };
    check(&outcome, "a", 6, 15);
}

/// A window that the program opens is another: an allocation beneath the function is the function's.
#[test]
fn a_window_at_functions_around_one_beneath_them() {
    let options = ["--window-at", "at=begin..end", "--window-in", "in=work"];
    let Some(outcome) = edges(&options, "plain", 6) else { return };
    check(&outcome, "in", 12, 30);
    let at = outcome.report().window("at");
    assert_eq!((at.entries, at.calls()), (6, 0), "{}", at.text());
}

fn kinds(program: &str, windows: &[&str]) -> Option<Outcome> {
    let scratch = Scratch::new();
    match program.ends_with(".rs") {
        true if tool::which("rustc").is_none() => return None,
        true => {
            let source = program::source(program);
            scratch.shell(&format!("rustc --edition 2024 -O -g -o kinds '{}'", source.display()));
        }
        false if !tool::have(&["g++"]) => return None,
        false => drop(program::build(&scratch, program, "kinds", &["-O2"])),
    }
    let options = windows.iter().flat_map(|window| ["--window-in", *window]);
    let outcome = Run::new(&scratch, ["./kinds"]).options(options).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    Some(outcome)
}

#[test]
fn functions_of_cpp() {
    let windows = [
        "thrower",
        "draw=re:^(Square|Circle)::draw",
        "twice",
        "lambda=re:lambda\\(int\\)",
        "recursive",
        "inner",
        "outer",
        "inlined",
    ];
    let Some(outcome) = kinds("function_kinds.cpp", &windows) else { return };
    // The exception itself is allocated beneath the function that throws it.
    for (name, entries, calls) in [
        ("thrower", 10, 40),
        ("draw", 20, 30),
        ("twice", 20, 20),
        ("lambda", 10, 10),
        ("recursive", 10, 40),
        // Beneath `outer` too: the function nearest to the allocation has it.
        ("inner", 20, 40),
        ("outer", 10, 10),
    ] {
        check(&outcome, name, entries, calls);
    }
    let inlined = outcome.report().window("inlined");
    assert_eq!((inlined.entries, inlined.iterations, inlined.calls()), (0, 1, 10), "{}", inlined.text());
    let is_said =
        |warning: &&str| warning.contains("1 copy of `inlined` was inlined, whose calls cannot be counted");
    assert_eq!(outcome.report().warnings().iter().filter(|warning| is_said(warning)).count(), 1);
}

#[test]
fn functions_of_rust() {
    let windows = [
        "generic=function_kinds::generic",
        "closure=re:^function_kinds::by_closure::\\{\\{closure",
        "async=re:^function_kinds::wait_thrice::\\{\\{closure",
        "panics=function_kinds::panics",
    ];
    let Some(outcome) = kinds("function_kinds.rs", &windows) else { return };
    check(&outcome, "generic", 20, 20);
    check(&outcome, "async", 40, 40);
    // The box of its own, the payload's, and what the unwinder takes.
    let panics = outcome.report().window("panics");
    assert_eq!(panics.entries, 10, "{}", panics.text());
    assert_eq!(panics.calls() % 10, 0, "{}", panics.text());
    assert!(panics.calls() >= 30, "{}", panics.text());
    assert_eq!(outcome.report().window("closure").calls(), 10);
}
