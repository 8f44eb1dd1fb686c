//! What debug information says of functions as a whole: where each is written, and where it was inlined.

use std::collections::{BTreeMap, HashMap};

use addr2line::gimli::{self, AttributeValue, DebugInfoOffset, Dwarf, Unit, UnitOffset};

use crate::object_file::Slice;

/// How many entries refer to each other at most: an instance to its abstract one, that to its declaration.
const MAX_REFERENCES: usize = 8;

/// A function, by what tells it apart: names, and where it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity {
    /// Its linkage name, or its plain one.
    pub(crate) system_name: String,
    /// Its source file, empty when unknown.
    pub(crate) file: String,
    /// The line on which it is declared, 0 when unknown.
    pub(crate) line: u32,
}

/// What was found of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instances {
    /// The SVMAs at which its own copies begin.
    pub(crate) starts: Vec<u64>,
    /// Its inlined copies, each with its ranges of SVMAs.
    pub(crate) inlined: Vec<Vec<(u64, u64)>>,
}

/// All functions that are described. What is damaged is left out; the second value says whether anything was.
pub(crate) fn described(dwarf: &Dwarf<Slice<'_>>) -> (BTreeMap<Identity, Instances>, bool) {
    let mut reader = Reader { dwarf, units: Vec::new(), known: HashMap::new() };
    let mut is_damaged = false;
    let mut headers = dwarf.units();
    loop {
        match headers.next() {
            Ok(Some(header)) => match dwarf.unit(header) {
                Ok(unit) => reader.units.push(unit),
                Err(_) => is_damaged = true,
            },
            Ok(None) => break,
            Err(_) => {
                is_damaged = true;
                break;
            }
        }
    }
    let mut found: BTreeMap<Identity, Instances> = BTreeMap::new();
    for index in 0..reader.units.len() {
        is_damaged |= reader.read_unit(index, &mut found).is_err();
    }
    (found, is_damaged)
}

/// A copy of a function's code.
struct Instance {
    offset: UnitOffset,
    is_inlined: bool,
    /// Start and end of each of its ranges, at least one.
    ranges: Vec<(u64, u64)>,
}

struct Reader<'d, 'a> {
    dwarf: &'d Dwarf<Slice<'a>>,
    units: Vec<Unit<Slice<'a>>>,
    /// What each abstract function is, by its offset in the section.
    known: HashMap<usize, Identity>,
}

