//! Cases: small programs whose first line says how to build them and what is to be recorded.
//!
//! ```text
//! // BUILD: <shell> || EXPECT: <window>: total=<n> [<n>* <chain>] … || NOTE: <for people>
//! ```
//!
//! EXPECT counts calls of allocation functions, the failed ones and reallocs to size 0 included.

use std::fs;
use std::path::{Path, PathBuf};

use crate::chain::Chain;

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its folder's name, `A01`.
    pub id: String,
    /// Its source.
    pub source: PathBuf,
    /// The shell command that builds it in a copy of its folder.
    pub build: String,
    /// What is to be recorded.
    pub windows: Vec<ExpectedWindow>,
}

/// What a window is to hold.
#[derive(Clone, Debug)]
pub struct ExpectedWindow {
    /// Its name.
    pub name: String,
    /// The calls in it; `None` when they vary from run to run.
    pub total: Option<u64>,
    /// The calls by stack. Empty: not stated.
    pub stacks: Vec<(u64, Chain)>,
}

impl Case {
    /// Reads the case `id`.
    ///
    /// # Panics
    /// When there is no such case, or its first line is not as it should be.
    pub fn load(id: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(id);
        let source = ["c", "cpp", "rs"]
            .iter()
            .map(|extension| folder.join(format!("{id}.{extension}")))
            .find(|path| path.exists())
            .unwrap_or_else(|| panic!("no source in {}", folder.display()));
        let text =
            fs::read_to_string(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        let line = text.lines().next().unwrap_or_default();
        let field = |name: &str| {
            line.trim_start_matches("// ")
                .split(" || ")
                .find_map(|part| part.strip_prefix(name))
                .unwrap_or_else(|| panic!("{id}: no {name} in its first line"))
                .trim()
                .to_owned()
        };
        Self { id: id.to_owned(), build: field("BUILD:"), windows: parse_windows(&field("EXPECT:")), source }
    }

    /// The program that the build makes.
    pub fn program(&self) -> String {
        format!("./{}", self.id)
    }

    /// The compiler that the build needs.
    pub fn compiler(&self) -> &str {
        self.build.split_whitespace().find(|word| ["gcc", "g++", "rustc"].contains(word)).unwrap_or("gcc")
    }
}

/// Reads `w: total=7 [4* main -> a -> malloc] v: total=0`.
pub(crate) fn parse_windows(text: &str) -> Vec<ExpectedWindow> {
    let mut starts: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices(": total=") {
        let start = text[..at].rfind(' ').map_or(0, |space| space + 1);
        starts.push((start, at));
    }
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|((start, colon), end)| {
            let body = &text[colon + ": total=".len()..end];
            let digits: String = body.chars().take_while(char::is_ascii_digit).collect();
            ExpectedWindow {
                name: text[*start..*colon].to_owned(),
                total: digits.parse().ok(),
                stacks: parse_stacks(body),
            }
        })
        .collect()
}

/// Reads each `[4* main -> a -> malloc]`. A name may hold brackets (`operator new[]`).
fn parse_stacks(body: &str) -> Vec<(u64, Chain)> {
    let mut stacks = Vec::new();
    let mut rest = body;
    while let Some(start) = rest.find('[') {
        let inner = &rest[start + 1..];
        let mut depth = 1_u32;
        let end = inner.find(|character| {
            depth = match character {
                '[' => depth + 1,
                ']' => depth - 1,
                _ => depth,
            };
            depth == 0
        });
        let Some(end) = end else { break };
        let (count, chain) = inner[..end]
            .split_once("* ")
            .unwrap_or_else(|| panic!("no count in the stack {:?}", &inner[..end]));
        let count = count.parse().unwrap_or_else(|error| panic!("count {count:?}: {error}"));
        stacks.push((count, Chain::new(chain)));
        rest = &inner[end + 1..];
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_of_two_windows() {
        let windows = parse_windows(
            "ctor: total=2 [2* a -> malloc] w: total=1 [1* main -> operator new[](int) -> malloc]",
        );
        assert_eq!(windows.len(), 2);
        assert_eq!((windows[0].name.as_str(), windows[0].total), ("ctor", Some(2)));
        assert_eq!(windows[0].stacks.len(), 1);
        assert_eq!((windows[1].name.as_str(), windows[1].total), ("w", Some(1)));
        assert_eq!(windows[1].stacks[0].1.text(), "main -> operator new[](int) -> malloc");
    }

    #[test]
    fn a_total_that_varies() {
        let windows = parse_windows(
            "sharded: total=... total varies (RandomState); fixed: total=24 [8* m -> ...malloc]",
        );
        assert_eq!(windows.len(), 2);
        assert_eq!(windows[0].total, None);
        assert_eq!((windows[1].name.as_str(), windows[1].total), ("fixed", Some(24)));
    }

    #[test]
    fn every_case_has_a_readable_first_line() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let mut ids: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        ids.sort();
        assert!(ids.len() > 50, "{} cases", ids.len());
        for id in ids {
            let case = Case::load(&id);
            assert!(!case.windows.is_empty(), "{id} expects nothing");
            for window in &case.windows {
                let sum: u64 = window.stacks.iter().map(|(count, _)| count).sum();
                if let Some(total) = window.total {
                    assert!(window.stacks.is_empty() || sum <= total, "{id}: stacks exceed the total");
                }
            }
        }
    }
}
