//! Hand-made snapshots.

use heaptally_profile::model::{Capture, Executor};
use heaptally_segment::layout::{
    ASYNC_BROKEN, ASYNC_ORIGIN, ASYNC_UNKNOWN, NODE_ADDRESS_MASK, NOTE_NAMESPACE, OPTION_NAMED_WINDOWS, Root,
};
use heaptally_segment::read::{Frame, Link, Oracle};

use super::*;

/// An area with one process window, a module at 0x7000_0000 (bias 0x6fff_0000) and a stack of two frames, which
/// allocated 5 times.
fn area() -> Area {
    Area {
        state: State::Attached,
        pid: 7,
        flags: FLAG_MALLOC_IS_OURS | FLAG_LIBC_ALLOCATOR | FLAG_LOADER_WATCHED | FLAG_FORK_SAFE,
        libc_version: b"2.36".to_vec(),
        image_path: b"/bin/\xffbench".to_vec(),
        allocator_path: b"/lib/libc.so.6".to_vec(),
        foreign_path: Vec::new(),
        next_program: Vec::new(),
        command: Vec::new(),
        request: Vec::new(),
        windows: vec![window(read::WindowKind::Process)],
        modules: vec![module(b"/bin/\xffbench", 0x6fff_0000)],
        frames: vec![
            frame(0x7000_1000, 0, Some(0), Link::Root(Root::Complete)),
            frame(0x7000_2000, 0, Some(0), Link::Frame(0)),
        ],
        origins: HashMap::new(),
        rows: vec![row(Link::Frame(1), EntryPoint::Malloc)],
        threads: Vec::new(),
        losses: read::Losses::default(),
        frees_from_before: 3,
        bootstrap_allocations: 0,
        unloads: 0,
        oracle: Oracle::default(),
        plans: Vec::new(),
        plans_late: 0,
        lost_ranges: 0,
    }
}

fn window(kind: read::WindowKind) -> read::Window {
    read::Window {
        name: b"w".to_vec(),
        kind,
        depth: 0,
        entries: 4,
        iterations: 0,
        iteration_calls: 0,
        untold_entries: 0,
        crossed_ends: 1,
        stray_ends: 2,
        ended_by_thread: 3,
        stray_pauses: 0,
        discarded_entries: 2,
        peak_bytes: 99,
        recorders: 1,
        lost: 6,
    }
}

fn module(path: &[u8], bias: u64) -> read::Module {
    read::Module {
        path: path.to_vec(),
        build_id: vec![0x0a, 0xff],
        bias,
        start: 0x7000_0000,
        end: 0x7001_0000,
        text_svma: 0x1_0000,
        text_svma_end: 0x2_0000,
        text_offset: 0x1000,
        load_node: 0,
        unload_node: u32::MAX,
        inode: 0,
        device: 0,
        notes: 0,
    }
}

fn frame(address: u64, flags: u64, module: Option<usize>, caller: Link) -> Frame {
    Frame { address: address & NODE_ADDRESS_MASK, flags, module, caller }
}

fn row(leaf: Link, entry_point: EntryPoint) -> read::Row {
    read::Row {
        window: 0,
        leaf,
        entry_point,
        entries: Some(2),
        first_entry: Some(1),
        last_entry: Some(4),
        counts: read::Counts { allocations: 5, bytes: 50, freed: 3, failed: 1, ..read::Counts::default() },
    }
}

fn snapshot(areas: Vec<Area>) -> Snapshot {
    Snapshot {
        options: 0,
        names: Vec::new(),
        areas,
        empty_areas: 0,
        without_area: 0,
        refused: 0,
        children: read::Children::default(),
    }
}

fn converted(areas: Vec<Area>) -> Profile {
    let profile = profile(&snapshot(areas), Environment::default(), Path::new("/recorder.so"));
    profile.validate().unwrap();
    profile
}

#[test]
fn the_allocation_function_is_the_leaf() {
    let profile = converted(vec![area()]);
    let stack = &profile.stacks[profile.rows[0].stack];
    let places: Vec<(FrameKind, Option<usize>, u64)> = stack
        .locations
        .iter()
        .map(|at| &profile.locations[*at])
        .map(|location| (location.kind, location.module, location.address))
        .collect();
    // Addresses as the file has them.
    assert_eq!(
        places,
        [
            (FrameKind::EntryPoint, None, 0),
            (FrameKind::Return, Some(0), 0x1_2000),
            (FrameKind::Return, Some(0), 0x1_1000)
        ]
    );
    let line = profile.locations[stack.locations[0]].lines[0];
    assert_eq!(profile.functions[line.function].name, "malloc");
    assert_eq!((stack.capture, stack.cut_reason.as_str()), (Capture::Complete, ""));
}

