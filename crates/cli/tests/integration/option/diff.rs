//! `diff`.
//!
//! The base is the demonstration's profile: in its window `parse` the function `insert` allocates, by way of `parse`, in
//! `look up` the function `describe`. In the change `insert` allocates a third more, and `describe` three times as many
//! bytes.

use std::fs;

use heaptally_profile::model::{Origin, Profile};
use heaptally_profile::pprof;
use serde_json::Value;

use super::{Bench, Row};

pub(super) const ROWS: &[Row] = &[
    Row { command: "diff", option: "BASE", check: base },
    Row { command: "diff", option: "CHANGE", check: change },
    Row { command: "diff", option: "--window", check: window },
    Row { command: "diff", option: "--under", check: under },
    Row { command: "diff", option: "--filter", check: filter },
    Row { command: "diff", option: "--exclude", check: exclude },
    Row { command: "diff", option: "--root", check: root },
    Row { command: "diff", option: "--rules", check: rules },
    Row { command: "diff", option: "--stack", check: stack },
    Row { command: "diff", option: "--fold-recursion", check: fold_recursion },
    Row { command: "diff", option: "--fold-generics", check: fold_generics },
    Row { command: "diff", option: "--sort", check: sort },
    Row { command: "diff", option: "--tree", check: tree },
    Row { command: "diff", option: "--explain", check: explain },
    Row { command: "diff", option: "--limit", check: limit },
    Row { command: "diff", option: "--min", check: min },
    Row { command: "diff", option: "--full", check: full },
    Row { command: "diff", option: "--width", check: width },
    Row { command: "diff", option: "--format", check: format },
    Row { command: "diff", option: "--json", check: json },
    Row { command: "diff", option: "--same-environment", check: same_environment },
    Row { command: "diff", option: "--exit-code", check: exit_code },
];

/// Writes the profile of one side as `edit` makes it.
fn write(bench: &Bench, name: &str, edit: impl FnOnce(&mut Profile)) {
    if !bench.sandbox.work("demo.pb.gz").exists() {
        bench.profile();
    }
    let mut profile = pprof::read(&fs::read(bench.sandbox.work("demo.pb.gz")).unwrap()).unwrap();
    edit(&mut profile);
    profile.normalize().unwrap();
    bench.sandbox.write(name, pprof::write(&profile), 0o644);
}

/// Whether a row's stack holds a function whose name ends so.
fn holds(profile: &Profile, row: usize, name: &str) -> bool {
    let stack = &profile.stacks[profile.rows[row].stack];
    let lines = stack.locations.iter().flat_map(|&at| &profile.locations[at].lines);
    lines.into_iter().any(|line| profile.functions[line.function].name.ends_with(name))
}

fn same_environment(bench: &Bench) {
    sides(bench);
    bench.output(&["diff", "--same-environment", "base.pb.gz", "change.pb.gz"]);
    write(bench, "other.pb.gz", |profile| profile.environment.compilers = vec!["cc 1".into()]);
    bench.output(&["diff", "other.pb.gz", "change.pb.gz"]);
    let refused = bench.call(&["diff", "--same-environment", "other.pb.gz", "change.pb.gz"]);
    refused.expect(4).says(&["cc 1 in the base, "]);
}

pub(super) fn sides(bench: &Bench) {
    write(bench, "base.pb.gz", |_| {});
    write(bench, "change.pb.gz", |profile| {
        for row in 0..profile.rows.len() {
            if holds(profile, row, "demo::insert") {
                let counts = &mut profile.rows[row].counts;
                (counts.allocations, counts.bytes) = (counts.allocations / 3 * 4, counts.bytes / 3 * 4);
            } else if holds(profile, row, "demo::describe") {
                profile.rows[row].counts.bytes *= 300;
            }
        }
    });
}

/// Compares the two with these options.
#[track_caller]
fn diff(bench: &Bench, options: &[&str]) -> String {
    if !bench.sandbox.work("change.pb.gz").exists() {
        sides(bench);
    }
    let words: Vec<&str> = ["diff", "base.pb.gz", "change.pb.gz"].iter().chain(options).copied().collect();
    bench.output(&words)
}

/// Whether `insert` and `describe` are said to differ.
#[track_caller]
fn found(bench: &Bench, options: &[&str]) -> [bool; 2] {
    let text = diff(bench, options);
    ["demo::insert", "demo::describe"].map(|name| text.contains(name))
}

