//! Threads: what one of them keeps for itself, and the exact totals of each thread's life.

use core::sync::atomic::{AtomicU64, Ordering};

use heaptally_segment::layout::{
    AreaHeader, MERGED_THREAD_LIMIT, NODE_ADDRESS_MASK, PEAK_BATCH_BYTES, THREAD_ALIVE, THREAD_ENDED,
    THREAD_LIMIT, THREAD_MERGED, ThreadLife, ThreadTotal, Window,
};

use crate::counter_shard::{Shard, add, count};
use crate::nesting::{Entered, ThreadNesting};
use crate::os::{AreaMap, Os};
use crate::spin::Spin;
use crate::table::Table;
use crate::window_table::WindowTable;

const TOTAL_CACHE: usize = 8;
/// Of so many windows at functions the latest call is remembered; those that share a place take turns.
const CALL_CACHE: usize = 16;

/// A thread's place in the table of lives. All zero: not begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Life {
    /// The life's number; 0: it is not begun, or there was no place.
    number: u32,
    /// It was begun, or there was no place for it.
    is_begun: bool,
    /// Other threads add to the same life, or there is none.
    is_merged: bool,
    /// Its first stack is known.
    has_start: bool,
}

/// What a thread keeps for itself. One thread uses it at a time.
#[derive(Debug)]
pub struct ThreadTally {
    pub(crate) shard: Shard,
    /// How deep the thread is paused.
    pub(crate) paused: u32,
    /// Its open thread windows.
    pub(crate) nesting: ThreadNesting,
    /// The block that its latest recorded allocation gave, while it lives.
    pub(crate) last_block: usize,
    /// Live bytes of a window that are not handed in yet.
    delta: i64,
    delta_window: u32,
    life: Life,
    /// Whether several threads use this, one after the other. Nothing is held back then.
    shared: bool,
    totals: [(u32, Option<&'static ThreadTotal>); TOTAL_CACHE],
    /// The thread's latest calls of functions at which windows are defined, by the low bits of the windows' numbers.
    calls: [Entered; CALL_CACHE],
}

impl ThreadTally {
    pub(crate) fn new(shard: Shard) -> Self {
        Self {
            shard,
            paused: 0,
            nesting: ThreadNesting::new(),
            last_block: 0,
            delta: 0,
            delta_window: 0,
            life: Life::default(),
            shared: false,
            totals: [(0, None); TOTAL_CACHE],
            calls: [Entered { window: 0, entry: 0 }; CALL_CACHE],
        }
    }

    /// The thread's latest call of a function at which a window is defined; entry 0: unknown.
    #[inline]
    pub(crate) fn call(&self, window: u32) -> Entered {
        let known = self.calls[window as usize % CALL_CACHE];
        if known.window == window { known } else { Entered { window, entry: 0 } }
    }

    /// Remembers one.
    pub(crate) fn set_call(&mut self, entered: Entered) {
        self.calls[entered.window as usize % CALL_CACHE] = entered;
    }

    /// Lends this, which no thread owns, to a thread for one event: with its life, the block that its latest recorded
    /// allocation gave (0: none) and how deep it is paused.
    pub fn lend(&mut self, life: Life, last_block: usize, paused: u32) {
        self.shared = true;
        if self.life.number != life.number {
            self.totals = [(0, None); TOTAL_CACHE];
        }
        (self.life, self.last_block, self.paused) = (life, last_block, paused);
    }

    /// What [`lend`](Self::lend) was given, as it is now.
    pub fn standing(&self) -> (Life, usize, u32) {
        (self.life, self.last_block, self.paused)
    }

    /// Whether the thread's life still lacks its first stack.
    #[inline]
    pub fn wants_start(&self) -> bool {
        !self.life.has_start
    }

    /// Whether it is paused.
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.paused > 0
    }

    /// Whether it has windows of its own open.
    #[inline]
    pub fn has_open_windows(&self) -> bool {
        self.nesting.len != 0
    }

    /// Whether a block is what the thread's latest recorded allocation gave, and lives.
    pub fn is_latest(&self, block: usize) -> bool {
        self.last_block == block
    }

    /// How many allocations of a window the thread's life has, if that is at hand: to see whether one was recorded
    /// meanwhile.
    pub fn recorded(&self, window: u32) -> u64 {
        let total = self.totals.iter().find(|(of, _)| *of == window).and_then(|(_, total)| *total);
        total.map_or(0, |total| total.allocations.load(Ordering::Relaxed))
    }

    /// As [`recorded`](Self::recorded), of all windows.
    pub fn recorded_anywhere(&self) -> u64 {
        let totals = self.totals.iter().filter_map(|(_, total)| *total);
        totals.map(|total| total.allocations.load(Ordering::Relaxed)).sum()
    }

    /// Notes a change of a window's live bytes, and hands in what has gathered.
    ///
    /// The peak is looked at with every allocation: what others handed in, and what this thread holds back. So it is
    /// exact while one thread records, and off by what the others hold back with more. Threads whose number is not known
    /// (merged lives) hold nothing back.
    #[inline]
    pub(crate) fn note_live(&mut self, windows: &WindowTable, window: u32, change: i64) {
        if self.delta_window != window {
            self.hand_in(windows);
            self.delta_window = window;
        }
        self.delta += change;
        let entry = windows.get(window);
        if change > 0 {
            let live = entry.live_bytes.load(Ordering::Relaxed) + self.delta;
            if live > entry.peak_bytes.load(Ordering::Relaxed) {
                entry.peak_bytes.fetch_max(live, Ordering::Relaxed);
            }
        }
        if self.delta.abs() > PEAK_BATCH_BYTES || self.life.is_merged || self.shared {
            self.hand_in(windows);
        }
    }

    fn hand_in(&mut self, windows: &WindowTable) {
        if self.delta != 0 {
            windows.get(self.delta_window).live_bytes.fetch_add(self.delta, Ordering::Relaxed);
            self.delta = 0;
        }
    }

    /// Adds one to one of a total's numbers.
    #[inline]
    fn count(&self, counter: &AtomicU64) {
        if self.life.is_merged {
            counter.fetch_add(1, Ordering::Relaxed);
        } else {
            count(counter);
        }
    }

    /// Adds to one of a total's numbers.
    #[inline]
    fn add(&self, counter: &AtomicU64, amount: u64) {
        if self.life.is_merged {
            counter.fetch_add(amount, Ordering::Relaxed);
        } else {
            add(counter, amount);
        }
    }
}

/// All thread lives.
#[derive(Debug)]
pub(crate) struct ThreadTable {
    lives: Table<ThreadLife>,
    totals: Table<ThreadTotal>,
    header: &'static AreaHeader,
    /// Held while a merged life is looked for, or a total of one is made.
    merging: Spin<()>,
    os: Os,
}

impl ThreadTable {
    pub(crate) fn new(map: &AreaMap, os: Os, header: &'static AreaHeader) -> Self {
        Self {
            lives: Table::new(map.threads, os, &header.threads, 1),
            totals: Table::new(map.totals, os, &header.totals, 1),
            header,
            merging: Spin::new(()),
            os,
        }
    }

