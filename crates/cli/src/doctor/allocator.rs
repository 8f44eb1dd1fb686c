//! Whose `malloc` and `operator new` the program calls.

use std::ffi::OsStr;
use std::path::Path;

use object::Object;

use super::finding::Finding;
use super::image::{Definition, Elf, Image, definition, find_defined, has_text};
use heaptally_profile::model::INCOMPLETE;

use crate::elf;
use crate::elf::allocator::{self, MESSAGES};
use crate::message::quote;
use crate::other_allocator::{calls, drop_known};
use crate::program;

/// `operator new(unsigned long)`.
const OPERATOR_NEW: &[u8] = b"_Znwm";
/// What sanitizers write into theirs.
const SANITIZERS: [(&str, &[u8]); 3] = [
    ("AddressSanitizer", b"AddressSanitizer"),
    ("ThreadSanitizer", b"ThreadSanitizer"),
    ("MemorySanitizer", b"MemorySanitizer"),
];

/// Looks at a program and the libraries that it needs, in the loader's order.
pub(crate) fn examine(program: &Elf<'_>, libraries: &[Image]) -> Vec<Finding> {
    let mut findings = vec![malloc(program, libraries), operator_new(program, libraries)];
    findings.extend(hidden_allocator(program));
    findings.extend(other_allocators(libraries));
    findings
}

/// An allocator in an executable whose symbols are gone.
fn hidden_allocator(program: &Elf<'_>) -> Option<Finding> {
    let is_stripped = program.symbols().next().is_none();
    if !is_stripped || definition(program, b"malloc").is_some() {
        return None;
    }
    let (name, _) = MESSAGES.iter().find(|(_, text)| has_text(program, text))?;
    Some(Finding::warning(
        "other_allocator",
        format!(
            "the executable is stripped and holds messages of {name}: it may call it by names of its own"
        ),
        "see whether the report has the allocations that you expect; keep the symbols to have this told",
    ))
}

fn malloc(program: &Elf<'_>, libraries: &[Image]) -> Finding {
    const CHECK: &str = "allocator";
    let advice = "build it without that allocator, or link the allocator as a shared library";
    match definition(program, b"malloc") {
        Some(Definition::Exported) => {
            let by_text = || {
                let known = MESSAGES.iter().chain(&SANITIZERS).find(|(_, text)| has_text(program, text));
                known.map(|(name, _)| *name)
            };
            let which = find_defined(program, allocator::of_definition).or_else(by_text);
            let which = which.map_or_else(String::new, |name| format!(" ({name})"));
            return Finding::problem(
                CHECK,
                format!(
                    "the executable defines malloc itself{which}, and its calls do not come to the recorder"
                ),
                advice,
            );
        }
        Some(Definition::Hidden) => {
            return Finding::warning(
                CHECK,
                format!("{INCOMPLETE}the executable has a malloc of its own that only its own calls reach"),
                advice,
            );
        }
        None => {}
    }
    match first_definer(libraries, b"malloc") {
        Some(library) if is_libc(library) => {
            Finding::ok(CHECK, format!("the C library's malloc, {}", quote(&library.path)))
        }
        Some(library) => {
            Finding::ok(CHECK, format!("malloc of {}: recorded as the C library's is", quote(&library.path)))
        }
        None => Finding::warning(
            CHECK,
            "no needed library defines malloc",
            "see that the C library is among the needed libraries",
        ),
    }
}

fn operator_new(program: &Elf<'_>, libraries: &[Image]) -> Finding {
    const CHECK: &str = "operator_new";
    match definition(program, OPERATOR_NEW) {
        Some(_) => {
            return Finding::note(
                CHECK,
                "the executable defines operator new itself: what it gets from malloc is recorded there",
            );
        }
        None if libraries.is_empty() => return Finding::ok(CHECK, "not defined: no C++"),
        None => {}
    }
    match first_definer(libraries, OPERATOR_NEW) {
        Some(library) if is_cpp_runtime(library) => {
            Finding::ok(CHECK, format!("the C++ runtime's, {}: it calls malloc", quote(&library.path)))
        }
        Some(library) if allocator::is_library(name(library)) => {
            Finding::ok(CHECK, format!("an allocator's, {}: recorded", quote(&library.path)))
        }
        Some(library) => Finding::ok(
            CHECK,
            format!("of {}: recorded, there or at the malloc that it calls", quote(&library.path)),
        ),
        None => Finding::ok(CHECK, "no needed library defines it: no C++"),
    }
}

/// Libraries that call an allocator by names of its own.
fn other_allocators(libraries: &[Image]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for library in libraries {
        // An allocator's own library is the allocator.
        let defines_malloc = library.elf().is_none_or(|elf| definition(&elf, b"malloc").is_some());
        if defines_malloc {
            continue;
        }
        if let Some(elf) = program::elf(&library.path) {
            findings.extend(other_allocators_of(&library.path, &elf));
        }
    }
    findings
}

/// What a file calls by names of an allocator's own, but for the allocator of a Rust program, of which another finding
/// tells.
pub(crate) fn other_allocators_of(path: &Path, elf: &elf::Elf) -> Vec<Finding> {
    let mut lists = elf.allocators.clone();
    drop_known(&mut lists, path, elf);
    lists
        .iter()
        .map(|names| {
            Finding::warning(
                "other_allocator",
                format!("{INCOMPLETE}{} {}", quote(path), calls(names)),
                "build it without that allocator (Rust: without its #[global_allocator]); what else allocates is seen",
            )
        })
        .collect()
}

fn first_definer<'a>(libraries: &'a [Image], function: &[u8]) -> Option<&'a Image> {
    libraries.iter().find(|library| {
        library.elf().is_some_and(|elf| definition(&elf, function) == Some(Definition::Exported))
    })
}

fn name(library: &Image) -> &str {
    library.path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

fn is_libc(library: &Image) -> bool {
    name(library).starts_with("libc.so") || name(library).starts_with("libc-2.")
}

fn is_cpp_runtime(library: &Image) -> bool {
    ["libstdc++", "libc++"].iter().any(|runtime| name(library).starts_with(runtime))
}
