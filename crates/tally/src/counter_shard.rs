//! Counters, sharded: a thread counts in its own shard with plain additions, the reader sums over the shards.
#![expect(unsafe_code, reason = "counters and directories lie in mapped memory")]

use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::{
    CHUNK_BYTES, CHUNK_LIMIT, Counters, DIRECTORY_BYTES, PAGE, ROWS_PER_CHUNK, SHARD_LIMIT,
};

use crate::os::{Os, TableMap};
use crate::spin::Spin;
use crate::table::Pages;

/// The number of the shard that no thread owns.
const SHARED: u32 = 0;

/// Adds to a counter that only the calling thread adds to.
#[inline]
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    // PERF: a load and a store, no locked addition. Sums saturate, so that a giant size cannot wrap to a small one.
    counter.store(counter.load(Ordering::Relaxed).saturating_add(amount), Ordering::Relaxed);
}

/// Adds one to a counter of events that only the calling thread adds to. So many that it wraps are never counted.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    // PERF: one instruction.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// A thread's share of the counters.
#[derive(Debug)]
pub(crate) struct Shard {
    number: u32,
    /// Rows below this number have their directory entry in an open page. Opening is idempotent, so the next owner of
    /// the shard starts at 0 again.
    open_rows: AtomicU32,
}

impl Shard {
    /// Which one it is. No two threads that live have the same.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

/// The shards' directories and the chunks of counters.
#[derive(Debug)]
pub(crate) struct Shards {
    directories: Pages,
    chunks: Pages,
    used_chunks: &'static AtomicU32,
    used_shards: &'static AtomicU32,
    shared: Shard,
    /// Shards whose threads have ended, to be handed on.
    free: Spin<Free>,
    /// Held while a chunk of the shared shard is made.
    making: Spin<()>,
}

#[derive(Debug)]
struct Free {
    shards: *mut u32,
    count: usize,
    os: Os,
}

// SAFETY: the pointer is to memory that this value alone uses.
unsafe impl Send for Free {}

impl Shards {
    pub(crate) fn new(
        directories: TableMap,
        chunks: TableMap,
        os: Os,
        used_shards: &'static AtomicU32,
        used_chunks: &'static AtomicU32,
    ) -> Self {
        used_shards.store(SHARED + 1, Ordering::Release);
        Self {
            directories: Pages::new(directories, os),
            chunks: Pages::new(chunks, os),
            used_chunks,
            used_shards,
            shared: Shard { number: SHARED, open_rows: AtomicU32::new(0) },
            free: Spin::new(Free { shards: ptr::null_mut(), count: 0, os }),
            making: Spin::new(()),
        }
    }

    /// The shard for what happens outside of any thread's own: added to atomically.
    pub(crate) fn shared(&self) -> &Shard {
        &self.shared
    }

    /// A shard for a thread; `None`: there are no more.
    pub(crate) fn take(&self) -> Option<Shard> {
        let mut free = self.free.lock();
        if free.count > 0 {
            free.count -= 1;
            // SAFETY: `give_back` wrote the entries below the count.
            let number = unsafe { *free.shards.add(free.count) };
            return Some(Shard { number, open_rows: AtomicU32::new(0) });
        }
        let number = self.used_shards.load(Ordering::Relaxed);
        if number >= SHARD_LIMIT || u64::from(number + 1) * DIRECTORY_BYTES > self.directories.bytes() {
            return None;
        }
        self.used_shards.store(number + 1, Ordering::Release);
        Some(Shard { number, open_rows: AtomicU32::new(0) })
    }

    /// Hands a shard on: its counts stay, the next thread adds to them.
    pub(crate) fn give_back(&self, shard: Shard) {
        let mut free = self.free.lock();
        if free.shards.is_null() {
            free.shards = (free.os.map)(SHARD_LIMIT as usize * 4).cast();
        }
        if !free.shards.is_null() && free.count < SHARD_LIMIT as usize {
            // SAFETY: the memory has place for every shard, and no shard is given back twice.
            unsafe { *free.shards.add(free.count) = shard.number };
            free.count += 1;
        }
    }

