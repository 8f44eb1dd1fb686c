//! A subject's two versions, built and recorded.
//!
//! ```text
//! <folder>/<subject>/base/subject     its source as it was published
//!                    change/subject   the same in another order, with other lines; planted in turn
//!                    <version>-<optimisation>/…   builds and profiles
//! ```

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::source::{self, Language};
use super::subject::Subject;
use crate::process::{cargo, in_workspace, succeed};

/// How a program is optimised: words for a manifest, or options of g++.
pub(crate) type Optimisation = &'static str;

/// What a program is recorded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Information {
    Debug,
    Symbols,
}

impl Information {
    pub(crate) const ALL: [Self; 2] = [Self::Debug, Self::Symbols];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Symbols => "symbols",
        }
    }
}

/// A folder in which one version of a subject is built in one way.
#[derive(Debug)]
pub(crate) struct Build<'s> {
    pub(crate) subject: &'s Subject,
    pub(crate) folder: PathBuf,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// Writes a file, with its folders, unless it holds that already.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed(folder))?;
    }
    fs::write(path, text).map_err(failed(path))
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(failed(to))?;
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(failed(folder))?;
    }
    succeed(Command::new("cp").arg("-rL").arg(from).arg(to)).map(drop)
}

impl<'s> Build<'s> {
    /// The version `name` of a subject in a way; its source lies in `<folder>/subject`.
    pub(crate) fn new(
        subject: &'s Subject,
        folder: PathBuf,
        source: &Path,
        how: Optimisation,
    ) -> Result<Self, String> {
        let build = Self { subject, folder };
        copy(source, &build.folder.join("subject"))?;
        let driver = in_workspace("xtask/planted").join(subject.driver_file());
        let text = fs::read_to_string(&driver).map_err(failed(&driver))?;
        match subject.language {
            Language::Rust => {
                let harness = in_workspace("xtask/planted/harness.rs");
                let harness = fs::read_to_string(&harness).map_err(failed(&harness))?;
                write(&build.folder.join("driver/src/harness.rs"), &harness)?;
                write(&build.folder.join("driver/src/main.rs"), &text)?;
                write(&build.folder.join("driver/Cargo.toml"), &build.manifest(how)?)?;
            }
            Language::Cpp => {
                write(&build.folder.join("driver.cpp"), &text)?;
                write(&build.folder.join("options"), how)?;
            }
        }
        Ok(build)
    }

    fn manifest(&self, how: Optimisation) -> Result<String, String> {
        let heaptally = in_workspace("crates/heaptally");
        let heaptally = heaptally.canonicalize().map_err(failed(&heaptally))?;
        let how = how.replace("; ", "\n");
        Ok(format!(
            "[package]\nname = \"driver\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
             heaptally = {{ path = {heaptally:?} }}\n{} = {{ path = \"../subject\"{} }}\n\n\
             [lints.rust]\nunexpected_cfgs = \"allow\"\n\n[profile.release]\ndebug = 2\n{how}\n",
            self.subject.name, self.subject.features
        ))
    }

    /// Builds the program; its path. `flags` are further ones of the compiler.
    pub(crate) fn program(&self, flags: &str) -> Result<PathBuf, String> {
        match self.subject.language {
            Language::Rust => {
                let target = self.folder.join("target");
                let mut command = Command::new(cargo());
                command.current_dir(self.folder.join("driver"));
                command.args(["build", "--release", "--quiet"]).arg("--target-dir").arg(&target);
                command.env("RUSTFLAGS", format!("--cap-lints allow {flags}"));
                command.env_remove("CARGO_TARGET_DIR");
                succeed(&mut command)?;
                Ok(target.join("release/driver"))
            }
            Language::Cpp => {
                let program = self.folder.join("driver");
                let options = self.folder.join("options");
                let how = fs::read_to_string(&options).map_err(failed(&options))?;
                let include = self.folder.join("subject");
                let words = how
                    .split_whitespace()
                    .chain(flags.split_whitespace())
                    .chain(self.subject.features.split_whitespace());
                let mut command = Command::new("g++");
                command.args(["-std=c++20", "-g", "-w"]).args(words);
                command.arg("-I").arg(include).arg("-I").arg(in_workspace("crates/preload/include"));
                command.arg("-include").arg(in_workspace("xtask/planted/harness.hpp"));
                command.arg("-o").arg(&program).arg(self.folder.join("driver.cpp")).arg("-ldl");
                succeed(&mut command)?;
                Ok(program)
            }
        }
    }

    /// Records a program with what it knows of itself, and without debug information; the profiles, in that order.
    pub(crate) fn record(&self, heaptally: &Path, program: &Path) -> Result<[PathBuf; 2], String> {
        let record = |information: Information| -> Result<PathBuf, String> {
            let folder = self.folder.join(information.name());
            fs::create_dir_all(&folder).map_err(failed(&folder))?;
            let own = folder.join("driver");
            match information {
                Information::Debug => fs::copy(program, &own).map(drop).map_err(failed(&own))?,
                Information::Symbols => {
                    succeed(Command::new("strip").arg("-g").arg("-o").arg(&own).arg(program))?;
                }
            }
            let profile = folder.join("driver.pb.gz");
            let words = [
                OsStr::new("run"),
                "-q".as_ref(),
                "-o".as_ref(),
                profile.as_os_str(),
                "--".as_ref(),
                own.as_os_str(),
            ];
            succeed(Command::new(heaptally).args(words))?;
            Ok(profile)
        };
        let [debug, symbols] = Information::ALL.map(record);
        Ok([debug?, symbols?])
    }
}

/// The files of a subject that may be planted, as paths below its folder.
pub(crate) fn files(subject: &Subject, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut open = vec![folder.join(subject.sources)];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).map_err(failed(&at))?.flatten() {
            let path = entry.path();
            let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
            let is_source = match subject.language {
                Language::Rust => extension == "rs",
                Language::Cpp => ["h", "hpp"].contains(&extension),
            };
            if path.is_dir() {
                open.push(path);
            } else if is_source && let Ok(relative) = path.strip_prefix(folder) {
                files.push(relative.to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Makes the change's source of the base's: other lines, and in Rust another form and another order of items.
pub(crate) fn rearrange(subject: &Subject, folder: &Path, seed: u64) -> Result<(), String> {
    let files = files(subject, folder)?;
    if subject.language == Language::Rust {
        let manifest = folder.join("Cargo.toml");
        let manifest = fs::read_to_string(&manifest).map_err(failed(&manifest))?;
        let edition = manifest.lines().find_map(|line| line.strip_prefix("edition = ")).unwrap_or("\"2015\"");
        let edition = edition.trim_matches('"');
        let mut command = Command::new("rustfmt");
        command.args([
            "--edition",
            edition,
            "--config",
            "max_width=140,use_small_heuristics=Max,tab_spaces=2",
        ]);
        // NOTE: a file that it cannot format it leaves as it is.
        let _ = command.arg(folder.join(subject.sources).join("lib.rs")).output();
    }
    for file in &files {
        let path = folder.join(file);
        // NOTE: what is no text is nothing that could be planted.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let mut random = super::random::Random::new(seed, &[subject.name, &file.to_string_lossy()]);
        let text = match subject.language {
            Language::Rust => source::shuffle(&text, &mut random),
            Language::Cpp => text,
        };
        write(&path, &source::drift(&text, subject.language, &mut random))?;
    }
    Ok(())
}
