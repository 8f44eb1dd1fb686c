//! What has to hold of every comparison.

use heaptally_profile::diff::{Diff, DiffOptions, WindowDiff, diff};
use heaptally_profile::merge::make_comparable;
use heaptally_profile::model::Profile;
use heaptally_report::text::diff::{Show, text};
use heaptally_report::{diff_folded, diff_json, diff_markdown};

use crate::profile::options;

/// Compares two profiles in both directions, and each with itself, and makes every report.
///
/// # Panics
/// When something does not hold.
pub fn check(mut base: Profile, mut change: Profile, choice: u8) {
    if base.normalize().is_err() || change.normalize().is_err() {
        return;
    }
    let diff_options = DiffOptions {
        fold_recursion: choice & 1 == 1,
        fold_generics: choice & 2 == 2,
        ..DiffOptions::default()
    };
    for profile in [&base, &change] {
        assert!(!diff(profile, profile, &diff_options).differs(), "a profile differs from itself");
    }
    if make_comparable(&mut base, &mut change).is_err() {
        return;
    }
    let there = diff(&base, &change, &diff_options);
    let back = diff(&change, &base, &diff_options);
    there.windows.iter().chain(&back.windows).for_each(pairs);
    for window in &there.windows {
        for entry in &window.entries {
            let [base, change] = entry.counts.each_ref().map(|counts| counts.allocations);
            assert!(window.delta([base, change]).is_finite(), "no number: {base} and {change}");
        }
    }
    if there.windows.len() == back.windows.len() && there.windows.len() == 1 {
        mirrored(&there.windows[0], &back.windows[0]);
    }
    report(&there, &diff(&base, &change, &diff_options), choice);
}

/// Each row is in one pair.
fn pairs(window: &WindowDiff<'_>) {
    for side in 0..2 {
        let mut rows: Vec<usize> = window.pairs.iter().flat_map(|pair| pair.rows[side].clone()).collect();
        rows.sort_unstable();
        assert!(rows.into_iter().eq(0..window.views[side].rows.len()), "rows that are in no pair, or in two");
    }
}

/// The same pairs come out when the sides are exchanged.
fn mirrored(there: &WindowDiff<'_>, back: &WindowDiff<'_>) {
    let set = |window: &WindowDiff<'_>, first: usize| {
        let of = |rows: &[usize]| {
            let mut rows = rows.to_vec();
            rows.sort_unstable();
            rows
        };
        let mut pairs: Vec<_> = window
            .pairs
            .iter()
            .map(|pair| (of(&pair.rows[first]), of(&pair.rows[1 - first]), pair.how))
            .collect();
        pairs.sort();
        pairs
    };
    assert_eq!(set(there, 0), set(back, 1), "pairs depend on which side is the base");
}

fn report(first: &Diff<'_>, second: &Diff<'_>, choice: u8) {
    let options = options(u64::from(choice) * 0x0101_0101);
    let forms = |diff: &Diff<'_>| {
        let [entries, tree, pairing] =
            [Show::Entries, Show::Tree, Show::Pairing].map(|show| text(diff, &options, show));
        let json = diff_json::diff_json(diff, &options);
        [
            entries,
            tree,
            pairing,
            json,
            diff_markdown::diff_markdown(diff, &options),
            diff_folded::diff_folded(diff, &options),
        ]
    };
    let made = forms(first);
    assert_eq!(made, forms(second), "the same profiles give other bytes");
    let [entries, tree, pairing, json, markdown, folded] = made;
    serde_json::from_str::<serde_json::Value>(&json).expect("a diff in JSON is JSON");
    assert!(markdown.len() <= diff_markdown::MOST_BYTES, "{} bytes of Markdown", markdown.len());
    for text in [&entries, &tree, &pairing, &markdown, &folded] {
        let is_safe = |character: char| {
            !character.is_control() || character == '\n' || (options.color && character == '\x1b')
        };
        assert!(text.chars().all(is_safe), "a control character in {text:?}");
    }
    for line in folded.lines() {
        let numbers = line.rsplit(' ').take(2).filter(|word| word.parse::<u64>().is_ok()).count();
        assert_eq!(numbers, 2, "not two values in {line:?}");
    }
}
