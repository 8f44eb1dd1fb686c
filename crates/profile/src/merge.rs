//! Several recordings of one program as one profile, its runs told apart where they differ.
//!
//! ```text
//! run 1: parse, 100 iterations   malloc ← f ← main  300      run 2: parse, 200 iterations   malloc ← f ← main  600
//!                                malloc ← g ← main    2                                     malloc ← h ← main    1
//! merged, 2 runs: parse, 300 iterations (100, 200)   malloc ← f ← main  900 (300, 600)
//!                                                    malloc ← g ← main    2   (2,   0)   unstable
//!                                                    malloc ← h ← main    1   (0,   1)   unstable
//! ```
//!
//! **What is the same** in two profiles: images by path, label and whether they are children's; windows by image, name and kind; modules by path,
//! build-id and range of code; functions, locations and stacks by all that they are made of. Of several alike in one
//! profile the first is paired with the first, the second with the second. Modules of one path and different build-ids
//! stay apart, and so do the stacks through them. Images and windows that only some runs have stay, behind those of
//! the runs before.
//!
//! **Added up:** counts, entries, iterations, losses, and what threads did: all threads of one image, names and start
//! are one entry, whose lives are counted. **The greatest:** a window's peak, with its own uncertainty. **One by one:**
//! the values of a row and the iterations of a window ([`crate::repeat`]). Of a row `entries` is unknown when it is in
//! any run.
//!
//! **Of the environment** architecture, C library, recorder and whether blocks were followed must be the same where they
//! are known. The command is that of the first, the exit code the first that is not 0. Compilers and warnings of images
//! are united. Process and thread ids are 0 when there are several runs.
//!
//! The result is in normal form ([`canonical`](crate::canonical)), and does not depend on how the tables of the
//! profiles are ordered, but for images and windows, whose order means something. A profile of several runs counts as
//! these; so it makes no difference in which groups profiles are merged.
//!
//! **[`sum`]** adds profiles that are no repeats of each other: shards of one run, processes of one service. Nothing is
//! kept by run, and nothing depends on the order: images stand by path, label and whether they are children's, windows by
//! image, name and kind; the command is the least of those that are known, the exit code the greatest. So it is
//! associative and commutative, and exact as long as sums fit 64 bits; one that does not stays at the highest number.

mod condition;
mod sum;

pub use condition::make_comparable;
pub use sum::sum;

use condition::Conditions;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use crate::Error;
use crate::canonical::option_by;
use crate::model::{
    ChildProgram, Children, Environment, Executor, Function, FunctionId, Image, ImageId, Location,
    LocationId, Losses, Module, ModuleId, Profile, RepeatValue, Row, Stack, StackId, ThreadLife, ThreadTotal,
    Window, WindowId, WindowKind,
};

/// How many rows and windows times runs are merged at most: 2 GiB.
const MAX_VALUES: u64 = 1 << 27;

/// Merges profiles into one that holds the runs of all of them, in their order. See the [module](self).
///
/// # Errors
/// [`Error::NothingToMerge`] without a profile; [`Error::Unlike`] when they were recorded under conditions that differ;
/// [`Error::Index`] or [`Error::Value`] when one is not valid; [`Error::TooLarge`] when there are too many rows and runs.
pub fn merge(mut profiles: Vec<Profile>) -> Result<Profile, Error> {
    unite_symbol_problems(&mut profiles);
    for profile in &mut profiles {
        profile.normalize()?;
    }
    if profiles.len() < 2 {
        return profiles.pop().ok_or(Error::NothingToMerge);
    }
    let mut merger = Merger::new(&profiles)?;
    for profile in profiles {
        merger.add(profile);
    }
    merger.finish()
}

/// Gives each module the same problem wherever it occurs: it is no part of what makes it another.
fn unite_symbol_problems(profiles: &mut [Profile]) {
    let mut problems: HashMap<Module, String> = HashMap::new();
    let modules = || profiles.iter().flat_map(|profile| &profile.modules);
    for module in modules() {
        if let Some(problem) = &module.symbol_problem {
            let known = problems.entry(without_problem(module)).or_insert_with(|| problem.clone());
            if problem < known {
                known.clone_from(problem);
            }
        }
    }
    if problems.is_empty() {
        return;
    }
    for module in profiles.iter_mut().flat_map(|profile| &mut profile.modules) {
        module.symbol_problem = problems.get(&without_problem(module)).cloned();
    }
}

