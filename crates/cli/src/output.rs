//! The files that commands write, the profile and the status of a run and the sum of profiles: found writable before
//! anything is done, written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::exit::{Failure, UNREADABLE};
use crate::message::quote;

/// What is written, as messages name it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// The profile, `-o`.
    Profile,
    /// What became of program and recorder, `--json-status`.
    Status,
    /// The sum of several profiles, `merge -o`.
    Sum,
    /// A profile under a name, `--save-baseline`.
    Baseline,
}

/// A place for a file.
#[derive(Debug)]
pub(crate) struct Output {
    content: Content,
    /// As the user named it.
    path: PathBuf,
    kind: Kind,
}

impl Content {
    fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Status => "status",
            Self::Sum => "sum",
            Self::Baseline => "baseline",
        }
    }

    fn option(self) -> &'static str {
        match self {
            Self::Profile | Self::Sum => "-o",
            Self::Status => "--json-status",
            Self::Baseline => "--save-baseline",
        }
    }
}

impl Content {
    /// What to do in place of naming the standard output.
    fn instead_of_standard_output(self) -> String {
        match self {
            Self::Profile | Self::Status | Self::Baseline => format!(
                "the standard output is the program's own\nname a file with {}, or ./- for a file of that name{}",
                self.option(),
                self.not_started()
            ),
            Self::Sum => {
                format!("it is not short for the standard output\nuse {} /dev/stdout", self.option())
            }
        }
    }

    /// An error with the code that is meant for it.
    fn failure(self, message: String) -> Failure {
        match self {
            Self::Profile | Self::Status | Self::Baseline => Failure::recorder(message),
            Self::Sum => Failure::new(UNREADABLE, message),
        }
    }

    fn not_started(self) -> &'static str {
        match self {
            Self::Profile | Self::Status | Self::Baseline => "; the program was not started",
            Self::Sum => "",
        }
    }
}

#[derive(Debug)]
enum Kind {
    /// Written to a temporary file in `folder`, and then moved to `target`. Both are absolute.
    Beside { folder: PathBuf, target: PathBuf },
    /// A device or a pipe, written as it is.
    Direct(File),
}

impl Output {
    /// Makes sure that the file can be written. The folder is as it was afterwards: the program may look into it.
    pub(crate) fn prepare(path: &Path, content: Content) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Err(content.failure(format!(
                "cannot write the {} to `-`: {}",
                content.name(),
                content.instead_of_standard_output()
            )));
        }
        let opened = match fs::metadata(path) {
            Ok(found) if found.is_file() && is_program(path) => {
                Err(io::Error::other("a program is there, which would be lost"))
            }
            Ok(found) if found.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(found) if !found.is_file() => OpenOptions::new().write(true).open(path).map(Kind::Direct),
            // Through a link, so that the link stays.
            Ok(_) => path.canonicalize().and_then(|target| beside(&target)),
            Err(_) => beside(path),
        };
        match opened {
            Ok(kind) => Ok(Self { content, path: path.to_owned(), kind }),
            Err(error) => Err(content.failure(format!(
                "cannot write the {} {}: {error}\nname another file with {}{}",
                content.name(),
                quote(path),
                content.option(),
                content.not_started(),
            ))),
        }
    }

    /// Refuses two outputs of which one would replace the other. Devices and pipes can take both.
    pub(crate) fn check_differs(&self, other: &Self) -> Result<(), Failure> {
        match (&self.kind, &other.kind) {
            (Kind::Beside { target, .. }, Kind::Beside { target: of_other, .. }) if target == of_other => {
                Err(Failure::recorder(format!(
                    "cannot write the {} {}: the {} goes there\nname another file with {}; the program was not started",
                    self.content.name(),
                    quote(&self.path),
                    other.content.name(),
                    self.content.option(),
                )))
            }
            _ => Ok(()),
        }
    }

    /// The final path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a file, and no device or pipe.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, Kind::Beside { .. })
    }

    /// Writes the file.
    pub(crate) fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        let Self { content, path, .. } = self;
        let written = match self.kind {
            Kind::Direct(mut file) => file.write_all(bytes),
            Kind::Beside { folder, target } => temporary(&folder).and_then(|mut file| {
                file.write_all(bytes).map_err(without_path)?;
                // As a file that is simply created: the temporary one is the user's alone.
                let mask = rustix::process::umask(rustix::fs::Mode::empty());
                rustix::process::umask(mask);
                file.as_file().set_permissions(fs::Permissions::from_mode(0o666 & !mask.bits()))?;
                file.persist(&target).map(drop).map_err(|error| error.error)
            }),
        };
        written.map_err(|error| {
            content.failure(format!(
                "cannot write the {} {}: {error}\nmake room there, or name another file with {}, and run again",
                content.name(),
                quote(&path),
                content.option(),
            ))
        })
    }
}

