//! The units of debug information, each read when it is asked for, and how their entries refer to each other.

use std::cell::OnceCell;

use addr2line::gimli::{
    self, AttributeValue, DebugInfoOffset, DebuggingInformationEntry, Dwarf, Unit, UnitHeader, UnitOffset,
};

use crate::object_file::Slice;

/// How many entries refer to each other at most: an instance to its abstract one, that to its declaration.
const MAX_REFERENCES: usize = 8;

/// An entry of a unit.
pub(crate) type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The unit's index.
    pub(crate) unit: usize,
    /// The entry in it.
    pub(crate) offset: UnitOffset,
}

/// The units of one file.
pub(crate) struct Units<'d, 'a> {
    dwarf: &'d Dwarf<Slice<'a>>,
    /// In order of their offsets.
    units: Vec<LazyUnit<'a>>,
    is_damaged: bool,
}

struct LazyUnit<'a> {
    header: UnitHeader<Slice<'a>>,
    unit: OnceCell<Option<Unit<Slice<'a>>>>,
}

impl<'d, 'a> Units<'d, 'a> {
    /// Reads the units' heads, up to the first damaged one.
    pub(crate) fn new(dwarf: &'d Dwarf<Slice<'a>>) -> Self {
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        let is_damaged = loop {
            match headers.next() {
                Ok(Some(header)) => units.push(LazyUnit { header, unit: OnceCell::new() }),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        Self { dwarf, units, is_damaged }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether a head was damaged: the units behind it are not known.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// One unit; `None`: it is damaged.
    pub(crate) fn unit(&self, index: usize) -> Option<&Unit<Slice<'a>>> {
        let lazy = self.units.get(index)?;
        lazy.unit.get_or_init(|| self.dwarf.unit(lazy.header).ok()).as_ref()
    }

    /// The unit in which an offset of the section lies.
    pub(crate) fn index_of(&self, offset: usize) -> Option<usize> {
        let begin = |unit: &LazyUnit<'_>| unit.header.debug_info_offset().map(|begin| begin.0);
        let after = self.units.partition_point(|unit| begin(unit).is_some_and(|begin| begin <= offset));
        after.checked_sub(1)
    }

    /// Where in the section an entry lies: what tells it apart from all others.
    pub(crate) fn section_offset(&self, place: Place) -> Option<usize> {
        Some(self.units.get(place.unit)?.header.debug_info_offset()?.0 + place.offset.0)
    }

    /// The entry at a place.
    pub(crate) fn entry(&self, place: Place) -> Option<Entry<'a>> {
        self.unit(place.unit)?.entry(place.offset).ok()
    }

    /// The entry that an attribute of one in `unit` refers to.
    pub(crate) fn place(&self, unit: usize, reference: &AttributeValue<Slice<'a>>) -> Option<Place> {
        match reference {
            AttributeValue::UnitRef(offset) => Some(Place { unit, offset: *offset }),
            AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => {
                let unit = self.index_of(*offset)?;
                let begin = self.units.get(unit)?.header.debug_info_offset()?.0;
                Some(Place { unit, offset: UnitOffset(offset - begin) })
            }
            _ => None,
        }
    }

    /// The entry whose facts are those of this one too: the abstract function of an instance, the declaration of a
    /// definition.
    pub(crate) fn origin(&self, unit: usize, entry: &Entry<'a>) -> Option<Place> {
        let reference = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification]
            .into_iter()
            .find_map(|name| entry.attr_value(name))?;
        self.place(unit, &reference)
    }

    /// An entry and those it takes its facts from, itself first. Ends at what is damaged.
    pub(crate) fn chain(&self, place: Place) -> Vec<(Place, Entry<'a>)> {
        let mut chain = Vec::new();
        let mut at = Some(place);
        while let Some(place) = at
            && chain.len() < MAX_REFERENCES
            && let Some(entry) = self.entry(place)
        {
            at = self.origin(place.unit, &entry);
            chain.push((place, entry));
        }
        chain
    }

    /// A text that an attribute of an entry holds; `None` where it is empty.
    pub(crate) fn text(&self, unit: usize, entry: &Entry<'a>, name: gimli::DwAt) -> Option<String> {
        let text = self.dwarf.attr_string(self.unit(unit)?, entry.attr_value(name)?).ok()?;
        (!text.is_empty()).then(|| text.to_string_lossy().into_owned())
    }

    /// The linkage name of an entry itself.
    pub(crate) fn linkage_name(&self, unit: usize, entry: &Entry<'a>) -> Option<String> {
        [gimli::DW_AT_linkage_name, gimli::DW_AT_MIPS_linkage_name]
            .into_iter()
            .find_map(|name| self.text(unit, entry, name))
    }
}
