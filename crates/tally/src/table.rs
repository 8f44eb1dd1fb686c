//! A growing table of the segment: entries are handed out by a counter, pages are opened ahead of them.
#![expect(unsafe_code, reason = "turns entry numbers into references into the mapping")]

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::PAGE;

use crate::os::{Os, TableMap};
use crate::spin::Spin;

/// The largest step in which pages are opened, in bytes.
///
/// PERF: opening costs two system calls a step and about 2.4 µs a page (memfd, populate-write); a larger step opens
/// pages that are never used.
const STEP_LIMIT: u64 = 256 * 1024;

/// The pages of one table: closed at first, opened front to back.
#[derive(Debug)]
pub struct Pages {
    base: *mut u8,
    bytes: u64,
    opened: AtomicU64,
    /// Held while pages are opened; true once the system refused some: it is not asked again.
    refused: Spin<bool>,
    os: Os,
}

// SAFETY: `base` points to a mapping that is never unmapped; everything in it is an atomic.
unsafe impl Sync for Pages {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Pages {}

impl Pages {
    /// The pages of a mapping, none of them open.
    pub fn new(map: TableMap, os: Os) -> Self {
        Self { base: map.base, bytes: map.bytes, opened: AtomicU64::new(0), refused: Spin::new(false), os }
    }

    /// Sees to it that the first `end` bytes are open. False: there is no more place.
    #[inline]
    pub fn reserve(&self, end: u64) -> bool {
        end <= self.opened.load(Ordering::Acquire) || self.reserve_slow(end)
    }

    #[cold]
    #[inline(never)]
    fn reserve_slow(&self, end: u64) -> bool {
        let mut refused = self.refused.lock();
        let opened = self.opened.load(Ordering::Acquire);
        if end <= opened {
            return true;
        }
        if *refused || end > self.bytes {
            return false;
        }
        let needed = (end - opened).next_multiple_of(PAGE);
        let ahead = opened.clamp(PAGE, STEP_LIMIT).max(needed).min(self.bytes - opened);
        let step = if self.open(opened, ahead) {
            ahead
        } else if self.open(opened, needed) {
            needed
        } else {
            *refused = true;
            return false;
        };
        self.opened.store(opened + step, Ordering::Release);
        true
    }

    fn open(&self, from: u64, bytes: u64) -> bool {
        from + bytes <= self.bytes
            // SAFETY: the range lies inside the mapping, by the check before.
            && (self.os.open)(unsafe { self.base.add(from as usize) }, bytes as usize)
    }

    /// Has the cache line of a byte brought; nothing happens where it is not reserved.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u64) {
        if offset < self.bytes {
            prefetch(self.address(offset));
        }
    }

    /// The address of a byte of the table. It may be read or written only if it was reserved.
    #[inline]
    pub fn address(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.bytes);
        // SAFETY: callers pass offsets of entries below the layout's limit, inside the mapping.
        unsafe { self.base.add(offset as usize) }
    }

    /// Writes a byte that was reserved and is not published yet.
    pub(crate) fn write_byte(&self, offset: u64, byte: u8) {
        // SAFETY: the caller reserved it, and no other thread reads it before a release store by the caller.
        unsafe { self.address(offset).write(byte) }
    }

    /// Reads a byte that was published.
    pub(crate) fn read_byte(&self, offset: u64) -> u8 {
        // SAFETY: published bytes are open and never change.
        unsafe { self.address(offset).read() }
    }

    /// Whether published bytes are this text.
    pub(crate) fn is(&self, offset: u32, len: u32, text: &[u8]) -> bool {
        len as usize == text.len()
            // SAFETY: published bytes are open and never change.
            && (0..text.len()).all(|at| unsafe { self.address(u64::from(offset) + at as u64).read() } == text[at])
    }

    /// How many bytes the mapping has.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Opens pages that need not follow the others (a directory's). False: refused.
    pub(crate) fn open_at(&self, offset: u64, bytes: u64) -> bool {
        let mut refused = self.refused.lock();
        if *refused {
            return false;
        }
        *refused = !self.open(offset, bytes);
        !*refused
    }
}

/// Has a cache line brought. No address is wrong: that of no memory is passed over.
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction faults at no address, and changes nothing that a program can read.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
}

/// A table of `T`, whose used length is a counter in the area's header.
#[derive(Debug)]
pub(crate) struct Table<T: 'static> {
    pages: Pages,
    used: &'static AtomicU32,
    entry: PhantomData<&'static T>,
}

impl<T> Table<T> {
    /// A table over a mapping. `first` entries are set aside.
    pub(crate) fn new(map: TableMap, os: Os, used: &'static AtomicU32, first: u32) -> Self {
        let table = Self { pages: Pages::new(map, os), used, entry: PhantomData };
        if table.pages.reserve(u64::from(first) * size_of::<T>() as u64) {
            used.store(first, Ordering::Release);
        }
        table
    }

    /// Takes a new, zeroed entry; `None`: the table is full.
    pub(crate) fn take(&self) -> Option<u32> {
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let end = (u64::from(used) + 1) * size_of::<T>() as u64;
            if used == 0 || end > self.pages.bytes() || !self.pages.reserve(end) {
                return None;
            }
            match self.used.compare_exchange_weak(used, used + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(used),
                Err(now) => used = now,
            }
        }
    }

    /// How many entries are used.
    pub(crate) fn used(&self) -> u32 {
        self.used.load(Ordering::Acquire)
    }

    /// An entry that was taken.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &'static T {
        debug_assert!(number < self.used());
        // SAFETY: a number below `used` was taken, so its pages are open; they stay mapped for the process's life, and
        // all of `T`'s shared fields are atomics.
        unsafe { &*self.pages.address(u64::from(number) * size_of::<T>() as u64).cast::<T>() }
    }
}
