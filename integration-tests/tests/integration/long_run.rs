//! What grows in a long run: live blocks, stacks, entries, sums.

use std::time::Duration;

use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

const GIB: u64 = 1 << 30;

fn long_run(words: &[&str], limit: &str) -> Option<Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "long_run.c", "program", &["-O1"]);
    let run = Run::new(&scratch, ["./program"].iter().chain(words));
    let run = if limit.is_empty() { run } else { run.behind_shell(&format!("ulimit {limit}; exec \"$@\"")) };
    let outcome = run.timeout(Duration::from_secs(300)).run();
    assert_eq!(outcome.code, 0, "{words:?}; stderr:\n{}", outcome.stderr);
    Some(outcome)
}

#[test]
fn three_million_live_blocks() {
    const BLOCKS: u64 = 3_000_000;
    let Some(outcome) = long_run(&["live", &BLOCKS.to_string()], "") else { return };
    assert_eq!(outcome.report().losses_text(), "");
    let window = outcome.report().window("w");
    // 16 to 79 bytes, in turn: 3,000,000 is a multiple of 64.
    let bytes = BLOCKS / 64 * (16..80).sum::<u64>();
    let counts = window.counts_with("live_work");
    assert_eq!((counts.allocations, counts.bytes), (BLOCKS, bytes), "{}", window.text());
    assert_eq!((counts.freed, counts.freed_later), (0, BLOCKS), "{}", window.text());
    assert_eq!((window.peak_bytes, window.peak_uncertainty_bytes), (Some(bytes), 0));
}

/// No room for more, of the program's blocks or of the map of live blocks, as the last kibibytes have it: each block is either
/// followed or said not to be.
#[test]
fn live_blocks_without_room() {
    const BLOCKS: u64 = 3_000_000;
    for limit in ["-v 200000", "-v 200200", "-v 200400", "-v 200600", "-v 200800"] {
        let Some(outcome) = long_run(&["live", &BLOCKS.to_string()], limit) else { return };
        let report = outcome.report();
        let counts = report.window("w").counts_with("live_work");
        assert_eq!(counts.allocations + counts.failed, BLOCKS, "{limit}");
        assert!(counts.failed > 0, "{limit}: there was room for all");
        assert_eq!(counts.freed_later + report.loss("blocks"), counts.allocations, "{limit}");
    }
}

/// The program's blocks have room, the map of live blocks has none.
#[test]
fn live_blocks_without_room_for_the_map() {
    const BLOCKS: u64 = 3_000_000;
    let Some(outcome) = long_run(&["ready", &BLOCKS.to_string()], "") else { return };
    let report = outcome.report();
    let counts = report.window("w").counts_with("live_work");
    assert_eq!((counts.allocations, counts.failed), (BLOCKS, 0));
    let lost = report.loss("blocks");
    assert!(lost > BLOCKS / 2, "the map had room for all but {lost}");
    assert_eq!(counts.freed_later + lost, BLOCKS);
}

/// Bytes, live bytes and iterations beyond 32 bits.
#[test]
fn sums_beyond_four_gibibytes() {
    let Some(outcome) = long_run(&["big"], "") else { return };
    assert_eq!(outcome.report().losses_text(), "");
    let window = outcome.report().window("w");
    let counts = window.counts_with("big_work");
    let grown: u64 = (0..9).map(|at| GIB + at * 4096).sum();
    assert_eq!((counts.allocations, counts.reallocs), (19, 9), "{}", window.text());
    assert_eq!(counts.bytes, 9 * GIB + 100 + grown);
    assert_eq!((counts.freed, window.iterations), (19, 10_000_000_000));
    assert_eq!((window.peak_bytes, window.peak_uncertainty_bytes), (Some(9 * GIB), 0));
    let main = outcome.report().threads("program", "__libc_start_call_main", "w");
    assert_eq!((main.allocations, main.bytes, main.freed), (19, counts.bytes, 19));
}

#[test]
fn a_million_entries() {
    const ENTRIES: u64 = 1_000_000;
    let Some(outcome) = long_run(&["entries", &ENTRIES.to_string()], "") else { return };
    assert_eq!(outcome.report().losses_text(), "");
    let window = outcome.report().window("w");
    let counts = window.counts_with("entry_work");
    assert_eq!((window.entries, counts.allocations, counts.freed), (ENTRIES, 2 * ENTRIES, 2 * ENTRIES));
    for row in window.rows_with("entry_work") {
        assert_eq!((row.counts.allocations, row.entries), (ENTRIES, Some(ENTRIES)), "{}", row.text());
    }
}

/// 2 to the power of `levels` stacks, each gone through `rounds` times: each is one row, found again every time.
fn stacks(levels: u32, rounds: u64, limit: &str) -> Option<Outcome> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "many_stacks.c", "many_stacks", &["-O1", "-fno-optimize-sibling-calls"]);
    let run = Run::new(&scratch, ["./many_stacks", &levels.to_string(), &rounds.to_string()]);
    let run = if limit.is_empty() { run } else { run.behind_shell(&format!("ulimit {limit}; exec \"$@\"")) };
    let outcome = run.without_frames().timeout(Duration::from_secs(500)).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    Some(outcome)
}

fn check_stacks(levels: u32, rounds: u64) {
    let Some(outcome) = stacks(levels, rounds, "") else { return };
    assert_eq!(outcome.report().losses_text(), "");
    let window = outcome.report().window("w");
    assert_eq!(window.rows.len(), 1 << levels);
    let is_whole = |row: &&integration_tests::report::Row| {
        row.counts.allocations == rounds && row.counts.freed == rounds && row.entries == Some(1)
    };
    assert_eq!(
        window.rows.iter().filter(is_whole).count(),
        1 << levels,
        "rows that were made twice, or lost"
    );
}

#[test]
fn a_hundred_thousand_stacks() {
    check_stacks(17, 3);
}

#[test]
#[ignore = "takes a minute, and 3 GiB of memory"]
fn half_a_million_stacks() {
    check_stacks(19, 4);
}

/// The tables fill up: what has no place is counted for its window, to the last call, and said.
#[test]
fn stacks_without_room() {
    for limit in ["-v 500000", "-v 2000000"] {
        let Some(outcome) = stacks(15, 2, limit) else { return };
        let report = outcome.report();
        let window = report.window("w");
        assert_eq!(window.calls() + window.lost, 2 << 15, "{limit}: {}", report.losses_text());
        assert!(window.calls() > 0 && window.lost > 0, "{limit}");
        assert_eq!(window.lost, report.loss("table_full"), "{limit}");
        let said = format!("{} allocations for which there was no place in the tables", grouped(window.lost));
        assert!(outcome.stderr.contains(&said), "{limit}: {}", outcome.stderr);
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let (head, tail) = digits.split_at(digits.len() - digits.len().min(3));
    if head.is_empty() { tail.to_owned() } else { format!("{head},{tail}") }
}
