use heaptally_profile::model::{Capture, Profile, WindowKind};
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
    assert_eq!(summary(&fixture.profile), "2 windows, 1,204,000 allocations, 1 stack, all complete");
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
        "2 windows, 40,306 allocations, 4 stacks, 99.99 % complete, 3 by frame pointer, 3 cut; not recorded: 7 \
         allocations from signal handlers that interrupted the recorder, 1 entry half-written or without sense"
    );
}

#[test]
fn nothing_is_a_result_too() {
    assert_eq!(summary(&Profile::default()), "0 windows, 0 allocations, 0 stacks");
}
