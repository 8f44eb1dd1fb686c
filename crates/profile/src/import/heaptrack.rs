//! heaptrack's recording.
//!
//! heaptrack writes a line for each thing, numbers in hex; what is referred to later is numbered from 1. The recording
//! that a user has is the *interpreted* one (`heaptrack.prog.123.zst`):
//!
//! ```text
//! v 10400 3                   heaptrack's version, the format's
//! X ./prog --fast             the command
//! s 6 _start                  string 1; from format 3 on its length before it
//! i 7fcb 8 c d 79             instruction pointer 1: address, module, then function, file, line: innermost inlined first
//! t 1 0                       trace 1: instruction pointer, parent trace; from the root to the leaf
//! a 64 a                      allocation info 0: size, trace
//! + 0                         an allocation
//! - 0                         its block is freed
//! ```
//!
//! `heaptrack --raw` writes modules instead of names, and [`heaptrack_raw`](super) has its lines. Frees come with their
//! blocks, so that allocations, bytes, frees and the peak of live bytes are exact; a realloc stands there as a free and
//! an allocation. An allocation that `heaptrack` made at attaching counts as any other.

use super::builder::{Builder, Frame};
use super::line::{Line, hex, lines};
use super::{Imported, Importer, heaptrack_raw};
use crate::Error;
use crate::model::{Counts, LocationId};

pub(super) const FORMAT: &str = "heaptrack recording";
/// So many lines are looked at to tell a raw recording.
const SNIFFED: usize = 16;

/// The importer.
pub const IMPORTER: Importer = Importer { name: FORMAT, sniff, read };

/// Whether it begins with both versions.
fn sniff(content: &[u8]) -> bool {
    let Some(line) = lines(content).next().filter(|line| line.bytes.len() < 40) else { return false };
    let text = line.text();
    let mut words = text.split(' ');
    words.next() == Some("v") && words.clone().count() == 2 && words.all(|word| hex(word).is_ok())
}

fn read(content: &[u8]) -> Result<Imported, Error> {
    let version = version(content)?;
    let is_raw = lines(content)
        .take(SNIFFED)
        .any(|line| line.bytes.starts_with(b"x ") || line.bytes.starts_with(b"m "));
    match (is_raw, version) {
        (true, 3) => heaptrack_raw::read(content),
        (false, 1..=3) => interpreted(content, version),
        _ => {
            let raw = if is_raw { "raw, and " } else { "" };
            let reason = format!("it is {raw}of format {version}\nlet heaptrack 1.2 or later convert it");
            Err(Error::Unusable { format: FORMAT, reason })
        }
    }
}

fn version(content: &[u8]) -> Result<u64, Error> {
    let Some(line) = lines(content).next() else { return Ok(0) };
    let text = line.text();
    let version = text.rsplit(' ').next().unwrap_or_default();
    hex(version).map_err(|reason| line.error(FORMAT, reason))
}

/// The words of a line behind its letter.
pub(super) struct Words<'l> {
    line: Line<'l>,
    rest: &'l str,
}

impl<'l> Words<'l> {
    /// The words of a line; `text` is its text.
    pub(super) fn new(line: Line<'l>, text: &'l str) -> Self {
        Self { line, rest: text.get(1..).unwrap_or_default() }
    }

    pub(super) fn error(&self, reason: impl Into<String>) -> Error {
        self.line.error(FORMAT, reason)
    }

    /// The next word, if there is one.
    pub(super) fn word(&mut self) -> Option<&'l str> {
        let rest = self.rest.trim_start_matches(' ');
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// The next number.
    pub(super) fn hex(&mut self, what: &str) -> Result<u64, Error> {
        let word = self.word().ok_or_else(|| self.error(format!("its {what} is missing")))?;
        hex(word).map_err(|reason| self.error(format!("its {what}: {reason}")))
    }

    /// The next number, which is an index from 1 into a table of so many; 0 is none.
    pub(super) fn index(&mut self, what: &str, len: usize) -> Result<Option<usize>, Error> {
        let number = self.hex(what)?;
        match usize::try_from(number).ok() {
            Some(0) => Ok(None),
            Some(index) if index <= len => Ok(Some(index - 1)),
            _ => Err(self.error(format!("its {what} is number {number}, and there are {len}"))),
        }
    }

    /// A text, which has its length before it.
    pub(super) fn sized(&mut self) -> Result<&'l str, Error> {
        let len = self.hex("length")?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        // What is not UTF-8 was replaced, and is longer than it was.
        let text = match self.rest.split_at_checked(len) {
            Some((text, rest)) => {
                self.rest = rest;
                text
            }
            None if self.line.bytes.len() != self.rest.len() && self.rest.contains('\u{fffd}') => {
                std::mem::take(&mut self.rest)
            }
            None => return Err(self.error("its text is shorter than it says")),
        };
        Ok(text)
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'l str {
        self.rest.trim_start_matches(' ')
    }
}

