//! `heaptally check` in a repository: who made a program allocate more is named, and found.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use integration_tests::command::{heaptally, include_folder};
use integration_tests::scratch::Scratch;
use integration_tests::tool;

const CPP: &str = r#"#include <string>
#include <vector>
#include "heaptally.h"

static void keep(const void *pointer) { __asm__ volatile("" : : "r"(pointer) : "memory"); }

__attribute__((noinline)) static void parse(int round) {
    std::string name(40 + round % 3, 'x');
    keep(name.data());
    // PARSE
}

__attribute__((noinline)) static void render() {
    std::string text(60, 'y');
    keep(text.data());
    // RENDER
    std::string footer(70, 'z');
    keep(footer.data());
    // END
}

int main() {
    heaptally_window_begin("work");
    for (int round = 0; round < 100; round++) {
        parse(round);
        render();
    }
    heaptally_window_iterations("work", 100);
    heaptally_window_end("work");
}
"#;
const CPP_MORE: &str = "std::vector<int> spare(100); keep(spare.data());";
const CPP_FOOTER: &str = "    std::string footer(70, 'z');\n    keep(footer.data());\n";

const RUST: &str = r#"use std::hint::black_box;

#[inline(never)]
fn parse(text: &str) {
    let words: Vec<&str> = text.split(' ').collect();
    black_box(&words);
    // PARSE
}

#[inline(never)]
fn render() {
    let text = String::from("the text of a page");
    black_box(&text);
    // RENDER
    let footer = Vec::<u8>::with_capacity(70);
    black_box(&footer);
    // END
}

fn main() {
    let _window = heaptally::window(c"work");
    for _ in 0..100 {
        parse(black_box("a b"));
        render();
    }
    heaptally::iterations(c"work", 100);
}
"#;
const RUST_MORE: &str = "black_box(text.to_owned());";
const RUST_FOOTER: &str = "    let footer = Vec::<u8>::with_capacity(70);\n    black_box(&footer);\n";

/// A repository with one source file.
struct Repository {
    scratch: Scratch,
    source: &'static str,
    build: String,
}

/// A language: the file, the text, what makes it allocate once more in `parse`, and what it does once less without.
struct Language {
    source: &'static str,
    text: &'static str,
    more: &'static str,
    footer: &'static str,
}

const LANGUAGES: [Language; 2] = [
    Language { source: "app.cpp", text: CPP, more: CPP_MORE, footer: CPP_FOOTER },
    Language { source: "src/main.rs", text: RUST, more: RUST_MORE, footer: RUST_FOOTER },
];

impl Language {
    fn repository(&self) -> Repository {
        let scratch = Scratch::new();
        let build = if self.source.ends_with(".cpp") {
            format!("g++ -std=c++17 -O1 -g -I '{}' -o app app.cpp -ldl", include_folder().display())
        } else {
            let library = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../crates/heaptally");
            let manifest = format!(
                "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                 [dependencies]\nheaptally = {{ path = {:?} }}\n[profile.release]\ndebug = 1\n[workspace]\n",
                library.canonicalize().expect("the crate is there")
            );
            fs::create_dir(scratch.path("src")).expect("a folder");
            scratch.write("Cargo.toml", manifest);
            "cargo build --quiet --release --offline --target-dir target && cp target/release/app app"
                .to_owned()
        };
        scratch.write(".gitignore", "app\ntarget\n*.pb.gz\n");
        scratch.write("build.sh", format!("set -e\n{build}\n"));
        scratch.shell("git init --quiet . && git config user.name t && git config user.email t@t && git config commit.gpgsign false");
        let repository = Repository { scratch, source: self.source, build: "sh build.sh".to_owned() };
        repository.commit(self.text, "base");
        repository
    }

    /// With one allocation more in `parse`.
    fn regression(&self) -> String {
        self.text.replace("// PARSE", self.more)
    }

    /// With one less in `render`.
    fn improvement(&self) -> String {
        self.text.replace(self.footer, "")
    }
}

impl Repository {
    /// Commits a text, and builds it.
    fn commit(&self, text: &str, message: &str) {
        self.scratch.write(self.source, text);
        self.scratch.shell(&format!("git add -A && git commit --quiet --allow-empty -m '{message}'"));
        self.scratch.shell(&self.build);
    }

    /// Calls heaptally in it: its code, and what it printed.
    fn call(&self, words: &[&str]) -> (i32, String) {
        let mut command = Command::new(heaptally());
        command.args(words).current_dir(self.scratch.folder()).env_remove("GITHUB_STEP_SUMMARY");
        let output = command.output().expect("heaptally starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("panicked"), "{errors}");
        let code = output.status.code().expect("it ends by itself");
        (code, format!("{}{errors}", String::from_utf8_lossy(&output.stdout)))
    }

    fn record(&self, file: &str) {
        let (code, text) = self.call(&["run", "-q", "-o", file, "./app"]);
        assert_eq!(code, 0, "{text}");
    }

    #[track_caller]
    fn expect(&self, words: &[&str], code: i32) -> String {
        let (found, text) = self.call(words);
        assert_eq!(found, code, "{words:?}\n{text}");
        text
    }
}

/// The line of a text that holds these words, from 1.
fn line_of(text: &str, words: &str) -> usize {
    text.lines().position(|line| line.contains(words)).expect("the words are there") + 1
}

fn languages() -> impl Iterator<Item = &'static Language> {
    let has_tools = tool::have(&["git", "g++"]) && tool::which("cargo").is_some();
    LANGUAGES.iter().filter(move |_| has_tools)
}

