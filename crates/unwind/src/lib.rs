//! Walks the calling thread's stack: return addresses from the function that called the allocator to the start of
//! the thread, with or without frame pointers, exact, and without allocating.
//!
//! What it does:
//! - [`Unwinder::walk`] finds the frames by unwind information (`.eh_frame`), and by frame pointers only where there
//!   is none. One step by a rule that is known costs about 5 ns: a shared [`RuleCache`] keeps what a return address
//!   needs in 32 bits.
//! - It *remembers* the last stack of each thread in a [`WalkMemory`]. As soon as a frame is one that the last walk
//!   saw, the words which that walk read are read again, and as long as they are the same the rest of the stack is
//!   too: a walk is a pure function of these words. About 1 ns a frame, and the caller's stack-table nodes stay.
//!
//! What it does not: it finds no modules and no stacks (the caller's [`CodeMap`] does), gives no names, and walks no
//! other thread's stack.
//!
//! What the caller owes: memory for the cache and for each thread, the machine state at the hook's entry, one number
//! that rises at each unload ([`Unwinder::generation`]), and not more than one walk at a time in one `WalkMemory`.
//!
//! The crate is `no_std` without `alloc`; a walk takes less than 1 KiB of stack, since alternate signal stacks are
//! small. For that reason the unwind information is read by code of its own: gimli's values for one FDE take 1 KiB
//! when they are passed on the stack. A test holds the two against each other, row by row.
//!
//! ```no_run
//! use core::sync::atomic::AtomicU32;
//! use heaptally_unwind::{CodeMap, FrameState, ModuleSections, RuleCache, Unwinder, WalkMemory};
//!
//! struct Nothing;
//! impl CodeMap for Nothing {
//!     fn find(&self, _pc: u64) -> Option<ModuleSections> { None }
//!     fn is_other_code(&self, _pc: u64) -> bool { false }
//!     fn stack_bounds(&self, _sp: u64) -> Option<(u64, u64)> { None }
//!     fn is_coroutine_start(&self, _pc: u64) -> bool { false }
//! }
//!
//! # fn map(bytes: usize) -> *mut u8 { let _ = bytes; core::ptr::null_mut() }
//! # let state = FrameState { pc: 0, sp: 0, bp: 0 };
//! // SAFETY: `map` gives zeroed memory of that size, for good.
//! let cache = unsafe { RuleCache::from_memory(map(RuleCache::BYTES)) };
//! // SAFETY: likewise, and no one else has this memory.
//! let memory = unsafe { &mut *WalkMemory::init(map(WalkMemory::BYTES)) };
//! let generation = AtomicU32::new(1);
//! let unwinder = Unwinder {
//!     cache,
//!     map: &Nothing,
//!     generation: 1,
//!     live_generation: &generation,
//!     # #[cfg(feature = "mutation")]
//!     # mutation: 0,
//! };
//! // SAFETY: `state` was taken at the entry of the function that runs, on this thread.
//! let walk = unsafe { unwinder.walk(memory, state) };
//! for entry in &mut memory.entries_mut()[walk.kept..] {
//!     entry.node = 7; // look up (parent's node, entry.address)
//! }
//! ```
#![no_std]

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
compile_error!("heaptally-unwind knows the frames of x86-64 only");

// The tests share a file with the integration tests, which name the crate so.
#[cfg(test)]
extern crate self as heaptally_unwind;

mod base_register;
mod code_map;
mod context_register;
mod cursor;
mod eh_frame;
mod expression;
mod full_walk;
#[cfg(test)]
mod gimli_oracle;
mod memory;
mod proof;
mod remembered;
mod row;
mod rule_cache;
mod slow_step;
mod unwinder;
mod x86_64;

pub use code_map::{CodeMap, ModuleSections};
pub use context_register::Kept;
pub use eh_frame::is_function_start;
pub use memory::{
    ADDRESS_MASK, ELIDED, ELIDED_ENTRY, Entry, FRAME_POINTER, FRAMES_MAX, INTERRUPTED, LEAF_KEPT, ROOT_KEPT,
    SIGNAL, WalkMemory,
};
pub use rule_cache::RuleCache;
pub use unwinder::{STEPS_MAX, Unwinder};
pub use x86_64::is_readable;

/// The machine state in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameState {
    /// The return address into the frame's function.
    pub pc: u64,
    /// The stack pointer in that frame: the address after the slot which `pc` was read from.
    pub sp: u64,
    /// `rbp` in that frame.
    pub bp: u64,
}

/// How a walk ended. The numbers are those of the segment's root nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum End {
    /// The start of a program, thread or coroutine, or a return address of 0.
    Complete = 1,
    /// No unwind information, and no believable frame pointer.
    CutNoInformation = 2,
    /// Unwind information that could not be read or followed.
    CutBadInformation = 3,
    /// The walk did not advance or left the stack.
    CutBadStack = 4,
    /// More frames than are kept; see [`LEAF_KEPT`].
    CutDepth = 5,
}

/// What [`Unwinder::walk`] found; the frames are the memory's [`WalkMemory::entries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// How the walk ended.
    pub end: End,
    /// The entries below this index, counted from the root, are as the last walk left them, with their nodes, and
    /// hang below the same root. The others are new and need nodes. 0 when `end` is another than last time.
    pub kept: usize,
}
