//! Every source file keeps to the house rules that a machine can check.

use crate::root;
use std::fs;
use std::path::{Path, PathBuf};

const LONGEST_LINES: usize = 600;
/// Names that say nothing about what a file holds.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "helpers", "misc", "imp"];
const ENDINGS: [&str; 10] = ["rs", "toml", "md", "c", "cpp", "h", "modulemap", "swift", "txt", "yml"];

/// Programs as their authors gave them, and files as other tools write them.
const GIVEN: [&str; 2] = ["integration-tests/cases", "crates/profile/tests/fixture"];

/// The workspace's files that end in one of [`ENDINGS`], without those of [`GIVEN`], by their path below the root. Links
/// are not followed.
fn files() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let root = root();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && name != "target" && name != ".git" {
                folders.push(path);
            } else if kind.is_file()
                && path.extension().is_some_and(|end| ENDINGS.iter().any(|one| end == *one))
            {
                let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                found.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    found.retain(|(path, _)| !GIVEN.iter().any(|given| path.starts_with(given)));
    found.sort();
    assert!(found.len() > 50, "the files are not where they were");
    found
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "rs")
}

/// Fails with all of `wrong`, so that one run shows everything.
fn expect_none(wrong: Vec<String>, rule: &str) {
    assert!(wrong.is_empty(), "{rule}:\n  {}", wrong.join("\n  "));
}

#[test]
fn rust_files_are_not_too_long() {
    let lengths = files().into_iter().filter(|(path, _)| is_rust(path));
    let wrong = lengths
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_LINES)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()));
    expect_none(wrong.collect(), "a file holds one idea, in at most 600 lines");
}

#[test]
fn files_are_named_after_what_they_hold() {
    let names = files().into_iter().filter(|(path, _)| is_rust(path));
    let wrong = names.filter(|(path, _)| {
        path.components().any(|part| {
            EMPTY_NAMES.iter().any(|name| Path::new(part.as_os_str()).file_stem() == Some(name.as_ref()))
        })
    });
    expect_none(wrong.map(|(path, _)| path.display().to_string()).collect(), "a name says what is inside");
}

#[test]
fn lints_are_expected_with_a_reason_and_never_allowed() {
    // Put together here, so that this file does not hold what it looks for.
    let (allow, allow_all) = (concat!("#[", "allow("), concat!("#![", "allow("));
    let mut wrong = Vec::new();
    for (path, text) in files().into_iter().filter(|(path, _)| is_rust(path)) {
        for (number, line) in text.lines().enumerate() {
            if line.contains(allow) || line.contains(allow_all) {
                wrong.push(format!("{}:{}", path.display(), number + 1));
            }
        }
        let expects = text.matches(concat!("[", "expect(")).count();
        let reasons = text.matches(concat!("reason", " = \"")).count();
        if expects > reasons {
            wrong.push(format!("{}: an expected lint without a reason", path.display()));
        }
    }
    expect_none(wrong, "expect a lint, with a reason, and never allow it");
}

#[test]
fn nothing_refers_to_a_place_that_a_reader_cannot_see() {
    let unseen = [concat!("issue", " #"), concat!("Issue", " #"), concat!("/wo", "rk/")];
    let mut wrong = Vec::new();
    for (path, text) in files() {
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = unseen.iter().find(|word| line.contains(**word)) {
                wrong.push(format!("{}:{}: {word:?}", path.display(), number + 1));
            }
        }
    }
    expect_none(wrong, "say what the place says");
}

#[test]
fn text_files_end_with_one_newline_and_have_no_trailing_blanks() {
    let mut wrong = Vec::new();
    for (path, text) in files() {
        if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
            wrong.push(format!("{}: its end", path.display()));
        }
        let blanks = text.lines().position(|line| line.ends_with([' ', '\t']));
        wrong.extend(blanks.map(|line| format!("{}:{}", path.display(), line + 1)));
    }
    expect_none(wrong, "no blanks at ends");
}
