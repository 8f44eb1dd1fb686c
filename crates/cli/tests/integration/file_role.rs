//! A command replaces nothing that it reads, and writes no file twice.

use std::fs;

use crate::sandbox::Sandbox;

/// A sandbox with two profiles, limits, rules and a configuration.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let demo = sandbox.demo();
    for name in ["a.pb.gz", "b.pb.gz"] {
        sandbox.call(["run", "-q", "-o", name, demo.to_str().unwrap()]).expect(0);
    }
    sandbox.write("l.toml", "[window.parse]\nallocs = 12\n", 0o644);
    sandbox.write("rules.txt", "[function]\nmain\n", 0o644);
    fs::create_dir(sandbox.work(".config")).unwrap();
    sandbox.write(".config/heaptally.toml", "", 0o644);
    sandbox.write("run.sh", "#!/bin/sh\n", 0o755);
    std::os::unix::fs::symlink("a.pb.gz", sandbox.work("link")).unwrap();
    sandbox
}

const FILES: [&str; 6] = ["a.pb.gz", "b.pb.gz", "l.toml", "rules.txt", ".config/heaptally.toml", "run.sh"];

fn contents(sandbox: &Sandbox) -> Vec<Vec<u8>> {
    FILES.map(|name| fs::read(sandbox.work(name)).unwrap()).to_vec()
}

#[test]
fn check_replaces_nothing_that_it_reads() {
    let sandbox = sandbox();
    let before = contents(&sandbox);
    let check = ["check", "a.pb.gz", "--baseline", "./b.pb.gz", "--limits", "l.toml", "--rules", "rules.txt"];
    for (file, what) in [
        ("a.pb.gz", "it is a profile that is checked"),
        ("link", "it is a profile that is checked"),
        ("b.pb.gz", "it is a baseline that is compared with"),
        ("l.toml", "it is a file of limits"),
        ("rules.txt", "it is a file of rules"),
        (".config/heaptally.toml", "it is the configuration"),
        ("run.sh", "a program is there"),
    ] {
        for option in
            [["--report", file].map(str::to_owned), ["--write".to_owned(), format!("json=./{file}")]]
        {
            let words = check.iter().map(|word| (*word).to_owned()).chain(option.clone());
            sandbox.call(words).expect(2).says(&["cannot write", &option[0], what, "name another file"]);
            assert!(contents(&sandbox) == before, "{option:?} replaced {file}");
        }
    }
    let twice = sandbox.call([&check[..], &["--write", "json=r", "--report", "./r"]].concat());
    twice.expect(2).says(&["what --write writes goes there"]);
    assert!(!sandbox.work("r").exists());
    sandbox
        .call([&check[..], &["--write", "json=/dev/null", "--write", "sarif=/dev/null"]].concat())
        .expect(0);
}

#[test]
fn the_profile_of_a_check_is_no_baseline_of_it() {
    let sandbox = sandbox();
    let demo = sandbox.demo();
    let demo = demo.to_str().unwrap();
    let before = contents(&sandbox);
    let base = ["check", "--baseline", "./b.pb.gz"];
    let call = |options: &[&str]| sandbox.call([&base[..], options, &["--", demo]].concat());
    call(&["-o", "b.pb.gz"]).expect(2).says(&["it is a baseline", "--save-baseline replaces one"]);
    call(&["-o", "r", "--write", "json=r"]).expect(2).says(&["what -o writes goes there"]);
    assert!(contents(&sandbox) == before);
    call(&["-o", "c.pb.gz", "--save-baseline", "main"]).expect(0);
    // Under its name a baseline may be what is compared with, and what replaces it.
    sandbox.call(["check", "--baseline", "main", "--save-baseline", "main", "--", demo]).expect(0);
    let saved = ".heaptally/main.pb.gz";
    let run = ["run", "--save-baseline", "main", "-o", saved, demo];
    sandbox.call(run).expect(125).says(&["what --save-baseline writes goes there"]);
    let config = ["run", "-o", ".config/heaptally.toml", demo];
    sandbox.call(config).expect(125).says(&["it is the configuration"]);
    assert!(contents(&sandbox) == before);
}

#[test]
fn limits_update_replaces_nothing_that_it_reads() {
    let sandbox = sandbox();
    let before = contents(&sandbox);
    for (file, what) in [
        ("a.pb.gz", "it is a profile that is read"),
        ("rules.txt", "it is a file of rules"),
        (".config/heaptally.toml", "it is the configuration"),
        ("run.sh", "a program is there"),
    ] {
        let words = ["limits", "update", "a.pb.gz", "--rules", "rules.txt", "--limits", file];
        sandbox.call(words).expect(2).says(&["cannot write", "(--limits)", what]);
        assert!(contents(&sandbox) == before, "{file} was replaced");
    }
}

/// Else it would be taken for this check's.
#[test]
fn a_report_of_an_earlier_check_does_not_stay() {
    let sandbox = sandbox();
    let reports = ["r.md", "r.txt"];
    let call = |words: &[&str]| {
        for name in reports {
            sandbox.write(name, "earlier", 0o644);
        }
        let options = ["--write", "markdown=r.md", "--report", "r.txt"];
        sandbox.call([&["check"], words, &options[..]].concat())
    };
    let are_there = || reports.map(|name| sandbox.work(name).exists());
    call(&["a.pb.gz", "--limits", "nowhere.toml"]).expect(4);
    assert_eq!(are_there(), [false; 2]);
    call(&["nowhere.pb.gz", "--baseline", "a.pb.gz"]).expect(4);
    assert_eq!(are_there(), [false; 2]);
    call(&["a.pb.gz"]).expect(2).says(&["nothing to hold it to"]);
    assert_eq!(are_there(), [false; 2]);
    call(&["a.pb.gz", "--baseline", "b.pb.gz"]).expect(0);
    assert!(reports.iter().all(|name| fs::read_to_string(sandbox.work(name)).unwrap().contains("passed")));
    // A program that fails leaves none either, and a link leads to where it led.
    std::fs::remove_file(sandbox.work("r.md")).unwrap();
    std::os::unix::fs::symlink("real.md", sandbox.work("r.md")).unwrap();
    sandbox.write("real.md", "earlier", 0o644);
    let words = ["check", "--baseline", "a.pb.gz", "--write", "markdown=r.md", "--", "sh", "-c", "exit 7"];
    sandbox.call(words).expect(7);
    assert!(!sandbox.work("real.md").exists());
    sandbox.call(["check", "a.pb.gz", "--baseline", "b.pb.gz", "--write", "markdown=r.md"]).expect(0);
    assert!(fs::symlink_metadata(sandbox.work("r.md")).unwrap().is_symlink());
    assert!(fs::read_to_string(sandbox.work("real.md")).unwrap().contains("passed"));
}
