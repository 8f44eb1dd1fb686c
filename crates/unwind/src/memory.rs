//! A thread's memory of its last stack, and room to work.
//!
//! ```text
//! WalkMemory  one mapping per thread, zero when new; only what is touched becomes resident
//!   head      length, end, generation                        64 bytes   } first page
//!   scratch   rows of unwind information, expression stack  ~1 KiB      }
//!   entries   the last stack, root first                    32 bytes each, 4096 + 1 + 4096 of them
//!   fresh     the frames of the running walk, leaf first    32 bytes each, 4096 + 4096 of them
//!   proof     the words that the last walk read             20 to 36 bytes for each entry
//! ```
//! Root first, since the leaf end changes from event to event and the root end stays where it is.

#![expect(
    unsafe_code,
    reason = "the memory is the caller's, and its entries are reached without bounds checks"
)]

use core::fmt;

use crate::End;
use crate::proof::Proof;
use crate::row::Scratch;

/// [`Entry::address`]: the bits of the address itself.
pub const ADDRESS_MASK: u64 = (1 << 48) - 1;
/// [`Entry::address`]: this frame was reached by its callee's frame pointer, since there was no unwind information.
pub const FRAME_POINTER: u64 = 1 << 63;
/// [`Entry::address`]: the next instruction to run (a signal interrupted the frame there), no return address.
pub const INTERRUPTED: u64 = 1 << 62;
/// [`Entry::address`]: no frame, but the place where the middle of a very deep stack was left out.
pub const ELIDED: u64 = 1 << 60;
/// [`Entry::address`]: this frame is a signal trampoline.
pub const SIGNAL: u64 = 1 << 59;
/// The whole address of the entry that stands for the frames left out.
pub const ELIDED_ENTRY: u64 = ELIDED | 1;

/// How many frames of a very deep stack are kept at the leaf.
pub const LEAF_KEPT: usize = 4096;
/// And how many at the root.
pub const ROOT_KEPT: usize = 4096;
/// The most entries that a stack can have: both ends, and what stands for the middle.
pub const FRAMES_MAX: usize = LEAF_KEPT + 1 + ROOT_KEPT;

/// [`Entry::step`]: a number: see [`Entry`].
pub(crate) const STEP_NUMBER: u32 = (1 << 18) - 1;
/// [`Entry::step`]: the step that led here read other words than the two that are remembered, or asked what may
/// change. It is made again each time.
pub(crate) const STEP_BARRIER: u32 = 1 << 31;
/// [`Entry::step`]: the callee realigned its stack: its frame's end was read from `callee.bp - 8 · number`, its
/// saved rbp from `callee.bp`.
pub(crate) const STEP_REALIGNED: u32 = 1 << 30;
/// [`Entry::step`]: a frame pointer led here or further in. The registers may be anything, so every read is checked.
pub(crate) const STEP_UNTRUSTED: u32 = 1 << 29;

/// One frame of the remembered stack.
///
/// The step that led here from the callee read the return address at `sp - 8`. By `step`'s number it also read `bp`
/// at `sp - 8 · number`; 1 (the return address's own slot, read once more) says that `bp` is the callee's, unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Entry {
    /// The return address in the low 48 bits, and the flags above ([`FRAME_POINTER`] …).
    pub address: u64,
    /// The caller's to fill and to keep: the stack-table node of this frame.
    pub node: u32,
    pub(crate) step: u32,
    pub(crate) sp: u64,
    pub(crate) bp: u64,
}

impl Entry {
    /// The address without flags.
    #[inline(always)]
    pub(crate) fn pc(&self) -> u64 {
        self.address & ADDRESS_MASK
    }

    /// Whether both are the same state, so that the walk goes on alike from here.
    #[inline(always)]
    pub(crate) fn is_state_of(&self, other: &Self) -> bool {
        // SIGNAL is a property of the address; it is known only after the frame's own rule was looked up.
        let address = (self.address ^ other.address) & !SIGNAL;
        let trust = u64::from((self.step ^ other.step) & STEP_UNTRUSTED);
        (address | trust | (self.sp ^ other.sp) | (self.bp ^ other.bp)) == 0
    }
}

/// What has to hold for the end of a walk to be the same again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndCheck {
    /// The last step has to be made again.
    Redo,
    /// Nothing: the end follows from the code address alone.
    Nothing,
    /// The last step has to be made again, with regard to the frames further in: it goes by a register that these saved.
    Inner,
}

/// A thread's memory. It lives in memory of the caller's, and zero is its valid, empty state.
#[repr(C)]
pub struct WalkMemory {
    pub(crate) generation: u32,
    pub(crate) len: u32,
    /// [`End`] as a number; 0 as long as there was no walk.
    end: u32,
    /// The entries are for the caller only: the next walk must not build on them.
    pub(crate) is_stale: bool,
    /// [`EndCheck::Nothing`].
    is_end_sure: bool,
    _pad: [u8; 46],
    pub(crate) scratch: Scratch,
    entries: [Entry; FRAMES_MAX],
    fresh: [Entry; LEAF_KEPT + ROOT_KEPT],
    pub(crate) proof: Proof,
}

impl WalkMemory {
    /// How much memory one thread's takes; only what is used is touched.
    pub const BYTES: usize = size_of::<Self>();

    /// A thread's memory in memory of the caller's. Touches nothing.
    ///
    /// # Safety
    /// `ptr` points to [`Self::BYTES`] zeroed bytes, aligned to 64, readable and writable for as long as the result
    /// is used.
    pub unsafe fn init(ptr: *mut u8) -> *mut Self {
        ptr.cast()
    }

