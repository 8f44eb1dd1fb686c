//! What a function is called when its file says little, or when its build differs: names are true, or they are offsets.

use std::collections::{BTreeMap, BTreeSet};

use integration_tests::command::include_folder;
use integration_tests::report::Report;
use integration_tests::run::{Outcome, Run, report_json};
use integration_tests::scratch::Scratch;
use integration_tests::tool;
use serde_json::Value;

use crate::standard;

fn document(outcome: &Outcome) -> Value {
    serde_json::from_slice(&report_json(&outcome.profile)).expect("a document")
}

/// What is said of the names of a module whose path ends in `program`.
fn symbol_problem(outcome: &Outcome, program: &str) -> Option<String> {
    let document = document(outcome);
    let modules = document["modules"].as_array().expect("modules");
    let is_program = |module: &&Value| module["path"].as_str().is_some_and(|path| path.ends_with(program));
    let module = modules.iter().find(is_program).unwrap_or_else(|| panic!("no {program} in {modules:?}"));
    module["symbol_problem"].as_str().map(str::to_owned)
}

fn run(scratch: &Scratch, program: &str) -> Outcome {
    let outcome = Run::new(scratch, [program]).run();
    assert_eq!(outcome.code, 0, "{program}: {}", outcome.stderr);
    assert_eq!(outcome.report().losses_text(), "");
    outcome
}

/// The functions of the only stack in `w`, leaf first.
fn only_stack(report: &Report) -> Vec<String> {
    let window = report.window("w");
    let [row] = window.rows.as_slice() else { panic!("not one row: {}", window.text()) };
    assert_eq!((row.counts.calls(), row.is_complete()), (5, true), "{}", window.text());
    row.frames.iter().map(|frame| frame.function.clone()).collect()
}

/// The case C06, built anew by `script`; where it is `None` a tool is missing.
fn stripped(script: &str) -> Option<(Scratch, Outcome)> {
    if !tool::have(&["objcopy", "strip"]) {
        return None;
    }
    let (_, scratch) = standard::build("C06")?;
    scratch.shell(script);
    let outcome = run(&scratch, "./C06");
    Some((scratch, outcome))
}

/// Why a debug file was not used, in words.
#[test]
fn c06_a_refused_debug_file_is_told() {
    let gone = stripped("rm C06.debug");
    let of_another_build = stripped("gcc -O2 -g -o other C06.c && objcopy --only-keep-debug other C06.debug");
    let changed = stripped("printf x >> C06.debug");
    for (built, words) in [
        (gone, ["debug file missing", "C06.debug"]),
        (of_another_build, ["debug file refused", "build-id"]),
        (changed, ["debug file refused", "CRC"]),
    ] {
        let Some((_scratch, outcome)) = built else { return };
        let problem = symbol_problem(&outcome, "/C06").unwrap_or_default();
        assert!(words.iter().all(|word| problem.contains(word)), "{words:?} not in {problem:?}");
        let stack = only_stack(outcome.report());
        assert!(stack[0] == "malloc" && stack[1].starts_with("C06+0x"), "{stack:?}");
        assert!(stack[2].starts_with("C06+0x") && stack[1] != stack[2], "{stack:?}");
    }
}

/// Only exported functions have names; `work`, which is none, must not become the one before it.
#[test]
fn c24_exported_names_only() {
    let Some((_scratch, outcome)) = stripped("gcc -O0 -g -rdynamic -o C06 C06.c && strip -s C06") else {
        return;
    };
    let stack = only_stack(outcome.report());
    assert_eq!((stack[0].as_str(), stack[2].as_str()), ("malloc", "main"), "{stack:?}");
    assert!(stack[1].starts_with("C06+0x"), "{stack:?}");
    assert!(symbol_problem(&outcome, "/C06").is_some_and(|problem| problem.contains("exported")));
}

/// A debug file without `.debug_info` still has names, and what it has not is told.
#[test]
fn c26_a_debug_file_without_debug_information() {
    let script = "objcopy --remove-section .debug_info C06.debug && cp C06.full C06 && strip -s C06 \
                  && objcopy --add-gnu-debuglink=C06.debug C06";
    let Some((_scratch, outcome)) = stripped(script) else { return };
    let stack = only_stack(outcome.report());
    assert_eq!(stack[..3], ["malloc", "work", "main"], "{stack:?}");
    let problem = symbol_problem(&outcome, "/C06").unwrap_or_default();
    assert!(problem.contains("no .debug_info"), "{problem:?}");
}

/// One of two names of a folded function is as good as the other: that it is folded is told.
#[test]
fn c08_a_folded_function_is_told() {
    if !tool::have(&["ld.gold"]) {
        return;
    }
    let Some((_, scratch)) = standard::build("C08") else { return };
    let outcome = run(&scratch, "./C08");
    let document = document(&outcome);
    let frames = document["frames"].as_array().expect("frames");
    let folded: Vec<&str> = frames
        .iter()
        .filter(|frame| frame["is_folded"] == true)
        .filter_map(|frame| frame["function"].as_str())
        .collect();
    assert!(folded == ["make_red"] || folded == ["make_blue"], "{folded:?}");
}

