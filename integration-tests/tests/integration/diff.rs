//! `heaptally diff` of real programs that were built twice.
#![expect(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use integration_tests::case::Case;
use integration_tests::run::{Run, heaptally_output};
use integration_tests::scratch::Scratch;
use integration_tests::tool;
use serde_json::Value;

/// Records a program; the profile lies in its folder.
pub(crate) fn record(scratch: &Scratch, program: &str) -> PathBuf {
    let profile = scratch.path(format!("{program}.pb.gz"));
    let outcome = Run::new(scratch, [format!("./{program}")]).profile(&profile).without_frames().run();
    assert_eq!(outcome.code, 0, "{program}: {}", outcome.stderr);
    profile
}

#[track_caller]
pub(crate) fn call(base: &Path, change: &Path, options: &[&str]) -> (i32, String, String) {
    let mut words = vec!["diff".as_ref(), base.as_os_str(), change.as_os_str()];
    words.extend(options.iter().map(std::ffi::OsStr::new));
    let (code, output, errors) = heaptally_output(words);
    (code, String::from_utf8(output).unwrap(), errors)
}

/// The diff's document.
#[track_caller]
pub(crate) fn diff(base: &Path, change: &Path) -> Value {
    let (code, json, errors) = call(base, change, &["--json"]);
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str(&json).unwrap()
}

/// An entry: allocations more per iteration, its kind, the call site's function and line.
pub(crate) type Found = (f64, String, String, u64);

/// The entries of the only window.
pub(crate) fn entries(diff: &Value) -> Vec<Found> {
    let windows = diff["windows"].as_array().unwrap();
    let [window] = &windows[..] else { panic!("{} windows", windows.len()) };
    let entry = |entry: &Value| {
        let site = &diff["frames"][entry["call_site"].as_u64().unwrap() as usize];
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let more = entry["allocations"]["delta_per_iteration"].as_f64().unwrap();
        (more, text(&entry["kind"]), text(&site["function"]), site["line"].as_u64().unwrap_or(0))
    };
    window["entries"].as_array().unwrap().iter().map(entry).collect()
}

#[track_caller]
pub(crate) fn expect_none(base: &Path, change: &Path) {
    let found = entries(&diff(base, change));
    assert_eq!(found, [], "{}", call(base, change, &[]).1);
    assert_eq!(call(base, change, &["--exit-code"]).0, 0);
    assert!(call(base, change, &[]).1.starts_with("no difference"));
}

/// The case, built by its own command and by `other`: the folders, and the profiles in them.
pub(crate) fn twice(id: &str, other: &str) -> Option<([Scratch; 2], [PathBuf; 2])> {
    let case = Case::load(id);
    if !tool::have(&[case.compiler()]) {
        return None;
    }
    let scratch = [Scratch::of_case(&case), Scratch::of_case(&case)];
    scratch[1].shell(other);
    let profiles = [0, 1].map(|at| record(&scratch[at], id));
    Some((scratch, profiles))
}

#[test]
fn d01_what_offsets_is_shown_in_both_directions() {
    let case = Case::load("D01");
    if !tool::have(&[case.compiler()]) {
        return;
    }
    let scratch = Scratch::of_case(&case);
    let [base, change] = ["D01", "D01after"].map(|program| record(&scratch, program));
    let of = |base: &Path, change: &Path| -> BTreeSet<(i64, String, String)> {
        let found = entries(&diff(base, change));
        found.into_iter().map(|(more, kind, function, _)| (more as i64, kind, function)).collect()
    };
    let expected = |sign: i64, kinds: [&str; 4]| -> BTreeSet<_> {
        let [new, gone, from, to] = kinds.map(str::to_owned);
        [
            (4 * sign, new, "fresh"),
            (-4 * sign, gone, "gone"),
            (5 * sign, from.clone(), "new_name"),
            (-5 * sign, to.clone(), "old_name"),
            (10 * sign, from, "swap_b"),
            (-10 * sign, to, "swap_a"),
        ]
        .map(|(more, kind, function)| (more, kind, function.to_owned()))
        .into()
    };
    assert_eq!(of(&base, &change), expected(1, ["new", "gone", "renamed_from", "renamed_to"]));
    assert_eq!(of(&change, &base), expected(-1, ["gone", "new", "renamed_to", "renamed_from"]));
    expect_none(&base, &base);
    assert_eq!(call(&base, &change, &["--exit-code"]).0, 3);
    assert_eq!(call(&base, &change, &["--exit-code", "--stack", "^(steady|moved)$"]).0, 0);
    let text = call(&base, &change, &[]).1;
    assert!(
        text.contains("28 allocs (no change)") && !text.contains("NaN") && !text.contains("inf"),
        "{text}"
    );
}

