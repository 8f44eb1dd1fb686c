//! The files of a command by what it does with them: none is written that it reads, and none twice.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::config;
use crate::exit::{Failure, USAGE};
use crate::message::quote;
use crate::output::is_program;

/// A file of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    /// What it is to the command, as the end of a sentence: `the profile that is checked`; of one that is written the option.
    what: &'static str,
    path: PathBuf,
}

/// What tells files apart: what is there by its inode, so that links are no other files.
#[derive(PartialEq, Eq)]
enum Identity {
    There { device: u64, inode: u64 },
    New(PathBuf),
}

/// Files that are read, or written, for one reason.
pub(crate) fn roles<P: AsRef<Path>>(
    what: &'static str,
    paths: impl IntoIterator<Item = P>,
) -> impl Iterator<Item = Role> {
    paths.into_iter().map(move |path| Role { what, path: path.as_ref().to_owned() })
}

/// The file of the configuration, if there is one.
pub(crate) fn configuration() -> impl Iterator<Item = Role> {
    roles("the configuration", &config::current().file)
}

/// Refuses outputs that the command reads, or of which one would replace the other. Devices and pipes can take several.
///
/// # Errors
/// A [`Failure`] with the code of wrong usage, before anything is done.
pub(crate) fn check(outputs: &[Role], inputs: &[Role]) -> Result<(), Failure> {
    for (index, output) in outputs.iter().enumerate() {
        let Some(identity) = identity(&output.path) else { continue };
        let is_it = |other: &&Role| self::identity(&other.path).as_ref() == Some(&identity);
        if let Some(input) = inputs.iter().find(is_it) {
            return Err(refuse(output, &format!("it is {}", input.what)));
        }
        if let Some(other) = outputs.iter().take(index).find(is_it) {
            return Err(refuse(output, &format!("what {} writes goes there", other.what)));
        }
    }
    Ok(())
}

/// Refuses to write where a program is.
pub(crate) fn check_no_program(outputs: &[Role]) -> Result<(), Failure> {
    match outputs.iter().find(|output| output.path.is_file() && is_program(&output.path)) {
        Some(output) => Err(refuse(output, "a program is there, which would be lost")),
        None => Ok(()),
    }
}

fn refuse(output: &Role, why: &str) -> Failure {
    let Role { what, path } = output;
    Failure::new(
        USAGE,
        format!("cannot write {} ({what}): {why}\nname another file with {what}", quote(path)),
    )
}

/// What tells a path's file from others; `None`: a device, a pipe, a folder, or nothing that could be made.
fn identity(path: &Path) -> Option<Identity> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Some(Identity::There { device: found.dev(), inode: found.ino() }),
        Ok(_) => None,
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
            Some(Identity::New(folder.join(path.file_name()?)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_by_whatever_name() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        fs::write(path("read"), "").unwrap();
        fs::create_dir(path("folder")).unwrap();
        std::os::unix::fs::symlink("read", path("link")).unwrap();
        fs::hard_link(path("read"), path("other")).unwrap();
        let of = |what, name: &str| roles(what, [path(name)]).collect::<Vec<_>>();
        let input = of("the profile", "read");
        for name in ["read", "link", "other", "folder/../read"] {
            let failure = check(&of("--write", name), &input).unwrap_err();
            assert_eq!(failure.code, USAGE);
            assert!(failure.message.contains("(--write): it is the profile"), "{failure}");
        }
        check(&of("--write", "new"), &input).unwrap();
        let two = [of("-o", "new"), of("--report", "folder/../new")].concat();
        let failure = check(&two, &input).unwrap_err();
        assert!(failure.message.contains("(--report): what -o writes goes there"), "{failure}");
        let devices: Vec<Role> = roles("--write", ["/dev/null", "/dev/null"]).collect();
        check(&devices, &devices).unwrap();
    }
}
