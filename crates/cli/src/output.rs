//! The profile's file: found writable before the program starts, written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::exit::Failure;
use crate::message::quote;

/// A place for the profile.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Written beside its final place, and then moved there.
    Beside(NamedTempFile),
    /// A device or a pipe, written as it is.
    Direct(File),
}

impl Output {
    /// Makes sure that the file can be written.
    pub(crate) fn prepare(path: &Path) -> Result<Self, Failure> {
        let opened = match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(found) if !found.is_file() => OpenOptions::new().write(true).open(path).map(Kind::Direct),
            _ => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                NamedTempFile::with_prefix_in(".heaptally-", folder.unwrap_or(Path::new(".")))
                    .map(Kind::Beside)
            }
        };
        match opened {
            // The program may change the working folder of nobody but itself, but the path is told to the user.
            Ok(kind) => Ok(Self { path: path.to_owned(), kind }),
            Err(error) => Err(Failure::recorder(format!(
                "cannot write the profile {}: {error}\nname another file with -o; the program was not started",
                quote(path)
            ))),
        }
    }

    /// The final path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the profile.
    pub(crate) fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path;
        let written = match self.kind {
            Kind::Direct(mut file) => file.write_all(bytes),
            Kind::Beside(mut file) => file.write_all(bytes).and_then(|()| {
                use std::os::unix::fs::PermissionsExt;
                // As a file that is simply created: the temporary one was the user's alone.
                let mask = rustix::process::umask(rustix::fs::Mode::empty());
                rustix::process::umask(mask);
                file.as_file().set_permissions(fs::Permissions::from_mode(0o666 & !mask.bits()))?;
                file.persist(&path).map(drop).map_err(|error| error.error)
            }),
        };
        written.map_err(|error| {
            Failure::recorder(format!(
                "cannot write the profile {}: {error}\nmake room there, or name another file with -o, and run again",
                quote(&path)
            ))
        })
    }
}