/// A path that is not UTF-8 is there to the byte, written in ASCII.
#[test]
fn c15_a_path_is_escaped() {
    let Some((_, scratch)) = standard::build("C15") else { return };
    let outcome = run(&scratch, "./C15");
    let document = document(&outcome);
    let path = document["images"][0]["path"].as_str().expect("a path");
    assert!(path.ends_with("/dir with space/n\\xffm/C15 bin"), "{path}");
    assert!(symbol_problem(&outcome, "/C15 bin").is_none());
}

/// What stacks are paired by: functions and names of files, without lines and addresses; with their counts.
fn identities(outcome: &Outcome) -> BTreeMap<String, u64> {
    let document = document(outcome);
    let frames = document["frames"].as_array().expect("frames");
    let windows = document["windows"].as_array().expect("windows");
    let mut rows = BTreeMap::new();
    for window in windows.iter().filter(|window| window["name"] != "process") {
        for row in window["rows"].as_array().expect("rows") {
            let mut key = window["name"].to_string();
            for at in row["stack"].as_array().expect("a stack") {
                let frame = &frames[at.as_u64().expect("an index") as usize];
                let file = frame["file"].as_str().and_then(|path| path.rsplit('/').next());
                key.push_str(&format!("; {} {}", frame["function"], file.unwrap_or_default()));
            }
            *rows.entry(key).or_insert(0) += row["counts"]["allocations"].as_u64().expect("a count");
        }
    }
    assert!(!rows.is_empty());
    rows
}

/// rustc's hashes differ with its `metadata`, as they do from build to build.
#[test]
fn c19_hashes_are_no_part_of_names() {
    let Some((case, scratch)) = standard::build("R01") else { return };
    let mut seen = Vec::new();
    let mut mangled = Vec::new();
    for metadata in ["a", "b"] {
        for version in ["legacy", "v0"] {
            let flags = if version == "v0" { "-C symbol-mangling-version=v0" } else { "" };
            let build = case.build.replace("rustc", &format!("rustc -C metadata={metadata} {flags}"));
            scratch.shell(&build);
            let outcome = run(&scratch, &case.program());
            let identities = identities(&outcome);
            let is_hash = |part: &str| {
                part.len() >= 17
                    && part.starts_with('h')
                    && part.bytes().skip(1).take(16).all(|byte| byte.is_ascii_hexdigit())
            };
            for key in identities.keys() {
                assert!(!key.split("::").any(is_hash), "{metadata} {version}: {key}");
            }
            mangled.push(scratch.shell("nm R01 | grep -o '_[ZR].*vec_u64.*'"));
            seen.push(identities);
        }
    }
    assert_ne!(mangled[0], mangled[2], "the symbols do not differ: nothing is shown");
    assert_eq!(seen[0], seen[2]);
    assert_eq!(seen[1], seen[3]);
}

/// Lines above, another order of functions, another folder: the same stacks.
#[test]
fn c30_lines_and_moved_functions() {
    const BEGIN: &str = r#"#include <stdlib.h>
#include "heaptally.h"
static void *volatile sink;
static void one(int n);
static void two(int n);
"#;
    const ONE: &str = r#"__attribute__((noinline)) static void one(int n)
{
    while (n--)
        free(sink = malloc(8));
    __asm__ volatile("");
}
"#;
    const TWO: &str = r#"__attribute__((noinline)) static void two(int n)
{
    one(n);
    free(sink = calloc(n, 4));
}
"#;
    const MAIN: &str = r#"int main(void)
{
    heaptally_window_begin("w");
    one(3);
    two(4);
    heaptally_window_end("w");
    return 0;
}
"#;
    if !tool::have(&["gcc"]) {
        return;
    }
    let built = |folder: &str, source: String| {
        let scratch = Scratch::new();
        scratch.shell(&format!("mkdir {folder}"));
        scratch.write(&format!("{folder}/program.c"), source);
        let include = include_folder();
        let flags = format!("-O1 -g -D_GNU_SOURCE -I'{}'", include.display());
        scratch.shell(&format!("gcc {flags} -o program $PWD/{folder}/program.c -ldl"));
        let outcome = run(&scratch, "./program");
        let document = document(&outcome);
        let frames = document["frames"].as_array().expect("frames").iter();
        let own =
            frames.filter(|frame| frame["file"].as_str().is_some_and(|path| path.ends_with("program.c")));
        let lines: BTreeSet<u64> = own.filter_map(|frame| frame["line"].as_u64()).collect();
        (identities(&outcome), lines)
    };
    let (before, lines_before) = built("here", format!("{BEGIN}{ONE}{TWO}{MAIN}"));
    let (after, lines_after) =
        built("there", format!("{}{BEGIN}{TWO}{ONE}{MAIN}", "/* a line */\n".repeat(100)));
    assert_eq!(before.values().sum::<u64>(), 8, "{before:#?}");
    assert_eq!(before, after);
    assert!(
        lines_before.len() >= 4 && lines_before.is_disjoint(&lines_after),
        "{lines_before:?} {lines_after:?}"
    );
}