/// A line that both forms of a recording have: what is told of the run.
pub(super) fn about(kind: Option<u8>, words: &Words<'_>, builder: &mut Builder) -> Result<(), Error> {
    match kind {
        Some(b'X') => builder.command(words.rest()),
        Some(b'A') => {
            builder.warning("heaptrack attached to it while it ran: what was allocated before is missing")
        }
        // Versions, comments, times, resident sizes, the system, suppressions, an empty line.
        Some(b'v' | b'#' | b'c' | b'R' | b'I' | b'S') | None => {}
        Some(_) => return Err(words.error("a line of an unknown kind")),
    }
    Ok(())
}

/// A tree of stacks, and what was counted at its ends.
#[derive(Default)]
pub(super) struct Traces {
    /// Of each trace the location and the parent, which stands before it.
    traces: Vec<(LocationId, Option<usize>)>,
    counts: Vec<Counts>,
    live_bytes: u64,
    peak_bytes: u64,
    /// Allocations without a trace.
    lost: u64,
}

impl Traces {
    pub(super) fn len(&self) -> usize {
        self.traces.len()
    }

    pub(super) fn push(&mut self, location: LocationId, parent: Option<usize>) {
        self.traces.push((location, parent));
        self.counts.push(Counts::default());
    }

    pub(super) fn allocate(&mut self, trace: Option<usize>, bytes: u64) {
        self.live_bytes = self.live_bytes.saturating_add(bytes);
        self.peak_bytes = self.peak_bytes.max(self.live_bytes);
        match trace.and_then(|trace| self.counts.get_mut(trace)) {
            Some(counts) => counts.add(&Counts { allocations: 1, bytes, ..Counts::default() }),
            None => self.lost = self.lost.saturating_add(1),
        }
    }

    pub(super) fn free(&mut self, trace: Option<usize>, bytes: u64) {
        self.live_bytes = self.live_bytes.saturating_sub(bytes);
        if let Some(counts) = trace.and_then(|trace| self.counts.get_mut(trace)) {
            counts.add(&Counts { freed: 1, freed_bytes: bytes, ..Counts::default() });
        }
    }

    /// Adds everything to a profile.
    pub(super) fn finish(self, mut builder: Builder) -> Result<Imported, Error> {
        builder.lifetimes(Some(self.peak_bytes));
        builder.lost(self.lost);
        for (trace, counts) in self.counts.iter().enumerate().filter(|(_, counts)| !counts.is_zero()) {
            let mut stack = Vec::new();
            let mut at = Some(trace);
            // Parents stand before their children, so that this ends.
            while let Some((location, parent)) = at.and_then(|at| self.traces.get(at)) {
                stack.push(*location);
                at = *parent;
            }
            builder.add(stack, counts)?;
        }
        builder.finish()
    }
}

fn interpreted(content: &[u8], version: u64) -> Result<Imported, Error> {
    let mut builder = Builder::new(FORMAT);
    let mut strings: Vec<String> = Vec::new();
    let mut pointers: Vec<LocationId> = Vec::new();
    let mut traces = Traces::default();
    // Size and trace, and how many blocks of it are live.
    let mut infos: Vec<(u64, Option<usize>, u64)> = Vec::new();
    for line in lines(content) {
        let text = line.text();
        let mut words = Words::new(line, &text);
        match line.bytes.first() {
            Some(b's') => {
                let string = if version >= 3 { words.sized()? } else { words.rest() };
                strings.push(string.to_owned());
            }
            Some(b'i') => {
                let address = words.hex("address")?;
                let module = words.index("module", strings.len())?;
                let module = module.and_then(|at| strings.get(at)).map(|path| builder.module(path));
                let mut frames = Vec::new();
                while !words.rest().is_empty() {
                    let name = words.index("function", strings.len())?;
                    let (file, line) = match words.rest() {
                        "" => (None, 0),
                        _ => (words.index("file", strings.len())?, words.hex("line")?),
                    };
                    let string =
                        |at: Option<usize>| at.and_then(|at| strings.get(at)).map_or("", String::as_str);
                    let line = u32::try_from(line).unwrap_or(0);
                    frames.push(Frame { name: string(name), file: string(file), line });
                }
                pointers.push(builder.location(module, address, frames));
            }
            Some(b't') => {
                let pointer = words.index("instruction pointer", pointers.len())?;
                let parent = words.index("parent trace", traces.len())?;
                let Some(location) = pointer.and_then(|at| pointers.get(at)) else {
                    return Err(words.error("it has no instruction pointer"));
                };
                traces.push(*location, parent);
            }
            Some(b'a') => {
                let size = words.hex("size")?;
                infos.push((size, words.index("trace", traces.len())?, 0));
            }
            Some(sign @ (b'+' | b'-')) => {
                let number = words.hex("allocation")?;
                let len = infos.len();
                let info = usize::try_from(number).ok().and_then(|at| infos.get_mut(at));
                let Some((bytes, trace, live)) = info else {
                    return Err(words.error(format!("allocation {number}, and there are {len}")));
                };
                if *sign == b'+' {
                    *live += 1;
                    traces.allocate(*trace, *bytes);
                } else {
                    *live = live
                        .checked_sub(1)
                        .ok_or_else(|| words.error("a free of a block that is not live"))?;
                    traces.free(*trace, *bytes);
                }
            }
            kind => about(kind.copied(), &words, &mut builder)?,
        }
    }
    traces.finish(builder)
}
