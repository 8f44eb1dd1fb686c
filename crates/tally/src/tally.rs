//! All tables together: what happens with each event.
#![expect(unsafe_code, reason = "the area's header lies in the segment")]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::{AreaHeader, Counters, EntryPoint, Root, TwinRows};

use crate::attempt::{Settled, note_attempt};
use crate::block_map::{Block, BlockMap};
use crate::counter_shard::{Shards, add, count};
use crate::function_range::FunctionRange;
use crate::nesting::Entered;
use crate::os::{AreaMap, Os};
use crate::row_table::{RowTable, note_entry};
use crate::stack_table::StackTable;
use crate::thread_table::{FirstStack, ThreadTable, ThreadTally};
use crate::window_table::WindowTable;

/// What the tables keep and how.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Follow blocks after their allocation.
    pub lifetimes: bool,
    /// Only these windows exist, each name ended by a NUL, and the run does not start in `process`.
    pub only: Option<&'static [u8]>,
    /// The names of the windows that can be restarted, ended likewise: a begin while such a window is open discards what the entry
    /// holds.
    pub restartable: &'static [u8],
    /// Base-two logarithm of the distance at which blocks start: 4 for the C library's `malloc`, else 3.
    pub spacing: u32,
}

/// An event that belongs to a window, with its stack.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The window, from [`Tally::current`].
    pub entered: Entered,
    /// The stack's leaf, from [`Tally::stack`]; `None`: the table of stacks is full.
    pub leaf: Option<u32>,
    /// The function that the program called.
    pub entry_point: EntryPoint,
    /// The address in the thread's start function, wanted if [`ThreadTally::wants_start`].
    pub start: u64,
}

/// How an allocation came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// A block of its own.
    New,
    /// A realloc that left the block at its address.
    ReallocInPlace,
    /// A realloc that moved it.
    ReallocMoved,
}

/// What gave a block back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeKind {
    /// `free` or its like.
    Free,
    /// `realloc`: the block's contents live on elsewhere, or its size was 0.
    Realloc,
}

/// Windows are defined by functions, so that a stack decides.
const BY_FUNCTION_WINDOWS: u32 = 1;
/// The caller has a use for it.
const BY_REQUEST: u32 = 2;

/// The recorder's tables.
#[derive(Debug)]
pub struct Tally {
    pub(crate) header: &'static AreaHeader,
    pub(crate) windows: WindowTable,
    pub(crate) stacks: StackTable,
    rows: RowTable,
    shards: Shards,
    threads: ThreadTable,
    blocks: BlockMap,
    lifetimes: bool,
    /// Why the stack of each allocation is wanted, whatever windows are open: `BY_*` bits.
    every_stack: AtomicU32,
}

impl Tally {
    /// Tables over an area whose header's page is open and zeroed, but for what the caller wrote about the image.
    ///
    /// # Safety
    /// The mappings in `map` stay for the life of the process, no one else lays tables over them, and what `os` says
    /// to have opened is readable and writable.
    pub unsafe fn new(map: &AreaMap, os: Os, options: Options) -> Self {
        // SAFETY: the caller opened the header's page; the layout has only atomics and bytes there.
        let header = unsafe { &*map.header.base.cast::<AreaHeader>() };
        Self {
            header,
            windows: WindowTable::new(map, os, header, (options.only, options.restartable)),
            stacks: StackTable::new(map.nodes, os, &header.nodes),
            rows: RowTable::new(map.rows, os, &header.rows),
            shards: Shards::new(map.directories, map.counters, os, &header.shards, &header.chunks),
            threads: ThreadTable::new(map, os, header),
            blocks: BlockMap::new(os, options.spacing),
            lifetimes: options.lifetimes,
            every_stack: AtomicU32::new(0),
        }
    }

