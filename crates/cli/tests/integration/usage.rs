//! Help, versions, and calls that make no sense.

use std::fs;

use crate::sandbox::{HEAPTALLY, Sandbox, entries};

const COMMANDS: [&str; 12] = [
    "run",
    "report",
    "diff",
    "check",
    "limits",
    "baseline",
    "config",
    "demo",
    "doctor",
    "symbols",
    "completions",
    "man",
];

#[test]
fn help_and_version_are_no_errors() {
    let sandbox = Sandbox::new();
    let version = format!(" {}", env!("CARGO_PKG_VERSION"));
    for command in [None].into_iter().chain(COMMANDS.map(Some)) {
        for option in ["--help", "-h"] {
            let help = sandbox.call(command.into_iter().chain([option]));
            assert!(help.expect(0).output.contains("Usage: heaptally"), "{help:#?}");
            assert_eq!(help.errors, "");
        }
        for option in ["--version", "-V"] {
            let said = sandbox.call(command.into_iter().chain([option]));
            assert!(said.expect(0).output.starts_with("heaptally"), "{said:#?}");
            assert!(said.output.lines().next().unwrap().ends_with(&version), "{said:#?}");
        }
    }
    for command in COMMANDS {
        sandbox.call(["help", command]).expect(0);
    }
    let help = sandbox.call(["run", "--help"]).output;
    for code in ["125", "126", "127", "128"] {
        assert!(help.contains(code), "the help of `run` does not name {code}: {help}");
    }
}

#[test]
fn the_long_version_tells_builds_apart() {
    let sandbox = Sandbox::new();
    let version = sandbox.call(["--version"]).output;
    let of = |name: &str| {
        let line = version.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name}: {version}"))
    };
    assert!(of("target").starts_with("x86_64-"), "{version}");
    assert!(of("compiler").starts_with("rustc 1."), "{version}");
    for folder in [env!("CARGO_MANIFEST_DIR"), HEAPTALLY] {
        assert!(!version.contains(folder), "a path of this machine: {version}");
    }

    // The recorder that it names is the one that programs get.
    sandbox.call(["run", "true"]).expect(0);
    let library = &entries(&sandbox.cache())[0];
    let bytes = fs::metadata(library).unwrap().len();
    let (said, hash) = of("recorder").split_once(" bytes, content hash ").unwrap();
    assert_eq!(said.replace(',', ""), bytes.to_string());
    assert_eq!(library.file_name().unwrap().to_str().unwrap(), format!("libheaptally_preload-{hash}.so"));
}

#[test]
fn wrong_usage_is_2() {
    let sandbox = Sandbox::new();
    let calls: [&[&str]; 8] = [
        &[],
        &["no-such-command"],
        &["--no-such-option"],
        &["report"],
        &["report", "--no-such-option", "a.pb.gz"],
        &["report", "--limit", "many", "a.pb.gz"],
        &["report", "a.pb.gz", "b.pb.gz"],
        &["demo", "too much"],
    ];
    for arguments in calls {
        let outcome = sandbox.call(arguments);
        assert!(!outcome.expect(2).errors.is_empty(), "{outcome:#?}");
        assert_eq!(outcome.output, "");
    }
}

#[test]
fn wrong_usage_of_run_is_125() {
    let sandbox = Sandbox::new();
    let calls: [&[&str]; 4] =
        [&["run"], &["run", "--"], &["run", "--no-such-option", "true"], &["run", "-o"]];
    for arguments in calls {
        assert!(!sandbox.call(arguments).expect(125).errors.is_empty());
    }
}

#[test]
fn options_behind_the_program_are_its_own() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.call(["run", "-o", "a.pb.gz", "echo", "--help", "-o", "b.pb.gz"]);
    assert_eq!(outcome.expect(0).output, "--help -o b.pb.gz\n");
    assert!(sandbox.work("a.pb.gz").is_file());
    let quiet = sandbox.call(["run", "--quiet", "--", "echo", "word"]);
    assert_eq!((quiet.output.as_str(), quiet.errors.as_str()), ("word\n", ""));
    assert!(sandbox.work("echo.pb.gz").is_file(), "the profile is not named for the program");
}
