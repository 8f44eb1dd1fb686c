//! A verdict for the log of a GitHub job: a workflow command for each guilty line, then the text for people.
//!
//! ```text
//! ::error file=src/parser.rs,line=118,title=heaptally%3A new-stack::+1.00 allocs/iter (new)%3A Parser::name …
//! ::stop-commands::heaptally-0
//! FAILED: …
//! ::heaptally-0::
//! ```
//!
//! Names are data: they are escaped in commands, and the text stands where commands are not looked for.

use std::collections::HashSet;

use heaptally_profile::check::Verdict;
use heaptally_profile::limit::Origin;

use crate::Options;
use crate::text::check::text;
use crate::verdict::{Level, Statement, statements};

/// GitHub shows so many of a kind and step; the text has all.
const MOST: usize = 10;

/// The verdict. `brief` is as in [`text`].
pub fn check_github(
    verdict: &Verdict<'_>,
    options: &Options,
    is_strict: bool,
    brief: Option<&str>,
) -> String {
    let options = Options { color: false, width: None, ..options.clone() };
    let mut out = String::new();
    let statements = statements(verdict, &options, is_strict);
    let mut marked = HashSet::new();
    for level in [Level::Error, Level::Warning] {
        let of_level = statements.iter().filter(|statement| statement.level == level);
        // A line that breaks several limits is marked once, by the gravest.
        let commands = of_level.flat_map(commands);
        for (_, command) in commands.filter(|(at, _)| at.is_none() || marked.insert(at.clone())).take(MOST) {
            out.push_str(&command);
        }
    }
    let text = text(verdict, &options, is_strict, brief);
    let token = token(&text);
    out.push_str(&format!("::stop-commands::{token}\n{text}::{token}::\n"));
    out
}

type Mark = ((String, u32), Option<String>);

/// A word that does not occur in the text, so that nothing in it makes GitHub look for commands again.
fn token(text: &str) -> String {
    let is_new = |token: &String| !text.contains(token.as_str());
    (0..).map(|number| format!("heaptally-{number}-text")).find(is_new).unwrap_or_default()
}

/// The commands, those of stacks with the line and window that they mark.
fn commands(statement: &Statement) -> Vec<(Option<Mark>, String)> {
    let title = format!("heaptally: {}", statement.rule);
    if statement.sites.is_empty() {
        return vec![(None, command(statement.level, limit(statement), &title, &statement.text()))];
    }
    let of_site = |site: &crate::verdict::Site| {
        let place = site.own.clone().or_else(|| limit(statement));
        let message = format!("{}: {}\n{}", site.amount, site.text(), statement.text());
        let mark = site.own.clone().map(|place| (place, statement.window.clone()));
        (mark, command(statement.level, place, &title, &message))
    };
    statement.sites.iter().map(of_site).collect()
}

/// Where the limit stands.
fn limit(statement: &Statement) -> Option<(String, u32)> {
    match &statement.origin {
        Some(Origin::File { path, line }) => Some((path.to_string(), *line)),
        _ => None,
    }
}

fn command(level: Level, place: Option<(String, u32)>, title: &str, message: &str) -> String {
    let place =
        place.map(|(file, line)| format!("file={},line={line},", property(&file))).unwrap_or_default();
    format!("::{} {place}title={}::{}\n", level.word(), property(title), data(message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_commands() {
        let place = Some(("a,b:c%\n.rs".to_owned(), 3));
        assert_eq!(
            command(Level::Error, place, "t: u", "x\n::error::y%"),
            "::error file=a%2Cb%3Ac%25%0A.rs,line=3,title=t%3A u::x%0A::error::y%25\n"
        );
        assert_eq!(token("a heaptally-0-text::"), "heaptally-1-text");
    }
}
