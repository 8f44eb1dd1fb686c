//! All functions of one module, whoever calls them: for choosing one by name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use heaptally_profile::model::Module;
use heaptally_profile::path_text::escape_path;
use std::os::unix::ffi::OsStrExt;

use crate::debug_info::{DebugInfo, Store};
use crate::demangle::demangle_all;
use crate::described::{Identity, Instances, described};
use crate::module_file::ModuleFiles;
use crate::object_file::{self, Elf};
use crate::symbol_table::{SymbolTable, TableKind};

/// A function of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedFunction {
    /// The name for people, as profiles have it.
    pub name: String,
    /// Its names in the file, the preferred one first; the others are aliases, or functions whose equal code was folded.
    pub system_names: Vec<String>,
    /// The SVMA of its first byte and one past its last; `None`: all of its calls were inlined.
    pub range: Option<(u64, u64)>,
    /// Whether the range's end is known, not deduced from what follows.
    pub is_sized: bool,
    /// Whether it is a resolver of an indirect function: what is called is the address that it returns.
    pub is_indirect: bool,
    /// The source file in which it is declared, empty when unknown.
    pub file: String,
    /// The line of that, 0 when unknown.
    pub line: u32,
    /// Its inlined copies: each with its ranges of SVMAs.
    pub inlined: Vec<Vec<(u64, u64)>>,
}

/// The functions of one module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionList {
    /// In order of their addresses; those that have none are last, in order of their names.
    pub functions: Vec<ListedFunction>,
    /// What is missing: reasons, as the front page lists them.
    pub problems: Vec<String>,
    /// Whether inlined copies are known.
    pub has_inlined: bool,
}

/// Lists the functions of the file at a path; `build_id` is that of the loaded module in hex, empty for any.
pub fn list_functions(path: &Path, build_id: &str, debug_dirs: &[PathBuf]) -> FunctionList {
    list(path, build_id, debug_dirs, true)
}

/// As [`list_functions`], by symbol tables alone: without files, lines, and what was inlined everywhere. Much quicker.
pub fn list_named(path: &Path, build_id: &str, debug_dirs: &[PathBuf]) -> FunctionList {
    list(path, build_id, debug_dirs, false)
}

fn list(path: &Path, build_id: &str, debug_dirs: &[PathBuf], is_whole: bool) -> FunctionList {
    let module = Module {
        path: escape_path(path.as_os_str().as_bytes()),
        build_id: build_id.to_owned(),
        ..Module::default()
    };
    let files = ModuleFiles::find(&module, None, debug_dirs);
    let program = files.program.as_ref().and_then(object_file::parse);
    let debug = files.debug.as_ref().and_then(object_file::parse);
    let supplementary = files.supplementary.as_ref().and_then(object_file::parse);
    let mut list = FunctionList::default();
    list.problems.extend(files.absence.clone());

    let store = Store::default();
    let described_by =
        [debug.as_ref(), program.as_ref()].into_iter().flatten().find(|elf| object_file::has_debug_info(elf));
    let mut known = BTreeMap::new();
    match described_by {
        _ if !is_whole => {}
        Some(elf) => match DebugInfo::load(elf, supplementary.as_ref(), path, &store) {
            Ok(debug_info) => {
                let (found, is_damaged) = described(debug_info.dwarf(), store.names());
                known = found;
                list.has_inlined = true;
                if is_damaged {
                    list.problems
                        .push("debug information damaged: some functions are not described".to_owned());
                }
            }
            Err(damage) => list.problems.push(format!("debug information damaged: {damage}")),
        },
        None => {
            list.problems
                .push("no debug information: files, lines and inlined copies are not known".to_owned());
            list.problems.extend(files.reasons.iter().cloned());
        }
    }
    let tables = [
        (program.as_ref(), TableKind::Static),
        (debug.as_ref(), TableKind::Static),
        (program.as_ref(), TableKind::Dynamic),
    ];
    let tables: Vec<SymbolTable<'_>> =
        tables.into_iter().filter_map(|(elf, kind)| Some(SymbolTable::read(elf?, kind))).collect();
    list.functions = functions(&tables, &known, program.as_ref());
    if list.functions.is_empty() && list.problems.is_empty() {
        list.problems.push("stripped: no function is named".to_owned());
    }
    list
}

