//! The preload library and the demonstration's program: embedded in this command, unpacked when needed.
//!
//! They go to a cache folder of the user's own, each under a name with a hash of its content: to the `cache-folder` of
//! the configuration, or else to
//!
//! 1. `$XDG_CACHE_HOME/heaptally`,
//! 2. `$HOME/.cache/heaptally`,
//! 3. `heaptally-UID` in the folder for temporary files, then in `/tmp`,
//!
//! the first that will do. A folder will do if its path has nothing in it that the loader takes for a separator, if it is
//! no link, belongs to the user and to no one else (0700), lies where files can be executed, and not where anyone could
//! put another folder in its place (in one that everyone may write to, without the sticky bit). A file that is there
//! already is compared with the embedded bytes before it is used. When one is written, those of other versions that nobody
//! has used for 30 days are removed; a file's time is that of its last use, to a day. `HEAPTALLY_PRELOAD` names another library, as it is:
//! for heaptally's own developers.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatVfsMountFlags};
use rustix::process::geteuid;

use crate::config::settings;
use crate::exit::Failure;
use crate::message::quote;

static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libheaptally_preload.so"));
static DEMO: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/heaptally-demo"));

/// Names another preload library.
const OVERRIDE: &str = "HEAPTALLY_PRELOAD";

/// How long an unpacked file of another version stays after its last use.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The path of the preload library.
pub(crate) fn library() -> Result<PathBuf, Failure> {
    let Some(path) = env::var_os(OVERRIDE).filter(|path| !path.is_empty()) else {
        return unpack("libheaptally_preload", ".so", LIBRARY);
    };
    let absolute = fs::canonicalize(&path)
        .map_err(|error| Failure::recorder(format!("{OVERRIDE}: cannot find {}: {error}", quote(&path))))?;
    match separator(&absolute) {
        Some(separator) => Err(Failure::recorder(format!(
            "{OVERRIDE}: the path {} holds a {separator}, which the loader takes for a separator",
            quote(&absolute)
        ))),
        None => Ok(absolute),
    }
}

/// The embedded preload library's length in bytes, and the hash in its name.
pub(crate) fn identity() -> (usize, u64) {
    (LIBRARY.len(), hash(LIBRARY))
}

/// The path of the demonstration's program.
pub(crate) fn demo() -> Result<PathBuf, Failure> {
    unpack("heaptally-demo", "", DEMO)
}

fn unpack(stem: &str, ending: &str, content: &[u8]) -> Result<PathBuf, Failure> {
    let name = format!("{stem}-{:016x}{ending}", hash(content));
    unpack_into(&candidates(), &name, content)
}

/// Unpacks into the first folder that will do.
fn unpack_into(folders: &[PathBuf], name: &str, content: &[u8]) -> Result<PathBuf, Failure> {
    let mut reasons = String::new();
    for folder in folders {
        match place(folder, name, content) {
            Ok(path) => return Ok(path),
            Err(reason) => {
                // Writing to a String does not fail.
                let _ = write!(reasons, "\n{}: {reason}", quote(folder));
            }
        }
    }
    let advice = if reasons.contains("Too many open files") {
        "raise the limit of open files (ulimit -n)"
    } else if reasons.contains("File too large") {
        "raise the limit of the size of files (ulimit -f)"
    } else {
        "set XDG_CACHE_HOME to a folder of your own, on a disk from which programs can be run"
    };
    Err(Failure::recorder(format!("no folder for the recorder's library{reasons}\n{advice}")))
}

fn candidates() -> Vec<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let of_user = format!("heaptally-{}", geteuid().as_raw());
    // What is configured is meant: no other folder takes its place.
    if let Some(folder) = &settings().cache_folder {
        return vec![folder.clone()];
    }
    let mut folders = Vec::new();
    folders.extend(absolute("XDG_CACHE_HOME").map(|cache| cache.join("heaptally")));
    folders.extend(absolute("HOME").map(|home| home.join(".cache/heaptally")));
    // One that is not there is not made: whoever named it did not mean a new folder there.
    folders.extend(absolute("TMPDIR").filter(|folder| folder.is_dir()).map(|folder| folder.join(&of_user)));
    folders.push(Path::new("/tmp").join(&of_user));
    folders.dedup();
    folders
}

