//! One area: its header, and its tables joined.

use core::mem::offset_of;
use std::collections::{HashMap, HashSet};
use std::vec;
use std::vec::Vec;

use super::attempt::{self, Attempts, TwinnedRow};
use super::counter::{self, Sum};
use super::module::{self, ModuleIndex};
use super::source::{AreaSource, Bytes, Source};
use super::stack::Stacks;
use super::{Area, Error, Losses, Oracle, Row, State, Window, WindowKind, thread};
use crate::layout::{
    self, AreaHeader, EntryPoint, HEADER, PAGE, REQUEST_LIMIT, ROWS, STATE_ATTACHED, STATE_ATTACHING,
    STATE_REPLACED, STRING_LIMIT, STRINGS, TwinRows, WINDOW_NAMED_LATE, WINDOWS,
};

/// The longest name of a window, in bytes.
const NAME_LIMIT: u32 = 1 << 16;
/// The longest path, in bytes.
pub(super) const PATH_LIMIT: u32 = 8192;

/// The table of names and paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strings<'a> {
    area: AreaSource<'a>,
    used: u32,
}

impl<'a> Strings<'a> {
    pub(super) fn new(area: AreaSource<'a>, used: u32) -> Self {
        Self { area, used }
    }

    /// The text at an offset; `None` where there is no such text.
    pub(super) fn get(self, offset: u32, len: u32, limit: u32) -> Result<Option<Vec<u8>>, Error> {
        if len > limit || offset.checked_add(len).is_none_or(|end| end > self.used) {
            return Ok(None);
        }
        let mut text = vec![0; len as usize];
        self.area.read(STRINGS.offset + u64::from(offset), &mut text)?;
        Ok(Some(text))
    }
}

