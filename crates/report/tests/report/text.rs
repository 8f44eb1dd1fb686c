use heaptally_profile::model::{Counts, Profile, ThreadLife, ThreadTotal, WindowKind};
use heaptally_profile::view::{Selection, Sort};
use heaptally_report::text::{brief, text};
use heaptally_report::{Layout, Options};
use regex::Regex;

use crate::fixture::{Fixture, everything, freed};

fn windows(names: &[&str]) -> Options {
    let windows = names.iter().map(|name| (*name).to_owned()).collect();
    Options { selection: Selection { windows, ..Selection::default() }, ..Options::default() }
}

fn layout(layout: Layout) -> Options {
    Options { layout, ..Options::default() }
}

/// A window of a Rust program: two call sites below one function, one of them reached in two ways.
fn parser() -> Profile {
    let mut fixture = Fixture::new();
    let window = fixture.window("parse", WindowKind::Process, 1000);
    let push = "alloc::raw_vec::grow alloc::vec::Vec<T>::push|header::push_value|parse_line";
    let a = fixture.stack("malloc", &format!("{push} parse alloc::iter::map main _start"));
    let b = fixture.stack("malloc", &format!("{push} parse_all other main _start"));
    let c = fixture.stack("malloc", "parser::name parse main _start");
    let d = fixture.stack("malloc", "walk walk walk parse main _start");
    fixture.row(window, a, freed(30_000, 1_200_000));
    fixture.row(window, b, Counts { temporary: 10_000, ..freed(10_000, 720_000) });
    fixture.row(
        window,
        c,
        Counts { freed: 35_999, freed_bytes: 2_159_940, freed_later: 1, ..freed(36_000, 2_160_000) },
    );
    fixture.row(window, d, freed(300, 4_000_000));
    fixture.profile.validate().expect("valid");
    fixture.profile
}

#[test]
fn everything_that_can_be_shown() {
    insta::assert_snapshot!(text(&everything(), &Options::default()));
}

#[test]
fn every_frame_is_shown_in_full() {
    insta::assert_snapshot!(text(&everything(), &Options { full: true, ..Options::default() }));
}

#[test]
fn library_frames_are_folded() {
    insta::assert_snapshot!(text(&parser(), &Options::default()));
}

#[test]
fn stacks_of_one_call_site_together() {
    insta::assert_snapshot!(text(&parser(), &layout(Layout::Site)));
}

#[test]
fn functions_with_all_that_they_call() {
    insta::assert_snapshot!(text(&parser(), &layout(Layout::Function)));
}

#[test]
fn a_tree_from_where_threads_begin() {
    insta::assert_snapshot!(text(&parser(), &layout(Layout::TopDown)));
}

#[test]
fn a_tree_from_call_sites() {
    insta::assert_snapshot!(text(&parser(), &layout(Layout::BottomUp)));
}

#[test]
fn a_tree_shows_what_counts_most_and_sums_up_the_rest() {
    insta::assert_snapshot!(text(&parser(), &Options { limit: 3, ..layout(Layout::TopDown) }));
}

