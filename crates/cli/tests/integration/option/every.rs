//! What every command has: help and version.

use super::Bench;

/// An option, and its check for one command.
type Row = (&'static str, fn(&Bench, &str));

pub(super) const ROWS: [Row; 4] =
    [("--help", help), ("--version", version), ("--config", config), ("--no-config", no_config)];

/// The words of a call of a command with one option.
fn words<'w>(command: &'w str, option: &'w str) -> Vec<&'w str> {
    command.split(' ').filter(|word| *word != "heaptally").chain([option]).collect()
}

fn help(bench: &Bench, command: &str) {
    let usage = format!("Usage: heaptally {}", words(command, "").join(" "));
    for option in ["--help", "-h"] {
        let help = bench.call(&words(command, option));
        assert!(help.expect(0).output.contains(usage.trim_end()), "{help:#?}");
        assert_eq!(help.errors, "");
        for (_, option) in bench.options().iter().filter(|(of, _)| of == command) {
            assert!(help.output.contains(option), "the help of {command} does not name {option}: {help:#?}");
        }
    }
}

/// Words that a command takes and that end well, where there are such without a profile.
fn call_of(command: &str) -> Option<&'static [&'static str]> {
    match command {
        "run" => Some(&["run", "true"]),
        "demo" => Some(&["demo"]),
        "doctor" => Some(&["doctor"]),
        "config show" => Some(&["config", "show"]),
        "baseline list" => Some(&["baseline", "list"]),
        _ => None,
    }
}

fn config(bench: &Bench, command: &str) {
    bench.sandbox.write("other.toml", "no-such-key = 1\n", 0o644);
    let Some(call) = call_of(command) else {
        // What it does is the same for all: that a file is named at all can be seen anywhere.
        let errors = bench.call(&words(command, "--config")).errors;
        assert!(errors.contains("a value is required for '--config <FILE>'"), "{errors}");
        return;
    };
    bench.call(call).expect(0);
    let named: Vec<&str> = ["--config", "other.toml"].iter().chain(call).copied().collect();
    let wrong = if command == "run" { 125 } else { 2 };
    bench.call(&named).expect(wrong).says(&["other.toml:1:1: unknown key `no-such-key`"]);
}

fn no_config(bench: &Bench, command: &str) {
    let both = bench.call(&[words(command, "--no-config"), vec!["--config", "x"]].concat());
    // A command that is none without another one says that first.
    let is_alone = !both.errors.contains("requires a subcommand");
    assert!(!is_alone || both.errors.contains("cannot be used with"), "{both:#?}");
    let Some(call) = call_of(command) else { return };
    std::fs::create_dir(bench.sandbox.work(".config")).unwrap();
    bench.sandbox.write(".config/heaptally.toml", "no-such-key = 1\n", 0o644);
    assert!(bench.call(call).errors.contains(".config/heaptally.toml:1:1: unknown key"));
    let without: Vec<&str> = ["--no-config"].iter().chain(call).copied().collect();
    bench.call(&without).expect(0);
}

fn version(bench: &Bench, command: &str) {
    let name = match words(command, "").join("-") {
        inner if inner.is_empty() => "heaptally".to_owned(),
        inner => format!("heaptally-{}", inner.trim_end_matches('-')),
    };
    let line = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
    let short = bench.call(&words(command, "-V"));
    assert_eq!((short.expect(0).output.as_str(), short.errors.as_str()), (line.as_str(), ""));

    let long = bench.output(&words(command, "--version"));
    assert!(long.starts_with(&line), "{long}");
    let names: Vec<&str> = long.lines().skip(1).map(|line| line.split_once(": ").unwrap().0).collect();
    assert_eq!(
        names,
        [
            "target",
            "compiler",
            "recorder",
            "demanglers",
            "features",
            "profile format",
            "report schema",
            "segment layout"
        ]
    );
    assert_eq!(bench.output(&words(command, "--version")), long);
}
