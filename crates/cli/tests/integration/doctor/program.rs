//! What is said of a program: whether the recorder gets into it, and into the way of its allocations.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use super::{Diagnosis, PLAIN, build};
use crate::elf_copy;
use crate::sandbox::{Sandbox, skip};

#[test]
fn an_ordinary_program() {
    let sandbox = Sandbox::new();
    if !build(&sandbox, &["gcc", "-g", "-pie", "-fPIE"], PLAIN) {
        return;
    }
    let diagnosis = Diagnosis::of(&sandbox, "./program");
    diagnosis
        .recordable(true)
        .has("file", "ok", &["`./program`", "ELF"])
        .has("privileges", "ok", &[])
        .has("linkage", "ok", &["dynamic", "PIE"])
        .has("loader", "ok", &["ld-linux"])
        .has("sanitizer", "ok", &["none"])
        .has("libc", "ok", &["glibc"])
        .has("libraries", "ok", &["`libc.so.6`"])
        .has("allocator", "ok", &["the C library's malloc"])
        .has("operator_new", "ok", &["no C++"])
        .has("unwind_tables", "ok", &["cover all"])
        .lacks("other_allocator");
    assert_eq!(diagnosis.json["program"]["name"], "./program");
    assert_eq!(diagnosis.json["program"]["image"], "./program");
    if build(&sandbox, &["gcc", "-no-pie", "-fno-pie"], PLAIN) {
        Diagnosis::of(&sandbox, "./program").recordable(true).has("linkage", "ok", &["ET_EXEC"]);
    }
}

#[test]
fn static_programs() {
    let sandbox = Sandbox::new();
    for (option, word) in [("-static", "(static)"), ("-static-pie", "(static-pie)")] {
        if build(&sandbox, &["gcc", option], PLAIN) {
            Diagnosis::of(&sandbox, "./program")
                .recordable(false)
                .has("linkage", "problem", &[word, "link it dynamically"])
                .lacks("allocator")
                .lacks("unwind_tables");
        }
    }
}

#[test]
fn sanitizers() {
    let sandbox = Sandbox::new();
    for (option, name) in
        [("-fsanitize=address", "AddressSanitizer"), ("-fsanitize=thread", "ThreadSanitizer")]
    {
        if build(&sandbox, &["gcc", option], PLAIN) {
            Diagnosis::of(&sandbox, "./program")
                .recordable(false)
                .has("sanitizer", "problem", &[name, "without -fsanitize"])
                .lacks("allocator");
        }
    }
    sandbox.write("memory", elf_copy::with_symbol("__msan_init"), 0o755);
    Diagnosis::of(&sandbox, "./memory").recordable(false).has("sanitizer", "problem", &["MemorySanitizer"]);
}

#[test]
fn programs_of_other_systems() {
    const AARCH64: u16 = 183;
    let sandbox = Sandbox::new();
    for content in [elf_copy::with_machine(AARCH64), elf_copy::with_32_bits()] {
        sandbox.write("foreign", content, 0o755);
        Diagnosis::of(&sandbox, "./foreign").recordable(false).has("linkage", "problem", &["x86-64"]);
    }
    sandbox.write("damaged", elf_copy::cut_short(), 0o755);
    Diagnosis::of(&sandbox, "./damaged").recordable(false).has("linkage", "problem", &["is damaged"]);
    sandbox.write("musl", elf_copy::with_loader("/lib/ld-musl-x86_64.so.1"), 0o755);
    Diagnosis::of(&sandbox, "./musl").recordable(false).has("libc", "problem", &["musl"]).lacks("libraries");
    sandbox.write("lost", elf_copy::with_loader("/lib64/ld-nowhere.so.2"), 0o755);
    let diagnosis = Diagnosis::of(&sandbox, "./lost");
    diagnosis.recordable(false).has("loader", "problem", &["`/lib64/ld-nowhere.so.2`", "install it"]);
}

#[test]
fn whatever_is_cut_off_nothing_panics() {
    let sandbox = Sandbox::new();
    let whole = elf_copy::plain();
    for len in [4, 20, 63, 65, 120, 700, whole.len() / 2, whole.len() - 1] {
        sandbox.write("damaged", &whole[..len], 0o755);
        Diagnosis::of(&sandbox, "./damaged");
    }
    // Headers and tables that point anywhere.
    for at in (0x18..0x40).chain(0x40..0x400).step_by(37) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        sandbox.write("damaged", bytes, 0o755);
        Diagnosis::of(&sandbox, "./damaged");
    }
}

