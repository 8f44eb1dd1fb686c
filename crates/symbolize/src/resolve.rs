//! One module: addresses to logical frames.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

use heaptally_profile::model::Module;

use crate::debug_info::{DebugFrame, DebugInfo, Store};
use crate::demangle::is_mangled;
use crate::fold;
use crate::function_start::FunctionStarts;
use crate::module_file::ModuleFiles;
use crate::object_file::{self, Elf};
use crate::producer;
use crate::symbol_table::{Hit, SymbolTable, TableKind};

/// A logical frame that has a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedFrame {
    /// The name as the file has it.
    pub(crate) system_name: String,
    /// The source file, empty when unknown.
    pub(crate) file: String,
    /// The line, 0 when unknown.
    pub(crate) line: u32,
    /// Whether other functions share its code.
    pub(crate) is_folded: bool,
}

/// What was found for one module.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// For each address its frames, innermost inlined one first; empty when nothing is known.
    pub(crate) frames: Vec<Vec<NamedFrame>>,
    /// What was not found, as a reason for people.
    pub(crate) problem: Option<String>,
}

/// Looks up addresses of one module. `addresses` ascend; `producers` takes the compilers where they are wanted.
pub(crate) fn resolve(
    module: &Module,
    addresses: &[u64],
    executable: Option<&(PathBuf, File)>,
    debug_dirs: &[PathBuf],
    producers: Option<&mut BTreeSet<String>>,
) -> Resolved {
    let files = ModuleFiles::find(module, executable, debug_dirs);
    let program = files.program.as_ref().and_then(object_file::parse);
    let debug = files.debug.as_ref().and_then(object_file::parse);
    let supplementary = files.supplementary.as_ref().and_then(object_file::parse);
    let mut problems = files.reasons.clone();

    let store = Store::default();
    let described =
        [debug.as_ref(), program.as_ref()].into_iter().flatten().find(|elf| object_file::has_debug_info(elf));
    let debug_info = described.and_then(|elf| {
        let path = files.program.as_ref().or(files.debug.as_ref()).map(|file| file.path.as_path())?;
        match DebugInfo::load(elf, supplementary.as_ref(), path, &store) {
            Ok(debug_info) => Some(debug_info),
            Err(damage) => {
                problems.push(damage.to_string());
                None
            }
        }
    });
    if let (Some(producers), Some(debug_info)) = (producers, &debug_info) {
        producer::collect(debug_info.dwarf(), producers);
    }

    let tables = Tables::read(program.as_ref(), debug.as_ref());
    let frames = tables.resolve(module, addresses, program.as_ref(), debug_info.as_ref());
    match &debug_info {
        Some(debug_info) => problems.extend(debug_info.problems()),
        None if files.program.is_some() || files.debug.is_some() => {
            problems.insert(0, tables.what_is_left().to_owned());
        }
        None => {}
    }
    let problem = (!problems.is_empty()).then(|| problems.join("; "));
    Resolved { frames, problem }
}

/// The symbol tables of one module.
struct Tables<'a> {
    /// All symbols, of the debug file where the program has none.
    symbols: SymbolTable<'a>,
    /// The exported ones.
    exported: SymbolTable<'a>,
}

impl<'a> Tables<'a> {
    fn read(program: Option<&Elf<'a>>, debug: Option<&Elf<'a>>) -> Self {
        let symbols = [program, debug]
            .into_iter()
            .flatten()
            .map(|elf| SymbolTable::read(elf, TableKind::Static))
            .find(|table| !table.is_empty());
        let exported = program.map(|elf| SymbolTable::read(elf, TableKind::Dynamic));
        Self { symbols: symbols.unwrap_or_default(), exported: exported.unwrap_or_default() }
    }