    /// Adds an allocation to the thread's total in a window.
    #[inline]
    pub(crate) fn allocated(
        &self,
        thread: &mut ThreadTally,
        window: (u32, &Window),
        first: FirstStack,
        size: u64,
    ) {
        if !thread.life.has_start {
            self.note_start(thread, first);
        }
        if let Some(total) = self.total(thread, window) {
            thread.count(&total.allocations);
            thread.add(&total.bytes, size);
        }
    }

    /// Adds a free to the thread's total in the window of the block's row.
    #[inline]
    pub(crate) fn freed(&self, thread: &mut ThreadTally, window: (u32, &Window), size: u64) {
        if !thread.life.is_begun {
            self.begin_life(thread, FirstStack::default());
        }
        if let Some(total) = self.total(thread, window) {
            thread.count(&total.freed);
            thread.add(&total.freed_bytes, size);
        }
    }

    #[inline]
    fn total(&self, thread: &mut ThreadTally, window: (u32, &Window)) -> Option<&'static ThreadTotal> {
        match thread.totals[window.0 as usize % TOTAL_CACHE] {
            (cached, Some(total)) if cached == window.0 => Some(total),
            _ => self.total_slow(thread, window),
        }
    }

    #[cold]
    #[inline(never)]
    fn total_slow(
        &self,
        thread: &mut ThreadTally,
        (window, entry): (u32, &Window),
    ) -> Option<&'static ThreadTotal> {
        let Life { number, is_merged, .. } = thread.life;
        let _merging = is_merged.then(|| self.merging.lock());
        let life = (number != 0).then(|| self.lives.get(number));
        let found = life.and_then(|life| {
            let mut next = life.totals.load(Ordering::Acquire);
            while next != 0 {
                let total = self.totals.get(next);
                if total.window.load(Ordering::Acquire) == window {
                    return Some(total);
                }
                next = total.next.load(Ordering::Relaxed);
            }
            let number = self.totals.take()?;
            let total = self.totals.get(number);
            total.next.store(life.totals.load(Ordering::Relaxed), Ordering::Relaxed);
            total.window.store(window, Ordering::Release);
            life.totals.store(number, Ordering::Release);
            if !is_merged && !thread.shared {
                let now = entry.recorders_now.fetch_add(1, Ordering::Relaxed) + 1;
                entry.recorders.fetch_max(now, Ordering::Relaxed);
            }
            Some(total)
        });
        match found {
            Some(total) => thread.totals[window as usize % TOTAL_CACHE] = (window, Some(total)),
            None => {
                self.header.lost_totals.fetch_add(1, Ordering::Relaxed);
            }
        }
        found
    }

    /// The first stack of a thread, whose life a free may have begun before.
    #[cold]
    #[inline(never)]
    fn note_start(&self, thread: &mut ThreadTally, first: FirstStack) {
        if !thread.life.is_begun {
            self.begin_life(thread, first);
        } else if !thread.life.is_merged {
            let life = self.lives.get(thread.life.number);
            life.start_address.store(first.start & NODE_ADDRESS_MASK, Ordering::Relaxed);
            life.first_node.store(first.node, Ordering::Release);
        }
        thread.life.has_start = true;
    }

    #[cold]
    #[inline(never)]
    fn begin_life(&self, thread: &mut ThreadTally, first: FirstStack) {
        let mut name = [0; 16];
        let tid = (self.os.thread)(&mut name);
        let _merging = self.merging.lock();
        let used = self.lives.used();
        let taken = if used < THREAD_LIMIT { self.lives.take() } else { None };
        thread.life = Life { is_begun: true, is_merged: taken.is_none(), ..Life::default() };
        if let Some(number) = taken {
            thread.life.number = number;
            let life = self.lives.get(number);
            life.tid.store(tid, Ordering::Relaxed);
            life.lives.store(1, Ordering::Relaxed);
            fill(life, &name, first, THREAD_ALIVE);
            return;
        }
        let merged = (THREAD_LIMIT..used).find(|number| {
            let life = self.lives.get(*number);
            life.start_address.load(Ordering::Relaxed) == first.start & NODE_ADDRESS_MASK
                && text(&life.name) == name
        });
        let number = match merged {
            Some(number) => Some(number),
            None if used < THREAD_LIMIT + MERGED_THREAD_LIMIT => self.lives.take(),
            None => None,
        };
        // Without a number its totals are counted as lost, one by one.
        let Some(number) = number else { return };
        thread.life.number = number;
        let life = self.lives.get(number);
        life.lives.fetch_add(1, Ordering::Relaxed);
        if merged.is_none() {
            fill(life, &name, first, THREAD_MERGED);
        }
    }

    /// The thread ends: its name is looked at once more, what it held back is handed in. `is_gone`: it has ended long
    /// since, and the caller is another one.
    pub(crate) fn end(&self, thread: &mut ThreadTally, windows: &WindowTable, is_gone: bool) {
        thread.hand_in(windows);
        while let Some(entered) = thread.nesting.pop() {
            let window = windows.get(entered.window);
            window.depth.fetch_sub(1, Ordering::Relaxed);
            window.ended_by_thread.fetch_add(1, Ordering::Relaxed);
        }
        if thread.life.number != 0 && !thread.life.is_merged {
            let life = self.lives.get(thread.life.number);
            if !is_gone {
                let mut name = [0; 16];
                (self.os.thread)(&mut name);
                set_text(&life.last_name, &name);
            }
            let mut next = life.totals.load(Ordering::Acquire);
            while next != 0 {
                let total = self.totals.get(next);
                let window = windows.get(total.window.load(Ordering::Acquire));
                window.recorders_now.fetch_sub(1, Ordering::Relaxed);
                next = total.next.load(Ordering::Relaxed);
            }
            life.state.store(THREAD_ENDED, Ordering::Release);
        }
    }
}

/// Where a thread began, as its first recorded stack tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstStack {
    /// The leaf's node.
    pub(crate) node: u32,
    /// The address in the start function.
    pub(crate) start: u64,
}

fn fill(life: &ThreadLife, name: &[u8; 16], first: FirstStack, state: u32) {
    set_text(&life.name, name);
    set_text(&life.last_name, name);
    life.first_node.store(first.node, Ordering::Relaxed);
    life.start_address.store(first.start & NODE_ADDRESS_MASK, Ordering::Relaxed);
    life.state.store(state, Ordering::Release);
}

fn set_text(words: &[core::sync::atomic::AtomicU32; 4], text: &[u8; 16]) {
    for (word, bytes) in words.iter().zip(text.as_chunks::<4>().0) {
        word.store(u32::from_le_bytes(*bytes), Ordering::Relaxed);
    }
}

fn text(words: &[core::sync::atomic::AtomicU32; 4]) -> [u8; 16] {
    let mut text = [0; 16];
    for (word, bytes) in words.iter().zip(text.as_chunks_mut::<4>().0) {
        *bytes = word.load(Ordering::Relaxed).to_le_bytes();
    }
    text
}
