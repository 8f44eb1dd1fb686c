//! Copies of `/bin/true` with something in them changed: programs as no tool at hand would build them.

use std::fs;

use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, U32};

/// Offsets in the file header.
const CLASS: usize = 4;
const TYPE: usize = 16;
const MACHINE: usize = 18;
const PROGRAM_HEADERS: usize = 32;

const ET_EXEC: u16 = 2;
const CLASS_32: u8 = 1;

/// A program that does nothing.
pub(crate) fn plain() -> Vec<u8> {
    fs::read("/bin/true").unwrap()
}

pub(crate) fn with_machine(machine: u16) -> Vec<u8> {
    let mut bytes = plain();
    bytes[MACHINE..MACHINE + 2].copy_from_slice(&machine.to_le_bytes());
    bytes
}

pub(crate) fn with_32_bits() -> Vec<u8> {
    let mut bytes = plain();
    bytes[CLASS] = CLASS_32;
    bytes
}

/// Names another loader, whose path must not be longer.
pub(crate) fn with_loader(loader: &str) -> Vec<u8> {
    let mut bytes = plain();
    let header = interpreter(&bytes);
    let place = &mut bytes[header.offset..header.offset + header.len];
    assert!(loader.len() < place.len());
    place.fill(0);
    place[..loader.len()].copy_from_slice(loader.as_bytes());
    bytes
}

/// Names no loader: a static-pie.
pub(crate) fn without_loader() -> Vec<u8> {
    let mut bytes = plain();
    let header = interpreter(&bytes);
    bytes[header.at..header.at + size_of::<U32<Endianness>>()].fill(0);
    bytes
}

/// Names no loader and stands at a fixed address: a static executable.
pub(crate) fn without_loader_at_fixed_address() -> Vec<u8> {
    let mut bytes = without_loader();
    bytes[TYPE..TYPE + 2].copy_from_slice(&ET_EXEC.to_le_bytes());
    bytes
}

/// Calls this function, whose name must not be longer than `__cxa_finalize`.
pub(crate) fn with_symbol(symbol: &str) -> Vec<u8> {
    const OLD: &[u8] = b"\0__cxa_finalize\0";
    let mut bytes = plain();
    let at = bytes.windows(OLD.len()).position(|found| found == OLD).unwrap() + 1;
    let place = &mut bytes[at..at + OLD.len() - 1];
    assert!(symbol.len() < place.len());
    place.fill(0);
    place[..symbol.len()].copy_from_slice(symbol.as_bytes());
    bytes
}

/// Ends in the middle of its program headers.
pub(crate) fn cut_short() -> Vec<u8> {
    let mut bytes = plain();
    bytes.truncate(100);
    bytes
}

/// Its program headers lie beyond its end.
pub(crate) fn with_headers_beyond_its_end() -> Vec<u8> {
    let mut bytes = plain();
    bytes[PROGRAM_HEADERS..PROGRAM_HEADERS + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    bytes
}

/// The loader's name lies beyond its end.
pub(crate) fn with_loader_beyond_its_end() -> Vec<u8> {
    const OFFSET: usize = 8;
    let mut bytes = plain();
    let at = interpreter(&bytes).at + OFFSET;
    bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    bytes
}

struct Interpreter {
    /// Where its program header lies.
    at: usize,
    /// Where the loader's name lies, and its room.
    offset: usize,
    len: usize,
}

fn interpreter(bytes: &[u8]) -> Interpreter {
    let header = FileHeader64::<Endianness>::parse(bytes).unwrap();
    let endian = header.endian().unwrap();
    let headers = header.program_headers(endian, bytes).unwrap();
    let index = headers.iter().position(|header| header.p_type(endian) == PT_INTERP).unwrap();
    let (offset, len) = headers[index].file_range(endian);
    let first = usize::try_from(header.e_phoff(endian)).unwrap();
    let number = |value: u64| usize::try_from(value).unwrap();
    Interpreter { at: first + index * size_of_val(&headers[index]), offset: number(offset), len: number(len) }
}
