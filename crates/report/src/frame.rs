//! Frames in words. Everything here is escaped.

use heaptally_profile::frame::Frame;
use heaptally_profile::model::FrameKind;
use heaptally_profile::short_name;

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

/// Whether its function is one of C++, by its mangled name.
pub(crate) fn is_cpp(frame: &Frame<'_>) -> bool {
    frame.function.is_some_and(short_name::is_cpp)
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
