use heaptally_profile::model::{Counts, Profile, WindowKind};
use heaptally_report::Options;
use heaptally_report::text::text;

use crate::fixture::{Fixture, everything, freed};

fn windows(names: &[&str]) -> Options {
    Options { windows: names.iter().map(|name| (*name).to_owned()).collect(), ..Options::default() }
}

#[test]
fn everything_that_can_be_shown() {
    insta::assert_snapshot!(text(&everything(), &Options::default()));
}

#[test]
fn the_automatic_window_is_shown_when_it_is_asked_for() {
    insta::assert_snapshot!(text(&everything(), &windows(&["process"])));
}

#[test]
fn the_automatic_window_alone_is_shown_in_full() {
    let mut fixture = Fixture::new();
    let process = fixture.window("process", WindowKind::Automatic, 1);
    let stack = fixture.stack("malloc", "f main");
    fixture.row(process, stack, freed(2, 64));
    insta::assert_snapshot!(text(&fixture.profile, &Options::default()));
}

#[test]
fn beyond_the_limit_one_line_sums_up() {
    let mut fixture = Fixture::new();
    let window = fixture.window("w", WindowKind::Process, 10);
    for at in 0..25 {
        let stack = fixture.stack("malloc", &format!("f{at:02} main"));
        // Equal counts: the names decide.
        fixture.row(window, stack, freed(3, 24));
    }
    fixture.profile.rows.reverse();
    let options = Options { limit: 2, ..Options::default() };
    insta::assert_snapshot!(text(&fixture.profile, &options));
    let all = text(&fixture.profile, &Options { limit: 0, ..Options::default() });
    assert_eq!(all.lines().filter(|line| line.contains("0.30")).count(), 25);
    assert!(!all.contains("more stack"));
}

#[test]
fn the_order_does_not_depend_on_that_of_the_tables() {
    let mut profile = everything();
    let before = text(&profile, &Options::default());
    profile.rows.reverse();
    assert_eq!(text(&profile, &Options::default()), before);
}

#[test]
fn a_window_that_is_not_there_is_named() {
    let report = text(&everything(), &windows(&["pause"]));
    insta::assert_snapshot!(report.lines().next().unwrap_or_default());
    assert_eq!(windows(&["pause", "never"]).missing_windows(&everything()), ["pause"]);
}

#[test]
fn an_empty_profile_is_said_to_be_so() {
    assert_eq!(text(&Profile::default(), &Options::default()), "no window was opened\n");
}

#[test]
fn heads_are_bold_in_colour_and_nothing_else_changes() {
    let plain = text(&everything(), &Options::default());
    let colored = text(&everything(), &Options { color: true, ..Options::default() });
    assert_ne!(plain, colored);
    assert_eq!(plain, colored.replace("\u{1b}[1m", "").replace("\u{1b}[0m", ""));
}

#[test]
fn names_cannot_command_the_terminal() {
    let report = text(&everything(), &Options { limit: 0, ..Options::default() });
    assert!(report.chars().all(|character| character == '\n' || !character.is_control()));
}

#[test]
fn without_lifetimes_nothing_is_said_to_live() {
    let mut fixture = Fixture::new();
    fixture.profile.environment.lifetimes = false;
    let window = fixture.window("w", WindowKind::Process, 1);
    let stack = fixture.stack("malloc", "f main");
    fixture.row(window, stack, Counts { allocations: 1, bytes: 8, ..Counts::default() });
    assert!(!text(&fixture.profile, &Options::default()).contains("live"));
}

#[test]
fn indices_that_lead_nowhere_do_not_panic() {
    let mut profile = everything();
    profile.locations.truncate(3);
    profile.functions.truncate(1);
    profile.images.clear();
    profile.modules.clear();
    profile.stacks.truncate(3);
    assert!(text(&profile, &Options::default()).starts_with("window"));
    assert!(heaptally_report::json::json(&profile, &Options::default()).ends_with("}\n"));
    assert!(!heaptally_report::summary::summary(&profile).is_empty());
}
