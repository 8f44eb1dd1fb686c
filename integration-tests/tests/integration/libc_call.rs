//! What the C library allocates for a program, its own names for the allocation functions, and its heap's management.

use std::path::Path;

use integration_tests::counter::Counter;
use integration_tests::program;
use integration_tests::run::Run;
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// The windows, each with its allocations and the frees of its own blocks.
const WINDOWS: [(&str, u64, u64); 13] = [
    ("before", 0, 0),
    ("strdup", 10, 10),
    ("strndup", 10, 10),
    // The text grows once.
    ("asprintf", 20, 20),
    // The stream's buffer stays.
    ("getline", 11, 10),
    ("open_memstream", 30, 30),
    ("libc names", 40, 40),
    ("obstack", 10, 10),
    ("manage", 10, 10),
    ("reallocarray", 10, 10),
    ("valloc", 20, 20),
    ("zero", 20, 20),
    ("getaddrinfo", 3, 3),
];

#[test]
fn what_the_c_library_allocates_is_its_callers() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    let flags = ["-O1", "-fno-builtin", "-Wno-deprecated-declarations"];
    program::build(&scratch, "libc_calls.c", "libc_calls", &flags);
    scratch.write("lines", "short\n".repeat(20));
    let run = || Run::new(&scratch, ["./libc_calls", "lines"]);
    let counter = Counter::build();
    let program = scratch.path("libc_calls");
    let witness = |run: Run| counter.witness(run, Path::new(&program));
    let (plain, alone) = witness(run().unrecorded());
    let (recorded, behind) = witness(run());
    assert_eq!((recorded.code, &recorded.stdout), (plain.code, &plain.stdout), "{}", recorded.stderr);
    // The recorder calls `realloc` where the program calls `reallocarray`, as the C library does.
    assert_eq!(behind, alone, "the allocator saw other calls");
    for outcome in [recorded, run().run()] {
        let report = outcome.report();
        assert_eq!(report.losses_text(), "");
        for (name, allocations, freed) in WINDOWS {
            let window = report.window(name);
            let counts = &window.counts;
            let is_known = (counts.allocations, counts.freed);
            assert_eq!(is_known, (allocations, freed), "{name}: {}", window.text());
            assert!(window.rows.iter().all(|row| row.is_complete() && row.has("main")), "{}", window.text());
        }
        assert_eq!(report.window("process").counts.freed_later, 10, "blocks from before the windows");
        let named = report.window("libc names");
        for name in ["__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_memalign"] {
            assert_eq!(named.calls_with(name), 10, "{}", named.text());
        }
    }
}
