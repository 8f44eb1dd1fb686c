//! The async callers of a stack: in memory, since they are suspended.
//!
//! ```text
//! stack     thread root … executor ─ resumer ─ async function ─ … ─ leaf
//! r14 of the async function ─► context: Parent ─► context: Parent ─► … 0
//!                                       ResumeParent           ResumeParent
//! ```
//! Each suspended caller goes on at a `ResumeParent`, which is exactly the start of a function; anything else is no
//! context. Where a stack's async function keeps its context depends on the code addresses alone: r14 at its call (the
//! calling convention), r14 when it was resumed, or the word that it pushed below its frame pointer. So the places are
//! found once for each leaf, and an event reads two words for each caller and compares them with those of the last one.
//!
//! What is read lies in pages that the kernel said to be readable, asked again after memory went away: by `munmap`,
//! `mremap` or `shmdt` of the program's, by a `free` of a block with a mapping of its own, or when the C library's heap
//! became shorter. A page that goes away otherwise, and into which a place points that is no context this time although
//! it was one before at the same code addresses, would be a fault; Swift's code keeps either a context there or not.
#![expect(unsafe_code, reason = "reads contexts in the program's memory")]

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use heaptally_segment::layout::{
    ASYNC_BROKEN, ASYNC_FRAMES, ASYNC_ORIGIN, ASYNC_UNKNOWN, NODE_ADDRESS_MASK, NODE_ASYNC, NODE_INTERRUPTED,
};
use heaptally_unwind::{CodeMap as _, Kept, WalkMemory, is_function_start, is_readable};

use crate::recorder::{CodeView, Recorder};
use crate::task_origin::Origin;

/// So many callers of one function are followed.
const CALLERS_MAX: usize = 1024;
const PLACES: usize = 2048;
const PAGES: usize = 64;
/// No memory is mapped below, by the system's default, nor above.
const LOWEST: u64 = 1 << 16;
const HIGHEST: u64 = 1 << 47;

/// Raised when memory went away.
static GONE: AtomicU32 = AtomicU32::new(0);
/// The C library's own note of where the heap ends; null: it has none.
static HEAP_END: AtomicPtr<*mut u8> = AtomicPtr::new(core::ptr::null_mut());

/// Memory may have gone away.
pub(crate) fn note_gone() {
    GONE.fetch_add(1, Ordering::Release);
}

/// A block of the C library's is about to be given back.
#[inline]
pub(crate) fn note_block(block: usize) {
    /// The word before a block holds its size, and in the second bit whether it has a mapping of its own (glibc's
    /// `malloc_chunk`, `IS_MMAPPED`).
    const IS_MAPPED: u64 = 2;
    let head = block.wrapping_sub(8) as *const u64;
    // SAFETY: the program gives back a block that it got there; other pointers end it in any case.
    if block & 15 == 0 && block != 0 && unsafe { head.read_volatile() } & IS_MAPPED != 0 {
        note_gone();
    }
}

/// Where the C library notes the end of its heap.
pub(crate) fn set_heap_end(place: *mut *mut u8) {
    HEAP_END.store(place, Ordering::Relaxed);
}

/// What memory was there, told by two numbers: when one differs, some may have gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extent {
    gone: u32,
    heap_end: u64,
}

impl Extent {
    fn now() -> Self {
        let place = HEAP_END.load(Ordering::Relaxed);
        // SAFETY: a variable of the C library's. Volatile, since others write it.
        let heap_end = if place.is_null() { 0 } else { (unsafe { place.read_volatile() }) as u64 };
        Self { gone: GONE.load(Ordering::Acquire), heap_end }
    }

    /// Whether all that was there then is there still.
    fn holds(self, now: Self) -> bool {
        self.gone == now.gone && self.heap_end <= now.heap_end
    }
}

/// Where a context can be. Zero is a valid value: nowhere.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Source {
    kind: u32,
    entry: u32,
    offset: i32,
}

impl Source {
    const REGISTER: u32 = 1;
    const SLOT: u32 = 2;
    /// In the word below the frame pointer of the entry.
    const BELOW_BASE: u32 = 3;

