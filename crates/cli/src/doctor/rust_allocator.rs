//! Where a Rust program's allocator gets its blocks: whether `__rust_alloc` leads to the C library's functions.
//!
//! Its calls are followed through the code, without taking it apart into instructions: four bytes that, taken for a
//! distance from where they end, give exactly the start of a function or an entry of the table of imported addresses
//! (GOT) are a call of it. By chance that does not happen. Calls through pointers that are made while the program runs
//! are not seen, and neither is an allocator that the compiler put into its callers (LTO): of such a program nothing is
//! said.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;

use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolKind};

use super::image::Elf;
use crate::elf::{allocator, is_rust_alloc};

/// Where the blocks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The C library's functions, which are recorded.
    Malloc,
    /// An allocator that is known by the names of its functions.
    Allocator(&'static str),
    /// Neither was found.
    Elsewhere,
}

/// The C functions that are recorded.
const RECORDED: [&[u8]; 6] =
    [b"malloc", b"calloc", b"realloc", b"posix_memalign", b"aligned_alloc", b"memalign"];
/// Parts of the names of what is called when something is wrong: it may print a stack, for which the standard library
/// uses malloc whatever the program's allocator is.
const ON_FAILURE: [&[u8]; 5] =
    [b"panic", b"unwrap_failed", b"alloc_error", b"expect_failed", b"assert_failed"];
/// From `__rust_alloc` down, so many calls are followed,
const DEPTH: usize = 4;
/// into so many functions,
const FUNCTIONS: usize = 512;
/// and of each so many bytes are looked at.
const BODY_BYTES: u64 = 4096;
/// The longest entry of a linkage table, in bytes.
const STUB_BYTES: u64 = 16;

/// Follows `__rust_alloc`; `None`: there is no such function, by its name.
pub(crate) fn source(elf: &Elf<'_>) -> Option<Source> {
    let code = Code::of(elf);
    let start = code.functions.iter().find(|(_, (_, name))| is_rust_alloc(name)).map(|(start, _)| *start)?;
    let mut seen = HashSet::from([start]);
    let mut queue = VecDeque::from([(start, 0)]);
    while let Some((function, depth)) = queue.pop_front() {
        for target in code.targets(function) {
            let next = match target {
                Target::Import(name) if RECORDED.contains(&name) => return Some(Source::Malloc),
                Target::Import(name) => match allocator::of_function(name) {
                    Some(allocator) => return Some(Source::Allocator(allocator)),
                    None => continue,
                },
                Target::Local(next) => next,
            };
            let name = code.functions.get(&next).map_or(&b""[..], |(_, name)| name);
            if let Some(allocator) = allocator::of_function(name) {
                return Some(Source::Allocator(allocator));
            }
            let is_failure =
                ON_FAILURE.iter().any(|part| name.windows(part.len()).any(|found| found == *part));
            if !is_failure && depth < DEPTH && seen.len() < FUNCTIONS && seen.insert(next) {
                queue.push_back((next, depth + 1));
            }
        }
    }
    Some(Source::Elsewhere)
}

#[derive(Clone, Copy, Debug)]
enum Target<'a> {
    Local(u64),
    Import(&'a [u8]),
}

/// What is needed of a file to follow calls.
struct Code<'a> {
    /// Start to length and name.
    functions: BTreeMap<u64, (u64, &'a [u8])>,
    /// The linkage tables.
    stubs: Vec<Range<u64>>,
    /// The sections with code.
    sections: Vec<(u64, &'a [u8])>,
    /// What the entries of the table of addresses hold when the program runs.
    slots: HashMap<u64, Target<'a>>,
}

impl<'a> Code<'a> {
    fn of(elf: &Elf<'a>) -> Self {
        let functions = elf
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| Some((symbol.address(), (symbol.size(), symbol.name_bytes().ok()?))))
            .collect();
        let mut code = Self { functions, stubs: Vec::new(), sections: Vec::new(), slots: HashMap::new() };
        for section in elf.sections() {
            let (Ok(name), Ok(data)) = (section.name_bytes(), section.data()) else { continue };
            if section.kind() == object::SectionKind::Text {
                code.sections.push((section.address(), data));
            }
            if name.starts_with(b".plt") {
                code.stubs.push(section.address()..section.address().saturating_add(section.size()));
            }
            if name.starts_with(b".got") {
                // At a fixed address what is local stands there already.
                let words = data.chunks_exact(8).filter_map(|word| word.try_into().ok());
                let addresses = (section.address()..).step_by(8);
                code.slots.extend(
                    addresses.zip(words.map(|word: [u8; 8]| Target::Local(u64::from_le_bytes(word)))),
                );
            }
        }
        let symbols = elf.dynamic_symbol_table();
        for (slot, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            let target = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    use object::ObjectSymbolTable as _;
                    let symbol = symbols.as_ref().and_then(|table| table.symbol_by_index(index).ok());
                    let Some(symbol) = symbol else { continue };
                    if symbol.is_definition() {
                        Target::Local(symbol.address())
                    } else {
                        Target::Import(symbol.name_bytes().unwrap_or_default())
                    }
                }
                _ if matches!(
                    relocation.flags(),
                    RelocationFlags::Elf { r_type: object::elf::R_X86_64_RELATIVE }
                ) =>
                {
                    Target::Local(relocation.addend().cast_unsigned())
                }
                _ => continue,
            };
            code.slots.insert(slot, target);
        }
        code
    }

    /// What a function calls or jumps to, in the order of its code.
    fn targets(&self, function: u64) -> Vec<Target<'a>> {
        let mut targets = Vec::new();
        let body = self.body(function);
        for (at, bytes) in (function..).zip(body.windows(4)) {
            let Ok(bytes) = bytes.try_into() else { continue };
            let distance = i64::from(i32::from_le_bytes(bytes));
            let target = at.wrapping_add(4).wrapping_add_signed(distance);
            if let Some(found) = self.slots.get(&target) {
                targets.push(*found);
            } else if self.functions.contains_key(&target) || self.is_stub(target) {
                targets.push(Target::Local(target));
            }
        }
        targets
    }

    fn is_stub(&self, address: u64) -> bool {
        self.stubs.iter().any(|stubs| stubs.contains(&address) && (address - stubs.start).is_multiple_of(8))
    }

    fn body(&self, function: u64) -> &'a [u8] {
        let len = self.functions.get(&function).map_or(STUB_BYTES, |(len, _)| (*len).min(BODY_BYTES));
        let found = self.sections.iter().find_map(|(start, data)| {
            let from = usize::try_from(function.checked_sub(*start)?).ok()?;
            let rest = data.get(from..)?;
            rest.get(..usize::try_from(len).ok()?.min(rest.len()))
        });
        found.unwrap_or_default()
    }
}
