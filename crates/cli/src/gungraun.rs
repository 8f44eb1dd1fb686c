//! Where gungraun (formerly iai-callgrind) puts what DHAT wrote, and which benchmark that is, as
//! <https://github.com/gungraun/gungraun> has it.
//!
//! ```text
//! target/gungraun/PACKAGE/FILE/GROUP/FUNCTION.ID/dhat.FUNCTION.ID.out            the last run
//!                                                dhat.FUNCTION.ID.out.old        the one before
//!                                                dhat.FUNCTION.ID.out.base@NAME  a baseline
//! ```
//!
//! gungraun keeps of such a file what runs beneath the benchmark's function, which is called once: its set-up is not in it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use heaptally_profile::model::{Metric, Profile, WindowKind};
use heaptally_profile::path_text::escape_path;

use crate::cargo::record::without_hash;

/// Before the benchmark's name.
const FRONT: &str = "dhat.";
/// Behind it.
const BACK: &str = ".out";
/// Folders of folders are looked into so deep.
const DEPTH: usize = 16;

/// Gives a profile's window the benchmark's name, where the path of its file tells one.
pub(crate) fn name(profile: &mut Profile, file: &Path) {
    let (Some(name), [window]) = (benchmark(file), profile.windows.as_mut_slice()) else { return };
    window.name = name;
    for image in &mut profile.images {
        image.label = without_hash(OsStr::new(&image.label)).to_string_lossy().into_owned();
    }
    window.kind = WindowKind::Process;
    // It is called once.
    profile.environment.unknown.remove(&Metric::Windows);
    // What the file has is that of the whole program's peak.
    window.peak_bytes = None;
}

/// `FILE::GROUP::FUNCTION::ID`, as gungraun prints it, of a file in gungraun's folders.
pub(crate) fn benchmark(file: &Path) -> Option<String> {
    let file = std::path::absolute(file).ok()?;
    fn text(name: Option<&OsStr>) -> Option<&str> {
        name.and_then(OsStr::to_str)
    }
    let folder = file.parent()?;
    let own = text(folder.file_name())?;
    let rest = text(file.file_name())?.strip_prefix(FRONT)?.strip_prefix(own)?;
    let (part, _) = rest.split_once(BACK)?;
    if !part.is_empty() && !part.starts_with('.') {
        return None;
    }
    let group = folder.parent()?;
    let mut names: Vec<String> = Vec::new();
    // The workspace's folder is no benchmark's.
    for name in
        [text(group.parent().and_then(Path::file_name)), text(group.file_name())].into_iter().flatten()
    {
        names.push(escape_path(name.as_bytes()));
    }
    names.push(escape_path(own.replacen('.', "::", 1).as_bytes()));
    // Of a benchmark with several processes each has a file.
    let part = part.trim_start_matches('.');
    let name = names.join("::");
    Some(if part.is_empty() { name } else { format!("{name} ({})", escape_path(part.as_bytes())) })
}

/// The files of last runs below a folder, sorted.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(folder, DEPTH, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_last = path.extension().is_some_and(|extension| extension == OsStr::new("out"));
        let kind = fs::symlink_metadata(&path)?;
        if kind.is_dir() && depth > 0 {
            collect(&path, depth - 1, found)?;
        } else if kind.is_file() && is_last && benchmark(&path).is_some() {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_is_known_by_its_folders() {
        for (path, name) in [
            (
                "/t/gungraun/p/words/group/split.three/dhat.split.three.out",
                Some("words::group::split::three"),
            ),
            ("/t/gungraun/p/words/group/split/dhat.split.out", Some("words::group::split")),
            (
                "/t/gungraun/p/words/group/split.three/dhat.split.three.out.old",
                Some("words::group::split::three"),
            ),
            ("/t/gungraun/p/words/group/split.a/dhat.split.a.out.base@main", Some("words::group::split::a")),
            (
                "/t/gungraun/p/words/group/split.a/dhat.split.a.4711.out",
                Some("words::group::split::a (4711)"),
            ),
            ("/t/gungraun/p/words/group/split.a/dhat.split.ab.out", None),
            ("/t/gungraun/p/words/group/split.a/dhat.split.a.log", None),
            ("/t/gungraun/p/words/group/split.a/callgrind.split.a.out", None),
            ("/t/dhat.out.4711", None),
            ("/", None),
        ] {
            assert_eq!(benchmark(Path::new(path)).as_deref(), name, "{path}");
        }
    }

    #[test]
    fn files_of_last_runs_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let of = folder.path().join("p/words/group/split.a");
        fs::create_dir_all(&of).unwrap();
        for name in ["dhat.split.a.out", "dhat.split.a.out.old", "dhat.split.a.log", "callgrind.split.a.out"]
        {
            fs::write(of.join(name), "").unwrap();
        }
        assert_eq!(files(folder.path()).unwrap(), [of.join("dhat.split.a.out")]);
    }
}
