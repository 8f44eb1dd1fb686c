//! What the preload library exports and imports is a committed list: a new name there is a decision.
//!
//! An export interposes on the recorded program. An import is something that the library can call inside the program's
//! `malloc`. `HEAPTALLY_BLESS=1 cargo test --release -p xtask` writes the lists anew.

use crate::root;
use object::{Object, ObjectSymbol};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Builds the command, whose build script builds the library that it embeds; returns the library.
fn library() -> PathBuf {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(["build", "--release", "--package", "heaptally-cli"]);
    let output = cargo.args(["--message-format", "json-render-diagnostics"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = cargo_metadata::Message::parse_stream(&*output.stdout).map(Result::unwrap);
    let folders = messages.filter_map(|message| match message {
        cargo_metadata::Message::BuildScriptExecuted(script) => Some(script.out_dir.into_std_path_buf()),
        _ => None,
    });
    let libraries = folders.map(|folder| folder.join("libheaptally_preload.so"));
    libraries.into_iter().find(|library| library.is_file()).expect("no build script built the library")
}

/// Compares the sorted `names` with the committed list.
fn compare(list: &str, mut names: Vec<String>) {
    names.sort();
    names.dedup();
    let path = root().join("crates/preload").join(list);
    if env::var("HEAPTALLY_BLESS").as_deref() == Ok("1") {
        fs::write(&path, names.join("\n") + "\n").unwrap();
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let committed: Vec<_> = text.lines().collect();
    let added: Vec<_> = names.iter().filter(|name| !committed.contains(&name.as_str())).collect();
    let gone: Vec<_> = committed.iter().filter(|name| !names.iter().any(|one| one == *name)).collect();
    assert!(added.is_empty() && gone.is_empty(), "{list}: added {added:#?}, gone {gone:#?}");
}

#[test]
fn exports_and_imports_are_the_committed_ones() {
    let bytes = fs::read(library()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let named = |wanted: fn(&object::Symbol<'_, '_>) -> bool| {
        let symbols = file.dynamic_symbols().filter(wanted);
        symbols.filter_map(|symbol| Some(symbol.name().ok()?.to_owned())).collect::<Vec<_>>()
    };
    let exports = named(|symbol| symbol.is_definition() && symbol.is_global());
    assert!(exports.iter().any(|name| name == "malloc"), "this is not the recorder: {exports:?}");
    compare("exports.txt", exports);
    compare("imports.txt", named(|symbol| symbol.is_undefined() && !symbol.name().unwrap_or("").is_empty()));
}