/// Inlined or not, cloned or not, at another address: no difference.
#[test]
fn other_builds_of_cases_are_no_difference() {
    for (id, other) in [
        ("C03", "gcc -O0 -g -o C03 C03.c"),
        ("C10", "gcc -O0 -g -o C10 C10.c"),
        ("C10", "gcc -O3 -flto -g -o C10 C10.c"),
        ("C07", "gcc -O2 -g -pie -fPIE -o C07 C07.c"),
    ] {
        let Some((_scratch, [base, change])) = twice(id, other) else { return };
        expect_none(&base, &change);
        expect_none(&change, &base);
    }
}

/// The linker chose the name of the other function: no rename.
#[test]
fn c08_folded_code_is_not_renamed() {
    if !tool::have(&["g++", "ld.gold"]) {
        return;
    }
    let Some((_scratch, [base, change])) = twice("C08", "g++ -O2 -g -o C08 C08.cpp") else { return };
    let found = entries(&diff(&base, &change));
    assert!(found.iter().all(|(_, kind, ..)| !kind.starts_with("renamed")), "{found:?}");
}

/// Hashes of crates and of functions, the folder of the sources, and all lines differ.
#[test]
fn c19_another_crate_hash_is_no_difference() {
    if !tool::have(&["rustc"]) && tool::which("rustc").is_none() {
        return;
    }
    for version in ["legacy", "v0"] {
        let source = fs::read_to_string(Case::load("R01").source).unwrap();
        let scratch = [Scratch::new(), Scratch::new()];
        for (at, metadata) in ["a", "b"].into_iter().enumerate() {
            scratch[at].write("R01.rs", format!("{}{source}", "\n".repeat(17 * at)));
            let mangling = format!("-C symbol-mangling-version={version} -Z unstable-options");
            let mangling = if version == "legacy" { &mangling } else { "-C symbol-mangling-version=v0" };
            let built = format!(
                "RUSTC_BOOTSTRAP=1 rustc --edition 2024 -O -g -C metadata={metadata} {mangling} -o R01 \"$PWD/R01.rs\" 2>&1"
            );
            scratch[at].shell(&built);
        }
        let [base, change] = [0, 1].map(|at| record(&scratch[at], "R01"));
        let diff = diff(&base, &change);
        let windows = diff["windows"].as_array().unwrap();
        assert!(windows.iter().all(|window| window["entries"].as_array().unwrap().is_empty()), "{diff:#}");
        let equal: u64 = windows.iter().map(|window| window["pairing"]["equal"].as_u64().unwrap()).sum();
        let unchanged: u64 =
            windows.iter().map(|window| window["pairing"]["unchanged"].as_u64().unwrap()).sum();
        assert_eq!(equal, unchanged, "{version}");
    }
}

/// 65,536 stacks on each side: the same ones, then with another name for a function in all of them, then with one more
/// caller.
#[test]
fn d03_very_many_stacks_are_compared_in_seconds() {
    let case = Case::load("D03");
    if !tool::have(&[case.compiler()]) {
        return;
    }
    let scratch = Scratch::of_case(&case);
    let base = record(&scratch, "D03");
    let text = fs::read_to_string(scratch.path("D03.c")).unwrap();
    let renamed = text.replace("go(", "walk_on(");
    let called = text.replace("int main(void) {", "NI static int begin(void) {")
        + "int main(void) { return begin(); }\n";
    for (name, text) in [("same", &text), ("renamed", &renamed), ("called", &called)] {
        fs::create_dir_all(scratch.path(name)).unwrap();
        scratch.write(&format!("{name}/D03.c"), text);
        let build = case.build.replace("-o D03 D03.c", &format!("-o {name}.run {name}/D03.c"));
        scratch.shell(&build);
        let change = record(&scratch, &format!("{name}.run"));
        let started = std::time::Instant::now();
        let (code, json, errors) = call(&base, &change, &["--json"]);
        println!("{name}: {:?}", started.elapsed());
        assert_eq!(code, 0, "{errors}");
        let diff: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(entries(&diff), [], "{name}");
        assert_eq!(diff["windows"][0]["pairing"]["unchanged"], 65_536, "{name}");
    }
}

