//! Async callers: they stand below a stack's leaf, since the same stack has other ones at another time.
//!
//! ```text
//! root ─ … ─ the executor ─ resumer ─ async function ─ … ─ leaf ─ 3 frames ─ caller ─ its caller ─ …
//!                           └──────────── resumed ───────────┘   └─────────── NODE_ASYNC ──────────┘
//! ```
use crate::Tally;

impl Tally {
    /// Adds a function that resumes suspended async ones: its first address, and one past its last.
    pub fn add_resumer(&self, code: (u64, u64)) {
        self.stacks.add_resumer(code);
    }

    /// Whether code is that of such a function.
    pub fn is_resumer(&self, pc: u64) -> bool {
        self.stacks.is_resumer(pc)
    }

    /// Whether such a function is on the stack of a leaf, so that the leaf may have async callers.
    #[inline]
    pub fn is_resumed(&self, leaf: u32) -> bool {
        self.stacks.is_resumed(leaf)
    }

    /// The node of an async caller, or of what is said of them, below a leaf or the caller before; `None`: the table is
    /// full. `address` has its flag.
    pub fn caller(&self, callee: u32, address: u64) -> Option<u32> {
        self.stacks.child(callee, address, |_| ())
    }

    /// The same if there is one already.
    #[inline]
    pub fn known_caller(&self, callee: u32, address: u64) -> Option<u32> {
        self.stacks.known_child(callee, address)
    }
}
