//! Small profiles, written down by hand, and what is told of them.

use super::{compare, entries};
use heaptally_profile::diff::{DiffOptions, Kind, Side, What, diff};
use heaptally_profile::model::{
    Counts, FrameKind, Function, Line, Location, Profile, RepeatValue, Row, Stack, Window,
};

/// A profile of one window. Each line: allocations, the bytes of each, and frames from the leaf, those of one location
/// joined by `|`; a name may be `function@file:line`.
fn profile(iterations: u64, rows: &str) -> Profile {
    let mut profile = Profile {
        images: vec![Default::default()],
        windows: vec![Window { name: "w".into(), entries: iterations, iterations, ..Window::default() }],
        ..Profile::default()
    };
    for line in rows.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (allocations, bytes) = (number(), number());
        let mut stack = Stack::default();
        for (at, names) in words.enumerate() {
            let kind = if at == 0 { FrameKind::EntryPoint } else { FrameKind::Return };
            let mut location =
                Location { kind, address: profile.locations.len() as u64, ..Location::default() };
            for name in names.split('|') {
                let (name, place) = name.split_once('@').unwrap_or((name, ""));
                let (file, line) = place.split_once(':').unwrap_or((place, "0"));
                profile.functions.push(Function {
                    name: name.into(),
                    system_name: name.into(),
                    file: file.into(),
                    ..Function::default()
                });
                location
                    .lines
                    .push(Line { function: profile.functions.len() - 1, line: line.parse().unwrap() });
            }
            stack.locations.push(profile.locations.len());
            profile.locations.push(location);
        }
        profile.stacks.push(stack);
        profile.rows.push(Row {
            stack: profile.stacks.len() - 1,
            counts: Counts { allocations, bytes: allocations * bytes, ..Counts::default() },
            entries: Some(allocations.min(iterations)),
            first_entry: Some(1),
            last_entry: Some(allocations.min(iterations)),
            ..Row::default()
        });
    }
    profile.normalize().unwrap();
    profile
}

#[track_caller]
fn expect(base: (u64, &str), change: (u64, &str), expected: &[&str]) {
    let (base, change) = (profile(base.0, base.1), profile(change.0, change.1));
    assert_eq!(entries(&compare(&base, &change)), expected);
}

#[test]
fn a_new_call_site() {
    let base = "4 8 malloc f@a.c:3 main@a.c:9";
    let change = "4 8 malloc f@a.c:5 main@a.c:19\n 1 24 malloc g@a.c:7 main@a.c:20";
    expect((1, base), (1, change), &["1 New g:7"]);
    expect((1, change), (1, base), &["-1 Gone g:7"]);
}

#[test]
fn iterations_are_divided_by() {
    expect((10, "40 8 malloc f main"), (20, "80 8 malloc f main"), &[]);
    expect((10, "40 8 malloc f main"), (20, "90 8 malloc f main"), &["0.5 More f:0"]);
    expect((10, ""), (20, "7 8 malloc f main"), &["0.35 New f:0"]);
}

/// What a run does once is less per iteration where there are more of them, and no difference.
#[test]
fn what_is_done_once_does_not_differ_by_iterations() {
    let steady = |count: u64| format!("{count} 8 malloc f main\n");
    let once = "3 8 malloc set_up main";
    let sides = |entries: u64| {
        let mut sides =
            [100, 250].map(|iterations| profile(iterations, &format!("{}{once}", steady(iterations))));
        for side in &mut sides {
            if entries > 0 {
                side.windows[0].entries = entries;
            }
            for row in &mut side.rows {
                row.entries = Some(if row.counts.allocations == 3 { 1 } else { side.windows[0].entries });
            }
        }
        sides
    };
    // Entries are iterations, or all iterations are in one entry.
    for entries in [0, 1] {
        let [base, change] = sides(entries);
        let diff = compare(&base, &change);
        assert_eq!(self::entries(&diff), [""; 0]);
        assert!(!diff.differs());
        let window = &diff.windows[0];
        assert_eq!((window.pairing.unchanged, window.pairing.one_off, window.one_off.allocations), (2, 1, 3));
        let same = compare(&base, &base);
        assert_eq!(same.windows[0].pairing.one_off, 0, "the iterations are the same");
    }
    // Once more is a difference; so are other bytes, and what is in each iteration.
    expect((100, once), (250, "4 8 malloc set_up main"), &["-0.014 Fewer set_up:0"]);
    let [base, mut change] = sides(0);
    change.rows.iter_mut().for_each(|row| row.counts.bytes += 1);
    assert_eq!(entries(&compare(&base, &change)).len(), 2);
    expect((100, "100 8 malloc f main"), (250, "100 8 malloc f main"), &["-0.6 Fewer f:0"]);
    // In several entries it is not done once.
    let [mut base, change] = sides(0);
    base.rows.iter_mut().for_each(|row| row.entries = Some(3));
    assert_eq!(entries(&compare(&base, &change)), ["-0.018 Fewer set_up:0"]);
}

