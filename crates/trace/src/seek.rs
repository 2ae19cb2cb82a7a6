//! Finds positions in a trace: by instruction, and by unit of work.

use crate::{Error, Trace};
use events::record::{Entries, Entry, Mark};

/// A position between two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePosition {
    /// The chunk: an index of [`Trace::chunks`].
    pub chunk: usize,
    /// Number of words of the chunk before it.
    pub word: usize,
    /// Number of instructions of the stream before it.
    pub instruction: u64,
}

impl Trace {
    /// The position of the record that contains an instruction of a stream, numbered from 0. `None` if the trace does
    /// not contain it.
    pub fn seek(&self, stream: u32, instruction: u64) -> Result<Option<TracePosition>, Error> {
        let holds = |&&index: &&usize| {
            let chunk = &self.chunks()[index];
            instruction.checked_sub(chunk.first_instruction).is_some_and(|offset| offset < chunk.instructions)
        };
        let Some(&chunk) = self.stream_chunks(stream).iter().find(holds) else { return Ok(None) };
        let shapes = self.shapes();
        self.find(chunk, |entry, before| match entry {
            Entry::Execution(one) => {
                before + u64::from(shapes[one.block as usize].instructions) > instruction
            }
            Entry::Mark(_) => false,
        })
    }

    /// The number of the first unit of work, if there is one.
    pub fn first_unit(&self) -> Option<u64> {
        self.chunks().iter().filter_map(|chunk| chunk.first_unit).min()
    }

    /// The position before the mark with which a unit of work begins. `None` if the trace does not contain it.
    pub fn unit(&self, number: u64) -> Result<Option<TracePosition>, Error> {
        for stream in 0..self.streams().len() as u32 {
            let may_have =
                |&&index: &&usize| self.chunks()[index].first_unit.is_some_and(|unit| unit <= number);
            let Some(&chunk) = self.stream_chunks(stream).iter().rfind(may_have) else { continue };
            let is_begin = |entry: Entry, _: u64| entry == Entry::Mark(Mark::UnitBegins(number));
            if let Some(position) = self.find(chunk, is_begin)? {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// The position of the first record of a chunk for which `fits` is true; its second argument is the number of
    /// instructions before the record.
    fn find(&self, chunk: usize, fits: impl Fn(Entry, u64) -> bool) -> Result<Option<TracePosition>, Error> {
        let mut words = Vec::new();
        self.read(chunk, &mut words)?;
        let mut instruction = self.chunks()[chunk].first_instruction;
        let mut entries = Entries::new(&words, self.shapes());
        loop {
            let word = words.len() - entries.rest().len();
            let Some(entry) = entries.next() else { return Ok(None) };
            if fits(entry, instruction) {
                return Ok(Some(TracePosition { chunk, word, instruction }));
            }
            if let Entry::Execution(one) = entry {
                instruction += u64::from(self.shapes()[one.block as usize].instructions);
            }
        }
    }
}