fn without_problem(module: &Module) -> Module {
    Module { symbol_problem: None, ..module.clone() }
}

/// A table in which each entry stands once, with the place of each key.
struct Table<K, T> {
    places: HashMap<K, usize>,
    entries: Vec<T>,
}

impl<K: Eq + Hash, T> Table<K, T> {
    fn new() -> Self {
        Self { places: HashMap::new(), entries: Vec::new() }
    }

    /// The place of an entry: where `add` put it in if it was there, else at the end.
    fn put(&mut self, key: K, entry: T, add: impl FnOnce(&mut T, T)) -> usize {
        match self.places.entry(key) {
            Entry::Occupied(place) => {
                let place = *place.get();
                if let Some(into) = self.entries.get_mut(place) {
                    add(into, entry);
                }
                place
            }
            Entry::Vacant(place) => {
                place.insert(self.entries.len());
                self.entries.push(entry);
                self.entries.len() - 1
            }
        }
    }
}

impl<T: Clone + Eq + Hash> Table<T, T> {
    /// The place of an entry that is its own key.
    fn intern(&mut self, entry: T) -> usize {
        self.put(entry.clone(), entry, |_, _| ())
    }
}

/// Tells entries apart that are alike in one profile: each gets its number among them.
struct Numbers<K>(HashMap<K, usize>);

impl<K: Clone + Eq + Hash> Numbers<K> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn number(&mut self, key: K) -> (K, usize) {
        let next = self.0.entry(key.clone()).or_default();
        *next += 1;
        (key, *next)
    }
}

type ImageKey = ((String, String, bool), usize);
type WindowKey = ((ImageId, String, WindowKind), usize);
type ThreadKey = (ImageId, String, String, Option<LocationId>);

struct Merger {
    /// The runs of all profiles, of which `runs_before` were in those that were added.
    runs: usize,
    runs_before: usize,
    images: Table<ImageKey, Image>,
    modules: Table<Module, Module>,
    functions: Table<Function, Function>,
    locations: Table<Location, Location>,
    stacks: Table<Stack, Stack>,
    windows: Table<WindowKey, Window>,
    rows: Table<(WindowId, StackId), Row>,
    threads: Table<ThreadKey, ThreadLife>,
    losses: Losses,
    children: Children,
    environment: Option<Environment>,
    executors: Vec<Executor>,
}

impl Merger {
    fn new(profiles: &[Profile]) -> Result<Self, Error> {
        let mut conditions = Conditions::default();
        let (mut runs, mut entries) = (0_u64, 0_u64);
        for profile in profiles {
            conditions.check(&profile.environment)?;
            runs = runs.saturating_add(profile.environment.runs());
            entries = entries.saturating_add((profile.rows.len() + profile.windows.len()) as u64);
        }
        // A file can say that it holds any number of runs.
        if runs.saturating_mul(entries.max(1)) > MAX_VALUES {
            return Err(Error::TooLarge { limit: MAX_VALUES, unit: "values by run" });
        }
        Ok(Self {
            runs: runs as usize,
            runs_before: 0,
            images: Table::new(),
            modules: Table::new(),
            functions: Table::new(),
            locations: Table::new(),
            stacks: Table::new(),
            windows: Table::new(),
            rows: Table::new(),
            threads: Table::new(),
            losses: Losses::default(),
            children: Children::default(),
            environment: None,
            executors: Vec::new(),
        })
    }

