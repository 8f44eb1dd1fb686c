//! DWARF: the logical frames at an address.
//!
//! Sections may be compressed. Parts that the compiler left in files of their own (split DWARF) are read from
//! `<file>.dwp`, else from the `.dwo` or object file that the unit names; parts that dwz shares from the
//! supplementary file.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::gimli::{self, Dwarf, DwarfPackage, SectionId, UnitOffset};
use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use typed_arena::Arena;

use crate::cpp_name::{CppNames, is_cpp_language};
use crate::map::MappedFile;
use crate::object_file::{self, Elf, Slice};

/// A logical frame as DWARF names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DebugFrame<'c> {
    /// The linkage name, or the plain one where there is none; empty when unknown.
    pub(crate) name: &'c [u8],
    /// The source file, empty when unknown.
    pub(crate) file: &'c str,
    /// The line, 0 when unknown.
    pub(crate) line: u32,
    /// Its entry in its unit.
    entry: Option<UnitOffset>,
    /// Whether it may be written in C++: units that were split do not say their language at once.
    may_be_cpp: bool,
    /// Whether the assembler described it. It takes each label for a function, so of aliases any may stand here.
    pub(crate) is_assembler: bool,
}

/// What outlives the reading of one module's debug information.
#[derive(Default)]
pub(crate) struct Store {
    /// Sections that were unpacked.
    sections: Arena<Vec<u8>>,
    /// Files of split DWARF.
    files: Arena<MappedFile>,
    /// Names that were made.
    names: Arena<String>,
}

impl Store {
    /// Where names that were made are kept.
    pub(crate) fn names(&self) -> &Arena<String> {
        &self.names
    }
}

/// The debug information of one module. Threads share it, each with a [`Lookup`] of its own.
pub(crate) struct DebugInfo<'a> {
    dwarf: Arc<Dwarf<Slice<'a>>>,
    package: Option<DwarfPackage<Slice<'a>>>,
}

/// Looks up addresses in the debug information. What it reads on the way is kept for the next address.
pub(crate) struct Lookup<'a> {
    context: Context<Slice<'a>>,
    package: Option<&'a DwarfPackage<Slice<'a>>>,
    store: &'a Store,
    missing: RefCell<Missing>,
}

/// What [`Lookup`] did not find.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// Files of split DWARF.
    files: BTreeSet<PathBuf>,
    /// The first damage.
    damage: Option<String>,
}

/// Why debug information could not be read.
#[derive(Debug)]
pub(crate) enum Damage {
    Section(String),
    Dwarf(gimli::Error),
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Section(error) => write!(formatter, "{error}"),
            Self::Dwarf(error) => write!(formatter, "{error}"),
        }
    }
}

impl From<gimli::Error> for Damage {
    fn from(error: gimli::Error) -> Self {
        Self::Dwarf(error)
    }
}

/// Loads one section by its name; none counts as empty.
fn load<'a>(elf: &Elf<'a>, name: Option<&str>, store: &'a Store) -> Result<Slice<'a>, Damage> {
    let bytes = match name {
        Some(name) => object_file::section(elf, name, &store.sections).map_err(Damage::Section)?,
        None => &[],
    };
    Ok(Slice::new(bytes, gimli::LittleEndian))
}

impl<'a> DebugInfo<'a> {
    /// Reads the sections of an ELF file's debug information. `path` is the module's file: the package of split DWARF
    /// lies beside it.
    pub(crate) fn load(
        elf: &Elf<'a>,
        supplementary: Option<&Elf<'a>>,
        path: &Path,
        store: &'a Store,
    ) -> Result<Self, Damage> {
        let mut dwarf = Dwarf::load(|id: SectionId| load(elf, Some(id.name()), store))?;
        if let Some(supplementary) = supplementary {
            dwarf.load_sup(|id: SectionId| load(supplementary, Some(id.name()), store))?;
        }
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        // Damage to the index is found here, once, and not by each thread.
        let mut units = dwarf.units();
        while units.next()?.is_some() {}
        Ok(Self { dwarf: Arc::new(dwarf), package: load_package(path, store) })
    }

    /// The first damage to a unit as a whole. A lookup passes over such a unit: its addresses are not described.
    pub(crate) fn damaged_unit(&self) -> Option<Damage> {
        let mut units = self.dwarf.units();
        while let Ok(Some(header)) = units.next() {
            if let Err(error) = self.dwarf.unit(header) {
                return Some(error.into());
            }
        }
        None
    }

    /// The sections.
    pub(crate) fn dwarf(&self) -> &Dwarf<Slice<'a>> {
        &self.dwarf
    }
}

impl<'a> Lookup<'a> {
    /// Reads the index: which unit describes which addresses.
    pub(crate) fn new<'d: 'a>(debug_info: &'a DebugInfo<'d>, store: &'a Store) -> Result<Self, Damage> {
        let dwarf: Arc<Dwarf<Slice<'a>>> = Arc::clone(&debug_info.dwarf) as _;
        Ok(Self {
            context: Context::from_arc_dwarf(dwarf)?,
            package: debug_info.package.as_ref(),
            store,
            missing: RefCell::default(),
        })
    }

