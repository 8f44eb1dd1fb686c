//! What cannot be recorded or started is refused before its start, by name and with what to do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

use crate::elf_copy;
use crate::sandbox::{Outcome, Sandbox, skip};

const RECORDER: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Records a program that is refused; no profile may be left behind.
#[track_caller]
fn refused(sandbox: &Sandbox, program: &str, code: i32, words: &[&str]) -> Outcome {
    let outcome = sandbox.call(["run", "-o", "refused.pb.gz", "--", program]);
    let name = program.trim_start_matches("./");
    outcome.expect(code).says(words).says(&["heaptally: ", name]);
    assert_eq!(outcome.errors.lines().count(), 2, "one line says what, one what to do: {outcome:#?}");
    assert!(!sandbox.work("refused.pb.gz").exists(), "{outcome:#?}");
    outcome
}

#[test]
fn programs_without_a_loader() {
    let sandbox = Sandbox::new();
    sandbox.write("pie", elf_copy::without_loader(), 0o755);
    refused(&sandbox, "./pie", RECORDER, &["static-pie", "-static"]);
    sandbox.write("fixed", elf_copy::without_loader_at_fixed_address(), 0o755);
    refused(&sandbox, "./fixed", RECORDER, &["statically linked (static)", "-static"]);
}

#[test]
fn programs_that_a_compiler_linked_statically() {
    let sandbox = Sandbox::new();
    sandbox.write("a.c", "int main(void) { return 0; }", 0o644);
    for (option, word) in [("-static", "(static)"), ("-static-pie", "(static-pie)")] {
        let mut compiler = Command::new("cc");
        compiler.args([option, "-o", "a", "a.c"]).current_dir(sandbox.work(""));
        if compiler.output().is_ok_and(|output| output.status.success()) {
            refused(&sandbox, "./a", RECORDER, &[word]);
        } else {
            skip(&format!("cc {option} does not work"));
        }
    }
}

#[test]
fn programs_of_other_systems() {
    const AARCH64: u16 = 183;
    let sandbox = Sandbox::new();
    sandbox.write("arm", elf_copy::with_machine(AARCH64), 0o755);
    refused(&sandbox, "./arm", RECORDER, &["x86-64"]);
    sandbox.write("narrow", elf_copy::with_32_bits(), 0o755);
    refused(&sandbox, "./narrow", RECORDER, &["x86-64"]);
    sandbox.write("musl", elf_copy::with_loader("/lib/ld-musl-x86_64.so.1"), 0o755);
    refused(&sandbox, "./musl", RECORDER, &["musl", "glibc"]);
    sandbox.write("lost", elf_copy::with_loader("/lib64/ld-nowhere.so.2"), 0o755);
    refused(&sandbox, "./lost", NOT_FOUND, &["`/lib64/ld-nowhere.so.2`"]);
}

#[test]
fn sanitizers() {
    let sandbox = Sandbox::new();
    for (symbol, name) in [
        ("__asan_init", "AddressSanitizer"),
        ("__tsan_init", "ThreadSanitizer"),
        ("__msan_init", "MemorySanitizer"),
        ("__hwasan_init", "HWAddressSanitizer"),
    ] {
        sandbox.write("sanitized", elf_copy::with_symbol(symbol), 0o755);
        refused(&sandbox, "./sanitized", RECORDER, &[&format!("built with {name},"), "-fsanitize"]);
    }
}

/// The loader finds no such library, which is no matter: it is refused by its name, before the start.
#[test]
fn sanitizers_that_are_preloaded() {
    let sandbox = Sandbox::new();
    for (list, name) in [
        ("/nowhere/libasan.so.8", "AddressSanitizer"),
        ("a.so:/nowhere/libclang_rt.tsan-x86_64.so", "ThreadSanitizer"),
        ("a.so /nowhere/libtsan.so", "ThreadSanitizer"),
    ] {
        let mut command = sandbox.command(["run", "true"]);
        let outcome = crate::sandbox::outcome(command.env("LD_PRELOAD", list));
        outcome.expect(RECORDER).says(&[
            "LD_PRELOAD names",
            &format!("the library of {name},"),
            "take it out",
        ]);
    }
    let mut command = sandbox.command(["run", "-o", "p.pb.gz", "true"]);
    crate::sandbox::outcome(command.env("LD_PRELOAD", "/nowhere/libubsan.so")).expect(0);
}

