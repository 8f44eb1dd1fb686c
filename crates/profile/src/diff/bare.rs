//! Functions whose names are known by their last part only.
//!
//! Debug information gives an inlined function its full name by way of its mangled one. Where there is none (C++ in an
//! anonymous namespace, Rust with `line-tables-only`), it gives the last part alone:
//!
//! ```text
//! called     (anonymous namespace)::Index<int>::add(int)    src/index.cpp
//! inlined    add                                            src/index.cpp
//! ```
//!
//! So where a file has a function known as `add` alone, all functions of that file whose last part is `add` are one.

use std::collections::{BTreeMap, BTreeSet};

use super::file::{FileId, Files};
use crate::model::Profile;
use crate::name_part::{without_arguments, without_parameters};

/// Shortens the names of functions that are elsewhere known by their last part only. `names`: by side and function.
pub(super) fn shorten(profiles: [&Profile; 2], names: &mut [Vec<String>; 2], files: &Files) {
    let file = |side: usize, function: usize| {
        let file = profiles[side].functions.get(function).map_or("", |function| &function.file);
        if file.is_empty() { FileId::UNKNOWN } else { files.id(side, file) }
    };
    let mut bare: BTreeSet<(FileId, &str)> = BTreeSet::new();
    for (side, names) in names.iter().enumerate() {
        for (function, name) in names.iter().enumerate() {
            let file = file(side, function);
            if file != FileId::UNKNOWN && is_bare(name) {
                bare.insert((file, last_part(name)));
            }
        }
    }
    // What is shortened in one place is so everywhere, also where no file is known.
    let mut short: BTreeMap<&str, &str> = BTreeMap::new();
    for (side, names) in names.iter().enumerate() {
        for (function, name) in names.iter().enumerate() {
            let last = last_part(name);
            if last != name && bare.contains(&(file(side, function), last)) {
                short.insert(name, last);
            }
        }
    }
    let short: BTreeMap<String, String> =
        short.into_iter().map(|(name, last)| (name.to_owned(), last.to_owned())).collect();
    for name in names.iter_mut().flatten() {
        if let Some(last) = short.get(name) {
            name.clone_from(last);
        }
    }
}

/// Whether a name is a last part alone: no path, no parameters.
fn is_bare(name: &str) -> bool {
    let last = last_part(name);
    name.starts_with(last) && !last.is_empty() && without_arguments(name).len() == last.len()
}

/// The name within a path, without parameters and generic arguments.
fn last_part(name: &str) -> &str {
    let name = without_arguments(without_parameters(name));
    let mut depth = 0_usize;
    let mut start = 0;
    let mut before = ' ';
    for (at, character) in name.char_indices() {
        match character {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && before == ':' => start = at + 1,
            _ => {}
        }
        before = character;
    }
    name.get(start..).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Function;

    #[test]
    fn the_last_part_is_found() {
        for (name, last) in [
            ("(anonymous namespace)::Index<std::string >::add(std::string const&, int)", "add"),
            ("make_unique<(anonymous namespace)::Square, int&>", "make_unique"),
            ("std::make_unique<a::Square, int&>(int&)", "make_unique"),
            ("a::f(int) const", "f"),
            ("main::{lambda(int)}::operator()(int) const", "operator()"),
            ("operator()", "operator()"),
            ("<a::B as c::D<e::F>>::f", "f"),
            ("a::b::{closure}", "{closure}"),
            ("core::mem::swap::<u8>", "swap"),
            ("main", "main"),
            ("", ""),
        ] {
            assert_eq!(last_part(name), last, "{name}");
        }
        assert!(is_bare("add") && is_bare("make_unique<int>") && is_bare("operator()"));
        assert!(!is_bare("a::add") && !is_bare("f(int)") && !is_bare("<A as B>::f"));
    }

    #[test]
    fn what_is_known_by_its_last_part_is_so_everywhere() {
        let profile = |functions: &[(&str, &str)]| Profile {
            functions: functions
                .iter()
                .map(|(name, file)| Function {
                    name: (*name).to_owned(),
                    file: (*file).to_owned(),
                    ..Function::default()
                })
                .collect(),
            ..Profile::default()
        };
        let base = profile(&[("a::add(int)", "x.cpp"), ("b::add(int)", "y.cpp"), ("a::f(int)", "x.cpp")]);
        let change = profile(&[("add", "x.cpp"), ("a::add(int)", "")]);
        let profiles = [&base, &change];
        let mut names = profiles.map(|profile| {
            profile.functions.iter().map(|function| function.name.clone()).collect::<Vec<_>>()
        });
        shorten(profiles, &mut names, &Files::new(profiles));
        assert_eq!(names[0], ["add", "b::add(int)", "a::f(int)"]);
        assert_eq!(names[1], ["add", "add"]);
    }
}
