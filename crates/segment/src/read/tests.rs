//! Hand-made files.

use core::mem::{offset_of, size_of};
use core::sync::atomic::AtomicU64;
use std::os::unix::fs::FileExt;
use std::string::ToString;

use proptest::prelude::*;

use super::*;
use crate::layout::{
    ASYNC_ORIGIN, AreaHeader, CHILD_NAME_BYTES, CHILD_NAME_TAKEN, CHILD_NAME_WRITTEN, CHILDREN_OFFSET,
    COUNTERS, ChildName, Counters, DIRECTORIES, DIRECTORY_BYTES, ENTERED_ENTRY_BITS, EntryPoint, FIRST_NODE,
    MODULES, NODE_ASYNC, NODE_INTERRUPTED, NODES, Node, ROWS, STATE_ATTACHED, STRINGS, THREADS, TOTALS,
    WINDOWS,
};

mod attempt;

/// A file that is being made.
struct Maker(File);

impl Maker {
    /// A file with one attached area, its tables all empty.
    fn new() -> Self {
        let maker = Self(tempfile::tempfile().unwrap());
        maker.u64(offset_of!(FileHeader, magic) as u64, MAGIC);
        maker.u32(offset_of!(FileHeader, version) as u64, VERSION);
        maker.u64(offset_of!(FileHeader, area_bytes) as u64, AREA_BYTES);
        maker.u32(offset_of!(FileHeader, area_limit) as u64, AREA_LIMIT);
        maker.u32(offset_of!(FileHeader, areas_taken) as u64, 1);
        maker.header(offset_of!(AreaHeader, state), STATE_ATTACHED);
        maker
    }

