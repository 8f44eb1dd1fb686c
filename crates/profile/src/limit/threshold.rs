//! The files in which Swift's package-benchmark keeps thresholds: `<Target>.<Benchmark>.p90.json`.
//!
//! ```json
//! {
//!   "mallocCountTotal" : 75,
//!   "mallocBytesCount" : { "base" : 4100, "tolerancePercentage" : 5 },
//!   "syscalls" : 12
//! }
//! ```
//!
//! A threshold is a whole number; `base` with `tolerancePercentage`; `min` and `max`; or both of these, of which one has
//! to hold: then the wider bounds do. The window is the one that is named as the benchmark, whose name has `_` for blanks
//! and slashes in a file's name. When a file is written its numbers change and nothing else.
//!
//! | key | here |
//! |---|---|
//! | `mallocCountTotal` | `allocs` |
//! | `mallocBytesCount` | `bytes` |
//! | `mallocFreeDelta` | `live`; package-benchmark also takes off what is freed of blocks from before |
//! | `memoryLeakedBytes` | `live_bytes`, likewise |
//!
//! All others are left alone, also `memoryLeaked` and `allocatedResidentMemory`, which are what its own allocator holds
//! resident. The keys, and the forms of a threshold, are those of package-benchmark's sources (`BenchmarkMetric.swift`,
//! `BenchmarkThresholds.swift`; with jemalloc the first one alone, with its malloc interposer all four).

use std::collections::BTreeMap;
use std::ops::Range as Span;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::update::{Edit, Measured, spliced};
use super::{Amount, Bound, CountRule, Gate, Limits, Metric, Origin, Pattern, Per, Rate, Rule, Severity};
use crate::Error;

