//! What a program's ELF file tells before it is started.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_SONAME, EM_X86_64, ET_DYN, FileHeader64, PT_INTERP};
use object::read::elf::{ElfFile, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache};

use allocator::{Names, allocator, is_asked_for};
use managed_heap::Runtime;
use package_benchmark::Symbols;

pub(crate) mod allocator;
pub(crate) mod managed_heap;
pub(crate) mod package_benchmark;

/// Where CodSpeed's library begins to measure: what has it has that library linked in.
pub(crate) const CODSPEED_BEGIN: &str = "instrument_hooks_start_benchmark";
/// `benchmark::State::StartKeepRunning()`: what has it is, or uses, Google Benchmark.
pub(crate) const GOOGLE_BENCHMARK_BEGIN: &str = "_ZN9benchmark5State16StartKeepRunningEv";

/// Symbols by which each sanitizer's start is called, and the names of their shared libraries.
const SANITIZERS: [(&str, &str, &[u8]); 5] = [
    ("AddressSanitizer", "libasan", b"__asan_init"),
    ("ThreadSanitizer", "libtsan", b"__tsan_init"),
    ("MemorySanitizer", "libmsan", b"__msan_init"),
    ("HWAddressSanitizer", "libhwasan", b"__hwasan_init"),
    ("LeakSanitizer", "liblsan", b"__lsan_init"),
];

/// The sanitizer whose shared library has this file name: gcc's `libasan.so.8`, clang's `libclang_rt.asan-x86_64.so`.
pub(crate) fn sanitizer_of_library(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("libclang_rt.").or_else(|| name.strip_prefix("lib"))?;
    let is_its = |library: &str| library.strip_prefix("lib").is_some_and(|library| name.starts_with(library));
    SANITIZERS.iter().find(|(_, library, _)| is_its(library)).map(|(sanitizer, ..)| *sanitizer)
}

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
    pub(crate) allocators: Vec<Names>,
    /// Such names that it refers to without needing them, with their allocators: it calls them where they are there.
    pub(crate) asked_for: Vec<(&'static str, String)>,
    /// Such names that it defines for others.
    pub(crate) defined_allocation: Vec<String>,
    /// Whether it defines `malloc` for others.
    pub(crate) defines_malloc: bool,
    /// The bytes of its build-id note.
    pub(crate) build_id: Vec<u8>,
    /// Where those of its `operator new` are that replace the C++ runtime's and that no other object reaches: start and
    /// end as the file states them.
    pub(crate) own_new: Vec<(u64, u64)>,
    /// Whose heap it has besides malloc's.
    pub(crate) managed_heap: Option<Runtime>,
    /// It has a Rust program's allocator under its name.
    pub(crate) has_rust_allocator: bool,
    /// How it comes by Google Benchmark, where its symbols tell.
    pub(crate) google_benchmark: Option<Origin>,
    /// What its symbols tell of Swift's package-benchmark.
    pub(crate) package_benchmark: Option<Symbols>,
    /// CodSpeed's library is linked in.
    pub(crate) has_codspeed: bool,
}

