use super::*;
use crate::model::{Capture, Counts, Line};

fn counts(allocations: u64) -> Counts {
    Counts { allocations, bytes: allocations * 16, ..Counts::default() }
}

/// One run of `bench`: the window `parse` with `iterations`, and the function of each stack with its allocations.
fn run(iterations: u64, rows: &[(&str, u64)]) -> Profile {
    let mut profile = Profile {
        images: vec![Image {
            label: "bench".into(),
            path: "/bin/bench".into(),
            pid: 7,
            in_path: true,
            ..Image::default()
        }],
        modules: vec![Module {
            path: "/bin/bench".into(),
            build_id: "c0ffee".into(),
            text_svma_end: 0x1000,
            ..Module::default()
        }],
        windows: vec![Window {
            name: "parse".into(),
            entries: 1,
            iterations,
            iterations_told: true,
            ..Window::default()
        }],
        environment: Environment { libc: "glibc 2.36".into(), exit_code: Some(0), ..Environment::default() },
        ..Profile::default()
    };
    for &(name, allocations) in rows {
        let function = profile.functions.len();
        profile.functions.push(Function { name: name.into(), ..Function::default() });
        profile.locations.push(Location {
            module: Some(0),
            address: u64::from(name.as_bytes()[0]),
            lines: vec![Line { function, line: 3 }],
            ..Location::default()
        });
        profile.stacks.push(Stack { locations: vec![function], ..Stack::default() });
        profile.rows.push(Row {
            stack: function,
            counts: counts(allocations),
            entries: Some(1),
            first_entry: Some(1),
            last_entry: Some(1),
            ..Row::default()
        });
    }
    profile
}

fn life(image: ImageId, name: &str, lives: u64, allocations: u64) -> ThreadLife {
    let total = ThreadTotal { allocations, bytes: allocations * 16, ..ThreadTotal::default() };
    ThreadLife {
        image,
        name: name.into(),
        tid: 9,
        lives,
        totals: [(0, total)].into(),
        ..ThreadLife::default()
    }
}

/// Rows by their function: the sum, the values by run, and whether they differ.
fn rows(profile: &Profile) -> Vec<(&str, u64, Vec<u64>, bool)> {
    let row = |row: &'_ Row| {
        let location = profile.stacks[row.stack].locations[0];
        let function = profile.locations[location].lines[0].function;
        let by_run = row.repeats.iter().map(|value| {
            assert_eq!(value.bytes, value.allocations * 16);
            value.allocations
        });
        (function, row.counts.allocations, by_run.collect(), row.is_unstable(&profile.windows[row.window]))
    };
    let named = |(function, sum, by_run, unstable): (FunctionId, _, _, _)| {
        (profile.functions[function].name.as_str(), sum, by_run, unstable)
    };
    profile.rows.iter().map(row).map(named).collect()
}

#[test]
fn rows_are_paired_by_stack_and_told_apart_by_run() {
    let first = run(100, &[("f", 300), ("g", 2)]);
    let second = run(200, &[("h", 1), ("f", 600)]);
    let merged = merge(vec![first, second]).unwrap();
    assert_eq!(
        rows(&merged),
        [("f", 900, vec![300, 600], false), ("g", 2, vec![2, 0], true), ("h", 1, vec![0, 1], true)]
    );
    let window = &merged.windows[0];
    assert_eq!((window.iterations, &window.iterations_per_repeat), (300, &vec![100, 200]));
    assert_eq!((window.entries, merged.environment.repeats), (2, 2));
    assert_eq!(merged.window_unstable(), [2]);
    assert_eq!(merged.rows[0].entries, Some(2));
    assert_eq!((merged.rows[0].first_entry, merged.rows[0].last_entry), (Some(1), Some(1)));
    assert_eq!(merged.images[0].pid, 0);
    assert_eq!((merged.modules.len(), merged.functions.len(), merged.locations.len()), (1, 3, 3));
}

#[test]
fn one_profile_is_left_as_it_is() {
    let mut alone = run(100, &[("f", 300)]);
    alone.threads = vec![life(0, "a", 1, 100), life(0, "a", 1, 200)];
    let merged = merge(vec![alone.clone()]).unwrap();
    alone.environment.repeats = 1;
    assert_eq!(merged, alone);
    assert_eq!(merge(Vec::new()), Err(Error::NothingToMerge));
}

