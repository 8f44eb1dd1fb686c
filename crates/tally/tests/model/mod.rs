//! The rules of counting, as a program small enough to be read.
//!
//! This is the reference: which allocation belongs to which window, what a free is charged to, what `temporary` or
//! `entries` mean. The recorder's tables must count the same (`rules.rs` runs both side by side); where they differ,
//! one of the two is wrong, and the rule is whatever stands here. It uses nothing but sorted maps, takes one step
//! after the other, and knows nothing of addresses, frames or shared memory.
//!
//! Read [`Model::apply`] first, then the functions that it calls; [`window`] for what begin and end do; `example` for
//! a worked case of each rule.

mod example;
pub(crate) mod generate;
pub(crate) mod op;
mod property;
pub(crate) mod row;
pub(crate) mod window;

use std::collections::BTreeMap;

use op::{Block, Call, Name, Op, Outcome, ThreadId};
use row::{Row, RowKey, Total};
use window::{Ended, Kind, Open, OpenList, Window, WindowId};

/// What is remembered of a block that was recorded: who must be told when it is freed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    row: RowKey,
    /// In which entry of its window.
    entry: u64,
    size: u64,
    /// The allocation's number, over all threads.
    serial: u64,
}

/// A thread between its first step and its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Thread {
    /// The number of its life; two threads of one [`ThreadId`], one after the other, are two lives.
    life: usize,
    open: OpenList,
    /// Pauses without a resume.
    paused: u64,
    /// Its latest recorded allocation.
    latest: Option<u64>,
}

/// By what a block is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Free,
    Realloc,
}

/// The recorder, without its speed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    /// The windows that were asked for; `None`: whatever the program opens.
    asked_for: Option<Vec<Name>>,
    /// Every window that was ever open.
    pub(crate) windows: Vec<Window>,
    /// With what was discarded.
    pub(crate) rows: BTreeMap<RowKey, Row>,
    /// What was counted in each entry, without frees.
    by_entry: BTreeMap<RowKey, BTreeMap<u64, Row>>,
    /// Process windows of these names can be restarted.
    can_restart: Vec<Name>,
    /// Per thread life and window.
    pub(crate) totals: BTreeMap<(usize, WindowId), Total>,
    /// Frees, while a window was open, of blocks that no row owns.
    pub(crate) frees_from_before: u64,
    /// Blocks that were handed out again although nobody saw their free. Their row keeps them as live.
    pub(crate) unseen_frees: u64,
    /// Ends of windows that do not exist.
    pub(crate) stray_ends: u64,
    /// Iterations told for windows that do not exist.
    pub(crate) stray_iterations: u64,
    /// Holds the automatic window until the first begin.
    automatic: OpenList,
    process: OpenList,
    threads: BTreeMap<ThreadId, Thread>,
    lives: usize,
    blocks: BTreeMap<Block, Owner>,
    serial: u64,
}

impl Model {
    /// The state before the program's first step. Unless windows were asked for, the automatic window is open: nobody
    /// can know whether another will come.
    pub(crate) fn new(asked_for: Option<Vec<Name>>) -> Self {
        let mut model = Self { asked_for, ..Self::default() };
        if model.asked_for.is_none() {
            let id = model.window(Kind::Automatic, "process");
            model.automatic.begin(id, &mut model.windows[id]);
        }
        model
    }

    /// The same, and process windows of some names can be restarted.
    pub(crate) fn with_restarts(asked_for: Option<Vec<Name>>, can_restart: &[Name]) -> Self {
        Self { can_restart: can_restart.to_vec(), ..Self::new(asked_for) }
    }

    /// The rows without what was discarded.
    pub(crate) fn kept_rows(&self) -> BTreeMap<RowKey, Row> {
        let none = BTreeMap::new();
        let of = |(key, row): (&RowKey, &Row)| {
            let by_entry = self.by_entry.get(key).unwrap_or(&none);
            (*key, row.without(&self.windows[key.window].discarded, by_entry))
        };
        self.rows.iter().map(of).collect()
    }

