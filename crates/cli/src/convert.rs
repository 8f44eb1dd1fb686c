//! A segment's snapshot as a profile, not symbolised yet.
//!
//! Addresses become those of the files (SVMAs), the allocation function that the program called becomes each stack's
//! first frame, and what the segment has per image is put side by side.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use heaptally_profile::model::{
    ChildProgram, Children, Counts, Environment, FrameKind, Function, FunctionId, INCOMPLETE, Image, Line,
    Location, LocationId, Losses, Module, Profile, Row, ThreadLife, ThreadTotal, Window, WindowKind,
};
use heaptally_profile::path_text::escape_path;
use heaptally_segment::layout::{
    ASYNC_ORIGIN, EntryPoint, FLAG_CHILD, FLAG_FORK_SAFE, FLAG_LIBC_ALLOCATOR, FLAG_LOADER_WATCHED,
    FLAG_LOOPS_UNNAMED, FLAG_MALLOC_IS_OURS, FLAG_NEW_IS_ALLOCATOR, FLAG_SMALL_TABLES, NODE_ASYNC,
    NODE_ELIDED, NODE_FRAME_POINTER, NODE_INTERRUPTED, NODE_SIGNAL, NOTE_BYPASS, NOTE_HIDDEN_RESUMERS,
    NOTE_NAMESPACE_FIRST, OPTION_FOLLOW_CHILDREN, OPTION_NO_LIFETIMES, OPTION_TASK_ORIGINS, PEAK_BATCH_BYTES,
};
use heaptally_segment::read::{self, Area, Snapshot, State};

use crate::message::quote_bytes;
use stack::Stacks;

mod stack;
#[cfg(test)]
mod tests;

/// Whether nothing was lost, cut or missed.
pub(crate) fn is_complete(profile: &Profile) -> bool {
    let is_cut = profile.window_captures().iter().any(|captures| captures.cut > 0);
    let has_lost =
        profile.losses != Losses::default() || profile.windows.iter().any(|window| window.lost > 0);
    !is_cut
        && !has_lost
        && !profile.children.is_incomplete()
        && !profile.images.iter().any(|image| image.is_by_passed() || image.incomplete().next().is_some())
}

/// The profile of a snapshot. Frames of `recorder`, the library that recorded, are left out: a library's `operator new`
/// that calls `malloc` is called by the recorder's.
pub(crate) fn profile(snapshot: &Snapshot, environment: Environment, recorder: &Path) -> Profile {
    let lifetimes = snapshot.options & OPTION_NO_LIFETIMES == 0;
    let mut profile = Profile { environment, ..Profile::default() };
    profile.environment.lifetimes = lifetimes;
    profile.environment.task_origins = snapshot.options & OPTION_TASK_ORIGINS != 0;
    profile.losses.images = u64::from(snapshot.without_area) + u64::from(snapshot.refused);
    profile.children = children_of(snapshot);
    let mut entry_points = EntryPoints::default();
    for area in &snapshot.areas {
        add_area(&mut profile, &mut entry_points, area, lifetimes, recorder);
    }
    profile
}

/// The locations that stand for allocation functions.
#[derive(Default)]
struct EntryPoints(HashMap<u32, LocationId>);

impl EntryPoints {
    fn location(&mut self, profile: &mut Profile, entry_point: EntryPoint) -> LocationId {
        *self.0.entry(entry_point as u32).or_insert_with(|| {
            let name = entry_point.name().to_owned();
            let system_name = mangled(entry_point).map_or_else(|| name.clone(), str::to_owned);
            let function: FunctionId = profile.functions.len();
            profile.functions.push(Function { name, system_name, ..Function::default() });
            profile.locations.push(Location {
                kind: FrameKind::EntryPoint,
                lines: vec![Line { function, line: 0 }],
                ..Location::default()
            });
            profile.locations.len() - 1
        })
    }
}

