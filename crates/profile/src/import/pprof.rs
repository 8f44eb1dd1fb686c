//! pprof profiles of other tools, and heaptally's own.
//!
//! `profile.proto` leaves to the writer what the values of a sample are. Those that are taken, by name and unit, the
//! first that is there:
//!
//! | what | names |
//! |---|---|
//! | allocations, `count` | `alloc_objects`, `objects`, `allocations`, `mallocs`; else live ones |
//! | bytes, `bytes` | `alloc_space`, `space`, `alloc_bytes`; else live ones |
//! | live blocks, `count` | `inuse_objects`, `live_objects` |
//! | live bytes, `bytes` | `inuse_space`, `live_space`, `inuse_bytes` |
//!
//! With both, what is not live was freed. With live ones alone, only live blocks are known. A period of bytes above 1
//! means that the allocations were sampled, of which the values are estimates already. Profiles of other things (time,
//! locks) are refused.

use prost::Message as _;

use super::builder::{Builder, Frame};
use super::{Addresses, Imported, Importer};
use crate::Error;
use crate::model::{Counts, LocationId, Metric, Module, ModuleId};
use crate::pprof::read::{damaged as damaged_message, decode, read_message, sample_types};
use crate::pprof::{begins_with_sample_types, has_sample_types, proto};

const FORMAT: &str = "pprof profile";

/// The importer.
pub const IMPORTER: Importer = Importer { name: FORMAT, sniff, read };

const ALLOCATIONS: [&str; 4] = ["alloc_objects", "objects", "allocations", "mallocs"];
const BYTES: [&str; 3] = ["alloc_space", "space", "alloc_bytes"];
const LIVE: [&str; 2] = ["inuse_objects", "live_objects"];
const LIVE_BYTES: [&str; 3] = ["inuse_space", "live_space", "inuse_bytes"];

/// What pprof knows of the sampling.
#[derive(Clone, PartialEq, prost::Message)]
struct Sampling {
    #[prost(message, optional, tag = "11")]
    period_type: Option<proto::ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
}

/// Whether it is a message with types of samples, or begins as one: then what is behind may be damaged, which shows when it
/// is read. No text is one: it has no short lengths in it.
fn sniff(content: &[u8]) -> bool {
    let is_binary = content.iter().take(64).any(|&byte| byte < b'\t');
    is_binary && (begins_with_sample_types(content) || has_sample_types(content))
}

/// Which of a sample's values is what.
#[derive(Clone, Copy, Debug)]
struct Columns {
    allocations: Option<usize>,
    bytes: Option<usize>,
    live: Option<usize>,
    live_bytes: Option<usize>,
}

