//! Where Swift's runtime resumes suspended async functions: what it calls there is the function that goes on, whose
//! callers are not on the stack.
//!
//! The functions are local ones, which only a file's symbol table tells. It is read where there can be any: in Swift's
//! concurrency library, and in programs with Swift code, which may have the runtime linked in. The same table tells where
//! suspended functions go on, of those (80 of 556 in Swift 6.3's library) that have no unwind information.
#![expect(unsafe_code, reason = "reads files into mapped memory")]

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::NOTE_HIDDEN_RESUMERS;
use heaptally_tally::Tally;
use heaptally_unwind::is_function_start;

use crate::recorder::Recorder;
use crate::sys;

/// The functions, by their linker names.
const NAMES: [&[u8]; 4] = [
    b"_ZN5swift34runJobInEstablishedExecutorContextEPNS_3JobE",
    b"swift_job_run",
    b"swift_job_run_on_task_executor",
    b"swift_job_run_on_serial_and_task_executor",
];
/// In which of its functions tasks get their memory, likewise.
const CREATORS: [&[u8]; 1] = [b"swift_task_create_common"];
const LIBRARY: &[u8] = b"/libswift_Concurrency.so";
const RUNTIME: &[u8] = b"/libswiftCore.so";
/// How sections with facts of Swift code begin.
const SECTION: &[u8] = b"swift5_";
/// How many functions are remembered: those of one runtime, or of two.
const LIMIT: usize = 16;
/// And how many places where suspended functions go on.
const STARTS: usize = 4096;
/// Names are read as far as this.
const NAME_BYTES: usize = 1024;
/// How much of a file is read at a time.
const CHUNK: usize = 64 << 10;
/// Section headers, at most: a linker's files have some dozens.
const SECTIONS_MAX: u64 = 1024;

/// What was found.
#[derive(Debug)]
pub(crate) struct Resumers {
    /// First address, and one past the last; an end of 0: none.
    ranges: [(AtomicU64, AtomicU64); LIMIT],
    count: AtomicU32,
    /// How many of the module table's entries were looked at.
    looked: AtomicU32,
    /// Where suspended functions go on, as far as unwind information does not tell it; null: none.
    starts: AtomicPtr<AtomicU64>,
    start_count: AtomicU32,
}

impl Resumers {
    pub(crate) const fn new() -> Self {
        Self {
            ranges: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; LIMIT],
            count: AtomicU32::new(0),
            looked: AtomicU32::new(0),
            starts: AtomicPtr::new(core::ptr::null_mut()),
            start_count: AtomicU32::new(0),
        }
    }

    /// In a forked child: what its parent had found. No lock is taken.
    pub(crate) fn inherit(&self, parent: &Self, tally: &Tally) {
        for (start, end) in &parent.ranges {
            match end.load(Ordering::Acquire) {
                0 => {}
                end => self.add((start.load(Ordering::Relaxed), end), tally),
            }
        }
        self.looked.store(parent.looked.load(Ordering::Relaxed), Ordering::Relaxed);
        // The child has a copy of the memory.
        self.starts.store(parent.starts.load(Ordering::Acquire), Ordering::Relaxed);
        self.start_count.store(parent.start_count.load(Ordering::Acquire), Ordering::Release);
    }

    /// Whether there are any: else no stack has async callers.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Whether a suspended function goes on at an address, of those that have no unwind information.
    pub(crate) fn is_start(&self, address: u64) -> bool {
        let count = self.start_count.load(Ordering::Acquire) as usize;
        self.starts().is_some_and(|starts| {
            starts.iter().take(count).any(|start| start.load(Ordering::Relaxed) == address)
        })
    }

    fn starts(&self) -> Option<&'static [AtomicU64]> {
        let starts = self.starts.load(Ordering::Acquire);
        // SAFETY: the mapping has that many words, and stays.
        (!starts.is_null()).then(|| unsafe { core::slice::from_raw_parts(starts, STARTS) })
    }

    fn add_start(&self, address: u64) {
        if self.starts.load(Ordering::Relaxed).is_null() {
            self.starts.store(sys::map_private(STARTS * size_of::<AtomicU64>()).cast(), Ordering::Release);
        }
        let at = self.start_count.load(Ordering::Relaxed);
        if let Some(start) = self.starts().and_then(|starts| starts.get(at as usize)) {
            start.store(address, Ordering::Relaxed);
            self.start_count.store(at + 1, Ordering::Release);
        }
    }

    fn add(&self, (first, last): (u64, u64), tally: &Tally) {
        let at = self.count.fetch_add(1, Ordering::Relaxed) as usize % LIMIT;
        if let Some((start, end)) = self.ranges.get(at) {
            end.store(0, Ordering::Release);
            start.store(first, Ordering::Relaxed);
            end.store(last, Ordering::Release);
        }
        tally.add_resumer((first, last));
    }
}

