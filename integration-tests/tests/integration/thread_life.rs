//! Threads: what they do is exact, however many there are and however they end.

use std::time::Duration;

use integration_tests::program;
use integration_tests::report::{Counts, ThreadSum};
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// The most lives that are told apart, the one that is never used included.
const LIVES: u64 = 4096;

fn recorded(source: &str, compiler: &str, arguments: &[&str]) -> Option<Outcome> {
    if !tool::have(&[compiler]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, source, "program", &["-O1"]);
    let words = ["./program"].iter().chain(arguments);
    let outcome = Run::new(&scratch, words).timeout(Duration::from_secs(400)).run();
    if outcome.code == 77 {
        tool::skip(&String::from_utf8_lossy(&outcome.stdout));
        return None;
    }
    assert_eq!(outcome.code, 0, "{source} {arguments:?}; stderr:\n{}", outcome.stderr);
    assert_eq!(outcome.report().losses_text(), "", "{source} {arguments:?}");
    Some(outcome)
}

fn counts(allocations: u64, bytes: u64, freed: u64, temporary: u64) -> Counts {
    Counts { allocations, bytes, freed, temporary, ..Counts::default() }
}

/// `threads` at once, which also free each other's blocks.
fn mix(threads: u64, rounds: u64) {
    let Some(outcome) = recorded("thread_mix.c", "gcc", &[&threads.to_string(), &rounds.to_string()]) else {
        return;
    };
    let report = outcome.report();
    let window = report.window("w");
    let all = threads * rounds;
    // 24 bytes at once freed, 40 grown to 4000, and 8, 24 or 40 by the thread's number.
    let given: u64 = (0..threads).map(|number| 8 + number % 3 * 16).sum::<u64>() * rounds;
    let work = Counts { reallocs: all, ..counts(4 * all, all * (24 + 40 + 4000) + given, 4 * all, all) };
    assert_eq!(window.counts_with("work"), work, "{}", window.text());
    assert_eq!(window.counts_with("keep"), counts(5 * threads, 500 * threads, 0, 0), "{}", window.text());
    assert_eq!(window.calls(), window.complete_calls(), "{}", window.text());
    let sum = report.threads("program", "worker", "w");
    assert_eq!((sum.entries, sum.lives), (threads, threads));
    assert_eq!((sum.allocations, sum.bytes), (4 * all + 5 * threads, work.bytes + 500 * threads));
    // What nobody took from its box is freed by the main thread.
    let main = report.threads("program", "__libc_start_call_main", "w");
    let of_pthread_create: u64 = window.rows_with("pthread_create").map(|row| row.counts.freed).sum();
    assert_eq!(sum.freed + main.freed, 4 * all + of_pthread_create, "{sum:?} {main:?}");
}

#[test]
fn sixty_four_busy_threads() {
    mix(64, 2_000);
}

#[test]
fn two_threads_that_free_each_others_blocks() {
    mix(2, 100_000);
}

/// 4 allocations a round, in about ten seconds on one core.
#[test]
#[ignore = "takes ten seconds and more"]
fn sixty_four_busy_threads_for_long() {
    mix(64, 300_000);
}

