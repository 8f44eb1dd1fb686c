//! What a segment must show before it is a result: the recorder was in the way, and what was asked for by name opened.

use std::ffi::OsStr;

use heaptally_segment::layout::{FLAG_CHILD, FLAG_MALLOC_IS_OURS};
use heaptally_segment::read::{Area, Snapshot, State};

use crate::exit::Failure;
use crate::message::{quote, quote_bytes};
use crate::process::End;

/// 0 allocations are a result only if the recorder was in the way of all of them.
pub(super) fn was_in_path(snapshot: &Snapshot, name: &OsStr, end: End) -> Result<(), Failure> {
    let name = quote(name);
    let ended = match (end.exit_code, end.signal) {
        (_, Some(signal)) => format!("signal {signal} ended it"),
        (code, None) => format!("it exited with {}", code.unwrap_or(0)),
    };
    let is_own = |area: &&Area| area.flags & FLAG_CHILD == 0 && area.state != State::Attaching;
    let Some(last) = snapshot.areas.iter().rev().find(is_own) else {
        let why = if snapshot.refused > 0 || snapshot.empty_areas > 0 {
            "could not map its tables: raise the limit of the address space (ulimit -v), or make room in --segment-dir"
        } else if snapshot.without_area > 0 {
            "found no room: too many programs were started one by the other"
        } else {
            "did not reach the segment: see whether the loader complained above, whether the program resets LD_PRELOAD, \
             or try --segment-dir /tmp"
        };
        return Err(Failure::recorder(format!("the recorder was not loaded in {name}; {ended}\n{why}")));
    };
    let is_known_loss = snapshot.refused > 0 || snapshot.empty_areas > 0 || snapshot.without_area > 0;
    if last.state == State::Replaced && !is_known_loss {
        return Err(Failure::recorder(format!(
            "{name} went on to another program by exec, in which the recorder was not loaded; {ended}\n\
             record that program itself"
        )));
    }
    if last.flags & FLAG_MALLOC_IS_OURS == 0 {
        let definer = if last.foreign_path.is_empty() { &last.image_path } else { &last.foreign_path };
        return Err(Failure::recorder(format!(
            "{name} does not call the recorder's malloc but its own, defined in {}; {ended}\n\
             nothing was recorded: build it without that allocator, or link the allocator as a shared library",
            quote_bytes(definer)
        )));
    }
    Ok(())
}

/// A window that was asked for by name must have opened.
pub(super) fn opened_all(snapshot: &Snapshot) -> Option<Failure> {
    let is_opened = |name: &Vec<u8>| {
        let windows = snapshot.areas.iter().flat_map(|area| &area.windows);
        windows.into_iter().any(|window| window.name == *name && window.entries > 0)
    };
    let missing: Vec<String> =
        snapshot.names.iter().filter(|name| !is_opened(name)).map(|name| quote_bytes(name)).collect();
    let advice = if missing == ["`process`"] {
        "that is what is recorded before the first window: run without --window, then `heaptally report --window process`"
    } else {
        "run without --window to see which windows there are"
    };
    (!missing.is_empty())
        .then(|| Failure::recorder(format!("the window {} never opened\n{advice}", missing.join(", "))))
}
