//! The walk that builds on the last one.
//!
//! A walk is a pure function of the state it starts from, of the words that its steps read, and of what is known of
//! modules and stacks. So: step from the leaf until a frame is in the same state (pc, sp, bp) as one of the last
//! walk's; from there on do not step but read again what that walk read. Where a word is another, step again.
//!
//! ```text
//! last walk   root ─ A ─ B ─ C ─ D ─ leaf         entries, root first
//! this walk                  C'─ D'─ E'─ leaf'    fresh, leaf first
//!                        └ in B's state: read B's words, then A's; all the same: kept = 3 (root, A, B)
//! ```

#![expect(unsafe_code, reason = "a walk reads the stack of the thread that it runs on")]

use crate::memory::{
    EndCheck, Entry, LEAF_KEPT, ROOT_KEPT, STEP_BARRIER, STEP_NUMBER, STEP_REALIGNED, WalkMemory,
};
use crate::unwinder::{STEPS_MAX, Stop, Unwinder, word};
use crate::{CodeMap, End, FrameState, Walk};

impl<M: CodeMap> Unwinder<'_, M> {
    /// Walks the stack from `start` to its root, into the memory's entries. The result is that of a full walk.
    ///
    /// # Safety
    /// `start` is the state of a frame of the calling thread that stays alive during the call: its registers were
    /// taken when the function that runs now was entered. `map` speaks the truth. `memory` holds zeroes or what the
    /// last walk left.
    pub unsafe fn walk(&self, memory: &mut WalkMemory, start: FrameState) -> Walk {
        if memory.generation != self.generation || memory.is_stale {
            memory.forget();
            memory.generation = self.generation;
        }
        let mut count = 0;
        let mut frame = Entry::leaf(start);
        // The entries below this index may still be met; those above lie further in than the frame.
        let mut candidates = memory.len();
        let mut stop = Stop { end: End::CutDepth, check: EndCheck::Redo };
        loop {
            // SAFETY: `candidates` is at most `len`.
            while candidates > 0 && unsafe { memory.entry(candidates - 1) }.sp < frame.sp {
                candidates -= 1;
            }
            // SAFETY: likewise.
            if candidates > 0 && unsafe { memory.entry(candidates - 1) }.is_state_of(&frame) {
                let met = candidates - 1;
                // The same state may be reached from another callee by another step.
                // SAFETY: `met` is below `len`.
                unsafe { memory.entry_mut(met) }.step = frame.step;
                // SAFETY: the state is that of a live frame.
                let Some(last) = (unsafe { self.verify(memory, met) }) else {
                    return Self::rejoin(memory, met + 1, count);
                };
                // These frames are as they were, but hang below other callers now.
                let mut same = met;
                while same > last {
                    // SAFETY: `same` is at most `met`.
                    let entry = *unsafe { memory.entry(same) };
                    memory.push_fresh(&mut count, entry);
                    same -= 1;
                }
                // SAFETY: `last` is at most `met`.
                frame = *unsafe { memory.entry(last) };
                candidates = last;
            }
            let rule = self.known_rule(frame);
            // SAFETY: the frame is the start, or what a step from it led to.
            if let Some(caller) = unsafe { Self::step_quick(frame, rule) } {
                memory.push_fresh(&mut count, frame);
                frame = caller;
            } else {
                let mut marked = frame;
                // SAFETY: likewise.
                let mut next = unsafe { self.step_slow(&mut memory.scratch, &mut marked, rule, true) };
                if next.is_err_and(|stop| stop.check == EndCheck::Inner) {
                    // SAFETY: likewise, and the fresh frames led here.
                    next = unsafe { self.step_by_base_slow(memory, &mut marked, count) };
                }
                memory.push_fresh(&mut count, marked);
                let Ok(caller) = next.map_err(|why| stop = why) else { break };
                if caller.step & STEP_BARRIER != 0 {
                    candidates = Self::meet_slow(memory, candidates, &caller);
                }
                frame = caller;
            }
            if count >= LEAF_KEPT + ROOT_KEPT {
                // The stack is too deep already: nothing is kept of the last one.
                candidates = 0;
                if count >= STEPS_MAX {
                    break;
                }
            }
        }
        if count > LEAF_KEPT + ROOT_KEPT {
            memory.elide_slow(count);
            return Walk { end: End::CutDepth, kept: 0 };
        }
        memory.finish(0, count);
        memory.set_end(stop.end, stop.check);
        Walk { end: stop.end, kept: 0 }
    }

    /// The rest of the stack is as it was: `kept` entries stay, the fresh ones follow.
    #[inline(always)]
    fn rejoin(memory: &mut WalkMemory, kept: usize, count: usize) -> Walk {
        if kept + count > LEAF_KEPT + ROOT_KEPT {
            return Self::rejoin_deep_slow(memory, kept, count);
        }
        memory.finish(kept, count);
        Walk { end: memory.end().unwrap_or(End::CutBadStack), kept }
    }

    /// The same where the stack became too deep by the new frames.
    #[cold]
    #[inline(never)]
    fn rejoin_deep_slow(memory: &mut WalkMemory, kept: usize, mut count: usize) -> Walk {
        for index in (0..kept).rev() {
            // SAFETY: `kept` is at most `len`.
            let entry = *unsafe { memory.entry(index) };
            memory.push_fresh(&mut count, entry);
        }
        memory.elide_slow(count);
        Walk { end: End::CutDepth, kept: 0 }
    }

    /// After a step that may have changed stacks, where addresses say nothing of the order: looks for the caller's
    /// state among all candidates.
    #[cold]
    #[inline(never)]
    fn meet_slow(memory: &WalkMemory, candidates: usize, caller: &Entry) -> usize {
        let entries = memory.entries().get(..candidates).unwrap_or_default();
        entries.iter().rposition(|entry| entry.is_state_of(caller)).map_or(candidates, |met| met + 1)
    }

    /// Reads again what the last walk read from the entry `met` to the root. `None` if all of it is the same, else
    /// the outermost entry that the walk still comes by.
    ///
    /// # Safety
    /// The entry `met` is the state of a live frame of the calling thread.
    #[inline(always)]
    unsafe fn verify(&self, memory: &mut WalkMemory, met: usize) -> Option<usize> {
        // SAFETY: `met` is below `len`.
        let mut left = unsafe { memory.proof.before(met) };
        loop {
            // SAFETY: the walk comes by the entry `met`, and from there reads these words.
            left = unsafe { memory.proof.same(left) };
            if left == 0 {
                break;
            }
            let index = memory.proof.entry_of_slow(left - 1, met) + 1;
            // SAFETY: the walk comes by the entry `index`.
            if !unsafe { self.is_same_step_slow(memory, index) } {
                return Some(index);
            }
            // SAFETY: `index` is at most `met`.
            left = unsafe { memory.proof.before(index - 1) };
        }
        match memory.end_check() {
            EndCheck::Nothing => None,
            // SAFETY: the walk comes by the entry 0.
            EndCheck::Redo | EndCheck::Inner => (!unsafe { self.is_same_end_slow(memory) }).then_some(0),
        }
    }

    /// Whether the step from entry `index` leads to the entry before it, as last time.
    ///
    /// # Safety
    /// The entry is the state of a live frame of the calling thread.
    #[cold]
    #[inline(never)]
    unsafe fn is_same_step_slow(&self, memory: &mut WalkMemory, index: usize) -> bool {
        // SAFETY: the caller keeps `index` above 0 and below `len`.
        let (mut frame, caller) = unsafe { (*memory.entry(index), *memory.entry(index - 1)) };
        if caller.step & (STEP_BARRIER | STEP_REALIGNED) == 0 {
            return false;
        }
        if caller.step & STEP_REALIGNED != 0 {
            let at = frame.bp.wrapping_sub(8 * u64::from(caller.step & STEP_NUMBER));
            // SAFETY: the step from this state reads this word, and the two below if it is the same.
            let is_same = unsafe { word(at) } == caller.sp;
            // SAFETY: likewise.
            return is_same && unsafe { (word(caller.sp - 8), word(frame.bp)) } == (caller.pc(), caller.bp);
        }
        let rule = self.known_rule(frame);
        // SAFETY: as the caller promises.
        match unsafe { self.step_slow(&mut memory.scratch, &mut frame, rule, true) } {
            Ok(again) => again.is_state_of(&caller) && again.step == caller.step,
            Err(_) => false,
        }
    }

    /// Whether the walk ends at the root entry as last time.
    ///
    /// # Safety
    /// The root entry is the state of a live frame of the calling thread.
    #[cold]
    #[inline(never)]
    unsafe fn is_same_end_slow(&self, memory: &mut WalkMemory) -> bool {
        // SAFETY: an entry was met, so there is one.
        let mut frame = *unsafe { memory.entry(0) };
        let end = memory.end();
        let rule = self.known_rule(frame);
        // SAFETY: as the caller promises.
        let step = unsafe { self.step_slow(&mut memory.scratch, &mut frame, rule, true) };
        step.is_err_and(|stop| Some(stop.end) == end && stop.check != EndCheck::Inner)
    }
}
