//! Planted allocations: the programs `planted.*` have lines that can hold one allocation more. Each is planted in turn; the
//! other build has other optimisation, lies in another folder, and its lines are moved. The first entry has to be that line.
//! `cargo xtask planted` does the same with programs that others wrote.
#![expect(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::fs;
use std::path::PathBuf;

use integration_tests::program;
use integration_tests::scratch::Scratch;
use integration_tests::tool;

use crate::diff::{Found, diff, entries, expect_none, record};

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

    /// Plants every allocation, with the builds in turn. Returns how many first entries were right, of how many.
    fn plant_all(&self, extra: &str, is_hit: impl Fn(&Found, &str, u64) -> bool) -> (usize, usize) {
        let (mut hits, mut all) = (0, 0);
        for (nth, build) in self.builds.iter().enumerate() {
            let flags = build.map(|flags| format!("{flags} {extra}"));
            let scratch = Scratch::new();
            let base = self.record(&scratch, "base", &flags[0], None);
            let unchanged = self.record(&scratch, "change", &flags[1], None);
            if extra.is_empty() {
                expect_none(&base, &unchanged);
            }
            for (plant, line) in self.plants().into_iter().skip(nth).step_by(self.builds.len()) {
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
