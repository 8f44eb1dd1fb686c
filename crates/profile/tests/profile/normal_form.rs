//! The normal form: idempotent, keeps all sums, and does not depend on how the tables were ordered.

use heaptally_profile::model::{Counts, Profile};
use heaptally_profile::pprof::write;
use proptest::prelude::*;

use crate::arbitrary;

/// The same profile with the tables of modules, functions, locations, stacks and threads reversed.
pub(crate) fn reversed(profile: &Profile) -> Profile {
    let mut other = profile.clone();
    let modules = other.modules.len();
    let functions = other.functions.len();
    let locations = other.locations.len();
    let stacks = other.stacks.len();
    other.modules.reverse();
    other.functions.reverse();
    other.locations.reverse();
    other.stacks.reverse();
    other.threads.reverse();
    for location in &mut other.locations {
        location.module = location.module.map(|at| modules - 1 - at);
        location.lines.iter_mut().for_each(|line| line.function = functions - 1 - line.function);
    }
    for stack in &mut other.stacks {
        stack.locations.iter_mut().for_each(|at| *at = locations - 1 - *at);
    }
    other.rows.iter_mut().for_each(|row| row.stack = stacks - 1 - row.stack);
    for executor in &mut other.executors {
        executor.stack = stacks - 1 - executor.stack;
        executor.locations.iter_mut().for_each(|at| *at = locations - 1 - *at);
    }
    other.executors.reverse();
    for thread in &mut other.threads {
        thread.start = thread.start.map(|at| locations - 1 - at);
    }
    other
}

/// What a window's rows say, by names and addresses instead of indices.
fn facts(profile: &Profile) -> Vec<String> {
    let mut facts: Vec<String> = profile
        .rows
        .iter()
        .filter(|row| !row.counts.is_zero())
        .map(|row| {
            let stack = &profile.stacks[row.stack];
            let frames: Vec<String> = stack
                .locations
                .iter()
                .map(|&at| {
                    let location = &profile.locations[at];
                    let module = location.module.map(|at| &profile.modules[at]);
                    let lines =
                        location.lines.iter().map(|line| (&profile.functions[line.function], line.line));
                    format!(
                        "{module:?} {:?} {} {:?}",
                        location.kind,
                        location.address,
                        lines.collect::<Vec<_>>()
                    )
                })
                .collect();
            format!("{} {frames:?} {:?} {:?}", row.window, stack.capture, stack.cut_reason)
        })
        .collect();
    facts.sort();
    facts.dedup();
    facts
}

proptest! {
    #[test]
    fn it_is_idempotent_and_keeps_what_rows_say(profile in arbitrary::profile()) {
        let mut once = profile.clone();
        once.normalize().unwrap();
        prop_assert_eq!(once.validate(), Ok(()));
        prop_assert_eq!(facts(&once), facts(&profile));
        // Sums stop at the highest number, and so do merged rows.
        let exact = |counts: &Counts| counts.allocations < u64::MAX && counts.bytes < u64::MAX;
        if profile.window_counts().iter().all(exact) {
            prop_assert_eq!(once.window_counts(), profile.window_counts());
        }
        let mut twice = once.clone();
        twice.normalize().unwrap();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn equal_recordings_give_equal_files_however_their_tables_are_ordered(profile in arbitrary::profile()) {
        let mut one = profile.clone();
        let mut other = reversed(&profile);
        one.normalize().unwrap();
        other.normalize().unwrap();
        prop_assert_eq!(&other, &one);
        prop_assert_eq!(write(&other), write(&one));
    }
}
