//! `heaptally diff` of real programs that were built twice.
//!
//! **Planted**: the programs `planted.*` have lines that can hold one allocation more. Each is planted in turn; the other
//! build has other optimisation, lies in another folder, and its lines are moved. The first entry has to be that line.
#![expect(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use integration_tests::case::Case;
use integration_tests::program;
use integration_tests::run::{Run, heaptally_output};
use integration_tests::scratch::Scratch;
use integration_tests::tool;
use serde_json::Value;

/// Records a program; the profile lies in its folder.
fn record(scratch: &Scratch, program: &str) -> PathBuf {
    let profile = scratch.path(format!("{program}.pb.gz"));
    let outcome = Run::new(scratch, [format!("./{program}")]).profile(&profile).without_frames().run();
    assert_eq!(outcome.code, 0, "{program}: {}", outcome.stderr);
    profile
}

#[track_caller]
fn call(base: &Path, change: &Path, options: &[&str]) -> (i32, String, String) {
    let mut words = vec!["diff".as_ref(), base.as_os_str(), change.as_os_str()];
    words.extend(options.iter().map(std::ffi::OsStr::new));
    let (code, output, errors) = heaptally_output(words);
    (code, String::from_utf8(output).unwrap(), errors)
}

/// The diff's document.
#[track_caller]
fn diff(base: &Path, change: &Path) -> Value {
    let (code, json, errors) = call(base, change, &["--json"]);
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str(&json).unwrap()
}

/// An entry: allocations more per iteration, its kind, the call site's function and line.
type Found = (f64, String, String, u64);

/// The entries of the only window.
fn entries(diff: &Value) -> Vec<Found> {
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
fn expect_none(base: &Path, change: &Path) {
    let found = entries(&diff(base, change));
    assert_eq!(found, [], "{}", call(base, change, &[]).1);
    assert_eq!(call(base, change, &["--exit-code"]).0, 0);
    assert!(call(base, change, &[]).1.starts_with("no difference"));
}

/// The case, built by its own command and by `other`: the folders, and the profiles in them.
fn twice(id: &str, other: &str) -> Option<([Scratch; 2], [PathBuf; 2])> {
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

/// How a planted program is built.
struct Language {
    source: &'static str,
    /// What is planted.
    allocation: &'static str,
    /// The options of the base, and of the change.
    builds: &'static [[&'static str; 2]],
}

const C: Language = Language {
    source: "planted.c",
    allocation: "sink = malloc(24); free(sink);",
    builds: &[["-O2", "-O0"], ["-O0", "-O3"], ["-O1", "-O2 -fno-inline"]],
};
const CPP: Language = Language {
    source: "planted.cpp",
    allocation: "sink = new long[3]; delete[] static_cast<long *>(sink);",
    builds: &[["-O2", "-O1"], ["-O0", "-O3"], ["-O2", "-O2 -fno-inline"]],
};
const RUST: Language = Language {
    source: "planted.rs",
    allocation: "std::hint::black_box(Box::new([1_u8; 24]));",
    builds: &[
        ["-C opt-level=2", "-C opt-level=3"],
        ["-C opt-level=0", "-C opt-level=3"],
        ["-C opt-level=3 -C codegen-units=1", "-C opt-level=1"],
    ],
};

impl Language {
    /// Builds the program, with an allocation at `plant`, and records it.
    fn record(&self, scratch: &Scratch, name: &str, flags: &str, plant: Option<&str>) -> PathBuf {
        let text = fs::read_to_string(program::source(self.source)).unwrap();
        let mut text = match plant {
            Some(plant) => {
                let mark = format!("/* plant {plant} */");
                assert_eq!(text.matches(&mark).count(), 1, "{mark}");
                text.replace(&mark, self.allocation)
            }
            None => text,
        };
        if name == "change" {
            text.insert_str(0, &"\n".repeat(23));
        }
        fs::create_dir_all(scratch.path(name)).unwrap();
        let source = scratch.write(&format!("{name}/{}", self.source), &text);
        let flags: Vec<&str> = flags.split_whitespace().collect();
        match self.source.rsplit_once('.').unwrap().1 {
            "rs" => {
                let flags = flags.join(" ");
                let source = source.display();
                scratch.shell(&format!("rustc -g --edition 2024 {flags} -o {name}.run {source} 2>&1"));
            }
            "c" => {
                program::compile("gcc", &["-std=gnu11"], &source, scratch, &format!("{name}.run"), &flags);
            }
            _ => {
                program::compile("g++", &["-std=c++20"], &source, scratch, &format!("{name}.run"), &flags);
            }
        }
        record(scratch, &format!("{name}.run"))
    }

