//! The files in which Swift's package-benchmark keeps thresholds: `<Target>.<Benchmark>.p90.json`.
//!
//! ```json
//! {
//!   "mallocCountTotal" : 75,
//!   "memoryLeaked" : { "base" : 10, "tolerancePercentage" : 5 },
//!   "syscalls" : 12
//! }
//! ```
//!
//! A threshold is a whole number; `base` with `tolerancePercentage`; `min` and `max`; or both of these, of which one has
//! to hold: then the wider bounds do. The window is the one that is named as the benchmark. What is no count of
//! allocations is kept as it is when the file is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::update::{Edit, Measured};
use super::{Amount, Bound, CountRule, Gate, Limits, Metric, Origin, Pattern, Per, Rate, Rule, Severity};
use crate::Error;

/// How such a file's name ends.
pub const ENDING: &str = ".p90.json";
/// The counts that are ours too.
const METRICS: [(&str, Metric); 3] = [
    ("mallocCountTotal", Metric::Allocs),
    ("mallocBytesCount", Metric::Bytes),
    ("memoryLeaked", Metric::Live),
];

/// A threshold that is no number.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Range {
    base: Option<u64>,
    tolerance_percentage: Option<f64>,
    min: Option<u64>,
    max: Option<u64>,
}

type Metrics<'t> = BTreeMap<String, &'t RawValue>;

/// The benchmark that a file's name tells; `None` when it is not named so.
pub fn benchmark(file_name: &str) -> Option<&str> {
    let name = file_name.strip_suffix(ENDING)?;
    let (target, benchmark) = name.split_once('.')?;
    (!target.is_empty() && !benchmark.is_empty()).then_some(benchmark)
}

/// The limits of a file. `path` is only put into their [`Origin`].
///
/// # Errors
/// [`Error::Threshold`] for what is not such a file.
pub fn read(text: &str, benchmark: &str, path: &str) -> Result<Limits, Error> {
    let metrics = parse(text)?;
    let mut limits = Limits::default();
    for (key, metric) in METRICS {
        let Some(value) = metrics.get(key) else { continue };
        let (least, most) = bounds(key, value.get())?;
        let line = text
            .find(&format!("\"{key}\""))
            .map_or(1, |at| text.get(..at).unwrap_or_default().matches('\n').count() + 1);
        let origin = Origin::File { path: path.into(), line: u32::try_from(line).unwrap_or(u32::MAX) };
        for (bound, number) in [(Bound::Min, least), (Bound::Max, Some(most))] {
            let Some(number) = number else { continue };
            let rule = CountRule { metric, per: Per::Iteration, bound, amount: Amount::Exact(number) };
            limits.gates.push(Gate {
                window: Pattern(benchmark.to_owned()),
                origin: origin.clone(),
                rule: Rule::Count(rule),
                severity: Severity::Hard,
            });
        }
    }
    Ok(limits)
}

fn parse(text: &str) -> Result<Metrics<'_>, Error> {
    serde_json::from_str(text).map_err(|error| Error::Threshold { reason: error.to_string() })
}

fn refuse<T>(key: &str, value: &str) -> Result<T, Error> {
    let reason = format!(
        "{key} is {value}\nit takes a whole number, {{\"base\", \"tolerancePercentage\"}} or {{\"min\", \"max\"}}"
    );
    Err(Error::Threshold { reason })
}

/// From which to which number.
fn bounds(key: &str, value: &str) -> Result<(Option<Rate>, Rate), Error> {
    if let Ok(number) = serde_json::from_str::<u64>(value) {
        return Ok((None, Rate::new(number, 1)));
    }
    let Ok(range) = serde_json::from_str::<Range>(value) else { return refuse(key, value) };
    let mut bounds: Vec<(Rate, Rate)> = Vec::new();
    if let (Some(base), Some(percent)) = (range.base, range.tolerance_percentage) {
        // Its digits, and not what a floating-point number makes of them.
        let Some(percent) = Rate::parse(&percent.to_string()).filter(|percent| *percent <= Rate::new(100, 1))
        else {
            return refuse(key, value);
        };
        let base = Rate::new(base, 1);
        bounds.push((base.minus(base.percent(percent)), base.plus(base.percent(percent))));
    }
    if let (Some(min), Some(max)) = (range.min, range.max) {
        if min > max {
            return refuse(key, value);
        }
        bounds.push((Rate::new(min, 1), Rate::new(max, 1)));
    }
    let least = bounds.iter().map(|(least, _)| *least).min();
    match bounds.iter().map(|(_, most)| *most).max() {
        Some(most) => Ok((least, most)),
        None => refuse(key, value),
    }
}

