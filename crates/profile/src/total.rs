//! Sums over a profile, and the check of the rows against the threads' own totals.

use crate::model::{Capture, Counts, Profile, Window, WindowId, WindowKind};

impl Counts {
    /// Adds `other`; a sum that does not fit stays at the highest number.
    pub fn add(&mut self, other: &Self) {
        let Self {
            allocations,
            bytes,
            freed,
            freed_bytes,
            freed_later,
            freed_later_bytes,
            reallocs,
            reallocs_in_place,
            reallocs_moved,
            temporary,
            temporary_bytes,
            failed,
            reallocs_to_zero,
            discarded,
            discarded_bytes,
        } = self;
        for (sum, value) in [
            (allocations, other.allocations),
            (bytes, other.bytes),
            (freed, other.freed),
            (freed_bytes, other.freed_bytes),
            (freed_later, other.freed_later),
            (freed_later_bytes, other.freed_later_bytes),
            (reallocs, other.reallocs),
            (reallocs_in_place, other.reallocs_in_place),
            (reallocs_moved, other.reallocs_moved),
            (temporary, other.temporary),
            (temporary_bytes, other.temporary_bytes),
            (failed, other.failed),
            (reallocs_to_zero, other.reallocs_to_zero),
            (discarded, other.discarded),
            (discarded_bytes, other.discarded_bytes),
        ] {
            *sum = sum.saturating_add(value);
        }
    }

    /// Blocks that were still live when the window ended: allocated, discarded ones too, − freed while it was open.
    pub fn live(&self) -> u64 {
        self.allocations.saturating_add(self.discarded).saturating_sub(self.freed)
    }

    /// The requested bytes of [`live`](Self::live).
    pub fn live_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.discarded_bytes).saturating_sub(self.freed_bytes)
    }

    /// Blocks that were still live when the program ended: allocated − all freed.
    pub fn live_at_exit(&self) -> u64 {
        self.live().saturating_sub(self.freed_later)
    }

    /// The requested bytes of [`live_at_exit`](Self::live_at_exit).
    pub fn live_at_exit_bytes(&self) -> u64 {
        self.live_bytes().saturating_sub(self.freed_later_bytes)
    }

    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// What the name of a harness's window ends with.
const OF_HARNESS: &str = " (harness)";

impl Window {
    /// The window for what a harness allocated in this one: entered as often, and empty.
    pub fn of_harness(&self) -> Self {
        Self {
            name: format!("{}{OF_HARNESS}", self.name),
            kind: WindowKind::Harness,
            discarded_entries: 0,
            crossed_ends: 0,
            stray_ends: 0,
            ended_by_thread: 0,
            peak_bytes: None,
            peak_uncertainty_bytes: 0,
            lost: 0,
            ..self.clone()
        }
    }

    /// The name of the window in which a harness allocated what this one has; `None`: it is no harness's.
    pub fn harnessed(&self) -> Option<&str> {
        (self.kind == WindowKind::Harness).then(|| self.name.strip_suffix(OF_HARNESS)).flatten()
    }

    /// A count per iteration; `None` when there was no iteration.
    pub fn per_iteration(&self, count: u64) -> Option<f64> {
        (self.iterations > 0).then(|| count as f64 / self.iterations as f64)
    }
}

/// How many allocations were walked how. A sum over events, not over stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureEvents {
    /// To the start, by unwind information alone.
    pub complete: u64,
    /// To the start, with at least one step by a frame pointer.
    pub frame_pointer: u64,
    /// Stopped elsewhere.
    pub cut: u64,
    /// To an async function, some or all of whose callers were not found.
    pub async_unknown: u64,
}

impl CaptureEvents {
    /// All of them.
    pub fn total(&self) -> u64 {
        let parts = [self.frame_pointer, self.cut, self.async_unknown];
        parts.into_iter().fold(self.complete, u64::saturating_add)
    }

    /// Counts `events` more that were walked as `capture` says.
    pub fn add(&mut self, capture: Capture, events: u64) {
        let sum = match capture {
            Capture::Complete => &mut self.complete,
            Capture::FramePointer => &mut self.frame_pointer,
            Capture::Cut => &mut self.cut,
            Capture::AsyncUnknown => &mut self.async_unknown,
        };
        *sum = sum.saturating_add(events);
    }
}

/// Which sum differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// Allocations.
    Allocations,
    /// Requested bytes.
    Bytes,
    /// Blocks freed, whenever.
    Freed,
    /// Their bytes.
    FreedBytes,
}

/// A window whose rows and whose threads do not add up to the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumMismatch {
    /// The window.
    pub window: WindowId,
    /// Which sum.
    pub sum: Sum,
    /// What the rows add up to.
    pub rows: u64,
    /// What the threads add up to.
    pub threads: u64,
    /// Allocations of the window whose stack was not recorded: by so many the threads may be ahead.
    pub lost: u64,
}

