//! Windows: which one an allocation belongs to.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use heaptally_segment::layout::{
    AreaHeader, ENTERED_ENTRY_BITS, NODE_WINDOW_MASK, NODE_WINDOW_SHIFT, WINDOW_AUTOMATIC, WINDOW_FUNCTION,
    WINDOW_PROCESS, WINDOW_THREAD, Window,
};

use crate::index::{Index, spread};
use crate::os::{AreaMap, Os};
use crate::spin::Spin;
use crate::table::{Pages, Table};

/// How many process windows can be open at once.
const PROCESS_LIMIT: usize = 64;
/// How many windows of one thread can be open at once. Few: the first event of a thread may be on a small stack.
const THREAD_LIMIT: usize = 16;

/// The open windows of the process.
type ProcessNesting = Nesting<PROCESS_LIMIT>;
/// The open windows of a thread.
pub(crate) type ThreadNesting = Nesting<THREAD_LIMIT>;

/// A window and the number of its entry; `window` 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entered {
    /// The window's number.
    pub window: u32,
    /// The entry's number, from 1.
    pub entry: u64,
}

impl Entered {
    /// Both in one word: the entry in the low [`ENTERED_ENTRY_BITS`] bits, the window above them.
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        (u64::from(self.window) << ENTERED_ENTRY_BITS) | (self.entry & ((1 << ENTERED_ENTRY_BITS) - 1))
    }

    #[inline]
    pub(crate) fn unpack(word: u64) -> Self {
        Self { window: (word >> ENTERED_ENTRY_BITS) as u32, entry: word & ((1 << ENTERED_ENTRY_BITS) - 1) }
    }
}

/// Open windows, innermost last, each with how deep it was begun.
#[derive(Debug)]
pub(crate) struct Nesting<const LIMIT: usize> {
    open: [Open; LIMIT],
    len: usize,
}

/// A window while it is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    entered: Entered,
    /// Begins without an end.
    depth: u32,
    /// Pauses without a resume.
    paused: u32,
}

impl<const LIMIT: usize> Nesting<LIMIT> {
    pub(crate) const fn new() -> Self {
        Self { open: [Open { entered: Entered { window: 0, entry: 0 }, depth: 0, paused: 0 }; LIMIT], len: 0 }
    }

    #[inline]
    pub(crate) fn innermost(&self) -> Entered {
        match self.len {
            0 => Entered { window: 0, entry: 0 },
            len => self.open[len - 1].entered,
        }
    }

    /// To which window an allocation belongs now: to none while the innermost is paused.
    fn recording(&self) -> Entered {
        let is_paused = self.len.checked_sub(1).is_some_and(|last| self.open[last].paused > 0);
        if is_paused { Entered::default() } else { self.innermost() }
    }

    fn is_full(&self) -> bool {
        self.len == LIMIT
    }

    fn position(&self, window: u32) -> Option<usize> {
        self.open[..self.len].iter().rposition(|open| open.entered.window == window)
    }

    fn push(&mut self, entered: Entered) {
        self.open[self.len] = Open { entered, depth: 1, paused: 0 };
        self.len += 1;
    }

