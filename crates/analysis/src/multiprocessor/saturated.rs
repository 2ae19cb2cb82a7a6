//! Streams of a trace that never wait.

use std::collections::VecDeque;

use events::record::{Entries, Entry, Mark};
use trace::interleave::Turn;
use trace::{Chunk, Error, Trace};

/// What a processor does next.
pub(super) enum ProcessorTurn<'a> {
    /// It executes records of a stream.
    Executes(u32, &'a [u64]),
    Idle,
    Over,
}

impl<'a> From<Turn<'a>> for ProcessorTurn<'a> {
    fn from(turn: Turn<'a>) -> ProcessorTurn<'a> {
        match turn {
            Turn::Slice(slice) => ProcessorTurn::Executes(slice.stream, slice.words),
            Turn::Idle => ProcessorTurn::Idle,
            Turn::Over => ProcessorTurn::Over,
        }
    }
}

/// Streams that never wait.
pub(super) struct SaturatedStreams<'a> {
    trace: &'a Trace,
    streams: Vec<SaturatedStream>,
    /// Those that no processor executes, the next one first.
    queue: VecDeque<usize>,
    /// By processor.
    current: Vec<Option<usize>>,
}

/// A stream: its chunks that were not read, and the words of the last one from a place on.
#[derive(Default)]
struct SaturatedStream {
    chunks: VecDeque<usize>,
    words: Vec<u64>,
    at: usize,
}

impl SaturatedStream {
    fn has_ended(&self) -> bool {
        self.chunks.is_empty() && self.at == self.words.len()
    }
}

impl<'a> SaturatedStreams<'a> {
    pub(super) fn new(trace: &'a Trace, is_wanted: impl Fn(&Chunk) -> bool) -> SaturatedStreams<'a> {
        let count = trace.streams().len();
        let of = |stream: usize| -> SaturatedStream {
            let chunks = trace.stream_chunks(stream as u32).iter().copied();
            let chunks = chunks.filter(|&chunk| is_wanted(&trace.chunks()[chunk])).collect();
            SaturatedStream { chunks, ..SaturatedStream::default() }
        };
        let streams: Vec<SaturatedStream> = (0..count).map(of).collect();
        let instructions = |stream: usize| -> u64 {
            streams[stream].chunks.iter().map(|&chunk| trace.chunks()[chunk].instructions).sum()
        };
        // Streams without instructions have only marks, of memory that the processes forked from them share: they are first.
        let mut queue: Vec<usize> = (0..count).filter(|&stream| !streams[stream].has_ended()).collect();
        queue.sort_by_key(|&stream| instructions(stream) > 0);
        SaturatedStreams { trace, streams, queue: queue.into(), current: Vec::new() }
    }

    /// The next records of a processor: a unit of work, or the part of it that a chunk has.
    pub(super) fn next_of(&mut self, processor: usize) -> Result<ProcessorTurn<'_>, Error> {
        self.current.resize(self.current.len().max(processor + 1), None);
        let Some(stream) = self.current[processor].take().or_else(|| self.queue.pop_front()) else {
            let is_over = self.current.iter().all(Option::is_none);
            return Ok(if is_over { ProcessorTurn::Over } else { ProcessorTurn::Idle });
        };
        let own = &mut self.streams[stream];
        if own.at == own.words.len()
            && let Some(chunk) = own.chunks.pop_front()
        {
            own.at = 0;
            own.words.clear();
            if let Err(error) = self.trace.read(chunk, &mut own.words) {
                own.words.clear();
                self.put_back(processor, stream, false);
                return Err(error);
            }
        }
        let start = own.at;
        let mut entries = Entries::new(&own.words[start..], self.trace.shapes());
        let ends_unit =
            entries.by_ref().any(|entry| matches!(entry, Entry::Mark(Mark::UnitEnds(_) | Mark::UnitLeft(_))));
        own.at = own.words.len() - if ends_unit { entries.rest().len() } else { 0 };
        self.put_back(processor, stream, ends_unit);
        let own = &self.streams[stream];
        Ok(ProcessorTurn::Executes(stream as u32, &own.words[start..own.at]))
    }

    /// A processor keeps a stream until its unit of work ends.
    fn put_back(&mut self, processor: usize, stream: usize, ends_unit: bool) {
        if self.streams[stream].has_ended() {
            return;
        }
        match ends_unit {
            true => self.queue.push_back(stream),
            false => self.current[processor] = Some(stream),
        }
    }
}
