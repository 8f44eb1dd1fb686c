//! Frames in words. Everything here is escaped.

use heaptally_profile::frame::Frame;
use heaptally_profile::model::FrameKind;
use heaptally_profile::short_name::{Language, shown};

use crate::escape::escape;

/// What stands between a task's last async caller and the stack that created the task.
pub(crate) const TASK_ORIGIN: &str = "(task created by)";

/// Its function's name, or where it is.
pub(crate) fn name(frame: &Frame<'_>) -> String {
    match frame.name() {
        _ if frame.kind == FrameKind::Elided => "… frames left out …".to_owned(),
        _ if frame.kind == FrameKind::TaskOrigin => TASK_ORIGIN.to_owned(),
        Some(name) => escape(name).into_owned(),
        None => escape(&frame.place()).into_owned(),
    }
}

/// Its function's name as it is printed where it is not printed in full, and where there is little room, too.
pub(crate) fn short_names(frame: &Frame<'_>) -> [String; 2] {
    match frame.function.filter(|_| frame.name().is_some()) {
        Some(function) => {
            shown(&function.name, Language::of(function)).map(|name| escape(&name).into_owned())
        }
        None => [name(frame), name(frame)],
    }
}

/// The first of [`short_names`].
pub(crate) fn short_name(frame: &Frame<'_>) -> String {
    let [name, _] = short_names(frame);
    name
}

/// Its source file, where it has one that somebody wrote.
pub(crate) fn source_file<'p>(frame: &Frame<'p>) -> Option<&'p str> {
    frame.file().filter(|file| !file.ends_with("<compiler-generated>"))
}

/// Its source as `file:line`, as far as known.
pub(crate) fn source(frame: &Frame<'_>) -> Option<String> {
    frame.file().map(|file| source_at(file, frame.line))
}

/// A file and a line as `file:line`; the line left out when it is not known.
pub(crate) fn source_at(file: &str, line: u32) -> String {
    let file = escape(file);
    if line > 0 { format!("{file}:{line}") } else { file.into_owned() }
}

/// What is to be known of how it was found.
pub(crate) fn mark(frame: &Frame<'_>) -> Option<&'static str> {
    if frame.inlined {
        return Some("(inlined)");
    }
    if frame.function.is_some_and(|function| function.is_folded) {
        return Some("(folded)");
    }
    match frame.kind {
        FrameKind::Return | FrameKind::EntryPoint | FrameKind::Elided | FrameKind::TaskOrigin => None,
        FrameKind::Interrupted => Some("(interrupted by a signal)"),
        FrameKind::Signal => Some("(signal handler called)"),
        FrameKind::FramePointer => Some("(by frame pointer)"),
        FrameKind::Async => Some("(async)"),
    }
}
