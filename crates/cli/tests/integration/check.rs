//! `heaptally check`: what passes, and what never does.

use std::fs;

use heaptally_profile::model::{Counts, Profile};
use heaptally_profile::pprof;
use serde_json::Value;

use crate::sandbox::{Outcome, Sandbox};

/// A sandbox with the profile of the demo program, `demo.pb.gz`: `parse` has 12 allocations per iteration, `look up` 3.
pub(crate) fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let demo = sandbox.demo();
    sandbox.call(["run", "-q", "-o", "demo.pb.gz", demo.to_str().unwrap()]).expect(0);
    sandbox
}

/// The demo's profile, changed; threads lose their sums.
pub(crate) fn edited(sandbox: &Sandbox, name: &str, edit: impl FnOnce(&mut Profile)) {
    let mut profile = pprof::read(&fs::read(sandbox.work("demo.pb.gz")).unwrap()).unwrap();
    profile.threads.clear();
    edit(&mut profile);
    profile.normalize().unwrap();
    sandbox.write(name, pprof::write(&profile), 0o644);
}

pub(crate) fn limited(sandbox: &Sandbox, limits: &str) -> Outcome {
    sandbox.write("limits.toml", limits, 0o644);
    sandbox.call(["check", "demo.pb.gz", "--limits", "limits.toml"])
}

pub(crate) fn window(profile: &Profile, name: &str) -> usize {
    profile.windows.iter().position(|window| window.name == name).unwrap()
}

/// The counts of the window's first row.
pub(crate) fn first_row<'p>(profile: &'p mut Profile, name: &str) -> &'p mut Counts {
    let window = window(profile, name);
    &mut profile.rows.iter_mut().find(|row| row.window == window).unwrap().counts
}

#[test]
fn d05_nothing_is_no_denominator() {
    let sandbox = sandbox();
    edited(&sandbox, "none.pb.gz", |profile| profile.rows.clear());
    let appeared =
        sandbox.call(["check", "demo.pb.gz", "--baseline", "none.pb.gz", "--grow", "50%", "--json"]);
    appeared.expect(3);
    assert!(!appeared.output.contains("NaN") && !appeared.output.contains("inf"), "{appeared:#?}");
    let text = sandbox.call(["check", "demo.pb.gz", "--baseline", "none.pb.gz"]).output;
    assert!(text.contains("(new)") && !text.contains("NaN"), "{text}");
    let gone = sandbox.call(["check", "none.pb.gz", "--baseline", "demo.pb.gz"]);
    assert!(gone.expect(0).output.contains("improved: 12.00 → 0.00"), "{gone:#?}");
    sandbox.call(["check", "none.pb.gz", "--baseline", "none.pb.gz"]).expect(0);
}

#[test]
fn d06_a_profile_is_no_regression_of_itself() {
    let sandbox = sandbox();
    let outcome = sandbox.call(["check", "demo.pb.gz", "--baseline", "demo.pb.gz", "--strict"]);
    assert_eq!(outcome.expect(0).output, "passed: 10 limits in 2 windows\n");
}

/// Callers as other tools' files have them: the sum of what grew, and each of the two that did.
#[test]
fn d07_what_grows_below_a_caller_is_not_lost() {
    let sandbox = sandbox();
    sandbox.write("base.folded", "p;a 10\np;b 10\n", 0o644);
    sandbox.write("change.folded", "p;a 30\np;b 30\n", 0o644);
    let outcome = sandbox.call(["check", "./change.folded", "--baseline", "./base.folded"]);
    let text = &outcome.expect(3).output;
    assert!(text.contains("20 → 60 allocs (+40), may not grow"), "{text}");
    assert!(text.contains("2 stacks grew, the most 10 → 30 allocs"), "{text}");
    for site in ["+20", "from p"] {
        assert_eq!(text.matches(site).count(), if site == "+20" { 3 } else { 2 }, "{site}: {text}");
    }
}

