//! Diffs of programs that are built differently, and of arbitrary profiles.
#![expect(clippy::unwrap_used, reason = "what is missing fails the test")]

mod case;
mod program;
mod swift;

use std::collections::BTreeSet;

use heaptally_profile::diff::{Diff, DiffOptions, Entry, How, Pair, WindowDiff, diff};
use heaptally_profile::model::{Counts, Profile};
use proptest::prelude::*;

use crate::arbitrary;
use program::{Build, Program, Random};

/// Programs with more stacks are left out.
const MOST: usize = 300;

fn build(seed: u64, debug_information: bool) -> Build {
    Build { inlined: 0, noise: 0, seed, debug_information, checkout: "/home/a/app", suffixes: false }
}

fn compare<'p>(base: &'p Profile, change: &'p Profile) -> Diff<'p> {
    diff(base, change, &DiffOptions::default())
}

/// The call site of an entry: its function and line.
fn site(diff: &Diff<'_>, window: &WindowDiff<'_>, entry: &Entry) -> (String, u32) {
    let (side, row) = entry.row;
    let view = &window.views[side.index()];
    let frame = view.rows[row].frames(diff.profiles[side.index()]).nth(entry.site);
    frame.map_or_else(Default::default, |frame| (frame.name().unwrap_or_default().to_owned(), frame.line))
}

fn entries(diff: &Diff<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for window in &diff.windows {
        for entry in &window.entries {
            let (name, line) = site(diff, window, entry);
            let counts = entry.counts.map(|counts| counts.allocations);
            lines.push(format!("{} {:?} {name}:{line}", window.delta(counts), entry.kind));
        }
    }
    lines
}

/// A program with one allocation more in one of its functions, other functions renamed and all lines moved; what was
/// planted where.
fn planted(seed: u64, renamed: usize) -> (Program, Program, usize, u32) {
    let mut random = Random::new(seed);
    let base = Program::new(seed, 30);
    let mut change = base.clone();
    change.drift(&mut random);
    let reached = base.reached();
    let function = reached[random.below(reached.len())];
    let line = change.plant(function, random.below(4));
    for _ in 0..renamed {
        let other = random.below(30);
        if other != function && other != 0 {
            let name = &mut change.functions[other].name;
            *name = if random.one_in(2) { format!("{name}_all") } else { format!("app::other{other}::run") };
        }
    }
    (base, change, function, line)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// With debug information the first entry is the line that was added, whatever else happened to the build.
    #[test]
    fn the_first_entry_is_the_planted_line(seed in any::<u64>(), inlined in 0..80_usize, renamed in 0..3_usize) {
        let (base, change, function, line) = planted(seed, renamed);
        let changed = Build { inlined, checkout: "/tmp/b", suffixes: true, ..build(seed ^ 1, true) };
        let name = change.functions[function].name.clone();
        let both = base.run(&build(seed, true), MOST).zip(change.run(&changed, MOST));
        let Some((base, change)) = both else { return Ok(()) };
        let diff = compare(&base, &change);
        let window = &diff.windows[0];
        prop_assert!(!window.entries.is_empty());
        let (found, at) = site(&diff, window, &window.entries[0]);
        prop_assert!(found.starts_with(&name), "{found}, not {name}: {:#?}", entries(&diff));
        prop_assert_eq!(at, line, "{:#?}", entries(&diff));
    }

    /// A build that inlines other calls, has its sources elsewhere and its lines moved, is no difference.
    #[test]
    fn another_build_is_no_difference(seed in any::<u64>(), inlined in [0..80_usize, 0..80], debug in any::<bool>()) {
        let program = Program::new(seed, 30);
        let mut moved = program.clone();
        moved.drift(&mut Random::new(seed));
        let first = Build { inlined: inlined[0], ..build(seed, debug) };
        let changed = Build { inlined: inlined[1], checkout: "/tmp/b", suffixes: true, ..build(seed ^ 1, debug) };
        let both = program.run(&first, MOST).zip(moved.run(&changed, MOST));
        let Some((base, change)) = both else { return Ok(()) };
        let diff = compare(&base, &change);
        if debug {
            prop_assert_eq!(entries(&diff), [""; 0]);
        }
        check(&base, &change, &diff)?;
    }

    #[test]
    fn nothing_differs_from_itself(profile in arbitrary::profile()) {
        let diff = compare(&profile, &profile);
        prop_assert!(!diff.differs(), "{:?}", entries(&diff));
        // What is wrong with a recording is told though the other one is as bad.
        for condition in &diff.conditions {
            prop_assert_eq!(&condition.values[0], &condition.values[1]);
        }
    }

    #[test]
    fn arbitrary_profiles(base in arbitrary::one_run(), change in arbitrary::one_run()) {
        let diff = compare(&base, &change);
        for window in &diff.windows {
            check_pairs(window)?;
        }
        let mirrored = compare(&change, &base);
        for window in &diff.windows {
            let same = |other: &&WindowDiff<'_>| other.views[0].id == window.views[1].id && other.views[1].id == window.views[0].id;
            if let Some(other) = mirrored.windows.iter().find(same) {
                prop_assert_eq!(pairs(window, false), pairs(other, true));
            }
        }
    }

    #[test]
    fn planted_diffs_add_up_and_mirror(seed in any::<u64>(), inlined in 0..80_usize, debug in any::<bool>(), renamed in 0..4_usize) {
        let (base, change, ..) = planted(seed, renamed);
        let changed = Build { inlined, ..build(seed ^ 1, debug) };
        let both = base.run(&build(seed, debug), MOST).zip(change.run(&changed, MOST));
        let Some((base, change)) = both else { return Ok(()) };
        check(&base, &change, &compare(&base, &change))?;
    }

    #[test]
    fn options_change_no_sum(base in arbitrary::one_run(), change in arbitrary::one_run()) {
        let options = DiffOptions { fold_recursion: true, fold_generics: true, ..DiffOptions::default() };
        for window in &diff(&base, &change, &options).windows {
            check_pairs(window)?;
        }
    }
}