/// How such a file's name ends.
pub const ENDING: &str = ".p90.json";
/// The counts that are ours too.
const METRICS: [(&str, Metric); 4] = [
    ("mallocCountTotal", Metric::Allocs),
    ("mallocBytesCount", Metric::Bytes),
    ("mallocFreeDelta", Metric::Live),
    ("memoryLeakedBytes", Metric::LiveBytes),
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

/// A benchmark's name as it stands in a file's name.
pub fn in_file_name(benchmark: &str) -> String {
    benchmark.replace(['/', ' '], "_")
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
        let stated = numbers(key, value.get())?.into_iter().min();
        let before = span(text, value.get()).and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let origin = Origin::File { path: path.into(), line: u32::try_from(line).unwrap_or(u32::MAX) };
        for (bound, number) in [(Bound::Min, least), (Bound::Max, Some(most))] {
            let Some(number) = number else { continue };
            let rule = CountRule { metric, per: Per::Iteration, bound, amount: Amount::Exact(number) };
            limits.gates.push(Gate {
                window: Pattern::FileName(benchmark.to_owned()),
                origin: origin.clone(),
                rule: Rule::Count(rule),
                severity: Severity::Hard,
                stated: stated.filter(|_| bound == Bound::Max),
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
    if let [a, b] = bounds[..]
        && (a.0 > b.1 || b.0 > a.1)
    {
        let reason = format!("{key} is {value}\nits two ranges have nothing in common: keep one of them");
        return Err(Error::Threshold { reason });
    }
    let least = bounds.iter().map(|(least, _)| *least).min();
    match bounds.iter().map(|(_, most)| *most).max() {
        Some(most) => Ok((least, most)),
        None => refuse(key, value),
    }
}

/// The numbers that an update moves: a number, or those of a range that stand for the most, without a tolerance.
fn numbers(key: &str, value: &str) -> Result<Vec<Rate>, Error> {
    if let Ok(number) = serde_json::from_str::<u64>(value) {
        return Ok(vec![Rate::new(number, 1)]);
    }
    let Ok(range) = serde_json::from_str::<Range>(value) else { return refuse(key, value) };
    let base = range.base.filter(|_| range.tolerance_percentage.is_some());
    let max = range.max.filter(|_| range.min.is_some());
    Ok(base.into_iter().chain(max).map(|number| Rate::new(number, 1)).collect())
}

/// The whole number that a count is within the bounds of when a threshold is moved there: the next above it, or else the
/// one below.
fn fitting(key: &str, value: Option<&str>, count: Rate) -> Result<u64, Error> {
    let above: u64 = count.rounded_up(0).parse().unwrap_or(u64::MAX);
    let Some(range) = value.and_then(|value| serde_json::from_str::<Range>(value).ok()) else {
        return Ok(above);
    };
    let keeps = |number: &u64| {
        let (least, most) = bounds(key, &moved(&range, *number)).ok()?;
        (least.is_none_or(|least| least <= count) && count <= most).then_some(())
    };
    let found = [above, above.saturating_sub(1)].into_iter().find(|number| keeps(number).is_some());
    found.ok_or_else(|| Error::Threshold {
        reason: format!(
            "{key} cannot be moved to {}: its tolerance is smaller than what a whole number leaves\nwiden it by hand",
            count.rounded(2)
        ),
    })
}

/// Where a part of a text stands in it.
fn span(text: &str, part: &str) -> Option<Span<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let span = start..start.checked_add(part.len())?;
    (text.get(span.clone()) == Some(part)).then_some(span)
}

/// The file with the numbers that were measured; what else it holds stays as it is. Without a text a new file, in the form
/// in which package-benchmark writes it. Of a range the tolerance stays, and the bounds move.
///
/// # Errors
/// [`Error::Threshold`] for what is not such a file.
pub fn update(
    text: Option<&str>,
    benchmark: &str,
    measured: &[Measured],
    ratchet: bool,
) -> Result<(String, Vec<Edit>), Error> {
    let old = text.unwrap_or("{}");
    let values = parse(old)?;
    let window = Pattern::FileName(benchmark.to_owned());
    let counts = || measured.iter().filter(|of| window.fits(&of.window)).flat_map(|of| &of.counts);
    let mut edits = Vec::new();
    let mut splices: Vec<(Span<usize>, String)> = Vec::new();
    let mut added = Vec::new();
    for (key, metric) in METRICS {
        let value = values.get(key).map(|value| value.get());
        // What is refused to be read is no file to be written.
        value.map(|value| bounds(key, value)).transpose()?;
        let stated = value.map(|value| numbers(key, value)).transpose()?.unwrap_or_default();
        let before = stated.iter().min().copied();
        let found = counts().filter(|(of, per, _)| (*of, *per) == (metric, Per::Iteration));
        let Some(rate) = found.map(|(.., rate)| *rate).max() else { continue };
        if before.is_none() && (metric != Metric::Allocs || text.is_some() || ratchet) {
            continue;
        }
        let number = fitting(key, value, rate)?;
        let new = Rate::new(number, 1);
        if before.is_some_and(|before| ratchet && new >= before) {
            continue;
        }
        let after = number.to_string();
        if let Some(value) = value
            && stated.iter().all(|stated| *stated == new)
            && bounds(key, value)?.0.is_none_or(|least| least <= rate)
        {
            continue;
        }
        match value {
            Some(value) => {
                let Some(span) = span(old, value) else { return refuse(key, value) };
                let written = match serde_json::from_str::<Range>(value) {
                    Ok(range) => moved(&range, number),
                    Err(_) => after.clone(),
                };
                splices.push((span, written));
            }
            None => added.push(format!("  \"{key}\" : {after}")),
        }
        let window = benchmark.to_owned();
        edits.push(Edit { window, metric, per: Per::Iteration, is_soft: false, before, after });
    }
    let new = match text {
        Some(text) => spliced(text, splices),
        // As Swift's encoder writes it: without a line feed at the end.
        None => format!("{{\n{}\n}}", added.join(",\n")),
    };
    Ok((new, edits))
}

/// A range at another number.
fn moved(range: &Range, number: u64) -> String {
    let mut parts = Vec::new();
    if let (Some(_), Some(percent)) = (range.base, range.tolerance_percentage) {
        parts.push(format!("\"base\" : {number}, \"tolerancePercentage\" : {percent}"));
    }
    if let (Some(min), Some(_)) = (range.min, range.max) {
        let least = number.min(min);
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
            "{\"mallocBytesCount\":{\"base\":2,\"max\":1}}",
            "{\"mallocCountTotal\":1",
            "{\"mallocCountTotal\":{\"base\":1,\"tolerancePercentage\":101}}",
            "{\"mallocCountTotal\":{\"base\":1,\"tolerancePercentage\":1,\"min\":5,\"max\":6}}",
        ] {
            let error = read(text, "b", "f").unwrap_err();
            assert!(error.to_string().starts_with("not a threshold file"), "{text}: {error}");
            let error = update(Some(text), "Parse", &measured(3, 1), false).map(|_| ()).unwrap_err();
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
        assert_eq!(new, "{\n  \"mallocCountTotal\" : 70\n}");
    }

    #[test]
    fn only_numbers_of_a_file_change() {
        let text =
            "{\"syscalls\":2,\n\n \"memoryLeaked\": 4096, \"mallocFreeDelta\" :3 ,\"mallocCountTotal\" : 75}";
        let mut of = measured(70, 1);
        of[0].counts.push((Metric::Live, Per::Iteration, Rate::new(1, 1)));
        let (new, edits) = update(Some(text), "Parse", &of, true).unwrap();
        assert_eq!(new, text.replace(": 75", ": 70").replace(":3", ":1"));
        assert_eq!(edits.len(), 2);
    }

    #[test]
    fn blanks_and_slashes_of_a_benchmark_are_no_part_of_a_files_name() {
        let limits = read(r#"{"mallocCountTotal":3}"#, "look_up_a", "f").unwrap();
        let window = &limits.gates[0].window;
        assert!(window.fits("look up/a") && window.fits("look_up_a") && !window.fits("look-up/a"));
        let star = read(r#"{"mallocCountTotal":3}"#, "a*", "f").unwrap();
        assert!(star.gates[0].window.fits("a*") && !star.gates[0].window.fits("ab"));
        let mut of = measured(70, 1);
        of[0].window = "Parse a/b".into();
        assert_eq!(update(Some(FILE), "Parse_a_b", &of, false).unwrap().1.len(), 1);
    }

    #[test]
    fn what_is_resident_is_no_count_of_allocations() {
        assert_eq!(limits(r#"{"memoryLeaked":3,"allocatedResidentMemory":4,"mallocCountSmall":5}"#), []);
        let all = r#"{"memoryLeakedBytes":1,"mallocFreeDelta":2,"mallocBytesCount":3,"mallocCountTotal":4}"#;
        let limits = read(all, "b", "f").unwrap();
        let of = |gate: &Gate| gate.rule.group().unwrap().0;
        let metrics: Vec<Metric> = limits.gates.iter().map(of).collect();
        assert_eq!(metrics, [Metric::Allocs, Metric::Bytes, Metric::Live, Metric::LiveBytes]);
    }

    #[test]
    fn ranges_move() {
        let text = r#"{"mallocCountTotal":{"base":100,"tolerancePercentage":4.5,"min":90,"max":110}}"#;
        let (text, _) = update(Some(text), "Parse", &measured(80, 1), true).unwrap();
        assert_eq!(
            text,
            r#"{"mallocCountTotal":{ "base" : 80, "tolerancePercentage" : 4.5, "min" : 80, "max" : 80 }}"#
        );
    }

    /// A tolerance is no room that could be taken away.
    #[test]
    fn what_was_measured_keeps_to_what_is_written_and_is_not_below_it() {
        for text in [
            "{\"mallocCountTotal\":900}",
            "{\"mallocCountTotal\":{\"base\":900,\"tolerancePercentage\":5}}",
            "{\"mallocCountTotal\":{\"min\":1,\"max\":900}}",
            "{\"mallocCountTotal\":{\"base\":900,\"tolerancePercentage\":5,\"min\":890,\"max\":900}}",
        ] {
            let of = measured(151, 2);
            assert!(
                read(text, "Parse", "f")
                    .unwrap()
                    .gates
                    .iter()
                    .any(|gate| gate.would_be_lower(Rate::new(151, 2)))
            );
            let (lower, edits) = update(Some(text), "Parse", &of, true).unwrap();
            assert_eq!((edits.len(), edits[0].after.as_str()), (1, "76"), "{lower}");
            for (_, bound, number) in limits(&lower) {
                let is_kept = if bound == Bound::Max {
                    Rate::new(151, 2) <= number
                } else {
                    Rate::new(151, 2) >= number
                };
                assert!(is_kept, "{bound:?} {number:?} in {lower}");
            }
            assert!(
                !read(&lower, "Parse", "f")
                    .unwrap()
                    .gates
                    .iter()
                    .any(|gate| gate.would_be_lower(Rate::new(151, 2)))
            );
            for ratchet in [false, true] {
                assert_eq!(
                    update(Some(&lower), "Parse", &of, ratchet).unwrap(),
                    (lower.clone(), vec![]),
                    "no circle"
                );
            }
        }
        // Nothing goes up with a ratchet, neither the base nor the greatest.
        let either = r#"{"mallocCountTotal":{"base":100,"tolerancePercentage":50,"min":90,"max":110}}"#;
        assert_eq!(update(Some(either), "Parse", &measured(105, 1), true).unwrap().1, []);
        let tight = r#"{"mallocCountTotal":{"base":100,"tolerancePercentage":0}}"#;
        let error = update(Some(tight), "Parse", &measured(151, 2), false).unwrap_err().to_string();
        assert!(error.contains("cannot be moved to 75.50") && error.contains("by hand"), "{error}");
    }
}