    /// Takes one step.
    pub(crate) fn apply(&mut self, op: &Op) {
        self.start_thread(op.thread());
        // Windows that were not asked for do not exist: calls for them do nothing at all.
        if op.window_name().is_some_and(|name| !self.may_exist(name)) {
            return;
        }
        match *op {
            Op::Allocate { thread, call, block, size } => {
                self.allocate(thread, call, block, size);
            }
            Op::AllocateFailed { thread, call } => self.fail(thread, call),
            Op::Free { block: None, .. } => {}
            Op::Free { thread, block: Some(block) } => self.free(thread, block, By::Free),
            Op::Reallocate { thread, call, old, outcome } => self.reallocate(thread, call, old, outcome),
            Op::WindowBegin { name, .. } => self.begin(Kind::Process, None, name),
            Op::WindowEnd { name, .. } => self.end(Kind::Process, None, name),
            Op::ThreadWindowBegin { thread, name } => self.begin(Kind::Thread, Some(thread), name),
            Op::ThreadWindowEnd { thread, name } => self.end(Kind::Thread, Some(thread), name),
            Op::Iterations { name, n, .. } => self.tell_iterations(name, n),
            Op::Pause { thread } => self.thread(thread).paused += 1,
            Op::Resume { thread } => {
                let thread = self.thread(thread);
                thread.paused = thread.paused.saturating_sub(1);
            }
            // Its thread windows are no longer open on it. Its blocks stay what they are.
            Op::ThreadEnd { thread } => drop(self.threads.remove(&thread)),
        }
    }

    /// A successful allocation. If it is recorded, it belongs to exactly one row; this is its key.
    fn allocate(&mut self, thread: ThreadId, call: Call, block: Block, size: u64) -> Option<RowKey> {
        // Recorded or not, a block at this address shows that the one before it is gone.
        self.unseen_frees += u64::from(self.blocks.remove(&block).is_some());

        let open = self.recording(thread)?;
        let key = self.occur(&open, call, |row| {
            row.allocations += 1;
            row.bytes += size;
        });

        let life = self.thread(thread).life;
        let total = self.totals.entry((life, open.window)).or_default();
        total.allocations += 1;
        total.bytes += size;

        let window = &mut self.windows[open.window];
        window.live_bytes += size;
        window.peak_bytes = window.peak_bytes.max(window.live_bytes);

        self.serial += 1;
        self.thread(thread).latest = Some(self.serial);
        self.blocks.insert(block, Owner { row: key, entry: open.entry, size, serial: self.serial });
        Some(key)
    }

    /// A block is given back: that is charged to the row that allocated it, whatever is open or paused now.
    fn free(&mut self, thread: ThreadId, block: Block, by: By) {
        let Some(owner) = self.blocks.remove(&block) else {
            self.frees_from_before += u64::from(self.holding(thread).is_some());
            return;
        };
        let while_open = self.depth(owner.row.window) > 0;
        let Thread { life, latest, .. } = *self.thread(thread);
        let row = self.rows.entry(owner.row).or_default();
        if while_open {
            row.freed += 1;
            row.freed_bytes += owner.size;
            self.windows[owner.row.window].live_bytes -= owner.size;
        } else {
            row.freed_later += 1;
            row.freed_later_bytes += owner.size;
        }
        match by {
            By::Free if latest == Some(owner.serial) => {
                self.count(owner.row, owner.entry, |row| {
                    row.temporary += 1;
                    row.temporary_bytes += owner.size;
                });
            }
            By::Free => {}
            By::Realloc => row.freed_by_realloc += 1,
        }
        let total = self.totals.entry((life, owner.row.window)).or_default();
        total.freed += 1;
        total.freed_bytes += owner.size;
    }

    /// A realloc is a free of the old block on the old block's row, then an allocation on its own row.
    fn reallocate(&mut self, thread: ThreadId, call: Call, old: Option<Block>, outcome: Outcome) {
        match (old, outcome) {
            (None, Outcome::Block { block, size }) => {
                self.allocate(thread, call, block, size);
            }
            (Some(old), Outcome::Block { block, size }) => {
                self.free(thread, old, By::Realloc);
                if let Some(key) = self.allocate(thread, call, block, size) {
                    let entry = self.blocks[&block].entry;
                    self.count(key, entry, |row| {
                        row.reallocs += 1;
                        row.reallocs_in_place += u64::from(block == old);
                        row.reallocs_moved += u64::from(block != old);
                    });
                }
            }
            // It is no allocation, but its row is known by it.
            (Some(old), Outcome::Zero) => {
                self.free(thread, old, By::Realloc);
                if let Some(open) = self.recording(thread) {
                    self.occur(&open, call, |row| row.reallocs_to_zero += 1);
                }
            }
            (None, Outcome::Zero) | (_, Outcome::Failed) => self.fail(thread, call),
        }
    }

