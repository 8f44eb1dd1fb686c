//! Programs with another allocator than the C library's: as a shared library, preloaded, or called by names of its own.

use std::path::{Path, PathBuf};

use integration_tests::program;
use integration_tests::run::{Outcome, Run};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

const TIMES: u64 = 10;
/// The windows of `allocator_forms.cpp`, with the bytes of a block.
const FORMS: [(&str, u64); 17] = [
    ("malloc", 24),
    ("calloc", 24),
    ("realloc", 300),
    ("aligned_alloc", 64),
    ("memalign", 24),
    ("posix_memalign", 24),
    ("strdup", 6),
    ("new", 24),
    ("new[]", 24),
    ("sized", 24),
    ("sized[]", 24),
    ("nothrow", 24),
    ("nothrow[]", 24),
    // What their operators ask of aligned_alloc is rounded up, where they do.
    ("aligned", 0),
    ("aligned[]", 0),
    ("aligned sized", 0),
    ("aligned nothrow", 0),
];

/// An allocator's library, by the beginning of its file's name. `None` where it is missing.
fn library(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let files = folders.iter().filter_map(|folder| Path::new(folder).read_dir().ok()).flatten();
    let mut found: Vec<PathBuf> = files
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)))
        .collect();
    found.sort();
    if found.is_empty() {
        tool::skip(&format!("{name} missing"));
    }
    found.into_iter().next()
}

const ALLOCATORS: [&str; 3] = ["libjemalloc.so.", "libmimalloc.so.", "libtcmalloc_minimal.so."];

fn forms(scratch: &Scratch, library: Option<&Path>) {
    let mut flags = vec!["-O1", "-fno-builtin"];
    let path = library.map(|path| path.to_string_lossy().into_owned());
    if let Some(path) = &path {
        flags.extend(["-Wl,--no-as-needed", path]);
    }
    program::build(scratch, "allocator_forms.cpp", "forms", &flags);
}

fn check_forms(outcome: &Outcome, plain: &Outcome, name: &str) {
    assert_eq!((outcome.code, &outcome.stdout), (plain.code, &plain.stdout), "{name}: {}", outcome.stderr);
    let text = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(!text.contains("NOT"), "{name}: {text}");
    let report = outcome.report();
    assert_eq!(report.losses_text(), "", "{name}");
    for (form, size) in FORMS {
        let window = report.window(form);
        let counts = &window.counts;
        assert_eq!(
            (counts.allocations, counts.freed, counts.failed),
            (TIMES, TIMES, 0),
            "{name}: {form}: {}",
            window.text()
        );
        assert!(size == 0 || counts.bytes == size * TIMES, "{name}: {form}: {counts:?}");
        // The program's own function called it, beside what the C or C++ library or the allocator has in between.
        assert!(window.rows.iter().all(|row| row.is_complete() && row.has("main")), "{}", window.text());
        assert_eq!(window.rows.len(), 1, "{name}: {form}: {}", window.text());
    }
    let moves = report.window("moves");
    assert_eq!((moves.counts.allocations, moves.counts.freed), (3, 3), "{name}: {}", moves.text());
    // An exception is an allocation; the failed one itself is counted where malloc failed.
    if plain.code == 0 {
        let throws = report.window("throws");
        assert_eq!(throws.counts.allocations, 3, "{name}: {}", throws.text());
    }
}

#[test]
fn every_form_counts_once_with_a_linked_allocator() {
    if !tool::have(&["g++"]) {
        return;
    }
    for name in ALLOCATORS {
        let Some(library) = library(name) else { continue };
        let scratch = Scratch::new();
        forms(&scratch, Some(&library));
        // mimalloc ends a program that asks for too much.
        let plain = Run::new(&scratch, ["./forms"]).unrecorded().run();
        assert!(plain.code == 0 || name.contains("mimalloc"), "{name}: {}", plain.stderr);
        let outcome = Run::new(&scratch, ["./forms"]).run();
        check_forms(&outcome, &plain, name);
        let said = outcome.report().warnings();
        assert!(said.iter().any(|warning| warning.contains(name)), "{said:?}");
        assert!(!said.iter().any(|warning| warning.contains("incomplete")), "{said:?}");
    }
}