/// The name that a C++ program calls; `None` for a C function. Without it pprof tools shorten the name for people.
fn mangled(entry_point: EntryPoint) -> Option<&'static str> {
    match entry_point {
        EntryPoint::New => Some("_Znwm"),
        EntryPoint::NewArray => Some("_Znam"),
        EntryPoint::NewNothrow => Some("_ZnwmRKSt9nothrow_t"),
        EntryPoint::NewArrayNothrow => Some("_ZnamRKSt9nothrow_t"),
        EntryPoint::NewAligned => Some("_ZnwmSt11align_val_t"),
        EntryPoint::NewArrayAligned => Some("_ZnamSt11align_val_t"),
        EntryPoint::NewAlignedNothrow => Some("_ZnwmSt11align_val_tRKSt9nothrow_t"),
        EntryPoint::NewArrayAlignedNothrow => Some("_ZnamSt11align_val_tRKSt9nothrow_t"),
        _ => None,
    }
}

fn add_area(
    profile: &mut Profile,
    entry_points: &mut EntryPoints,
    area: &Area,
    lifetimes: bool,
    recorder: &Path,
) {
    let image = profile.images.len();
    profile.images.push(image_of(area));
    let environment = &mut profile.environment;
    if environment.libc.is_empty() {
        environment.libc = format!("glibc {}", String::from_utf8_lossy(&area.libc_version));
    }
    environment.frees_from_before = environment.frees_from_before.saturating_add(area.frees_from_before);

    let first_window = profile.windows.len();
    profile.windows.extend(area.windows.iter().map(|window| window_of(window, image, lifetimes)));
    let first_module = profile.modules.len();
    profile.modules.extend(area.modules.iter().map(module_of));
    let first_location = profile.locations.len();
    profile.locations.extend(area.frames.iter().map(|frame| location_of(area, frame, first_module)));

    let recorder = area.modules.iter().position(|module| module.path == recorder.as_os_str().as_bytes());
    let mut stacks = Stacks::new(area, first_location, recorder);
    for row in &area.rows {
        let entry_point = entry_points.location(profile, row.entry_point);
        let whose = (row.leaf, entry_point);
        let row = Row {
            window: first_window + row.window,
            counts: counts_of(&row.counts),
            entries: row.entries,
            first_entry: row.first_entry,
            last_entry: row.last_entry,
            ..Row::default()
        };
        stacks.add(profile, whose, row);
    }
    profile
        .threads
        .extend(area.threads.iter().map(|thread| thread_of(thread, image, first_window, first_location)));
    add_losses(&mut profile.losses, &area.losses);
}

fn image_of(area: &Area) -> Image {
    let path = escape_path(&area.image_path);
    let label =
        Path::new(&path).file_name().map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned());
    let mut warnings = Vec::new();
    let is_set = |flag| area.flags & flag != 0;
    if !is_set(FLAG_LIBC_ALLOCATOR) && is_set(FLAG_MALLOC_IS_OURS) {
        let allocator = escape_path(&area.allocator_path);
        warnings.push(format!("the allocator is not the C library's but that of {allocator}"));
    }
    if is_set(FLAG_NEW_IS_ALLOCATOR) {
        warnings.push("operator new is an allocator's own, and was recorded by itself".to_owned());
    }
    // A library that came again and again is one.
    warnings.extend(area.modules.iter().filter_map(by_passing).collect::<BTreeSet<String>>());
    if is_set(FLAG_SMALL_TABLES) {
        let small = "the address space is limited (ulimit -v), so the recorder's tables were made small";
        warnings.push(match area.losses.full {
            0 => small.to_owned(),
            _ => format!("{small}, too small for this program: raise the limit (ulimit -v unlimited)"),
        });
    }
    if !is_set(FLAG_LOADER_WATCHED) {
        warnings.push(
            "this loader could not be watched: stacks through a library that was unloaded may be named wrongly".to_owned(),
        );
    }
    if !is_set(FLAG_FORK_SAFE) {
        warnings.push(
            "this kernel does not wipe pages on fork: children made by raw clone may have been counted"
                .to_owned(),
        );
    }
    if is_set(FLAG_LOOPS_UNNAMED) {
        warnings.push(
            "the names of Google Benchmark's benchmarks were not seen: several are one window; \
             --harness google-benchmark looks for them"
                .to_owned(),
        );
    }
    if area.bootstrap_allocations > 0 {
        warnings.push(format!("{} allocations came before the recorder", area.bootstrap_allocations));
    }
    for window in area.windows.iter().filter(|window| window.untold_entries > 0) {
        let (name, entries) = (quote_bytes(&window.name), window.untold_entries);
        let (runs, its) =
            if entries == 1 { ("1 run".to_owned(), "its") } else { (format!("{entries} runs"), "their") };
        warnings.push(format!(
            "window {name}: {runs} of the benchmark left {its} loop early (SkipWithError?), after nobody knows how many \
             iterations: allocations per iteration are too many"
        ));
    }
    Image {
        label,
        path,
        pid: area.pid,
        replaced: area.state == State::Replaced,
        in_path: is_set(FLAG_MALLOC_IS_OURS),
        allocator: escape_path(&area.allocator_path),
        warnings,
        processes: u64::from(is_set(FLAG_CHILD)),
    }
}

