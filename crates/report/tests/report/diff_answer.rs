//! The first line of a comparison, in every form that has one.

use heaptally_profile::check::{CheckOptions, Subject, check, default_gates};
use heaptally_profile::diff::{DiffOptions, diff};
use heaptally_profile::limit::{Amount, Limits, Origin, Rate, Severity};
use heaptally_profile::model::Profile;
use heaptally_report::Options;
use heaptally_report::diff_json::diff_json;
use heaptally_report::diff_markdown::diff_markdown;
use heaptally_report::text::diff::{Show, text};
use serde_json::Value;

use crate::fixture::{Rows, windows};

fn first_line(base: &Profile, change: &Profile) -> String {
    let diff = diff(base, change, &DiffOptions::default());
    let text = text(&diff, &Options::default(), Show::Entries);
    text.lines().next().unwrap_or_default().to_owned()
}

/// The window and the function of the first entry, as the table of Markdown has it first and as JSON names it.
fn first_of_others(base: &Profile, change: &Profile) -> [(String, String); 2] {
    let diff = diff(base, change, &DiffOptions::default());
    let markdown = diff_markdown(&diff, &Options::default());
    let row = markdown.lines().find(|line| line.starts_with("| `")).expect("a table");
    let cell = |at: usize| row.split('|').nth(at).unwrap_or_default().trim().trim_matches('`').to_owned();
    let function = cell(5).split_whitespace().next().unwrap_or_default().to_owned();

    let report: Value = serde_json::from_str(&diff_json(&diff, &Options::default())).expect("JSON");
    let index = |value: &Value| value.as_u64().expect("an index") as usize;
    let window = &report["windows"][index(&report["first"]["window"])];
    let entry = &window["entries"][index(&report["first"]["entry"])];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let site = text(&report["frames"][index(&entry["call_site"])]["function"]);
    [(cell(1), function), (text(&window["name"]), site)]
}

/// One window in which a function was renamed, and one with other rows on either side.
fn renamed_and(base: Rows<'_>, change: Rows<'_>) -> [Profile; 2] {
    [
        windows(1, &[("one", &[(100, 1000, "parse main")]), ("two", base)]),
        windows(1, &[("one", &[(100, 1000, "parse_all main")]), ("two", change)]),
    ]
}

#[test]
fn a_rename_does_not_stand_before_what_was_added_in_another_window() {
    let [base, change] = renamed_and(&[(3, 60, "emit main")], &[(6, 150, "emit main")]);
    assert_eq!(first_line(&base, &change), "+3 allocs in \"two\": emit  src/bench.rs:13 (more)");
    let expected = ("two".to_owned(), "emit".to_owned());
    assert_eq!(first_of_others(&base, &change), [expected.clone(), expected]);
    // Bytes alone are a change, too.
    let [base, change] = renamed_and(&[(3, 60, "emit main")], &[(3, 90, "emit main")]);
    assert_eq!(first_line(&base, &change), "+30 B in \"two\": emit  src/bench.rs:13 (larger)");
}

#[test]
fn a_rename_alone_adds_nothing() {
    let same: Rows<'_> = &[(3, 60, "emit main")];
    let [base, change] = renamed_and(same, same);
    assert_eq!(
        first_line(&base, &change),
        "as much as before in \"one\": parse_all  src/bench.rs:11 (renamed)"
    );
    let expected = ("one".to_owned(), "parse_all".to_owned());
    assert_eq!(first_of_others(&base, &change), [expected.clone(), expected]);
}

