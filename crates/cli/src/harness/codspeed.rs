//! Benchmarks under CodSpeed's compatibility crates and plug-ins: its library's functions around what is measured, as
//! <https://github.com/CodSpeedHQ/instrument-hooks> has them.
//!
//! They are called where the library believes to be measured, which without CodSpeed's runner it does not: so it is told that it
//! is ([`Step::Ask`]). Nothing else changes for it, since all else that it does goes to a runner.
//!
//! A program of the compatibility crates (built with `--cfg codspeed`) warms up five times, measures one iteration, and takes a
//! benchmark's whole name. It has no list, but says which ones it ran.

use std::env;
use std::ffi::OsString;
use std::fmt;

use heaptally_segment::layout::{ACTION_BRACKET_BEGIN, ACTION_BRACKET_END, ACTION_BRACKET_NAME};

use super::by_id::{Call, Harness, Kind, Scope};
use crate::doctor::image::{Image, has_text};
use crate::elf::CODSPEED_BEGIN;
use crate::function::definition::{Edge, Role};
use crate::function::pattern::Pattern;
use crate::program::Program;

/// The window of what is not named, as the recorder calls it; here it stands for all of them.
pub(crate) const WINDOW: &str = "codspeed";
/// The function at which a benchmark ends; it begins at [`CODSPEED_BEGIN`].
const END: &str = "instrument_hooks_stop_benchmark";
/// What is to be done where none was run.
pub(crate) const ADVICE: &str = "its benchmarks are run in the program itself with CODSPEED_PROCESS_ISOLATION=0, and in child \
                                 processes, which --follow-children records, without; a build without `--cfg codspeed` is one of \
                                 plain criterion or divan: `cargo heaptally bench`";
/// What is said of the window [`WINDOW`].
pub(crate) const UNNAMED: &str = "its benchmarks were not named by CodSpeed's library (outside of its runner a build for wall time \
                                  names none): all are one, and an entry is a measurement of unknown iterations";
/// Whether each benchmark gets a process of its own: since version 6 it does.
const ISOLATION: &str = "CODSPEED_PROCESS_ISOLATION";

/// By which `cargo codspeed` tells the workspace's folder, without which its criterion does not run.
pub(crate) const WORKSPACE: &str = "CODSPEED_CARGO_WORKSPACE_ROOT";

/// What a function tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Nothing: it is asked whether the benchmarks are measured, and is to say yes.
    Ask,
    Begin,
    End,
    Name,
}

impl Step {
    /// The action of a patched entry.
    pub(crate) fn action(self) -> Option<u32> {
        match self {
            Self::Ask => None,
            Self::Begin => Some(ACTION_BRACKET_BEGIN),
            Self::End => Some(ACTION_BRACKET_END),
            Self::Name => Some(ACTION_BRACKET_NAME),
        }
    }

    /// What is missing where its function cannot be patched.
    pub(crate) fn lack(self) -> &'static str {
        match self {
            Self::Ask => "its benchmarks are windows under CodSpeed's runner only",
            Self::Begin => "its benchmarks are no windows",
            Self::End => "a benchmark's window is not closed",
            Self::Name => "all its benchmarks are one window",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ask => "asked",
            Self::Begin => "begin",
            Self::End => "end",
            Self::Name => "name",
        })
    }
}

fn edge(step: Step, function: &str) -> Option<Edge> {
    let pattern = Pattern::parse(&format!("re:^{function}$")).ok()?;
    Some(Edge { window: WINDOW.to_owned(), role: Role::Bracket(step), pattern, text: function.to_owned() })
}

/// The function that is to say yes.
pub(crate) fn asked() -> Option<Edge> {
    edge(Step::Ask, "instrument_hooks_is_instrumented")
}

