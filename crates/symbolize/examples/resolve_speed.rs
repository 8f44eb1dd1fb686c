//! How long it takes to name addresses of ELF files: `resolve_speed ADDRESSES FILE…`.
//!
//! For each file it takes so many addresses, evenly spread over its code, symbolises all of them as one profile, and
//! prints the time and the memory's peak.
#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use std::error::Error;
use std::time::Instant;

use heaptally_profile::model::{FrameKind, Location, Module, ModuleId, Profile};
use heaptally_symbolize::{Options, Symbolizer};
use object::{Object, ObjectSection, ObjectSegment, SectionKind};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "resolve_speed ADDRESSES FILE…";
    let count: u64 = arguments.next().ok_or(usage)?.parse()?;
    let mut profile = Profile::default();
    for path in arguments {
        let (module, addresses) = spread(&path, count)?;
        let id: ModuleId = profile.modules.len();
        profile.modules.push(module);
        profile.locations.extend(addresses.into_iter().map(|address| Location {
            module: Some(id),
            address,
            kind: FrameKind::Interrupted,
            ..Location::default()
        }));
    }
    let before_kb = peak_kb()?;
    let start = Instant::now();
    Symbolizer::new(Options::default()).symbolize(&mut profile);
    let elapsed = start.elapsed();
    let frames: usize = profile.locations.iter().map(|location| location.lines.len()).sum();
    let named = profile.locations.iter().filter(|location| !location.lines.is_empty()).count();
    println!(
        "{} addresses in {:.1} ms: {named} named, {frames} frames, {} functions; peak {} MB, before {} MB",
        profile.locations.len(),
        elapsed.as_secs_f64() * 1e3,
        profile.functions.len(),
        peak_kb()? / 1024,
        before_kb / 1024,
    );
    for module in &profile.modules {
        println!("{}: {}", module.path, module.symbol_problem.as_deref().unwrap_or("all is well"));
    }
    Ok(())
}

/// The module of a file, and addresses that are spread over its code.
fn spread(path: &str, count: u64) -> Result<(Module, Vec<u64>), Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let elf = object::File::parse(&*bytes)?;
    let build_id = elf.build_id()?.unwrap_or_default();
    let mut module = Module {
        path: std::fs::canonicalize(path)?.to_string_lossy().into_owned(),
        build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        ..Module::default()
    };
    for segment in elf.segments().filter(|segment| segment.permissions().executable()) {
        module.text_svma = segment.address();
        module.text_svma_end = segment.address() + segment.size();
        module.text_offset = segment.file_range().0;
    }
    let text = elf
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .max_by_key(|section| section.size())
        .ok_or("it has no code")?;
    let step = (text.size() / count.max(1)).max(1);
    Ok((module, (0..count).map(|index| text.address() + index * step).collect()))
}

/// The most memory that this process had so far, in KiB.
fn peak_kb() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
