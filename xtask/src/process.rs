//! Programs that tasks start.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What `command` says, if it succeeds.
pub(crate) fn succeed(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed ({})\n{words}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where a relative path of this workspace lies.
pub(crate) fn in_workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Builds the command and returns its path.
pub(crate) fn build_heaptally() -> Result<PathBuf, String> {
    let arguments =
        ["build", "--release", "--package", "heaptally-cli", "--message-format", "json-render-diagnostics"];
    let output = succeed(Command::new(cargo()).current_dir(in_workspace(".")).args(arguments))?;
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = messages
        .filter(|message| message["target"]["name"] == "heaptally")
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    executables.next().ok_or_else(|| "cargo built no executable named heaptally".to_owned())
}
