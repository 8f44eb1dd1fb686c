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

use addr2line::gimli::{self, Dwarf, DwarfPackage, SectionId};
use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use typed_arena::Arena;

use crate::map::MappedFile;
use crate::object_file::{self, Elf, Slice};

/// A logical frame as DWARF names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DebugFrame {
    /// The linkage name, or the plain one where there is none; empty when unknown.
    pub(crate) name: String,
    /// The source file, empty when unknown.
    pub(crate) file: String,
    /// The line, 0 when unknown.
    pub(crate) line: u32,
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
}

/// The debug information of one module.
pub(crate) struct DebugInfo<'a> {
    context: Context<Slice<'a>>,
    dwarf: Arc<Dwarf<Slice<'a>>>,
    package: Option<DwarfPackage<Slice<'a>>>,
    store: &'a Store,
    missing_files: RefCell<BTreeSet<PathBuf>>,
    damaged: RefCell<Option<gimli::Error>>,
}

/// Why debug information could not be read.
#[derive(Debug)]
pub(crate) enum Damage {
    Section(object::Error),
    Dwarf(gimli::Error),
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Section(error) => write!(formatter, "a debug section cannot be read: {error}"),
            Self::Dwarf(error) => write!(formatter, "the debug information is damaged: {error}"),
        }
    }
}

impl From<object::Error> for Damage {
    fn from(error: object::Error) -> Self {
        Self::Section(error)
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
        Some(name) => object_file::section(elf, name, &store.sections)?,
        None => &[],
    };
    Ok(Slice::new(bytes, gimli::LittleEndian))
}

impl<'a> DebugInfo<'a> {
    /// Reads the index of an ELF file's debug information. `path` is the module's file: the package of split DWARF
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
        let dwarf = Arc::new(dwarf);
        let context = Context::from_arc_dwarf(Arc::clone(&dwarf))?;
        Ok(Self {
            context,
            dwarf,
            package: load_package(path, store),
            store,
            missing_files: RefCell::default(),
            damaged: RefCell::default(),
        })
    }

    /// The sections.
    pub(crate) fn dwarf(&self) -> &Dwarf<Slice<'a>> {
        &self.dwarf
    }

    /// The logical frames at an address, innermost inlined one first; empty when none is described.
    pub(crate) fn frames(&self, address: u64) -> Vec<DebugFrame> {
        match self.try_frames(address) {
            Ok(frames) => frames,
            Err(error) => {
                self.damaged.borrow_mut().get_or_insert(error);
                Vec::new()
            }
        }
    }

    fn try_frames(&self, address: u64) -> Result<Vec<DebugFrame>, gimli::Error> {
        let mut lookup = self.context.find_frames(address);
        let mut found = loop {
            match lookup {
                LookupResult::Output(output) => break output?,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.load_split(&load))
                }
            }
        };
        let mut frames = Vec::new();
        while let Some(frame) = found.next()? {
            let (name, is_assembler) = match &frame.function {
                Some(function) => {
                    let is_assembler = function.language == Some(gimli::DW_LANG_Mips_Assembler);
                    (function.raw_name()?.into_owned(), is_assembler)
                }
                None => (String::new(), false),
            };
            let (file, line) = match &frame.location {
                Some(location) => (location.file.unwrap_or_default().to_owned(), location.line.unwrap_or(0)),
                None => (String::new(), 0),
            };
            frames.push(DebugFrame { name, file, line, is_assembler });
        }
        Ok(frames)
    }

    /// What was missing or damaged up to now, each a sentence fragment.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let missing = self.missing_files.borrow();
        if let Some(first) = missing.first() {
            let others = match missing.len() {
                1 => String::new(),
                count => format!(" and {} others", count - 1),
            };
            problems.push(format!(
                "split debug information is missing ({first:?}{others}): no inlined functions there"
            ));
        }
        if let Some(error) = *self.damaged.borrow() {
            problems.push(format!("the debug information is damaged: {error}"));
        }
        problems
    }

    /// Finds a unit's split part. A missing one is remembered.
    fn load_split(&self, load: &SplitDwarfLoad<Slice<'a>>) -> Option<Arc<Dwarf<Slice<'a>>>> {
        if let Some(package) = &self.package
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
            self.missing_files.borrow_mut().insert(path);
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

/// The package `<file>.dwp`, if it is there.
fn load_package<'a>(path: &Path, store: &'a Store) -> Option<DwarfPackage<Slice<'a>>> {
    let mut package_path = OsString::from(path);
    package_path.push(".dwp");
    let file = store.files.alloc(MappedFile::open(Path::new(&package_path)).ok()?);
    let elf = object_file::parse(file)?;
    let empty = Slice::new(&[], gimli::LittleEndian);
    DwarfPackage::load(|id: SectionId| load(&elf, id.dwo_name(), store), empty).ok()
}
