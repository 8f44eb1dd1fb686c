//! The walk that takes nothing but steps: what the remembered one is held against.

#![expect(unsafe_code, reason = "a walk reads the stack of the thread that it runs on")]

use crate::memory::{
    ELIDED_ENTRY, EndCheck, Entry, FRAMES_MAX, LEAF_KEPT, ROOT_KEPT, WalkMemory, fresh_index,
};
use crate::unwinder::{STEPS_MAX, Unwinder};
use crate::{CodeMap, End, FrameState};

impl<M: CodeMap> Unwinder<'_, M> {
    /// Walks the stack by rules alone, without regard to the memory's last stack, which it leaves as it is. Writes the
    /// addresses with their flags, leaf first, and returns their number. For tests, to hold [`Self::walk`] against.
    ///
    /// `out` should have room for [`FRAMES_MAX`]; if it has less, the frames at the root are dropped.
    ///
    /// # Safety
    /// As for [`Self::walk`].
    pub unsafe fn walk_full(
        &self,
        memory: &mut WalkMemory,
        start: FrameState,
        out: &mut [u64],
    ) -> (usize, End) {
        // SAFETY: as the caller promises.
        unsafe { self.walk_by_steps(memory, start, out, true) }
    }

    /// The same without the rule cache: each frame's unwind information is read anew.
    ///
    /// # Safety
    /// As for [`Self::walk`].
    pub unsafe fn walk_uncached(
        &self,
        memory: &mut WalkMemory,
        start: FrameState,
        out: &mut [u64],
    ) -> (usize, End) {
        // SAFETY: as the caller promises.
        unsafe { self.walk_by_steps(memory, start, out, false) }
    }

    #[inline(never)]
    unsafe fn walk_by_steps(
        &self,
        memory: &mut WalkMemory,
        start: FrameState,
        out: &mut [u64],
        cached: bool,
    ) -> (usize, End) {
        let mut count = 0;
        let mut frame = Entry::leaf(start);
        let end = loop {
            // SAFETY: as the caller promises.
            let mut next = unsafe { self.step(&mut memory.scratch, &mut frame, cached) };
            if next.is_err_and(|stop| stop.check == EndCheck::Inner) {
                // SAFETY: likewise, and the fresh frames led here.
                next = unsafe { self.step_by_base_slow(memory, &mut frame, count) };
            }
            memory.push_fresh(&mut { count }, frame);
            // Room is left for the entry between the two ends.
            let index = fresh_index(count);
            let index = if index < LEAF_KEPT { index } else { index + 1 };
            if let Some(place) = out.get_mut(index) {
                *place = frame.address;
            }
            count += 1;
            match next {
                _ if count == STEPS_MAX => break End::CutDepth,
                Ok(next) => frame = next,
                Err(stop) => break stop.end,
            }
        };
        if count > LEAF_KEPT + ROOT_KEPT {
            if let Some(place) = out.get_mut(LEAF_KEPT) {
                *place = ELIDED_ENTRY;
            }
            if let Some(ring) = out.get_mut(LEAF_KEPT + 1..FRAMES_MAX) {
                ring.rotate_left(fresh_index(count) - LEAF_KEPT);
            }
            return (FRAMES_MAX.min(out.len()), End::CutDepth);
        }
        if count > LEAF_KEPT && out.len() > LEAF_KEPT {
            let last = out.len().min(count + 1);
            out.copy_within(LEAF_KEPT + 1..last, LEAF_KEPT);
        }
        (count.min(out.len()), end)
    }
}
