//! What has to hold of every profile that can be read, and of the reports on it.

use heaptally_profile::merge::merge;
use heaptally_profile::model::{Counts, Profile};
use heaptally_profile::pprof;
use heaptally_profile::view::Sort;
use heaptally_report::{Layout, Options, csv, folded, json, summary, text};

/// How many bytes a profile may unpack to here: enough for any that libFuzzer makes, and no danger to the machine.
pub const LIMIT_BYTES: u64 = 1 << 22;

/// Beyond that many rows and runs two profiles are not merged, since it takes too long.
const MERGED_VALUES: u64 = 10_000;

/// Checks a valid profile: its normal form, its way through a file, what it becomes when it is merged.
///
/// # Panics
/// When something does not hold.
pub fn check(profile: &Profile) {
    let mut normal = profile.clone();
    normal.normalize().expect("a valid profile has a normal form");
    let mut twice = normal.clone();
    twice.normalize().expect("a normal form is valid");
    assert_eq!(twice, normal, "the normal form of a normal form");

    let file = pprof::write(&normal);
    let read = pprof::read(&file).expect("what was written can be read");
    assert_eq!(read, as_written(normal.clone()), "a profile and what was read of it");
    let again = pprof::write(&read);
    let read_again = pprof::read(&again).expect("what was written can be read");
    assert_eq!(read_again, read, "what was read and what was read of that");
    // What follows from a count that does not fit a file follows from the one that stands there.
    let fits = normal.rows.iter().zip(&read.rows).all(|(row, read)| row.counts == read.counts);
    assert!(!fits || again == file, "a file and what was written of it differ");

    let rows = (profile.rows.len() + profile.windows.len()) as u64;
    if profile.environment.runs().saturating_mul(rows.max(1)) < MERGED_VALUES {
        let merged = merge(vec![normal.clone(), normal]).expect("a profile merges with itself");
        merged.validate().expect("what was merged is valid");
        pprof::read(&pprof::write(&merged)).expect("what was merged can be read");
    }
}

/// A profile with what a file does not hold taken out.
fn as_written(mut profile: Profile) -> Profile {
    const MAX: u64 = i64::MAX as u64;
    for image in &mut profile.images {
        image.pid = 0;
    }
    for thread in &mut profile.threads {
        thread.tid = 0;
    }
    for row in &mut profile.rows {
        let counts = row.counts;
        row.counts = Counts {
            allocations: counts.allocations.min(MAX),
            bytes: counts.bytes.min(MAX),
            freed: counts.freed.min(MAX),
            freed_bytes: counts.freed_bytes.min(MAX),
            freed_later: counts.freed_later.min(MAX),
            freed_later_bytes: counts.freed_later_bytes.min(MAX),
            reallocs: counts.reallocs.min(MAX),
            reallocs_in_place: counts.reallocs_in_place.min(MAX),
            reallocs_moved: counts.reallocs_moved.min(MAX),
            temporary: counts.temporary.min(MAX),
            temporary_bytes: counts.temporary_bytes.min(MAX),
            failed: counts.failed.min(MAX),
            reallocs_to_zero: counts.reallocs_to_zero,
            discarded: counts.discarded.min(MAX),
            discarded_bytes: counts.discarded_bytes.min(MAX),
        };
    }
    profile
}

/// Options chosen by a number.
pub fn options(mut choice: u64) -> Options {
    let mut next = |choices: u64| {
        let one = choice % choices;
        choice /= choices;
        one
    };
    Options {
        layout: match next(5) {
            0 => Layout::Stack,
            1 => Layout::Site,
            2 => Layout::Function,
            3 => Layout::TopDown,
            _ => Layout::BottomUp,
        },
        sort: match next(4) {
            0 => Sort::Count,
            1 => Sort::Bytes,
            2 => Sort::Live,
            _ => Sort::Temporary,
        },
        full: next(2) == 1,
        color: next(4) == 1,
        width: [None, Some(0), Some(1), Some(13), Some(40), Some(80), Some(usize::MAX)][next(7) as usize],
        limit: [20, 0, 1, usize::MAX][next(4) as usize],
        min: [0.0, 0.5, f64::MAX, f64::NAN][next(4) as usize],
        project: [None, Some("/src".to_owned()), Some(String::new())][next(3) as usize].clone(),
        ..Options::default()
    }
}

/// Makes every report and checks its form.
///
/// # Panics
/// When something does not hold.
pub fn report(profile: &Profile, options: &Options) {
    let folded = folded::folded(profile, options);
    for report in
        [&text::text(profile, options), &text::brief(profile, options), &summary::summary(profile), &folded]
    {
        // Colours are the reports' own.
        let is_safe = |character: char| {
            !character.is_control() || character == '\n' || (options.color && character == '\x1b')
        };
        assert!(report.chars().all(is_safe), "a control character in {report:?}");
    }
    let json = json::json(profile, options);
    serde_json::from_str::<serde_json::Value>(&json).expect("a report in JSON is JSON");
    let csv = csv::csv(profile, options);
    assert!(csv.chars().all(|c| !c.is_control() || c == '\n' || c == '\r'), "a control character in {csv:?}");
    for line in folded.lines() {
        let value = line.rsplit_once(' ').and_then(|(_, value)| value.parse::<u64>().ok());
        assert!(value.is_some_and(|value| value > 0), "no value in {line:?}");
    }
}
