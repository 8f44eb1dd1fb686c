//! Windows at functions of Swift programs that have none of their own.

use integration_tests::report::{Counts, Row, Window};
use integration_tests::run::Outcome;
use integration_tests::scratch::Scratch;
use integration_tests::swift;

fn record(program: &str, arguments: &[&str], options: &[&str]) -> Option<Outcome> {
    let scratch = Scratch::new();
    let outcome = swift::run(&scratch, program, arguments)?.options(options.iter().copied()).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    assert!(outcome.report().sum_mismatches.is_empty(), "{:?}", outcome.report().sum_mismatches);
    Some(outcome)
}

/// The sum of a count over the rows with a function whose name, as the file has it, holds `part`.
fn through(window: &Window, part: &str, count: fn(&Counts) -> u64) -> u64 {
    let has = |row: &&Row| row.frames.iter().any(|frame| frame.function.contains(part));
    window.rows.iter().filter(has).map(|row| count(&row.counts)).sum()
}

fn allocations(counts: &Counts) -> u64 {
    counts.allocations
}

const PRE: &str = "$s9Benchmark0A8ExecutorV3runySayAA0A6ResultVGA2ACFySbcfU0_TA";
const POST: &str = "$s9Benchmark0A8ExecutorV3runySayAA0A6ResultVGA2ACFySbcfU1_TA";

/// A harness that exports nothing: the measured part lies between two closures, of which the first starts it over and
/// allocates three times itself.
#[test]
fn a_benchmark_is_what_lies_between_the_closures_of_its_harness() {
    let at = format!("w={PRE} .. {POST}");
    let harness = format!("w={PRE}");
    let options = ["--window-at", &at, "--window-restart", "w", "--window-harness", &harness];
    // By reading: entries, entries that are started over, what the benchmark allocates in each entry by makeNode, and what it
    // does in all of those that are started over.
    for (name, entries, restarts, each, discarded) in [
        ("sync", 10, 0, 3, 0),
        ("explicit", 10, 10, 2, 50),
        ("twice", 20, 10, 1, 0),
        ("start-only", 10, 10, 1, 30),
        ("async", 10, 0, 2, 0),
    ] {
        let Some(outcome) = record("S19_benchmark_harness", &[name], &options) else { return };
        let report = outcome.report();
        let window = report.window("w");
        assert_eq!((window.entries, window.discarded_entries), (entries, restarts), "{name}");
        assert_eq!(through(window, "makeNode", allocations), entries * each, "{name}: {}", window.text());
        let of_nodes = through(window, "makeNode", |counts| counts.discarded);
        assert_eq!(of_nodes, discarded, "{name}: {}", window.text());
        let other = window.counts.allocations - entries * each;
        if name == "async" {
            // Two jobs of Task.yield in each.
            assert_eq!(
                (other, through(window, "swift_task_createNullaryContinuationJob", allocations)),
                (20, 20)
            );
        } else {
            assert_eq!(other, 0, "{name}: {}", window.text());
        }
        let own = report.window("w (harness)");
        assert_eq!((own.counts.allocations, own.counts.discarded), (3 * entries, 3 * restarts), "{name}");
        assert_eq!(report.losses_text(), "");
    }
}

/// A harness that reads counters at the start and at the end of each iteration: one function is both edges.
#[test]
fn a_benchmark_lies_between_two_readings_of_its_harness() {
    let at = "w=malloc_interposer_get_stats..malloc_interposer_get_stats";
    let Some(outcome) = record("S14_harness_counters", &[], &["--window-at", at]) else { return };
    let window = outcome.report().window("w");
    assert_eq!((window.entries, window.counts.allocations), (20, 40), "{}", window.text());
    assert_eq!(through(window, "benchmarkBody", allocations), 40, "{}", window.text());
    // The whole loop, without its bookkeeping.
    let at = "w=malloc_interposer_enable..malloc_interposer_disable";
    let options = ["--window-at", at, "--window-harness", "w=*bookkeeping*"];
    let Some(outcome) = record("S14_harness_counters", &[], &options) else { return };
    let (window, own) = (outcome.report().window("w"), outcome.report().window("w (harness)"));
    assert_eq!((window.entries, window.counts.allocations), (1, 40), "{}", window.text());
    assert_eq!(through(own, "bookkeeping", allocations), 20, "{}", own.text());
}
