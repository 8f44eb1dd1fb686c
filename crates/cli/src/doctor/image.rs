//! An ELF file of this machine's kind, opened to be looked at.
#![expect(unsafe_code, reason = "maps files: symbol tables and debug information can be large")]

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::elf::{EM_X86_64, FileHeader64};
use object::read::elf::{ElfFile, FileHeader as _};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolKind};

/// A parsed file.
pub(crate) type Elf<'a> = ElfFile<'a, FileHeader64<LittleEndian>>;

/// Sections with more bytes than this are not read.
const MAX_SECTION_BYTES: u64 = 1 << 30;

/// An open file.
#[derive(Debug)]
pub(crate) struct Image {
    /// Where it lies.
    pub(crate) path: PathBuf,
    map: Mmap,
}

impl Image {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // Asked before it is opened: to open a pipe would wait for a writer.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        // SAFETY: the mapping is read only and private. A file that another process cuts short meanwhile ends this
        // command by SIGBUS, as it would end the program that is started from it.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Self { path: path.to_owned(), map })
    }

    /// It, parsed; `None`: it is no ELF file for x86-64.
    pub(crate) fn elf(&self) -> Option<Elf<'_>> {
        let elf = Elf::parse(self.map.as_ref()).ok()?;
        (elf.elf_header().e_machine(LittleEndian) == EM_X86_64).then_some(elf)
    }
}

/// A section's content, unpacked; `None`: it is not there, damaged or too large.
pub(crate) fn section<'a>(elf: &Elf<'a>, name: &str) -> Option<Cow<'a, [u8]>> {
    let section = elf.section_by_name(name)?;
    let range = section.compressed_file_range().ok()?;
    if range.uncompressed_size.max(range.compressed_size) > MAX_SECTION_BYTES {
        return None;
    }
    section.uncompressed_data().ok()
}

/// Whether a section is there and has content in this file.
pub(crate) fn has_section(elf: &Elf<'_>, name: &str) -> bool {
    elf.section_by_name(name)
        .is_some_and(|section| section.compressed_file_range().is_ok_and(|range| range.uncompressed_size > 0))
}

/// The build-id in lower-case hex; empty where there is none.
pub(crate) fn build_id(elf: &Elf<'_>) -> String {
    let bytes = elf.build_id().ok().flatten().unwrap_or_default();
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Where a symbol is defined in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// For all objects of the process.
    Exported,
    /// For this file's own calls.
    Hidden,
}

/// Whether and how a file defines a function.
pub(crate) fn definition(elf: &Elf<'_>, name: &[u8]) -> Option<Definition> {
    let is_it = |symbol: &object::read::elf::ElfSymbol<'_, '_, FileHeader64<LittleEndian>>| {
        symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.name_bytes() == Ok(name)
    };
    if elf.dynamic_symbols().any(|symbol| symbol.is_global() && is_it(&symbol)) {
        return Some(Definition::Exported);
    }
    // Linking made a hidden symbol a local one.
    elf.symbols().any(|symbol| is_it(&symbol)).then_some(Definition::Hidden)
}

/// What `find` has to say of the first of the functions that a file defines, exported ones first.
pub(crate) fn find_defined<T>(elf: &Elf<'_>, find: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    let all = elf.dynamic_symbols().chain(elf.symbols());
    let mut defined = all.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    defined.find_map(|symbol| find(symbol.name_bytes().ok()?))
}

/// Whether a file's constants hold a text.
pub(crate) fn has_text(elf: &Elf<'_>, text: &[u8]) -> bool {
    section(elf, ".rodata").is_some_and(|data| {
        let first = text.first().copied().unwrap_or_default();
        let mut rest: &[u8] = &data;
        while let Some(at) = rest.iter().position(|byte| *byte == first) {
            if rest.get(at..).is_some_and(|rest| rest.starts_with(text)) {
                return true;
            }
            rest = rest.get(at + 1..).unwrap_or_default();
        }
        false
    })
}
