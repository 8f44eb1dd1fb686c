//! Every allocation function of the C library is one allocation, whatever it calls inside.

use integration_tests::program;
use integration_tests::run::Run;
use integration_tests::scratch::Scratch;
use integration_tests::tool;

#[test]
fn each_allocation_function_counts_once() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "entry_points.c", "entry_points", &["-O1", "-fno-builtin"]);
    let outcome = Run::new(&scratch, ["./entry_points"]).run();
    assert_eq!((outcome.code, outcome.stdout.as_slice()), (0, &b"1 1\n"[..]), "stderr:\n{}", outcome.stderr);
    let report = outcome.report();
    assert_eq!(report.losses_text(), "");
    for (name, others) in [
        ("malloc", 0),
        ("calloc", 0),
        ("realloc", 10),
        ("reallocarray", 10),
        ("posix_memalign", 0),
        ("aligned_alloc", 0),
        ("memalign", 0),
        ("valloc", 0),
        ("pvalloc", 0),
    ] {
        let window = report.window(name);
        let counts = &window.counts;
        assert_eq!(window.calls(), 10 + others, "{name}: {}", window.text());
        assert_eq!(counts.freed, counts.allocations, "{name}");
        let of_name = window.rows.iter().filter(|row| row.frames[0].function == name);
        let calls: u64 = of_name.map(|row| row.counts.calls()).sum();
        let by_itself = if name == "reallocarray" { 20 } else { 10 };
        assert_eq!(calls, by_itself, "{name}: {}", window.text());
    }
    let overflow = report.window("overflow");
    assert_eq!((overflow.counts.failed, overflow.counts.allocations), (1, 0), "{}", overflow.text());
}
