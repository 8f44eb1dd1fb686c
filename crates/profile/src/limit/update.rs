//! Numbers into a limits file, and nothing else: comments, order and blanks stay.
//!
//! A limit that is there gets the number that was measured, of a pattern the greatest of its windows. Windows without
//! any limit get a table, in the order of names. With `ratchet` limits only go down, and none is added. Only `max` is
//! written, and `soft_max` where it would be above it: what else is soft, or grows, is somebody's decision.
//!
//! **What was measured keeps to what is written of it**: it breaks no limit, and none could be lower
//! ([`Gate::would_be_lower`]). Where a `min` is in the way nothing is written.

use std::fmt::Write as _;
use std::ops::Range;

use toml_edit::{Document, Item, TableLike};

use super::read::read;
use super::{Amount, Bound, CountRule, Gate, Limits, Metric, Origin, Per, Rate, Rule, Severity};
use crate::Error;
use crate::path_text::escape_path;

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
    /// Whether it is the `soft_max`, which is no higher than `max`.
    pub is_soft: bool,
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
    check_least(&limits, measured)?;
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
                let after = counts(&limits, measured, name, (metric, per)).map(|(_, count)| count).max();
                let (Some(span), Some(before), Some(value)) = (number.and_then(Item::span), before, after)
                else {
                    continue;
                };
                let after = written(value);
                let number = Rate::parse(&after).unwrap_or(value);
                // A number with more decimals than are written may already be nearer.
                let is_nearer = value <= before && number > before;
                if number == before || is_nearer || (how.ratchet && number > before) {
                    continue;
                }
                splices.push((span, after.clone()));
                let edit = Edit {
                    window: name.to_owned(),
                    metric,
                    per,
                    is_soft: false,
                    before: Some(before),
                    after,
                };
                edits.extend(soft(&limits, item, &edit, number, &mut splices));
                edits.push(edit);
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
    let is_there = |edit: &Edit| {
        edit.is_soft || stated(&again, &edit.window, (edit.metric, edit.per)) == Rate::parse(&edit.after)
    };
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

/// The edit of a `soft_max` that would be above the new `max`.
fn soft(
    limits: &Limits,
    item: &Item,
    of_max: &Edit,
    max: Rate,
    splices: &mut Vec<(Range<usize>, String)>,
) -> Option<Edit> {
    let span = item.as_table_like()?.get("soft_max")?.span()?;
    let before = limits.gates.iter().find_map(|gate| match &gate.rule {
        Rule::Count(CountRule { bound: Bound::Max, amount: Amount::Exact(number), .. })
            if gate.severity == Severity::Soft
                && gate.window.text() == of_max.window
                && is(gate, (of_max.metric, of_max.per)) =>
        {
            Some(*number)
        }
        _ => None,
    })?;
    if before <= max {
        return None;
    }
    splices.push((span, of_max.after.clone()));
    Some(Edit { is_soft: true, before: Some(before), ..of_max.clone() })
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
            Amount::Exact(number) => Some(number),
            Amount::Percent(_) => None,
        },
        _ => None,
    }
}

/// A count of the windows for which a pattern is the nearest, with their names.
fn counts<'m>(
    limits: &Limits,
    measured: &'m [Measured],
    pattern: &str,
    what: (Metric, Per),
) -> impl Iterator<Item = (&'m str, Rate)> {
    let is_nearest = move |window: &str| {
        let fitting = limits.gates.iter().filter(|gate| is(gate, what) && gate.window.fits(window));
        let nearest = fitting.rev().max_by_key(|gate| gate.window.nearness());
        nearest.is_some_and(|gate| gate.window.text() == pattern)
    };
    let windows = measured.iter().filter(move |window| is_nearest(&window.window));
    windows.flat_map(move |window| {
        let counts = window.counts.iter().filter(move |(metric, per, _)| (*metric, *per) == what);
        counts.map(|(.., rate)| (window.window.as_str(), *rate))
    })
}

/// A number with as few decimals as say it, at most two: then it is rounded up, so that what was measured passes. Without
/// decimals where it has so many digits that none would be read again.
pub(super) fn written(rate: Rate) -> String {
    let most = if Rate::parse(&rate.rounded_up(DECIMALS)).is_some() { DECIMALS } else { 0 };
    let exact = (0..=most).find(|decimals| rate.has_decimals(*decimals));
    match exact {
        Some(decimals) => rate.rounded(decimals),
        None => rate.rounded_up(most),
    }
}

