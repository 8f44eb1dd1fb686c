//! Files that no package of the system brings, from a registry, each pinned by its hash.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::command::target_folder;
use crate::tool;

/// A file of a registry.
#[derive(Clone, Copy, Debug)]
pub struct Download {
    /// Its name in the folder of downloads.
    pub name: &'static str,
    /// Where it comes from.
    pub url: &'static str,
    /// The SHA-256 of its content, in lower-case hexadecimal digits.
    pub sha256: &'static str,
}

impl Download {
    /// The path of the file. It is fetched where `HEAPTALLY_TESTS_REQUIRE_TOOLS` is `1`, and kept in the target folder;
    /// elsewhere tests do not reach out, and the running one is skipped where the file is not there yet.
    ///
    /// # Panics
    /// When it cannot be fetched, or has another content.
    pub fn path(&self) -> Option<PathBuf> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = target_folder().join("downloads");
        let path = folder.join(self.name);
        if path.exists() && sha256(&path) == self.sha256 {
            return Some(path);
        }
        if !tool::are_required() {
            tool::skip(&format!("{} is not there: get it from {}", path.display(), self.url));
            return None;
        }
        fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        // Renamed when it is whole and right.
        let part = folder.join(format!("{}.{}", self.name, std::process::id()));
        let output = Command::new("curl")
            .args(["-fsSL", "--retry", "3", "--max-time", "60", "-o"])
            .arg(&part)
            .arg(self.url)
            .output()
            .unwrap_or_else(|error| panic!("curl does not start: {error}"));
        assert!(
            output.status.success(),
            "{} cannot be fetched:\n{}",
            self.url,
            String::from_utf8_lossy(&output.stderr)
        );
        let found = sha256(&part);
        assert!(found == self.sha256, "{} has the hash {found}, not {}", self.url, self.sha256);
        fs::rename(&part, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Some(path)
    }
}

fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output();
    let output = output.unwrap_or_else(|error| panic!("sha256sum does not start: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().next().unwrap_or_default().to_owned()
}
