//! Heap profiles as text: of gperftools, jemalloc and Go.
//!
//! ```text
//! heap profile:   22:  12996 [   259:   62795] @ heapprofile       gperftools: every allocation
//!     20:     3900 [   200:    39900] @ 0x5559653131c6 0x5559653131d6
//! MAPPED_LIBRARIES:
//! 555965313000-555965314000 r-xp 00001000 00:00 1 /tmp/prog
//!
//! heap profile: 10: 592032 [15: 593520] @ heap/1048576             Go (debug=1): sampled, at half of that number
//! 8: 589824 [8: 589824] @ 0x4b5c4b 0x4b5cbd
//! #   0x4b5c4a    main.small+0x2a    /src/main.go:5                names of the record above, leaf first
//!
//! heap_v2/524288                                                   jemalloc: sampled, at that many bytes on average
//!   t*: 23: 95424 [260: 150040]                                    all threads
//! @ 0x7fc82bea2630 0x55c273770230
//!   t*: 0: 0 [9: 2928]
//!   t0: …                                                          single threads are passed over
//! ```
//!
//! The four numbers are live blocks, their bytes, and in brackets all allocations and their bytes since the start. Where
//! the bracket is 0 everywhere (jemalloc without `prof_accum`), only live blocks are known.
//!
//! **Sampling.** A block of s bytes is sampled with the probability 1 − exp(−s/r) at r bytes on average. Each record is
//! divided by that, with the average size of its blocks for s, as `jeprof` and `go tool pprof` do it.
//!
//! Addresses are return addresses, and modules are as they were mapped.

use std::collections::BTreeMap;

use super::builder::{Builder, Frame};
use super::line::{Line, hex, lines, number, shown, source, without_offset};
use super::{Addresses, Imported, Importer};
use crate::Error;
use crate::model::{Counts, LocationId, Module, ModuleId};

const FORMAT: &str = "heap profile as text";

/// The importer.
pub const IMPORTER: Importer = Importer { name: FORMAT, sniff, read };

fn sniff(content: &[u8]) -> bool {
    content.starts_with(b"heap profile:") || content.starts_with(b"heap_v2/")
}

/// Blocks and bytes, live and in all.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    live: [u64; 2],
    all: [u64; 2],
}

/// A record's addresses and values, and the names that stand below it.
#[derive(Debug, Default)]
struct Record {
    values: Values,
    addresses: Vec<u64>,
    /// Address, function, source.
    names: Vec<(u64, String, String)>,
}

fn read(content: &[u8]) -> Result<Imported, Error> {
    let Some(head) = lines(content).next() else {
        return Err(super::line::at_line(FORMAT, 1, "it is empty"));
    };
    let is_jemalloc = content.starts_with(b"heap_v2/");
    let period = period(head).map_err(|reason| head.error(FORMAT, reason))?;
    let mut reader = Reader { is_jemalloc, total: None, records: Vec::new(), maps: BTreeMap::new() };
    if !is_jemalloc {
        let text = head.text();
        let values = text.strip_prefix("heap profile:").and_then(|text| text.rsplit_once('@'));
        let values = values.map_or("", |(values, _)| values);
        reader.total = Some(parse_values(values).map_err(|reason| head.error(FORMAT, reason))?);
    }
    let mut in_maps = false;
    for line in lines(content).skip(1).filter(|line| !line.is_blank()) {
        let text = line.text();
        if text.trim_end() == "MAPPED_LIBRARIES:" {
            in_maps = true;
        } else if in_maps {
            reader.map(&text).map_err(|reason| line.error(FORMAT, reason))?;
        } else if is_jemalloc {
            reader.jemalloc(&text).map_err(|reason| line.error(FORMAT, reason))?;
        } else {
            reader.record(&text).map_err(|reason| line.error(FORMAT, reason))?;
        }
    }
    reader.profile(period)
}

