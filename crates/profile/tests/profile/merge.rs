//! Several runs in one profile: nothing is lost, and neither grouping nor the order of tables matters.

use heaptally_profile::Error;
use heaptally_profile::merge::{make_comparable, merge, sum as add};
use heaptally_profile::model::{
    Counts, Environment, Metric, Origin, Profile, RepeatValue, ThreadLife, ThreadTotal,
};
use heaptally_profile::pprof::{read, write};
use proptest::prelude::*;

use crate::arbitrary;
use crate::normal_form::reversed;

/// Runs of one program under one recorder.
fn runs() -> impl Strategy<Value = Vec<Profile>> {
    prop::collection::vec(arbitrary::one_run(), 3).prop_map(|mut runs| {
        for run in &mut runs {
            let Environment { recorder, libc, lifetimes, task_origins, .. } = &mut run.environment;
            *task_origins = false;
            (*recorder, *libc, *lifetimes) = ("0.1.0".into(), "glibc 2.36".into(), true);
            (run.environment.origin, run.environment.unknown) = (None, [].into());
        }
        runs
    })
}

/// The same with counts whose sums fit, and with one thread that did what the rows say.
fn exact_runs() -> impl Strategy<Value = Vec<Profile>> {
    runs().prop_map(|mut runs| {
        for run in &mut runs {
            for counts in run.rows.iter_mut().map(|row| &mut row.counts) {
                let Counts { allocations, bytes, discarded, discarded_bytes, .. } = counts;
                let Counts { freed, freed_bytes, freed_later, freed_later_bytes, .. } = counts;
                for count in [allocations, bytes, discarded, discarded_bytes] {
                    *count &= 0xffff_ffff;
                }
                for count in [freed, freed_bytes, freed_later, freed_later_bytes] {
                    *count &= 0xffff_ffff;
                }
            }
            let total = |counts: Counts| ThreadTotal {
                allocations: counts.allocations + counts.discarded,
                bytes: counts.bytes + counts.discarded_bytes,
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

/// What two profiles have in common is what they are added by, so each run is given to several.
fn shards() -> impl Strategy<Value = Vec<Profile>> {
    (runs(), runs(), prop::collection::vec(1..4_usize, 3)).prop_map(|(runs, others, repeats)| {
        let shard = |((run, other), repeats): ((Profile, Profile), usize)| match repeats {
            1 => run,
            repeats => {
                merge([run, other.clone(), other].into_iter().take(repeats).collect()).unwrap_or_default()
            }
        };
        runs.into_iter().zip(others).zip(repeats).map(shard).collect()
    })
}

/// The sums of rows as they can be had without any of the model's own sums.
fn sums(profile: &Profile) -> [u128; 4] {
    let add = |value: fn(&Counts) -> u64| profile.rows.iter().map(|row| u128::from(value(&row.counts))).sum();
    [add(|of| of.allocations), add(|of| of.bytes), add(|of| of.freed), add(|of| of.freed_later_bytes)]
}

proptest! {
    #[test]
    fn sums_are_the_same_in_any_order_and_group(shards in shards()) {
        let [a, b, c] = <[Profile; 3]>::try_from(shards).map_err(|_| TestCaseError::fail("three"))?;
        let of = |profiles: &[&Profile]| add(profiles.iter().map(|&profile| profile.clone()).collect());
        let all = of(&[&a, &b, &c])?;
        all.validate()?;
        prop_assert_eq!(&of(&[&c, &a, &b])?, &all);
        prop_assert_eq!(&of(&[&b, &a, &c])?, &all);
        prop_assert_eq!(&of(&[&of(&[&a, &b])?, &c])?, &all);
        prop_assert_eq!(&of(&[&a, &of(&[&c, &b])?])?, &all);
        prop_assert_eq!(&of(&[&all])?, &all);
        prop_assert_eq!(write(&of(&[&c, &b, &a])?), write(&all));
    }

    #[test]
    fn sums_are_exact(mut shards in exact_runs()) {
        // A row that counts in the entries of windows of one name goes where that window goes.
        let expected = shards.iter().map(sums).fold([0; 4], |sum, of| [0, 1, 2, 3].map(|at| sum[at] + of[at]));
        let iterations = |profile: &Profile| -> u128 {
            profile.windows.iter().map(|window| u128::from(window.iterations & 0xffff_ffff)).sum()
        };
        for shard in &mut shards {
            shard.windows.iter_mut().for_each(|window| window.iterations &= 0xffff_ffff);
        }
        let expected_iterations: u128 = shards.iter().map(iterations).sum();
        let all = add(shards)?;
        prop_assert_eq!(sums(&all), expected);
        prop_assert_eq!(sums(&read(&write(&all))?), expected);
        prop_assert_eq!(all.windows.iter().map(|of| u128::from(of.iterations)).sum::<u128>(), expected_iterations);
        prop_assert_eq!(all.environment.runs(), 1);
    }
}

/// A profile out of another tool's file.
fn imported(sampling: &str, live_only: bool, unknown: &[Metric]) -> Profile {
    let origin = Origin { format: "pprof profile".into(), sampling: sampling.into(), live_only };
    let unknown = unknown.iter().copied().collect();
    Profile {
        environment: Environment { origin: Some(origin), unknown, ..Environment::default() },
        ..Profile::default()
    }
}

#[test]
fn what_is_of_another_kind_is_not_added() {
    let refused = |one: &Profile, other: &Profile, words: &str| {
        let error = add(vec![one.clone(), other.clone()]).expect_err("they do not go together");
        assert!(error.to_string().contains(words), "{error}");
        add(vec![one.clone(), one.clone()]).expect("a profile goes with itself");
    };
    let exact = imported("", false, &[]);
    refused(&exact, &Profile::default(), "what wrote it is \"pprof profile\" in one, heaptally in another");
    refused(
        &exact,
        &imported("one in 512 bytes", false, &[]),
        "the sampling is none in one, \"one in 512 bytes\" in another",
    );
    refused(&exact, &imported("", true, &[]), "what is counted is all in one, live blocks in another");
    refused(&exact, &imported("", false, &[Metric::Bytes]), "what is not known");
    assert_eq!(add(Vec::new()), Err(Error::NothingToMerge));
}

#[test]
fn what_one_side_did_not_measure_is_not_compared() {
    let mut sampled = imported("one in 512 bytes", false, &[]);
    let mut exact = imported("", false, &[]);
    assert!(matches!(
        make_comparable(&mut exact, &mut sampled),
        Err(Error::Unlike { what: "the sampling", .. })
    ));
    let mut live = imported("", true, &[]);
    assert!(make_comparable(&mut exact, &mut live).is_err());
    let mut without = imported("", false, &[Metric::Bytes]);
    exact.rows.push(heaptally_profile::model::Row {
        counts: Counts { allocations: 2, bytes: 20, ..Counts::default() },
        ..Default::default()
    });
    assert_eq!(make_comparable(&mut exact, &mut without), Ok(()));
    assert_eq!((exact.rows[0].counts.allocations, exact.rows[0].counts.bytes), (2, 0));
    assert!(!exact.environment.knows(Metric::Bytes));
}