#[test]
fn a_window_that_only_some_runs_opened_stays() {
    let first = run(10, &[("f", 10)]);
    let mut second = run(10, &[("f", 10)]);
    second.windows[0].name = "other".into();
    let merged = merge(vec![first.clone(), second, first]).unwrap();
    let windows: Vec<_> =
        merged.windows.iter().map(|window| (window.name.as_str(), &window.iterations_per_repeat)).collect();
    assert_eq!(windows, [("parse", &vec![10, 0, 10]), ("other", &vec![0, 10, 0])]);
    assert_eq!(rows(&merged), [("f", 20, vec![10, 0, 10], true), ("f", 10, vec![0, 10, 0], true)]);
}

#[test]
fn windows_of_another_kind_or_image_are_others() {
    let first = run(10, &[("f", 10)]);
    let mut thread = first.clone();
    thread.windows[0].kind = WindowKind::Thread;
    let mut elsewhere = first.clone();
    elsewhere.images.insert(0, Image { path: "/bin/env".into(), ..Image::default() });
    elsewhere.windows[0].image = 1;
    let merged = merge(vec![first.clone(), thread, elsewhere, first]).unwrap();
    assert_eq!(merged.windows.len(), 2);
    assert_eq!(
        merged.windows[0].iterations_per_repeat,
        [10, 0, 10, 10],
        "the same image, though it is the second"
    );
    let labels: Vec<_> = merged.images.iter().map(|image| image.path.as_str()).collect();
    assert_eq!(labels, ["/bin/bench", "/bin/env"]);
}

#[test]
fn images_of_one_path_are_paired_in_their_order() {
    let mut twice = run(10, &[("f", 10)]);
    twice.images.push(twice.images[0].clone());
    twice.images[0].replaced = true;
    twice.images[0].warnings = vec!["a".into()];
    twice.images[1].warnings = vec!["b".into()];
    twice.windows[0].image = 1;
    let mut other = twice.clone();
    other.images[0].warnings = vec!["c".into(), "a".into()];
    let merged = merge(vec![twice, other]).unwrap();
    assert_eq!((merged.images.len(), merged.windows.len(), merged.windows[0].image), (2, 1, 1));
    assert_eq!((merged.images[0].replaced, merged.images[1].replaced), (true, false));
    assert_eq!(merged.images[0].warnings, ["a", "c"]);
    assert_eq!(merged.images[1].warnings, ["b"]);
}

#[test]
fn another_build_stays_apart() {
    let first = run(10, &[("f", 10)]);
    let mut rebuilt = first.clone();
    rebuilt.modules[0].build_id = "decade".into();
    let merged = merge(vec![first, rebuilt]).unwrap();
    assert_eq!(merged.modules.len(), 2);
    assert_eq!(rows(&merged), [("f", 10, vec![10, 0], true), ("f", 10, vec![0, 10], true)]);
}

#[test]
fn a_problem_with_symbols_makes_no_other_module() {
    let first = run(10, &[("f", 10)]);
    let mut problem = first.clone();
    problem.modules[0].symbol_problem = Some("no symbol table".into());
    let merged = merge(vec![first, problem]).unwrap();
    assert_eq!(merged.modules.len(), 1);
    assert_eq!(merged.modules[0].symbol_problem.as_deref(), Some("no symbol table"));
    assert_eq!(rows(&merged), [("f", 20, vec![10, 10], false)]);
}

#[test]
fn a_stack_that_was_cut_in_one_run_is_another_stack() {
    let first = run(10, &[("f", 10)]);
    let mut cut = first.clone();
    cut.stacks[0].capture = Capture::Cut;
    assert_eq!(merge(vec![first, cut]).unwrap().rows.len(), 2);
}

#[test]
fn threads_of_one_name_are_one_entry() {
    let mut first = run(10, &[("f", 10)]);
    first.threads = vec![life(0, "main", 1, 1), life(0, "worker", 1, 4), life(0, "worker", 1, 5)];
    let mut second = first.clone();
    second.threads[0].tid = 77;
    second.threads[0].start = Some(0);
    let merged = merge(vec![first, second]).unwrap();
    let lives: Vec<_> = merged
        .threads
        .iter()
        .map(|life| (life.name.as_str(), life.start, life.lives, life.tid, life.totals[&0].allocations))
        .collect();
    assert_eq!(lives, [("main", None, 1, 0, 1), ("main", Some(0), 1, 0, 1), ("worker", None, 4, 0, 18)]);
    assert_eq!(merged.check_sums(), []);
}