/// What is said of an object whose allocations, or whose callers, were not seen.
fn by_passing(module: &read::Module) -> Option<String> {
    let path = escape_path(&module.path);
    if module.notes & NOTE_NAMESPACE_FIRST != 0 {
        return Some(format!(
            "{INCOMPLETE}{path} was loaded in a namespace of its own (dlmopen, LD_AUDIT), and what it and its libraries \
             allocate there is not recorded"
        ));
    }
    if module.notes & NOTE_HIDDEN_RESUMERS != 0 {
        return Some(format!(
            "{path} has Swift's concurrency runtime in it and no symbol table, so callers of async functions are not found: \
             keep its symbols (no -s, no strip)"
        ));
    }
    (module.notes & NOTE_BYPASS != 0).then(|| {
        format!(
            "{INCOMPLETE}{path} was loaded with RTLD_DEEPBIND, so its own allocations by-pass the recorder"
        )
    })
}

/// The children that were not recorded.
fn children_of(snapshot: &Snapshot) -> Children {
    let program = |(name, count): &(Vec<u8>, u64)| ChildProgram { program: escape_path(name), count: *count };
    Children {
        followed: snapshot.options & OPTION_FOLLOW_CHILDREN != 0,
        not_recorded: snapshot.children.programs.iter().map(program).collect(),
        unnamed: snapshot.children.unnamed,
        ..Children::default()
    }
}

fn window_of(window: &read::Window, image: usize, lifetimes: bool) -> Window {
    let kind = match window.kind {
        read::WindowKind::Automatic => WindowKind::Automatic,
        read::WindowKind::Process => WindowKind::Process,
        read::WindowKind::Thread => WindowKind::Thread,
        read::WindowKind::Function => WindowKind::Function,
    };
    let iterations_told = window.iteration_calls > 0;
    let held_back = u64::from(window.recorders.saturating_sub(1)) * PEAK_BATCH_BYTES.unsigned_abs();
    Window {
        name: escape_path(&window.name),
        image,
        kind,
        entries: window.entries,
        discarded_entries: window.discarded_entries,
        iterations: if iterations_told { window.iterations } else { window.entries },
        iterations_told,
        unfinished: window.depth > 0 && !matches!(kind, WindowKind::Automatic | WindowKind::Function),
        crossed_ends: window.crossed_ends,
        stray_ends: window.stray_ends,
        ended_by_thread: window.ended_by_thread,
        peak_bytes: lifetimes.then(|| u64::try_from(window.peak_bytes).unwrap_or(0)),
        peak_uncertainty_bytes: held_back,
        lost: window.lost,
        ..Window::default()
    }
}

