//! Numbers into a limits file, and nothing else: comments, order and blanks stay.
//!
//! A limit that is there gets the number that was measured, of a pattern the greatest of its windows. Windows without
//! any limit get a table, in the order of names. With `ratchet` limits only go down, and none is added. Only `max` is
//! written: what grows or is soft is somebody's decision.

use std::fmt::Write as _;
use std::ops::Range;

use toml_edit::{Document, Item, TableLike};

use super::read::read;
use super::{Bound, Gate, Limits, Metric, Per, Rate, Rule, Severity};
use crate::Error;

/// What stands at the top of a new file.
const HEAD: &str =
    "# What each window may allocate per iteration; `heaptally check --limits` holds it to that.\n";
/// Most decimals of a number that is written, where fewer do not say it exactly.
const DECIMALS: usize = 2;

/// The counts of a window.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its name.
    pub window: String,
    /// Its counts; those that are not known are not there.
    pub counts: Vec<(Metric, Per, Rate)>,
}

/// How a file is updated.
#[derive(Clone, Debug)]
pub struct Update {
    /// Limits only go down, and none is added.
    pub ratchet: bool,
    /// What windows without any limit get one for.
    pub metrics: Vec<Metric>,
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The window or pattern.
    pub window: String,
    /// The count.
    pub metric: Metric,
    /// Of what.
    pub per: Per,
    /// The number before; `None`: there was none.
    pub before: Option<Rate>,
    /// The number as it is written now.
    pub after: String,
}

/// The text with the numbers that were measured, and what that changed.
///
/// # Errors
/// [`Error::Limit`] when the text is no limits file, or a window cannot be added to it.
pub fn update(text: &str, measured: &[Measured], how: &Update) -> Result<(String, Vec<Edit>), Error> {
    let limits = read(text, "")?;
    let document = Document::parse(text)
        .map_err(|error| Error::Limit { line: 1, reason: error.message().to_owned() })?;
    let root = document.as_table();
    let windows = root.get("window").and_then(Item::as_table_like);
    let mut edits = Vec::new();
    let mut splices: Vec<(Range<usize>, String)> = Vec::new();
    for (name, item) in windows.into_iter().flat_map(TableLike::iter) {
        let Some(table) = item.as_table_like() else { continue };
        let total = table.get("total").and_then(Item::as_table_like);
        for (table, per) in [(Some(table), Per::Iteration), (total, Per::Run)] {
            for metric in Metric::ALL {
                let Some(item) = table.and_then(|table| table.get(metric.key())) else { continue };
                let number = item.as_table_like().map_or(Some(item), |table| table.get("max"));
                let before = stated(&limits, name, (metric, per));
                let after = greatest(&limits, measured, name, (metric, per));
                let (Some(span), Some(before), Some(value)) = (number.and_then(Item::span), before, after)
                else {
                    continue;
                };
                let after = written(value);
                let value = Rate::parse(&after).unwrap_or(value);
                if value == before || (how.ratchet && value > before) {
                    continue;
                }
                splices.push((span, after.clone()));
                edits.push(Edit { window: name.to_owned(), metric, per, before: Some(before), after });
            }
        }
    }
    if !how.ratchet {
        add(text, &limits, windows, measured, how, &mut splices, &mut edits);
    }
    let text = spliced(text, splices);
    // What is written has to be read again as it was meant.
    let again = read(&text, "").map_err(|_| Error::Limit {
        line: 1,
        reason: "a window cannot be added to a table in one line\n\
                 write them as [window.\"NAME\"], or add the window by hand"
            .to_owned(),
    })?;
    let is_there =
        |edit: &Edit| stated(&again, &edit.window, (edit.metric, edit.per)) == Rate::parse(&edit.after);
    match edits.iter().find(|edit| !is_there(edit)) {
        Some(edit) => Err(Error::Limit {
            line: 1,
            reason: format!(
                "the limit of `{}` cannot be written\nwrite it by hand: {}",
                edit.window, edit.after
            ),
        }),
        None => Ok((text, edits)),
    }
}

/// The number that a hard `max` of exactly this pattern states.
fn stated(limits: &Limits, pattern: &str, what: (Metric, Per)) -> Option<Rate> {
    limits
        .gates
        .iter()
        .find_map(|gate| number(gate).filter(|_| gate.window.text() == pattern && is(gate, what)))
}