#[test]
fn the_peak_is_that_of_one_run() {
    let with = |peak_bytes, peak_uncertainty_bytes| {
        let mut profile = run(10, &[]);
        profile.windows[0].peak_bytes = peak_bytes;
        profile.windows[0].peak_uncertainty_bytes = peak_uncertainty_bytes;
        profile
    };
    let peak = |profiles| {
        let window = merge(profiles).unwrap().windows.remove(0);
        (window.peak_bytes, window.peak_uncertainty_bytes)
    };
    assert_eq!(peak(vec![with(Some(5), 64), with(Some(8), 0), with(Some(2), 99)]), (Some(8), 0));
    assert_eq!(peak(vec![with(Some(8), 0), with(Some(8), 3)]), (Some(8), 3));
    assert_eq!(peak(vec![with(None, 0), with(Some(0), 1)]), (Some(0), 1));
}

#[test]
fn facts_of_windows_are_added() {
    let mut first = run(10, &[]);
    let window = &mut first.windows[0];
    (window.crossed_ends, window.stray_ends, window.lost, window.unfinished) = (1, 2, 3, true);
    window.ended_by_thread = 4;
    let mut second = run(20, &[]);
    second.windows[0].iterations_told = false;
    let window = merge(vec![second, first]).unwrap().windows.remove(0);
    assert_eq!((window.crossed_ends, window.stray_ends, window.lost, window.unfinished), (1, 2, 3, true));
    assert_eq!(window.ended_by_thread, 4);
    assert!(window.iterations_told);
}

#[test]
fn the_environment_is_that_of_all() {
    let with = |exit_code, compiler: &str| {
        let mut profile = run(10, &[]);
        profile.environment.exit_code = exit_code;
        profile.environment.compilers = vec![compiler.into()];
        profile.environment.frees_from_before = 2;
        profile.losses.reentrant = 3;
        profile
    };
    let merged = merge(vec![with(None, "b"), with(Some(0), "a"), with(Some(3), "b"), with(Some(4), "a")]);
    let merged = merged.unwrap();
    assert_eq!(merged.environment.compilers, ["a", "b"]);
    assert_eq!((merged.environment.exit_code, merged.environment.repeats), (Some(3), 4));
    assert_eq!((merged.environment.frees_from_before, merged.losses.reentrant), (8, 12));
}

#[test]
fn other_conditions_are_an_error() {
    let differing = |change: fn(&mut Environment)| {
        let mut unlike = run(10, &[]);
        change(&mut unlike.environment);
        merge(vec![run(10, &[]), unlike]).map(drop)
    };
    let error = differing(|environment| environment.libc = "glibc 2.41".into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "profiles whose numbers do not go together: the C library is \"glibc 2.36\" in one, \"glibc 2.41\" in another"
    );
    assert!(differing(|environment| environment.lifetimes = true).is_err());
    assert_eq!(differing(|environment| environment.libc.clear()), Ok(()), "unknown");
    assert_eq!(differing(|environment| environment.architecture = "x86_64".into()), Ok(()));
}

#[test]
fn no_number_of_runs_exhausts_the_memory() {
    let mut absurd = run(10, &[]);
    absurd.windows.clear();
    absurd.environment.repeats = u64::MAX;
    assert_eq!(absurd.validate(), Ok(()));
    let error = merge(vec![absurd, run(10, &[("f", 1)])]).unwrap_err();
    assert!(matches!(error, Error::TooLarge { unit: "values by run", .. }), "{error:?}");
}

#[test]
fn invalid_profiles_are_errors() {
    let mut wrong = run(10, &[("f", 1)]);
    wrong.rows[0].repeats = vec![RepeatValue::default()];
    assert!(matches!(merge(vec![wrong]), Err(Error::Value { table: "row", .. })));
    let mut wrong = run(10, &[]);
    wrong.environment.repeats = 2;
    assert!(matches!(merge(vec![run(1, &[]), wrong]), Err(Error::Value { table: "window", .. })));
    let mut wrong = run(10, &[("f", 1)]);
    wrong.rows[0].stack = 4;
    assert!(matches!(merge(vec![run(1, &[]), wrong]), Err(Error::Index { .. })));
}
