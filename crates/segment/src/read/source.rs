//! Positional reads, and numbers out of bytes.

use core::mem::size_of;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::vec;

use super::Error;
use crate::layout::Region;

/// How much of a table is read at once, in bytes.
const BLOCK_BYTES: usize = 256 * 1024;

/// The file. What lies beyond its end is zero, as what was never written is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    file: &'a File,
    pub(super) len: u64,
}

impl<'a> Source<'a> {
    pub(super) fn new(file: &'a File) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(|source| Error::Read { offset: 0, source })?;
        Ok(Self { file, len: metadata.len() })
    }

    /// Fills the buffer from an offset in the file.
    pub(super) fn read(self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let there = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        let (content, beyond) = buffer.split_at_mut(there);
        beyond.fill(0);
        match self.file.read_exact_at(content, offset) {
            Ok(()) => Ok(()),
            // It became shorter in the meantime.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                content.fill(0);
                Ok(())
            }
            Err(source) => Err(Error::Read { offset, source }),
        }
    }
}

/// One area of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct AreaSource<'a> {
    pub(super) source: Source<'a>,
    /// Where the area begins in the file.
    pub(super) start: u64,
}

impl AreaSource<'_> {
    /// Fills the buffer from an offset in the area.
    pub(super) fn read(self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.source.read(self.start + offset, buffer)
    }

    /// Shows each entry of a table below `used`, with its number.
    pub(super) fn for_each<T>(
        self,
        region: Region,
        used: u32,
        mut show: impl FnMut(u32, Bytes<'_>),
    ) -> Result<(), Error> {
        let size = size_of::<T>();
        let used = u64::from(used).min(region.bytes / size as u64);
        let end = used * size as u64;
        // No entry lies beyond the file's end.
        let end =
            end.min(self.source.len.saturating_sub(self.start + region.offset).next_multiple_of(size as u64));
        let mut block = vec![0; BLOCK_BYTES - BLOCK_BYTES % size];
        let mut at = 0;
        let mut number = 0;
        while at < end {
            let len = usize::try_from(end - at).unwrap_or(usize::MAX).min(block.len());
            let bytes = block.get_mut(..len).unwrap_or_default();
            self.read(region.offset + at, bytes)?;
            for entry in bytes.chunks_exact(size) {
                show(number, Bytes::new(entry));
                number += 1;
            }
            at += len as u64;
        }
        Ok(())
    }
}

/// An entry's bytes. Every number outside of them is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn slice(self, offset: usize, len: usize) -> &'a [u8] {
        self.0.get(offset..).and_then(|rest| rest.get(..len)).unwrap_or_default()
    }

    pub(super) fn u32(self, offset: usize) -> u32 {
        self.slice(offset, 4).try_into().map_or(0, u32::from_le_bytes)
    }

    pub(super) fn u64(self, offset: usize) -> u64 {
        self.slice(offset, 8).try_into().map_or(0, u64::from_le_bytes)
    }

    pub(super) fn i64(self, offset: usize) -> i64 {
        self.u64(offset).cast_signed()
    }
}
