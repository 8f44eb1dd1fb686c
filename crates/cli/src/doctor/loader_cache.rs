//! The loader's list of libraries, `/etc/ld.so.cache`, as ldconfig writes it.
//!
//! ```text
//! "glibc-ld.so.cache1.1" | count u32 | string bytes u32 | 20 bytes
//! { flags u32 | name u32 | path u32 | 12 bytes }[count]         offsets of C strings from the start of the header
//! ```
//! In older files this follows, aligned to 8, a table of an older form that begins with `ld.so-1.7.0`.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;
/// The flags of a library of glibc's for x86-64.
const X86_64: u32 = 0x0303;
/// Bits of the flags that tell what kind of library it is.
const KIND: u32 = 0xffff;

/// Paths by library name; of several the first, as the loader prefers it where it has no hardware capability.
#[derive(Debug, Default)]
pub(crate) struct LoaderCache(HashMap<OsString, PathBuf>);

impl LoaderCache {
    /// This machine's; empty where there is none.
    pub(crate) fn of_this_machine() -> Self {
        Self::parse(&std::fs::read("/etc/ld.so.cache").unwrap_or_default())
    }

    /// Reads a file. What is damaged is left out.
    fn parse(bytes: &[u8]) -> Self {
        let mut paths = HashMap::new();
        let start = bytes.windows(MAGIC.len()).position(|window| window == MAGIC);
        let table = start.and_then(|start| bytes.get(start..)).unwrap_or_default();
        let number = |at: usize| {
            let bytes = table.get(at..at.checked_add(4)?)?;
            bytes.try_into().ok().map(u32::from_le_bytes)
        };
        let text = |at: usize| {
            let at = usize::try_from(number(at)?).ok()?;
            table.get(at..)?.split(|byte| *byte == 0).next().map(OsStr::from_bytes)
        };
        for index in 0..number(MAGIC.len()).unwrap_or(0) as usize {
            let at = HEADER_BYTES + index * ENTRY_BYTES;
            let Some(flags) = number(at) else { break };
            if flags & KIND == X86_64
                && let (Some(name), Some(path)) = (text(at + 4), text(at + 8))
            {
                paths.entry(name.to_owned()).or_insert_with(|| path.into());
            }
        }
        Self(paths)
    }

    /// The path of a library.
    pub(crate) fn path(&self, name: &OsStr) -> Option<&PathBuf> {
        self.0.get(name)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn file(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(u32::try_from(entries.len()).unwrap().to_le_bytes());
        bytes.resize(HEADER_BYTES, 0);
        let mut texts = Vec::new();
        let first = HEADER_BYTES + entries.len() * ENTRY_BYTES;
        for (flags, name, path) in entries {
            let mut put = |text: &str| {
                let at = u32::try_from(first + texts.len()).unwrap();
                texts.extend(text.bytes());
                texts.push(0);
                at
            };
            for number in [*flags, put(name), put(path), 0, 0, 0] {
                bytes.extend(number.to_le_bytes());
            }
        }
        bytes.extend(texts);
        bytes
    }

    #[test]
    fn the_first_of_the_right_kind() {
        let whole =
            file(&[(0x0003, "a.so", "/32/a.so"), (X86_64, "a.so", "/64/a.so"), (X86_64, "a.so", "/b/a.so")]);
        let with_older_table = [b"ld.so-1.7.0\0\0\0\0\0".as_slice(), &whole].concat();
        for bytes in [&whole, &with_older_table] {
            let cache = LoaderCache::parse(bytes);
            assert_eq!(cache.path(OsStr::new("a.so")).map(PathBuf::as_path), Some(Path::new("/64/a.so")));
            assert_eq!(cache.path(OsStr::new("b.so")), None);
        }
        for len in 0..whole.len() {
            LoaderCache::parse(&whole[..len]);
        }
        let mut endless = whole;
        endless[MAGIC.len()..MAGIC.len() + 4].fill(0xff);
        LoaderCache::parse(&endless);
    }
}
