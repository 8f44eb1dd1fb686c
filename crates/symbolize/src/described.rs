//! What debug information says of functions as a whole: where each is written, and where it was inlined.

use std::collections::{BTreeMap, HashMap};

use addr2line::gimli::{self, AttributeValue, Dwarf, Unit, UnitOffset};
use typed_arena::Arena;

use crate::cpp_name::CppNames;
use crate::object_file::Slice;
use crate::unit_table::{Entry, Place, Units};

/// A function, by what tells it apart: names, and where it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity {
    /// Its linkage name, or its plain one.
    pub(crate) system_name: String,
    /// Its name for people, where it has a plain name and where it stands tells more; else empty.
    pub(crate) name: String,
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

/// All functions that are described. What is damaged is left out; the second value says whether anything was. `texts`: where
/// names are made.
pub(crate) fn described<'d>(
    dwarf: &'d Dwarf<Slice<'_>>,
    texts: &'d Arena<String>,
) -> (BTreeMap<Identity, Instances>, bool) {
    let mut reader = Reader {
        dwarf,
        units: Units::new(dwarf),
        names: CppNames::new(texts),
        classes: HashMap::new(),
        known: HashMap::new(),
    };
    let mut is_damaged = reader.units.is_damaged();
    let mut found: BTreeMap<Identity, Instances> = BTreeMap::new();
    for index in 0..reader.units.len() {
        is_damaged |= reader.read_unit(index, &mut found).is_none();
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

/// What has code in a unit.
#[derive(Default)]
struct Outline {
    instances: Vec<Instance>,
    /// Functions of classes that do not say where they are written, each with its class.
    members: Vec<(UnitOffset, UnitOffset)>,
}

fn outline<'a>(dwarf: &Dwarf<Slice<'a>>, unit: &Unit<Slice<'a>>) -> gimli::Result<Outline> {
    let mut outline = Outline::default();
    // The entries around the present one, by depth: a class, or something else.
    let mut around: Vec<Option<UnitOffset>> = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        around.truncate(usize::try_from(entry.depth()).unwrap_or(0));
        let class = around.last().copied().flatten();
        let is_class = matches!(entry.tag(), gimli::DW_TAG_class_type | gimli::DW_TAG_structure_type);
        around.push(is_class.then(|| entry.offset()));
        if entry.tag() == gimli::DW_TAG_subprogram
            && let Some(class) = class
            && entry.attr(gimli::DW_AT_decl_line).is_none()
        {
            outline.members.push((entry.offset(), class));
        }
        let is_inlined = match entry.tag() {
            gimli::DW_TAG_subprogram => false,
            gimli::DW_TAG_inlined_subroutine => true,
            _ => continue,
        };
        let mut ranges = Vec::new();
        let mut iterator = dwarf.die_ranges(unit, entry)?;
        while let Some(range) = iterator.next()? {
            if range.begin < range.end && range.begin != 0 {
                ranges.push((range.begin, range.end));
            }
        }
        if !ranges.is_empty() {
            outline.instances.push(Instance { offset: entry.offset(), is_inlined, ranges });
        }
    }
    Ok(outline)
}

struct Reader<'d, 'a> {
    dwarf: &'d Dwarf<Slice<'a>>,
    units: Units<'d, 'a>,
    names: CppNames<'d, 'a>,
    /// By the offsets in the section of functions that do not say where they are written, as lambdas: their classes.
    classes: HashMap<usize, Place>,
    /// What each abstract function is, by its offset in the section.
    known: HashMap<usize, Identity>,
}

