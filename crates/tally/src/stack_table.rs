//! Stacks as a tree that grows from the roots: a node is a frame below its caller's node.

use core::sync::atomic::{AtomicU32, Ordering};

use heaptally_segment::layout::{
    BLOCK_ROW_BITS, EntryPoint, FIRST_NODE, NODE_ADDRESS_MASK, NODE_ASYNC, NODE_INTERRUPTED, NODE_LIMIT,
    NODE_RESUMED, NODE_WINDOW_MASK, NODE_WINDOW_SHIFT, Node, RANGE_LIMIT,
};

use crate::function_range::{FunctionRange, FunctionRanges};
use crate::index::{Index, spread};
use crate::os::{Os, TableMap};
use crate::spin::Spin;
use crate::table::Table;

/// In [`Node::last_child`]: the number is that of the leaf's row, not of a child. The row's entry point stands above it.
const HINT_IS_ROW: u32 = 1 << 31;
/// Above a child's number: some bits of its address. A caller of many is told from its last callee by them.
const HINT_TAG_SHIFT: u32 = NODE_LIMIT.trailing_zeros();
const HINT_NUMBER: u32 = NODE_LIMIT - 1;
const HINT_ROW: u32 = (1 << BLOCK_ROW_BITS) - 1;
/// In [`Node::address`]: what follows from the frame and its callers.
const DERIVED: u64 = NODE_WINDOW_MASK | NODE_RESUMED;
/// How many functions that resume others are known at most: some of each library.
const RESUMERS: usize = 256;

/// Code that makes its frames, and what they call, special.
#[derive(Debug)]
struct Ranges {
    /// Functions beneath which windows are.
    windows: FunctionRanges,
    /// Functions that resume suspended async ones; of window 1.
    resumers: FunctionRanges,
}

/// The tree of all stacks.
#[derive(Debug)]
pub(crate) struct StackTable {
    nodes: Table<Node>,
    index: Index,
    /// Held while a node is made, so that a frame below a caller has one.
    making: Spin<Ranges>,
    /// Nodes below this number belong to code that may have gone away, and are not found again.
    floor: AtomicU32,
    os: Os,
}

impl StackTable {
    pub(crate) fn new(map: TableMap, os: Os, used: &'static AtomicU32) -> Self {
        Self {
            nodes: Table::new(map, os, used, FIRST_NODE),
            index: Index::new(os),
            making: Spin::new(Ranges { windows: FunctionRanges::new(), resumers: FunctionRanges::new() }),
            os,
            floor: AtomicU32::new(FIRST_NODE),
        }
    }

    /// The node of a frame below its caller's; `None`: the table is full.
    ///
    /// `expect` is told the row that the node may have, as early as it is known.
    #[inline]
    pub(crate) fn child(&self, parent: u32, address: u64, expect: impl Fn(u32)) -> Option<u32> {
        let hint = self.nodes.get(parent).last_child.load(Ordering::Acquire);
        let number = hint & HINT_NUMBER;
        // PERF: most frames are found here, without the index (98 % of look-ups on a compiler). The tag spares the others
        // a cache line that misses, the wrong child's.
        if hint ^ number == tag_of(address)
            && number >= self.floor.load(Ordering::Relaxed)
            && self.is(number, parent, address)
        {
            return Some(number);
        }
        self.child_slow(parent, address, expect)
    }

    /// The same if there is one already.
    #[inline]
    pub(crate) fn known_child(&self, parent: u32, address: u64) -> Option<u32> {
        let number = self.nodes.get(parent).last_child.load(Ordering::Acquire) & HINT_NUMBER;
        if number >= self.floor.load(Ordering::Relaxed) && self.is(number, parent, address) {
            return Some(number);
        }
        self.find(hash_of(parent, address), parent, address, |_| ())
    }

    #[cold]
    #[inline(never)]
    fn child_slow(&self, parent: u32, address: u64, expect: impl Fn(u32)) -> Option<u32> {
        let hash = hash_of(parent, address);
        let number = match self.find(hash, parent, address, expect) {
            Some(number) => number,
            None => self.make(hash, parent, address)?,
        };
        self.nodes.get(parent).last_child.store(number | tag_of(address), Ordering::Release);
        Some(number)
    }

