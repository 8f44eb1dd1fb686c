//! `heaptally diff` in the hands of other programs: flame graphs, `git bisect`; and what it refuses.
#![expect(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use integration_tests::case::Case;
use integration_tests::command::heaptally;
use integration_tests::run::{Run, heaptally_output};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

use crate::diff::{call, record};

/// The two programs of the case D01, recorded.
fn sides() -> Option<(Scratch, [PathBuf; 2])> {
    let case = Case::load("D01");
    if !tool::have(&[case.compiler()]) {
        return None;
    }
    let scratch = Scratch::of_case(&case);
    let profiles = ["D01", "D01after"].map(|program| record(&scratch, program));
    Some((scratch, profiles))
}

/// Lines of `stack base change`.
fn three_columns(text: &str) -> BTreeMap<String, [u64; 2]> {
    let line = |line: &str| {
        let mut words = line.rsplitn(3, ' ');
        let mut number = || words.next().unwrap().parse::<f64>().unwrap() as u64;
        let (change, base) = (number(), number());
        (words.next().unwrap().to_owned(), [base, change])
    };
    text.lines().map(line).collect()
}

/// The folded form is what inferno's difffolded makes of the two reports, but for what is renamed, and its flame graph
/// reads it.
#[test]
fn folded_stacks_are_what_differential_flame_graphs_read() {
    let Some((_scratch, [base, change])) = sides() else { return };
    let (code, folded, errors) = call(&base, &change, &["--format", "folded"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let own = three_columns(&folded);
    let report = |profile: &Path| {
        let words = ["report".as_ref(), profile.as_os_str(), "--format".as_ref(), "folded".as_ref()];
        heaptally_output(words).1
    };
    let (before, after) = (report(&base), report(&change));
    let mut made = Vec::new();
    let options = inferno::differential::Options::default();
    inferno::differential::from_readers(options, &before[..], &after[..], &mut made).unwrap();
    let made = three_columns(std::str::from_utf8(&made).unwrap());
    // What is paired under another name stands there once.
    let sum = |of: &BTreeMap<String, [u64; 2]>| {
        of.values().fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]])
    };
    assert_eq!(sum(&own), sum(&made));
    assert_eq!(sum(&own), [28, 28]);
    let unlike: Vec<&String> = own
        .iter()
        .filter(|(stack, values)| made.get(*stack) != Some(values))
        .map(|(stack, _)| stack)
        .collect();
    assert!(unlike.iter().all(|stack| stack.contains("swap_b") || stack.contains("new_name")), "{unlike:?}");
    let mut picture = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_reader(&mut options, folded.as_bytes(), &mut picture).unwrap();
    let picture = String::from_utf8(picture).unwrap();
    assert!(picture.contains("fresh (4 samples") && picture.contains("; +"), "{picture}");
}

#[test]
fn d10_d12_what_is_no_whole_profile_of_a_known_kind_is_refused() {
    let Some((scratch, [base, change])) = sides() else { return };
    let whole = fs::read(&base).unwrap();
    scratch.write("cut.pb.gz", &whole[..100]);
    scratch.write("text.pb.gz", "{\"windows\": []}");
    scratch.write("empty.pb.gz", "");
    // The version stands in a comment, as a number.
    scratch.shell("gzip -dc D01.pb.gz | sed 's/\"version\":[0-9]/\"version\":9/' | gzip > later.pb.gz");
    for (name, words) in [
        ("cut.pb.gz", "damaged"),
        ("text.pb.gz", "not a profile"),
        ("empty.pb.gz", "not a profile"),
        ("later.pb.gz", "version 9"),
        ("nowhere.pb.gz", "No such file"),
    ] {
        let other = scratch.path(name);
        for (base, change) in [(&other, &change), (&change, &other)] {
            let (code, text, errors) = call(base, change, &["--exit-code"]);
            assert_eq!((code, text.as_str()), (4, ""), "{name}: {errors}");
            assert!(errors.contains(words) && errors.contains(name), "{name}: {errors}");
        }
    }
}

/// What both sides measured is compared, and the rest is told.
#[test]
fn d21_one_side_did_not_follow_blocks() {
    let Some((scratch, [base, _])) = sides() else { return };
    let profile = scratch.path("allocations.pb.gz");
    let run = Run::new(&scratch, ["./D01"]).options(["--no-lifetimes"]).profile(&profile).without_frames();
    assert_eq!(run.run().code, 0);
    for (base, change) in [(&base, &profile), (&profile, &base)] {
        let (code, text, _) = call(base, change, &["--exit-code"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.starts_with("no difference"), "{text}");
        assert!(
            text.contains("note: blocks were") && text.contains("only allocations are compared"),
            "{text}"
        );
    }
}

/// The script of README.md finds the commit by which a function began to allocate, though another function grew before,
/// and one commit cannot be built.
#[test]
fn git_bisect_finds_the_commit() {
    if !tool::have(&["git", "gcc", "make"]) {
        return;
    }
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let script =
        readme.split("```").find_map(|block| block.strip_prefix("sh\n# bisect.sh")).expect("the script");
    let scratch = Scratch::new();
    scratch.write("bisect.sh", format!("#{}", script.replace("Parser::name", "'^name$'")));
    let source = |name: &str, other: &str, tail: &str| {
        format!(
            "#include <stdlib.h>\nvoid *volatile sink;\n#define NI __attribute__((noinline))\n\
             NI static void one(void) {{ free(sink = malloc(8)); __asm__ volatile(\"\"); }}\n\
             NI static void name(void) {{ {name} __asm__ volatile(\"\"); }}\n\
             NI static void other(void) {{ one(); {other} __asm__ volatile(\"\"); }}\n{tail}\n\
             int main(void) {{ for (int i = 0; i < 5; i++) {{ name(); other(); }} return 0; }}\n"
        )
    };
    let more = "free(sink = malloc(24));";
    let path = format!("PATH=\"{}:$PATH\"", heaptally().parent().unwrap().display());
    let git =
        "git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main -c commit.gpgsign=false";
    scratch.shell(&format!("{git} init -q . && printf '*.pb.gz\\nbench\\n' > .gitignore"));
    scratch.write("Makefile", "bench: bench.c\n\tgcc -O1 -g -w -o bench bench.c\n");
    let commits = [
        ("first", source("", "", "")),
        ("drift", source("", "", "\n\n\n")),
        ("other grows", source("", more, "")),
        ("broken", source("", more, "int broken = ;")),
        ("name grows", source(more, more, "")),
        ("later", source(more, more, "int later;")),
        ("last", source(more, &format!("{more}{more}"), "int later;")),
    ];
    for (message, text) in &commits {
        scratch.write("bench.c", text);
        scratch.shell(&format!("{git} add -A && {git} commit -q --allow-empty -m '{message}'"));
    }
    scratch.shell(&format!("export {path}; {git} checkout -q main && make -s -B bench && heaptally run -q -o bad.pb.gz -- ./bench"));
    let said = scratch.shell(&format!(
        "export {path}; {git} checkout -q main && {git} bisect start HEAD HEAD~6 && {git} bisect run sh bisect.sh 2>&1; {git} show -s --format='found: %s' refs/bisect/bad"
    ));
    assert!(said.contains("found: name grows"), "{said}");
}
