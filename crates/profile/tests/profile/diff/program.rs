//! Programs that do not exist: a tree of calls with allocations, built and run in different ways.
//!
//! A build decides which calls are inlined, whether there is debug information, how lines drift, where the sources lie and
//! how code is laid out. Running one gives the profile that heaptally would have written.

use std::collections::BTreeMap;

use heaptally_profile::model::{
    Counts, Environment, FrameKind, Function, Image, Line, Location, Module, Profile, Row, Stack, Window,
};

/// Numbers that look random: xorshift64*.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end.max(1)
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Call(usize),
    /// Allocations per call of the function, and the bytes of each.
    Allocate(u64, u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    file: String,
    /// What it does, by line.
    pub(crate) actions: Vec<(u32, Action)>,
}

/// The first function is `main`; each calls later ones only.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) functions: Vec<Source>,
}

/// How a program is built.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    /// Of a hundred calls so many are inlined: those that are in a build of this number are in one of a higher one.
    pub(crate) inlined: usize,
    /// Of a hundred decisions so many are taken otherwise.
    pub(crate) noise: usize,
    pub(crate) seed: u64,
    pub(crate) debug_information: bool,
    /// Where the sources lie.
    pub(crate) checkout: &'static str,
    /// What the compiler appends to names.
    pub(crate) suffixes: bool,
}

const VERBS: [&str; 12] =
    ["parse", "read", "emit", "visit", "push", "find", "merge", "split", "open", "close", "lower", "fold"];
const NOUNS: [&str; 12] = [
    "header", "name", "value", "table", "token", "node", "line", "block", "frame", "index", "chunk", "route",
];
const FILES: [&str; 4] = ["src/lib.rs", "src/parser/mod.rs", "src/emit.rs", "src/table.rs"];

impl Program {
    pub(crate) fn new(seed: u64, functions: usize) -> Self {
        let mut random = Random::new(seed);
        let mut program = Self { functions: Vec::new() };
        for at in 0..functions {
            let name = match at {
                0 => "app::main".to_owned(),
                _ => format!("app::{}_{}_{at}", VERBS[random.below(12)], NOUNS[random.below(12)]),
            };
            let mut line = 10 * at as u32 + 1;
            let mut actions = Vec::new();
            for _ in 0..=random.below(3) {
                line += 1 + random.below(5) as u32;
                if at + 1 < functions && (at == 0 || !random.one_in(4)) {
                    // Mostly near ones, so that stacks become deep.
                    let callee = at + 1 + random.below((functions - at - 1).min(6));
                    actions.push((line, Action::Call(callee)));
                } else {
                    actions.push((line, Action::Allocate(1 + random.below(9) as u64, 8 << random.below(5))));
                }
            }
            program.functions.push(Source { name, file: FILES[at % 4].to_owned(), actions });
        }
        program
    }

    /// The functions that are reached from `main`.
    pub(crate) fn reached(&self) -> Vec<usize> {
        let mut reached = vec![false; self.functions.len()];
        reached[0] = true;
        for at in 0..self.functions.len() {
            if reached[at] {
                for (_, action) in &self.functions[at].actions {
                    if let Action::Call(callee) = action {
                        reached[*callee] = true;
                    }
                }
            }
        }
        (0..reached.len()).filter(|&at| reached[at]).collect()
    }

    /// Adds one allocation to a function, before its `place`th action; what stands behind moves down. Returns the line.
    pub(crate) fn plant(&mut self, function: usize, place: usize) -> u32 {
        let actions = &mut self.functions[function].actions;
        let place = place.min(actions.len());
        let line = place.checked_sub(1).map_or(10 * function as u32 + 1, |before| actions[before].0) + 1;
        for (line, _) in &mut actions[place..] {
            *line += 2;
        }
        actions.insert(place, (line, Action::Allocate(1, 40)));
        line
    }

    /// Moves all lines of some functions, as edits of other code do.
    pub(crate) fn drift(&mut self, random: &mut Random) {
        for function in &mut self.functions {
            let by = random.below(100) as u32;
            function.actions.iter_mut().for_each(|(line, _)| *line += by);
        }
    }

    /// Runs a build of it: every way from `main` to an allocation. `None`: there are more than `most`.
    pub(crate) fn run(&self, build: &Build, most: usize) -> Option<Profile> {
        let mut runner = Runner {
            program: self,
            build,
            profile: Profile {
                images: vec![Image { label: "app".into(), in_path: true, ..Image::default() }],
                modules: vec![Module {
                    path: format!("{}/target/app", build.checkout),
                    build_id: format!("{:x}", build.seed),
                    ..Module::default()
                }],
                windows: vec![Window { name: "w".into(), entries: 1, iterations: 1, ..Window::default() }],
                environment: Environment { lifetimes: true, ..Environment::default() },
                ..Profile::default()
            },
            functions: BTreeMap::new(),
            locations: BTreeMap::new(),
            most,
        };
        runner.walk(&mut vec![(0, 0)]);
        let mut profile = runner.profile;
        let is_whole = profile.rows.len() < most;
        profile.normalize().expect("the profile is valid");
        is_whole.then_some(profile)
    }

