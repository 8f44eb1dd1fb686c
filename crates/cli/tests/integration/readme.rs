//! What README.md shows is what the command prints.

use std::env;
use std::fs;
use std::path::Path;

use crate::sandbox::Sandbox;

/// Compares the block that begins with a prompt and these words; with `HEAPTALLY_BLESS=1` it is written anew.
#[track_caller]
fn compare(words: &[&str], output: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let prompt = format!("```console\n$ heaptally {}\n", words.join(" "));
    let from = readme.find(&prompt).unwrap_or_else(|| panic!("README.md has no {prompt:?}")) + prompt.len();
    let until = from + readme[from..].find("```").unwrap();
    if env::var_os("HEAPTALLY_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, format!("{}{output}{}", &readme[..from], &readme[until..])).unwrap();
        return;
    }
    assert_eq!(&readme[from..until], output, "HEAPTALLY_BLESS=1 writes README.md anew");
}

#[test]
fn the_demonstration_is_as_shown() {
    let outcome = Sandbox::new().call(["demo"]);
    outcome.expect(0);
    compare(&["demo"], &outcome.output);
}
