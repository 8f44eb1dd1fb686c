//! The words that the last walk read, one after the other: as long as they are the same, so is the walk.
//!
//! ```text
//! entries   root  A        B           C        leaf      root first
//! reads     pc₀ | bp₁ pc₁ | pc₂      | bp₃ pc₃ |          those of the step that led to the entry, read last first
//! firsts    0     1         3          4         6
//! ```
//! A walk that comes by the entry with the index n reads the words before `firsts[n]`, from the last to the first.

#![expect(unsafe_code, reason = "the memory is reached without bounds checks, and the stack is read")]

use crate::memory::{Entry, FRAMES_MAX, STEP_BARRIER, STEP_NUMBER, STEP_REALIGNED};
use crate::unwinder::word;

/// One word of the stack.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Read {
    at: u64,
    value: u64,
}

/// All that the steps of a stack's entries read.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Proof {
    /// A word that is never what a read says of it: where a step has to be made again.
    never: u64,
    reads: [Read; 2 * FRAMES_MAX],
    firsts: [u32; FRAMES_MAX + 1],
}

impl Proof {
    /// Notes what the step read that led to the entry with the index `index`. The entries before it are noted.
    ///
    /// # Safety
    /// `index` is below [`FRAMES_MAX`].
    #[inline(always)]
    pub(crate) unsafe fn note(&mut self, index: usize, entry: &Entry) {
        // SAFETY: the caller keeps the index below the bound; each entry before it took at most two reads.
        unsafe {
            let first = *self.firsts.get_unchecked(index);
            let mut next = first as usize;
            if entry.step & (STEP_BARRIER | STEP_REALIGNED) == 0 {
                let number = entry.step & STEP_NUMBER;
                if number != 1 {
                    let at = entry.sp.wrapping_sub(8 * u64::from(number));
                    *self.reads.get_unchecked_mut(next) = Read { at, value: entry.bp };
                    next += 1;
                }
                let at = entry.sp.wrapping_sub(8);
                *self.reads.get_unchecked_mut(next) = Read { at, value: entry.pc() };
            } else {
                let at = (&raw const self.never) as u64;
                *self.reads.get_unchecked_mut(next) = Read { at, value: !self.never };
            }
            *self.firsts.get_unchecked_mut(index + 1) = next as u32 + 1;
        }
    }

    /// How many words a walk reads that comes by the entry `index`.
    ///
    /// # Safety
    /// `index` is at most the number of entries that were noted.
    #[inline(always)]
    pub(crate) unsafe fn before(&self, index: usize) -> usize {
        // SAFETY: the caller keeps the index below the array's length.
        unsafe { *self.firsts.get_unchecked(index) as usize }
    }

    /// Reads the first `count` words again, the last one first, as far as they are the same. Returns how many are left:
    /// 0, or the number of the one that differs, plus one.
    ///
    /// PERF: about 4 instructions a word; frames that save no frame pointer have one. With the entries themselves gone
    /// through it were 25 a frame.
    ///
    /// # Safety
    /// A walk of the calling thread's stack is about to read these words, each if the ones after it are the same.
    #[inline(always)]
    pub(crate) unsafe fn same(&self, count: usize) -> usize {
        let reads = self.reads.as_ptr();
        let mut left = count;
        macro_rules! check {
            ($nth:literal) => {
                // SAFETY: `left` stays between the number of reads that are checked here and `count`.
                let read = unsafe { &*reads.add(left - $nth) };
                // SAFETY: all words behind it were the same, so the walk reads this one.
                if unsafe { word(read.at) } != read.value {
                    return left - ($nth - 1);
                }
            };
        }
        while left >= 4 {
            check!(1);
            check!(2);
            check!(3);
            check!(4);
            left -= 4;
        }
        while left > 0 {
            check!(1);
            left -= 1;
        }
        0
    }

    /// The entry that a step led to which read the word `read`; `len` entries were noted.
    #[cold]
    pub(crate) fn entry_of_slow(&self, read: usize, len: usize) -> usize {
        let firsts = self.firsts.get(..=len).unwrap_or_default();
        firsts.partition_point(|first| *first as usize <= read).saturating_sub(1)
    }
}