/// Joins what symbol tables and debug information say.
fn functions(
    tables: &[SymbolTable<'_>],
    known: &BTreeMap<Identity, Instances>,
    program: Option<&Elf<'_>>,
) -> Vec<ListedFunction> {
    let mut by_start: BTreeMap<u64, ListedFunction> = BTreeMap::new();
    for table in tables {
        // From the most preferred of a start to the least.
        for (symbol, is_sized) in table.all() {
            let name = String::from_utf8_lossy(symbol.name).into_owned();
            let function = by_start.entry(symbol.start).or_insert_with(|| ListedFunction {
                range: Some((symbol.start, symbol.end)),
                is_sized,
                ..ListedFunction::default()
            });
            if is_sized && !function.is_sized {
                function.range = Some((symbol.start, symbol.end));
                function.is_sized = true;
            }
            function.is_indirect |= symbol.is_indirect;
            if !function.system_names.contains(&name) {
                function.system_names.push(name);
            }
        }
    }
    let mut others = Vec::new();
    for (identity, instances) in known {
        // The code of equal functions may have been folded: the inlined copies belong to the name that is described.
        let mut is_placed = false;
        for start in &instances.starts {
            if let Some(function) = by_start.get_mut(start) {
                if function.file.is_empty() {
                    (function.file, function.line) = (identity.file.clone(), identity.line);
                }
                if !is_placed {
                    function.inlined.extend(instances.inlined.iter().cloned());
                }
                // A plain name of C++ that is not the whole name is no other name of what the symbol names.
                if identity.name.is_empty() && !function.system_names.contains(&identity.system_name) {
                    // A clone's symbol has more in its name than the function.
                    let is_clone = function.system_names.iter().any(|name| {
                        name.strip_prefix(identity.system_name.as_str())
                            .is_some_and(|rest| rest.starts_with('.'))
                    });
                    if !is_clone {
                        function.system_names.push(identity.system_name.clone());
                    }
                }
                is_placed = true;
            }
        }
        if !is_placed && (!instances.inlined.is_empty() || has_code(program, instances)) {
            others.push(ListedFunction {
                name: identity.name.clone(),
                system_names: vec![identity.system_name.clone()],
                range: None,
                file: identity.file.clone(),
                line: identity.line,
                inlined: instances.inlined.clone(),
                ..ListedFunction::default()
            });
        }
    }
    let mut all: Vec<ListedFunction> = by_start.into_values().chain(others).collect();
    let names: Vec<&str> =
        all.iter().map(|function| function.system_names.first().map_or("", String::as_str)).collect();
    let names = demangle_all(&names);
    for (function, name) in all.iter_mut().zip(names) {
        if function.name.is_empty() {
            function.name = name;
        }
    }
    merge_inlined(&mut all);
    all
}

/// Functions of stripped files that debug information alone names have no symbol; without code they are nothing.
fn has_code(program: Option<&Elf<'_>>, instances: &Instances) -> bool {
    program.is_none() && !instances.starts.is_empty()
}

/// Whether two functions of one name are one: a mangled name and its file say so, a plain one needs the line as well.
/// Where no debug information places the one with code, the name is all there is.
fn is_same(placed: &ListedFunction, copy: &ListedFunction) -> bool {
    let is_mangled = copy.system_names.first().is_some_and(|name| name.starts_with('_'));
    placed.file.is_empty() || placed.file == copy.file && (is_mangled || placed.line == copy.line)
}

/// One function may be described several times, in each unit that has a copy: those without code of their own join the
/// one that has some.
fn merge_inlined(all: &mut Vec<ListedFunction>) {
    let mut of_name: HashMap<String, usize> = HashMap::new();
    for (index, function) in all.iter().enumerate() {
        if function.range.is_some() {
            for name in &function.system_names {
                of_name.entry(name.clone()).or_insert(index);
            }
        }
    }
    let mut gone = HashSet::new();
    for index in 0..all.len() {
        if all[index].range.is_some() {
            continue;
        }
        let Some(name) = all[index].system_names.first().cloned() else { continue };
        match of_name.get(&name) {
            // Functions of C may have one name and be several, and so may lambdas: their place tells them apart.
            Some(&into) if into != index && is_same(&all[into], &all[index]) => {
                let inlined = std::mem::take(&mut all[index].inlined);
                all[into].inlined.extend(inlined);
                gone.insert(index);
            }
            Some(_) => {}
            None => {
                of_name.insert(name, index);
            }
        }
    }
    let mut index = 0;
    all.retain(|_| {
        index += 1;
        !gone.contains(&(index - 1))
    });
}
