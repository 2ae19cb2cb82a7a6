//! What the records refer to: functions, streams.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What was recorded, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The program's file on the host; a name that is not UTF-8 is kept as well as can be.
    #[serde(serialize_with = "as_text")]
    pub program: PathBuf,
    /// Its arguments, without its own name; text that is not UTF-8 is shown as well as can be.
    pub arguments: Vec<String>,
    /// The processor: `ev4` to `ev67`.
    pub cpu: String,
    /// Whether the records hold values.
    pub has_values: bool,
    /// Whether marks tell what becomes of the heap.
    #[serde(default)]
    pub has_heap: bool,
    /// The function whose calls are units of work, if asked for.
    pub unit: Option<String>,
    /// When recording began, in seconds since 1970. With `process` the only part of a file that differs
    /// between runs that did the same.
    pub time: u64,
    /// The host's number of the first process.
    pub process: u32,
}

fn as_text<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// A function that blocks belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Its image: an index of [`Trace::images`](crate::Trace::images).
    pub image: u32,
    /// Run-time address of its first instruction.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// The thread whose records a stream holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Number of the process among those recorded, from 0.
    pub process: u32,
    /// Number of the thread among those of the process that were recorded, from 0.
    pub thread: u32,
    /// The host's number of the process; 0 for the first process, whose number is in the header.
    pub host_process: u32,
}