impl Profile {
    /// How many allocations were not recorded. Those whose window is known are counted there, too, and in files of other
    /// tools there alone.
    pub fn lost_allocations(&self) -> u64 {
        let of_windows = self.windows.iter().fold(0_u64, |sum, window| sum.saturating_add(window.lost));
        self.losses.allocations().max(of_windows)
    }

    /// The sum of the rows of each window, by [`WindowId`].
    pub fn window_counts(&self) -> Vec<Counts> {
        let mut sums = vec![Counts::default(); self.windows.len()];
        for row in &self.rows {
            if let Some(sum) = sums.get_mut(row.window) {
                sum.add(&row.counts);
            }
        }
        sums
    }

    /// The same as threads count: a harness's rows in the window where it allocated, and what was discarded as allocated.
    fn thread_counts(&self) -> Vec<Counts> {
        let mut sums = self.window_counts();
        for sum in &mut sums {
            sum.allocations = sum.allocations.saturating_add(sum.discarded);
            sum.bytes = sum.bytes.saturating_add(sum.discarded_bytes);
        }
        for (at, window) in self.windows.iter().enumerate() {
            let Some(name) = window.harnessed() else { continue };
            let is_it = |other: &Window| {
                other.kind != WindowKind::Harness && other.image == window.image && other.name == name
            };
            let counts = sums.get_mut(at).map(std::mem::take);
            let of = self.windows.iter().position(is_it).and_then(|at| sums.get_mut(at));
            if let (Some(counts), Some(of)) = (counts, of) {
                of.add(&counts);
            }
        }
        sums
    }

    /// How the allocations of each window were walked, by [`WindowId`].
    pub fn window_captures(&self) -> Vec<CaptureEvents> {
        let mut sums = vec![CaptureEvents::default(); self.windows.len()];
        for row in &self.rows {
            if let (Some(sum), Some(stack)) = (sums.get_mut(row.window), self.stacks.get(row.stack)) {
                sum.add(stack.capture, row.counts.allocations);
            }
        }
        sums
    }

    /// Compares what the rows add up to with what the threads counted by themselves, and returns what differs.
    ///
    /// Allocations whose stack was lost are in the threads' totals only, so the threads may be ahead by as many. Where
    /// thread totals are known to be short, they may be behind. A profile without threads has nothing to compare.
    ///
    /// A thread that is stopped by the end of the program may stand between two counts: with a signal any thread, else
    /// any but the one that ended it (of several runs: those that did). Up to one event for each is no difference.
    pub fn check_sums(&self) -> Vec<SumMismatch> {
        if self.threads.is_empty() {
            return Vec::new();
        }
        let rows = self.thread_counts();
        let mut threads = vec![Counts::default(); self.windows.len()];
        for thread in &self.threads {
            for (&window, total) in &thread.totals {
                if let Some(sum) = threads.get_mut(window) {
                    sum.add(&Counts {
                        allocations: total.allocations,
                        bytes: total.bytes,
                        freed: total.freed,
                        freed_bytes: total.freed_bytes,
                        ..Counts::default()
                    });
                }
            }
        }
        let short = self.losses.thread_totals > 0 || self.losses.thread > 0;
        let lives = self.threads.iter().map(|thread| thread.lives).fold(0, u64::saturating_add);
        let is_killed = self.environment.exit_code.is_some_and(|code| code >= 128);
        let stopped = if is_killed { lives } else { lives.saturating_sub(self.environment.runs()) };
        let mut mismatches = Vec::new();
        for (window, (rows, threads)) in rows.iter().zip(&threads).enumerate() {
            let lost = self.windows.get(window).map_or(0, |window| window.lost);
            // Of lost allocations the number is known, their bytes and frees are not.
            let unbounded = if lost > 0 { u64::MAX } else { 0 };
            let mut compare = |sum, rows: u64, threads: u64, ahead: u64, stopped: u64| {
                let behind = threads.saturating_add(stopped) < rows && !short;
                if behind || threads > rows.saturating_add(ahead).saturating_add(stopped) {
                    mismatches.push(SumMismatch { window, sum, rows, threads, lost });
                }
            };
            // How many bytes an event had that was counted by half is not known.
            let any = if stopped > 0 { u64::MAX } else { 0 };
            compare(Sum::Allocations, rows.allocations, threads.allocations, lost, stopped);
            compare(Sum::Bytes, rows.bytes, threads.bytes, unbounded, any);
            if self.environment.lifetimes {
                let freed = rows.freed.saturating_add(rows.freed_later);
                let freed_bytes = rows.freed_bytes.saturating_add(rows.freed_later_bytes);
                compare(Sum::Freed, freed, threads.freed, unbounded, stopped);
                compare(Sum::FreedBytes, freed_bytes, threads.freed_bytes, unbounded, any);
            }
        }
        mismatches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Image, Row, Stack, ThreadLife, ThreadTotal};

