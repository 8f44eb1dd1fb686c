//! The files of a module: the one that was loaded, and what was split off from it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use heaptally_profile::model::Module;
use heaptally_profile::path_text::unescape_path;

use crate::debug_file;
use crate::map::MappedFile;
use crate::object_file;

/// What the kernel appends in `/proc/<pid>/maps` to the path of a file that is gone.
const DELETED: &str = " (deleted)";

/// The files that describe one module.
#[derive(Debug, Default)]
pub(crate) struct ModuleFiles {
    /// The file that was loaded.
    pub(crate) program: Option<MappedFile>,
    /// Its separate debug file.
    pub(crate) debug: Option<MappedFile>,
    /// The file that dwz moved shared parts of the debug information to.
    pub(crate) supplementary: Option<MappedFile>,
    /// Why the file that was loaded is not here: a stable head such as `file gone`, a colon, the reason.
    pub(crate) absence: Option<String>,
    /// What else was not found or was refused, each in the same form.
    pub(crate) reasons: Vec<String>,
}

impl ModuleFiles {
    /// Finds them.
    pub(crate) fn find(
        module: &Module,
        executable: Option<&(PathBuf, File)>,
        debug_dirs: &[PathBuf],
    ) -> Self {
        let mut files = Self::default();
        if module.path.is_empty() || module.path.starts_with('[') {
            files.absence = Some("no file: it was made in memory".to_owned());
            return files;
        }
        match program_file(module, executable) {
            Ok(file) => files.program = Some(file),
            Err(absence) => files.absence = Some(absence),
        }
        let elf = files.program.as_ref().and_then(object_file::parse);
        if elf.as_ref().is_none_or(|elf| !object_file::has_debug_info(elf)) {
            let found_build_id = elf.as_ref().map(object_file::build_id).unwrap_or_default();
            let build_id = if module.build_id.is_empty() { &found_build_id } else { &module.build_id };
            let search = debug_file::search(elf.as_ref().zip(files.program.as_ref()), build_id, debug_dirs);
            let has_debug_info =
                |file| object_file::parse(file).is_some_and(|elf| object_file::has_debug_info(&elf));
            // What was refused on the way to a good one is no problem.
            if !search.file.as_ref().is_some_and(has_debug_info) {
                files.reasons.extend(search.reasons);
            }
            files.debug = search.file;
        }
        if let Some(file) = files.debug.as_ref().or(files.program.as_ref())
            && let Some(elf) = object_file::parse(file)
        {
            match debug_file::supplementary(&elf, &file.path, debug_dirs) {
                Ok(file) => files.supplementary = file,
                Err(reason) => files.reasons.push(reason),
            }
        }
        files
    }
}

/// The file that was loaded: at its path or, when that is gone or another one, behind the descriptor of the program
/// that was started. The error is the module's `absence`.
fn program_file(module: &Module, executable: Option<&(PathBuf, File)>) -> Result<MappedFile, String> {
    let text = module.path.strip_suffix(DELETED).unwrap_or(&module.path);
    // A file may really be called so.
    let path = unescape_path(&module.path);
    let path = if path.exists() { path } else { unescape_path(text) };

    let held = executable.and_then(|(held_path, file)| {
        let held = MappedFile::from_file(file, held_path).ok()?;
        let elf = object_file::parse(&held)?;
        // A build-id tells the file by itself: also a copy of the program under another name.
        let is_it = !module.build_id.is_empty() || same_path(held_path, &path);
        (is_it && object_file::difference(&elf, module).is_none()).then_some(held)
    });
    let at_path = MappedFile::open(&path);
    match (at_path, held) {
        (Ok(file), held) => {
            let problem = match object_file::parse(&file) {
                None => Some("not a 64-bit little-endian ELF file".to_owned()),
                Some(elf) => object_file::difference(&elf, module),
            };
            match (problem, held) {
                // Without a build-id, another file at that path is another program, however well it fits.
                (None, Some(held)) if module.build_id.is_empty() && held.identity != file.identity => {
                    Ok(held)
                }
                (None, _) => Ok(file),
                (Some(_), Some(held)) => Ok(held),
                (Some(problem), None) => Err(format!("file replaced: the one at its path is {problem}")),
            }
        }
        (Err(_), Some(held)) => Ok(held),
        (Err(error), None) => {
            let head = if error.kind() == io::ErrorKind::NotFound { "file gone" } else { "file unreadable" };
            Err(format!("{head}: it cannot be read ({error})"))
        }
    }
}

/// Whether two paths name one place.
fn same_path(left: &Path, right: &Path) -> bool {
    let whole = |path: &Path| {
        let folder = path.parent().and_then(|folder| std::fs::canonicalize(folder).ok())?;
        Some(folder.join(path.file_name()?))
    };
    left == right || whole(left).is_some_and(|left| Some(left) == whole(right))
}
