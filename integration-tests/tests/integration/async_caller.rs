//! Async callers: of functions that Swift's runtime resumed, and of contexts that are none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use integration_tests::program::build;
use integration_tests::report::{Frame, Row, Window};
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::swift;
use integration_tests::tool::have;
use serde_json::Value;

/// The async callers of a row, the nearest first, as the files name them.
fn callers(row: &Row) -> Vec<&str> {
    let callers = row.frames.iter().filter(|frame| frame.kind == "async");
    callers.map(Frame::stable_name).collect()
}

/// Each chain of callers with how many allocations have it; `unknown` stands for what was not found.
fn chains(window: &Window) -> BTreeMap<String, u64> {
    let mut chains = BTreeMap::new();
    for row in &window.rows {
        let mut chain = callers(row);
        if row.capture == "async_unknown" {
            chain.push("unknown");
        }
        *chains.entry(chain.join(" < ")).or_default() += row.counts.allocations;
    }
    chains
}

#[test]
fn what_is_no_context_gives_no_caller() {
    if !have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    let program =
        build(&scratch, "async_contexts.c", "async_contexts", &["-O2", "-fno-optimize-sibling-calls"]);
    let outcome = Run::new(&scratch, [program]).run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let whole = "inner_caller < outer_caller < task_end";
    let of = |name: &str| chains(outcome.report().window(name));
    for name in ["good", "mapped", "allocated", "before it moves", "below the base", "good again"] {
        assert_eq!(of(name), BTreeMap::from([(whole.to_owned(), 10)]), "{name}");
    }
    assert_eq!(of("one caller"), BTreeMap::from([("task_end".to_owned(), 10)]));
    for name in [
        "null",
        "small",
        "misaligned",
        "the kernel's",
        "not canonical",
        "unmapped",
        "freed",
        "moved",
        "half a context",
        "its own parent",
        "in a circle",
        "into a circle",
        "inside of a function",
        "no code",
        "the stack",
    ] {
        assert_eq!(of(name), BTreeMap::from([("unknown".to_owned(), 10)]), "{name}");
    }
    for name in ["a parent that is not there", "a parent that is no context"] {
        assert_eq!(of(name), BTreeMap::from([("inner_caller < unknown".to_owned(), 10)]), "{name}");
    }
    let many = of("very many");
    assert_eq!(many.values().sum::<u64>(), 10);
    let chain = many.keys().next().expect("one chain");
    assert!(chain.ends_with(" < unknown") && chain.matches("_caller").count() == 1024, "{chain}");
    // Whoever resumed them is no part of the stack.
    for row in outcome.report().windows.iter().flat_map(|window| &window.rows) {
        let has = |name: &str| row.frames.iter().any(|frame| frame.function == name);
        assert!(!has("swift_job_run") || !has("allocate"), "{:?}", row.frames);
    }
}

fn record(program: &str) -> Option<Outcome> {
    let scratch = Scratch::new();
    let outcome = swift::run(&scratch, program, &[])?.run();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.report().sum_mismatches.is_empty(), "{:?}", outcome.report().sum_mismatches);
    Some(outcome)
}

/// The chains of the rows with a function whose name, as the file has it, holds `part`.
fn chains_through(window: &Window, part: &str) -> BTreeMap<String, u64> {
    let mut chains = BTreeMap::new();
    for row in
        window.rows.iter().filter(|row| row.frames.iter().any(|frame| frame.stable_name().contains(part)))
    {
        *chains.entry(callers(row).join(" < ")).or_default() += row.counts.allocations;
    }
    chains
}

#[test]
fn one_function_of_two_callers() {
    let Some(outcome) = record("S18_same_step_two_callers") else { return };
    let chains = chains_through(outcome.report().window("w"), "makeBox");
    let of = |part: &str| {
        chains.iter().filter(|(chain, _)| chain.contains(part)).map(|(_, count)| count).sum::<u64>()
    };
    assert_eq!((chains.len(), of("fromHere"), of("fromThere")), (2, 6, 9), "{chains:?}");
}

#[test]
fn before_and_after_a_suspension() {
    let Some(outcome) = record("S09_async") else { return };
    let chains = chains_through(outcome.report().window("w"), "makeBox");
    assert_eq!(chains.len(), 1, "{chains:?}");
    let (chain, count) = chains.iter().next().expect("one");
    assert_eq!(*count, 20);
    assert!(chain.starts_with("$s9S09_async5chainyS2iYaFTQ"), "{chain}");
}

#[test]
fn an_actor_that_tasks_of_a_group_call() {
    let Some(outcome) = record("S10_tasks_actors") else { return };
    let chains = chains_through(outcome.report().window("w"), "makeBox");
    assert_eq!(chains.values().sum::<u64>(), 12, "{chains:?}");
    for chain in chains.keys() {
        assert!(
            chain.starts_with("$s16S10_tasks_actors4work") && chain.contains("YaXEfU_SiyYacfU_"),
            "{chain}"
        );
    }
}

