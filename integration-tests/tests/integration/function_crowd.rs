//! All functions of programs of the system patched at once: they do what they do without that.

use std::ffi::OsStr;
use std::path::Path;

use integration_tests::run::{Run, heaptally_output};
use integration_tests::scratch::Scratch;
use integration_tests::tool;
use serde_json::Value;

/// Programs that name their functions, or have them in a library that does, with their work.
const PROGRAMS: [(&str, &[&str]); 5] = [
    ("bash", &["-c", "for i in $(seq 200); do x=\"$x${i}a\"; [[ $x =~ 9a$ ]] && echo ${#x}; done; exit 3"]),
    (
        "perl",
        &[
            "-e",
            "$h{\"k$_\"} = $_ * 2 for 1..2000; print join ',', map { \"$_=$h{$_}\" } sort keys %h; exit 5",
        ],
    ),
    (
        "sqlite3",
        &[
            ":memory:",
            "with recursive c(x) as (select 1 union all select x+1 from c limit 500) select sum(x*x) from c where x%3=1;",
        ],
    ),
    ("gdb", &["-nx", "-batch", "-ex", "print 6*7"]),
    ("xz", &["--robot", "--version"]),
];
/// Of functions that have room for the jump so many, in hundredths, can be patched at least.
const LEAST: usize = 95;

/// How many functions a pattern that fits all finds in the first module that has some: large ones, and those of them that
/// can be patched.
fn counted(program: &Path) -> (usize, usize) {
    let words = [OsStr::new("symbols"), OsStr::new("--json"), program.as_os_str(), OsStr::new("re:.")];
    let (code, document, stderr) = heaptally_output(words);
    assert_eq!(code, 0, "{stderr}");
    let document: Value = serde_json::from_slice(&document).expect("a document");
    let functions = document["functions"].as_array().expect("functions");
    let module = &functions[0]["module"];
    let is_own = |function: &&Value| {
        let kind = function["refusal"]["kind"].as_str().unwrap_or_default();
        function["module"] == *module
            && function["size_bytes"].as_u64() >= Some(5)
            && !["inlined", "part", "indirect"].contains(&kind)
    };
    let large: Vec<&Value> = functions.iter().filter(is_own).collect();
    (large.len(), large.iter().filter(|function| function["patchable"] == true).count())
}

#[test]
fn programs_of_which_all_functions_are_patched() {
    let (mut all, mut patched) = (0, 0);
    for (name, arguments) in PROGRAMS {
        let (true, Some(program)) = (tool::have(&[name]), tool::which(name)) else { continue };
        let scratch = Scratch::new();
        let words = || [program.as_os_str()].into_iter().chain(arguments.iter().map(OsStr::new));
        let alone = Run::new(&scratch, words()).unrecorded().run();
        let crowd = Run::new(&scratch, words()).options(["--window-in", "all=re:."]).without_frames().run();
        let outcome = (crowd.code, String::from_utf8_lossy(&crowd.stdout));
        assert_eq!(
            outcome,
            (alone.code, String::from_utf8_lossy(&alone.stdout)),
            "{name}:\n{}",
            crowd.stderr
        );
        let (large, able) = counted(&program);
        let window = crowd.report().window("all");
        println!(
            "{name}: {able} of {large} can be patched; {} entries, {} calls",
            window.entries,
            window.calls()
        );
        assert!(window.entries > 0, "{name}");
        assert_eq!(window.complete_calls(), window.calls(), "{name}");
        assert!(able * 100 >= large * LEAST, "{name}: {able} of {large}");
        (all, patched) = (all + large, patched + able);
    }
    println!("{patched} of {all} can be patched");
}
