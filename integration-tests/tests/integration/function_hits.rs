//! How often patched functions are entered, compared with what callgrind counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use integration_tests::run::Run;
use integration_tests::scratch::Scratch;
use integration_tests::tool;

/// Builtins only, so that no child is made.
const WORK: &str = "for ((i = 0; i < 300; i++)); do x=\"$x${i}a\"; [[ $x == *9a ]] && y=${#x}; done; \
                    f() { local z=$1; printf '%s\\n' \"${z/9/8}\"; }; f \"$x\" > /dev/null; exit 3";
/// So many functions are compared.
const SAMPLE: usize = 48;

/// How often each function of a program's was called, by callgrind; recursive ones are left out.
fn calls(scratch: &Scratch, program: &Path, variables: &[(&str, &str)]) -> BTreeMap<String, u64> {
    let out = scratch.path("callgrind.out");
    let mut command = Command::new(tool::which("valgrind").expect("it is there"));
    command.env_clear().envs(variables.iter().copied());
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
    let output = command.arg(program).args(["--norc", "-c", WORK]).output().expect("valgrind runs");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&out).expect("callgrind wrote its file");
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut objects: BTreeMap<String, String> = BTreeMap::new();
    let (mut object, mut own) = (String::new(), String::new());
    let mut called = (String::new(), String::new());
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    // `fn=(12) name` names a number, `fn=(12)` uses it.
    fn resolve(known: &mut BTreeMap<String, String>, text: &str) -> String {
        let (id, name) = text.split_once(' ').unwrap_or((text, ""));
        if name.is_empty() {
            known.get(id).cloned().unwrap_or_default()
        } else {
            known.insert(id.to_owned(), name.to_owned());
            name.to_owned()
        }
    }
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("ob=") {
            own = resolve(&mut objects, of);
        } else if let Some(of) = line.strip_prefix("cob=") {
            object = resolve(&mut objects, of);
        } else if let Some(of) = line.strip_prefix("fn=") {
            resolve(&mut names, of);
        } else if let Some(of) = line.strip_prefix("cfn=") {
            // Without an object of its own it is in the caller's.
            let object = if object.is_empty() { own.clone() } else { std::mem::take(&mut object) };
            called = (object, resolve(&mut names, of));
        } else if let Some(of) = line.strip_prefix("calls=") {
            let count: u64 = of.split(' ').next().and_then(|count| count.parse().ok()).expect("a count");
            *counts.entry(called.clone()).or_default() += count;
        }
    }
    let recursive: BTreeSet<String> =
        counts.keys().filter_map(|(_, name)| Some(name.split_once('\'')?.0.to_owned())).collect();
    let program = program.to_string_lossy();
    let is_own =
        |object: &str, name: &str| object == program && !name.contains('\'') && !recursive.contains(name);
    counts
        .into_iter()
        .filter(|((object, name), _)| is_own(object, name))
        .map(|((_, name), count)| (name, count))
        .collect()
}

#[test]
fn entries_are_as_many_as_callgrind_counts() {
    if !tool::have(&["bash", "valgrind"]) {
        return;
    }
    let scratch = Scratch::new();
    let program = std::fs::canonicalize(tool::which("bash").expect("it is there")).expect("a path");
    // What the environment decides differs between these two, and is not compared: valgrind adds to it.
    let few = calls(&scratch, &program, &[]);
    let many = calls(&scratch, &program, &[("A", "1"), ("B", "2"), ("C", "3"), ("D", "4"), ("E", "5")]);
    let alike: Vec<(&String, u64)> = few
        .iter()
        .filter(|(name, count)| {
            many.get(*name) == Some(count) && !name.starts_with("0x") && !name.contains(['@', '.'])
        })
        .map(|(name, count)| (name, *count))
        .collect();
    assert!(alike.len() > SAMPLE, "{} functions", alike.len());
    let sample: BTreeMap<&String, u64> =
        alike.iter().copied().step_by(alike.len().div_ceil(SAMPLE)).collect();
    let options =
        sample.keys().enumerate().flat_map(|(at, name)| ["--window-in".to_owned(), format!("w{at}={name}")]);
    let words = [program.as_os_str().to_owned(), "--norc".into(), "-c".into(), WORK.into()];
    let outcome = Run::new(&scratch, words).options(options).without_environment().without_frames().run();
    let (mut found, mut expected) = (BTreeMap::new(), BTreeMap::new());
    for (at, (name, count)) in sample.iter().enumerate() {
        let window = outcome.report().windows.iter().find(|window| window.name == format!("w{at}"));
        // One that cannot be patched is told.
        let is_refused = outcome.stderr.contains(&format!("`{name}` cannot be patched"));
        if let Some(window) = window.filter(|_| !is_refused) {
            found.insert(*name, window.entries);
            expected.insert(*name, *count);
        }
    }
    println!("{} functions, {} calls", found.len(), expected.values().sum::<u64>());
    assert_eq!(found, expected, "stderr:\n{}", outcome.stderr);
    assert!(found.len() * 10 >= sample.len() * 8, "{} of {}: {}", found.len(), sample.len(), outcome.stderr);
}