#[test]
fn d09_a_window_that_the_base_lacks_is_said() {
    let sandbox = sandbox();
    edited(&sandbox, "base.pb.gz", |profile| {
        let at = window(profile, "look up");
        profile.windows[at].name = "old".into();
    });
    let call = |options: &[&str]| {
        sandbox.call([&["check", "demo.pb.gz", "--baseline", "base.pb.gz"], options].concat())
    };
    let outcome = call(&[]);
    assert!(outcome.expect(0).output.contains("window \"look up\" is new"), "{outcome:#?}");
    assert!(outcome.output.contains("window \"old\" is in the base only"), "{outcome:#?}");
    call(&["--strict"]).expect(4);
    sandbox
        .call(["check", "demo.pb.gz", "--baseline", "./missing"])
        .expect(4)
        .says(&["missing", "heaptally run"]);
}

/// D10, D12: profiles of another kind or version, cut short, empty.
#[test]
fn d12_what_is_no_whole_profile_never_passes() {
    let sandbox = sandbox();
    let whole = fs::read(sandbox.work("demo.pb.gz")).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    for (name, bytes) in [
        ("empty.pb.gz", &b""[..]),
        ("cut.pb.gz", &whole[..100]),
        ("text.pb.gz", b"no profile at all"),
        ("flipped.pb.gz", &flipped),
        ("json.pb.gz", b"{\"mean\":1}"),
    ] {
        sandbox.write(name, bytes, 0o644);
        for words in
            [["check", "demo.pb.gz", "--baseline", name], ["check", name, "--baseline", "demo.pb.gz"]]
        {
            sandbox.call(words).expect(4).says(&[name, "cannot read"]);
        }
        assert_eq!(fs::read(sandbox.work(name)).unwrap(), bytes, "nothing is overwritten");
        let outcome = sandbox.call(["limits", "update", name, "--limits", "new.toml"]);
        outcome.expect(4).says(&[name]);
        assert!(!sandbox.work("new.toml").exists());
    }
}

#[test]
fn a_check_that_judges_no_limit_measured_nothing() {
    let sandbox = sandbox();
    let outcome = limited(&sandbox, "");
    assert!(
        outcome.expect(4).output.contains("window \"parse\" has no limit, and is not checked"),
        "{outcome:#?}"
    );
    let first = "NOT MEASURED: no limit was judged: there is none: `heaptally limits update` writes them\n";
    assert!(outcome.output.starts_with(first), "{outcome:#?}");
    for (limits, why) in [
        ("[window.zzz]\nallocs = 0\n", "no window that was recorded has a limit"),
        ("[window.parse]\nallocs.grow = 0\n", "they compare with a base, and there is none"),
        ("[window.parse]\nstacks.new = \"fail\"\n", "they compare with a base, and there is none"),
        ("[window.parse]\nstacks.new = \"pass\"\n", "no window that was recorded"),
    ] {
        let outcome = limited(&sandbox, limits);
        assert!(outcome.expect(4).output.contains(&format!("no limit was judged: {why}")), "{outcome:#?}");
    }
    // A single limit is enough, also as a warning.
    limited(&sandbox, "[window.zzz]\nallocs = 0\n[window.parse]\nallocs.soft_max = 1\n").expect(0);
    // Windows of other names only.
    edited(&sandbox, "other.pb.gz", |profile| {
        profile.windows.iter_mut().for_each(|window| window.name.push('2'));
    });
    let other = sandbox.call(["check", "demo.pb.gz", "--baseline", "other.pb.gz"]);
    assert!(other.expect(4).output.contains("NOT MEASURED: no limit was judged"), "{other:#?}");
    sandbox.write("limits.toml", "", 0o644);
    sandbox.call(["check", "demo.pb.gz", "--limits", "limits.toml", "--strict"]).expect(4);
    sandbox.call(["check", "demo.pb.gz", "--limits", "limits.toml", "--self-test"]).expect(4);
}