#[test]
fn rows_windows_and_images_keep_what_they_say() {
    let profile = converted(vec![area()]);
    let row = &profile.rows[0];
    assert_eq!(
        (row.counts.allocations, row.counts.bytes, row.counts.freed, row.counts.failed),
        (5, 50, 3, 1)
    );
    assert_eq!((row.entries, row.first_entry, row.last_entry), (Some(2), Some(1), Some(4)));
    let window = &profile.windows[0];
    assert_eq!((window.crossed_ends, window.stray_ends, window.ended_by_thread, window.lost), (1, 2, 3, 6));
    assert_eq!((window.peak_bytes, window.peak_uncertainty_bytes), (Some(99), 0));
    let image = &profile.images[0];
    assert_eq!((image.label.as_str(), image.path.as_str()), ("\\xffbench", "/bin/\\xffbench"));
    assert_eq!((image.pid, image.replaced, image.in_path, image.warnings.len()), (7, false, true, 0));
    assert_eq!(profile.modules[0].build_id, "0aff");
    assert_eq!((profile.environment.libc.as_str(), profile.environment.frees_from_before), ("glibc 2.36", 3));
    assert!(profile.environment.lifetimes);
}

#[test]
fn iterations_are_those_told_or_the_entries() {
    let iterations = |calls, told| {
        let mut area = area();
        area.windows[0].iteration_calls = calls;
        area.windows[0].iterations = told;
        let window = converted(vec![area]).windows.remove(0);
        (window.iterations, window.iterations_told)
    };
    assert_eq!(iterations(0, 0), (4, false));
    assert_eq!(iterations(2, 1000), (1000, true));
    // Told to be none: not the same as not told.
    assert_eq!(iterations(1, 0), (0, true));
}

#[test]
fn an_automatic_window_may_stay_open() {
    for (kind, unfinished) in [
        (read::WindowKind::Automatic, false),
        (read::WindowKind::Process, true),
        (read::WindowKind::Thread, true),
    ] {
        let mut area = area();
        area.windows[0].kind = kind;
        area.windows[0].depth = 1;
        assert_eq!(converted(vec![area]).windows[0].unfinished, unfinished, "{kind:?}");
    }
}

#[test]
fn a_peak_is_as_exact_as_its_threads() {
    let mut area = area();
    area.windows[0].recorders = 3;
    area.windows[0].peak_bytes = -5;
    let profile = converted(vec![area.clone()]);
    assert_eq!(profile.windows[0].peak_uncertainty_bytes, 2 * 64 * 1024);
    assert_eq!(profile.windows[0].peak_bytes, Some(0));

    let options = OPTION_NO_LIFETIMES | OPTION_NAMED_WINDOWS;
    let without = super::profile(
        &Snapshot { options, ..snapshot(vec![area]) },
        Environment::default(),
        Path::new("/recorder.so"),
    );
    assert_eq!(without.windows[0].peak_bytes, None);
    assert!(!without.environment.lifetimes);
}

#[test]
fn frames_have_their_kinds() {
    let kinds = [
        (NODE_ELIDED | 1, FrameKind::Elided),
        (NODE_SIGNAL, FrameKind::Signal),
        (NODE_INTERRUPTED, FrameKind::Interrupted),
        (NODE_INTERRUPTED | NODE_FRAME_POINTER, FrameKind::Interrupted),
        (NODE_ASYNC, FrameKind::Async),
        (NODE_FRAME_POINTER, FrameKind::FramePointer),
        (0, FrameKind::Return),
    ];
    for (flags, kind) in kinds {
        let location =
            location_of(&area(), &frame(0x7000_1000, flags, Some(0), Link::Root(Root::Complete)), 0);
        assert_eq!(location.kind, kind);
        assert_eq!(location.address, if kind == FrameKind::Elided { 0 } else { 0x1_1000 });
    }
    // Made at run time: it has no file, so the address is that in memory.
    let outside = location_of(&area(), &frame(0x1234, 0, None, Link::Root(Root::Complete)), 0);
    assert_eq!((outside.module, outside.address), (None, 0x1234));
}

#[test]
fn how_a_stack_ended_is_told() {
    let capture = |root, flags| {
        let mut area = area();
        area.frames[0] = frame(0x7000_1000, flags, Some(0), Link::Root(root));
        let stack = converted(vec![area]).stacks.remove(0);
        (stack.capture, !stack.cut_reason.is_empty())
    };
    assert_eq!(capture(Root::Complete, 0), (Capture::Complete, false));
    assert_eq!(capture(Root::Complete, NODE_FRAME_POINTER), (Capture::FramePointer, false));
    for root in [Root::CutNoInformation, Root::CutBadInformation, Root::CutBadStack, Root::CutDepth] {
        assert_eq!(capture(root, NODE_FRAME_POINTER), (Capture::Cut, true), "{root:?}");
    }
}

