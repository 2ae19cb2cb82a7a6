//! The messages of pprof's profiles, of which only the fields that are written are declared. Texts are indexes of the
//! profile's table of strings, of which the first is empty.

use prost::Message;

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub struct PprofProfile {
    #[prost(message, repeated, tag = "1")]
    pub sample_types: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<PprofSample>,
    #[prost(message, repeated, tag = "3")]
    pub mappings: Vec<PprofMapping>,
    #[prost(message, repeated, tag = "4")]
    pub locations: Vec<PprofLocation>,
    #[prost(message, repeated, tag = "5")]
    pub functions: Vec<PprofFunction>,
    #[prost(string, repeated, tag = "6")]
    pub strings: Vec<String>,
    /// Nanoseconds since 1970.
    #[prost(int64, tag = "9")]
    pub time: i64,
    #[prost(int64, repeated, tag = "13")]
    pub comments: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// An event and its unit.
#[derive(Clone, PartialEq, Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub kind: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// Counts at a location in a chain of calls.
#[derive(Clone, PartialEq, Message)]
pub struct PprofSample {
    /// The chain, the innermost location first.
    #[prost(uint64, repeated, tag = "1")]
    pub locations: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub values: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub labels: Vec<PprofLabel>,
}

/// A label of a sample, by which pprof selects and groups samples (`-tagfocus`, `-tagroot`): its key and its text.
#[derive(Clone, PartialEq, Message)]
pub struct PprofLabel {
    #[prost(int64, tag = "1")]
    pub key: i64,
    #[prost(int64, tag = "2")]
    pub text: i64,
}

/// An image in memory.
#[derive(Clone, PartialEq, Message)]
pub struct PprofMapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub start: u64,
    #[prost(uint64, tag = "3")]
    pub limit: u64,
    #[prost(int64, tag = "5")]
    pub file: i64,
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    #[prost(bool, tag = "8")]
    pub has_files: bool,
    #[prost(bool, tag = "9")]
    pub has_lines: bool,
}

/// A line of a function.
#[derive(Clone, PartialEq, Message)]
pub struct PprofLocation {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// 0 if the code is outside images.
    #[prost(uint64, tag = "2")]
    pub mapping: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub lines: Vec<PprofLine>,
}

/// The function and the number of a line.
#[derive(Clone, PartialEq, Message)]
pub struct PprofLine {
    #[prost(uint64, tag = "1")]
    pub function: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function.
#[derive(Clone, PartialEq, Message)]
pub struct PprofFunction {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub file: i64,
}
