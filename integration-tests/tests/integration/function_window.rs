//! Windows at functions, of programs that know nothing of the recorder (`--window-at`).

use std::ffi::OsStr;

use integration_tests::program;
use integration_tests::run::{Outcome, Run, heaptally_output};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

fn edges(options: &[&str], mode: &str, count: u64, flags: &[&str]) -> Option<Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "function_edges.c", "edges", flags);
    program::build(&scratch, "function_plugin.c", "libplugin.so", &["-O1", "-fPIC", "-shared"]);
    let words = ["./edges".to_owned(), mode.to_owned(), count.to_string()];
    Some(Run::new(&scratch, words).options(options.iter().copied()).run())
}

/// Entries and allocations of the window `w`, all below `work`; nothing is lost or cut.
#[track_caller]
fn check(outcome: &Outcome, entries: Option<u64>, calls: u64) {
    assert_eq!(outcome.code, 4, "stderr:\n{}", outcome.stderr);
    let window = outcome.report().window("w");
    if let Some(entries) = entries {
        assert_eq!(window.entries, entries);
    }
    assert_eq!(window.calls_with("work"), calls, "{}", window.text());
    assert_eq!(window.complete_calls(), window.calls(), "{}", window.text());
    assert_eq!(outcome.report().losses_text(), "");
    assert!(!outcome.report().has_window("process"));
}

#[test]
fn entries_of_two_functions_are_the_edges() {
    for flags in
        [&["-O2"][..], &["-O0"], &["-O2", "-fcf-protection=full"], &["-O2", "-fpatchable-function-entry=8"]]
    {
        let Some(outcome) = edges(&["--window-at", "w=begin..end"], "plain", 7, flags) else { return };
        check(&outcome, Some(7), 21);
    }
    for flags in [&["-O1", "-no-pie", "-fno-pie"][..], &["-O2", "-static-libgcc", "-fomit-frame-pointer"]] {
        let Some(outcome) = edges(&["--window-at", "w=re:^begin$ .. end"], "plain", 7, flags) else { return };
        check(&outcome, Some(7), 21);
    }
}

#[test]
fn several_windows_share_an_edge() {
    let options = ["--window-at", "w=begin..end", "--window-at", "rest=end..begin"];
    let Some(outcome) = edges(&options, "plain", 5, &["-O2"]) else { return };
    check(&outcome, Some(5), 15);
    let rest = outcome.report().window("rest");
    assert_eq!((rest.entries, rest.calls_with("work")), (5, 10), "{}", rest.text());
}

#[test]
fn threads_enter_at_once() {
    for threads in [2, 8, 64] {
        let Some(outcome) = edges(&["--window-at", "w=begin..end"], "threads", threads, &["-O2"]) else {
            return;
        };
        check(&outcome, None, threads * 1000);
    }
}

#[test]
fn the_end_may_be_left_by_a_jump_and_the_window_be_a_handler() {
    let Some(outcome) = edges(&["--window-at", "w=begin..end_by_jump"], "jump", 9, &["-O1"]) else { return };
    check(&outcome, Some(9), 27);
    let Some(outcome) = edges(&["--window-at", "w=begin..end"], "signal", 11, &["-O1"]) else { return };
    check(&outcome, Some(11), 11);
}

/// A timer's handler allocates a thousand times a second, wherever the functions are.
#[test]
fn no_stack_is_cut_by_a_storm_of_signals() {
    let Some(outcome) = edges(&["--window-at", "w=begin..end"], "storm", 15, &["-O2"]) else { return };
    assert_eq!(outcome.code, 4, "stderr:\n{}", outcome.stderr);
    let ticks: u64 = String::from_utf8_lossy(&outcome.stdout).trim().parse().unwrap();
    let window = outcome.report().window("w");
    let lost = outcome.report().loss("reentrant");
    assert_eq!(window.calls_with("in_storm") + lost, ticks, "{}", window.text());
    assert_eq!(window.complete_calls(), window.calls(), "{}", window.text());
    assert!(ticks > 100 && window.calls() > ticks / 10, "{ticks} ticks, {lost} lost");
}

