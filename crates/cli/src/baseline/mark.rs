//! The mark of a file that a run is to replace: `x.pb.gz.stale` beside `x.pb.gz`.
//!
//! It is made and locked before the program starts, and removed after the new file has taken the place of the old one. So
//! while a run goes on the mark is locked, and after one that failed, or was killed, it stays: what stands beside it is of
//! an earlier run. The first line says why, in words; a mark whose text cannot be read counts as well.
//!
//! A run that also *compares* with what it would replace wants it to stay as good as it was when the run fails; the mark
//! says so in its first word.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use heaptally_profile::path_text::escape_path;
use heaptally_report::escape::escape;

use crate::exit::{Failure, UNREADABLE};
use crate::message::quote;

/// What is put behind the file's name.
const ENDING: &str = ".stale";
/// More than any of our marks holds.
const MAX_BYTES: u64 = 4096;
/// The first word of a mark beside a file that stays good.
const STAYS: &str = "good:";
const STALE: &str = "stale:";

/// What a file is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The last run into it wrote it.
    Fresh,
    /// A run that is to replace it goes on.
    InUse,
    /// The run that was to replace it failed: why.
    Stale(String),
}

/// Where a file's mark is.
pub(crate) fn path_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ENDING);
    PathBuf::from(name)
}

/// What a file is worth.
pub(crate) fn state(file: &Path) -> State {
    let path = path_of(file);
    let mut mark = match open(&path, false) {
        Ok(mark) => mark,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return State::Fresh;
        }
        Err(error) => return State::Stale(format!("{} cannot be read: {error}", quote(&path))),
    };
    if let Err(TryLockError::WouldBlock) = mark.try_lock_shared() {
        return State::InUse;
    }
    let mut text = Vec::new();
    // What cannot be read is a mark all the same.
    let _unread = (&mut mark).take(MAX_BYTES).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    if text.starts_with(STAYS) {
        return State::Fresh;
    }
    let text = text.lines().next().unwrap_or_default();
    let text = text.strip_prefix(STALE).unwrap_or(text).trim();
    State::Stale(if text.is_empty() {
        "the run that was to replace it did not end well".to_owned()
    } else {
        escape(text).into_owned()
    })
}

/// What is said where a run that goes on is to replace a file.
pub(crate) fn in_use(file: &Path) -> Failure {
    let name = quote(file);
    Failure::new(UNREADABLE, format!("{name} is being replaced by a run that goes on\nwait for it"))
}

/// After a run's new file was put in its place: has it count as good.
pub(crate) fn clear(file: &Path) -> Result<(), Failure> {
    forget(file).map_err(|error| {
        Failure::recorder(format!(
            "{} is new, and the mark that it is not cannot be removed: {error}\nremove {}",
            quote(file),
            quote(path_of(file))
        ))
    })
}

/// After a run that failed: marks the file of which it did not make another, and has the failure say so.
pub(crate) fn mark_failed(file: &Path, program: &[OsString], failure: &mut Failure) {
    let said = match mark_stale(file, program, &failure.message) {
        Ok(false) => return,
        Ok(true) => ": marked as stale".to_owned(),
        Err(error) => format!(", and cannot be marked as that: {error}"),
    };
    failure.message.push_str(&format!("\n{} is of an earlier run{said}", quote(file)));
}

/// Has what is there count as good.
pub(crate) fn forget(file: &Path) -> io::Result<()> {
    match fs::remove_file(path_of(file)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Marks a file of which a run that failed did not make another; returns whether there is one.
fn mark_stale(file: &Path, program: &[OsString], why: &str) -> io::Result<bool> {
    if !file.is_file() {
        return Ok(false);
    }
    let mut mark = open(&path_of(file), true)?;
    mark.set_len(0)?;
    mark.write_all(text(STALE, program, why).as_bytes())?;
    Ok(true)
}

/// A replacement that goes on.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    /// Locked.
    mark: File,
    program: Vec<OsString>,
    is_compared: bool,
    /// What the mark says if the run fails, when there was one before.
    before: Option<Vec<u8>>,
}

impl Replacement {
    /// Begins to replace a file by what a program's run gives. `is_compared`: the run compares with the old one, which
    /// then stays good if it fails.
    pub(crate) fn begin(file: &Path, program: &[OsString], is_compared: bool) -> Result<Self, Failure> {
        let path = path_of(file);
        let cannot = |error: io::Error| {
            Failure::recorder(format!(
                "cannot make {}: {error}\nsee whether its folder can be written to",
                quote(&path)
            ))
        };
        const ATTEMPTS: usize = 100;
        for _ in 0..ATTEMPTS {
            let mut mark = open(&path, true).map_err(cannot)?;
            match mark.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Failure::recorder(format!(
                        "another run is about to replace {}\nwait for it, or save under another name",
                        quote(file)
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
            }
            // The one that held it may have removed it before we had it.
            let is_there = fs::symlink_metadata(&path)
                .and_then(|there| Ok((there, mark.metadata()?)))
                .is_ok_and(|(there, ours)| (there.dev(), there.ino()) == (ours.dev(), ours.ino()));
            if !is_there {
                continue;
            }
            let mut before = Vec::new();
            (&mut mark).take(MAX_BYTES).read_to_end(&mut before).map_err(cannot)?;
            let before = Some(before).filter(|text| !text.is_empty());
            let program = program.to_vec();
            let mut replacement = Self { path: path.clone(), mark, program, is_compared, before };
            if let Err(error) = replacement.note("it was killed, or its machine stopped") {
                replacement.fail(&error.to_string());
                return Err(cannot(error));
            }
            return Ok(replacement);
        }
        Err(cannot(io::Error::from(ErrorKind::ResourceBusy)))
    }

    /// The new file is in its place.
    pub(crate) fn succeed(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// There is no new file. A mark that cannot be written stays as it is: as that of a run which was killed.
    pub(crate) fn fail(mut self, why: &str) {
        let name = self.path.as_os_str().as_bytes();
        let file = name.strip_suffix(ENDING.as_bytes()).unwrap_or(name);
        let is_first = !Path::new(OsStr::from_bytes(file)).exists();
        if is_first || (self.is_compared && self.before.is_none()) {
            let _stays = fs::remove_file(&self.path);
        } else {
            let _kept = self.note(why);
        }
    }

    /// Writes what holds from now on.
    fn note(&mut self, why: &str) -> io::Result<()> {
        let text = match (self.is_compared, &self.before) {
            (true, Some(before)) => before.clone(),
            (true, None) => text(STAYS, &self.program, why).into_bytes(),
            (false, _) => text(STALE, &self.program, why).into_bytes(),
        };
        self.mark.rewind()?;
        self.mark.set_len(0)?;
        self.mark.write_all(&text)
    }
}

fn text(kind: &str, program: &[OsString], why: &str) -> String {
    let words: Vec<String> = program.iter().map(|word| shown(word)).collect();
    let why = why.lines().next().unwrap_or_default();
    let mut text = format!("{kind} the run of `{}` that was to replace it failed: {why}", words.join(" "));
    // Room for the line's end, and no half of a character.
    let longest = MAX_BYTES as usize - 1;
    if text.len() > longest {
        let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text.push('\n');
    text
}

fn shown(word: &OsStr) -> String {
    escape(&escape_path(word.as_bytes())).into_owned()
}

fn open(path: &Path, make: bool) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).write(make).create(make).truncate(false).custom_flags(flags.bits() as i32);
    options.open(path)
}
