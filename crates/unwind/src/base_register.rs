//! Frames whose end is found by rbx.
//!
//! The loader's code that binds a late bound call (`_dl_runtime_resolve`, `_dl_runtime_profile`) keeps its frame's end in
//! rbx. A walk does not carry rbx along; functions keep it for their callers, so the nearest frame further in that saved
//! it has it in memory. If none did, it is what it was at the leaf, and the walker's own frames are asked in the same way.
//! All of it is read again at each walk.

#![expect(unsafe_code, reason = "a walk reads the stack of the thread that it runs on")]

use crate::eh_frame::Found;
use crate::memory::{EndCheck, Entry, INTERRUPTED, WalkMemory};
use crate::row::{Find, Row, Scratch};
use crate::unwinder::{Stop, Unwinder};
use crate::x86_64::{Rule, registers};
use crate::{CodeMap, End, FrameState};

/// So many frames further in are asked: between a call's binding and what allocates there lie a few.
const ASKED_MAX: usize = 256;
/// The walker's own frames and its caller's, up to the leaf.
const OWN_MAX: usize = 64;

/// What the frames further in say of rbx.
#[derive(Clone, Copy)]
enum Base {
    Known(u64),
    /// None of them saved it.
    OfLeaf,
    Unknown,
}

impl<M: CodeMap> Unwinder<'_, M> {
    /// The step of a frame whose row asks for rbx; `count` frames of the running walk lie further in.
    ///
    /// # Safety
    /// As for [`Self::step`]; the frames further in are those that led here.
    #[cold]
    #[inline(always)]
    pub(crate) unsafe fn step_by_base_slow(
        &self,
        memory: &mut WalkMemory,
        frame: &mut Entry,
        count: usize,
    ) -> Result<Entry, Stop> {
        // PERF: not one inside the other: together they would take more of the stack than a hook may.
        // SAFETY: as the caller promises.
        let bx = match unsafe { self.base_register(memory, frame, count) } {
            Base::Known(bx) => Some(bx),
            Base::Unknown => None,
            // SAFETY: the walker runs further in than the leaf.
            Base::OfLeaf => unsafe { self.base_register_at_leaf(memory, frame, count) },
        };
        // SAFETY: likewise.
        unsafe { self.step_with_base(&mut memory.scratch, frame, bx) }
    }

    /// # Safety
    /// As for [`Self::step`].
    #[inline(never)]
    unsafe fn step_with_base(
        &self,
        scratch: &mut Scratch,
        frame: &mut Entry,
        bx: Option<u64>,
    ) -> Result<Entry, Stop> {
        let bx = bx.ok_or(Stop { end: End::CutBadInformation, check: EndCheck::Inner })?;
        // SAFETY: as the caller promises.
        unsafe { self.find_row_slow(scratch, frame) }?;
        self.step_by_row(scratch, frame, Some(bx))
            .map_err(|stop| Stop { end: stop.end, check: EndCheck::Inner })
    }

    /// rbx in a frame.
    ///
    /// # Safety
    /// As for [`Self::step_by_base_slow`].
    #[cold]
    #[inline(never)]
    unsafe fn base_register(&self, memory: &mut WalkMemory, frame: &Entry, count: usize) -> Base {
        let first = count.saturating_sub(ASKED_MAX);
        if !frame.is_trusted() {
            return Base::Unknown;
        }
        let mut end = frame.sp;
        for nth in (first..count).rev() {
            let Some(inner) = memory.fresh_entry(nth) else { return Base::Unknown };
            // SAFETY: it is a live frame that lies further in.
            match unsafe { self.saved(&mut memory.scratch, &inner, |row| row.bx) } {
                None => return Base::Unknown,
                Some(None) => end = inner.sp,
                Some(Some(offset)) => {
                    let found = self.load(&inner, end.wrapping_add_signed(offset));
                    return found.map_or(Base::Unknown, Base::Known);
                }
            }
        }
        if first > 0 { Base::Unknown } else { Base::OfLeaf }
    }

    /// Where a function's frame keeps a register of its caller's, from the frame's end; an inner `None`: in that register.
    /// An outer one: that cannot be told.
    ///
    /// # Safety
    /// As for [`Self::step`].
    #[inline(never)]
    pub(crate) unsafe fn saved(
        &self,
        scratch: &mut Scratch,
        frame: &Entry,
        of: impl Fn(&Row) -> Find,
    ) -> Option<Option<i64>> {
        // SAFETY: as the caller promises.
        let Found::Row = (unsafe { self.find_row(scratch, frame) })? else { return None };
        if scratch.is_signal || scratch.row.sp != Find::Unsaid {
            return None;
        }
        match of(&scratch.row) {
            Find::Unsaid | Find::Same => Some(None),
            Find::At(offset) => Some(Some(offset)),
            _ => None,
        }
    }

    /// rbx in the frame that the walk began at: what it is now, unless a function from there to here saved it.
    ///
    /// # Safety
    /// The leaf lives: this is called from it, by whatever ways.
    #[cold]
    #[inline(never)]
    unsafe fn base_register_at_leaf(
        &self,
        memory: &mut WalkMemory,
        frame: &Entry,
        count: usize,
    ) -> Option<u64> {
        let leaf = if count == 0 { *frame } else { memory.fresh_entry(0)? };
        let (leaf_pc, leaf_sp) = (leaf.pc(), leaf.sp);
        let scratch = &mut memory.scratch;
        let [pc, sp, bp, mut bx] = registers();
        let mut frame = Entry::leaf(FrameState { pc, sp, bp });
        // The next instruction to run, no return address.
        frame.address |= INTERRUPTED;
        for _ in 0..OWN_MAX {
            if frame.sp == leaf_sp && frame.pc() == leaf_pc {
                return Some(bx);
            }
            if frame.sp >= leaf_sp {
                return None;
            }
            // SAFETY: the frame is this function's or one that it was called from.
            let saved = unsafe { self.saved(scratch, &frame, |row| row.bx) }?;
            let rule = Rule::of_row(scratch);
            // SAFETY: likewise.
            frame = unsafe { self.step_slow(scratch, &mut frame, rule, false) }.ok()?;
            if let Some(offset) = saved {
                bx = self.load(&frame, frame.sp.wrapping_add_signed(offset))?;
            }
        }
        None
    }
}
