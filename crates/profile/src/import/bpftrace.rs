//! What bpftrace prints of maps whose key holds a `ustack`.
//!
//! ```text
//! bpftrace -e 'uprobe:libc:malloc { @[ustack] = count(); @bytes[ustack] = sum(arg0); }' -c ./prog
//!
//! @[
//!     malloc+0
//!     parse+28
//!     main+32
//! ]: 42
//! @bytes[
//!     malloc+0
//! …
//! ```
//!
//! Frames are leaf first: `symbol+offset`, also with an address before it and a module behind it (`ustack(perf)`), or an
//! address alone. A map whose name holds `byte` or `size` counts bytes, any other one allocations; several of a kind are
//! added, and `stats()` has both. Other parts of a key are left out of account. What stands outside of such maps, as
//! what the program printed, is passed over.

use std::collections::BTreeMap;

use super::builder::{Builder, Frame};
use super::line::{Line, hex, lines, number, shown, without_offset};
use super::{Imported, Importer};
use crate::Error;
use crate::model::{Counts, LocationId, Metric};

const FORMAT: &str = "bpftrace map";

/// The importer.
pub const IMPORTER: Importer = Importer { name: FORMAT, sniff, read };

/// Whether a line opens a key that goes on in the next line.
fn sniff(content: &[u8]) -> bool {
    content.starts_with(b"@") | content.windows(2).any(|two| two == b"\n@")
        && !content.contains(&0)
        && lines(content).any(|line| opened(&line.text()).is_some())
}

/// The name of a map of which this line opens a key of several lines.
fn opened(line: &str) -> Option<&str> {
    let (name, key) = line.strip_prefix('@')?.split_once('[')?;
    let is_name = name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    // Else the key ends here.
    (is_name && !key.contains("]:")).then_some(name)
}

/// What a line says that ends a key: `]: 42` or `, prog]: 42`.
fn closed(line: &str) -> Option<&str> {
    if let Some(value) = line.strip_prefix("]:") {
        return Some(value.trim());
    }
    let (_, value) = line.strip_prefix(',')?.rsplit_once("]:")?;
    Some(value.trim())
}

fn read(content: &[u8]) -> Result<Imported, Error> {
    let mut builder = Builder::new(FORMAT);
    let mut sums: BTreeMap<Vec<LocationId>, Counts> = BTreeMap::new();
    let (mut has_allocations, mut has_bytes) = (false, false);
    let mut open: Option<(Line<'_>, bool, Vec<LocationId>)> = None;
    for line in lines(content) {
        let text = line.text();
        let Some((begin, is_bytes, mut stack)) = open.take() else {
            if let Some(name) = opened(&text) {
                let name = name.to_ascii_lowercase();
                open = Some((line, name.contains("byte") || name.contains("size"), Vec::new()));
            }
            continue;
        };
        if let Some(value) = closed(&text) {
            let (allocations, bytes) =
                values(value, is_bytes).map_err(|reason| line.error(FORMAT, reason))?;
            has_allocations |= allocations.is_some();
            has_bytes |= bytes.is_some();
            sums.entry(stack).or_default().add(&Counts {
                allocations: allocations.unwrap_or(0),
                bytes: bytes.unwrap_or(0),
                ..Counts::default()
            });
            continue;
        }
        if text.starts_with('@') {
            return Err(begin.error(FORMAT, "the key that begins here has no end"));
        }
        if !line.is_blank() {
            stack.push(frame(&mut builder, text.trim()));
        }
        open = Some((begin, is_bytes, stack));
    }
    if let Some((begin, ..)) = open {
        return Err(begin.error(FORMAT, "the key that begins here has no end"));
    }
    if !has_allocations {
        let reason = "its maps hold bytes only\nadd a map of allocations: @[ustack] = count()".to_owned();
        return Err(Error::Unusable { format: FORMAT, reason });
    }
    if !has_bytes {
        builder.unknown(Metric::Bytes);
    }
    for (stack, counts) in sums {
        builder.add(stack, &counts)?;
    }
    builder.finish()
}

/// The allocations and bytes of a value.
fn values(value: &str, is_bytes: bool) -> Result<(Option<u64>, Option<u64>), String> {
    if value.is_empty() || value.starts_with('[') {
        return Err("expected a number after the key: use count(), sum() or stats(), no histogram".to_owned());
    }
    // stats(): `count 2, average 5, total 10`.
    if let Some(stats) = value.strip_prefix("count ") {
        let count = stats.split(',').next().unwrap_or_default();
        let total = stats.rsplit_once("total ").map(|(_, total)| total);
        let total = total.ok_or_else(|| format!("no total in {}", shown(value)))?;
        return Ok((Some(number(count.trim())?), Some(number(total.trim())?)));
    }
    let value = number(value)?;
    Ok(if is_bytes { (None, Some(value)) } else { (Some(value), None) })
}

/// `symbol+12`, `7f12 symbol+12 (/lib/libc.so.6)`, `0x7f12`, `7f12 [unknown] (/lib/libc.so.6)`.
fn frame(builder: &mut Builder, text: &str) -> LocationId {
    let (text, module) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        Some((text, path)) if path.starts_with(['/', '[']) => (text, Some(builder.module(path))),
        _ => (text, None),
    };
    // An address is never as short as a hexadecimal name can be: there is no code below the first page.
    let is_address = |word: &str| word.len() > 4 && hex(word).is_ok();
    let (address, symbol) = match text.split_once(' ') {
        Some((first, rest)) if is_address(first) => (hex(first).unwrap_or(0), rest.trim()),
        _ if is_address(text) && text.starts_with("0x") => (hex(text).unwrap_or(0), ""),
        _ => (0, text),
    };
    match without_offset(symbol) {
        "" | "[unknown]" => builder.location(module, address, []),
        // The address is that of a run, and the name says more.
        name => builder.named(Frame { name, ..Frame::default() }, module),
    }
}