    fn bytes(&self, offset: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, offset).unwrap();
    }

    fn u32(&self, offset: u64, number: u32) {
        self.bytes(offset, &number.to_le_bytes());
    }

    fn u64(&self, offset: u64, number: u64) {
        self.bytes(offset, &number.to_le_bytes());
    }

    fn header(&self, field: usize, number: u32) {
        self.u32(FIRST_AREA + field as u64, number);
    }

    fn used(&self, field: usize, number: u32) {
        let mut now = [0; 4];
        let _short = self.0.read_at(&mut now, FIRST_AREA + field as u64).unwrap();
        self.header(field, number.max(u32::from_le_bytes(now)));
    }

    fn window(&self, number: u32, kind: u32, name: &str) {
        let at = FIRST_AREA + WINDOWS.offset + u64::from(number) * size_of::<crate::layout::Window>() as u64;
        let name_at = number * 100;
        self.bytes(FIRST_AREA + STRINGS.offset + u64::from(name_at), name.as_bytes());
        self.u32(at + offset_of!(crate::layout::Window, kind) as u64, kind);
        self.u32(at + offset_of!(crate::layout::Window, name) as u64, name_at);
        self.u32(at + offset_of!(crate::layout::Window, name_len) as u64, name.len() as u32);
        self.u64(at + offset_of!(crate::layout::Window, entries) as u64, 5);
        self.used(offset_of!(AreaHeader, windows), number + 1);
        self.used(offset_of!(AreaHeader, strings), name_at + 100);
    }

    fn node(&self, number: u32, address: u64, parent: u32) {
        let at = FIRST_AREA + NODES.offset + u64::from(number) * size_of::<Node>() as u64;
        self.u64(at + offset_of!(Node, address) as u64, address);
        self.u32(at + offset_of!(Node, parent) as u64, parent);
        self.used(offset_of!(AreaHeader, nodes), number + 1);
    }

    fn row(&self, number: u32, window: u32, node: u32, entries: [u64; 3]) {
        let at = FIRST_AREA + ROWS.offset + u64::from(number) * size_of::<crate::layout::Row>() as u64;
        self.u32(at + offset_of!(crate::layout::Row, node) as u64, node);
        self.u32(at + offset_of!(crate::layout::Row, window) as u64, window);
        self.u32(at + offset_of!(crate::layout::Row, entry_point) as u64, EntryPoint::Malloc as u32);
        self.u64(at + offset_of!(crate::layout::Row, entries) as u64, entries[0]);
        self.u64(at + offset_of!(crate::layout::Row, first_entry) as u64, entries[1]);
        self.u64(at + offset_of!(crate::layout::Row, last_entry) as u64, entries[2]);
        self.used(offset_of!(AreaHeader, rows), number + 1);
    }

    fn chunk(&self, shard: u32, group: u32, chunk: u32) {
        let at = DIRECTORIES.offset + u64::from(shard) * DIRECTORY_BYTES + u64::from(group) * 4;
        self.u32(FIRST_AREA + at, chunk + 1);
        self.used(offset_of!(AreaHeader, shards), shard + 1);
        self.used(offset_of!(AreaHeader, chunks), chunk + 1);
    }

    fn counter(&self, chunk: u32, row: u32, field: usize, number: u64) {
        let at = COUNTERS.offset
            + u64::from(chunk) * crate::layout::CHUNK_BYTES
            + u64::from(row % 32) * size_of::<Counters>() as u64;
        self.u64(FIRST_AREA + at + field as u64, number);
    }

    fn module(&self, number: u32, path: &str, range: [u64; 2], nodes: [u32; 2]) {
        let at = FIRST_AREA + MODULES.offset + u64::from(number) * size_of::<crate::layout::Module>() as u64;
        let path_at = 100_000 + number * 100;
        self.bytes(FIRST_AREA + STRINGS.offset + u64::from(path_at), path.as_bytes());
        self.u32(at + offset_of!(crate::layout::Module, state) as u64, 1);
        self.u32(at + offset_of!(crate::layout::Module, path) as u64, path_at);
        self.u32(at + offset_of!(crate::layout::Module, path_len) as u64, path.len() as u32);
        self.u64(at + offset_of!(crate::layout::Module, start) as u64, range[0]);
        self.u64(at + offset_of!(crate::layout::Module, end) as u64, range[1]);
        self.u32(at + offset_of!(crate::layout::Module, load_node) as u64, nodes[0]);
        self.u32(at + offset_of!(crate::layout::Module, unload_node) as u64, nodes[1]);
        self.used(offset_of!(AreaHeader, modules), number + 1);
        self.used(offset_of!(AreaHeader, strings), path_at + 100);
    }

    fn area(&self) -> Area {
        read(&self.0).unwrap().areas.remove(0)
    }
}

const ALLOCATIONS: usize = offset_of!(Counters, allocations);

#[test]
fn refuses_what_is_no_segment() {
    let empty = tempfile::tempfile().unwrap();
    assert!(matches!(read(&empty), Err(Error::NotASegment { found: 0 })));

    let maker = Maker::new();
    maker.u32(offset_of!(FileHeader, version) as u64, VERSION + 1);
    let error = read(&maker.0).unwrap_err();
    assert_eq!(error.to_string(), std::format!("a segment of version {}, not of {VERSION}", VERSION + 1));

    let maker = Maker::new();
    maker.u64(offset_of!(FileHeader, area_bytes) as u64, 7);
    assert!(matches!(read(&maker.0), Err(Error::AreaSize { found: 7 })));
}

#[test]
fn tells_areas_apart() {
    let maker = Maker::new();
    maker.u32(offset_of!(FileHeader, areas_taken) as u64, AREA_LIMIT + 3);
    maker.u32(FIRST_AREA + 2 * AREA_BYTES, crate::layout::STATE_REPLACED);
    maker.bytes(offset_of!(FileHeader, names) as u64, b"one\0two\0");
    maker.u32(offset_of!(FileHeader, names_len) as u64, 8);
    let snapshot = read(&maker.0).unwrap();
    assert_eq!(snapshot.names, [b"one".to_vec(), b"two".to_vec()]);
    let states: Vec<State> = snapshot.areas.iter().map(|area| area.state).collect();
    assert_eq!(states, [State::Attached, State::Replaced]);
    assert_eq!((snapshot.empty_areas, snapshot.without_area), (AREA_LIMIT - 2, 3));
}