#[test]
fn every_form_counts_once_with_a_preloaded_allocator() {
    if !tool::have(&["g++"]) {
        return;
    }
    let scratch = Scratch::new();
    forms(&scratch, None);
    let plain = Run::new(&scratch, ["./forms"]).unrecorded().run();
    check_forms(&Run::new(&scratch, ["./forms"]).run(), &plain, "libc");
    for name in ALLOCATORS {
        let Some(library) = library(name) else { continue };
        let run = || Run::new(&scratch, ["env", &format!("LD_PRELOAD={}", library.display()), "./forms"]);
        let plain = run().unrecorded().run();
        // The variable is the program's: the recorder comes first all the same.
        let outcome = run().run();
        check_forms(&outcome, &plain, name);
        // And where the command itself is run with it.
        let outcome = Run::new(&scratch, ["./forms"]).environment("LD_PRELOAD", &library).run();
        check_forms(&outcome, &plain, name);
    }
}

/// 7 mallocs are recorded, the 8 blocks that come by other names are said, with the names.
fn check_names(outcome: &Outcome, what: &str, words: &[&str]) {
    assert_eq!((outcome.code, outcome.stdout.as_slice()), (0, &b"done\n"[..]), "{what}: {}", outcome.stderr);
    let window = outcome.report().window("w");
    assert_eq!((window.calls(), window.calls_with("plain")), (7, 7), "{what}: {}", window.text());
    let said = outcome.report().warnings();
    let found: Vec<_> = said.iter().filter(|warning| warning.starts_with("coverage is incomplete")).collect();
    let [warning] = found.as_slice() else { panic!("{what}: {said:?}") };
    for word in words {
        assert!(warning.contains(word), "{what}: no {word} in {warning}");
    }
}

#[test]
fn names_of_an_allocators_own_are_said() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    let flags = |more: &[&'static str]| [&["-O1", "-fno-builtin"], more].concat();
    program::build(&scratch, "own_names.c", "standin", &flags(&["-DSTANDIN"]));
    let outcome = Run::new(&scratch, ["./standin"]).run();
    check_names(&outcome, "stand-in", &["jemalloc", "`_rjem_malloc`", "`_rjem_sdallocx`", "/standin`"]);
    let outcome = Run::new(&scratch, ["./standin"]).options(["--strict"]).run();
    assert_eq!(outcome.code, 125, "stderr:\n{}", outcome.stderr);
    for (number, name, words) in [
        ("-DALLOCATOR=1", ALLOCATORS[0], ["jemalloc", "`mallocx`"]),
        ("-DALLOCATOR=2", ALLOCATORS[1], ["mimalloc", "`mi_malloc`"]),
        ("-DALLOCATOR=3", ALLOCATORS[2], ["tcmalloc", "`tc_malloc`"]),
    ] {
        let Some(library) = library(name) else { continue };
        let path = library.to_string_lossy().into_owned();
        program::build(&scratch, "own_names.c", "names", &["-O1", "-fno-builtin", number, &path]);
        check_names(&Run::new(&scratch, ["./names"]).run(), name, &words);
    }
}

/// A program that looks whether an allocator is there takes the way that it takes without the recorder.
#[test]
fn a_program_that_asks_for_an_allocator() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    program::build(&scratch, "own_names.c", "ask", &["-O1", "-fno-builtin", "-DALLOCATOR=1", "-DASK"]);
    let outcome = Run::new(&scratch, ["./ask"]).run();
    let window = outcome.report().window("w");
    assert_eq!((window.calls(), window.calls_with("own")), (15, 8), "{}", window.text());
    assert_eq!(outcome.report().warnings(), [""; 0]);
    let Some(library) = library(ALLOCATORS[0]) else { return };
    let outcome = Run::new(&scratch, ["./ask"]).environment("LD_PRELOAD", &library).run();
    check_names(&outcome, "asked for", &["jemalloc", "`mallocx`"]);
}

/// The same in a library that comes at run time.
#[test]
fn a_plugin_with_an_allocator_of_its_own() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    let source = "#include <stdlib.h>\nstatic char room[4096];\nvoid *_rjem_malloc(size_t size) { return room + size; }\n\
        void plug_own(void) { for (int i = 0; i < 5; i++) free(malloc(40)), _rjem_malloc(9); }\n\
        void plug_back(void (*function)(void), int count) { while (count--) function(); }\n";
    let source = scratch.write("plug.c", source);
    let flags = ["-O0", "-fno-builtin", "-fPIC", "-shared", "-fvisibility=default"];
    program::compile("gcc", &[], &source, &scratch, "libplug.so", &flags);
    program::build(&scratch, "plugin_load.c", "load", &["-O1"]);
    let outcome = Run::new(&scratch, ["./load", "lazy", &scratch.path("libplug.so").to_string_lossy()]).run();
    assert_eq!(outcome.code, 0, "stderr:\n{}", outcome.stderr);
    let said = outcome.report().warnings();
    assert!(said.iter().any(|text| text.contains("libplug.so") && text.contains("_rjem_malloc")), "{said:?}");
}
