//! Symbol tables: which function symbol holds an address.
//!
//! A symbol holds what lies in its range, `st_size` bytes from its start, and nothing beyond: the nearest symbol below
//! an address is not its name. Of symbols that hold one address the one with the highest start wins, and of several at
//! one start the first by this order, which does not depend on the order in the file:
//! 1. global before weak before local,
//! 2. fewer leading underscores (a mangled name has none),
//! 3. alphabetical.
//!
//! Symbols without a size (of hand-written assembler) reach to the next symbol or to the end of their section, and are
//! asked only when no other holds the address. They are taken from `.symtab` alone: next to the exported ones of
//! `.dynsym` others may lie that it does not tell.

use std::cmp::Ordering;

use object::LittleEndian;
use object::elf::{SHF_EXECINSTR, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::read::elf::{SectionHeader, Sym};

use crate::object_file::Elf;

/// Which symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    /// `.symtab`, all symbols.
    Static,
    /// `.dynsym`, what is exported or imported.
    Dynamic,
}

/// A function's symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol<'a> {
    /// The SVMA of its first byte.
    pub(crate) start: u64,
    /// One past its last byte.
    pub(crate) end: u64,
    /// Its name in the file, without a symbol version.
    pub(crate) name: &'a [u8],
    /// Whether it is an indirect function's resolver.
    pub(crate) is_indirect: bool,
    /// 0 global, 1 weak, 2 local.
    binding: u8,
    section: usize,
}

impl Symbol<'_> {
    /// The stated order among symbols at one start: the smaller is preferred.
    fn preference(&self, other: &Self) -> Ordering {
        let key = |symbol: &Self| (symbol.binding, leading_underscores(symbol.name));
        key(self).cmp(&key(other)).then_with(|| self.name.cmp(other.name))
    }
}

/// How many underscores a name begins with; none for a mangled one.
fn leading_underscores(name: &[u8]) -> usize {
    if name.starts_with(b"_Z") || name.starts_with(b"_R") {
        return 0;
    }
    name.iter().take_while(|&&byte| byte == b'_').count()
}

/// A symbol that holds an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit<'t, 'a> {
    /// The preferred symbol.
    pub(crate) symbol: &'t Symbol<'a>,
    /// All sized symbols that start there, it among them. Only it itself when it has no size.
    pub(crate) aliases: &'t [Symbol<'a>],
    /// Whether it states a size.
    pub(crate) is_sized: bool,
}

/// The function symbols of one file.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable<'a> {
    /// Sorted by start, at one start from the least preferred to the most preferred.
    sized: Vec<Symbol<'a>>,
    /// Likewise; their ends are deduced.
    sizeless: Vec<Symbol<'a>>,
}

impl<'a> SymbolTable<'a> {
    /// Reads a table of a file. What is damaged is left out.
    pub(crate) fn read(elf: &Elf<'a>, kind: TableKind) -> Self {
        let endian = LittleEndian;
        let table = match kind {
            TableKind::Static => elf.elf_symbol_table(),
            TableKind::Dynamic => elf.elf_dynamic_symbol_table(),
        };
        // Per section: whether it is code, and its end.
        let sections: Vec<Option<u64>> = elf
            .elf_section_table()
            .iter()
            .map(|section| {
                let is_code = section.sh_flags(endian) & SHF_EXECINSTR == SHF_EXECINSTR;
                is_code.then(|| section.sh_addr(endian).saturating_add(section.sh_size(endian)))
            })
            .collect();
        let mut result = Self::default();
        for (index, symbol) in table.enumerate() {
            let kind_of_symbol = symbol.st_type();
            let is_function = kind_of_symbol == STT_FUNC || kind_of_symbol == STT_GNU_IFUNC;
            let size = symbol.st_size(endian);
            if !is_function && (kind_of_symbol != STT_NOTYPE || size > 0) {
                continue;
            }
            let Ok(Some(section)) = table.symbol_section(endian, symbol, index) else { continue };
            let Some(&Some(section_end)) = sections.get(section.0) else { continue };
            let Ok(name) = table.symbol_name(endian, symbol) else { continue };
            let name = without_version(name);
            // Those of a compiler's plug-in say how a file was built.
            if name.is_empty() || name.starts_with(b".annobin_") {
                continue;
            }
            let start = symbol.st_value(endian);
            let binding = match symbol.st_bind() {
                STB_GLOBAL => 0,
                STB_WEAK => 1,
                _ => 2,
            };
            let symbol = Symbol {
                start,
                end: start.saturating_add(size),
                name,
                is_indirect: kind_of_symbol == STT_GNU_IFUNC,
                binding,
                section: section.0,
            };
            if size > 0 {
                result.sized.push(symbol);
            } else if kind == TableKind::Static && start < section_end {
                result.sizeless.push(Symbol { end: section_end, ..symbol });
            }
        }
        for list in [&mut result.sized, &mut result.sizeless] {
            list.sort_unstable_by(|left, right| {
                left.start
                    .cmp(&right.start)
                    .then_with(|| right.preference(left))
                    .then(left.end.cmp(&right.end))
            });
        }
        result.bound_sizeless();
        result
    }

    /// Lets each symbol without a size end where the next symbol of its section starts.
    fn bound_sizeless(&mut self) {
        if self.sizeless.is_empty() {
            return;
        }
        let mut starts: Vec<(usize, u64)> =
            self.sized.iter().chain(&self.sizeless).map(|symbol| (symbol.section, symbol.start)).collect();
        starts.sort_unstable();
        for symbol in &mut self.sizeless {
            let next = starts.partition_point(|&start| start <= (symbol.section, symbol.start));
            if let Some(&(section, start)) = starts.get(next)
                && section == symbol.section
            {
                symbol.end = symbol.end.min(start);
            }
        }
    }

