//! Two profiles compared: text and Markdown by snapshots, JSON against its schema.

use heaptally_profile::diff::{DiffOptions, diff};
use heaptally_profile::model::{Counts, FrameKind, Metric, Origin, Profile, WindowKind};
use heaptally_profile::view::Sort;
use heaptally_report::diff_folded::diff_folded;
use heaptally_report::diff_json::diff_json;
use heaptally_report::diff_markdown::{MOST_BYTES, diff_markdown};
use heaptally_report::text::diff::{Show, text};
use heaptally_report::{Options, json::json};
use regex::Regex;
use serde_json::Value;

use crate::fixture::{everything, profile, windows};
use crate::schema::{check, undescribed};

/// One allocation was added, a function renamed, another one inlined, a third allocates larger blocks.
fn sides() -> [Profile; 2] {
    let push = "alloc::vec::Vec<T>::push|header::push_value";
    let base = [
        (40_000, 1_920_000, &*format!("{push} parse_line parse main")),
        (20_000, 640_000, "alloc::vec::Vec<T>::push old_name parse main"),
        (10_000, 160_000, "table::grow parse main"),
        (5_000, 80_000, "gone parse main"),
        (2_000, 80_000, "walk walk walk main"),
    ];
    let change = [
        (40_000, 1_920_000, &*format!("{push}|parse_line parse main")),
        (20_000, 640_000, "alloc::vec::Vec<T>::push new_name parse main"),
        (10_000, 320_000, "table::grow parse main"),
        (1_000, 24_000, "alloc::string::String::clone parser::name parser::header parse main"),
        (2_000, 80_000, "walk walk walk main"),
    ];
    [profile(1000, &base), profile(1000, &change)]
}

fn of(options: &Options, show: Show) -> String {
    let [base, change] = sides();
    text(&diff(&base, &change, &DiffOptions::default()), options, show)
}

#[test]
fn the_first_line_is_the_answer() {
    insta::assert_snapshot!(of(&Options::default(), Show::Entries));
}

#[test]
fn every_frame_in_full() {
    insta::assert_snapshot!(of(&Options { full: true, limit: 2, ..Options::default() }, Show::Entries));
}

#[test]
fn differences_are_carried_up() {
    insta::assert_snapshot!(of(&Options::default(), Show::Tree));
}

/// A caller stays for what it calls: `main` and `parse` change by 4 only.
#[test]
fn a_tree_leaves_out_what_is_below_the_least() {
    let tree = |min| of(&Options { min, ..Options::default() }, Show::Tree);
    let has = |tree: &str| {
        ["main", "parse", "new_name", "old_name", "gone"].map(|name| tree.contains(&format!("  {name}\n")))
    };
    assert_eq!(has(&tree(0.0)), [true; 5]);
    let of_ten = tree(10.0);
    assert_eq!(has(&of_ten), [true, true, true, true, false], "{of_ten}");
    // gone, parser::header and parser::name, table::grow, whose number is as before.
    assert!(of_ten.contains("  4 more functions changed below --min\n"), "{of_ten}");
    let none = tree(1000.0);
    assert!(
        !none.contains("base allocs") && none.contains("  8 more functions changed below --min\n"),
        "{none}"
    );
}

#[test]
fn a_tree_of_nothing_has_no_heading() {
    let [base, _] = sides();
    let tree = text(&diff(&base, &base, &DiffOptions::default()), &Options::default(), Show::Tree);
    assert!(tree.starts_with("no difference") && !tree.contains("base allocs"), "{tree}");
}

#[test]
fn pairs_are_explained() {
    insta::assert_snapshot!(of(&Options::default(), Show::Pairing));
}