fn base(bench: &Bench) {
    assert!(!diff(bench, &[]).starts_with("no difference"));
    assert!(bench.output(&["diff", "change.pb.gz", "change.pb.gz"]).starts_with("no difference"));
    bench.call(&["diff", "nowhere.pb.gz", "change.pb.gz"]).expect(4).says(&["nowhere.pb.gz"]);
}

fn change(bench: &Bench) {
    assert!(diff(bench, &[]).starts_with('+'));
    assert!(bench.output(&["diff", "base.pb.gz", "base.pb.gz"]).starts_with("no difference"));
    assert!(bench.output(&["diff", "change.pb.gz", "base.pb.gz"]).starts_with('-'));
    bench.call(&["diff", "base.pb.gz"]).expect(2);
}

fn window(bench: &Bench) {
    assert_eq!(found(bench, &[]), [true, true]);
    assert_eq!(found(bench, &["--window", "parse"]), [true, false]);
    assert_eq!(found(bench, &["--window", "look up"]), [false, true]);
    let outcome = bench.call(&["diff", "base.pb.gz", "change.pb.gz", "--window", "nowhere"]);
    outcome.expect(4).says(&["no window `nowhere`"]);
}

fn under(bench: &Bench) {
    assert_eq!(found(bench, &["--under", "demo::parse$"]), [true, false]);
    assert!(!diff(bench, &["--full", "--under", "demo::parse$"]).contains("heaptally_demo::main"));
}

fn filter(bench: &Bench) {
    assert_eq!(found(bench, &["--filter", "describe"]), [false, true]);
}

fn exclude(bench: &Bench) {
    assert_eq!(found(bench, &["--exclude", "describe"]), [true, false]);
}

fn root(bench: &Bench) {
    assert_eq!(found(bench, &["--root", "main"]), [true, true]);
    let outcome = bench.call(&["diff", "base.pb.gz", "change.pb.gz", "--root", "nowhere"]);
    outcome.expect(4).says(&["no stack of `base.pb.gz` or `change.pb.gz` fits `--root nowhere`"]);
}

fn rules(bench: &Bench) {
    bench.sandbox.write("rules.txt", "[function]\n*demo::insert\n", 0o644);
    let first = |options: &[&str]| diff(bench, options).lines().next().unwrap().to_owned();
    assert!(first(&[]).contains("demo::insert"));
    assert!(first(&["--rules", "rules.txt"]).contains("demo::parse"));
}

fn stack(bench: &Bench) {
    assert_eq!(found(bench, &["--stack", "describe"]), [false, true]);
    let call =
        |pattern| bench.call(&["diff", "base.pb.gz", "change.pb.gz", "--exit-code", "--stack", pattern]);
    call("insert").expect(3);
    call("main").expect(3);
    // What fits nothing was not compared, and must not pass for "no difference".
    let typo = call("demo::inesrt$");
    typo.expect(4).says(&["fits `--stack demo::inesrt$`", "names like it: ", "heaptally_demo::insert`"]);
    typo.says(&["compare with a profile that has it"]);
    assert_eq!(typo.output, "");
    bench.call(&["diff", "base.pb.gz", "base.pb.gz", "--stack", "zzzzz"]).expect(4).says(&["--by function"]);
    bench
        .call(&["diff", "base.pb.gz", "base.pb.gz", "--exclude", "main"])
        .expect(4)
        .says(&["every stack of `base.pb.gz` and `base.pb.gz` has a frame that fits `--exclude main`"]);
    // A name as it is printed is one that is there.
    let printed = bench.call(&[
        "diff",
        "base.pb.gz",
        "base.pb.gz",
        "--stack",
        "<str as alloc::borrow::ToOwned>::to_owned$",
    ]);
    printed.expect(0);
    // It is enough that one of several fits, and that one side has it.
    bench.call(&["diff", "base.pb.gz", "base.pb.gz", "--stack", "zzzzz", "--stack", "insert"]).expect(0);
    write(bench, "without.pb.gz", |profile| {
        let rows: Vec<bool> =
            (0..profile.rows.len()).map(|row| holds(profile, row, "demo::insert")).collect();
        let mut rows = rows.into_iter();
        profile.rows.retain(|_| !rows.next().unwrap());
    });
    for sides in [["base.pb.gz", "without.pb.gz"], ["without.pb.gz", "base.pb.gz"]] {
        bench.call(&["diff", sides[0], sides[1], "--exit-code", "--stack", "demo::insert$"]).expect(3);
    }
    bench.call(&["diff", "without.pb.gz", "without.pb.gz", "--stack", "demo::insert$"]).expect(4);
    // Stacks in the background alone: the window to ask for is named.
    write(bench, "background.pb.gz", |profile| {
        let rows: Vec<bool> =
            (0..profile.rows.len()).map(|row| holds(profile, row, "demo::insert")).collect();
        let process = profile.windows.iter().position(|window| window.name == "process").unwrap();
        for (row, is_insert) in profile.rows.iter_mut().zip(rows) {
            row.window = if is_insert { process } else { row.window };
        }
    });
    let background = ["diff", "background.pb.gz", "background.pb.gz", "--stack", "demo::insert$"];
    bench.call(&background).expect(4).says(&["--window process"]);
    bench.output(&[&background[..], &["--window", "process"]].concat());
}