    /// What a module without debug information still tells.
    fn what_is_left(&self) -> &'static str {
        if !self.symbols.is_empty() {
            "it has no debug information: functions are named, but no lines and no inlined functions"
        } else if !self.exported.is_empty() {
            "it is stripped: only exported functions are named, without lines"
        } else {
            "it is stripped: no function is named"
        }
    }

    /// Looks up ascending addresses.
    fn resolve(
        &self,
        module: &Module,
        addresses: &[u64],
        program: Option<&Elf<'a>>,
        debug_info: Option<&DebugInfo<'a>>,
    ) -> Vec<Vec<NamedFrame>> {
        let by_symbol = self.symbols.find_all(addresses);
        let by_export = self.exported.find_all(addresses);
        let hits: Vec<Option<Hit<'_, 'a>>> =
            by_symbol.into_iter().zip(by_export).map(|(symbol, export)| symbol.or(export)).collect();
        let folded = folded_starts(&hits, debug_info);

        // Read only when something asks for it.
        let mut starts: Option<FunctionStarts> = None;
        let mut start_of = |address| {
            starts.get_or_insert_with(|| program.map(FunctionStarts::read).unwrap_or_default()).find(address)
        };
        addresses
            .iter()
            .zip(hits)
            .map(|(&address, hit)| {
                let is_folded = hit.is_some_and(|hit| folded.contains(&hit.symbol.start));
                let mut frames = debug_info.map(|info| info.frames(address)).unwrap_or_default();
                let outermost = frames.pop().unwrap_or_default();
                let system_name =
                    physical_name(&outermost, is_folded, hit.as_ref(), address, &mut start_of, module);
                let Some(system_name) = system_name else { return Vec::new() };
                // An inlined call without a name tells nothing that its caller does not.
                let inlined = frames.into_iter().filter(|frame| !frame.name.is_empty());
                let mut named: Vec<NamedFrame> = inlined
                    .map(|DebugFrame { name, file, line, .. }| NamedFrame {
                        system_name: name,
                        file,
                        line,
                        is_folded: false,
                    })
                    .collect();
                named.push(NamedFrame { system_name, file: outermost.file, line: outermost.line, is_folded });
                named
            })
            .collect()
    }
}

/// The name of the function whose code it is.
fn physical_name(
    outermost: &DebugFrame,
    is_folded: bool,
    hit: Option<&Hit<'_, '_>>,
    address: u64,
    start_of: &mut dyn FnMut(u64) -> Option<u64>,
    module: &Module,
) -> Option<String> {
    let symbol_name = |hit: &Hit<'_, '_>| String::from_utf8_lossy(hit.symbol.name).into_owned();
    if !outermost.name.is_empty() {
        let better = hit
            .map(|hit| (hit, symbol_name(hit)))
            .filter(|(hit, name)| is_better(outermost, is_folded, hit, name));
        return Some(better.map_or_else(|| outermost.name.clone(), |(_, name)| name));
    }
    match hit {
        Some(hit) if hit.is_sized => Some(symbol_name(hit)),
        // Without a size it does not reach into another function.
        Some(hit) if start_of(address).is_none_or(|start| start <= hit.symbol.start) => {
            Some(symbol_name(hit))
        }
        _ => start_of(address).map(|start| format!("{}+{start:#x}", file_name(module))),
    }
}

/// Whether a symbol's name is to be preferred to the one of the debug information.
fn is_better(outermost: &DebugFrame, is_folded: bool, hit: &Hit<'_, '_>, symbol_name: &str) -> bool {
    if !hit.is_sized || is_mangled(&outermost.name) {
        return false;
    }
    if outermost.is_assembler {
        return true;
    }
    let is_alias = hit.aliases.iter().any(|alias| alias.name == outermost.name.as_bytes());
    if is_mangled(symbol_name) {
        // A function without a linkage name (a lambda, line tables only) is told in full by its symbol.
        !is_alias
    } else {
        // Of one function's names the one that also a file without debug information would give: malloc, not
        // __libc_malloc. Functions that were folded are several: the lines are of the one that is named here.
        is_alias && !is_folded
    }
}

/// The starts of functions that share their code with others.
fn folded_starts(hits: &[Option<Hit<'_, '_>>], debug_info: Option<&DebugInfo<'_>>) -> BTreeSet<u64> {
    let mut folded = BTreeSet::new();
    let mut candidates = BTreeSet::new();
    let mut last = None;
    for hit in hits.iter().flatten() {
        let start = hit.symbol.start;
        if !hit.is_sized || hit.aliases.len() < 2 || last == Some(start) {
            continue;
        }
        last = Some(start);
        let (names, is_folded) = fold::alias_names(hit);
        if is_folded {
            folded.insert(start);
        } else if names.len() > 1 {
            candidates.insert(start);
        }
    }
    if let Some(debug_info) = debug_info {
        let candidates: Vec<u64> = candidates.into_iter().collect();
        folded.append(&mut fold::find(debug_info.dwarf(), &candidates));
    }
    folded
}

/// A module's file name without folders, as text.
fn file_name(module: &Module) -> &str {
    let path = module.path.strip_suffix(" (deleted)").unwrap_or(&module.path);
    path.rsplit('/').next().unwrap_or(path)
}