/// An async function that two executors resumed, with one caller: one stack, and what the executors had beside it.
#[test]
fn executors_are_no_part_of_a_stack() {
    let mut area = area();
    let code = |at: u64, caller| frame(0x7000_1000 + at, 0, Some(0), caller);
    let note = |what: u64, caller| frame(what, NODE_ASYNC, None, caller);
    area.frames = vec![
        code(0x10, Link::Root(Root::Complete)),
        code(0x20, Link::Frame(0)),
        // The function and what it called, twice.
        code(0x30, Link::Frame(0)),
        code(0x40, Link::Frame(2)),
        code(0x30, Link::Frame(1)),
        code(0x40, Link::Frame(4)),
        // Each with its callers.
        note(2, Link::Frame(3)),
        frame(0x7000_1500, NODE_ASYNC, Some(0), Link::Frame(6)),
        frame(0x7000_1600, NODE_ASYNC, Some(0), Link::Frame(7)),
        note(2, Link::Frame(5)),
        frame(0x7000_1500, NODE_ASYNC, Some(0), Link::Frame(9)),
        frame(0x7000_1600, NODE_ASYNC, Some(0), Link::Frame(10)),
        // One whose second caller was not found, and one without any.
        note(ASYNC_BROKEN, Link::Frame(7)),
        note(ASYNC_UNKNOWN | 2, Link::Frame(3)),
    ];
    area.rows = [8, 11, 12, 13].map(|leaf| row(Link::Frame(leaf), EntryPoint::Malloc)).into();
    let mut profile = converted(vec![area]);
    profile.normalize().unwrap();
    let places = |of: &[LocationId]| -> Vec<u64> {
        of.iter().map(|at| profile.locations[*at].address & 0xfff).collect()
    };
    let mut found: Vec<_> = profile
        .rows
        .iter()
        .map(|row| {
            let stack = &profile.stacks[row.stack];
            let executors = profile.executors.iter().filter(|executor| executor.stack == row.stack);
            let beside: Vec<_> = executors
                .map(|Executor { locations, allocations, .. }| (places(locations), *allocations))
                .collect();
            (stack.capture, places(&stack.locations), row.counts.allocations, row.entries, beside)
        })
        .collect();
    found.sort_by_key(|(capture, places, ..)| (*capture, places.len()));
    assert_eq!(
        found,
        [
            (
                Capture::Complete,
                vec![0, 0x40, 0x30, 0x500, 0x600],
                10,
                None,
                vec![(vec![0x10], 5), (vec![0x20, 0x10], 5)]
            ),
            (Capture::AsyncUnknown, vec![0, 0x40, 0x30], 5, Some(2), vec![(vec![0x10], 5)]),
            (Capture::AsyncUnknown, vec![0, 0x40, 0x30, 0x500], 5, Some(2), vec![(vec![0x10], 5)]),
        ]
    );
}

/// A task that was created by a stack in another task, which a function on a stack of its own created.
#[test]
fn what_created_a_task_stands_behind_it() {
    let mut area = area();
    let code = |at: u64, caller| frame(0x7000_1000 + at, 0, Some(0), caller);
    let note = |what: u64, caller| frame(what, NODE_ASYNC, None, caller);
    let caller_of = |at: u64, callee| frame(0x7000_1000 + at, NODE_ASYNC, Some(0), callee);
    area.frames = vec![
        code(0x10, Link::Root(Root::Complete)),
        code(0x20, Link::Frame(0)),
        note(1, Link::Frame(1)),
        caller_of(0x30, Link::Frame(2)),
        note(ASYNC_ORIGIN | 77, Link::Frame(3)),
        code(0x40, Link::Root(Root::Complete)),
        note(1, Link::Frame(1)),
        caller_of(0x50, Link::Frame(6)),
        note(ASYNC_ORIGIN | 88, Link::Frame(7)),
        // One that is not known.
        note(ASYNC_ORIGIN | 99, Link::Frame(7)),
    ];
    area.origins = HashMap::from([(77, Link::Frame(5)), (88, Link::Frame(4))]);
    area.rows = [8, 9].map(|leaf| row(Link::Frame(leaf), EntryPoint::Malloc)).into();
    let profile = converted(vec![area]);
    let stacks: Vec<(Capture, Vec<(u64, FrameKind)>)> = profile
        .stacks
        .iter()
        .map(|stack| {
            let places = stack.locations.iter().map(|at| &profile.locations[*at]);
            (stack.capture, places.skip(1).map(|place| (place.address & 0xfff, place.kind)).collect())
        })
        .collect();
    let own = [(0x20, FrameKind::Return), (0x50, FrameKind::Async)];
    let behind = [
        (0, FrameKind::TaskOrigin),
        (0x20, FrameKind::Return),
        (0x30, FrameKind::Async),
        (0, FrameKind::TaskOrigin),
        (0x40, FrameKind::Return),
    ];
    assert_eq!(
        stacks,
        [(Capture::Complete, [&own[..], &behind[..]].concat()), (Capture::Complete, own.into())]
    );
}

