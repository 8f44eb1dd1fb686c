//! The separate debug file of a program, by build-id or debug link, as the symboliser searches it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Object;

use super::image::{Elf, Image, build_id, has_section};
use super::machine::DEBUG_FOLDER;
use crate::message::{quote, quote_bytes};

/// What a search brought.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The debug file.
    pub(crate) file: Option<Image>,
    /// What was searched for and not found, or refused.
    pub(crate) reasons: Vec<String>,
}

/// Searches the debug file of a program.
pub(crate) fn search(program: &Image, elf: &Elf<'_>) -> Search {
    let mut search = Search::default();
    let own = build_id(elf);
    if let Some((folder, rest)) = own.split_at_checked(2).filter(|(_, rest)| !rest.is_empty()) {
        let path = Path::new(DEBUG_FOLDER).join(".build-id").join(folder).join(format!("{rest}.debug"));
        match Image::open(&path) {
            Ok(file) => search.offer(file, &own, None),
            Err(_) => search.reasons.push(format!("there is no {}", quote(&path))),
        }
    }
    let Some((name, crc)) = elf.gnu_debuglink().ok().flatten().filter(|_| search.file.is_none()) else {
        return search;
    };
    if name.is_empty() || name == b".." || name.contains(&b'/') {
        search.reasons.push(format!("the debug link {} is no file name", quote_bytes(name)));
        return search;
    }
    let paths = link_paths(&program.path, name);
    let before = search.reasons.len();
    for path in &paths {
        let is_program = std::fs::canonicalize(path).ok() == std::fs::canonicalize(&program.path).ok();
        if search.file.is_none()
            && !is_program
            && let Ok(file) = Image::open(path)
        {
            search.offer(file, &own, Some(crc));
        }
    }
    if search.file.is_none() && search.reasons.len() == before {
        search.reasons.push(format!("the debug link's file {} was not found", quote_bytes(name)));
    }
    search
}

impl Search {
    /// Takes a file, or says why not.
    fn offer(&mut self, file: Image, wanted: &str, crc: Option<u32>) {
        let Some(elf) = file.elf() else {
            self.reasons.push(format!("{} is no ELF file for x86-64", quote(&file.path)));
            return;
        };
        let found = build_id(&elf);
        let is_other_build = !found.is_empty() && !wanted.is_empty() && found != wanted;
        let is_other_content = match crc {
            Some(crc) => crc32fast::hash(file.bytes()) != crc,
            None => found.is_empty(),
        };
        if is_other_build || is_other_content {
            self.reasons.push(format!("{} is of another build", quote(&file.path)));
        } else if !has_section(&elf, ".debug_info") {
            self.reasons.push(format!("{} has no .debug_info", quote(&file.path)));
        } else {
            self.file = Some(file);
        }
    }
}

/// Where a debug file lies by its link.
fn link_paths(program: &Path, name: &[u8]) -> Vec<PathBuf> {
    let name = OsStr::from_bytes(name);
    let real = std::fs::canonicalize(program).ok();
    let mut folders: Vec<&Path> =
        [Some(program), real.as_deref()].into_iter().flatten().filter_map(Path::parent).collect();
    folders.dedup();
    let mut paths = Vec::new();
    for folder in folders {
        paths.push(folder.join(name));
        paths.push(folder.join(".debug").join(name));
        if let Ok(below) = folder.strip_prefix("/") {
            paths.push(Path::new(DEBUG_FOLDER).join(below).join(name));
        }
    }
    paths
}
