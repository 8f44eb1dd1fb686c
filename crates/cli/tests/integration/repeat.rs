//! `--repeat`: several runs in one profile, the values of each exact.

use std::fs;
use std::process::Command;

use heaptally_profile::model::{Profile, Row};
use heaptally_profile::pprof;
use serde_json::{Value, json};

use crate::sandbox::{HEAPTALLY, Sandbox, outcome};

/// What all programs here begin with: `next()` tells in the how manieth run they are, from 1.
const HEAD: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "heaptally.h"

static int next(void) {
    char runs[16] = {0};
    int file = open("runs", O_RDWR | O_CREAT | O_APPEND, 0600);
    int before = (int)read(file, runs, sizeof runs);
    if (write(file, "+", 1) != 1) abort();
    close(file);
    return before + 1;
}

__attribute__((noinline)) static void fixed(int times) {
    for (int i = 0; i < times; i++) { volatile char *block = malloc(24); *block = 1; free((void *)block); }
}

__attribute__((noinline)) static void varying(int times) {
    for (int i = 0; i < times; i++) { volatile char *block = malloc(100); *block = 1; free((void *)block); }
}
"#;

/// A sandbox with the program `bench`, whose `main` has this body; `run` is the number of the run.
fn bench(body: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let source = format!("{HEAD}\nint main(void) {{ int run = next();\n{body}\n return 0; }}\n");
    sandbox.write("bench.c", source, 0o644);
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../preload/include");
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-O0", "-Wno-unused-function", "-I", include, "-o", "bench", "bench.c", "-ldl"]);
    let built = outcome(compiler.current_dir(sandbox.work("")));
    built.expect(0);
    sandbox
}

/// How many runs were started.
fn started(sandbox: &Sandbox) -> usize {
    fs::read(sandbox.work("runs")).unwrap().len()
}

fn profile(sandbox: &Sandbox) -> Profile {
    let profile = pprof::read(&fs::read(sandbox.work("a.pb.gz")).unwrap()).unwrap();
    assert_eq!(profile.check_sums(), []);
    profile
}

fn status(sandbox: &Sandbox) -> Value {
    serde_json::from_slice(&fs::read(sandbox.work("status.json")).unwrap()).unwrap()
}

/// The row of the stack that holds this function, in a window.
#[track_caller]
fn row<'p>(profile: &'p Profile, window: &str, function: &str) -> &'p Row {
    let holds = |row: &&Row| {
        let locations = profile.stacks[row.stack].locations.iter();
        let mut lines = locations.flat_map(|&location| &profile.locations[location].lines);
        profile.windows[row.window].name == window
            && lines.any(|line| profile.functions[line.function].name == function)
    };
    let mut rows = profile.rows.iter().filter(holds);
    let found = rows.next().unwrap_or_else(|| panic!("no stack holds {function}"));
    assert_eq!(rows.next(), None, "several stacks hold {function}");
    found
}

fn by_run(row: &Row) -> Vec<(u64, u64)> {
    row.repeats.iter().map(|value| (value.allocations, value.bytes)).collect()
}

const RUN: [&str; 5] = ["run", "--repeat", "3", "-o", "a.pb.gz"];

#[test]
fn a_stack_that_differs_between_runs_is_named_unstable() {
    let sandbox = bench(
        r#"heaptally_window_begin("w"); fixed(10); varying(run); if (run == 2) fixed(1); heaptally_window_end("w");"#,
    );
    let called = sandbox.call(RUN.iter().chain(&["./bench"]));
    called
        .expect(0)
        .says(&["heaptally: 3 runs: 1 window, 37 allocations, 3 stacks, 2 unstable, all complete → a.pb.gz"]);

    let profile = profile(&sandbox);
    assert_eq!(profile.environment.repeats, 3);
    let at = profile.windows.iter().position(|window| window.name == "w").unwrap();
    let window = &profile.windows[at];
    assert_eq!((window.entries, window.iterations, &window.iterations_per_repeat), (3, 3, &vec![1, 1, 1]));
    assert_eq!(profile.window_unstable()[at], 2);

    let varying = row(&profile, "w", "varying");
    assert_eq!(by_run(varying), [(1, 100), (2, 200), (3, 300)]);
    assert_eq!((varying.counts.allocations, varying.counts.freed_bytes), (6, 600));
    assert!(varying.is_unstable(window));
    assert_eq!(varying.range(window), Some((1.0, 3.0)));

    let mut fixed: Vec<_> = profile.rows.iter().filter(|row| row.window == at && *row != varying).collect();
    fixed.sort_by_key(|row| row.counts.allocations);
    assert_eq!(by_run(fixed[0]), [(0, 0), (1, 24), (0, 0)]);
    assert_eq!((fixed[0].entries, fixed[0].is_unstable(window)), (Some(1), true));
    assert_eq!(by_run(fixed[1]), [(10, 240); 3]);
    assert_eq!((fixed[1].entries, fixed[1].is_unstable(window)), (Some(3), false));
}

