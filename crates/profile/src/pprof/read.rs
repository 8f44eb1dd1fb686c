//! Reading. Nothing in a file is believed: sizes are limited and every index is checked.

use std::io::Read as _;

use flate2::bufread::GzDecoder;

use super::document::Document;
use super::{COMMENT_PREFIX, SAMPLE_TYPES, digest, encoded_digest, proto};
use crate::Error;
use crate::model::{Counts, Function, Line, Location, Module, Profile, Row, Stack};

/// How many bytes a profile may have when it is unpacked: 1 GiB, some hundred times what a compiler's needs.
pub const MAX_BYTES: u64 = 1 << 30;

/// How many messages and texts a profile may have. Two bytes in a file can become 100 in memory.
const MAX_MESSAGES: u64 = 1 << 25;

/// Reads a file.
///
/// # Errors
/// Says what is wrong with the bytes, be they another format, of another version, damaged, or altered by another tool.
pub fn read(bytes: &[u8]) -> Result<Profile, Error> {
    read_with_limit(bytes, MAX_BYTES)
}

/// Reads a file that may unpack to at most `limit_bytes`.
///
/// # Errors
/// As [`read`]; [`Error::TooLarge`] beyond the limit.
pub fn read_with_limit(bytes: &[u8], limit_bytes: u64) -> Result<Profile, Error> {
    let unpacked = decompress(bytes, limit_bytes)?;
    let message = decode(&unpacked)?;
    read_message(message, &unpacked)
}

/// Reads a message that heaptally wrote; `encoded` are its bytes.
pub(crate) fn read_message(mut message: proto::Profile, encoded: &[u8]) -> Result<Profile, Error> {
    let (text_at, document) = document(&message)?;
    // PERF: the message is encoded again only if it is not as heaptally encodes it.
    if encoded_digest(encoded, text_at) != document.digest {
        let found = digest(&mut message, Some(text_at));
        if found != document.digest {
            return Err(Error::Altered { found, expected: document.digest });
        }
    }
    assemble(message, document)
}

pub(crate) fn decompress(bytes: &[u8], limit_bytes: u64) -> Result<Vec<u8>, Error> {
    const MAGIC: [u8; 2] = [0x1f, 0x8b];
    if !bytes.starts_with(&MAGIC) {
        let found = match bytes {
            [] => "no bytes".to_owned(),
            [one] => format!("{one:02x}"),
            [one, two, ..] => format!("{one:02x} {two:02x}"),
        };
        return Err(Error::NotGzip { found });
    }
    let mut decoder = GzDecoder::new(bytes);
    let mut unpacked = Vec::new();
    let read = (&mut decoder).take(limit_bytes.saturating_add(1)).read_to_end(&mut unpacked);
    let read = read.map_err(|error| Error::Gzip {
        at: bytes.len() - decoder.get_ref().len(),
        len: bytes.len(),
        reason: error.to_string(),
    })?;
    if read as u64 > limit_bytes {
        return Err(Error::TooLarge { limit: limit_bytes, unit: "bytes" });
    }
    match decoder.into_inner().len() {
        0 => Ok(unpacked),
        bytes => Err(Error::Trailing { bytes }),
    }
}

pub(crate) fn decode(unpacked: &[u8]) -> Result<proto::Profile, Error> {
    if super::wire::count_messages(unpacked, MAX_MESSAGES) > MAX_MESSAGES {
        return Err(Error::TooLarge { limit: MAX_MESSAGES, unit: "messages" });
    }
    super::sample::decode(unpacked).map_err(|error| damaged::<proto::Profile>(unpacked, &error))
}

/// The error of a message that cannot be decoded, with the place of the first field of which that is so.
pub(crate) fn damaged<M: prost::Message + Default>(encoded: &[u8], error: &prost::DecodeError) -> Error {
    let at = super::wire::first_damage(encoded, |field| M::decode(field).is_ok());
    Error::Protobuf { at, reason: error.to_string() }
}

/// Our document, and the index of its text.
fn document(message: &proto::Profile) -> Result<(usize, Document), Error> {
    let mut ours = message.comment.iter().filter_map(|&comment| {
        let at = usize::try_from(comment).ok()?;
        let text = message.string_table.get(at)?;
        text.starts_with(COMMENT_PREFIX).then_some((at, text))
    });
    let Some((at, text)) = ours.next() else {
        return Err(Error::Foreign { what: sample_types(message) });
    };
    match ours.count() {
        0 => Ok((at, Document::from_comment(text)?)),
        more => Err(Error::Merged { count: more + 1 }),
    }
}