/// A cut walk can end before its first frame.
#[test]
fn a_stack_may_be_empty() {
    let mut area = area();
    area.rows = vec![row(Link::Root(Root::CutBadStack), EntryPoint::Calloc)];
    let profile = converted(vec![area]);
    assert_eq!(profile.stacks[0].locations.len(), 1);
    assert_eq!(profile.stacks[0].capture, Capture::Cut);
}

#[test]
fn images_stand_side_by_side() {
    let mut second = area();
    second.state = State::Replaced;
    second.modules = vec![module(b"", 0), module(b"/bin/other", 0x7000_0000)];
    second.frames[0].module = Some(1);
    second.frames[1].module = None;
    second.rows.push(row(Link::Frame(0), EntryPoint::NewArrayNothrow));
    second.threads = vec![read::ThreadLife {
        state: 1,
        tid: 9,
        lives: 1,
        name: b"main".to_vec(),
        last_name: b"busy".to_vec(),
        start: Some(0),
        totals: vec![(0, read::ThreadTotal { allocations: 10, ..read::ThreadTotal::default() })],
    }];
    let profile = converted(vec![area(), second]);
    assert!(profile.images[1].replaced);
    assert_eq!(profile.windows[1].image, 1);
    let windows: Vec<usize> = profile.rows.iter().map(|row| row.window).collect();
    assert_eq!(windows, [0, 1, 1]);
    let outer = |row: &Row| profile.locations[*profile.stacks[row.stack].locations.last().unwrap()].clone();
    assert_eq!((outer(&profile.rows[0]).module, outer(&profile.rows[1]).module), (Some(0), Some(2)));
    assert_eq!(profile.modules[1].path, "[vdso]");
    // One location stands for `malloc` in both.
    let leaf = |row: &Row| profile.stacks[row.stack].locations[0];
    assert_eq!(leaf(&profile.rows[0]), leaf(&profile.rows[1]));
    let new = profile.locations[leaf(&profile.rows[2])].lines[0].function;
    assert_eq!(profile.functions[new].system_name, "_ZnamRKSt9nothrow_t");
    assert_eq!(profile.functions[new].name, EntryPoint::NewArrayNothrow.name());

    let thread = &profile.threads[0];
    assert_eq!((thread.image, thread.tid, thread.name.as_str()), (1, 9, "main"));
    assert_eq!(thread.totals[&1].allocations, 10);
    assert_eq!(profile.locations[thread.start.unwrap()].module, Some(2));
}

#[test]
fn losses_add_up() {
    let mut one = area();
    one.losses = read::Losses { reentrant: 1, full: 2, damaged: u64::MAX, ..read::Losses::default() };
    let two = one.clone();
    let snapshot = Snapshot { without_area: 2, refused: 1, ..snapshot(vec![one, two]) };
    let losses = profile(&snapshot, Environment::default(), Path::new("/recorder.so")).losses;
    assert_eq!((losses.reentrant, losses.table_full, losses.images), (2, 4, 3));
    assert_eq!(losses.damaged, u64::MAX);
}

#[test]
fn what_was_not_seen_is_a_warning() {
    let warnings = |flags, notes: &[u32]| {
        let mut area = area();
        area.flags = flags;
        let noted = |notes: &u32| read::Module { notes: *notes, ..module(b"/lib/plugin.so", 0) };
        area.modules.extend(notes.iter().map(noted));
        converted(vec![area]).images.remove(0).warnings
    };
    let usual = area().flags;
    assert!(warnings(usual, &[0, NOTE_NAMESPACE]).is_empty());
    for (notes, word) in [
        ([NOTE_BYPASS, NOTE_BYPASS], "RTLD_DEEPBIND"),
        ([NOTE_NAMESPACE | NOTE_NAMESPACE_FIRST, NOTE_NAMESPACE], "dlmopen"),
    ] {
        let said = warnings(usual, &notes);
        let [warning] = said.as_slice() else { panic!("{said:?}") };
        assert!(warning.starts_with(INCOMPLETE) && warning.contains("/lib/plugin.so"), "{warning}");
        assert!(warning.contains(word), "{warning}");
    }
    assert_eq!(warnings(usual | FLAG_LOOPS_UNNAMED, &[]).len(), 1);
    assert_eq!(warnings(usual & !FLAG_FORK_SAFE, &[]).len(), 1);
}