#[test]
fn offsetting_changes_and_kinds() {
    let base =
        "10 8 malloc swap_a main\n 5 8 malloc old_name main\n 4 8 malloc gone main\n 8 8 malloc steady main";
    let change =
        "10 8 malloc swap_b main\n 5 8 malloc new_name main\n 4 8 malloc fresh main\n 8 8 malloc steady main";
    expect(
        (1, base),
        (1, change),
        &[
            // Without debug information each may have been inlined on the other side.
            "4 MovedFrom fresh:0",
            "-4 MovedTo gone:0",
            "5 RenamedFrom new_name:0",
            "-5 RenamedTo old_name:0",
            "10 RenamedFrom swap_b:0",
            "-10 RenamedTo swap_a:0",
        ],
    );
    expect(
        (1, "4 8 malloc gone@a.c:3 main@a.c:9"),
        (1, "4 8 malloc fresh@a.c:3 main@a.c:9"),
        &["4 New fresh:3", "-4 Gone gone:3"],
    );
    expect((1, "9 8 malloc f main"), (1, "9 16 malloc f main"), &["0 Larger f:0"]);
    expect((1, "9 16 malloc f main"), (1, "9 8 malloc f main"), &["0 Smaller f:0"]);
    expect((100, "1 8 malloc f main"), (100, "100 8 malloc f main"), &["0.99 Repeated f:0"]);
    expect((100, "100 8 malloc f main"), (100, "1 8 malloc f main"), &["-0.99 Once f:0"]);
    expect(
        (1, "3 8 malloc a main\n 5 8 malloc b main"),
        (1, "1 8 malloc a main\n 7 8 malloc b main"),
        &["2 MovedFrom b:0", "-2 MovedTo a:0"],
    );
}

#[test]
fn lines_tell_which_of_two_allocations() {
    let base = "3 8 malloc f@a.c:10 main@a.c:30\n 1 8 malloc f@a.c:12 main@a.c:30";
    let change =
        "3 8 malloc f@a.c:20 main@a.c:40\n 1 8 malloc f@a.c:21 main@a.c:40\n 1 8 malloc f@a.c:22 main@a.c:40";
    expect((1, base), (1, change), &["1 More f:22"]);
}

#[test]
fn equal_static_names_in_two_files_are_two() {
    let base = "3 8 malloc init@/p/a/x.c:1 main@/p/main.c:2";
    let change = "3 8 malloc init@/p/b/x.c:1 main@/p/main.c:2";
    let (base, change) = (profile(1, base), profile(1, change));
    let diff = compare(&base, &change);
    assert_eq!(entries(&diff), ["3 MovedFrom init:1", "-3 MovedTo init:1"]);
    assert_eq!(diff.windows[0].pairing.other_site, 1);
}

/// What a macro expands to has the macro's file; a name that is one for the linker is one function.
#[test]
fn a_macro_in_another_file_is_no_other_function() {
    for name in ["_ZN1a1fE", "_RNvC1a1f"] {
        let of = |file: &str| format!("3 8 malloc {name}@/p/{file}:1 main@/p/main.rs:2");
        let (base, change) = (of("src/f.rs"), of("src/macros.rs"));
        expect((1, &base), (1, &change), &[]);
    }
    let of = |file: &str| format!("3 8 malloc _ZN12_GLOBAL__N_11fEv@/p/{file}:1 main@/p/main.cc:2");
    let (base, change) = (profile(1, &of("a.cc")), profile(1, &of("b.cc")));
    assert_eq!(entries(&compare(&base, &change)).len(), 2);
}