/// The folder that is tried first, for `heaptally config show`.
pub(crate) fn first_folder() -> PathBuf {
    candidates().into_iter().next().unwrap_or_default()
}

fn place(folder: &Path, name: &str, content: &[u8]) -> Result<PathBuf, String> {
    let words = |action: &'static str| move |error| format!("cannot {action}: {error}");
    if let Some(separator) = separator(folder) {
        return Err(format!("its path holds a {separator}, which the loader takes for a separator"));
    }
    let handle = open_folder(folder)?;
    if let Some(file) = open_file(&handle, name)?
        && is_equal(&file, content).map_err(words("read what is there"))?
    {
        note_use(&file);
        return Ok(folder.join(name));
    }

    // Two containers that share the folder have processes of one number.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let temporary = format!(".{name}.{}-{}", std::process::id(), now.as_nanos());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&handle, &temporary, flags, Mode::RWXU)
        .map_err(|error| words("write there")(error.into()))?;
    let written = File::from(file)
        .write_all(content)
        .and_then(|()| rustix::fs::renameat(&handle, &temporary, &handle, name).map_err(io::Error::from));
    if let Err(error) = written {
        let _gone = rustix::fs::unlinkat(&handle, &temporary, AtFlags::empty());
        return Err(words("write there")(error));
    }
    remove_unused(&handle, folder);
    Ok(folder.join(name))
}

/// Has the file's time say that it is in use, once a day.
fn note_use(file: &File) {
    let now = SystemTime::now();
    let age = file.metadata().and_then(|about| about.modified()).map(|time| now.duration_since(time));
    if age.is_ok_and(|age| age.is_ok_and(|age| age > A_DAY)) {
        // If it cannot be said, another version may unpack it anew some day.
        let _unsaid = file.set_modified(now);
    }
}

/// Removes what other versions unpacked and nobody has used for long. A program that still runs has it mapped. What
/// cannot be removed stays.
fn remove_unused(handle: &File, folder: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(is_unpacked_name);
        let is_old = entry.metadata().is_ok_and(|about| {
            let age = about.modified().map(|time| now.duration_since(time));
            about.is_file() && age.is_ok_and(|age| age.is_ok_and(|age| age > UNUSED))
        });
        if is_ours && is_old {
            let _stays = rustix::fs::unlinkat(handle, &name, AtFlags::empty());
        }
    }
}

/// Whether a name is one that [`unpack`] gives, or that of a file which was not written to its end, and not one of this
/// version.
fn is_unpacked_name(name: &str) -> bool {
    let (is_half, name) = name.strip_prefix('.').map_or((false, name), |name| (true, name));
    [("libheaptally_preload", ".so", LIBRARY), ("heaptally-demo", "", DEMO)].iter().any(
        |(stem, ending, content)| {
            let Some(rest) = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('-')) else {
                return false;
            };
            let Some((digits, rest)) = rest.split_at_checked(16) else { return false };
            digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                && if is_half { rest.starts_with(&format!("{ending}.")) } else { rest == *ending }
                && (is_half || digits != format!("{:016x}", hash(content)))
        },
    )
}

/// Makes the folder if it is not there, and checks it.
fn open_folder(folder: &Path) -> Result<File, String> {
    let words = |action: &'static str| move |error| format!("cannot {action}: {error}");
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(words("make the folder above"))?;
        refuse_open_folders(parent)?;
    }
    match rustix::fs::mkdirat(CWD, folder, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(words("make it")(io::Error::from(error))),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(CWD, folder, flags, Mode::empty())
        .map_err(|error| format!("not a folder that can be opened: {error}"))?;
    let status = rustix::fs::fstat(&handle).map_err(|error| words("look at it")(error.into()))?;
    if status.st_uid != geteuid().as_raw() {
        return Err("it belongs to another user".to_owned());
    }
    if status.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&handle, Mode::RWXU).map_err(|error| words("make it private")(error.into()))?;
    }
    let volume = rustix::fs::fstatvfs(&handle).map_err(|error| words("look at its disk")(error.into()))?;
    if volume.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err("its disk is mounted noexec".to_owned());
    }
    Ok(File::from(handle))
}

