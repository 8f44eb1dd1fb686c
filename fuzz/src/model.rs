//! Profiles made of bytes: each byte decides something, so that a small change of the bytes is a small change of the
//! profile. Their indices may lead nowhere.

use std::collections::BTreeSet;

use arbitrary::{Result, Unstructured};
use heaptally_profile::model::{
    Capture, Counts, Environment, FrameKind, Function, Image, Line, Location, Losses, Metric, Module, Origin,
    Profile, RepeatValue, Row, Stack, ThreadLife, ThreadTotal, Window, WindowKind,
};

/// Texts that something treats in its own way.
const TEXTS: [&str; 32] = [
    "",
    "malloc",
    "main",
    "/usr/lib/libc.so.6",
    "[vdso]",
    "/src/a/b.rs",
    "/src",
    "/",
    "src/lib.rs",
    "<alloc::vec::Vec<T> as mine::Extend>::extend",
    "<<T as A>::B as C>::f",
    "core::iter::adapters::map::Map<I,F>",
    "_ZNSt6vectorIiSaIiEE9push_backEOi",
    "$s4mine6ParserV5parseyyF",
    "operator<",
    "operator()<int>(a, b)",
    "f(int) [clone .isra.0]",
    "<",
    ">::",
    "a;b c",
    "=1+2",
    "\"quoted\", with comma",
    "\u{1b}[2J",
    "line\nbreak\r\t",
    "\u{202e}desrever",
    "\u{0}",
    "naïve \u{1f600}\u{1f600}",
    "e\u{301}\u{301}",
    "process",
    "\\x00\\xff",
    "| `code` <b>",
    "{closure#0}",
];

/// A profile.
///
/// # Errors
/// None: bytes that are missing are zeros.
pub fn profile(bytes: &mut Unstructured<'_>) -> Result<Profile> {
    let runs = match bytes.int_in_range(0..=9)? {
        0..=6 => 0,
        7 => 2,
        8 => 3,
        _ => number(bytes)?,
    };
    let mut profile = Profile {
        images: list(bytes, 2, image)?,
        modules: list(bytes, 4, module)?,
        functions: list(bytes, 8, function)?,
        ..Profile::default()
    };
    let (modules, functions) = (profile.modules.len(), profile.functions.len());
    profile.locations = list(bytes, 10, |bytes| location(bytes, modules, functions))?;
    let locations = profile.locations.len();
    profile.stacks = list(bytes, 8, |bytes| {
        Ok(Stack {
            locations: list(bytes, 12, |bytes| index(bytes, locations))?,
            capture: bytes.choose_iter([Capture::Complete, Capture::FramePointer, Capture::Cut])?,
            cut_reason: text(bytes)?,
        })
    })?;
    let images = profile.images.len();
    profile.windows = list(bytes, 4, |bytes| window(bytes, images, runs))?;
    let (windows, stacks) = (profile.windows.len(), profile.stacks.len());
    profile.rows = list(bytes, 12, |bytes| row(bytes, windows, stacks, runs))?;
    profile.threads = list(bytes, 3, |bytes| {
        let mut thread = ThreadLife {
            image: index(bytes, images)?,
            tid: bytes.arbitrary()?,
            lives: number(bytes)?,
            name: text(bytes)?,
            last_name: text(bytes)?,
            start: if bytes.arbitrary()? { Some(index(bytes, locations)?) } else { None },
            ..ThreadLife::default()
        };
        for (window, total) in list(bytes, 3, |bytes| Ok((index(bytes, windows)?, total(bytes)?)))? {
            thread.totals.insert(window, total);
        }
        Ok(thread)
    })?;
    profile.losses = losses(bytes)?;
    profile.environment = Environment {
        recorder: text(bytes)?,
        architecture: text(bytes)?,
        machine: text(bytes)?,
        libc: text(bytes)?,
        command: list(bytes, 3, text)?,
        compilers: list(bytes, 3, text)?,
        lifetimes: bytes.arbitrary()?,
        frees_from_before: number(bytes)?,
        exit_code: bytes.arbitrary()?,
        repeats: runs,
        origin: match bytes.arbitrary()? {
            true => {
                Some(Origin { format: text(bytes)?, sampling: text(bytes)?, live_only: bytes.arbitrary()? })
            }
            false => None,
        },
        task_origins: bytes.arbitrary()?,
        unknown: list(bytes, 3, |bytes| bytes.choose(&METRICS).copied())?.into_iter().collect(),
    };
    Ok(profile)
}

