//! Builds the preload library and the demonstration's program, which the command embeds.
//!
//! Both want their own profiles (the library `panic = "abort"`, optimised whatever the command is built with; the
//! program line tables, which an installed command has not), and a build of the command must work from a packaged
//! crate as well as in the workspace. So the recorder's sources are part of this package (`recorder/`: links in the
//! workspace, files in a package), and this script lays a workspace of its own in `OUT_DIR` and calls cargo there:
//!
//! ```text
//! OUT_DIR/recorder/Cargo.toml              [workspace.package|dependencies|lints] of ours
//! OUT_DIR/recorder/Cargo.lock              the outer one: the same versions
//! OUT_DIR/recorder/crates/NAME/Cargo.toml  recorder/NAME/manifest.toml without its dev-dependencies
//! OUT_DIR/recorder/crates/NAME/src         link to recorder/NAME/src
//! OUT_DIR/recorder/crates/demo             the same of demo/
//! OUT_DIR/libheaptally_preload.so          the results
//! OUT_DIR/heaptally-demo
//! ```
//!
//! Their third-party dependencies are dependencies of the command too, so they are on the machine when this script
//! runs: it first tries without the network.

use std::env;
use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates, by their folders in this package.
const CRATES: [&str; 6] =
    ["recorder/segment", "recorder/unwind", "recorder/tally", "recorder/runtime", "recorder/preload", "demo"];

const WORKSPACE: &str = "\
[workspace]
resolver = \"3\"
members = [\"crates/*\"]

[profile.release.package.heaptally-demo]
debug = 1
";

/// The profile, as variables: these outrank a user's configuration file, which outranks a manifest.
const PROFILE: [(&str, &str); 9] = [
    ("OPT_LEVEL", "3"),
    ("LTO", "fat"),
    ("CODEGEN_UNITS", "1"),
    ("PANIC", "abort"),
    ("DEBUG", "false"),
    ("STRIP", "none"),
    ("OVERFLOW_CHECKS", "false"),
    ("DEBUG_ASSERTIONS", "false"),
    ("INCREMENTAL", "false"),
];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let package = path_variable("CARGO_MANIFEST_DIR")?;
    let out = path_variable("OUT_DIR")?;
    let target = env::var("TARGET")?;
    let inner = out.join("recorder");

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=HEAPTALLY_TARGET={target}");
    println!("cargo::rustc-env=HEAPTALLY_COMPILER={}", compiler()?);
    println!("cargo::rustc-env=HEAPTALLY_FEATURES={}", features());
    let lock = lay_workspace(&package, &inner)?;
    fetch(&inner, &target, lock.as_deref())?;

    // The library's manifest says `rlib`, so that the outer workspace builds and checks the crate with any profile.
    let library = ["rustc", "--package", "heaptally-preload", "--lib", "--crate-type", "cdylib"];
    let program = ["build", "--package", "heaptally-demo"];
    for arguments in [&library[..], &program[..]] {
        let mut build = cargo(&inner)?;
        build.args(arguments).args(["--release", "--frozen", "--quiet", "--target", &target]);
        run(&mut build)?;
    }
    let built = inner.join("target").join(&target).join("release");
    for name in ["libheaptally_preload.so", "heaptally-demo"] {
        copy(&built.join(name), &out.join(name))?;
    }
    Ok(())
}

/// Writes the inner workspace; returns the outer `Cargo.lock`, if there is one.
fn lay_workspace(package: &Path, inner: &Path) -> Result<Option<PathBuf>> {
    let root = watch(&package.join("recorder/workspace.toml"))?;
    let shared = sections(&read(&root)?, |name| {
        name.starts_with("workspace.") && !name.starts_with("workspace.metadata")
    });
    write(&inner.join("Cargo.toml"), &format!("{WORKSPACE}\n{shared}"))?;

    for name in CRATES {
        let source = package.join(name);
        let folder = inner.join("crates").join(source.file_name().unwrap_or_default());
        fs::create_dir_all(&folder).map_err(|error| describe("create", &folder, &error))?;
        let manifest = watch(&source.join("manifest.toml"))?;
        let text = sections(&read(&manifest)?, |section| !section.starts_with("dev-dependencies"));
        write(&folder.join("Cargo.toml"), &text)?;
        let source = watch(&source.join("src"))?;
        link(&source, &folder.join("src"))?;
    }

    let beside_root = root.with_file_name("Cargo.lock");
    for lock in [beside_root, package.join("Cargo.lock")] {
        if lock.is_file() {
            return Ok(Some(watch(&lock)?));
        }
    }
    Ok(None)
}

