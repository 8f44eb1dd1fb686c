//! Children of a busy threaded program leave the parent's numbers as they are.

use integration_tests::program;
use integration_tests::run::Run;
use integration_tests::scratch::Scratch;
use integration_tests::tool;

const WORKER_CALLS: u64 = 3 * 30_000;
const PARENT_CALLS: u64 = 20 * 5;

fn children_made_by(way: &str) {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "busy_fork.c", "busy_fork", &["-O1"]);
    let outcome = Run::new(&scratch, ["./busy_fork", way]).run();
    assert_eq!(outcome.code, 0, "{way}; stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    let window = report.window("w");
    assert_eq!(window.entries, 1, "{way}");
    assert_eq!(window.calls_with("worker_alloc"), WORKER_CALLS, "{way}:\n{}", window.text());
    assert_eq!(window.calls_with("parent_alloc"), PARENT_CALLS, "{way}:\n{}", window.text());
    assert_eq!(
        window.calls_with("child_alloc"),
        0,
        "{way}: children added to their parent:\n{}",
        window.text()
    );
    assert_eq!(report.losses_text(), "", "{way}");
}

macro_rules! ways {
    ($($test:ident: $way:literal;)*) => {
        $(#[test]
        fn $test() {
            children_made_by($way);
        })*
    };
}

ways! {
    children_by_fork: "fork";
    children_by_fork_without_handlers: "_Fork";
    children_by_raw_clone: "clone";
    children_by_vfork_and_exec: "vfork";
    children_by_posix_spawn: "posix_spawn";
    children_by_fork_and_exec: "exec";
}

#[test]
#[ignore = "takes minutes"]
fn programs_started_under_load_a_hundred_times() {
    for _ in 0..100 {
        for way in ["exec", "vfork", "posix_spawn"] {
            children_made_by(way);
        }
    }
}
