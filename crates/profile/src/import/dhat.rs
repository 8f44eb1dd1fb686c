//! DHAT's JSON: of valgrind's tool and of the crate dhat (dhat-rs).
//!
//! ```text
//! {"dhatFileVersion":2,"mode":"heap","bklt":true,"cmd":"./prog",
//!  "pps":[{"tb":39900,"tbk":200,"eb":3900,"ebk":20,"gb":3900,"gbk":20,"fs":[1,2,3]},…],
//!  "ftbl":["[root]","0x48417B4: malloc (in /usr/…/vgpreload_dhat-amd64-linux.so)","0x1091C5: leaf (prog.c:6)",…]}
//! ```
//!
//! A program point is a stack with its total blocks and bytes (`tbk`, `tb`), those that were live at the end (`ebk`,
//! `eb`) and at the peak (`gb`); `fs` are its frames, leaf first, by index into `ftbl`. What was not live at the end was
//! freed. The modes `heap` and `rust-heap` are read; the others count something else. How a realloc is counted is
//! DHAT's affair: it is one more block of its new size.

use serde::Deserialize;

use super::builder::{Builder, Frame};
use super::line::source;
use super::{Imported, Importer};
use crate::Error;
use crate::model::{Counts, LocationId};

const FORMAT: &str = "DHAT profile";
/// Within so many bytes the version stands.
const SNIFFED: usize = 4096;

/// The importer.
pub const IMPORTER: Importer = Importer { name: FORMAT, sniff, read };

fn sniff(content: &[u8]) -> bool {
    const KEY: &[u8] = b"\"dhatFileVersion\"";
    let begin = content.get(..SNIFFED).unwrap_or(content);
    begin.trim_ascii_start().starts_with(b"{") && begin.windows(KEY.len()).any(|window| window == KEY)
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "dhatFileVersion")]
    version: u64,
    mode: String,
    /// Whether lifetimes are there.
    bklt: bool,
    #[serde(default)]
    cmd: String,
    pps: Vec<Point>,
    ftbl: Vec<String>,
}

/// A program point.
#[derive(Deserialize)]
struct Point {
    tb: u64,
    tbk: u64,
    gb: Option<u64>,
    eb: Option<u64>,
    ebk: Option<u64>,
    fs: Vec<usize>,
}

fn read(content: &[u8]) -> Result<Imported, Error> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "dhatFileVersion")]
        version: u64,
        mode: String,
    }
    let json = |error: serde_json::Error| {
        let place = format!("line {} column {}", error.line(), error.column());
        let reason = error.to_string();
        // The place stands at its end, too.
        let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason).to_owned();
        Error::Import { format: FORMAT, place, reason }
    };
    let unusable = |reason: String| Error::Unusable { format: FORMAT, reason };
    let head: Head = serde_json::from_slice(content).map_err(json)?;
    if head.version != 2 {
        return Err(unusable(format!("it is of version {}, and version 2 can be read", head.version)));
    }
    if head.mode != "heap" && head.mode != "rust-heap" {
        let mode = head.mode.escape_debug();
        return Err(unusable(format!("its mode is \"{mode}\", which does not count allocations")));
    }
    let file: File = serde_json::from_slice(content).map_err(json)?;
    debug_assert_eq!((file.version, &file.mode), (head.version, &head.mode));
    profile(&file)
}

fn profile(file: &File) -> Result<Imported, Error> {
    let mut builder = Builder::new(FORMAT);
    builder.command(&file.cmd);
    let frames: Vec<LocationId> = file.ftbl.iter().map(|text| frame(&mut builder, text)).collect();
    let mut peak = Some(0_u64);
    let mut has_frees = file.bklt;
    for (at, point) in file.pps.iter().enumerate() {
        let damaged =
            |reason: String| Error::Import { format: FORMAT, place: format!("program point {at}"), reason };
        let location = |&index: &usize| {
            let reason = || format!("frame {index} of {}", frames.len());
            frames.get(index).copied().ok_or_else(|| damaged(reason()))
        };
        let mut stack = point.fs.iter().map(location).collect::<Result<Vec<_>, _>>()?;
        // Frame 0 is the root of all.
        if point.fs == [0] {
            stack.clear();
        }
        let mut counts = Counts { allocations: point.tbk, bytes: point.tb, ..Counts::default() };
        match point.ebk.zip(point.eb) {
            Some((blocks, bytes)) => {
                let freed = point.tbk.checked_sub(blocks).zip(point.tb.checked_sub(bytes));
                let Some((freed, freed_bytes)) = freed else {
                    return Err(damaged("more is live at its end than was allocated".to_owned()));
                };
                (counts.freed, counts.freed_bytes) = (freed, freed_bytes);
            }
            None => has_frees = false,
        }
        peak = peak.zip(point.gb).map(|(sum, bytes)| sum.saturating_add(bytes));
        builder.add(stack, &counts)?;
    }
    if has_frees {
        builder.lifetimes(peak);
    }
    builder.finish()
}

/// `0x1091C5: leaf (prog.c:6)`, `0x48417B4: malloc (in /usr/lib/libc.so)`, `0x123: ???`.
fn frame(builder: &mut Builder, text: &str) -> LocationId {
    let (address, rest) = match text.split_once(": ") {
        Some((address, rest)) if address.starts_with("0x") => (super::line::hex(address).unwrap_or(0), rest),
        _ => (0, text),
    };
    let behind = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    let (name, file, line, module) = match behind {
        Some((name, place)) => match place.strip_prefix("in ") {
            Some(path) => (name, "", 0, Some(builder.module(path))),
            None => {
                let (file, line) = source(place);
                if line > 0 { (name, file, line, None) } else { (rest, "", 0, None) }
            }
        },
        None => (rest, "", 0, None),
    };
    match name {
        "???" => builder.location(module, address, []),
        name => builder.location(module, address, [Frame { name, file, line }]),
    }
}
