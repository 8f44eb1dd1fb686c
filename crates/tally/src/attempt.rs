//! Attempts at entries of windows that can be restarted.
//!
//! A restart marks the attempt as discarded, and nothing else. What a row counted in it is told apart when the row is counted
//! in another attempt for the first time, by each shard for itself, or by the reader: see [`TwinRows`].
#![expect(unsafe_code, reason = "the marks lie in mapped memory, and counters are named by their offsets")]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::{
    ATTEMPT_LIMIT, ATTEMPTS_BYTES, AreaHeader, Counters, PAGE, RESTART_LIMIT, Row, TwinRows,
};

use crate::os::{Os, TableMap};
use crate::table::Pages;

/// Attempts whose marks lie in one page.
const ATTEMPTS_PER_PAGE: u64 = PAGE * 8;

/// Which attempts were discarded, of all windows that can be restarted.
#[derive(Debug)]
pub(crate) struct Attempts {
    marks: Pages,
    places: &'static AtomicU32,
    /// The marks of a window's attempts below this number lie in open pages.
    open: [AtomicU64; RESTART_LIMIT as usize],
}

impl Attempts {
    pub(crate) fn new(map: TableMap, os: Os, header: &'static AreaHeader) -> Self {
        Self {
            marks: Pages::new(map, os),
            places: &header.restartable,
            open: [const { AtomicU64::new(0) }; RESTART_LIMIT as usize],
        }
    }

    /// A place for a window's marks, plus one; 0: there is none. With the windows' lock held.
    pub(crate) fn place(&self) -> u32 {
        let used = self.places.load(Ordering::Relaxed);
        if used >= RESTART_LIMIT {
            return 0;
        }
        self.places.store(used + 1, Ordering::Release);
        used + 1
    }

    /// Marks an attempt as discarded, before the next one begins. `place` is as from [`place`](Self::place). False: that
    /// cannot be noted. With the windows' lock held.
    pub(crate) fn discard(&self, place: u32, attempt: u64) -> bool {
        let Some(open) = place.checked_sub(1).and_then(|place| self.open.get(place as usize)) else {
            return false;
        };
        let known = open.load(Ordering::Relaxed);
        if attempt >= known {
            let end = (attempt + 1).next_multiple_of(ATTEMPTS_PER_PAGE);
            if end > ATTEMPT_LIMIT || !self.marks.open_at(start(place) + known / 8, (end - known) / 8) {
                return false;
            }
            open.store(end, Ordering::Release);
        }
        // PERF: nobody else writes while the lock is held, so a load and a store do.
        let word = self.word(place, attempt);
        word.store(word.load(Ordering::Relaxed) | 1 << (attempt % 64), Ordering::Relaxed);
        true
    }

    /// Whether an attempt was discarded. Only of one before the current attempt is it known.
    pub(crate) fn is_discarded(&self, place: u32, attempt: u64) -> bool {
        let open = place.checked_sub(1).and_then(|place| self.open.get(place as usize));
        if open.is_none_or(|open| attempt >= open.load(Ordering::Acquire)) {
            return false;
        }
        self.word(place, attempt).load(Ordering::Relaxed) >> (attempt % 64) & 1 == 1
    }

    /// The word of an attempt's mark, whose page is open.
    fn word(&self, place: u32, attempt: u64) -> &'static AtomicU64 {
        let offset = start(place) + attempt / 64 * 8;
        // SAFETY: the callers looked whether the page is open; the mapping stays for the process's life.
        unsafe { &*self.marks.address(offset).cast::<AtomicU64>() }
    }
}

/// Where a window's marks begin.
fn start(place: u32) -> u64 {
    u64::from(place.saturating_sub(1)) * ATTEMPTS_BYTES
}

/// A shard's counters of a row and of its twins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    pub(crate) row: &'static Counters,
    pub(crate) before: &'static Counters,
    pub(crate) discarded: &'static Counters,
}

impl Settled {
    /// The row is going to be counted in another attempt than the one in its `entered`, which `was_discarded`.
    ///
    /// NOTE: stores with release order, one after the other as the layout says, since the process may be killed between any
    /// two.
    pub(crate) fn settle(self, was_discarded: bool) {
        for (number, offset) in (1..).zip(TwinRows::FIELDS) {
            let [row, before, discarded] =
                [self.row, self.before, self.discarded].map(|counters| field(counters, offset));
            let now = row.load(Ordering::Relaxed);
            if was_discarded {
                let since = now.saturating_sub(before.load(Ordering::Relaxed));
                let sum = discarded.load(Ordering::Relaxed).saturating_add(since);
                self.before.freed.store(sum, Ordering::Release);
                self.discarded.entered.store(number, Ordering::Release);
                discarded.store(sum, Ordering::Release);
                before.store(now, Ordering::Release);
                self.discarded.entered.store(0, Ordering::Release);
            } else {
                before.store(now, Ordering::Release);
            }
        }
    }
}

/// One of the [`TwinRows::FIELDS`].
fn field(counters: &'static Counters, offset: usize) -> &'static AtomicU64 {
    // SAFETY: the offset is that of such a field.
    unsafe { &*core::ptr::from_ref(counters).cast::<u8>().add(offset).cast::<AtomicU64>() }
}

/// Notes that a row of a window that can be restarted occurred in an attempt. As
/// [`note_entry`](crate::row_table::note_entry), and what becomes known of earlier attempts besides.
pub(crate) fn note_attempt(row: &Row, attempt: u64, is_discarded: impl Fn(u64) -> bool) {
    if row.last_entry.load(Ordering::Relaxed) == attempt {
        return;
    }
    let before = row.last_entry.fetch_max(attempt, Ordering::Relaxed);
    if before < attempt {
        row.entries.fetch_add(1, Ordering::Relaxed);
    }
    if before == 0 {
        row.first_entry.store(attempt, Ordering::Relaxed);
        return;
    }
    // A thread that comes late from an attempt of which all is known takes nothing back.
    let known = before.min(attempt);
    if !is_discarded(known) {
        row.last_kept.fetch_max(known, Ordering::Relaxed);
        let least = |first: u64| (first == 0 || first > known).then_some(known);
        // Where nothing is to be changed it stays.
        let _ = row.first_kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, least);
    } else if before < attempt {
        row.discarded_entries.fetch_add(1, Ordering::Relaxed);
    }
}
