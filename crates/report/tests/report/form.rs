//! Folded stacks and CSV.

use heaptally_profile::model::WindowKind;
use heaptally_profile::view::Sort;
use heaptally_report::Options;
use heaptally_report::csv::csv;
use heaptally_report::folded::folded;

use crate::fixture::{Fixture, everything, freed};

#[test]
fn a_stack_is_one_line_from_the_outside() {
    let mut fixture = Fixture::new();
    let window = fixture.window("w", WindowKind::Process, 10);
    let stack = fixture.stack("malloc", "alloc::vec::Vec<T>::push|push_value|a;b main");
    fixture.row(window, stack, freed(3, 24));
    let profile = fixture.profile;
    let of = |sort| folded(&profile, &Options { sort, ..Options::default() });
    assert_eq!(of(Sort::Count), "main;a:b;push_value_[i];alloc::vec::Vec<T>::push_[i];malloc 3\n");
    assert_eq!(of(Sort::Bytes), "main;a:b;push_value_[i];alloc::vec::Vec<T>::push_[i];malloc 24\n");
    assert_eq!(of(Sort::Live), "");
}

#[test]
fn windows_part_folded_stacks() {
    let folded = folded(&everything(), &Options::default());
    assert!(folded.lines().all(|line| line.starts_with("parse \\u{1b}[2J;")), "{folded}");
    let sum: u64 = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    assert_eq!(sum, 40_306);
}

#[test]
fn a_record_for_each_row() {
    let csv = csv(&everything(), &Options::default());
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let titles = reader.headers().unwrap().clone();
    let column = |name: &str| titles.iter().position(|title| title == name).unwrap();
    let records: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), 4);
    assert_eq!(&records[0][column("window")], "parse \\u{1b}[2J");
    assert_eq!(&records[0][column("allocations")], "40000");
    assert_eq!(&records[0][column("allocations_per_iteration")], "40");
    assert_eq!(&records[0][column("function")], "header::push_value");
    assert_eq!(&records[0][column("file")], "src/bench.rs");
    assert_eq!(records[1][column("stack")].split(';').count(), 3003);
    assert_eq!(&records[3][column("failed")], "1");
}

#[test]
fn what_was_not_followed_is_not_known() {
    let mut profile = everything();
    profile.environment.lifetimes = false;
    let csv = csv(&profile, &Options::default());
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let column = reader.headers().unwrap().iter().position(|title| title == "live").unwrap();
    assert!(reader.records().all(|record| record.unwrap()[column].is_empty()));
    let json: serde_json::Value =
        serde_json::from_str(&heaptally_report::json::json(&profile, &Options::default())).unwrap();
    assert!(json["windows"][1]["live"].is_null() && json["windows"][1]["rows"][0]["live_bytes"].is_null());
}