fn module_of(module: &read::Module) -> Module {
    let is_vdso = module.path.is_empty();
    Module {
        path: if is_vdso { "[vdso]".to_owned() } else { escape_path(&module.path) },
        build_id: module.build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        text_svma: module.text_svma,
        text_svma_end: module.text_svma_end,
        text_offset: module.text_offset,
        symbol_problem: None,
    }
}

fn location_of(area: &Area, frame: &read::Frame, first_module: usize) -> Location {
    let is_set = |flag| frame.flags & flag != 0;
    let kind = if is_set(NODE_ELIDED) {
        FrameKind::Elided
    } else if is_set(NODE_ASYNC) && frame.address & ASYNC_ORIGIN != 0 {
        FrameKind::TaskOrigin
    } else if is_set(NODE_SIGNAL) {
        FrameKind::Signal
    } else if is_set(NODE_INTERRUPTED) {
        FrameKind::Interrupted
    } else if is_set(NODE_ASYNC) {
        FrameKind::Async
    } else if is_set(NODE_FRAME_POINTER) {
        FrameKind::FramePointer
    } else {
        FrameKind::Return
    };
    if matches!(kind, FrameKind::Elided | FrameKind::TaskOrigin) {
        return Location { kind, ..Location::default() };
    }
    let bias = frame.module.and_then(|module| area.modules.get(module)).map_or(0, |module| module.bias);
    Location {
        module: frame.module.map(|module| first_module + module),
        address: frame.address.wrapping_sub(bias),
        kind,
        lines: Vec::new(),
    }
}

fn counts_of(counts: &read::Counts) -> Counts {
    Counts {
        allocations: counts.allocations,
        bytes: counts.bytes,
        freed: counts.freed,
        freed_bytes: counts.freed_bytes,
        freed_later: counts.freed_later,
        freed_later_bytes: counts.freed_later_bytes,
        reallocs: counts.reallocs,
        reallocs_in_place: counts.reallocs_in_place,
        reallocs_moved: counts.reallocs_moved,
        temporary: counts.temporary,
        temporary_bytes: counts.temporary_bytes,
        failed: counts.failed,
        reallocs_to_zero: counts.reallocs_to_zero,
        discarded: counts.discarded,
        discarded_bytes: counts.discarded_bytes,
    }
}

fn thread_of(
    thread: &read::ThreadLife,
    image: usize,
    first_window: usize,
    first_location: usize,
) -> ThreadLife {
    let total = |total: &read::ThreadTotal| ThreadTotal {
        allocations: total.allocations,
        bytes: total.bytes,
        freed: total.freed,
        freed_bytes: total.freed_bytes,
    };
    ThreadLife {
        image,
        tid: thread.tid,
        lives: u64::from(thread.lives),
        name: escape_path(&thread.name),
        last_name: escape_path(&thread.last_name),
        start: thread.start.map(|frame| first_location + frame),
        totals: thread.totals.iter().map(|(window, sums)| (first_window + window, total(sums))).collect(),
    }
}

pub(crate) fn add_losses(sum: &mut Losses, losses: &read::Losses) {
    let pairs = [
        (&mut sum.reentrant, losses.reentrant),
        (&mut sum.table_full, losses.full),
        (&mut sum.thread, losses.thread),
        (&mut sum.blocks, losses.blocks),
        (&mut sum.unseen_frees, losses.unseen_frees),
        (&mut sum.windows, losses.windows),
        (&mut sum.window_calls, losses.window_calls),
        (&mut sum.stray_ends, losses.stray_ends),
        (&mut sum.stray_resumes, losses.stray_resumes),
        (&mut sum.restarts, losses.restarts),
        (&mut sum.unplaced, losses.unplaced),
        (&mut sum.modules, losses.modules),
        (&mut sum.thread_totals, losses.totals),
        (&mut sum.damaged, losses.damaged),
    ];
    for (total, amount) in pairs {
        *total = total.saturating_add(amount);
    }
}
