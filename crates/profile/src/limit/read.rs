//! Limits out of TOML. Whatever is not understood is an error that names its line.

use std::ops::Range;
use std::sync::Arc;

use regex::Regex;
use toml_edit::{Document, Item, Key, TableLike, Value};

use super::{
    Amount, Bound, CountRule, Date, Gate, Ignore, Limits, Metric, Origin, Pattern, Per, Rate, Rule, Severity,
    StackChange, StackRule, nearest,
};
use crate::Error;

/// What a table of a count knows.
const BOUNDS: [(&str, Bound, Severity); 8] = [
    ("max", Bound::Max, Severity::Hard),
    ("min", Bound::Min, Severity::Hard),
    ("grow", Bound::Grow, Severity::Hard),
    ("shrink", Bound::Shrink, Severity::Hard),
    ("soft_max", Bound::Max, Severity::Soft),
    ("soft_min", Bound::Min, Severity::Soft),
    ("soft_grow", Bound::Grow, Severity::Soft),
    ("soft_shrink", Bound::Shrink, Severity::Soft),
];
/// What `stacks` knows.
const STACKS: [&str; 8] =
    ["new", "renamed", "grow", "soft_grow", "grow_bytes", "soft_grow_bytes", "under", "root"];
const IGNORE: [&str; 4] = ["window", "stack", "reason", "until"];

/// Reads limits. `path` is only put into their [`Origin`].
///
/// # Errors
/// [`Error::Limit`] for what is no TOML or not understood.
pub fn read(text: &str, path: &str) -> Result<Limits, Error> {
    let document = Document::parse(text).map_err(|error| {
        let line = line(text, error.span());
        Error::Limit { line, reason: error.message().to_owned() }
    })?;
    let reader = Reader { text, path: path.into() };
    reader.document(document.as_table())
}

struct Reader<'t> {
    text: &'t str,
    path: Arc<str>,
}

/// The line in which a part of the text begins, from 1.
fn line(text: &str, span: Option<Range<usize>>) -> u32 {
    let before = span.and_then(|span| text.as_bytes().get(..span.start)).unwrap_or_default();
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1)
}

type Entry<'i> = (&'i Key, &'i Item);

/// What a value is, with its article.
fn kind(item: &Item) -> String {
    let name = item.type_name();
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {name}")
}