/// What a pattern leaves nothing of neither grows nor keeps to a limit.
#[test]
fn patterns_that_no_stack_fits_pass_nothing() {
    let sandbox = sandbox();
    sandbox.write("l.toml", "[window.\"*\"]\nallocs = 100\n", 0o644);
    for (option, pattern) in
        [("--filter", "insrt"), ("--under", "insrt"), ("--root", "insrt"), ("--exclude", ".")]
    {
        for against in [["--baseline", "demo.pb.gz"], ["--limits", "l.toml"]] {
            let words = [&["check", "demo.pb.gz", option, pattern][..], &against].concat();
            let outcome = sandbox.call(&words);
            let first = format!("NOT MEASURED: no stack fits \"{option} {pattern}\"\n");
            assert!(outcome.expect(4).output.starts_with(&first), "{outcome:#?}");
            let next = if option == "--exclude" { "report --by function" } else { "demo::insert`" };
            outcome.says(&[next]);
            let json = sandbox.call([&words[..], &["--json"]].concat());
            let report: Value = serde_json::from_str(&json.expect(4).output).unwrap();
            assert_eq!(report["outcome"], "unmeasured");
            assert_eq!(report["unmeasured"][0]["rule"], "nothing-fits");
        }
    }
    // One side is enough, and where nothing was recorded there is nothing that could fit.
    edited(&sandbox, "none.pb.gz", |profile| profile.rows.clear());
    let call = |change, base| sandbox.call(["check", change, "--baseline", base, "--filter", "demo::insert"]);
    call("none.pb.gz", "demo.pb.gz").expect(0);
    call("demo.pb.gz", "none.pb.gz").expect(3);
    call("none.pb.gz", "none.pb.gz").expect(0);
    // The window before the others is one that is asked for, or that a limit names.
    let of_start = |options: &[&str]| {
        let words = ["check", "demo.pb.gz", "--filter", "std::rt::init|rt::lang_start|main"];
        sandbox.call([&words[..], &["--limits", "l.toml"], options].concat())
    };
    of_start(&[]).expect(0);
}

/// As the program names it, and as reports show it.
#[test]
fn a_window_with_a_backslash_is_found() {
    let sandbox = sandbox();
    edited(&sandbox, "odd.pb.gz", |profile| {
        let at = window(profile, "parse");
        profile.windows[at].name = "back\\\\slash".into();
    });
    for name in ["back\\slash", "back\\\\slash"] {
        let words = ["check", "odd.pb.gz", "--baseline", "odd.pb.gz", "--window", name];
        assert!(sandbox.call(words).expect(0).output.contains("5 limits in 1 window"), "{name}");
    }
    let words = ["check", "odd.pb.gz", "--baseline", "odd.pb.gz", "--window", "back/slash"];
    sandbox.call(words).expect(4).says(&["has no window `back/slash`"]);
}

#[test]
fn a_form_that_is_none_is_told_with_those_that_are() {
    let sandbox = Sandbox::new();
    for word in ["foo=a", "json"] {
        let outcome = sandbox.call(["check", "a.pb.gz", "--baseline", "b.pb.gz", "--write", word]);
        outcome.expect(2).says(&["forms are text, json, markdown, github, sarif, gitlab, bencher"]);
    }
}

#[test]
fn d13_an_improvement_is_no_failure() {
    let sandbox = sandbox();
    edited(&sandbox, "base.pb.gz", |profile| first_row(profile, "parse").allocations += 100);
    let outcome = sandbox.call(["check", "demo.pb.gz", "--baseline", "base.pb.gz"]);
    assert!(outcome.expect(0).output.contains("improved: 13.00 → 12.00 allocs/iter (-1.00)"), "{outcome:#?}");
    let asked = sandbox.call(["check", "demo.pb.gz", "--baseline", "base.pb.gz", "--exit-on-improvement"]);
    asked.expect(5);
}

#[test]
fn d14_a_limit_holds_and_its_place_is_named() {
    let sandbox = sandbox();
    let outcome =
        limited(&sandbox, "# mine\n[window.\"*\"]\nallocs = 99\n\n[window.\"pars*\"]\nallocs = 11\n");
    let text = &outcome.expect(3).output;
    assert!(
        text.contains("window \"parse\": 12.00 allocs/iter, at most 11.00 allowed (+1.00): limits.toml:6"),
        "{text}"
    );
    assert!(!text.contains("window \"look up\": 3.00 allocs/iter, at most 11"), "{text}");
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("FAILED: 4.00 allocs/iter") && first.contains("demo::insert"), "{first}");
    let source = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/demo/src/main.rs")).unwrap();
    let line = source.lines().position(|line| line.contains("settings.entry(")).unwrap() + 1;
    assert!(first.ends_with(&format!("demo/src/main.rs:{line}")), "{first}");
}

