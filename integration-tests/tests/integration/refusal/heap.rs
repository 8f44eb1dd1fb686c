//! Programs whose allocations go past malloc: heaps of languages, and Rust's allocators.

use super::Doctor::Yes;
use super::{Row, check, row};

const ROWS: &[Row] = &[
    // Heaps of their own.
    row(
        &["go", "gcc"],
        "CGO_ENABLED=1 go build -o p cgo.go",
        &["./p"],
        0,
        &["(Go)", "runtime/pprof"],
        Yes(&["(Go)"]),
    ),
    row(
        &["go"],
        "go build -buildmode=pie -o p plain.go",
        &["env", "./p"],
        0,
        &["(Go)", "runtime/pprof"],
        Yes(&[]),
    ),
    row(&["node"], "true", &["node", "-e", "0"], 0, &["JavaScript", "--heap-prof"], Yes(&["JavaScript"])),
    row(
        &["python3"],
        "true",
        &["/usr/bin/python3", "-c", "0"],
        0,
        &["(Python)", "PYTHONMALLOC=malloc"],
        Yes(&["PYTHONMALLOC"]),
    ),
    // Rust's allocators.
    row(
        &["rustc"],
        "rustc -O -o p bump.rs",
        &["./p"],
        0,
        &["coverage is incomplete", "#[global_allocator] of its own", "none of its calls leads to malloc"],
        Yes(&["#[global_allocator]"]),
    ),
    row(
        &["rustc", "gcc"],
        "gcc -O1 -c -o mi.o mi.c; rustc -O -C link-arg=mi.o -o p mi.rs",
        &["./p"],
        0,
        &["coverage is incomplete", "(mimalloc)"],
        Yes(&["(mimalloc)"]),
    ),
    row(&["rustc"], "rustc -O -o p counting.rs", &["./p"], 0, &[], Yes(&[])),
    row(&["rustc"], "rustc -o p counting.rs", &["./p"], 0, &[], Yes(&[])),
    row(&["rustc"], "rustc -O -C relocation-model=static -o p counting.rs", &["./p"], 0, &[], Yes(&[])),
    row(&["rustc"], "rustc -O -o p plain.rs", &["./p"], 0, &[], Yes(&[])),
    row(
        &["rustc"],
        "rustc -O -o p bump.rs",
        &["env", "./p"],
        0,
        &["coverage is incomplete", "none of its calls"],
        Yes(&[]),
    ),
];

#[test]
fn each_kind_is_said_by_name() {
    check(ROWS);
}
