//! Proves that the command installs from its packages alone, without the workspace and, once its dependencies are
//! fetched, without the network: package everything, unpack it elsewhere, install with an empty `CARGO_HOME`, run.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Members that are never published. The preload library's sources are part of the command's package.
const PRIVATE: [&str; 3] = ["heaptally-preload", "integration-tests", "xtask"];
const COMMAND: &str = "heaptally-cli";
/// The package that users add to their own, which the command does not build.
const LIBRARY: &str = "heaptally";

/// Runs the proof in a folder of its own, which is removed when all is well.
pub(crate) fn run() -> Result<(), String> {
    let scratch = env::temp_dir().join(format!("heaptally-package-check-{}", std::process::id()));
    make_folder(&scratch)?;
    let packages = package(&scratch)?;
    let unpacked = unpack(&packages, &scratch.join("crates"))?;
    let installed = install(&unpacked, &scratch)?;
    try_out(&installed, &scratch)?;
    println!("package-check: {} packages, {} works", packages.len(), installed.display());
    fs::remove_dir_all(&scratch).map_err(|error| format!("cannot remove {}: {error}", scratch.display()))
}

/// Packages all public members; returns the archives. What is in them is built below, so cargo need not.
fn package(scratch: &Path) -> Result<Vec<PathBuf>, String> {
    let target = scratch.join("target");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = cargo();
    cargo.current_dir(root).args(["package", "--workspace", "--allow-dirty", "--no-verify", "--quiet"]);
    for member in PRIVATE {
        cargo.args(["--exclude", member]);
    }
    succeed(cargo.arg("--target-dir").arg(&target))?;
    let archives = list(&target.join("package"))?.into_iter();
    Ok(archives.filter(|path| path.extension().is_some_and(|ending| ending == "crate")).collect())
}

/// Unpacks the archives; returns each package's name and folder.
fn unpack(archives: &[PathBuf], into: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    make_folder(into)?;
    for archive in archives {
        succeed(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(into))?;
    }
    let ending = concat!("-", env!("CARGO_PKG_VERSION"));
    let named = |folder: PathBuf| {
        let name = folder.file_name()?.to_str()?.strip_suffix(ending)?.to_owned();
        Some((name, folder))
    };
    Ok(list(into)?.into_iter().filter_map(named).collect())
}

/// Installs the command with an empty `CARGO_HOME` in which our packages stand for those of the registry; the network
/// serves for fetching only.
fn install(packages: &[(String, PathBuf)], scratch: &Path) -> Result<PathBuf, String> {
    let home = scratch.join("cargo-home");
    make_folder(&home)?;
    let mut patches = "[patch.crates-io]\n".to_owned();
    for (name, folder) in packages.iter().filter(|(name, _)| name != COMMAND && name != LIBRARY) {
        patches.push_str(&format!("{name} = {{ path = {:?} }}\n", folder.display().to_string()));
    }
    let source = find(packages, COMMAND)?;
    let library = find(packages, LIBRARY)?;
    let config = home.join("config.toml");
    fs::write(&config, patches).map_err(|error| format!("cannot write {}: {error}", config.display()))?;

    let manifest = source.join("Cargo.toml");
    succeed(cargo().env("CARGO_HOME", &home).args(["fetch", "--quiet", "--manifest-path"]).arg(manifest))?;
    let root = scratch.join("installed");
    let mut cargo = cargo();
    cargo.current_dir(scratch).env("CARGO_HOME", &home).env("CARGO_NET_OFFLINE", "true");
    cargo.args(["install", "--quiet", "--path"]).arg(source).arg("--root").arg(&root);
    succeed(&mut cargo)?;

    let mut check = self::cargo();
    check
        .env("CARGO_HOME", &home)
        .args(["check", "--quiet", "--manifest-path"])
        .arg(library.join("Cargo.toml"));
    succeed(&mut check)?;
    Ok(root.join("bin/heaptally"))
}

fn find<'a>(packages: &'a [(String, PathBuf)], wanted: &str) -> Result<&'a Path, String> {
    let found = packages.iter().find(|(name, _)| name == wanted);
    found.map(|(_, folder)| folder.as_path()).ok_or_else(|| format!("{wanted} was not packaged"))
}

/// Has the installed command record its own demonstration, and another program.
fn try_out(heaptally: &Path, scratch: &Path) -> Result<(), String> {
    // A call site with its function, file and line: the program brings its line tables.
    let demo = call(heaptally, &["demo"], scratch)?;
    if !demo.lines().any(|line| line.contains("heaptally_demo::insert  ") && line.contains("main.rs:")) {
        return Err(format!("`demo` shows no call site of its program:\n{demo}"));
    }

    let profile = scratch.join("ls.pb.gz").display().to_string();
    let marker = scratch.join("ls-was-here");
    make_folder(&marker)?;
    let listed =
        call(heaptally, &["run", "-o", &profile, "--", "/bin/ls", &scratch.display().to_string()], scratch)?;
    if !listed.lines().any(|line| line == "ls-was-here") {
        return Err(format!("`run` lost what /bin/ls prints:\n{listed}"));
    }
    let report = call(heaptally, &["report", &profile], scratch)?;
    if !(report.contains("window \"process\"") && report.contains("all ") && report.contains(" complete")) {
        return Err(format!("not all stacks of /bin/ls are complete:\n{report}"));
    }
    Ok(())
}

/// Calls the installed command; returns what it printed.
fn call(heaptally: &Path, arguments: &[&str], scratch: &Path) -> Result<String, String> {
    let mut command = Command::new(heaptally);
    command.args(arguments).current_dir(scratch).env("XDG_CACHE_HOME", scratch.join("cache"));
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}\n{errors}{text}", output.status))
}

fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What the cargo that runs this task set for it, and where the caller keeps build results.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text == "CARGO_TARGET_DIR" || text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_")
        {
            command.env_remove(name);
        }
    }
    command
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed ({status})")) }
}

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))
}

/// A folder's entries, sorted.
fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("cannot list {}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    Ok(paths)
}
