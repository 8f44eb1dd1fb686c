//! Files as bytes.
#![expect(unsafe_code, reason = "a file is mapped into memory")]

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

/// A regular file that is mapped into memory.
#[derive(Debug)]
pub(crate) struct MappedFile {
    /// Where it was found.
    pub(crate) path: PathBuf,
    /// Its device and inode: which file it is, by whatever path.
    pub(crate) identity: (u64, u64),
    map: Mmap,
}

impl MappedFile {
    /// Maps the file at a path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // Asked before it is opened: to open a FIFO would wait for a writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Self::from_file(&File::open(path)?, path)
    }

    /// Maps an open file; the path says where it was.
    pub(crate) fn from_file(file: &File, path: &Path) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        // SAFETY: the mapping is private and only read. Compilers, linkers and package managers replace a file by
        // another one and leave the mapped one as it is; who overwrites a program in place changes bytes that no
        // reader here relies on twice, since each parses them as untrusted input and checks every offset.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self { path: path.to_owned(), identity: (metadata.dev(), metadata.ino()), map })
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }
}
