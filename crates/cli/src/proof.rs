//! Whether the recorder was in the way of the program's allocations: 0 of them are a result only then.
//!
//! Where it was not, this says why: what the segment tells, what the file of the last program tells, and what this
//! machine refuses.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use heaptally_segment::layout::{FLAG_CHILD, FLAG_MALLOC_IS_OURS, FLAG_OUT_OF_REACH};
use heaptally_segment::read::{Area, Snapshot, State, Window, WindowKind};

use crate::doctor::kernel;
use crate::exit::{Failure, RECORDER};
use crate::message::{quote, quote_bytes, visible};
use crate::process::End;
use crate::program;

/// Refuses a run in which allocations went past the recorder. `program`: as the user named it, with its arguments.
pub(crate) fn was_in_path(snapshot: &Snapshot, program: &[OsString], end: End) -> Result<(), Failure> {
    let name = quote(program.first().map_or(OsStr::new(""), OsString::as_os_str));
    let ended = match (end.exit_code, end.signal) {
        (_, Some(signal)) => format!("signal {signal} ended it"),
        (code, None) => format!("it exited with {}", code.unwrap_or(0)),
    };
    let is_own = |area: &&Area| area.flags & FLAG_CHILD == 0 && area.state != State::Attaching;
    let Some(last) = snapshot.areas.iter().rev().find(is_own) else {
        let why = why_not_attached(snapshot);
        return Err(Failure::recorder(format!("the recorder was not loaded in {name}; {ended}\n{why}")));
    };
    let is_known_loss = snapshot.refused > 0 || snapshot.empty_areas > 0 || snapshot.without_area > 0;
    if last.state == State::Replaced && !is_known_loss {
        let next = OsString::from_vec(last.next_program.clone());
        let is_out_of_reach = last.flags & FLAG_OUT_OF_REACH != 0;
        return Err(Failure::recorder(why_lost(program, &next, is_out_of_reach, &ended)));
    }
    if last.flags & FLAG_MALLOC_IS_OURS == 0 {
        let definer = if last.foreign_path.is_empty() { &last.image_path } else { &last.foreign_path };
        let is_first = snapshot.areas.iter().filter(is_own).nth(1).is_none();
        let who = match is_first {
            true => name,
            false => format!("{}, to which {name} went on by exec,", quote_bytes(&last.image_path)),
        };
        return Err(Failure::recorder(format!(
            "{who} does not call the recorder's malloc but its own, defined in {}; {ended}\n\
             nothing was recorded: build it without that allocator, or link the allocator as a shared library",
            quote_bytes(definer)
        )));
    }
    if let Some(valgrind) = snapshot.areas.iter().find(is_valgrind)
        && last.rows.is_empty()
    {
        return Err(Failure::recorder(format!(
            "{} puts a malloc of its own into the program that it runs; {ended}\n\
             nothing was recorded: record the program without it, or choose a tool that leaves malloc alone \
             (--tool=none)",
            quote_bytes(&valgrind.image_path)
        )));
    }
    Ok(())
}

fn is_valgrind(area: &&Area) -> bool {
    let name = area.image_path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    area.state == State::Replaced && name.starts_with(b"valgrind")
}

/// Why no recorder came to the segment.
fn why_not_attached(snapshot: &Snapshot) -> String {
    if snapshot.refused > 0 || snapshot.empty_areas > 0 {
        return "could not map its tables: raise the limit of the address space (ulimit -v), or make room in --segment-dir"
            .to_owned();
    }
    if snapshot.without_area > 0 {
        return "found no room: too many programs were started one by the other".to_owned();
    }
    kernel::obstacle().unwrap_or_else(|| {
        "did not reach the segment: see whether the loader complained above, whether the program resets LD_PRELOAD, \
         or try --segment-dir /tmp"
            .to_owned()
    })
}

