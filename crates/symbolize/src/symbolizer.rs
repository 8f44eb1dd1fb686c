//! A profile's addresses to names.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

use heaptally_profile::model::{FrameKind, Line, Location, LocationId, Module, ModuleId, Profile};

use crate::demangle::is_swift;
use crate::function_table::FunctionTable;
use crate::progress::{Counter, Progress};
use crate::resolve::{Request, Resolved, resolve};
use crate::worker;

/// At most so many threads are used when none are asked for: each keeps what it read of a module.
const MAX_THREADS: usize = 8;
/// Said of one module when names of Swift were met that stay mangled.
const SWIFT_PROBLEM: &str = "names of Swift are not demangled: build heaptally-cli with --features swift";

/// What [`Symbolizer::new`] needs.
#[derive(Debug)]
pub struct Options {
    /// The folders below which separate debug files are searched, in this order. `/usr/lib/debug` by default.
    pub debug_dirs: Vec<PathBuf>,
    /// The program that was started: its path, and its file as it was opened before the run. It stands in for a
    /// module whose file is gone or was replaced: by build-id for any, by path where there is no build-id.
    pub executable: Option<(PathBuf, File)>,
    /// How many threads look at modules; by default as many as can run at once, up to 8. The result does not depend
    /// on it.
    pub threads: Option<NonZeroUsize>,
}

impl Default for Options {
    fn default() -> Self {
        Self { debug_dirs: vec![PathBuf::from("/usr/lib/debug")], executable: None, threads: None }
    }
}

/// Names the locations of profiles.
#[derive(Debug)]
pub struct Symbolizer {
    options: Options,
}

impl Symbolizer {
    /// One that reads nothing yet.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Names each location that lies in a module, and says what could not be found.
    ///
    /// Fills `locations[].lines` and appends to `functions`; a location for which nothing is known keeps the lines that
    /// it has. Sets `modules[].symbol_problem` of each module that a location lies in (`None`: all is well), and adds
    /// to `environment.compilers` those that the debug information of the programs and of libraries outside of the
    /// system's folders names.
    ///
    /// Return addresses are looked up one byte before, inside of their call; addresses that a signal interrupted, and
    /// starts of async callers, where they are. Equal files and profiles give equal results.
    pub fn symbolize(&self, profile: &mut Profile) {
        self.symbolize_observed(profile, &mut |_| ());
    }

    /// Does what [`Symbolizer::symbolize`] does, and tells `observer` how far it is: at the begin, when modules are
    /// done, and else at most twenty times a second. The observer is called on this thread; what it spends delays only
    /// the next call.
    pub fn symbolize_observed(&self, profile: &mut Profile, observer: &mut dyn FnMut(Progress<'_>)) {
        let places = places(profile);
        let counter = Counter::default();
        let requests = self.requests(profile, &places, &counter);
        let modules: Vec<ModuleId> = requests.iter().map(|request| request.0).collect();
        let addresses_total = requests.iter().map(|request| request.1.addresses.len()).sum();
        let mut observe = |modules_done| {
            let (addresses_done, module) = counter.read();
            observer(Progress {
                modules_done,
                modules_total: requests.len(),
                addresses_done,
                addresses_total,
                module: profile.modules.get(module).map_or("", |module| &module.path),
            });
        };
        if let Some(&first) = modules.first() {
            counter.begin(first);
            observe(0);
        }
        let work = |(module, request): &(ModuleId, Request<'_>)| {
            counter.begin(*module);
            resolve(request)
        };
        let results = worker::for_each(&requests, self.threads(), &work, &mut observe);
        drop(requests);
        let mut results: Vec<(ModuleId, Resolved)> = modules.into_iter().zip(results).collect();
        results.sort_by_key(|&(module, _)| module);
        enter(profile, &places, results);
    }

    fn threads(&self) -> usize {
        let available = || thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS);
        self.options.threads.map_or_else(available, NonZeroUsize::get)
    }

