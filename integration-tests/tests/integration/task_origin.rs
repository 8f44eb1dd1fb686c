//! What created Swift's tasks (`--task-origins`).

use std::collections::BTreeMap;

use integration_tests::program::build;
use integration_tests::report::{Row, Window};
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::swift;
use integration_tests::tool::have;

/// Of the rows whose call site is a function: which functions of some stand behind each beginning of a task, from the innermost,
/// and how many allocations have them.
fn origins(window: &Window, site: &str, known: &[&str]) -> BTreeMap<String, u64> {
    let of = |row: &Row| {
        let parts: Vec<_> = row.frames.split(|frame| frame.kind == "task_origin").collect();
        let names = parts.iter().skip(1).map(|part| {
            let is_it = |name: &&&str| part.iter().any(|frame| frame.system_name.contains(**name));
            known.iter().find(is_it).copied().unwrap_or("?")
        });
        names.collect::<Vec<_>>().join(" < ")
    };
    let mut sums = BTreeMap::new();
    for row in
        window.rows.iter().filter(|row| row.frames.iter().any(|frame| frame.system_name.contains(site)))
    {
        *sums.entry(of(row)).or_default() += row.counts.allocations;
    }
    sums
}

#[test]
fn a_task_is_known_by_the_memory_that_it_lives_in() {
    if !have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    let program = build(&scratch, "task_origins.c", "task_origins", &["-O2", "-fno-optimize-sibling-calls"]);
    let outcome = Run::new(&scratch, [&program]).options(["--task-origins"]).run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let report = outcome.report();
    assert!(report.sum_mismatches.is_empty(), "{:?}", report.sum_mismatches);
    let known = ["by_one", "by_two", "by_a_task"];
    let of = |name: &str| origins(report.window(name), "allocate", &known);
    let one = |text: &str, count: u64| BTreeMap::from([(text.to_owned(), count)]);
    assert_eq!(of("created before"), one("by_one", 10));
    assert_eq!(
        of("in turn"),
        BTreeMap::from([("by_one".to_owned(), 20), ("by_two".to_owned(), 10)]),
        "tasks in one place"
    );
    assert_eq!(of("no task any more"), one("", 10));
    assert_eq!(of("elsewhere"), one("", 10));
    // Up to eight are told, then it begins anew: the number of stacks has an end.
    let chains = of("by each other");
    assert_eq!(chains.values().sum::<u64>(), 1000);
    let most = chains.keys().map(|chain| chain.matches("by_").count()).max();
    assert_eq!((chains.len(), most), (16, Some(8)), "{chains:?}");

    // Without the option a task begins where it begins, and each window has as many allocations.
    let without = Run::new(&scratch, [&program]).run();
    for window in &report.windows {
        let plain = without.report().window(&window.name);
        assert_eq!(plain.counts.allocations, window.counts.allocations, "{}", window.name);
        assert!(plain.rows.iter().flat_map(|row| &row.frames).all(|frame| frame.kind != "task_origin"));
    }
}

fn record(program: &str, options: &[&str]) -> Option<Outcome> {
    let scratch = Scratch::new();
    let outcome = swift::run(&scratch, program, &[])?.options(options.iter().copied()).run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    Some(outcome)
}

#[test]
fn tasks_of_swift_lead_to_what_created_them() {
    // `async let` has a function of the library called, `Task` and groups get memory.
    for (program, lets) in [("S17_async_shapes", "asyncLet < main"), ("S17_async_shapes-static", "")] {
        let Some(outcome) = record(program, &["--task-origins"]) else { return };
        let of = |window: &str| {
            let window = outcome.report().window(window);
            origins(window, "makeBox", &["0B3LetyS2iYaF", "main"])
        };
        let lets = lets.replace("asyncLet", "0B3LetyS2iYaF");
        assert_eq!(of("asyncLet"), BTreeMap::from([(lets, 16)]), "{program}");
        assert_eq!(of("throwing"), BTreeMap::from([("main".to_owned(), 8)]), "{program}");
        assert_eq!(of("recursive"), BTreeMap::from([("main".to_owned(), 1)]), "{program}");
    }
    let Some(outcome) = record("S10_tasks_actors", &["--task-origins"]) else { return };
    // The closure that adds tasks to its group, in `work`, which the main task calls.
    let window = outcome.report().window("w");
    let found = origins(window, "makeBox", &["4work", "main"]);
    assert_eq!(found, BTreeMap::from([("4work < main".to_owned(), 12)]), "{}", window.text());
}
