//! The options of `limits update` and `limits show`.

use std::fs;

use super::{Bench, Row};

const UPDATE: &str = "limits update";
const SHOW: &str = "limits show";

pub(super) const ROWS: &[Row] = &[
    Row { command: UPDATE, option: "PROFILE", check: profile },
    Row { command: UPDATE, option: "--limits", check: limits },
    Row { command: UPDATE, option: "--ratchet", check: ratchet },
    Row { command: UPDATE, option: "--metric", check: metric },
    Row { command: UPDATE, option: "--dry-run", check: dry_run },
    Row { command: UPDATE, option: "--window", check: window },
    Row { command: UPDATE, option: "--under", check: under },
    Row { command: UPDATE, option: "--filter", check: filter },
    Row { command: UPDATE, option: "--exclude", check: exclude },
    Row { command: UPDATE, option: "--root", check: root },
    Row { command: UPDATE, option: "--rules", check: rules },
    Row { command: SHOW, option: "LIMITS", check: shown },
    Row { command: SHOW, option: "--profile", check: of_profile },
];

const BOTH: &str = "\n[window.\"look up\"]\nallocs = 3\n\n[window.parse]\nallocs = 12\n";

/// Updates a file with these options; what it holds then, without its head.
#[track_caller]
fn updated(bench: &Bench, file: &str, options: &[&str]) -> String {
    if !bench.sandbox.work("demo.pb.gz").exists() {
        bench.profile();
    }
    bench.output(&[&["limits", "update", "demo.pb.gz", "--limits", file], options].concat());
    let text = fs::read_to_string(bench.sandbox.work(file)).unwrap_or_default();
    text.strip_prefix('#')
        .and_then(|text| text.split_once('\n'))
        .map_or(text.clone(), |(_, rest)| rest.to_owned())
}

fn profile(bench: &Bench) {
    assert_eq!(updated(bench, "new.toml", &[]), BOTH);
    bench
        .call(&["limits", "update", "nowhere.pb.gz", "--limits", "new.toml"])
        .expect(4)
        .says(&["nowhere.pb.gz"]);
    bench.call(&["limits", "update", "--limits", "new.toml"]).expect(2);
    assert_eq!(updated(bench, "new.toml", &[]), BOTH);
}

fn limits(bench: &Bench) {
    assert_eq!(updated(bench, "a.toml", &[]), BOTH);
    bench.sandbox.write(
        "T.parse.p90.json",
        "{\n  \"mallocCountTotal\" : 15,\n  \"syscalls\" : 3\n}\n",
        0o644,
    );
    let expected = "{\n  \"mallocCountTotal\" : 12,\n  \"syscalls\" : 3\n}\n";
    assert_eq!(updated(bench, "T.parse.p90.json", &[]), expected);
    bench.call(&["limits", "update", "demo.pb.gz"]).expect(2);
    let wrong = "[window.parse]\nallocs = 1\nalocs = 2\n";
    bench.sandbox.write("wrong.toml", wrong, 0o644);
    let outcome = bench.call(&["limits", "update", "demo.pb.gz", "--limits", "wrong.toml"]);
    outcome.expect(4).says(&["wrong.toml", "line 3", "did you mean `allocs`?"]);
    assert_eq!(fs::read_to_string(bench.sandbox.work("wrong.toml")).unwrap(), wrong);
}

fn ratchet(bench: &Bench) {
    bench.sandbox.write("a.toml", "[window.parse]\nallocs = 15 # at most\nbytes = 1\n", 0o644);
    assert_eq!(
        updated(bench, "a.toml", &["--ratchet"]),
        "[window.parse]\nallocs = 12 # at most\nbytes = 1\n"
    );
    assert!(updated(bench, "a.toml", &[]).contains("bytes = 881"));
}

fn metric(bench: &Bench) {
    let text = updated(bench, "a.toml", &["--metric", "bytes", "--metric", "live"]);
    assert!(text.contains("[window.parse]\nbytes = 881\nlive = 0.11\n"), "{text}");
}

fn dry_run(bench: &Bench) {
    assert_eq!(updated(bench, "a.toml", &["--dry-run"]), "");
    assert!(!bench.sandbox.work("a.toml").exists());
}

fn window(bench: &Bench) {
    assert_eq!(updated(bench, "a.toml", &["--window", "parse"]), "\n[window.parse]\nallocs = 12\n");
}

fn under(bench: &Bench) {
    assert!(
        updated(bench, "a.toml", &["--under", "demo::describe"]).contains("[window.parse]\nallocs = 0\n")
    );
    fits_nothing(bench, "--under");
}

fn filter(bench: &Bench) {
    assert!(updated(bench, "a.toml", &["--filter", "to_owned"]).contains("[window.parse]\nallocs = 8\n"));
    fits_nothing(bench, "--filter");
}

fn exclude(bench: &Bench) {
    assert!(updated(bench, "a.toml", &["--exclude", "to_owned"]).contains("[window.parse]\nallocs = 4\n"));
    fits_nothing(bench, "--exclude");
}

fn root(bench: &Bench) {
    fits_nothing(bench, "--root");
    assert!(updated(bench, "a.toml", &["--root", "^main$"]).contains("[window.parse]\nallocs = 12\n"));
}

/// A pattern that leaves no stack: 0 would be written as if it had been measured.
#[track_caller]
fn fits_nothing(bench: &Bench, option: &str) {
    if !bench.sandbox.work("demo.pb.gz").exists() {
        bench.profile();
    }
    let pattern = if option == "--exclude" { "." } else { "nowhere" };
    let words = ["limits", "update", "demo.pb.gz", "--limits", "none.toml", option, pattern];
    let expected = format!("no stack fits \"{option} {pattern}\"");
    bench.call(&words).expect(4).says(&["NOT MEASURED", &expected, "no limit was written"]);
    assert!(!bench.sandbox.work("none.toml").exists());
}

fn rules(bench: &Bench) {
    bench.sandbox.write("rules.txt", "[function]\nmain\n", 0o644);
    // Where C's `main` is listed, threads begin in that of Rust.
    let text = updated(bench, "a.toml", &["--root", "demo::main", "--rules", "rules.txt"]);
    assert!(text.contains("[window.parse]\nallocs = 12\n"), "{text}");
    bench
        .call(&["limits", "update", "demo.pb.gz", "--limits", "b.toml", "--root", "demo::main"])
        .expect(4)
        .says(&["no stack fits"]);
}

fn shown(bench: &Bench) {
    bench.sandbox.write("a.toml", "[window.parse]\nallocs = { max = 1.5, soft_grow = \"10 %\" }\n", 0o644);
    let text = bench.output(&["limits", "show", "a.toml"]);
    assert_eq!(
        text,
        "a.toml:2: `parse`: allocs at most 1.5\na.toml:2: `parse`: allocs may grow by 10 % (a warning)\n"
    );
    bench.call(&["limits", "show", "nowhere.toml"]).expect(4).says(&["nowhere.toml"]);
}

fn of_profile(bench: &Bench) {
    updated(bench, "a.toml", &[]);
    assert!(
        bench
            .output(&["limits", "show", "a.toml", "--profile", "demo.pb.gz"])
            .contains("2 limits in 2 windows")
    );
    assert!(!bench.output(&["limits", "show", "a.toml"]).contains("2 windows"));
}
