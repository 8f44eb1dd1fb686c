//! What is said of names, lines and unwind tables.

use std::fs;
use std::process::Command;

use super::{Diagnosis, PLAIN, build};
use crate::sandbox::{Sandbox, skip};

/// Code enough that what it lacks is not taken for a compiler's start files.
fn large() -> String {
    let mut source = PLAIN.to_owned();
    for number in 0..40 {
        source.push_str(&format!(
            "int f{number}(int a, int b) {{ return a * b % {number}1 + a / (b + {number}); }}\n"
        ));
    }
    source
}

fn objcopy(sandbox: &Sandbox, arguments: &[&str]) -> bool {
    let output = Command::new("objcopy").args(arguments).current_dir(sandbox.work("")).output();
    let is_done = output.is_ok_and(|output| output.status.success());
    if !is_done {
        skip("objcopy does not work");
    }
    is_done
}

#[test]
fn full_information() {
    let sandbox = Sandbox::new();
    for (version, words) in [("-gdwarf-4", "DWARF 4"), ("-gdwarf-5", "DWARF 5")] {
        if build(&sandbox, &["gcc", "-g", version], PLAIN) {
            Diagnosis::of(&sandbox, "./program")
                .has("debug_information", "ok", &["full (1 unit)"])
                .has("debug_format", "ok", &[words])
                .has("compilers", "ok", &["C: GNU C"])
                .has("symbols", "ok", &["symbol table"])
                .has("build_id", "ok", &[])
                .lacks("debug_file");
        }
    }
    if build(&sandbox, &["gcc", "-g", "-gz=zlib"], &large()) {
        Diagnosis::of(&sandbox, "./program").has("debug_information", "ok", &["full"]).has(
            "debug_format",
            "ok",
            &["compressed (zlib)"],
        );
    }
    if build(&sandbox, &["gcc", "-g1"], PLAIN) {
        Diagnosis::of(&sandbox, "./program").has("debug_information", "ok", &["functions and lines"]);
    }
    let inlined = "static inline __attribute__((always_inline)) int f(int a) { return a * a; }\n\
                   int main(int argc, char **argv) { (void)argv; return f(argc); }\n";
    if build(&sandbox, &["gcc", "-g"], inlined) {
        Diagnosis::of(&sandbox, "./program").has("debug_information", "ok", &["inlined calls are described"]);
    }
}

#[test]
fn lines_only() {
    let sandbox = Sandbox::new();
    let options = ["-C", "debuginfo=line-tables-only", "-O", "-C", "panic=abort"];
    let compiler: Vec<&str> = ["rustc"].into_iter().chain(options).collect();
    let source = "fn main() { println!(\"{}\", std::env::args().count()); }\n";
    if build(&sandbox, &compiler, source) {
        Diagnosis::of(&sandbox, "./program").has(
            "debug_information",
            "warning",
            &["line tables only", "CARGO_PROFILE_RELEASE_DEBUG=1"],
        );
    }
    if build(&sandbox, &["rustc", "-O", "-C", "debuginfo=1"], source) {
        Diagnosis::of(&sandbox, "./program").has("debug_information", "ok", &["functions and lines"]).has(
            "compilers",
            "ok",
            &["Rust: "],
        );
    }
    // That of the standard library is there in any case.
    if build(&sandbox, &["rustc", "-O", "-C", "debuginfo=0"], source) {
        Diagnosis::of(&sandbox, "./program").has(
            "debug_information",
            "warning",
            &["only that of Rust's standard library"],
        );
    }
}

#[test]
fn none() {
    let sandbox = Sandbox::new();
    if build(&sandbox, &["gcc"], PLAIN) {
        Diagnosis::of(&sandbox, "./program")
            .recordable(true)
            .has("debug_information", "warning", &["functions have names", "-g"])
            .has("symbols", "ok", &[])
            .has("compilers", "ok", &["GCC"]);
    }
    if build(&sandbox, &["gcc", "-s", "-Wl,--build-id=none"], PLAIN) {
        Diagnosis::of(&sandbox, "./program")
            .recordable(true)
            .has("debug_information", "warning", &["no symbol table", "debug package"])
            .has("symbols", "note", &["stripped: no function has a name"])
            .has("build_id", "note", &["--build-id"])
            .has("debug_file", "note", &["neither build-id nor debug link"]);
    }
}

