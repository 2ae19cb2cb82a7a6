//! Traces: every block and every effective address that was executed, in order, in a file. [`Writer`] writes one,
//! [`Trace`] reads it, [`check`](check::check) says whether it is consistent. What the records mean is in the crate
//! `events`.

mod bytes;
pub mod check;
mod codec;
mod container;
mod definitions;
mod dictionary;
mod error;
pub mod export;
pub mod order;
mod pipe;
mod reader;
mod seek;
mod writer;

pub use dictionary::{Function, Header, Stream};
pub use error::{Error, Problem};
pub use reader::{Chunk, Trace};
pub use seek::Place;
pub use writer::{ChunkPacker, Known, Packed, Process, Seal, StreamWriter, Writer};