fn beside(path: &Path) -> io::Result<Kind> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Absolute, for the working folder may be renamed while the program runs.
    let folder = folder.canonicalize()?;
    drop(temporary(&folder)?);
    Ok(Kind::Beside { target: folder.join(name), folder })
}

/// Whether a file can be executed by what it begins with: an ELF object or a script.
pub(crate) fn is_program(path: &Path) -> bool {
    let mut begin = [0; 4];
    let length = File::open(path).and_then(|mut file| file.read(&mut begin)).unwrap_or(0);
    begin[..length].starts_with(b"\x7fELF") || begin[..length].starts_with(b"#!")
}

/// The file that a path leads to through links, of which the last one may lead to nothing.
pub(crate) fn behind_links(path: &Path) -> PathBuf {
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        let Ok(next) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    path
}

fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    NamedTempFile::with_prefix_in(".heaptally-", folder).map_err(without_path)
}

/// An error without the path of a temporary file, which nobody asked for.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().rsplit_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_there_before_it_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.pb.gz");
        let output = Output::prepare(&path, Content::Profile).unwrap();
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        output.write(b"profile").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"profile");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
        let plain = scratch.path().join("plain");
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
    }

    #[test]
    fn a_link_stays_a_link() {
        let scratch = tempfile::tempdir().unwrap();
        let (target, link) = (scratch.path().join("target"), scratch.path().join("link"));
        fs::write(&target, "older").unwrap();
        symlink(&target, &link).unwrap();
        Output::prepare(&link, Content::Profile).unwrap().write(b"profile").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"profile");
    }

    #[test]
    fn devices_are_written_as_they_are() {
        Output::prepare(Path::new("/dev/null"), Content::Profile).unwrap().write(b"profile").unwrap();
        let error =
            Output::prepare(Path::new("/dev/full"), Content::Profile).unwrap().write(b"profile").unwrap_err();
        assert!(error.message.contains("No space left"), "{error}");
    }

    #[test]
    fn what_cannot_be_written_is_refused_beforehand() {
        let scratch = tempfile::tempdir().unwrap();
        for path in
            [scratch.path().to_owned(), scratch.path().join("no folder/a.pb.gz"), "/proc/a.pb.gz".into()]
        {
            let error = Output::prepare(&path, Content::Profile).unwrap_err();
            assert_eq!(error.code, crate::exit::RECORDER);
            assert!(error.message.contains("was not started"), "{error}");
            assert!(!error.message.contains(".heaptally-"), "{error}");
        }
    }

    #[test]
    fn programs_and_the_standard_output_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        for (name, begin) in [("program", "\x7fELF\x02"), ("script", "#!/bin/sh\n")] {
            let path = scratch.path().join(name);
            fs::write(&path, begin).unwrap();
            let error = Output::prepare(&path, Content::Profile).unwrap_err();
            assert!(error.message.contains("a program is there"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), begin);
        }
        for (content, next) in [(Content::Profile, "./-"), (Content::Sum, "/dev/stdout")] {
            let error = Output::prepare(Path::new("-"), content).unwrap_err();
            assert!(error.message.contains(next), "{error}");
        }
    }

    #[test]
    fn a_folder_that_went_away_is_said() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let output = Output::prepare(&folder.join("a.pb.gz"), Content::Profile).unwrap();
        fs::remove_dir(&folder).unwrap();
        let error = output.write(b"profile").unwrap_err();
        assert!(error.message.contains("cannot write the profile"), "{error}");
        assert!(!error.message.contains(".heaptally-") && error.message.contains("os error 2"), "{error}");
    }
}
