//! Which functions of which loaded modules are meant, and what is to be written at their entries.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use heaptally_segment::layout::{
    ACTION_BEGIN, ACTION_CALL, ACTION_END, ACTION_KIND_SHIFT, ACTION_PAUSE, ACTION_RESUME, CodeRange,
    PLAN_ACTIONS,
};
use heaptally_segment::read::{self, Answer, Request};
use heaptally_symbolize::{FunctionList, ListedFunction, list_functions, list_named};

use super::definition::{Definitions, Edge, Role};
use super::entry::Moved;
use super::module::Module;
use super::near::nearest;
use super::pattern::{Pattern, async_parts, has_last_part, is_async_part};
use super::plan::{by_turns, new_plan};
use super::refusal::Refusal;
use super::remark;
use crate::harness::codspeed;
use crate::harness::google_benchmark::misses_copy;
use crate::harness::package_benchmark::{Part, without_forwarders};
use crate::message::{quote, quote_bytes};

/// Code: addresses (SVMA) from and to.
pub(crate) type Ranges = Vec<(u64, u64)>;

/// An entry for which a plan was made.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
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
    /// How many of them cannot be patched.
    pub(crate) refused: usize,
    /// How many copies of them were inlined.
    pub(crate) inlined: usize,
    /// Nobody knows whether any was.
    pub(crate) is_inlined_unknown: bool,
    /// Why some, or all, are not used: sentences.
    pub(crate) problems: Vec<String>,
}

/// Ranges of code, by a window and the path of a module, as the segment has it.
pub(crate) type CodeOfWindows = BTreeMap<(String, Vec<u8>), Ranges>;

/// Finds functions for the images of one run.
#[derive(Debug)]
pub(crate) struct Finder {
    definitions: Definitions,
    /// Where the name of each edge's window lies in the file's header.
    names: Vec<u32>,
    /// The recorder itself, which is left alone.
    library: PathBuf,
    modules: Modules,
    /// In which module an edge's functions are, by area and edge.
    places: HashMap<(u32, usize), PathBuf>,
    /// Functions of the program whose names end with an edge's, where none is called so, by area and edge.
    of_last_part: HashMap<(u32, usize), Vec<String>>,
    /// Entries of module tables that were looked at.
    seen: HashMap<u32, Vec<u32>>,
    pub(crate) found: Vec<Found>,
    /// The code of windows' harnesses.
    pub(crate) harness: CodeOfWindows,
    /// By the path of the module, as the segment has it, and the address at which the jump comes (SVMA).
    pub(crate) planned: HashMap<(Vec<u8>, u64), Planned>,
}

/// Modules whose functions were listed, by path: for the next run, too.
pub(crate) type Modules = HashMap<PathBuf, Known>;

/// A module as far as it was read.
#[derive(Debug)]
pub(crate) struct Known {
    list: FunctionList,
    is_whole: bool,
    /// With its code; `None`: not needed yet, or it cannot be read.
    module: Option<Module>,
}

impl Known {
    fn read(path: &Path, is_whole: bool) -> Self {
        let debug_dirs = [PathBuf::from("/usr/lib/debug")];
        let list = if is_whole { list_functions } else { list_named }(path, "", &debug_dirs);
        Self { list, is_whole, module: None }
    }
}

/// What an edge means in a module.
#[derive(Default)]
struct Chosen {
    /// The functions' names, and what is to be done at each one's entry.
    entries: Vec<(String, Result<Moved, Refusal>)>,
    /// Their code, without inlined copies.
    own: Ranges,
    /// Their code, parts that were split off and inlined copies included.
    ranges: Ranges,
    /// What else is to be said of them.
    remarks: Vec<String>,
    /// There are some, and it is not known which is meant.
    is_unclear: bool,
}

/// The name, in the file, of the function into which a copy was inlined.
fn around<'f>(functions: &'f [ListedFunction], copy: &Ranges) -> Option<&'f str> {
    let (start, _) = copy.first()?;
    let holds =
        |function: &&ListedFunction| function.range.is_some_and(|(from, to)| (from..to).contains(start));
    functions.iter().find(holds)?.system_names.first().map(String::as_str)
}