/// In such a folder anyone can rename what belongs to another, after it was looked at and before the loader comes.
fn refuse_open_folders(folder: &Path) -> Result<(), String> {
    let real = folder.canonicalize().map_err(|error| format!("cannot find the folder above: {error}"))?;
    for above in real.ancestors() {
        let mode =
            fs::metadata(above).map_err(|error| format!("cannot look at the folders above: {error}"))?.mode();
        if mode & 0o1002 == 0o0002 {
            return Err(format!("everyone may change {} (chmod o-w or +t it)", quote(above)));
        }
    }
    Ok(())
}

/// The file, if there is one of this user's own.
fn open_file(folder: impl AsFd, name: &str) -> Result<Option<File>, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else { return Ok(None) };
    let status = rustix::fs::fstat(&file).map_err(|error| format!("cannot look at {name}: {error}"))?;
    let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    let is_private = status.st_uid == geteuid().as_raw() && status.st_mode & 0o022 == 0;
    Ok((is_file && is_private).then(|| File::from(file)))
}

fn is_equal(mut file: &File, content: &[u8]) -> io::Result<bool> {
    if file.metadata()?.len() != content.len() as u64 {
        return Ok(false);
    }
    let mut found = Vec::with_capacity(content.len());
    file.read_to_end(&mut found)?;
    Ok(found == content)
}

/// What the loader would take for a separator, or for the start of a variable, in `LD_PRELOAD`.
fn separator(path: &Path) -> Option<&'static str> {
    const SEPARATORS: [(u8, &str); 3] = [(b' ', "space"), (b':', "colon"), (b'$', "dollar sign")];
    let bytes = OsStr::as_bytes(path.as_os_str());
    SEPARATORS.iter().find(|(byte, _)| bytes.contains(byte)).map(|(_, name)| *name)
}

/// FNV-1a. Only a name: the content is compared.
fn hash(content: &[u8]) -> u64 {
    content
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn unpacked(folder: &Path) -> Result<PathBuf, Failure> {
        unpack_into(&[folder.to_owned()], "name.so", b"content")
    }

    #[test]
    fn is_written_once_and_private() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("above/heaptally");
        let path = unpacked(&folder).unwrap();
        let before = fs::metadata(&path).unwrap();
        assert_eq!(unpacked(&folder).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), before.ino());
        assert_eq!((before.mode() & 0o077, fs::metadata(&folder).unwrap().mode() & 0o777), (0, 0o700));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn what_is_there_is_not_believed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("heaptally");
        let path = unpacked(&folder).unwrap();
        fs::write(&path, b"changed").unwrap();
        unpacked(&folder).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"content");

        let elsewhere = scratch.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        unpacked(&folder).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file(), "a link was followed");

        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        unpacked(&folder).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o022, 0, "a file that others can write was used");
    }

    #[test]
    fn a_folder_for_others_becomes_private() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("heaptally");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        unpacked(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_place_that_everyone_may_change_will_not_do() {
        let scratch = tempfile::tempdir().unwrap();
        let open = scratch.path().join("open");
        fs::create_dir_all(open.join("own")).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        for folder in [open.join("heaptally"), open.join("own/heaptally")] {
            let error = unpacked(&folder).unwrap_err();
            assert!(error.message.contains("everyone may change"), "{error}");
            assert!(!folder.exists());
        }
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
        unpacked(&open.join("own/heaptally")).unwrap();
    }

    #[test]
    fn the_first_folder_that_will_do() {
        let scratch = tempfile::tempdir().unwrap();
        let link = scratch.path().join("link");
        symlink(scratch.path(), &link).unwrap();
        let file = scratch.path().join("file");
        fs::write(&file, "").unwrap();
        let unfit = [
            scratch.path().join("with space"),
            scratch.path().join("a:b"),
            link,
            file,
            "/proc/heaptally".into(),
        ];
        let error = unpack_into(&unfit, "name.so", b"content").unwrap_err();
        assert_eq!(error.code, crate::exit::RECORDER);
        for word in ["space", "colon", "not a folder", "cannot make it", "XDG_CACHE_HOME"] {
            assert!(error.message.contains(word), "{word}: {error}");
        }

        let mut folders = unfit.to_vec();
        folders.push(scratch.path().join("good"));
        assert!(
            unpack_into(&folders, "name.so", b"content").unwrap().starts_with(scratch.path().join("good"))
        );
    }
}