#[test]
fn a_deterministic_program_is_stable_and_counts_three_times() {
    let sandbox = Sandbox::new();
    let demo = sandbox.demo();
    let demo = demo.to_str().unwrap();
    sandbox.call(["run", "-o", "a.pb.gz", demo]).expect(0);
    let once = profile(&sandbox);
    assert_eq!(once.environment.repeats, 1);
    assert!(once.rows.iter().all(|row| row.repeats.is_empty()));
    sandbox
        .call(RUN.iter().chain(&[demo]))
        .expect(0)
        .says(&["3 runs: 2 windows", "all stable, all complete"]);
    let thrice = profile(&sandbox);
    assert_eq!(thrice.window_unstable(), vec![0; thrice.windows.len()]);
    assert_eq!(
        (&thrice.stacks, &thrice.functions, &thrice.modules),
        (&once.stacks, &once.functions, &once.modules)
    );
    assert_eq!(thrice.rows.len(), once.rows.len());
    for (sum, one) in thrice.rows.iter().zip(&once.rows) {
        let value = (one.counts.allocations, one.counts.bytes);
        assert_eq!(by_run(sum), [value; 3]);
        assert_eq!(sum.counts.freed, 3 * one.counts.freed);
    }
    for (sum, one) in thrice.windows.iter().zip(&once.windows) {
        assert_eq!(sum.iterations_per_repeat, [one.iterations; 3]);
        assert_eq!((sum.iterations, sum.entries), (3 * one.iterations, 3 * one.entries));
        assert_eq!(sum.peak_bytes, one.peak_bytes);
    }
    assert_eq!(thrice.threads.len(), once.threads.len());
    assert_eq!(thrice.threads[0].lives, 3);

    let bytes = fs::read(sandbox.work("a.pb.gz")).unwrap();
    sandbox.call(RUN.iter().chain(&[demo])).expect(0);
    assert_eq!(fs::read(sandbox.work("a.pb.gz")).unwrap(), bytes, "two recordings give two files");
}

#[test]
fn another_number_of_iterations_is_no_difference() {
    let sandbox = bench(
        r#"heaptally_window_begin("w"); fixed(3 * 50 * run); varying(run == 2 ? 101 : 50 * run);
        heaptally_window_iterations("w", 50 * run); heaptally_window_end("w");"#,
    );
    sandbox.call(RUN.iter().chain(&["./bench"])).expect(0).says(&["2 stacks, 1 unstable"]);
    let profile = profile(&sandbox);
    let fixed = row(&profile, "w", "fixed");
    let window = &profile.windows[fixed.window];
    assert_eq!((window.iterations, &window.iterations_per_repeat), (300, &vec![50, 100, 150]));
    assert!(window.iterations_told);
    assert_eq!(by_run(fixed), [(150, 3600), (300, 7200), (450, 10800)]);
    assert!(!fixed.is_unstable(window));
    assert_eq!((fixed.range(window), window.per_iteration(900)), (Some((3.0, 3.0)), Some(3.0)));
    let varying = row(&profile, "w", "varying");
    assert!(varying.is_unstable(window));
    assert_eq!(varying.range(window), Some((1.0, 1.01)));
}