    fn profile(allocations: u64, bytes: u64, total: ThreadTotal) -> Profile {
        Profile {
            images: vec![Image::default()],
            windows: vec![Window { iterations: 4, ..Window::default() }],
            stacks: vec![Stack::default(), Stack { capture: Capture::Cut, ..Stack::default() }],
            rows: vec![
                Row { counts: Counts { allocations: 1, bytes: 10, ..Counts::default() }, ..Row::default() },
                Row {
                    counts: Counts { allocations, bytes, ..Counts::default() },
                    stack: 1,
                    ..Row::default()
                },
            ],
            threads: vec![ThreadLife { totals: [(0, total)].into(), ..ThreadLife::default() }],
            ..Profile::default()
        }
    }

    #[test]
    fn equal_sums_are_no_mismatch() {
        let total = ThreadTotal { allocations: 3, bytes: 30, ..ThreadTotal::default() };
        assert_eq!(profile(2, 20, total).check_sums(), []);
    }

    #[test]
    fn a_row_too_many_is_a_mismatch() {
        let total = ThreadTotal { allocations: 3, bytes: 40, ..ThreadTotal::default() };
        let found = profile(3, 30, total).check_sums();
        assert_eq!(found, [SumMismatch { window: 0, sum: Sum::Allocations, rows: 4, threads: 3, lost: 0 }]);
    }

    #[test]
    fn threads_may_be_ahead_by_what_was_lost_and_no_more() {
        let total = ThreadTotal { allocations: 5, bytes: 99, ..ThreadTotal::default() };
        let mut profile = profile(2, 20, total);
        profile.windows[0].lost = 2;
        assert_eq!(profile.check_sums(), []);
        profile.windows[0].lost = 1;
        assert_eq!(profile.check_sums().len(), 1);
    }

    #[test]
    fn frees_are_compared_only_where_blocks_were_followed() {
        let total = ThreadTotal { allocations: 3, bytes: 30, freed: 1, freed_bytes: 10 };
        let mut profile = profile(2, 20, total);
        assert_eq!(profile.check_sums(), []);
        profile.environment.lifetimes = true;
        assert_eq!(profile.check_sums().len(), 2);
        profile.rows[0].counts.freed_later = 1;
        profile.rows[0].counts.freed_later_bytes = 10;
        assert_eq!(profile.check_sums(), []);
    }

    #[test]
    fn each_run_has_one_thread_that_ended_it() {
        let total = ThreadTotal { allocations: 4, bytes: 30, ..ThreadTotal::default() };
        let mut profile = profile(2, 20, total);
        profile.threads[0].lives = 3;
        assert_eq!(profile.check_sums(), [], "two threads may stand between two counts");
        profile.environment.repeats = 3;
        assert_eq!(profile.check_sums().len(), 1);
    }

    #[test]
    fn more_lives_than_a_number_holds_do_not_wrap() {
        let total = ThreadTotal { allocations: 3, bytes: 30, ..ThreadTotal::default() };
        let mut profile = profile(u64::MAX, u64::MAX, total);
        profile.threads[0].lives = u64::MAX;
        profile.threads.push(ThreadLife { lives: 2, ..ThreadLife::default() });
        assert_eq!(profile.check_sums(), []);
    }

    #[test]
    fn what_a_window_lost_is_not_counted_twice() {
        let mut profile = profile(2, 20, ThreadTotal::default());
        profile.losses.reentrant = 3;
        profile.windows[0].lost = 2;
        assert_eq!(profile.lost_allocations(), 3);
        // Another tool's file tells of its only window.
        profile.losses.reentrant = 0;
        assert_eq!(profile.lost_allocations(), 2);
    }

    #[test]
    fn captures_are_weighed_by_events() {
        let events = profile(9, 20, ThreadTotal::default()).window_captures();
        assert_eq!(events, [CaptureEvents { complete: 1, cut: 9, ..CaptureEvents::default() }]);
    }

    #[test]
    fn threads_count_what_was_discarded_and_what_is_the_harnesss() {
        let total = ThreadTotal { allocations: 9, bytes: 90, ..ThreadTotal::default() };
        let mut profile = profile(2, 20, total);
        profile.rows[0].counts.discarded = 4;
        profile.rows[0].counts.discarded_bytes = 40;
        assert_eq!(profile.check_sums().len(), 2);
        profile.windows.push(profile.windows[0].of_harness());
        let counts = Counts { allocations: 2, bytes: 20, ..Counts::default() };
        profile.rows.push(Row { window: 1, counts, ..Row::default() });
        assert_eq!(profile.check_sums(), []);
        profile.windows[1].kind = WindowKind::Process;
        assert_eq!(profile.check_sums().len(), 4, "else it is a window as any");
    }

    #[test]
    fn live_is_what_was_not_freed_and_never_negative() {
        let counts = Counts { allocations: 5, freed: 2, freed_later: 1, ..Counts::default() };
        assert_eq!((counts.live(), counts.live_at_exit()), (3, 2));
        let odd = Counts { allocations: 1, freed: 2, ..Counts::default() };
        assert_eq!(odd.live(), 0);
    }

    #[test]
    fn three_in_ten_iterations_are_not_zero() {
        let window = Window { iterations: 10, ..Window::default() };
        assert_eq!(window.per_iteration(3), Some(0.3));
        assert_eq!(Window::default().per_iteration(3), None);
    }
}
