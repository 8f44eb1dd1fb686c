//! How a window at functions is defined, by options.
//!
//! ```text
//! --window-in [NAME=]FUNCTION
//! --window-at [NAME=]BEGIN..END       NAME=a .. b      with blanks where a name holds dots
//! --window-pause NAME=FUNCTION        --window-resume NAME=FUNCTION      of a window of --window-at
//! --window-harness NAME=FUNCTION      --window-restart NAME              of any that is recorded by name
//! ```

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;

use heaptally_profile::path_text::escape_path;
use heaptally_segment::layout::RESTART_LIMIT;

use super::pattern::Pattern;
use crate::exit::Failure;
use crate::harness::package_benchmark::Part;
use crate::harness::{codspeed, google_benchmark::Step};

/// What an entry of a function does to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Closes it. Before it may be opened anew.
    End,
    /// Opens it.
    Begin,
    /// Undoes one pause.
    Resume,
    /// Nothing is recorded in it from there on.
    Pause,
    /// It is what runs beneath.
    In,
    /// What runs beneath is its harness's.
    Harness,
    /// It tells of a benchmark's loop, whatever its window is called.
    Loop(Step),
    /// It is of package-benchmark's measurements.
    Benchmark(Part),
    /// It tells of a benchmark that CodSpeed's library brackets, likewise.
    Bracket(codspeed::Step),
}

/// A function, or several, at whose entry something is done.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    /// The window.
    pub(crate) window: String,
    pub(crate) role: Role,
    pub(crate) pattern: Pattern,
    /// The pattern as it was given.
    pub(crate) text: String,
}

/// `--window-at`.
#[derive(Clone, Debug)]
pub(crate) struct WindowAt {
    pub(crate) begin: Edge,
    pub(crate) end: Edge,
}

impl WindowAt {
    /// Reads the option's value. The error says why it is none.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, range) = split_name(text);
        let (begin, end) = split_range(range)?;
        let window = name.unwrap_or(range).to_owned();
        let edge = |role, text: &str| {
            let pattern = Pattern::parse(text).map_err(|error| format!("{text:?}: {error}"))?;
            Ok::<Edge, String>(Edge { window: window.clone(), role, pattern, text: text.to_owned() })
        };
        Ok(Self { begin: edge(Role::Begin, begin)?, end: edge(Role::End, end)? })
    }
}

/// `--window-in`.
#[derive(Clone, Debug)]
pub(crate) struct WindowIn(pub(crate) Edge);

impl WindowIn {
    /// Reads the option's value. The error says why it is none.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, function) = split_name(text);
        let function = function.trim();
        let pattern = Pattern::parse(function).map_err(|error| format!("{function:?}: {error}"))?;
        let window = name.unwrap_or(function).to_owned();
        Ok(Self(Edge { window, role: Role::In, pattern, text: function.to_owned() }))
    }
}

/// `--window-pause`, `--window-resume` and `--window-harness`.
#[derive(Clone, Debug)]
pub(crate) struct WindowPause(pub(crate) Edge);

impl WindowPause {
    /// Reads the value of `--window-pause`. The error says why it is none.
    pub(crate) fn parse_pause(text: &str) -> Result<Self, String> {
        Self::parse(text, Role::Pause)
    }

    /// Reads the value of `--window-resume`. The error says why it is none.
    pub(crate) fn parse_resume(text: &str) -> Result<Self, String> {
        Self::parse(text, Role::Resume)
    }

    /// Reads the value of `--window-harness`. The error says why it is none.
    pub(crate) fn parse_harness(text: &str) -> Result<Self, String> {
        Self::parse(text, Role::Harness)
    }

    fn parse(text: &str, role: Role) -> Result<Self, String> {
        let (Some(window), function) = split_name(text) else {
            let which = if role == Role::Harness { "that is recorded by name" } else { "of --window-at" };
            return Err(format!("it has the form NAME=FUNCTION, and NAME is that of a window {which}"));
        };
        let function = function.trim();
        let pattern = Pattern::parse(function).map_err(|error| format!("{function:?}: {error}"))?;
        Ok(Self(Edge { window: window.to_owned(), role, pattern, text: function.to_owned() }))
    }
}

