//! Memory for those few calls that come before the real functions are known, or before this library is relocated.
//!
//! Blocks are never given back. Each has its size in front of it, for `realloc`.
#![expect(unsafe_code, reason = "hands out parts of a static buffer")]

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 256 * 1024;
const ALIGNMENT: usize = 16;

#[repr(C, align(4096))]
struct Buffer(UnsafeCell<[u8; BYTES]>);

// SAFETY: parts of the buffer are handed out once, by an atomic counter.
unsafe impl Sync for Buffer {}

static BUFFER: Buffer = Buffer(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// How many blocks were handed out.
pub(crate) fn blocks() -> usize {
    BLOCKS.load(Ordering::Relaxed)
}

/// A zeroed block; null when the arena is used up or the request cannot be met.
pub(crate) fn allocate(size: usize, alignment: usize) -> *mut u8 {
    let alignment = alignment.max(ALIGNMENT);
    let Some(room) = size.checked_add(alignment + ALIGNMENT).filter(|room| *room <= BYTES) else {
        return ptr::null_mut();
    };
    let room = room.next_multiple_of(ALIGNMENT);
    let start = USED.fetch_add(room, Ordering::Relaxed);
    if start > BYTES - room {
        return ptr::null_mut();
    }
    BLOCKS.fetch_add(1, Ordering::Relaxed);
    let base = BUFFER.0.get().cast::<u8>();
    // The block follows a word for its size.
    let address = (base as usize + start + ALIGNMENT).next_multiple_of(alignment);
    // SAFETY: `room` covers the word, the alignment and the size, and this part of the buffer is ours alone.
    unsafe {
        let block = base.add(address - base as usize);
        block.cast::<usize>().sub(1).write(size);
        block
    }
}

/// Whether a block came from here.
#[inline(always)]
pub(crate) fn owns(block: *const u8) -> bool {
    (block as usize).wrapping_sub(BUFFER.0.get() as usize) < BYTES
}

/// The requested size of a block that came from here.
pub(crate) fn size(block: *const u8) -> usize {
    // SAFETY: `allocate` wrote the size in front of each block.
    unsafe { block.cast::<usize>().sub(1).read() }
}