    /// What is to be looked up, the modules with most addresses first.
    fn requests<'r>(
        &'r self,
        profile: &'r Profile,
        places: &[Vec<(u64, LocationId)>],
        counter: &'r Counter,
    ) -> Vec<(ModuleId, Request<'r>)> {
        let programs: BTreeSet<&str> = profile.images.iter().map(|image| image.path.as_str()).collect();
        let mut requests: Vec<(ModuleId, Request<'r>)> = profile
            .modules
            .iter()
            .zip(places)
            .enumerate()
            .map(|(id, (module, places))| {
                let mut addresses: Vec<u64> = places.iter().map(|&(address, _)| address).collect();
                addresses.dedup();
                let request = Request {
                    module,
                    addresses,
                    executable: self.options.executable.as_ref(),
                    debug_dirs: &self.options.debug_dirs,
                    wants_compilers: programs.contains(module.path.as_str()) || !is_of_the_system(module),
                    threads: self.threads(),
                    counter,
                };
                (id, request)
            })
            .filter(|(_, request)| !request.addresses.is_empty() || request.wants_compilers)
            .collect();
        requests.sort_by_key(|(id, request)| (Reverse(request.addresses.len()), *id));
        requests
    }
}

/// For each module the addresses in it at which to look, ascending, each with its location.
fn places(profile: &Profile) -> Vec<Vec<(u64, LocationId)>> {
    let mut places: Vec<Vec<(u64, LocationId)>> = vec![Vec::new(); profile.modules.len()];
    for (id, location) in profile.locations.iter().enumerate() {
        if let Some((module, address)) = place(location)
            && let Some(places) = places.get_mut(module)
        {
            places.push((address, id));
        }
    }
    for places in &mut places {
        places.sort_unstable();
    }
    places
}

/// Enters what was found in the profile, module by module in their order.
fn enter(profile: &mut Profile, places: &[Vec<(u64, LocationId)>], results: Vec<(ModuleId, Resolved)>) {
    let mut functions = FunctionTable::new(std::mem::take(&mut profile.functions));
    let mut compilers: BTreeSet<String> =
        std::mem::take(&mut profile.environment.compilers).into_iter().collect();
    let mut is_swift_told = cfg!(feature = "swift");
    for (id, resolved) in results {
        compilers.extend(resolved.compilers);
        let (Some(module), Some(places)) = (profile.modules.get_mut(id), places.get(id)) else { continue };
        if places.is_empty() {
            continue;
        }
        module.symbol_problem = resolved.problem;
        let mut places = places.chunk_by(|left, right| left.0 == right.0);
        for part in resolved.parts {
            if !is_swift_told && part.functions.iter().any(|function| is_swift(&function.system_name)) {
                is_swift_told = true;
                let problems = module.symbol_problem.take().into_iter().chain([SWIFT_PROBLEM.to_owned()]);
                module.symbol_problem = Some(problems.collect::<Vec<_>>().join("; "));
            }
            let ids: Vec<_> = part.functions.into_iter().map(|function| functions.intern(function)).collect();
            let mut begin = 0;
            // Of each address all locations have the same frames.
            for (end, locations) in part.ends.into_iter().zip(&mut places) {
                let lines = part.lines.get(begin..end).unwrap_or_default();
                begin = end;
                for &(_, location) in locations {
                    if !lines.is_empty()
                        && let Some(location) = profile.locations.get_mut(location)
                    {
                        let line = |line: &Line| {
                            let function = *ids.get(line.function)?;
                            Some(Line { function, line: line.line })
                        };
                        location.lines = lines.iter().filter_map(line).collect();
                    }
                }
            }
        }
    }
    profile.functions = functions.into_functions();
    profile.environment.compilers = compilers.into_iter().collect();
}

/// The module of a location and the address in it at which to look; `None` where there is nothing to look up.
fn place(location: &Location) -> Option<(ModuleId, u64)> {
    let address = match location.kind {
        FrameKind::Return | FrameKind::FramePointer => location.address.saturating_sub(1),
        FrameKind::Interrupted | FrameKind::Signal | FrameKind::Async => location.address,
        FrameKind::Elided | FrameKind::EntryPoint | FrameKind::TaskOrigin => return None,
    };
    Some((location.module?, address))
}

/// Whether a module came with the system, not with the program.
fn is_of_the_system(module: &Module) -> bool {
    const FOLDERS: [&str; 9] = [
        "/lib/",
        "/lib32/",
        "/lib64/",
        "/libx32/",
        "/usr/lib/",
        "/usr/lib32/",
        "/usr/lib64/",
        "/usr/libx32/",
        "/usr/libexec/",
    ];
    module.path.is_empty()
        || module.path.starts_with('[')
        || FOLDERS.iter().any(|folder| module.path.starts_with(folder))
}
