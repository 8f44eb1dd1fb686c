//! Makes the archive that people download: the command with all that belongs to it, for every system with glibc 2.31 or
//! later.
//!
//! ```text
//! cargo xtask dist                       build, pack, check → target/dist/heaptally-x86_64-linux-gnu.tar.gz
//! cargo xtask dist --check FILE          look at an archive, and record with what is in it
//! cargo xtask dist --check FILE --root DIR   … in a system below DIR, as root: one of Debian 11, say
//! ```
//!
//! ```text
//! heaptally-VERSION-x86_64-linux-gnu/
//!   bin/heaptally                        carries the recorder and the demonstration
//!   bin/cargo-heaptally                  calls it
//!   include/heaptally.h, heaptally_benchmark.h, module.modulemap
//!   share/man/man1/heaptally*.1
//!   share/bash-completion/completions/heaptally, share/zsh/site-functions/_heaptally,
//!   share/fish/vendor_completions.d/heaptally.fish
//!   share/doc/heaptally/                 README.md, CHANGELOG.md, licences: ours, and those of what is linked in
//! ```
//!
//! What is built on a machine needs that machine's glibc, since symbols have the versions of what the linker found. So zig
//! links, which knows the symbols of every glibc (`pip install ziglang`, or `zig` in `PATH`), and compiles the C++ of the
//! Swift demangler. Its unwinder and its C++ library are linked in. The build script of the command hands the linker on
//! to the builds of recorder and demonstration, which are embedded.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

mod check;
mod licence;

/// The oldest glibc that will do.
const GLIBC: (u32, u32) = (2, 31);
const TARGET: &str = "x86_64-unknown-linux-gnu";
const USAGE: &str = "usage: cargo xtask dist [--check FILE [--root DIR]]";

/// What is in the archive, by its place in the sources.
const DOCUMENTS: [(&str, &str); 7] = [
    ("README.md", "share/doc/heaptally/README.md"),
    ("CHANGELOG.md", "share/doc/heaptally/CHANGELOG.md"),
    ("LICENSE-MIT", "share/doc/heaptally/LICENSE-MIT"),
    ("LICENSE-APACHE", "share/doc/heaptally/LICENSE-APACHE"),
    ("crates/preload/include/heaptally.h", "include/heaptally.h"),
    ("crates/preload/include/heaptally_benchmark.h", "include/heaptally_benchmark.h"),
    ("crates/preload/include/module.modulemap", "include/module.modulemap"),
];
/// The shells, and where their scripts go.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/heaptally"),
    ("zsh", "share/zsh/site-functions/_heaptally"),
    ("fish", "share/fish/vendor_completions.d/heaptally.fish"),
];
const THIRD_PARTY: &str = "share/doc/heaptally/THIRD-PARTY.txt";

/// Builds, packs and checks; or only checks.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let words: Vec<String> = words.collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            let archive = make()?;
            check::check(&archive, None)?;
            println!("dist: {}", archive.display());
            Ok(())
        }
        ["--check", file] => check::check(Path::new(file), None),
        ["--check", file, "--root", root] => check::check(Path::new(file), Some(Path::new(root))),
        _ => Err(USAGE.to_owned()),
    }
}

/// The archive's name, the same for every version, so that there is a place where the latest is.
const ARCHIVE: &str = "heaptally-x86_64-linux-gnu.tar.gz";

/// The one folder in the archive.
fn name() -> String {
    format!("heaptally-{}-x86_64-linux-gnu", env!("CARGO_PKG_VERSION"))
}

fn make() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().map_err(|error| format!("no folder {}: {error}", root.display()))?;
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
    let folder = target.join("dist");
    let command = build(&root, &folder)?;

    let packed = folder.join(name());
    if packed.exists() {
        fs::remove_dir_all(&packed).map_err(|error| describe("remove", &packed, &error))?;
    }
    place(&command, &packed.join("bin/heaptally"), 0o755)?;
    place(&command.with_file_name("cargo-heaptally"), &packed.join("bin/cargo-heaptally"), 0o755)?;
    for (from, to) in DOCUMENTS {
        place(&root.join(from), &packed.join(to), 0o644)?;
    }
    for (shell, to) in COMPLETIONS {
        let script = succeed(Command::new(&command).args(["completions", shell]))?;
        write(&packed.join(to), &script)?;
    }
    let pages = packed.join("share/man/man1");
    succeed(Command::new(&command).args(["man", "--dir"]).arg(&pages))?;
    write(&packed.join(THIRD_PARTY), licence::third_party(&root)?.as_bytes())?;

    let archive = folder.join(ARCHIVE);
    // The same files give the same bytes.
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u+w,go-w",
        "--format=ustar",
    ]);
    tar.arg(format!("--mtime=@{}", env::var("SOURCE_DATE_EPOCH").unwrap_or_else(|_| "0".to_owned())));
    tar.args(["--use-compress-program=gzip -9n", "-cf"]).arg(&archive).arg("-C").arg(&folder).arg(name());
    succeed(&mut tar)?;
    Ok(archive)
}