fn is(gate: &Gate, what: (Metric, Per)) -> bool {
    gate.rule.group() == Some(what)
}

fn number(gate: &Gate) -> Option<Rate> {
    match &gate.rule {
        Rule::Count(rule) if rule.bound == Bound::Max && gate.severity == Severity::Hard => match rule.amount
        {
            super::Amount::Exact(number) => Some(number),
            super::Amount::Percent(_) => None,
        },
        _ => None,
    }
}

/// The greatest count of the windows for which a pattern is the nearest.
fn greatest(limits: &Limits, measured: &[Measured], pattern: &str, what: (Metric, Per)) -> Option<Rate> {
    let is_nearest = |window: &str| {
        let fitting = limits.gates.iter().filter(|gate| is(gate, what) && gate.window.fits(window));
        let nearest = fitting.rev().max_by_key(|gate| gate.window.nearness());
        nearest.is_some_and(|gate| gate.window.text() == pattern)
    };
    let windows = measured.iter().filter(|window| is_nearest(&window.window));
    let counts = windows.flat_map(|window| &window.counts).filter(|(metric, per, _)| (*metric, *per) == what);
    counts.map(|(.., rate)| *rate).max()
}

/// A number with as few decimals as say it, at most two: then it is rounded up, so that what was measured passes.
fn written(rate: Rate) -> String {
    let exact = (0..=DECIMALS).find(|decimals| rate.has_decimals(*decimals));
    match exact {
        Some(decimals) => rate.rounded(decimals),
        None => rate.rounded_up(DECIMALS),
    }
}

/// Tables for windows that no limit is for.
fn add(
    text: &str,
    limits: &Limits,
    windows: Option<&dyn TableLike>,
    measured: &[Measured],
    how: &Update,
    splices: &mut Vec<(Range<usize>, String)>,
    edits: &mut Vec<Edit>,
) {
    let mut missing: Vec<&Measured> =
        measured.iter().filter(|of| !limits.gates.iter().any(|gate| gate.window.fits(&of.window))).collect();
    missing.sort_by(|a, b| a.window.cmp(&b.window));
    missing.dedup_by(|a, b| a.window == b.window);
    if text.trim().is_empty() && !missing.is_empty() {
        splices.push((0..0, HEAD.to_owned()));
    }
    // Where tables of windows begin, with their names.
    let heads: Vec<(&str, usize)> = windows
        .into_iter()
        .flat_map(TableLike::iter)
        .filter_map(|(name, item)| Some((name, item.as_table().and_then(toml_edit::Table::span)?.start)))
        .collect();
    for of in missing {
        let mut table = format!("[window.{}]\n", key(&of.window));
        for metric in &how.metrics {
            let what = (*metric, Per::Iteration);
            let found = of.counts.iter().find(|(metric, per, _)| (*metric, *per) == what);
            let Some((.., rate)) = found else { continue };
            let after = written(*rate);
            // Writing to a String does not fail.
            let _ = writeln!(table, "{} = {after}", metric.key());
            edits.push(Edit {
                window: of.window.clone(),
                metric: *metric,
                per: Per::Iteration,
                before: None,
                after,
            });
        }
        let behind = heads.iter().filter(|(name, _)| *name > of.window.as_str()).map(|(_, at)| *at).min();
        match behind {
            Some(at) => splices.push((with_comment(text, at), format!("{table}\n"))),
            None => {
                let before = if text.ends_with('\n') || text.is_empty() { "\n" } else { "\n\n" };
                splices.push((text.len()..text.len(), format!("{before}{table}")));
            }
        }
    }
}

/// Where the comment begins that stands directly above a line.
fn with_comment(text: &str, at: usize) -> Range<usize> {
    let mut start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    while let Some(before) = text.get(..start).and_then(|before| before.strip_suffix('\n')) {
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        if !before.get(line..).is_some_and(|line| line.trim_start().starts_with('#')) {
            break;
        }
        start = line;
    }
    start..start
}

/// A key, in quotes where it has to be.
fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_bare) {
        return name.to_owned();
    }
    let mut quoted = String::from("\"");
    for character in name.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// The text with its parts exchanged, which do not overlap. Of several at one place the first comes first.
