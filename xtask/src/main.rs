//! Tasks of maintainers and CI: `cargo xtask TASK`.

use std::process::ExitCode;

mod bench;
mod counter;
mod dist;
mod fuzz;
mod package_check;
mod planted;
mod process;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let outcome = match words.next().as_deref() {
        Some("bench") => bench::run(words),
        Some("dist") => dist::run(words),
        Some("fuzz") => fuzz::run(words),
        Some("planted") => planted::run(words),
        Some("package-check") => package_check::run(),
        _ => Err("usage: cargo xtask bench|dist|fuzz|package-check|planted".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
