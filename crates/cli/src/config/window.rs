//! `[[window]]`: a window at functions, with all that is said of it in one place. Each key is an option's.
//!
//! ```toml
//! [[window]]
//! name = "parse"
//! at = "Bench::begin .. Bench::end"      # --window-at 'parse=Bench::begin .. Bench::end'
//! pause = ["Bench::pause"]               # --window-pause parse=Bench::pause
//! resume = ["Bench::resume"]
//! restart = true                         # --window-restart parse
//! harness = "Bench::begin"
//! ```

use std::collections::BTreeSet;

use toml_edit::{ArrayOfTables, Item};

use super::document::{Entry, Given, given};
use super::place::{Place, nearest};
use crate::function::definition::is_name;
use crate::message::quote;

/// The key of these tables.
pub(super) const WINDOW: &str = "window";
/// Keys whose values are functions, and the options that they stand for.
const FUNCTIONS: [(&str, &str); 5] = [
    ("at", "window-at"),
    ("in", "window-in"),
    ("pause", "window-pause"),
    ("resume", "window-resume"),
    ("harness", "window-harness"),
];
/// The key that is a switch, and its option.
const RESTART: (&str, &str) = ("restart", "window-restart");
const NAME: &str = "name";

/// What is wrong: where, what, and what to do.
pub(super) type Fault = (Place, String, String);

/// The options for all windows of the file.
pub(super) fn entries(text: &str, tables: &ArrayOfTables) -> Result<Vec<Entry>, Fault> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |option: &str, value: String, place: Place| match entries
        .iter_mut()
        .find(|entry| entry.key == option)
    {
        Some(Entry { given: Given::Many(values), .. }) => values.push(value),
        _ => entries.push(Entry {
            command: String::new(),
            key: option.to_owned(),
            given: Given::Many(vec![value]),
            place,
        }),
    };
    let mut names = BTreeSet::new();
    for table in tables {
        let of_table = Place::of_span(text, table.span());
        let place_of = |item: &Item| item.span().map_or(of_table, |span| Place::of_span(text, Some(span)));
        let fault = |place: Place, what: &str, next: &str| (place, what.to_owned(), next.to_owned());
        let name_item = table.get(NAME);
        let name = name_item.and_then(Item::as_str).filter(|name| is_name(name)).ok_or_else(|| {
            let what = match name_item.and_then(Item::as_str) {
                Some(name) => format!("{} is no name of a window", quote(name)),
                None => "this window has no name".to_owned(),
            };
            let next = "name = \"…\" has letters, digits, `_` and `-`, and is not `operator`";
            fault(name_item.map_or(of_table, place_of), &what, next)
        })?;
        if !names.insert(name) {
            let what = format!("window {} is defined twice", quote(name));
            return Err(fault(of_table, &what, "put all that is said of it in one [[window]]"));
        }
        let mut is_defined = false;
        for (key, item) in table {
            let place = place_of(item);
            if let Some((_, option)) = FUNCTIONS.iter().find(|(known, _)| *known == key) {
                is_defined |= matches!(key, "at" | "in");
                let functions = match given(item) {
                    Some(Given::One(function)) => vec![function],
                    Some(Given::Many(functions)) => functions,
                    _ => {
                        let what = format!("{} is a function, or a list of some", quote(key));
                        return Err((place, what, format!("write it as --{option} has it, without NAME=")));
                    }
                };
                functions.iter().for_each(|function| add(option, format!("{name}={function}"), place));
            } else if key == RESTART.0 {
                match given(item) {
                    Some(Given::Switch(true)) => add(RESTART.1, name.to_owned(), place),
                    Some(Given::Switch(false)) => {}
                    _ => return Err(fault(place, "`restart` is true or false", "see --window-restart")),
                }
            } else if key != NAME {
                let keys = FUNCTIONS.iter().map(|(key, _)| *key).chain([RESTART.0, NAME]);
                let next = match nearest(key, keys.collect::<BTreeSet<_>>()) {
                    Some(near) => format!("the nearest is {near}"),
                    None => "there are name, at, in, pause, resume, restart and harness".to_owned(),
                };
                let place = table.key(key).and_then(toml_edit::Key::span);
                return Err((
                    place.map_or(of_table, |span| Place::of_span(text, Some(span))),
                    format!("unknown key {} in [[{WINDOW}]]", quote(key)),
                    next,
                ));
            }
        }
        if let (Some(_), Some(second)) = (table.get("at"), table.get("in")) {
            let what = format!("window {} has both `at` and `in`", quote(name));
            return Err(fault(place_of(second), &what, "keep one, or give the other a window of its own"));
        }
        if !is_defined {
            let what = format!("nothing says where window {} is", quote(name));
            return Err(fault(of_table, &what, "write at = \"BEGIN .. END\", or in = \"FUNCTION\""));
        }
    }
    Ok(entries)
}