    fn of(kept: Option<Kept>) -> Self {
        match kept {
            None => Self::default(),
            Some(Kept::Register) => Self { kind: Self::REGISTER, ..Self::default() },
            Some(Kept::Slot { entry, offset }) => Self { kind: Self::SLOT, entry, offset },
        }
    }

    /// The word there.
    ///
    /// # Safety
    /// As for [`WalkMemory::kept_word`].
    #[inline]
    unsafe fn word(self, walk: &WalkMemory, register: u64) -> Option<u64> {
        match self.kind {
            Self::REGISTER => Some(register),
            // SAFETY: by the caller.
            Self::SLOT => unsafe {
                walk.kept_word(Kept::Slot { entry: self.entry, offset: self.offset }, register)
            },
            // SAFETY: by the caller.
            Self::BELOW_BASE => unsafe { walk.word_below_base(self.entry as usize) },
            _ => None,
        }
    }
}

/// What is known of the stacks with one leaf. Zero is a valid value: of no leaf.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Place {
    leaf: u32,
    /// How many frames, from the leaf on, belong to the async function and what it called; 0: there is no such function.
    frames: u32,
    /// Which source was right the last time.
    chosen: u32,
    sources: [Source; 3],
}

/// One context of the last chain.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Link {
    context: u64,
    parent: u64,
    resume: u64,
}

/// A thread's memory; zero is its valid, empty state, and only what is used is touched.
#[repr(C)]
pub(crate) struct ChainMemory {
    extent: Extent,
    /// The numbers of pages that can be read, by their low bits.
    pages: [u64; PAGES],
    /// The last chain: its leaf, the node of its last caller, and that of what created its task, or again the last caller's.
    leaf: u32,
    last: u32,
    node: u32,
    len: usize,
    /// What was known of tasks when the creator was looked for, and how many of them follow.
    changes: u32,
    depth: u32,
    links: [Link; CALLERS_MAX],
    places: [Place; PLACES],
}

/// A stack that may have async callers.
pub(crate) struct Physical<'a> {
    pub(crate) recorder: &'static Recorder,
    pub(crate) code: &'a CodeView<'a>,
    pub(crate) walk: &'a mut WalkMemory,
    pub(crate) leaf: u32,
    /// r14 at the allocation function's, or another function's, entry.
    pub(crate) register: u64,
    /// Whether that function is an async one perhaps, which is just called by what resumes others.
    pub(crate) is_entry: bool,
}