pub(super) fn spliced(text: &str, mut splices: Vec<(Range<usize>, String)>) -> String {
    splices.sort_by_key(|(span, _)| span.start);
    let mut out = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for (span, new) in splices {
        out.push_str(text.get(at..span.start).unwrap_or_default());
        out.push_str(&new);
        at = span.end.max(at);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(windows: &[(&str, u64, u64)]) -> Vec<Measured> {
        let of = |&(window, allocs, iterations): &(&str, u64, u64)| Measured {
            window: window.into(),
            counts: vec![
                (Metric::Allocs, Per::Iteration, Rate::new(allocs, iterations)),
                (Metric::Allocs, Per::Run, Rate::new(allocs, 1)),
                (Metric::Bytes, Per::Iteration, Rate::new(8 * allocs, iterations)),
            ],
        };
        windows.iter().map(of).collect()
    }

    fn how(ratchet: bool) -> Update {
        Update { ratchet, metrics: vec![Metric::Allocs] }
    }

    const FILE: &str = "# reviewed\n[window.b] # of Bea\nallocs = 10   # tight\nbytes = { max = 100, soft_grow = 1 }\n\n# patterns\n[window.\"p*\"]\ntotal.allocs = 500\nallocs.soft_max = 3\n\n[[ignore]]\nstack = \"x\"\nreason = \"y\"\nuntil = 2027-01-01\n";

    #[test]
    fn a_new_file_has_a_table_for_each_window_in_order() {
        let (text, edits) =
            update("", &measured(&[("z", 3, 1), ("look up", 1, 3), ("a\"b", 150, 100)]), &how(false))
                .unwrap();
        assert_eq!(
            text,
            format!(
                "{HEAD}\n[window.\"a\\\"b\"]\nallocs = 1.5\n\n[window.\"look up\"]\nallocs = 0.34\n\n[window.z]\nallocs = 3\n"
            )
        );
        assert_eq!(edits.len(), 3);
        let again =
            update(&text, &measured(&[("z", 3, 1), ("look up", 1, 3), ("a\"b", 150, 100)]), &how(false))
                .unwrap();
        assert_eq!(again, (text, vec![]));
    }

    #[test]
    fn only_numbers_change() {
        let windows = measured(&[("b", 12, 1), ("parse", 400, 1), ("print", 300, 1)]);
        let (text, edits) = update(FILE, &windows, &how(false)).unwrap();
        let expected = FILE
            .replace("allocs = 10 ", "allocs = 12 ")
            .replace("max = 100", "max = 96")
            .replace("500", "400");
        assert_eq!(text, expected);
        assert_eq!(edits.len(), 3);
    }

    #[test]
    fn a_ratchet_only_goes_down() {
        let windows = measured(&[("b", 12, 1), ("parse", 400, 1), ("new", 1, 1)]);
        let (text, edits) = update(FILE, &windows, &how(true)).unwrap();
        assert_eq!(text, FILE.replace("max = 100", "max = 96").replace("500", "400"));
        assert_eq!(
            edits[0],
            Edit {
                window: "b".into(),
                metric: Metric::Bytes,
                per: Per::Iteration,
                before: Some(Rate::new(100, 1)),
                after: "96".into()
            }
        );
    }

    #[test]
    fn windows_are_added_where_they_belong() {
        let (text, _) =
            update(FILE, &measured(&[("c", 1, 1), ("a", 2, 1), ("z", 3, 1)]), &how(false)).unwrap();
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} is not in {text}"));
        assert!(at("[window.a]") < at("# reviewed"));
        assert!(at("[window.b]") < at("[window.c]") && at("[window.c]") < at("# patterns"));
        assert!(at("[[ignore]]") < at("[window.z]"));
        assert!(text.contains("allocs = 10   # tight"));
    }

    #[test]
    fn what_cannot_be_added_is_said() {
        let text = "window = { b = { allocs = 1 } }\n";
        let error = update(text, &measured(&[("c", 1, 1)]), &how(false)).unwrap_err();
        assert!(error.to_string().contains("by hand"), "{error}");
        let (lower, _) =
            update("window = { b = { allocs = 9 } }\n", &measured(&[("b", 1, 1)]), &how(true)).unwrap();
        assert_eq!(lower, text);
    }
}
