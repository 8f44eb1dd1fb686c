//! `cargo heaptally`: calls `heaptally cargo`, which lies beside it.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// As that of `heaptally run`: what was to be done could not be started.
const NOT_FOUND: u8 = 127;

fn main() -> ExitCode {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    // Cargo names the command that it was called by.
    let words = words.strip_prefix(&["heaptally".into()]).unwrap_or(&words);
    let beside = env::current_exe().ok().map(|path| path.with_file_name("heaptally"));
    let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("heaptally"));
    let error = Command::new(&program).arg("cargo").args(words).exec();
    eprintln!(
        "cargo-heaptally: cannot start {}: {error}\n  install both with `cargo install heaptally-cli`",
        program.display()
    );
    ExitCode::from(NOT_FOUND)
}
