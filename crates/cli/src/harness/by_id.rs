//! Harnesses of which one process runs one benchmark, or one test: how each is told, lists what it has, and runs one of
//! that; and which functions of it stand around what it measures.
//!
//! A harness is a file with a type for [`Harness`]; [`HARNESSES`] names them all. A process each, so that the window can
//! have the benchmark's name, and what one of them leaves behind is no part of the next.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

use heaptally_symbolize::{FunctionList, list_named};
use memmap2::Mmap;
use regex::bytes::Regex;

use super::{codspeed, criterion, divan, libtest};
use crate::function::definition::{Definitions, Edge, Role};
use crate::function::pattern::Pattern;

/// What is known of a harness.
pub(crate) trait Harness: Sync {
    /// What people call it.
    fn name(&self) -> &'static str;

    /// How often it runs each, and what follows from that: a phrase for people; empty: nothing is to be said.
    fn how(&self) -> &'static str;

    /// Words of which a program that it runs holds one: in its symbols, or in its messages, which also a stripped one has.
    fn marks(&self) -> &'static [&'static str];

    /// The call that lists what is chosen by the user's words, those behind `--`.
    fn list(&self, chosen: &[OsString]) -> Call;

    /// The call that lists the same where that one fails: what older versions know.
    fn list_otherwise(&self, _chosen: &[OsString]) -> Option<Call> {
        None
    }

    /// What it listed, in either way. `is_bench`: benchmarks are asked for, where it has tests, too.
    fn ids(&self, listed: &str, is_bench: bool) -> Vec<String>;

    /// The call that runs one benchmark or test a few times, with what the user chose by.
    fn one(&self, id: &str, chosen: &[OsString]) -> Call;

    /// The id that a call of [`one`](Self::one)'s form runs, whoever made it.
    fn id_of(&self, arguments: &[OsString]) -> Option<String> {
        let is_exact = arguments.iter().any(|word| word == "--exact");
        let mut plain = arguments.iter().filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
        let id = plain.next().filter(|_| is_exact && plain.next().is_none())?;
        id.to_str().map(str::to_owned)
    }

    /// Where it measures, the most exact first.
    fn scopes(&self) -> &'static [Scope];
}

/// All that are known. What libtest runs may hold words of the others, and none of these holds it.
const HARNESSES: &[&dyn Harness] =
    &[&libtest::Libtest, &codspeed::Codspeed, &criterion::Criterion, &divan::Divan];

/// Words and variables of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) variables: Vec<(&'static str, &'static str)>,
}

impl Call {
    pub(super) fn of(arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(OsString::from).collect(), variables: Vec::new() }
    }

    pub(super) fn with(mut self, more: &[OsString]) -> Self {
        self.arguments.extend(more.iter().cloned());
        self
    }
}

/// Functions of a harness around what it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) kind: Kind,
    /// What is in the window beside what is measured; a phrase for the report.
    pub(crate) remark: Option<&'static str>,
}

/// How they stand around it. The functions are regular expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The harness enters one before it and one behind it; where both are one, by turns.
    Between(&'static str, &'static str),
    /// The same, where the harness enters them only if it believes to be measured: it is told that it is.
    Bracketed(&'static str, &'static str),
    /// The harness calls it beneath one.
    Beneath(&'static str),
}

impl Scope {
    fn functions(self) -> Vec<(Role, &'static str)> {
        match self.kind {
            Kind::Between(begin, end) | Kind::Bracketed(begin, end) => {
                vec![(Role::Begin, begin), (Role::End, end)]
            }
            Kind::Beneath(function) => vec![(Role::In, function)],
        }
    }

    /// The window of that name, at these functions.
    pub(crate) fn definitions(self, window: &str) -> Definitions {
        let mut definitions = Definitions::default();
        let edge = |(role, text): (Role, &'static str)| {
            let text = format!("re:{text}");
            let pattern = Pattern::parse(&text).ok()?;
            Some(Edge { window: window.to_owned(), role, pattern, text })
        };
        let edges: Vec<Edge> = self.functions().into_iter().filter_map(edge).collect();
        definitions.add(&edges);
        if matches!(self.kind, Kind::Bracketed(..)) {
            definitions.add_pauses(&codspeed::asked());
        }
        definitions
    }

    /// Whether a program has the functions.
    fn is_in(self, functions: &FunctionList) -> bool {
        self.functions().into_iter().all(|(_, text)| {
            Pattern::parse(&format!("re:{text}"))
                .is_ok_and(|pattern| !pattern.find(&functions.functions).is_empty())
        })
    }
}