#[test]
fn d15_codes_are_distinct_and_json_has_the_verdict() {
    let sandbox = sandbox();
    let outcome = |limits: &str, options: &[&str]| {
        sandbox.write("l.toml", limits, 0o644);
        let call = sandbox.call([&["check", "demo.pb.gz", "--limits", "l.toml", "--json"], options].concat());
        let report: Value = serde_json::from_str(&call.output).unwrap();
        (call.code.unwrap(), report["outcome"].as_str().unwrap().to_owned())
    };
    let tight = "[window.parse]\nallocs = 12\n[window.\"look up\"]\nallocs = 3\n";
    assert_eq!(outcome(tight, &[]), (0, "passed".into()));
    let loose = tight.replace("12", "13");
    assert_eq!(outcome(&loose, &[]), (0, "improvement".into()));
    assert_eq!(outcome(&loose, &["--exit-on-improvement"]), (5, "improvement".into()));
    assert_eq!(outcome(&loose, &["--strict"]), (4, "not_strict".into()));
    assert_eq!(outcome(&tight.replace("12", "11"), &[]), (3, "regression".into()));
    edited(&sandbox, "demo.pb.gz", |profile| profile.losses.damaged = 1);
    assert_eq!(outcome(tight, &[]), (4, "unmeasured".into()));
}

#[test]
fn d16_a_check_can_fail() {
    let sandbox = sandbox();
    sandbox.write("l.toml", "[window.parse]\nallocs = 12\n", 0o644);
    let test = |options: &[&str]| sandbox.call([&["check", "demo.pb.gz", "--self-test"], options].concat());
    test(&["--limits", "l.toml"])
        .expect(0)
        .says(&["regression in 1 window was found", "nothing guards `look up`"]);
    test(&["--limits", "l.toml", "--strict"]).expect(4);
    let outcome = test(&["--baseline", "demo.pb.gz"]);
    outcome.expect(0).says(&["2 windows"]);
    assert!(outcome.output.starts_with("FAILED: ") && outcome.output.contains("heaptally_self_test"));
}

#[test]
fn d17_what_is_equal_passes_and_slack_is_a_note() {
    let sandbox = sandbox();
    assert!(!limited(&sandbox, "[window.parse]\nallocs = 12\n").expect(0).output.contains("below its limit"));
    let outcome = limited(&sandbox, "[window.parse]\nallocs = 12.01\n");
    assert!(
        outcome.expect(0).output.contains("12.00 allocs/iter, below its limit of 12.01 (-0.01)"),
        "{outcome:#?}"
    );
    limited(&sandbox, "[window.parse]\nallocs = 11.999999999\n").expect(3);
    limited(&sandbox, "[window.parse]\nallocs = { min = 12 }\n").expect(0);
    let few = limited(&sandbox, "[window.parse]\nallocs = { min = 12.5, max = 20 }\n");
    assert!(few.expect(3).output.contains("at least 12.50 expected (-0.50)"), "{few:#?}");
}