/// The worked example of the layout's docs, and a second shard.
#[test]
fn sums_a_row_over_its_shards() {
    let maker = Maker::new();
    maker.window(1, WINDOW_PROCESS, "w");
    maker.node(FIRST_NODE, 0x1000, Root::Complete as u32);
    maker.row(70, 1, FIRST_NODE, [3, 1, 4]);
    maker.chunk(2, 2, 8);
    maker.counter(8, 70, ALLOCATIONS, 30);
    maker.counter(8, 70, offset_of!(Counters, bytes), u64::MAX);
    maker.chunk(5, 2, 1);
    maker.counter(1, 70, ALLOCATIONS, 12);
    maker.counter(1, 70, offset_of!(Counters, bytes), 2);
    maker.counter(1, 71, ALLOCATIONS, 1000);

    let area = maker.area();
    let row = &area.rows[0];
    assert_eq!((area.rows.len(), row.counts.allocations, row.counts.bytes), (1, 42, u64::MAX));
    assert_eq!((row.entries, row.first_entry, row.last_entry), (Some(3), Some(1), Some(4)));
    assert_eq!(row.leaf, Link::Frame(0));
    assert_eq!(area.losses, Losses::default());
}

#[test]
fn frees_of_no_row_are_frees_from_before() {
    let maker = Maker::new();
    maker.u64(FIRST_AREA + offset_of!(AreaHeader, frees_from_before) as u64, 2);
    maker.chunk(1, 0, 0);
    maker.counter(0, 0, offset_of!(Counters, freed), 5);
    assert_eq!(maker.area().frees_from_before, 7);
}

#[test]
fn a_chunk_is_counted_once() {
    let maker = Maker::new();
    maker.window(1, WINDOW_PROCESS, "w");
    maker.node(FIRST_NODE, 0x1000, Root::Complete as u32);
    maker.row(1, 1, FIRST_NODE, [1, 1, 1]);
    maker.chunk(0, 0, 0);
    maker.chunk(1, 0, 0);
    maker.counter(0, 1, ALLOCATIONS, 5);
    let area = maker.area();
    assert_eq!((area.rows[0].counts.allocations, area.losses.damaged), (5, 1));
}

#[test]
fn thread_windows_have_no_first_entry() {
    let maker = Maker::new();
    maker.window(1, WINDOW_THREAD, "w");
    maker.node(FIRST_NODE, 0x1000, Root::Complete as u32);
    maker.row(1, 1, FIRST_NODE, [9, 9, 9]);
    for (shard, last) in [(1, 4), (2, 3)] {
        maker.chunk(shard, 0, shard);
        maker.counter(shard, 1, ALLOCATIONS, 1);
        maker.counter(shard, 1, offset_of!(Counters, entries), 2);
        maker.counter(shard, 1, offset_of!(Counters, entered), 1 << ENTERED_ENTRY_BITS | last);
    }
    let row = maker.area().rows.remove(0);
    assert_eq!((row.entries, row.first_entry, row.last_entry), (Some(4), None, Some(4)));
}

