//! Allocators that are called by names of their own: those calls by-pass `malloc`, and so the recorder.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use heaptally_profile::model::INCOMPLETE;
use heaptally_profile::model::{Line, Profile};
use heaptally_profile::path_text::escape_path;
use heaptally_segment::read::{Area, Module, Snapshot};

use crate::doctor::rust_allocator::Source;
use crate::elf::Elf;
use crate::elf::allocator::Names;
use crate::message::quote;
use crate::program::{self, Program};

/// So many names are listed.
const LISTED: usize = 3;

/// `calls jemalloc by names of its own (mallocx, …), which by-pass malloc`
pub(crate) fn calls(names: &Names) -> String {
    let rest = names.symbols.len().saturating_sub(LISTED);
    let listed: Vec<String> = names.symbols.iter().take(LISTED).map(|name| quote(OsStr::new(name))).collect();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!(
        "calls {} by names of its own ({}{more}), which by-pass malloc",
        names.allocator,
        listed.join(", ")
    )
}

/// Adds to each image's warnings what its objects call by names that are not `malloc`'s. Of `program` it is known what
/// its file says.
pub(crate) fn warn(profile: &mut Profile, snapshot: &Snapshot, program: &Program) {
    let image = std::fs::canonicalize(&program.image).unwrap_or_else(|_| program.image.clone());
    // PERF: an executable with debug information has a long list of symbols.
    let known = |module: &Module| {
        let elf = program.elf.as_ref().filter(|_| module.path == image.as_os_str().as_bytes())?;
        is_of(elf, module).then(|| elf.clone())
    };
    let mut files: HashMap<&[u8], Option<Elf>> = HashMap::new();
    for module in snapshot.areas.iter().flat_map(|area| &area.modules) {
        files.entry(&module.path).or_insert_with(|| known(module).or_else(|| read(module)));
    }
    for (area, image) in snapshot.areas.iter().zip(&mut profile.images) {
        let elf_of = |module: &Module| files.get(module.path.as_slice()).and_then(Option::as_ref);
        let defined: Vec<&String> =
            area.modules.iter().filter_map(elf_of).flat_map(|elf| &elf.defined_allocation).collect();
        let mut seen: Vec<&[u8]> = Vec::new();
        for module in &area.modules {
            let Some(elf) = elf_of(module) else { continue };
            // An allocator's own library is the allocator.
            if elf.defines_malloc || seen.contains(&module.path.as_slice()) {
                continue;
            }
            seen.push(&module.path);
            let mut lists = elf.allocators.clone();
            for (allocator, symbol) in &elf.asked_for {
                if defined.contains(&symbol) {
                    Names::add(&mut lists, allocator, symbol);
                }
            }
            let path = Path::new(OsStr::from_bytes(&module.path));
            drop_known(&mut lists, path, elf);
            let path = quote(path);
            let advice = "build it without that allocator (Rust: without its #[global_allocator])";
            let text = |names: &Names| format!("{INCOMPLETE}{path} {}: {advice}", calls(names));
            image.warnings.extend(lists.iter().map(text));
            if !elf.own_new.is_empty() && !is_passed(area, module, &elf.own_new) {
                image.warnings.push(own_new(&escape_path(&module.path)));
            }
        }
    }
}

/// Leaves out the allocator that the warning of a Rust program's `#[global_allocator]` names.
pub(crate) fn drop_known(lists: &mut Vec<Names>, path: &Path, elf: &Elf) {
    if lists.is_empty() {
        return;
    }
    if let Some(Source::Allocator(known)) = program::rust_allocator(path, elf) {
        lists.retain(|names| names.allocator != known);
    }
}

fn own_new(path: &str) -> String {
    format!(
        "{path} has an operator new of its own, through which no recorded allocation came: what that takes elsewhere than \
         from malloc is not seen"
    )
}

/// Takes back what [`warn`] said of an operator that is inlined where it is called, once names are known.
pub(crate) fn take_back(profile: &mut Profile) {
    let is_new = |line: &Line| {
        profile.functions.get(line.function).is_some_and(|function| function.name.starts_with("operator new"))
    };
    let mut modules = BTreeSet::new();
    for location in &profile.locations {
        if location.lines.iter().any(is_new) {
            modules.extend(location.module);
        }
    }
    let paths = modules.into_iter().filter_map(|module| profile.modules.get(module));
    let untrue: BTreeSet<String> = paths.map(|module| own_new(&module.path)).collect();
    for image in &mut profile.images {
        image.warnings.retain(|warning| !untrue.contains(warning));
    }
}

/// Whether a recorded stack passes through one of a module's functions.
fn is_passed(area: &Area, module: &Module, functions: &[(u64, u64)]) -> bool {
    area.frames.iter().any(|frame| {
        let is_here = frame.module.and_then(|at| area.modules.get(at)).is_some_and(|of| of == module);
        // A return address may be the next function's first.
        let address = frame.address.wrapping_sub(module.bias).wrapping_sub(1);
        is_here && functions.iter().any(|(start, end)| (*start..*end).contains(&address))
    })
}

/// Reads a module's file, if it is still the one that was loaded.
fn read(module: &Module) -> Option<Elf> {
    let path = Path::new(OsStr::from_bytes(&module.path));
    if !path.is_absolute() || !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let elf = program::elf(path)?;
    is_of(&elf, module).then_some(elf)
}

fn is_of(elf: &Elf, module: &Module) -> bool {
    module.build_id.is_empty() || elf.build_id == module.build_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_once_and_not_all() {
        let mut lists = Vec::new();
        for name in ["mi_malloc", "mi_free", "mi_malloc", "mi_new", "mi_calloc"] {
            Names::add(&mut lists, "mimalloc", name);
        }
        let [names] = lists.as_slice() else { panic!("{lists:?}") };
        assert_eq!(
            calls(names),
            "calls mimalloc by names of its own (`mi_calloc`, `mi_free`, `mi_malloc` and 1 more), which by-pass malloc"
        );
    }
}
