//! Executables that no library can be preloaded into, or in which the recorder cannot be the first.

use super::Doctor::{No, Yes};
use super::{Row, check, row};

const STATIC: &[&str] = &["is statically linked", "no library can be preloaded", "link it dynamically"];
const MUSL: &[&str] = &["is linked with musl", "build it for glibc"];

const ROWS: &[Row] = &[
    // Linked without a loader.
    row(&["gcc"], "gcc -static -o p plain.c", &["./p"], 125, STATIC, No(STATIC)),
    row(&["gcc"], "gcc -static-pie -o p plain.c", &["./p"], 125, STATIC, No(STATIC)),
    row(&["rustc"], "rustc -C target-feature=+crt-static -o p plain.rs", &["./p"], 125, STATIC, No(STATIC)),
    row(&["musl-gcc"], "musl-gcc -static -o p plain.c", &["./p"], 125, STATIC, No(STATIC)),
    row(
        &["go"],
        "go build -o p plain.go",
        &["./p"],
        125,
        &["statically", "in Go", "runtime/pprof"],
        No(&["in Go"]),
    ),
    // Another C library.
    row(&["musl-gcc"], "musl-gcc -o p plain.c", &["./p"], 125, MUSL, No(MUSL)),
    // The same, behind an exec: named with its reason, and not broken by the recorder.
    row(
        &["gcc"],
        "gcc -static -o p plain.c",
        &["env", "./p"],
        125,
        &["`env` went on to `./p`", "exited with 3", "is statically linked"],
        Yes(&[]),
    ),
    row(
        &["gcc"],
        "gcc -static -o p plain.c",
        &["sh", "-c", "exec ./p"],
        125,
        &["`sh` went on to `./p`", "is statically linked"],
        Yes(&[]),
    ),
    row(
        &["gcc"],
        "gcc -static -o p plain.c; printf '#!/bin/sh\\nexec ./p\\n' > s; chmod +x s",
        &["./s"],
        125,
        &["went on to `./p`", "link it dynamically"],
        Yes(&[]),
    ),
    row(
        &["gcc"],
        "gcc -static -o p plain.c; printf '#!./p\\n' > s; chmod +x s",
        &["./s"],
        125,
        STATIC,
        No(STATIC),
    ),
    row(
        &["musl-gcc"],
        "musl-gcc -o p plain.c",
        &["env", "./p"],
        125,
        &["went on to `./p`", "exited with 3", "is linked with musl", "build it for glibc"],
        Yes(&[]),
    ),
    row(
        &["gcc"],
        "gcc -fsanitize=address -o p plain.c",
        &["env", "./p"],
        125,
        &["went on to `./p`", "exited with 3", "AddressSanitizer"],
        Yes(&[]),
    ),
    row(
        &["gcc"],
        "gcc -fsanitize=thread -o p plain.c",
        &["nice", "./p"],
        125,
        &["went on to `./p`", "exited with 3", "ThreadSanitizer"],
        Yes(&[]),
    ),
    // Sanitizers.
    row(
        &["gcc"],
        "gcc -fsanitize=address -o p plain.c",
        &["./p"],
        125,
        &["AddressSanitizer", "without -fsanitize"],
        No(&["AddressSanitizer"]),
    ),
    row(
        &["gcc"],
        "gcc -fsanitize=thread -o p plain.c",
        &["./p"],
        125,
        &["ThreadSanitizer", "without -fsanitize"],
        No(&["ThreadSanitizer"]),
    ),
    row(
        &["gcc"],
        "gcc -fsanitize=leak -o p plain.c",
        &["./p"],
        125,
        &["LeakSanitizer", "without -fsanitize"],
        No(&["LeakSanitizer"]),
    ),
    row(
        &["gcc"],
        "gcc -static-libasan -fsanitize=address -o p plain.c",
        &["./p"],
        125,
        &["AddressSanitizer"],
        No(&["AddressSanitizer"]),
    ),
    row(
        &["gcc"],
        "gcc -static-libasan -fsanitize=address -s -o p plain.c",
        &["./p"],
        125,
        &["its own, defined in"],
        No(&["AddressSanitizer"]),
    ),
    row(&["gcc"], "gcc -fsanitize=undefined -o p plain.c", &["./p"], 3, &[], Yes(&[])),
    // Other machines.
    row(
        &["as", "ld"],
        "printf '.globl _start\\n_start: hlt\\n' > a.s; as --32 -o a.o a.s; ld -m elf_i386 -o p a.o",
        &["./p"],
        125,
        &["not a program for x86-64"],
        No(&["x86-64"]),
    ),
    row(
        &["as", "ld"],
        "printf '.globl _start\\n_start: hlt\\n' > a.s; as --x32 -o a.o a.s; ld -m elf32_x86_64 -o p a.o",
        &["./p"],
        125,
        &["not a program for x86-64"],
        No(&["x86-64"]),
    ),
];

#[test]
fn each_kind_is_said_by_name() {
    check(ROWS);
}
