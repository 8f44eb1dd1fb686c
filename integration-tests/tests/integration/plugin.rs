//! Plug-ins in every way in which the loader takes them: what they allocate is recorded under their own names, or said.

use integration_tests::check::{self, Tolerance};
use integration_tests::program;
use integration_tests::report::Window;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

const INCOMPLETE: &str = "coverage is incomplete";

/// The program and its plug-in, built. `None` where the compiler is missing.
fn build() -> Option<Scratch> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "plugin_library.c", "libplug.so", &["-O1", "-fPIC", "-shared", "-Wl,-z,lazy"]);
    let flags = ["-O1", "-fno-optimize-sibling-calls"];
    program::build(&scratch, "plugin_load.c", "load", &flags);
    program::build(&scratch, "deny_writable_code.c", "deny", &[]);
    Some(scratch)
}

fn load(scratch: &Scratch, words: &[&str]) -> Run {
    Run::new(scratch, [&["./load", words[0], "./libplug.so"], &words[1..]].concat())
}

/// What the program and, if it is recorded, the plug-in allocate in `window`.
fn check_window(outcome: &Outcome, name: &str, own_calls: u64) {
    let window: &Window = outcome.report().window(name);
    let own = format!("[{own_calls}* main -> plug_own -> malloc]");
    let expected = check::expectation(&format!(
        "{name}: total={} {} [3* main -> plug_back -> back -> malloc] [2* main -> own_work -> back -> malloc]",
        5 + own_calls,
        if own_calls > 0 { &own } else { "" },
    ));
    let tolerance = Tolerance { other_rows: name == "process", ..Tolerance::default() };
    check::window(outcome.report(), &expected, tolerance);
    for row in window.rows_with("plug_back").chain(window.rows_with("plug_own")) {
        let named = row.frames.iter().filter(|frame| frame.module.ends_with("libplug.so")).count();
        assert_eq!(named, 1, "{}", row.text());
    }
    assert_eq!(outcome.report().losses_text(), "");
}

fn warnings(outcome: &Outcome) -> Vec<&str> {
    outcome.report().warnings().into_iter().filter(|warning| warning.starts_with(INCOMPLETE)).collect()
}

/// What a plug-in allocates by itself is not seen, and one warning says so by `name`. Gives the warning.
fn check_warning<'o>(outcome: &'o Outcome, words: &[&str; 3], name: &str) -> &'o str {
    let code = if words[2] == "kill" { 137 } else { 0 };
    assert_eq!(outcome.code, code, "{words:?}; stderr:\n{}", outcome.stderr);
    check_window(outcome, words[1], 0);
    let said = warnings(outcome);
    let [warning] = said.as_slice() else { panic!("{words:?}: {said:?}") };
    assert!(warning.contains("libplug.so") && warning.contains(name), "{warning}");
    warning
}

#[test]
fn ordinary_plugins_are_recorded() {
    let Some(scratch) = build() else { return };
    for how in ["lazy", "now"] {
        for window in ["w", "process"] {
            let outcome = load(&scratch, &[how, window, "close"]).run();
            assert_eq!(outcome.code, 0, "{how} {window}; stderr:\n{}", outcome.stderr);
            check_window(&outcome, window, 5);
            assert_eq!(warnings(&outcome), [""; 0]);
        }
    }
}

/// Late bound calls are bound when they are made, after all that the recorder could have asked before.
#[test]
fn deepbind_plugins_are_named_however_they_are_bound() {
    let Some(scratch) = build() else { return };
    for how in ["deepbind-lazy", "deepbind-now"] {
        for words in
            [[how, "w", "stay"], [how, "w", "kill"], [how, "process", "stay"], [how, "process", "close"]]
        {
            let outcome = load(&scratch, &words).run();
            check_warning(&outcome, &words, "RTLD_DEEPBIND");
        }
    }
    let outcome = load(&scratch, &["deepbind-lazy", "w"]).options(["--strict"]).run();
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
}

/// What the plug-in calls of the program is recorded, with the plug-in's frame; what it allocates is its own libc's.
#[test]
fn libraries_in_a_namespace_of_their_own_are_named() {
    let Some(scratch) = build() else { return };
    for words in
        [["namespace", "w", "stay"], ["namespace", "process", "kill"], ["namespace", "process", "close"]]
    {
        let outcome = load(&scratch, &words).run();
        let warning = check_warning(&outcome, &words, "dlmopen");
        assert!(outcome.stderr.contains(warning), "not at the end of the run:\n{}", outcome.stderr);
    }
    let outcome = load(&scratch, &["namespace", "w"]).options(["--strict"]).run();
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
}

/// Where no code can be made writable the loader's hook is not there, and modules are found otherwise.
#[test]
fn a_loader_that_cannot_be_watched() {
    let Some(scratch) = build() else { return };
    for (how, own_calls, word) in
        [("lazy", 5, ""), ("deepbind-lazy", 0, "RTLD_DEEPBIND"), ("namespace", 0, "dlmopen")]
    {
        let outcome = load(&scratch, &[how, "w", "close"]).behind(["./deny"]).run();
        assert_eq!(outcome.code, 0, "{how}; stderr:\n{}", outcome.stderr);
        check_window(&outcome, "w", own_calls);
        let said = outcome.report().warnings();
        assert!(said.iter().any(|warning| warning.contains("could not be watched")), "{said:?}");
        let incomplete = warnings(&outcome);
        assert_eq!(incomplete.len(), usize::from(own_calls == 0), "{how}: {incomplete:?}");
        assert!(incomplete.iter().all(|warning| warning.contains(word)), "{incomplete:?}");
    }
}
