//! The programs in `programs/`, built as a test wants them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::include_folder;
use crate::scratch::Scratch;

/// The path of a program's source.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

/// Compiles `programs/<name>` (`.c` or `.cpp`) with `flags` behind the usual ones to the file `output` in `scratch`.
///
/// # Panics
/// When the compiler fails.
pub fn build(scratch: &Scratch, name: &str, output: &str, flags: &[&str]) -> PathBuf {
    let (compiler, standard) =
        if name.ends_with(".cpp") { ("g++", "-std=c++20") } else { ("gcc", "-std=gnu11") };
    compile(compiler, &[standard], &source(name), scratch, output, flags)
}

/// Compiles the file `source`.
///
/// # Panics
/// When the compiler fails.
pub fn compile(
    compiler: &str,
    before: &[&str],
    source: &Path,
    scratch: &Scratch,
    output: &str,
    flags: &[&str],
) -> PathBuf {
    let path = scratch.path(output);
    let result = Command::new(compiler)
        .current_dir(scratch.folder())
        .args(before)
        .args(["-g", "-D_GNU_SOURCE", "-I"])
        .arg(include_folder())
        .arg("-o")
        .arg(&path)
        .arg(source)
        .args(flags)
        .args(["-ldl", "-lpthread"])
        .output()
        .unwrap_or_else(|error| panic!("{compiler} does not start: {error}"));
    assert!(
        result.status.success(),
        "{compiler} {} {flags:?}:\n{}",
        source.display(),
        String::from_utf8_lossy(&result.stderr)
    );
    path
}