/// Equal differences come out in one order, whatever the program's order was.
#[test]
fn d02_ties_have_an_order() {
    let case = Case::load("D02");
    if !tool::have(&[case.compiler()]) {
        return;
    }
    let scratch = Scratch::of_case(&case);
    let of = |name: &str, repeat: &str| {
        let text = fs::read_to_string(scratch.path("D02.c")).unwrap().replace("malloc(", repeat);
        fs::create_dir_all(scratch.path(name)).unwrap();
        scratch.write(&format!("{name}/D02.c"), text);
        scratch.shell(&format!("gcc -O0 -g -w -o {name}.run {name}/D02.c"));
        record(&scratch, &format!("{name}.run"))
    };
    let (base, change) = (of("base", "malloc("), of("change", "malloc(1), malloc("));
    let text = call(&base, &change, &["--limit", "0"]).1;
    for again in 0..3 {
        let second = record(&scratch, "change.run");
        assert_eq!(call(&base, &second, &["--limit", "0"]).1, text, "run {again}");
    }
    let functions: Vec<String> =
        entries(&diff(&base, &change)).into_iter().map(|(.., name, _)| name).collect();
    let mut sorted = functions.clone();
    sorted.sort();
    assert_eq!((functions.len(), &functions), (26, &sorted));
    assert_eq!(entries(&diff(&base, &base)), []);
}

/// No percentage of nothing, and no number that JSON does not have.
#[test]
fn d05_d06_percentages_have_a_base() {
    let case = Case::load("D01");
    if !tool::have(&[case.compiler()]) {
        return;
    }
    let scratch = Scratch::of_case(&case);
    let [base, change] = ["D01", "D01after"].map(|program| record(&scratch, program));
    for (base, change) in [(&base, &change), (&change, &base)] {
        let diff = diff(base, change);
        let window = &diff["windows"][0];
        assert_eq!(window["allocations"]["percent"], 0.0);
        for entry in window["entries"].as_array().unwrap() {
            let allocations = &entry["allocations"];
            let [base, percent] = ["base", "percent"].map(|name| &allocations[name]);
            assert_eq!(percent.is_null(), base == 0, "{entry}");
            if entry["kind"] == "gone" {
                assert_eq!(percent, -100.0, "{entry}");
            }
        }
    }
    let same = &diff(&base, &base)["windows"][0];
    assert_eq!(
        (&same["allocations"]["delta_per_iteration"], &same["bytes"]["percent"]),
        (&0.0.into(), &0.0.into())
    );
}

/// What two callees grew by is what their caller grew by.
#[test]
fn d07_callers_grow_with_what_they_call() {
    if !tool::have(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new();
    scratch.write(
        "p.c",
        "#include <stdlib.h>\nvoid *volatile sink;\n#define NI __attribute__((noinline))\n\
         NI void a(void) { free(sink = malloc(8)); __asm__ volatile(\"\"); }\n\
         NI void b(void) { free(sink = malloc(8)); __asm__ volatile(\"nop\"); }\n\
         NI void p(void) { for (int i = 0; i < N; i++) { a(); b(); } }\n\
         int main(void) { p(); return 0; }\n",
    );
    let of = |name: &str, times: u32| {
        scratch.shell(&format!("gcc -O1 -g -DN={times} -o {name} p.c"));
        record(&scratch, name)
    };
    let (base, change) = (of("few", 10), of("many", 30));
    let tree = call(&base, &change, &["--tree"]).1;
    let line = |name: &str| {
        let found = tree.lines().find(|line| line.split_whitespace().last() == Some(name));
        found
            .map(|line| line.split_whitespace().take(4).map(str::to_owned).collect::<Vec<_>>())
            .unwrap_or_default()
    };
    assert_eq!(line("p"), ["20", "60", "+40", "+320"], "{tree}");
    assert_eq!(
        (line("a"), line("b")),
        (["10", "30", "+20", "+160"].map(str::to_owned).to_vec(), line("a")),
        "{tree}"
    );
}

/// Names of 20 KB, paths that are no text, and a program whose file is gone: nothing differs, and comments stay short.
#[test]
fn names_and_paths_of_any_kind_are_compared() {
    for (id, other) in [
        ("C11", "gcc -O0 -g -w -fomit-frame-pointer -DOTHER -o C11 C11.c"),
        ("C13", "g++ -O1 -g -std=c++17 -o C13 C13.cpp"),
        ("C16", "gcc -O1 -g -o C16 C16.c"),
    ] {
        let Some((_scratch, [base, change])) = twice(id, other) else { return };
        expect_none(&base, &change);
        assert!(call(&base, &change, &["--format", "markdown"]).1.len() < 60_000, "{id}");
    }
    let case = Case::load("C15");
    let scratch = [Scratch::of_case(&case), Scratch::of_case(&case)];
    let profiles = [0, 1].map(|at| record(&scratch[at], "C15"));
    expect_none(&profiles[0], &profiles[1]);
}