/// Where a function comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is defined here.
    Here,
    /// A library has it.
    Library,
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
            asked_for: Vec::new(),
            defined_allocation: Vec::new(),
            defines_malloc: false,
            build_id: Vec::new(),
            own_new: Vec::new(),
            managed_heap: None,
            has_rust_allocator: false,
            google_benchmark: None,
            package_benchmark: None,
            has_codspeed: false,
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
    let mut sanitizer = names.needed.iter().find_map(|needed| sanitizer_of_library(needed));
    let of_sections =
        || elf.sections().find_map(|section| managed_heap::by_section(section.name_bytes().ok()?));
    let of_libraries = || names.needed.iter().find_map(|library| managed_heap::by_library(library));
    let mut found = Elf {
        linkage: linkage(elf, &names),
        sanitizer: None,
        allocators: Vec::new(),
        asked_for: Vec::new(),
        defined_allocation: Vec::new(),
        defines_malloc: false,
        build_id: elf.build_id().ok().flatten().unwrap_or_default().to_vec(),
        own_new: Vec::new(),
        managed_heap: of_sections().or_else(of_libraries),
        has_rust_allocator: false,
        google_benchmark: None,
        package_benchmark: None,
        has_codspeed: false,
    };
    let is_program = matches!(found.linkage, Linkage::Dynamic(_));
    let mut has_runtime = false;
    let mut is_exported_new = false;
    let dynamic = elf.dynamic_symbols().map(|symbol| (symbol, true));
    for (symbol, is_dynamic) in dynamic.chain(elf.symbols().map(|symbol| (symbol, false))) {
        let Ok(name) = symbol.name_bytes() else { continue };
        if let Some((found, ..)) = SANITIZERS.iter().find(|(.., init)| *init == name) {
            sanitizer = Some(found);
        }
        found.managed_heap = found.managed_heap.or_else(|| managed_heap::by_function(name));
        found.has_rust_allocator |= is_rust_alloc(name);
        if name == GOOGLE_BENCHMARK_BEGIN.as_bytes() && found.google_benchmark != Some(Origin::Here) {
            let origin = if symbol.is_definition() { Origin::Here } else { Origin::Library };
            found.google_benchmark = Some(origin);
        }
        if symbol.is_definition() {
            found.package_benchmark = found.package_benchmark.max(Symbols::of(name));
        }
        found.has_codspeed |= name == CODSPEED_BEGIN.as_bytes() && symbol.is_definition();
        let is_exported = is_dynamic && symbol.is_definition();
        found.defines_malloc |= is_exported && name == b"malloc";
        if symbol.is_definition() && name.starts_with(b"_Zn") && is_new(name) {
            is_exported_new |= is_dynamic;
            found.own_new.push((symbol.address(), symbol.address().saturating_add(symbol.size())));
        }
        has_runtime |= symbol.is_definition() && name == RUNTIME_MARK;
        let Some(allocator) = allocator(name) else { continue };
        let name = String::from_utf8_lossy(name).into_owned();
        if is_exported {
            found.defined_allocation.push(name.clone());
        }
        if symbol.is_undefined() && symbol.is_weak() && is_asked_for(name.as_bytes()) {
            found.asked_for.push((allocator, name));
        } else {
            Names::add(&mut found.allocators, allocator, &name);
        }
    }
    if has_runtime || (is_exported_new && !is_program) {
        found.own_new.clear();
    }
    Elf { sanitizer, ..found }
}

/// Its name has its length before it where the compiler mangles it.
pub(crate) fn is_rust_alloc(name: &[u8]) -> bool {
    name == b"__rust_alloc" || name.ends_with(b"12___rust_alloc")
}

/// `std::get_new_handler()`: where a C++ runtime is linked in, and its own `operator new` with it.
const RUNTIME_MARK: &[u8] = b"_ZSt15get_new_handlerv";

/// Whether a mangled name is an `operator new`'s that can be replaced.
fn is_new(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b"_Znwm").or_else(|| name.strip_prefix(b"_Znam"));
    rest.is_some_and(|rest| {
        matches!(rest, b"" | b"RKSt9nothrow_t" | b"St11align_val_t" | b"St11align_val_tRKSt9nothrow_t")
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitizers_by_their_libraries() {
        for (name, of) in [
            ("libasan.so.8", Some("AddressSanitizer")),
            ("libclang_rt.tsan-x86_64.so", Some("ThreadSanitizer")),
            ("libubsan.so.1", None),
            ("libc.so.6", None),
        ] {
            assert_eq!(sanitizer_of_library(name), of, "{name}");
        }
    }

    #[test]
    fn the_name_with_and_without_mangling() {
        assert!(
            is_rust_alloc(b"__rust_alloc") && is_rust_alloc(b"_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc")
        );
        assert!(!is_rust_alloc(b"_RNvCsfLfy6EI15iL_7___rustc19___rust_alloc_zeroed"));
    }
}