/// An optimiser that folds instances with the same code leaves the name of one.
#[test]
fn folded_instances_are_no_difference() {
    let base = "5 8 malloc grow<A> push<A> main\n 2 8 malloc grow<B> push<B> main";
    let change = "5 8 malloc grow<B> push<A> main\n 2 8 malloc grow<B> push<B> main";
    expect((1, base), (1, change), &[]);
    expect((1, change), (1, base), &[]);
    let planted = "5 8 malloc grow<B> push<A> main\n 3 8 malloc grow<B> push<B> main";
    expect((1, base), (1, planted), &["1 More grow<B>:0"]);
}

#[test]
fn one_stack_that_inlining_parts_in_two_is_one() {
    let base = "10 8 malloc parse walk run main";
    let change = "6 8 malloc parse walk run main\n 4 8 malloc parse run main";
    expect((1, base), (1, change), &[]);
    expect((1, change), (1, base), &[]);
    let planted = "6 8 malloc parse walk run main\n 5 8 malloc parse run main";
    expect((1, base), (1, planted), &["1 More parse:0"]);
}

/// Instances with the same code, of which an optimiser kept another one on each side; with debug information too.
#[test]
fn folded_instances_of_which_each_side_kept_another_are_not_new() {
    for place in ["", "@/p/stack.h:4"] {
        let of = |of: &str| {
            format!("1 1 malloc s::expand<{of}>{place} s::push<ctx>{place} main\n 2 8 malloc f main")
        };
        let (base, change) = (profile(1, &of("n::entry")), profile(1, &of("unsigned_long_context_pointer")));
        let entries = entries(&compare(&base, &change));
        let kinds: Vec<&str> = entries.iter().filter_map(|entry| entry.split(' ').nth(1)).collect();
        assert_eq!(kinds, ["RenamedFrom", "RenamedTo"], "{entries:?}");
    }
}

/// Without debug information: each build inlined another one of two functions, one into the other's caller.
#[test]
fn call_sites_that_were_inlined_on_one_side_each_are_one() {
    let base =
        "2 16 malloc class_new parse build main\n 3 8 malloc class_new main\n 2 16 malloc copy work main";
    let change =
        "2 16 malloc hir_char parse build main\n 3 8 malloc class_new main\n 2 16 malloc copy work main";
    expect((1, base), (1, change), &[]);
    expect((1, change), (1, base), &[]);
    // Nor do they become the counterpart of what is new in a caller.
    let planted = format!("{change}\n 2 24 malloc main");
    expect((1, base), (1, &planted), &["2 New main:0"]);
    // Other counts are no such pair; nor is it one with debug information.
    let more = change.replacen("2 16", "4 16", 1);
    expect((1, base), (1, &more), &["4 New hir_char:0", "-2 Fewer class_new:0"]);
    let with_source =
        |rows: &str| rows.replace("class_new", "class_new@a.c:1").replace("hir_char", "hir_char@a.c:9");
    let expected = ["2 MovedFrom hir_char:9", "-2 MovedTo class_new:1"];
    expect((1, &with_source(base)), (1, &with_source(change)), &expected);
}

/// … and where both functions are known to both sides, one may have taken over what the other one did: that is told.
#[test]
fn the_side_with_debug_information_names_the_call_site() {
    let known = "5 8 malloc helper@a.c:3|main@a.c:9 _start@s.S:1";
    let symbols = "6 8 malloc main _start";
    expect((1, known), (1, symbols), &["1 More helper:3"]);
    expect((1, symbols), (1, known), &["-1 Fewer helper:3"]);
}

/// Each level of a recursion is a stack of its own, and only the shallow ones are much alike under the new name.
#[test]
fn a_function_that_calls_itself_is_renamed_as_a_whole() {
    let levels = |name: &str| {
        let stack =
            |depth: usize| format!("1 10 malloc {}main@r.c:7\n", format!("{name}@r.c:6 ").repeat(depth));
        (1..=5).map(stack).collect::<String>()
    };
    let (base, change) = (profile(1, &levels("walk")), profile(1, &levels("walk_tree")));
    let diff = compare(&base, &change);
    assert!(entries(&diff).iter().all(|entry| entry.contains(" Renamed")), "{:?}", entries(&diff));
    let sum: u64 = diff.windows[0].entries.iter().map(|entry| entry.counts[1].allocations).sum();
    assert_eq!(sum, 5);
}

