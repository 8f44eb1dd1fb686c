//! Tasks of maintainers and CI: `cargo xtask TASK`.

use std::process::ExitCode;

mod package_check;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let outcome = match task.as_deref() {
        Some("package-check") => package_check::run(),
        _ => Err("usage: cargo xtask package-check".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