#[test]
fn children_and_other_images_have_their_own_entries() {
    let at = ["--window-at", "w=begin..end"];
    let Some(outcome) = edges(&at, "fork", 3, &["-O2"]) else { return };
    check(&outcome, Some(1), 3);
    let Some(outcome) = edges(&[&at[..], &["--follow-children"]].concat(), "fork", 3, &["-O2"]) else {
        return;
    };
    let windows = outcome.report().windows.iter().filter(|window| window.name == "w");
    let mut found: Vec<(u64, u64)> = windows.map(|window| (window.entries, window.calls())).collect();
    found.sort_unstable();
    assert_eq!(found, [(1, 3), (3, 9)], "stderr:\n{}", outcome.stderr);
    let Some(outcome) = edges(&at, "exec", 4, &["-O2"]) else { return };
    check(&outcome, Some(4), 12);
}

#[test]
fn pauses_nest_and_those_that_make_no_sense_are_told() {
    let options = ["--window-at", "w=begin..end", "--window-pause", "w=hold", "--window-resume", "w=go_on"];
    let Some(outcome) = edges(&options, "pause", 11, &["-O2"]) else { return };
    check(&outcome, Some(11), 33);
    let warnings = outcome.report().warnings().join("\n");
    assert!(warnings.contains("11 calls of functions at which it is paused or resumed"), "{warnings}");
    // A pause ends with its window.
    let Some(outcome) = edges(&options[..4], "pause", 11, &["-O2"]) else { return };
    check(&outcome, Some(11), 11);
}

#[test]
fn libraries_that_come_and_go() {
    for mode in ["library", "late"] {
        let at = ["--window-at", "w=plugin_begin..plugin_end"];
        let Some(outcome) = edges(&at, mode, 30, &["-O2"]) else { return };
        assert_eq!(outcome.code, 4, "stderr:\n{}", outcome.stderr);
        let window = outcome.report().window("w");
        assert_eq!((window.entries, window.calls()), (30, 120), "{mode}: {}", window.text());
        assert_eq!(window.calls_with("plugin_entry"), 120, "{mode}: {}", window.text());
        assert_eq!(outcome.report().losses_text(), "");
    }
}

#[test]
fn functions_that_are_not_there_or_not_called() {
    let fails = |at: &str, words: &[&str]| {
        let Some(outcome) = edges(&["--window-at", at], "plain", 1, &["-O2"]) else { return };
        assert_eq!(outcome.code, 125, "{at}; stderr:\n{}", outcome.stderr);
        for word in words {
            assert!(
                outcome.stderr.contains(word),
                "{at}: nothing says {word:?}; stderr:\n{}",
                outcome.stderr
            );
        }
    };
    fails("w=begim..end", &["no function that was loaded fits `begim`", "near it: `begin`"]);
    fails("w=^begin$..end", &["fits `^begin$`", "as a regular expression it is `re:^begin$`"]);
    fails("w=begin..end_by_jump", &["`end_by_jump` was never called"]);
    fails("w=begin .. re:^wait_|^late", &["window `w`, end", "was never called"]);
}