/// Tools that write heap profiles do not tell which allocation function was called.
#[test]
fn stacks_of_a_tool_that_does_not_tell_the_allocation_function_are_the_same() {
    let told = "70 19 malloc lex@w.c:5 parse@w.c:6 main@w.c:12\n 5 1000 malloc leak@w.c:11 main@w.c:12";
    let mut untold = profile(1, &told.replace("malloc ", ""));
    untold.locations.iter_mut().for_each(|location| location.kind = FrameKind::Return);
    let told = profile(1, told);
    for [base, change] in [[&told, &untold], [&untold, &told]] {
        let diff = compare(base, change);
        assert_eq!(entries(&diff), [""; 0]);
        let pairing = diff.windows[0].pairing;
        assert_eq!((pairing.equal, pairing.unchanged), (2, 2), "{pairing:?}");
    }
    // Where both tell it, another one is a difference.
    let other = profile(1, "70 19 valloc lex@w.c:5 parse@w.c:6 main@w.c:12");
    assert_eq!(entries(&compare(&told, &other)).len(), 2);
}

/// `fill` had one allocation in line 5; what it has now may be in any other.
#[test]
fn a_line_that_one_side_alone_knows_need_not_be_the_one_that_changed() {
    let known = "1 100 malloc fill@c.c:5 main@c.c:14 _start@s.S:1";
    let symbols = "10 30 malloc fill main _start";
    let first = |base: &str, change: &str| {
        let (base, change) = (profile(1, base), profile(1, change));
        let diff = compare(&base, &change);
        let entry = diff.windows[0].entries[0].clone();
        (entry.kind, entry.is_line_open, entry.lines.len())
    };
    assert_eq!(first(known, symbols), (Kind::More, true, 0));
    assert_eq!(first(symbols, known), (Kind::Fewer, true, 0));
    // All ten are in one line, so the nine that are more are in it.
    let more = "10 100 malloc fill@c.c:5 main@c.c:14 _start@s.S:1";
    assert_eq!(first(&symbols.replace("10 30", "1 30"), more), (Kind::More, false, 0));
    let lines = format!("{more}\n 3 100 malloc fill@c.c:8 main@c.c:14 _start@s.S:1");
    assert_eq!(first(&symbols.replace("10 30", "1 30"), &lines), (Kind::More, true, 0));
    assert_eq!(first(known, more), (Kind::More, false, 1));
}

#[test]
fn what_one_known_function_does_instead_of_another_is_moved() {
    let both = "1 8 malloc fill main\n 1 8 malloc take main";
    let base = format!("6 16 malloc fill write main\n {both}");
    let change = format!("6 16 malloc take write main\n {both}");
    expect((1, &base), (1, &change), &["6 MovedFrom take:0", "-6 MovedTo fill:0"]);
}

/// The same program with and without debug information: what was inlined has no name there, and its stacks are told apart
/// by nothing.
#[test]
fn other_callers_are_no_difference_where_one_side_has_no_debug_information() {
    let with = |side: &str| profile(1, side);
    let known = "3 8 malloc site@a.c:1|f@a.c:2|main@a.c:9\n 4 8 malloc site@a.c:1|g@a.c:3|main@a.c:9\n \
                 6 8 malloc site@a.c:1|h@a.c:4|main@a.c:9";
    let bare = "6 8 malloc site main\n 5 8 malloc site other main\n 2 8 malloc site third main";
    for [base, change] in [[known, bare], [bare, known]] {
        let (base, change) = (with(base), with(change));
        let diff = compare(&base, &change);
        assert_eq!(entries(&diff), [""; 0]);
        assert!(!diff.differs());
        let pairing = &diff.windows[0].pairing;
        assert_eq!((pairing.base_only, pairing.change_only, pairing.unchanged), (0, 0, 3), "{pairing:?}");
    }
    // One more is one more, however the callers are named.
    let more = "6 8 malloc site main\n 6 8 malloc site other main\n 2 8 malloc site third main";
    assert_eq!(compare(&with(known), &with(more)).windows[0].entries.len(), 1);
    // Where both sides have it, other callers are a difference.
    let base = "3 8 malloc site@a.c:1 f@a.c:2\n 4 8 malloc site@a.c:1 g@a.c:3";
    let change = "5 8 malloc site@a.c:1 f@a.c:2\n 2 8 malloc site@a.c:1 g@a.c:3";
    expect((1, base), (1, change), &["0 Rerouted site:1"]);
}