/// What a message's values are, for people.
pub(crate) fn sample_types(message: &proto::Profile) -> String {
    const SHOWN: usize = 4;
    let text = |index: i64| {
        let found = usize::try_from(index).ok().and_then(|at| message.string_table.get(at));
        found.map_or_else(
            || "?".to_owned(),
            |text| text.chars().take(40).collect::<String>().escape_debug().to_string(),
        )
    };
    if message.sample_type.is_empty() {
        return "no sample types".to_owned();
    }
    let mut names: Vec<String> = message
        .sample_type
        .iter()
        .take(SHOWN)
        .map(|value| format!("{}/{}", text(value.r#type), text(value.unit)))
        .collect();
    if message.sample_type.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// Joins message and document. The result's indices are valid.
fn assemble(mut message: proto::Profile, document: Document) -> Result<Profile, Error> {
    let mut profile = Profile {
        images: document.images,
        modules: modules(&message)?,
        functions: functions(&message)?,
        locations: locations(&message)?,
        windows: document.windows,
        threads: document.threads,
        executors: document.executors,
        losses: document.losses,
        children: document.children,
        environment: document.environment,
        ..Profile::default()
    };
    for (at, problem) in document.symbol_problems {
        entry(&mut profile.modules, "symbol_problems", at)?.symbol_problem = Some(problem);
    }
    for at in document.folded_functions {
        entry(&mut profile.functions, "folded_functions", at)?.is_folded = true;
    }
    for (kind, locations) in document.location_kinds {
        for at in locations {
            entry(&mut profile.locations, "location_kinds", at)?.kind = kind;
        }
    }
    document.rows.check_len(message.sample.len())?;
    profile.stacks = stacks(&mut message, &document.stacks, &document.rows.stack)?;
    profile.rows.reserve_exact(message.sample.len());
    for (at, sample) in message.sample.iter().enumerate() {
        let rows = &document.rows;
        let counts = Counts { reallocs_to_zero: rows.reallocs_to_zero[at], ..counts(at, &sample.value)? };
        profile.rows.push(Row {
            window: rows.window[at],
            stack: rows.stack[at],
            counts,
            entries: rows.entries[at],
            first_entry: rows.first_entry[at],
            last_entry: rows.last_entry[at],
            repeats: rows.repeats.values(at),
        });
    }
    profile.validate()?;
    Ok(profile)
}

fn modules(message: &proto::Profile) -> Result<Vec<Module>, Error> {
    let module = |(at, mapping): (usize, &proto::Mapping)| {
        check_id("mapping", at, mapping.id)?;
        Ok(Module {
            path: text(message, ("mapping", at), mapping.filename)?,
            build_id: text(message, ("mapping", at), mapping.build_id)?,
            text_svma: mapping.memory_start,
            text_svma_end: mapping.memory_limit,
            text_offset: mapping.file_offset,
            symbol_problem: None,
        })
    };
    message.mapping.iter().enumerate().map(module).collect()
}

fn functions(message: &proto::Profile) -> Result<Vec<Function>, Error> {
    let function = |(at, function): (usize, &proto::Function)| {
        check_id("function", at, function.id)?;
        Ok(Function {
            name: text(message, ("function", at), function.name)?,
            system_name: text(message, ("function", at), function.system_name)?,
            file: text(message, ("function", at), function.filename)?,
            is_folded: false,
        })
    };
    message.function.iter().enumerate().map(function).collect()
}

fn locations(message: &proto::Profile) -> Result<Vec<Location>, Error> {
    let location = |(at, location): (usize, &proto::Location)| {
        check_id("location", at, location.id)?;
        let module = match location.mapping_id {
            0 => None,
            id => Some(index(("location", at), "mapping", id, message.mapping.len())?),
        };
        let line = |line: &proto::Line| {
            let number = u32::try_from(line.line).map_err(|_| Error::Value {
                table: "location",
                row: at,
                reason: format!("{} is no line number", line.line),
            })?;
            let function = index(("location", at), "function", line.function_id, message.function.len())?;
            Ok(Line { function, line: number })
        };
        let lines = location.line.iter().map(line).collect::<Result<_, Error>>()?;
        Ok(Location { module, address: location.address, lines, ..Location::default() })
    };
    message.location.iter().enumerate().map(location).collect()
}

/// The stacks, their locations from the samples, which are taken out of these. `stack_of` tells each sample's stack.
fn stacks(
    message: &mut proto::Profile,
    document: &super::document::Stacks,
    stack_of: &[usize],
) -> Result<Vec<Stack>, Error> {
    // Every stack stands in a sample or among the unused: a file cannot ask for more memory than it has entries.
    let known = message.sample.len().saturating_add(document.unused.len());
    if document.len > known {
        let reason = format!("{} stacks, and locations for at most {known}", document.len);
        return Err(Error::Comment { reason });
    }
    let mut locations: Vec<Option<Vec<usize>>> = vec![None; document.len];
    for (&at, unused) in &document.unused {
        *entry(&mut locations, "stacks.unused", at)? = Some(unused.clone());
    }
    let known_locations = message.location.len();
    for (at, (sample, &stack)) in message.sample.iter_mut().zip(stack_of).enumerate() {
        let to_index = |id: u64| index(("sample", at), "location", id, known_locations);
        // PERF: in the same memory.
        let ids = std::mem::take(&mut sample.location_id).into_iter();
        let found: Vec<usize> = ids.map(to_index).collect::<Result<_, Error>>()?;
        match entry(&mut locations, "rows.stack", stack)? {
            Some(known) if *known == found => {}
            Some(_) => {
                let reason = format!("not the locations that stack {stack} has elsewhere");
                return Err(Error::Value { table: "sample", row: at, reason });
            }
            unknown => *unknown = Some(found),
        }
    }
    let mut stacks = Vec::with_capacity(document.len);
    for (at, locations) in locations.into_iter().enumerate() {
        let Some(locations) = locations else {
            return Err(Error::Value {
                table: "stack",
                row: at,
                reason: "its locations are missing".to_owned(),
            });
        };
        stacks.push(Stack { locations, ..Stack::default() });
    }
    for (&capture, at) in
        document.captures.iter().flat_map(|(capture, of)| of.iter().map(move |at| (capture, *at)))
    {
        entry(&mut stacks, "stacks.captures", at)?.capture = capture;
    }
    for (&at, reason) in &document.cut_reasons {
        entry(&mut stacks, "stacks.cut_reasons", at)?.cut_reason.clone_from(reason);
    }
    Ok(stacks)
}

/// The counts of a sample; the live ones follow from the others and are not read.
fn counts(at: usize, values: &[i64]) -> Result<Counts, Error> {
    let value_error = |reason: String| Error::Value { table: "sample", row: at, reason };
    let Ok(values) = <[i64; SAMPLE_TYPES.len()]>::try_from(values) else {
        return Err(value_error(format!("{} values, expected {}", values.len(), SAMPLE_TYPES.len())));
    };
    let mut unsigned = [0; SAMPLE_TYPES.len()];
    for (into, value) in unsigned.iter_mut().zip(values) {
        *into = u64::try_from(value).map_err(|_| value_error(format!("a negative count: {value}")))?;
    }
    let [
        allocations,
        bytes,
        _live,
        _live_bytes,
        freed,
        freed_bytes,
        freed_later,
        freed_later_bytes,
        reallocs,
        reallocs_in_place,
        reallocs_moved,
        temporary,
        temporary_bytes,
        failed,
        discarded,
        discarded_bytes,
    ] = unsigned;
    Ok(Counts {
        allocations,
        bytes,
        freed,
        freed_bytes,
        freed_later,
        freed_later_bytes,
        reallocs,
        reallocs_in_place,
        reallocs_moved,
        temporary,
        temporary_bytes,
        failed,
        reallocs_to_zero: 0,
        discarded,
        discarded_bytes,
    })
}

/// An entry of a table that the document names.
fn entry<'t, T>(table: &'t mut [T], referrer: &'static str, at: usize) -> Result<&'t mut T, Error> {
    let len = table.len();
    table.get_mut(at).ok_or(Error::Index {
        table: "comment",
        row: 0,
        target: referrer,
        index: at as u64,
        len,
    })
}

/// A text by its index.
fn text(message: &proto::Profile, referrer: (&'static str, usize), index: i64) -> Result<String, Error> {
    let found = usize::try_from(index).ok().and_then(|at| message.string_table.get(at));
    found.cloned().ok_or(Error::Index {
        table: referrer.0,
        row: referrer.1,
        target: "string",
        index: index as u64,
        len: message.string_table.len(),
    })
}

/// The index that one of pprof's ids stands for.
fn index(referrer: (&'static str, usize), target: &'static str, id: u64, len: usize) -> Result<usize, Error> {
    let at = id.checked_sub(1).and_then(|at| usize::try_from(at).ok()).unwrap_or(usize::MAX);
    crate::validate::index(referrer, target, at, len)?;
    Ok(at)
}

/// Checks that entries are numbered from 1 on, as they are written.
fn check_id(table: &'static str, at: usize, id: u64) -> Result<(), Error> {
    let expected = at as u64 + 1;
    if id == expected {
        return Ok(());
    }
    Err(Error::Value { table, row: at, reason: format!("id {id}, expected {expected}") })
}

#[cfg(test)]
mod tests;