/// Up to `most` things.
fn list<'a, T>(
    bytes: &mut Unstructured<'a>,
    most: usize,
    mut one: impl FnMut(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let len = bytes.int_in_range(0..=most)?;
    (0..len).map(|_| one(bytes)).collect()
}

/// An index into a table, seldom one that leads nowhere.
fn index(bytes: &mut Unstructured<'_>, len: usize) -> Result<usize> {
    let at: u8 = bytes.arbitrary()?;
    Ok(match at {
        255 => usize::MAX,
        254 => len,
        _ => usize::from(at).checked_rem(len).unwrap_or(0),
    })
}

/// A number: small, at an edge, or any.
fn number(bytes: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match bytes.arbitrary::<u8>()? {
        255 => u64::MAX,
        254 => i64::MAX as u64,
        253 => i64::MAX as u64 + 1,
        252 => u64::from(u32::MAX),
        240..=251 => bytes.arbitrary()?,
        small => u64::from(small),
    })
}

fn text(bytes: &mut Unstructured<'_>) -> Result<String> {
    let choice: u8 = bytes.arbitrary()?;
    if let Some(text) = TEXTS.get(usize::from(choice)) {
        return Ok((*text).to_owned());
    }
    let len = usize::from(choice % 32).min(bytes.len());
    Ok(String::from_utf8_lossy(bytes.bytes(len)?).into_owned())
}

const METRICS: [Metric; 4] = [Metric::Windows, Metric::Bytes, Metric::Captures, Metric::Threads];

fn image(bytes: &mut Unstructured<'_>) -> Result<Image> {
    Ok(Image {
        label: text(bytes)?,
        path: text(bytes)?,
        pid: bytes.arbitrary()?,
        replaced: bytes.arbitrary()?,
        in_path: bytes.arbitrary()?,
        allocator: text(bytes)?,
        warnings: list(bytes, 2, text)?,
        processes: u64::from(bytes.arbitrary::<u8>()? % 3),
    })
}

fn module(bytes: &mut Unstructured<'_>) -> Result<Module> {
    Ok(Module {
        path: text(bytes)?,
        build_id: text(bytes)?,
        text_svma: number(bytes)?,
        text_svma_end: number(bytes)?,
        text_offset: number(bytes)?,
        symbol_problem: if bytes.arbitrary()? { Some(text(bytes)?) } else { None },
    })
}

fn function(bytes: &mut Unstructured<'_>) -> Result<Function> {
    Ok(Function {
        name: text(bytes)?,
        system_name: text(bytes)?,
        file: text(bytes)?,
        is_folded: bytes.arbitrary()?,
    })
}

fn location(bytes: &mut Unstructured<'_>, modules: usize, functions: usize) -> Result<Location> {
    const KINDS: [FrameKind; 7] = [
        FrameKind::Return,
        FrameKind::EntryPoint,
        FrameKind::Async,
        FrameKind::Elided,
        FrameKind::Signal,
        FrameKind::Interrupted,
        FrameKind::FramePointer,
    ];
    let line = |bytes: &mut Unstructured<'_>| {
        Ok(Line { function: index(bytes, functions)?, line: number(bytes)? as u32 })
    };
    Ok(Location {
        module: if modules > 0 && bytes.arbitrary()? { Some(index(bytes, modules)?) } else { None },
        address: number(bytes)?,
        kind: bytes.choose_iter(KINDS)?,
        lines: if functions > 0 { list(bytes, 4, line)? } else { Vec::new() },
    })
}