/// At how many bytes on average a sample is taken; up to 1, everything is.
fn period(head: Line<'_>) -> Result<u64, String> {
    let text = head.text();
    let text = text.trim_end();
    if let Some(period) = text.strip_prefix("heap_v2/") {
        return number(period);
    }
    let kind = text.rsplit_once("@ ").map_or("", |(_, kind)| kind.trim());
    match kind.split_once('/') {
        _ if kind == "heapprofile" => Ok(1),
        Some(("heap", period)) => Ok(number(period)? / 2),
        Some(("heap_v2" | "heapz_v2", period)) => number(period),
        _ => Err(format!("{} is no kind of profile that can be read", shown(kind))),
    }
}

/// `22: 12996 [ 259: 62795]`.
fn parse_values(text: &str) -> Result<Values, String> {
    let words: Vec<&str> = text.split([':', '[', ']', ' ', '\t']).filter(|word| !word.is_empty()).collect();
    let marks: String = text.chars().filter(|character| ":[]".contains(*character)).collect();
    match words.as_slice() {
        [live, live_bytes, all, all_bytes] if marks == ":[:]" => {
            Ok(Values { live: [number(live)?, number(live_bytes)?], all: [number(all)?, number(all_bytes)?] })
        }
        _ => Err(format!("expected `blocks: bytes [blocks: bytes]`, found {}", shown(text.trim()))),
    }
}

fn parse_addresses(text: &str) -> Result<Vec<u64>, String> {
    text.split_whitespace().map(hex).collect()
}

struct Reader {
    is_jemalloc: bool,
    total: Option<Values>,
    records: Vec<Record>,
    /// By their starts.
    maps: BTreeMap<u64, Module>,
}

impl Reader {
    /// A line of jemalloc's.
    fn jemalloc(&mut self, text: &str) -> Result<(), String> {
        if let Some(addresses) = text.strip_prefix('@') {
            self.records.push(Record { addresses: parse_addresses(addresses)?, ..Record::default() });
            return Ok(());
        }
        let Some((thread, values)) = text.trim_start().split_once(':') else {
            return Err(format!("expected a stack or a thread, found {}", shown(text)));
        };
        let values = parse_values(values)?;
        match (thread, self.records.last_mut()) {
            ("t*", Some(record)) => record.values = values,
            ("t*", None) => self.total = Some(values),
            (thread, _) if thread.strip_prefix('t').is_some_and(|id| number(id).is_ok()) => {}
            (thread, _) => return Err(format!("{} is no thread", shown(thread))),
        }
        Ok(())
    }

    /// A line of gperftools' or Go's.
    fn record(&mut self, text: &str) -> Result<(), String> {
        if let Some(comment) = text.strip_prefix('#') {
            let mut words = comment.split('\t').map(str::trim).filter(|word| !word.is_empty());
            let (Some(address), Some(name)) = (words.next(), words.next()) else { return Ok(()) };
            if let (Ok(address), Some(record)) = (hex(address), self.records.last_mut())
                && comment.trim_start().starts_with("0x")
            {
                let source = words.next().unwrap_or_default();
                record.names.push((address, without_offset(name).to_owned(), source.to_owned()));
            }
            return Ok(());
        }
        let Some((values, addresses)) = text.split_once('@') else {
            return Err(format!("expected numbers, `@` and addresses, found {}", shown(text)));
        };
        let (values, addresses) = (parse_values(values)?, parse_addresses(addresses)?);
        self.records.push(Record { values, addresses, names: Vec::new() });
        Ok(())
    }

    /// A line of `/proc/PID/maps`.
    fn map(&mut self, text: &str) -> Result<(), String> {
        let mut words = text.split_whitespace();
        let range = words.next().unwrap_or_default();
        // gperftools writes `build=…` first in some versions.
        let Some((start, end)) = range.split_once('-') else { return Ok(()) };
        let (start, end) = (hex(start)?, hex(end)?);
        let (Some(rights), Some(offset)) = (words.next(), words.next()) else {
            return Err(format!("{} is no mapping", shown(text)));
        };
        let path = text.find('/').and_then(|at| text.get(at..)).unwrap_or_default();
        if rights.contains('x') && !path.is_empty() {
            let (text_svma, text_svma_end) = (start, end);
            let text_offset = hex(offset)?;
            let path = path.trim_end().to_owned();
            self.maps
                .insert(start, Module { path, text_svma, text_svma_end, text_offset, ..Module::default() });
        }
        Ok(())
    }

