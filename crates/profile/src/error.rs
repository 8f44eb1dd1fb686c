//! What can be wrong with a profile's file, a profile or a rule file.

/// Why a profile could not be read or used.
///
/// The messages name no path: the caller, who opened the file, does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not begin as gzip does.
    #[error("not a profile: expected gzip (1f 8b), found {found}")]
    NotGzip {
        /// The first bytes in hex, or that there are none.
        found: String,
    },
    /// The gzip stream is cut short or damaged.
    #[error("damaged profile: gzip: at byte {at} of {len}: {reason}")]
    Gzip {
        /// The byte of the file, from 0, up to which it could be unpacked.
        at: usize,
        /// How many bytes the file has.
        len: usize,
        /// What the decoder said.
        reason: String,
    },
    /// Something follows the gzip stream.
    #[error("damaged profile: {bytes} bytes follow the end of the gzip stream")]
    Trailing {
        /// How many bytes.
        bytes: usize,
    },
    /// The content is larger than a profile may be.
    #[error("profile too large: it unpacks to more than {limit} {unit}")]
    TooLarge {
        /// The limit that was passed.
        limit: u64,
        /// What is limited: bytes or messages.
        unit: &'static str,
    },
    /// The unpacked bytes are no `profile.proto` message.
    #[error("not a profile, or a damaged one: protobuf: at byte {at}: {reason}")]
    Protobuf {
        /// The byte of the unpacked content, from 0, where the first field begins that makes no sense.
        at: usize,
        /// What the decoder said.
        reason: String,
    },
    /// The bytes are packed in a way that is not unpacked here.
    #[error("packed by {packer}, which heaptally does not unpack\nunpack it first: {command}")]
    Packed {
        /// The program that packs so.
        packer: &'static str,
        /// What unpacks it.
        command: &'static str,
    },
    /// A pprof profile that heaptally did not write.
    #[error(
        "not heaptally's profile: a pprof profile of {what}, without heaptally's comment\n\
         only profiles that `heaptally run` wrote can be read"
    )]
    Foreign {
        /// Its sample types.
        what: String,
    },
    /// The bytes are of no format that is known.
    #[error(
        "not a profile: neither heaptally's nor another tool's that can be read ({known})\n\
         it begins with {found}"
    )]
    Unrecognized {
        /// The formats that can be read.
        known: String,
        /// The first bytes, for people.
        found: String,
    },
    /// Another tool's file that does not make sense.
    #[error("damaged {format}: {place}: {reason}")]
    Import {
        /// What the file is.
        format: &'static str,
        /// The line (from 1) or the byte (from 0), of the unpacked content.
        place: String,
        /// What is wrong there.
        reason: String,
    },
    /// Another tool's file that is sound, and does not hold what is looked for.
    #[error("{format} that cannot be used: {reason}")]
    Unusable {
        /// What the file is.
        format: &'static str,
        /// Why, and what to do.
        reason: String,
    },
    /// The zstd stream is cut short or damaged.
    #[error("damaged file: zstd: at byte {at} of {len}: {reason}")]
    Zstd {
        /// The byte of the file, from 0, up to which it could be unpacked.
        at: usize,
        /// How many bytes the file has.
        len: usize,
        /// What the decoder said.
        reason: String,
    },
    /// A pprof tool put several of heaptally's profiles into one.
    #[error(
        "merged profile: it holds {count} of heaptally's comments, so another tool merged several recordings\n\
         pass the recordings themselves"
    )]
    Merged {
        /// How many comments of ours it holds.
        count: usize,
    },
    /// A later (or unheard-of) version of the format.
    #[error(
        "profile of version {found}; this heaptally reads version {known}\nread it with the heaptally that wrote it"
    )]
    Version {
        /// The version in the file.
        found: u64,
        /// The versions that can be read, separated by commas.
        known: String,
    },
    /// Another tool filtered, scaled or rewrote the profile: its samples are not those of its comment.
    #[error(
        "altered profile: its samples are no longer those that heaptally wrote (digest {found}, expected {expected})\n\
         pass the file as `heaptally run` wrote it"
    )]
    Altered {
        /// The digest of what stands in the file.
        found: String,
        /// The digest that the comment states.
        expected: String,
    },
    /// Heaptally's comment cannot be understood.
    #[error("damaged profile: heaptally's comment: {reason}")]
    Comment {
        /// What is wrong with it.
        reason: String,
    },
    /// An index leads nowhere.
    #[error("damaged profile: {table} {row} refers to {target} {index} of {len}")]
    Index {
        /// The table of the referring entry.
        table: &'static str,
        /// The referring entry's own index.
        row: usize,
        /// The table referred to.
        target: &'static str,
        /// The index found.
        index: u64,
        /// How many entries the table referred to has.
        len: usize,
    },
    /// A value cannot be what it says it is.
    #[error("damaged profile: {table} {row}: {reason}")]
    Value {
        /// The table of the entry.
        table: &'static str,
        /// The entry's index.
        row: usize,
        /// What is wrong.
        reason: String,
    },
    /// Nothing was handed over to be merged.
    #[error("no profile to merge")]
    NothingToMerge,
    /// Recordings whose numbers cannot stand for one another.
    #[error("profiles whose numbers do not go together: {what} is {expected} in one, {found} in another")]
    Unlike {
        /// What differs.
        what: &'static str,
        /// What the later one has.
        found: String,
        /// What those before have.
        expected: String,
    },
    /// A line of a rule file cannot be understood.
    #[error("rule file line {line}: {reason}")]
    Rule {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A limits file cannot be understood.
    #[error("line {line}: {reason}")]
    Limit {
        /// The line, from 1.
        line: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// A threshold file of package-benchmark cannot be understood.
    #[error("not a threshold file: {reason}")]
    Threshold {
        /// What is wrong with it.
        reason: String,
    },
}
