//! Operators `new` and `delete` that are not the C++ library's: each new-expression is one allocation, or it is said.

use integration_tests::check::{self, Tolerance};
use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// 10 below singles, 6 below arrays, 4 below strings, all freed; `bytes` in all.
fn check_counts(outcome: &Outcome, what: &str, bytes: u64) {
    assert_eq!((outcome.code, outcome.stdout.as_slice()), (0, &b"done\n"[..]), "{what}: {}", outcome.stderr);
    let expected = "w: total=20 [10* main -> singles() -> ...malloc] [6* main -> arrays() -> ...malloc] \
                    [4* main -> strings() -> ...malloc]";
    let report = outcome.report();
    let window = report.window("w");
    if window.rows.iter().all(|row| row.frames[0].function == "malloc") {
        check::window(report, &check::expectation(expected), Tolerance::default());
    }
    let of = ["singles()", "arrays()", "strings()"].map(|name| window.calls_with(name));
    assert_eq!(of, [10, 6, 4], "{what}: {}", window.text());
    let counts = &window.counts;
    assert_eq!(
        (counts.allocations, counts.freed, counts.bytes),
        (20, 20, bytes),
        "{what}: {}",
        window.text()
    );
    assert!(window.rows.iter().all(|row| row.is_complete()), "{what}: {}", window.text());
    assert_eq!(report.losses_text(), "", "{what}");
}

/// What the program asks `operator new` for.
const BYTES: u64 = 10 * 8 + 6 * 100 + 4 * 51;

fn build(scratch: &Scratch, output: &str, flags: &[&str]) {
    let flags = [&["-O1", "-fno-builtin"], flags].concat();
    program::build(scratch, "own_operator.cpp", output, &flags);
}

#[test]
fn operators_in_the_program() {
    if !tool::have(&["g++"]) {
        return;
    }
    let scratch = Scratch::new();
    for (flags, bytes) in [
        (&["-DNONE"][..], BYTES),
        (&["-DNONE", "-static-libstdc++", "-static-libgcc"], BYTES),
        (&["-DNONE", "-static-libstdc++", "-rdynamic"], BYTES),
        (&[], BYTES),
        (&["-rdynamic"], BYTES),
        (&["-DHIDDEN"], BYTES),
        (&["-DHEADER"], BYTES + 20 * 16),
        (&["-DHEADER", "-static-libstdc++", "-no-pie"], BYTES + 20 * 16),
    ] {
        build(&scratch, "program", flags);
        let outcome = Run::new(&scratch, ["./program"]).run();
        check_counts(&outcome, &format!("{flags:?}"), bytes);
        assert_eq!(outcome.report().warnings(), [""; 0], "{flags:?}");
    }
}

/// Memory that an operator of the program takes elsewhere cannot be seen, and that is said.
#[test]
fn an_operator_in_the_program_that_does_not_call_malloc() {
    if !tool::have(&["g++"]) {
        return;
    }
    let scratch = Scratch::new();
    for flags in [&["-DPOOL"][..], &["-DPOOL", "-rdynamic"]] {
        build(&scratch, "program", flags);
        let outcome = Run::new(&scratch, ["./program"]).run();
        assert_eq!(outcome.report().window("w").calls(), 0);
        let said = outcome.report().warnings();
        let is_said = said.iter().any(|text| text.contains("/program") && text.contains("operator new"));
        assert!(is_said, "{flags:?}: {said:?}");
    }
}

/// A library's operators stand behind the recorder's: those that call `malloc` are counted there, the others here.
#[test]
fn operators_in_a_library() {
    if !tool::have(&["g++"]) {
        return;
    }
    let scratch = Scratch::new();
    for (flags, bytes) in [
        (&[][..], BYTES),
        (&["-DHEADER"], BYTES + 20 * 16),
        (&["-DPOOL"], BYTES),
        (&["-Wl,-Bsymbolic"], BYTES),
        (&["-DPOOL", "-Wl,-Bsymbolic"], BYTES),
        (&["-static-libstdc++", "-Wl,-z,now"], BYTES),
    ] {
        build(&scratch, "libown.so", &[&["-DPART=1", "-fPIC", "-shared"], flags].concat());
        let library = scratch.path("libown.so").to_string_lossy().into_owned();
        build(&scratch, "program", &["-DPART=2", &library]);
        let outcome = Run::new(&scratch, ["./program"]).run();
        check_counts(&outcome, &format!("library {flags:?}"), bytes);
        assert_eq!(outcome.report().warnings(), [""; 0], "{flags:?}");
    }
}