#[test]
fn other_orders_show_what_they_sort_by() {
    let sorted = |sort| {
        let report = text(&parser(), &Options { sort, ..Options::default() });
        report.lines().skip_while(|line| !line.contains("call site")).take(3).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(format!(
        "{}\n\n{}\n\n{}",
        sorted(Sort::Bytes),
        sorted(Sort::Live),
        sorted(Sort::Temporary)
    ));
}

#[test]
fn a_terminal_cuts_the_middle_of_names_and_nothing_else() {
    for columns in [40, 60, 80, 100, 200] {
        for layout in [Layout::Stack, Layout::Site, Layout::Function, Layout::TopDown, Layout::BottomUp] {
            let options = Options { width: Some(columns), layout, ..Options::default() };
            let report = text(&parser(), &options);
            let table = report
                .lines()
                .skip_while(|line| !line.starts_with("  allocs/iter"))
                .take_while(|line| !line.is_empty());
            for line in table {
                assert!(line.chars().count() <= columns.max(72), "{columns}: {line}");
            }
            assert!(report.contains("push_value"), "{columns}:\n{report}");
        }
    }
    insta::assert_snapshot!(text(&parser(), &Options { width: Some(80), ..Options::default() }));
}

#[test]
fn a_stack_scope_says_what_it_leaves_out() {
    let under = vec![Regex::new("^parse$").unwrap()];
    let selection = Selection { under, ..Selection::default() };
    insta::assert_snapshot!(text(&parser(), &Options { selection, ..Options::default() }));
}

#[test]
fn a_selection_of_nothing_is_said() {
    let selection = Selection { filter: vec![Regex::new("nowhere").unwrap()], ..Selection::default() };
    let report = text(&parser(), &Options { selection, ..Options::default() });
    assert!(report.contains("nothing in it fits the selection"), "{report}");
    assert!(report.contains("left out: 76,300 allocations in 4 stacks by --filter"), "{report}");
}

#[test]
fn what_one_entry_alone_had_stands_apart() {
    let mut fixture = Fixture::new();
    let window = fixture.window("w", WindowKind::Process, 10);
    let often = fixture.stack("malloc", "parse main");
    let once = fixture.stack("malloc", "set_up main");
    fixture.row(window, often, freed(20, 200)).entries = Some(10);
    fixture.row(window, once, freed(6, 480));
    fixture.profile.windows[window].entries = 10;
    insta::assert_snapshot!(text(&fixture.profile, &Options::default()));
    fixture.profile.rows[1].first_entry = Some(4);
    fixture.profile.rows[1].last_entry = Some(4);
    assert!(text(&fixture.profile, &Options::default()).contains("in one entry only: 6 allocations, 480 B"));
}

#[test]
fn little_is_summed_up_when_asked_for() {
    let report = text(&parser(), &Options { min: 20.0, ..Options::default() });
    assert!(report.contains("2 more stacks below --min"), "{report}");
    assert!(report.contains("10.30"), "{report}");
}

#[test]
fn the_project_is_named_beside_a_dependency() {
    let mut profile = parser();
    for function in &mut profile.functions {
        function.file = match function.name.as_str() {
            "parser::name" => "/home/me/.cargo/registry/src/index/parser-1.0/src/lib.rs".into(),
            "parse" => "/home/me/bench/src/main.rs".into(),
            _ => continue,
        };
    }
    let options = Options { project: Some("/home/me/bench".into()), ..Options::default() };
    let report = text(&profile, &options);
    assert!(report.contains("parser::name  parser-1.0/src/lib.rs:"), "{report}");
    assert!(report.contains("for parse  src/main.rs:"), "{report}");
}

#[test]
fn several_threads_are_told_apart() {
    let mut profile = parser();
    let life = |name: &str, allocations, lives| ThreadLife {
        name: name.into(),
        last_name: name.into(),
        lives,
        totals: [(0, ThreadTotal { allocations, bytes: 8 * allocations, ..ThreadTotal::default() })].into(),
        ..ThreadLife::default()
    };
    profile.threads = vec![life("main", 300, 1), life("worker", 76_000, 3)];
    let report = text(&profile, &Options::default());
    assert!(report.contains("\nthreads\n  3 × worker: 76,000 allocations, 608,000 B, 99.6 %\n"), "{report}");
    assert!(report.contains("\n  main: 300 allocations, 2,400 B, 0.4 %\n"), "{report}");
}

#[test]
fn more_lives_than_a_number_holds_do_not_wrap() {
    let mut profile = parser();
    let life = |lives| ThreadLife {
        lives,
        totals: [(0, ThreadTotal { allocations: u64::MAX, ..ThreadTotal::default() })].into(),
        ..ThreadLife::default()
    };
    profile.threads = vec![life(u64::MAX), life(2)];
    let report = text(&profile, &Options::default());
    assert!(report.contains("18,446,744,073,709,551,615 × "), "{report}");
}

#[test]
fn many_windows_are_limited() {
    let mut fixture = Fixture::new();
    let stack = fixture.stack("malloc", "f main");
    for at in 0..30 {
        let window = fixture.window(&format!("w{at}"), WindowKind::Process, 1);
        fixture.row(window, stack, freed(2, 64));
    }
    let report = text(&fixture.profile, &Options::default());
    assert!(report.contains("\n10 more windows with 20 allocations; --limit 0 shows all"), "{report}");
    let all = text(&fixture.profile, &Options { limit: 0, ..Options::default() });
    assert!(all.contains("window \"w29\"") && !all.contains("more window"));
}

#[test]
fn the_end_of_a_run_is_brief() {
    insta::assert_snapshot!(brief(&parser(), &Options { limit: 2, ..Options::default() }));
    assert_eq!(brief(&Profile::default(), &Options::default()), "");
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
    for layout in [Layout::Stack, Layout::Site, Layout::Function, Layout::TopDown, Layout::BottomUp] {
        let mut profile = everything();
        let options = self::layout(layout);
        let before = text(&profile, &options);
        profile.rows.reverse();
        assert_eq!(text(&profile, &options), before);
    }
}

#[test]
fn a_window_that_is_not_there_is_named() {
    let report = text(&everything(), &windows(&["pause"]));
    insta::assert_snapshot!(report.lines().next().unwrap_or_default());
    assert_eq!(windows(&["pause", "never"]).selection.missing_windows(&everything()), ["pause"]);
}

#[test]
fn an_empty_profile_is_said_to_be_so() {
    assert_eq!(text(&Profile::default(), &Options::default()), "no window was opened\n");
}

#[test]
fn colours_change_nothing_else() {
    for layout in [Layout::Stack, Layout::Site, Layout::Function, Layout::TopDown] {
        let plain = text(&everything(), &self::layout(layout));
        let colored = text(&everything(), &Options { color: true, ..self::layout(layout) });
        assert_ne!(plain, colored);
        let uncolored =
            ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[0m"].iter().fold(colored, |text, code| text.replace(code, ""));
        assert_eq!(plain, uncolored);
    }
}

#[test]
fn names_cannot_command_the_terminal() {
    for layout in [Layout::Stack, Layout::Site, Layout::Function, Layout::TopDown, Layout::BottomUp] {
        let report = text(&everything(), &Options { limit: 0, ..self::layout(layout) });
        assert!(report.chars().all(|character| character == '\n' || !character.is_control()));
    }
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
    for layout in [Layout::Stack, Layout::Site, Layout::Function, Layout::TopDown, Layout::BottomUp] {
        assert!(text(&profile, &self::layout(layout)).contains("window"));
    }
    let options = Options::default();
    assert!(heaptally_report::json::json(&profile, &options).ends_with("}\n"));
    assert!(heaptally_report::csv::csv(&profile, &options).starts_with("window,"));
    let _none = heaptally_report::folded::folded(&profile, &options);
    assert!(!heaptally_report::summary::summary(&profile).is_empty());
}
