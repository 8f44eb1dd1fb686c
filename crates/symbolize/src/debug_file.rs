//! The search for debug information that was split off into a file of its own.
//!
//! In this order, the first good one wins:
//! 1. by build-id: `<debug dir>/.build-id/xx/yyyy.debug`;
//! 2. by `.gnu_debuglink`: beside the file, in `.debug/` beside it, and below each debug dir at the file's own folder
//!    (<https://sourceware.org/gdb/current/onlinedocs/gdb.html/Separate-Debug-Files.html>).
//!
//! Good is a file of the same build that describes functions. Where both have a build-id the two must be equal; a file
//! reached by debuglink must have the linked CRC-32 too. One of the same build that has symbols only is kept for want
//! of a better one. Each refusal has its reason.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use object::Object;

use crate::map::MappedFile;
use crate::object_file::{self, Elf};

/// What a search brought.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The debug file; without `.debug_info` when only such a one was there.
    pub(crate) file: Option<MappedFile>,
    /// Why it is missing, or why others were not taken.
    pub(crate) reasons: Vec<String>,
}

/// The separate debug file of a program, if it has one that is of its build and describes functions; and why others
/// were not taken, each a sentence fragment.
///
/// It is searched as the [`Symbolizer`](crate::Symbolizer) searches it, whether the program needs it or not.
pub fn find_debug_file(program: &Path, debug_dirs: &[PathBuf]) -> (Option<PathBuf>, Vec<String>) {
    let Ok(file) = MappedFile::open(program) else { return (None, Vec::new()) };
    let Some(elf) = object_file::parse(&file) else { return (None, Vec::new()) };
    let Search { file: found, reasons } =
        search(Some((&elf, &file)), &object_file::build_id(&elf), debug_dirs);
    let describes =
        |file: &MappedFile| object_file::parse(file).is_some_and(|elf| object_file::has_debug_info(&elf));
    (found.filter(describes).map(|file| file.path), reasons)
}

impl Search {
    /// Takes a file or says why not. Returns whether the search is over.
    fn offer(&mut self, file: MappedFile, wanted_build_id: &str, wanted_crc: Option<u32>) -> bool {
        match refusal(&file, wanted_build_id, wanted_crc) {
            Some(reason) => {
                self.reasons.push(format!("debug file refused: {:?} {reason}", file.path));
                false
            }
            None if object_file::parse(&file).is_some_and(|elf| object_file::has_debug_info(&elf)) => {
                self.file = Some(file);
                true
            }
            None => {
                self.reasons.push(format!("debug file incomplete: {:?} has no .debug_info", file.path));
                self.file.get_or_insert(file);
                false
            }
        }
    }
}

/// Why a debug file is not of the wanted build.
fn refusal(file: &MappedFile, wanted_build_id: &str, wanted_crc: Option<u32>) -> Option<String> {
    let Some(elf) = object_file::parse(file) else {
        return Some("is not a 64-bit little-endian ELF file".to_owned());
    };
    let build_id = object_file::build_id(&elf);
    if !build_id.is_empty() && !wanted_build_id.is_empty() && !build_id.eq_ignore_ascii_case(wanted_build_id)
    {
        return Some(format!("is of another build (build-id {build_id}, wanted is {wanted_build_id})"));
    }
    let crc = crc32fast::hash(if wanted_crc.is_some() { file.bytes() } else { &[] });
    match wanted_crc {
        Some(wanted) if wanted != crc => {
            Some(format!("is of another build (CRC {crc:08x}, the link says {wanted:08x})"))
        }
        // Found by its path alone: it must state the build-id.
        None if build_id.is_empty() => Some("has no build-id".to_owned()),
        _ => None,
    }
}

/// Searches the debug file of a program or library. Without its file (`program`) only the build-id leads to one.
pub(crate) fn search(
    program: Option<(&Elf<'_>, &MappedFile)>,
    build_id: &str,
    debug_dirs: &[PathBuf],
) -> Search {
    let mut search = Search::default();
    for path in build_id_paths(build_id, debug_dirs) {
        if let Ok(file) = MappedFile::open(&path)
            && search.offer(file, build_id, None)
        {
            return search;
        }
    }
    let Some((elf, program)) = program else { return search };
    let Some((name, crc)) = elf.gnu_debuglink().ok().flatten() else { return search };
    let name = Path::new(OsStr::from_bytes(name));
    if !matches!(name.components().collect::<Vec<_>>()[..], [Component::Normal(_)]) {
        search.reasons.push(format!("debug file refused: the link {name:?} is not a file name"));
        return search;
    }
    let mut is_there = false;
    for path in debug_link_paths(name, &program.path, debug_dirs) {
        let Ok(file) = MappedFile::open(&path) else { continue };
        // A debug file that kept its program's name may find the program itself.
        if file.identity == program.identity {
            continue;
        }
        is_there = true;
        if search.offer(file, build_id, Some(crc)) {
            return search;
        }
    }
    if !is_there && search.file.is_none() {
        search.reasons.push(format!("debug file missing: {name:?} was not found"));
    }
    search
}

/// The file that `.gnu_debugaltlink` names (dwz moves what several debug files share there). `Ok(None)`: none is
/// named.
pub(crate) fn supplementary(
    elf: &Elf<'_>,
    path: &Path,
    debug_dirs: &[PathBuf],
) -> Result<Option<MappedFile>, String> {
    let Some((name, build_id)) = elf.gnu_debugaltlink().ok().flatten() else { return Ok(None) };
    let name = Path::new(OsStr::from_bytes(name));
    let build_id = object_file::hex(build_id);
    let beside =
        std::fs::canonicalize(path).ok().and_then(|path| path.parent().map(|folder| folder.join(name)));
    for path in build_id_paths(&build_id, debug_dirs).into_iter().chain(beside) {
        let Ok(file) = MappedFile::open(&path) else { continue };
        if object_file::parse(&file).is_some_and(|elf| object_file::build_id(&elf) == build_id) {
            return Ok(Some(file));
        }
    }
    Err(format!(
        "shared debug file missing: {name:?} was not found or is of another build, so some functions and lines are not \
         named"
    ))
}

/// Where a debug file lies by its build-id.
fn build_id_paths(build_id: &str, debug_dirs: &[PathBuf]) -> Vec<PathBuf> {
    let build_id = build_id.to_ascii_lowercase();
    let is_hex = build_id.bytes().all(|digit| digit.is_ascii_hexdigit());
    match build_id.split_at_checked(2) {
        Some((folder, rest)) if is_hex && !rest.is_empty() => debug_dirs
            .iter()
            .map(|dir| dir.join(".build-id").join(folder).join(format!("{rest}.debug")))
            .collect(),
        _ => Vec::new(),
    }
}

/// Where a debug file lies by its link: for the folder as it was given, and for the one without symbolic links.
fn debug_link_paths(name: &Path, program: &Path, debug_dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = program.parent().map(Path::to_owned).into_iter().collect();
    if let Some(folder) =
        std::fs::canonicalize(program).ok().and_then(|path| path.parent().map(Path::to_owned))
    {
        folders.push(folder);
    } else if let Some(folder) = program.parent().and_then(|folder| std::fs::canonicalize(folder).ok()) {
        folders.push(folder);
    }
    folders.dedup();
    let mut paths = Vec::new();
    for folder in folders {
        paths.push(folder.join(name));
        paths.push(folder.join(".debug").join(name));
        if let Ok(below) = folder.strip_prefix("/") {
            paths.extend(debug_dirs.iter().map(|dir| dir.join(below).join(name)));
        }
    }
    paths
}
