//! The loader's settings and the linker's: none of them changes a count.

use integration_tests::check::{self, Tolerance};
use integration_tests::command::oracle_library;
use integration_tests::counter::Counter;
use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

const WINDOWS: [(&str, u64); 9] = [
    ("malloc", 10),
    ("calloc", 10),
    ("realloc", 20),
    ("reallocarray", 20),
    ("posix_memalign", 10),
    ("aligned_alloc", 10),
    ("memalign", 10),
    ("valloc", 10),
    ("pvalloc", 10),
];

fn check_windows(outcome: &Outcome, what: &str) {
    assert_eq!((outcome.code, outcome.stdout.as_slice()), (0, &b"1 1\n"[..]), "{what}: {}", outcome.stderr);
    let report = outcome.report();
    assert_eq!(report.losses_text(), "", "{what}");
    for (name, calls) in WINDOWS {
        let window = report.window(name);
        assert_eq!((window.calls(), window.complete_calls()), (calls, calls), "{what}: {}", window.text());
        assert_eq!(window.counts.freed, calls, "{what}: {}", window.text());
    }
}

fn build(scratch: &Scratch, output: &str, flags: &[&str]) {
    program::build(scratch, "entry_points.c", output, &[&["-O1", "-fno-builtin"], flags].concat());
}

#[test]
fn however_the_program_is_linked() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    for flags in [
        &["-Wl,-z,now"][..],
        &["-Wl,-z,lazy"],
        &["-pie", "-fPIE", "-Wl,-z,relro,-z,now"],
        &["-no-pie", "-fno-pie", "-Wl,-z,norelro"],
        &["-no-pie", "-fno-pie", "-fno-plt", "-Wl,-Ttext-segment=0x10000000"],
        &["-Wl,--hash-style=sysv"],
        &["-Wl,-Bsymbolic", "-rdynamic"],
    ] {
        build(&scratch, "program", flags);
        check_windows(&Run::new(&scratch, ["./program"]).run(), &format!("{flags:?}"));
    }
}

#[test]
fn whatever_the_loader_is_told() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    build(&scratch, "program", &["-Wl,-z,lazy"]);
    for setting in ["LD_BIND_NOW=1", "LD_DEBUG=all", "LD_BIND_NOT=1", "LD_DYNAMIC_WEAK=1"] {
        let outcome = Run::new(&scratch, ["env", setting, "./program"]).run();
        check_windows(&outcome, setting);
    }
}

/// An auditor sees all bindings, and has a namespace of its own, which is said.
#[test]
fn an_auditing_library() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "audit.c", "libaudit.so", &["-O1", "-fPIC", "-shared"]);
    build(&scratch, "program", &["-Wl,-z,lazy"]);
    let audit = format!("LD_AUDIT={}", scratch.path("libaudit.so").display());
    let outcome = Run::new(&scratch, ["env", &audit, "./program"]).run();
    check_windows(&outcome, "audit");
    let said = outcome.report().warnings();
    let is_said = said.iter().any(|text| text.contains("incomplete") && text.contains("libaudit.so"));
    assert!(is_said, "{said:?}");
}

/// What an indirect function's resolver allocates while a late bound call is bound, and what is called through an auditor
/// that sees calls: these stacks pass the loader's own code, which keeps its frame's end in rbx.
#[test]
fn stacks_through_the_loaders_late_binding() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    let library = ["-O1", "-fPIC", "-shared"];
    program::build(&scratch, "indirect_library.c", "libindirect.so", &library);
    program::build(&scratch, "audit.c", "libaudit.so", &[&library[..], &["-DENTER"]].concat());
    let path = scratch.path("libindirect.so").to_string_lossy().into_owned();
    let late = ["-O1", "-Wl,-z,lazy", "-DINDIRECT", &path];
    program::build(&scratch, "late_bound.c", "late", &late);
    program::build(&scratch, "late_bound.c", "audited", &["-O1", "-Wl,-z,lazy"]);
    let work = check::expectation("w: total=5 [5* main -> work -> ...malloc]");
    let resolve = check::expectation("resolve: total=3 [3* main -> ...resolve_work -> malloc]");
    let audit = format!("LD_AUDIT={}", scratch.path("libaudit.so").display());
    let runs = || {
        [
            Run::new(&scratch, ["./late"]),
            Run::new(&scratch, ["env", &audit, "./audited"]),
            Run::new(&scratch, ["env", "LD_BIND_NOT=1", "./late"]),
        ]
    };
    for (at, run) in runs().into_iter().enumerate() {
        let outcome = run.run();
        assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
        check::window(outcome.report(), &work, Tolerance::default());
        // Bound again at each call, the function has its resolver called again: once.
        if at != 1 {
            check::window(outcome.report(), &resolve, Tolerance::default());
        }
    }
    for run in runs() {
        let oracle = run
            .environment("HEAPTALLY_PRELOAD", oracle_library())
            .environment("HEAPTALLY_ORACLE", "1")
            .run()
            .status["oracle"]
            .clone();
        let numbers =
            ["full_differs", "libgcc_differs"].map(|name| oracle[name].as_u64().unwrap_or(u64::MAX));
        assert_eq!(numbers, [0, 0], "{oracle}");
        assert!(oracle["libgcc"].as_u64() >= Some(5), "{oracle}");
    }
}

/// Libraries beside the recorder: one whose constructor allocates, and one that counts and calls on by RTLD_NEXT.
#[test]
fn other_preloaded_libraries() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    build(&scratch, "program", &[]);
    program::build(&scratch, "preload_early.c", "libearly.so", &["-O1", "-fPIC", "-shared"]);
    let early = scratch.path("libearly.so");
    let outcome = Run::new(&scratch, ["./program"]).environment("LD_PRELOAD", &early).run();
    check_windows(&outcome, "early");
    let expected = check::expectation("process: total=3 [3* begin -> malloc]");
    let tolerance = Tolerance { other_rows: true, ..Tolerance::default() };
    check::window(outcome.report(), &expected, tolerance);

    let counter = Counter::build();
    let program = scratch.path("program");
    let (outcome, behind) = counter.witness(Run::new(&scratch, ["./program"]), &program);
    check_windows(&outcome, "counter");
    // By weak functions: the header's look-up allocates where there is no recorder.
    program::build(&scratch, "late_bound.c", "late", &["-O1", "-Wl,-z,lazy"]);
    let run = || Run::new(&scratch, ["./late"]);
    let (_, alone) = counter.witness(run().unrecorded(), &scratch.path("late"));
    let (_, behind_late) = counter.witness(run(), &scratch.path("late"));
    assert_eq!((behind_late.allocations(), &behind_late), (5, &alone));
    let in_windows: u64 = WINDOWS.iter().map(|(_, calls)| calls).sum();
    assert_eq!(behind.allocations(), in_windows + 1, "the windows and the output's buffer");
}