/// Reads the area that begins at `start`; `None`: nobody wrote into it.
pub(super) fn read(source: Source<'_>, start: u64) -> Result<Option<Area>, Error> {
    let area = AreaSource { source, start };
    let mut page = vec![0; PAGE as usize];
    area.read(HEADER.offset, &mut page)?;
    let header = Bytes::new(&page);
    let state = match header.u32(offset_of!(AreaHeader, state)) {
        0 => return Ok(None),
        STATE_REPLACED => State::Replaced,
        STATE_ATTACHED => State::Attached,
        STATE_ATTACHING => State::Attaching,
        // Not a number that a recorder writes: believe the tables, not the end.
        _ => State::Attaching,
    };
    let strings = Strings::new(area, header.u32(offset_of!(AreaHeader, strings)).min(STRING_LIMIT));
    let mut losses = read_losses(header);

    let Windows { windows, numbers: window_numbers, attempts, entries_before } =
        read_windows(area, header.u32(offset_of!(AreaHeader, windows)), strings, &mut losses)?;
    let modules = module::read(area, header.u32(offset_of!(AreaHeader, modules)), strings)?;
    let index = ModuleIndex::new(&modules);
    let mut stacks = Stacks::new(area, header.u32(offset_of!(AreaHeader, nodes)), &index);

    let raw_rows = read_raw_rows(area, header.u32(offset_of!(AreaHeader, rows)))?;
    let sums = counter::read(
        area,
        raw_rows.last().map_or(1, |row| row.number.saturating_add(1)),
        header.u32(offset_of!(AreaHeader, shards)),
        header.u32(offset_of!(AreaHeader, chunks)),
    )?;
    losses.damaged += sums.damaged;
    let twinned: Vec<TwinnedRow> = raw_rows.iter().filter_map(RawRow::twinned).collect();
    let chunks = (header.u32(offset_of!(AreaHeader, shards)), header.u32(offset_of!(AreaHeader, chunks)));
    let discarded = attempt::discarded(area, &twinned, &attempts, chunks)?;
    let settled = |row: &RawRow| {
        let sum = sums.rows.get(row.number as usize).copied().unwrap_or_default();
        let (row, sum) = row.settled(sum, attempts.get(&row.window), discarded.get(&row.number));
        (row.behind(entries_before.get(&row.window).copied().unwrap_or(0)), sum)
    };
    let rows: Vec<(RawRow, Sum)> = raw_rows.iter().map(settled).collect();
    let rows = join_rows(&rows, &windows, &window_numbers, &mut stacks, &mut losses)?;
    let threads = thread::read(
        area,
        header.u32(offset_of!(AreaHeader, threads)),
        header.u32(offset_of!(AreaHeader, totals)),
        &window_numbers,
        &mut stacks,
    )?;
    losses.damaged += threads.damaged;

    let text = |offset: usize, len: usize| {
        let text = strings.get(header.u32(offset), header.u32(len), PATH_LIMIT);
        text.map(Option::unwrap_or_default)
    };
    let long_text = |offset: usize, len: usize| {
        let text = strings.get(header.u32(offset), header.u32(len), REQUEST_LIMIT);
        text.map(Option::unwrap_or_default)
    };
    let frees_elsewhere = sums.rows.first().map_or(0, |sum| sum.counts.freed);
    Ok(Some(Area {
        state,
        pid: header.u32(offset_of!(AreaHeader, pid)),
        flags: header.u32(offset_of!(AreaHeader, flags)),
        libc_version: until_nul(header.slice(offset_of!(AreaHeader, libc_version_words), 32)),
        image_path: text(offset_of!(AreaHeader, image_path), offset_of!(AreaHeader, image_path_len))?,
        allocator_path: text(
            offset_of!(AreaHeader, allocator_path),
            offset_of!(AreaHeader, allocator_path_len),
        )?,
        foreign_path: text(offset_of!(AreaHeader, foreign_path), offset_of!(AreaHeader, foreign_path_len))?,
        next_program: text(offset_of!(AreaHeader, next_program), offset_of!(AreaHeader, next_program_len))?,
        command: long_text(offset_of!(AreaHeader, command), offset_of!(AreaHeader, command_len))?,
        request: long_text(offset_of!(AreaHeader, request), offset_of!(AreaHeader, request_len))?,
        windows,
        origins: stacks.take_origins()?,
        frames: stacks.into_frames(),
        rows,
        threads: threads.lives,
        losses,
        frees_from_before: header
            .u64(offset_of!(AreaHeader, frees_from_before))
            .saturating_add(frees_elsewhere),
        bootstrap_allocations: header.u64(offset_of!(AreaHeader, bootstrap_allocations)),
        unloads: header.u32(offset_of!(AreaHeader, unloads)),
        oracle: read_oracle(header),
        plans: super::plan::read(area, header.u32(offset_of!(AreaHeader, plans)), strings)?,
        plans_late: header.u32(offset_of!(AreaHeader, plans_late)),
        lost_ranges: header.u32(offset_of!(AreaHeader, lost_ranges)),
        modules,
    }))
}

fn read_losses(header: Bytes<'_>) -> Losses {
    Losses {
        reentrant: header.u64(offset_of!(AreaHeader, lost_reentrant)),
        full: header.u64(offset_of!(AreaHeader, lost_full)),
        thread: header.u64(offset_of!(AreaHeader, lost_thread)),
        blocks: header.u64(offset_of!(AreaHeader, lost_blocks)),
        unseen_frees: header.u64(offset_of!(AreaHeader, unseen_frees)),
        windows: header.u64(offset_of!(AreaHeader, lost_windows)),
        window_calls: header.u64(offset_of!(AreaHeader, lost_window_calls)),
        stray_ends: header.u64(offset_of!(AreaHeader, stray_ends)),
        stray_resumes: header.u64(offset_of!(AreaHeader, stray_resumes)),
        restarts: header.u64(offset_of!(AreaHeader, lost_restarts)),
        unplaced: header.u64(offset_of!(AreaHeader, unplaced)),
        modules: header.u64(offset_of!(AreaHeader, lost_modules)),
        totals: header.u64(offset_of!(AreaHeader, lost_totals)),
        damaged: 0,
    }
}

