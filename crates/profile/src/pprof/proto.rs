//! The messages of pprof's `profile.proto`, written out by hand so that no protoc is needed.
//!
//! Field numbers and meanings are those of `proto/profile.proto` in github.com/google/pprof. Text stands once in
//! `string_table`; fields that say so hold an index into it, and index 0 is the empty text.

/// One profile: the outermost message.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Profile {
    /// What the values of each sample are, in their order.
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) sample: Vec<Sample>,
    /// The first one is taken for the main program.
    #[prost(message, repeated, tag = "3")]
    pub(crate) mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(crate) string_table: Vec<String>,
    /// When it was recorded, in ns since 1970 UTC.
    #[prost(int64, tag = "9")]
    pub(crate) time_nanos: i64,
    /// Texts for people, by index of string.
    #[prost(int64, repeated, tag = "13")]
    pub(crate) comment: Vec<i64>,
    /// The type shown where none is asked for: its name's index of string.
    #[prost(int64, tag = "14")]
    pub(crate) default_sample_type: i64,
}

/// What a value is; both by index of string.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(crate) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

/// One stack with its values.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Sample {
    /// Ids of locations, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) label: Vec<Label>,
}

/// A remark on a sample: a text or a number.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Label {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) str: i64,
    #[prost(int64, tag = "3")]
    pub(crate) num: i64,
    #[prost(int64, tag = "4")]
    pub(crate) num_unit: i64,
}

/// A module.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Mapping {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) file_offset: u64,
    /// Index of string.
    #[prost(int64, tag = "5")]
    pub(crate) filename: i64,
    /// Index of string.
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
    /// Whether functions were looked up; pprof looks them up by itself otherwise.
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(crate) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(crate) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(crate) has_inline_frames: bool,
}

/// A place in code.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Location {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    /// 0: in none.
    #[prost(uint64, tag = "2")]
    pub(crate) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    /// Innermost inlined function first.
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<Line>,
    /// Whether several functions share this code.
    #[prost(bool, tag = "5")]
    pub(crate) is_folded: bool,
}

/// A logical frame.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Line {
    #[prost(uint64, tag = "1")]
    pub(crate) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
}

/// A function; its texts by index of string.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Function {
    /// From 1.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(crate) filename: i64,
}
