//! A folder with a home, a cache and a working folder of its own, in which the command is called.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const HEAPTALLY: &str = env!("CARGO_BIN_EXE_heaptally");

pub(crate) struct Sandbox {
    folder: TempDir,
}

/// What became of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code; `None`: a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let folder = TempDir::with_prefix("heaptally-cli-test-").unwrap();
        for name in ["home", "work"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// A path in it.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path in the working folder.
    pub(crate) fn work(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path("work").join(name)
    }

    /// The folder into which the command unpacks.
    pub(crate) fn cache(&self) -> PathBuf {
        self.path("cache/heaptally")
    }

    /// The command, to be called in the working folder.
    pub(crate) fn command<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(HEAPTALLY);
        command.args(arguments).current_dir(self.path("work"));
        command.env("HOME", self.path("home")).env("XDG_CACHE_HOME", self.path("cache"));
        for name in [
            "NO_COLOR",
            "LD_PRELOAD",
            "HEAPTALLY_PRELOAD",
            "HEAPTALLY_ORACLE",
            "HEAPTALLY_CONFIG",
            "CARGO_TARGET_DIR",
            "TMPDIR",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// Calls the command in the working folder.
    pub(crate) fn call<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Outcome {
        outcome(&mut self.command(arguments))
    }

    /// Writes a file into the working folder.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.work(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// The program of `heaptally demo`: it opens the windows `parse` and `look up`.
    pub(crate) fn demo(&self) -> PathBuf {
        self.call(["demo"]).expect(0);
        entries(&self.cache())
            .into_iter()
            .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("heaptally-demo-"))
            .unwrap()
    }

    /// A profile's report as JSON.
    pub(crate) fn json(&self, profile: &str) -> Value {
        let report = self.call(["report", "--json", profile]);
        report.expect(0);
        serde_json::from_str(&report.output).unwrap()
    }
}

impl Outcome {
    /// Checks the exit code, and that nothing panicked.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.errors.contains("panicked"), "{self:#?}");
        self
    }

    /// Checks that the command's own words hold these.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.errors.contains(word), "nothing says {word:?}: {self:#?}");
        }
        self
    }
}

pub(crate) fn outcome(command: &mut Command) -> Outcome {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome { code: status.code(), output: text(stdout), errors: text(stderr) }
}

/// The paths in a folder, sorted; none if it is not there.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Notes that a check was left out; fails where that is not wanted.
pub(crate) fn skip(reason: &str) {
    println!("skipped: {reason}");
    assert!(std::env::var("HEAPTALLY_TESTS_REQUIRE_TOOLS").as_deref() != Ok("1"), "skipped: {reason}");
}
