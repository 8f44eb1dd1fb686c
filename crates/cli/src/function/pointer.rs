//! Addresses that a file's data holds: a table of jumps may lead to the middle of a function.
//!
//! In a file that can be loaded anywhere they are what the loader adds its base to (`R_X86_64_RELATIVE`, packed as
//! `SHT_RELR` or not); in one with a fixed address any word of its data can be one. Tables of distances
//! are another matter (`distance.rs`).

use std::fs::File;
use std::io;
use std::path::Path;

use object::elf::{ET_DYN, FileHeader64, R_X86_64_RELATIVE, SHF_ALLOC, SHF_EXECINSTR};
use object::read::elf::{ElfFile, FileHeader as _, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ReadCache, RelocationFlags, SectionFlags};

/// The address of a word, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pointer {
    /// What it is the address of.
    pub(crate) target: u64,
    /// Where it is.
    pub(crate) place: u64,
}

/// The sections of a file that are data, each with its address.
pub(crate) fn sections(path: &Path) -> io::Result<Vec<(u64, Vec<u8>)>> {
    let cache = ReadCache::new(File::open(path)?);
    let elf = ElfFile::<FileHeader64<Endianness>, _>::parse(&cache).map_err(invalid)?;
    let data = elf.sections().filter(|section| is_data(section.flags()));
    let mut found: Vec<(u64, Vec<u8>)> =
        data.filter_map(|section| Some((section.address(), section.data().ok()?.to_vec()))).collect();
    found.sort_unstable();
    Ok(found)
}

fn is_data(flags: SectionFlags) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = flags else { return false };
    sh_flags & SHF_ALLOC == SHF_ALLOC && sh_flags & SHF_EXECINSTR == Default::default()
}

fn invalid(error: object::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// Where pointers to the start of a function stand in one table with pointers into it: that is no list of functions but one of
/// the labels to which it jumps. `pointers`: all that lead to it, from its start on.
pub(crate) fn label_at_start(pointers: &[Pointer], start: u64) -> Option<u64> {
    let mut by_place = pointers.to_vec();
    by_place.sort_unstable_by_key(|pointer| pointer.place);
    let tables = by_place.chunk_by(|one, next| next.place - one.place <= 8);
    let at_start = |table: &&[Pointer]| table.iter().any(|pointer| pointer.target == start);
    let is_of_labels = |table: &&[Pointer]| table.iter().any(|pointer| pointer.target != start);
    let mut tables = tables.filter(at_start).filter(is_of_labels);
    tables.find_map(|table| Some(table.iter().find(|pointer| pointer.target == start)?.place))
}

/// The pointers in a file to what `is_wanted`, in order of their targets.
pub(crate) fn read(path: &Path, is_wanted: impl Fn(u64) -> bool) -> io::Result<Vec<Pointer>> {
    let cache = ReadCache::new(File::open(path)?);
    let elf = ElfFile::<FileHeader64<Endianness>, _>::parse(&cache).map_err(invalid)?;
    let mut found = Vec::new();
    let mut add = |target, place| {
        if is_wanted(target) {
            found.push(Pointer { target, place });
        }
    };
    let is_movable = elf.elf_header().e_type(elf.endian()) == ET_DYN;
    if is_movable {
        for (place, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            if relocation.flags() == (RelocationFlags::Elf { r_type: R_X86_64_RELATIVE }) {
                add(relocation.addend().cast_unsigned(), place);
            }
        }
    }
    let packed = elf.elf_section_table().iter().find_map(|header| {
        header.relr(elf.endian(), elf.data()).ok().flatten().map(Iterator::collect::<Vec<u64>>)
    });
    let packed = packed.unwrap_or_default();
    for section in elf.sections() {
        let is_data = is_data(section.flags());
        let Ok(bytes) = section.data() else { continue };
        let start = section.address();
        if is_data && is_movable {
            let end = start + bytes.len() as u64;
            let first = packed.partition_point(|place| *place < start);
            for place in packed[first..].iter().take_while(|place| **place + 8 <= end) {
                let word = usize::try_from(place - start).ok().and_then(|at| bytes.get(at..)?.first_chunk());
                add(word.map_or(0, |word| u64::from_le_bytes(*word)), *place);
            }
        } else if is_data {
            let before = start.next_multiple_of(8) - start;
            let words = bytes.get(usize::try_from(before).unwrap_or(0)..).unwrap_or_default();
            for (index, word) in words.as_chunks::<8>().0.iter().enumerate() {
                add(u64::from_le_bytes(*word), start + before + 8 * index as u64);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