#[test]
fn a_malloc_of_its_own() {
    const SOURCE: &str = "#include <stddef.h>\nstatic char heap[4096];\nstatic size_t used;\n\
        ATTRIBUTE void *malloc(size_t size) { used += size; return heap + used - size; }\n\
        ATTRIBUTE void free(void *block) { (void)block; }\n\
        int main(int argc, char **argv) { (void)argv; free(malloc(argc)); return 0; }\n";
    let sandbox = Sandbox::new();
    if !build(&sandbox, &["gcc", "-fno-builtin", "-DATTRIBUTE="], SOURCE) {
        return;
    }
    Diagnosis::of(&sandbox, "./program").recordable(false).has(
        "allocator",
        "problem",
        &["the executable defines malloc itself", "shared library"],
    );
    sandbox.call(["run", "-o", "a.pb.gz", "./program"]).expect(125);
    // The loader does not see this one, and so `run` does not either.
    let hidden = "-DATTRIBUTE=__attribute__((visibility(\"hidden\")))";
    if build(&sandbox, &["gcc", "-fno-builtin", hidden], SOURCE) {
        Diagnosis::of(&sandbox, "./program").recordable(true).has(
            "allocator",
            "warning",
            &["coverage is incomplete"],
        );
    }
}

#[test]
fn an_allocator_by_names_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.write("rust", elf_copy::with_symbol("_rjem_malloc"), 0o755);
    Diagnosis::of(&sandbox, "./rust").recordable(true).has(
        "other_allocator",
        "warning",
        &["coverage is incomplete", "jemalloc", "#[global_allocator]"],
    );
    // Without symbols its messages remain.
    let source = "#include <stdio.h>\nint main(void) { puts(\"<jemalloc>: out of memory\"); return 0; }\n";
    if build(&sandbox, &["gcc", "-s"], source) {
        Diagnosis::of(&sandbox, "./program").has("other_allocator", "warning", &["stripped", "jemalloc"]);
    }
    if build(&sandbox, &["gcc"], source) {
        Diagnosis::of(&sandbox, "./program").lacks("other_allocator");
    }
}

#[test]
fn an_allocator_as_a_shared_library() {
    let sandbox = Sandbox::new();
    for (library, name) in [("-ljemalloc", "libjemalloc"), ("-lmimalloc", "libmimalloc")] {
        if build(&sandbox, &["gcc", "-Wl,--no-as-needed", library], PLAIN) {
            Diagnosis::of(&sandbox, "./program").recordable(true).has("allocator", "ok", &[name, "recorded"]);
        }
    }
}

#[test]
fn operator_new() {
    const SOURCE: &str =
        "#include <cstdlib>\n#include <new>\nOPERATOR\nint main() { delete new int(1); return 0; }\n";
    let sandbox = Sandbox::new();
    if build(&sandbox, &["g++", "-DOPERATOR="], SOURCE) {
        Diagnosis::of(&sandbox, "./program").recordable(true).has(
            "operator_new",
            "ok",
            &["C++ runtime", "libstdc++"],
        );
    }
    let own = "-DOPERATOR=void *operator new(std::size_t size) { return std::malloc(size); } \
               void operator delete(void *block) noexcept { std::free(block); }";
    if build(&sandbox, &["g++", own], SOURCE) {
        let diagnosis = Diagnosis::of(&sandbox, "./program");
        diagnosis.recordable(true).has(
            "operator_new",
            "note",
            &["the executable defines operator new itself"],
        );
    }
    if build(&sandbox, &["g++", "-DOPERATOR=", "-Wl,--no-as-needed", "-ljemalloc"], SOURCE) {
        Diagnosis::of(&sandbox, "./program").has("operator_new", "ok", &["libjemalloc", "recorded"]);
    }
}

#[test]
fn libraries_that_are_missing_and_where_others_are() {
    let sandbox = Sandbox::new();
    let library = "int given(void) { return 0; }\n";
    if !build(&sandbox, &["gcc", "-shared", "-fPIC"], library) {
        return;
    }
    fs::create_dir(sandbox.work("lib")).unwrap();
    fs::rename(sandbox.work("program"), sandbox.work("lib/libgiven.so")).unwrap();
    let source = "int given(void);\nint main(void) { return given(); }\n";
    assert!(build(&sandbox, &["gcc", "-Llib", "-lgiven"], source));
    let diagnosis = Diagnosis::of(&sandbox, "./program");
    diagnosis.recordable(false).has(
        "libraries",
        "problem",
        &["`libgiven.so`", "needed by `./program`", "LD_LIBRARY_PATH"],
    );
    let mut command = sandbox.command(["doctor", "--json", "./program"]);
    Diagnosis::by(command.env("LD_LIBRARY_PATH", sandbox.work("lib"))).recordable(true).has(
        "libraries",
        "ok",
        &["`libgiven.so`"],
    );
    for tags in ["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"] {
        assert!(build(&sandbox, &["gcc", "-Llib", "-lgiven", "-Wl,-rpath,$ORIGIN/lib", tags], source));
        Diagnosis::of(&sandbox, "./program").recordable(true).has("libraries", "ok", &["`libgiven.so`"]);
    }
}

