//! Merges the streams of a trace: in the order of execution, or as if the threads had been scheduled on given
//! processors.
//!
//! ```no_run
//! # fn main() -> Result<(), pathlength_trace::Error> {
//! let trace = pathlength_trace::Trace::open("tpcb.trace".as_ref())?;
//! let mut runs = trace.ordered();
//! while let Some(run) = runs.next_run()? {
//!     println!("stream {}: {} words", run.stream, run.words.len());
//! }
//! # Ok(())
//! # }
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use crate::{Chunk, Error, Trace};
use events::record::{Entries, Entry, Mark};

/// Consecutive records of one stream between two order marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRun<'a> {
    /// The stream: an index of [`Trace::streams`].
    pub stream: u32,
    /// The number of the last order mark.
    pub order: u64,
    /// The chunk that contains the records: an index of [`Trace::chunks`].
    pub chunk: usize,
    /// The records.
    pub words: &'a [u64],
}

/// Consecutive records of one stream, executed on a processor without a context switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSlice<'a> {
    /// The processor, from 0.
    pub processor: u32,
    /// The stream: an index of [`Trace::streams`].
    pub stream: u32,
    /// Number of instructions that the processor executed before.
    pub time: u64,
    /// The chunk that contains the records: an index of [`Trace::chunks`].
    pub chunk: usize,
    /// The records.
    pub words: &'a [u64],
}

impl Trace {
    /// All records in the order of execution, in runs between order marks.
    pub fn ordered(&self) -> Ordered<'_> {
        self.ordered_where(|_| true)
    }

    /// As [`Trace::ordered`], of selected chunks only.
    pub fn ordered_where(&self, is_wanted: impl Fn(&Chunk) -> bool) -> Ordered<'_> {
        let unread = (0..self.streams().len()).collect();
        Ordered { trace: self, cursors: self.cursors(is_wanted), unread, next: BinaryHeap::new() }
    }

    /// All records as if the streams had been scheduled on a number of processors. Each stream runs on one processor;
    /// streams on the same processor share it round-robin. A time slice ends after a system call, in which a thread
    /// may block, or after the block that completes `quantum` instructions. All processors run at the same speed, and
    /// time slices are returned in the order of their start times.
    pub fn schedule(&self, processors: u32, quantum: u64) -> TimeSchedule<'_> {
        self.schedule_where(processors, quantum, |_| true)
    }

    /// As [`Trace::schedule`], of selected chunks and their streams only.
    pub fn schedule_where(
        &self,
        processors: u32,
        quantum: u64,
        is_wanted: impl Fn(&Chunk) -> bool,
    ) -> TimeSchedule<'_> {
        let cursors = self.cursors(is_wanted);
        let mut queues = vec![OrderedProcessor::default(); processors.max(1) as usize];
        let streams = (0..cursors.len()).filter(|&stream| !cursors[stream].chunks.is_empty());
        for (stream, queue) in streams.zip((0..queues.len()).cycle()) {
            queues[queue].waiting.push_back(stream);
        }
        TimeSchedule { trace: self, cursors, processors: queues, quantum: quantum.max(1) }
    }

    pub(crate) fn cursors(&self, is_wanted: impl Fn(&Chunk) -> bool) -> Vec<Cursor> {
        let mut chunks = vec![VecDeque::new(); self.streams().len()];
        let wanted = self.chunks().iter().enumerate().filter(|(_, chunk)| is_wanted(chunk));
        for (index, chunk) in wanted {
            chunks[chunk.stream as usize].push_back(index);
        }
        chunks.into_iter().map(Cursor::new).collect()
    }
}

/// The read position in a stream.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// The chunks that have not been read.
    pub(crate) chunks: VecDeque<usize>,
    /// The chunk that was read last.
    pub(crate) chunk: usize,
    pub(crate) words: Vec<u64>,
    at: usize,
    /// The number of the last order mark.
    pub(crate) order: u64,
}

impl Cursor {
    fn new(chunks: VecDeque<usize>) -> Cursor {
        Cursor { chunks, chunk: 0, words: Vec::new(), at: 0, order: 0 }
    }

    /// Reads the next chunk if necessary; false at the end of the stream. After an error the chunk is skipped by the
    /// next call.
    pub(crate) fn fill(&mut self, trace: &Trace) -> Result<bool, Error> {
        while self.at == self.words.len() {
            let Some(chunk) = self.chunks.pop_front() else { return Ok(false) };
            (self.at, self.chunk) = (0, chunk);
            trace.read(chunk, &mut self.words)?;
            self.order = trace.chunks()[chunk].order;
        }
        if let Some(Entry::Mark(Mark::Order(number))) = self.entries(trace).next() {
            self.order = number;
        }
        Ok(true)
    }

