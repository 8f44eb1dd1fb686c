//! Compilers and programs of the machine, which may be missing.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

static SKIPPED: AtomicU32 = AtomicU32::new(0);

/// The path of `name`, where `PATH` has it.
pub fn which(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The system's own `name` from `/usr/bin` or `/bin`, else the one that `PATH` has: the first may be a wrapper.
pub fn system(name: &str) -> Option<PathBuf> {
    let folders = [Path::new("/usr/bin"), Path::new("/bin")];
    folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()).or_else(|| which(name))
}

/// Whether all `names` are there. If not, the test is to return: it is counted as skipped, or it fails where
/// `HEAPTALLY_TESTS_REQUIRE_TOOLS` is `1`.
///
/// # Panics
/// When one is missing and tools are required.
pub fn have(names: &[&str]) -> bool {
    match names.iter().find(|name| system(name).is_none()) {
        Some(name) => {
            skip(&format!("{name} missing"));
            false
        }
        None => true,
    }
}

/// Counts the running test as skipped and says why, also where the test's output is captured.
///
/// # Panics
/// When tools are required.
pub fn skip(reason: &str) {
    assert!(!are_required(), "skipped: {reason}");
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    // NOTE: not `eprintln!`, whose text the test harness keeps to itself when the test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {reason} ({test}; {count} so far)");
}

/// Whether a missing tool is a failure: `HEAPTALLY_TESTS_REQUIRE_TOOLS` is `1`.
pub fn are_required() -> bool {
    env::var("HEAPTALLY_TESTS_REQUIRE_TOOLS").as_deref() == Ok("1")
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What `gcc -print-prog-name=NAME` says, where that is a file: the compiler proper, `cc1plus`.
pub fn compiler_part(name: &str) -> Option<PathBuf> {
    let output = Command::new("gcc").arg(format!("-print-prog-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}