/// Settles the versions and has the sources of the third-party crates: those of the outer lock file, else those that
/// the outer build has downloaded, else, unless the network is forbidden, those of the lock file from the network.
fn fetch(inner: &Path, target: &str, lock: Option<&Path>) -> Result<()> {
    let ours = inner.join("Cargo.lock");
    let mut failures = String::new();
    for (use_lock, offline) in [(true, true), (false, true), (true, false)] {
        remove(&ours)?;
        if let (true, Some(lock)) = (use_lock, lock) {
            write(&ours, &read(lock)?)?;
        }
        if !offline && env::var("CARGO_NET_OFFLINE").is_ok_and(|value| value == "true") {
            break;
        }
        let mut fetch = cargo(inner)?;
        fetch.args(["fetch", "--quiet", "--target", target]);
        if offline {
            fetch.arg("--offline");
        }
        match run(&mut fetch) {
            Ok(()) => return Ok(()),
            Err(error) => failures.push_str(&format!("{error}\n")),
        }
    }
    Err(format!("the preload library's dependencies are not to be had\n{failures}").into())
}

/// A call of cargo in the inner workspace, on which no setting of the outer build has an effect but the toolchain, the
/// linker, the registries and the network's.
fn cargo(inner: &Path) -> Result<Command> {
    let mut command = Command::new(env::var_os("CARGO").ok_or("cargo has not said where it is")?);
    command.current_dir(inner);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_of_outer_build) {
            command.env_remove(name);
        }
    }
    for (name, value) in PROFILE {
        command.env(format!("CARGO_PROFILE_RELEASE_{name}"), value);
    }
    // An empty value outranks what a configuration file says.
    for wrapper in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        command.env(wrapper, "");
    }
    // No path of this machine in the library: the same sources give the same bytes.
    let from = inner.to_str().ok_or("the build folder's path is not UTF-8")?;
    // The latest that fits counts; the demonstration's sources are shown where a reader finds them.
    let flags = format!(
        "--remap-path-prefix={from}=heaptally\x1f--remap-path-prefix={from}/crates/demo=crates/cli/demo"
    );
    command.env("CARGO_ENCODED_RUSTFLAGS", flags);
    command.env("CARGO_TARGET_DIR", inner.join("target"));
    Ok(command)
}

/// What the compiler says of itself, in one line.
fn compiler() -> Result<String> {
    let mut compiler = Command::new(env::var_os("RUSTC").ok_or("cargo has not said where rustc is")?);
    let output = compiler.arg("--version").output();
    let output = output.map_err(|error| format!("cannot run {compiler:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().filter(|_| output.status.success());
    Ok(line.ok_or_else(|| format!("{compiler:?} does not say its version"))?.trim().to_owned())
}

/// The command's features that were asked for.
fn features() -> String {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let features = names.filter_map(|name| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase()));
    let mut features: Vec<String> =
        features.filter(|name| name != "default").map(|name| name.replace('_', "-")).collect();
    features.sort();
    features.join(", ")
}

fn is_of_outer_build(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "CARGO_INCREMENTAL",
        "LLVM_PROFILE_FILE",
        "TARGET",
        "HOST",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
        "NUM_JOBS",
        "OUT_DIR",
        "CARGO_PRIMARY_PACKAGE",
    ];
    const PREFIXES: [&str; 12] = [
        "CARGO_BUILD_",
        "CARGO_PROFILE_",
        "CARGO_CFG_",
        "CARGO_FEATURE_",
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_UNSTABLE_",
        "CARGO_LLVM_COV",
        "CARGO_BIN_",
        "CLIPPY_",
        "__CARGO_",
        "DEP_",
    ];
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || (name.starts_with("CARGO_TARGET_") && !name.ends_with("_LINKER"))
}

/// The named sections of a TOML file, each with its header; what stands before the first header is left out.
fn sections(text: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut kept = String::new();
    let mut keeps = false;
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('[') {
            keeps = wanted(header.trim_start_matches('[').split(']').next().unwrap_or_default());
        }
        if keeps {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Has cargo run this script again when something there changes; returns the path without links.
fn watch(path: &Path) -> Result<PathBuf> {
    let real = path.canonicalize().map_err(|error| describe("find", path, &error))?;
    println!("cargo::rerun-if-changed={}", real.display());
    Ok(real)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed ({}):\n{words}", output.status).into())
}

fn path_variable(name: &str) -> Result<PathBuf> {
    env::var_os(name).map(PathBuf::from).ok_or_else(|| format!("cargo has not set {name}").into())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| describe("read", path, &error))
}

/// Leaves an equal file alone, so that the inner build sees no change.
fn write(path: &Path, text: &str) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| describe("create", folder, &error))?;
    }
    fs::write(path, text).map_err(|error| describe("write", path, &error))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).map_err(|error| describe("read", from, &error))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(to, bytes).map_err(|error| describe("write", to, &error))
}

fn link(to: &Path, at: &Path) -> Result<()> {
    if fs::read_link(at).is_ok_and(|old| old == to) {
        return Ok(());
    }
    remove(at)?;
    symlink(to, at).map_err(|error| describe("link", at, &error))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(describe("remove", path, &error)),
        _ => Ok(()),
    }
}

fn describe(action: &str, path: &Path, error: &std::io::Error) -> Box<dyn Error> {
    format!("cannot {action} {}: {error}", path.display()).into()
}
