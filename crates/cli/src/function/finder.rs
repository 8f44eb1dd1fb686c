//! Which functions of which loaded modules are meant, and what is to be written at their entries.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use heaptally_segment::layout::{
    ACTION_BEGIN, ACTION_END, ACTION_KIND_SHIFT, FIXUP_DISTANCE, FIXUP_HIGH, FIXUP_LOW, PLAN_ACTIONS,
    PlanFixup, PlanStep,
};
use heaptally_segment::read::{self, NewPlan, Request};
use heaptally_symbolize::{FunctionList, ListedFunction, list_functions, list_named};

use super::definition::{Definitions, Edge, Role};
use super::entry::{FixupKind, Moved, Refusal};
use super::module::Module;
use super::near::nearest;
use super::pattern::{Pattern, names};
use crate::message::{quote, quote_bytes};

/// So many functions are named where several fit.
const MOST_NAMED: usize = 8;

/// An entry for which a plan was made.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// The path of its module, as the segment has it.
    pub(crate) path: Vec<u8>,
    /// Where the jump comes (SVMA).
    pub(crate) at: u64,
    /// The function's name for people.
    pub(crate) function: String,
    /// The edges, as indices.
    pub(crate) edges: Vec<usize>,
}

/// What was found for an edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// How many functions fit.
    pub(crate) functions: usize,
    /// Why some, or all, are not used: sentences.
    pub(crate) problems: Vec<String>,
}

/// Finds functions for the images of one run.
#[derive(Debug)]
pub(crate) struct Finder {
    definitions: Definitions,
    /// Where the name of each edge's window lies in the file's header.
    names: Vec<u32>,
    /// The recorder itself, which is left alone.
    library: PathBuf,
    modules: HashMap<PathBuf, Known>,
    /// In which module an edge's functions are, by area and edge.
    places: HashMap<(u32, usize), PathBuf>,
    /// Entries of module tables that were looked at.
    seen: HashMap<u32, Vec<u32>>,
    pub(crate) found: Vec<Found>,
    pub(crate) planned: Vec<Planned>,
}

/// A module as far as it was read.
#[derive(Debug)]
struct Known {
    list: FunctionList,
    is_whole: bool,
    /// With its code; `None`: not needed yet, or it cannot be read.
    module: Option<Module>,
}

impl Finder {
    /// `names`: all names of the file's header, in its order.
    pub(crate) fn new(definitions: Definitions, names: &[Vec<u8>], library: &Path) -> Self {
        let offset = |window: &str| {
            let before = names.iter().take_while(|name| name.as_slice() != window.as_bytes());
            before.map(|name| name.len() as u32 + 1).sum()
        };
        let names = definitions.edges.iter().map(|edge| offset(&edge.window)).collect();
        let found = vec![Found::default(); definitions.edges.len()];
        Self {
            definitions,
            names,
            library: library.to_owned(),
            modules: HashMap::new(),
            places: HashMap::new(),
            seen: HashMap::new(),
            found,
            planned: Vec::new(),
        }
    }

    /// Reads modules ahead of need.
    pub(crate) fn read_ahead(&mut self, paths: &[PathBuf]) {
        let is_whole = self.needs_lines();
        for path in paths {
            self.known(path, is_whole);
        }
    }

    fn needs_lines(&self) -> bool {
        self.definitions.edges.iter().any(|edge| matches!(edge.pattern, Pattern::Line(..)))
    }

    fn known(&mut self, path: &Path, is_whole: bool) -> &mut Known {
        let debug_dirs = [PathBuf::from("/usr/lib/debug")];
        let read = || {
            let list = if is_whole { list_functions } else { list_named }(path, "", &debug_dirs);
            Known { list, is_whole, module: None }
        };
        let known = self.modules.entry(path.to_owned()).or_insert_with(read);
        if is_whole && !known.is_whole {
            *known = read();
        }
        known
    }

    /// The plans for a request.
    pub(crate) fn plans(&mut self, request: &Request) -> Vec<NewPlan> {
        let seen = self.seen.entry(request.area).or_default();
        let is_new = |module: &&(u32, read::Module)| !seen.contains(&module.0) && !module.1.path.is_empty();
        let modules: Vec<&(u32, read::Module)> = request.modules.iter().filter(is_new).collect();
        seen.extend(modules.iter().map(|(number, _)| *number));
        let mut plans = Vec::new();
        for (number, module) in modules {
            let path = PathBuf::from(OsStr::from_bytes(&module.path));
            if path != self.library {
                plans.extend(self.plans_of(request.area, *number, &path));
            }
        }
        plans
    }

