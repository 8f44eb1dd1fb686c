//! Profiles to report.

use heaptally_profile::model::{
    Capture, Counts, Environment, Executor, FrameKind, Function, Image, Line, Location, Module, Profile, Row,
    Stack, StackId, ThreadLife, ThreadTotal, Window, WindowKind,
};

/// A profile of the module `/bin/bench`, its function at line `n` of `src/bench.rs` for each frame.
pub(crate) struct Fixture {
    pub(crate) profile: Profile,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self {
            profile: Profile {
                images: vec![Image {
                    label: "bench".into(),
                    path: "/bin/bench".into(),
                    in_path: true,
                    allocator: "/lib/libc.so.6".into(),
                    ..Image::default()
                }],
                modules: vec![Module {
                    path: "/bin/bench".into(),
                    build_id: "c0ffee".into(),
                    text_svma: 0x1000,
                    text_svma_end: 0x9000,
                    ..Module::default()
                }],
                environment: Environment {
                    recorder: "0.1.0".into(),
                    architecture: "x86_64".into(),
                    libc: "glibc 2.36".into(),
                    command: vec!["./bench".into()],
                    lifetimes: true,
                    exit_code: Some(0),
                    ..Environment::default()
                },
                ..Profile::default()
            },
        }
    }

    pub(crate) fn window(&mut self, name: &str, kind: WindowKind, iterations: u64) -> usize {
        self.profile.windows.push(Window {
            name: name.into(),
            kind,
            entries: 1,
            iterations,
            iterations_told: kind != WindowKind::Automatic,
            ..Window::default()
        });
        self.profile.windows.len() - 1
    }

    fn function(&mut self, name: &str) -> usize {
        if let Some(at) = self.profile.functions.iter().position(|function| function.name == name) {
            return at;
        }
        let file = match name {
            "malloc" | "realloc" => "",
            name if name.starts_with("alloc::") => "/rustc/0123/library/alloc/src/vec/mod.rs",
            _ => "src/bench.rs",
        };
        self.profile.functions.push(Function {
            name: name.into(),
            system_name: name.into(),
            file: file.into(),
            is_folded: false,
        });
        self.profile.functions.len() - 1
    }

    /// A location: its lines' functions from the innermost, parted by `|`.
    pub(crate) fn location(&mut self, kind: FrameKind, names: &str) -> usize {
        let lines = names.split('|').filter(|name| !name.is_empty());
        let lines: Vec<Line> = lines
            .map(|name| {
                let function = self.function(name);
                let known = !self.profile.functions[function].file.is_empty();
                Line { function, line: if known { 10 + function as u32 } else { 0 } }
            })
            .collect();
        let address = 0x1000 + 0x10 * self.profile.locations.len() as u64;
        let in_code = !matches!(kind, FrameKind::EntryPoint | FrameKind::Elided);
        let location = Location {
            module: in_code.then_some(0),
            address: if in_code { address } else { 0 },
            kind,
            lines: lines.clone(),
        };
        let same = |other: &Location| other.kind == kind && other.lines == lines && !lines.is_empty();
        if let Some(at) = self.profile.locations.iter().position(same) {
            return at;
        }
        self.profile.locations.push(location);
        self.profile.locations.len() - 1
    }

    /// A stack of return addresses below an entry point; `names` leaf first, parted by blanks.
    pub(crate) fn stack(&mut self, entry_point: &str, names: &str) -> StackId {
        let mut locations = vec![self.location(FrameKind::EntryPoint, entry_point)];
        locations.extend(names.split_whitespace().map(|names| self.location(FrameKind::Return, names)));
        self.profile.stacks.push(Stack { locations, ..Stack::default() });
        self.profile.stacks.len() - 1
    }

    /// What stood behind the async function of a stack; `names` from the innermost, parted by blanks.
    pub(crate) fn executor(&mut self, stack: StackId, allocations: u64, names: &str) {
        let locations =
            names.split_whitespace().map(|names| self.location(FrameKind::Return, names)).collect();
        self.profile.executors.push(Executor { stack, locations, allocations });
    }

    pub(crate) fn row(&mut self, window: usize, stack: StackId, counts: Counts) -> &mut Row {
        let at = self.profile.rows.len();
        self.profile.rows.push(Row {
            window,
            stack,
            counts,
            entries: Some(1),
            first_entry: Some(1),
            last_entry: Some(1),
            ..Row::default()
        });
        &mut self.profile.rows[at]
    }
}

/// Counts of blocks that were all freed.
pub(crate) fn freed(allocations: u64, bytes: u64) -> Counts {
    Counts { allocations, bytes, freed: allocations, freed_bytes: bytes, ..Counts::default() }
}

