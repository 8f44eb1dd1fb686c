//! One step from a frame to its caller, the quick way.

#![expect(unsafe_code, reason = "a walk reads the stack of the thread that it runs on")]

use core::fmt;
use core::sync::atomic::AtomicU32;

use crate::memory::{EndCheck, Entry, INTERRUPTED, STEP_UNTRUSTED};
use crate::row::Scratch;
use crate::x86_64::{ADDRESS_END, Rule};
use crate::{CodeMap, End, FrameState, RuleCache};

/// A walk gives up after so many frames.
pub const STEPS_MAX: usize = 1 << 20;

/// A frame that is larger is looked at more closely: it may be a change of stacks, or a register that is not what
/// its rule says.
pub(crate) const FRAME_NEAR_BYTES: u64 = 64 << 10;

/// Walks stacks. Cheap to make; one is made for each event.
#[derive(Clone, Copy)]
pub struct Unwinder<'a, M: CodeMap> {
    /// The rules known so far.
    pub cache: &'a RuleCache,
    /// What is asked about code and stacks.
    pub map: &'a M,
    /// The number of unloads so far, as read before the walk. A memory of another generation is forgotten.
    pub generation: u32,
    /// Where that number lives: a rule is only kept if it did not change while the rule was computed.
    pub live_generation: &'a AtomicU32,
    /// Makes one kind of rule wrong on purpose: 1 CFA by rsp, 2 CFA by rbp, 3 the saved rbp, 4 the end, 5 signals.
    #[cfg(feature = "mutation")]
    pub mutation: u8,
}

impl<M: CodeMap> fmt::Debug for Unwinder<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unwinder").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// How a walk stopped, and what has to hold for it to stop alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) end: End,
    pub(crate) check: EndCheck,
}

impl Stop {
    pub(crate) fn redo(end: End) -> Self {
        Self { end, check: EndCheck::Redo }
    }

    pub(crate) fn always(end: End) -> Self {
        Self { end, check: EndCheck::Nothing }
    }
}

impl Entry {
    /// The first frame of a walk.
    pub(crate) fn leaf(start: FrameState) -> Self {
        Self { address: start.pc & (ADDRESS_END - 1), node: 0, step: 0, sp: start.sp, bp: start.bp }
    }
}

/// Reads a word of the stack.
///
/// # Safety
/// `address` is a multiple of 8, and readable.
#[inline(always)]
pub(crate) unsafe fn word(address: u64) -> u64 {
    // SAFETY: the caller promises. Volatile, since the word is another function's and Rust knows nothing of it.
    unsafe { (address as *const u64).read_volatile() }
}

impl<M: CodeMap> Unwinder<'_, M> {
    /// What the cache knows of a frame.
    #[inline(always)]
    pub(crate) fn known_rule(&self, frame: Entry) -> Rule {
        // The same address stands for another row when it is not a return address.
        if frame.address & INTERRUPTED == 0 { self.cache.get(frame.pc()) } else { Rule::MISS }
    }

    /// The caller of `frame` by a plain rule to a place nearby; `None` is for [`Self::step_slow`] to find out.
    ///
    /// PERF: all in registers, by value: with a `Result` that both ways fill it took 12.5 ns a frame, so 5.3.
    /// What is left is a chain of dependent loads: return address, rule, next return address.
    ///
    /// # Safety
    /// `frame` is a state of a live frame of the calling thread, or one that is not trusted.
    #[inline(always)]
    pub(crate) unsafe fn step_quick(frame: Entry, rule: Rule) -> Option<Entry> {
        let base = if rule.is_stack_pointer() { frame.sp } else { frame.bp };
        let cfa = base.wrapping_add(rule.offset());
        // One comparison for "grows, by not too much" (a CFA at or below sp wraps around).
        let is_near = cfa.wrapping_sub(frame.sp).wrapping_sub(8) < FRAME_NEAR_BYTES;
        if !(rule.is_plain() && is_near && cfa & 7 == 0 && frame.step & STEP_UNTRUSTED == 0) {
            return None;
        }
        // SAFETY: the caller's frame ends at `cfa`, just above `frame.sp`.
        let pc = unsafe { word(cfa - 8) };
        // The unchanged rbp reads the return address's slot too, so that no branch is needed, here and later.
        let slot = rule.slot().max(1);
        // SAFETY: the slot lies in the same frame.
        let saved = unsafe { word(cfa.wrapping_sub(8 * u64::from(slot))) };
        let bp = if slot == 1 { frame.bp } else { saved };
        // 0 and what is no address wrap around or are too high.
        (pc.wrapping_sub(1) < ADDRESS_END - 1).then_some(Entry {
            address: pc,
            node: 0,
            step: slot,
            sp: cfa,
            bp,
        })
    }

    /// The caller of `frame`, or how the walk stops there. May mark `frame` as a signal trampoline.
    ///
    /// # Safety
    /// As for [`Self::step_quick`].
    pub(crate) unsafe fn step(
        &self,
        scratch: &mut Scratch,
        frame: &mut Entry,
        cached: bool,
    ) -> Result<Entry, Stop> {
        let rule = if cached { self.known_rule(*frame) } else { Rule::MISS };
        // SAFETY: as the caller promises.
        match unsafe { Self::step_quick(*frame, rule) } {
            Some(caller) => Ok(caller),
            // SAFETY: likewise.
            None => unsafe { self.step_slow(scratch, frame, rule, cached) },
        }
    }
}
