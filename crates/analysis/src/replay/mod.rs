//! Goes through a trace in the order of execution and shows it to a [`Visitor`]: what was executed, and
//! which of it is wanted.

mod accesses;
mod addresses;
mod calls;
pub mod check;
mod dictionary;
mod filter;
mod functions;
mod listing;
mod models;
mod registers;
mod source;
mod stack;
pub mod summary;
mod text;

pub use accesses::{Access, Accesses};
pub use addresses::Addresses;
pub use calls::{Arrival, Calls};
pub use dictionary::{Dictionary, Facts, Place, Transfer};
pub use filter::{Absent, Chosen, Filter, Wanted};
pub use functions::FunctionTrace;
pub use listing::Listing;
pub use registers::Registers;
pub use source::Order;
pub use stack::Stack;

use std::io;

use events::record::{Entries, Entry, Execution, Mark};
use trace::Chunk;

use filter::Position;
use source::{Batch, Piece};
pub(crate) use text::host_process;

/// A block that was executed.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// Whose: an index of [`trace::Trace::streams`].
    pub stream: u32,
    /// The processor that it runs on, if the threads were spread over processors.
    pub processor: Option<u32>,
    /// How many instructions of the stream come before it.
    pub before: u64,
    /// The block, its addresses and values.
    pub execution: Execution<'a>,
    /// Which of its instructions are wanted.
    pub chosen: Chosen<'a>,
}

/// Looks at what was executed.
pub trait Visitor {
    /// Something beside instructions happened; `before` and `stream` as in [`Executed`].
    fn mark(&mut self, _stream: u32, _before: u64, _mark: Mark, _is_wanted: bool) -> io::Result<()> {
        Ok(())
    }

    /// Whether it must hear of the heap's marks in all of the trace, whatever is wanted of it.
    fn follows_heap(&self) -> bool {
        false
    }

    /// A block was executed, wanted or not.
    fn executed(&mut self, executed: &Executed) -> io::Result<()>;
}

/// No thread executes more: a damaged trace may say so.
const LAST: u64 = 1 << 62;

/// A trace, and what of it is wanted.
pub struct Replay<'a> {
    /// The trace's blocks.
    pub dictionary: &'a Dictionary<'a>,
    /// Their accesses.
    pub accesses: &'a Accesses,
    /// What is wanted.
    pub filter: &'a Filter,
    /// In which order.
    pub order: Order,
}

impl Replay<'_> {
    /// Shows the visitor all streams that are wanted. What cannot be read is left out and told; `progress`
    /// hears how many instructions have been gone through.
    pub fn run(
        &self,
        visitor: &mut impl Visitor,
        progress: &mut dyn FnMut(u64),
    ) -> io::Result<Vec<trace::Error>> {
        let trace = self.dictionary.trace;
        let mut positions = vec![Position::default(); trace.streams().len()];
        let mut chunks = vec![None; trace.streams().len()];
        let follows_heap = visitor.follows_heap();
        self.pieces(follows_heap, |piece, words| {
            if follows_heap && !self.filter.chunk(&trace.chunks()[piece.chunk]) {
                return self.heap(piece, words, visitor);
            }
            let position = &mut positions[piece.stream as usize];
            if chunks[piece.stream as usize].replace(piece.chunk) != Some(piece.chunk) {
                self.go_to(&trace.chunks()[piece.chunk], position, visitor)?;
            }
            let before = position.instructions;
            self.records(piece, words, position, visitor)?;
            progress(position.instructions - before);
            Ok(())
        })
    }

    /// Shows what becomes of the heap in a piece that is not wanted.
    fn heap(&self, piece: &Piece, words: &[u64], visitor: &mut impl Visitor) -> io::Result<()> {
        let before = self.dictionary.trace.chunks()[piece.chunk].first_instruction.min(LAST);
        for entry in Entries::new(words, self.dictionary.trace.shapes()) {
            if let Entry::Mark(mark @ Mark::Heap(_)) = entry {
                visitor.mark(piece.stream, before, mark, false)?;
            }
        }
        Ok(())
    }

    /// Calls with each piece of the chunks that are wanted, or of all, and its words, in order; what could not be
    /// read.
    fn pieces<E>(
        &self,
        all: bool,
        mut each: impl FnMut(&Piece, &[u64]) -> Result<(), E>,
    ) -> Result<Vec<trace::Error>, E> {
        let filter = self.filter;
        let is_read = move |chunk: &Chunk| all || filter.chunk(chunk);
        let mut problems = Vec::new();
        std::thread::scope(|scope| {
            for batch in source::read(scope, self.dictionary.trace, self.order, is_read) {
                match batch {
                    Ok(Batch { words, pieces }) => {
                        pieces.iter().try_for_each(|piece| each(piece, &words[piece.words.clone()]))?;
                    }
                    Err(error) => problems.push(error),
                }
            }
            Ok(problems)
        })
    }

    /// To the beginning of a chunk. What was left out before it, wanted or lost, is a gap.
    fn go_to(&self, chunk: &Chunk, position: &mut Position, visitor: &mut impl Visitor) -> io::Result<()> {
        let first = chunk.first_instruction.min(LAST);
        if position.instructions == first {
            return Ok(());
        }
        position.instructions = first;
        self.filter.mark(position, Mark::Gap);
        visitor.mark(chunk.stream, first, Mark::Gap, false)
    }

    fn records(
        &self,
        piece: &Piece,
        words: &[u64],
        position: &mut Position,
        visitor: &mut impl Visitor,
    ) -> io::Result<()> {
        let trace = self.dictionary.trace;
        let Piece { stream, processor, .. } = *piece;
        for entry in Entries::new(words, trace.shapes()) {
            let before = position.instructions;
            match entry {
                Entry::Execution(execution) => {
                    let length = filter::length(trace, execution.block);
                    let chosen =
                        self.filter.block(position, &execution, length, self.dictionary, self.accesses);
                    visitor.executed(&Executed { stream, processor, before, execution, chosen })?;
                }
                Entry::Mark(mark) => {
                    let is_wanted = self.filter.mark(position, mark);
                    visitor.mark(stream, before, mark, is_wanted)?;
                }
            }
        }
        Ok(())
    }
}