/// `NAME=` at the front. A name has letters, digits, `_` and `-`, and `operator` is none: that is a function of C++.
fn split_name(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, rest)) if is_name(name) => (Some(name), rest),
        _ => (None, text),
    }
}

/// Whether a window can be named so where it is defined.
pub(crate) fn is_name(name: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name != "operator" && name.bytes().all(is_of_names)
}

/// `BEGIN..END`: at ` .. `, or at the only two dots that are no more.
fn split_range(text: &str) -> Result<(&str, &str), String> {
    const FORM: &str = "it has the form BEGIN..END, or BEGIN .. END with blanks where a name holds dots";
    let spaced: Vec<&str> = text.split(" .. ").collect();
    let (begin, end) = match spaced.as_slice() {
        [begin, end] => (*begin, *end),
        [_] => {
            let bytes = text.as_bytes();
            let is_dot = |at: Option<usize>| at.and_then(|at| bytes.get(at)) == Some(&b'.');
            let places: Vec<usize> = (0..bytes.len())
                .filter(|at| is_dot(Some(*at)) && is_dot(Some(at + 1)))
                .filter(|at| !is_dot(at.checked_sub(1)) && !is_dot(Some(at + 2)))
                .collect();
            match places.as_slice() {
                [at] => (text.get(..*at).unwrap_or_default(), text.get(at + 2..).unwrap_or_default()),
                _ => return Err(FORM.to_owned()),
            }
        }
        _ => return Err(FORM.to_owned()),
    };
    let (begin, end) = (begin.trim(), end.trim());
    if begin.is_empty() || end.is_empty() { Err(FORM.to_owned()) } else { Ok((begin, end)) }
}

/// All windows at functions of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definitions {
    pub(crate) edges: Vec<Edge>,
    /// The windows' names, in the order in which they were defined.
    pub(crate) windows: Vec<String>,
    /// The windows that a begin restarts while they are open.
    pub(crate) restarts: Vec<String>,
    /// The functions that tell of loops have to be there.
    pub(crate) needs_loops: bool,
    /// A benchmark of package-benchmark has to run.
    pub(crate) needs_benchmarks: bool,
    /// So do those of CodSpeed's library.
    pub(crate) needs_brackets: bool,
}