impl Reader<'_> {
    fn error<T>(&self, span: Option<Range<usize>>, reason: impl Into<String>) -> Result<T, Error> {
        Err(Error::Limit { line: line(self.text, span), reason: reason.into() })
    }

    fn wrong<T>(&self, (key, item): Entry<'_>, wanted: &str) -> Result<T, Error> {
        let found = kind(item);
        self.error(item.span().or(key.span()), format!("`{}` is {found}\nit takes {wanted}", key.get()))
    }

    fn unknown<T>(&self, key: &Key, known: &[&str]) -> Result<T, Error> {
        let advice = match nearest(key.get(), known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", known.join(", ")),
        };
        self.error(key.span(), format!("unknown key `{}`\n{advice}", key.get()))
    }

    fn origin(&self, key: &Key) -> Origin {
        Origin::File { path: Arc::clone(&self.path), line: line(self.text, key.span()) }
    }

    fn table<'i>(&self, entry: Entry<'i>, wanted: &str) -> Result<&'i dyn TableLike, Error> {
        match entry.1.as_table_like() {
            Some(table) => Ok(table),
            None => self.wrong(entry, wanted),
        }
    }

    fn document(&self, root: &dyn TableLike) -> Result<Limits, Error> {
        let mut limits = Limits::default();
        for entry in entries(root) {
            match entry.0.get() {
                "window" => {
                    let windows = self.table(entry, "tables: [window.\"NAME\"]")?;
                    for window in entries(windows) {
                        self.window(window, &mut limits)?;
                    }
                }
                "measurement" => self.measurement(self.table(entry, "a table")?, &mut limits)?,
                "ignore" => self.ignores(entry, &mut limits)?,
                _ => return self.unknown(entry.0, &["window", "measurement", "ignore"]),
            }
        }
        Ok(limits)
    }

    fn window(&self, entry: Entry<'_>, limits: &mut Limits) -> Result<(), Error> {
        let pattern = Pattern::Glob(entry.0.get().to_owned());
        for inner in entries(self.table(entry, "a table of limits, such as allocs = 75")?) {
            match inner.0.get() {
                "total" => {
                    for count in entries(self.table(inner, "a table of limits, such as allocs = 75_000")?) {
                        let Some(metric) = Metric::of_key(count.0.get()) else {
                            return self.unknown(count.0, &Metric::ALL.map(Metric::key));
                        };
                        self.count(count, &pattern, metric, Per::Run, limits)?;
                    }
                }
                "stacks" => self.stacks(inner, &pattern, limits)?,
                "unstable" => match inner.1.as_bool() {
                    Some(answer) => limits.unstable.push((pattern.clone(), answer)),
                    None => return self.wrong(inner, "true or false"),
                },
                key => match Metric::of_key(key) {
                    Some(metric) => self.count(inner, &pattern, metric, Per::Iteration, limits)?,
                    None => {
                        let metrics = Metric::ALL.map(Metric::key);
                        let known = [&metrics[..], &["total", "stacks", "unstable"]].concat();
                        return self.unknown(inner.0, &known);
                    }
                },
            }
        }
        Ok(())
    }

    fn count(
        &self,
        entry: Entry<'_>,
        pattern: &Pattern,
        metric: Metric,
        per: Per,
        limits: &mut Limits,
    ) -> Result<(), Error> {
        let mut add = |key: &Key, bound, amount, severity| {
            let rule = Rule::Count(CountRule { metric, per, bound, amount });
            let (window, origin) = (pattern.clone(), self.origin(key));
            limits.gates.push(Gate { window, origin, rule, severity, stated: None });
        };
        let Some(table) = entry.1.as_table_like() else {
            add(entry.0, Bound::Max, Amount::Exact(self.number(entry)?), Severity::Hard);
            return Ok(());
        };
        let mut bounds: Vec<(Bound, Severity, Entry<'_>, Rate)> = Vec::new();
        for inner in entries(table) {
            let Some((_, bound, severity)) = BOUNDS.iter().find(|(key, ..)| *key == inner.0.get()) else {
                return self.unknown(inner.0, &BOUNDS.map(|(key, ..)| key));
            };
            let amount = match bound {
                Bound::Max | Bound::Min => Amount::Exact(self.number(inner)?),
                Bound::Grow | Bound::Shrink => self.amount(inner)?,
            };
            add(inner.0, *bound, amount, *severity);
            if let (Amount::Exact(number), Bound::Max | Bound::Min) = (amount, bound) {
                bounds.push((*bound, *severity, inner, number));
            }
        }
        self.check_order(&bounds)
    }

    /// Refuses a `min` or a `soft_max` above `max`: nothing keeps to the one, and the other warns of nothing.
    fn check_order(&self, bounds: &[(Bound, Severity, Entry<'_>, Rate)]) -> Result<(), Error> {
        let of = |wanted: (Bound, Severity)| {
            bounds.iter().find(|(bound, severity, ..)| (*bound, *severity) == wanted)
        };
        let Some((.., max)) = of((Bound::Max, Severity::Hard)) else { return Ok(()) };
        for (kind, why) in [
            ((Bound::Min, Severity::Hard), "no count keeps to both"),
            ((Bound::Max, Severity::Soft), "what it would warn of fails already"),
        ] {
            if let Some((.., (key, item), number)) = of(kind)
                && number > max
            {
                let key_name = key.get();
                let reason =
                    format!("`{key_name}` is above `max`: {why}\nlower `{key_name}`, or raise `max`");
                return self.error(item.span().or(key.span()), reason);
            }
        }
        Ok(())
    }

    /// A number as it is written: the digits, not what a floating-point number makes of them.
    fn number(&self, entry: Entry<'_>) -> Result<Rate, Error> {
        match self.written(entry.1).as_deref().and_then(Rate::parse) {
            Some(number) => Ok(number),
            None => self.wrong_number(entry, "a number such as 75 or 0.3"),
        }
    }

    fn amount(&self, entry: Entry<'_>) -> Result<Amount, Error> {
        match self.written(entry.1).as_deref().and_then(Amount::parse) {
            Some(amount) => Ok(amount),
            None => self.wrong_number(entry, "a number such as 1, or percent such as \"10 %\""),
        }
    }

    fn wrong_number<T>(&self, entry: Entry<'_>, wanted: &str) -> Result<T, Error> {
        let written = self.written(entry.1).unwrap_or_else(|| kind(entry.1));
        let reason = format!(
            "`{}` is {written}\nit takes {wanted}: digits alone, at most 15, of which 9 behind the point",
            entry.0.get()
        );
        self.error(entry.1.span().or(entry.0.span()), reason)
    }

    /// A number as it is written, or the text of a string.
    fn written(&self, item: &Item) -> Option<String> {
        let value = item.as_value()?;
        let raw = value.span().and_then(|span| self.text.get(span)).map(|text| text.trim().to_owned());
        match value {
            Value::String(text) => Some(text.value().trim().to_owned()),
            // 0x4b is a number too, and 4_114 is read with its lines.
            Value::Integer(number) => {
                raw.filter(|text| Rate::parse(text).is_some()).or_else(|| Some(number.value().to_string()))
            }
            Value::Float(_) => raw,
            _ => None,
        }
    }

    fn stacks(&self, entry: Entry<'_>, pattern: &Pattern, limits: &mut Limits) -> Result<(), Error> {
        let table = self.table(entry, "a table, such as { new = \"fail\", grow = 0 }")?;
        let (mut under, mut root) = (Vec::new(), Vec::new());
        let mut rules = Vec::new();
        for inner in entries(table) {
            let (key, soft) = match inner.0.get().strip_prefix("soft_") {
                Some(key) => (key, Severity::Soft),
                None => (inner.0.get(), Severity::Hard),
            };
            match (key, soft) {
                ("grow", _) => {
                    rules.push((inner.0, StackChange::Grow(Metric::Allocs, self.amount(inner)?), soft))
                }
                ("grow_bytes", _) => {
                    rules.push((inner.0, StackChange::Grow(Metric::Bytes, self.amount(inner)?), soft));
                }
                ("new" | "renamed", Severity::Hard) => {
                    let severity = match inner.1.as_str() {
                        Some("fail") => Severity::Hard,
                        Some("warn") => Severity::Soft,
                        Some("pass") => Severity::Off,
                        _ => return self.wrong(inner, "\"fail\", \"warn\" or \"pass\""),
                    };
                    let what = if key == "new" { StackChange::New } else { StackChange::Renamed };
                    rules.push((inner.0, what, severity));
                }
                ("under", Severity::Hard) => under = self.patterns(inner)?,
                ("root", Severity::Hard) => root = self.patterns(inner)?,
                _ => return self.unknown(inner.0, &STACKS),
            }
        }
        // What is taken for renamed may be new: that is said unless somebody decided otherwise.
        let new =
            rules.iter().find(|(_, what, severity)| *what == StackChange::New && *severity != Severity::Off);
        let has_renamed = rules.iter().any(|(_, what, _)| *what == StackChange::Renamed);
        if let Some((key, ..)) = new.filter(|_| !has_renamed) {
            rules.push((*key, StackChange::Renamed, Severity::Soft));
        }
        for (key, what, severity) in rules {
            let rule = Rule::Stack(StackRule { what, under: under.clone(), root: root.clone() });
            let (window, origin) = (pattern.clone(), self.origin(key));
            limits.gates.push(Gate { window, origin, rule, severity, stated: None });
        }
        Ok(())
    }

    fn patterns(&self, entry: Entry<'_>) -> Result<Vec<Regex>, Error> {
        let wanted = "a pattern, or a list of patterns";
        let texts: Vec<&str> = match entry.1.as_value() {
            Some(Value::String(text)) => vec![text.value().as_str()],
            Some(Value::Array(list)) => match list.iter().map(Value::as_str).collect() {
                Some(texts) => texts,
                None => return self.wrong(entry, wanted),
            },
            _ => return self.wrong(entry, wanted),
        };
        if texts.is_empty() {
            return self.error(entry.0.span(), format!("`{}` is empty\nit takes {wanted}", entry.0.get()));
        }
        let pattern = |text: &&str| {
            Regex::new(text).or_else(|error| {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default();
                self.error(entry.1.span(), format!("`{text}` is no regular expression: {reason}"))
            })
        };
        texts.iter().map(pattern).collect()
    }

    fn measurement(&self, table: &dyn TableLike, limits: &mut Limits) -> Result<(), Error> {
        for entry in entries(table) {
            let share = match entry.0.get() {
                "lost" => &mut limits.lost,
                "cut" => &mut limits.cut,
                _ => return self.unknown(entry.0, &["lost", "cut"]),
            };
            match self.written(entry.1).as_deref().and_then(Amount::parse) {
                Some(Amount::Percent(percent)) if percent <= Rate::new(100, 1) => *share = Some(percent),
                _ => return self.wrong_number(entry, "percent, such as \"1 %\""),
            }
        }
        Ok(())
    }

    fn ignores(&self, entry: Entry<'_>, limits: &mut Limits) -> Result<(), Error> {
        let Some(tables) = entry.1.as_array_of_tables() else {
            return self.wrong(entry, "tables in double brackets: [[ignore]]");
        };
        for table in tables {
            let mut ignore = Ignore {
                window: Pattern::Glob("*".into()),
                stack: Vec::new(),
                reason: String::new(),
                until: Date { year: 0, month: 0, day: 0 },
                origin: Origin::File { path: Arc::clone(&self.path), line: line(self.text, table.span()) },
            };
            for inner in entries(table) {
                let text = || match inner.1.as_str() {
                    Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
                    _ => self.wrong(inner, "a text"),
                };
                match inner.0.get() {
                    "window" => ignore.window = Pattern::Glob(text()?),
                    "stack" => ignore.stack = self.patterns(inner)?,
                    "reason" => ignore.reason = text()?,
                    "until" => match inner
                        .1
                        .as_datetime()
                        .filter(|time| time.time.is_none())
                        .and_then(|time| time.date)
                    {
                        Some(date) => {
                            ignore.until = Date { year: date.year, month: date.month, day: date.day };
                        }
                        None => {
                            return self.wrong(
                                inner,
                                "a day without a time, such as 2027-01-31 (and without quotes)",
                            );
                        }
                    },
                    _ => return self.unknown(inner.0, &IGNORE),
                }
            }
            let missing = [
                ("stack", ignore.stack.is_empty()),
                ("reason", ignore.reason.is_empty()),
                ("until", ignore.until.year == 0),
            ];
            if let Some((key, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
                let reason = format!(
                    "`{key}` is missing\nan [[ignore]] takes what stacks, why (reason) and the last day (until)"
                );
                return self.error(table.span(), reason);
            }
            limits.ignores.push(ignore);
        }
        Ok(())
    }
}

/// The entries of a table in the order of their lines, with their keys.
fn entries(table: &dyn TableLike) -> Vec<Entry<'_>> {
    table.iter().filter_map(|(name, _)| table.get_key_value(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
# reviewed
[window."parse*"]
allocs = 75
bytes = { max = 4_114, soft_grow = "10 %" }
live.min = 0
total.allocs = { max = 75000 }
stacks = { new = "fail", soft_grow = 0.5, under = "^parse" }
unstable = true

[measurement]
cut = "0.5 %"

[[ignore]]
stack = ["Parser::name", "main"]
reason = "known"
until = 2027-01-31
"#;

    fn gates(limits: &Limits) -> Vec<String> {
        let gate = |gate: &Gate| {
            let rule = match &gate.rule {
                Rule::Count(rule) => {
                    format!("{:?} {:?} {:?} {:?}", rule.metric, rule.per, rule.bound, rule.amount)
                }
                Rule::Stack(rule) => format!("{:?} under {}", rule.what, rule.under.len()),
            };
            format!("{} {rule} {:?} {}", gate.window.text(), gate.severity, gate.origin)
        };
        limits.gates.iter().map(gate).collect()
    }

    #[test]
    fn a_file_is_limits_with_their_lines() {
        let limits = read(FILE, "l.toml").unwrap();
        assert_eq!(
            gates(&limits),
            [
                "parse* Allocs Iteration Max Exact(75) Hard l.toml:4",
                "parse* Bytes Iteration Max Exact(4114) Hard l.toml:5",
                "parse* Bytes Iteration Grow Percent(10) Soft l.toml:5",
                "parse* Live Iteration Min Exact(0) Hard l.toml:6",
                "parse* Allocs Run Max Exact(75000) Hard l.toml:7",
                "parse* New under 1 Hard l.toml:8",
                "parse* Grow(Allocs, Exact(1/2)) under 1 Soft l.toml:8",
                "parse* Renamed under 1 Soft l.toml:8",
            ]
        );
        assert_eq!((limits.lost, limits.cut), (None, Some(Rate::new(1, 2))));
        assert_eq!(limits.judges_unstable("parser"), Some(true));
        let ignore = &limits.ignores[0];
        assert_eq!((ignore.stack.len(), ignore.until.to_string()), (2, "2027-01-31".to_owned()));
        assert_eq!(ignore.origin.to_string(), "l.toml:14");
    }

    #[test]
    fn numbers_are_what_is_written() {
        let limits = read("[window.w]\nallocs = 0.1\nbytes = 0x10\nlive = \"1.5\"\n", "l").unwrap();
        assert_eq!(
            gates(&limits),
            [
                "w Allocs Iteration Max Exact(1/10) Hard l:2",
                "w Bytes Iteration Max Exact(16) Hard l:3",
                "w Live Iteration Max Exact(3/2) Hard l:4",
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_its_line() {
        for (text, expected) in [
            ("[window.w]\n\nalocs = 1\n", "line 3: unknown key `alocs`\ndid you mean `allocs`?"),
            ("[windows.w]\n", "line 1: unknown key `windows`\ndid you mean `window`?"),
            ("[window.w]\nallocs = {maximum = 1}\n", "unknown key `maximum`\nknown are max, min"),
            ("[window.w]\nallocs = -1\n", "line 2: `allocs` is -1\nit takes a number"),
            ("[window.w]\nallocs = nan\n", "line 2: `allocs` is nan"),
            ("[window.w]\nallocs = 1e99\n", "line 2: `allocs` is 1e99"),
            ("[window.w]\nallocs = \"10 %\"\n", "line 2: `allocs` is 10 %"),
            ("[window.w]\nallocs = {grow = \"ten\"}\n", "line 2: `grow` is ten"),
            ("[window.w]\nallocs = [1]\n", "line 2: `allocs` is an array"),
            ("window = 3\n", "line 1: `window` is an integer"),
            ("[window.w]\nstacks = {soft_new = 1}\n", "unknown key `soft_new`"),
            ("[window.w]\nstacks = {new = true}\n", "`new` is a boolean\nit takes \"fail\""),
            ("[window.w]\nstacks = {under = \"(\"}\n", "line 2: `(` is no regular expression"),
            ("[window.w]\nallocs = {\nmin = 11,\nmax = 10 }\n", "line 3: `min` is above `max`: no count"),
            ("[window.w]\nallocs.max = 10\nallocs.soft_max = 10.01\n", "line 3: `soft_max` is above `max`"),
            ("[measurement]\ncut = 1\n", "line 2: `cut` is 1\nit takes percent"),
            ("[measurement]\ncut = \"101 %\"\n", "line 2"),
            ("[[ignore]]\nstack = \"a\"\nuntil = 2027-01-01\n", "line 1: `reason` is missing"),
            ("[[ignore]]\nstack = \"a\"\nuntil = \"2027-01-01\"\n", "line 3: `until` is a string"),
            (
                "[[ignore]]\nstack = \"a\"\nuntil = 2027-01-01T10:00:00Z\n",
                "line 3: `until` is a datetime\nit takes a day",
            ),
            (
                "[window.w]\nallocs = 1e3\n",
                "`allocs` is 1e3\nit takes a number such as 75 or 0.3: digits alone",
            ),
            ("[window.w]\nallocs = 0.1234567890123\n", "at most 15, of which 9 behind the point"),
            ("[window.w\n", "line 1"),
            ("[window.w]\nallocs = 1\nallocs = 2\n", "line 3"),
            ("\0", "line 1"),
        ] {
            let error = read(text, "l").unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn an_empty_file_has_no_limits() {
        let limits = read("", "l").unwrap();
        assert!(limits.gates.is_empty() && limits.ignores.is_empty());
    }
}