#[test]
fn a_run_that_fails_is_the_last() {
    let sandbox = bench(
        r#"heaptally_window_begin("w"); fixed(10); heaptally_window_end("w"); if (run == 2) return 3;"#,
    );
    let called = sandbox.call(RUN.iter().chain(&["--json-status", "status.json", "./bench"]));
    called.expect(3).says(&[
        "2 runs: 1 window, 20 allocations, 1 stack, all stable",
        "warning: run 2 of 3 exited with 3",
    ]);
    assert_eq!(started(&sandbox), 2);
    let profile = profile(&sandbox);
    assert_eq!((profile.environment.repeats, profile.environment.exit_code), (2, Some(3)));
    assert_eq!(by_run(row(&profile, "w", "fixed")), [(10, 240); 2]);
    let status = status(&sandbox);
    let (good, bad) = (json!({"exit_code": 0, "signal": null}), json!({"exit_code": 3, "signal": null}));
    assert_eq!((&status["runs"], &status["program"]), (&json!([good, bad]), &bad));
    assert_eq!((&status["recorder"]["ok"], &status["recorder"]["unstable"]), (&json!(true), &json!(0)));
}

#[test]
fn a_run_that_a_signal_ends_is_the_last() {
    let sandbox = bench(
        r#"int times = run == 2 ? 4 : 10; heaptally_window_begin("w"); fixed(times);
        if (run == 2) kill(getpid(), SIGKILL);
        heaptally_window_end("w");"#,
    );
    let called = sandbox.call(RUN.iter().chain(&["./bench"]));
    called.expect(128 + 9).says(&["warning: run 2 of 3 was ended by signal 9", "1 stack, 1 unstable"]);
    assert_eq!(started(&sandbox), 2);
    let profile = profile(&sandbox);
    let row = row(&profile, "w", "fixed");
    assert_eq!(by_run(row), [(10, 240), (4, 96)]);
    assert!(profile.windows[row.window].unfinished);
}

