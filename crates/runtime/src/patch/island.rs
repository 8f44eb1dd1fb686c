//! Islands: the moved instructions of patched entries, near their modules.
//!
//! ```text
//! block   ┌ slot 0: address of the trampoline
//!         ├ slot 1: push id; call [slot 0]; moved instructions; jmp rest
//!         ├ slot 2: …                                                       ids in a row
//! ```
//!
//! A frame that a signal interrupted in an island is the function's, at the address for which the moved instruction stands,
//! with as many words less on its stack as the island has pushed: see [`moved`].
#![expect(unsafe_code, reason = "writes code")]

use core::sync::atomic::{AtomicU64, Ordering};

use heaptally_segment::layout::{FIXUP_DISTANCE, FIXUP_HIGH, FIXUP_LOW, PLAN_CODE, Plan};

use crate::sys;
use crate::x86_64::trampoline;

/// Bytes of a slot.
pub(super) const SLOT_BYTES: u64 = 128;
/// `push id`.
const PUSH_BYTES: u64 = 5;
/// That and `call [slot 0]`.
const HEAD_BYTES: u64 = 11;
/// A jump reaches as far, with some room for the block itself.
const REACH: u64 = (1 << 31) - (64 << 20);
/// Blocks are looked for at multiples of this.
const STEP: u64 = 64 << 10;

const _: () = assert!(HEAD_BYTES + PLAN_CODE as u64 <= SLOT_BYTES);

/// So many blocks can live at a time.
const BLOCKS: usize = 1024;

/// Islands of one module. A start of 0: unused.
struct Block {
    start: AtomicU64,
    end: AtomicU64,
    /// The id of its first island.
    first: AtomicU64,
    /// AVMA = SVMA + bias.
    bias: AtomicU64,
    /// An address in the module.
    module: AtomicU64,
}

static ALL: [Block; BLOCKS] = [const {
    Block {
        start: AtomicU64::new(0),
        end: AtomicU64::new(0),
        first: AtomicU64::new(0),
        bias: AtomicU64::new(0),
        module: AtomicU64::new(0),
    }
}; BLOCKS];

/// A block that is being written.
pub(super) struct NewBlock {
    start: u64,
    bytes: u64,
}

impl NewBlock {
    /// Memory within reach of a module, for so many islands; `None`: there is none.
    pub(super) fn near(module: (u64, u64), islands: u32) -> Option<Self> {
        let bytes = ((u64::from(islands) + 1) * SLOT_BYTES).next_multiple_of(sys::PAGE as u64);
        let (low, high) = module;
        // Below first: behind a program its heap grows. Each place that is taken makes the next step larger.
        let mut step = STEP;
        let mut at = low.checked_sub(bytes)? & !(STEP - 1);
        while high - at.min(high) < REACH && at >= STEP {
            if let Some(block) = Self::at(at, bytes) {
                return Some(block);
            }
            at = at.saturating_sub(step);
            step = (step + STEP).min(16 << 20);
        }
        // Above, the furthest first.
        let mut at = (low + REACH - bytes) & !(STEP - 1);
        while at > high {
            if let Some(block) = Self::at(at, bytes) {
                return Some(block);
            }
            at -= 16 << 20;
        }
        None
    }

    fn at(start: u64, bytes: u64) -> Option<Self> {
        sys::map_exactly(start as usize, bytes as usize).then(|| {
            let block = Self { start, bytes };
            // SAFETY: the first word of a new mapping.
            unsafe { (start as *mut u64).write(trampoline::entered as *const () as u64) };
            // SAFETY: the rest of the first slot: nothing runs there.
            unsafe { ((start + 8) as *mut u8).write_bytes(0xcc, SLOT_BYTES as usize - 8) };
            block
        })
    }