/// `batches` of `each` threads, one batch after the other.
fn lives(batches: u64, each: u64, way: &str) {
    let words = [batches.to_string(), each.to_string()];
    let Some(outcome) = recorded("thread_lives.c", "gcc", &[&words[0], &words[1], way]) else { return };
    let report = outcome.report();
    let window = report.window("w");
    let threads = batches * each;
    assert_eq!(window.counts_with("allocate"), counts(3 * threads, 60 * threads, 3 * threads, 0));
    let mine = report.window("mine");
    assert_eq!(mine.counts_with("mine"), counts(threads, 7 * threads, threads, threads), "{}", mine.text());
    assert_eq!((mine.entries, mine.ended_by_thread), (threads, threads.div_ceil(7)));
    let gives = way == "free";
    // Each life is an entry while there is place; behind that there is one for each name and start.
    let told_apart = threads.min(LIVES - 2);
    let kinds = if threads > told_apart { 2 } else { 0 };
    let mut entries = 0;
    for (name, start) in [("odd", "odd_start"), ("even", "even_start")] {
        let sum = report.threads(name, start, "w");
        let half = threads / 2;
        let freed = if gives { 3 * half } else { 2 * half };
        assert_eq!(
            ThreadSum { entries: 0, ..sum },
            ThreadSum { entries: 0, lives: half, allocations: 3 * half, bytes: 60 * half, freed },
            "{name}"
        );
        let sum = report.threads(name, start, "mine");
        assert_eq!(
            (sum.lives, sum.allocations, sum.bytes, sum.freed),
            (half, half, 7 * half, half),
            "{name}"
        );
        entries += sum.entries;
    }
    assert_eq!(entries, told_apart + kinds, "of {threads} threads");
    assert_eq!(window.counts_with("main_gives").allocations, if gives { threads } else { 0 });
    assert_eq!(report.threads("program", "", "w").lives, 0, "all are known by their start");
}

#[test]
fn ten_thousand_lives() {
    lives(25, 400, "");
}

/// A thread whose first event is a free is known by the function that its first allocation shows.
#[test]
fn lives_that_begin_with_a_free() {
    lives(3, 100, "free");
}

#[test]
#[ignore = "takes a minute"]
fn two_hundred_thousand_lives() {
    lives(500, 400, "");
}

/// Threads that are all alive: more than there are shards, and each is exact still.
fn crowd(threads: u64) {
    let Some(outcome) = recorded("thread_crowd.c", "gcc", &[&threads.to_string()]) else { return };
    let report = outcome.report();
    let window = report.window("w");
    let expected = counts(4 * threads, (3 * 16 + 64) * threads, 4 * threads, 3 * threads);
    assert_eq!(window.counts_with("crowd_work"), expected, "{}", window.text());
    assert_eq!(window.calls(), window.complete_calls(), "{}", window.text());
    let sum = report.threads("program", "worker", "w");
    assert_eq!(
        ThreadSum { entries: 0, ..sum },
        ThreadSum {
            entries: 0,
            lives: threads,
            allocations: expected.allocations,
            bytes: expected.bytes,
            freed: 3 * threads
        }
    );
}

#[test]
fn two_thousand_threads_at_once() {
    crowd(2_000);
}

#[test]
fn more_threads_at_once_than_there_are_shards() {
    crowd(8_400);
}

#[test]
#[ignore = "takes minutes"]
fn twenty_thousand_threads_at_once() {
    crowd(20_000);
}

/// Destructors of pthread keys: (the way of `tls_destructors.c`, calls of work_malloc and of key_malloc by thread).
fn destructors(way: &str, work: u64, key: u64, threads: u64) {
    let Some(outcome) = recorded("tls_destructors.c", "gcc", &[way, &threads.to_string()]) else { return };
    let report = outcome.report();
    let window = report.window("w");
    let expect = |calls: u64, size: u64| {
        counts(calls * threads, calls * size * threads, calls * threads, calls * threads)
    };
    assert_eq!(window.counts_with("work_malloc"), expect(work, 48), "{way}:\n{}", window.text());
    assert_eq!(window.counts_with("key_malloc"), expect(key, 32), "{way}:\n{}", window.text());
    let start = if work > 0 { "worker" } else { "__GI___nptl_deallocate_tsd" };
    let sum = report.threads("program", start, "w");
    // With 40 keys the C library allocates a table for each thread, and frees it when all destructors have run.
    let keys = if way == "keys" { threads } else { 0 };
    if work > 0 || sum.lives > 0 {
        assert_eq!(
            (sum.lives, sum.allocations, sum.freed),
            (threads, (work + key) * threads + keys, (work + key) * threads + keys),
            "{way}"
        );
    }
    // No more than one of them lives at a time beside the main thread.
    let held_back = window.peak_uncertainty_bytes / (64 * 1024);
    let is_unseen = ["exit", "last"].contains(&way);
    assert!(is_unseen || held_back <= 1, "{way}: {held_back} threads hold back");
}

