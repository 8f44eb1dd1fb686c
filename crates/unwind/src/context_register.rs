//! Where the r14 of a frame is: Swift's async functions keep their context in it.
//!
//! A function that uses r14 saves it for its caller, so the value that a frame had at its call is in the nearest frame
//! further in that saved it, or still in the register. Where that is depends on the code addresses alone.

#![expect(unsafe_code, reason = "a walk reads the stack of the thread that it runs on")]

use crate::memory::{ELIDED, SIGNAL, WalkMemory};
use crate::unwinder::{Unwinder, word};
use crate::{CodeMap, INTERRUPTED};

/// Where a frame's r14 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the register, from that frame to the leaf.
    Register,
    /// In the frame of the entry with this index, counted from the root.
    Slot {
        /// The entry's index; never that of the root.
        entry: u32,
        /// From the end of its frame, in bytes.
        offset: i32,
    },
}

impl<M: CodeMap> Unwinder<'_, M> {
    /// Where the r14 is that the frame of an entry had when it made its call; `None`: that cannot be told.
    ///
    /// # Safety
    /// `memory` holds the walk of a stack that lives: this is called from its leaf.
    #[cold]
    #[inline(never)]
    pub unsafe fn context_register(&self, memory: &mut WalkMemory, index: usize) -> Option<Kept> {
        for inner in index + 1..memory.len() {
            let entry = *memory.entries().get(inner)?;
            // NOTE: a frame that a frame pointer led to is as good as others here: its ends lie in the stack, and who reads the
            // word does not believe it.
            if entry.address & (ELIDED | SIGNAL | INTERRUPTED) != 0 {
                return None;
            }
            // SAFETY: it is a live frame, by the caller.
            if let Some(offset) = unsafe { self.saved(&mut memory.scratch, &entry, |row| row.r14) }? {
                let offset = i32::try_from(offset).ok().filter(|offset| *offset < 0 && offset % 8 == 0)?;
                return Some(Kept::Slot { entry: u32::try_from(inner).ok()?, offset });
            }
        }
        Some(Kept::Register)
    }
}

impl WalkMemory {
    /// The word that is kept there; `None`: the last walk has no such frame.
    ///
    /// # Safety
    /// The last walk's stack lives: this is called from its leaf. `kept` is what [`Unwinder::context_register`] said of a
    /// stack with the same code addresses.
    #[inline]
    pub unsafe fn kept_word(&self, kept: Kept, register: u64) -> Option<u64> {
        let Kept::Slot { entry, offset } = kept else { return Some(register) };
        // A frame ends where its caller's stack pointer was.
        let end = self.entries().get((entry as usize).checked_sub(1)?)?.sp;
        let at = end.wrapping_add_signed(i64::from(offset));
        let frame = self.entries().get(entry as usize)?;
        // SAFETY: it lies between the frame's stack pointer and its end.
        (at & 7 == 0 && at >= frame.sp).then(|| unsafe { word(at) })
    }

    /// The word below the frame pointer that an entry's function saved, where functions that resume others keep a record.
    ///
    /// # Safety
    /// As for [`Self::kept_word`].
    #[inline]
    pub unsafe fn word_below_base(&self, index: usize) -> Option<u64> {
        let frame = self.entries().get(index)?;
        let end = self.entries().get(index.checked_sub(1)?)?.sp;
        let at = frame.bp.wrapping_sub(8);
        // SAFETY: it lies in the frame.
        (at & 7 == 0 && at >= frame.sp && at < end).then(|| unsafe { word(at) })
    }
}
