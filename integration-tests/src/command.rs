//! The command that is tested, and other builds of its library.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::tool::have;

/// The path of `heaptally`: `HEAPTALLY_BIN`, else built once in the release profile.
///
/// # Panics
/// When it cannot be built.
pub fn heaptally() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match env::var_os("HEAPTALLY_BIN") {
        Some(path) => PathBuf::from(path),
        None => build("build", &["--package", "heaptally-cli"], "executable", "heaptally"),
    })
}

/// The preload library with its self-checks, built once into a target folder of its own.
///
/// # Panics
/// When it cannot be built.
pub fn oracle_library() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let target = target_folder().join("oracle");
        let target = target.to_string_lossy().into_owned();
        let arguments = [
            "--package",
            "heaptally-preload",
            "--lib",
            "--crate-type",
            "cdylib",
            "--features",
            "oracle",
            "--config",
            "profile.release.panic=\"abort\"",
            "--target-dir",
            &target,
        ];
        build("rustc", &arguments, "filenames", "heaptally_preload")
    })
}

/// `heaptally` with Swift's demangler (`HEAPTALLY_SWIFT_BIN`, else built once into a target folder of its own): that takes a C++
/// compiler. `None`: there is none, which is said.
///
/// # Panics
/// When it cannot be built, and when there is no compiler where tools are required.
pub fn heaptally_with_swift() -> Option<&'static Path> {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    if env::var_os("HEAPTALLY_SWIFT_BIN").is_none() && !have(&["g++"]) {
        return None;
    }
    Some(PATH.get_or_init(|| match env::var_os("HEAPTALLY_SWIFT_BIN") {
        Some(path) => PathBuf::from(path),
        None => {
            let target = target_folder().join("swift");
            let target = target.to_string_lossy().into_owned();
            let arguments = ["--package", "heaptally-cli", "--features", "swift", "--target-dir", &target];
            build("build", &arguments, "executable", "heaptally")
        }
    }))
}

/// The folder of the C header.
pub fn include_folder() -> PathBuf {
    workspace().join("crates/preload/include")
}

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folder in which the workspace is built.
pub fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// Runs `cargo <action> --release` and returns the file of the artifact whose target has the name `artifact`.
fn build(action: &str, arguments: &[&str], field: &str, artifact: &str) -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(workspace())
        .args([action, "--release", "--message-format", "json-render-diagnostics"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("cargo does not start: {error}"));
    assert!(output.status.success(), "cargo {action} {} failed", arguments.join(" "));
    let is_wanted =
        |message: &Value| message["reason"] == "compiler-artifact" && message["target"]["name"] == artifact;
    let messages: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .filter(is_wanted)
        .collect();
    let path = messages.iter().find_map(|message| match &message[field] {
        Value::String(path) => Some(path.clone()),
        Value::Array(paths) => {
            paths.iter().filter_map(Value::as_str).find(|path| path.ends_with(".so")).map(str::to_owned)
        }
        _ => None,
    });
    PathBuf::from(path.unwrap_or_else(|| panic!("cargo built no {artifact}")))
}
