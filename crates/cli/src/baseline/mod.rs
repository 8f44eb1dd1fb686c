//! Baselines: profiles that are saved under a name, to be compared with later.
//!
//! ```text
//! FOLDER/main.pb.gz          a profile as any other
//! FOLDER/main.pb.gz.stale    while a run replaces it, and after one that failed to (see `mark`)
//! ```
//!
//! Where a command takes a profile, a word with a slash, or that ends in `.pb.gz`, is a file; any other is a name
//! ([`names_file`]). **A baseline whose replacement failed is never compared**, nor is a profile that the last run into it
//! did not write: [`resolve`] refuses both, and says what to do.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use heaptally_profile::model::Profile;

use crate::command::report;
use crate::config::Settings;
use crate::exit::{Failure, UNREADABLE, USAGE};
use crate::message::quote;

mod environment;
mod folder;
mod mark;
mod saving;

pub(crate) use environment::require_same;
pub(crate) use folder::folder;
pub(crate) use mark::{Replacement, State, clear, forget, in_use, mark_failed, state};
pub(crate) use saving::Saving;

/// How a profile's file ends.
const ENDING: &str = ".pb.gz";
/// A file's name is at most 255 bytes, with what is put behind it.
const MAX_NAME_BYTES: usize = 100;
/// So many names are listed in a message.
const MAX_LISTED: usize = 10;

/// Whether a word of the command line is a file, and no saved name.
pub(crate) fn names_file(word: &OsStr) -> bool {
    let bytes = word.as_bytes();
    bytes.contains(&b'/') || bytes.ends_with(ENDING.as_bytes())
}

/// Checks a name: up to 100 of A–Z, a–z, 0–9, `.`, `_` and `-`, the first of which is a letter or digit, and not the
/// ending of a file.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let is_sound = name.len() <= MAX_NAME_BYTES
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && !name.ends_with(ENDING);
    if is_sound {
        return Ok(());
    }
    Err(Failure::new(
        USAGE,
        format!(
            "{} cannot be the name of a baseline\na name has up to {MAX_NAME_BYTES} letters, digits, `.`, `_` and \
             `-`, begins with a letter or digit, and does not end in {ENDING}",
            quote(name)
        ),
    ))
}

/// The file of a name, which need not be there.
pub(crate) fn path_of(name: &str, settings: &Settings) -> Result<PathBuf, Failure> {
    check_name(name)?;
    Ok(folder(settings).join(format!("{name}{ENDING}")))
}

/// The file of a name that is to be saved; its folder is there afterwards.
pub(crate) fn prepare(name: &str, settings: &Settings) -> Result<PathBuf, Failure> {
    let path = path_of(name, settings)?;
    folder::make(&folder(settings))?;
    Ok(path)
}

/// As [`resolve`], for a word that may be any tool's file: one that is no saved name, and where there is a file, is that.
///
/// # Errors
/// As [`resolve`].
pub(crate) fn resolve_file(word: impl AsRef<OsStr>, settings: &Settings) -> anyhow::Result<PathBuf> {
    let word = word.as_ref();
    let is_saved =
        || word.to_str().is_some_and(|name| path_of(name, settings).is_ok_and(|path| path.is_file()));
    if !names_file(word) && Path::new(word).is_file() && !is_saved() {
        return file(word);
    }
    resolve(word, settings)
}

/// The profile's file for a word of the command line: a file, or a saved name.
///
/// # Errors
/// A [`Failure`] with code 2 for a name that none can have, and with code 4 for a baseline that is not there, that is
/// being replaced, or that is stale, and for a file that the last run into it did not write.
pub(crate) fn resolve(word: impl AsRef<OsStr>, settings: &Settings) -> anyhow::Result<PathBuf> {
    let word = word.as_ref();
    if names_file(word) {
        return file(word);
    }
    let Some(name) = word.to_str() else {
        check_name(&word.to_string_lossy())?;
        return Ok(PathBuf::from(word));
    };
    let path = path_of(name, settings)?;
    let unreadable = |error: &io::Error| {
        let place = quote(folder(settings));
        let words = format!("cannot look for the baseline {} in {place}: {error}", quote(name));
        Failure::new(UNREADABLE, format!("{words}\nsee whether you may read that folder"))
    };
    let is_there = match fs::metadata(&path) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(unreadable(&error).into());
        }
        found => found.is_ok_and(|found| found.is_file()),
    };
    if !is_there {
        let as_file = if Path::new(name).exists() {
            format!("; the file of that name is ./{name}")
        } else {
            String::new()
        };
        let known: Vec<String> = list(settings).map_err(|error| unreadable(&error))?;
        let mut shown: Vec<String> = known.iter().take(MAX_LISTED).map(quote).collect();
        if known.len() > MAX_LISTED {
            shown.push(format!("{} more", known.len() - MAX_LISTED));
        }
        let there = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
        return Err(Failure::new(
            UNREADABLE,
            format!(
                "there is no baseline {} in {}, which has {there}{as_file}\n\
                 save it with `heaptally run --save-baseline {name} -- PROGRAM`",
                quote(name),
                quote(folder(settings)),
            ),
        )
        .into());
    }
    refuse_stale(&path, &format!("the baseline {} is stale", quote(name)), "--save-baseline")?;
    Ok(path)
}

