//! Scratch folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::case::Case;

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// An empty one.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("heaptally-test-").tempdir();
        Self { folder: folder.unwrap_or_else(|error| panic!("no scratch folder: {error}")) }
    }

    /// A copy of the folder of `case`, built.
    ///
    /// # Panics
    /// When it cannot be copied or built.
    pub fn of_case(case: &Case) -> Self {
        let scratch = Self::new();
        let name = case.source.file_name().unwrap_or_default();
        fs::copy(&case.source, scratch.path(name)).unwrap_or_else(|error| panic!("{}: {error}", case.id));
        scratch.shell(&case.build);
        scratch
    }

    /// The path of `name` in it.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Runs a shell command in it, and returns what it printed.
    ///
    /// # Panics
    /// When it fails.
    pub fn shell(&self, command: &str) -> String {
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.folder())
            .output()
            .unwrap_or_else(|error| panic!("sh does not start: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{command}\n{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}
