//! What an ELF file says about itself.

use addr2line::gimli;
use heaptally_profile::model::Module;
use object::elf::{PF_X, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection};
use typed_arena::Arena;

use crate::map::MappedFile;

/// A 64-bit little-endian ELF file.
pub(crate) type Elf<'a> = ElfFile64<'a, LittleEndian>;

/// What gimli reads from.
pub(crate) type Slice<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;

/// A page: segments are mapped in whole ones.
const PAGE_SIZE: u64 = 4096;

/// Parses a mapped file.
pub(crate) fn parse(file: &MappedFile) -> Option<Elf<'_>> {
    Elf::parse(file.bytes()).ok()
}

/// The build-id in lower-case hex; empty when there is none.
pub(crate) fn build_id(elf: &Elf<'_>) -> String {
    hex(elf.build_id().ok().flatten().unwrap_or_default())
}

/// Bytes in lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Whether a section is there and has content in this file.
pub(crate) fn has_section(elf: &Elf<'_>, name: &str) -> bool {
    elf.section_by_name(name).is_some_and(|section| section.data().is_ok_and(|data| !data.is_empty()))
}

/// Whether functions and inlined calls are described.
pub(crate) fn has_debug_info(elf: &Elf<'_>) -> bool {
    has_section(elf, ".debug_info")
}

/// How many times larger than in the file a section may be: deflate's most, 1,032, rounded up. Real ones are 20 times as
/// large at most. The size that the file states is made room for before anything is unpacked.
const MAX_GROWTH: u64 = 2048;

/// The content of a section, unpacked where it is compressed; empty where there is none. Unpacked bytes are kept by
/// `store`.
pub(crate) fn section<'a>(elf: &Elf<'a>, name: &str, store: &'a Arena<Vec<u8>>) -> Result<&'a [u8], String> {
    let Some(section) = elf.section_by_name(name) else { return Ok(&[]) };
    let packed = section.compressed_data().map_err(|error| error.to_string())?;
    if packed.uncompressed_size / MAX_GROWTH > packed.data.len() as u64 {
        return Err(format!("{name} is compressed, and larger than it can be"));
    }
    Ok(match packed.decompress().map_err(|error| error.to_string())? {
        std::borrow::Cow::Borrowed(bytes) => bytes,
        std::borrow::Cow::Owned(bytes) => store.alloc(bytes),
    })
}

/// Says why this cannot be the file that was loaded as `module`; `None` when it can.
pub(crate) fn difference(elf: &Elf<'_>, module: &Module) -> Option<String> {
    let found = build_id(elf);
    if !module.build_id.is_empty() {
        if module.build_id.eq_ignore_ascii_case(&found) {
            return None;
        }
        let found = if found.is_empty() { "none".to_owned() } else { found };
        return Some(format!("another build (build-id {found}, loaded was {})", module.build_id));
    }
    if code_may_lie_there(elf, module) {
        None
    } else {
        Some("another build (its code lies elsewhere)".to_owned())
    }
}

/// Whether the executable segments agree with the range that was loaded. A range that was not recorded agrees.
fn code_may_lie_there(elf: &Elf<'_>, module: &Module) -> bool {
    if module.text_svma_end <= module.text_svma {
        return true;
    }
    let mut begins_well = false;
    let mut end = 0;
    for header in elf.elf_program_headers() {
        let endian = LittleEndian;
        if header.p_type(endian) != PT_LOAD || header.p_flags(endian) & PF_X != PF_X {
            continue;
        }
        let svma = header.p_vaddr(endian);
        let segment_end = svma.saturating_add(header.p_memsz(endian));
        let page_end = segment_end.checked_next_multiple_of(PAGE_SIZE).unwrap_or(u64::MAX);
        if svma / PAGE_SIZE * PAGE_SIZE <= module.text_svma && module.text_svma < page_end {
            let shift = svma.wrapping_sub(header.p_offset(endian));
            begins_well |= module.text_svma.wrapping_sub(module.text_offset) == shift;
        }
        end = end.max(page_end);
    }
    begins_well && module.text_svma_end <= end
}
