//! What a file's debug information describes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gimli::{
    Abbreviations, AttributeValue, Dwarf, DwarfSections, EndianSlice, LittleEndian, SectionId, UnitHeader,
    UnitType,
};

use super::image::{Elf, section};
use super::range::{Range, merged};

/// So many units are looked at.
const MAX_UNITS: usize = 20_000;
/// So many entries are looked at, over all units.
const MAX_ENTRIES: usize = 4_000_000;
/// So many pieces of code are kept.
const MAX_RANGES: usize = 4_000_000;
/// So many different compilers are kept.
const MAX_COMPILERS: usize = 64;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// How much a unit tells, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Lines, and at most the bare names of inlined functions.
    Lines,
    /// Functions with their full names, and inlined calls.
    Functions,
    /// Variables and types too.
    Full,
}

/// What is described how. Counts are of the program's own units: neither assembly nor Rust's standard library, whose
/// debug information is in each Rust program.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(crate) versions: BTreeSet<u16>,
    /// Units with code or types in them.
    pub(crate) units: usize,
    /// Those of them that tell lines only.
    pub(crate) lines_only: usize,
    /// Those of them that tell variables and types.
    pub(crate) full: usize,
    /// Whether any inlined call is described.
    pub(crate) has_inlined: bool,
    /// Whether Rust's standard library is described.
    pub(crate) has_rust_library: bool,
    /// The compilers by language.
    pub(crate) compilers: BTreeMap<&'static str, BTreeSet<String>>,
    /// Files to which units were moved (split DWARF).
    pub(crate) split: Vec<PathBuf>,
    /// Units in a `.dwp` or `.dwo` file.
    pub(crate) split_units: usize,
    /// The code of all units, sorted and without overlap.
    pub(crate) code: Vec<Range>,
    /// Whether not all of it was looked at.
    pub(crate) is_partial: bool,
}

/// Reads it; `None`: it cannot be read.
pub(crate) fn read(elf: &Elf<'_>) -> Option<Description> {
    let sections = DwarfSections::load(|id| -> Result<Cow<'_, [u8]>, ()> {
        let wanted = matches!(
            id,
            SectionId::DebugInfo
                | SectionId::DebugAbbrev
                | SectionId::DebugStr
                | SectionId::DebugLineStr
                | SectionId::DebugStrOffsets
                | SectionId::DebugAddr
                | SectionId::DebugRanges
                | SectionId::DebugRngLists
                // A unit is refused without its lines' header.
                | SectionId::DebugLine
        );
        Ok(if wanted { section(elf, id.name()).unwrap_or_default() } else { Cow::Borrowed(&[]) })
    })
    .ok()?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let mut description = Description::default();
    read_units(&dwarf, &mut description);
    description.code = merged(std::mem::take(&mut description.code));
    (!description.versions.is_empty()).then_some(description)
}

fn read_units(dwarf: &Dwarf<Slice<'_>>, description: &mut Description) {
    let mut units = dwarf.units();
    let mut left = MAX_ENTRIES;
    for _ in 0..MAX_UNITS {
        match units.next() {
            Ok(Some(header)) => {
                if matches!(header.type_(), UnitType::Compilation | UnitType::Skeleton(_)) {
                    // A damaged unit is left out; the next one begins where its header says.
                    let _done = read_unit(dwarf, header, description, &mut left);
                }
            }
            Ok(None) => return,
            Err(_) => break,
        }
    }
    description.is_partial = true;
}

