//! Python's csv module and jq add up the same sums.

use std::collections::BTreeMap;
use std::process::Command;

use integration_tests::scratch::Scratch;
use integration_tests::tool;
use serde_json::Value;

use super::{Document, WINDOWS, function, output, recordings};

const COUNTS: [&str; 6] = ["allocations", "bytes", "freed", "freed_bytes", "reallocs", "temporary"];

/// By window: how many rows, the sums of [`COUNTS`], and all stacks.
fn expected(document: &Document) -> BTreeMap<String, (usize, Vec<i64>, Vec<String>)> {
    let of_window = |name: &str| {
        let stacks = document.stacks(|found| found == name);
        let sum = |count: &str| stacks.iter().map(|stack| stack.value(&format!("counts.{count}"))).sum();
        let mut texts: Vec<String> = stacks
            .iter()
            .map(|stack| {
                let names = stack.frames.iter().map(|frame| function(frame).replace(';', ":"));
                names.collect::<Vec<_>>().join(";")
            })
            .collect();
        texts.sort();
        (stacks.len(), COUNTS.iter().map(|count| sum(count)).collect(), texts)
    };
    WINDOWS.iter().map(|name| ((*name).to_owned(), of_window(name))).collect()
}

/// A field too many or too few, or bad quoting, is an error there.
#[test]
fn python_reads_the_csv() {
    const SCRIPT: &str = r#"
import csv, json, sys
sums = {}
with open(sys.argv[1], newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file, strict=True):
        assert None not in row and None not in row.values(), row
        window = sums.setdefault(row["window"], [0, [0] * len(sys.argv[2:]), []])
        window[0] += 1
        window[1] = [a + int(row[name]) for a, name in zip(window[1], sys.argv[2:])]
        window[2].append(row["stack"])
for window in sums.values():
    window[2].sort()
print(json.dumps(sums))
"#;
    if !tool::have(&["python3"]) {
        return;
    }
    let scratch = Scratch::new();
    let script = scratch.write("sum.py", SCRIPT);
    for recording in recordings() {
        let table = recording.exported(&scratch, "csv", &[]);
        let file = scratch.write("stacks.csv", &table);
        let text = output(Command::new("python3").args([&script, &file]).args(COUNTS));
        let found: BTreeMap<String, (usize, Vec<i64>, Vec<String>)> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(found, expected(&recording.document), "{}", recording.language);
        // Lines end as RFC 4180 has it or as Unix does, and there is a line for each row beside the heading.
        let rows: usize = found.values().map(|(rows, ..)| rows).sum();
        assert_eq!(table.lines().count(), rows + 1);
    }
}

/// The rows' sums are the windows' totals.
#[test]
fn jq_reads_the_json() {
    const FILTER: &str = r#"[.windows[] | {name, total: .counts, rows: (reduce .rows[].counts as $row ({};
        reduce ($row | keys[]) as $key (.; .[$key] += $row[$key])))}]"#;
    if !tool::have(&["jq"]) {
        return;
    }
    let scratch = Scratch::new();
    for recording in recordings() {
        let document = recording.exported(&scratch, "json", &[]);
        let file = scratch.write("report.json", &document);
        let text = output(Command::new("jq").args(["-c", FILTER]).arg(&file));
        let windows: Vec<Value> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(windows.len(), 1 + WINDOWS.len(), "{text}");
        for window in &windows {
            assert_eq!(window["total"], window["rows"], "{}: {}", recording.language, window["name"]);
            let name = window["name"].as_str().expect("a name");
            let stacks = recording.document.stacks(|found| found == name);
            let sum: i64 = stacks.iter().map(|stack| stack.value("counts.allocations")).sum();
            assert_eq!(window["rows"]["allocations"], sum, "{name}");
            assert!(sum > 0, "{name}");
        }
    }
}