#[test]
fn alike_nodes_and_rows_are_one() {
    let maker = Maker::new();
    maker.window(1, WINDOW_PROCESS, "w");
    for (number, address, parent) in
        [(16, 0x10, 1), (17, 0x20, 16), (18, 0x10, 1), (19, 0x20, 18), (20, 0x20, 2)]
    {
        maker.node(number, address, parent);
    }
    maker.chunk(0, 0, 0);
    for (row, node) in [(1, 17), (2, 19), (3, 20)] {
        maker.row(row, 1, node, [2, u64::from(row), 7]);
        maker.counter(0, row, ALLOCATIONS, 10);
    }
    let area = maker.area();
    let frame = |address, caller| Frame { address, flags: 0, module: None, caller };
    let (complete, cut) = (Link::Root(Root::Complete), Link::Root(Root::CutNoInformation));
    assert_eq!(area.frames, [frame(0x10, complete), frame(0x20, Link::Frame(0)), frame(0x20, cut)]);
    let counts: Vec<(Link, u64)> = area.rows.iter().map(|row| (row.leaf, row.counts.allocations)).collect();
    assert_eq!(counts, [(Link::Frame(1), 20), (Link::Frame(2), 10)]);
    assert_eq!(
        (area.rows[0].entries, area.rows[0].first_entry, area.rows[0].last_entry),
        (None, Some(1), Some(7))
    );
}

#[test]
fn a_node_belongs_to_the_module_of_its_time() {
    let maker = Maker::new();
    maker.window(1, WINDOW_PROCESS, "w");
    maker.module(0, "/old.so", [0x1000, 0x2000], [0, 18]);
    maker.module(1, "/new.so", [0x1000, 0x3000], [18, u32::MAX]);
    maker.module(2, "/wide.so", [0x500, 0x9000], [30, u32::MAX]);
    let nodes = [
        (17, 0x1800, "/old.so"),
        (18, 0x1800, "/new.so"),
        // A return address one past the end belongs to the call before it …
        (19, 0x3000, "/new.so"),
        // … an interrupted one does not,
        (20, 0x3000 | NODE_INTERRUPTED, ""),
        (21, 0x9000, ""),
        (31, 0x2500, "/wide.so"),
    ];
    maker.chunk(0, 0, 0);
    for (row, (number, address, _)) in (1..).zip(nodes) {
        maker.node(number, address, Root::Complete as u32);
        maker.row(row, 1, number, [1, 1, 1]);
        maker.counter(0, row, ALLOCATIONS, 1);
    }
    let area = maker.area();
    let paths: Vec<&[u8]> = area
        .frames
        .iter()
        .map(|frame| frame.module.map_or(&b""[..], |module| &area.modules[module].path))
        .collect();
    assert_eq!(paths, nodes.map(|(_, _, path)| path.as_bytes()));
}

#[test]
fn what_created_a_task_is_followed_once_and_only_backwards() {
    let maker = Maker::new();
    maker.window(1, WINDOW_PROCESS, "w");
    let complete = Root::Complete as u32;
    let origin = |number: u64| NODE_ASYNC | ASYNC_ORIGIN | number;
    maker.node(16, 0x10, complete);
    maker.node(17, 0x20, complete);
    maker.node(18, origin(16), 17); // Created by a stack,
    maker.node(19, 0x30, complete);
    maker.node(20, origin(18), 19); // by one in a task,
    maker.node(21, origin(21), 19); // by itself,
    maker.node(22, origin(900), 19); // by a later one,
    maker.node(23, origin(24), 19);
    maker.node(24, origin(23), 19); // by each other,
    maker.node(25, 0, complete);
    maker.node(26, origin(25), 19); // by a damaged one.
    maker.chunk(0, 0, 0);
    for (row, node) in [(1, 20), (2, 21), (3, 22), (4, 23), (5, 24), (6, 26)] {
        maker.row(row, 1, node, [1, 1, 1]);
        maker.counter(0, row, ALLOCATIONS, 1);
    }
    let area = maker.area();
    assert_eq!(area.rows.len(), 6);
    assert_eq!(area.losses.damaged, 0);
    let mut known: Vec<u32> = area.origins.keys().copied().collect();
    known.sort_unstable();
    assert_eq!(known, [16, 18, 23]);
    // From each row the way comes to an end.
    for row in &area.rows {
        let (mut link, mut steps) = (row.leaf, 0);
        while let Link::Frame(id) = link {
            let frame = &area.frames[id];
            steps += 1;
            let origin = frame.origin().and_then(|origin| area.origins.get(&origin));
            link = origin.copied().unwrap_or(frame.caller);
        }
        assert!((2..=3).contains(&steps), "{steps}");
    }
}