    /// The marks of the source, each with its line in the change.
    fn plants(&self) -> Vec<(String, u64)> {
        let text = fs::read_to_string(program::source(self.source)).unwrap();
        let of = |(at, line): (usize, &str)| {
            let name = line.trim().strip_prefix("/* plant ")?.strip_suffix(" */")?;
            Some((name.to_owned(), at as u64 + 1 + 23))
        };
        text.lines().enumerate().filter_map(of).collect()
    }

    /// Plants every allocation with every build. Returns how many first entries were right, of how many.
    fn plant_all(&self, extra: &str, is_hit: impl Fn(&Found, &str, u64) -> bool) -> (usize, usize) {
        let (mut hits, mut all) = (0, 0);
        for build in self.builds {
            let flags = build.map(|flags| format!("{flags} {extra}"));
            let scratch = Scratch::new();
            let base = self.record(&scratch, "base", &flags[0], None);
            let unchanged = self.record(&scratch, "change", &flags[1], None);
            if extra.is_empty() {
                expect_none(&base, &unchanged);
            }
            for (plant, line) in self.plants() {
                let change = self.record(&scratch, "change", &flags[1], Some(&plant));
                let found = entries(&diff(&base, &change));
                let first = found.first().unwrap_or_else(|| panic!("{plant} with {build:?}: no entry"));
                all += 1;
                if is_hit(first, &plant, line) {
                    hits += 1;
                } else {
                    println!("{} {build:?}{extra}: {plant} in line {line}, found {found:?}", self.source);
                }
            }
        }
        println!("{} {extra}: {hits} of {all}", self.source);
        (hits, all)
    }

    /// With debug information every line is found.
    fn expect_lines(&self) {
        let is_hit = |(more, _, function, line): &Found, plant: &str, planted: u64| {
            *more > 0.0 && *line == planted && function.contains(plant)
        };
        let (hits, all) = self.plant_all("", is_hit);
        assert_eq!(hits, all);
    }
}

#[test]
fn the_planted_line_is_found_in_c() {
    if tool::have(&["gcc"]) {
        C.expect_lines();
    }
}

#[test]
fn the_planted_line_is_found_in_cpp() {
    if tool::have(&["g++"]) {
        CPP.expect_lines();
    }
}

#[test]
fn the_planted_line_is_found_in_rust() {
    if tool::which("rustc").is_some() {
        RUST.expect_lines();
    }
}

/// Without debug information: the function, or one that called it where it was inlined. At least 95 of 100.
#[test]
fn the_planted_function_is_found_by_symbols() {
    let callers = |plant: &str| -> &[&str] {
        match plant {
            "copy" | "push" | "measure" | "drop" => &["words", "parse", "request", "main"],
            "words" => &["parse", "request", "main"],
            "parse" => &["request", "main"],
            "Square" => &["make_unique", "request", "main"],
            "area" => &["lambda", "each", "total", "request", "main"],
            "each" => &["total", "request", "main"],
            "next" => &["tokens", "request", "main"],
            "render" => &["rendered", "request", "main"],
            _ => &["request", "main"],
        }
    };
    let is_hit = |(more, _, function, _): &Found, plant: &str, _: u64| {
        *more > 0.0
            && (function.contains(plant) || callers(plant).iter().any(|caller| function.contains(caller)))
    };
    let (mut hits, mut all) = (0, 0);
    for (language, compiler, flags) in
        [(C, "gcc", "-g0"), (CPP, "g++", "-g0"), (RUST, "rustc", "-C debuginfo=0 -C strip=none")]
    {
        if tool::which(compiler).is_some() {
            let (more_hits, more) = language.plant_all(flags, is_hit);
            (hits, all) = (hits + more_hits, all + more);
        }
    }
    assert!(hits * 100 >= all * 95, "{hits} of {all}");
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
