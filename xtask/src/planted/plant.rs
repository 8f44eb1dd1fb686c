//! Allocations that are planted, and the probes that tell where the driver comes by.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::{Build, files, write};
use super::source::{Language, functions};
use crate::process::succeed;

/// What is planted in Rust, each one allocation. In crates without std too.
const RUST: [(&str, &str); 5] = [
    (
        "Box",
        "{ extern crate std; std::hint::black_box(std::boxed::Box::new(std::hint::black_box([7_u8; 24]))); }",
    ),
    (
        "Vec growth",
        "{ extern crate std; let mut grown = std::vec::Vec::new(); grown.push(std::hint::black_box(7_u64)); std::hint::black_box(&grown); }",
    ),
    (
        "String clone",
        "{ extern crate std; std::hint::black_box(std::borrow::ToOwned::to_owned(std::hint::black_box(\"planted\"))); }",
    ),
    (
        "format!",
        "{ extern crate std; std::hint::black_box(std::format!(\"planted {}\", std::hint::black_box(7))); }",
    ),
    (
        "HashMap insert",
        "{ extern crate std; let mut map = std::collections::HashMap::new(); map.insert(std::hint::black_box(7_u32), 7_u32); std::hint::black_box(&map); }",
    ),
];

/// … and in C++; `planted::keep` is told in `harness.hpp`.
const CPP: [(&str, &str); 3] = [
    ("new", "{ char *planted_block = new char[24]; planted::keep(planted_block); delete[] planted_block; }"),
    ("std::string", "{ std::string planted_text(40, 'p'); planted::keep(&planted_text); }"),
    (
        "vector growth",
        "{ std::vector<long> planted_list; planted_list.push_back(7); planted::keep(&planted_list); }",
    ),
];

/// The kinds of allocation of a language: what it is, and the line.
pub(crate) fn kinds(language: Language) -> &'static [(&'static str, &'static str)] {
    match language {
        Language::Rust => &RUST,
        Language::Cpp => &CPP,
    }
}

fn probe(language: Language, id: usize) -> String {
    match language {
        Language::Rust => {
            format!(
                "{{ unsafe extern \"C\" {{ fn planted_probe(id: u32); }} unsafe {{ planted_probe({id}) }}; }}"
            )
        }
        Language::Cpp => format!("planted_probe({id});"),
    }
}

/// A function that the driver comes by.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Below the subject's folder.
    pub(crate) file: PathBuf,
    pub(crate) function: String,
    /// Behind the brace of its body, in the change's source.
    body: usize,
    /// How often in one run, in the window.
    pub(crate) calls: u64,
    /// Frames below it up to where the window was opened, at least.
    pub(crate) depth: u64,
}

/// Adds lines to a text, each behind a place in it.
fn add(text: &str, lines: &[(usize, String)]) -> String {
    let mut out = String::with_capacity(text.len() + 64 * lines.len());
    let mut from = 0;
    for (at, line) in lines {
        out.push_str(&text[from..*at]);
        out.push_str(&format!("\n{line}\n"));
        from = *at;
    }
    out + &text[from..]
}

/// All functions that the driver comes by, found by a build without optimisation in which each says so. The number of
/// those that could not be asked is the second value.
pub(crate) fn places(build: &Build<'_>, source: &Path) -> Result<(Vec<Place>, usize), String> {
    let subject = build.subject;
    let mut all: Vec<Place> = Vec::new();
    for file in files(subject, source)? {
        let Ok(text) = fs::read_to_string(source.join(&file)) else { continue };
        let of = |function: super::source::Function| Place {
            file: file.clone(),
            function: function.name,
            body: function.body,
            calls: 0,
            depth: 0,
        };
        all.extend(functions(&text, subject.language).into_iter().map(of));
    }
    let mut left_out = vec![false; all.len()];
    let flags = match subject.language {
        Language::Rust => "--cfg planted_probe",
        Language::Cpp => "-DPLANTED_PROBE",
    };
    for _ in 0..12 {
        // By file: the line of each probe.
        let mut lines: BTreeMap<(PathBuf, usize), usize> = BTreeMap::new();
        for file in files(subject, source)? {
            let Ok(text) = fs::read_to_string(source.join(&file)) else { continue };
            let of_file = all.iter().enumerate().filter(|(id, place)| place.file == file && !left_out[*id]);
            let probes: Vec<(usize, usize)> = of_file.map(|(id, place)| (place.body, id)).collect();
            for (nth, (body, id)) in probes.iter().enumerate() {
                let line = text[..*body].matches('\n').count() + 2 + 2 * nth;
                lines.insert((file.clone(), line), *id);
            }
            let probes: Vec<(usize, String)> =
                probes.into_iter().map(|(body, id)| (body, probe(subject.language, id))).collect();
            write(&build.folder.join("subject").join(&file), &add(&text, &probes))?;
        }
        let program = match build.program(flags) {
            Ok(program) => program,
            Err(words) => {
                let found: Vec<usize> = lines
                    .iter()
                    .filter(|((file, line), _)| words.contains(&format!("{}:{line}:", file.display())))
                    .map(|(_, id)| *id)
                    .collect();
                if found.is_empty() {
                    return Err(words);
                }
                found.into_iter().for_each(|id| left_out[id] = true);
                continue;
            }
        };
        for line in succeed(&mut Command::new(program))?.lines() {
            let mut words = line.strip_prefix("probe ").unwrap_or_default().split(' ').map(str::parse::<u64>);
            if let (Some(Ok(id)), Some(Ok(calls)), Some(Ok(depth))) =
                (words.next(), words.next(), words.next())
                && let Some(place) = usize::try_from(id).ok().and_then(|id| all.get_mut(id))
            {
                (place.calls, place.depth) = (calls, depth);
            }
        }
        all.retain(|place| place.calls > 0);
        return Ok((all, left_out.iter().filter(|is_out| **is_out).count()));
    }
    Err(format!("{}: no build with probes in it", subject.name))
}

/// Plants a line in a build; the line's number.
pub(crate) fn plant(build: &Build<'_>, source: &Path, place: &Place, line: &str) -> Result<usize, String> {
    let text = read(source, place)?;
    write(&build.folder.join("subject").join(&place.file), &add(&text, &[(place.body, line.to_owned())]))?;
    Ok(text[..place.body].matches('\n').count() + 2)
}

/// Takes out what was planted.
pub(crate) fn restore(build: &Build<'_>, source: &Path, place: &Place) -> Result<(), String> {
    write(&build.folder.join("subject").join(&place.file), &read(source, place)?)
}

fn read(source: &Path, place: &Place) -> Result<String, String> {
    let path = source.join(&place.file);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}