#[test]
fn damage_is_counted_only_where_something_refers_to_it() {
    let maker = Maker::new();
    maker.window(1, WINDOW_PROCESS, "w");
    maker.window(2, 0, "half-written");
    maker.node(16, 0x10, 17); // A circle,
    maker.node(17, 0x10, 16);
    maker.node(18, 0, 1); // half-written,
    maker.node(19, 0x10, 9); // below no root that exists,
    maker.node(20, 0x10, 1); // sound.
    maker.chunk(0, 0, 0);
    for (row, window, node) in
        [(1, 1, 16), (2, 1, 18), (3, 1, 19), (4, 1, 900), (5, 2, 20), (6, 1, 20), (7, 1, 0)]
    {
        maker.row(row, window, node, [1, 1, 1]);
        maker.counter(0, row, ALLOCATIONS, 1);
    }
    maker.row(8, 1, 18, [1, 1, 1]); // Nothing was counted for it.
    let area = maker.area();
    assert_eq!((area.rows.len(), area.windows.len(), area.losses.damaged), (1, 1, 5));
}

#[test]
fn thread_totals_are_followed_once() {
    let maker = Maker::new();
    maker.window(1, WINDOW_PROCESS, "w");
    for (number, parent) in [(16, 1), (17, 16), (18, 17), (19, 18)] {
        maker.node(number, u64::from(number), parent);
    }
    maker.used(offset_of!(AreaHeader, threads), 3);
    maker.used(offset_of!(AreaHeader, totals), 3);
    for life in [1, 2_u64] {
        let at = FIRST_AREA + THREADS.offset + life * size_of::<crate::layout::ThreadLife>() as u64;
        maker.u32(at + offset_of!(crate::layout::ThreadLife, state) as u64, 2);
        maker.u32(at + offset_of!(crate::layout::ThreadLife, totals) as u64, 1);
        maker.u32(at + offset_of!(crate::layout::ThreadLife, first_node) as u64, 19);
        maker.bytes(at + offset_of!(crate::layout::ThreadLife, name) as u64, b"sixteen_letters!");
    }
    let at = FIRST_AREA + TOTALS.offset + size_of::<crate::layout::ThreadTotal>() as u64;
    maker.u32(at + offset_of!(crate::layout::ThreadTotal, window) as u64, 1);
    maker.u32(at + offset_of!(crate::layout::ThreadTotal, next) as u64, 1);
    maker.u64(at + offset_of!(crate::layout::ThreadTotal, allocations) as u64, 11);

    let area = maker.area();
    assert_eq!(area.threads[0].totals[0].1.allocations, 11);
    assert_eq!((area.threads[0].totals.len(), area.threads[1].totals.len()), (1, 0));
    assert_eq!(area.losses.damaged, 2);
    assert_eq!(area.threads[0].name, b"sixteen_letters!");
    // The third from the root.
    assert_eq!(area.threads[0].start.map(|id| area.frames[id].address), Some(18));
}