    /// A call that returned no memory: no allocation, so it also does not end a block's chance to be temporary.
    fn fail(&mut self, thread: ThreadId, call: Call) {
        if let Some(open) = self.recording(thread) {
            self.occur(&open, call, |row| row.failed += 1);
        }
    }

    /// A recorded call on its row, which so occurs in that entry of the window, whether the call got memory or not.
    fn occur(&mut self, open: &Open, call: Call, how: impl Fn(&mut Row)) -> RowKey {
        let key = RowKey { window: open.window, call };
        self.rows.entry(key).or_default().entries.insert(open.entry);
        self.count(key, open.entry, how);
        key
    }

    /// Counts in a row, and in what it has of one entry.
    fn count(&mut self, key: RowKey, entry: u64, how: impl Fn(&mut Row)) {
        how(self.rows.entry(key).or_default());
        how(self.by_entry.entry(key).or_default().entry(entry).or_default());
    }

    /// The first begin of any kind ends the automatic window.
    fn begin(&mut self, kind: Kind, thread: Option<ThreadId>, name: Name) {
        self.automatic = OpenList::default();
        let id = self.find(kind, name).unwrap_or_else(|| self.window(kind, name));
        let (list, windows) = self.list(thread);
        list.begin(id, &mut windows[id]);
    }

    fn end(&mut self, kind: Kind, thread: Option<ThreadId>, name: Name) {
        let Some(id) = self.find(kind, name) else {
            self.stray_ends += 1;
            return;
        };
        let (list, windows) = self.list(thread);
        match list.end(id) {
            Ended::Nested | Ended::Closed => {}
            Ended::Crossed => windows[id].crossed_ends += 1,
            Ended::Stray => windows[id].stray_ends += 1,
        }
    }

    /// Iterations are told by name: of the process window if there is one, else of the thread window.
    fn tell_iterations(&mut self, name: Name, n: u64) {
        match self.find(Kind::Process, name).or_else(|| self.find(Kind::Thread, name)) {
            Some(id) => {
                self.windows[id].iterations += n;
                self.windows[id].iteration_calls += 1;
            }
            None => self.stray_iterations += 1,
        }
    }

    /// The window that an allocation by this thread belongs to: the thread's innermost, else the process's innermost,
    /// else the automatic one.
    fn holding(&self, thread: ThreadId) -> Option<Open> {
        let own = self.threads.get(&thread).and_then(|thread| thread.open.innermost());
        own.or(self.process.innermost()).or(self.automatic.innermost()).cloned()
    }

    /// The same, unless the thread is paused: then its allocations are nobody's.
    fn recording(&self, thread: ThreadId) -> Option<Open> {
        let paused = self.threads.get(&thread).is_some_and(|thread| thread.paused > 0);
        if paused { None } else { self.holding(thread) }
    }

    /// How deep a window is open: begins without an end, or for a thread window the threads on which it is open.
    pub(crate) fn depth(&self, id: WindowId) -> u64 {
        match self.windows[id].kind {
            Kind::Automatic => self.automatic.depth(id),
            Kind::Process => self.process.depth(id),
            Kind::Thread => self.threads.values().filter(|thread| thread.open.holds(id)).count() as u64,
        }
    }

    fn may_exist(&self, name: Name) -> bool {
        self.asked_for.as_ref().is_none_or(|names| names.contains(&name))
    }

    /// The window of that kind and name, if it was ever open.
    pub(crate) fn find(&self, kind: Kind, name: Name) -> Option<WindowId> {
        self.windows.iter().position(|window| window.kind == kind && window.name == name)
    }

    fn window(&mut self, kind: Kind, name: Name) -> WindowId {
        let can_restart = kind == Kind::Process && self.can_restart.contains(&name);
        self.windows.push(Window { can_restart, ..Window::new(kind, name) });
        self.windows.len() - 1
    }

    fn start_thread(&mut self, thread: ThreadId) {
        let life = self.lives;
        self.threads.entry(thread).or_insert_with(|| {
            self.lives += 1;
            Thread { life, ..Thread::default() }
        });
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        self.threads.get_mut(&thread).expect("each step starts its thread")
    }

    /// The open windows of a thread or of the process, and all windows.
    fn list(&mut self, thread: Option<ThreadId>) -> (&mut OpenList, &mut [Window]) {
        let list = match thread {
            Some(thread) => &mut self.threads.get_mut(&thread).expect("each step starts its thread").open,
            None => &mut self.process,
        };
        (list, &mut self.windows)
    }
}
