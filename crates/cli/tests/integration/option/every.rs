//! What every command has: help and version.

use super::Bench;

/// An option, and its check for one command.
type Row = (&'static str, fn(&Bench, &str));

pub(super) const ROWS: [Row; 2] = [("--help", help), ("--version", version)];

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
