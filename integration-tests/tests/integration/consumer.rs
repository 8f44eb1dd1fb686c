//! Other tools open what is written, and understand the same numbers and names as `heaptally report --json` has.
//!
//! The programs are `programs/consumer.cpp` and `programs/consumer.rs`, whose names are hard to carry: templates,
//! spaces, brackets, `;`. They are recorded once, as they are and with `more` allocations of one function.

mod flame_graph;
mod pprof;
mod speedscope;
mod table;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use integration_tests::program;
use integration_tests::run::{Run, heaptally_output, report_json};
use integration_tests::scratch::Scratch;
use integration_tests::tool;
use serde_json::Value;

/// The windows that the programs open.
const WINDOWS: [&str; 2] = ["parse", "draw <b>; all 100% of it"];

/// A recorded program.
struct Recording {
    language: &'static str,
    /// As it is.
    profile: Vec<u8>,
    document: Document,
    /// With `more` allocations.
    more_profile: Vec<u8>,
    more_document: Document,
}

/// What `heaptally report --json` says.
struct Document(Value);

/// A stack in a window.
struct Stack<'a> {
    row: &'a Value,
    /// Leaf first.
    frames: Vec<&'a Value>,
}

/// The programs, recorded once for all tests. Empty where a compiler is missing: the test is skipped.
fn recordings() -> &'static [Recording] {
    static RECORDINGS: OnceLock<Vec<Recording>> = OnceLock::new();
    if !tool::have(&["g++"]) || tool::which("rustc").is_none() && !tool::have(&["rustc"]) {
        return &[];
    }
    RECORDINGS.get_or_init(|| {
        let scratch = Scratch::new();
        program::build(&scratch, "consumer.cpp", "cpp", &["-O1"]);
        let source = program::source("consumer.rs");
        scratch.shell(&format!("rustc --edition 2024 -O -g -o rust '{}'", source.display()));
        ["cpp", "rust"]
            .map(|language| {
                let (profile, document) = record(&scratch, &[&format!("./{language}")]);
                let (more_profile, more_document) = record(&scratch, &[&format!("./{language}"), "more"]);
                Recording { language, profile, document, more_profile, more_document }
            })
            .into()
    })
}

fn record(scratch: &Scratch, program: &[&str]) -> (Vec<u8>, Document) {
    let outcome = Run::new(scratch, program).run();
    assert_eq!((outcome.code, outcome.report().losses_text().as_str()), (0, ""), "{}", outcome.stderr);
    let profile = fs::read(&outcome.profile).expect("the profile");
    let document = serde_json::from_slice(&report_json(&outcome.profile)).expect("a document");
    (profile, Document(document))
}

impl Recording {
    /// Writes the profile to a file.
    fn file(&self, scratch: &Scratch) -> PathBuf {
        scratch.write(&format!("{}.pb.gz", self.language), &self.profile)
    }

    /// Writes the profile with `more` allocations to a file.
    fn more_file(&self, scratch: &Scratch) -> PathBuf {
        scratch.write(&format!("{}-more.pb.gz", self.language), &self.more_profile)
    }

    /// What `heaptally report` prints of the profile in a form for other tools.
    fn exported(&self, scratch: &Scratch, form: &str, options: &[&str]) -> String {
        let file = self.file(scratch);
        let mut arguments: Vec<&OsStr> =
            vec!["report".as_ref(), file.as_ref(), "--format".as_ref(), form.as_ref()];
        arguments.extend(options.iter().map(OsStr::new));
        let (code, output, stderr) = heaptally_output(arguments);
        assert_eq!(code, 0, "--format {form} {options:?}: {stderr}");
        String::from_utf8(output).expect("UTF-8")
    }
}

impl Document {
    /// The stacks of the windows that `is_wanted` says.
    fn stacks(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Stack<'_>> {
        let frames = self.0["frames"].as_array().expect("frames");
        let windows = self.0["windows"].as_array().expect("windows");
        let stack = |row| {
            let frames =
                array(row, "stack").iter().map(|at| &frames[at.as_u64().expect("an index") as usize]);
            Stack { row, frames: frames.collect() }
        };
        let windows = windows.iter().filter(|window| is_wanted(window["name"].as_str().expect("a name")));
        windows.flat_map(|window| array(window, "rows")).map(stack).collect()
    }

    /// The stacks of all windows that the program opened, with the window's name.
    fn stacks_by_window(&self) -> Vec<(&'static str, Stack<'_>)> {
        WINDOWS
            .into_iter()
            .flat_map(|name| self.stacks(|found| found == name).into_iter().map(move |stack| (name, stack)))
            .collect()
    }
}

impl<'a> Stack<'a> {
    /// A number of its row; a dot parts levels.
    fn value(&self, name: &str) -> i64 {
        let value = name.split('.').fold(self.row, |value, part| &value[part]);
        value.as_i64().unwrap_or_else(|| panic!("no {name} in {}", self.row))
    }

    /// Its functions, outermost first.
    fn functions(&self) -> Vec<&'a str> {
        self.frames.iter().rev().map(|frame| function(frame)).collect()
    }
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_else(|| panic!("no {name} in {value}"))
}

fn function(frame: &Value) -> &str {
    frame["function"].as_str().unwrap_or_else(|| panic!("a frame without a function: {frame}"))
}

/// Adds up what belongs to one key, and leaves out what is 0: other tools do.
fn sums<K: Ord>(pairs: impl IntoIterator<Item = (K, i64)>) -> BTreeMap<K, i64> {
    let mut sums = BTreeMap::new();
    for (key, value) in pairs {
        *sums.entry(key).or_insert(0) += value;
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// Runs a program and returns what it printed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    assert!(output.status.success(), "{command:?}:\n{}", text(output.stderr));
    text(output.stdout)
}
