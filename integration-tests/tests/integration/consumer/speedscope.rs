//! speedscope, by its own importer, which runs without a browser.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use integration_tests::download::Download;
use integration_tests::program;
use integration_tests::scratch::Scratch;
use integration_tests::tool;
use serde_json::Value;

use super::{array, function, output, recordings, sums};

const SPEEDSCOPE: Download = Download {
    name: "speedscope-1.25.0.tgz",
    url: "https://registry.npmjs.org/speedscope/-/speedscope-1.25.0.tgz",
    sha256: "2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03",
};

/// Unpacks speedscope and returns its script.
fn bundle(scratch: &Scratch) -> Option<PathBuf> {
    if !tool::have(&["node", "curl"]) {
        return None;
    }
    scratch.shell(&format!("tar -xzf '{}'", SPEEDSCOPE.path()?.display()));
    let folder = scratch.path("package/dist/release");
    let names = fs::read_dir(&folder).expect("the release").map(|entry| entry.expect("an entry").path());
    let is_bundle = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("speedscope-") && name.ends_with(".js")
    };
    Some(names.into_iter().find(is_bundle).expect("speedscope's script"))
}

/// What speedscope understands of a file: its stacks, outermost frame first, with their values; and the total.
fn imported(bundle: &Path, file: &Path) -> (i64, BTreeMap<Vec<String>, i64>) {
    let script = program::source("speedscope.js");
    let text = output(Command::new("node").args([&script, bundle, file]));
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let [profile] = array(&document, "profiles") else { panic!("not one profile: {text}") };
    let stacks = array(profile, "samples").iter().map(|sample| {
        let names = array(sample, "stack").iter().map(|name| name.as_str().expect("a name").to_owned());
        (names.collect::<Vec<_>>(), sample["weight"].as_i64().expect("a whole number"))
    });
    (profile["total"].as_i64().expect("a whole number"), sums(stacks))
}

/// All windows, and the allocations by default. Of inlined functions its importer keeps the outermost one only, so that
/// these are left out on both sides.
#[test]
fn a_profile() {
    let scratch = Scratch::new();
    let Some(bundle) = bundle(&scratch) else { return };
    for recording in recordings() {
        let expected = sums(recording.document.stacks(|_| true).iter().map(|stack| {
            let frames = stack.frames.iter().rev().filter(|frame| frame["inlined"] == false);
            let names = frames.map(|frame| function(frame).to_owned()).collect::<Vec<_>>();
            (names, stack.value("counts.allocations"))
        }));
        let (total, stacks) = imported(&bundle, &recording.file(&scratch));
        assert_eq!(stacks, expected, "{}", recording.language);
        assert_eq!(total, expected.values().sum::<i64>(), "{}", recording.language);
    }
}

/// The folded form: inlined functions too, each window below a frame of its own.
#[test]
fn folded_stacks() {
    let scratch = Scratch::new();
    let Some(bundle) = bundle(&scratch) else { return };
    for recording in recordings() {
        let folded = recording.exported(&scratch, "folded", &[]);
        let file = scratch.write("stacks.folded", &folded);
        let expected = sums(recording.document.stacks_by_window().iter().map(|(window, stack)| {
            let mut names = vec![window.replace(';', ":")];
            names.extend(stack.frames.iter().rev().map(|frame| {
                let mark = if frame["inlined"] == true { "_[i]" } else { "" };
                format!("{}{mark}", function(frame).replace(';', ":"))
            }));
            (names, stack.value("counts.allocations"))
        }));
        let (total, stacks) = imported(&bundle, &file);
        assert_eq!(stacks, expected, "{}", recording.language);
        assert_eq!(total, expected.values().sum::<i64>(), "{}", recording.language);
    }
}
