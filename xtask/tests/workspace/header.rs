//! The C header: it compiles cleanly everywhere, reaches a recorder, and has no effect without one.

use crate::root;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STANDARDS: [(&str, &str); 8] = [
    ("c", "c89"),
    ("c", "c99"),
    ("c", "c11"),
    ("c", "gnu17"),
    ("c++", "c++98"),
    ("c++", "c++11"),
    ("c++", "c++17"),
    ("c++", "c++20"),
];
const KINDS: [&[&str]; 3] = [&["-fPIE", "-pie"], &["-fno-pie", "-no-pie"], &["-static"]];
const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Wshadow", "-Werror"];

/// What the program calls, as the stand-in recorder prints it.
const ALL_CALLS: &str = "\
begin w
thread begin t
pause
resume
thread end t
begin second
end second
iterations w 1099511627783
end w
";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("heaptally-header-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays is the temporary folder's to clean.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sources() -> PathBuf {
    root().join("xtask/tests/workspace/header_programs")
}

/// The compilers at hand: gcc must be there where tools are required.
fn compilers() -> Vec<&'static str> {
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let found: Vec<_> = ["gcc", "clang"].into_iter().filter(is_there).collect();
    let required = env::var("HEAPTALLY_TESTS_REQUIRE_TOOLS").as_deref() == Ok("1");
    assert!(!required || found.contains(&"gcc"), "gcc is missing");
    found
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && words.is_empty(), "{command:?}\n{words}");
}

/// A stand-in recorder whose table has `size_bytes`.
fn recorder(scratch: &Scratch, compiler: &str, size_bytes: u32) -> PathBuf {
    let library = scratch.0.join(format!("recorder_{size_bytes}.so"));
    let size = format!("-DTABLE_SIZE={size_bytes}");
    let source = sources().join("recorder.c");
    succeed(Command::new(compiler).args(["-shared", "-fPIC", &size, "-o"]).arg(&library).arg(source));
    library
}

fn build(scratch: &Scratch, compiler: &str, options: &[&str], also: &[&str]) -> PathBuf {
    let program = scratch.0.join("program");
    let mut command = Command::new(compiler);
    command.args(options).args(WARNINGS).args(also).arg("-I").arg(root().join("crates/preload/include"));
    command.args(["program.c", "second_file.c", "-ldl", "-o"]).arg(&program).current_dir(sources());
    succeed(&mut command);
    program
}

/// What the program prints, and the recorder in it.
fn run(program: &Path, recorder: Option<&Path>) -> String {
    let mut command = Command::new(program);
    command.env_remove("LD_PRELOAD");
    if let Some(library) = recorder {
        command.env("LD_PRELOAD", library);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn header_compiles_cleanly_and_reaches_the_recorder_in_every_kind_of_program() {
    let scratch = Scratch::new("kinds");
    for compiler in compilers() {
        let full = recorder(&scratch, compiler, 64);
        for (language, standard) in STANDARDS {
            for kind in KINDS {
                let standard = format!("-std={standard}");
                // One level of optimisation each way around: all of them would take minutes.
                let level = if kind == ["-fPIE", "-pie"] { "-O0" } else { "-O2" };
                let program = build(&scratch, compiler, &["-x", language, &standard, level], kind);
                assert_eq!(run(&program, None), "", "{compiler} {standard} {kind:?}");
                let expected = if kind == ["-static"] { "" } else { ALL_CALLS };
                assert_eq!(run(&program, Some(&full)), expected, "{compiler} {standard} {kind:?}");
            }
        }
    }
}

#[test]
fn header_calls_nothing_beyond_the_tables_end() {
    let scratch = Scratch::new("small");
    for compiler in compilers() {
        let program = build(&scratch, compiler, &["-O2"], &[]);
        for (size_bytes, expected) in [
            (8, ""),
            (15, ""),
            (16, "begin w\nbegin second\n"),
            (24, "begin w\nbegin second\nend second\nend w\n"),
            (200, ALL_CALLS),
        ] {
            let library = recorder(&scratch, compiler, size_bytes);
            assert_eq!(run(&program, Some(&library)), expected, "{compiler}, {size_bytes} bytes");
        }
    }
}

#[test]
fn module_map_builds_as_a_clang_module() {
    let scratch = Scratch::new("module");
    for compiler in compilers().into_iter().filter(|name| *name == "clang") {
        let cache = format!("-fmodules-cache-path={}", scratch.0.join("cache").display());
        let full = recorder(&scratch, compiler, 64);
        let program = build(&scratch, compiler, &["-fmodules", &cache], &[]);
        assert_eq!(run(&program, Some(&full)), ALL_CALLS);
        assert!(scratch.0.join("cache").exists(), "the header was read as text");
    }
}

/// The package for Swift refers to the header where it is; Swift reads the module map by clang's parser.
#[test]
fn module_map_of_the_swift_package_finds_the_header() {
    let scratch = Scratch::new("swift");
    let package = root().join("bindings/swift/Sources/CHeaptally/module.modulemap");
    let text = "@import CHeaptally;\nint main(void) { heaptally_window_begin(\"w\"); heaptally_window_end(\"w\"); return 0; }\n";
    let source = scratch.0.join("import.m");
    fs::write(&source, text).unwrap();
    for compiler in compilers().into_iter().filter(|name| *name == "clang") {
        let mut command = Command::new(compiler);
        command.arg("-fmodules").arg(format!("-fmodules-cache-path={}", scratch.0.join("cache").display()));
        command.arg(format!("-fmodule-map-file={}", package.display())).args(WARNINGS);
        succeed(command.arg("-fsyntax-only").arg(&source));
    }
}

/// The symbols of an object file of the header's user that other files could see.
#[test]
fn header_defines_nothing_that_other_files_see() {
    let scratch = Scratch::new("symbols");
    for compiler in compilers() {
        let object = scratch.0.join("second_file.o");
        let mut command = Command::new(compiler);
        command.arg("-c").arg("-I").arg(root().join("crates/preload/include"));
        succeed(command.arg(sources().join("second_file.c")).arg("-o").arg(&object));
        let file = fs::read(&object).unwrap();
        let file = object::File::parse(&*file).unwrap();
        let visible: Vec<_> = object::Object::symbols(&file)
            .filter(object::ObjectSymbol::is_global)
            .filter(object::ObjectSymbol::is_definition)
            .filter_map(|symbol| object::ObjectSymbol::name(&symbol).ok().map(str::to_owned))
            .collect();
        assert_eq!(visible, ["second_file"]);
    }
}
