//! Several runs in one profile: nothing is lost, and neither grouping nor the order of tables matters.

use heaptally_profile::merge::merge;
use heaptally_profile::model::{Counts, Environment, Profile, RepeatValue, ThreadLife, ThreadTotal};
use heaptally_profile::pprof::{read, write};
use proptest::prelude::*;

use crate::arbitrary;
use crate::normal_form::reversed;

/// Runs of one program under one recorder.
fn runs() -> impl Strategy<Value = Vec<Profile>> {
    prop::collection::vec(arbitrary::one_run(), 3).prop_map(|mut runs| {
        for run in &mut runs {
            let Environment { recorder, libc, lifetimes, .. } = &mut run.environment;
            (*recorder, *libc, *lifetimes) = ("0.1.0".into(), "glibc 2.36".into(), true);
        }
        runs
    })
}

/// The same with counts whose sums fit, and with one thread that did what the rows say.
fn exact_runs() -> impl Strategy<Value = Vec<Profile>> {
    runs().prop_map(|mut runs| {
        for run in &mut runs {
            for Counts { allocations, bytes, freed, freed_bytes, freed_later, freed_later_bytes, .. } in
                run.rows.iter_mut().map(|row| &mut row.counts)
            {
                for count in [allocations, bytes, freed, freed_bytes, freed_later, freed_later_bytes] {
                    *count &= 0xffff_ffff;
                }
            }
            let total = |counts: Counts| ThreadTotal {
                allocations: counts.allocations,
                bytes: counts.bytes,
                freed: counts.freed + counts.freed_later,
                freed_bytes: counts.freed_bytes + counts.freed_later_bytes,
            };
            let totals = run.window_counts().into_iter().map(total).enumerate().collect();
            run.threads = vec![ThreadLife { lives: 1, totals, ..ThreadLife::default() }];
            run.windows.iter_mut().for_each(|window| window.lost = 0);
            run.losses.thread = 0;
            run.losses.thread_totals = 0;
            run.environment.exit_code = Some(0);
        }
        runs
    })
}

/// All allocations and bytes of each run.
fn sums_by_run(profile: &Profile) -> Vec<RepeatValue> {
    let mut sums = vec![RepeatValue::default(); profile.environment.repeats as usize];
    for row in &profile.rows {
        for (sum, value) in sums.iter_mut().zip(&row.repeats) {
            sum.add(value);
        }
    }
    sums
}

fn sum(profile: &Profile) -> RepeatValue {
    let mut sum = RepeatValue::default();
    for counts in profile.window_counts() {
        sum.add(&RepeatValue { allocations: counts.allocations, bytes: counts.bytes });
    }
    sum
}

proptest! {
    #[test]
    fn one_is_itself(mut profile in arbitrary::profile()) {
        // One module can have but one problem.
        profile.modules.iter_mut().for_each(|module| module.symbol_problem = None);
        let merged = merge(vec![profile.clone()]).unwrap();
        profile.normalize().unwrap();
        prop_assert_eq!(merged, profile);
    }

    #[test]
    fn groups_make_no_difference(runs in runs()) {
        let all = merge(runs.clone()).unwrap();
        prop_assert_eq!(all.validate(), Ok(()));
        let [a, b, c] = <[Profile; 3]>::try_from(runs).unwrap();
        let first = merge(vec![merge(vec![a.clone(), b.clone()]).unwrap(), c.clone()]).unwrap();
        prop_assert_eq!(&first, &all);
        let last = merge(vec![a, merge(vec![b, c]).unwrap()]).unwrap();
        prop_assert_eq!(&last, &all);
    }

    #[test]
    fn the_order_of_tables_makes_no_difference(runs in runs()) {
        let others = runs.iter().map(reversed).collect();
        prop_assert_eq!(merge(others), merge(runs));
    }

    #[test]
    fn the_result_is_in_normal_form_and_fits_a_file(runs in runs()) {
        let merged = merge(runs).unwrap();
        let mut again = merged.clone();
        again.normalize().unwrap();
        prop_assert_eq!(&again, &merged);
        // Counts in a file end at the highest number that pprof holds.
        if merged.rows.iter().all(|row| row.counts.allocations <= i64::MAX as u64 && row.counts.bytes <= i64::MAX as u64)
            && let Ok(found) = read(&write(&merged))
        {
            let repeats = |profile: &Profile| profile.rows.iter().map(|row| row.repeats.clone()).collect::<Vec<_>>();
            prop_assert_eq!(repeats(&found), repeats(&merged));
        }
    }

    #[test]
    fn sums_hold(runs in exact_runs()) {
        for run in &runs {
            prop_assert_eq!(run.check_sums(), []);
        }
        let merged = merge(runs.clone()).unwrap();
        prop_assert_eq!(merged.check_sums(), []);
        prop_assert_eq!(sums_by_run(&merged), runs.iter().map(sum).collect::<Vec<_>>());
        let rows = merged.rows.iter();
        for row in rows {
            let mut by_run = RepeatValue::default();
            row.repeats.iter().for_each(|value| by_run.add(value));
            prop_assert_eq!((by_run.allocations, by_run.bytes), (row.counts.allocations, row.counts.bytes));
        }
    }

    #[test]
    fn a_run_like_the_others_is_stable(run in exact_runs()) {
        let merged = merge(vec![run[0].clone(); 3]).unwrap();
        prop_assert_eq!(merged.window_unstable().iter().sum::<u64>(), 0);
        for row in &merged.rows {
            prop_assert_eq!(row.counts.allocations, 3 * row.repeats[0].allocations);
        }
    }
}
