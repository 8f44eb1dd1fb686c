//! Programs that start others: what they print, how they end and what their children see is as without the recorder.

use std::ffi::OsString;
use std::fs;
use std::time::{Duration, Instant};

use integration_tests::check::{self, Tolerance};
use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

use crate::standard;

const FOLLOW: [&str; 1] = ["--follow-children"];

/// Runs a piece of shell alone, recorded, and followed: output and exit code must be the same. Gives the two outcomes.
fn same(scratch: &Scratch, shell: &str, script: &str, preload: Option<&str>) -> [Outcome; 2] {
    let run = || {
        let run = Run::new(scratch, [shell, "-c", script]);
        match preload {
            Some(list) => run.environment("LD_PRELOAD", list),
            None => run,
        }
    };
    let alone = run().unrecorded().run();
    [run(), run().options(FOLLOW)].map(|run| {
        let outcome = run.run();
        assert_eq!(outcome.code, alone.code, "{script}; stderr:\n{}", outcome.stderr);
        let [recorded, alone] = [&outcome.stdout, &alone.stdout].map(|text| String::from_utf8_lossy(text));
        assert_eq!(recorded, alone, "{script}");
        outcome
    })
}

#[test]
fn a_childs_environment_is_as_without() {
    let scratch = Scratch::new();
    // `_` names whoever started the shell.
    same(&scratch, "sh", "unset _; env", None);
    same(&scratch, "sh", "unset _; env | tail -n +1; A=1 B=2 env; env -i C=3 env", None);
    same(&scratch, "sh", "LD_PRELOAD= env | grep -n LD_; unset LD_PRELOAD; env | grep -c LD_PRELOAD", None);
    if tool::have(&["python3"]) {
        let script = "python3 -c \"import os, subprocess; os.system('unset _; env'); \
                      print(os.popen('unset _; env').read()); os.environ['X'] = 'y'; subprocess.run(['env'], close_fds=False); \
                      subprocess.run(['env'], env={})\"";
        same(&scratch, "sh", script, None);
    }
}

#[test]
fn other_preloads_keep_their_places() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    scratch.write("empty.c", "int heaptally_test_nothing;");
    scratch.shell("gcc -shared -fPIC -o one.so empty.c && gcc -shared -fPIC -o two.so empty.c");
    let path = |name: &str| scratch.path(name).to_string_lossy().into_owned();
    let (one, two) = (path("one.so"), path("two.so"));
    let maps = "grep -c 'one.so' /proc/self/maps; grep -c 'two.so' /proc/self/maps; echo \"$LD_PRELOAD\"";
    let script =
        format!("{maps}; sh -c '{maps}'; LD_PRELOAD={two} sh -c '{maps}'; LD_PRELOAD={two}:{one} env");
    for list in [one.clone(), format!("{one}:{two}"), format!("{two} {one}"), String::new()] {
        same(&scratch, "sh", &format!("unset _; {script}"), Some(&list));
    }
}

#[test]
fn no_descriptor_is_inherited() {
    let scratch = Scratch::new();
    let [.., followed] =
        same(&scratch, "sh", "sh -c 'ls /proc/self/fd'; ls /proc/self/fd; (ls /proc/self/fd)", None);
    assert_eq!(followed.report().children.text(), "");
}

#[test]
fn a_bash_script() {
    if !tool::have(&["bash"]) {
        return;
    }
    let scratch = Scratch::new();
    let script = "set -e; x=$(echo hello | tr a-z A-Z); for i in 1 2 3; do ( : $((i * 2)); echo sub $i ); done; \
                  echo \"$x\" | sed s/H/J/ | cat; f() { local a=(a b c); echo \"${a[@]}\"; }; f | wc -l; \
                  diff <(echo a) <(echo a) && echo same; false || exit 7";
    let [counted, followed] = same(&scratch, "bash", script, None);
    assert_eq!(counted.code, 7);
    for program in ["tr ×1", "sed ×1", "cat ×1", "wc ×1", "diff ×1"] {
        assert!(counted.report().children.text().contains(program), "{}", counted.stderr);
    }
    let report = followed.report();
    assert_eq!((report.children.text().as_str(), report.losses_text().as_str()), ("", ""));
    assert!(report.images.iter().any(|image| image.label == "sed" && image.processes == 1));
}

