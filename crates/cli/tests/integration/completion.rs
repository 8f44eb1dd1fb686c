//! `completions`: the scripts are whole, their shells take them, and bash completes by them.

use std::process::Command;

use crate::sandbox::{Sandbox, outcome, skip};

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "elvish", "powershell"];

/// Writes the script of a shell into the working folder.
fn script(sandbox: &Sandbox, shell: &str) -> String {
    let outcome = sandbox.call(["completions", shell]);
    assert_eq!(outcome.expect(0).errors, "");
    sandbox.write(shell, &outcome.output, 0o644);
    outcome.output
}

#[test]
fn a_script_holds_every_command_and_long_option() {
    let sandbox = Sandbox::new();
    let options = sandbox.call(["options"]).output;
    for shell in SHELLS {
        let script = script(&sandbox, shell);
        assert_eq!(sandbox.call(["completions", shell]).output, script, "two calls give two scripts");
        for (command, option) in options.lines().map(|line| line.split_once('\t').unwrap()) {
            assert!(command.split(' ').all(|word| script.contains(word)), "{shell}: {command}");
            if let Some(name) = option.strip_prefix("--") {
                assert!(script.contains(name), "{shell}: {command} {option}");
            }
        }
    }
}

#[test]
fn the_help_says_where_it_goes() {
    let help = Sandbox::new().call(["completions", "--help"]).output;
    for shell in SHELLS {
        assert!(help.contains(&format!("heaptally completions {shell}")), "{shell}: {help}");
    }
}

#[test]
fn the_shells_can_read_it() {
    let sandbox = Sandbox::new();
    for (shell, option) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        script(&sandbox, shell);
        let mut call = Command::new(shell);
        call.args([option, shell]).current_dir(sandbox.work("")).env("HOME", sandbox.path("home"));
        if !Command::new(shell).arg("--version").output().is_ok_and(|output| output.status.success()) {
            skip(&format!("there is no {shell}"));
            continue;
        }
        assert_eq!(outcome(&mut call).expect(0).errors, "", "{shell}");
    }
}

/// What bash offers for the last of these words, the first of which is the command.
fn offered(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    const SCRIPT: &str = r#"
        source ./bash
        registered=$(complete -p heaptally)
        registered=${registered##*-F }
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        "${registered%% *}" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        ((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
    "#;
    script(sandbox, "bash");
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-c", SCRIPT, "bash"]).args(words);
    bash.current_dir(sandbox.work("")).env("HOME", sandbox.path("home"));
    let outcome = outcome(&mut bash);
    outcome.expect(0);
    outcome.output.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let sandbox = Sandbox::new();
    let offered = |words: &[&str]| offered(&sandbox, words);
    let of_r = offered(&["heaptally", "r"]);
    assert!(["run", "report"].iter().all(|command| of_r.iter().any(|word| word == command)), "{of_r:?}");
    assert!(of_r.iter().all(|word| word.starts_with('r')), "{of_r:?}");
    assert_eq!(offered(&["heaptally", "opt"]), [] as [&str; 0], "the hidden command is offered");
    assert_eq!(offered(&["heaptally", "run", "--no-l"]), ["--no-lifetimes"]);
    assert_eq!(offered(&["heaptally", "report", "--lim"]), ["--limit"]);
    assert_eq!(offered(&["heaptally", "completions", "z"]), ["zsh"]);
}

#[test]
fn bash_completes_the_program_as_itself() {
    let sandbox = Sandbox::new();
    let offered = |words: &[&str]| offered(&sandbox, words);
    let programs = offered(&["heaptally", "run", "--quiet", "--", "tru"]);
    assert!(programs.iter().any(|word| word == "true"), "{programs:?}");
    // Its options are not this command's.
    assert_eq!(offered(&["heaptally", "run", "--", "true", "--"]), [] as [&str; 0]);
    assert!(!offered(&["heaptally", "run", "--"]).is_empty());
}
