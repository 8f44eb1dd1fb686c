//! Thread lives and their totals.

use core::mem::offset_of;
use std::collections::HashMap;
use std::vec::Vec;

use super::source::{AreaSource, Bytes};
use super::stack::Stacks;
use super::{Error, ThreadLife, ThreadTotal};
use crate::layout::{self, THREADS, TOTALS};

/// The lives, and how many references made no sense.
#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) lives: Vec<ThreadLife>,
    pub(super) damaged: u64,
}

struct RawTotal {
    window: u32,
    next: u32,
    total: ThreadTotal,
}

struct RawLife {
    first_node: u32,
    totals: u32,
    life: ThreadLife,
}

/// Reads the lives below `used` with their totals below `used_totals`; `windows` has the index of each window's number.
pub(super) fn read(
    area: AreaSource<'_>,
    used: u32,
    used_totals: u32,
    windows: &HashMap<u32, usize>,
    stacks: &mut Stacks<'_>,
) -> Result<Threads, Error> {
    let mut totals = HashMap::new();
    area.for_each::<layout::ThreadTotal>(TOTALS, used_totals, |number, entry| {
        let total = raw_total(entry);
        if total.window != 0 {
            totals.insert(number, total);
        }
    })?;
    let mut lives = Vec::new();
    area.for_each::<layout::ThreadLife>(THREADS, used, |_, entry| {
        let life = raw_life(entry);
        if life.life.state != 0 {
            lives.push(life);
        }
    })?;

    let mut threads = Threads::default();
    for RawLife { first_node, totals: first, mut life } in lives {
        if first_node != 0 {
            life.start = stacks.start(first_node)?;
        }
        let mut next = first;
        while next != 0 {
            // Taken out: a total belongs to one life, once, whatever the links say.
            let found = totals.remove(&next);
            let Some((raw, window)) =
                found.and_then(|raw| windows.get(&raw.window).map(|window| (raw, *window)))
            else {
                threads.damaged += 1;
                break;
            };
            life.totals.push((window, raw.total));
            next = raw.next;
        }
        life.totals.sort_by_key(|(window, _)| *window);
        life.totals.dedup_by(|(window, from), (kept, into)| {
            let is_one = window == kept;
            if is_one {
                into.allocations = into.allocations.saturating_add(from.allocations);
                into.bytes = into.bytes.saturating_add(from.bytes);
                into.freed = into.freed.saturating_add(from.freed);
                into.freed_bytes = into.freed_bytes.saturating_add(from.freed_bytes);
            }
            is_one
        });
        threads.lives.push(life);
    }
    Ok(threads)
}

fn raw_total(entry: Bytes<'_>) -> RawTotal {
    RawTotal {
        window: entry.u32(offset_of!(layout::ThreadTotal, window)),
        next: entry.u32(offset_of!(layout::ThreadTotal, next)),
        total: ThreadTotal {
            allocations: entry.u64(offset_of!(layout::ThreadTotal, allocations)),
            bytes: entry.u64(offset_of!(layout::ThreadTotal, bytes)),
            freed: entry.u64(offset_of!(layout::ThreadTotal, freed)),
            freed_bytes: entry.u64(offset_of!(layout::ThreadTotal, freed_bytes)),
        },
    }
}

fn raw_life(entry: Bytes<'_>) -> RawLife {
    let text = |offset| {
        let bytes = entry.slice(offset, 16);
        bytes.split(|byte| *byte == 0).next().unwrap_or_default().into()
    };
    RawLife {
        first_node: entry.u32(offset_of!(layout::ThreadLife, first_node)),
        totals: entry.u32(offset_of!(layout::ThreadLife, totals)),
        life: ThreadLife {
            state: entry.u32(offset_of!(layout::ThreadLife, state)),
            tid: entry.u32(offset_of!(layout::ThreadLife, tid)),
            lives: entry.u32(offset_of!(layout::ThreadLife, lives)),
            name: text(offset_of!(layout::ThreadLife, name)),
            last_name: text(offset_of!(layout::ThreadLife, last_name)),
            start: None,
            totals: Vec::new(),
        },
    }
}
