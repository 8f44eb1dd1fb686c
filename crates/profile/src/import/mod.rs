//! Files of other tools as profiles.
//!
//! [`read`] takes any file that heaptally can read, its own included. The format is told by the content, never by a
//! name, and gzip and zstd are unpacked whatever is in them.
//!
//! | format | written by | allocations | bytes | frees |
//! |---|---|---|---|---|
//! | [`pprof`] | Go, jemalloc, tcmalloc and others, `profile.proto` | sampled | yes | yes, or live blocks only |
//! | [`dhat`] | valgrind's DHAT, dhat-rs: JSON | all | yes | yes |
//! | [`heaptrack`] | heaptrack's recording, raw or interpreted | all | yes | yes |
//! | [`heaptrack_print`] | the text of `heaptrack_print` | those that it lists | no | no |
//! | [`heap_profile_text`] | gperftools, jemalloc, Go (`debug=1`) | sampled, or all | yes | yes, or live blocks only |
//! | [`bpftrace`] | maps with a `ustack` as key | all | if there is a map of them | no |
//! | [`dtrace`] | aggregations by `ustack()` | all | no | no |
//! | [`folded`] | folded stacks | all | no | no |
//!
//! **Unknown is not zero.** What a format does not say stands in
//! [`Environment::unknown`](crate::model::Environment::unknown), in
//! [`lifetimes`](crate::model::Environment::lifetimes) or, for single allocations, in
//! [`Window::lost`](crate::model::Window::lost). No format knows windows: everything is in one, named `process`.
//! [`Origin`](crate::model::Origin) says which format it was, and whether it samples.
//!
//! **Stacks** are leaf first, as everywhere here. A leaf frame that is an allocation function becomes the entry point. A
//! file that has addresses and no names has modules with the ranges that they had in memory, which
//! [`Imported::needs_symbols`] says; whoever can read these files looks the names up.
//!
//! Each format has a file of its own, which holds an [`Importer`] named `IMPORTER`.

pub mod bpftrace;
mod builder;
pub mod dhat;
pub mod dtrace;
pub mod folded;
pub mod heap_profile_text;
pub mod heaptrack;
pub mod heaptrack_print;
mod heaptrack_raw;
mod line;
pub mod pprof;
mod unpack;

use crate::Error;
use crate::model::Profile;
use crate::pprof as own;

/// A profile that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The profile, in normal form.
    pub profile: Profile,
    /// How its locations are to be named.
    pub needs_symbols: Addresses,
}

/// What the addresses of a profile's locations are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Everything that can be said of them has been.
    #[default]
    Named,
    /// SVMAs of their modules, without names.
    Svma,
    /// As in the process, without names: a module's range of code is where it was mapped, with the offset in its file.
    Mapped,
}

/// A format.
#[derive(Clone, Copy, Debug)]
pub struct Importer {
    /// What a file of it is, for people.
    pub name: &'static str,
    /// Whether unpacked content is of this format, as its beginning says.
    pub sniff: fn(&[u8]) -> bool,
    /// Reads unpacked content.
    pub read: fn(&[u8]) -> Result<Imported, Error>,
}

/// The formats that are text, in the order in which they are tried: those with an unmistakable beginning first.
const TEXTS: [Importer; 8] = [
    dhat::IMPORTER,
    heaptrack::IMPORTER,
    heap_profile_text::IMPORTER,
    heaptrack_print::IMPORTER,
    bpftrace::IMPORTER,
    dtrace::IMPORTER,
    folded::IMPORTER,
    pprof::IMPORTER,
];

/// Every format that can be read beside heaptally's own.
pub fn importers() -> &'static [Importer] {
    &TEXTS
}

/// Reads a file: heaptally's own, or another tool's.
///
/// # Errors
/// [`Error::Unrecognized`] for what is of no known format; else what is wrong with it, with the line or the offset.
pub fn read(bytes: &[u8]) -> Result<Imported, Error> {
    read_with_limit(bytes, own::MAX_BYTES)
}

/// As [`read`]; a file may unpack to at most `limit_bytes`.
///
/// # Errors
/// As [`read`]; [`Error::TooLarge`] beyond the limit.
pub fn read_with_limit(bytes: &[u8], limit_bytes: u64) -> Result<Imported, Error> {
    let unpacked = unpack::unpack(bytes, limit_bytes)?;
    // Editors and other systems' shells put it before text.
    let content = unpacked.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&unpacked);
    if let Some(importer) = TEXTS.iter().find(|importer| (importer.sniff)(content)) {
        return (importer.read)(content);
    }
    // heaptally's own files are gzip, and so a damaged one is told as what it may be.
    match unpack::is_gzip(bytes) {
        true => pprof::read(content),
        false => Err(unrecognized(content)),
    }
}

/// Whether a beginning can be that of an unpacked pprof profile: its fields are that far what they can be. It tells a
/// file that is worth to be read from one that has no end.
pub fn is_pprof_beginning(beginning: &[u8]) -> bool {
    own::begins_well(beginning)
}

fn unrecognized(content: &[u8]) -> Error {
    const SHOWN: usize = 32;
    let mut names: Vec<&str> = TEXTS.iter().map(|importer| importer.name).collect();
    names.sort_unstable();
    let found = match content {
        [] => "nothing: it is empty".to_owned(),
        _ => format!("\"{}\"", content.iter().take(SHOWN).copied().collect::<Vec<_>>().escape_ascii()),
    };
    Error::Unrecognized { known: names.join(", "), found }
}