/// Looks into the modules that came since the last time. Not inside of an allocation.
pub(crate) fn look(recorder: &Recorder) {
    let resumers = &recorder.resumers;
    let from = resumers.looked.load(Ordering::Relaxed);
    let mut has_runtime = false;
    let mut program = None;
    let to = recorder.modules.visit(&recorder.tally, from, |module| {
        let path = module.path.to_bytes();
        let is_library = find(path, LIBRARY).is_some();
        has_runtime |= find(path, RUNTIME).is_some();
        if !(is_library || module.is_program) {
            return;
        }
        let Some(table) = SymbolTable::open(module.path, !is_library) else { return };
        let mut are_found = false;
        let range = |address: u64, size: u64| {
            let start = address.wrapping_add(module.bias);
            (start, start.saturating_add(size.max(1)))
        };
        table.visit(&NAMES, &mut |address, size| {
            are_found = true;
            resumers.add(range(address, size), &recorder.tally);
        });
        if are_found && recorder.origins.are_wanted() {
            table.visit(&CREATORS, &mut |address, size| recorder.origins.add_creator(range(address, size)));
        }
        if are_found {
            table.visit_parts(&mut |address, is_part| {
                let start = address.wrapping_add(module.bias);
                let sections = recorder.modules.find(start);
                // SAFETY: the module is loaded.
                let is_told = sections.is_none_or(|sections| unsafe { is_function_start(&sections, start) });
                if !is_told && is_part() {
                    resumers.add_start(start);
                }
            });
        }
        if is_library && !are_found {
            module.notes.fetch_or(NOTE_HIDDEN_RESUMERS, Ordering::Relaxed);
        }
        if module.is_program && !table.has_symbols {
            program = Some(module.notes as *const AtomicU32);
        }
    });
    // A program with Swift code that is linked to no runtime has it inside.
    if let Some(notes) = program.filter(|_| !has_runtime) {
        // SAFETY: entries of the segment stay.
        unsafe { &*notes }.fetch_or(NOTE_HIDDEN_RESUMERS, Ordering::Relaxed);
    }
    resumers.looked.store(to, Ordering::Relaxed);
}

/// A file, and where its table of symbols is.
struct SymbolTable {
    file: sys::File,
    chunk: *mut u8,
    symbols: (u64, u64),
    names: (u64, u64),
    has_symbols: bool,
}

impl SymbolTable {
    /// `None`: it cannot be read, or (`only_swift`) there is no Swift code in it.
    fn open(path: &CStr, only_swift: bool) -> Option<Self> {
        let file = sys::File::open_to_look(path)?;
        let mut head = [0; 64];
        if file.read_at(0, &mut head) < head.len() || head.get(..5)? != b"\x7fELF\x02" {
            return None;
        }
        let (headers, count) = (u64_at(&head, 0x28)?, u64::from(u16_at(&head, 0x3c)?));
        let names_index = u64::from(u16_at(&head, 0x3e)?);
        let mut table = None;
        let mut is_swift = false;
        let section = |index: u64| {
            let mut bytes = [0; 64];
            let at = headers.checked_add(index.checked_mul(64)?)?;
            (file.read_at(at, &mut bytes) == bytes.len()).then_some(bytes)
        };
        let names = section(names_index)?;
        let (names_at, names_len) = (u64_at(&names, 0x18)?, u64_at(&names, 0x20)?);
        for index in 0..count.min(SECTIONS_MAX) {
            let header = section(index)?;
            const SHT_SYMTAB: u32 = 2;
            if u32_at(&header, 4)? == SHT_SYMTAB {
                let link = section(u64::from(u32_at(&header, 0x28)?))?;
                let place = |header: &[u8; 64]| Some((u64_at(header, 0x18)?, u64_at(header, 0x20)?));
                table = Some((place(&header)?, place(&link)?));
            }
            let mut name = [0; SECTION.len()];
            let at = u64::from(u32_at(&header, 0)?);
            if at < names_len && file.read_at(names_at.checked_add(at)?, &mut name) == name.len() {
                is_swift |= name == *SECTION;
            }
        }
        if only_swift && !is_swift {
            return None;
        }
        let chunk = sys::map_private(CHUNK);
        let (symbols, names) = table.unwrap_or_default();
        (!chunk.is_null()).then_some(Self { file, chunk, symbols, names, has_symbols: table.is_some() })
    }

