//! Live blocks: which row allocated the block at an address, and how large it is.
//!
//! A shadow of the address space in three levels; the last one has a word of 8 bytes for each place where a block can
//! start. Blocks of the C library start 16 bytes apart, those of other allocators 8.
//!
//! ```text
//! address bits 47..33 -> root   32..20 -> branch   19..4 (or 3) -> word = row (22 bits) | 0 | shard (13 bits) | size (28 bits)
//!                                                                  or row (22 bits) | 1 | size (41 bits)
//! ```
#![expect(unsafe_code, reason = "walks tables in mapped memory")]

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use heaptally_segment::layout::BLOCK_ROW_BITS;

use crate::os::Os;
use crate::spin::Spin;

const LEAF_BITS: u32 = 20;
const BRANCH_BITS: u32 = 13;
const ADDRESS_BITS: u32 = 47;
const ROOT_SLOTS: usize = 1 << (ADDRESS_BITS - LEAF_BITS - BRANCH_BITS);
const BRANCH_SLOTS: usize = 1 << BRANCH_BITS;
const ROW_SHIFT: u32 = 64 - BLOCK_ROW_BITS;
/// Set where the size takes the shard's bits too.
const LARGE: u64 = 1 << (ROW_SHIFT - 1);
const SIZE_LIMIT: u64 = LARGE - 1;
const SHARD_SHIFT: u32 = 28;

/// What is known of a live block: the map's word.
///
/// PERF: one word, so that it stays in a register from the map to the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Block(NonZeroU64);

impl Block {
    /// A block of `size` requested bytes (above two tebibytes: of that), by a row and a thread's shard. `None`: there is
    /// no row 0.
    #[inline]
    pub fn new(row: u32, size: u64, shard: u32) -> Option<Self> {
        let row = u64::from(row) << ROW_SHIFT;
        let rest = if size >> SHARD_SHIFT == 0 {
            (u64::from(shard) << SHARD_SHIFT) | size
        } else {
            LARGE | size.min(SIZE_LIMIT)
        };
        NonZeroU64::new(row | rest).filter(|_| row != 0).map(Self)
    }

    /// The row that allocated it.
    #[inline]
    pub fn row(self) -> u32 {
        (self.0.get() >> ROW_SHIFT) as u32
    }

    /// Its requested size in bytes.
    #[inline]
    pub fn size(self) -> u64 {
        let is_large = self.0.get() & LARGE != 0;
        self.0.get() & if is_large { SIZE_LIMIT } else { (1 << SHARD_SHIFT) - 1 }
    }

    /// The shard of the thread that allocated it; `None` for blocks of 256 MiB and more.
    #[inline]
    pub(crate) fn shard(self) -> Option<u32> {
        let is_large = self.0.get() & LARGE != 0;
        (!is_large).then_some(((self.0.get() & SIZE_LIMIT) >> SHARD_SHIFT) as u32)
    }
}

/// All live blocks that were recorded.
#[derive(Debug)]
pub struct BlockMap {
    /// `ROOT_SLOTS` pointers to branches.
    root: *mut AtomicPtr<u8>,
    /// Base-two logarithm of the distance at which blocks can start.
    spacing: u32,
    growing: Spin<()>,
    os: Os,
}

// SAFETY: `root` points to memory that stays mapped and holds atomics only.
unsafe impl Sync for BlockMap {}
// SAFETY: as above.
unsafe impl Send for BlockMap {}

impl BlockMap {
    /// An empty map. `spacing` is 4 where blocks start 16 bytes apart, 3 where 8.
    pub fn new(os: Os, spacing: u32) -> Self {
        let root = (os.map)(ROOT_SLOTS * size_of::<AtomicPtr<u8>>()).cast();
        Self { root, spacing, growing: Spin::new(()), os }
    }

    /// Remembers a block. `None`: no memory. True: another block was remembered there, whose free was not seen.
    #[inline]
    pub fn insert(&self, address: usize, block: Block) -> Option<bool> {
        let word = match self.word(address) {
            Some(word) => word,
            None => self.word_slow(address)?,
        };
        let before = word.load(Ordering::Relaxed);
        word.store(block.0.get(), Ordering::Relaxed);
        Some(before != 0)
    }

    /// Forgets a block and says what was known of it.
    ///
    /// To be called before the block is given back: afterwards another thread may get the same address.
    #[inline]
    pub fn remove(&self, address: usize) -> Option<Block> {
        let word = self.word(address)?;
        let block = Block(NonZeroU64::new(word.load(Ordering::Relaxed))?);
        word.store(0, Ordering::Relaxed);
        Some(block)
    }

    /// What is remembered of a block.
    pub(crate) fn get(&self, address: usize) -> Option<Block> {
        NonZeroU64::new(self.word(address)?.load(Ordering::Relaxed)).map(Block)
    }

    #[inline]
    fn word(&self, address: usize) -> Option<&'static AtomicU64> {
        if self.root.is_null() || address >> ADDRESS_BITS != 0 {
            return None;
        }
        // SAFETY: the root has a slot for each value of the upper address bits.
        let branch = unsafe { &*self.root.add(address >> (LEAF_BITS + BRANCH_BITS)) }.load(Ordering::Acquire);
        if branch.is_null() {
            return None;
        }
        let slot = (address >> LEAF_BITS) & (BRANCH_SLOTS - 1);
        // SAFETY: a branch has `BRANCH_SLOTS` slots.
        let leaf = unsafe { &*branch.cast::<AtomicPtr<u8>>().add(slot) }.load(Ordering::Acquire);
        (!leaf.is_null()).then(|| self.in_leaf(leaf, address))
    }

    #[inline]
    fn in_leaf(&self, leaf: *mut u8, address: usize) -> &'static AtomicU64 {
        let place = (address & ((1 << LEAF_BITS) - 1)) >> self.spacing;
        // SAFETY: a leaf has a word for each place of its part of the address space, and stays mapped.
        unsafe { &*leaf.cast::<AtomicU64>().add(place) }
    }

    #[cold]
    #[inline(never)]
    fn word_slow(&self, address: usize) -> Option<&'static AtomicU64> {
        if self.root.is_null() || address >> ADDRESS_BITS != 0 {
            return None;
        }
        let _growing = self.growing.lock();
        // SAFETY: as in `word`.
        let branch = unsafe { &*self.root.add(address >> (LEAF_BITS + BRANCH_BITS)) };
        let branch = self.get_or_map(branch, BRANCH_SLOTS * size_of::<AtomicPtr<u8>>())?;
        let slot = (address >> LEAF_BITS) & (BRANCH_SLOTS - 1);
        // SAFETY: as in `word`.
        let leaf = unsafe { &*branch.cast::<AtomicPtr<u8>>().add(slot) };
        let leaf = self.get_or_map(leaf, (1 << (LEAF_BITS - self.spacing)) * size_of::<AtomicU64>())?;
        Some(self.in_leaf(leaf, address))
    }

    fn get_or_map(&self, slot: &AtomicPtr<u8>, bytes: usize) -> Option<*mut u8> {
        let mut table = slot.load(Ordering::Acquire);
        if table.is_null() {
            table = (self.os.map)(bytes);
            slot.store(table, Ordering::Release);
        }
        (!table.is_null()).then_some(table)
    }
}