fn read_oracle(header: Bytes<'_>) -> Oracle {
    let skips = offset_of!(AreaHeader, oracle_skips);
    let first = offset_of!(AreaHeader, oracle_first);
    let walk = |number: usize| {
        let addresses = (0..64).map(|at| header.u64(first + (number * 64 + at) * 8));
        addresses.take_while(|address| *address != 0).collect()
    };
    Oracle {
        full: header.u64(offset_of!(AreaHeader, oracle_full)),
        libgcc: header.u64(offset_of!(AreaHeader, oracle_libgcc)),
        full_differs: header.u64(offset_of!(AreaHeader, oracle_full_differs)),
        libgcc_differs: header.u64(offset_of!(AreaHeader, oracle_libgcc_differs)),
        skips: core::array::from_fn(|at| header.u64(skips + at * 8)),
        first: [walk(0), walk(1)],
    }
}

/// The windows that were read.
#[derive(Debug, Default)]
struct Windows {
    windows: Vec<Window>,
    /// The index of each window's number.
    numbers: HashMap<u32, usize>,
    /// Of those that can be restarted, by number.
    attempts: HashMap<u32, Attempts>,
    /// Of those that count for another one, by number: how many entries of that came before theirs.
    entries_before: HashMap<u32, u64>,
}

fn read_windows(
    area: AreaSource<'_>,
    used: u32,
    strings: Strings<'_>,
    losses: &mut Losses,
) -> Result<Windows, Error> {
    let mut entries = Vec::new();
    let mut late = Vec::new();
    area.for_each::<layout::Window>(WINDOWS, used, |number, entry| {
        let kind = entry.u32(offset_of!(layout::Window, kind));
        if kind == WINDOW_NAMED_LATE {
            late.push((number, entry.slice(0, size_of::<layout::Window>()).to_vec()));
        } else if let Some(kind) = WindowKind::from_number(kind) {
            entries.push((number, kind, entry.slice(0, size_of::<layout::Window>()).to_vec()));
        }
    })?;
    let mut read = Windows::default();
    let mut places = HashSet::new();
    for (number, kind, bytes) in entries {
        let entry = Bytes::new(&bytes);
        let name = entry.u32(offset_of!(layout::Window, name));
        let name_len = entry.u32(offset_of!(layout::Window, name_len));
        let Some(name) = strings.get(name, name_len, NAME_LIMIT)? else {
            losses.damaged += 1;
            continue;
        };
        read.numbers.insert(number, read.windows.len());
        let window = read_window(entry, name, kind);
        let place = entry.u32(offset_of!(layout::Window, attempts));
        // A place is one window's.
        if place != 0 && window.discarded_entries > 0 && places.insert(place) {
            let attempts = entry.u64(offset_of!(layout::Window, entries));
            read.attempts.insert(number, Attempts::read(area, place, attempts)?);
        }
        read.windows.push(window);
    }
    for (number, bytes) in late {
        let entry = Bytes::new(&bytes);
        let into = entry.u32(offset_of!(layout::Window, attempts));
        let name = entry.u32(offset_of!(layout::Window, name));
        let name_len = entry.u32(offset_of!(layout::Window, name_len));
        let Some(name) = strings.get(name, name_len, NAME_LIMIT)? else {
            losses.damaged += 1;
            continue;
        };
        let part = read_window(entry, name, WindowKind::Process);
        let of_name = |window: &Window| window.kind == WindowKind::Process && window.name == part.name;
        let found = match into {
            0 => read.windows.iter().position(of_name),
            into => read.numbers.get(&into).copied(),
        };
        match found.and_then(|index| Some((index, read.windows.get_mut(index)?))) {
            Some((index, window)) if window.kind == WindowKind::Process => {
                read.entries_before.insert(number, window.entries);
                add_late(window, &part);
                read.numbers.insert(number, index);
            }
            None if into == 0 => {
                read.numbers.insert(number, read.windows.len());
                read.windows.push(part);
            }
            _ => losses.damaged += 1,
        }
    }
    Ok(read)
}