#[test]
fn who_made_a_program_allocate_more_is_named() {
    for language in languages() {
        let repository = language.repository();
        repository.record("base.pb.gz");
        let program = ["check", "--baseline", "base.pb.gz", "--", "./app"];
        repository.expect(&program, 0);

        let regression = language.regression();
        repository.commit(&regression, "more");
        let text = repository.expect(&program, 3);
        let first = text.lines().next().unwrap_or_default();
        let place = format!("{}:{}", language.source, line_of(&regression, language.more));
        assert!(first.starts_with("FAILED: +1.00 allocs/iter (more) in \"work\": "), "{text}");
        assert!(first.contains("parse") && first.ends_with(&place), "{place}: {text}");
        assert!(text.contains("window \"work\": 3.00 → 4.00 allocs/iter (+1.00), may not grow"), "{text}");
        assert!(text.lines().count() <= 45, "{text}");

        // An annotation stands at that line.
        let github =
            repository.expect(&["check", "--baseline", "base.pb.gz", "--format", "github", "--", "./app"], 3);
        let at = format!("::error file={},line={}", language.source, line_of(&regression, language.more));
        assert!(github.starts_with(&at), "{at}: {github}");

        repository.commit(language.text, "fixed");
        repository.expect(&program, 0);
    }
}

#[test]
fn a_change_that_offsets_passes_by_total_and_fails_by_stack() {
    for language in languages() {
        let repository = language.repository();
        repository.record("base.pb.gz");
        let offset = language.improvement().replace("// PARSE", language.more);
        repository.commit(&offset, "offset");
        repository.record("change.pb.gz");
        let check = ["check", "change.pb.gz", "--baseline", "base.pb.gz"];
        let text = repository.expect(&check, 3);
        let first = text.lines().next().unwrap_or_default();
        let place = format!("{}:{}", language.source, line_of(&offset, language.more));
        assert!(first.contains("parse") && first.ends_with(&place), "{place}: {text}");
        repository.expect(&[&check[..], &["--per-stack", "off", "--grow", "0"]].concat(), 0);
    }
}

#[test]
fn an_improvement_lowers_the_limit() {
    for language in languages() {
        let repository = language.repository();
        repository.record("base.pb.gz");
        repository.expect(&["limits", "update", "base.pb.gz", "--limits", "limits.toml"], 0);
        let limits = || fs::read_to_string(repository.scratch.path("limits.toml")).expect("limits");
        assert!(limits().ends_with("[window.work]\nallocs = 3\n"), "{}", limits());
        repository.scratch.write("limits.toml", limits().replace("= 3", "= 3 # so many"));

        repository.commit(&language.improvement(), "less");
        repository.record("change.pb.gz");
        let check = ["check", "change.pb.gz", "--limits", "limits.toml"];
        assert!(repository.expect(&check, 0).contains("below its limit"));
        repository.expect(&[&check[..], &["--exit-on-improvement"]].concat(), 5);
        repository.expect(&["limits", "update", "change.pb.gz", "--limits", "limits.toml", "--ratchet"], 0);
        assert!(limits().ends_with("[window.work]\nallocs = 2 # so many\n"), "{}", limits());
        assert!(
            repository
                .expect(&["check", "base.pb.gz", "--limits", "limits.toml"], 3)
                .contains("limits.toml:4")
        );
        repository.expect(&["limits", "update", "base.pb.gz", "--limits", "limits.toml", "--ratchet"], 0);
        assert!(limits().contains("allocs = 2 "), "a ratchet does not go up: {}", limits());
    }
}

#[test]
fn git_bisect_finds_the_commit() {
    for language in languages() {
        let repository = language.repository();
        repository.record("base.pb.gz");
        let regression = language.regression();
        for number in 1..=2 {
            repository.commit(&language.text.replace("// END", &format!("// {number}")), "before");
        }
        repository.commit(&regression, "the one");
        let guilty = repository.scratch.shell("git rev-parse HEAD");
        for number in 3..=4 {
            repository.commit(&regression.replace("// END", &format!("// {number}")), "behind");
        }
        let script = format!(
            "{} || exit 125\n'{}' check --baseline base.pb.gz -- ./app\ncode=$?\n\
             case $code in 2|4) exit 125;; esac\nexit $code\n",
            repository.build,
            heaptally().display()
        );
        let script = repository.scratch.write("step.sh", script);
        let told = repository
            .scratch
            .shell(&format!("git bisect start HEAD HEAD~5 && git bisect run sh {} 2>&1", script.display()));
        assert!(told.contains(&format!("{} is the first bad commit", guilty.trim())), "{told}");
    }
}
