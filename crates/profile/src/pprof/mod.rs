//! The profile file: pprof's `profile.proto` in gzip, which every pprof tool opens.
//!
//! ```text
//! gzip ── Profile ─┬─ sample_type    SAMPLE_TYPES, always all of them in this order
//!                  ├─ sample         one per row: location ids leaf first, values, labels
//!                  ├─ mapping        one per module; id = index + 1; start, limit and offset of its code, as SVMAs
//!                  ├─ location       one per location; id = index + 1; the address as the module's file states it
//!                  ├─ function       one per function; id = index + 1; system_name is the mangled name
//!                  ├─ string_table   "" first, the comment's JSON last
//!                  └─ comment        one text: "#heaptally " and a JSON document
//! ```
//!
//! **Samples.** The values are additive. Labels: `window` (its name), `image` (its label), `capture` (`complete`, `cut`
//! or `frame pointer`), and `unstable` (`yes`) where several runs differ; where the stack has async callers, the number `async_from` tells how many frames stand before
//! the first of them. So `go tool pprof -tagfocus=window=parse FILE` shows one window. A value above 2^63 − 1 is
//! written as that.
//!
//! **The document** holds what is not additive and what pprof has no place for. pprof hides comments that begin with
//! `#`, and keeps them. By index, in columns where rows are many, and sparse where most entries are alike:
//!
//! ```text
//! #heaptally {"format":"heaptally-profile","version":1,"digest":"9ae16a3b2f90404f",
//!   "images":[…],"windows":[…],"threads":[…],"losses":{…},"environment":{…},     as in the model
//!   "symbol_problems":{"3":"no debug information"},      by module
//!   "folded_functions":[7],                              functions that share code with others
//!   "location_kinds":{"entry_point":[0],"async":[5,6]},  locations that are not return addresses
//!   "stacks":{"len":2,"captures":{"cut":[1]},"cut_reasons":{"1":"…"},"unused":{}},
//!   "rows":{"window":[0,0],"stack":[0,1],"entries":[10,1],"first_entry":[1,1],"last_entry":[10,1],
//!           "reallocs_to_zero":[0,0],                    by sample
//!           "repeats":{"allocations":[[300,2],[600,0]],  by run and sample; left out when there is one run
//!                      "bytes":[[4800,64],[9600,0]]}}}
//! ```
//!
//! Of several runs `environment.repeats` is the number, `windows[].iterations_per_repeat` the iterations in each.
//!
//! `digest` is the FNV-1a hash (64 bits) of the encoded message without the comment and its text. A file that a pprof
//! tool filtered, scaled or merged has other samples than its document describes; the digest, or a second document,
//! betrays it, and it is refused.
//!
//! **Versions.** A reader refuses a version that it does not know. Within a version fields may be added (older readers
//! skip them, newer ones take a default); a change of what is there raises it.
//!
//! **Equal bytes.** Equal profiles give equal files: no time is written unless it is given, and neither process nor
//! thread ids are written at all: they are 0 when a file is read.

mod document;
pub(crate) mod proto;
pub(crate) mod read;
mod sample;
mod wire;
mod write;

pub use read::{MAX_BYTES, read, read_with_limit};
pub(crate) use wire::{begins_well, begins_with_sample_types, has_sample_types};
pub use write::{write, write_at};

use prost::Message as _;

/// The values of every sample, by name and unit: one frozen list. pprof compares only files whose lists are equal, so
/// what is unknown stands as 0, and nothing is added or moved.
pub const SAMPLE_TYPES: [(&str, &str); 16] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
    ("freed_objects", "count"),
    ("freed_space", "bytes"),
    ("freed_later_objects", "count"),
    ("freed_later_space", "bytes"),
    ("realloc", "count"),
    ("realloc_in_place", "count"),
    ("realloc_moved", "count"),
    ("temporary_objects", "count"),
    ("temporary_space", "bytes"),
    ("failed", "count"),
    ("discarded_objects", "count"),
    ("discarded_space", "bytes"),
];

/// What the comment that is ours begins with.
pub(crate) const COMMENT_PREFIX: &str = "#heaptally ";

/// The digest of a message: of its encoding without comments.
///
/// `document` is the index of the document's text, if it stands in the table already.
fn digest(message: &mut proto::Profile, document: Option<usize>) -> String {
    let comments = std::mem::take(&mut message.comment);
    let text =
        document.and_then(|at| (at < message.string_table.len()).then(|| message.string_table.remove(at)));
    let hash = fnv_1a(FNV_1A_START, &message.encode_to_vec());
    if let (Some(at), Some(text)) = (document, text) {
        message.string_table.insert(at, text);
    }
    message.comment = comments;
    format!("{hash:016x}")
}

/// The digest of a message that is encoded as heaptally encodes it; else of something else.
///
/// `document` is the index of the document's text.
fn encoded_digest(encoded: &[u8], document: usize) -> String {
    const STRING_TABLE: u64 = 6;
    const COMMENT: u64 = 13;
    let mut fields = wire::Fields::new(encoded);
    let mut texts = 0;
    let mut hash = FNV_1A_START;
    while let Some(field) = fields.next() {
        let is_text = field.number == STRING_TABLE;
        if field.number != COMMENT && !(is_text && texts == document) {
            hash = fnv_1a(hash, field.whole);
        }
        texts += usize::from(is_text);
    }
    format!("{hash:016x}")
}

const FNV_1A_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits (constants: datatracker.ietf.org/doc/html/draft-eastlake-fnv): the hash of what `hash` is of, and of the
/// bytes behind it.
fn fnv_1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_hash_is_the_published_one() {
        let hash = |bytes| super::fnv_1a(super::FNV_1A_START, bytes);
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