    fn profile(self, period: u64) -> Result<Imported, Error> {
        let mut builder = Builder::new(FORMAT);
        let has_names = self.records.iter().any(|record| !record.names.is_empty());
        if !has_names {
            builder.addresses = Addresses::Mapped;
        }
        if period > 1 {
            builder.sampling(format!("one sample in {period} bytes on average"));
        }
        let live_only = self.is_jemalloc && self.records.iter().all(|record| record.values.all == [0, 0]);
        if live_only {
            builder.live_only();
        } else {
            builder.lifetimes(None);
        }
        let modules: BTreeMap<u64, (u64, ModuleId)> = self
            .maps
            .iter()
            .map(|(start, module)| (*start, (module.text_svma_end, builder.module_of(module.clone()))))
            .collect();
        let mut told = 0_u64;
        for record in &self.records {
            let of = if live_only { record.values.live } else { record.values.all };
            told = told.saturating_add(of[0]);
            let stack = stack(&mut builder, record, &modules);
            builder.add(stack, &self.counts(&record.values, live_only, period))?;
        }
        // Those of samples are no sums of the records: each record is made to come out right when it is divided.
        if let Some(total) = self.total.filter(|_| period <= 1) {
            let all = if live_only { total.live } else { total.all };
            // What the tool had no place for.
            builder.lost(all[0].saturating_sub(told));
        }
        builder.finish()
    }

    fn counts(&self, values: &Values, live_only: bool, period: u64) -> Counts {
        let [live, live_bytes] = self.scaled(values.live, period);
        if live_only {
            return Counts { allocations: live, bytes: live_bytes, ..Counts::default() };
        }
        let [allocations, bytes] = self.scaled(values.all, period);
        let (freed, freed_bytes) = (allocations.saturating_sub(live), bytes.saturating_sub(live_bytes));
        Counts { allocations, bytes, freed, freed_bytes, ..Counts::default() }
    }

    /// Blocks and bytes of which these are samples.
    fn scaled(&self, [blocks, bytes]: [u64; 2], period: u64) -> [u64; 2] {
        if period <= 1 || blocks == 0 || bytes == 0 {
            return [blocks, bytes];
        }
        let size = bytes as f64 / blocks as f64;
        let scale = 1.0 / (1.0 - (-size / period as f64).exp());
        // `go tool pprof` cuts, record by record; `jeprof` rounds a sum.
        [blocks, bytes].map(|value| {
            let value = value as f64 * scale;
            (if self.is_jemalloc { value.round() } else { value }) as u64
        })
    }
}

fn stack(
    builder: &mut Builder,
    record: &Record,
    modules: &BTreeMap<u64, (u64, ModuleId)>,
) -> Vec<LocationId> {
    let mut names = record.names.as_slice();
    let mut stack = Vec::with_capacity(record.addresses.len());
    for run in record.addresses.chunk_by(|one, other| one == other) {
        let address = run.first().copied().unwrap_or_default();
        let inside = address.saturating_sub(1);
        let of_it = names.iter().take_while(|(at, ..)| *at == inside).count();
        let (here, rest) = names.split_at(of_it);
        names = rest;
        // Where names are, the writer left out those of the frames that nobody looks for.
        if here.is_empty() && !record.names.is_empty() {
            continue;
        }
        let module = modules.range(..=inside).next_back().filter(|(_, (end, _))| inside < *end);
        let module = module.map(|(_, (_, module))| *module);
        // Of a recursion each level has as many names.
        let each = if here.len().is_multiple_of(run.len()) { here.len() / run.len() } else { here.len() };
        for level in 0..run.len() {
            let here = here.get(level * each..(level + 1) * each).unwrap_or(here);
            let frames = here.iter().map(|(_, name, place)| {
                let (file, line) = source(place);
                Frame { name, file, line }
            });
            stack.push(builder.location(module, address, frames));
        }
    }
    stack
}