/// Adds what was named late to the window of that name.
fn add_late(window: &mut Window, part: &Window) {
    window.depth = window.depth.saturating_add(part.depth);
    window.entries = window.entries.saturating_add(part.entries);
    window.iterations = window.iterations.saturating_add(part.iterations);
    window.iteration_calls = window.iteration_calls.saturating_add(part.iteration_calls);
    window.untold_entries = window.untold_entries.saturating_add(part.untold_entries);
    window.crossed_ends = window.crossed_ends.saturating_add(part.crossed_ends);
    window.stray_ends = window.stray_ends.saturating_add(part.stray_ends);
    window.stray_pauses = window.stray_pauses.saturating_add(part.stray_pauses);
    window.peak_bytes = window.peak_bytes.max(part.peak_bytes);
    window.recorders = window.recorders.max(part.recorders);
    window.lost = window.lost.saturating_add(part.lost);
}

fn read_window(entry: Bytes<'_>, name: Vec<u8>, kind: WindowKind) -> Window {
    let lost = [
        offset_of!(layout::Window, lost_full),
        offset_of!(layout::Window, lost_reentrant),
        offset_of!(layout::Window, lost_thread),
    ];
    let discarded_entries = entry.u64(offset_of!(layout::Window, discarded_entries));
    Window {
        name,
        kind,
        depth: entry.u32(offset_of!(layout::Window, depth)),
        entries: entry.u64(offset_of!(layout::Window, entries)).saturating_sub(discarded_entries),
        discarded_entries,
        iterations: entry.u64(offset_of!(layout::Window, iterations)),
        iteration_calls: u64::from(entry.u32(offset_of!(layout::Window, iteration_calls))),
        untold_entries: u64::from(entry.u32(offset_of!(layout::Window, untold_entries))),
        crossed_ends: entry.u64(offset_of!(layout::Window, crossed_ends)),
        stray_ends: entry.u64(offset_of!(layout::Window, stray_ends)),
        ended_by_thread: entry.u64(offset_of!(layout::Window, ended_by_thread)),
        stray_pauses: u64::from(entry.u32(offset_of!(layout::Window, stray_pauses))),
        peak_bytes: entry.i64(offset_of!(layout::Window, peak_bytes)),
        recorders: entry.u32(offset_of!(layout::Window, recorders)),
        lost: lost.iter().fold(0, |sum, offset| sum.saturating_add(entry.u64(*offset))),
    }
}

/// A row as the file has it.
#[derive(Clone, Copy, Debug)]
struct RawRow {
    number: u32,
    node: u32,
    window: u32,
    entry_point: u32,
    entries: u64,
    first_entry: u64,
    last_entry: u64,
    twins: u32,
    discarded_entries: u64,
    first_kept: u64,
    last_kept: u64,
}

impl RawRow {
    fn twinned(&self) -> Option<TwinnedRow> {
        let twins = TwinRows::from_number(self.twins)?;
        Some(TwinnedRow { number: self.number, window: self.window, twins })
    }

    /// The row, whose window's entries come behind so many of the window that they count for.
    fn behind(self, entries: u64) -> Self {
        // 0: there is none.
        let behind = |number: u64| if number == 0 { 0 } else { number.saturating_add(entries) };
        Self { first_entry: behind(self.first_entry), last_entry: behind(self.last_entry), ..self }
    }

    /// The row and its sum without what was discarded; entries by their numbers instead of attempts by theirs.
    fn settled(
        &self,
        mut sum: Sum,
        attempts: Option<&Attempts>,
        discarded: Option<&super::Counts>,
    ) -> (Self, Sum) {
        let (Some(attempts), Some(discarded)) = (attempts, discarded) else { return (*self, sum) };
        attempt::take_out(&mut sum.counts, discarded);
        let is_last_kept = !attempts.is_discarded(self.last_entry);
        let last = if is_last_kept { self.last_entry } else { self.last_kept };
        let first = match self.first_kept {
            0 => last,
            first => first,
        };
        let of_discarded = self.discarded_entries.saturating_add(u64::from(!is_last_kept));
        let row = Self {
            entries: self.entries.saturating_sub(of_discarded),
            first_entry: attempts.entry(first),
            last_entry: attempts.entry(last),
            ..*self
        };
        (row, sum)
    }
}