    /// Adds a profile, whose indices are valid.
    fn add(&mut self, profile: Profile) {
        let runs = profile.environment.runs() as usize;
        let images = self.add_images(profile.images);
        let windows = self.add_windows(profile.windows, &images, runs);
        let modules: Vec<ModuleId> =
            profile.modules.into_iter().map(|module| self.modules.intern(module)).collect();
        let functions: Vec<FunctionId> =
            profile.functions.into_iter().map(|function| self.functions.intern(function)).collect();
        let mut locations: Vec<LocationId> = Vec::with_capacity(profile.locations.len());
        for mut location in profile.locations {
            location.module = location.module.map(|module| modules[module]);
            location.lines.iter_mut().for_each(|line| line.function = functions[line.function]);
            locations.push(self.locations.intern(location));
        }
        let mut stacks: Vec<StackId> = Vec::with_capacity(profile.stacks.len());
        for mut stack in profile.stacks {
            stack.locations.iter_mut().for_each(|location| *location = locations[*location]);
            stacks.push(self.stacks.intern(stack));
        }
        for executor in profile.executors {
            let locations = executor.locations.iter().map(|location| locations[*location]).collect();
            self.executors.push(Executor { stack: stacks[executor.stack], locations, ..executor });
        }
        for row in profile.rows {
            self.add_row(Row { window: windows[row.window], stack: stacks[row.stack], ..row }, runs);
        }
        for thread in profile.threads {
            let image = images[thread.image];
            let start = thread.start.map(|start| locations[start]);
            let totals = thread.totals.into_iter().map(|(window, total)| (windows[window], total)).collect();
            let key = (image, thread.name.clone(), thread.last_name.clone(), start);
            self.threads.put(key, ThreadLife { image, tid: 0, start, totals, ..thread }, add_thread);
        }
        add_losses(&mut self.losses, &profile.losses);
        add_children(&mut self.children, profile.children);
        match &mut self.environment {
            Some(environment) => add_environment(environment, profile.environment),
            first => *first = Some(profile.environment),
        }
        self.runs_before += runs;
    }

    fn add_images(&mut self, images: Vec<Image>) -> Vec<ImageId> {
        let mut numbers = Numbers::new();
        let mut place = |image: Image| {
            let key = numbers.number((image.path.clone(), image.label.clone(), image.processes > 0));
            let mut image = Image { pid: 0, ..image };
            let warnings = std::mem::take(&mut image.warnings);
            let place = self.images.put(key, image, |into, image| {
                into.replaced |= image.replaced;
                into.in_path &= image.in_path;
                into.processes = into.processes.saturating_add(image.processes);
                if into.allocator.is_empty() {
                    into.allocator = image.allocator;
                }
            });
            if let Some(image) = self.images.entries.get_mut(place) {
                for warning in warnings {
                    if !image.warnings.contains(&warning) {
                        image.warnings.push(warning);
                    }
                }
            }
            place
        };
        images.into_iter().map(&mut place).collect()
    }

    fn add_windows(&mut self, windows: Vec<Window>, images: &[ImageId], runs: usize) -> Vec<WindowId> {
        let mut numbers = Numbers::new();
        let mut places = Vec::with_capacity(windows.len());
        for window in windows {
            let image = images[window.image];
            let key = numbers.number((image, window.name.clone(), window.kind));
            let of_runs = match runs {
                1 => vec![window.iterations],
                _ => window.iterations_per_repeat.clone(),
            };
            let iterations_per_repeat = self.spread(&of_runs);
            let window = Window { image, iterations_per_repeat, ..window };
            places.push(self.windows.put(key, window, add_window));
        }
        places
    }

    fn add_row(&mut self, mut row: Row, runs: usize) {
        row.repeats = match runs {
            1 => self.spread(&[RepeatValue { allocations: row.counts.allocations, bytes: row.counts.bytes }]),
            _ => self.spread(&row.repeats),
        };
        self.rows.put((row.window, row.stack), row, |into, row| {
            into.add_repeats(&row);
            into.counts.add(&row.counts);
            into.entries = into.entries.zip(row.entries).map(|(sum, entries)| sum.saturating_add(entries));
            into.first_entry = option_by(into.first_entry, row.first_entry, u64::min);
            into.last_entry = option_by(into.last_entry, row.last_entry, u64::max);
        });
    }

    /// The values of the profile at hand among those of all runs.
    fn spread<T: Copy + Default>(&self, values: &[T]) -> Vec<T> {
        let mut all = vec![T::default(); self.runs];
        for (place, value) in all.iter_mut().skip(self.runs_before).zip(values) {
            *place = *value;
        }
        all
    }

    fn finish(self) -> Result<Profile, Error> {
        let mut profile = self.into_profile()?;
        profile.normalize()?;
        Ok(profile)
    }

    /// The profile, not in normal form yet.
    fn into_profile(self) -> Result<Profile, Error> {
        let environment = self.environment.ok_or(Error::NothingToMerge)?;
        Ok(Profile {
            images: self.images.entries,
            modules: self.modules.entries,
            functions: self.functions.entries,
            locations: self.locations.entries,
            stacks: self.stacks.entries,
            windows: self.windows.entries,
            rows: self.rows.entries,
            executors: self.executors,
            threads: self.threads.entries,
            losses: self.losses,
            children: self.children,
            environment: Environment { repeats: self.runs as u64, ..environment },
        })
    }
}