    fn find(&self, hash: u64, parent: u32, address: u64, expect: impl Fn(u32)) -> Option<u32> {
        let floor = self.floor.load(Ordering::Acquire);
        self.index.find(hash, |number, row| {
            // PERF: of 100,000 stacks in random order neither the node nor its row's counters are in the cache. So they
            // come at the same time, not one after another.
            if row != 0 {
                expect(row);
            }
            number >= floor && self.is(number, parent, address)
        })
    }

    fn make(&self, hash: u64, parent: u32, address: u64) -> Option<u32> {
        let mut ranges = self.making.lock();
        if let Some(number) = self.find(hash, parent, address, |_| ()) {
            return Some(number);
        }
        let number = self.nodes.take()?;
        let node = self.nodes.get(number);
        node.parent.store(parent, Ordering::Relaxed);
        let derived = match address & NODE_ASYNC {
            0 => self.derived(&mut ranges, parent, address),
            _ => self.derived_of_caller(&mut ranges, parent, address),
        };
        node.address.store(address & !DERIVED | derived, Ordering::Release);
        self.index.insert(hash, number, |number| {
            let node = self.nodes.get(number);
            hash_of(node.parent.load(Ordering::Relaxed), node.address.load(Ordering::Acquire) & !DERIVED)
        });
        Some(number)
    }

    /// What a frame has from its code and its callers.
    fn derived(&self, ranges: &mut Ranges, parent: u32, address: u64) -> u64 {
        // A return address may be the next function's first.
        let pc = (address & NODE_ADDRESS_MASK).wrapping_sub(u64::from(address & NODE_INTERRUPTED == 0));
        let inherited = self.nodes.get(parent).address.load(Ordering::Acquire) & DERIVED;
        let resumed = if ranges.resumers.window(pc) == 0 { inherited & NODE_RESUMED } else { NODE_RESUMED };
        match ranges.windows.window(pc) {
            0 => inherited & NODE_WINDOW_MASK | resumed,
            window => u64::from(window) << NODE_WINDOW_SHIFT | resumed,
        }
    }

    /// The same for an async caller: of several windows that of the nearest frame counts, and the frames behind the function
    /// that was resumed are further away than the callers.
    fn derived_of_caller(&self, ranges: &mut Ranges, parent: u32, address: u64) -> u64 {
        let inherited = self.nodes.get(parent).address.load(Ordering::Acquire) & DERIVED;
        let (mut node, mut behind) = (parent, 0);
        while node >= FIRST_NODE {
            let found = self.nodes.get(node);
            let at = found.address.load(Ordering::Acquire);
            let pc =
                (at & NODE_ADDRESS_MASK).wrapping_sub(u64::from(at & (NODE_INTERRUPTED | NODE_ASYNC) == 0));
            let is_resumer = at & NODE_ASYNC == 0 && ranges.resumers.window(pc) != 0;
            if is_resumer {
                behind = at & NODE_WINDOW_MASK;
                break;
            }
            if ranges.windows.window(pc) != 0 {
                return inherited;
            }
            node = found.parent.load(Ordering::Relaxed);
        }
        match ranges.windows.window(address & NODE_ADDRESS_MASK) {
            0 => behind | NODE_RESUMED,
            window => u64::from(window) << NODE_WINDOW_SHIFT | NODE_RESUMED,
        }
    }

    #[inline]
    fn is(&self, number: u32, parent: u32, address: u64) -> bool {
        let node = self.nodes.get(number);
        node.address.load(Ordering::Acquire) & !DERIVED == address
            && node.parent.load(Ordering::Relaxed) == parent
    }

    /// The row that this leaf used last, if it was one of that entry point, and the leaf was no caller since. Its
    /// window may be another one.
    #[inline]
    pub(crate) fn row_hint(&self, leaf: u32, entry_point: EntryPoint) -> Option<u32> {
        let hint = self.nodes.get(leaf).last_child.load(Ordering::Acquire);
        (hint & !HINT_ROW == hint_of(entry_point)).then_some(hint & HINT_ROW)
    }

