//! Segments made of patches: a whole one is far too large and nearly empty.
//!
//! ```text
//! input = flags (1 byte) | patch | patch | …
//! patch = place (1 byte: table) | unit (2 bytes: eight bytes each) | len (1 byte) | bytes
//! ```

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt as _;

use heaptally_segment::layout::{
    AREA_BYTES, AREA_LIMIT, AreaHeader, COUNTERS, Counters, DIRECTORIES, DIRECTORY_BYTES, EntryPoint,
    FIRST_AREA, FileHeader, MAGIC, MODULES, Module, NODES, Node, PAGE, ROWS, Row, STATE_ATTACHED, STRINGS,
    THREADS, TOTALS, ThreadLife, ThreadTotal, VERSION, WINDOW_PROCESS, WINDOWS, Window,
};
use heaptally_segment::read::{Link, Snapshot};
use rustix::fs::{MemfdFlags, memfd_create};

/// The first byte: the file's header is what the patches make of it, not one that a reader takes.
const OWN_HEADER: u8 = 1;

/// Where patches go: each table of the first area, and the header of a second one.
const PLACES: [u64; 12] = [
    0,
    FIRST_AREA,
    FIRST_AREA + WINDOWS.offset,
    FIRST_AREA + ROWS.offset,
    FIRST_AREA + NODES.offset,
    FIRST_AREA + MODULES.offset,
    FIRST_AREA + STRINGS.offset,
    FIRST_AREA + THREADS.offset,
    FIRST_AREA + TOTALS.offset,
    FIRST_AREA + DIRECTORIES.offset,
    FIRST_AREA + COUNTERS.offset,
    FIRST_AREA + AREA_BYTES,
];

/// More than that is looked at nowhere: tables that are full of zeros take time and show nothing.
const USED_LIMITS: [(usize, u32); 9] = [
    (offset_of!(AreaHeader, windows), 4096),
    (offset_of!(AreaHeader, rows), 4096),
    (offset_of!(AreaHeader, nodes), u32::MAX),
    (offset_of!(AreaHeader, modules), 2048),
    (offset_of!(AreaHeader, strings), u32::MAX),
    (offset_of!(AreaHeader, threads), 4096),
    (offset_of!(AreaHeader, totals), 4096),
    (offset_of!(AreaHeader, shards), 16),
    (offset_of!(AreaHeader, chunks), u32::MAX),
];

/// A file in memory, used again for each segment.
#[derive(Debug)]
pub struct SegmentFile(File);

impl SegmentFile {
    /// An empty one.
    ///
    /// # Errors
    /// When the system has no memory for it.
    pub fn new() -> io::Result<Self> {
        Ok(Self(File::from(memfd_create("segment", MemfdFlags::CLOEXEC)?)))
    }

    /// Makes it the segment that an input describes.
    ///
    /// # Errors
    /// When the system refuses to write.
    pub fn fill(&self, input: &[u8]) -> io::Result<&File> {
        self.0.set_len(0)?;
        let (flags, mut rest) = input.split_first().map_or((0, input), |(flags, rest)| (*flags, rest));
        if flags & OWN_HEADER == 0 {
            self.write(offset_of!(FileHeader, magic) as u64, &MAGIC.to_le_bytes())?;
            self.write(offset_of!(FileHeader, version) as u64, &VERSION.to_le_bytes())?;
            self.write(offset_of!(FileHeader, area_bytes) as u64, &AREA_BYTES.to_le_bytes())?;
            self.write(offset_of!(FileHeader, area_limit) as u64, &AREA_LIMIT.to_le_bytes())?;
            self.write(offset_of!(FileHeader, areas_taken) as u64, &2_u32.to_le_bytes())?;
            self.write(FIRST_AREA + offset_of!(AreaHeader, state) as u64, &STATE_ATTACHED.to_le_bytes())?;
        }
        while let [place, low, high, len, after @ ..] = rest {
            let (bytes, after) = after.split_at(usize::from(*len).min(after.len()));
            let place = PLACES[usize::from(*place) % PLACES.len()];
            self.write(place + 8 * u64::from(u16::from_le_bytes([*low, *high])), bytes)?;
            rest = after;
        }
        for area in [FIRST_AREA, FIRST_AREA + AREA_BYTES] {
            for (field, limit) in USED_LIMITS {
                let mut number = [0; 4];
                let _beyond_the_end = self.0.read_at(&mut number, area + field as u64)?;
                if u32::from_le_bytes(number) > limit {
                    self.write(area + field as u64, &limit.to_le_bytes())?;
                }
            }
        }
        Ok(&self.0)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
}

/// Checks that everything that was read refers to something.
///
/// # Panics
/// When it does not.
pub fn check(snapshot: &Snapshot) {
    for area in &snapshot.areas {
        for row in &area.rows {
            assert!(row.window < area.windows.len(), "a row of no window");
            assert!(leads_somewhere(row.leaf, area.frames.len()), "a row of no stack");
        }
        for (at, frame) in area.frames.iter().enumerate() {
            assert!(frame.module.is_none_or(|module| module < area.modules.len()), "a frame of no module");
            assert!(leads_somewhere(frame.caller, at), "a frame before its caller");
        }
        for thread in &area.threads {
            assert!(thread.start.is_none_or(|start| start < area.frames.len()), "a start that is no frame");
            assert!(
                thread.totals.iter().all(|(window, _)| *window < area.windows.len()),
                "a total of no window"
            );
        }
    }
}

fn leads_somewhere(link: Link, frames: usize) -> bool {
    match link {
        Link::Frame(frame) => frame < frames,
        Link::Root(_) => true,
    }
}

/// An input that is being made.
struct Patches(Vec<u8>);

impl Patches {
    /// Writes into a table: of the entry of that number, which has a size, at a field. What lies before the field in the
    /// same eight bytes becomes 0.
    fn put(&mut self, place: u8, size: usize, number: usize, field: usize, bytes: &[u8]) {
        let offset = size * number + field;
        let (unit, inside) = ((offset / 8) as u16, offset % 8);
        let mut padded = vec![0; inside];
        padded.extend_from_slice(bytes);
        self.0.push(place);
        self.0.extend_from_slice(&unit.to_le_bytes());
        self.0.push(padded.len() as u8);
        self.0.extend_from_slice(&padded);
    }

