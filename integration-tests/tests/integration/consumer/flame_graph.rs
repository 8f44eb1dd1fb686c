//! The folded form, as flamegraph.pl and inferno read it.

use std::collections::{BTreeMap, BTreeSet};

use inferno::flamegraph::{self, Options};
use integration_tests::scratch::Scratch;

use super::{Recording, Stack, WINDOWS, function, recordings, sums};

/// The stack as it is to stand in a line.
fn folded_stack(stack: &Stack<'_>) -> String {
    let names = stack.frames.iter().rev().map(|frame| {
        let mark = if frame["inlined"] == true { "_[i]" } else { "" };
        format!("{}{mark}", function(frame).replace(';', ":"))
    });
    names.collect::<Vec<_>>().join(";")
}

/// What flamegraph.pl takes for stack and count: `^(.*)\s+?(\d+(?:\.\d*)?)$`.
fn split(line: &str) -> (&str, i64) {
    let (stack, count) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no count in {line:?}"));
    assert!(count.bytes().all(|byte| byte.is_ascii_digit()), "the last field of {line:?}");
    // A second number in front of it would be the count of another profile.
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let before = stack.rsplit(' ').next().unwrap_or_default();
    assert!(!stack.contains(' ') || !is_number(before), "two counts in {line:?}");
    assert!(stack.split(';').all(|frame| !frame.is_empty()), "an empty frame in {line:?}");
    (stack, count.parse().unwrap_or_else(|error| panic!("{line:?}: {error}")))
}

/// The picture's titles: how many allocations each frame's name has, by name without its mark.
fn drawn(lines: &str) -> (i64, BTreeSet<String>) {
    let mut options = Options::default();
    // Nothing is too narrow to be drawn.
    options.min_width = 0.0;
    let mut picture = Vec::new();
    flamegraph::from_lines(&mut options, lines.lines(), &mut picture).expect("a flame graph");
    let picture = String::from_utf8(picture).expect("UTF-8");
    let titles = picture.split("<title>").skip(1).map(|part| {
        let title = part.split("</title>").next().unwrap_or_default();
        let title =
            title.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
        let title = title.replace("&#39;", "'").replace("&amp;", "&");
        let (name, rest) = title.rsplit_once(" (").unwrap_or_else(|| panic!("{title:?}"));
        let samples = rest.split(' ').next().unwrap_or_default().replace(',', "");
        (name.to_owned(), samples.parse::<i64>().unwrap_or_else(|error| panic!("{title:?}: {error}")))
    });
    let mut names = BTreeSet::new();
    let mut total = 0;
    for (name, samples) in titles {
        if name == "all" {
            total = samples;
        } else {
            names.insert(name);
        }
    }
    (total, names)
}

fn expected(recording: &Recording, window: &str) -> BTreeMap<String, i64> {
    let stacks = recording.document.stacks(|name| name == window);
    sums(stacks.iter().map(|stack| (folded_stack(stack), stack.value("counts.allocations"))))
}

/// Every line is a stack and a count, and all together are the window.
#[test]
fn lines_are_stacks_and_counts() {
    let scratch = Scratch::new();
    for recording in recordings() {
        for window in WINDOWS {
            let lines = recording.exported(&scratch, "folded", &["--window", window]);
            let found = sums(lines.lines().map(split).map(|(stack, count)| (stack.to_owned(), count)));
            assert_eq!(found, expected(recording, window), "{} {window}", recording.language);
            assert!(lines.ends_with('\n'));
        }
        // Both windows: each below a frame with its name.
        let lines = recording.exported(&scratch, "folded", &[]);
        let found = sums(lines.lines().map(split).map(|(stack, count)| (stack.to_owned(), count)));
        let both = WINDOWS.into_iter().flat_map(|window| {
            let name = window.replace(';', ":");
            expected(recording, window)
                .into_iter()
                .map(move |(stack, count)| (format!("{name};{stack}"), count))
        });
        assert_eq!(found, both.collect(), "{}", recording.language);
    }
}

/// inferno draws it: its total is the window's, so that it left no line out, and each name is in the picture.
#[test]
fn inferno_draws_every_name() {
    let scratch = Scratch::new();
    for recording in recordings() {
        for window in WINDOWS {
            let lines = recording.exported(&scratch, "folded", &["--window", window]);
            let stacks = recording.document.stacks(|name| name == window);
            let total: i64 = stacks.iter().map(|stack| stack.value("counts.allocations")).sum();
            let names = stacks.iter().flat_map(|stack| stack.functions()).map(|name| name.replace(';', ":"));
            assert_eq!(drawn(&lines), (total, names.collect()), "{} {window}", recording.language);
        }
    }
    let names: Vec<&str> = recordings()
        .iter()
        .flat_map(|recording| recording.document.stacks(|_| true))
        .flat_map(|stack| stack.functions())
        .collect();
    // The names that this is about are there.
    for part in [" as ", "; ", "<", "operator bool", "{lambda", "(anonymous namespace)::", "&&"] {
        assert!(names.is_empty() || names.iter().any(|name| name.contains(part)), "no name with {part:?}");
    }
}