#[test]
fn make_and_a_compiler() {
    if !tool::have(&["make", "gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    scratch.write("a.c", "int b(void); int main(void) { return b(); }");
    scratch.write("b.c", "#include <stdio.h>\nint b(void) { return puts(\"b\") < 0; }");
    scratch.write("Makefile", "prog: a.o b.o\n\tgcc -o $@ $^\n\t./prog\n%.o: %.c\n\tgcc -O1 -c $< -o $@\n");
    let [counted, followed] = same(&scratch, "sh", "rm -f *.o prog; make", None);
    assert!(counted.report().children.text().contains("make ×1"), "{}", counted.stderr);
    let report = followed.report();
    assert_eq!((report.children.text().as_str(), report.losses_text().as_str()), ("", ""));
    for (program, processes) in [("make", 1), ("cc1", 2), ("collect2", 1), ("prog", 1)] {
        let image = report.images.iter().find(|image| image.label == program);
        assert_eq!(image.map(|image| image.processes), Some(processes), "{program}: {:?}", report.images);
    }
    let is_linker = |label: &str| label.ends_with("ld") || label.contains("ld.");
    assert!(report.images.iter().any(|image| is_linker(&image.label)), "{:?}", report.images);
    assert!(report.images.iter().any(|image| image.label.ends_with("as") && image.processes == 2));
}

#[test]
fn git_collects_its_garbage() {
    let Some(git) = tool::system("git").filter(|_| tool::have(&["git"])) else { return };
    let git = git.display();
    let scratch = Scratch::new();
    let make = format!(
        "rm -rf repo; {git} init -q repo; cd repo; for i in 1 2 3 4 5 6; do echo $i > f$i; {git} add .; \
         {git} -c user.email=a@b -c user.name=n commit -qm $i; done"
    );
    let script = format!(
        "({make}) && cd repo && {git} gc 2>&1 && {git} fsck 2>&1 && {git} count-objects -v | head -3"
    );
    let [.., followed] = same(&scratch, "sh", &script, None);
    assert_eq!(followed.code, 0, "{}", followed.stderr);
    assert_eq!(followed.report().children.text(), "");
}

#[test]
fn a_storm_of_execs() {
    let scratch = Scratch::new();
    let script = "i=0; while [ $i -lt 150 ]; do /bin/echo $i; i=$((i + 1)); done; exit 9";
    let [counted, followed] = same(&scratch, "sh", script, None);
    assert_eq!((counted.code, counted.report().children.text().as_str()), (9, "echo ×150"));
    assert_eq!(followed.report().children.recorded, 150);
    assert_eq!(followed.report().children.text(), "");
}

/// A static image does not record, and hands on what it was given.
#[test]
fn a_static_image_in_a_chain() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    scratch.write(
        "chain.c",
        "#include <stdlib.h>\n#include <unistd.h>\nstatic void *volatile sink;\n\
         __attribute__((noinline)) void link_work(void) { sink = malloc(3); free(sink); }\n\
         int main(int count, char **words) { link_work(); if (count > 1) execv(words[1], words + 1); return 4; }\n",
    );
    scratch.shell("gcc -O1 -g -static -o fixed chain.c && gcc -O1 -g -o moving chain.c");
    for (script, missing, links) in [
        ("./fixed; true", "fixed ×1", 0),
        ("./moving ./fixed; true", "fixed ×1", 1),
        ("./fixed ./moving; true", "", 1),
        ("./moving ./fixed ./moving; true", "", 2),
        ("./moving ./moving ./moving; true", "", 3),
    ] {
        let [_, followed] = same(&scratch, "sh", script, None);
        let report = followed.report();
        assert_eq!(report.children.text(), missing, "{script}");
        let calls: u64 = report.windows.iter().map(|window| window.calls_with("link_work")).sum();
        assert_eq!(calls, links, "{script}");
        assert_eq!(
            followed.stderr.contains("could not be recorded (fixed)"),
            !missing.is_empty(),
            "{script}"
        );
    }
    let strict =
        Run::new(&scratch, ["sh", "-c", "./fixed; true"]).options(["--follow-children", "--strict"]).run();
    assert_eq!(strict.code, 125, "{}", strict.stderr);
}

/// Shells are lent the recorder's variables for as long as they are waited for, and no longer.
#[test]
fn shells_in_threads() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "shell_threads.c", "shell_threads", &["-O1"]);
    for options in [&[][..], &FOLLOW] {
        let outcome = Run::new(&scratch, ["./shell_threads"]).options(options.iter().copied()).run();
        let stdout = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert_eq!((outcome.code, stdout.as_str()), (0, ""), "{options:?}; stderr:\n{}", outcome.stderr);
        let count = outcome.report().children.text();
        assert_eq!(count, if options.is_empty() { "sh ×62" } else { "" });
    }
}