    /// Writes numbers one after the other from the first field of an entry on.
    fn entry(&mut self, place: u8, size: usize, number: usize, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(place, size, number, 0, &bytes);
    }
}

/// A segment with a bit of everything, and a file of noise.
pub fn inputs() -> Vec<Vec<u8>> {
    let mut patches = Patches(vec![0]);
    let used: [u32; 10] = [3, 4, 20, 2, 64, 3, 3, 2, 2, 0];
    let used: Vec<u8> = used.iter().flat_map(|number| number.to_le_bytes()).collect();
    patches.put(1, PAGE as usize, 0, offset_of!(AreaHeader, windows), &used);
    patches.put(6, 1, 0, 0, b"parse\0\0\0/usr/lib/libc.so.6");
    for number in [1, 2] {
        patches.entry(2, size_of::<Window>(), number, &[WINDOW_PROCESS + number as u32 - 1, 0, 5, 0, 1, 0]);
    }
    for node in 16..20_usize {
        let parent = if node == 16 { 1 } else { node as u32 - 1 };
        patches.entry(4, size_of::<Node>(), node, &[0x1000 + node as u32, 0, parent, 0]);
    }
    patches.entry(5, size_of::<Module>(), 0, &[1, 8, 18, 4, 7, 7, 7, 7]);
    patches.put(5, size_of::<Module>(), 0, offset_of!(Module, start), &0x1000_u64.to_le_bytes());
    patches.put(5, size_of::<Module>(), 0, offset_of!(Module, end), &0x2000_u64.to_le_bytes());
    patches.put(5, size_of::<Module>(), 0, offset_of!(Module, unload_node), &[0xff; 4]);
    for number in 1..4_usize {
        let row = [16 + number as u32, 1 + number as u32 % 2, EntryPoint::Malloc as u32, 0, 1, 0, 1, 0, 1, 0];
        patches.entry(3, size_of::<Row>(), number, &row);
        patches.put(10, size_of::<Counters>(), number, 0, &[3, 0, 0, 0, 0, 0, 0, 0, 90]);
    }
    patches.entry(9, DIRECTORY_BYTES as usize, 0, &[1, 2]);
    for number in [1, 2] {
        patches.entry(7, size_of::<ThreadLife>(), number, &[1, 7, 1, 19, u32::from_le_bytes(*b"main")]);
        let field = offset_of!(ThreadLife, totals);
        patches.put(7, size_of::<ThreadLife>(), number, field, &(number as u32).to_le_bytes());
        patches.entry(8, size_of::<ThreadTotal>(), number, &[number as u32, 0, 3, 0, 90, 0]);
    }
    let mut own_header = patches.0.clone();
    own_header[0] = OWN_HEADER;
    vec![patches.0, own_header, Vec::new()]
}
