//! Threads, and what each did.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// [`ThreadLife::state`]: the thread lives, or the program ended while it did.
pub const THREAD_ALIVE: u32 = 1;
/// [`ThreadLife::state`]: it has ended.
pub const THREAD_ENDED: u32 = 2;
/// [`ThreadLife::state`]: several lives, merged by name and start function.
pub const THREAD_MERGED: u32 = 3;

/// One thread from its first recorded event to its end. Valid when `state` is not 0.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadLife {
    /// `THREAD_*`, stored last.
    pub state: AtomicU32,
    /// The kernel's thread id.
    pub tid: AtomicU32,
    /// How many lives are merged here.
    pub lives: AtomicU32,
    /// A node of its first stack: its root side names the start function. 0 when unknown.
    pub first_node: AtomicU32,
    /// The thread's name at its first event, NUL-padded.
    pub name: [AtomicU32; 4],
    /// Its name when it ended, or at the latest look.
    pub last_name: [AtomicU32; 4],
    /// The return address in the start function (AVMA): the third frame from the root.
    pub start_address: AtomicU64,
    /// The first of its totals, linked by [`ThreadTotal::next`]; 0 for none.
    pub totals: AtomicU32,
    /// Reserved.
    pub reserved: AtomicU32,
    /// Reserved.
    pub padding: [u64; 8],
}

/// What one thread life did in one window: exact, and an independent sum of what the rows hold. Valid when `window`
/// is not 0.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadTotal {
    /// The window's number, stored last.
    pub window: AtomicU32,
    /// The life's next total, 0 for none.
    pub next: AtomicU32,
    /// Successful allocations.
    pub allocations: AtomicU64,
    /// Their requested bytes.
    pub bytes: AtomicU64,
    /// Blocks of that window which this thread freed, whenever.
    pub freed: AtomicU64,
    /// Their bytes.
    pub freed_bytes: AtomicU64,
    /// Reserved.
    pub padding: [u64; 3],
}
