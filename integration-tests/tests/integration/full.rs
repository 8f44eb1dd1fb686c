//! Memory or files that cannot grow: the recorder says what is missing, and the program does not notice.

use integration_tests::disk::SmallDisk;
use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// The stacks of `many_stacks 15`, and how often it goes through them.
const STACKS: u64 = 1 << 15;
const ROUNDS: u64 = 2;

fn many_stacks() -> Option<Scratch> {
    if !tool::have(&["gcc"]) {
        return None;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "many_stacks.c", "many_stacks", &["-O1", "-fno-optimize-sibling-calls"]);
    Some(scratch)
}

fn run(scratch: &Scratch) -> Run {
    Run::new(scratch, ["./many_stacks", "15", &ROUNDS.to_string()])
}

/// The program's own result is right, and every call is either recorded or lost by a counter.
fn check(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    assert_eq!(String::from_utf8_lossy(&outcome.stdout).trim(), (STACKS * ROUNDS).to_string());
    let report = outcome.report();
    let recorded = if report.has_window("w") { report.window("w").calls_with("leaf") } else { 0 };
    let lost = report.loss("table_full") + report.loss("thread");
    assert!(recorded + lost >= STACKS * ROUNDS, "{recorded} recorded, {}", report.losses_text());
    assert!(recorded <= STACKS * ROUNDS, "{recorded} recorded");
    assert_eq!(report.loss("damaged"), 0);
}

fn check_full(outcome: &Outcome) {
    check(outcome);
    assert!(
        outcome.report().loss("table_full") > 0,
        "nothing is said to be lost: {}",
        outcome.report().losses_text()
    );
}

#[test]
fn nothing_is_lost_where_there_is_room() {
    let Some(scratch) = many_stacks() else { return };
    let outcome = run(&scratch).run();
    check(&outcome);
    assert_eq!(outcome.report().losses_text(), "");
    assert_eq!(outcome.report().window("w").calls_with("leaf"), STACKS * ROUNDS);
}

fn on_a_small_disk(size: &str) {
    let Some(scratch) = many_stacks() else { return };
    let Some(disk) = SmallDisk::mount(&scratch, &format!("size={size}")) else { return };
    let outcome = run(&scratch).options(["--segment-dir", "small"]).run();
    drop(disk);
    // Either a clear refusal before the start, or a report of what is lost: never SIGBUS.
    if outcome.code == 125 {
        assert!(outcome.stderr.contains("heaptally: "), "stderr:\n{}", outcome.stderr);
        return;
    }
    check_full(&outcome);
}

#[test]
fn a_segment_of_64_kibibytes() {
    on_a_small_disk("64k");
}

#[test]
fn a_segment_of_2_mebibytes() {
    on_a_small_disk("2m");
}

/// Limits from before the start, which apply to the command and to the program.
fn with_limit(limit: &str) -> Option<Outcome> {
    let scratch = many_stacks()?;
    Some(run(&scratch).behind_shell(&format!("ulimit {limit}; exec \"$@\"")).run())
}

/// A limit that the program sets for itself in `main`.
fn limiting_itself(what: &str) -> Option<Outcome> {
    let scratch = many_stacks()?;
    Some(Run::new(&scratch, ["./many_stacks", "15", &ROUNDS.to_string(), what]).run())
}

/// Whatever was recorded, the program's result is right, and what is missing is said.
fn check_said(outcome: &Outcome, what: &str) {
    assert_eq!(outcome.code, 0, "{what}; stderr:\n{}", outcome.stderr);
    let first = String::from_utf8_lossy(&outcome.stdout).lines().next().map(str::to_owned);
    assert_eq!(first, Some((STACKS * ROUNDS).to_string()), "{what}");
    let report = outcome.report();
    let recorded = if report.has_window("w") { report.window("w").calls_with("leaf") } else { 0 };
    let is_said = !report.losses_text().is_empty() || !report.warnings().is_empty();
    assert!(
        recorded == STACKS * ROUNDS || is_said,
        "{what}: {recorded} recorded, and nothing is said:\n{}",
        outcome.stderr
    );
}

fn check_said_or_refused(outcome: &Outcome, what: &str) {
    if outcome.code == 125 {
        assert!(outcome.stderr.contains("heaptally: "), "{what}; stderr:\n{}", outcome.stderr);
    } else {
        check_said(outcome, what);
    }
}

/// A limit on files applies to the segment too, which the command made before: SIGXFSZ must not come.
#[test]
fn a_file_size_limit_of_the_program() {
    let Some(outcome) = limiting_itself("fsize") else { return };
    check_said(&outcome, "setrlimit");
    assert_eq!(outcome.report().losses_text(), "");
}

/// The command itself under such a limit: it works, or says why it does not.
#[test]
fn a_file_size_limit_of_the_command() {
    let Some(outcome) = with_limit("-f 2000") else { return };
    check_said_or_refused(&outcome, "ulimit -f 2000");
}

#[test]
fn an_address_space_limit_of_the_program() {
    let Some(outcome) = limiting_itself("as") else { return };
    check_said(&outcome, "setrlimit");
}

/// Little address space: the tables do not find room, the program does.
#[test]
fn an_address_space_limit_of_the_command() {
    for limit in ["-v 60000", "-v 200000", "-v 1000000", "-v 8000000"] {
        let Some(outcome) = with_limit(limit) else { return };
        check_said_or_refused(&outcome, limit);
    }
}

/// The recorder's reserves are not made resident when a program locks its memory.
#[test]
fn locked_memory() {
    if !tool::is_root() {
        tool::skip("locking memory needs root");
        return;
    }
    let Some(outcome) = limiting_itself("lock") else { return };
    check_said(&outcome, "mlockall");
    assert_eq!(outcome.report().losses_text(), "");
    let excess = String::from_utf8_lossy(&outcome.stdout).lines().nth(1).and_then(|line| line.parse().ok());
    assert!(excess < Some(100_000_u64), "{excess:?} KiB more than 64 MiB are resident");
}