fn file(word: &OsStr) -> anyhow::Result<PathBuf> {
    let path = PathBuf::from(word);
    refuse_stale(&path, &format!("{} is of an earlier run", quote(&path)), "-o")?;
    Ok(path)
}

fn refuse_stale(path: &Path, what: &str, option: &str) -> Result<(), Failure> {
    let refuse = |words: String| Err(Failure::new(UNREADABLE, words));
    match state(path) {
        State::Fresh => Ok(()),
        State::InUse => Err(in_use(path)),
        State::Stale(why) => {
            let next = if option == "-o" {
                format!("run again, or remove {} if the file is what you mean", quote(mark::path_of(path)))
            } else {
                "run again with --save-baseline, or accept what is there with `heaptally baseline keep`"
                    .to_owned()
            };
            refuse(format!("{what}: {why}\n{next}"))
        }
    }
}

/// Reads a profile's file that the last run into it wrote.
pub(crate) fn read(path: &Path) -> Result<Profile, Failure> {
    refuse_stale(path, &format!("{} is of an earlier run", quote(path)), "-o")?;
    report::read(path)
}

/// The names that are saved, sorted.
pub(crate) fn list(settings: &Settings) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder(settings)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        // What is no file is no baseline either.
        if !entry.path().is_file() {
            continue;
        }
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        names.extend(name.filter(|name| check_name(name).is_ok()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &Path) -> Settings {
        Settings { baseline_folder: Some(folder.to_owned()), ..Settings::default() }
    }

    #[test]
    fn a_word_is_a_file_or_a_name() {
        for file in ["a.pb.gz", "./a", "a/b", "/a"] {
            assert!(names_file(file.as_ref()), "{file}");
        }
        for name in ["a", "main", "v1.2-rc_3", "a.pb"] {
            assert!(!names_file(name.as_ref()), "{name}");
            check_name(name).unwrap();
        }
        let long = "a".repeat(101);
        for name in ["", ".", "..", "-a", ".a", "a b", "a/b", "ä", "a.pb.gz", "a\n", &long] {
            let failure = check_name(name).unwrap_err();
            assert_eq!(failure.code, USAGE);
            assert!(failure.message.contains("letters, digits"), "{failure}");
        }
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let scratch = tempfile::tempdir().unwrap();
        let settings = settings(scratch.path());
        let message = resolve("main", &settings).unwrap_err().to_string();
        assert!(message.contains("which has none"), "{message}");
        for name in ["b.pb.gz", "a.pb.gz", "a.pb.gz.stale", "x y.pb.gz", "other"] {
            fs::write(scratch.path().join(name), "").unwrap();
        }
        assert_eq!(list(&settings).unwrap(), ["a", "b"]);
        let message = resolve("main", &settings).unwrap_err().to_string();
        assert!(message.contains("which has `a`, `b`"), "{message}");
        assert_eq!(resolve("b", &settings).unwrap(), scratch.path().join("b.pb.gz"));
        let missing = Settings { baseline_folder: Some(scratch.path().join("no")), ..Settings::default() };
        assert_eq!(list(&missing).unwrap(), [""; 0]);
        // What cannot be looked into has no baselines that are known, and that is not none.
        let endless = scratch.path().join("loop");
        std::os::unix::fs::symlink("loop", &endless).unwrap();
        let endless = Settings { baseline_folder: Some(endless), ..Settings::default() };
        let error = resolve("main", &endless).unwrap_err();
        assert_eq!(crate::exit::code_of(&error), UNREADABLE);
        assert!(error.to_string().contains("cannot look for the baseline `main` in"), "{error}");
    }

    #[test]
    fn a_stale_one_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let settings = settings(scratch.path());
        let path = path_of("main", &settings).unwrap();
        fs::write(&path, "").unwrap();
        let begin = |is_compared| Replacement::begin(&path, &["./bench".into()], is_compared).unwrap();

        let replacement = begin(false);
        assert!(resolve("main", &settings).unwrap_err().to_string().contains("is being replaced"));
        assert!(Replacement::begin(&path, &[], false).unwrap_err().message.contains("another"));
        replacement.fail("it exited with 3");
        for word in ["main", path.to_str().unwrap()] {
            let error = resolve(word, &settings).unwrap_err();
            assert_eq!(crate::exit::code_of(&error), UNREADABLE);
            let message = error.to_string();
            for word in ["it exited with 3", "./bench"] {
                assert!(message.contains(word), "{message}");
            }
        }
        begin(false).succeed().unwrap();
        resolve("main", &settings).unwrap();

        // A run that ended without a word.
        drop(begin(false));
        assert!(resolve("main", &settings).unwrap_err().to_string().contains("stale"));
        // One that only compares with it leaves it as it was.
        begin(true).fail("it exited with 3");
        assert!(resolve("main", &settings).is_err());
        forget(&path).unwrap();
        resolve("main", &settings).unwrap();
        begin(true).fail("it exited with 3");
        resolve("main", &settings).unwrap();
        drop(begin(true));
        resolve("main", &settings).unwrap();
    }
}
