//! heaptrack's raw recording (`heaptrack --raw`).
//!
//! ```text
//! x 16 /tmp/prog                                       the program, after the length of its path
//! m 1 -                                                all modules anew
//! m 1 x 55e2e6c44000 0 738 1000 2e5 …                  the program: where it was loaded, then SVMA and length of segments
//! m f libm.so.6 7efc22ddc000 0 1562
//! t 7efc22df8b9f 0                                     trace 1: instruction pointer, parent trace
//! + 64 a 55e2fc7c01d0                                  an allocation: size, trace, address of the block
//! - 55e2fc7c01d0                                       it is freed
//! ```
//!
//! Instruction pointers lie inside of their calls, one byte before the return address.

use std::collections::{BTreeMap, HashMap};

use super::builder::Builder;
use super::heaptrack::{FORMAT, Traces, Words, about};
use super::line::lines;
use super::{Addresses, Imported};
use crate::Error;
use crate::model::ModuleId;

/// Where a segment ends, what its module is called and where that was loaded.
type Segment = (u64, ModuleId, u64);

pub(super) fn read(content: &[u8]) -> Result<Imported, Error> {
    let mut builder = Builder::new(FORMAT);
    builder.addresses = Addresses::Svma;
    let mut program = String::new();
    let mut segments: BTreeMap<u64, Segment> = BTreeMap::new();
    let mut traces = Traces::default();
    let mut blocks: HashMap<u64, (u64, Option<usize>)> = HashMap::new();
    for line in lines(content) {
        let text = line.text();
        let mut words = Words::new(line, &text);
        match line.bytes.first() {
            Some(b'x') => {
                words.sized()?.clone_into(&mut program);
                builder.program(&program);
            }
            Some(b'm') => {
                let path = words.sized()?;
                if path == "-" {
                    segments.clear();
                    continue;
                }
                let path = if path == "x" { program.as_str() } else { path };
                let module = builder.module(path);
                let base = words.hex("place")?;
                while !words.rest().is_empty() {
                    let svma = words.hex("segment")?;
                    let len = words.hex("length")?;
                    let start = base.wrapping_add(svma);
                    segments.insert(start, (start.saturating_add(len), module, base));
                }
            }
            Some(b't') => {
                let pointer = words.hex("instruction pointer")?;
                let parent = words.index("parent trace", traces.len())?;
                let segment = segments.range(..=pointer).next_back().filter(|(_, of)| pointer < of.0);
                // To the return address, as everywhere.
                let address = pointer.saturating_add(1);
                let location = match segment {
                    Some((_, (_, module, base))) => {
                        builder.location(Some(*module), address.wrapping_sub(*base), [])
                    }
                    None => builder.location(None, address, []),
                };
                traces.push(location, parent);
            }
            Some(b'+') => {
                let bytes = words.hex("size")?;
                let trace = words.index("trace", traces.len())?;
                let block = words.hex("block")?;
                traces.allocate(trace, bytes);
                // A block whose free was not seen.
                blocks.insert(block, (bytes, trace));
            }
            Some(b'-') => {
                // Blocks from before heaptrack came are freed, too.
                if let Some((bytes, trace)) = blocks.remove(&words.hex("block")?) {
                    traces.free(trace, bytes);
                }
            }
            kind => about(kind.copied(), &words, &mut builder)?,
        }
    }
    traces.finish(builder)
}
