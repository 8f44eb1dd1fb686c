//! Identical code folding: which functions have their code in common with others.
//!
//! Several symbols at one address are no proof: `malloc` and `__libc_malloc` are two names of one function. A function
//! is folded when either
//! - debug information describes several functions of different names that start at its first byte, or
//! - several Rust symbols of different names do: Rust's source has no aliases, so a linker or LLVM's function merging
//!   joined them.
//!
//! Names are compared as people see them, without hashes and clone suffixes: a constructor's two symbols are one name.
//! The assembler describes each label as a function: what it wrote proves nothing. A linker that erases the folded function's address from the debug information (lld) leaves no trace for the first
//! rule.

use std::collections::{BTreeMap, BTreeSet};

use addr2line::gimli::{self, AttributeValue, DebugInfoOffset, Dwarf, Unit, UnitHeader, UnitOffset};

use crate::demangle::{demangle, is_rust, is_swift, split_clone_suffix};
use crate::object_file::Slice;
use crate::symbol_table::Hit;

/// So many references are followed from one function to its name.
const MAX_REFERENCES: u32 = 16;

/// The different names of the symbols that have a function's range, as people see them; and whether those of Rust alone
/// are several.
pub(crate) fn alias_names(hit: &Hit<'_, '_>) -> (BTreeSet<String>, bool) {
    let mut names = BTreeSet::new();
    let mut rust_names = BTreeSet::new();
    for symbol in hit.aliases.iter().filter(|alias| alias.end == hit.symbol.end) {
        let text = String::from_utf8_lossy(symbol.name);
        let name = plain_name(&text);
        // The allocator's shims are declared under one name and defined under another.
        if is_rust(&text) && !name.contains("__rustc") {
            rust_names.insert(name.clone());
        }
        names.insert(name);
    }
    let is_folded = rust_names.len() > 1;
    (names, is_folded)
}

/// A name for people without clone suffix.
fn plain_name(system_name: &str) -> String {
    let (base, _) = split_clone_suffix(system_name);
    let base = if base.len() == system_name.len() { base.split('.').next().unwrap_or(base) } else { base };
    // Swift's names differ as much mangled as demangled, and its demangler is slow.
    if is_swift(base) { base.to_owned() } else { demangle(base) }
}

/// Of the candidates (the first bytes of functions, in ascending order) those where several functions of different
/// names start by the debug information.
pub(crate) fn find(dwarf: &Dwarf<Slice<'_>>, candidates: &[u64]) -> BTreeSet<u64> {
    if candidates.is_empty() {
        return BTreeSet::new();
    }
    let mut headers = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        headers.push(header);
    }
    let mut names: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for header in &headers {
        // A damaged unit tells what it told up to there.
        let _ = add_unit(dwarf, &headers, *header, candidates, &mut names);
    }
    names.into_iter().filter(|(_, names)| names.len() > 1).map(|(address, _)| address).collect()
}

/// Adds the names of one unit's functions that start at a candidate.
fn add_unit<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    headers: &[UnitHeader<Slice<'a>>],
    header: UnitHeader<Slice<'a>>,
    candidates: &[u64],
    names: &mut BTreeMap<u64, BTreeSet<String>>,
) -> gimli::Result<()> {
    let unit = dwarf.unit(header)?;
    if is_assembler(&unit)? || !covers_any(dwarf, &unit, candidates)? {
        return Ok(());
    }
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        if abbreviation.tag() != gimli::DW_TAG_subprogram {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let mut start = None;
        for &attribute in abbreviation.attributes() {
            let attribute = entries.read_attribute(attribute)?;
            if attribute.name() == gimli::DW_AT_low_pc {
                start = dwarf.attr_address(&unit, attribute.value())?;
            }
        }
        if let Some(start) = start
            && candidates.binary_search(&start).is_ok()
            && let Some(name) = function_name(dwarf, headers, &unit, offset, MAX_REFERENCES)?
        {
            names.entry(start).or_default().insert(name);
        }
    }
    Ok(())
}

/// Whether a unit was written by the assembler.
fn is_assembler(unit: &Unit<Slice<'_>>) -> gimli::Result<bool> {
    let mut entries = unit.entries();
    let root = entries.next_dfs()?;
    let language = root.and_then(|root| root.attr_value(gimli::DW_AT_language));
    Ok(language == Some(AttributeValue::Language(gimli::DW_LANG_Mips_Assembler)))
}

/// Whether a unit has code at one of the candidates. One that does not say may have.
fn covers_any(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>, candidates: &[u64]) -> gimli::Result<bool> {
    let mut ranges = dwarf.unit_ranges(unit)?;
    let mut has_ranges = false;
    while let Some(range) = ranges.next()? {
        has_ranges = true;
        let first = candidates.partition_point(|&candidate| candidate < range.begin);
        if candidates.get(first).is_some_and(|&candidate| candidate < range.end) {
            return Ok(true);
        }
    }
    Ok(!has_ranges)
}

/// The name of a function's entry for people, through its declaration or abstract instance.
fn function_name<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    headers: &[UnitHeader<Slice<'a>>],
    unit: &Unit<Slice<'a>>,
    offset: UnitOffset,
    references: u32,
) -> gimli::Result<Option<String>> {
    if references == 0 {
        return Ok(None);
    }
    let entry = unit.entry(offset)?;
    let text = |name| match entry.attr_value(name) {
        Some(value) => dwarf.attr_string(unit, value).map(|text| Some(plain_name(&text.to_string_lossy()))),
        None => Ok(None),
    };
    if let Some(name) = text(gimli::DW_AT_linkage_name)? {
        return Ok(Some(name));
    }
    let origin = entry
        .attr_value(gimli::DW_AT_abstract_origin)
        .or_else(|| entry.attr_value(gimli::DW_AT_specification));
    let by_origin = match origin {
        Some(AttributeValue::UnitRef(offset)) => function_name(dwarf, headers, unit, offset, references - 1)?,
        Some(AttributeValue::DebugInfoRef(offset)) => match unit_of(headers, offset) {
            Some((header, offset)) => {
                function_name(dwarf, headers, &dwarf.unit(header)?, offset, references - 1)?
            }
            None => None,
        },
        _ => None,
    };
    match by_origin {
        Some(name) => Ok(Some(name)),
        None => text(gimli::DW_AT_name),
    }
}

/// The unit that holds an offset.
fn unit_of<'a>(
    headers: &[UnitHeader<Slice<'a>>],
    offset: DebugInfoOffset,
) -> Option<(UnitHeader<Slice<'a>>, UnitOffset)> {
    let after = headers.partition_point(|header| {
        header.offset().to_debug_info_offset(header).is_some_and(|start| start <= offset)
    });
    let header = *headers.get(after.checked_sub(1)?)?;
    Some((header, offset.to_unit_offset(&header)?))
}
