//! The remembered walk against the full walk and libgcc's, at every event; and rules made wrong on purpose, which the
//! comparison must notice.

use integration_tests::command::oracle_library;
use integration_tests::exact::Foreign;
use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;
use serde_json::Value;

use crate::standard;

/// What the comparison found.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    full: u64,
    libgcc: u64,
    full_differs: u64,
    libgcc_differs: u64,
    skipped: u64,
}

impl Compared {
    fn of(outcome: &Outcome) -> Self {
        let oracle = &outcome.status["oracle"];
        assert!(
            oracle.is_object(),
            "no comparison in the status {}; stderr:\n{}",
            outcome.status,
            outcome.stderr
        );
        let number = |name: &str| oracle[name].as_u64().unwrap_or_else(|| panic!("no {name} in {oracle}"));
        let skips = oracle["skips"].as_object().into_iter().flatten();
        Self {
            full: number("full"),
            libgcc: number("libgcc"),
            full_differs: number("full_differs"),
            libgcc_differs: number("libgcc_differs"),
            skipped: skips.filter_map(|(_, count)| Value::as_u64(count)).sum(),
        }
    }

    fn add(&mut self, other: Self) {
        self.full += other.full;
        self.libgcc += other.libgcc;
        self.full_differs += other.full_differs;
        self.libgcc_differs += other.libgcc_differs;
        self.skipped += other.skipped;
    }
}

fn compared(run: Run) -> (Compared, Outcome) {
    let outcome =
        run.environment("HEAPTALLY_PRELOAD", oracle_library()).environment("HEAPTALLY_ORACLE", "1").run();
    (Compared::of(&outcome), outcome)
}

fn check(name: &str, found: Compared, outcome: &Outcome) {
    assert_eq!(
        (found.full_differs, found.libgcc_differs),
        (0, 0),
        "{name}: {found:?}\n{}\nstderr:\n{}",
        outcome.status,
        outcome.stderr
    );
}

#[test]
fn a_million_walks_are_right() {
    if !tool::have(&["gcc", "g++", "rustc"]) {
        return;
    }
    let mut sum = Compared::default();
    for name in ["cc1plus", "python3", "perl", "sqlite3", "git log"] {
        let foreign = Foreign::named(name);
        let scratch = Scratch::new();
        let Some(command) = foreign.prepare(&scratch) else { continue };
        let (found, outcome) = compared(foreign.run(&scratch, &command));
        check(name, found, &outcome);
        sum.add(found);
    }
    for id in ["A01", "A05", "A15", "A20", "A21", "B12", "B17", "C01", "C02", "C11", "R01", "R04", "R07"] {
        let Some((case, scratch)) = standard::build(id) else { continue };
        let (found, outcome) = compared(Run::new(&scratch, [case.program()]));
        check(id, found, &outcome);
        sum.add(found);
    }
    for (source, flags) in [
        ("signal_stack.c", ["-O2"]),
        ("exceptions.cpp", ["-O2"]),
        ("coroutines.cpp", ["-O2"]),
        ("contexts.c", ["-O2"]),
        ("made_code.c", ["-O2"]),
    ] {
        let scratch = Scratch::new();
        program::build(&scratch, source, "program", &flags);
        let (found, outcome) = compared(Run::new(&scratch, ["./program"]));
        check(source, found, &outcome);
        sum.add(found);
    }
    assert!(sum.full >= 1_000_000, "too few events: {sum:?}");
    assert!(sum.libgcc >= 1_000_000, "too few events: {sum:?}");
    assert!(sum.skipped * 1000 <= sum.full, "too many skipped: {sum:?}");
}

/// Each kind of rule, made wrong on purpose, is noticed: the comparison can fail.
///
/// A wrong end (4) makes every stack a cut one, and cut stacks are not compared with libgcc's: it shows as skips, of which
/// the test above allows one in a thousand.
#[test]
fn wrong_rules_are_noticed() {
    if !tool::have(&["gcc", "g++"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "signal_stack.c", "signals", &["-O0"]);
    program::build(&scratch, "exceptions.cpp", "exceptions", &["-O2", "-fomit-frame-pointer"]);
    // A wrong rule for a saved rbp mostly cuts the stack; a compiler has enough of them for one that goes on.
    scratch.shell("echo '#include <utility>' > small.cpp && g++ -E -o small.ii small.cpp");
    let Some(compiler) = tool::compiler_part("cc1plus") else { return };
    let compiler = [compiler.as_os_str(), "-quiet".as_ref(), "-fpreprocessed".as_ref(), "small.ii".as_ref()];
    for mutation in 1..=5 {
        let compared = |run: Run| compared(run.environment("HEAPTALLY_MUTATION", mutation.to_string())).0;
        let mut sum = compared(Run::new(&scratch, ["./signals"]));
        sum.add(compared(Run::new(&scratch, ["./exceptions"])));
        sum.add(compared(Run::new(&scratch, compiler)));
        let differs = sum.full_differs + sum.libgcc_differs;
        assert!(differs > 0, "mutation {mutation} went unnoticed: {sum:?}");
    }
}