fn fold_recursion(bench: &Bench) {
    write(bench, "base.pb.gz", |_| {});
    write(bench, "change.pb.gz", |profile| {
        for stack in &mut profile.stacks {
            let last = stack.locations.len() - 4;
            let again = stack.locations[last];
            stack.locations.insert(last, again);
        }
    });
    let equal = |options: &[&str]| of_pairing(&diff(bench, options), "equal");
    assert!(equal(&["--json", "--fold-recursion"]) > equal(&["--json"]));
}

fn of_pairing(json: &str, how: &str) -> u64 {
    let report: Value = serde_json::from_str(json).unwrap();
    let windows = report["windows"].as_array().unwrap();
    windows.iter().map(|window| window["pairing"][how].as_u64().unwrap()).sum()
}

fn fold_generics(bench: &Bench) {
    for (file, argument) in [("base.pb.gz", "<u8>"), ("change.pb.gz", "<u16>")] {
        write(bench, file, |profile| {
            let functions = profile.functions.iter_mut();
            for function in functions.filter(|function| function.name.ends_with("demo::insert")) {
                function.name.push_str(argument);
            }
        });
    }
    let equal = |options: &[&str]| of_pairing(&diff(bench, options), "equal");
    assert!(equal(&["--json", "--fold-generics"]) > equal(&["--json"]));
}

fn sort(bench: &Bench) {
    let first = |options: &[&str]| diff(bench, options).lines().next().unwrap().to_owned();
    assert_eq!(first(&["--sort", "count"]), first(&[]));
    let json = |options: &[&str]| serde_json::from_str::<Value>(&diff(bench, options)).unwrap();
    let (by_count, by_bytes) = (json(&["--json"]), json(&["--json", "--sort", "bytes"]));
    assert_eq!(by_count["differs"], by_bytes["differs"]);
    let folded = |sort| diff(bench, &["--format", "folded", "--sort", sort]);
    assert_ne!(folded("count"), folded("bytes"));
}

fn tree(bench: &Bench) {
    let tree = diff(bench, &["--tree"]);
    let is_before = |first, second| tree.find(first).unwrap() < tree.find(second).unwrap();
    assert!(tree.contains("base allocs") && is_before("demo::parse", "demo::describe"), "{tree}");
    assert!(!diff(bench, &[]).contains("base allocs"));
}

fn explain(bench: &Bench) {
    assert!(diff(bench, &["--explain"]).contains("= heaptally_demo::main"));
    assert!(!diff(bench, &[]).contains("= heaptally_demo::main"));
    bench.call(&["diff", "--explain", "--tree", "base.pb.gz", "change.pb.gz"]).expect(2);
}

fn limit(bench: &Bench) {
    // Programs that have many call sites, all of them new or gone.
    for program in ["true", "ls"] {
        bench.output(&["run", "-q", "-o", &format!("{program}.pb.gz"), program]);
    }
    let len = |limit| bench.output(&["diff", "true.pb.gz", "ls.pb.gz", "--limit", limit]).lines().count();
    assert!(len("1") < len("0"));
    assert_eq!(diff(bench, &["--limit", "20"]), diff(bench, &[]));
}

fn min(bench: &Bench) {
    let lines = |min| diff(bench, &["--min", min]).lines().count();
    assert!(lines("0") > lines("1000000"));
}