    /// Writes the island of that number in the block; its address, or `None`: something is out of reach.
    pub(super) fn write(&self, number: u32, id: u32, plan: &Plan, bias: u64) -> Option<u64> {
        let at = self.address(number);
        let code = plan.code.get(..plan.code_len as usize)?;
        let mut bytes = [0xcc; SLOT_BYTES as usize];
        let mut put = |offset: u64, value: &[u8]| {
            let offset = offset as usize;
            bytes.get_mut(offset..offset + value.len()).map(|place| place.copy_from_slice(value))
        };
        put(0, &[0x68])?;
        put(1, &id.to_le_bytes())?;
        put(PUSH_BYTES, &[0xff, 0x15])?;
        put(PUSH_BYTES + 2, &distance(at + HEAD_BYTES, self.start)?)?;
        put(HEAD_BYTES, code)?;
        for fixup in plan.fixups.get(..plan.fixups_len as usize)? {
            let target = fixup.target.wrapping_add(bias);
            let value = match fixup.kind {
                FIXUP_DISTANCE => distance(at + HEAD_BYTES + u64::from(fixup.end), target)?,
                FIXUP_LOW => (target as u32).to_le_bytes(),
                FIXUP_HIGH => ((target >> 32) as u32).to_le_bytes(),
                _ => return None,
            };
            put(HEAD_BYTES + u64::from(fixup.at), &value)?;
        }
        for (offset, byte) in bytes.iter().enumerate() {
            // SAFETY: the slot lies in the block's own memory, which nothing runs yet.
            unsafe { ((at + offset as u64) as *mut u8).write(*byte) };
        }
        Some(at)
    }

    /// Where the island of that number in the block is.
    pub(super) fn address(&self, number: u32) -> u64 {
        self.start + (u64::from(number) + 1) * SLOT_BYTES
    }

    /// Makes it code, and known. False: refused, or there are too many.
    pub(super) fn publish(&self, first: u32, bias: u64, module: u64) -> bool {
        let Some(block) = ALL.iter().find(|block| block.start.load(Ordering::Acquire) == 0) else {
            return false;
        };
        if !sys::set_code_writable(self.start as usize, self.bytes as usize, false) {
            return false;
        }
        block.first.store(u64::from(first), Ordering::Relaxed);
        block.bias.store(bias, Ordering::Relaxed);
        block.module.store(module, Ordering::Relaxed);
        block.end.store(self.start + self.bytes, Ordering::Relaxed);
        block.start.store(self.start, Ordering::Release);
        true
    }

    /// Gives it back.
    pub(super) fn discard(self) {
        sys::unmap(self.start as *mut u8, self.bytes as usize);
    }
}

/// The four bytes of a distance.
pub(super) fn distance(from: u64, to: u64) -> Option<[u8; 4]> {
    i32::try_from(to.wrapping_sub(from).cast_signed()).ok().map(i32::to_le_bytes)
}

/// Gives back the islands of modules that are gone.
pub(super) fn forget(is_loaded: impl Fn(u64) -> bool) {
    for block in &ALL {
        let start = block.start.load(Ordering::Acquire);
        if start != 0 && !is_loaded(block.module.load(Ordering::Relaxed)) {
            let end = block.end.load(Ordering::Relaxed);
            block.start.store(0, Ordering::Release);
            sys::unmap(start as *mut u8, (end - start) as usize);
        }
    }
}

/// What an address in an island stands for: the function's own address, and how many words more than there are on the
/// stack. `plan`: that of an id.
pub(super) fn moved<'a>(pc: u64, plan: impl Fn(u32) -> Option<&'a Plan>) -> Option<(u64, u64)> {
    let block = ALL.iter().find(|block| {
        let start = block.start.load(Ordering::Acquire);
        start != 0 && start <= pc && pc < block.end.load(Ordering::Relaxed)
    })?;
    let offset = pc - block.start.load(Ordering::Relaxed);
    let number = (offset / SLOT_BYTES).checked_sub(1)?;
    let plan = plan((block.first.load(Ordering::Relaxed) + number) as u32)?;
    let bias = block.bias.load(Ordering::Relaxed);
    let offset = offset % SLOT_BYTES;
    if offset < HEAD_BYTES {
        return Some((plan.at.wrapping_add(bias), u64::from(offset >= PUSH_BYTES)));
    }
    let steps = plan.steps.get(..plan.steps_len as usize)?;
    let step = steps.iter().rev().find(|step| u64::from(step.at) <= offset - HEAD_BYTES)?;
    Some((step.original.wrapping_add(bias), u64::from(step.pushed)))
}
