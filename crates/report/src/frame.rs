//! The logical frames of a stack, leaf first, inlined ones expanded.

use std::cmp::Ordering;

use heaptally_profile::model::{FrameKind, Function, LocationId, Module, Profile, Stack};

use crate::escape::escape;

/// One logical frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'p> {
    /// Its location.
    pub(crate) location: LocationId,
    /// Its line in the location, 0 also where there is none.
    pub(crate) line_index: usize,
    /// How its location came to be in the stack.
    pub(crate) kind: FrameKind,
    /// Its function, if known.
    pub(crate) function: Option<&'p Function>,
    /// The line in the function's file, 0 when unknown.
    pub(crate) line: u32,
    /// Whether it has no return address of its own: it was inlined into the frame that follows.
    pub(crate) inlined: bool,
    /// The module of its location.
    pub(crate) module: Option<&'p Module>,
    /// The SVMA of its location; the AVMA outside of modules.
    pub(crate) address: u64,
}

/// The frames of a stack.
pub(crate) fn frames<'p>(profile: &'p Profile, stack: &'p Stack) -> impl Iterator<Item = Frame<'p>> {
    stack.locations.iter().flat_map(move |&at| location_frames(profile, at))
}

/// The frames of one location: one without function where it has no lines; none where it does not exist.
pub(crate) fn location_frames(profile: &Profile, at: LocationId) -> impl Iterator<Item = Frame<'_>> {
    profile.locations.get(at).into_iter().flat_map(move |location| {
        let module = location.module.and_then(|module| profile.modules.get(module));
        (0..location.lines.len().max(1)).map(move |line_index| {
            let line = location.lines.get(line_index);
            Frame {
                location: at,
                line_index,
                kind: location.kind,
                function: line.and_then(|line| profile.functions.get(line.function)),
                line: line.map_or(0, |line| line.line),
                inlined: line_index + 1 < location.lines.len(),
                module,
                address: location.address,
            }
        })
    })
}

impl Frame<'_> {
    /// Its function's name, or where it is; escaped.
    pub(crate) fn name(&self) -> String {
        match (self.function, self.module) {
            _ if self.kind == FrameKind::Elided => "… frames left out …".to_owned(),
            (Some(function), _) if !function.name.is_empty() => escape(&function.name).into_owned(),
            (_, Some(module)) => format!("{:#x} in {}", self.address, escape(file_name(&module.path))),
            (_, None) => format!("{:#x}", self.address),
        }
    }

    /// Its source as `file:line`, as far as known; escaped.
    pub(crate) fn source(&self) -> Option<String> {
        let file = self.function.map(|function| function.file.as_str()).filter(|file| !file.is_empty())?;
        let file = escape(file);
        Some(if self.line > 0 { format!("{file}:{}", self.line) } else { file.into_owned() })
    }

    /// Name and source.
    pub(crate) fn name_and_source(&self) -> String {
        match self.source() {
            Some(source) => format!("{}  {source}", self.name()),
            None => self.name(),
        }
    }

    /// What is to be known of how it was found, for people.
    pub(crate) fn mark(&self) -> Option<&'static str> {
        if self.inlined {
            return Some("(inlined)");
        }
        match self.kind {
            FrameKind::Return | FrameKind::EntryPoint | FrameKind::Elided => None,
            FrameKind::Interrupted => Some("(interrupted by a signal)"),
            FrameKind::Signal => Some("(signal handler called)"),
            FrameKind::FramePointer => Some("(by frame pointer)"),
            FrameKind::Async => Some("(async)"),
        }
    }
}

/// Orders two stacks by their frames from the leaf: names, files and lines of all frames first, then modules, kinds and
/// addresses.
pub(crate) fn compare_stacks(profile: &Profile, a: &Stack, b: &Stack) -> Ordering {
    fn seen<'p>(frame: Frame<'p>) -> (Option<(&'p str, &'p str)>, u32, bool) {
        (
            frame.function.map(|function| (function.name.as_str(), function.file.as_str())),
            frame.line,
            frame.inlined,
        )
    }
    fn unseen<'p>(frame: Frame<'p>) -> (Option<&'p str>, FrameKind, u64) {
        (frame.module.map(|module| module.path.as_str()), frame.kind, frame.address)
    }
    let by_seen = frames(profile, a).map(seen).cmp(frames(profile, b).map(seen));
    by_seen
        .then_with(|| frames(profile, a).map(unseen).cmp(frames(profile, b).map(unseen)))
        .then_with(|| (a.capture, &a.cut_reason).cmp(&(b.capture, &b.cut_reason)))
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, file_name)| file_name)
}
