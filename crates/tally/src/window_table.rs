//! Windows: which one an allocation belongs to.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::{
    AreaHeader, NODE_WINDOW_MASK, NODE_WINDOW_SHIFT, WINDOW_AUTOMATIC, WINDOW_FUNCTION, WINDOW_PROCESS,
    WINDOW_THREAD, Window,
};

use crate::attempt::Attempts;
use crate::counter_shard::add;
use crate::index::{Index, spread};
use crate::nesting::{Entered, Open, ProcessNesting, ThreadNesting};
use crate::os::{AreaMap, Os};
use crate::spin::Spin;
use crate::table::{Pages, Table};

/// All windows.
#[derive(Debug)]
pub(crate) struct WindowTable {
    windows: Table<Window>,
    names: Pages,
    pub(crate) header: &'static AreaHeader,
    index: Index,
    /// The names that exist, each ended by a NUL, if only some do.
    only: Option<&'static [u8]>,
    /// The names of those that can be restarted, likewise.
    restartable: &'static [u8],
    attempts: Attempts,
    /// The innermost open process window, or the automatic one.
    pub(crate) current: AtomicU64,
    /// The number of the automatic window while it is open.
    automatic: AtomicU32,
    pub(crate) nesting: Spin<ProcessNesting>,
}

impl WindowTable {
    pub(crate) fn new(
        map: &AreaMap,
        os: Os,
        header: &'static AreaHeader,
        (only, restartable): (Option<&'static [u8]>, &'static [u8]),
    ) -> Self {
        let table = Self {
            windows: Table::new(map.windows, os, &header.windows, 1),
            names: Pages::new(map.strings, os),
            header,
            index: Index::new(os),
            only,
            restartable,
            attempts: Attempts::new(map.attempts, os, header),
            current: AtomicU64::new(0),
            automatic: AtomicU32::new(0),
            nesting: Spin::new(ProcessNesting::new()),
        };
        if only.is_none()
            && let Some(window) = table.find_or_make(WINDOW_AUTOMATIC, b"process")
        {
            table.get(window).entries.store(1, Ordering::Relaxed);
            table.get(window).depth.store(1, Ordering::Relaxed);
            table.automatic.store(window, Ordering::Relaxed);
            table.current.store(Entered { window, entry: 1 }.pack(), Ordering::Release);
        }
        table
    }

