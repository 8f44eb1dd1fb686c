//! Verdicts: text by snapshots, JSON against its schema, the forms of other tools by their own rules.

use std::collections::BTreeSet;

use heaptally_profile::check::{CheckOptions, Subject, Verdict, check, default_gates};
use heaptally_profile::limit::read::read;
use heaptally_profile::limit::{Amount, Date, Limits, Origin, Rate, Severity};
use heaptally_profile::merge::merge;
use heaptally_profile::model::{Module, Profile};
use heaptally_report::Options;
use heaptally_report::check_bencher::check_bencher;
use heaptally_report::check_benchmark_action::check_benchmark_action;
use heaptally_report::check_github::check_github;
use heaptally_report::check_gitlab::check_gitlab;
use heaptally_report::check_json::check_json;
use heaptally_report::check_markdown::{MOST_BYTES, check_markdown};
use heaptally_report::check_sarif::check_sarif;
use heaptally_report::text::check::{MOST_LINES, text};
use serde_json::Value;

use crate::fixture::{everything, profile};
use crate::schema::{check as conforms, undescribed};

const BASE: [(u64, u64, &str); 3] = [
    (40_000, 1_920_000, "alloc::vec::Vec<T>::push header::push_value parse main"),
    (20_000, 640_000, "table::grow parse main"),
    (15_000, 240_000, "gone parse main"),
];
const CHANGE: [(u64, u64, &str); 4] = [
    (40_000, 1_920_000, "alloc::vec::Vec<T>::push header::push_value parse main"),
    (21_000, 672_000, "table::grow parse main"),
    (14_500, 232_000, "gone parse main"),
    (1_000, 24_000, "alloc::string::String::clone parser::name parser::header parse main"),
];

const LIMITS: &str = r#"
[window.parse]
allocs = { max = 75, soft_grow = "1 %" }
bytes = 3_000
live = 0
stacks = { new = "fail", grow = "1 %" }

[window.zzz]
allocs = 1

[[ignore]]
stack = "nowhere"
reason = "a | b `c`"
until = 2027-01-31

[[ignore]]
stack = "gone"
reason = "over"
until = 2025-01-31
"#;

fn options() -> CheckOptions {
    CheckOptions {
        defaults: default_gates(
            (Amount::Exact(Rate::ZERO), Origin::Default),
            (Severity::Hard, Origin::Option("--per-stack")),
        ),
        today: Date { year: 2026, month: 12, day: 2 },
        ..CheckOptions::default()
    }
}