fn full(bench: &Bench) {
    assert!(!diff(bench, &[]).contains("_start"));
    assert!(diff(bench, &["--full"]).contains("_start"));
}

fn width(bench: &Bench) {
    let widest = |options: &[&str]| {
        let diff = diff(bench, options);
        diff.lines().filter(|line| line.contains("alloc::")).map(|line| line.chars().count()).max().unwrap()
    };
    assert!(widest(&["--full", "--width", "80"]) <= 80);
    assert!(widest(&["--full"]) > 80);
    assert_eq!(diff(bench, &["--width", "0"]), diff(bench, &[]));
}

fn format(bench: &Bench) {
    let [text, json, folded, markdown] =
        ["text", "json", "folded", "markdown"].map(|form| diff(bench, &["--format", form]));
    assert_eq!(text, diff(bench, &[]));
    assert_eq!(json, diff(bench, &["--json"]));
    let has_counts = |line: &str| line.rsplit(' ').take(2).all(|word| word.parse::<u64>().is_ok());
    assert!(folded.lines().count() > 0 && folded.lines().all(has_counts), "{folded}");
    assert!(markdown.contains("<details>"), "{markdown}");
}

fn json(bench: &Bench) {
    let json = diff(bench, &["--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["schema"], "heaptally-diff");
    assert!(serde_json::from_str::<Value>(&diff(bench, &[])).is_err());
}

fn exit_code(bench: &Bench) {
    diff(bench, &[]);
    bench.call(&["diff", "--exit-code", "base.pb.gz", "change.pb.gz"]).expect(3);
    bench.call(&["diff", "--exit-code", "base.pb.gz", "base.pb.gz"]).expect(0);
    // Nothing is compared without a window of both sides; one that one side alone has differs, and is named.
    let rename = |profile: &mut Profile, name: &str| {
        let window = profile.windows.iter_mut().find(|window| window.name == name).unwrap();
        window.name = format!("other {name}");
    };
    write(bench, "other.pb.gz", |profile| ["parse", "look up"].iter().for_each(|name| rename(profile, name)));
    for options in [&[][..], &["--exit-code"], &["--stack", "insert"]] {
        let outcome = bench.call(&[&["diff", "base.pb.gz", "other.pb.gz"], options].concat());
        outcome.expect(4).says(&[
            "nothing was compared: no window is on both sides",
            "`base.pb.gz` has `parse`, `look up`, `other.pb.gz` has `other parse`, `other look up`",
        ]);
        assert!(outcome.output.starts_with("nothing to compare: no window is on both sides"));
    }
    write(bench, "half.pb.gz", |profile| rename(profile, "parse"));
    let half = bench.call(&["diff", "--exit-code", "base.pb.gz", "half.pb.gz"]);
    half.expect(3);
    assert!(
        half.output
            .starts_with("other windows: \"parse\" in the base only; \"other parse\" in the change only;")
    );
    // … and what is only in such a window was not compared.
    let insert = bench.call(&["diff", "--exit-code", "base.pb.gz", "half.pb.gz", "--stack", "demo::insert$"]);
    insert
        .expect(4)
        .says(&["stacks that fit `--stack demo::insert$` are in `parse` only, a window of one side"]);
    bench.sandbox.write("cut.pb.gz", &fs::read(bench.sandbox.work("base.pb.gz")).unwrap()[..100], 0o644);
    bench.call(&["diff", "--exit-code", "base.pb.gz", "cut.pb.gz"]).expect(4).says(&["cut.pb.gz"]);
    write(bench, "sampled.pb.gz", |profile| {
        let sampling = "one in 512 KiB".to_owned();
        profile.environment.origin = Some(Origin { sampling, ..Origin::default() });
    });
    bench.call(&["diff", "sampled.pb.gz", "base.pb.gz"]).expect(4).says(&[
        "cannot compare `sampled.pb.gz` with `base.pb.gz`: ",
        "the sampling is \"one in 512 KiB\" in one, none in another",
    ]);
    bench.call(&["diff", "sampled.pb.gz", "sampled.pb.gz"]).expect(0);
    bench.sandbox.write("text.pb.gz", "no profile", 0o644);
    bench.call(&["diff", "text.pb.gz", "base.pb.gz"]).expect(4).says(&["not a profile"]);
}