#[test]
fn a_signal_to_the_command_ends_the_repetition() {
    const INTERRUPTS: &str = r#"fixed(1); signal(SIGINT, SIG_IGN); if (run == 2) kill(getppid(), SIGINT);"#;
    let status_file = ["--json-status", "status.json"];
    let recording = |sandbox: &Sandbox, before: &[&str]| {
        let command = sandbox.command(RUN);
        let mut other = Command::new(before[0]);
        other.args(&before[1..]).arg(HEAPTALLY).args(RUN).args(status_file).arg("./bench");
        other.current_dir(sandbox.work(""));
        other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        outcome(&mut other)
    };
    let sandbox = bench(INTERRUPTS);
    // Whoever started the tests may ignore the signal.
    let called = recording(&sandbox, &["env", "--default-signal=INT"]);
    called.expect(128 + 2).says(&["2 runs: ", "warning: run 2 of 3 was the last, since signal 2 came"]);
    assert_eq!(started(&sandbox), 2);
    assert_eq!(profile(&sandbox).environment.repeats, 2);
    assert_eq!(status(&sandbox)["program"], json!({"exit_code": 0, "signal": null}));

    // Nothing is left out when it came in the last run.
    let sandbox = bench(INTERRUPTS);
    sandbox.call(["run", "--repeat", "2", "-o", "a.pb.gz", "./bench"]).expect(0);

    // As with nohup.
    let sandbox = bench(INTERRUPTS);
    recording(&sandbox, &["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]).expect(0).says(&["3 runs: "]);
    assert_eq!(started(&sandbox), 3);
}

#[test]
fn a_named_window_opens_in_every_run() {
    let sandbox = bench(
        r#"const char *name = run == 2 ? "other" : "w"; heaptally_window_begin(name); fixed(10);
        heaptally_window_end(name);"#,
    );
    let called = sandbox.call(RUN.iter().chain(&["--window", "w", "./bench"]));
    called.expect(125).says(&["run 2 of 3: the window `w` never opened"]);
    assert_eq!(started(&sandbox), 2);
    let profile = profile(&sandbox);
    assert_eq!(by_run(row(&profile, "w", "fixed")), [(10, 240), (0, 0)]);
    sandbox.call(RUN.iter().chain(&["--window", "w", "./bench"])).expect(0);
}

#[test]
fn a_window_that_only_some_runs_opened_stays() {
    let sandbox = bench(
        r#"const char *name = run == 2 ? "other" : "w"; heaptally_window_begin(name); fixed(10);
        heaptally_window_end(name);"#,
    );
    sandbox.call(RUN.iter().chain(&["./bench"])).expect(0).says(&["3 runs: 2 windows", "1 unstable"]);
    let profile = profile(&sandbox);
    assert_eq!(by_run(row(&profile, "w", "fixed")), [(10, 240), (0, 0), (10, 240)]);
    assert_eq!(by_run(row(&profile, "other", "fixed")), [(0, 0), (10, 240), (0, 0)]);
    let window = &profile.windows[row(&profile, "other", "fixed").window];
    assert_eq!(window.iterations_per_repeat, [0, 1, 0]);
}

#[test]
fn a_program_that_goes_away_leaves_nothing() {
    let sandbox = bench(r#"if (run == 1) unlink("bench");"#);
    let called = sandbox.call(RUN.iter().chain(&["--json-status", "status.json", "./bench"]));
    called.expect(127).says(&["run 2 of 3: cannot start `./bench`"]);
    assert!(!sandbox.work("a.pb.gz").exists());
    assert_eq!(status(&sandbox)["runs"], json!([{"exit_code": 0, "signal": null}]));
}

#[test]
fn each_run_starts_alike() {
    let sandbox = Sandbox::new();
    let script = "pwd; env | sort; echo \"$0 $1\"; read word && echo \"read $word\"; exit 0";
    let mut command = sandbox.command(RUN);
    command.args(["sh", "-c", script, "a", "b"]);
    let input = sandbox.write("input", "words\n", 0o644);
    command.stdin(fs::File::open(input).unwrap());
    let called = outcome(&mut command);
    let output = called.expect(0).output.replacen("read words\n", "", 1);
    assert!(!output.contains("read"), "the input was read twice: {output}");
    let third = output.len() / 3;
    assert_eq!(output[..third].repeat(3), output);
}

#[test]
fn no_segment_is_left_behind() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.work("segments")).unwrap();
    let called = sandbox.call(RUN.iter().chain(&["--segment-dir", "segments", "ls", "segments"]));
    assert_eq!(called.expect(0).output.lines().count(), 3, "one at a time: {called:#?}");
    assert_eq!(fs::read_dir(sandbox.work("segments")).unwrap().count(), 0);
}

#[test]
fn strict_holds_for_all_runs() {
    // A function without unwind information, and nothing in its frame pointer.
    let sandbox = bench(
        r#"fixed(1); if (run == 2) __asm__ volatile("call 1f; jmp 2f; 1: push %%rbp; xor %%ebp, %%ebp; mov $8, %%edi;"
        " call malloc@PLT; pop %%rbp; ret; 2:" ::: "memory", "cc", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");"#,
    );
    sandbox.call(["run", "--strict", "-o", "a.pb.gz", "./bench"]).expect(0);
    fs::remove_file(sandbox.work("runs")).unwrap();
    let called = sandbox.call(RUN.iter().chain(&["--strict", "./bench"]));
    called.expect(125).says(&["3 runs: ", "1 cut", "--strict"]);
    assert_eq!(started(&sandbox), 3);
}

#[test]
fn at_least_once() {
    let sandbox = Sandbox::new();
    for number in ["0", "-1", "x", ""] {
        let called = sandbox.call(["run", &format!("--repeat={number}"), "--", "sh", "-c", "echo > ran"]);
        called.expect(125).says(&["--repeat"]);
        assert!(!sandbox.work("ran").exists());
    }
    sandbox.call(["run", "--repeat", "1", "--json-status", "status.json", "-o", "a.pb.gz", "true"]).expect(0);
    let status = status(&sandbox);
    assert_eq!((&status["runs"], &status["recorder"]["unstable"]), (&json!(null), &json!(null)));
}
