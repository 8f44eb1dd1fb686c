//! How a window at functions is defined, by options.
//!
//! ```text
//! --window-in [NAME=]FUNCTION
//! --window-at [NAME=]BEGIN..END       NAME=a .. b      with blanks where a name holds dots
//! --window-pause NAME=FUNCTION        --window-resume NAME=FUNCTION      of a window of --window-at
//! ```

use std::fmt;

use super::pattern::Pattern;

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

/// `--window-pause` and `--window-resume`.
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

    fn parse(text: &str, role: Role) -> Result<Self, String> {
        let (Some(window), function) = split_name(text) else {
            return Err(
                "it has the form NAME=FUNCTION, and NAME is that of a window of --window-at".to_owned()
            );
        };
        let function = function.trim();
        let pattern = Pattern::parse(function).map_err(|error| format!("{function:?}: {error}"))?;
        Ok(Self(Edge { window: window.to_owned(), role, pattern, text: function.to_owned() }))
    }
}

/// `NAME=` at the front. A name has letters, digits, `_` and `-`, and `operator` is none: that is a function of C++.
fn split_name(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, rest))
            if !name.is_empty()
                && name != "operator"
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') =>
        {
            (Some(name), rest)
        }
        _ => (None, text),
    }
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

    /// Adds places where windows are paused and resumed, which are defined elsewhere: see [`check`](Self::check).
    pub(crate) fn add_pauses<'e>(&mut self, edges: impl IntoIterator<Item = &'e Edge>) {
        self.edges.extend(edges.into_iter().cloned());
    }

    /// Whether all that is paused and resumed is a window between two functions. The error names one that is not.
    pub(crate) fn check(&self) -> Result<(), String> {
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

    pub(crate) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Begin => "begin",
            Self::End => "end",
            Self::Resume => "resume",
            Self::Pause => "pause",
            Self::In => "function",
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
        assert_eq!(definitions.check(), Ok(()));
        definitions.add([&WindowIn::parse("in=d").unwrap().0]);
        definitions.add_pauses([&WindowPause::parse_pause("in=c").unwrap().0]);
        assert!(definitions.check().is_err_and(|error| error.contains("--window-pause in=c")));
    }

    #[test]
    fn what_has_no_two_edges_is_refused() {
        for text in ["", "a", "a..", "..b", "a...b", "a..b..c", "a .. b .. c", "w=", "w=re:(..b"] {
            assert!(at(text).is_err(), "{text}");
        }
    }
}