    fn remove(&mut self, at: usize) {
        self.len -= 1;
        for at in at..self.len {
            // NOTE: not by the C library's memmove, which uses vector registers: see the runtime's trampoline.
            self.open[at] = core::hint::black_box(self.open[at + 1]);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Entered> {
        self.len = self.len.checked_sub(1)?;
        Some(self.open[self.len].entered)
    }
}

/// All windows.
#[derive(Debug)]
pub(crate) struct WindowTable {
    windows: Table<Window>,
    names: Pages,
    header: &'static AreaHeader,
    index: Index,
    /// The names that exist, each ended by a NUL, if only some do.
    only: Option<&'static [u8]>,
    /// The innermost open process window, or the automatic one.
    current: AtomicU64,
    /// The number of the automatic window while it is open.
    automatic: AtomicU32,
    nesting: Spin<ProcessNesting>,
}

impl WindowTable {
    pub(crate) fn new(
        map: &AreaMap,
        os: Os,
        header: &'static AreaHeader,
        only: Option<&'static [u8]>,
    ) -> Self {
        let table = Self {
            windows: Table::new(map.windows, os, &header.windows, 1),
            names: Pages::new(map.strings, os),
            header,
            index: Index::new(os),
            only,
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

    /// As [`begin`](Self::begin), for a caller who keeps the window's number, 0 at first.
    ///
    /// PERF: a function's entry is not to take 30 ns longer; comparing names takes most of that.
    #[inline]
    pub(crate) fn begin_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        match known.load(Ordering::Relaxed) {
            0 => self.begin_slow(known, name()),
            number => self.open(&mut self.nesting.lock(), number),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_slow(&self, known: &AtomicU32, name: &[u8]) {
        self.begin(name);
        known.store(self.find(WINDOW_PROCESS, name).unwrap_or(0), Ordering::Relaxed);
    }

    /// As [`end`](Self::end), likewise.
    #[inline]
    pub(crate) fn end_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        match known.load(Ordering::Relaxed) {
            0 => self.end_slow(known, name()),
            number => {
                let mut nesting = self.nesting.lock();
                if self.close(&mut nesting, number) {
                    self.current.store(nesting.recording().pack(), Ordering::Release);
                }
            }
        }
    }

    /// A window that is defined by functions exists before its first begin.
    #[cold]
    #[inline(never)]
    fn end_slow(&self, known: &AtomicU32, name: &[u8]) {
        self.know_slow(known, name);
        self.end(name);
    }

    /// Nothing is recorded in a process window from here on; nests. `known` is as for [`begin_known`](Self::begin_known).
    #[inline]
    pub(crate) fn pause_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        self.with_known(known, name, |open| {
            open.paused = open.paused.saturating_add(1);
            true
        });
    }

    /// Undoes one pause.
    #[inline]
    pub(crate) fn resume_known<'n>(&self, known: &AtomicU32, name: impl FnOnce() -> &'n [u8]) {
        self.with_known(known, name, |open| {
            let is_paused = open.paused > 0;
            open.paused = open.paused.saturating_sub(1);
            is_paused
        });
    }

    /// Changes how an open process window is paused; what makes no sense (`change` says false, or it is not open) is
    /// counted.
    #[inline]
    fn with_known<'n>(
        &self,
        known: &AtomicU32,
        name: impl FnOnce() -> &'n [u8],
        change: impl FnOnce(&mut Open) -> bool,
    ) {
        let number = match known.load(Ordering::Relaxed) {
            0 => self.know_slow(known, name()),
            number => number,
        };
        if number == 0 {
            self.header.lost_windows.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut nesting = self.nesting.lock();
        let is_right = match nesting.position(number) {
            Some(at) => change(&mut nesting.open[at]),
            None => false,
        };
        if is_right {
            self.current.store(nesting.recording().pack(), Ordering::Release);
        } else {
            self.get(number).stray_pauses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of a process window, which it has before its first begin; 0: there is no place for it.
    #[cold]
    #[inline(never)]
    fn know_slow(&self, known: &AtomicU32, name: &[u8]) -> u32 {
        let _nesting = self.nesting.lock();
        let number = self.find_or_make(WINDOW_PROCESS, name).unwrap_or(0);
        known.store(number, Ordering::Relaxed);
        number
    }

    /// One step into a process window. With the lock held.
    fn open(&self, nesting: &mut ProcessNesting, number: u32) {
        let window = self.get(number);
        if let Some(at) = nesting.position(number) {
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
            Some(number) => {
                let window = self.get(number);
                let add = |sum: u64| Some(sum.saturating_add(count));
                // The closure never refuses.
                let _ = window.iterations.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
                window.iteration_calls.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                self.header.stray_ends.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// One step out of an open process window; true if it is closed now.
    fn close(&self, nesting: &mut ProcessNesting, number: u32) -> bool {
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

    fn exists(&self, name: &[u8]) -> bool {
        self.only
            .is_none_or(|names| names.split(|byte| *byte == 0).any(|only| only == name && !only.is_empty()))
    }

    fn find(&self, kind: u32, name: &[u8]) -> Option<u32> {
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
    fn find_or_make(&self, kind: u32, name: &[u8]) -> Option<u32> {
        if let Some(number) = self.find(kind, name) {
            return Some(number);
        }
        let offset = self.append(name)?;
        let number = self.windows.take()?;
        let window = self.get(number);
        window.name.store(offset, Ordering::Relaxed);
        window.name_len.store(name.len() as u32, Ordering::Relaxed);
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

fn hash(kind: u32, name: impl Iterator<Item = u8>) -> u64 {
    let mut key = u64::from(kind);
    for byte in name {
        key = (key ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    spread(key)
}
