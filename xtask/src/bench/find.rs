//! Which modes this machine has, and in which versions.

use super::mode::{Mode, Tool};
use super::workload::{Workspace, first_line};
use crate::process::{in_workspace, succeed};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY_FOLDERS: [&str; 6] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
];

/// A mode, and why this machine does not have it.
pub(crate) type Missing = (Mode, String);

/// The modes that are there, in their order, and for each other one why it is not.
pub(crate) fn all(
    modes: &[Mode],
    heaptally: &Path,
    workspace: &Workspace,
) -> Result<(Vec<Tool>, Vec<Missing>), String> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for mode in modes.iter().copied() {
        match find(mode, heaptally, workspace)? {
            Ok((version, path)) => found.push(Tool { mode, version, path }),
            Err(reason) => missing.push((mode, reason)),
        }
    }
    Ok((found, missing))
}

/// Version and path, or why there is none. What is built here must be buildable.
fn find(
    mode: Mode,
    heaptally: &Path,
    workspace: &Workspace,
) -> Result<Result<(String, String), String>, String> {
    let found = match mode {
        Mode::Native => Ok((String::new(), String::new())),
        Mode::Heaptally | Mode::HeaptallyNoLifetimes => {
            let version =
                first_line(heaptally, &["--version"]).ok_or("heaptally does not say its version")?;
            Ok((version, heaptally.display().to_string()))
        }
        Mode::Heaptrack | Mode::HeaptrackRaw => program("heaptrack", &["--version"]),
        Mode::Dhat => program("valgrind", &["--version"]),
        Mode::Gperftools => library(&["libtcmalloc.so.4", "libtcmalloc.so"]),
        Mode::Jemalloc => library(&["libjemalloc.so.2", "libjemalloc.so"]).and_then(profiling_jemalloc),
        Mode::Memusage => library(&["libmemusage.so"]),
        Mode::DhatRs => dhat_version().map(|version| (format!("dhat {version}"), String::new())),
        Mode::Memray => memray(),
        Mode::Empty | Mode::Count | Mode::Frames => {
            let path = reference(mode.name(), workspace)?;
            Ok(("of bench/programs/reference".to_owned(), path.display().to_string()))
        }
    };
    Ok(found)
}

fn program(name: &str, arguments: &[&str]) -> Result<(String, String), String> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let path = env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    let path = path.ok_or_else(|| format!("{name} is not in PATH"))?;
    let version = first_line(&path, arguments).ok_or_else(|| format!("{name} does not say its version"))?;
    Ok((version, path.display().to_string()))
}

fn library(names: &[&str]) -> Result<(String, String), String> {
    let places = names.iter().flat_map(|name| LIBRARY_FOLDERS.map(|folder| Path::new(folder).join(name)));
    let path = places.into_iter().find(|path| path.is_file());
    let path = path.ok_or_else(|| format!("{} is in no usual folder", names[0]))?;
    Ok((version_of(&path), path.display().to_string()))
}

/// Of the package that a file belongs to, where dpkg knows, else the name that a version is part of.
fn version_of(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let owner = succeed(Command::new("dpkg-query").arg("--search").arg(&real)).ok();
    let package = owner.and_then(|line| Some(line.split_once(": ")?.0.to_owned()));
    let shown = package.and_then(|package| {
        succeed(Command::new("dpkg-query").args(["--show", "--showformat=${Package} ${Version}", &package]))
            .ok()
    });
    shown.unwrap_or_else(|| real.display().to_string())
}

/// Some distributions build it without its profiler; it then complains of the option.
fn profiling_jemalloc((version, path): (String, String)) -> Result<(String, String), String> {
    let variables = [("LD_PRELOAD", path.as_str()), ("MALLOC_CONF", "prof:true")];
    let output = Command::new("true").envs(variables).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("prof:true") {
        return Err(format!("{version} is built without profiling"));
    }
    Ok((version, path))
}

fn memray() -> Result<(String, String), String> {
    let python = python().ok_or("python3 is not in PATH")?;
    let version = first_line(&python, &["-m", "memray", "--version"]);
    let version =
        version.ok_or("python3 has no module memray (a virtual environment that has it can be activated)")?;
    Ok((format!("memray {version}"), python.display().to_string()))
}

/// The interpreter itself: the one in `PATH` may be a script.
pub(crate) fn python() -> Option<PathBuf> {
    first_line(Path::new("python3"), &["-c", "import sys; print(sys.executable)"]).map(PathBuf::from)
}

/// As the package's lock file has it.
fn dhat_version() -> Result<String, String> {
    let path = in_workspace("bench/programs/json/Cargo.lock");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = text.lines().skip_while(|line| *line != "name = \"dhat\"");
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = "));
    version.map(|version| version.trim_matches('"').to_owned()).ok_or_else(|| "not in Cargo.lock".to_owned())
}

/// Builds a reference line.
fn reference(name: &str, workspace: &Workspace) -> Result<PathBuf, String> {
    let library = workspace.path(&format!("{name}.so"));
    let source = in_workspace(&format!("bench/programs/reference/{name}.c"));
    let options = [
        "-std=gnu11",
        "-O2",
        "-fno-omit-frame-pointer",
        "-fno-builtin",
        "-fPIC",
        "-shared",
        "-pthread",
        "-o",
    ];
    succeed(Command::new("gcc").args(options).arg(&library).arg(source))?;
    Ok(library)
}