    /// Tells the addresses and sizes of the functions with one of the names.
    fn visit(&self, wanted: &[&[u8]], see: &mut dyn FnMut(u64, u64)) {
        // Names may share their ends.
        let mut offsets = [u64::MAX; 16];
        let mut known = 0;
        self.scan(self.names, 64, |at, bytes, whole| {
            for name in wanted {
                let mut from = 0;
                while let Some(found) = bytes.get(from..).and_then(|rest| find(rest, name)) {
                    let place = from + found;
                    from = place + 1;
                    if bytes.get(place + name.len()) == Some(&0)
                        && place < whole
                        && let Some(offset) = offsets.get_mut(known)
                    {
                        *offset = at + place as u64;
                        known += 1;
                    }
                }
            }
        });
        let offsets = offsets.get(..known).unwrap_or_default();
        if !offsets.is_empty() {
            self.visit_functions(|name, address, size| {
                if offsets.contains(&name) {
                    see(address, size);
                }
            });
        }
    }

    /// Tells the addresses of all functions, and how to ask whether a name is that of a part of an async one: `…TQ0_` goes on
    /// behind a call, `…TY0_` behind a change of executors (Swift's mangling).
    fn visit_parts(&self, see: &mut dyn FnMut(u64, &dyn Fn() -> bool)) {
        self.visit_functions(|name, address, _| {
            see(address, &|| {
                let mut bytes = [0; NAME_BYTES];
                let read = self.file.read_at(self.names.0.wrapping_add(name), &mut bytes);
                let text = bytes.get(..read).unwrap_or_default();
                let end = text.iter().position(|byte| *byte == 0);
                end.and_then(|end| text.get(..end)).is_some_and(is_part)
            });
        });
    }

    /// The offset of the name, the address and the size of each function that is defined.
    fn visit_functions(&self, mut see: impl FnMut(u64, u64, u64)) {
        const STT_FUNC: u8 = 2;
        self.scan(self.symbols, 0, |_, bytes, _| {
            for symbol in bytes.chunks_exact(24) {
                let is_function = symbol.get(4).is_some_and(|info| info & 15 == STT_FUNC);
                let is_defined = u16_at(symbol, 6) != Some(0);
                let fields = (u32_at(symbol, 0), u64_at(symbol, 8), u64_at(symbol, 16));
                if let (true, true, (Some(name), Some(address), Some(size))) =
                    (is_function, is_defined, fields)
                {
                    see(u64::from(name), address, size);
                }
            }
        });
    }

    /// Reads a part of the file piece by piece, each with `more` bytes of the next one: `see` is told the offset in that part,
    /// the bytes, and how many belong to the piece itself.
    fn scan(&self, (from, len): (u64, u64), more: usize, mut see: impl FnMut(u64, &[u8], usize)) {
        // A multiple of a symbol's size.
        let step = (CHUNK - more) / 24 * 24;
        let mut at = 0;
        while at < len {
            let wanted = (len - at).min((step + more) as u64) as usize;
            // SAFETY: the mapping is this value's own, of that size, and used here alone.
            let chunk = unsafe { core::slice::from_raw_parts_mut(self.chunk, CHUNK) };
            let Some(bytes) = chunk.get_mut(..wanted) else { return };
            let read = self.file.read_at(from.wrapping_add(at), bytes);
            if read == 0 {
                return;
            }
            see(at, bytes.get(..read).unwrap_or_default(), step.min(read));
            at += step as u64;
        }
    }
}

impl Drop for SymbolTable {
    fn drop(&mut self) {
        sys::unmap(self.chunk, CHUNK);
    }
}

/// Whether a linker name is that of a part of an async function.
fn is_part(name: &[u8]) -> bool {
    let Some(rest) = name.strip_suffix(b"_") else { return false };
    let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let stem = rest.get(..rest.len() - digits).unwrap_or_default();
    digits > 0 && (stem.ends_with(b"TQ") || stem.ends_with(b"TY")) && stem.starts_with(b"$s")
}

fn find(bytes: &[u8], name: &[u8]) -> Option<usize> {
    let first = *name.first()?;
    let mut from = 0;
    loop {
        from += bytes.get(from..)?.iter().position(|byte| *byte == first)?;
        if bytes.get(from..)?.starts_with(name) {
            return Some(from);
        }
        from += 1;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_async_functions_are_told_by_their_names() {
        for name in ["$s1a1fyyYaFTQ0_", "$s1a1fyyYaFTY12_", "$sScS8IteratorV4nextxSgyYaFTQ1_"] {
            assert!(is_part(name.as_bytes()), "{name}");
        }
        for name in ["$s1a1fyyYaF", "$s1a1fyyYaFTQ_", "TQ0_", "", "_", "a_TQ1_", "$s1a1fyyYaFTu"] {
            assert!(!is_part(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn names_are_found_in_bytes() {
        assert_eq!(find(b"..swift_job_run", b"swift_job_run"), Some(2));
        assert_eq!(find(b"sswift_job_runs", b"swift_job_run"), Some(1));
        assert_eq!(find(b"swift_job_ru", b"swift_job_run"), None);
        assert_eq!(find(b"", b"swift_job_run"), None);
    }
}
