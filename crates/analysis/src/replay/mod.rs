//! Goes through a trace in the order of execution and shows it to a [`Visitor`]: what was executed, and
//! which of it is wanted.

mod accesses;
mod addresses;
mod calls;
mod dictionary;
mod filter;
mod functions;
mod listing;
mod registers;
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

use std::io;
use std::sync::mpsc::sync_channel;

use trace::Chunk;
use trace::record::{Entries, Entry, Execution, Mark};

use filter::Position;

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
        let wanted = |chunk: &Chunk| {
            self.filter.stream(chunk.stream)
                && self.filter.reaches(chunk.first_instruction, chunk.instructions)
        };
        let mut positions = vec![Position::default(); trace.streams().len()];
        let mut problems = Vec::new();
        std::thread::scope(|scope| {
            // The next chunk is read while this one is looked at.
            let (sender, receiver) = sync_channel(1);
            scope.spawn(move || {
                let chunks = trace.chunks().iter().enumerate().filter(|(_, chunk)| wanted(chunk));
                for (index, chunk) in chunks {
                    let mut words = Vec::new();
                    let read = trace.read(index, &mut words).map(|()| words);
                    if sender.send((chunk, read)).is_err() {
                        break;
                    }
                }
            });
            for (chunk, read) in receiver {
                match read {
                    Ok(words) => {
                        let position = &mut positions[chunk.stream as usize];
                        self.go_to(chunk, position, visitor)?;
                        self.records(chunk.stream, &words, position, visitor)?;
                    }
                    Err(error) => problems.push(error),
                }
                progress(chunk.instructions);
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
        stream: u32,
        words: &[u64],
        position: &mut Position,
        visitor: &mut impl Visitor,
    ) -> io::Result<()> {
        let trace = self.dictionary.trace;
        for entry in Entries::new(words, trace.shapes()) {
            let before = position.instructions;
            match entry {
                Entry::Execution(execution) => {
                    let length = filter::length(trace, execution.block);
                    let chosen =
                        self.filter.block(position, &execution, length, self.dictionary, self.accesses);
                    visitor.executed(&Executed { stream, processor: None, before, execution, chosen })?;
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
