//! A profile's addresses to names.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::PathBuf;

use heaptally_profile::model::{
    FrameKind, Function, FunctionId, Line, Location, LocationId, Module, ModuleId, Profile,
};

use crate::demangle::demangle;
use crate::resolve::{NamedFrame, resolve};

/// What [`Symbolizer::new`] needs.
#[derive(Debug)]
pub struct Options {
    /// The folders below which separate debug files are searched, in this order. `/usr/lib/debug` by default.
    pub debug_dirs: Vec<PathBuf>,
    /// The program that was started: its path, and its file as it was opened before the run. It stands in for a
    /// module whose file is gone or was replaced: by build-id for any, by path where there is no build-id.
    pub executable: Option<(PathBuf, File)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { debug_dirs: vec![PathBuf::from("/usr/lib/debug")], executable: None }
    }
}

/// Names the locations of profiles.
#[derive(Debug)]
pub struct Symbolizer {
    options: Options,
    /// Names for people by names in files.
    names: HashMap<String, String>,
}

impl Symbolizer {
    /// One that reads nothing yet.
    pub fn new(options: Options) -> Self {
        Self { options, names: HashMap::new() }
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
    pub fn symbolize(&mut self, profile: &mut Profile) {
        let mut wanted: Vec<Vec<(u64, LocationId)>> = vec![Vec::new(); profile.modules.len()];
        for (id, location) in profile.locations.iter().enumerate() {
            if let Some((module, address)) = place(location)
                && let Some(addresses) = wanted.get_mut(module)
            {
                addresses.push((address, id));
            }
        }
        let programs: BTreeSet<&str> = profile.images.iter().map(|image| image.path.as_str()).collect();
        let wants_compilers: Vec<bool> = profile
            .modules
            .iter()
            .map(|module| programs.contains(module.path.as_str()) || !is_of_the_system(module))
            .collect();

        let mut functions = FunctionTable::new(&mut profile.functions);
        let mut compilers: BTreeSet<String> =
            std::mem::take(&mut profile.environment.compilers).into_iter().collect();
        for ((module, mut addresses), wants_compilers) in
            profile.modules.iter_mut().zip(wanted).zip(wants_compilers)
        {
            if addresses.is_empty() && !wants_compilers {
                continue;
            }
            addresses.sort_unstable();
            let mut unique: Vec<u64> = addresses.iter().map(|&(address, _)| address).collect();
            unique.dedup();
            let resolved = resolve(
                module,
                &unique,
                self.options.executable.as_ref(),
                &self.options.debug_dirs,
                wants_compilers.then_some(&mut compilers),
            );
            if addresses.is_empty() {
                continue;
            }
            module.symbol_problem = resolved.problem;
            let mut frames_of = unique.iter().zip(&resolved.frames).peekable();
            for (address, location) in addresses {
                while frames_of.next_if(|&(&at, _)| at < address).is_some() {}
                let Some((_, frames)) = frames_of.peek() else { break };
                if !frames.is_empty()
                    && let Some(location) = profile.locations.get_mut(location)
                {
                    location.lines = frames
                        .iter()
                        .map(|frame| Line {
                            function: functions.intern(frame, &mut self.names),
                            line: frame.line,
                        })
                        .collect();
                }
            }
        }
        profile.environment.compilers = compilers.into_iter().collect();
    }
}

/// The module of a location and the address in it at which to look; `None` where there is nothing to look up.
fn place(location: &Location) -> Option<(ModuleId, u64)> {
    let address = match location.kind {
        FrameKind::Return | FrameKind::FramePointer => location.address.saturating_sub(1),
        FrameKind::Interrupted | FrameKind::Signal | FrameKind::Async => location.address,
        FrameKind::Elided | FrameKind::EntryPoint => return None,
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

/// The functions of a profile, each once.
struct FunctionTable<'a> {
    functions: &'a mut Vec<Function>,
    ids: HashMap<Function, FunctionId>,
}

impl<'a> FunctionTable<'a> {
    fn new(functions: &'a mut Vec<Function>) -> Self {
        let mut ids = HashMap::new();
        for (id, function) in functions.iter().enumerate() {
            ids.entry(function.clone()).or_insert(id);
        }
        Self { functions, ids }
    }

    fn intern(&mut self, frame: &NamedFrame, names: &mut HashMap<String, String>) -> FunctionId {
        let name = match names.get(&frame.system_name) {
            Some(name) => name.clone(),
            None => {
                let name = demangle(&frame.system_name);
                names.insert(frame.system_name.clone(), name.clone());
                name
            }
        };
        let function = Function {
            name,
            system_name: frame.system_name.clone(),
            file: frame.file.clone(),
            is_folded: frame.is_folded,
        };
        match self.ids.get(&function) {
            Some(&id) => id,
            None => {
                let id = self.functions.len();
                self.functions.push(function.clone());
                self.ids.insert(function, id);
                id
            }
        }
    }
}
