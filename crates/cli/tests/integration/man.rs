//! `man`: a page of every command, with every option.

use std::fs;
use std::process::Command;

use crate::sandbox::{Sandbox, entries, outcome, skip};

/// A page's text, its dashes as they are typed.
fn page(sandbox: &Sandbox, name: &str) -> String {
    fs::read_to_string(sandbox.work("man").join(name)).unwrap().replace("\\-", "-")
}

#[test]
fn every_command_has_a_page_with_every_option() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.call(["man", "--dir", "man"]);
    assert_eq!(outcome.expect(0).output, "");

    let options = sandbox.call(["options"]).output;
    let mut names = Vec::new();
    for (command, option) in options.lines().map(|line| line.split_once('\t').unwrap()) {
        let name = match command {
            "heaptally" => "heaptally.1".to_owned(),
            inner => format!("heaptally-{}.1", inner.replace(' ', "-")),
        };
        let text = page(&sandbox, &name);
        let header = text.lines().position(|line| line == ".SH OPTIONS").unwrap();
        let described: Vec<&str> = text.lines().skip(header).collect();
        assert!(
            described.iter().any(|line| line.contains(option)),
            "{name} does not describe {option}: {text}"
        );
        names.push(sandbox.work("man").join(name));
    }
    names.sort();
    names.dedup();
    assert_eq!(entries(&sandbox.work("man")), names);
    outcome.says(&[&format!("{} manual pages → `man`", names.len())]);
    assert_eq!(sandbox.call(["man"]).output.replace("\\-", "-"), page(&sandbox, "heaptally.1"));
}

#[test]
fn pages_are_sound_roff() {
    if !Command::new("groff").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip("there is no groff");
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.call(["man", "--dir", "man"]).expect(0);
    for path in entries(&sandbox.work("man")) {
        let mut groff = Command::new("groff");
        groff.args(["-ww", "-K", "utf8", "-man", "-T", "utf8", "-P-cbou"]).arg(&path);
        let outcome = outcome(&mut groff);
        assert_eq!(outcome.expect(0).errors, "", "{path:?}");
        assert!(outcome.output.contains("SYNOPSIS"), "{outcome:#?}");
        // What is to be typed is neither hyphenated nor stretched.
        if path.ends_with("heaptally-completions.1") {
            let line = " heaptally completions bash > ~/.local/share/bash-completion/completions/heaptally\n";
            assert!(outcome.output.contains(line), "{outcome:#?}");
        }
    }
}

#[test]
fn a_folder_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "", 0o644);
    sandbox.call(["man", "--dir", "file"]).expect(4).says(&["heaptally: cannot write `file`: "]);
    fs::create_dir_all(sandbox.work("folder/heaptally.1")).unwrap();
    sandbox.call(["man", "--dir", "folder"]).expect(4).says(&["cannot write `folder/heaptally.1`: "]);
}