    /// Whether a build inlines a call. The same for all calls from one function to another.
    pub(crate) fn is_inlined(build: &Build, caller: usize, callee: usize) -> bool {
        let call = (caller as u64) << 32 | (callee as u64 + 7);
        let is_small = Random::new(call).below(100) < build.inlined;
        let is_odd = Random::new(build.seed ^ call).below(100) < build.noise;
        caller != 0 && is_small != is_odd
    }
}

struct Runner<'a> {
    program: &'a Program,
    build: &'a Build,
    profile: Profile,
    functions: BTreeMap<(String, String), usize>,
    locations: BTreeMap<Vec<(usize, u32)>, usize>,
    most: usize,
}

impl Runner<'_> {
    /// `path`: functions from `main`, each with the line that it is at.
    fn walk(&mut self, path: &mut Vec<(usize, u32)>) {
        let Some(&(at, _)) = path.last() else { return };
        for (line, action) in self.program.functions[at].actions.clone() {
            if self.profile.rows.len() >= self.most {
                return;
            }
            if let Some(last) = path.last_mut() {
                last.1 = line;
            }
            match action {
                Action::Call(callee) => {
                    path.push((callee, 0));
                    self.walk(path);
                    path.pop();
                }
                Action::Allocate(count, bytes) => self.record(path, count, bytes),
            }
        }
    }

    fn record(&mut self, path: &[(usize, u32)], count: u64, bytes: u64) {
        let mut locations = vec![self.location(FrameKind::EntryPoint, &[("malloc".into(), "".into(), 0)])];
        // Every second allocation is by way of the standard library, which may be inlined too.
        let mut lines: Vec<(String, String, u32)> = Vec::new();
        if bytes > 16 {
            let push = ("alloc::vec::Vec<T>::push".to_owned(), "/rustc/0/library/alloc/src/vec/mod.rs", 9);
            let inner = (push.0, push.1.to_owned(), push.2);
            if self.build.seed.is_multiple_of(2) {
                locations.push(self.location(FrameKind::Return, &[inner]));
            } else if self.build.debug_information {
                lines.push(inner);
            }
        }
        let debug = self.build.debug_information;
        for (depth, &(at, line)) in path.iter().enumerate().rev() {
            let is_inlined = depth > 0 && Program::is_inlined(self.build, path[depth - 1].0, at);
            if debug || !is_inlined {
                lines.push(self.named(at, line));
            }
            if !is_inlined {
                // Without debug information the function alone that holds the code is known.
                let known = if debug { &lines[..] } else { &lines[lines.len() - 1..] };
                let location = self.location(FrameKind::Return, known);
                locations.push(location);
                lines.clear();
            }
        }
        locations.push(self.location(FrameKind::Return, &[("_start".into(), "".into(), 0)]));
        self.profile.stacks.push(Stack { locations, ..Stack::default() });
        self.profile.rows.push(Row {
            stack: self.profile.stacks.len() - 1,
            counts: Counts { allocations: count, bytes: count * bytes, ..Counts::default() },
            entries: Some(1),
            first_entry: Some(1),
            last_entry: Some(1),
            ..Row::default()
        });
    }

    fn named(&self, at: usize, line: u32) -> (String, String, u32) {
        let source = &self.program.functions[at];
        let mut name = source.name.clone();
        if self.build.suffixes {
            name.push_str([".llvm.1234", ".cold", "::h0123456789abcdef", " [clone .part.3]"][at % 4]);
        }
        match self.build.debug_information {
            true => (name, format!("{}/{}", self.build.checkout, source.file), line),
            false => (name, String::new(), 0),
        }
    }

    fn location(&mut self, kind: FrameKind, lines: &[(String, String, u32)]) -> usize {
        let lines: Vec<(usize, u32)> = lines
            .iter()
            .map(|(name, file, line)| {
                let known = self.functions.len();
                let function = *self.functions.entry((name.clone(), file.clone())).or_insert(known);
                if function == known {
                    self.profile.functions.push(Function {
                        name: name.clone(),
                        system_name: name.clone(),
                        file: file.clone(),
                        is_folded: false,
                    });
                }
                (function, *line)
            })
            .collect();
        let known = self.locations.len();
        let location = *self.locations.entry(lines.clone()).or_insert(known);
        if location == known {
            let mut random = Random::new(self.build.seed ^ known as u64);
            self.profile.locations.push(Location {
                module: (kind == FrameKind::Return).then_some(0),
                address: (random.below(1 << 20) as u64) << 8 | known as u64,
                kind,
                lines: lines.iter().map(|&(function, line)| Line { function, line }).collect(),
            });
        }
        location
    }
}
