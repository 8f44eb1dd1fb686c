//! Writing.

use std::collections::HashMap;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use prost::Message as _;

use super::document::Document;
use super::{SAMPLE_TYPES, digest, proto};
use crate::model::{Capture, Counts, FrameKind, Location, Profile, Row, Stack};

/// The file of a profile, without a time. Equal profiles give equal bytes.
///
/// The indices must be valid ([`Profile::validate`]): a file with others is written, and refused when it is read.
pub fn write(profile: &Profile) -> Vec<u8> {
    write_at(profile, 0)
}

/// The file of a profile that was recorded at a time, in nanoseconds since 1970 UTC; 0 when unknown. Only pprof's own
/// tools show it.
pub fn write_at(profile: &Profile, time_nanos: i64) -> Vec<u8> {
    let mut message = message(profile, time_nanos);
    let document = Document::of(profile, digest(&mut message, None));
    message.comment = vec![message.string_table.len() as i64];
    message.string_table.push(document.to_comment());
    compress(&message.encode_to_vec())
}

/// In gzip, with nothing in its header that is not always the same.
pub(super) fn compress(bytes: &[u8]) -> Vec<u8> {
    const UNKNOWN_SYSTEM: u8 = 255;
    let builder = GzBuilder::new().mtime(0).operating_system(UNKNOWN_SYSTEM);
    let mut encoder = builder.write(Vec::new(), Compression::default());
    // NOTE: writing to a Vec does not fail; what cannot be finished would be empty, which no reader takes.
    match encoder.write_all(bytes) {
        Ok(()) => encoder.finish().unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// The message without its comment.
fn message(profile: &Profile, time_nanos: i64) -> proto::Profile {
    let mut strings = Strings::new();
    let sample_type = SAMPLE_TYPES
        .iter()
        .map(|(name, unit)| proto::ValueType { r#type: strings.index(name), unit: strings.index(unit) })
        .collect();
    let default_sample_type = strings.index(SAMPLE_TYPES[0].0);
    let sample = profile.rows.iter().map(|row| sample(profile, row, &mut strings)).collect();
    let mapping = mappings(profile, &mut strings);
    let location = profile.locations.iter().enumerate().map(|(at, l)| location(profile, at, l)).collect();
    let function = profile
        .functions
        .iter()
        .enumerate()
        .map(|(at, function)| proto::Function {
            id: id(at),
            name: strings.index(&function.name),
            system_name: strings.index(&function.system_name),
            filename: strings.index(&function.file),
        })
        .collect();
    proto::Profile {
        sample_type,
        sample,
        mapping,
        location,
        function,
        string_table: strings.table,
        time_nanos,
        comment: Vec::new(),
        default_sample_type,
    }
}

fn sample<'p>(profile: &'p Profile, row: &Row, strings: &mut Strings<'p>) -> proto::Sample {
    let stack = profile.stacks.get(row.stack);
    let window = profile.windows.get(row.window);
    let image = window.and_then(|window| profile.images.get(window.image));
    let mut text_label = |key: &'static str, value: &'p str| proto::Label {
        key: strings.index(key),
        str: strings.index(value),
        ..proto::Label::default()
    };
    let mut label = vec![
        text_label("window", window.map_or("", |window| &window.name)),
        text_label("image", image.map_or("", |image| &image.label)),
        text_label("capture", stack.map_or("", |stack| capture_label(stack.capture))),
    ];
    if window.is_some_and(|window| row.is_unstable(window)) {
        label.push(text_label("unstable", "yes"));
    }
    if let Some(frames) = stack.and_then(|stack| async_from(profile, stack)) {
        label.push(proto::Label {
            key: strings.index("async_from"),
            num: frames as i64,
            ..proto::Label::default()
        });
    }
    proto::Sample {
        location_id: stack.map_or_else(Vec::new, |stack| stack.locations.iter().map(|&at| id(at)).collect()),
        value: values(&row.counts, profile.environment.lifetimes),
        label,
    }
}

/// The values in the order of [`SAMPLE_TYPES`].
fn values(counts: &Counts, lifetimes: bool) -> Vec<i64> {
    [
        counts.allocations,
        counts.bytes,
        // Unknown where blocks were not followed.
        if lifetimes { counts.live() } else { 0 },
        if lifetimes { counts.live_bytes() } else { 0 },
        counts.freed,
        counts.freed_bytes,
        counts.freed_later,
        counts.freed_later_bytes,
        counts.reallocs,
        counts.reallocs_in_place,
        counts.reallocs_moved,
        counts.temporary,
        counts.temporary_bytes,
        counts.failed,
        counts.discarded,
        counts.discarded_bytes,
    ]
    .map(|value| i64::try_from(value).unwrap_or(i64::MAX))
    .to_vec()
}

/// The `capture` label's text.
fn capture_label(capture: Capture) -> &'static str {
    match capture {
        Capture::Complete => "complete",
        Capture::FramePointer => "frame pointer",
        Capture::Cut => "cut",
        Capture::AsyncUnknown => "async caller unknown",
    }
}

/// How many frames stand before the async callers, if there are any.
fn async_from(profile: &Profile, stack: &Stack) -> Option<usize> {
    stack
        .locations
        .iter()
        .position(|&at| profile.locations.get(at).is_some_and(|l| l.kind == FrameKind::Async))
}

fn mappings<'p>(profile: &'p Profile, strings: &mut Strings<'p>) -> Vec<proto::Mapping> {
    let mut has_functions = vec![false; profile.modules.len()];
    let mut has_lines = vec![false; profile.modules.len()];
    let mut has_inlined = vec![false; profile.modules.len()];
    for location in &profile.locations {
        let Some(module) = location.module.filter(|module| *module < profile.modules.len()) else { continue };
        has_functions[module] |= !location.lines.is_empty();
        has_lines[module] |= location.lines.iter().any(|line| line.line > 0);
        has_inlined[module] |= location.lines.len() > 1;
    }
    profile
        .modules
        .iter()
        .enumerate()
        .map(|(at, module)| proto::Mapping {
            id: id(at),
            memory_start: module.text_svma,
            memory_limit: module.text_svma_end,
            file_offset: module.text_offset,
            filename: strings.index(&module.path),
            build_id: strings.index(&module.build_id),
            has_functions: has_functions[at],
            has_filenames: has_lines[at],
            has_line_numbers: has_lines[at],
            has_inline_frames: has_inlined[at],
        })
        .collect()
}

fn location(profile: &Profile, at: usize, location: &Location) -> proto::Location {
    let folded = |function: usize| profile.functions.get(function).is_some_and(|function| function.is_folded);
    proto::Location {
        id: id(at),
        mapping_id: location.module.map_or(0, id),
        address: location.address,
        line: location
            .lines
            .iter()
            .map(|line| proto::Line { function_id: id(line.function), line: i64::from(line.line) })
            .collect(),
        is_folded: location.lines.iter().any(|line| folded(line.function)),
    }
}

/// pprof's id of an index: they start at 1.
fn id(index: usize) -> u64 {
    (index as u64).saturating_add(1)
}

/// The string table: each text once, in the order of its first use, the empty one first.
struct Strings<'a> {
    index: HashMap<&'a str, i64>,
    table: Vec<String>,
}

impl<'a> Strings<'a> {
    fn new() -> Self {
        Self { index: HashMap::from([("", 0)]), table: vec![String::new()] }
    }

    fn index(&mut self, text: &'a str) -> i64 {
        *self.index.entry(text).or_insert_with(|| {
            self.table.push(text.to_owned());
            self.table.len() as i64 - 1
        })
    }
}

#[cfg(test)]
mod tests;
