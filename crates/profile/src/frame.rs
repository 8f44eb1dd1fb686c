//! The logical frames of a stack, leaf first, inlined ones expanded.
//!
//! ```text
//! location 0  malloc (entry point)                  frame 0
//! location 1  Vec::push | push_value | parse_line   frames 1, 2 (both inlined) and 3
//! location 2  main                                  frame 4
//! ```

use crate::model::{FrameKind, Function, FunctionId, Location, LocationId, Module, Profile, Stack};

/// One logical frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'p> {
    /// Its location.
    pub location: LocationId,
    /// Its line in the location, 0 also where there is none.
    pub line_index: usize,
    /// How its location came to be in the stack.
    pub kind: FrameKind,
    /// Its function, if known.
    pub function: Option<&'p Function>,
    /// The index of its function.
    pub function_id: Option<FunctionId>,
    /// The line in the function's file, 0 when unknown.
    pub line: u32,
    /// Whether it has no return address of its own: it was inlined into the frame that follows.
    pub inlined: bool,
    /// The module of its location.
    pub module: Option<&'p Module>,
    /// The SVMA of its location; the AVMA outside of modules.
    pub address: u64,
}

/// The frames of a stack.
pub fn frames<'p>(profile: &'p Profile, stack: &'p Stack) -> impl Iterator<Item = Frame<'p>> {
    stack.locations.iter().flat_map(move |&at| location_frames(profile, at))
}

/// The frames of one location: one without function where it has no lines; none where it does not exist.
pub fn location_frames(profile: &Profile, at: LocationId) -> impl Iterator<Item = Frame<'_>> {
    let count = profile.locations.get(at).map_or(0, frame_count);
    (0..count).filter_map(move |line_index| frame_at(profile, at, line_index))
}

/// The frame of a location's line; `None` where there is none.
pub fn frame_at(profile: &Profile, at: LocationId, line_index: usize) -> Option<Frame<'_>> {
    let location = profile.locations.get(at)?;
    let line = location.lines.get(line_index);
    if line.is_none() && line_index > 0 {
        return None;
    }
    let function = line.and_then(|line| profile.functions.get(line.function));
    Some(Frame {
        location: at,
        line_index,
        kind: location.kind,
        function,
        function_id: line.filter(|_| function.is_some()).map(|line| line.function),
        line: line.map_or(0, |line| line.line),
        inlined: line_index + 1 < location.lines.len(),
        module: location.module.and_then(|module| profile.modules.get(module)),
        address: location.address,
    })
}

/// How many frames a location has.
pub(crate) fn frame_count(location: &Location) -> usize {
    location.lines.len().max(1)
}

impl<'p> Frame<'p> {
    /// The name that people read, where there is one.
    pub fn name(&self) -> Option<&'p str> {
        self.function.map(|function| function.name.as_str()).filter(|name| !name.is_empty())
    }

    /// What stands for it without a name: `0x1234 in libfoo.so`, or the address alone outside of modules.
    pub fn place(&self) -> String {
        match self.module {
            Some(module) => format!("{:#x} in {}", self.address, file_name(&module.path)),
            None => format!("{:#x}", self.address),
        }
    }

    /// The source file, where it is known.
    pub fn file(&self) -> Option<&'p str> {
        self.function.map(|function| function.file.as_str()).filter(|file| !file.is_empty())
    }
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, file_name)| file_name)
}