    /// How many entries the last walk left.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The frames of the last walk, root first, leaf last.
    pub fn entries(&self) -> &[Entry] {
        // SAFETY: `len` is only set by `finish` and `elide`, which filled that many entries.
        unsafe { self.entries.get_unchecked(..self.len as usize) }
    }

    /// The same, for their nodes to be filled in.
    pub fn entries_mut(&mut self) -> &mut [Entry] {
        // SAFETY: as above.
        unsafe { self.entries.get_unchecked_mut(..self.len as usize) }
    }

    /// Forgets the last stack: the next walk makes all entries anew. For when nodes became invalid.
    pub fn forget(&mut self) {
        self.len = 0;
        self.end = 0;
        self.is_stale = false;
    }

    /// # Safety
    /// `index` is below `len`.
    #[inline(always)]
    pub(crate) unsafe fn entry(&self, index: usize) -> &Entry {
        debug_assert!(index < self.len as usize);
        // SAFETY: the caller keeps `index` below `len`, which is at most `FRAMES_MAX`.
        unsafe { self.entries.get_unchecked(index) }
    }

    /// # Safety
    /// `index` is below `len`.
    #[inline(always)]
    pub(crate) unsafe fn entry_mut(&mut self, index: usize) -> &mut Entry {
        debug_assert!(index < self.len as usize);
        // SAFETY: the caller keeps `index` below `len`, which is at most `FRAMES_MAX`.
        unsafe { self.entries.get_unchecked_mut(index) }
    }

    pub(crate) fn end(&self) -> Option<End> {
        Some(match self.end {
            1 => End::Complete,
            2 => End::CutNoInformation,
            3 => End::CutBadInformation,
            4 => End::CutBadStack,
            5 => End::CutDepth,
            _ => return None,
        })
    }

    pub(crate) fn end_check(&self) -> EndCheck {
        if self.is_end_sure { EndCheck::Nothing } else { EndCheck::Redo }
    }

    pub(crate) fn set_end(&mut self, end: End, check: EndCheck) {
        self.end = end as u32;
        self.is_end_sure = check == EndCheck::Nothing;
    }

    /// Adds a frame of the running walk, the `count`th from the leaf. Of a very deep stack the first [`LEAF_KEPT`]
    /// stay and the last [`ROOT_KEPT`] go round in a ring.
    #[inline(always)]
    pub(crate) fn push_fresh(&mut self, count: &mut usize, entry: Entry) {
        let index = fresh_index(*count);
        // SAFETY: `fresh_index` stays below the sum of both ends, which is the array's length.
        *unsafe { self.fresh.get_unchecked_mut(index) } = entry;
        *count += 1;
    }

    /// The `nth` frame from the leaf among those of the running walk.
    pub(crate) fn fresh_entry(&self, nth: usize) -> Option<Entry> {
        self.fresh.get(fresh_index(nth)).copied()
    }

    /// Puts the new frames in their places: `kept` entries stay, the fresh ones follow, leaf last.
    ///
    /// `kept + count` is at most `LEAF_KEPT + ROOT_KEPT`.
    #[inline(always)]
    pub(crate) fn finish(&mut self, kept: usize, count: usize) {
        debug_assert!(kept + count <= LEAF_KEPT + ROOT_KEPT);
        let mut from = count;
        let mut to = kept;
        if from > 0 && to > 0 {
            // The innermost entry that stays was reached by another step, or was the leaf and by none.
            // SAFETY: `to` is at most the number of entries, and they were noted.
            unsafe { self.proof.note(to - 1, self.entries.get_unchecked(to - 1)) };
        }
        while from > 0 {
            from -= 1;
            // SAFETY: `from` is below `count`, which is below the array's length.
            let entry = *unsafe { self.fresh.get_unchecked(from) };
            // SAFETY: `to` is below `kept + count`, which the caller keeps below the array's length.
            *unsafe { self.entries.get_unchecked_mut(to) } = entry;
            // SAFETY: likewise, and those before it were noted.
            unsafe { self.proof.note(to, &entry) };
            to += 1;
        }
        self.len = to as u32;
    }

    /// The same for a stack that is too deep, all of whose frames were pushed: both ends, and one entry between.
    #[cold]
    #[inline(never)]
    pub(crate) fn elide_slow(&mut self, count: usize) {
        for (nth, entry) in self.entries[..ROOT_KEPT].iter_mut().enumerate() {
            *entry = self.fresh[fresh_index(count - 1 - nth)];
        }
        self.entries[ROOT_KEPT] = Entry { address: ELIDED_ENTRY, ..Entry::default() };
        for (entry, fresh) in
            self.entries[ROOT_KEPT + 1..].iter_mut().zip(self.fresh[..LEAF_KEPT].iter().rev())
        {
            *entry = *fresh;
        }
        self.len = FRAMES_MAX as u32;
        self.is_stale = true;
    }
}

impl fmt::Debug for WalkMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WalkMemory")
            .field("generation", &self.generation)
            .field("end", &self.end())
            .field("entries", &self.entries())
            .finish_non_exhaustive()
    }
}

/// Where the `nth` frame from the leaf stands among the fresh ones.
#[inline(always)]
pub(crate) fn fresh_index(nth: usize) -> usize {
    if nth < LEAF_KEPT { nth } else { LEAF_KEPT + (nth - LEAF_KEPT) % ROOT_KEPT }
}
