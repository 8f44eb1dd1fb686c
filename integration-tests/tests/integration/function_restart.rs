//! Windows that are restarted, and what is their harness's (`--window-restart`, `--window-harness`).

use std::ffi::OsStr;

use integration_tests::program;
use integration_tests::run::{Outcome, Run, heaptally_output};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

fn edges(options: &[&str], mode: &str, count: u64) -> Option<Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "function_edges.c", "edges", &["-O2"]);
    let words = ["./edges".to_owned(), mode.to_owned(), count.to_string()];
    Some(Run::new(&scratch, words).options(options.iter().copied()).run())
}

fn text_report(outcome: &Outcome, options: &[&str]) -> String {
    let words = [&["report"][..], options].concat();
    let words = words.into_iter().map(OsStr::new).chain([outcome.profile.as_os_str()]);
    let (code, output, messages) = heaptally_output(words);
    assert_eq!(code, 0, "{messages}");
    String::from_utf8_lossy(&output).into_owned()
}

/// Of the window `w`: entries, those that were discarded, allocations, and those.
#[track_caller]
fn check(outcome: &Outcome, entries: [u64; 2], allocations: [u64; 2]) {
    assert_eq!(outcome.code, 4, "stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    let window = report.window("w");
    assert_eq!([window.entries, window.discarded_entries], entries, "{}", window.text());
    assert_eq!([window.counts.allocations, window.counts.discarded], allocations, "{}", window.text());
    assert_eq!(window.complete_calls(), window.calls(), "{}", window.text());
    assert_eq!(report.losses_text(), "");
    assert!(report.sum_mismatches.is_empty(), "{:?}", report.sum_mismatches);
}

const AT: [&str; 2] = ["--window-at", "w=begin..end"];

#[test]
fn a_begin_while_open_discards_what_the_entry_holds() {
    let options = [&AT[..], &["--window-restart", "w"]].concat();
    let Some(outcome) = edges(&options, "restart", 7) else { return };
    check(&outcome, [7, 7], [42, 21]);
    let window = outcome.report().window("w");
    // The three that were discarded, the two, and the four of the harness are a stack each.
    for row in window.rows.iter().filter(|row| row.counts.allocations > 0) {
        assert_eq!((row.entries, row.counts.discarded), (Some(7), 0), "{}", window.text());
    }
    // Everything is freed at once: what was discarded, too.
    assert_eq!((window.counts.freed, window.counts.temporary), (63, 42));
    let Some(outcome) = edges(&AT, "restart", 7) else { return };
    let nested = outcome.report().window("w");
    // Without the option a begin only makes it deeper, and it stays open: 3 + 2 + 4 and 1 between.
    assert_eq!((nested.entries, nested.counts.allocations, nested.discarded_entries), (1, 70, 0));
}

#[test]
fn what_a_harness_allocates_is_apart() {
    for restart in [&["--window-restart", "w"][..], &[]] {
        let options = [&AT[..], restart, &["--window-harness", "w=manage"]].concat();
        let Some(outcome) = edges(&options, "restart", 5) else { return };
        if restart.is_empty() {
            check(&outcome, [1, 0], [30, 0]);
        } else {
            check(&outcome, [5, 5], [10, 15]);
        }
        let own = outcome.report().window("w (harness)");
        assert_eq!((own.counts.allocations, own.calls_with("manage")), (20, 20), "{}", own.text());
        let text = text_report(&outcome, &[]);
        assert!(text.contains("the harness's own: \"w (harness)\" (20 allocations)"), "{text}");
        assert!(!text.contains("manage"), "{text}");
        assert!(text_report(&outcome, &["--full"]).contains("manage"));
    }
}

/// The threads' begins discard each other's allocations: nothing is counted twice or not at all.
#[test]
fn threads_restart_at_once() {
    let options = [&AT[..], &["--window-restart", "w"]].concat();
    for threads in [2, 8, 64] {
        let Some(outcome) = edges(&options, "restarts", threads) else { return };
        let report = outcome.report();
        let window = report.window("w");
        assert_eq!((window.entries, window.discarded_entries), (1, threads * 1000 - 1));
        let of_work = |count: fn(&integration_tests::report::Counts) -> u64| -> u64 {
            window.rows_with("work").map(|row| count(&row.counts)).sum()
        };
        let kept = of_work(|counts| counts.allocations);
        assert_eq!(kept + of_work(|counts| counts.discarded), threads * 1000, "{}", window.text());
        assert!(kept <= threads, "at most what each thread did since the last begin: {kept}");
        assert!(report.sum_mismatches.is_empty(), "{:?}", report.sum_mismatches);
        assert_eq!(report.losses_text(), "");
    }
}

/// A process that is killed between any two instructions has settled all or nothing.
#[test]
fn a_killed_process_keeps_exact_sums() {
    let options = [&AT[..], &["--window-restart", "w"]].concat();
    let Some(outcome) = edges(&options, "restart-killed", 20_000) else { return };
    assert_eq!(outcome.code, 137, "stderr:\n{}", outcome.stderr);
    let window = outcome.report().window("w");
    let of = |count: fn(&integration_tests::report::Counts) -> u64| count(&window.counts);
    // Each time 3 are discarded and 2 kept, and then it is killed after a begin and one allocation.
    assert_eq!((of(|counts| counts.allocations), of(|counts| counts.discarded)), (40_001, 60_000));
    assert_eq!((window.entries, window.discarded_entries, window.unfinished), (20_001, 20_000, true));
}

#[test]
fn one_function_may_open_and_close_by_turns() {
    let Some(outcome) = edges(&["--window-at", "w=tick..tick"], "turn", 9) else { return };
    check(&outcome, [9, 0], [27, 0]);
    assert_eq!(outcome.report().window("w").stray_ends, 0);
}

#[test]
fn a_harness_that_is_not_there_is_told() {
    let options = [&AT[..], &["--window-harness", "w=manege"]].concat();
    let Some(outcome) = edges(&options, "restart", 1) else { return };
    assert_eq!(outcome.code, 125);
    assert!(outcome.stderr.contains("window `w`, harness: no function"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("near it: `manage`"), "{}", outcome.stderr);
}