#[test]
fn scripts_are_followed_to_their_interpreter() {
    let sandbox = Sandbox::new();
    sandbox.write("script", "#!/bin/sh -e\nexit 0\n", 0o755);
    let diagnosis = Diagnosis::of(&sandbox, "./script");
    diagnosis.recordable(true).has("script", "note", &["`./script`", "`/bin/sh`"]).has(
        "file",
        "ok",
        &["`/bin/sh`"],
    );
    assert_eq!(diagnosis.json["program"]["path"], "./script");
    assert_eq!(diagnosis.json["program"]["image"], "/bin/sh");

    sandbox.write("lost", "#!/nowhere/interpreter\n", 0o755);
    let diagnosis = Diagnosis::of(&sandbox, "./lost");
    diagnosis.recordable(false).has("script", "problem", &["`/nowhere/interpreter`", "first line"]);

    sandbox.write("text", "exit 0\n", 0o755);
    Diagnosis::of(&sandbox, "./text").recordable(true).has(
        "script",
        "note",
        &["without a #! line", "/bin/sh"],
    );
    sandbox.call(["run", "-o", "a.pb.gz", "./text"]).expect(0);

    // A script that is its own interpreter: `run` refuses it.
    let itself = sandbox.write("itself", "", 0o755);
    fs::write(&itself, format!("#!{}\n", itself.display())).unwrap();
    Diagnosis::of(&sandbox, "./itself").recordable(false).has("start", "problem", &["a script of a script"]);
}

#[test]
fn what_is_no_program() {
    let sandbox = Sandbox::new();
    sandbox.write("bytes", b"\x01\x00\x02\x03garbage", 0o755);
    Diagnosis::of(&sandbox, "./bytes").recordable(false).has(
        "file",
        "problem",
        &["neither an ELF file nor a script"],
    );
    sandbox.write("plain", elf_copy::plain(), 0o644);
    Diagnosis::of(&sandbox, "./plain").recordable(false).has("file", "problem", &["cannot be executed"]);
    fs::create_dir(sandbox.work("folder")).unwrap();
    Diagnosis::of(&sandbox, "./folder").recordable(false).has("file", "problem", &["it is a folder"]);
    for name in ["./nothing", "no-such-program-anywhere", ""] {
        let diagnosis = Diagnosis::of(&sandbox, name);
        diagnosis.recordable(false).has("file", "problem", &["was not found", "PATH"]);
        assert!(diagnosis.json["program"]["path"].is_null(), "{diagnosis:#?}");
    }
    let pipe = sandbox.work("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o777.into(), 0).unwrap();
    fs::set_permissions(&pipe, fs::Permissions::from_mode(0o777)).unwrap();
    Diagnosis::of(&sandbox, "./pipe").recordable(false).has("file", "problem", &["no regular file"]);
}

#[test]
fn setuid_programs_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give files away");
        return;
    }
    let sandbox = Sandbox::new();
    let path = sandbox.write("privileged", elf_copy::plain(), 0o755);
    for (owner, group, mode, word) in [(1, 0, 0o4755, "setuid"), (0, 1, 0o2755, "setgid")] {
        chown(&path, Some(owner), Some(group)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Diagnosis::of(&sandbox, "./privileged").recordable(false).has(
            "privileges",
            "problem",
            &[word, "LD_PRELOAD"],
        );
    }
}

#[test]
fn python_is_found_by_the_path() {
    let sandbox = Sandbox::new();
    if !fs::exists("/usr/bin/python3").unwrap() {
        skip("there is no /usr/bin/python3");
        return;
    }
    let mut command = sandbox.command(["doctor", "--json", "python3"]);
    let diagnosis = Diagnosis::by(command.env("PATH", "/nowhere:/usr/bin"));
    diagnosis
        .recordable(true)
        .has("file", "ok", &["`/usr/bin/python3`"])
        .has("linkage", "ok", &["dynamic"])
        .has("allocator", "ok", &["the C library's malloc"])
        .has("unwind_tables", "ok", &["cover"]);
    assert_eq!(diagnosis.json["program"]["path"], "/usr/bin/python3");
}

#[test]
fn go_programs() {
    let sandbox = Sandbox::new();
    // As the Go linker marks them.
    let source = "__attribute__((section(\".go.buildinfo\"), used)) const char mark[16] = \"mark\";\nint main(void) { return 0; }\n";
    if build(&sandbox, &["gcc"], source) {
        Diagnosis::of(&sandbox, "./program").recordable(true).has(
            "managed_heap",
            "warning",
            &["(Go)", "does not go through malloc", "runtime/pprof"],
        );
    }
}