#[test]
fn destructors_in_every_round() {
    destructors("rounds", 1, 4, 300);
}

/// Without its state being given back each thread would keep one of the 8192 shards.
#[test]
fn threads_that_only_allocate_in_a_destructor() {
    destructors("only", 0, 1, 9_000);
}

#[test]
fn threads_that_only_allocate_in_the_last_round() {
    destructors("last", 0, 1, 9_000);
}

#[test]
fn threads_with_a_table_of_keys() {
    destructors("keys", 1, 0, 300);
}

/// No destructor runs, and nothing says that they have ended.
#[test]
fn threads_that_end_by_a_system_call() {
    destructors("exit", 1, 0, 9_000);
}

#[test]
fn a_pause_holds_in_destructors() {
    destructors("paused", 1, 0, 300);
}

#[test]
fn thread_locals_of_cpp() {
    let Some(outcome) = recorded("thread_locals.cpp", "g++", &["200"]) else { return };
    let window = outcome.report().window("w");
    let calls = ["body_work", "outer_gone", "inner_gone"].map(|name| window.calls_with(name));
    assert_eq!(calls, [600, 800, 400], "{}", window.text());
    assert_eq!(window.calls(), window.complete_calls(), "{}", window.text());
}

#[test]
fn thread_locals_of_rust() {
    if tool::which("rustc").is_none() && !tool::have(&["rustc"]) {
        return;
    }
    let scratch = Scratch::new();
    let source = program::source("thread_locals.rs");
    scratch.shell(&format!("rustc --edition 2024 -C opt-level=1 -g -o program '{}'", source.display()));
    let outcome = Run::new(&scratch, ["./program", "200"]).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    assert_eq!(outcome.report().losses_text(), "");
    let window = outcome.report().window("process");
    let calls = ["thread_locals::body_work", "thread_locals::drop_work"].map(|name| window.calls_with(name));
    assert_eq!(calls, [600, 1000], "{}", window.text());
}

/// The calls that the program finished, the cleanups that it ran.
fn cancelled(way: &str, threads: u64) -> Option<(Outcome, u64, u64)> {
    let outcome = recorded("thread_cancel.c", "gcc", &[way, &threads.to_string()])?;
    let stdout = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let numbers: Vec<u64> = stdout.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    assert_eq!(numbers.len(), 2, "{stdout}");
    let window = outcome.report().window("w");
    assert_eq!(window.calls_with("before_work"), 3 * threads, "{way}:\n{}", window.text());
    assert_eq!(window.calls_with("cleanup_work"), threads, "{way}:\n{}", window.text());
    Some((outcome, numbers[0], numbers[1]))
}

#[test]
fn threads_that_are_cancelled() {
    let Some((outcome, calls, cleanups)) = cancelled("deferred", 200) else { return };
    assert_eq!(cleanups, 200);
    let window = outcome.report().window("w");
    assert_eq!(window.counts_with("cancel_work").allocations, calls, "{}", window.text());
    assert_eq!(window.counts_with("cancel_work").freed, calls, "{}", window.text());
}

/// Between any two instructions, but not inside an allocation function: there the C library itself would keep its locks.
#[test]
fn threads_that_are_cancelled_anywhere() {
    let Some((outcome, calls, cleanups)) = cancelled("async", 200) else { return };
    assert_eq!(cleanups, 200);
    let window = outcome.report().window("w");
    let recorded = window.counts_with("cancel_work");
    // The last call of each thread was recorded, and may not have come to its end or to its free.
    assert!((calls..=calls + 200).contains(&recorded.allocations), "{calls}: {}", window.text());
    assert!(recorded.allocations - recorded.freed <= 200, "{}", window.text());
}