impl Definitions {
    /// Adds edges of a window.
    pub(crate) fn add<'e>(&mut self, edges: impl IntoIterator<Item = &'e Edge>) {
        for edge in edges {
            if !self.windows.contains(&edge.window) {
                self.windows.push(edge.window.clone());
            }
            self.edges.push(edge.clone());
        }
    }

    /// Adds functions that do something to windows which are defined elsewhere: see [`check`](Self::check).
    pub(crate) fn add_pauses<'e>(&mut self, edges: impl IntoIterator<Item = &'e Edge>) {
        self.edges.extend(edges.into_iter().cloned());
    }

    /// Whether all that is paused and resumed is a window between two functions, and all else of a window that is recorded,
    /// `asked_for` by name or defined here. The error names what is not.
    pub(crate) fn check(&self, asked_for: &[OsString]) -> Result<(), String> {
        let is_recorded = |name: &String| {
            self.windows.contains(name) || asked_for.iter().any(|asked| asked == name.as_str())
        };
        let unknown = |option: &str, value: &str, name: &str| {
            format!(
                "--window-{option} {value}: no window of that name is recorded\n\
                 define it, as --window-at '{name}=BEGIN .. END', or name one that the program opens by --window"
            )
        };
        let mut harness = self.edges.iter().filter(|edge| edge.role == Role::Harness);
        if let Some(edge) = harness.find(|edge| !is_recorded(&edge.window)) {
            return Err(unknown("harness", &format!("{}={}", edge.window, edge.text), &edge.window));
        }
        if let Some(name) = self.restarts.iter().find(|name| !is_recorded(name)) {
            return Err(unknown("restart", name, name));
        }
        let is_in = |edge: &Edge| edge.role == Role::In && self.restarts.contains(&edge.window);
        if let Some(edge) = self.edges.iter().find(|edge| is_in(edge)) {
            return Err(format!(
                "--window-restart {}: what runs beneath a function has no begin\ndefine it by --window-at",
                edge.window
            ));
        }
        if self.restarts.len() > RESTART_LIMIT as usize {
            return Err(format!(
                "--window-restart: {} windows, and {RESTART_LIMIT} is the most\nrecord the others in another run",
                self.restarts.len()
            ));
        }
        let opens = |edge: &Edge| {
            self.edges.iter().any(|other| other.role == Role::Begin && other.window == edge.window)
        };
        if let Some(edge) = self.edges.iter().filter(|edge| edge.role == Role::In).find(|edge| opens(edge)) {
            return Err(format!(
                "--window-in {}={}: --window-at defines a window of that name, too\ngive one of them another name",
                edge.window, edge.text
            ));
        }
        for edge in self.edges.iter().filter(|edge| matches!(edge.role, Role::Pause | Role::Resume)) {
            let opens = |other: &Edge| other.role == Role::Begin && other.window == edge.window;
            if !self.edges.iter().any(opens) {
                return Err(format!(
                    "--window-{} {}={}: no window of that name is defined by --window-at\n\
                     define it, as --window-at '{}=BEGIN .. END'",
                    edge.role, edge.window, edge.text, edge.window
                ));
            }
        }
        Ok(())
    }

    /// Whether there is room for the window of package-benchmark's measurements, which can be restarted as well.
    pub(crate) fn check_room(&self) -> Result<(), Failure> {
        if !self.has_benchmarks() || self.restarts.len() < RESTART_LIMIT as usize {
            return Ok(());
        }
        Err(Failure::recorder(format!(
            "--window-restart: {} windows and that of package-benchmark's, and {RESTART_LIMIT} is the most\n\
             record the others in another run, with --harness none",
            self.restarts.len()
        )))
    }

    /// How a window is defined, in phrases: what matters for comparing it with another build's. Its name is as profiles have it.
    pub(crate) fn phrases(&self, window: &str) -> BTreeSet<String> {
        let is_it = |name: &str| escape_path(name.as_bytes()) == window;
        let is_known = |edge: &&Edge| !matches!(edge.role, Role::Benchmark(_));
        let of_window = self.edges.iter().filter(is_known).filter(|edge| is_it(&edge.window));
        let mut phrases: BTreeSet<String> =
            of_window.map(|edge| format!("{} {}", edge.role, escape_path(edge.text.as_bytes()))).collect();
        if self.restarts.iter().any(|name| is_it(name)) {
            phrases.insert("restart".to_owned());
        }
        phrases
    }

    /// Adds names of windows that a begin restarts.
    pub(crate) fn add_restarts(&mut self, names: &[String]) {
        for name in names {
            if !self.restarts.contains(name) {
                self.restarts.push(name.clone());
            }
        }
    }

    /// Whether package-benchmark's measurements are windows. One of these can be restarted, too.
    pub(crate) fn has_benchmarks(&self) -> bool {
        self.edges.iter().any(|edge| matches!(edge.role, Role::Benchmark(_)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Loop(step) => return step.fmt(formatter),
            Self::Benchmark(part) => return part.fmt(formatter),
            Self::Bracket(step) => return step.fmt(formatter),
            Self::Begin => "begin",
            Self::End => "end",
            Self::Resume => "resume",
            Self::Pause => "pause",
            Self::In => "function",
            Self::Harness => "harness",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Result<(String, String, String), String> {
        WindowAt::parse(text).map(|at| (at.begin.window, at.begin.text, at.end.text))
    }

    #[track_caller]
    fn is(text: &str, name: &str, begin: &str, end: &str) {
        assert_eq!(at(text), Ok((name.to_owned(), begin.to_owned(), end.to_owned())), "{text}");
    }

    #[test]
    fn names_and_edges() {
        is("w=a..b", "w", "a", "b");
        is("a..b", "a..b", "a", "b");
        is("my-w_1=n::a .. n::b", "my-w_1", "n::a", "n::b");
        is("f(int, ...) .. g(...)", "f(int, ...) .. g(...)", "f(int, ...)", "g(...)");
        is("w=f(int, ...)..g", "w", "f(int, ...)", "g");
        is("operator=..b", "operator=..b", "operator=", "b");
        is("A::operator==..b", "A::operator==..b", "A::operator==", "b");
        is("w=src/a.c:3..src/a.c:9", "w", "src/a.c:3", "src/a.c:9");
    }

    #[test]
    fn functions_beneath_which_a_window_is() {
        let of = |text: &str| WindowIn::parse(text).map(|WindowIn(edge)| (edge.window, edge.text));
        assert_eq!(of("w=a::b"), Ok(("w".to_owned(), "a::b".to_owned())));
        assert_eq!(of("operator=="), Ok(("operator==".to_owned(), "operator==".to_owned())));
        assert_eq!(of("A::operator="), Ok(("A::operator=".to_owned(), "A::operator=".to_owned())));
        assert!(of("").is_err() && of("w=").is_err() && of("w=re:(").is_err());
    }

    #[test]
    fn pauses_are_of_windows_between_two_functions() {
        let of =
            |text: &str| WindowPause::parse_pause(text).map(|WindowPause(edge)| (edge.window, edge.text));
        assert_eq!(of("w=a::b"), Ok(("w".to_owned(), "a::b".to_owned())));
        assert!(of("a::b").is_err() && of("operator=").is_err() && of("w=").is_err());
        let mut definitions = Definitions::default();
        let at = WindowAt::parse("w=a..b").unwrap();
        definitions.add([&at.begin, &at.end]);
        definitions.add_pauses([&WindowPause::parse_resume("w=c").unwrap().0]);
        assert_eq!(definitions.check(&[]), Ok(()));
        definitions.add([&WindowIn::parse("in=d").unwrap().0]);
        definitions.add_pauses([&WindowPause::parse_pause("in=c").unwrap().0]);
        assert!(definitions.check(&[]).is_err_and(|error| error.contains("--window-pause in=c")));
    }

    #[test]
    fn restarts_and_harnesses_are_of_windows_that_are_recorded() {
        let mut definitions = Definitions::default();
        let WindowPause(harness) = WindowPause::parse_harness("w=a::run").unwrap();
        definitions.add_pauses([&harness]);
        definitions.restarts.push("w".to_owned());
        assert_eq!(definitions.check(&["w".into()]), Ok(()));
        assert!(
            definitions.check(&[]).is_err_and(|error| error.contains("--window-harness w=a::run: no window"))
        );
        definitions.add([&WindowIn::parse("w=d").unwrap().0]);
        assert!(definitions.check(&[]).is_err_and(|error| error.contains("has no begin")));
        definitions.edges.clear();
        definitions.restarts = (0..17).map(|number| format!("w{number}")).collect();
        let names: Vec<OsString> = definitions.restarts.iter().map(OsString::from).collect();
        assert!(definitions.check(&names).is_err_and(|error| error.contains("16 is the most")));
        assert!(WindowPause::parse_harness("a::run").is_err());
    }

    #[test]
    fn a_window_is_of_one_kind() {
        let mut definitions = Definitions::default();
        let at = WindowAt::parse("w=a..b").unwrap();
        definitions.add([&at.begin, &at.end, &WindowIn::parse("w=d").unwrap().0]);
        assert!(definitions.check(&[]).is_err_and(|error| error.contains("--window-in w=d: --window-at")));
    }

    #[test]
    fn what_has_no_two_edges_is_refused() {
        for text in ["", "a", "a..", "..b", "a...b", "a..b..c", "a .. b .. c", "w=", "w=re:(..b"] {
            assert!(at(text).is_err(), "{text}");
        }
    }
}