#[test]
fn what_does_not_differ() {
    let [base, _] = sides();
    let text = text(&diff(&base, &base, &DiffOptions::default()), &Options::default(), Show::Entries);
    assert!(text.starts_with("no difference: 5 stacks in 1 window\n"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"));
}

#[test]
fn windows_and_conditions_of_one_side() {
    let [base, mut change] = sides();
    change.windows[0].name = "other".into();
    change.environment.libc = "glibc 2.41".into();
    change.environment.lifetimes = false;
    insta::assert_snapshot!(text(
        &diff(&base, &change, &DiffOptions::default()),
        &Options::default(),
        Show::Entries
    ));
}

/// The notes of a diff whose sides were changed.
fn notes(edit: impl FnOnce(&mut [Profile; 2])) -> Vec<String> {
    let mut sides = sides();
    edit(&mut sides);
    let diff = diff(&sides[0], &sides[1], &DiffOptions::default());
    let text = text(&diff, &Options::default(), Show::Entries);
    text.lines().filter_map(|line| line.strip_prefix("note: ")).map(str::to_owned).collect()
}

#[test]
fn a_side_that_failed_is_named_with_its_exit_code() {
    let endings = |codes: [Option<i32>; 2]| {
        notes(|sides| {
            for (side, code) in sides.iter_mut().zip(codes) {
                side.environment.exit_code = code;
            }
        })
    };
    let failed = "a program failed, and may not have done all of its work: exit code";
    assert_eq!(endings([Some(0), Some(0)]), [""; 0]);
    assert_eq!(endings([None, Some(0)]), [""; 0]);
    assert_eq!(endings([Some(0), Some(3)]), [format!("{failed} 0 in the base, 3 in the change")]);
    assert_eq!(
        endings([Some(139), None]),
        [format!("{failed} 139 (signal 11) in the base, unknown in the change")]
    );
    assert_eq!(endings([Some(1), Some(1)]), [format!("{failed} 1 in the base, 1 in the change")]);
}

#[test]
fn windows_against_a_file_that_knows_none_are_told() {
    let forget = |side: &mut Profile| {
        side.environment.unknown.insert(Metric::Windows);
        side.windows[0].name = "process".into();
        side.windows[0].kind = WindowKind::Automatic;
    };
    let found = notes(|sides| forget(&mut sides[1]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("windows of the base: \"parse\", of the change: none; "), "{found:?}");
    let found = notes(|sides| forget(&mut sides[0]));
    assert!(found[0].starts_with("windows of the base: none, of the change: \"parse\"; "), "{found:?}");
    // Two such files go together, and so does a recording without a window.
    assert_eq!(notes(|sides| sides.iter_mut().for_each(forget)), [""; 0]);
    let none = notes(|sides| {
        sides.iter_mut().for_each(forget);
        sides[0].environment.unknown.clear();
    });
    assert_eq!(none, [""; 0]);
}

#[test]
fn both_numbers_of_iterations_are_told_where_they_differ() {
    let side = |iterations: u64| {
        profile(iterations, &[(iterations * 2, iterations * 16, "f main"), (1, 64, "set_up main")])
    };
    let (base, change) = (side(100), side(1000));
    let diff = diff(&base, &change, &DiffOptions::default());
    let text = |show| text(&diff, &Options::default(), show);
    let entries = text(Show::Entries);
    assert!(entries.starts_with("no difference: 2 stacks in 1 window\n"), "{entries}");
    let head = "window \"parse\"   100 → 1,000 iterations   2.01 → 2.00 allocs/iter (no change but for what is done once)";
    assert!(entries.contains(head), "{entries}");
    assert!(entries.contains("(once in all on both sides, whatever the iterations: 1)"), "{entries}");
    assert!(!text(Show::Tree).contains("set_up"));
    // The same number is not told.
    assert!(!of(&Options::default(), Show::Entries).contains("iterations"));
}

#[test]
fn stripped_sides_are_told_once() {
    let strip = |side: &mut Profile| {
        for (at, function) in side.functions.iter_mut().enumerate().filter(|(_, of)| of.name != "malloc") {
            function.name = format!("bench+{at:#x}");
            function.file = String::new();
        }
    };
    let found = notes(|sides| sides.iter_mut().for_each(strip));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("no call site of either side has a name (stripped)"), "{found:?}");
    assert!(found[0].contains("built with -g"), "{found:?}");
    // One side alone fits nothing of the other.
    for (side, name) in [(0, "the base"), (1, "the change")] {
        let found = notes(|sides| strip(&mut sides[side]));
        assert_eq!(found.len(), 1, "{found:?}");
        let begin =
            format!("no call site of {name} has a name (stripped), so functions are told apart by where");
        assert!(found[0].starts_with(&begin) && found[0].contains("built with -g"), "{found:?}");
    }
    // Without lines no function is known at all, not even where it starts.
    let bare = |side: &mut Profile| {
        side.locations.iter_mut().filter(|of| of.kind == FrameKind::Return).for_each(|of| of.lines.clear());
    };
    assert_eq!(notes(|sides| sides.iter_mut().for_each(bare)).len(), 1);
}

#[test]
fn numbers_that_are_estimates_or_of_live_blocks_are_told() {
    let origin = |sampling: &str, live_only| {
        Some(Origin { format: "heap profile".into(), sampling: sampling.into(), live_only })
    };
    let with = |origins: [Option<Origin>; 2]| {
        notes(|sides| {
            for (side, origin) in sides.iter_mut().zip(origins) {
                side.environment.origin = origin;
            }
        })
    };
    let half = "one in 512 KiB";
    assert_eq!(
        with([origin(half, false), origin(half, false)]),
        ["both sides: sampled (one in 512 KiB): the numbers are estimates"]
    );
    assert_eq!(
        with([origin(half, false), origin("one in 1 MiB", false)]),
        ["sampled (one in 512 KiB in the base, one in 1 MiB in the change): the numbers are estimates"]
    );
    assert_eq!(
        with([origin("", true), origin("", true)]),
        ["both sides: live blocks only: what had been freed when the file was written is not counted"]
    );
    assert_eq!(with([origin("", false), origin("", false)]), [""; 0]);
    let mut sides = sides();
    sides.iter_mut().for_each(|side| side.environment.origin = origin(half, false));
    let diff = diff(&sides[0], &sides[1], &DiffOptions::default());
    let markdown = diff_markdown(&diff, &Options::default());
    let (above, _) = markdown.split_once("<details>").expect("a folded part");
    assert!(
        above.contains("\n`note: both sides: sampled (one in 512 KiB): the numbers are estimates`\n"),
        "{above}"
    );
}

/// In its windows nothing changed, before them two allocations were added.
#[test]
fn what_one_side_has_before_the_windows_is_told() {
    let side = |before: u64| {
        let mut profile =
            windows(1, &[("process", &[(before, 8 * before, "start main")]), ("parse", &[(2, 8, "f main")])]);
        profile.windows[0].kind = WindowKind::Automatic;
        profile
    };
    let told = |base: u64, change: u64| {
        let (base, change) = (side(base), side(change));
        let diff = diff(&base, &change, &DiffOptions::default());
        let text = text(&diff, &Options::default(), Show::Entries);
        assert!(text.starts_with("no difference: 1 stack in 1 window\n"), "{text}");
        text.lines().find_map(|line| line.strip_prefix("note: ")).map(str::to_owned)
    };
    assert_eq!(
        told(3, 5).as_deref(),
        Some("before the windows: \"process\" (3 → 5 allocations); --window process compares the stacks")
    );
    assert_eq!(
        told(3, 1).as_deref(),
        Some("before the windows: \"process\" (3 → 1 allocation); --window process compares the stacks")
    );
    assert_eq!(told(3, 3), None);
}

#[test]
fn lines_fit_a_terminal() {
    for width in [40, 60, 80, 120] {
        let text = of(&Options { width: Some(width), ..Options::default() }, Show::Entries);
        let table = text.lines().skip(3).filter(|line| !line.starts_with("  unchanged"));
        let widest = table.map(|line| line.chars().count()).max();
        assert!(widest <= Some(width + 40), "{width}: {text}");
    }
}

#[test]
fn markdown_is_a_comment() {
    let [base, change] = sides();
    insta::assert_snapshot!(diff_markdown(
        &diff(&base, &change, &DiffOptions::default()),
        &Options::default()
    ));
}

#[test]
fn markdown_is_never_too_long_and_holds_names_as_code() {
    let rows: Vec<String> = (0..3000).map(|at| format!("b`<script>@me{at} main")).collect();
    let rows: Vec<(u64, u64, &str)> = rows.iter().map(|names| (1, 8, names.as_str())).collect();
    let (base, change) = (profile(1, &[]), profile(1, &rows));
    let options = Options { limit: 0, ..Options::default() };
    let markdown = diff_markdown(&diff(&base, &change, &DiffOptions::default()), &options);
    assert!(markdown.len() <= MOST_BYTES, "{}", markdown.len());
    assert!(markdown.contains("more call sites") && markdown.ends_with("</details>\n"));
}

/// Nothing but code spans stands in the table, with as many backticks around as none within has, and bars escaped; the
/// folded part is one block of code.
#[test]
fn markdown_holds_in_whatever_names_do() {
    let long = "é`¦".repeat(70);
    let rows: Vec<String> = (0..200).map(|at| format!("{long}{at}<details>```{at}\\ main")).collect();
    let rows: Vec<(u64, u64, &str)> = rows.iter().map(|names| (1, 8, names.as_str())).collect();
    let (base, mut change) = (profile(1, &[]), profile(1, &rows));
    // The fixture parts frames at bars.
    for function in &mut change.functions {
        function.name = function.name.replace('¦', "|");
    }
    let options = Options { limit: 0, ..Options::default() };
    let markdown = diff_markdown(&diff(&base, &change, &DiffOptions::default()), &options);
    assert!(markdown.len() <= MOST_BYTES, "{}", markdown.len());
    let (table, folded) =
        markdown.split_once("\n<details><summary>stacks</summary>\n\n").expect("a folded part");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(rows.len() > 5 && table.contains("more call sites changed"), "{table}");
    for row in rows {
        // A bar that ends a cell is not escaped: six of them around five cells.
        let bars = row.match_indices('|').filter(|(at, _)| !row[..*at].ends_with('\\')).count();
        assert_eq!(bars, 6, "{row}");
    }
    let code = folded.strip_suffix("\n</details>\n").expect("its end");
    assert!(code.lines().all(|line| line.is_empty() || line.starts_with("    ")), "{code}");
}

#[test]
fn folded_stacks_have_both_numbers() {
    let [base, change] = sides();
    let diff = diff(&base, &change, &DiffOptions::default());
    let folded = diff_folded(&diff, &Options::default());
    assert!(
        folded
            .contains("main;parse;parser::header;parser::name;alloc::string::String::clone;malloc 0 1000\n")
    );
    assert!(folded.contains("main;parse;gone;malloc 5000 0\n"), "{folded}");
    let bytes = diff_folded(&diff, &Options { sort: Sort::Bytes, ..Options::default() });
    assert!(bytes.contains("main;parse;table::grow;malloc 160000 320000\n"), "{bytes}");
}

/// Every allocation of either side is in the folded stacks: renamed ones below either name, and windows of one side.
#[test]
fn folded_stacks_hold_what_one_side_alone_has() {
    let [base, mut change] = sides();
    let folded = |base: &Profile, change: &Profile| {
        let folded = diff_folded(&diff(base, change, &DiffOptions::default()), &Options::default());
        let sum = |column: usize| -> u64 {
            folded.lines().map(|line| line.rsplit(' ').nth(column).unwrap().parse::<u64>().unwrap()).sum()
        };
        assert_eq!([sum(1), sum(0)], [77_000, 73_000], "{folded}");
        folded
    };
    let renamed = folded(&base, &change);
    assert!(renamed.contains("main;parse;old_name;alloc::vec::Vec<T>::push;malloc 20000 0\n"), "{renamed}");
    assert!(renamed.contains("main;parse;new_name;alloc::vec::Vec<T>::push;malloc 0 20000\n"), "{renamed}");
    change.windows[0].name = "other; one".into();
    let windows = folded(&base, &change);
    assert!(windows.contains("parse;main;parse;gone;malloc 5000 0\n"), "{windows}");
    assert!(windows.contains("other: one;main;parse;table::grow;malloc 0 10000\n"), "{windows}");
}

fn report(base: &Profile, change: &Profile) -> Value {
    let json = diff_json(&diff(base, change, &DiffOptions::default()), &Options::default());
    serde_json::from_str(&json).expect("the diff is JSON")
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../schema/diff.v1.schema.json")).expect("the schema is JSON")
}

#[test]
fn diffs_conform_to_the_schema() {
    let schema = schema();
    let [base, change] = sides();
    for (base, change) in
        [(&base, &change), (&change, &base), (&base, &everything()), (&Profile::default(), &base)]
    {
        let report = report(base, change);
        let (mut errors, mut names) = (Vec::new(), Vec::new());
        check(&schema, &schema, &report, "", &mut errors);
        undescribed(&schema, &schema, &report, "", &mut names);
        assert_eq!((errors, names), (vec![], vec![]));
    }
}

#[test]
fn what_json_says() {
    let [base, change] = sides();
    let report = report(&base, &change);
    let window = &report["windows"][0];
    assert_eq!(report["differs"], true);
    assert_eq!(window["allocations"]["delta_per_iteration"], -4.0);
    let entries = window["entries"].as_array().unwrap();
    let kinds: Vec<&str> = entries.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["gone", "new", "larger", "renamed_from", "renamed_to"]);
    assert_eq!(entries[1]["allocations"]["percent"], Value::Null);
    let site = &report["frames"][entries[1]["call_site"].as_u64().unwrap() as usize];
    assert_eq!(site["function"], "parser::name");
    assert_eq!(entries[4]["counterpart"], 3);
    assert_eq!(report["first"], serde_json::json!({"window": 0, "entry": 0}));
}

#[test]
fn json_says_which_stacks_were_asked_for() {
    let [base, change] = sides();
    let stack = vec![Regex::new("^gone$").expect("a pattern")];
    let options = DiffOptions { stack, ..DiffOptions::default() };
    let json = diff_json(&diff(&base, &change, &options), &Options::default());
    let json: Value = serde_json::from_str(&json).expect("the diff is JSON");
    assert_eq!(json["selection"]["stack"], serde_json::json!(["^gone$"]));
    assert_eq!(json["windows"][0]["allocations"]["base"], 5_000);
    assert_eq!(report(&base, &change)["selection"]["stack"], serde_json::json!([]));
}

#[test]
fn the_same_profiles_give_the_same_bytes() {
    let mut base = everything();
    let change = everything();
    base.rows[1].counts = Counts { allocations: 7, ..base.rows[1].counts };
    let of = || diff_json(&diff(&base, &change, &DiffOptions::default()), &Options::default());
    assert_eq!(of(), of());
    assert!(!json(&change, &Options::default()).is_empty());
    assert!(of().trim_end_matches('\n').chars().all(|character| !character.is_control()));
}