#[test]
fn only_for_a_part() {
    let sandbox = Sandbox::new();
    sandbox.write("described.c", "int described(int a) { return a; }\n", 0o644);
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-c", "described.c"]).current_dir(sandbox.work(""));
    assert!(compiler.status().unwrap().success());
    if build(&sandbox, &["gcc", "described.o"], &large()) {
        Diagnosis::of(&sandbox, "./program").has("debug_information", "warning", &["but only for 1 of "]);
    }
}

#[test]
fn a_file_of_its_own() {
    let sandbox = Sandbox::new();
    if !build(&sandbox, &["gcc", "-g"], PLAIN)
        || !objcopy(&sandbox, &["--only-keep-debug", "program", "program.debug"])
        || !objcopy(&sandbox, &["--strip-all", "--add-gnu-debuglink=program.debug", "program"])
    {
        return;
    }
    let found = || Diagnosis::of(&sandbox, "./program");
    let diagnosis = found();
    diagnosis
        .has("debug_file", "ok", &["program.debug`"])
        .has("debug_information", "ok", &["full"])
        .has("symbols", "ok", &["the debug file has them"])
        .has("unwind_tables", "ok", &["cover all of 2 functions"]);

    fs::create_dir(sandbox.work(".debug")).unwrap();
    fs::rename(sandbox.work("program.debug"), sandbox.work(".debug/program.debug")).unwrap();
    found().has("debug_file", "ok", &[".debug/program.debug`"]);

    let path = sandbox.work(".debug/program.debug");
    let mut other = fs::read(&path).unwrap();
    *other.last_mut().unwrap() ^= 1;
    fs::write(&path, other).unwrap();
    found().has("debug_file", "note", &["is of another build"]).has(
        "debug_information",
        "warning",
        &["no symbol table"],
    );
    fs::remove_file(&path).unwrap();
    found().has("debug_file", "note", &["program.debug", "was not found"]);
}

#[test]
fn split_units() {
    let sandbox = Sandbox::new();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        if !build(&sandbox, &["gcc", "-g", "-gsplit-dwarf", version], PLAIN) {
            continue;
        }
        let diagnosis = Diagnosis::of(&sandbox, "./program");
        diagnosis.has("split_debug_information", "ok", &["1 file", "all there"]);
        let files = fs::read_dir(sandbox.work("")).unwrap().map(|entry| entry.unwrap().path());
        for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "dwo")) {
            fs::remove_file(path).unwrap();
        }
        Diagnosis::of(&sandbox, "./program").has(
            "split_debug_information",
            "warning",
            &["1 are missing", ".dwp"],
        );
        sandbox.write("program.dwp", "", 0o644);
        Diagnosis::of(&sandbox, "./program").has("split_debug_information", "ok", &["program.dwp`"]);
        fs::remove_file(sandbox.work("program.dwp")).unwrap();
    }
}

#[test]
fn unwind_tables() {
    let sandbox = Sandbox::new();
    let without = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    if build(&sandbox, &["gcc", without[0], without[1]], &large()) {
        // 40 and main; _start has one.
        Diagnosis::of(&sandbox, "./program").recordable(true).has(
            "unwind_tables",
            "warning",
            &["41 of 42 functions without them", "-fasynchronous-unwind-tables"],
        );
    }
    if build(&sandbox, &["gcc", "-s", without[0], without[1]], &large()) {
        Diagnosis::of(&sandbox, "./program").has("unwind_tables", "warning", &["bytes of"]);
    }
    if build(&sandbox, &["gcc", "-s"], &large()) {
        Diagnosis::of(&sandbox, "./program").has("unwind_tables", "ok", &["cover"]);
    }
    if build(&sandbox, &["gcc", "-Wl,--no-eh-frame-hdr"], PLAIN) {
        Diagnosis::of(&sandbox, "./program").has(
            "unwind_tables",
            "warning",
            &[".eh_frame_hdr", "--eh-frame-hdr"],
        );
    }
}
