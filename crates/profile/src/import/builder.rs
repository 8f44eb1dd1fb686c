//! What importers put a profile together with.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use super::{Addresses, Imported};
use crate::Error;
use crate::frame::file_name;
use crate::model::{
    Capture, Counts, Environment, FrameKind, Function, Image, Line, Location, LocationId, Metric, Module,
    ModuleId, Origin, Profile, Row, Stack, StackId, Window, WindowKind,
};

/// How many frames the stacks of a file may have in all: 512 MiB. A small file can tell long stacks in a few bytes.
const MAX_FRAMES: usize = 1 << 26;
/// What importers do not know in any format.
const UNKNOWN: [Metric; 6] =
    [Metric::Windows, Metric::Reallocs, Metric::Temporary, Metric::Failed, Metric::Captures, Metric::Threads];
/// C functions that a leaf frame names when it is the allocation itself.
const ENTRY_POINTS: [&str; 9] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
];

/// A logical frame as a tool wrote it; what is empty or 0 is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame<'a> {
    pub(super) name: &'a str,
    pub(super) file: &'a str,
    pub(super) line: u32,
}

/// Things that are numbered in the order in which they come.
#[derive(Debug)]
struct Interner<T>(HashMap<T, usize>, Vec<T>);

impl<T: Clone + Eq + Hash> Interner<T> {
    fn new() -> Self {
        Self(HashMap::new(), Vec::new())
    }

    fn intern(&mut self, thing: T) -> usize {
        match self.0.entry(thing) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                self.1.push(place.key().clone());
                *place.insert(self.1.len() - 1)
            }
        }
    }
}

/// A profile in the making.
#[derive(Debug)]
pub(super) struct Builder {
    format: &'static str,
    image: Image,
    window: Window,
    environment: Environment,
    modules: Interner<Module>,
    functions: Interner<Function>,
    locations: Interner<Location>,
    stacks: Interner<Vec<LocationId>>,
    counts: Vec<Counts>,
    frames: usize,
    /// How its locations are to be named.
    pub(super) addresses: Addresses,
}

impl Builder {
    /// Begins a profile out of a file of this format.
    pub(super) fn new(format: &'static str) -> Self {
        Self {
            format,
            image: Image { in_path: true, ..Image::default() },
            window: Window {
                name: "process".to_owned(),
                kind: WindowKind::Automatic,
                entries: 1,
                iterations: 1,
                ..Window::default()
            },
            environment: Environment {
                recorder: format.to_owned(),
                origin: Some(Origin { format: format.to_owned(), ..Origin::default() }),
                unknown: UNKNOWN.into(),
                ..Environment::default()
            },
            modules: Interner::new(),
            functions: Interner::new(),
            locations: Interner::new(),
            stacks: Interner::new(),
            counts: Vec::new(),
            frames: 0,
            addresses: Addresses::Named,
        }
    }

    /// Notes what else the format does not say.
    pub(super) fn unknown(&mut self, metric: Metric) {
        self.environment.unknown.insert(metric);
    }

    /// Notes that the format says what was freed, and how many bytes were live at most if it does.
    pub(super) fn lifetimes(&mut self, peak_bytes: Option<u64>) {
        self.environment.lifetimes = true;
        self.window.peak_bytes = peak_bytes;
    }

    /// Notes how allocations were chosen; empty: all were.
    pub(super) fn sampling(&mut self, sampling: String) {
        self.origin().sampling = sampling;
    }

    /// Notes that only live blocks are counted.
    pub(super) fn live_only(&mut self) {
        self.origin().live_only = true;
    }

    fn origin(&mut self) -> &mut Origin {
        self.environment.origin.get_or_insert_default()
    }

    /// Notes the program and its arguments.
    pub(super) fn command(&mut self, command: &str) {
        self.environment.command = command.split_whitespace().map(str::to_owned).collect();
        if let Some(program) = self.environment.command.first() {
            self.image.label = file_name(program).to_owned();
        }
    }

    /// Notes the program's file.
    pub(super) fn program(&mut self, path: &str) {
        self.image.label = file_name(path).to_owned();
        self.image.path = path.to_owned();
    }

    /// Notes something that the user should know.
    pub(super) fn warning(&mut self, warning: impl Into<String>) {
        self.image.warnings.push(warning.into());
    }

    /// Counts allocations whose stacks the file does not tell.
    pub(super) fn lost(&mut self, allocations: u64) {
        self.window.lost = self.window.lost.saturating_add(allocations);
    }

    /// A module that only has a path.
    pub(super) fn module(&mut self, path: &str) -> ModuleId {
        self.modules.intern(Module { path: path.to_owned(), ..Module::default() })
    }