/// A profile in which everything occurs that a report can show.
pub(crate) fn everything() -> Profile {
    let mut fixture = Fixture::new();
    let process = fixture.window("process", WindowKind::Automatic, 1);
    let parse = fixture.window("parse \u{1b}[2J", WindowKind::Process, 1000);
    let never = fixture.window("never", WindowKind::Thread, 0);

    let push = fixture.stack("malloc", "alloc::vec::Vec<T>::push|header::push_value|parse_line parse main");
    let early = fixture.stack("malloc", "setup main");
    let grow = fixture.stack("realloc", &format!("alloc::raw_vec::finish_grow {}main", "walk ".repeat(3000)));
    let cut = fixture.stack("malloc", "a b a b a b");
    let odd = fixture.stack("malloc", "handler");

    fixture.profile.stacks[cut].capture = Capture::Cut;
    fixture.profile.stacks[cut].cut_reason = "no unwind information".into();
    let kinds = [
        FrameKind::Signal,
        FrameKind::Interrupted,
        FrameKind::FramePointer,
        FrameKind::Elided,
        FrameKind::Async,
    ];
    for (kind, name) in kinds.into_iter().zip(["__restore_rt", "busy", "", "", "task"]) {
        let location = fixture.location(kind, name);
        fixture.profile.stacks[odd].locations.push(location);
    }
    fixture.profile.stacks[odd].capture = Capture::FramePointer;
    for (allocations, names) in [(1, "run_job drain worker"), (2, "run_job main_queue main")] {
        fixture.executor(odd, allocations, names);
    }

    fixture.row(process, early, freed(5, 500));
    fixture.row(
        parse,
        push,
        Counts { reallocs: 12, reallocs_moved: 3, reallocs_in_place: 9, ..freed(40_000, 1_920_000) },
    );
    fixture.row(parse, grow, Counts { temporary: 300, ..freed(300, 64_000) });
    let row = fixture.row(parse, cut, Counts { freed: 1, freed_bytes: 32, ..freed(3, 96) });
    (row.entries, row.first_entry, row.last_entry) = (Some(2), Some(3), Some(7));
    fixture.row(parse, odd, Counts { failed: 1, reallocs_to_zero: 2, ..freed(3, 96) });

    let profile = &mut fixture.profile;
    let window = &mut profile.windows[parse];
    (window.entries, window.unfinished, window.crossed_ends, window.stray_ends) = (10, true, 1, 2);
    (window.peak_bytes, window.peak_uncertainty_bytes, window.lost) = (Some(123_456), 64, 7);
    profile.windows[never].entries = 0;
    profile.losses.reentrant = 7;
    profile.losses.damaged = 1;
    profile.images[0].warnings.push("libjemalloc.so.2 is linked too".into());
    profile.images.push(Image { label: "wrapper".into(), replaced: true, ..Image::default() });
    profile.modules.push(Module {
        path: "/lib/libodd.so".into(),
        symbol_problem: Some("no symbol table".into()),
        ..Module::default()
    });
    let total = ThreadTotal { allocations: 40_306, bytes: 1_984_192, freed: 40_303, freed_bytes: 1_984_096 };
    profile.threads.push(ThreadLife {
        lives: 1,
        name: "bench".into(),
        last_name: "bench".into(),
        start: Some(profile.stacks[early].locations[2]),
        totals: [
            (process, ThreadTotal { allocations: 5, bytes: 500, freed: 5, freed_bytes: 500 }),
            (parse, ThreadTotal { allocations: total.allocations + 1, ..total }),
        ]
        .into(),
        ..ThreadLife::default()
    });
    profile.validate().expect("the fixture is valid");
    fixture.profile
}

/// Rows as (allocations, bytes, frames from the leaf).
pub(crate) type Rows<'a> = &'a [(u64, u64, &'a str)];

/// A profile of the window `parse`.
pub(crate) fn profile(iterations: u64, rows: Rows<'_>) -> Profile {
    windows(iterations, &[("parse", rows)])
}

/// A profile of several windows.
pub(crate) fn windows(iterations: u64, windows: &[(&str, Rows<'_>)]) -> Profile {
    let mut fixture = Fixture::new();
    for (name, rows) in windows {
        let window = fixture.window(name, WindowKind::Process, iterations);
        for (allocations, bytes, names) in *rows {
            let stack = fixture.stack("malloc", names);
            fixture.row(window, stack, freed(*allocations, *bytes)).entries = None;
        }
    }
    fixture.profile.normalize().expect("valid");
    fixture.profile
}
