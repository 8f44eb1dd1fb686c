use heaptally_profile::model::{Capture, Profile, RepeatValue, WindowKind};
use heaptally_report::summary::summary;

use crate::fixture::{Fixture, everything, freed};

#[test]
fn a_flawless_run() {
    let mut fixture = Fixture::new();
    let process = fixture.window("process", WindowKind::Automatic, 1);
    let one = fixture.window("one", WindowKind::Process, 10);
    let other = fixture.window("other", WindowKind::Process, 10);
    let (f, g) = (fixture.stack("malloc", "f main"), fixture.stack("malloc", "g main"));
    fixture.row(process, g, freed(9, 9));
    fixture.row(one, f, freed(1_203_000, 1));
    fixture.row(other, f, freed(1000, 1));
    assert_eq!(
        summary(&fixture.profile),
        "2 windows, 1,204,000 allocations, 1 stack, all complete; before the windows: 9 allocations"
    );
}

#[test]
fn cut_stacks_are_never_rounded_away() {
    let mut fixture = Fixture::new();
    let window = fixture.window("w", WindowKind::Process, 10);
    let (f, g) = (fixture.stack("malloc", "f main"), fixture.stack("malloc", "g"));
    fixture.profile.stacks[g].capture = Capture::Cut;
    fixture.row(window, f, freed(1_000_000, 1));
    fixture.row(window, g, freed(3, 1));
    assert_eq!(
        summary(&fixture.profile),
        "1 window, 1,000,003 allocations, 2 stacks, 99.99 % complete, 3 cut"
    );
}

#[test]
fn losses_are_told_in_words() {
    assert_eq!(
        summary(&everything()),
        "2 windows, 40,306 allocations, 4 stacks, 99.99 % complete, 3 by frame pointer, 3 cut; before the \
         windows: 5 allocations; not recorded: 7 allocations from signal handlers that interrupted the recorder, 1 entry half-written or without sense"
    );
}

#[test]
fn several_runs_tell_what_differs_between_them() {
    let mut fixture = Fixture::new();
    let process = fixture.window("process", WindowKind::Automatic, 1);
    let window = fixture.window("w", WindowKind::Process, 30);
    let (f, g) = (fixture.stack("malloc", "f main"), fixture.stack("malloc", "g main"));
    fixture.profile.environment.repeats = 3;
    fixture.profile.windows[process].iterations_per_repeat = vec![1, 1, 1];
    fixture.profile.windows[window].iterations_per_repeat = vec![5, 10, 15];
    let by_run = |values: [u64; 3]| values.map(|allocations| RepeatValue { allocations, bytes: 0 }).into();
    fixture.row(process, g, freed(9, 0)).repeats = by_run([1, 2, 6]);
    fixture.row(window, f, freed(60, 0)).repeats = by_run([10, 20, 30]);
    fixture.row(window, g, freed(6, 0)).repeats = by_run([1, 2, 3]);
    assert_eq!(
        summary(&fixture.profile),
        "3 runs: 1 window, 66 allocations, 2 stacks, all stable, all complete; before the windows: 9 allocations"
    );
    fixture.profile.rows[2].repeats = by_run([1, 2, 4]);
    assert_eq!(
        summary(&fixture.profile),
        "3 runs: 1 window, 66 allocations, 2 stacks, 1 unstable, all complete; before the windows: 9 allocations"
    );
}

#[test]
fn nothing_is_a_result_too() {
    let mut nothing = Profile::default();
    assert_eq!(summary(&nothing), "0 windows, 0 allocations, 0 stacks");
    nothing.environment.repeats = 2;
    assert_eq!(summary(&nothing), "2 runs: 0 windows, 0 allocations, 0 stacks");
}