impl<'d, 'a> Reader<'d, 'a> {
    /// Reads one unit; `None`: it is damaged from some place on.
    fn read_unit(&mut self, index: usize, found: &mut BTreeMap<Identity, Instances>) -> Option<()> {
        let Outline { instances, members } = outline(self.dwarf, self.units.unit(index)?).ok()?;
        for (function, class) in members {
            let key = self.units.section_offset(Place { unit: index, offset: function })?;
            self.classes.insert(key, Place { unit: index, offset: class });
        }
        for Instance { offset, is_inlined, mut ranges } in instances {
            let place = Place { unit: index, offset };
            let Some(identity) = self.identity(place) else { continue };
            let function = found.entry(identity).or_default();
            if is_inlined {
                ranges.sort_unstable();
                function.inlined.push(ranges);
            } else {
                // The first range holds the entry; others are parts that were split off.
                function.starts.push(self.low_pc(place).unwrap_or(ranges[0].0));
            }
        }
        Some(())
    }

    fn low_pc(&self, place: Place) -> Option<u64> {
        match self.units.entry(place)?.attr_value(gimli::DW_AT_low_pc)? {
            AttributeValue::Addr(address) => Some(address),
            AttributeValue::DebugAddrIndex(number) => {
                self.dwarf.address(self.units.unit(place.unit)?, number).ok()
            }
            _ => None,
        }
    }

    /// What an instance is an instance of.
    fn identity(&mut self, place: Place) -> Option<Identity> {
        let entry = self.units.entry(place)?;
        match self.units.origin(place.unit, &entry) {
            // An instance has no facts of its own, or a definition's are those of its declaration.
            Some(origin) if entry.attr_value(gimli::DW_AT_linkage_name).is_none() => {
                let key = self.units.section_offset(origin)?;
                if let Some(known) = self.known.get(&key) {
                    return Some(known.clone());
                }
                let identity = self.describe(origin)?;
                self.known.insert(key, identity.clone());
                Some(identity)
            }
            _ => self.describe(place),
        }
    }

    fn describe(&mut self, place: Place) -> Option<Identity> {
        let chain = self.units.chain(place);
        let first = |of: &dyn Fn(usize, &Entry<'a>) -> Option<String>| {
            chain.iter().find_map(|(place, entry)| of(place.unit, entry))
        };
        let linkage = first(&|unit, entry| self.units.linkage_name(unit, entry));
        let plain = || first(&|unit, entry| self.units.text(unit, entry, gimli::DW_AT_name));
        let written = chain.iter().find_map(|(place, entry)| self.written(place.unit, entry));
        let (file, line) = written.or_else(|| self.written_with_class(&chain)).unwrap_or_default();
        let is_plain = linkage.is_none();
        let system_name = linkage.or_else(plain)?;
        let name = if is_plain { self.full_name(place) } else { None };
        Some(Identity { system_name, name: name.unwrap_or_default().to_owned(), file, line })
    }

    /// What a function of C++ without a linkage name is called.
    fn full_name(&mut self, place: Place) -> Option<&'d str> {
        let unit = self.units.unit(place.unit)?.header.debug_info_offset()?.0;
        self.names.find(self.dwarf, unit, place.offset)
    }

    /// Where the class of a function is written.
    fn written_with_class(&self, chain: &[(Place, Entry<'a>)]) -> Option<(String, u32)> {
        let class = |(place, _): &(Place, _)| self.classes.get(&self.units.section_offset(*place)?);
        let class = chain.iter().find_map(class)?;
        self.written(class.unit, &self.units.entry(*class)?)
    }

    /// The file and line that an entry itself says.
    fn written(&self, unit: usize, entry: &Entry<'a>) -> Option<(String, u32)> {
        let line = entry.attr_value(gimli::DW_AT_decl_line).and_then(|line| line.udata_value())?;
        let file = match entry.attr_value(gimli::DW_AT_decl_file) {
            Some(AttributeValue::FileIndex(number)) => Some(number),
            other => other.and_then(|file| file.udata_value()),
        };
        let file = file.and_then(|file| self.file(self.units.unit(unit)?, file)).unwrap_or_default();
        Some((file, u32::try_from(line).unwrap_or(0)))
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
