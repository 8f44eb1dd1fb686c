//! The little of ELF that the recorder reads in loaded objects: the build-id note, and a symbol look-up that takes no
//! lock (`dlsym` takes the loader's, for which another thread may be waiting that waits for us).
#![expect(unsafe_code, reason = "reads loaded objects")]

use core::ffi::{CStr, c_char};
use core::slice;

const NT_GNU_BUILD_ID: u32 = 3;
const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const R_X86_64_64: u32 = 1;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;
const STT_FUNC: u8 = 2;

/// The build-id in a range of notes; empty when there is none.
///
/// # Safety
/// The range is readable and stays so while the result is used.
pub(crate) unsafe fn build_id(notes: *const u8, len: usize) -> &'static [u8] {
    // SAFETY: by the caller.
    let mut rest: &'static [u8] = unsafe { slice::from_raw_parts(notes, len) };
    while let Some((head, body)) = rest.split_first_chunk::<12>() {
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (name_len, desc_len, kind) = (word(0) as usize, word(4) as usize, word(8));
        let name_end = name_len.next_multiple_of(4);
        let Some(desc_end) = name_end.checked_add(desc_len) else { break };
        let (Some(name), Some(desc)) = (body.get(..name_len), body.get(name_end..desc_end)) else { break };
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return desc;
        }
        rest = body.get(desc_end.next_multiple_of(4)..).unwrap_or(&[]);
    }
    &[]
}

/// The address of a function that a loaded object defines, by its hash table, GNU's or the older one.
///
/// An indirect function (IFUNC) is not one: its address is known to the loader only.
pub(crate) fn definition(bias: u64, dynamic: u64, name: &CStr) -> Option<u64> {
    let symbol = look_up(bias, dynamic, name)?;
    (symbol.info & 15 == STT_FUNC).then(|| bias.wrapping_add(symbol.value))
}

/// Whether a loaded object defines a symbol.
pub(crate) fn defines(bias: u64, dynamic: u64, name: &CStr) -> bool {
    look_up(bias, dynamic, name).is_some()
}

fn look_up(bias: u64, dynamic: u64, name: &CStr) -> Option<&'static Symbol> {
    let tables = Tables::read(bias, dynamic)?;
    if tables.hashes == 0 {
        // SAFETY: as below.
        return unsafe {
            search_old(tables.strings, tables.symbols as *const Symbol, tables.old_hashes, name)
        };
    }
    // SAFETY: the three tables are those of one loaded object.
    unsafe { search(tables.strings, tables.symbols as *const Symbol, tables.hashes as *const u32, name) }
}

/// Shows each place where a loaded object has the address of a function by name, and the name; the object may not be
/// relocated yet.
pub(crate) fn visit_relocations(bias: u64, dynamic: u64, mut see: impl FnMut(u64, &CStr)) {
    let Some(tables) = Tables::read(bias, dynamic) else { return };
    for (start, bytes) in &tables.relocations {
        if *start == 0 {
            continue;
        }
        // SAFETY: the dynamic section gives the table's place and size.
        let entries = unsafe {
            slice::from_raw_parts(*start as *const [u64; 3], *bytes as usize / size_of::<[u64; 3]>())
        };
        for [offset, info, addend] in entries {
            let is_function = matches!(*info as u32, R_X86_64_64 | R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT);
            if !is_function || *addend != 0 {
                continue;
            }
            // SAFETY: a relocation names a symbol of the object's table.
            let symbol = unsafe { &*(tables.symbols as *const Symbol).add((info >> 32) as usize) };
            // SAFETY: a symbol's name is a string in the object's string table.
            let name = unsafe { CStr::from_ptr((tables.strings + u64::from(symbol.name)) as *const c_char) };
            see(bias + offset, name);
        }
    }
}

/// What an object's dynamic section says: addresses, 0 where it says nothing.
struct Tables {
    strings: u64,
    symbols: u64,
    hashes: u64,
    old_hashes: u64,
    /// Start and bytes of the tables of relocations with addends.
    relocations: [(u64, u64); 2],
}

impl Tables {
    fn read(bias: u64, dynamic: u64) -> Option<Self> {
        let mut tables = Self { strings: 0, symbols: 0, hashes: 0, old_hashes: 0, relocations: [(0, 0); 2] };
        let mut entry = dynamic as *const [i64; 2];
        if entry.is_null() {
            return None;
        }
        loop {
            // SAFETY: a loaded object's dynamic section is readable and ends with DT_NULL.
            let [tag, value] = unsafe { entry.read() };
            // The loader has added the bias to these addresses, but in the vdso: both ways are taken.
            let address = if (value as u64) < bias { bias + value as u64 } else { value as u64 };
            match tag {
                DT_NULL => break,
                DT_STRTAB => tables.strings = address,
                DT_SYMTAB => tables.symbols = address,
                DT_GNU_HASH => tables.hashes = address,
                DT_HASH => tables.old_hashes = address,
                DT_RELA => tables.relocations[0].0 = address,
                DT_RELASZ => tables.relocations[0].1 = value as u64,
                DT_JMPREL => tables.relocations[1].0 = address,
                DT_PLTRELSZ => tables.relocations[1].1 = value as u64,
                _ => {}
            }
            // SAFETY: as above; this was not the last one.
            entry = unsafe { entry.add(1) };
        }
        (tables.strings != 0 && tables.symbols != 0).then_some(tables)
    }
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// # Safety
/// The tables are those of one loaded object.
unsafe fn search(
    strings: u64,
    symbols: *const Symbol,
    hashes: *const u32,
    name: &CStr,
) -> Option<&'static Symbol> {
    let hash = name
        .to_bytes()
        .iter()
        .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
    // SAFETY: the table begins with four words: buckets, first symbol, words of the filter, and a shift.
    let [buckets, first, filter_words] = unsafe { hashes.cast::<[u32; 3]>().read() };
    if buckets == 0 {
        return None;
    }
    // SAFETY: the filter, of 64-bit words, and the buckets follow.
    let bucket_table = unsafe { hashes.add(4 + filter_words as usize * 2) };
    // SAFETY: the bucket's number is below their count.
    let mut symbol = unsafe { bucket_table.add((hash % buckets) as usize).read() };
    if symbol < first {
        return None;
    }
    loop {
        // SAFETY: the chain follows the buckets, and has a word for each symbol from `first` on.
        let link = unsafe { bucket_table.add((buckets + symbol - first) as usize).read() };
        if (link | 1) == (hash | 1) {
            // SAFETY: the chain names symbols that exist.
            let entry: &'static Symbol = unsafe { &*symbols.add(symbol as usize) };
            // SAFETY: a symbol's name is a string in the object's string table.
            let found = unsafe { CStr::from_ptr((strings + u64::from(entry.name)) as *const c_char) };
            if entry.section != 0 && found == name {
                return Some(entry);
            }
        }
        if link & 1 == 1 {
            return None;
        }
        symbol += 1;
    }
}

