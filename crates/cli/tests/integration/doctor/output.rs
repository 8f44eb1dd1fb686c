//! The forms of the output.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Diagnosis, UNRECORDABLE, schema};
use crate::elf_copy;
use crate::sandbox::{HEAPTALLY, Sandbox, outcome, skip};

const SCHEMA: &str = include_str!("../../../schema/doctor.v1.schema.json");

#[test]
fn the_schema_describes_the_json() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let sandbox = Sandbox::new();
    sandbox.write("static", elf_copy::without_loader(), 0o755);
    let none = Diagnosis::by(&mut sandbox.command(["doctor", "--json"]));
    let some = ["/bin/sh", "./static", "./nothing"].map(|name| Diagnosis::of(&sandbox, name));
    for diagnosis in some.iter().chain([&none]) {
        let mut errors = Vec::new();
        schema::check(&schema, &schema, &diagnosis.json, "", &mut errors);
        assert_eq!(errors, Vec::<String>::new(), "{}", diagnosis.outcome.output);
        let mut names = Vec::new();
        schema::undescribed(&schema, &schema, &diagnosis.json, "", &mut names);
        assert_eq!(names, Vec::<String>::new());
        assert_eq!(diagnosis.outcome.output.lines().count(), 1);
    }
    // The schema refuses what is not so.
    let mut wrong = none.json.clone();
    wrong["machine"][0]["level"] = "fine".into();
    let mut errors = Vec::new();
    schema::check(&schema, &schema, &wrong, "", &mut errors);
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn the_first_line_is_the_verdict() {
    let sandbox = Sandbox::new();
    sandbox.write("static", elf_copy::without_loader(), 0o755);
    let first = |program: &str, code| {
        let outcome = sandbox.call(["doctor", program]);
        outcome.expect(code);
        assert!(!outcome.output.contains('\u{1b}'), "colour in a pipe: {outcome:#?}");
        outcome.output.lines().next().unwrap().to_owned()
    };
    assert!(first("/bin/true", 0).starts_with("can be recorded: yes"));
    let refused = first("./static", UNRECORDABLE);
    assert!(refused.starts_with("can be recorded: no: `./static` is statically linked"), "{refused}");
    let missing = first("./nothing", UNRECORDABLE);
    assert_eq!(missing, "can be recorded: no: the program `./nothing` was not found");
}

#[test]
fn warnings_are_counted_and_have_their_advice() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.call(["doctor", "/bin/true"]);
    let lines: Vec<&str> = outcome.output.lines().collect();
    let warnings: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].starts_with("  warning")).collect();
    for at in &warnings {
        assert!(lines[at + 1].trim_start().starts_with("→ "), "a warning says what to do: {outcome:#?}");
    }
    let expected = match warnings.len() {
        0 => "can be recorded: yes".to_owned(),
        1 => "can be recorded: yes, with 1 warning".to_owned(),
        more => format!("can be recorded: yes, with {more} warnings"),
    };
    assert_eq!(lines.first(), Some(&expected.as_str()));
}

#[test]
fn names_are_shown_without_control_characters() {
    let sandbox = Sandbox::new();
    let name = "./a\u{1b}[2J\u{9b}1m\nb\u{202e}";
    sandbox.write(name, elf_copy::plain(), 0o755);
    for arguments in [["doctor", name, "--"], ["doctor", "--json", name]] {
        let outcome = sandbox.call(arguments.into_iter().filter(|word| *word != "--"));
        outcome.expect(0);
        assert!(outcome.output.contains("u{202e}"), "{outcome:#?}");
        let unsafe_characters = |text: &str| {
            text.chars()
                .any(|character| (character.is_control() && character != '\n') || character == '\u{202e}')
        };
        assert!(!unsafe_characters(&outcome.output) && !unsafe_characters(&outcome.errors), "{outcome:#?}");
        assert!(!outcome.output.contains("\nb"), "a name broke a line: {outcome:#?}");
    }
}

#[test]
fn colour_is_for_terminals() {
    if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip("there is no `script`");
        return;
    }
    let sandbox = Sandbox::new();
    for (no_color, options, is_coloured) in [("", "", true), ("1", "", false), ("", "--json", false)] {
        let mut command = Command::new("script");
        command.args(["-qec", &format!("'{HEAPTALLY}' doctor {options}"), "/dev/null"]).stdin(Stdio::null());
        command.env("HOME", sandbox.path("home")).env("XDG_CACHE_HOME", sandbox.path("cache"));
        command
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .env("NO_COLOR", no_color)
            .env_remove("LD_PRELOAD");
        let outcome = outcome(command.current_dir(sandbox.work("")));
        outcome.expect(0);
        assert_eq!(
            outcome.output.contains("\u{1b}[32mok"),
            is_coloured,
            "NO_COLOR={no_color} {options}: {outcome:#?}"
        );
        assert_eq!(
            outcome.output.contains('\u{1b}'),
            is_coloured,
            "NO_COLOR={no_color} {options}: {outcome:#?}"
        );
    }
}

#[test]
fn wrong_usage() {
    let sandbox = Sandbox::new();
    sandbox.call(["doctor", "--nothing"]).expect(2);
    sandbox.call(["doctor", "a", "b"]).expect(2);
}