fn add_environment(into: &mut Environment, from: Environment) {
    for (known, found) in [
        (&mut into.recorder, from.recorder),
        (&mut into.architecture, from.architecture),
        (&mut into.libc, from.libc),
    ] {
        if known.is_empty() {
            *known = found;
        }
    }
    if into.machine != from.machine {
        let machines = [into.machine.as_str(), from.machine.as_str()];
        let all: BTreeSet<&str> =
            machines.iter().flat_map(|text| text.split("; ")).filter(|one| !one.is_empty()).collect();
        into.machine = all.into_iter().collect::<Vec<_>>().join("; ");
    }
    into.compilers.extend(from.compilers);
    into.frees_from_before = into.frees_from_before.saturating_add(from.frees_from_before);
    if from.exit_code.is_some() && matches!(into.exit_code, None | Some(0)) {
        into.exit_code = from.exit_code;
    }
}

/// Adds what another profile says of the same window.
pub(crate) fn add_window(into: &mut Window, from: Window) {
    for (sum, value) in [
        (&mut into.entries, from.entries),
        (&mut into.discarded_entries, from.discarded_entries),
        (&mut into.iterations, from.iterations),
        (&mut into.crossed_ends, from.crossed_ends),
        (&mut into.stray_ends, from.stray_ends),
        (&mut into.ended_by_thread, from.ended_by_thread),
        (&mut into.lost, from.lost),
    ] {
        *sum = sum.saturating_add(value);
    }
    for (sum, value) in into.iterations_per_repeat.iter_mut().zip(from.iterations_per_repeat) {
        *sum = sum.saturating_add(value);
    }
    into.definition.extend(from.definition);
    into.iterations_told |= from.iterations_told;
    into.unfinished |= from.unfinished;
    let peak = (into.peak_bytes, into.peak_uncertainty_bytes);
    (into.peak_bytes, into.peak_uncertainty_bytes) = peak.max((from.peak_bytes, from.peak_uncertainty_bytes));
}

/// Adds what another thread of the same image, names and start did.
pub(crate) fn add_thread(into: &mut ThreadLife, from: ThreadLife) {
    into.lives = into.lives.saturating_add(from.lives);
    for (window, total) in from.totals {
        let ThreadTotal { allocations, bytes, freed, freed_bytes } = into.totals.entry(window).or_default();
        for (sum, value) in [
            (allocations, total.allocations),
            (bytes, total.bytes),
            (freed, total.freed),
            (freed_bytes, total.freed_bytes),
        ] {
            *sum = sum.saturating_add(value);
        }
    }
}

/// Adds up the children of two runs.
fn add_children(into: &mut Children, from: Children) {
    let mut programs: BTreeMap<String, u64> = BTreeMap::new();
    for program in std::mem::take(&mut into.not_recorded).into_iter().chain(from.not_recorded) {
        let sum = programs.entry(program.program).or_default();
        *sum = sum.saturating_add(program.count);
    }
    into.not_recorded =
        programs.into_iter().map(|(program, count)| ChildProgram { program, count }).collect();
    into.followed |= from.followed;
    for (sum, value) in [
        (&mut into.unnamed, from.unnamed),
        (&mut into.recorded, from.recorded),
        (&mut into.still_running, from.still_running),
    ] {
        *sum = sum.saturating_add(value);
    }
}

fn add_losses(into: &mut Losses, from: &Losses) {
    let Losses {
        reentrant,
        table_full,
        thread,
        blocks,
        unseen_frees,
        windows,
        window_calls,
        stray_ends,
        stray_resumes,
        restarts,
        unplaced,
        modules,
        thread_totals,
        images,
        damaged,
    } = into;
    for (sum, value) in [
        (reentrant, from.reentrant),
        (table_full, from.table_full),
        (thread, from.thread),
        (blocks, from.blocks),
        (unseen_frees, from.unseen_frees),
        (windows, from.windows),
        (window_calls, from.window_calls),
        (stray_ends, from.stray_ends),
        (stray_resumes, from.stray_resumes),
        (restarts, from.restarts),
        (unplaced, from.unplaced),
        (modules, from.modules),
        (thread_totals, from.thread_totals),
        (images, from.images),
        (damaged, from.damaged),
    ] {
        *sum = sum.saturating_add(value);
    }
}

#[cfg(test)]
mod tests;
