//! Colours: on a terminal only, and not with `NO_COLOR`.

use std::process::{Command, Stdio};

use crate::sandbox::{HEAPTALLY, Sandbox, outcome, skip};

const COLOUR: char = '\x1b';

/// The output of a report on a terminal, which `script` of util-linux provides.
fn on_terminal(sandbox: &Sandbox, no_color: Option<&str>, options: &str) -> Option<String> {
    if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip("there is no `script`");
        return None;
    }
    let mut command = Command::new("script");
    command.args(["-qec", &format!("'{HEAPTALLY}' report {options} a.pb.gz"), "/dev/null"]);
    command.current_dir(sandbox.work("")).stdin(Stdio::null());
    command.env("TERM", "xterm").env("SHELL", "/bin/sh").env_remove("NO_COLOR");
    command.envs(no_color.map(|value| ("NO_COLOR", value)));
    let outcome = outcome(&mut command);
    outcome.expect(0);
    assert!(outcome.output.contains("process"), "{outcome:#?}");
    Some(outcome.output)
}

#[test]
fn colours_are_for_terminals() {
    let sandbox = Sandbox::new();
    sandbox.call(["run", "-o", "a.pb.gz", "sh", "-c", "true"]).expect(0);
    let piped = sandbox.call(["report", "a.pb.gz"]);
    assert!(!piped.expect(0).output.contains(COLOUR), "{piped:#?}");

    for (no_color, options, is_coloured) in [
        (None, "", true),
        (Some(""), "", true),
        (Some("1"), "", false),
        (Some("0"), "", false),
        (None, "--json", false),
    ] {
        let Some(text) = on_terminal(&sandbox, no_color, options) else { return };
        assert_eq!(text.contains(COLOUR), is_coloured, "NO_COLOR={no_color:?} {options}: {text:?}");
    }
}
