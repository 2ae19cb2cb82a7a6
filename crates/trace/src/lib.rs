//! What an execution leaves behind, as plain data that the stages after the engine read: exact counts of
//! blocks and units of work ([`Counts`]), and traces ([`record`], [`Writer`], [`Trace`]): every block and
//! every effective address, in order, in a file.
//!
//! The engine writes these, `analysis` reads them; neither sees the other.
//!
//! ```
//! use pathlength_trace::{Block, Counts};
//! let mut counts = Counts::default();
//! counts.blocks.push(Block { address: 0x1_2000_0000, words: vec![0x47ff041f; 3], image: None });
//! counts.executions.push(7);
//! assert_eq!(counts.instructions(), 21);
//! ```

mod bytes;
pub mod check;
mod codec;
mod consumer;
mod container;
mod counts;
mod definitions;
mod dictionary;
pub mod export;
mod lookaside;
pub mod order;
mod pipe;
mod reader;
pub mod record;
mod seek;
mod writer;

pub use consumer::{Consumer, Thread};
pub use counts::{Block, BlockId, Counts, LoadedImage, Unit};
pub use dictionary::{Function, Header, Image, Stream};
pub use lookaside::{Array, Keep, Lookaside, Side, Unusual, Words};
pub use reader::{Chunk, Error, Problem, Trace};
pub use seek::Place;
pub use writer::{ChunkPacker, Known, Packed, Process, Seal, StreamWriter, Writer};