/// What comes of a check.
fn with<T>(change: Profile, base: Option<Profile>, limits: &str, of: impl FnOnce(&Verdict<'_>) -> T) -> T {
    let limits =
        if limits.is_empty() { Limits::default() } else { read(limits, "limits.toml").expect("limits") };
    let options = options();
    let subject = Subject::new(change, base, &limits, &options);
    of(&check(&subject, &limits, &options))
}

fn regression<T>(of: impl FnOnce(&Verdict<'_>) -> T) -> T {
    with(profile(1000, &CHANGE), Some(profile(1000, &BASE)), LIMITS, of)
}

fn whole(verdict: &Verdict<'_>) -> String {
    text(verdict, &Options::default(), false, None)
}

#[test]
fn the_answer_stands_first() {
    insta::assert_snapshot!(regression(whole));
}

#[test]
fn without_a_base_the_largest_are_named() {
    insta::assert_snapshot!(with(profile(1000, &CHANGE), None, "[window.parse]\nallocs = 75\n", whole));
}

#[test]
fn what_was_not_measured_stands_first() {
    let mut change = profile(1000, &BASE);
    change.losses.table_full = 7;
    change.environment.exit_code = Some(139);
    change.images[0].in_path = false;
    change.environment.libc = "glibc 2.41".into();
    insta::assert_snapshot!(with(change, Some(profile(1000, &BASE)), "", whole));
}

#[test]
fn runs_that_differ_are_told_with_their_spread() {
    let runs = |extra: &[u64]| {
        let run = |more: &u64| profile(1000, &[BASE[0], (20_000 + more, 640_000, BASE[1].2)]);
        merge(extra.iter().map(run).collect()).expect("runs of one program")
    };
    let limits = "[window.parse]\nallocs = { max = 61, grow = 0 }\n";
    insta::assert_snapshot!(with(runs(&[500, 1500]), Some(runs(&[0, 600])), limits, whole));
    insta::assert_snapshot!(with(runs(&[1500, 2500]), Some(runs(&[0, 600])), limits, whole));
}

#[test]
fn a_long_verdict_is_cut_and_its_file_named() {
    let names: Vec<String> = (0..40).map(|at| format!("f{at} main")).collect();
    let rows: Vec<(u64, u64, &str)> = names.iter().map(|names| (1000, 8000, names.as_str())).collect();
    with(profile(1000, &rows), Some(profile(1000, &[])), "", |verdict| {
        let brief = text(verdict, &Options::default(), false, Some("whole.txt"));
        assert_eq!(brief.lines().count(), MOST_LINES, "{brief}");
        assert!(brief.contains("more lines: whole.txt\n"), "{brief}");
        assert_eq!(brief.lines().next(), whole(verdict).lines().next());
        assert_eq!(brief.lines().last(), whole(verdict).lines().last());
    });
    regression(|verdict| assert_eq!(text(verdict, &Options::default(), false, Some("f")), whole(verdict)));
}

/// All kinds of verdicts.
fn verdicts(mut of: impl FnMut(&Verdict<'_>)) {
    regression(&mut of);
    with(profile(1000, &CHANGE), None, LIMITS, &mut of);
    with(profile(1000, &BASE), Some(profile(1000, &CHANGE)), "", &mut of);
    with(everything(), Some(everything()), "[window.\"*\"]\nallocs = { min = 1000000 }\n", &mut of);
    with(everything(), Some(profile(1000, &BASE)), LIMITS, &mut of);
    with(Profile::default(), None, "", &mut of);
    let mut change = profile(1000, &CHANGE);
    change.environment.lifetimes = false;
    with(change, Some(profile(1000, &BASE)), LIMITS, &mut of);
}

#[test]
fn verdicts_conform_to_the_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../../schema/check.v1.schema.json")).expect("JSON");
    verdicts(|verdict| {
        for is_strict in [false, true] {
            let json = check_json(verdict, &Options::default(), is_strict);
            let report: Value = serde_json::from_str(&json).expect("the verdict is JSON");
            let (mut errors, mut names) = (Vec::new(), Vec::new());
            conforms(&schema, &schema, &report, "", &mut errors);
            undescribed(&schema, &schema, &report, "", &mut names);
            assert_eq!((errors, names), (vec![], vec![]), "{json}");
        }
    });
}

/// Read into the types of another implementation and written again, it is the same.
#[test]
fn sarif_is_what_others_read() {
    verdicts(|verdict| {
        let sarif = check_sarif(verdict, &Options::default(), false, "0.1.0");
        let read: serde_sarif::sarif::Sarif = serde_json::from_str(&sarif).expect("SARIF");
        let again: Value = serde_json::to_value(&read).expect("JSON");
        assert_eq!(again, serde_json::from_str::<Value>(&sarif).expect("JSON"));
        let run = &read.runs[0];
        let rules = run.tool.driver.rules.as_ref().expect("rules");
        for result in run.results.iter().flatten() {
            let index = usize::try_from(result.rule_index.expect("an index")).expect("an index");
            assert_eq!(Some(&rules[index].id), result.rule_id.as_ref(), "each kind is in the table");
        }
    });
}

#[test]
fn sarif_points_at_the_guilty_line() {
    let sarif = regression(|verdict| check_sarif(verdict, &Options::default(), false, "0.1.0"));
    let sarif: Value = serde_json::from_str(&sarif).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["level"], "error");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "src/bench.rs");
    assert!(place["region"]["startLine"].as_u64() > Some(0));
    let limit = &result["relatedLocations"][0]["physicalLocation"];
    assert_eq!(limit["artifactLocation"]["uri"], "limits.toml");
}