    /// A shard's counters of a row; `None`: there is no place.
    #[inline]
    pub(crate) fn counters(&self, shard: &Shard, row: u32) -> Option<&'static Counters> {
        self.known(shard, row).or_else(|| self.counters_slow(shard, row))
    }

    /// A shard's counters of a row, if they have a place already.
    #[inline]
    pub(crate) fn known(&self, shard: &Shard, row: u32) -> Option<&'static Counters> {
        if row >= shard.open_rows.load(Ordering::Relaxed) {
            return None;
        }
        let chunk = self.directory_entry(shard, row).load(Ordering::Acquire);
        (chunk != 0).then(|| self.at(chunk - 1, row))
    }

    /// Has the cache line of a shard's counters of a row brought.
    #[inline]
    pub(crate) fn prefetch(&self, shard: &Shard, row: u32) {
        if row < shard.open_rows.load(Ordering::Relaxed) {
            let chunk = self.directory_entry(shard, row).load(Ordering::Relaxed);
            self.chunks.prefetch(Self::offset(chunk.wrapping_sub(1), row));
        }
    }

    #[cold]
    #[inline(never)]
    fn counters_slow(&self, shard: &Shard, row: u32) -> Option<&'static Counters> {
        const ROWS_PER_PAGE: u32 = PAGE as u32 / 4 * ROWS_PER_CHUNK;
        let _making = self.making.lock();
        loop {
            let open = shard.open_rows.load(Ordering::Relaxed);
            if row < open {
                break;
            }
            let offset = u64::from(shard.number) * DIRECTORY_BYTES + u64::from(open / ROWS_PER_CHUNK) * 4;
            if !self.directories.open_at(offset, PAGE) {
                return None;
            }
            shard.open_rows.store(open + ROWS_PER_PAGE, Ordering::Relaxed);
        }
        let entry = self.directory_entry(shard, row);
        let mut chunk = entry.load(Ordering::Acquire);
        if chunk == 0 {
            let number = self.used_chunks.load(Ordering::Relaxed);
            if number >= CHUNK_LIMIT || !self.chunks.reserve(u64::from(number + 1) * CHUNK_BYTES) {
                return None;
            }
            self.used_chunks.store(number + 1, Ordering::Release);
            chunk = number + 1;
            entry.store(chunk, Ordering::Release);
        }
        Some(self.at(chunk - 1, row))
    }

    /// The directory entry of a row; its page must be open.
    #[inline]
    fn directory_entry(&self, shard: &Shard, row: u32) -> &'static AtomicU32 {
        let offset = u64::from(shard.number) * DIRECTORY_BYTES + u64::from(row / ROWS_PER_CHUNK) * 4;
        // SAFETY: `open_rows` says that the page is open; the mapping stays for the process's life.
        unsafe { &*self.directories.address(offset).cast::<AtomicU32>() }
    }

    #[inline]
    fn at(&self, chunk: u32, row: u32) -> &'static Counters {
        // SAFETY: a chunk that a directory names was opened before; it stays mapped, and its fields are atomics.
        unsafe { &*self.chunks.address(Self::offset(chunk, row)).cast::<Counters>() }
    }

    #[inline]
    fn offset(chunk: u32, row: u32) -> u64 {
        u64::from(chunk) * CHUNK_BYTES + u64::from(row % ROWS_PER_CHUNK) * size_of::<Counters>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than 2^32 events of 2^63 bytes each: counters of 64 bits, which stop at their end and do not begin anew.
    #[test]
    fn large_sums_do_not_wrap() {
        let events = AtomicU64::new(u64::from(u32::MAX));
        let bytes = AtomicU64::new(0);
        for _ in 0..3 {
            count(&events);
            add(&bytes, 1 << 63);
        }
        assert_eq!(events.load(Ordering::Relaxed), (1 << 32) + 2);
        assert_eq!(bytes.load(Ordering::Relaxed), u64::MAX);
    }
}
