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

/// The same part of a program by its own window, recorded alone, and by functions: of each the sum over rows with `part`.
fn both(program: &str, own: &str, functions: &[&str], part: &str) -> Option<[u64; 2]> {
    let own = [record(program, &[], &["--window", own])?, record(program, &[], functions)?];
    let sum = |outcome: &Outcome| {
        let windows = outcome.report().windows.iter();
        windows.map(|window| through(window, part, allocations)).sum()
    };
    Some(own.each_ref().map(sum))
}

#[test]
fn values_that_are_boxed_beneath_a_function() {
    let options = [
        "--window-in",
        "small-in=$s16S05_existentials5smallyAA5Shape_pSiF",
        "--window-in",
        "large-in=$s16S05_existentials5largeyAA5Shape_pSiF",
        "--window-in",
        "insert-in=$s16S05_existentials6insertyAA4TreeOAD_SitF",
    ];
    let Some(outcome) = record("S05_existentials", &[], &options) else { return };
    let of = |name: &str| {
        let window = outcome.report().window(name);
        (window.entries, window.counts.allocations)
    };
    // Each is called once before its own window: 8 calls and 8 boxes in that, 3 calls and 7 boxes.
    assert_eq!([of("small-in"), of("large-in"), of("insert-in")], [(9, 0), (9, 9), (4, 8)]);
    let Some(own) = record("S05_existentials", &[], &["--window", "large", "--window", "enum"]) else {
        return;
    };
    let of = |name: &str| own.report().window(name).counts.allocations;
    assert_eq!([of("large"), of("enum")], [8, 7]);
}

/// Between two parts of `main`, of which each goes on after a suspension.
#[test]
fn an_async_function_between_the_parts_of_its_caller() {
    let main = "$s9S09_async4MainV4mainyyYaFZTf4d_n";
    let at = format!("f={main}TQ0_ .. {main}TQ2_");
    let counts = both("S09_async", "w", &["--window-at", &at], "makeBox");
    assert!(counts.is_none_or(|counts| counts == [20, 20]), "{counts:?}");
}

#[test]
fn both_sides_of_a_pair_beneath_a_function() {
    for (program, each) in [("S16_diff_base", 87), ("S16_diff_change", 107)] {
        let options = ["--window-in", "f=$s8S16_diff5parseySiSSF"];
        let Some(outcome) = record(program, &[], &options) else { return };
        let window = outcome.report().window("f");
        let once = through(window, "_swift_getGenericMetadata", allocations);
        // One call more than in its own window, and the metadata of a generic type, at its first use.
        assert_eq!((window.entries, once), (11, 3), "{}", window.text());
        assert_eq!(window.counts.allocations, 11 * each + 3);
        let Some(own) = record(program, &[], &["--window", "parse"]) else { return };
        let own = own.report().window("parse");
        assert_eq!((own.entries, own.counts.allocations), (10, 10 * each));
    }
}

#[test]
fn async_code_of_every_shape_between_the_parts_of_its_caller() {
    let everything = "$s16S17_async_shapes10everythingyS2iYaF";
    let own = [
        ("throwing", 8),
        ("asyncLet", 16),
        ("continuation", 8),
        ("stream", 8),
        ("generic", 8),
        ("existential", 16),
        ("actors", 16),
        ("recursive", 1),
    ];
    // Its first part begins with `throwing`; behind each shape it goes on in another part.
    let begin = |at: usize| match at {
        0 => "$s16S17_async_shapes8throwingyS2iYaF".to_owned(),
        at => format!("{everything}TQ{}_", 2 * at - 1),
    };
    for program in ["S17_async_shapes", "S17_async_shapes-fp", "S17_async_shapes-static"] {
        let mut options = Vec::new();
        for (at, (name, _)) in own.iter().enumerate() {
            let at = format!("by-{name}={} .. {everything}TQ{}_", begin(at), 2 * at + 1);
            options.extend(["--window-at".to_owned(), at]);
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let Some(outcome) = record(program, &[], &options) else { return };
        for (name, boxes) in own {
            let window = outcome.report().window(&format!("by-{name}"));
            assert_eq!(window.entries, 1, "{program}: {name}");
            assert_eq!(through(window, "makeBox", allocations), boxes, "{program}: {}", window.text());
        }
    }
}

/// One async function from two callers: its stacks are equal, the windows are not.
#[test]
fn one_async_function_of_two_callers() {
    let main = "$s25S18_same_step_two_callers4MainV4mainyyYaFZTf4d_n";
    let at = [format!("here={main}TQ1_ .. {main}TQ3_"), format!("there={main}TQ3_ .. {main}TQ5_")];
    let options = ["--window-at", &at[0], "--window-at", &at[1]];
    let Some(outcome) = record("S18_same_step_two_callers", &[], &options) else { return };
    let of = |name: &str| through(outcome.report().window(name), "makeBox", allocations);
    assert_eq!((of("here"), of("there")), (6, 9));
    let counts = both("S18_same_step_two_callers", "w", &options, "makeBox");
    assert!(counts.is_none_or(|counts| counts == [15, 15]), "{counts:?}");
}

/// Beneath an async function, also where it was suspended and what it called goes on without it on the stack: as many boxes as
/// in its own window, and as many entries as calls.
#[test]
fn beneath_async_functions() {
    let options = [
        "--window-in",
        "here=$s25S18_same_step_two_callers8fromHereyS2iYaF",
        "--window-in",
        "there=$s25S18_same_step_two_callers9fromThereyS2iYaF",
    ];
    let Some(outcome) = record("S18_same_step_two_callers", &[], &options) else { return };
    let boxes = |name: &str| through(outcome.report().window(name), "makeBox", allocations);
    // Each is called once before the window that the program opens, in which there are 6 and 9.
    assert_eq!((boxes("here"), boxes("there")), (7, 10), "{}", outcome.report().window("there").text());
    assert_eq!(outcome.report().losses_text(), "");

    let options = ["--window-in", "chain=$s9S09_async5chainyS2iYaF"];
    let Some(outcome) = record("S09_async", &[], &options) else { return };
    let window = outcome.report().window("chain");
    // 4 in a call before the window that the program opens, 20 in that.
    assert_eq!((window.entries, through(window, "makeBox", allocations)), (2, 24), "{}", window.text());

    let functions = [
        ("throwing-in", "8throwingyS2iYaF", 8),
        ("continuation-in", "12continuationyS2iYaF", 8),
        ("stream-in", "6streamyS2iYaF", 8),
        ("existential-in", "11existentialySiSayAA6Source_pG_SitYaF", 16),
        ("actors-in", "6actorsyS2iYaF", 16),
    ];
    for program in ["S17_async_shapes", "S17_async_shapes-fp", "S17_async_shapes-static"] {
        let windows = functions.map(|(name, function, _)| format!("{name}=$s16S17_async_shapes{function}"));
        let options: Vec<&str> = windows.iter().flat_map(|window| ["--window-in", window]).collect();
        let Some(outcome) = record(program, &[], &options) else { return };
        for (name, _, boxes) in functions {
            let window = outcome.report().window(name);
            assert_eq!(window.entries, 1, "{program}: {name}");
            assert_eq!(through(window, "makeBox", allocations), boxes, "{program}: {}", window.text());
        }
    }
}