#[test]
fn d19_ten_percent_of_ten_is_one() {
    let sandbox = sandbox();
    let of = |allocations: u64| {
        edited(&sandbox, &format!("{allocations}.pb.gz"), |profile| {
            let at = window(profile, "parse");
            profile.rows.retain(|row| row.window == at);
            profile.rows.truncate(1);
            let iterations = profile.windows[at].iterations;
            first_row(profile, "parse").allocations = allocations * iterations;
        });
    };
    [10, 11, 12].into_iter().for_each(of);
    let check = |change: &str, options: &[&str]| {
        sandbox.call([&["check", change, "--baseline", "10.pb.gz"], options].concat())
    };
    for options in [&["--grow", "10%"][..], &["--grow", "1"], &["--grow", "10%", "--per-stack", "off"]] {
        check("11.pb.gz", options).expect(0);
    }
    let outcome = check("12.pb.gz", &["--grow", "10%"]);
    for words in [
        "10 % more than 10.00 allowed: 11.00 (--grow)",
        "1 stack grew 10.00 → 12.00 allocs/iter, 10 % more allowed (--grow)",
    ] {
        assert!(outcome.expect(3).output.contains(words), "{outcome:#?}");
    }
    check("12.pb.gz", &["--grow", "10%", "--per-stack", "off"]).expect(3);
    // A file's `grow` is of its window; its stacks are what `stacks` says.
    for (limits, code) in [
        ("allocs.grow = \"10 %\"", 0),
        ("allocs.grow = \"10 %\"\nstacks = { new = \"fail\", grow = \"10 %\" }", 0),
        ("allocs.grow = \"10 %\"\nstacks = { new = \"fail\", grow = 0 }", 3),
    ] {
        sandbox.write("l.toml", format!("[window.parse]\n{limits}\n"), 0o644);
        check("11.pb.gz", &["--limits", "l.toml"]).expect(code);
    }
    // 10 of one stack and 1 of another: a tenth more in all, and the other one is new.
    edited(&sandbox, "new.pb.gz", |profile| {
        let at = window(profile, "parse");
        let iterations = profile.windows[at].iterations;
        profile.rows.retain(|row| row.window == at);
        profile.rows.truncate(2);
        for (row, allocations) in profile.rows.iter_mut().zip([10, 1]) {
            row.counts.allocations = allocations * iterations;
        }
    });
    let outcome = check("new.pb.gz", &["--grow", "10%"]);
    assert!(outcome.expect(3).output.contains("1 new stack with 1.00 allocs/iter"), "{outcome:#?}");
}

#[test]
fn d20_another_compiler_is_said_with_both_names() {
    let sandbox = sandbox();
    for version in ["1.94", "1.95"] {
        edited(&sandbox, &format!("{version}.pb.gz"), |profile| {
            profile.environment.compilers = vec![format!("rustc {version}")];
        });
    }
    let call = |options: &[&str]| {
        sandbox.call([&["check", "1.95.pb.gz", "--baseline", "1.94.pb.gz"], options].concat())
    };
    let text = call(&[]).expect(0).output.clone();
    assert!(
        text.contains("warning: other compilers: rustc 1.94 in the base, rustc 1.95 in the change"),
        "{text}"
    );
    call(&["--same-environment"]).expect(4);
}

#[test]
fn d21_what_only_one_side_knows_is_not_compared() {
    let sandbox = sandbox();
    let demo = sandbox.demo();
    sandbox.call(["run", "-q", "--no-lifetimes", "-o", "without.pb.gz", demo.to_str().unwrap()]).expect(0);
    let check = |words: &[&str]| sandbox.call([&["check"], words].concat());
    let outcome = check(&["demo.pb.gz", "--baseline", "without.pb.gz"]);
    assert!(outcome.expect(0).output.contains("only allocations are compared"), "{outcome:#?}");
    sandbox.write("live.toml", "[window.\"*\"]\nlive = { grow = 0 }\n", 0o644);
    for (change, base) in [("demo.pb.gz", "without.pb.gz"), ("without.pb.gz", "demo.pb.gz")] {
        let outcome = check(&[change, "--baseline", base, "--limits", "live.toml"]);
        assert!(outcome.expect(4).output.contains("`live` is not known"), "{outcome:#?}");
    }
    sandbox.write("live.toml", "[window.\"*\"]\nlive = 20\n", 0o644);
    check(&["without.pb.gz", "--limits", "live.toml"]).expect(4);
    check(&["demo.pb.gz", "--limits", "live.toml"]).expect(0);
}