    /// All symbols, each with whether it states its size; of one start the preferred one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Symbol<'a>, bool)> {
        let sized = self.sized.iter().rev().map(|symbol| (symbol, true));
        sized.chain(self.sizeless.iter().rev().map(|symbol| (symbol, false)))
    }

    /// Whether no function is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.sized.is_empty() && self.sizeless.is_empty()
    }

    /// Which symbol holds each address. The addresses are in ascending order.
    pub(crate) fn find_all(&self, addresses: &[u64]) -> Vec<Option<Hit<'_, 'a>>> {
        let sized = sweep(&self.sized, addresses);
        let sizeless = sweep(&self.sizeless, addresses);
        sized
            .into_iter()
            .zip(sizeless)
            .map(|pair| match pair {
                (Some(index), _) => {
                    let symbol = &self.sized[index];
                    let first = self.sized[..index].partition_point(|other| other.start < symbol.start);
                    // The preferred of one start is the last; a longer one may lie before it.
                    let count =
                        self.sized[index..].iter().take_while(|other| other.start == symbol.start).count();
                    Some(Hit { symbol, aliases: &self.sized[first..index + count], is_sized: true })
                }
                (None, Some(index)) => {
                    let aliases = &self.sizeless[index..=index];
                    Some(Hit { symbol: &self.sizeless[index], aliases, is_sized: false })
                }
                (None, None) => None,
            })
            .collect()
    }
}

/// For each of the ascending addresses the index of the last symbol that holds it. The open ranges are a stack, so the
/// time is linear also where symbols overlap.
fn sweep(symbols: &[Symbol<'_>], addresses: &[u64]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut next = 0;
    addresses
        .iter()
        .map(|&address| {
            while symbols.get(next).is_some_and(|symbol| symbol.start <= address) {
                open.push(next);
                next += 1;
            }
            while open.last().is_some_and(|&index| symbols[index].end <= address) {
                open.pop();
            }
            open.last().copied()
        })
        .collect()
}

/// A name without `@VERSION` or `@@VERSION`, which linkers append in `.symtab`.
fn without_version(name: &[u8]) -> &[u8] {
    match name.iter().position(|&byte| byte == b'@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(start: u64, end: u64, name: &'static str, binding: u8) -> Symbol<'static> {
        Symbol { start, end, name: name.as_bytes(), is_indirect: false, binding, section: 1 }
    }

    fn names(table: &SymbolTable<'static>, addresses: &[u64]) -> Vec<Option<String>> {
        let text = |hit: Hit<'_, 'static>| String::from_utf8(hit.symbol.name.to_vec()).unwrap();
        table.find_all(addresses).into_iter().map(|hit| hit.map(text)).collect()
    }

    fn table(mut sized: Vec<Symbol<'static>>, sizeless: Vec<Symbol<'static>>) -> SymbolTable<'static> {
        sized.sort_unstable_by(|l, r| l.start.cmp(&r.start).then_with(|| r.preference(l)));
        let mut table = SymbolTable { sized, sizeless };
        table.bound_sizeless();
        table
    }

    #[test]
    fn a_symbol_holds_nothing_beyond_its_size() {
        let table = table(vec![symbol(10, 20, "a", 0), symbol(30, 40, "b", 0)], vec![]);
        assert_eq!(
            names(&table, &[9, 10, 19, 20, 29, 30, 40]),
            [None, Some("a".into()), Some("a".into()), None, None, Some("b".into()), None]
        );
    }

    #[test]
    fn an_inner_symbol_wins_and_the_outer_one_goes_on() {
        let table = table(vec![symbol(10, 40, "outer", 0), symbol(20, 30, "inner", 0)], vec![]);
        assert_eq!(
            names(&table, &[15, 25, 35]),
            [Some("outer".into()), Some("inner".into()), Some("outer".into())]
        );
    }

    #[test]
    fn of_aliases_the_stated_order_decides() {
        let aliases = vec![
            symbol(10, 20, "__libc_malloc", 0),
            symbol(10, 20, "a_local", 2),
            symbol(10, 20, "malloc", 0),
            symbol(10, 20, "a_weak", 1),
        ];
        let table = table(aliases, vec![]);
        assert_eq!(names(&table, &[12]), [Some("malloc".into())]);
        assert_eq!(table.find_all(&[12])[0].unwrap().aliases.len(), 4);
    }

    #[test]
    fn a_symbol_without_a_size_ends_at_the_next_one() {
        let sized = vec![symbol(10, 20, "sized", 0), symbol(50, 60, "later", 0)];
        let table = table(sized, vec![symbol(15, 100, "asm", 0), symbol(70, 100, "last", 0)]);
        assert_eq!(
            names(&table, &[16, 20, 49, 65, 70, 99, 100]),
            [
                Some("sized".into()),
                Some("asm".into()),
                Some("asm".into()),
                None,
                Some("last".into()),
                Some("last".into()),
                None
            ]
        );
    }

    #[test]
    fn versions_are_no_part_of_a_name() {
        assert_eq!(without_version(b"memcpy@@GLIBC_2.14"), b"memcpy");
        assert_eq!(without_version(b"@odd"), b"@odd");
    }
}