    fn plans_of(&mut self, area: u32, number: u32, path: &Path) -> Vec<NewPlan> {
        let mut at_entry: BTreeMap<u64, (Moved, String, Vec<usize>)> = BTreeMap::new();
        for index in 0..self.definitions.edges.len() {
            let Some(edge) = self.definitions.edges.get(index).cloned() else { continue };
            if self.places.get(&(area, index)).is_some_and(|place| place != path) {
                continue;
            }
            let chosen = self.choose(&edge, index, path);
            if chosen.is_empty() {
                continue;
            }
            self.places.insert((area, index), path.to_owned());
            for (function, entry) in chosen {
                match entry {
                    Ok(moved) => {
                        let entry = at_entry.entry(moved.at).or_insert_with(|| (moved, function, Vec::new()));
                        entry.2.push(index);
                    }
                    Err(why) => self.problem(index, format!("{} cannot be patched: {why}", quote(&function))),
                }
            }
        }
        let mut plans = Vec::new();
        for (at, (moved, function, mut edges)) in at_entry {
            edges.sort_by_key(|index| self.definitions.edges.get(*index).map(|edge| edge.role));
            let actions: Vec<u32> = edges.iter().filter_map(|index| self.action(*index)).collect();
            let plan = new_plan(number, &moved, actions);
            if !plan.fits() || edges.len() > PLAN_ACTIONS {
                for index in edges {
                    let why = format!("{} is the edge of more than {PLAN_ACTIONS} windows", quote(&function));
                    self.problem(index, why);
                }
                continue;
            }
            self.planned.push(Planned { path: path.as_os_str().as_bytes().to_vec(), at, function, edges });
            plans.push(plan);
        }
        plans
    }

    /// An edge's functions in a module, by their names, with what is to be done at each one's entry.
    fn choose(&mut self, edge: &Edge, index: usize, path: &Path) -> Vec<(String, Result<Moved, Refusal>)> {
        let known = self.known(path, matches!(edge.pattern, Pattern::Line(..)));
        let found = edge.pattern.find(&known.list.functions);
        if found.is_empty() {
            return Vec::new();
        }
        let functions: Vec<ListedFunction> =
            found.iter().filter_map(|index| known.list.functions.get(*index).cloned()).collect();
        if edge.pattern.is_one() {
            let mut different: Vec<String> =
                functions.iter().flat_map(|function| names(function).into_iter().next()).collect();
            different.sort();
            different.dedup();
            if different.len() > 1 {
                let count = different.len();
                let named: Vec<String> = different.iter().take(MOST_NAMED).map(quote).collect();
                let more = if count > MOST_NAMED { " …" } else { "" };
                self.problem(
                    index,
                    format!(
                        "{count} functions of {} fit {}: {}{more}; name one of them whole, or all by re:REGEX",
                        quote(path),
                        quote(&edge.text),
                        named.join(", ")
                    ),
                );
                return Vec::new();
            }
        }
        if known.module.is_none() {
            known.module = Module::of_list(path, known.list.clone()).ok();
        }
        let Some(module) = &known.module else {
            self.problem(index, format!("the code of {} cannot be read", quote(path)));
            return Vec::new();
        };
        let chosen: Vec<(String, Result<Moved, Refusal>)> =
            functions.iter().map(|function| (function.name.clone(), module.entry(function))).collect();
        // A part of a function is entered with it.
        let is_whole = |entry: &Result<Moved, Refusal>| !matches!(entry, Err(Refusal::Part));
        let chosen: Vec<_> = match chosen.iter().any(|(_, entry)| is_whole(entry)) {
            true => chosen.into_iter().filter(|(_, entry)| is_whole(entry)).collect(),
            false => chosen,
        };
        if let Some(found) = self.found.get_mut(index) {
            found.functions += chosen.len();
        }
        chosen
    }

    fn problem(&mut self, index: usize, problem: String) {
        if let Some(found) = self.found.get_mut(index)
            && !found.problems.contains(&problem)
        {
            found.problems.push(problem);
        }
    }

    /// What an entry does for an edge.
    fn action(&self, index: usize) -> Option<u32> {
        let kind = match self.definitions.edges.get(index)?.role {
            Role::Begin => ACTION_BEGIN,
            Role::End => ACTION_END,
        };
        Some(kind << ACTION_KIND_SHIFT | self.names.get(index)?)
    }

    /// The definitions.
    pub(crate) fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// What may have been meant where nothing fits.
    pub(crate) fn near(&self, text: &str) -> Vec<String> {
        let functions = self.modules.values().flat_map(|known| &known.list.functions);
        nearest(text, functions).iter().map(|name| quote_bytes(name.as_bytes())).collect()
    }
}

fn new_plan(module: u32, moved: &Moved, actions: Vec<u32>) -> NewPlan {
    let fixups = moved.fixups.iter().map(|fixup| PlanFixup {
        target: fixup.target,
        kind: match fixup.kind {
            FixupKind::Distance => FIXUP_DISTANCE,
            FixupKind::Low => FIXUP_LOW,
            FixupKind::High => FIXUP_HIGH,
        },
        at: fixup.at,
        end: fixup.end,
    });
    let steps = moved.steps.iter().map(|step| PlanStep {
        original: step.original,
        at: step.at,
        pushed: step.pushed,
        ..PlanStep::default()
    });
    NewPlan {
        module,
        at: moved.at,
        actions,
        original: moved.original.clone(),
        code: moved.code.clone(),
        fixups: fixups.collect(),
        steps: steps.collect(),
    }
}