/// By a table of the System V psABI: two counts, a word for each bucket, a word for each symbol.
///
/// # Safety
/// The tables are those of one loaded object; 0: it has none.
unsafe fn search_old(
    strings: u64,
    symbols: *const Symbol,
    hashes: u64,
    name: &CStr,
) -> Option<&'static Symbol> {
    if hashes == 0 {
        return None;
    }
    let hash = name.to_bytes().iter().fold(0_u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(*byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    });
    let word = |at: u32| {
        // SAFETY: the table's counts say how many words follow.
        unsafe { (hashes as *const u32).add(at as usize).read() }
    };
    let (buckets, count) = (word(0), word(1));
    let mut symbol = if buckets == 0 { 0 } else { word(2 + hash % buckets) };
    while symbol != 0 && symbol < count {
        // SAFETY: the chain names symbols that exist.
        let entry: &'static Symbol = unsafe { &*symbols.add(symbol as usize) };
        // SAFETY: a symbol's name is a string in the object's string table.
        let found = unsafe { CStr::from_ptr((strings + u64::from(entry.name)) as *const c_char) };
        if entry.section != 0 && found == name {
            return Some(entry);
        }
        symbol = word(2 + buckets + symbol);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Scope, is_defined, is_in_libc};

    fn by_loader(name: &CStr) -> u64 {
        // SAFETY: a look-up by a C string.
        unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as u64 }
    }

    /// The bias and the dynamic section of the object that holds an address.
    fn object(address: u64) -> (u64, u64) {
        unsafe extern "C" fn visit(
            info: *mut libc::dl_phdr_info,
            _: usize,
            data: *mut core::ffi::c_void,
        ) -> i32 {
            // SAFETY: `data` is the tuple below, and the loader passes a valid record.
            let ((address, found), info) = unsafe { (&mut *data.cast::<(u64, (u64, u64))>(), &*info) };
            // SAFETY: the loader keeps the headers as long as the object.
            let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
            let holds = |header: &libc::Elf64_Phdr| {
                header.p_type == libc::PT_LOAD
                    && (header.p_vaddr..header.p_vaddr + header.p_memsz)
                        .contains(&(*address - info.dlpi_addr))
            };
            if *address >= info.dlpi_addr && headers.iter().any(holds) {
                let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
                *found = (info.dlpi_addr, dynamic.map_or(0, |header| info.dlpi_addr + header.p_vaddr));
            }
            0
        }
        let mut question = (address, (0, 0));
        // SAFETY: the callback has the right form, and the tuple outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut question).cast()) };
        question.1
    }

    #[test]
    fn definitions_are_the_loaders() {
        let (bias, dynamic) = object(by_loader(c"malloc"));
        for name in [c"malloc", c"free", c"realloc", c"posix_memalign", c"dlclose", c"qsort", c"getpid"] {
            assert_eq!(definition(bias, dynamic, name), Some(by_loader(name)), "{name:?}");
        }
        assert_eq!(definition(bias, dynamic, c"no_such_function_anywhere"), None);
    }

    #[test]
    fn indirect_functions_are_defined_but_have_no_address_here() {
        let (bias, dynamic) = object(by_loader(c"malloc"));
        assert!(defines(bias, dynamic, c"strlen"));
        assert_eq!(definition(bias, dynamic, c"strlen"), None);
    }

    #[test]
    fn the_c_library_is_known() {
        assert!(is_in_libc(by_loader(c"malloc")));
        assert!(!is_in_libc(definition as *const () as u64));
        assert!(is_defined(c"malloc", Scope::Elsewhere));
        assert!(!is_defined(c"no_such_function_anywhere", Scope::Elsewhere));
    }

    #[test]
    fn notes_that_lie_do_not_mislead() {
        let read = |bytes: &'static [u8]| {
            // SAFETY: the range is a constant.
            unsafe { build_id(bytes.as_ptr(), bytes.len()) }
        };
        assert_eq!(read(b"\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0\xab\xcd\0\0"), b"\xab\xcd");
        // Another kind first, then a length that goes beyond the end.
        assert_eq!(
            read(b"\x04\0\0\0\0\0\0\0\x01\0\0\0GNU\0\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0\xab\xcd\0\0"),
            b"\xab\xcd"
        );
        assert_eq!(read(b"\x04\0\0\0\xff\xff\xff\xff\x03\0\0\0GNU\0\xab\xcd"), b"");
        assert_eq!(read(b""), b"");
    }
}
