//! Replays a trace in the order of execution to a [`Visitor`], with the instructions that are selected.

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
mod stack_pointer;
pub mod summary;
mod text;

pub use accesses::{AccessInstruction, Accesses};
pub use addresses::Addresses;
pub use calls::{ActiveCalls, Arrival};
pub use dictionary::{BlockFacts, Dictionary, ProgramRegion, Transfer};
pub(crate) use dictionary::{ProgramRegions, label};
pub use filter::{Filter, NotInTrace, SelectedInstructions, Selection};
pub use functions::FunctionTrace;
pub use listing::Listing;
pub use registers::{KnownRegisters, RegisterEffect};
pub use source::ReplayOrder;
pub use stack::CallStack;

use std::io;
use std::thread::Scope;

use events::record::{Entries, Entry, Execution, Mark};
use trace::{Chunk, Trace};

use crate::names::Names;
pub(crate) use filter::ReplayPosition;
use source::{RecordBatch, RecordSlice};
pub(crate) use text::host_process;

/// An execution of a block.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// The stream: an index of [`trace::Trace::streams`].
    pub stream: u32,
    /// The processor that it runs on, if the threads were spread over processors.
    pub processor: Option<u32>,
    /// The number of earlier instructions of the stream.
    pub before: u64,
    /// The block, its addresses and values.
    pub execution: Execution<'a>,
    /// The instructions of the block that are selected.
    pub selected: SelectedInstructions<'a>,
}

/// Receives the executed blocks and marks of a replay.
pub trait Visitor {
    /// A mark, which is no instruction; `before` and `stream` as in [`Executed`].
    fn mark(&mut self, _stream: u32, _before: u64, _mark: Mark, _is_wanted: bool) -> io::Result<()> {
        Ok(())
    }

    /// Whether it needs the heap marks of the whole trace, selected or not.
    fn follows_heap(&self) -> bool {
        false
    }

    /// An execution of a block, selected or not.
    fn executed(&mut self, executed: &Executed) -> io::Result<()>;
}

/// The greatest number of instructions of a thread; damaged traces may have larger ones.
const LAST: u64 = 1 << 62;

/// A trace with a selection, ready to be replayed.
pub struct Replay<'a> {
    /// The trace's blocks.
    pub dictionary: &'a Dictionary<'a>,
    /// Their accesses.
    pub accesses: &'a Accesses,
    /// The selection.
    pub filter: &'a Filter,
    /// The order of threads.
    pub order: ReplayOrder,
}

impl Replay<'_> {
    /// Prepares the replay of a part of a trace, and calls `work` with it.
    pub fn of_part<T>(
        trace: &Trace,
        selection: &Selection,
        order: ReplayOrder,
        work: impl FnOnce(&Replay) -> T,
    ) -> Result<T, NotInTrace> {
        let names = Names::of_trace(trace);
        let dictionary = Dictionary::new(trace, &names);
        let accesses = Accesses::new(trace);
        let filter = Filter::new(selection, &dictionary)?;
        Ok(work(&Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order }))
    }

    /// Replays the selected streams to a visitor. Chunks that cannot be read are skipped, and their errors returned.
    /// `progress` is called with the number of instructions replayed since the last call.
    pub fn run(
        &self,
        visitor: &mut impl Visitor,
        progress: &mut dyn FnMut(u64),
    ) -> io::Result<Vec<trace::Error>> {
        let trace = self.dictionary.trace;
        let mut positions = vec![ReplayPosition::default(); trace.streams().len()];
        let mut chunks = vec![None; trace.streams().len()];
        let follows_heap = visitor.follows_heap();
        let mut problems = Vec::new();
        std::thread::scope(|scope| {
            for batch in self.batches(scope, follows_heap, &mut problems) {
                for (slice, words) in batch.slices() {
                    if follows_heap && !self.filter.chunk(&trace.chunks()[slice.chunk]) {
                        self.heap(slice, words, visitor)?;
                        continue;
                    }
                    let position = &mut positions[slice.stream as usize];
                    if chunks[slice.stream as usize].replace(slice.chunk) != Some(slice.chunk) {
                        self.skip_to(&trace.chunks()[slice.chunk], position, visitor)?;
                    }
                    let before = position.instructions;
                    self.records(slice, words, position, visitor)?;
                    progress(position.instructions - before);
                }
            }
            Ok(problems)
        })
    }

    /// Passes on only the marks of the heap and of mappings of a slice that is not selected.
    fn heap(&self, slice: &RecordSlice, words: &[u64], visitor: &mut impl Visitor) -> io::Result<()> {
        let before = self.dictionary.trace.chunks()[slice.chunk].first_instruction.min(LAST);
        for entry in Entries::new(words, self.dictionary.trace.shapes()) {
            if let Entry::Mark(mark @ (Mark::Heap(_) | Mark::Mapping(_))) = entry {
                visitor.mark(slice.stream, before, mark, false)?;
            }
        }
        Ok(())
    }

    /// The records of the selected chunks, or of all chunks, in order. Errors of chunks that cannot be read go to `problems`.
    fn batches<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        all: bool,
        problems: &mut Vec<trace::Error>,
    ) -> impl Iterator<Item = RecordBatch> {
        let filter = self.filter;
        let is_selected = move |chunk: &Chunk| all || filter.chunk(chunk);
        let batches = source::read(scope, self.dictionary.trace, self.order, is_selected);
        batches.into_iter().filter_map(move |batch| batch.map_err(|error| problems.push(error)).ok())
    }

    /// Moves to the beginning of a chunk. Instructions that were skipped before it, or lost, are marked as a gap.
    fn skip_to(
        &self,
        chunk: &Chunk,
        position: &mut ReplayPosition,
        visitor: &mut impl Visitor,
    ) -> io::Result<()> {
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
        slice: &RecordSlice,
        words: &[u64],
        position: &mut ReplayPosition,
        visitor: &mut impl Visitor,
    ) -> io::Result<()> {
        let trace = self.dictionary.trace;
        let RecordSlice { stream, processor, .. } = *slice;
        for entry in Entries::new(words, trace.shapes()) {
            let before = position.instructions;
            match entry {
                Entry::Execution(execution) => {
                    let length = filter::length(trace, execution.block);
                    let selected =
                        self.filter.block(position, &execution, length, self.dictionary, self.accesses);
                    visitor.executed(&Executed { stream, processor, before, execution, selected })?;
                }
                Entry::Mark(mark) => {
                    let is_selected = self.filter.mark(position, mark);
                    visitor.mark(stream, before, mark, is_selected)?;
                }
            }
        }
        Ok(())
    }
}
