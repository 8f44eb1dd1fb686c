//! One module: addresses to logical frames.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::OnceLock;

use heaptally_profile::model::{Function, Line, Module};

use crate::cpp_name::CppNames;
use crate::debug_info::{DebugFrame, DebugInfo, Lookup, Missing, Store};
use crate::demangle::is_mangled;
use crate::fold;
use crate::function_start::FunctionStarts;
use crate::function_table::FoundFunctions;
use crate::module_file::ModuleFiles;
use crate::object_file::{self, Elf};
use crate::producer;
use crate::progress::Counter;
use crate::symbol_table::{Hit, SymbolTable, TableKind};
use crate::worker;

/// A part of a module that a thread looks up has at least so many addresses.
///
/// PERF: to read the index of a 56 MB program again costs as much as some 600 of 10,000 addresses in it (64 M of 1.2 G
/// instructions).
const MIN_PART: usize = 2048;
/// So many addresses are looked up between two counts.
const COUNTED: usize = 256;

/// What is wanted of one module.
#[derive(Debug)]
pub(crate) struct Request<'r> {
    /// The module.
    pub(crate) module: &'r Module,
    /// The addresses, ascending.
    pub(crate) addresses: Vec<u64>,
    /// The program that was started.
    pub(crate) executable: Option<&'r (PathBuf, File)>,
    /// Where debug files lie.
    pub(crate) debug_dirs: &'r [PathBuf],
    /// Whether its compilers are asked for.
    pub(crate) wants_compilers: bool,
    /// In how many parts it may be split.
    pub(crate) threads: usize,
    /// Counts what is done.
    pub(crate) counter: &'r Counter,
}

/// What was found for one module.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// The module's addresses in parts, in their order.
    pub(crate) parts: Vec<Part>,
    /// What was not found, as a reason for people.
    pub(crate) problem: Option<String>,
    /// The compilers, if they were asked for.
    pub(crate) compilers: BTreeSet<String>,
}

/// What was found for a part of a module's addresses.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// The functions, in the order in which `lines` meets them.
    pub(crate) functions: Vec<Function>,
    /// The frames of all addresses, each with its function's index in `functions`; of one address the innermost inlined
    /// one first.
    pub(crate) lines: Vec<Line>,
    /// For each address where its frames end in `lines`. Those where nothing is known have none.
    pub(crate) ends: Vec<usize>,
    /// Whether there is an address that the debug information does not describe.
    has_undescribed: bool,
    missing: Missing,
}

/// Looks up addresses of one module.
pub(crate) fn resolve(request: &Request<'_>) -> Resolved {
    let files = ModuleFiles::find(request.module, request.executable, request.debug_dirs);
    let program = files.program.as_ref().and_then(object_file::parse);
    let debug = files.debug.as_ref().and_then(object_file::parse);
    let supplementary = files.supplementary.as_ref().and_then(object_file::parse);

    let store = Store::default();
    let described =
        [debug.as_ref(), program.as_ref()].into_iter().flatten().find(|elf| object_file::has_debug_info(elf));
    let debug_info = described.and_then(|elf| {
        let path = files.program.as_ref().or(files.debug.as_ref()).map(|file| file.path.as_path())?;
        Some(DebugInfo::load(elf, supplementary.as_ref(), path, &store))
    });
    let (debug_info, damage) = match debug_info {
        Some(Ok(debug_info)) => (Some(debug_info), None),
        Some(Err(damage)) => (None, Some(damage.to_string())),
        None => (None, None),
    };
    let mut compilers = BTreeSet::new();
    if let Some(debug_info) = debug_info.as_ref().filter(|_| request.wants_compilers) {
        producer::collect(debug_info.dwarf(), &mut compilers);
    }
    if request.addresses.is_empty() {
        return Resolved { compilers, ..Resolved::default() };
    }

    let tables = Tables::read(program.as_ref(), debug.as_ref());
    let mut parts = tables.resolve(request, program.as_ref(), debug_info.as_ref());
    let mut missing = Missing::default();
    for part in &mut parts {
        missing.append(std::mem::take(&mut part.missing));
    }
    // PERF: to read each unit's head once more costs a twentieth of 10,000 addresses.
    if parts.iter().any(|part| part.has_undescribed)
        && let Some(damage) = debug_info.as_ref().and_then(DebugInfo::damaged_unit)
    {
        missing.add_damage(damage);
    }
    let left = tables.what_is_left();
    let mut problems = Vec::new();
    match (&files.absence, &damage) {
        (Some(absence), _) if debug_info.is_some() => {
            problems.push(format!("{absence}, so functions are named by its debug file"));
        }
        (Some(absence), _) if tables.symbols.is_empty() => {
            problems.push(format!("{absence}, so no function in it is named"));
        }
        (Some(absence), _) => {
            problems.push(format!("{absence}, so its debug file tells what it can: {}", left.loss));
        }
        (None, Some(damage)) => {
            problems.push(format!("debug information damaged: {damage}, so {}", left.loss));
        }
        (None, None) if debug_info.is_none() => problems.push(format!("{}: {}", left.state, left.loss)),
        (None, None) => {}
    }
    problems.extend(files.reasons.iter().cloned());
    problems.extend(missing.problems());
    let problem = (!problems.is_empty()).then(|| problems.join("; "));
    Resolved { parts, problem, compilers }
}