impl Physical<'_> {
    /// The node of the last async caller, below the leaf's; the leaf's own if it has none. `None`: the table is full.
    ///
    /// # Safety
    /// The walk is that of a stack that lives: this is called from its leaf.
    #[inline(never)]
    pub(crate) unsafe fn with_callers(mut self, memory: &mut ChainMemory) -> Option<u32> {
        let now = Extent::now();
        if !memory.extent.holds(now) {
            memory.pages = [0; PAGES];
            memory.leaf = 0;
        }
        memory.extent = now;
        // SAFETY: by the caller.
        let place = unsafe { self.place(memory) };
        if place.frames == 0 && !self.is_entry {
            return Some(self.leaf);
        }
        let chosen = place.chosen as usize;
        for at in core::iter::once(chosen).chain((0..place.sources.len()).filter(|at| *at != chosen)) {
            let Some(source) = place.sources.get(at) else { continue };
            // SAFETY: by the caller.
            let Some(context) = (unsafe { source.word(self.walk, self.register) }) else { continue };
            if memory.is_same(self.leaf, context) {
                return self.with_origin(memory);
            }
            match self.follow(memory, place.frames, context) {
                Followed::Callers(node) => {
                    if let Some(known) = memory.places.get_mut(self.leaf as usize % PLACES) {
                        known.chosen = at as u32;
                    }
                    return if memory.leaf == 0 { Some(node) } else { self.with_origin(memory) };
                }
                Followed::Full => return None,
                Followed::No => {}
            }
        }
        memory.leaf = 0;
        if place.frames == 0 {
            return Some(self.leaf);
        }
        self.recorder.tally.caller(self.leaf, NODE_ASYNC | ASYNC_UNKNOWN | u64::from(place.frames))
    }

    /// Where the context of the stack's async function can be.
    ///
    /// # Safety
    /// As for [`Self::with_callers`].
    unsafe fn place(&mut self, memory: &mut ChainMemory) -> Place {
        let at = self.leaf as usize % PLACES;
        match memory.places.get(at) {
            Some(known) if known.leaf == self.leaf => *known,
            _ => {
                // SAFETY: by the caller.
                let found = unsafe { self.find_place_slow() };
                if let Some(known) = memory.places.get_mut(at) {
                    *known = found;
                }
                found
            }
        }
    }

    /// # Safety
    /// As for [`Self::with_callers`].
    #[cold]
    #[inline(never)]
    unsafe fn find_place_slow(&mut self) -> Place {
        let mut place = Place { leaf: self.leaf, ..Place::default() };
        let (recorder, entries) = (self.recorder, self.walk.entries());
        let is_resumer = |address: u64| {
            let pc = (address & NODE_ADDRESS_MASK).wrapping_sub(u64::from(address & NODE_INTERRUPTED == 0));
            recorder.tally.is_resumer(pc)
        };
        let Some(resumer) = entries.iter().rposition(|entry| is_resumer(entry.address)) else { return place };
        let (function, count) = (resumer + 1, entries.len());
        if function == count {
            // What resumes others allocates for itself, or calls an async function.
            place.sources[0] = Source::of(Some(Kept::Register));
            return place;
        }
        let frames = (count - function) as u64;
        if frames > ASYNC_FRAMES {
            return place;
        }
        place.frames = frames as u32;
        let unwinder = recorder.unwinder(self.code);
        // SAFETY: by the caller.
        let kept = [function, resumer].map(|index| unsafe { unwinder.context_register(self.walk, index) });
        let below = Source { kind: Source::BELOW_BASE, entry: function as u32, offset: 0 };
        place.sources = [Source::of(kept[0]), Source::of(kept[1]), below];
        place
    }

    /// Follows a chain of contexts, if that is what begins there.
    fn follow(&self, memory: &mut ChainMemory, frames: u32, first: u64) -> Followed {
        let tally = &self.recorder.tally;
        memory.leaf = 0;
        memory.len = 0;
        if !memory.can_read(first) {
            return Followed::No;
        }
        let Some(mut node) = tally.caller(self.leaf, NODE_ASYNC | u64::from(frames)) else {
            return Followed::Full;
        };
        let mut context = first;
        // A chain that comes back to itself is none: the place that is looked for moves on at powers of two.
        let (mut mark, mut until_mark) = (first, 1);
        let is_whole = loop {
            let has_room = memory.len < CALLERS_MAX;
            let link = if has_room && memory.can_read(context) { Link::read(context) } else { None };
            let Some(link) = link else { break false };
            let address = NODE_ASYNC | link.resume;
            let next = match tally.known_caller(node, address) {
                Some(known) => known,
                None if !self.is_start_slow(link.resume) => break false,
                None => match tally.caller(node, address) {
                    Some(new) => new,
                    None => return Followed::Full,
                },
            };
            node = next;
            let Some(place) = memory.links.get_mut(memory.len) else { break false };
            *place = link;
            memory.len += 1;
            if link.parent == 0 {
                break true;
            }
            if link.parent == mark {
                return Followed::No;
            }
            if memory.len == until_mark {
                (mark, until_mark) = (link.parent, until_mark * 2);
            }
            context = link.parent;
        };
        if memory.len == 0 {
            return Followed::No;
        }
        if !is_whole {
            return match tally.caller(node, NODE_ASYNC | ASYNC_BROKEN) {
                Some(node) => Followed::Callers(node),
                None => Followed::Full,
            };
        }
        (memory.leaf, memory.last, memory.node) = (self.leaf, node, node);
        (memory.changes, memory.depth) = (0, 0);
        Followed::Callers(node)
    }

    /// The node of the last chain, with what created its task where that is wanted and known. `None`: the table is full.
    #[inline]
    fn with_origin(&self, memory: &mut ChainMemory) -> Option<u32> {
        let origins = &self.recorder.origins;
        if origins.are_wanted() && memory.changes != origins.changes() {
            self.find_origin_slow(memory)?;
        }
        Some(memory.node)
    }

    #[cold]
    #[inline(never)]
    fn find_origin_slow(&self, memory: &mut ChainMemory) -> Option<()> {
        let origins = &self.recorder.origins;
        memory.changes = origins.changes();
        (memory.node, memory.depth) = (memory.last, 0);
        let last = memory.len.checked_sub(1).and_then(|last| memory.links.get(last))?;
        if let Some(origin) = origins.of(last.context) {
            let address = NODE_ASYNC | ASYNC_ORIGIN | u64::from(origin.node);
            memory.node = self.recorder.tally.caller(memory.last, address)?;
            memory.depth = origin.depth;
        }
        Some(())
    }

    /// Whether a function begins exactly there, in code.
    #[cold]
    #[inline(never)]
    fn is_start_slow(&self, address: u64) -> bool {
        // SAFETY: the module is loaded: it is in the table.
        self.code.find(address).is_some_and(|module| unsafe { is_function_start(&module, address) })
            || self.recorder.resumers.is_start(address)
    }
}

