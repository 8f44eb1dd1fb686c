//! The files of profiles that commands read: heaptally's own and those of other tools.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use heaptally_profile::import::{self, Addresses, Imported};
use heaptally_profile::merge::sum;
use heaptally_profile::model::Profile;
use heaptally_profile::path_text::unescape_path;
use heaptally_symbolize::{Options, Symbolizer, demangle};
use object::LittleEndian;
use object::elf::{PF_X, PT_LOAD};
use object::read::ReadCache;
use object::read::elf::{ElfFile64, ProgramHeader as _};

use crate::exit::{Failure, UNREADABLE};
use crate::gungraun;
use crate::large_stack::on_large_stack;
use crate::message::quote;

/// More than any file holds that can be read.
const MAX_BYTES: u64 = 1 << 30;
/// So much is looked at to know that it is worth to read on.
const HEAD_BYTES: u64 = 4096;
/// A page: segments are mapped in whole ones.
const PAGE_BYTES: u64 = 4096;

/// Reads a profile's file, whichever tool wrote it, and names what it only has addresses of.
pub(crate) fn read(file: &Path) -> Result<Profile, Failure> {
    if file.is_dir() {
        return read_folder(file);
    }
    let refuse = |why: String| Failure::new(UNREADABLE, format!("cannot read {}: {why}", quote(file)));
    let bytes = read_limited(file)
        .map_err(|error| refuse(format!("{error}\nname a file that `heaptally run` wrote")))?;
    let imported = import::read(&bytes).map_err(|error| refuse(error.to_string()))?;
    drop(bytes);
    if imported.profile.environment.origin.is_none() {
        return Ok(imported.profile);
    }
    let mut profile = named(imported).map_err(|error| refuse(error.to_string()))?;
    gungraun::name(&mut profile, file);
    Ok(profile)
}

/// The benchmarks that gungraun left in a folder, a window each.
fn read_folder(folder: &Path) -> Result<Profile, Failure> {
    let refuse = |why: String| Failure::new(UNREADABLE, format!("cannot read {}: {why}", quote(folder)));
    let files = gungraun::files(folder).map_err(|error| refuse(error.to_string()))?;
    if files.is_empty() {
        let next =
            "name a file, or a folder of gungraun's (target/gungraun) whose benchmarks use its tool DHAT";
        return Err(refuse(format!("it is a folder without DHAT files of gungraun\n{next}")));
    }
    let mut names = BTreeMap::new();
    for file in &files {
        if let Some(other) = names.insert(gungraun::benchmark(file), file) {
            let (file, other) = (quote(file), quote(other));
            return Err(refuse(format!(
                "{other} and {file} are of benchmarks of one name\nname the folder of one package"
            )));
        }
    }
    let profiles = files.iter().map(|file| read(file)).collect::<Result<Vec<Profile>, Failure>>()?;
    on_large_stack(|| sum(profiles))?.map_err(|error| refuse(error.to_string()))
}

/// Reads a file no further than it can be of use: not beyond its beginning when that is of no known kind, nor beyond
/// what any profile holds.
fn read_limited(file: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut bytes)?;
    if may_be_profile(&bytes) {
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Whether a beginning is gzip, zstd, text, or a message of protobuf. What has no end is none of these.
fn may_be_profile(beginning: &[u8]) -> bool {
    const PACKED: [&[u8]; 2] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]];
    // Fields of `profile.proto` with a length: its types, samples, mappings, …, period type.
    const FIELDS: [u8; 7] = [0x0a, 0x12, 0x1a, 0x22, 0x2a, 0x32, 0x5a];
    let is_text = !beginning.contains(&0);
    let is_message = |first: &u8| FIELDS.contains(first) && import::is_pprof_beginning(beginning);
    PACKED.iter().any(|magic| beginning.starts_with(magic))
        || (is_text && std::str::from_utf8(beginning).map_or_else(|error| error.valid_up_to() > 64, |_| true))
        || beginning.first().is_some_and(is_message)
}

/// The profile with names for its addresses, demangled ones.
fn named(imported: Imported) -> Result<Profile, heaptally_profile::Error> {
    let Imported { mut profile, needs_symbols } = imported;
    if needs_symbols != Addresses::Named {
        if needs_symbols == Addresses::Mapped {
            to_svmas(&mut profile);
        }
        Symbolizer::new(Options::default()).symbolize(&mut profile);
        if profile.modules.iter().any(|module| module.build_id.is_empty() && module.symbol_problem.is_none())
            && let Some(image) = profile.images.first_mut()
        {
            let warning =
                "names are those of the files as they are now: the file does not say of which builds it is";
            image.warnings.push(warning.to_owned());
        }
    } else {
        for function in &mut profile.functions {
            if function.name == function.system_name {
                function.name = demangle(&function.system_name);
            }
        }
    }
    profile.normalize()?;
    Ok(profile)
}

/// Makes addresses of a process those of the files, where the files are there.
fn to_svmas(profile: &mut Profile) {
    for (id, module) in profile.modules.iter_mut().enumerate() {
        let Some(text_svma) = svma_of_offset(&unescape_path(&module.path), module.text_offset) else {
            continue;
        };
        let (start, end) = (module.text_svma, module.text_svma_end);
        (module.text_svma, module.text_svma_end) =
            (text_svma, text_svma.saturating_add(end.saturating_sub(start)));
        for location in profile.locations.iter_mut().filter(|location| location.module == Some(id)) {
            location.address = location.address.wrapping_sub(start).wrapping_add(text_svma);
        }
    }
}

/// The SVMA of code that was mapped from an offset of a file.
fn svma_of_offset(path: &Path, offset: u64) -> Option<u64> {
    if !path.is_file() {
        return None;
    }
    let cache = ReadCache::new(File::open(path).ok()?);
    let elf = ElfFile64::<LittleEndian, _>::parse(&cache).ok()?;
    let endian = LittleEndian;
    let segment = elf.elf_program_headers().iter().find(|segment| {
        segment.p_type(endian) == PT_LOAD
            && segment.p_flags(endian) & PF_X == PF_X
            && segment.p_offset(endian) / PAGE_BYTES == offset / PAGE_BYTES
    })?;
    Some(offset.wrapping_add(segment.p_vaddr(endian)).wrapping_sub(segment.p_offset(endian)))
}