    #[inline]
    pub(crate) fn get(&self, window: u32) -> &'static Window {
        self.windows.get(window)
    }

    /// The innermost open process window, or the automatic one.
    #[inline]
    pub(crate) fn current(&self) -> Entered {
        Entered::unpack(self.current.load(Ordering::Acquire))
    }

    /// Copies text to the segment: its offset, or `None` when there is no place.
    pub(crate) fn intern(&self, text: &[u8]) -> Option<u32> {
        let _nesting = self.nesting.lock();
        self.append(text)
    }

    /// Text that was copied there, as much of it as fits the buffer; empty where there is none.
    pub(crate) fn text<'a>(&self, offset: u32, len: u32, buffer: &'a mut [u8]) -> &'a [u8] {
        let used = u64::from(self.header.strings.load(Ordering::Acquire));
        let len = (len as usize).min(buffer.len());
        if u64::from(offset) + len as u64 > used {
            return &[];
        }
        for (at, byte) in buffer.iter_mut().take(len).enumerate() {
            *byte = self.names.read_byte(u64::from(offset) + at as u64);
        }
        &buffer[..len]
    }

    /// With the lock held.
    fn append(&self, text: &[u8]) -> Option<u32> {
        let offset = self.header.strings.load(Ordering::Relaxed);
        let end = u64::from(offset) + text.len() as u64;
        if end > self.names.bytes() || !self.names.reserve(end) {
            return None;
        }
        for (at, byte) in text.iter().enumerate() {
            self.names.write_byte(u64::from(offset) + at as u64, *byte);
        }
        self.header.strings.store(end as u32, Ordering::Release);
        Some(offset)
    }

    /// Begins a process window.
    pub(crate) fn begin(&self, name: &[u8]) {
        if !self.exists(name) {
            return;
        }
        let mut nesting = self.nesting.lock();
        self.end_automatic();
        match self.find_or_make(WINDOW_PROCESS, name) {
            Some(number) => self.open(&mut nesting, number),
            None => {
                self.header.lost_windows.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether an attempt at an entry of a window was discarded. Only of one before the current attempt is it known.
    pub(crate) fn is_discarded(&self, window: &Window, attempt: u64) -> bool {
        self.attempts.is_discarded(window.attempts.load(Ordering::Relaxed), attempt)
    }

    /// One step into a process window. With the lock held.
    pub(crate) fn open(&self, nesting: &mut ProcessNesting, number: u32) {
        let window = self.get(number);
        if let Some(at) = nesting.position(number) {
            if window.attempts.load(Ordering::Relaxed) != 0 {
                return self.restart_slow(nesting, at);
            }
            nesting.open[at].depth += 1;
            window.depth.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if nesting.is_full() {
            self.header.lost_windows.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let entry = window.entries.fetch_add(1, Ordering::Relaxed) + 1;
        window.depth.fetch_add(1, Ordering::Relaxed);
        nesting.push(Entered { window: number, entry });
        self.current.store(nesting.recording().pack(), Ordering::Release);
    }

    /// A window is begun while it is open, and what its entry holds is discarded: it is entered anew, as the innermost one.
    /// With the lock held.
    #[cold]
    #[inline(never)]
    fn restart_slow(&self, nesting: &mut ProcessNesting, at: usize) {
        let Open { entered: Entered { window: number, entry }, depth, .. } = nesting.open[at];
        let window = self.get(number);
        if self.attempts.discard(window.attempts.load(Ordering::Relaxed), entry) {
            add(&window.discarded_entries, 1);
        } else {
            self.header.lost_restarts.fetch_add(1, Ordering::Relaxed);
        }
        if at + 1 != nesting.len {
            window.crossed_ends.fetch_add(1, Ordering::Relaxed);
        }
        // PERF: such a window is entered with the lock held only, so a load and a store do.
        let entry = window.entries.load(Ordering::Relaxed) + 1;
        window.entries.store(entry, Ordering::Relaxed);
        nesting.remove(at);
        nesting.push(Entered { window: number, entry });
        nesting.open[nesting.len - 1].depth = depth;
        self.current.store(nesting.recording().pack(), Ordering::Release);
    }

    /// The number of a window that is defined by functions; `None`: there is no place for it.
    pub(crate) fn of_function(&self, name: &[u8]) -> Option<u32> {
        let _nesting = self.nesting.lock();
        let number = self.find_or_make(WINDOW_FUNCTION, name)?;
        if u64::from(number) > NODE_WINDOW_MASK >> NODE_WINDOW_SHIFT {
            return None;
        }
        // Open as long as the program runs: nobody sees the functions' ends.
        self.get(number).depth.store(1, Ordering::Relaxed);
        Some(number)
    }

    /// Whether it is such a window.
    pub(crate) fn is_of_function(&self, number: u32) -> bool {
        self.get(number).kind.load(Ordering::Relaxed) == WINDOW_FUNCTION
    }

    /// Ends a process window.
    pub(crate) fn end(&self, name: &[u8]) {
        if !self.exists(name) {
            return;
        }
        let mut nesting = self.nesting.lock();
        let Some(number) = self.find(WINDOW_PROCESS, name) else {
            self.header.stray_ends.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if self.close(&mut nesting, number) {
            self.current.store(nesting.recording().pack(), Ordering::Release);
        }
    }

    /// Begins a window of the calling thread, whose open ones are `nesting`.
    pub(crate) fn begin_thread(&self, nesting: &mut ThreadNesting, name: &[u8]) {
        if !self.exists(name) {
            return;
        }
        let found = {
            let _lock = self.nesting.lock();
            self.end_automatic();
            self.find_or_make(WINDOW_THREAD, name)
        };
        let Some(number) = found else {
            self.header.lost_windows.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if let Some(at) = nesting.position(number) {
            nesting.open[at].depth += 1;
            return;
        }
        if nesting.is_full() {
            self.header.lost_windows.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let window = self.get(number);
        let entry = window.entries.fetch_add(1, Ordering::Relaxed) + 1;
        window.depth.fetch_add(1, Ordering::Relaxed);
        nesting.push(Entered { window: number, entry });
    }

    /// Ends a window of the calling thread.
    pub(crate) fn end_thread(&self, nesting: &mut ThreadNesting, name: &[u8]) {
        if !self.exists(name) {
            return;
        }
        let Some(number) = self.find(WINDOW_THREAD, name) else {
            self.header.stray_ends.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let window = self.get(number);
        let Some(at) = nesting.position(number) else {
            window.stray_ends.fetch_add(1, Ordering::Relaxed);
            return;
        };
        nesting.open[at].depth -= 1;
        if nesting.open[at].depth == 0 {
            if at + 1 != nesting.len {
                window.crossed_ends.fetch_add(1, Ordering::Relaxed);
            }
            nesting.remove(at);
            window.depth.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Adds to the iterations of the process window of that name, else of the thread window.
    pub(crate) fn iterations(&self, name: &[u8], count: u64) {
        if !self.exists(name) {
            return;
        }
        match [WINDOW_PROCESS, WINDOW_THREAD, WINDOW_FUNCTION].iter().find_map(|kind| self.find(*kind, name))
        {
            Some(number) => Self::add_iterations(self.get(number), count),
            None => {
                self.header.stray_ends.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Adds to a window's iterations.
    pub(crate) fn add_iterations(window: &Window, count: u64) {
        // The closures never refuse.
        let add = |sum: u64| Some(sum.saturating_add(count));
        let _ = window.iterations.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        let add = |calls: u32| Some(calls.saturating_add(1));
        let _ = window.iteration_calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// One step out of an open process window; true if it is closed now.
    pub(crate) fn close(&self, nesting: &mut ProcessNesting, number: u32) -> bool {
        let window = self.get(number);
        let Some(at) = nesting.position(number) else {
            window.stray_ends.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        nesting.open[at].depth -= 1;
        window.depth.fetch_sub(1, Ordering::Relaxed);
        if nesting.open[at].depth > 0 {
            return false;
        }
        if at + 1 != nesting.len {
            window.crossed_ends.fetch_add(1, Ordering::Relaxed);
        }
        nesting.remove(at);
        true
    }

    /// The first begin of any kind ends the automatic window. With the lock held.
    fn end_automatic(&self) {
        let automatic = self.automatic.swap(0, Ordering::Relaxed);
        if automatic != 0 {
            self.get(automatic).depth.store(0, Ordering::Relaxed);
            self.current.store(0, Ordering::Release);
        }
    }

    pub(crate) fn exists(&self, name: &[u8]) -> bool {
        self.only.is_none_or(|names| has_name(names, name))
    }

    fn is_restartable(&self, name: &[u8]) -> bool {
        has_name(self.restartable, name)
    }

    pub(crate) fn find(&self, kind: u32, name: &[u8]) -> Option<u32> {
        self.index.find(hash(kind, name.iter().copied()), |number, _| {
            let window = self.get(number);
            window.kind.load(Ordering::Acquire) == kind
                && self.names.is(
                    window.name.load(Ordering::Relaxed),
                    window.name_len.load(Ordering::Relaxed),
                    name,
                )
        })
    }

    /// With the lock held, so that a name gets one number.
    pub(crate) fn find_or_make(&self, kind: u32, name: &[u8]) -> Option<u32> {
        if let Some(number) = self.find(kind, name) {
            return Some(number);
        }
        let offset = self.append(name)?;
        let number = self.windows.take()?;
        let window = self.get(number);
        window.name.store(offset, Ordering::Relaxed);
        window.name_len.store(name.len() as u32, Ordering::Relaxed);
        if kind == WINDOW_PROCESS && self.is_restartable(name) {
            window.attempts.store(self.attempts.place(), Ordering::Relaxed);
        }
        window.kind.store(kind, Ordering::Release);
        self.index.insert(hash(kind, name.iter().copied()), number, |number| {
            let window = self.get(number);
            let name = u64::from(window.name.load(Ordering::Relaxed));
            let bytes = 0..u64::from(window.name_len.load(Ordering::Relaxed));
            hash(window.kind.load(Ordering::Acquire), bytes.map(|at| self.names.read_byte(name + at)))
        });
        Some(number)
    }
}

/// Whether a name is among those, of which each is ended by a NUL.
fn has_name(names: &[u8], name: &[u8]) -> bool {
    !name.is_empty() && names.split(|byte| *byte == 0).any(|known| known == name)
}

fn hash(kind: u32, name: impl Iterator<Item = u8>) -> u64 {
    let mut key = u64::from(kind);
    for byte in name {
        key = (key ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    spread(key)
}