/// What came of a word that may be a context.
enum Followed {
    /// It is one; the last caller's node.
    Callers(u32),
    /// It is none.
    No,
    /// The table of stacks is full.
    Full,
}

impl Link {
    /// The first two words of a context, which can be read; `None`: it is none.
    #[inline]
    fn read(context: u64) -> Option<Self> {
        // SAFETY: by the caller. Volatile, since it is memory of the program's.
        let [parent, resume] = [context, context + 8].map(|at| unsafe { (at as *const u64).read_volatile() });
        let is_it = (LOWEST..HIGHEST).contains(&resume);
        is_it.then_some(Self { context, parent, resume })
    }
}

impl ChainMemory {
    /// What a stack is to a task that it creates: the latest one, by its node.
    pub(crate) fn origin_of(&self, node: u32) -> Origin {
        if self.leaf != 0 && self.node == node {
            return Origin::below(node, self.last, self.depth);
        }
        Origin::below(node, node, 0)
    }

    /// How much memory a thread's takes.
    pub(crate) const BYTES: usize = size_of::<Self>();

    /// Whether the last chain is this leaf's, begins there, and is as it was.
    #[inline]
    fn is_same(&self, leaf: u32, context: u64) -> bool {
        let links = self.links.get(..self.len).unwrap_or_default();
        self.leaf == leaf
            && links.first().is_some_and(|link| link.context == context)
            && links.iter().all(|link| {
                // SAFETY: the page could be read, and memory has not gone away since. A context that follows from the ones
                // before it lies there as long as they do.
                let words =
                    [link.context, link.context + 8].map(|at| unsafe { (at as *const u64).read_volatile() });
                words == [link.parent, link.resume]
            })
    }

    /// Whether two words can be read there.
    #[inline]
    fn can_read(&mut self, address: u64) -> bool {
        if address & 7 != 0 || !(LOWEST..HIGHEST).contains(&address) {
            return false;
        }
        // Contexts are aligned to 16 bytes; one that is not may lie in two pages.
        self.has_page(address) && (address & 0xfff != 0xff8 || self.has_page(address + 8))
    }

    #[inline]
    fn has_page(&mut self, address: u64) -> bool {
        let page = address >> 12;
        let Some(known) = self.pages.get_mut(page as usize % PAGES) else { return false };
        if *known != page {
            if !is_readable(address) {
                return false;
            }
            *known = page;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_goes_away_is_not_trusted() {
        let then = Extent { gone: 3, heap_end: 0x5000 };
        assert!(then.holds(Extent { gone: 3, heap_end: 0x5000 }));
        assert!(then.holds(Extent { gone: 3, heap_end: 0x6000 }));
        assert!(!then.holds(Extent { gone: 3, heap_end: 0x4000 }));
        assert!(!then.holds(Extent { gone: 4, heap_end: 0x5000 }));
    }
}
