//! Files of limits: TOML of ours, and the thresholds of Swift's package-benchmark.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use heaptally_profile::limit::{Limits, read, threshold};

use crate::exit::{Failure, UNREADABLE};
use crate::message::{self, quote};

/// More than any file of limits holds.
const MAX_BYTES: u64 = 16 << 20;

/// A file of limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// TOML.
    Toml,
    /// Thresholds of this benchmark.
    Threshold(String),
}

/// What kind of file a path names.
pub(crate) fn kind(path: &Path) -> Kind {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    match threshold::benchmark(name) {
        Some(benchmark) => Kind::Threshold(benchmark.to_owned()),
        None => Kind::Toml,
    }
}

/// The files that a path names: itself, or the thresholds in a folder, by name.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let entries = entries.map_err(|error| refuse(path, &error.to_string()))?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| kind(file) != Kind::Toml);
    files.sort();
    match files.is_empty() {
        true => Err(refuse(
            path,
            "a folder without TARGET.BENCHMARK.p90.json\nname a file of limits, or that folder",
        )),
        false => Ok(files),
    }
}

fn refuse(path: &Path, why: &str) -> Failure {
    Failure::new(UNREADABLE, format!("cannot use the limits {}: {why}", quote(path)))
}

/// The text of a file.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    let advice = "`heaptally limits update` writes one";
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| refuse(path, &format!("{error}\n{advice}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refuse(path, &format!("it is larger than {MAX_BYTES} bytes\n{advice}")));
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(refuse(
            path,
            "it is a compressed file, as profiles are\na profile is given with --baseline",
        ));
    }
    match message::text(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(line) => Err(refuse(path, &format!("line {line}: not UTF-8\n{advice}"))),
    }
}

/// What a file's text says.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Limits, Failure> {
    // As it is shown: what was given, from which the line is found.
    let shown = path.to_string_lossy();
    let limits = match kind(path) {
        Kind::Toml => read::read(text, &shown),
        Kind::Threshold(benchmark) => threshold::read(text, &benchmark, &shown),
    };
    limits.map_err(|error| refuse(path, &error.to_string()))
}

/// The limits of files and folders.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Limits, Failure> {
    let mut limits = Limits::default();
    for path in paths {
        for file in files(path)? {
            limits.extend(parse(&file, &text(&file)?)?);
        }
    }
    Ok(limits)
}