/// The file with the numbers that were measured, in the form in which package-benchmark writes it; what else it holds
/// stays. Without a text a new file. Of a range the tolerance stays, and the bounds move.
///
/// # Errors
/// [`Error::Threshold`] for what is not such a file.
pub fn update(
    text: Option<&str>,
    benchmark: &str,
    measured: &[Measured],
    ratchet: bool,
) -> Result<(String, Vec<Edit>), Error> {
    let mut values: BTreeMap<String, String> = parse(text.unwrap_or("{}"))?
        .iter()
        .map(|(key, value)| ((*key).clone(), value.get().to_owned()))
        .collect();
    let mut edits = Vec::new();
    let counts = || measured.iter().filter(|of| of.window == benchmark).flat_map(|of| &of.counts);
    for (key, metric) in METRICS {
        let before = values.get(key).map(|text| bounds(key, text)).transpose()?.map(|(_, most)| most);
        let found = counts().filter(|(of, per, _)| (*of, *per) == (metric, Per::Iteration));
        let Some(rate) = found.map(|(.., rate)| *rate).max() else { continue };
        let after = rate.rounded_up(0);
        let value = Rate::parse(&after).unwrap_or(rate);
        let is_new = before.is_none();
        if is_new && (metric != Metric::Allocs || text.is_some() || ratchet) {
            continue;
        }
        if before.is_some_and(|before| value == before || (ratchet && value > before)) {
            continue;
        }
        let new = match values.get(key).map(|text| serde_json::from_str::<Range>(text)) {
            Some(Ok(range)) => moved(&range, &after),
            _ => after.clone(),
        };
        values.insert(key.to_owned(), new);
        edits.push(Edit { window: benchmark.to_owned(), metric, per: Per::Iteration, before, after });
    }
    if edits.is_empty()
        && let Some(text) = text
    {
        return Ok((text.to_owned(), edits));
    }
    let lines: Vec<String> = values
        .iter()
        .map(|(key, value)| format!("  {} : {value}", serde_json::Value::from(key.as_str())))
        .collect();
    Ok((format!("{{\n{}\n}}\n", lines.join(",\n")), edits))
}

/// A range at another number.
fn moved(range: &Range, number: &str) -> String {
    let mut parts = Vec::new();
    if let (Some(_), Some(percent)) = (range.base, range.tolerance_percentage) {
        parts.push(format!("\"base\" : {number}, \"tolerancePercentage\" : {percent}"));
    }
    if let (Some(min), Some(_)) = (range.min, range.max) {
        let least = number.parse().map_or(min, |number: u64| number.min(min));
        parts.push(format!("\"min\" : {least}, \"max\" : {number}"));
    }
    format!("{{ {} }}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "{\n  \"mallocCountTotal\" : 75,\n  \"syscalls\" : { \"min\" : 1,  \"max\" : 2 },\n  \"wallClock\" : 123456789012345678901234567890\n}\n";

    fn measured(allocs: u64, iterations: u64) -> Vec<Measured> {
        let counts = vec![(Metric::Allocs, Per::Iteration, Rate::new(allocs, iterations))];
        vec![Measured { window: "Parse".into(), counts }]
    }

    fn limits(text: &str) -> Vec<(u32, Bound, Rate)> {
        let limits = read(text, "Parse", "f").unwrap();
        let of = |gate: &Gate| {
            let (Rule::Count(rule), Origin::File { line, .. }) = (&gate.rule, &gate.origin) else { panic!() };
            let Amount::Exact(number) = rule.amount else { panic!() };
            (*line, rule.bound, number)
        };
        limits.gates.iter().map(of).collect()
    }

    #[test]
    fn names_tell_the_benchmark() {
        assert_eq!(benchmark("NIOBenchmarks.WaitOnPromise.p90.json"), Some("WaitOnPromise"));
        assert_eq!(benchmark("T.a.b.p90.json"), Some("a.b"));
        assert_eq!(benchmark("limits.toml"), None);
        assert_eq!(benchmark("Target.p90.json"), None);
    }

    #[test]
    fn thresholds_are_limits() {
        assert_eq!(limits(FILE), [(2, Bound::Max, Rate::new(75, 1))]);
        let relative = r#"{"mallocCountTotal":{"base":115,"tolerancePercentage":4.5}}"#;
        assert_eq!(
            limits(relative),
            [(1, Bound::Min, Rate::new(109_825, 1000)), (1, Bound::Max, Rate::new(120_175, 1000))]
        );
        let either = r#"{"mallocCountTotal":{"base":100,"tolerancePercentage":5,"min":90,"max":101}}"#;
        assert_eq!(limits(either), [(1, Bound::Min, Rate::new(90, 1)), (1, Bound::Max, Rate::new(105, 1))]);
        assert_eq!(limits("{}"), []);
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "[]",
            "{\"mallocCountTotal\":-1}",
            "{\"mallocCountTotal\":\"1\"}",
            "{\"mallocCountTotal\":{\"base\":1}}",
            "{\"mallocCountTotal\":{\"min\":2,\"max\":1}}",
            "{\"mallocCountTotal\":1",
            "{\"mallocCountTotal\":{\"base\":1,\"tolerancePercentage\":101}}",
        ] {
            let error = read(text, "b", "f").unwrap_err();
            assert!(error.to_string().starts_with("not a threshold file"), "{text}: {error}");
        }
    }

    #[test]
    fn other_metrics_are_kept_as_they_are() {
        let (text, edits) = update(Some(FILE), "Parse", &measured(151, 2), false).unwrap();
        assert_eq!(text, FILE.replace(": 75", ": 76"));
        assert_eq!(edits[0].before, Some(Rate::new(75, 1)));
        let (kept, edits) = update(Some(FILE), "Parse", &measured(151, 2), true).unwrap();
        assert_eq!((kept.as_str(), edits.len()), (FILE, 0));
        let (lower, _) = update(Some(FILE), "Parse", &measured(70, 1), true).unwrap();
        assert_eq!(lower, FILE.replace(": 75", ": 70"));
        let (new, _) = update(None, "Parse", &measured(70, 1), false).unwrap();
        assert_eq!(new, "{\n  \"mallocCountTotal\" : 70\n}\n");
    }

    #[test]
    fn ranges_move() {
        let text = r#"{"mallocCountTotal":{"base":100,"tolerancePercentage":4.5,"min":90,"max":110}}"#;
        let (text, _) = update(Some(text), "Parse", &measured(80, 1), true).unwrap();
        assert_eq!(
            text,
            "{\n  \"mallocCountTotal\" : { \"base\" : 80, \"tolerancePercentage\" : 4.5, \"min\" : 80, \"max\" : 80 }\n}\n"
        );
    }
}