/// What a program's file says of how it is run.
#[derive(Clone, Default)]
pub(crate) struct Found {
    pub(crate) harness: Option<&'static dyn Harness>,
    /// It may open windows itself: it holds the name by which programs find the recorder.
    pub(crate) opens_windows: bool,
    /// Those of the harness's scopes whose functions it has.
    pub(crate) scopes: Vec<Scope>,
}

/// What stands in every program that can open a window.
const RECORDER_MARK: &str = "heaptally_abi_v1";

/// Looks at a program.
pub(crate) fn look(program: &Path) -> io::Result<Found> {
    let file = File::open(program)?;
    let bytes = map(&file)?;
    let has = |mark: &str| Regex::new(&regex::escape(mark)).is_ok_and(|mark| mark.is_match(&bytes));
    let harness = HARNESSES.iter().copied().find(|harness| harness.marks().iter().any(|mark| has(mark)));
    let mut found = Found { harness, opens_windows: has(RECORDER_MARK), scopes: Vec::new() };
    if let Some(harness) = harness {
        let list = list_named(program, "", &[]);
        found.scopes = harness.scopes().iter().copied().filter(|scope| scope.is_in(&list)).collect();
    }
    Ok(found)
}

#[expect(unsafe_code, reason = "maps a file")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: it is only read. A program that is rewritten meanwhile is a fault of whoever does that.
    unsafe { Mmap::map(file) }
}

/// The names in a list whose lines are `NAME: KIND`, as libtest prints it and the others do, too.
pub(super) fn names<'l>(listed: &'l str, kinds: &[&str]) -> impl Iterator<Item = &'l str> {
    let kinds: Vec<String> = kinds.iter().map(|kind| format!(": {kind}")).collect();
    listed.lines().filter_map(move |line| kinds.iter().find_map(|kind| line.strip_suffix(kind.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_has_patterns_that_parse() {
        for harness in HARNESSES {
            assert!(!harness.scopes().is_empty(), "{}", harness.name());
            for scope in harness.scopes() {
                let edges = scope.definitions("w").edges;
                let asked = usize::from(matches!(scope.kind, Kind::Bracketed(..)));
                assert_eq!(edges.len(), scope.functions().len() + asked, "{scope:?}");
            }
        }
    }

    #[test]
    fn what_a_harness_lists_is_what_it_has() {
        let libtest = "a::b: test\nc: benchmark\n\n2 tests, 1 benchmark\n";
        assert_eq!(libtest::Libtest.ids(libtest, false), ["a::b"]);
        assert_eq!(libtest::Libtest.ids(libtest, true), ["c"]);
        assert_eq!(criterion::Criterion.ids("a/b: 1: benchmark\nnoise\n", true), ["a/b: 1"]);
        assert_eq!(criterion::Criterion.ids("a b: bench\n\n", true), ["a b"]);
        assert_eq!(divan::Divan.ids("bench::a::1: benchmark\n", true), ["bench::a::1"]);
        let tree = "Timer precision: 20 ns\nbench\n├─ ignored      (ignored)\n├─ plain\n├─ times\n│  ├─ 1 a\n│  ╰─ 2\n\
                    noise\n╰─ m\n   ╰─ f\n      ╰─ u32\n\nother\n╰─ x  \n\n";
        let ids = ["bench::plain", "bench::times::1 a", "bench::times::2", "bench::m::f::u32", "other::x"];
        assert_eq!(divan::Divan.ids(tree, true), ids);
    }

    #[test]
    fn the_id_of_a_call_is_the_word_beside_exact() {
        let id = |words: &[&str]| {
            libtest::Libtest.id_of(&words.iter().map(OsString::from).collect::<Vec<OsString>>())
        };
        assert_eq!(id(&["--exact", "a::b", "--nocapture"]).as_deref(), Some("a::b"));
        assert_eq!(id(&["a::b"]), None);
        assert_eq!(id(&["--exact", "a", "b"]), None);
    }

    #[test]
    fn a_program_of_no_harness_is_none() {
        assert!(look(Path::new("/bin/true")).unwrap().harness.is_none());
        // This test itself is run by libtest.
        let found = look(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(found.harness.map(Harness::name), Some("libtest"));
        assert_eq!(found.scopes.len(), 1);
    }
}