#[test]
fn async_functions_of_every_shape() {
    for program in ["S17_async_shapes", "S17_async_shapes-fp", "S17_async_shapes-static"] {
        let Some(outcome) = record(program) else { return };
        for (name, count) in [
            ("throwing", 8),
            ("asyncLet", 16),
            ("continuation", 8),
            ("stream", 8),
            ("generic", 8),
            ("existential", 16),
            ("actors", 16),
            ("recursive", 1),
        ] {
            let chains = chains_through(outcome.report().window(name), "makeBox");
            assert_eq!(chains.values().sum::<u64>(), count, "{program}, {name}: {chains:?}");
            for chain in chains.keys() {
                // A child task begins at the closure that it was made of.
                let is_whole = if name == "asyncLet" {
                    chain.contains("0B3LetyS2iYaFAA3BoxCyYaYbcfu")
                } else {
                    chain.contains("10everythingyS2iYaF") && chain.contains("async_Main")
                };
                assert!(is_whole, "{program}, {name}: {chain}");
            }
        }
        // 8 on the chain, one of which is the caller of the recursion.
        let chains = chains_through(outcome.report().window("recursive"), "makeBox");
        let chain = chains.keys().next().expect("one");
        assert_eq!(chain.matches("9recursive").count(), 8, "{chain}");
    }
}

/// What the debugger finds by the same rule, stack by stack: no chain of ours is one that it does not find for that function.
#[test]
fn the_debugger_finds_the_same_callers() {
    let Some(folder) = swift::folder() else { return };
    if !have(&["gdb", "gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    let stub = scratch.path("libwin.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-O0", "-o"]).arg(&stub).arg(folder.join("windows_stub.c"));
    assert!(gcc.status().expect("gcc runs").success());
    let (mut unknown, mut all) = (0, 0);
    for program in [
        "S09_async",
        "S10_tasks_actors",
        "S17_async_shapes",
        "S17_async_shapes-fp",
        "S18_same_step_two_callers",
    ] {
        let out = scratch.path(format!("{program}.json"));
        let mut gdb = Command::new("gdb");
        gdb.args(["-q", "-batch", "-x"]).arg(folder.join("oracle.py")).arg(folder.join("bin").join(program));
        gdb.env("PROGRAM_OUT", &out).env("LIBWIN", &stub);
        let libraries = [folder.join("lib"), folder.join("bin")].map(|folder| folder.display().to_string());
        let debugged = gdb.env("LD_LIBRARY_PATH", libraries.join(":")).output().expect("gdb runs");
        let text = fs::read(&out).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&debugged.stderr)));
        let document: Value = serde_json::from_slice(&text).expect("a document");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        // The linker's own names, as `nm` has them; gdb shows C++ functions by their names for people.
        let plain = |name: &str| name.split(['(', ' ']).next().unwrap_or_default().to_owned();
        let mut expected: BTreeSet<(String, Vec<String>)> = BTreeSet::new();
        for row in document["rows"].as_array().expect("rows") {
            let chain: Vec<String> = row["async_callers"]
                .as_array()
                .expect("callers")
                .iter()
                .map(|name| plain(&text(name)))
                .collect();
            let stack: Vec<String> = row["stack"].as_array().expect("a stack").iter().map(text).collect();
            let resumer = stack
                .iter()
                .rposition(|name| name.starts_with("swift::runJob") || name.starts_with("swift_job_run"));
            if let Some(function) = resumer.and_then(|at| stack.get(at + 1)) {
                expected.insert((plain(function), chain));
            }
        }
        assert!(expected.len() > 1, "{program}: the debugger finds nothing");
        let Some(outcome) = record(program) else { return };
        for window in outcome.report().windows.iter().filter(|window| window.name != "process") {
            for row in &window.rows {
                let chain: Vec<String> = callers(row).into_iter().map(plain).collect();
                let count = row.counts.allocations;
                if row.capture == "async_unknown" {
                    (unknown, all) = (unknown + count, all + count);
                    continue;
                }
                if chain.is_empty() {
                    continue;
                }
                all += count;
                // Which part of a function calls the runtime, and with which callers, is chance where another thread has the
                // task at the time.
                let function = row.frames.iter().rev().find(|frame| frame.kind != "async" && !frame.inlined);
                let pair = (plain(function.expect("a function").stable_name()), chain);
                let is_known = if pair.0.starts_with("$s") {
                    expected.contains(&pair)
                } else {
                    expected.iter().any(|(_, chain)| chain.ends_with(&pair.1))
                };
                assert!(is_known, "{program}, {}: {pair:?} is none of {expected:#?}", window.name);
            }
        }
    }
    // Eight that the debugger does not find either, in each of the builds for which it does not.
    assert!(unknown * 50 <= all, "{unknown} of {all} are unknown");
}
