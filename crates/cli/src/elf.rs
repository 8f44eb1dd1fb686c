//! What a program's ELF file tells before it is started.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_SONAME, EM_X86_64, ET_DYN, FileHeader64, PT_INTERP};
use object::read::elf::{ElfFile, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache};

use crate::doctor::managed_heap::{self, Runtime};
use crate::doctor::rust_allocator;

/// Symbols by which each sanitizer's start is called, and the names of their shared libraries.
const SANITIZERS: [(&str, &str, &[u8]); 5] = [
    ("AddressSanitizer", "libasan", b"__asan_init"),
    ("ThreadSanitizer", "libtsan", b"__tsan_init"),
    ("MemorySanitizer", "libmsan", b"__msan_init"),
    ("HWAddressSanitizer", "libhwasan", b"__hwasan_init"),
    ("LeakSanitizer", "liblsan", b"__lsan_init"),
];

/// Functions by which allocators are called that nobody else's `malloc` stands in for.
const OTHER_ALLOCATORS: [(&str, &[u8]); 7] = [
    ("jemalloc", b"_rjem_malloc"),
    ("jemalloc", b"je_malloc"),
    ("mimalloc", b"mi_malloc"),
    ("mimalloc", b"mi_malloc_aligned"),
    ("snmalloc", b"sn_malloc"),
    ("rpmalloc", b"rpmalloc"),
    ("rpmalloc", b"rpaligned_alloc"),
];

/// How a program is linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Linkage {
    /// For another machine, or of 32 bits.
    Foreign,
    /// Its headers make no sense.
    Damaged,
    /// No loader runs before it. The word says of which kind.
    Static(&'static str),
    /// This loader runs before it.
    Dynamic(PathBuf),
    /// It is a loader itself, called with a program.
    Loader,
}

/// What matters for recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elf {
    pub(crate) linkage: Linkage,
    /// The sanitizer that it was built with.
    pub(crate) sanitizer: Option<&'static str>,
    /// Allocators that it calls by names of their own, each once.
    pub(crate) allocators: Vec<&'static str>,
    /// Whose heap it has besides malloc's.
    pub(crate) managed_heap: Option<Runtime>,
    /// It has a Rust program's allocator under its name.
    pub(crate) has_rust_allocator: bool,
}

impl Elf {
    /// Reads a file that begins with `head`; `None`: it is no ELF file.
    pub(crate) fn read(file: &File, head: &[u8]) -> Option<Self> {
        if !head.starts_with(b"\x7fELF") {
            return None;
        }
        let of = |linkage| Self {
            linkage,
            sanitizer: None,
            allocators: Vec::new(),
            managed_heap: None,
            has_rust_allocator: false,
        };
        // Class, byte order and machine.
        let machine = head.get(18..20).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes);
        if head.get(4..6) != Some(&[2, 1]) || machine != EM_X86_64.0 {
            return Some(of(Linkage::Foreign));
        }
        let Ok(copy) = file.try_clone() else { return Some(of(Linkage::Damaged)) };
        // PERF: only what is asked for is read: a program with debug information can have gigabytes.
        let cache = ReadCache::new(copy);
        let Ok(elf) = ElfFile::<FileHeader64<Endianness>, _>::parse(&cache) else {
            return Some(of(Linkage::Damaged));
        };
        Some(examine(&elf))
    }
}

fn examine<'a>(elf: &ElfFile<'a, FileHeader64<Endianness>, &'a ReadCache<File>>) -> Elf {
    let names = DynamicNames::of(elf);
    let mut sanitizer = SANITIZERS
        .iter()
        .find(|(_, library, _)| names.needed.iter().any(|needed| needed.starts_with(library)))
        .map(|(sanitizer, ..)| *sanitizer);
    let mut allocators = Vec::new();
    let of_sections =
        || elf.sections().find_map(|section| managed_heap::by_section(section.name_bytes().ok()?));
    let of_libraries = || names.needed.iter().find_map(|library| managed_heap::by_library(library));
    let mut managed_heap = of_sections().or_else(of_libraries);
    let mut has_rust_allocator = false;
    for symbol in elf.dynamic_symbols().chain(elf.symbols()) {
        let Ok(name) = symbol.name_bytes() else { continue };
        if let Some((found, ..)) = SANITIZERS.iter().find(|(.., init)| *init == name) {
            sanitizer = Some(found);
        }
        managed_heap = managed_heap.or_else(|| managed_heap::by_function(name));
        has_rust_allocator |= rust_allocator::is_rust_alloc(name);
        if let Some((found, _)) = OTHER_ALLOCATORS.iter().find(|(_, function)| *function == name)
            && !allocators.contains(found)
        {
            allocators.push(*found);
        }
    }
    Elf { linkage: linkage(elf, &names), sanitizer, allocators, managed_heap, has_rust_allocator }
}

fn linkage<'a>(
    elf: &ElfFile<'a, FileHeader64<Endianness>, &'a ReadCache<File>>,
    names: &DynamicNames,
) -> Linkage {
    let endian = elf.endian();
    let interpreter = elf
        .elf_program_headers()
        .iter()
        .find(|header| header.p_type(endian) == PT_INTERP)
        .map(|header| header.data(endian, elf.data()));
    if let Some(path) = interpreter {
        let Ok(path) = path else { return Linkage::Damaged };
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        return Linkage::Dynamic(Path::new(OsStr::from_bytes(path)).to_owned());
    }
    let is_shared = elf.elf_header().e_type(endian) == ET_DYN;
    match &names.own {
        Some(name) if is_shared && name.starts_with("ld-linux") => Linkage::Loader,
        _ if is_shared => Linkage::Static("static-pie"),
        _ => Linkage::Static("static"),
    }
}

/// Names in the dynamic section.
#[derive(Debug, Default)]
struct DynamicNames {
    /// The libraries that it needs.
    needed: Vec<String>,
    /// Its own, where it is a library.
    own: Option<String>,
}

impl DynamicNames {
    fn of<'a>(elf: &ElfFile<'a, FileHeader64<Endianness>, &'a ReadCache<File>>) -> Self {
        let mut names = Self::default();
        let Ok(table) = elf.elf_dynamic_table() else { return names };
        for entry in table.iter() {
            let text = || table.string(entry).map(|text| String::from_utf8_lossy(text).into_owned());
            if entry.tag == DT_NEEDED {
                names.needed.extend(text());
            } else if entry.tag == DT_SONAME {
                names.own = text().ok();
            }
        }
        names
    }
}