/// A regression in a function of this source, called by the C library, whose sources have paths from its own folder.
fn regression_in<T>(file: &str, of: impl FnOnce(&Verdict<'_>) -> T) -> T {
    let mut change = profile(1000, &[(1_000, 8_000, "parse __libc_start_call_main")]);
    for function in &mut change.functions {
        function.file = match function.name.as_str() {
            "parse" => file.to_owned(),
            "__libc_start_call_main" => "./csu/../sysdeps/nptl/libc_start_call_main.h".to_owned(),
            _ => String::new(),
        };
    }
    with(change, Some(profile(1000, &[])), "", of)
}

/// They find a line by its path from the repository's folder, written in the one way that it has there.
#[test]
fn places_are_paths_that_ci_systems_find() {
    let options = Options { project: Some("/p".to_owned()), ..Options::default() };
    for file in ["src/a.c", "./src/a.c", "build/../src/a.c", "/p/src/a.c", "/p/build/../src/./a.c"] {
        regression_in(file, |verdict| {
            let gitlab: Value = serde_json::from_str(&check_gitlab(verdict, &options, false)).expect("JSON");
            assert_eq!(gitlab[0]["location"]["path"], "src/a.c", "{file}");
            let sarif = check_sarif(verdict, &options, false, "0");
            let sarif: Value = serde_json::from_str(&sarif).expect("JSON");
            let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], "src/a.c", "{file}");
            let github = check_github(verdict, &options, false, None);
            assert!(github.starts_with("::error file=src/a.c,line="), "{file}: {github}");
        });
    }
    for file in ["", "/usr/include/c++/12/bits/a.h", "../sysdeps/a.c", "build/../../q/a.c", "/p/../q/a.c"] {
        regression_in(file, |verdict| {
            let gitlab: Value = serde_json::from_str(&check_gitlab(verdict, &options, false)).expect("JSON");
            assert_eq!(gitlab[0]["location"]["path"], "heaptally", "{file}");
            let github = check_github(verdict, &options, false, None);
            assert!(github.starts_with("::error title="), "{file}: {github}");
        });
    }
}

/// The C library's start of a program has a relative path, which lies in no project.
#[test]
fn a_line_of_the_c_library_is_not_the_users() {
    let side = |rows: &[(u64, u64, &str)], path: &str, file: &str| {
        let mut side = profile(1000, rows);
        let own = side.functions.iter().position(|function| function.name == "main").unwrap();
        side.functions[own].file = file.to_owned();
        side.modules.push(Module { path: path.to_owned(), ..Module::default() });
        let module = side.modules.len() - 1;
        for location in &mut side.locations {
            let is_main = location.lines.iter().any(|line| line.function == own);
            location.lines.iter_mut().for_each(|line| line.line = if is_main { 58 } else { 0 });
            location.module = is_main.then_some(module);
        }
        side.normalize().expect("valid");
        side
    };
    let place = |path: &str, file: &str| {
        let (base, change) = (side(&BASE, path, file), side(&CHANGE, path, file));
        let gitlab =
            with(change, Some(base), "", |verdict| check_gitlab(verdict, &Options::default(), false));
        let gitlab: Value = serde_json::from_str(&gitlab).expect("JSON");
        gitlab[0]["location"]["path"].as_str().unwrap().to_owned()
    };
    assert_eq!(place("/home/a/bench", "./src/main.c"), "src/main.c");
    assert_eq!(place("/lib/x86_64-linux-gnu/libc.so.6", "./csu/libc-start.c"), "heaptally");
    assert_eq!(place("/home/a/bench", "../sysdeps/start.h"), "heaptally");
}