/// Each row is in one pair.
fn check_pairs(window: &WindowDiff<'_>) -> Result<(), TestCaseError> {
    for side in 0..2 {
        let mut rows: Vec<usize> = window.pairs.iter().flat_map(|pair| pair.rows[side].clone()).collect();
        rows.sort_unstable();
        prop_assert_eq!(rows, (0..window.views[side].rows.len()).collect::<Vec<_>>());
    }
    for pair in &window.pairs {
        prop_assert_eq!(pair.how == How::Alone, pair.rows.iter().any(Vec::is_empty));
    }
    Ok(())
}

/// The pairs, as sets of stacks of either side.
fn pairs(window: &WindowDiff<'_>, turned: bool) -> BTreeSet<String> {
    let stacks = |pair: &Pair, side: usize| {
        let rows = pair.rows[side].iter().map(|&row| window.views[side].rows[row].row.stack);
        rows.collect::<BTreeSet<_>>()
    };
    let text = |pair: &Pair| {
        let (first, second) = if turned { (1, 0) } else { (0, 1) };
        format!("{:?} {:?} {:?}", stacks(pair, first), stacks(pair, second), pair.how)
    };
    window.pairs.iter().map(text).collect()
}

/// What holds of every diff.
fn check(base: &Profile, change: &Profile, diff: &Diff<'_>) -> Result<(), TestCaseError> {
    let mirrored = compare(change, base);
    for (window, other) in diff.windows.iter().zip(&mirrored.windows) {
        check_pairs(window)?;
        prop_assert_eq!(pairs(window, false), pairs(other, true));
        let sum = |window: &WindowDiff<'_>, what: fn(&Counts) -> u64| -> f64 {
            window
                .entries
                .iter()
                .map(|entry| window.delta([what(&entry.counts[0]), what(&entry.counts[1])]))
                .sum()
        };
        for what in [|counts: &Counts| counts.allocations, |counts: &Counts| counts.bytes] {
            let all = window.delta([what(&window.counts[0]), what(&window.counts[1])]);
            prop_assert_eq!(sum(window, what), all);
            prop_assert_eq!(sum(other, what), -all);
        }
        for (at, entry) in window.entries.iter().enumerate() {
            if let Some(other) = entry.counterpart {
                prop_assert_eq!(window.entries[other].counterpart, Some(at));
            }
        }
    }
    // The same profiles give the same value.
    prop_assert_eq!(format!("{diff:?}"), format!("{:?}", compare(base, change)));
    Ok(())
}

/// With symbols only a function that was inlined is not known any more: then the nearest that is has to be named. This is
/// no law but a rate, in programs that are small, call their functions from everywhere, and have a third of their calls
/// inlined, a tenth of them on one side only.
#[test]
fn with_symbols_only_the_nearest_function_is_named() {
    let (mut hits, mut all) = (0, 0);
    for seed in 1000..1400 {
        let (base, change, function, _) = planted(seed, 1);
        let build_of = |seed: u64, inlined| Build { inlined, noise: 2, ..build(seed, false) };
        let changed = build_of(2 * seed + 1, 40);
        let both = base.run(&build_of(2 * seed, 30), MOST).zip(change.run(&changed, MOST));
        let Some((base, profile)) = both else { continue };
        // By every way from the planted function outwards the first that is not inlined.
        let mut nearest = BTreeSet::new();
        let mut open = vec![function];
        while let Some(at) = open.pop() {
            for caller in 0..change.functions.len() {
                let calls = change.functions[caller]
                    .actions
                    .iter()
                    .any(|(_, action)| matches!(action, program::Action::Call(callee) if *callee == at));
                if calls && Program::is_inlined(&changed, caller, at) {
                    open.push(caller);
                } else if calls || at == 0 {
                    nearest.insert(change.functions[at].name.clone());
                }
            }
        }
        let diff = compare(&base, &profile);
        let window = &diff.windows[0];
        let first = window.entries.first().map(|entry| site(&diff, window, entry).0);
        all += 1;
        let is_hit = first.as_ref().is_some_and(|first| nearest.contains(first));
        hits += usize::from(is_hit);
    }
    println!("symbols only: {hits} of {all}");
    assert!(all > 200, "{all} programs are small enough");
    assert!(hits * 100 >= all * 60, "{hits} of {all}");
}