    /// A module.
    pub(super) fn module_of(&mut self, module: Module) -> ModuleId {
        self.modules.intern(module)
    }

    /// A place with the functions there, the innermost inlined one first. Frames without a name are none.
    pub(super) fn location<'f>(
        &mut self,
        module: Option<ModuleId>,
        address: u64,
        frames: impl IntoIterator<Item = Frame<'f>>,
    ) -> LocationId {
        let mut lines = Vec::new();
        for frame in frames {
            if !frame.name.is_empty() {
                lines.push(Line { function: self.function(frame.name, frame.file), line: frame.line });
            }
        }
        self.locations.intern(Location { module, address, kind: FrameKind::Return, lines })
    }

    /// A place of which only the function is known.
    pub(super) fn named(&mut self, frame: Frame<'_>, module: Option<ModuleId>) -> LocationId {
        self.location(module, 0, [frame])
    }

    fn function(&mut self, name: &str, file: &str) -> usize {
        self.functions.intern(Function {
            name: name.to_owned(),
            system_name: name.to_owned(),
            file: file.to_owned(),
            is_folded: false,
        })
    }

    /// Adds what a stack, leaf first, counted. Without a frame the stack is not known.
    pub(super) fn add(&mut self, mut stack: Vec<LocationId>, counts: &Counts) -> Result<(), Error> {
        if stack.is_empty() {
            self.lost(counts.allocations);
            return Ok(());
        }
        self.frames = self.frames.saturating_add(stack.len());
        if self.frames > MAX_FRAMES {
            return Err(Error::TooLarge { limit: MAX_FRAMES as u64, unit: "frames" });
        }
        if let Some(leaf) = stack.first_mut() {
            *leaf = self.entry_point(*leaf);
        }
        let at = self.stacks.intern(stack);
        if at == self.counts.len() {
            self.counts.push(Counts::default());
        }
        if let Some(sum) = self.counts.get_mut(at) {
            sum.add(counts);
        }
        Ok(())
    }

    /// The leaf as an entry point, if it is an allocation function.
    fn entry_point(&mut self, leaf: LocationId) -> LocationId {
        let Some(Location { lines, .. }) = self.locations.1.get(leaf) else { return leaf };
        let [line] = lines.as_slice() else { return leaf };
        let Some(function) = self.functions.1.get(line.function) else { return leaf };
        // As heaptally names them: of a C function the public name, of `operator new` with its parameters.
        let name = match function.name.as_str() {
            "operator new" | "_Znwm" => "operator new(unsigned long)",
            "operator new[]" | "_Znam" => "operator new[](unsigned long)",
            name if name.starts_with("operator new(") || name.starts_with("operator new[](") => name,
            name => match name.trim_start_matches("__libc_") {
                name if ENTRY_POINTS.contains(&name) => name,
                _ => return leaf,
            },
        };
        let name = name.to_owned();
        let function = self.function(&name, "");
        self.locations.intern(Location {
            kind: FrameKind::EntryPoint,
            lines: vec![Line { function, line: 0 }],
            ..Location::default()
        })
    }

    /// Refuses sums that stand at the highest number, since they are higher. Importers leave their own sums there, too.
    fn check_sums(&self) -> Result<(), Error> {
        let mut sum = Counts { allocations: self.window.lost, ..Counts::default() };
        self.counts.iter().for_each(|counts| sum.add(counts));
        let peak_bytes = self.window.peak_bytes.unwrap_or(0);
        if [sum.allocations, sum.bytes, sum.freed, sum.freed_bytes, peak_bytes].contains(&u64::MAX) {
            let reason = format!(
                "its counts add up to more than {}, the highest number\nwrite it anew: one of them is damaged",
                u64::MAX
            );
            return Err(Error::Unusable { format: self.format, reason });
        }
        Ok(())
    }

    /// The profile.
    pub(super) fn finish(self) -> Result<Imported, Error> {
        self.check_sums()?;
        let stacks = self.stacks.1;
        let mut profile = Profile {
            images: vec![self.image],
            modules: self.modules.1,
            functions: self.functions.1,
            locations: self.locations.1,
            rows: (0..)
                .zip(self.counts)
                .map(|(stack, counts): (StackId, Counts)| Row { stack, counts, ..Row::default() })
                .collect(),
            stacks: stacks
                .into_iter()
                .map(|locations| Stack { locations, capture: Capture::Complete, ..Stack::default() })
                .collect(),
            windows: vec![self.window],
            environment: self.environment,
            ..Profile::default()
        };
        profile.normalize()?;
        Ok(Imported { profile, needs_symbols: self.addresses })
    }
}