#[test]
fn the_greatest_difference_of_all_windows_stands_first_and_of_equal_ones_what_was_added() {
    let side = |a: u64, b: u64, c: u64| {
        let rows: [(u64, u64, &str); 3] =
            [(a, 8 * a, "aa main"), (b, 16 * b, "bb main"), (c, 8 * c, "cc main")];
        windows(1, &[("one", &rows[..2]), ("two", &rows[2..])])
    };
    let first = |base: [u64; 3], change: [u64; 3]| {
        let line = first_line(&side(base[0], base[1], base[2]), &side(change[0], change[1], change[2]));
        line.split_once("  src").expect("a call site").0.to_owned()
    };
    assert_eq!(first([10, 10, 10], [9, 10, 12]), "+2 allocs in \"two\": cc");
    assert_eq!(first([10, 10, 10], [7, 10, 12]), "-3 allocs in \"one\": aa");
    assert_eq!(first([10, 10, 10], [8, 10, 12]), "+2 allocs in \"two\": cc");
    assert_eq!(first([10, 10, 10], [8, 12, 9]), "+2 allocs in \"one\": bb");
}

#[test]
fn a_check_begins_with_the_window_to_which_most_was_added() {
    let side = |one: u64, two: u64| {
        windows(1, &[("one", &[(one, 8 * one, "aa main")]), ("two", &[(two, 8 * two, "cc main")])])
    };
    let limits = Limits::default();
    let origin = || Origin::Option("--per-stack");
    let options = CheckOptions {
        defaults: default_gates((Amount::Exact(Rate::ZERO), Origin::Default), (Severity::Hard, origin())),
        ..CheckOptions::default()
    };
    let first = |change: Profile| {
        let subject = Subject::new(change, Some(side(10, 10)), &limits, &options);
        let text = heaptally_report::text::check::text(
            &check(&subject, &limits, &options),
            &Options::default(),
            false,
            None,
        );
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first(side(11, 15)), "FAILED: +5 allocs (more) in \"two\": cc  src/bench.rs:13");
    assert_eq!(first(side(15, 11)), "FAILED: +5 allocs (more) in \"one\": aa  src/bench.rs:11");
}

/// The base knows lines, the change has been built without debug information.
#[test]
fn a_line_of_the_base_is_not_told_of_a_change_that_knows_none() {
    let base = windows(1, &[("one", &[(1, 100, "fill main")])]);
    let mut change = windows(1, &[("one", &[(10, 300, "fill main")])]);
    for function in &mut change.functions {
        function.file.clear();
    }
    change.locations.iter_mut().flat_map(|location| &mut location.lines).for_each(|line| line.line = 0);
    assert_eq!(first_line(&base, &change), "+9 allocs in \"one\": fill  src/bench.rs (more)");
    let diff = diff(&base, &change, &DiffOptions::default());
    let whole = text(&diff, &Options::default(), Show::Entries);
    assert!(
        whole.contains("which line of it changed is not known: one side has no debug information"),
        "{whole}"
    );
    let report: Value = serde_json::from_str(&diff_json(&diff, &Options::default())).expect("JSON");
    assert_eq!(report["windows"][0]["entries"][0]["line"], Value::Null);
}

#[test]
fn windows_of_one_side_alone_are_named_as_what_differs() {
    let rows: Rows<'_> = &[(3, 60, "emit main")];
    let side = |names: &[&str]| windows(1, &names.iter().map(|name| (*name, rows)).collect::<Vec<_>>());
    assert_eq!(
        first_line(&side(&["one", "old"]), &side(&["one", "new", "newer"])),
        "other windows: \"old\" in the base only; \"new\", \"newer\" in the change only; no difference in the rest: 1 \
         stack in 1 window"
    );
    assert_eq!(
        first_line(&side(&["old"]), &side(&["new"])),
        "nothing to compare: no window is on both sides (\"old\" in the base only; \"new\" in the change only)"
    );
    // A window in which nothing allocates makes no difference.
    let (base, change) = (side(&["one"]), windows(1, &[("one", rows), ("idle", &[])]));
    assert_eq!(first_line(&base, &change), "no difference: 1 stack in 1 window");
    assert!(!diff(&base, &change, &DiffOptions::default()).differs());
    assert!(diff(&base, &side(&["one", "new"]), &DiffOptions::default()).differs());
}