/// Builds the command with zig as its linker; returns its path.
fn build(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    let zig = zig()?;
    let tools = folder.join("tool");
    let tool = |name: &str, language: &str| -> Result<PathBuf, String> {
        let path = tools.join(name);
        write(&path, script(&zig, language).as_bytes())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .map_err(|error| describe("change", &path, &error))?;
        Ok(path)
    };
    // The names tell rustc and the crate `cc` whose options they take.
    let (linker, c, cpp) = (tool("zig-gcc", "cc")?, tool("zig-clang", "cc")?, tool("zig-clang++", "c++")?);
    let suffix = TARGET.replace('-', "_");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["build", "--release", "--locked", "--package", "heaptally-cli"]);
    cargo.args(["--features", "swift", "--target", TARGET, "--target-dir"]).arg(folder);
    cargo.env(format!("CARGO_TARGET_{}_LINKER", suffix.to_uppercase()), linker);
    cargo.env(format!("CC_{suffix}"), c).env(format!("CXX_{suffix}"), cpp).env("CXXSTDLIB", "c++");
    // Names of functions stay, for a fault's backtrace.
    cargo.env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") || text == "RUSTFLAGS" {
            cargo.env_remove(name);
        }
    }
    let status = cargo.status().map_err(|error| format!("cannot run {cargo:?}: {error}"))?;
    if !status.success() {
        return Err(format!("{cargo:?} failed ({status})"));
    }
    Ok(folder.join(TARGET).join("release/heaptally"))
}

/// The words that call zig.
fn zig() -> Result<Vec<String>, String> {
    let candidates = [vec!["zig"], vec!["python3", "-m", "ziglang"]];
    for candidate in candidates {
        let mut command = Command::new(candidate[0]);
        if command.args(&candidate[1..]).arg("version").output().is_ok_and(|output| output.status.success()) {
            return Ok(candidate.into_iter().map(str::to_owned).collect());
        }
    }
    Err("there is no zig\ninstall it with `pip install ziglang`, in a virtual environment for instance"
        .to_owned())
}

/// A script that calls zig as a compiler, or as the linker that rustc takes for gcc. What the target is, zig is told in
/// its own words; the unwinder and the C++ library are its own.
fn script(zig: &[String], language: &str) -> String {
    let zig: Vec<String> = zig.iter().map(|word| format!("'{word}'")).collect();
    let (zig, (major, minor)) = (zig.join(" "), GLIBC);
    format!(
        r#"#!/bin/sh
for word do
    shift
    case $word in
        --target=*) ;;
        -lgcc_s) set -- "$@" -lunwind ;;
        -lstdc++) set -- "$@" -lc++ ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec {zig} {language} -target x86_64-linux-gnu.{major}.{minor} "$@"
"#
    )
}

fn place(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    let bytes = fs::read(from).map_err(|error| describe("read", from, &error))?;
    write(to, &bytes)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(|error| describe("change", to, &error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    // An equal file stays as it is, so that cargo sees no other linker.
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| describe("create", folder, &error))?;
    }
    fs::write(path, bytes).map_err(|error| describe("write", path, &error))
}

/// Runs a command that must end well; returns what it printed.
fn succeed(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed ({}):\n{errors}", output.status))
}

fn describe(action: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {action} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_is_told_the_oldest_glibc() {
        let scratch = env::temp_dir().join(format!("heaptally-dist-test-{}", std::process::id()));
        let path = scratch.join("zig-gcc");
        write(&path, script(&["printf".to_owned(), "%s|".to_owned()], "cc").as_bytes()).unwrap();
        let mut shell = Command::new("sh");
        shell.arg(&path).args(["--target=x", "-lgcc_s", "a b", "-lstdc++", "*", "-o", "x"]);
        let printed = succeed(&mut shell).unwrap();
        fs::remove_dir_all(&scratch).unwrap();
        assert_eq!(
            String::from_utf8(printed).unwrap(),
            "cc|-target|x86_64-linux-gnu.2.31|-lunwind|a b|-lc++|*|-o|x|"
        );
    }
}