/// Why the recorder did not come along when the program went on to another one.
fn why_lost(program: &[OsString], next: &OsStr, is_out_of_reach: bool, ended: &str) -> String {
    let name = quote(program.first().map_or(OsStr::new(""), OsString::as_os_str));
    let lost = |to: &str, advice: &str| {
        format!("{name} went on to {to} by exec, in which the recorder was not loaded; {ended}\n{advice}")
    };
    if next.is_empty() {
        return lost("another program", "record that program itself");
    }
    let to = quote(next);
    if let Some(refusal) = program::examine(next).err().filter(|refusal| refusal.code == RECORDER) {
        // Its path may stand there in another form, behind scripts.
        return format!(
            "{name} went on to {to} by exec, which cannot be recorded; {ended}\n{}",
            refusal.message
        );
    }
    let is_privileged = program::find(next).is_ok_and(|path| {
        let mode = fs::metadata(&path).map_or(0, |found| found.permissions().mode());
        mode & 0o6000 != 0 || program::has_capabilities(&path)
    });
    if is_privileged {
        return lost(
            &to,
            "it gains privileges (setuid, setgid, capabilities), so the loader ignores LD_PRELOAD: record a copy without",
        );
    }
    if let Some((library, sanitizer)) = program.iter().find_map(|word| sanitizer_in(word)) {
        return lost(
            &to,
            &format!(
                "it preloads {}, the library of {sanitizer}, which must come first: take it out of LD_PRELOAD",
                quote(library)
            ),
        );
    }
    let where_to = match is_out_of_reach {
        true => {
            "it had changed its user, root folder or namespace, and cannot open the recorder's files any more: put \
             heaptally behind that change"
        }
        false => {
            "put heaptally behind what changes the user, the root folder, the namespace or the environment"
        }
    };
    lost(&to, &format!("{where_to}: {}", behind(program, next)))
}

/// A sanitizer's library that a word preloads, be it a variable or a piece of shell, and which sanitizer's.
fn sanitizer_in(word: &OsStr) -> Option<(&OsStr, &'static str)> {
    const PRELOAD: &[u8] = b"LD_PRELOAD=";
    let at = word.as_bytes().windows(PRELOAD.len()).position(|part| part == PRELOAD)?;
    let list = word.as_bytes().get(at + PRELOAD.len()..)?;
    let mut parts = list.split(|byte| b" :;&|'\"".contains(byte));
    parts.find_map(|part| program::preloaded_sanitizer(OsStr::from_bytes(part)))
}

/// The command with heaptally before the program that it went on to.
fn behind(program: &[OsString], next: &OsStr) -> String {
    let name = |path: &OsStr| Path::new(path).file_name().map(OsStr::to_owned);
    let words = |words: &[OsString]| -> String {
        words.iter().map(|word| format!("{} ", visible(word.as_bytes()))).collect()
    };
    let at = program.iter().skip(1).position(|word| name(word).is_some() && name(word) == name(next));
    match at.and_then(|at| program.split_at_checked(at + 1)) {
        Some((before, rest)) => format!("{}heaptally run -- {}", words(before), words(rest).trim_end()),
        None => format!(
            "{} … heaptally run -- {}",
            visible(program.first().map_or(&b""[..], |first| first.as_bytes())),
            visible(next.as_bytes())
        ),
    }
}

/// The windows that were asked for by name and never opened, quoted.
pub(crate) fn unopened(snapshot: &Snapshot) -> Vec<String> {
    let is_opened = |name: &Vec<u8>| {
        let windows = snapshot.areas.iter().flat_map(|area| &area.windows);
        let is_open = |window: &Window| window.entries > 0 || window.kind == WindowKind::Function;
        windows.into_iter().any(|window| window.name == *name && is_open(window))
    };
    snapshot.names.iter().filter(|name| !is_opened(name)).map(|name| quote_bytes(name)).collect()
}

/// A window that was asked for by name must have opened. `missing`: those that did not.
pub(crate) fn opened_all(missing: &[String]) -> Option<Failure> {
    let advice = if missing == ["`process`"] {
        "that is what is recorded before the first window: run without --window, then `heaptally report --window process`"
    } else {
        "run without --window to see which windows there are"
    };
    (!missing.is_empty())
        .then(|| Failure::recorder(format!("the window {} never opened\n{advice}", missing.join(", "))))
}