/// Refuses what a hard `min` is above of: the file would fail of the profile that it was written from.
fn check_least(limits: &Limits, measured: &[Measured]) -> Result<(), Error> {
    for gate in limits.gates.iter().filter(|gate| gate.severity == Severity::Hard) {
        let Rule::Count(CountRule { metric, per, bound: Bound::Min, amount: Amount::Exact(min) }) =
            &gate.rule
        else {
            continue;
        };
        let counts = counts(limits, measured, gate.window.text(), (*metric, *per));
        let below = counts.filter(|(_, count)| count < min).min_by_key(|(_, count)| *count);
        if let Some((window, count)) = below {
            let line = match gate.origin {
                Origin::File { line, .. } => line,
                _ => 1,
            };
            let reason = format!(
                "`min` of {} is above the {} of window `{}`\n\
                 lower it by hand, or see why the program does less; no limit was written",
                metric.key(),
                count.rounded(DECIMALS),
                escape_path(window.as_bytes())
            );
            return Err(Error::Limit { line, reason });
        }
    }
    Ok(())
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
                is_soft: false,
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
                is_soft: false,
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

    /// 77 of 3 iterations is 25.67 as a limit, which is no number that could be lower.
    #[test]
    fn what_was_measured_keeps_to_what_is_written_and_is_not_below_it() {
        for (count, iterations) in [(77, 3), (1, 3), (76, 1), (151, 2), (999_999_999_999_999, 7), (0, 1)] {
            let windows = measured(&[("w", count, iterations)]);
            let (text, _) = update("", &windows, &how(false)).unwrap();
            let gate = &read(&text, "").unwrap().gates[0];
            let rate = Rate::new(count, iterations);
            assert!(number(gate).unwrap() >= rate && !gate.would_be_lower(rate), "{text}");
            assert_eq!(update(&text, &windows, &how(true)).unwrap(), (text.clone(), vec![]), "no circle");
        }
        let looser = "[window.w]\nallocs = 25.68\n";
        assert!(read(looser, "").unwrap().gates[0].would_be_lower(Rate::new(77, 3)));
        let (lower, _) = update(looser, &measured(&[("w", 77, 3)]), &how(true)).unwrap();
        assert_eq!(lower, "[window.w]\nallocs = 25.67\n");
        // Somebody wrote it nearer than it would be written.
        let nearer = "[window.w]\nallocs = 25.6667\n";
        assert!(!read(nearer, "").unwrap().gates[0].would_be_lower(Rate::new(77, 3)));
        assert_eq!(update(nearer, &measured(&[("w", 77, 3)]), &how(false)).unwrap().0, nearer);
    }

    #[test]
    fn a_min_that_would_be_above_the_max_is_in_the_way() {
        let text = "[window.\"p*\"]\n\nallocs = { min = 10, max = 20 }\n";
        let windows = measured(&[("parse", 12, 1), ("print", 8, 1)]);
        for ratchet in [false, true] {
            let error = update(text, &windows, &how(ratchet)).unwrap_err().to_string();
            assert!(error.contains("line 3: `min` of allocs is above the 8.00 of window `print`"), "{error}");
        }
        let (kept, _) = update(text, &measured(&[("parse", 12, 1), ("print", 10, 1)]), &how(false)).unwrap();
        assert_eq!(kept, text.replace("20", "12"));
    }

    #[test]
    fn a_soft_max_comes_down_with_the_max() {
        let text = "[window.b]\nallocs = { soft_max = 9, max = 12 } # two\n";
        let (lower, edits) = update(text, &measured(&[("b", 8, 1)]), &how(true)).unwrap();
        assert_eq!(lower, "[window.b]\nallocs = { soft_max = 8, max = 8 } # two\n");
        assert_eq!(edits.iter().map(|edit| edit.is_soft).collect::<Vec<_>>(), [true, false]);
        let (kept, _) = update(text, &measured(&[("b", 10, 1)]), &how(true)).unwrap();
        assert_eq!(kept, text.replace("12", "10"));
    }
}