#[test]
fn children_are_added_up_by_name() {
    let maker = Maker::new();
    let child = |number: u64, state: u32, name: &str, len: u32, count: i64| {
        let at = CHILDREN_OFFSET
            + offset_of!(crate::layout::Children, names) as u64
            + number * size_of::<ChildName>() as u64;
        maker.u32(at + offset_of!(ChildName, state) as u64, state);
        maker.u32(at + offset_of!(ChildName, len) as u64, len);
        maker.u64(at + offset_of!(ChildName, count) as u64, count.cast_unsigned());
        maker.bytes(at + offset_of!(ChildName, words) as u64, name.as_bytes());
    };
    child(0, CHILD_NAME_WRITTEN, "sh", 2, 3);
    child(1, CHILD_NAME_TAKEN, "half", 4, 5);
    child(2, CHILD_NAME_WRITTEN, "cc1", 3, 1);
    child(3, CHILD_NAME_WRITTEN, "sh", 2, 1);
    child(4, CHILD_NAME_WRITTEN, "never", 5, 0);
    child(5, CHILD_NAME_WRITTEN, "below", 5, -1);
    child(6, CHILD_NAME_WRITTEN, "long", u32::MAX, 1);
    maker.u64(CHILDREN_OFFSET + offset_of!(crate::layout::Children, unnamed) as u64, 2);
    let children = read(&maker.0).unwrap().children;
    let mut long = b"long".to_vec();
    long.resize(CHILD_NAME_BYTES, 0);
    assert_eq!(children.programs, [(b"cc1".to_vec(), 1), (long, 1), (b"sh".to_vec(), 4)]);
    assert_eq!((children.unnamed, children.total()), (2, 8));
}

/// Where random bytes do most harm: the headers, and the front of each table.
const TARGETS: [u64; 11] = [
    0,
    CHILDREN_OFFSET,
    FIRST_AREA,
    FIRST_AREA + WINDOWS.offset,
    FIRST_AREA + ROWS.offset,
    FIRST_AREA + NODES.offset,
    FIRST_AREA + MODULES.offset,
    FIRST_AREA + THREADS.offset,
    FIRST_AREA + TOTALS.offset,
    FIRST_AREA + DIRECTORIES.offset,
    FIRST_AREA + COUNTERS.offset,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Small numbers, which refer to each other, and wild ones, anywhere; the reader comes back with something.
    #[test]
    fn any_bytes_are_read(
        patches in prop::collection::vec(
            (
                0..TARGETS.len(),
                0..128_u64,
                prop_oneof![4 => 0..40_u64, 1 => any::<u64>(), 2 => (0..40_u64, 0..40_u64).prop_map(|(a, b)| a | (b << 32))],
            ),
            0..400,
        ),
        spoil_header in any::<bool>(),
    ) {
        let maker = Maker::new();
        // Tables that look used, so that the patches are looked at. Not the sparse tail: it costs time, not safety.
        for field in [
            offset_of!(AreaHeader, windows), offset_of!(AreaHeader, rows), offset_of!(AreaHeader, nodes),
            offset_of!(AreaHeader, modules), offset_of!(AreaHeader, strings), offset_of!(AreaHeader, threads),
            offset_of!(AreaHeader, totals), offset_of!(AreaHeader, shards), offset_of!(AreaHeader, chunks),
        ] {
            maker.header(field, 64);
        }
        for (target, word, value) in patches {
            if target > 1 || (spoil_header && word < 64) {
                let keeps_identity = target == 0 && word * 8 < offset_of!(FileHeader, area_limit) as u64;
                if !keeps_identity {
                    maker.u64(TARGETS[target] + word * size_of::<AtomicU64>() as u64, value);
                }
            }
        }
        let snapshot = read(&maker.0).unwrap();
        for area in &snapshot.areas {
            for row in &area.rows {
                prop_assert!(row.window < area.windows.len());
                if let Link::Frame(frame) = row.leaf {
                    prop_assert!(frame < area.frames.len());
                }
            }
            for (at, frame) in area.frames.iter().enumerate() {
                prop_assert!(frame.module.is_none_or(|module| module < area.modules.len()));
                let is_after_caller = match frame.caller {
                    Link::Frame(caller) => caller < at,
                    Link::Root(_) => true,
                };
                prop_assert!(is_after_caller);
            }
        }
    }

    /// Whole files of noise behind a sound file header.
    #[test]
    fn noise_is_read(noise in prop::collection::vec(any::<u8>(), 0..20_000), at in 0..3_u64) {
        let maker = Maker::new();
        maker.bytes(FIRST_AREA + at * 4096, &noise);
        prop_assert!(read(&maker.0).is_ok());
    }
}