impl<'a> Reader<'_, 'a> {
    fn read_unit(&mut self, index: usize, found: &mut BTreeMap<Identity, Instances>) -> gimli::Result<()> {
        // What has code: instances, each with the offset of its entry.
        let mut instances: Vec<Instance> = Vec::new();
        {
            let unit = &self.units[index];
            let mut entries = unit.entries();
            while let Some(entry) = entries.next_dfs()? {
                let is_inlined = match entry.tag() {
                    gimli::DW_TAG_subprogram => false,
                    gimli::DW_TAG_inlined_subroutine => true,
                    _ => continue,
                };
                let mut ranges = Vec::new();
                let mut iterator = self.dwarf.die_ranges(unit, entry)?;
                while let Some(range) = iterator.next()? {
                    if range.begin < range.end && range.begin != 0 {
                        ranges.push((range.begin, range.end));
                    }
                }
                if !ranges.is_empty() {
                    instances.push(Instance { offset: entry.offset(), is_inlined, ranges });
                }
            }
        }
        for Instance { offset, is_inlined, mut ranges } in instances {
            let Some(identity) = self.identity(index, offset) else { continue };
            let function = found.entry(identity).or_default();
            if is_inlined {
                ranges.sort_unstable();
                function.inlined.push(ranges);
            } else {
                // The first range holds the entry; others are parts that were split off.
                let low = self.units[index].entry(offset).ok().and_then(|entry| self.low_pc(index, &entry));
                function.starts.push(low.unwrap_or(ranges[0].0));
            }
        }
        Ok(())
    }

    fn low_pc(&self, index: usize, entry: &gimli::DebuggingInformationEntry<Slice<'a>>) -> Option<u64> {
        match entry.attr_value(gimli::DW_AT_low_pc)? {
            AttributeValue::Addr(address) => Some(address),
            AttributeValue::DebugAddrIndex(number) => self.dwarf.address(&self.units[index], number).ok(),
            _ => None,
        }
    }

    /// What an instance is an instance of.
    fn identity(&mut self, index: usize, offset: UnitOffset) -> Option<Identity> {
        let unit = &self.units[index];
        let entry = unit.entry(offset).ok()?;
        let origin = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification]
            .into_iter()
            .find_map(|name| entry.attr_value(name));
        let origin = origin.and_then(|origin| self.place(index, &origin));
        match origin {
            // An instance has no facts of its own, or a definition's are those of its declaration.
            Some((of_unit, of_offset)) if entry.attr_value(gimli::DW_AT_linkage_name).is_none() => {
                let key = self.units[of_unit].debug_info_offset()?.0 + of_offset.0;
                if let Some(known) = self.known.get(&key) {
                    return Some(known.clone());
                }
                let identity = self.describe(of_unit, of_offset)?;
                self.known.insert(key, identity.clone());
                Some(identity)
            }
            _ => self.describe(index, offset),
        }
    }

    fn describe(&self, index: usize, offset: UnitOffset) -> Option<Identity> {
        let (mut linkage, mut plain, mut written) = (None, None, None);
        let mut at = Some((index, offset));
        for _ in 0..MAX_REFERENCES {
            let Some((of_unit, of_offset)) = at else { break };
            let unit = &self.units[of_unit];
            let entry = unit.entry(of_offset).ok()?;
            let text = |name| {
                let value = entry.attr_value(name)?;
                let text = self.dwarf.attr_string(unit, value).ok()?;
                (!text.is_empty()).then(|| text.to_string_lossy().into_owned())
            };
            linkage = linkage
                .or_else(|| text(gimli::DW_AT_linkage_name))
                .or_else(|| text(gimli::DW_AT_MIPS_linkage_name));
            plain = plain.or_else(|| text(gimli::DW_AT_name));
            if written.is_none()
                && let Some(line) =
                    entry.attr_value(gimli::DW_AT_decl_line).and_then(|line| line.udata_value())
            {
                let file = match entry.attr_value(gimli::DW_AT_decl_file) {
                    Some(AttributeValue::FileIndex(number)) => Some(number),
                    other => other.and_then(|file| file.udata_value()),
                };
                let file = file.and_then(|file| self.file(unit, file)).unwrap_or_default();
                written = Some((file, u32::try_from(line).unwrap_or(0)));
            }
            let next = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification]
                .into_iter()
                .find_map(|name| entry.attr_value(name));
            at = next.and_then(|next| self.place(of_unit, &next));
        }
        let (file, line) = written.unwrap_or_default();
        Some(Identity { system_name: linkage.or(plain)?, file, line })
    }

    /// The unit and entry that a reference leads to.
    fn place(&self, index: usize, reference: &AttributeValue<Slice<'a>>) -> Option<(usize, UnitOffset)> {
        match reference {
            AttributeValue::UnitRef(offset) => Some((index, *offset)),
            AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => {
                let after = self
                    .units
                    .partition_point(|unit| unit.debug_info_offset().is_some_and(|begin| begin.0 <= *offset));
                let unit = after.checked_sub(1)?;
                let begin = self.units[unit].debug_info_offset()?.0;
                Some((unit, UnitOffset(offset - begin)))
            }
            _ => None,
        }
    }

    /// A source file's path.
    fn file(&self, unit: &Unit<Slice<'a>>, number: u64) -> Option<String> {
        let program = unit.line_program.as_ref()?;
        let header = program.header();
        let file = header.file(number)?;
        let text =
            |value| self.dwarf.attr_string(unit, value).ok().map(|text| text.to_string_lossy().into_owned());
        let name = text(file.path_name())?;
        let folder = file.directory(header).and_then(text).unwrap_or_default();
        let whole =
            if name.starts_with('/') || folder.is_empty() { name } else { format!("{folder}/{name}") };
        if whole.starts_with('/') {
            return Some(whole);
        }
        let base = unit.comp_dir.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        Some(match base {
            Some(base) if !base.is_empty() => format!("{base}/{whole}"),
            _ => whole,
        })
    }
}