#[test]
fn the_forms_of_ci_systems_keep_their_rules() {
    verdicts(|verdict| {
        let options = Options::default();
        let gitlab: Value = serde_json::from_str(&check_gitlab(verdict, &options, false)).expect("JSON");
        let prints: Vec<&str> =
            gitlab.as_array().expect("a list").iter().filter_map(|of| of["fingerprint"].as_str()).collect();
        let unique: BTreeSet<&&str> = prints.iter().collect();
        assert_eq!(unique.len(), prints.len(), "of the same fingerprint one alone is shown");
        for problem in gitlab.as_array().expect("a list") {
            let texts = ["description", "check_name", "fingerprint"].map(|key| problem[key].as_str());
            assert!(texts.iter().all(|text| text.is_some_and(|text| !text.is_empty())), "{problem}");
            assert!(
                ["info", "minor", "major", "critical", "blocker"]
                    .contains(&problem["severity"].as_str().unwrap())
            );
            let path = problem["location"]["path"].as_str().expect("a path");
            assert!(!path.starts_with("./") && problem["location"]["lines"]["begin"].as_u64() > Some(0));
        }
        let bencher: Value = serde_json::from_str(&check_bencher(verdict)).expect("JSON");
        for measure in
            bencher.as_object().expect("benchmarks").values().flat_map(|of| of.as_object().unwrap().values())
        {
            let fields = measure.as_object().expect("a measure");
            assert!(fields["value"].is_number());
            assert!(fields.keys().all(|key| ["value", "lower_value", "upper_value"].contains(&key.as_str())));
        }
        let action: Value = serde_json::from_str(&check_benchmark_action(verdict)).expect("JSON");
        let values = action.as_array().expect("a list");
        assert!(values.iter().all(|value| value["name"].is_string()
            && value["unit"].is_string()
            && value["value"].is_number()));
        let github = check_github(verdict, &options, false, None);
        let (commands, rest) = github.split_once("::stop-commands::").expect("the text is no command");
        assert!(commands.lines().all(|line| line.starts_with("::error ") || line.starts_with("::warning ")));
        let token = rest.lines().next().expect("a token");
        assert!(rest.ends_with(&format!("::{token}::\n")) && rest.matches(token).count() == 2);
        let markdown = check_markdown(verdict, &options, false);
        assert!(markdown.len() <= MOST_BYTES && markdown.starts_with("**heaptally:** `"));
    });
}

#[test]
fn names_are_data_in_every_form() {
    let evil = "::error::x%0A`</details><script>|##[error]\u{1b}[2J\u{202e}";
    let rows: Vec<String> = (0..2000).map(|at| format!("{evil}{at} main")).collect();
    let rows: Vec<(u64, u64, &str)> = rows.iter().map(|names| (1, 8, names.as_str())).collect();
    let mut change = profile(1, &rows);
    change.windows[0].name = format!("{evil}\n::error::");
    let mut base = profile(1, &[]);
    base.windows[0].name.clone_from(&change.windows[0].name);
    with(change, Some(base), "", |verdict| {
        let options = Options::default();
        let markdown = check_markdown(verdict, &options, false);
        assert!(markdown.len() <= MOST_BYTES);
        assert_eq!(markdown.matches("\n</details>").count(), 1, "it does not end before its end");
        let github = check_github(verdict, &options, false, None);
        let commands = github.split_once("::stop-commands::").expect("commands").0;
        assert!(
            commands.lines().all(|line| line.starts_with("::error file=")
                || line.starts_with("::warning file=")
                || line.starts_with("::error title=")
                || line.starts_with("::warning title=")),
            "{commands}"
        );
        for text in [
            whole(verdict),
            markdown,
            github,
            check_json(verdict, &options, false),
            check_sarif(verdict, &options, false, "0"),
            check_gitlab(verdict, &options, false),
            check_bencher(verdict),
            check_benchmark_action(verdict),
        ] {
            assert!(!text.contains(['\u{1b}', '\u{202e}']));
        }
    });
}

#[test]
fn markdown_is_a_comment() {
    insta::assert_snapshot!(regression(|verdict| check_markdown(verdict, &Options::default(), false)));
}
