//! Open windows: the process's, or a thread's.

use heaptally_segment::layout::ENTERED_ENTRY_BITS;

/// How many process windows can be open at once.
const PROCESS_LIMIT: usize = 64;
/// How many windows of one thread can be open at once. Few: the first event of a thread may be on a small stack.
const THREAD_LIMIT: usize = 16;

/// The open windows of the process.
pub(crate) type ProcessNesting = Nesting<PROCESS_LIMIT>;
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
    pub(crate) open: [Open; LIMIT],
    pub(crate) len: usize,
}

/// A window while it is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) entered: Entered,
    /// Begins without an end.
    pub(crate) depth: u32,
    /// Pauses without a resume.
    pub(crate) paused: u32,
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
    pub(crate) fn recording(&self) -> Entered {
        let is_paused = self.len.checked_sub(1).is_some_and(|last| self.open[last].paused > 0);
        if is_paused { Entered::default() } else { self.innermost() }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == LIMIT
    }

    pub(crate) fn position(&self, window: u32) -> Option<usize> {
        self.open[..self.len].iter().rposition(|open| open.entered.window == window)
    }

    pub(crate) fn push(&mut self, entered: Entered) {
        self.open[self.len] = Open { entered, depth: 1, paused: 0 };
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, at: usize) {
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