#[test]
fn what_was_not_measured_never_passes() {
    let sandbox = sandbox();
    for (edit, words) in [
        (
            &(|profile: &mut Profile| profile.images[0].in_path = false) as &dyn Fn(&mut Profile),
            "not in the way",
        ),
        (&|profile| profile.windows.clear(), "no window"),
        (&|profile| profile.windows[1].lost = 1, "1 allocation was lost"),
        (&|profile| profile.losses.windows = 1, "lacks 1 window"),
        (&|profile| profile.environment.exit_code = Some(139), "ended with 139"),
    ] {
        edited(&sandbox, "odd.pb.gz", |profile| {
            edit(profile);
            if profile.windows.is_empty() {
                profile.rows.clear();
            }
        });
        for words_of in [["odd.pb.gz", "demo.pb.gz"], ["demo.pb.gz", "odd.pb.gz"]] {
            let outcome = sandbox.call(["check", words_of[0], "--baseline", words_of[1]]);
            assert!(outcome.expect(4).output.contains(words), "{words}: {outcome:#?}");
        }
    }
    // Rows that do not add up to what threads counted.
    let mut profile = pprof::read(&fs::read(sandbox.work("demo.pb.gz")).unwrap()).unwrap();
    first_row(&mut profile, "parse").allocations += 100;
    sandbox.write("odd.pb.gz", pprof::write(&profile), 0o644);
    let outcome = sandbox.call(["check", "odd.pb.gz", "--baseline", "demo.pb.gz"]);
    assert!(outcome.expect(4).output.contains("do not add up"), "{outcome:#?}");
}

#[test]
fn a_limit_of_what_the_table_does_not_show_names_its_stacks() {
    let sandbox = sandbox();
    let outcome = limited(&sandbox, "[window.parse]\nlive = 0.1\n");
    let text = &outcome.expect(3).output;
    // The profile's own report: 11 blocks of 100 iterations.
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("error: window")).unwrap();
    assert!(lines[at].contains("live/iter, at most"), "{text}");
    assert!(lines[at + 1].starts_with("  ") && lines[at + 1].contains("live/iter"), "{text}");
    assert!(lines[at + 1].contains("demo::insert"), "{text}");
}

#[test]
fn a_made_up_regression_is_no_summary() {
    let sandbox = sandbox();
    let mut command = sandbox.command(["check", "demo.pb.gz", "--baseline", "demo.pb.gz", "--self-test"]);
    command.env("GITHUB_STEP_SUMMARY", sandbox.work("summary.md"));
    crate::sandbox::outcome(&mut command).expect(0);
    assert!(!sandbox.work("summary.md").exists());
}

#[test]
fn a_line_is_annotated_once() {
    let sandbox = sandbox();
    edited(&sandbox, "base.pb.gz", |profile| profile.rows.clear());
    let words = ["check", "demo.pb.gz", "--baseline", "base.pb.gz", "--format", "github"];
    let text = &sandbox.call(words).expect(3).output.clone();
    let marks: Vec<&str> = text.lines().filter(|line| line.starts_with("::error file=")).collect();
    let places: std::collections::BTreeSet<&str> =
        marks.iter().filter_map(|line| line.split_once(",title=")).map(|(place, _)| place).collect();
    assert!(!marks.is_empty() && places.len() == marks.len(), "{text}");
}

#[test]
fn a_job_summary_is_added_to() {
    let sandbox = sandbox();
    let summary = sandbox.write("summary.md", "before\n", 0o644);
    let mut command = sandbox.command(["check", "demo.pb.gz", "--baseline", "demo.pb.gz"]);
    command.env("GITHUB_STEP_SUMMARY", &summary);
    crate::sandbox::outcome(&mut command).expect(0);
    let text = fs::read_to_string(&summary).unwrap();
    assert!(text.starts_with("before\n**heaptally:** `passed"), "{text}");
}

#[test]
fn a_program_that_fails_keeps_its_code() {
    let sandbox = sandbox();
    sandbox.write("l.toml", "[window.\"*\"]\nallocs = 0\n[window.process]\nallocs = 1000000\n", 0o644);
    let call = |words: &[&str]| sandbox.call([&["check", "--limits", "l.toml"], words].concat());
    call(&["--", "sh", "-c", "exit 7"]).expect(7).says(&["ended with 7", "--accept-failed"]);
    call(&["--", "sh", "-c", "kill -9 $$"]).expect(137).says(&["ended with 137 (128 + 9, SIGKILL)"]);
    call(&["--accept-failed", "--", "sh", "-c", "exit 7"]).expect(0);
    call(&["--", "./nowhere"]).expect(4);
}
