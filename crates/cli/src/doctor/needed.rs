//! The libraries that a program needs, searched as the loader searches them.
//!
//! Breadth first, each name once. For a name without a slash: the RPATH of the object that needs it and of those above
//! it (unless it has a RUNPATH), `LD_LIBRARY_PATH`, its RUNPATH, the loader's cache, the system's folders. Of the
//! variables `$ORIGIN` is known; versions of a library for newer processors (`glibc-hwcaps`) are not looked at.

use std::collections::{HashSet, VecDeque};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH};

use super::image::{Elf, Image};
use super::loader_cache::LoaderCache;

/// Where the loader looks last.
const SYSTEM_FOLDERS: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
/// So many libraries are followed.
const MAX_LIBRARIES: usize = 4096;

/// What a program needs.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// The libraries that were found, in the order in which the loader loads them.
    pub(crate) libraries: Vec<Image>,
    /// The names of those that were not, each with the object that needs it.
    pub(crate) missing: Vec<(OsString, PathBuf)>,
}

impl Needed {
    /// Searches what `program` needs. `library_path`: the folders of `LD_LIBRARY_PATH`.
    pub(crate) fn of(program: &Image, library_path: &[PathBuf]) -> Self {
        let cache = LoaderCache::of_this_machine();
        let mut needed = Self::default();
        let mut seen: HashSet<OsString> = HashSet::new();
        let mut queue = VecDeque::from([Wants::of(program, &[])]);
        while let Some(wants) = queue.pop_front() {
            for name in &wants.names {
                if seen.len() >= MAX_LIBRARIES || !seen.insert(name.clone()) {
                    continue;
                }
                match wants.find(name, library_path, &cache) {
                    Some(library) => {
                        queue.push_back(Wants::of(&library, &wants.rpath));
                        needed.libraries.push(library);
                    }
                    None => needed.missing.push((name.clone(), wants.path.clone())),
                }
            }
        }
        needed
    }
}

/// The folders of `LD_LIBRARY_PATH`.
pub(crate) fn library_path() -> Vec<PathBuf> {
    let list = env::var_os("LD_LIBRARY_PATH").filter(|list| !list.is_empty()).unwrap_or_default();
    // The loader takes semicolons too.
    let folders = list.as_bytes().split(|byte| matches!(byte, b':' | b';'));
    folders.filter(|_| !list.is_empty()).map(|folder| OsStr::from_bytes(folder).into()).collect()
}

/// What one object says of the libraries that it needs.
#[derive(Debug, Default)]
struct Wants {
    path: PathBuf,
    names: Vec<OsString>,
    /// Its RPATH and that of the objects above it.
    rpath: Vec<PathBuf>,
    runpath: Vec<PathBuf>,
    has_runpath: bool,
}

impl Wants {
    fn of(image: &Image, rpath_above: &[PathBuf]) -> Self {
        let mut wants = Self { path: image.path.clone(), ..Self::default() };
        let Some(elf) = image.elf() else { return wants };
        let origin = std::fs::canonicalize(&image.path).unwrap_or_else(|_| image.path.clone());
        let origin = origin.parent().unwrap_or(Path::new("/"));
        wants.read(&elf, origin);
        wants.rpath.extend_from_slice(rpath_above);
        wants
    }

    fn read(&mut self, elf: &Elf<'_>, origin: &Path) {
        let Ok(table) = elf.elf_dynamic_table() else { return };
        for entry in table.iter() {
            let Ok(text) = table.string(entry) else { continue };
            if entry.tag == DT_NEEDED {
                self.names.push(OsStr::from_bytes(text).to_owned());
            } else if entry.tag == DT_RPATH {
                self.rpath.extend(folders(text, origin));
            } else if entry.tag == DT_RUNPATH {
                self.has_runpath = true;
                self.runpath.extend(folders(text, origin));
            }
        }
    }

    fn find(&self, name: &OsStr, library_path: &[PathBuf], cache: &LoaderCache) -> Option<Image> {
        if name.as_bytes().contains(&b'/') {
            return usable(Path::new(name));
        }
        let rpath = if self.has_runpath { &[] } else { self.rpath.as_slice() };
        let first = rpath.iter().chain(library_path).chain(&self.runpath).map(|folder| folder.join(name));
        let last = SYSTEM_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
        first.chain(cache.path(name).cloned()).chain(last).find_map(|path| usable(&path))
    }
}

/// A library for this machine. The loader passes over others.
fn usable(path: &Path) -> Option<Image> {
    let image = Image::open(path).ok()?;
    image.elf().is_some().then_some(image)
}

/// The folders of a list in an ELF file.
fn folders(list: &[u8], origin: &Path) -> Vec<PathBuf> {
    let replace = |folder: &[u8], variable: &[u8]| -> Vec<u8> {
        let mut text = Vec::new();
        let mut rest = folder;
        while let Some(at) = rest.windows(variable.len()).position(|part| part == variable) {
            text.extend_from_slice(&rest[..at]);
            text.extend_from_slice(origin.as_os_str().as_bytes());
            rest = &rest[at + variable.len()..];
        }
        text.extend_from_slice(rest);
        text
    };
    let folders = list.split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
    folders
        .map(|folder| OsString::from_vec(replace(&replace(folder, b"${ORIGIN}"), b"$ORIGIN")).into())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_is_the_objects_folder() {
        let list = b"$ORIGIN/../lib:/opt::${ORIGIN}:/a$ORIGIN$ORIGIN";
        let expected: [PathBuf; 4] = ["/x/../lib".into(), "/opt".into(), "/x".into(), "/a/x/x".into()];
        assert_eq!(folders(list, Path::new("/x")), expected);
    }
}