impl Finder {
    /// `names`: all names of the file's header, in its order. `modules`: what a finder before left.
    pub(crate) fn new(definitions: Definitions, names: &[Vec<u8>], library: &Path, modules: Modules) -> Self {
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
            modules,
            places: HashMap::new(),
            of_last_part: HashMap::new(),
            seen: HashMap::new(),
            found,
            harness: BTreeMap::new(),
            planned: HashMap::new(),
        }
    }

    /// Reads modules ahead of need.
    pub(crate) fn read_ahead(&mut self, paths: &[PathBuf]) {
        let is_whole = self.needs_lines();
        let is_of_program = |edge: &Edge| matches!(edge.role, Role::Benchmark(_));
        let most = if self.definitions.edges.iter().all(is_of_program) { 1 } else { paths.len() };
        for path in paths.iter().take(most) {
            self.known(path, is_whole);
        }
    }

    fn needs_lines(&self) -> bool {
        self.definitions.edges.iter().any(|edge| matches!(edge.pattern, Pattern::Line(..)))
    }

    fn known(&mut self, path: &Path, is_whole: bool) -> &mut Known {
        let known = self.modules.entry(path.to_owned()).or_insert_with(|| Known::read(path, is_whole));
        if is_whole && !known.is_whole {
            *known = Known::read(path, true);
        }
        known
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, request: &Request) -> Answer {
        let seen = self.seen.entry(request.area).or_default();
        let is_new = |module: &&(u32, read::Module)| !seen.contains(&module.0) && !module.1.path.is_empty();
        let modules: Vec<&(u32, read::Module)> = request.modules.iter().filter(is_new).collect();
        seen.extend(modules.iter().map(|(number, _)| *number));
        let mut answer = Answer::default();
        for (number, module) in modules {
            let path = PathBuf::from(OsStr::from_bytes(&module.path));
            if path != self.library {
                self.look_at(request.area, *number, &path, &mut answer);
            }
        }
        answer
    }

    fn look_at(&mut self, area: u32, number: u32, path: &Path, answer: &mut Answer) {
        let mut at_entry: BTreeMap<u64, (Moved, String, Vec<usize>)> = BTreeMap::new();
        let mut of_window: HashMap<(u64, u64), String> = HashMap::new();
        for index in 0..self.definitions.edges.len() {
            let Some(edge) = self.definitions.edges.get(index).cloned() else { continue };
            // A name means one function, wherever it is; of what means all that fit, each module may have some.
            let is_elsewhere = self.places.get(&(area, index)).is_some_and(|place| place != path);
            if is_elsewhere && !edge.pattern.is_all() {
                continue;
            }
            // What was inlined everywhere is named by debug information alone, which takes long to read: in the program.
            let is_program = number == 0;
            // It is linked into the program, and the libraries are large.
            if !is_program && matches!(edge.role, Role::Benchmark(_)) {
                continue;
            }
            if !is_program && self.is_meant_of_program((area, index), &edge, path) {
                continue;
            }
            let chosen = self.choose(&edge, index, path, is_program);
            if chosen.is_unclear {
                // Nor is another module's function.
                self.places.insert((area, index), path.to_owned());
                continue;
            }
            if chosen.entries.is_empty() {
                if is_program && let Pattern::Name(name) = &edge.pattern {
                    let functions = &self.known(path, false).list.functions;
                    let named = functions.iter().filter(|function| has_last_part(function, name));
                    let named = named.map(|function| function.name.clone()).collect();
                    self.of_last_part.insert((area, index), named);
                }
                continue;
            }
            self.places.insert((area, index), path.to_owned());
            chosen.remarks.iter().for_each(|remark| self.problem(index, remark.clone()));
            if matches!(edge.role, Role::Harness | Role::Benchmark(Part::Own)) {
                let key = (edge.window.clone(), path.as_os_str().as_bytes().to_vec());
                self.harness.entry(key).or_default().extend(chosen.ranges);
                continue;
            }
            if edge.role == Role::In {
                let window = self.names.get(index).copied().unwrap_or(0);
                // Not by inlined copies: those of a function and of the one around it may be the same code.
                let same = chosen.own.iter().find_map(|own| of_window.get(own));
                if let Some(other) = same.filter(|other| **other != edge.window) {
                    let (other, text) = (quote(other), quote(&edge.text));
                    self.problem(
                        index,
                        format!(
                            "{text} is the function of window {other} already, and what an allocation belongs to is one \
                             window"
                        ),
                    );
                    continue;
                }
                of_window.extend(chosen.own.iter().map(|own| (*own, edge.window.clone())));
                let range = |(start, end)| CodeRange { start, end, module: number, window };
                answer.ranges.extend(chosen.ranges.into_iter().map(range));
            }
            for (function, entry) in chosen.entries {
                match entry {
                    Ok(moved) => {
                        let entry = at_entry.entry(moved.at).or_insert_with(|| (moved, function, Vec::new()));
                        entry.2.push(index);
                    }
                    Err(Refusal::OnlyInlined)
                        if matches!(edge.role, Role::In | Role::Loop(_) | Role::Bracket(_)) => {}
                    Err(why) => self.refused(index, &function, why),
                }
            }
        }
        for (at, (moved, function, mut edges)) in at_entry {
            edges.sort_by_key(|index| self.definitions.edges.get(*index).map(|edge| edge.role));
            // Several patterns of one window may fit a function: it is entered once.
            let mut known = HashSet::new();
            let actions = edges.iter().filter_map(|index| self.action(*index));
            let actions: Vec<u32> = actions.filter(|action| known.insert(*action)).collect();
            let actions = by_turns(actions);
            let is_asked = |index: &usize| {
                self.definitions
                    .edges
                    .get(*index)
                    .is_some_and(|edge| edge.role == Role::Bracket(codspeed::Step::Ask))
            };
            let moved = if edges.iter().any(is_asked) { moved.answering_yes() } else { moved };
            let plan = new_plan(number, &moved, actions);
            if !plan.fits() {
                for index in edges {
                    let why = format!("{} is the edge of more than {PLAN_ACTIONS} windows", quote(&function));
                    self.problem(index, why);
                }
                continue;
            }
            let key = (path.as_os_str().as_bytes().to_vec(), at);
            self.planned.insert(key, Planned { function, edges });
            answer.plans.push(plan);
        }
    }

    /// Whether a library's function fits an edge's name, and the program has others of which that is the last part: then
    /// nobody can know which is meant, and that is told.
    fn is_meant_of_program(&mut self, key: (u32, usize), edge: &Edge, path: &Path) -> bool {
        let Some(own) = self.of_last_part.get(&key).filter(|own| !own.is_empty()).cloned() else {
            return false;
        };
        if edge.pattern.find(&self.known(path, false).list.functions).is_empty() {
            return false;
        }
        let text = quote(&edge.text);
        self.problem(
            key.1,
            format!(
                "{text} is a function of {}, and the program has {}: name that one whole, or the library's by \
                 re:^{}$",
                quote(path),
                remark::list(&own),
                regex::escape(&edge.text)
            ),
        );
        true
    }

    /// An edge's functions in a module.
    fn choose(&mut self, edge: &Edge, index: usize, path: &Path, is_program: bool) -> Chosen {
        let known = self.known(path, matches!(edge.pattern, Pattern::Line(..)));
        let mut found = edge.pattern.find(&known.list.functions);
        let is_in = matches!(edge.role, Role::In | Role::Harness | Role::Benchmark(Part::Own));
        let step = match edge.role {
            Role::Loop(step) => Some(step),
            _ => None,
        };
        let is_unclear = edge.pattern.is_one() && remark::has_twins(&known.list.functions, &found);
        let needs_inlined = is_in && (is_program || !found.is_empty()) || step.is_some() && !found.is_empty();
        if (needs_inlined || is_unclear) && !known.is_whole {
            *known = Known::read(path, true);
            found = edge.pattern.find(&known.list.functions);
        }
        if matches!(edge.role, Role::Benchmark(Part::Begin | Part::End)) {
            without_forwarders(&mut found, &known.list.functions);
        }
        if found.is_empty() {
            return Chosen::default();
        }
        let functions: Vec<ListedFunction> =
            found.iter().filter_map(|index| known.list.functions.get(*index).cloned()).collect();
        if edge.pattern.is_one()
            && let Some(several) = remark::several(&functions)
        {
            let (path, text) = (quote(path), quote(&edge.text));
            self.problem(
                index,
                format!("{several} of {path} fit {text}; name one of them whole or by FILE:LINE, or all by re:REGEX"),
            );
            return Chosen { is_unclear: true, ..Chosen::default() };
        }
        // What is beneath an async function of Swift is beneath the parts in which it goes on, too; it is entered once.
        let parts = if is_in { async_parts(&functions, &known.list.functions) } else { Vec::new() };
        if known.module.is_none() {
            known.module = Module::of_list(path, known.list.clone()).ok();
        }
        let Some(module) = &known.module else {
            self.problem(index, format!("the code of {} cannot be read", quote(path)));
            return Chosen::default();
        };
        let is_entered = |function: &&ListedFunction| !is_in || !is_async_part(function, &functions);
        let entered = functions.iter().filter(is_entered);
        let entries: Vec<(String, Result<Moved, Refusal>)> =
            entered.map(|function| (function.name.clone(), module.entry(function))).collect();
        let mut remarks: Vec<String> =
            functions.iter().filter_map(|function| remark::others(edge, function)).collect();
        if edge.role == Role::In {
            // An async function is left by tail calls and found among the callers of what it calls.
            if parts.is_empty() {
                remarks.extend(remark::tail_calls(module, &functions));
            }
        }
        for function in functions.iter().filter(|function| function.is_indirect) {
            let chosen = module.implementations(function);
            if !chosen.is_empty() {
                let (name, chosen) = (quote(&function.name), remark::list(&chosen));
                remarks.push(format!("{name} chooses one of {chosen}: name these"));
            }
        }
        let has_inlined = known.list.has_inlined;
        // A part of a function is entered with it.
        let is_whole = |entry: &Result<Moved, Refusal>| !matches!(entry, Err(Refusal::Part));
        let entries: Vec<_> = match entries.iter().any(|(_, entry)| is_whole(entry)) {
            true => entries.into_iter().filter(|(_, entry)| is_whole(entry)).collect(),
            false => entries,
        };
        let inlined = functions.iter().flat_map(|function| &function.inlined);
        let is_missed = |copy: &&Ranges| {
            let around = || around(&known.list.functions, copy);
            step.is_none_or(|step| around().is_none_or(|around| misses_copy(step, around)))
        };
        let missed = inlined.clone().filter(is_missed).count();
        let own: Vec<(u64, u64)> = functions.iter().filter_map(|function| function.range).collect();
        let ranges = own.iter().chain(&parts).chain(inlined.clone().flatten()).copied().collect();
        if let Some(found) = self.found.get_mut(index) {
            found.functions += entries.len();
            found.inlined += missed;
            found.is_inlined_unknown |= is_in && !has_inlined;
        }
        Chosen { entries, own, ranges, remarks, is_unclear: false }
    }

    fn refused(&mut self, index: usize, function: &str, why: Refusal) {
        if let Some(found) = self.found.get_mut(index) {
            found.refused += 1;
        }
        self.problem(index, format!("{} cannot be patched: {why}", quote(function)));
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
            Role::Begin | Role::Benchmark(Part::Begin) => ACTION_BEGIN,
            Role::End | Role::Benchmark(Part::End) => ACTION_END,
            Role::Resume => ACTION_RESUME,
            Role::Pause => ACTION_PAUSE,
            Role::In => ACTION_CALL,
            Role::Loop(step) => step.action(),
            Role::Harness | Role::Benchmark(Part::Own) => return None,
            Role::Bracket(step) => step.action()?,
        };
        Some(kind << ACTION_KIND_SHIFT | self.names.get(index)?)
    }

    /// What was read.
    pub(crate) fn into_modules(self) -> Modules {
        self.modules
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