/// The number before the word `allocations`.
fn allocations(line: &str) -> u64 {
    let line = line.replace(',', "");
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let at = words.iter().position(|word| *word == "allocations").unwrap_or_else(|| panic!("{line}"));
    words[at.saturating_sub(1)].parse().unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// The table of processes, the last line, the status and the report count the same allocations.
#[test]
fn one_sum_before_and_after_an_exec() {
    let scratch = Scratch::new();
    for (script, options) in [
        ("exec /bin/echo a", &[][..]),
        ("exec /bin/echo a", &FOLLOW),
        ("(exec /bin/echo a); /bin/echo b; exec /bin/echo c", &FOLLOW),
    ] {
        let outcome = Run::new(&scratch, ["sh", "-c", script]).options(options.iter().copied()).run();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let last = outcome.stderr.lines().find(|line| line.contains(" → ")).unwrap_or_default();
        let (counted, before) = last.split_once("; before the windows: ").unwrap_or_else(|| panic!("{last}"));
        let said = allocations(counted) + allocations(before);
        assert!(outcome.report().images.iter().any(|image| image.replaced), "{script}");
        let windows = &outcome.report().windows;
        assert_eq!(
            windows.iter().map(|window| window.counts.allocations).sum::<u64>(),
            said,
            "{script}: {last}"
        );
        assert_eq!(outcome.status["recorder"]["allocations"], said, "{script}: {last}");
        let Some(processes) = outcome.status["processes"].as_array() else {
            assert!(options.is_empty(), "{}", outcome.status);
            continue;
        };
        let of_processes: u64 = processes.iter().filter_map(|process| process["allocations"].as_u64()).sum();
        assert_eq!(of_processes, said, "{script}: {last}");
        for process in processes {
            let row = format!("{} ", process["pid"]);
            let line = outcome.stderr.lines().find(|line| line.trim_start().starts_with(&row));
            let is_there = line.is_some_and(|line| {
                line.split_ascii_whitespace().rev().nth(1) == Some(&process["allocations"].to_string())
            });
            assert!(is_there, "{process}:\n{}", outcome.stderr);
        }
    }
}

/// The command waits for the program alone; who runs on is said, those included that have not allocated yet.
#[test]
fn descendants_that_run_on() {
    let scratch = Scratch::new();
    let outcome = Run::new(&scratch, ["sh", "-c", "sleep 5 & sleep 5 & echo started"]).options(FOLLOW).run();
    assert_eq!((outcome.code, outcome.stdout.as_slice()), (0, &b"started\n"[..]));
    assert!(outcome.elapsed < Duration::from_secs(4), "{:?}", outcome.elapsed);
    assert_eq!(outcome.report().children.still_running, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("2 descendants still run; what they record"), "{}", outcome.stderr);
}

/// A child that had no turn before its parent's end is named as any other.
#[test]
fn a_child_that_begins_at_its_parents_end() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "children.c", "children", &["-O1"]);
    for turn in 0..10 {
        let outcome = Run::new(&scratch, ["./children", "outliving_fork"]).run();
        assert_eq!((outcome.code, outcome.report().children.text().as_str()), (5, "children ×1"), "{turn}");
    }
}

#[test]
fn e11_a_daemon_is_said_to_run() {
    let Some((case, scratch)) = standard::build("E11") else { return };
    let outcome = Run::new(&scratch, [case.program()]).options(FOLLOW).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    assert!(outcome.stderr.contains("1 descendant still runs; "), "{}", outcome.stderr);
    let started = Instant::now();
    while !scratch.path("E11.daemon.done").exists() {
        assert!(started.elapsed() < Duration::from_secs(20), "the grandchild did not come to its end");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(fs::metadata(scratch.path("E11.daemon.done")).is_ok());
}

/// Following children changes nothing in what the program itself counts.
#[test]
fn cases_with_children_are_as_exact() {
    for (id, code) in [("A22", 0), ("E03", 0)] {
        let Some((case, scratch)) = standard::build(id) else { return };
        let alone = Run::new(&scratch, [case.program()]).unrecorded().run();
        let program: Vec<OsString> = vec![case.program().into()];
        let outcome = Run::new(&scratch, program).options(FOLLOW).run();
        assert_eq!(outcome.code, if id == "A22" { code } else { alone.code }, "{id}:\n{}", outcome.stderr);
        check::case_with(&case, &outcome, Tolerance::default());
    }
}

#[test]
fn a07_children_of_a_busy_program() {
    let Some((case, scratch)) = standard::build("A07") else { return };
    let outcome = Run::new(&scratch, [case.program()]).options(FOLLOW).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    let windows = report.windows.iter().filter(|window| window.name == "w");
    let own: u64 = windows.map(|window| window.calls_with("parent_work")).sum();
    assert_eq!(own, 30);
    assert_eq!((report.children.text().as_str(), report.losses_text().as_str()), ("", ""));
}

/// A13 has a malloc of its own: what a followed child of that kind allocates is not seen, and so there is no whole result.
#[test]
fn a_child_with_a_malloc_of_its_own_is_said() {
    let Some((_, scratch)) = standard::build("A13") else { return };
    let run =
        |options: &[&str]| Run::new(&scratch, ["sh", "-c", "./A13; true"]).options(options.to_vec()).run();
    let outcome = run(&FOLLOW);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("coverage is incomplete: A13 has a malloc of its own"),
        "{}",
        outcome.stderr
    );
    assert_eq!(run(&["--follow-children", "--strict"]).code, 125);
}
