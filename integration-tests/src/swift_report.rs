//! What the command with Swift's demangler says of prebuilt Swift programs.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::command::heaptally_with_swift;
use crate::scratch::Scratch;
use crate::swift::folder;

/// A recording of one program.
#[derive(Debug)]
pub struct Recording {
    profile: PathBuf,
    command: &'static Path,
    scratch: Scratch,
}

/// A row of a window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// How many allocations.
    pub allocations: u64,
    /// What they are; empty where it is not certain.
    pub kind: String,
    /// How the stack was walked.
    pub capture: String,
    /// Whether runs differ in it.
    pub is_unstable: bool,
    /// In how many entries it occurred, if known.
    pub entries: Option<u64>,
    /// The functions, from the leaf on; async callers begin with `~`.
    pub functions: Vec<String>,
}

impl Row {
    /// Whether functions with these parts in their names are on the stack, in this order from the leaf on.
    pub fn has(&self, parts: &[&str]) -> bool {
        let mut functions = self.functions.iter();
        parts.iter().all(|part| functions.any(|function| function.contains(part)))
    }
}

/// Records a program. `None`: there are none, or no compiler for the command, which is said.
///
/// # Panics
/// When it does not end with 0.
pub fn record(program: &str, options: &[&str]) -> Option<Recording> {
    let (folder, command) = (folder()?, heaptally_with_swift()?);
    let scratch = Scratch::new();
    let profile = scratch.folder().join("profile.pb.gz");
    let mut words: Vec<OsString> = ["run", "--quiet", "-o"].map(OsString::from).into();
    words.push(profile.clone().into());
    words.extend(options.iter().map(OsString::from));
    words.push("--".into());
    words.push(folder.join("bin").join(program).into());
    let output = call(command, &words, &scratch);
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(Recording { profile, command, scratch })
}

fn call(command: &Path, words: &[OsString], scratch: &Scratch) -> Output {
    let folder = folder().unwrap_or_default();
    let libraries = [folder.join("lib"), folder.join("bin")].map(PathBuf::into_os_string);
    Command::new(command)
        .args(words)
        .current_dir(scratch.folder())
        .env("LD_LIBRARY_PATH", libraries.join(OsStr::new(":")))
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .output()
        .unwrap_or_else(|error| panic!("{} does not start: {error}", command.display()))
}

impl Recording {
    /// What the command prints for some words and this profile behind them.
    pub fn says(&self, words: &[&str]) -> String {
        let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
        words.push(self.profile.clone().into());
        let output = call(self.command, &words, &self.scratch);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `heaptally diff` of this and another recording, as text or JSON.
    pub fn diff(&self, change: &Self, options: &[&str]) -> String {
        let mut words = vec!["diff"];
        words.extend_from_slice(options);
        let base = self.profile.to_string_lossy();
        words.push(&base);
        change.says(&words)
    }

    /// The rows of each window, most allocations first.
    ///
    /// # Panics
    /// When the report is not as its schema says.
    pub fn windows(&self) -> BTreeMap<String, Vec<Row>> {
        let json: Value = serde_json::from_str(&self.says(&["report", "--format", "json"])).expect("JSON");
        let frames = json["frames"].as_array().expect("frames");
        let function = |index: &Value| {
            let frame = &frames[index.as_u64().expect("an index") as usize];
            let mark = if frame["kind"] == "async" { "~" } else { "" };
            format!("{mark}{}", frame["function"].as_str().unwrap_or("?"))
        };
        let row = |row: &Value| Row {
            allocations: row["counts"]["allocations"].as_u64().expect("a count"),
            kind: row["kind"].as_str().unwrap_or_default().to_owned(),
            capture: row["capture"].as_str().expect("a capture").to_owned(),
            is_unstable: row["unstable"] == true,
            entries: row["entries"].as_u64(),
            functions: row["stack"].as_array().expect("a stack").iter().map(function).collect(),
        };
        let window = |window: &Value| {
            let rows = window["rows"].as_array().expect("rows").iter().map(row).collect();
            (window["name"].as_str().expect("a name").to_owned(), rows)
        };
        json["windows"].as_array().expect("windows").iter().map(window).collect()
    }
}

/// The sum of rows' allocations.
pub fn sum<'r>(rows: impl IntoIterator<Item = &'r Row>) -> u64 {
    rows.into_iter().map(|row| row.allocations).sum()
}
