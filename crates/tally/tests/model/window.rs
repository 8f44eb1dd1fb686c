//! Windows: when one is open, which is the innermost, how often it was entered.

use std::collections::BTreeSet;

use super::op::Name;

/// Whom a window counts. Windows of one name and different kinds are different windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All threads, from the start to the first begin of any window. Its name is `process`.
    Automatic,
    /// All threads.
    Process,
    /// The threads that opened it.
    Thread,
}

/// A window's place in the list of windows.
pub(crate) type WindowId = usize;

/// What is kept of a window. It exists from its first begin on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) kind: Kind,
    pub(crate) name: Name,
    /// How often it was entered. Entries are numbered from 1; a thread window's over all threads.
    pub(crate) entries: u64,
    /// A begin while it is open discards the entry, and enters it anew.
    pub(crate) can_restart: bool,
    /// The entries that were discarded.
    pub(crate) discarded: BTreeSet<u64>,
    /// The sum of the iterations that were told.
    pub(crate) iterations: u64,
    /// How often iterations were told.
    pub(crate) iteration_calls: u64,
    /// Ends that closed it while another window was the innermost.
    pub(crate) crossed_ends: u64,
    /// Ends while it was not open.
    pub(crate) stray_ends: u64,
    /// Allocated bytes − bytes freed while it was open.
    pub(crate) live_bytes: u64,
    /// The highest `live_bytes` after any step.
    pub(crate) peak_bytes: u64,
}

impl Window {
    pub(crate) fn new(kind: Kind, name: Name) -> Self {
        Self {
            kind,
            name,
            entries: 0,
            can_restart: false,
            discarded: BTreeSet::new(),
            iterations: 0,
            iteration_calls: 0,
            crossed_ends: 0,
            stray_ends: 0,
            live_bytes: 0,
            peak_bytes: 0,
        }
    }

    /// By what its counts are divided: the iterations that were told, or else its entries.
    pub(crate) fn divisor(&self) -> u64 {
        if self.iteration_calls > 0 { self.iterations } else { self.entries - self.discarded.len() as u64 }
    }
}

/// A window while it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) window: WindowId,
    /// The number of the entry.
    pub(crate) entry: u64,
    /// Begins without an end.
    pub(crate) depth: u64,
}

/// What an end did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its window is open still: an inner begin of the same name was ended.
    Nested,
    /// It closed the innermost window.
    Closed,
    /// It closed a window that was not the innermost.
    Crossed,
    /// Its window was not open.
    Stray,
}

/// The open windows of the process or of one thread, in the order in which they were opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenList(Vec<Open>);

impl OpenList {
    /// The last opened that is still open.
    pub(crate) fn innermost(&self) -> Option<&Open> {
        self.0.last()
    }

    pub(crate) fn holds(&self, window: WindowId) -> bool {
        self.0.iter().any(|open| open.window == window)
    }

    /// How many begins of the window have no end yet.
    pub(crate) fn depth(&self, window: WindowId) -> u64 {
        self.0.iter().find(|open| open.window == window).map_or(0, |open| open.depth)
    }

    /// A begin of an open window makes it one deeper: no new entry, and it stays where it is in the order. If it can be
    /// restarted its entry is discarded instead, and it is entered anew as the innermost, as deep as it was.
    pub(crate) fn begin(&mut self, id: WindowId, window: &mut Window) {
        let at = self.0.iter().position(|open| open.window == id);
        if let Some(at) = at.filter(|_| window.can_restart) {
            let open = self.0.remove(at);
            window.crossed_ends += u64::from(at < self.0.len());
            window.discarded.insert(open.entry);
            window.entries += 1;
            self.0.push(Open { entry: window.entries, ..open });
        } else if let Some(open) = self.0.iter_mut().find(|open| open.window == id) {
            open.depth += 1;
        } else {
            window.entries += 1;
            self.0.push(Open { window: id, entry: window.entries, depth: 1 });
        }
    }

    /// An end undoes one begin; the last one closes the window, wherever it is in the order.
    pub(crate) fn end(&mut self, window: WindowId) -> Ended {
        let Some(at) = self.0.iter().position(|open| open.window == window) else { return Ended::Stray };
        self.0[at].depth -= 1;
        if self.0[at].depth > 0 {
            return Ended::Nested;
        }
        self.0.remove(at);
        if at == self.0.len() { Ended::Closed } else { Ended::Crossed }
    }
}