    /// Replaces `frames` by those at an address, innermost first; none where nothing is described.
    pub(crate) fn frames<'c>(&'c self, address: u64, frames: &mut Vec<DebugFrame<'c>>) {
        frames.clear();
        // addr2line adds 1 to an address. No code lies at the last one.
        if address == u64::MAX {
            return;
        }
        if let Err(error) = self.try_frames(address, frames) {
            frames.clear();
            self.missing.borrow_mut().add_damage(error.into());
        }
    }

    fn try_frames<'c>(&'c self, address: u64, frames: &mut Vec<DebugFrame<'c>>) -> Result<(), gimli::Error> {
        let mut found = self.answer(self.context.find_frames(address))?;
        while let Some(frame) = found.next()? {
            let language = frame.function.as_ref().and_then(|function| function.language);
            let name = frame.function.as_ref().map_or(&[][..], |function| function.name.slice());
            let (file, line) = match &frame.location {
                Some(location) => (location.file.unwrap_or_default(), location.line.unwrap_or(0)),
                None => ("", 0),
            };
            frames.push(DebugFrame {
                name,
                file,
                line,
                entry: frame.dw_die_offset,
                may_be_cpp: language.is_none_or(is_cpp_language),
                is_assembler: language == Some(gimli::DW_LANG_Mips_Assembler),
            });
        }
        Ok(())
    }

    /// The name for people of a frame at an address, where the debug information tells more than its linkage name or
    /// its plain one.
    pub(crate) fn full_name<'c>(
        &'c self,
        address: u64,
        frame: &DebugFrame<'_>,
        names: &mut CppNames<'c, 'a>,
    ) -> Option<&'c str> {
        if !frame.may_be_cpp || frame.name.starts_with(b"_Z") {
            return None;
        }
        let unit = self.answer(self.context.find_dwarf_and_unit(address))?;
        let begin = unit.header.debug_info_offset()?.0;
        names.find(unit.dwarf, begin, frame.entry?)
    }

    /// The answer of a lookup, which may have to load files of split DWARF.
    fn answer<L>(&self, mut lookup: LookupResult<L>) -> L::Output
    where
        L: LookupContinuation<Buf = Slice<'a>>,
    {
        loop {
            match lookup {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.load_split(&load));
                }
            }
        }
    }

    /// What was missing up to now.
    pub(crate) fn into_missing(self) -> Missing {
        self.missing.into_inner()
    }

    /// Finds a unit's split part. A missing one is remembered.
    fn load_split(&self, load: &SplitDwarfLoad<Slice<'a>>) -> Option<Arc<Dwarf<Slice<'a>>>> {
        if let Some(package) = self.package
            && let Ok(Some(unit)) = package.find_cu(load.dwo_id, &load.parent)
        {
            return Some(Arc::new(unit));
        }
        let mut path = PathBuf::new();
        for part in [&load.comp_dir, &load.path].into_iter().flatten() {
            path.push(OsStr::from_bytes(part.slice()));
        }
        let split = self.load_split_file(&path, load);
        if split.is_none() {
            self.missing.borrow_mut().files.insert(path);
        }
        split
    }

    fn load_split_file(
        &self,
        path: &Path,
        wanted: &SplitDwarfLoad<Slice<'a>>,
    ) -> Option<Arc<Dwarf<Slice<'a>>>> {
        let file = self.store.files.alloc(MappedFile::open(path).ok()?);
        let elf = object_file::parse(file)?;
        let mut dwarf = Dwarf::load(|id: SectionId| load(&elf, id.dwo_name(), self.store)).ok()?;
        dwarf.make_dwo(&wanted.parent);
        // An object file that was compiled again has another id.
        let header = dwarf.units().next().ok()??;
        let unit = dwarf.unit(header).ok()?;
        (unit.dwo_id == Some(wanted.dwo_id)).then(|| Arc::new(dwarf))
    }
}

impl Missing {
    /// Takes over what was missing behind this.
    pub(crate) fn append(&mut self, mut later: Self) {
        self.files.append(&mut later.files);
        self.damage = self.damage.take().or(later.damage);
    }

    /// Notes a damage.
    pub(crate) fn add_damage(&mut self, damage: Damage) {
        self.damage.get_or_insert(damage.to_string());
    }

    /// What was missing or damaged, each a sentence fragment.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(first) = self.files.first() {
            let others = match self.files.len() {
                1 => String::new(),
                count => format!(" and {} others", count - 1),
            };
            problems.push(format!(
                "split debug information missing: {first:?}{others} not found or of another build, so functions there \
                 are named by their symbols, without lines and inlined functions"
            ));
        }
        if let Some(error) = &self.damage {
            problems.push(format!(
                "debug information damaged: {error}, so functions there are named by their symbols, without lines and \
                 inlined functions"
            ));
        }
        problems
    }
}

/// The package `<file>.dwp`, if it is there.
fn load_package<'a>(path: &Path, store: &'a Store) -> Option<DwarfPackage<Slice<'a>>> {
    let mut package_path = OsString::from(path);
    package_path.push(".dwp");
    let file = store.files.alloc(MappedFile::open(Path::new(&package_path)).ok()?);
    let elf = object_file::parse(file)?;
    let empty = Slice::new(&[], gimli::LittleEndian);
    DwarfPackage::load(|id: SectionId| load(&elf, id.dwo_name(), store), empty).ok()
}
