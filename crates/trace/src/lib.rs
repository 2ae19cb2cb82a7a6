//! Traces: files with every executed block and every effective address, in order. [`Writer`] writes a trace,
//! [`Trace`] reads it, [`check`](check::check) checks its consistency. The crate `events` defines the records.

mod bytes;
pub mod check;
mod codec;
mod container;
mod definitions;
mod dictionary;
mod environment;
mod error;
pub mod export;
pub mod interleave;
pub mod order;
mod pipe;
mod reader;
mod seek;
mod writer;

pub use dictionary::{ExecutionMode, Function, Header, RecordTimes, ThreadStream};
pub use environment::EnvironmentSummary;
pub use error::{Error, TraceProblem};
pub use pipe::is_pipe;
pub use reader::{Chunk, Trace};
pub use seek::TracePosition;
pub use writer::{ChunkPacker, DefinitionCursor, PackedChunk, ProcessDictionary, Seal, StreamWriter, Writer};