/// The rows that are fully written, in order of their numbers.
fn read_raw_rows(area: AreaSource<'_>, used: u32) -> Result<Vec<RawRow>, Error> {
    let mut rows = Vec::new();
    area.for_each::<layout::Row>(ROWS, used, |number, entry| {
        let node = entry.u32(offset_of!(layout::Row, node));
        if node != 0 && number != 0 {
            rows.push(RawRow {
                number,
                node,
                window: entry.u32(offset_of!(layout::Row, window)),
                entry_point: entry.u32(offset_of!(layout::Row, entry_point)),
                entries: entry.u64(offset_of!(layout::Row, entries)),
                first_entry: entry.u64(offset_of!(layout::Row, first_entry)),
                last_entry: entry.u64(offset_of!(layout::Row, last_entry)),
                twins: entry.u32(offset_of!(layout::Row, twins)),
                discarded_entries: entry.u64(offset_of!(layout::Row, discarded_entries)),
                first_kept: entry.u64(offset_of!(layout::Row, first_kept)),
                last_kept: entry.u64(offset_of!(layout::Row, last_kept)),
            });
        }
    })?;
    Ok(rows)
}

fn join_rows(
    raw_rows: &[(RawRow, Sum)],
    windows: &[Window],
    window_numbers: &HashMap<u32, usize>,
    stacks: &mut Stacks<'_>,
    losses: &mut Losses,
) -> Result<Vec<Row>, Error> {
    let mut rows: Vec<Row> = Vec::new();
    let mut known = HashMap::new();
    for (raw, sum) in raw_rows {
        if sum.counts == super::Counts::default() {
            // The program ended between making the row and counting.
            continue;
        }
        let leaf = stacks.resolve(raw.node)?;
        let window = window_numbers.get(&raw.window).copied();
        let (Some(leaf), Some(window), Some(entry_point)) =
            (leaf, window, EntryPoint::from_number(raw.entry_point))
        else {
            losses.damaged += 1;
            continue;
        };
        let row = new_row(raw, sum, (leaf, window, entry_point), windows);
        match known.entry((window, leaf, entry_point as u8)) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(rows.len());
                rows.push(row);
            }
            std::collections::hash_map::Entry::Occupied(at) => {
                if let Some(first) = rows.get_mut(*at.get()) {
                    merge_row(first, &row);
                }
            }
        }
    }
    Ok(rows)
}

fn new_row(
    raw: &RawRow,
    sum: &Sum,
    (leaf, window, entry_point): (super::Link, usize, EntryPoint),
    windows: &[Window],
) -> Row {
    let some = |number: u64| (number != 0).then_some(number);
    let of_thread = windows
        .get(window)
        .is_some_and(|window| matches!(window.kind, WindowKind::Thread | WindowKind::Function));
    let (entries, first_entry, last_entry) = if of_thread {
        (some(sum.entries), None, some(sum.last_entry))
    } else {
        (some(raw.entries), some(raw.first_entry), some(raw.last_entry))
    };
    Row { window, leaf, entry_point, entries, first_entry, last_entry, counts: sum.counts }
}

fn merge_row(row: &mut Row, other: &Row) {
    counter::merge(&mut row.counts, &other.counts);
    // Where their entries meet, both may have occurred in the same one.
    let is_behind = row.last_entry.zip(other.first_entry).is_some_and(|(last, first)| last < first);
    row.entries =
        row.entries.zip(other.entries).filter(|_| is_behind).map(|(one, two)| one.saturating_add(two));
    row.first_entry = row.first_entry.zip(other.first_entry).map(|(one, two)| one.min(two));
    row.last_entry = row.last_entry.max(other.last_entry);
}

fn until_nul(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default().into()
}