/// A function that calls itself, inlined on one side, is one difference and not many.
#[test]
fn a_recursion_that_was_inlined_is_one_difference() {
    let base = "1 8 malloc copy copy copy copy copy copy copy_all work main";
    let change = "1 8 malloc work measure main";
    expect((1, base), (1, change), &[]);
    expect((1, change), (1, base), &[]);
}

/// Without debug information: a stack of the same functions with other counts is not taken for the one that was there when
/// another stack has the counts.
#[test]
fn equal_counts_come_before_equal_functions() {
    let base = "1 64 malloc work measure main\n 1 8 malloc push main";
    let change = "1 64 malloc push work main\n 1 32 malloc work main\n 1 8 malloc push main";
    expect((1, base), (1, change), &["1 More work:0"]);
    expect((1, change), (1, base), &["-1 Fewer work:0"]);
}

#[test]
fn unrelated_stacks_are_no_pair() {
    let base = "3 8 malloc alpha one two three main\n 1 8 malloc beta x main\n 1 8 malloc gamma x main";
    let change = "3 8 malloc zeta four five six main\n 1 8 malloc beta x main\n 1 8 malloc gamma x main";
    let (base, change) = (profile(1, base), profile(1, change));
    let diff = compare(&base, &change);
    let pairing = diff.windows[0].pairing;
    assert_eq!((pairing.base_only, pairing.change_only), (1, 1));
    assert_eq!(entries(&diff).len(), 2);
}

/// More than are all compared with each other: every way down a tree, with another name for what calls itself in it, or
/// with one more caller.
#[test]
fn very_many_stacks_are_paired_although_all_of_them_differ() {
    let tree = |walk: &str, callers: &str| {
        let stack = |path: usize| {
            let steps = (0..10).map(|at| if path >> at & 1 == 0 { "left" } else { "right" });
            steps.map(|step| format!("{walk} {step} ")).collect::<String>()
        };
        (0..1024).map(|path| format!("1 8 malloc leaf {}{callers}\n", stack(path))).collect::<String>()
    };
    let base = tree("visit", "main");
    for (change, how) in [(tree("descend", "main"), "renamed"), (tree("visit", "begin main"), "inlining")] {
        let (base, change) = (profile(1, &base), profile(1, &change));
        let diff = compare(&base, &change);
        let pairing = diff.windows[0].pairing;
        assert_eq!(entries(&diff), [""; 0], "{how}");
        assert_eq!(pairing.unchanged, 1024, "{how}");
        let by = if how == "renamed" { pairing.renamed } else { pairing.inlining };
        assert_eq!(by, 1024, "{how}: {pairing:?}");
    }
}

#[test]
fn recursion_and_instances_fold_by_option() {
    let base = "3 8 malloc visit visit visit main\n 2 8 malloc push<u8> main";
    let change = "3 8 malloc visit visit main\n 2 8 malloc push<u16> main";
    let (base, change) = (profile(1, base), profile(1, change));
    let pairing = |fold_recursion, fold_generics| {
        let options = DiffOptions { fold_recursion, fold_generics, ..DiffOptions::default() };
        diff(&base, &change, &options).windows[0].pairing.equal
    };
    assert_eq!((pairing(false, false), pairing(true, false), pairing(true, true)), (0, 1, 2));
}

#[test]
fn a_new_stack_parts_from_what_was_there() {
    let base = "3 8 malloc f run main";
    let change = "3 8 malloc f run main\n 1 8 malloc h g run main";
    let (base, change) = (profile(1, base), profile(1, change));
    let diff = compare(&base, &change);
    let entry = &diff.windows[0].entries[0];
    // malloc h g | run main
    assert_eq!((entry.kind, entry.parting, entry.row.0), (Kind::New, Some(3), Side::Change));
}