/// A window that is never closed has numbers, which are not those that were wanted.
#[test]
fn a_profile_whose_window_was_not_closed_passes_no_check() {
    let Some(outcome) = edges(&["--window-at", "w=begin..end_by_jump"], "plain", 3, &["-O2"]) else { return };
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
    let profile = outcome.profile.as_os_str();
    let call = |words: &[&str]| {
        let words = words.iter().map(|word| if *word == "PROFILE" { profile } else { OsStr::new(word) });
        let (code, output, errors) = heaptally_output(words);
        (code, format!("{}{errors}", String::from_utf8_lossy(&output)))
    };
    // The program ends with a code of its own, too.
    let check = ["check", "PROFILE", "--baseline", "PROFILE", "--accept-failed"];
    let (code, told) = call(&check);
    assert_eq!(code, 4, "{told}");
    assert!(told.starts_with("NOT MEASURED: the change: coverage is incomplete: window `w`, end"), "{told}");
    assert!(told.contains("error: the base: coverage is incomplete: window `w`, end"), "{told}");
    assert_eq!(call(&[&check[..], &["--accept-incomplete"]].concat()).0, 0);
    let limits = outcome.profile.with_extension("toml");
    let (code, told) = call(&["limits", "update", "PROFILE", "--limits", limits.to_str().expect("UTF-8")]);
    assert_eq!(code, 4, "{told}");
    assert!(told.contains("no limit was written") && !limits.exists(), "{told}");
}

/// Nobody calls what only chooses: it is refused, and what it chooses from is named, and can be used.
#[test]
fn an_indirect_function_is_refused_with_what_it_chooses_from() {
    for flags in [&["-O2"][..], &["-O1", "-no-pie", "-fno-pie"]] {
        let Some(outcome) = edges(&["--window-at", "w=pick..end"], "pick", 1, flags) else { return };
        assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
        assert!(outcome.stderr.contains("chooses one of `pick_one`, `pick_two`"), "{}", outcome.stderr);
        let Some(outcome) = edges(&["--window-in", "w=pick_one"], "pick", 1, flags) else { return };
        assert_eq!(outcome.report().window("w").entries, 1, "stderr:\n{}", outcome.stderr);
    }
}

#[test]
fn other_names_of_the_same_code_are_told() {
    let told = |at: &str| {
        let outcome = edges(&["--window-at", at], "turn", 2, &["-O2"])?;
        assert_eq!(outcome.report().window("w").entries, 2);
        Some(outcome.report().warnings().join("\n"))
    };
    let Some(warnings) = told("w=tick..tick") else { return };
    assert!(warnings.contains("`tick` is also `tock`"), "{warnings}");
    // Both were asked for.
    let warnings = told("w=re:^t[io]ck$..re:^t[io]ck$").unwrap_or_default();
    assert!(!warnings.contains("is also"), "{warnings}");
}

/// Every instruction of moved entries, one by one.
#[test]
fn entries_of_every_shape_are_moved_and_unwound() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "function_shapes.c", "shapes", &["-O1"]);
    let alone = Run::new(&scratch, ["./shapes"]).unrecorded().run();
    assert_eq!(alone.code, 0, "stderr:\n{}", alone.stderr);
    let options = [
        "--window-at",
        "whole=outer_begin..outer_end",
        "--window-at",
        "w=re:^shape_([^eh]|e[^n])..shape_end",
    ];
    let outcome = Run::new(&scratch, ["./shapes"]).options(options).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    let stops: u64 = String::from_utf8_lossy(&outcome.stdout).trim().parse().unwrap();
    let windows = [report.window("whole"), report.window("w")];
    let calls: u64 = windows.iter().map(|window| window.calls()).sum();
    // In the recorder itself nothing is recorded, but counted.
    assert_eq!(calls + report.loss("reentrant"), stops);
    for window in windows {
        assert_eq!(window.complete_calls(), window.calls(), "{}", window.text());
        assert_eq!(window.calls_with("main"), window.calls(), "{}", window.text());
    }
    // 16 functions, each called twice, and once more for the wide registers.
    assert!((32..=33).contains(&windows[1].entries), "{}", windows[1].entries);
    let warnings: Vec<&str> = report.warnings();
    assert!(warnings.is_empty(), "{warnings:?}");
    for shape in
        ["shape_push", "shape_branch", "shape_call", "shape_pointer_call", "shape_jump", "shape_marked"]
    {
        assert!(windows.iter().any(|window| window.calls_with(shape) > 0), "{shape}");
    }
}