#[test]
fn damaged_files() {
    let sandbox = Sandbox::new();
    for content in [
        elf_copy::cut_short(),
        elf_copy::with_headers_beyond_its_end(),
        elf_copy::with_loader_beyond_its_end(),
        elf_copy::plain()[..64].to_vec(),
    ] {
        sandbox.write("damaged", content, 0o755);
        refused(&sandbox, "./damaged", RECORDER, &["is damaged"]);
    }
    // Whatever is cut off: a refusal, or what the system says.
    let whole = elf_copy::plain();
    for len in [4, 5, 17, 20, 63, 65, 120, whole.len() / 2, whole.len() - 1] {
        sandbox.write("damaged", &whole[..len], 0o755);
        let outcome = sandbox.call(["run", "-o", "a.pb.gz", "./damaged"]);
        assert!(!outcome.errors.contains("panicked"), "cut to {len}: {outcome:#?}");
        assert!(outcome.code.is_some_and(|code| code != 0 && code != 101), "cut to {len}: {outcome:#?}");
    }
}

#[test]
fn setuid_programs_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give files away");
        return;
    }
    let sandbox = Sandbox::new();
    let path = sandbox.write("privileged", elf_copy::plain(), 0o755);
    let set = |owner, group, mode| {
        chown(&path, Some(owner), Some(group)).unwrap();
        // After chown, which clears these bits.
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(1, 0, 0o4755);
    refused(&sandbox, "./privileged", RECORDER, &["setuid", "LD_PRELOAD", "sudo -u '#1' heaptally run"]);
    set(0, 1, 0o2755);
    refused(&sandbox, "./privileged", RECORDER, &["setgid", "LD_PRELOAD", "sudo -g '#1' heaptally run"]);
    set(0, 0, 0o6755);
    sandbox.call(["run", "-o", "own.pb.gz", "./privileged"]).expect(0);
    // A script's bits have no effect.
    let path = sandbox.write("script", "#!/bin/sh\nexit 7\n", 0o755);
    chown(&path, Some(1), Some(1)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    sandbox.call(["run", "-o", "script.pb.gz", "./script"]).expect(7);
}

#[test]
fn scripts_without_an_interpreter() {
    let sandbox = Sandbox::new();
    sandbox.write("script", "#!/nowhere/interpreter -x\n", 0o755);
    refused(&sandbox, "./script", NOT_FOUND, &["the interpreter `/nowhere/interpreter`", "first line"]);
    // The interpreter is looked at as any other program is.
    let interpreter = sandbox.write("interpreter", elf_copy::without_loader(), 0o755);
    sandbox.write("script", format!("#!{}\n", interpreter.display()), 0o755);
    let outcome = sandbox.call(["run", "./script"]);
    outcome.expect(RECORDER).says(&["static-pie"]);
}

#[test]
fn what_is_no_program() {
    let sandbox = Sandbox::new();
    sandbox.write("plain", elf_copy::plain(), 0o644);
    refused(&sandbox, "./plain", NOT_EXECUTABLE, &["cannot be executed"]);
    fs::create_dir(sandbox.work("folder")).unwrap();
    refused(&sandbox, "./folder", NOT_EXECUTABLE, &["it is a folder"]);
    refused(&sandbox, "./plain/below", NOT_EXECUTABLE, &["cannot be executed"]);
    symlink("nowhere", sandbox.work("link")).unwrap();
    for name in ["./nothing", "./link", "no-such-program-anywhere"] {
        refused(&sandbox, name, NOT_FOUND, &["was not found", "PATH"]);
    }
    sandbox.call(["run", ""]).expect(NOT_FOUND);
    // A pipe would keep a reader waiting for ever.
    let pipe = sandbox.work("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o777.into(), 0).unwrap();
    fs::set_permissions(&pipe, fs::Permissions::from_mode(0o777)).unwrap();
    refused(&sandbox, "./pipe", NOT_EXECUTABLE, &["no regular file"]);
}

#[test]
fn names_are_shown_without_control_characters() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.call(["run", "./a\x1b[31mb\nc"]);
    outcome.expect(NOT_FOUND);
    assert!(!outcome.errors.contains('\x1b'), "{outcome:#?}");
    assert_eq!(outcome.errors.lines().count(), 2, "{outcome:#?}");
}

#[test]
fn a_library_that_is_not_there() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["run", "true"]);
    let outcome = crate::sandbox::outcome(command.env("HEAPTALLY_PRELOAD", "/nowhere/library.so"));
    outcome.expect(RECORDER).says(&["HEAPTALLY_PRELOAD", "`/nowhere/library.so`"]);
}