fn read_unit<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    header: UnitHeader<Slice<'a>>,
    description: &mut Description,
    left: &mut usize,
) -> gimli::Result<()> {
    description.versions.insert(header.version());
    let abbreviations = dwarf.abbreviations(&header)?;
    let unit = dwarf.unit(header)?;
    if let Ok(mut ranges) = dwarf.unit_ranges(&unit) {
        while let Ok(Some(range)) = ranges.next() {
            // What the linker left out begins at 0.
            if range.begin > 0 && range.begin < range.end && description.code.len() < MAX_RANGES {
                description.code.push(range.begin..range.end);
            }
        }
    }
    let mut entries = header.entries(&abbreviations);
    let Some(root) = entries.next_dfs()? else { return Ok(()) };
    let text = |name| match root.attr_value(name) {
        Some(value) => dwarf.attr_string(&unit, value).ok().map(|text| text.to_string_lossy().into_owned()),
        None => None,
    };
    let language = match root.attr_value(gimli::DW_AT_language) {
        Some(AttributeValue::Language(language)) => language_name(language),
        _ => "other",
    };
    let folder = text(gimli::DW_AT_comp_dir).unwrap_or_default();

    let moved_to = text(gimli::DW_AT_dwo_name).or_else(|| text(gimli::DW_AT_GNU_dwo_name));
    if let Some(name) = moved_to {
        description.split_units += 1;
        description.split.push(Path::new(&folder).join(name));
        return Ok(());
    }
    if language == "Rust" && is_rust_library(&folder, &text(gimli::DW_AT_name).unwrap_or_default()) {
        description.has_rust_library = true;
        return Ok(());
    }
    if let Some(producer) = text(gimli::DW_AT_producer)
        && description.compilers.values().map(BTreeSet::len).sum::<usize>() < MAX_COMPILERS
    {
        description.compilers.entry(language).or_default().insert(compiler(&producer).to_owned());
    }
    if language == "assembly" {
        return Ok(());
    }
    let (detail, has_inlined, is_whole) = detail(&header, &abbreviations, left)?;
    description.has_inlined |= has_inlined;
    description.is_partial |= !is_whole;
    description.units += 1;
    description.lines_only += usize::from(detail == Detail::Lines);
    description.full += usize::from(detail == Detail::Full);
    Ok(())
}

/// How much a unit tells, whether it has inlined calls, and whether it was looked at to its end or far enough.
fn detail(
    header: &UnitHeader<Slice<'_>>,
    abbreviations: &Abbreviations,
    left: &mut usize,
) -> gimli::Result<(Detail, bool, bool)> {
    let mut detail = Detail::Lines;
    let mut has_inlined = false;
    let mut entries = header.entries_raw(abbreviations, None)?;
    while !entries.is_empty() && (detail < Detail::Full || !has_inlined) {
        if *left == 0 {
            return Ok((detail, has_inlined, false));
        }
        *left -= 1;
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        let tells = match abbreviation.tag() {
            // With line tables only, a compiler may still name the functions that it inlined, but not where they are.
            gimli::DW_TAG_subprogram => {
                let attributes = abbreviation.attributes();
                let is_placed = attributes.iter().any(|attribute| attribute.name() == gimli::DW_AT_decl_line);
                if is_placed { Detail::Functions } else { Detail::Lines }
            }
            gimli::DW_TAG_inlined_subroutine => {
                has_inlined = true;
                Detail::Lines
            }
            gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter | gimli::DW_TAG_base_type => Detail::Full,
            _ => Detail::Lines,
        };
        detail = detail.max(tells);
        entries.skip_attributes(abbreviation.attributes())?;
    }
    Ok((detail, has_inlined, true))
}

/// Whether a unit is of the standard library that rustup or a distribution brings.
fn is_rust_library(folder: &str, name: &str) -> bool {
    const FOLDERS: [&str; 2] = ["/rustc/", "/rust/deps/"];
    FOLDERS.iter().any(|library| folder.starts_with(library) || name.starts_with(library))
}

/// A producer without the options behind its version.
fn compiler(producer: &str) -> &str {
    let end = producer.find(" -").unwrap_or(producer.len());
    producer.get(..end).unwrap_or(producer).trim()
}

fn language_name(language: gimli::DwLang) -> &'static str {
    match language {
        gimli::DW_LANG_C
        | gimli::DW_LANG_C89
        | gimli::DW_LANG_C99
        | gimli::DW_LANG_C11
        | gimli::DW_LANG_C17 => "C",
        gimli::DW_LANG_C_plus_plus
        | gimli::DW_LANG_C_plus_plus_03
        | gimli::DW_LANG_C_plus_plus_11
        | gimli::DW_LANG_C_plus_plus_14
        | gimli::DW_LANG_C_plus_plus_17
        | gimli::DW_LANG_C_plus_plus_20 => "C++",
        gimli::DW_LANG_Rust => "Rust",
        gimli::DW_LANG_Swift => "Swift",
        gimli::DW_LANG_Go => "Go",
        gimli::DW_LANG_D => "D",
        gimli::DW_LANG_Zig => "Zig",
        gimli::DW_LANG_Fortran90
        | gimli::DW_LANG_Fortran95
        | gimli::DW_LANG_Fortran03
        | gimli::DW_LANG_Fortran08
        | gimli::DW_LANG_Fortran18 => "Fortran",
        gimli::DW_LANG_Mips_Assembler => "assembly",
        _ => "other",
    }
}