    /// The area's header.
    pub fn header(&self) -> &'static AreaHeader {
        self.header
    }

    /// What a thread needs to record; `None`: there is no place for one more.
    pub fn begin_thread(&self) -> Option<ThreadTally> {
        self.shards.take().map(ThreadTally::new)
    }

    /// A thread ends. Its shard is handed on.
    pub fn end_thread(&self, mut thread: ThreadTally) {
        self.threads.end(&mut thread, &self.windows, false);
        self.shards.give_back(thread.shard);
    }

    /// A thread has ended without a word, and the calling one noticed.
    pub fn end_gone_thread(&self, mut thread: ThreadTally) {
        self.threads.end(&mut thread, &self.windows, true);
        self.shards.give_back(thread.shard);
    }

    /// The window to which an allocation by this thread belongs now; its number is 0 if there is none.
    #[inline]
    pub fn current(&self, thread: &ThreadTally) -> Entered {
        if thread.paused > 0 {
            return Entered::default();
        }
        let own = thread.nesting.innermost();
        if own.window != 0 { own } else { self.windows.current() }
    }

    /// The window to which an allocation by a thread without windows of its own belongs.
    #[inline]
    pub fn current_of_process(&self) -> Entered {
        self.windows.current()
    }

    /// Whether blocks are followed after their allocation.
    #[inline]
    pub fn has_lifetimes(&self) -> bool {
        self.lifetimes
    }

    /// Whether the stack of an allocation decides to which window it belongs.
    #[inline]
    pub fn has_function_windows(&self) -> bool {
        self.every_stack.load(Ordering::Relaxed) & BY_FUNCTION_WINDOWS != 0
    }

    /// Whether the stack of each allocation is wanted, whatever windows are open.
    #[inline]
    pub fn wants_every_stack(&self) -> bool {
        self.every_stack.load(Ordering::Relaxed) != 0
    }

    /// The stack of each allocation is wanted, for the caller's own sake.
    pub fn want_every_stack(&self) {
        self.every_stack.fetch_or(BY_REQUEST, Ordering::Release);
    }

    /// The window to which a stack belongs, by its leaf, if it is one defined by a function; else `other`. Where the stack is
    /// not whole, it may belong to one all the same, which is counted.
    #[inline]
    pub fn window_of_stack(
        &self,
        thread: &ThreadTally,
        (leaf, root): (Option<u32>, Root),
        other: Entered,
    ) -> Entered {
        match leaf.map_or(0, |leaf| self.stacks.window(leaf)) {
            0 => {
                if leaf.is_none() || root != Root::Complete {
                    self.header.unplaced.fetch_add(1, Ordering::Relaxed);
                }
                other
            }
            window => thread.call(window),
        }
    }

    /// The number of a window that functions define; 0: there is no place for it.
    pub fn function_window(&self, name: &[u8]) -> u32 {
        let Some(number) = self.windows.of_function(name) else {
            self.lose_window();
            return 0;
        };
        self.every_stack.fetch_or(BY_FUNCTION_WINDOWS, Ordering::Release);
        number
    }

    /// Adds code in which such windows begin. How much of it found no place.
    pub fn add_function_ranges(&self, ranges: impl Iterator<Item = FunctionRange>) -> usize {
        self.stacks.add_ranges(ranges)
    }

    /// Forgets code of such windows that is gone.
    pub fn retain_function_ranges(&self, is_there: impl FnMut(u64) -> bool) {
        self.stacks.retain_ranges(is_there);
    }

    /// A function at which a window is defined was called. `leaf` is its caller's stack: below one of the window's
    /// functions this is no new entry.
    pub fn called(&self, thread: &mut ThreadTally, window: u32, leaf: Option<u32>) {
        if leaf.is_some_and(|leaf| self.stacks.is_below(leaf, window)) {
            return;
        }
        let entry = self.windows.get(window).entries.fetch_add(1, Ordering::Relaxed) + 1;
        thread.set_call(Entered { window, entry });
    }

    /// Gives each new frame its node, and says the leaf's; `None`: the table is full.
    ///
    /// Frames are root first; the first `kept` have their nodes already, below this `root`.
    #[inline]
    pub fn stack<F>(
        &self,
        thread: &ThreadTally,
        frames: &mut [F],
        kept: usize,
        root: Root,
        address: impl Fn(&F) -> u64,
        node: impl Fn(&mut F) -> &mut u32,
    ) -> Option<u32> {
        let (known, new) = frames.split_at_mut_checked(kept)?;
        let mut leaf = match known.last_mut() {
            Some(frame) => *node(frame),
            None => root as u32,
        };
        for frame in new {
            let expect = |row| self.shards.prefetch(&thread.shard, row);
            leaf = self.stacks.child(leaf, address(frame), expect)?;
            *node(frame) = leaf;
        }
        Some(leaf)
    }

    /// A successful allocation.
    #[inline]
    pub fn allocated(
        &self,
        thread: &mut ThreadTally,
        event: Event,
        block: usize,
        size: u64,
        kind: Allocation,
    ) {
        let Some((row, counters)) = self.row(thread, event) else {
            if self.lifetimes {
                self.forget(block);
            }
            return;
        };
        count(&counters.allocations);
        add(&counters.bytes, size);
        if kind != Allocation::New {
            count(&counters.reallocs);
            let how = match kind {
                Allocation::ReallocInPlace => &counters.reallocs_in_place,
                _ => &counters.reallocs_moved,
            };
            count(how);
        }
        let window = self.windows.get(event.entered.window);
        let first = FirstStack { node: event.leaf.unwrap_or(0), start: event.start };
        self.threads.allocated(thread, (event.entered.window, window), first, size);
        thread.last_block = block;
        if self.lifetimes {
            thread.note_live(&self.windows, event.entered.window, size as i64);
            let known = Block::new(row, size, thread.shard.number());
            match known.and_then(|known| self.blocks.insert(block, known)) {
                Some(false) => {}
                Some(true) => {
                    self.header.unseen_frees.fetch_add(1, Ordering::Relaxed);
                }
                None => {
                    self.header.lost_blocks.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// An allocation that got no memory.
    pub fn failed(&self, thread: &mut ThreadTally, event: Event) {
        if let Some((_, counters)) = self.row(thread, event) {
            count(&counters.failed);
        }
    }

    /// A `realloc` to size 0 that gave its block back and returned null.
    pub fn reallocated_to_zero(&self, thread: &mut ThreadTally, event: Event) {
        if let Some((_, counters)) = self.row(thread, event) {
            count(&counters.reallocs_to_zero);
        }
    }

    /// An allocation outside of all windows: no block can be live at its address.
    #[inline]
    pub fn passed(&self, block: usize) {
        if self.lifetimes {
            self.forget(block);
        }
    }

    fn forget(&self, block: usize) {
        if self.blocks.remove(block).is_some() {
            self.header.unseen_frees.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Forgets a block that is about to be given back or moved, and says what was known of it. A free is then told by
    /// [`Tally::freed`]; if it does not come to it, [`Tally::keep`] undoes this.
    #[inline]
    pub fn take_block(&self, block: usize) -> Option<Block> {
        if self.lifetimes { self.blocks.remove(block) } else { None }
    }

    /// Which function allocated a block.
    pub fn entry_point(&self, block: Block) -> Option<EntryPoint> {
        EntryPoint::from_number(self.rows.get(block.row()).entry_point.load(Ordering::Relaxed))
    }

    /// Undoes [`Tally::take_block`].
    pub fn keep(&self, address: usize, block: Block) {
        // Its place was there a moment ago, so there is one.
        let _ = self.blocks.insert(address, block);
    }

    /// A block was given back. `known` is what [`Tally::take_block`] said. Without a thread's own tally it is counted
    /// in the shared shard.
    #[inline]
    pub fn freed(
        &self,
        thread: Option<&mut ThreadTally>,
        address: usize,
        known: Option<Block>,
        kind: FreeKind,
    ) {
        match known {
            Some(block) => self.charge(thread, address, block, kind),
            None if self.lifetimes => self.freed_from_before(thread),
            None => {}
        }
    }

    fn charge(&self, thread: Option<&mut ThreadTally>, address: usize, block: Block, kind: FreeKind) {
        match thread {
            Some(thread) => {
                let Some(counters) = self.shards.counters(&thread.shard, block.row()) else {
                    return self.lose_free();
                };
                // Most blocks are freed by a thread that allocated on the same stack before: its counters know the window.
                let number = match Entered::unpack(counters.entered.load(Ordering::Relaxed)).window {
                    0 => self.window_of(block.row()),
                    number => number,
                };
                let window = self.windows.get(number);
                let is_open = window.depth.load(Ordering::Relaxed) > 0;
                charge_counters(counters, block.size(), is_open, kind, count, add);
                // The address alone does not do: another thread may have freed the block and got one there.
                let is_latest = thread.last_block == address
                    && block.shard().is_none_or(|shard| shard == thread.shard.number());
                if kind == FreeKind::Free && is_latest {
                    count(&counters.temporary);
                    add(&counters.temporary_bytes, block.size());
                }
                if thread.last_block == address {
                    thread.last_block = 0;
                }
                self.threads.freed(thread, (number, window), block.size());
                if is_open {
                    thread.note_live(&self.windows, number, -(block.size() as i64));
                }
            }
            None => {
                let Some(counters) = self.shards.counters(self.shards.shared(), block.row()) else {
                    return self.lose_free();
                };
                let window = self.windows.get(self.window_of(block.row()));
                let is_open = window.depth.load(Ordering::Relaxed) > 0;
                let add = |counter: &AtomicU64, amount| {
                    counter.fetch_add(amount, Ordering::Relaxed);
                };
                charge_counters(counters, block.size(), is_open, kind, |counter| add(counter, 1), add);
                self.header.lost_totals.fetch_add(1, Ordering::Relaxed);
                if is_open {
                    window.live_bytes.fetch_sub(block.size() as i64, Ordering::Relaxed);
                }
            }
        }
    }

    fn window_of(&self, row: u32) -> u32 {
        self.rows.get(row).window.load(Ordering::Relaxed)
    }

    /// Counted in row 0, which is no row.
    fn freed_from_before(&self, thread: Option<&mut ThreadTally>) {
        match thread {
            Some(thread) => {
                let is_in_window =
                    thread.nesting.innermost().window != 0 || self.windows.current().window != 0;
                if is_in_window && let Some(counters) = self.shards.counters(&thread.shard, 0) {
                    count(&counters.freed);
                }
            }
            None => {
                if self.windows.current().window != 0 {
                    self.header.frees_from_before.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    #[cold]
    fn lose_free(&self) {
        self.header.lost_blocks.fetch_add(1, Ordering::Relaxed);
    }

    /// The row of an event and this thread's counters of it; `None`: no place, which is counted.
    ///
    /// PERF: where the thread counted this row in this entry before, neither the row nor its window is touched: with
    /// many stacks each is a cache line that misses.
    #[inline]
    fn row(&self, thread: &mut ThreadTally, event: Event) -> Option<(u32, &'static Counters)> {
        if let Some(leaf) = event.leaf
            && let Some(row) = self.stacks.row_hint(leaf, event.entry_point)
            && let Some(counters) = self.shards.known(&thread.shard, row)
            && counters.entered.load(Ordering::Relaxed) == event.entered.pack()
        {
            return Some((row, counters));
        }
        self.row_slow(thread, event)
    }

    /// The same for a row that this thread has not yet counted in this entry, or whose leaf has several rows.
    #[inline(never)]
    fn row_slow(&self, thread: &mut ThreadTally, event: Event) -> Option<(u32, &'static Counters)> {
        let Entered { window, entry } = event.entered;
        let row = event.leaf.and_then(|leaf| {
            let can_restart = || self.windows.get(window).attempts.load(Ordering::Relaxed) != 0;
            self.rows.find(&self.stacks, leaf, window, event.entry_point, can_restart)
        });
        let found = row.and_then(|row| {
            let counters = self.shards.counters(&thread.shard, row)?;
            let twins = TwinRows::from_number(self.rows.get(row).twins.load(Ordering::Relaxed));
            if let Some(twins) = twins {
                self.settle_slow(thread, row, twins, event.entered)?;
            }
            Some((row, counters))
        });
        match found {
            Some((row, counters)) => {
                let entered = event.entered.pack();
                if counters.entered.load(Ordering::Relaxed) != entered {
                    counters.entered.store(entered, Ordering::Relaxed);
                    if self.windows.is_of_function(window) {
                        // Of calls that were inlined no number is known.
                        add(&counters.entries, u64::from(entry != 0));
                    } else if thread.nesting.innermost().window == window {
                        count(&counters.entries);
                    } else {
                        note_entry(self.rows.get(row), entry);
                    }
                }
            }
            None => self.lose(window),
        }
        found
    }

    /// A row of a window that can be restarted is going to be counted. `None`: there is no place.
    #[cold]
    #[inline(never)]
    fn settle_slow(
        &self,
        thread: &mut ThreadTally,
        row: u32,
        twins: TwinRows,
        entered: Entered,
    ) -> Option<()> {
        let window = self.windows.get(entered.window);
        let counters = self.shards.counters(&thread.shard, row)?;
        let latest = Entered::unpack(counters.entered.load(Ordering::Relaxed));
        if latest == entered {
            return Some(());
        }
        if latest.window != 0 {
            let settled = Settled {
                row: counters,
                before: self.shards.counters(&thread.shard, twins.before)?,
                discarded: self.shards.counters(&thread.shard, twins.discarded)?,
            };
            let was_discarded = self.windows.is_discarded(window, latest.entry);
            settled.settle(was_discarded);
            // A block of the discarded attempt is not to be temporary in this one.
            let is_of_row = |block| self.blocks.get(block).is_some_and(|block| block.row() == row);
            if was_discarded && is_of_row(thread.last_block) {
                thread.last_block = 0;
            }
        }
        counters.entered.store(entered.pack(), Ordering::Relaxed);
        note_attempt(self.rows.get(row), entered.entry, |attempt| self.windows.is_discarded(window, attempt));
        Some(())
    }

    #[cold]
    fn lose(&self, window: u32) {
        self.header.lost_full.fetch_add(1, Ordering::Relaxed);
        self.windows.get(window).lost_full.fetch_add(1, Ordering::Relaxed);
    }

    /// An allocation came from inside the recorder.
    #[cold]
    pub fn lose_reentrant(&self) {
        self.lose_to(&self.header.lost_reentrant, |window| &window.lost_reentrant);
    }

    /// An allocation in a thread for which there is no memory.
    #[cold]
    pub fn lose_thread(&self) {
        self.lose_to(&self.header.lost_thread, |window| &window.lost_thread);
    }

    /// A window was begun, or a pause, by a thread for which there is no place.
    #[cold]
    pub fn lose_window(&self) {
        self.header.lost_windows.fetch_add(1, Ordering::Relaxed);
    }

    fn lose_to(
        &self,
        total: &AtomicU64,
        of_window: impl Fn(&'static heaptally_segment::layout::Window) -> &'static AtomicU64,
    ) {
        let entered = self.windows.current();
        if entered.window != 0 {
            total.fetch_add(1, Ordering::Relaxed);
            of_window(self.windows.get(entered.window)).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Copies a path to the segment: its offset, or `None` when there is no place.
    pub fn intern(&self, text: &[u8]) -> Option<u32> {
        self.windows.intern(text)
    }

    /// Text that [`Tally::intern`] copied, as much of it as fits the buffer.
    pub fn text<'a>(&self, offset: u32, len: u32, buffer: &'a mut [u8]) -> &'a [u8] {
        self.windows.text(offset, len, buffer)
    }

    /// How many nodes there are: what a module that comes or goes now is marked with.
    pub fn node_count(&self) -> u32 {
        self.stacks.used()
    }

    /// Code went away: no node that exists now is used for a new stack, since its address may mean other code.
    pub fn forget_stacks(&self) {
        self.stacks.forget();
        self.header.unloads.fetch_add(1, Ordering::Release);
    }
}

fn charge_counters(
    counters: &Counters,
    size: u64,
    is_open: bool,
    kind: FreeKind,
    count: impl Fn(&AtomicU64),
    add: impl Fn(&AtomicU64, u64),
) {
    if is_open {
        count(&counters.freed);
        add(&counters.freed_bytes, size);
    } else {
        count(&counters.freed_later);
        add(&counters.freed_later_bytes, size);
    }
    if kind == FreeKind::Realloc {
        count(&counters.freed_by_realloc);
    }
}