fn window(bytes: &mut Unstructured<'_>, images: usize, runs: u64) -> Result<Window> {
    const KINDS: [WindowKind; 3] = [WindowKind::Process, WindowKind::Thread, WindowKind::Automatic];
    Ok(Window {
        name: text(bytes)?,
        image: index(bytes, images)?,
        kind: bytes.choose_iter(KINDS)?,
        entries: number(bytes)?,
        iterations: number(bytes)?,
        iterations_told: bytes.arbitrary()?,
        iterations_per_repeat: of_runs(bytes, runs, number)?,
        unfinished: bytes.arbitrary()?,
        crossed_ends: number(bytes)?,
        stray_ends: number(bytes)?,
        ended_by_thread: number(bytes)?,
        definition: BTreeSet::new(),
        discarded_entries: number(bytes)?,
        peak_bytes: if bytes.arbitrary()? { Some(number(bytes)?) } else { None },
        peak_uncertainty_bytes: number(bytes)?,
        lost: number(bytes)?,
    })
}

/// A value for each run, where there are some and not too many.
fn of_runs<'a, T>(
    bytes: &mut Unstructured<'a>,
    runs: u64,
    mut one: impl FnMut(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    if runs > 1 && runs < 20 { (0..runs).map(|_| one(bytes)).collect() } else { Ok(Vec::new()) }
}

fn row(bytes: &mut Unstructured<'_>, windows: usize, stacks: usize, runs: u64) -> Result<Row> {
    let entry =
        |bytes: &mut Unstructured<'_>| Ok(if bytes.arbitrary()? { Some(number(bytes)?) } else { None });
    Ok(Row {
        window: index(bytes, windows)?,
        stack: index(bytes, stacks)?,
        counts: counts(bytes)?,
        entries: entry(bytes)?,
        first_entry: entry(bytes)?,
        last_entry: entry(bytes)?,
        repeats: of_runs(bytes, runs, |bytes| {
            Ok(RepeatValue { allocations: number(bytes)?, bytes: number(bytes)? })
        })?,
    })
}

fn counts(bytes: &mut Unstructured<'_>) -> Result<Counts> {
    Ok(Counts {
        allocations: number(bytes)?,
        bytes: number(bytes)?,
        freed: number(bytes)?,
        freed_bytes: number(bytes)?,
        freed_later: number(bytes)?,
        freed_later_bytes: number(bytes)?,
        reallocs: number(bytes)?,
        reallocs_in_place: number(bytes)?,
        reallocs_moved: number(bytes)?,
        temporary: number(bytes)?,
        temporary_bytes: number(bytes)?,
        failed: number(bytes)?,
        reallocs_to_zero: number(bytes)?,
        discarded: number(bytes)?,
        discarded_bytes: number(bytes)?,
    })
}

fn total(bytes: &mut Unstructured<'_>) -> Result<ThreadTotal> {
    Ok(ThreadTotal {
        allocations: number(bytes)?,
        bytes: number(bytes)?,
        freed: number(bytes)?,
        freed_bytes: number(bytes)?,
    })
}

fn losses(bytes: &mut Unstructured<'_>) -> Result<Losses> {
    Ok(Losses {
        reentrant: number(bytes)?,
        table_full: number(bytes)?,
        thread: number(bytes)?,
        blocks: number(bytes)?,
        unseen_frees: number(bytes)?,
        windows: number(bytes)?,
        window_calls: number(bytes)?,
        stray_ends: number(bytes)?,
        stray_resumes: number(bytes)?,
        restarts: number(bytes)?,
        unplaced: number(bytes)?,
        modules: number(bytes)?,
        thread_totals: number(bytes)?,
        images: number(bytes)?,
        damaged: number(bytes)?,
    })
}