/// What a module without debug information still tells.
struct Left {
    /// What it is.
    state: &'static str,
    /// What is named, and what is lost.
    loss: &'static str,
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

    fn what_is_left(&self) -> Left {
        let (state, loss) = if !self.symbols.is_empty() {
            ("no debug information", "functions are named, but no files, lines and inlined functions")
        } else if !self.exported.is_empty() {
            ("stripped", "only exported functions are named, without files, lines and inlined functions")
        } else {
            ("stripped", "no function is named, only where it starts")
        };
        Left { state, loss }
    }

    /// Looks up the addresses.
    fn resolve(
        &self,
        request: &Request<'_>,
        program: Option<&Elf<'a>>,
        debug_info: Option<&DebugInfo<'a>>,
    ) -> Vec<Part> {
        let addresses = request.addresses.as_slice();
        let by_symbol = self.symbols.find_all(addresses);
        let by_export = self.exported.find_all(addresses);
        let hits: Vec<Option<Hit<'_, 'a>>> =
            by_symbol.into_iter().zip(by_export).map(|(symbol, export)| symbol.or(export)).collect();
        let folded = folded_starts(&hits, debug_info);
        let starts = OnceLock::new();
        let shared = Shared { module: request.module, program, debug_info, folded, starts };

        let threads = request.threads.min(addresses.len() / MIN_PART).max(1);
        let part = addresses.len().div_ceil(threads).max(1);
        let parts: Vec<_> = addresses.chunks(part).zip(hits.chunks(part)).collect();
        worker::in_parts(parts, &|(addresses, hits)| shared.resolve(addresses, hits, request.counter))
    }
}

/// What the threads that look up one module share.
struct Shared<'s, 'a> {
    module: &'s Module,
    program: Option<&'s Elf<'a>>,
    debug_info: Option<&'s DebugInfo<'a>>,
    /// The starts of functions that share their code with others.
    folded: BTreeSet<u64>,
    /// Read only when something asks for it.
    starts: OnceLock<FunctionStarts>,
}

