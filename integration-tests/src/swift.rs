//! Prebuilt Swift programs, which need a machine with Swift to build and none to run.

use std::env;
use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;

use crate::command::workspace;
use crate::run::Run;
use crate::scratch::Scratch;

/// The folder of the programs: `bin` and the runtime in `lib`. `None`: they are not there, which is said.
///
/// # Panics
/// When the folder that `HEAPTALLY_SWIFT_PROGRAMS` names is not there.
pub fn folder() -> Option<PathBuf> {
    if let Some(named) = env::var_os("HEAPTALLY_SWIFT_PROGRAMS").map(PathBuf::from) {
        assert!(named.join("bin").is_dir(), "no Swift programs in {}", named.display());
        return Some(named);
    }
    let folder = workspace().join("../shared/swift");
    if folder.join("bin").is_dir() {
        return Some(folder);
    }
    let _ = writeln!(
        std::io::stderr(),
        "skipped: no Swift programs (HEAPTALLY_SWIFT_PROGRAMS names their folder)"
    );
    None
}

/// A run of one of the programs. `None`: there are none.
pub fn run(scratch: &Scratch, program: &str, arguments: &[&str]) -> Option<Run> {
    let folder = folder()?;
    let mut words = vec![folder.join("bin").join(program).into_os_string()];
    words.extend(arguments.iter().map(|word| OsStr::new(word).to_owned()));
    let libraries = [folder.join("lib"), folder.join("bin")].map(|folder| folder.into_os_string());
    Some(Run::new(scratch, words).environment("LD_LIBRARY_PATH", libraries.join(OsStr::new(":"))))
}