    /// Remembers the row that this leaf used.
    pub(crate) fn set_row_hint(&self, leaf: u32, entry_point: EntryPoint, row: u32) {
        let node = self.nodes.get(leaf);
        node.last_child.store(hint_of(entry_point) | row, Ordering::Release);
        if leaf >= FIRST_NODE {
            let address = node.address.load(Ordering::Acquire) & !DERIVED;
            self.index.set_row(hash_of(node.parent.load(Ordering::Relaxed), address), leaf, row);
        }
    }

    /// The window defined by a function to which a stack belongs, by its leaf; 0: none.
    #[inline]
    pub(crate) fn window(&self, node: u32) -> u32 {
        let address = self.nodes.get(node).address.load(Ordering::Acquire);
        ((address & NODE_WINDOW_MASK) >> NODE_WINDOW_SHIFT) as u32
    }

    /// Whether a frame of the stack, or one around it, lies in code of that window.
    pub(crate) fn is_below(&self, leaf: u32, window: u32) -> bool {
        let mut node = leaf;
        // Where a stack belongs to no window, nor does what is further out.
        while node >= FIRST_NODE {
            match self.window(node) {
                0 => return false,
                found if found == window => return true,
                _ => node = self.nodes.get(node).parent.load(Ordering::Relaxed),
            }
        }
        false
    }

    /// Adds code in which windows begin. How much of it found no place.
    pub(crate) fn add_ranges(&self, ranges: impl Iterator<Item = FunctionRange>) -> usize {
        self.making.lock().windows.add(self.os, RANGE_LIMIT as usize, ranges)
    }

    /// Adds a function that resumes suspended async ones: its first address, and one past its last.
    pub(crate) fn add_resumer(&self, (start, end): (u64, u64)) {
        let range = FunctionRange { start, end, window: 1 };
        // What finds no place resumes functions whose callers stay unknown.
        self.making.lock().resumers.add(self.os, RESUMERS, core::iter::once(range));
    }

    /// Whether the frame is, or was called by, one of those.
    #[inline]
    pub(crate) fn is_resumed(&self, node: u32) -> bool {
        self.nodes.get(node).address.load(Ordering::Acquire) & NODE_RESUMED != 0
    }

    /// Whether code is that of one of those.
    pub(crate) fn is_resumer(&self, pc: u64) -> bool {
        self.making.lock().resumers.window(pc) != 0
    }

    /// Forgets code that is gone.
    pub(crate) fn retain_ranges(&self, mut is_there: impl FnMut(u64) -> bool) {
        let mut ranges = self.making.lock();
        ranges.windows.retain(&mut is_there);
        ranges.resumers.retain(is_there);
    }

    /// How many nodes there are.
    pub(crate) fn used(&self) -> u32 {
        self.nodes.used()
    }

    /// From here on no node that exists now is used for a new stack.
    pub(crate) fn forget(&self) {
        let _making = self.making.lock();
        self.floor.store(self.nodes.used(), Ordering::Release);
        self.index.clear();
    }
}

#[inline]
fn hash_of(parent: u32, address: u64) -> u64 {
    spread(address ^ (u64::from(parent) << 32) ^ (u64::from(parent) >> 8))
}

/// Below [`HINT_IS_ROW`], above [`HINT_NUMBER`].
#[inline]
fn tag_of(address: u64) -> u32 {
    // Calls lie some bytes apart, functions often at multiples of 16.
    ((address ^ (address >> 6)) as u32 & (HINT_IS_ROW - 1) >> HINT_TAG_SHIFT) << HINT_TAG_SHIFT
}

#[inline]
fn hint_of(entry_point: EntryPoint) -> u32 {
    HINT_IS_ROW | (entry_point as u32) << BLOCK_ROW_BITS
}

const _: () = assert!(NODE_LIMIT.is_power_of_two() && NODE_LIMIT < HINT_IS_ROW);
const _: () = assert!((EntryPoint::ALL.len() as u32) < HINT_IS_ROW >> BLOCK_ROW_BITS);