#[test]
fn what_varies_between_runs_is_no_difference() {
    let with = |values: [u64; 3]| {
        let mut profile = profile(30, &format!("{} 8 malloc f main", values.iter().sum::<u64>()));
        profile.environment.repeats = 3;
        profile.windows[0].iterations_per_repeat = vec![10; 3];
        profile.rows[0].repeats =
            values.iter().map(|&allocations| RepeatValue { allocations, bytes: 8 * allocations }).collect();
        profile
    };
    let of = |base: &Profile, change: &Profile| {
        let diff = compare(base, change);
        (entries(&diff), diff.windows[0].pairing.unstable)
    };
    assert_eq!(of(&with([40, 42, 44]), &with([44, 46, 48])), (Vec::new(), 1));
    assert_eq!(of(&with([40, 42, 44]), &profile(10, "43 8 malloc f main")), (Vec::new(), 1));
    assert_eq!(of(&with([40, 42, 44]), &with([45, 46, 47])).0, ["0.4 More f:0"]);
    assert_eq!(of(&with([40, 40, 40]), &with([41, 41, 41])).0.len(), 1);
}

#[test]
fn windows_of_one_side_are_listed() {
    let mut change = profile(1, "1 8 malloc f main");
    change.windows[0].name = "other".into();
    let base = profile(1, "1 8 malloc f main");
    let diff = compare(&base, &change);
    assert!(diff.windows.is_empty() && diff.differs());
    let names = diff.unpaired.each_ref().map(|windows| windows[0].window.name.clone());
    assert_eq!(names, ["w", "other"]);
}

#[test]
fn one_stack_can_be_asked_for() {
    let base = profile(1, "1 8 malloc f main\n 1 8 malloc g main");
    let change = profile(1, "2 8 malloc f main\n 2 8 malloc g main");
    let options = DiffOptions { stack: vec![regex::Regex::new("^g$").unwrap()], ..DiffOptions::default() };
    assert_eq!(entries(&diff(&base, &change, &options)), ["1 More g:0"]);
    // A window of one side is a difference for its own stacks only.
    let mut other = profile(1, "1 8 malloc f main");
    other.windows[0].name = "other".into();
    assert!(diff(&base, &other, &options).differs());
    assert!(!diff(&other, &other, &options).differs());
    let mut second = base.clone();
    second.windows.push(other.windows[0].clone());
    let f = second.rows.iter().position(|row| second.stacks[row.stack].locations.len() == 3).unwrap();
    second.rows.push(Row { window: 1, ..second.rows[f].clone() });
    let by = |pattern: &str| {
        let stack = vec![regex::Regex::new(pattern).unwrap()];
        diff(&base, &second, &DiffOptions { stack, ..DiffOptions::default() }).differs()
    };
    assert_eq!(["^f$", "^g$"].map(by).iter().filter(|differs| **differs).count(), 1);
}

#[test]
fn windows_that_are_defined_otherwise_are_told() {
    let mut base = profile(1, "1 8 malloc f main");
    let mut change = base.clone();
    base.windows[0].definition = ["begin a".to_owned(), "end b".to_owned()].into();
    change.windows[0].definition = base.windows[0].definition.clone();
    let told = |base: &Profile, change: &Profile| {
        let diff = compare(base, change);
        let of = diff.conditions.iter().find(|condition| condition.what == What::Definitions);
        of.map(|condition| condition.values.clone())
    };
    assert_eq!(told(&base, &change), None);
    change.windows[0].definition.insert("restart".to_owned());
    let name = base.windows[0].name.clone();
    let values =
        |one: &str, other: &str| Some([format!("\"{name}\" ({one})"), format!("\"{name}\" ({other})")]);
    assert_eq!(told(&base, &change), values("begin a, end b", "begin a, end b, restart"));
    change.windows[0].definition.clear();
    assert_eq!(told(&base, &change), values("begin a, end b", "opened by the program"));
    change.windows[0].name.push('2');
    assert_eq!(told(&base, &change), None, "they are not compared");
}

#[test]
fn what_was_recorded_otherwise_is_told() {
    let mut base = profile(1, "1 8 malloc f main");
    let mut change = base.clone();
    base.environment.libc = "glibc 2.36".into();
    change.environment.libc = "glibc 2.41".into();
    base.environment.lifetimes = true;
    change.environment.compilers = vec!["rustc 1.95".into()];
    let diff = compare(&base, &change);
    let told: Vec<String> = diff
        .conditions
        .iter()
        .map(|condition| format!("{:?} {:?}", condition.what, condition.values))
        .collect();
    assert_eq!(told, [r#"Libc ["glibc 2.36", "glibc 2.41"]"#, r#"Lifetimes ["followed", "not followed"]"#]);
}