impl<'a> Shared<'_, 'a> {
    /// Looks up a part of the addresses.
    fn resolve(&self, addresses: &[u64], hits: &[Option<Hit<'_, 'a>>], counter: &Counter) -> Part {
        let store = Store::default();
        let lookup = self.debug_info.map(|debug_info| Lookup::new(debug_info, &store));
        let (lookup, damage) = match lookup {
            Some(Ok(lookup)) => (Some(lookup), None),
            Some(Err(damage)) => (None, Some(damage)),
            None => (None, None),
        };
        let mut part = Part::default();
        let mut functions = FoundFunctions::default();
        let mut frames = Vec::new();
        let mut cpp_names = CppNames::new(store.names());
        for (addresses, hits) in addresses.chunks(COUNTED).zip(hits.chunks(COUNTED)) {
            for (&address, hit) in addresses.iter().zip(hits) {
                if let Some(lookup) = &lookup {
                    lookup.frames(address, &mut frames);
                    part.has_undescribed |= frames.is_empty();
                }
                let full_name =
                    |frame: &DebugFrame<'_>| lookup.as_ref()?.full_name(address, frame, &mut cpp_names);
                self.add_frames(
                    address,
                    hit.as_ref(),
                    &mut frames,
                    full_name,
                    &mut functions,
                    &mut part.lines,
                );
                part.ends.push(part.lines.len());
            }
            counter.add(addresses.len());
        }
        part.functions = functions.into_functions();
        drop((frames, cpp_names));
        part.missing = lookup.map(Lookup::into_missing).unwrap_or_default();
        if let Some(damage) = damage {
            part.missing.add_damage(damage);
        }
        part
    }

    /// Adds the frames of one address, whose description is `frames`.
    fn add_frames<'c>(
        &self,
        address: u64,
        hit: Option<&Hit<'_, 'c>>,
        frames: &mut Vec<DebugFrame<'c>>,
        mut full_name: impl FnMut(&DebugFrame<'c>) -> Option<&'c str>,
        functions: &mut FoundFunctions<'c>,
        lines: &mut Vec<Line>,
    ) {
        let is_folded = hit.is_some_and(|hit| self.folded.contains(&hit.symbol.start));
        let outermost = frames.pop().unwrap_or_default();
        let name = physical_name(&outermost, is_folded, hit, address, &|address| self.start_of(address));
        let Some(name) = name else { return };
        // An inlined call without a name tells nothing that its caller does not.
        for frame in frames.iter().filter(|frame| !frame.name.is_empty()) {
            let function = functions.intern(frame.name, full_name(frame), frame.file, false);
            lines.push(Line { function, line: frame.line });
        }
        let function = match name {
            PhysicalName::InFile(name) => {
                // A symbol tells its function in full.
                let is_plain = std::ptr::eq(name, outermost.name);
                let full_name = if is_plain { full_name(&outermost) } else { None };
                functions.intern(name, full_name, outermost.file, is_folded)
            }
            PhysicalName::Start(start) => {
                functions.intern_synthetic(format!("{}+{start:#x}", file_name(self.module)), outermost.file)
            }
        };
        lines.push(Line { function, line: outermost.line });
    }

    /// Where the function that holds an address starts.
    fn start_of(&self, address: u64) -> Option<u64> {
        let read = || self.program.map(FunctionStarts::read).unwrap_or_default();
        self.starts.get_or_init(read).find(address)
    }
}

/// How a function is named whose code it is.
enum PhysicalName<'c> {
    /// By a name in the file.
    InFile(&'c [u8]),
    /// By its first byte.
    Start(u64),
}

/// The name of the function whose code it is.
fn physical_name<'c>(
    outermost: &DebugFrame<'c>,
    is_folded: bool,
    hit: Option<&Hit<'_, 'c>>,
    address: u64,
    start_of: &dyn Fn(u64) -> Option<u64>,
) -> Option<PhysicalName<'c>> {
    if !outermost.name.is_empty() {
        let better = hit.filter(|hit| is_better(outermost, is_folded, hit));
        return Some(PhysicalName::InFile(better.map_or(outermost.name, |hit| hit.symbol.name)));
    }
    match hit {
        Some(hit) if hit.is_sized => Some(PhysicalName::InFile(hit.symbol.name)),
        // Without a size it does not reach into another function.
        Some(hit) if start_of(address).is_none_or(|start| start <= hit.symbol.start) => {
            Some(PhysicalName::InFile(hit.symbol.name))
        }
        _ => start_of(address).map(PhysicalName::Start),
    }
}

/// Whether a symbol's name is to be preferred to the one of the debug information.
fn is_better(outermost: &DebugFrame<'_>, is_folded: bool, hit: &Hit<'_, '_>) -> bool {
    if !hit.is_sized || is_mangled(&text(outermost.name)) {
        return false;
    }
    if outermost.is_assembler {
        return true;
    }
    let is_alias = hit.aliases.iter().any(|alias| alias.name == outermost.name);
    if is_mangled(&text(hit.symbol.name)) {
        // A function without a linkage name (a lambda, line tables only) is told in full by its symbol.
        !is_alias
    } else {
        // Of one function's names the one that also a file without debug information would give: malloc, not
        // __libc_malloc. Functions that were folded are several: the lines are of the one that is named here.
        is_alias && !is_folded
    }
}

/// A name as text.
fn text(name: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(name).map_or_else(|_| String::from_utf8_lossy(name), Cow::Borrowed)
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