    pub(crate) fn entries<'a>(&'a self, trace: &'a Trace) -> Entries<'a> {
        Entries::new(&self.words[self.at..], trace.shapes())
    }

    /// Takes records up to the one before or after which `end` says that the run ends, at least one and at most to
    /// the end of the chunk.
    pub(crate) fn take(&mut self, trace: &Trace, mut end: impl FnMut(Entry) -> RunEnd) -> Range<usize> {
        let start = self.at;
        let mut entries = self.entries(trace);
        let mut stop = self.words.len();
        let mut before = stop - entries.rest().len();
        while let Some(entry) = entries.next() {
            let behind = self.words.len() - entries.rest().len();
            match end(entry) {
                RunEnd::Before if before > start => {
                    stop = before;
                    break;
                }
                RunEnd::After => {
                    stop = behind;
                    break;
                }
                _ => before = behind,
            }
        }
        self.at = stop;
        start..stop
    }
}

/// Whether a run of records ends at an entry.
pub(crate) enum RunEnd {
    No,
    Before,
    After,
}

/// See [`Trace::ordered`].
#[derive(Debug)]
pub struct Ordered<'a> {
    trace: &'a Trace,
    cursors: Vec<Cursor>,
    /// Streams that are not in `next` since their next run has not been read.
    unread: Vec<usize>,
    /// The order numbers of the next runs of the other streams.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Ordered<'_> {
    /// The next run. After an error, the next call continues after the chunk that could not be read.
    pub fn next_run(&mut self) -> Result<Option<RecordRun<'_>>, Error> {
        while let Some(&stream) = self.unread.last() {
            let cursor = &mut self.cursors[stream];
            if cursor.fill(self.trace)? {
                self.next.push(Reverse((cursor.order, stream)));
            }
            self.unread.pop();
        }
        let Some(Reverse((order, stream))) = self.next.pop() else { return Ok(None) };
        self.unread.push(stream);
        let cursor = &mut self.cursors[stream];
        let chunk = cursor.chunk;
        let range = cursor.take(self.trace, |entry| match entry {
            Entry::Mark(Mark::Order(_)) => RunEnd::Before,
            _ => RunEnd::No,
        });
        Ok(Some(RecordRun { stream: stream as u32, order, chunk, words: &cursor.words[range] }))
    }
}

/// A processor with the streams that it executes.
#[derive(Clone, Debug, Default)]
struct OrderedProcessor {
    /// The streams that have not ended, in the order of their turns.
    waiting: VecDeque<usize>,
    /// Number of instructions executed.
    time: u64,
}

/// See [`Trace::schedule`].
#[derive(Debug)]
pub struct TimeSchedule<'a> {
    trace: &'a Trace,
    cursors: Vec<Cursor>,
    processors: Vec<OrderedProcessor>,
    quantum: u64,
}

impl TimeSchedule<'_> {
    /// The next time slice. After an error, the next call continues after the chunk that could not be read.
    pub fn next_slice(&mut self) -> Result<Option<TimeSlice<'_>>, Error> {
        let (number, stream) = loop {
            let busy = self.processors.iter_mut().enumerate().filter(|(_, one)| !one.waiting.is_empty());
            let Some((number, processor)) = busy.min_by_key(|(_, one)| one.time) else { return Ok(None) };
            let Some(&stream) = processor.waiting.front() else { return Ok(None) };
            let is_filled = self.cursors[stream].fill(self.trace)?;
            processor.waiting.pop_front();
            if is_filled {
                break (number, stream);
            }
        };
        let mut left = self.quantum;
        let mut instructions = 0;
        let shapes = self.trace.shapes();
        let range = self.cursors[stream].take(self.trace, |entry| match entry {
            Entry::Execution(one) => {
                let count = u64::from(shapes[one.block as usize].instructions);
                instructions += count;
                left = left.saturating_sub(count);
                if left == 0 { RunEnd::After } else { RunEnd::No }
            }
            Entry::Mark(Mark::SystemCall(_)) => RunEnd::After,
            Entry::Mark(_) => RunEnd::No,
        });
        let processor = &mut self.processors[number];
        processor.waiting.push_back(stream);
        let time = processor.time;
        processor.time += instructions;
        let Cursor { chunk, ref words, .. } = self.cursors[stream];
        let words = &words[range];
        Ok(Some(TimeSlice { processor: number as u32, stream: stream as u32, time, chunk, words }))
    }
}