impl Columns {
    fn of(message: &proto::Profile) -> Self {
        let find = |names: &[&str], unit: &str| {
            names.iter().find_map(|name| {
                message
                    .sample_type
                    .iter()
                    .position(|of| text(message, of.r#type) == *name && text(message, of.unit) == unit)
            })
        };
        Self {
            allocations: find(&ALLOCATIONS, "count"),
            bytes: find(&BYTES, "bytes"),
            live: find(&LIVE, "count"),
            live_bytes: find(&LIVE_BYTES, "bytes"),
        }
    }
}

/// Reads unpacked content: heaptally's own profile as such.
pub(super) fn read(content: &[u8]) -> Result<Imported, Error> {
    let message = decode(content)?;
    let is_ours = |&comment: &i64| text(&message, comment).starts_with(crate::pprof::COMMENT_PREFIX);
    if message.comment.iter().any(is_ours) {
        return Ok(Imported { profile: read_message(message, content)?, needs_symbols: Addresses::Named });
    }
    if message.sample_type.is_empty() && message.sample.is_empty() {
        let reason = "it has no samples, and no types of samples".to_owned();
        return Err(Error::Unusable { format: FORMAT, reason });
    }
    let sampling = Sampling::decode(content).map_err(|error| damaged_message::<Sampling>(content, &error))?;
    profile(&message, &sampling)
}

fn text(message: &proto::Profile, index: i64) -> &str {
    let text = usize::try_from(index).ok().and_then(|at| message.string_table.get(at));
    text.map_or("", String::as_str)
}

fn damaged(table: &'static str, at: usize, reason: impl Into<String>) -> Error {
    Error::Import { format: FORMAT, place: format!("{table} {at}"), reason: reason.into() }
}

fn profile(message: &proto::Profile, sampling: &Sampling) -> Result<Imported, Error> {
    let columns = Columns::of(message);
    let live_only = columns.allocations.is_none() && columns.live.is_some();
    let Some(allocations) = columns.allocations.or(columns.live) else {
        let reason = format!("it is of {}, and tells no number of allocations", sample_types(message));
        return Err(Error::Unusable { format: FORMAT, reason });
    };
    let bytes = if live_only { columns.live_bytes } else { columns.bytes };
    let mut builder = Builder::new(FORMAT);
    if live_only {
        builder.live_only();
    }
    if bytes.is_none() {
        builder.unknown(Metric::Bytes);
    }
    let live = columns.live.zip(columns.live_bytes).filter(|_| !live_only && bytes.is_some());
    if live.is_some() {
        builder.lifetimes(None);
    }
    let unit = sampling.period_type.map_or("", |of| text(message, of.unit));
    if unit == "bytes" && sampling.period > 1 {
        builder.sampling(format!("one sample in {} bytes on average", sampling.period));
    }
    let locations = locations(message, &mut builder)?;
    for (at, sample) in message.sample.iter().enumerate() {
        let value = |column: usize| {
            let value =
                sample.value.get(column).ok_or_else(|| damaged("sample", at, "a value is missing"))?;
            u64::try_from(*value).map_err(|_| damaged("sample", at, format!("a negative count: {value}")))
        };
        let mut counts = Counts { allocations: value(allocations)?, ..Counts::default() };
        if let Some(bytes) = bytes {
            counts.bytes = value(bytes)?;
        }
        if let Some((live, live_bytes)) = live {
            counts.freed = counts.allocations.saturating_sub(value(live)?);
            counts.freed_bytes = counts.bytes.saturating_sub(value(live_bytes)?);
        }
        let find = |id: &u64| {
            locations.get(id).copied().ok_or_else(|| damaged("sample", at, format!("no location {id}")))
        };
        let stack = sample.location_id.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        builder.add(stack, &counts)?;
    }
    builder.finish()
}

type Ids<T> = std::collections::HashMap<u64, T>;

/// The locations by their ids, which may be any numbers.
fn locations(message: &proto::Profile, builder: &mut Builder) -> Result<Ids<LocationId>, Error> {
    let mut modules: Ids<ModuleId> = Ids::new();
    let mut is_mapped: Ids<bool> = Ids::new();
    for mapping in &message.mapping {
        let path = text(message, mapping.filename);
        if path.is_empty() {
            continue;
        }
        is_mapped.insert(mapping.id, !mapping.has_functions);
        modules.insert(
            mapping.id,
            builder.module_of(Module {
                path: path.to_owned(),
                build_id: text(message, mapping.build_id).to_owned(),
                text_svma: mapping.memory_start,
                text_svma_end: mapping.memory_limit,
                text_offset: mapping.file_offset,
                symbol_problem: None,
            }),
        );
    }
    if let Some(program) = message.mapping.first() {
        builder.program(text(message, program.filename));
    }
    let functions: Ids<&proto::Function> = message.function.iter().map(|of| (of.id, of)).collect();
    let mut places = Ids::new();
    let mut named = false;
    for (at, location) in message.location.iter().enumerate() {
        let frame = |line: &proto::Line| {
            let function = functions.get(&line.function_id);
            let function = function
                .ok_or_else(|| damaged("location", at, format!("no function {}", line.function_id)))?;
            Ok(Frame {
                name: text(message, function.name),
                file: text(message, function.filename),
                line: u32::try_from(line.line).unwrap_or(0),
            })
        };
        let frames = location.line.iter().map(frame).collect::<Result<Vec<_>, Error>>()?;
        named |= !frames.is_empty();
        // pprof's addresses lie inside of their calls.
        let address = location.address.saturating_add(u64::from(frames.is_empty()));
        let module = modules.get(&location.mapping_id).copied();
        if places.insert(location.id, builder.location(module, address, frames)).is_some() {
            return Err(damaged("location", at, format!("a second one of id {}", location.id)));
        }
    }
    if !named && is_mapped.values().any(|mapped| *mapped) {
        builder.addresses = Addresses::Mapped;
    }
    Ok(places)
}
