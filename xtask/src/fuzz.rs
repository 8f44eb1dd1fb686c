//! Runs the readers on inputs that libFuzzer makes, guided by what they reach in the code.
//!
//! ```text
//! cargo xtask fuzz [--seconds N] [TARGET…]
//! ```
//!
//! Without a target all of them run, one after the other, each for so many seconds (600). What was found interesting
//! stays in `fuzz/corpus/TARGET` and is where the next run goes on. The first input that makes a reader panic, loop or
//! ask for too much memory ends its target's run and is kept in `fuzz/artifacts/TARGET`.
//!
//! Only stable Rust and a C++ compiler are needed: the compiler's pass for coverage is asked for by its own name, and
//! without sanitizers.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "usage: cargo xtask fuzz [--seconds N] [TARGET…]";

/// A target's name, and its longest input in bytes.
type Target = (&'static str, u32);

const TARGETS: [Target; 20] = [
    ("profile_read", 16 << 10),
    ("profile_message", 16 << 10),
    ("profile_model", 8 << 10),
    ("diff", 8 << 10),
    ("import", 16 << 10),
    ("import_pprof", 16 << 10),
    ("import_dhat", 16 << 10),
    ("import_heaptrack", 16 << 10),
    ("import_heaptrack_print", 16 << 10),
    ("import_heap_profile_text", 16 << 10),
    ("import_bpftrace", 16 << 10),
    ("import_dtrace", 16 << 10),
    ("import_folded", 16 << 10),
    ("segment_read", 8 << 10),
    ("symbolize", 32 << 10),
    ("program", 32 << 10),
    ("rules", 4 << 10),
    ("limits", 4 << 10),
    ("threshold", 4 << 10),
    ("demangle", 4 << 10),
];

/// Flags of LLVM's coverage pass: counters of each edge, a table of where they lie, and the operands of comparisons.
const RUSTFLAGS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];
/// With a target that is named, flags are not for build scripts, which have no libFuzzer to report to.
const MACHINE: &str = "x86_64-unknown-linux-gnu";

/// The longest that one input may take.
const TIMEOUT_SECONDS: u32 = 20;
/// The most memory that a target may use.
const MEMORY_MIB: u32 = 4096;
/// Names the folder into which a target writes its first inputs.
const SEED_VARIABLE: &str = "HEAPTALLY_FUZZ_SEEDS";

/// Runs the targets.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let (seconds, targets) = parse(words)?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let folder = folder.canonicalize().map_err(|error| format!("no folder {}: {error}", folder.display()))?;
    let programs = build(&folder, &targets)?;
    let mut failed = Vec::new();
    for (target, max_len) in targets {
        println!("fuzz: {target}, {seconds} s");
        if !fuzz(&folder, &programs, target, max_len, seconds)? {
            failed.push(target);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("faults found by {}", failed.join(", "))) }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<(u64, Vec<Target>), String> {
    let mut seconds = 600;
    let mut targets = Vec::new();
    while let Some(word) = words.next() {
        if word == "--seconds" {
            seconds = words.next().and_then(|number| number.parse().ok()).ok_or(USAGE)?;
        } else if let Some(target) = TARGETS.iter().find(|(name, _)| *name == word) {
            targets.push(*target);
        } else {
            let names = TARGETS.map(|(name, _)| name).join(", ");
            return Err(format!("no target {word:?}\n{USAGE}\ntargets: {names}"));
        }
    }
    if targets.is_empty() {
        targets = TARGETS.to_vec();
    }
    Ok((seconds, targets))
}

/// Builds the targets; returns the folder with their programs.
fn build(folder: &Path, targets: &[Target]) -> Result<PathBuf, String> {
    let output = env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("target"), PathBuf::from);
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(folder).env("CARGO_ENCODED_RUSTFLAGS", RUSTFLAGS.join("\x1f"));
    cargo.args(["build", "--release", "--target", MACHINE, "--target-dir"]).arg(&output);
    for (target, _) in targets {
        cargo.args(["--bin", target]);
    }
    let status = cargo.status().map_err(|error| format!("cannot run {cargo:?}: {error}"))?;
    if status.success() {
        Ok(output.join(MACHINE).join("release"))
    } else {
        Err(format!("the fuzz targets cannot be built ({status})"))
    }
}

/// Runs one target; returns whether it found nothing.
fn fuzz(folder: &Path, programs: &Path, target: &str, max_len: u32, seconds: u64) -> Result<bool, String> {
    let corpus = folder.join("corpus").join(target);
    let artifacts = folder.join("artifacts").join(target);
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    }
    let known = entries(&artifacts)?;
    let mut command = Command::new(programs.join(target));
    command.current_dir(folder).env(SEED_VARIABLE, &corpus).args([
        format!("-max_total_time={seconds}"),
        format!("-max_len={max_len}"),
        format!("-timeout={TIMEOUT_SECONDS}"),
        format!("-rss_limit_mb={MEMORY_MIB}"),
        format!("-artifact_prefix={}/", artifacts.display()),
        "-print_final_stats=1".to_owned(),
    ]);
    command.arg(&corpus);
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() {
        return Ok(true);
    }
    println!("fuzz: {target} found a fault ({status})");
    for artifact in entries(&artifacts)?.into_iter().filter(|path| !known.contains(path)) {
        println!("  input: {}", artifact.display());
        println!("  again: {} {}", programs.join(target).display(), artifact.display());
    }
    Ok(false)
}

/// A folder's entries, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("cannot list {}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    Ok(paths)
}