/// The library's functions.
pub(crate) fn edges() -> Vec<Edge> {
    let of_benchmarks = [
        edge(Step::Begin, CODSPEED_BEGIN),
        edge(Step::End, END),
        // The first is the older one, which calls the other.
        edge(Step::Name, "instrument_hooks_(set_)?executed_benchmark"),
    ];
    asked().into_iter().chain(of_benchmarks.into_iter().flatten()).collect()
}

/// Whether a program is one of CodSpeed's copy of Google Benchmark that measures by the library: the copy runs each benchmark once
/// to warm up before it names it, and its builds for wall time do not call the library.
pub(crate) fn measures_copy(program: &Program) -> bool {
    let Ok(image) = Image::open(&program.image) else { return false };
    image.elf().is_some_and(|elf| has_text(&elf, b"Codspeed mode: ") && !has_text(&elf, b"walltime\0"))
}

/// What is to be said of a program whose benchmarks will be run by processes of their own.
pub(crate) fn isolated(program: &Program, follows_children: bool) -> Option<String> {
    let is_off = env::var(ISOLATION).is_ok_and(|value| value == "0" || value == "false");
    if is_off || follows_children || env::var_os("CODSPEED_ISOLATED_BENCHMARK").is_some() {
        return None;
    }
    let image = Image::open(&program.image).ok()?;
    image.elf().is_some_and(|elf| has_text(&elf, ISOLATION.as_bytes())).then(|| {
        format!(
            "CodSpeed's library runs each benchmark in a child process, which is not recorded: set {ISOLATION}=0, or use \
             --follow-children"
        )
    })
}

/// The harness of its compatibility crates.
pub(super) struct Codspeed;

impl Harness for Codspeed {
    fn name(&self) -> &'static str {
        "CodSpeed"
    }

    fn how(&self) -> &'static str {
        "one iteration each, behind five that warm up where the harness is criterion's"
    }

    fn marks(&self) -> &'static [&'static str] {
        &[ISOLATION]
    }

    // It has none: all that are chosen are run, and named.
    fn list(&self, chosen: &[OsString]) -> Call {
        let call = Call::of(&[]).with(chosen);
        Call { variables: vec![(ISOLATION, "0")], ..call }
    }

    fn ids(&self, listed: &str, _is_bench: bool) -> Vec<String> {
        const GROUP: &str = " (group: ";
        let lines = listed
            .lines()
            .filter_map(|line| line.strip_prefix("Checked: ").or_else(|| line.strip_prefix("Measured: ")));
        let ids = lines.map(|line| match line.strip_suffix(')').and_then(|line| line.rfind(GROUP)) {
            Some(at) => line.get(..at).unwrap_or(line).to_owned(),
            None => line.to_owned(),
        });
        let mut known: Vec<String> = Vec::new();
        for id in ids {
            if !known.contains(&id) {
                known.push(id);
            }
        }
        known
    }

    fn one(&self, id: &str, _chosen: &[OsString]) -> Call {
        let call = Call::of(&["--exact", "--", id]);
        Call { variables: vec![(ISOLATION, "0")], ..call }
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope {
            kind: Kind::Bracketed("^instrument_hooks_start_benchmark$", "^instrument_hooks_stop_benchmark$"),
            remark: None,
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_pattern() {
        let steps: Vec<Role> = edges().iter().map(|edge| edge.role).collect();
        assert_eq!(steps, [Step::Ask, Step::Begin, Step::End, Step::Name].map(Role::Bracket));
    }

    #[test]
    fn what_ran_is_what_there_is() {
        let printed = "Harness: codspeed-criterion-compat v6.0.0\nChecked: a.rs::b::c[1]\nown output\n\
                       Checked: a.rs::d (group: x/y)\nSkipping: a.rs::e (CodSpeed doesn't support custom iterations)\n\
                       Measured: a.rs::f (x)\nChecked: a.rs::b::c[1]\n";
        assert_eq!(Codspeed.ids(printed, true), ["a.rs::b::c[1]", "a.rs::d", "a.rs::f (x)"]);
    }
}
