//! Reads the records of a replay ahead, in a thread.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use trace::interleave::Schedule;
use trace::order::TimeSlice;
use trace::{Chunk, Error, Trace};

/// The order in which threads are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayOrder {
    /// The order of execution.
    #[default]
    Time,
    /// As if the threads were scheduled on processors, round robin on each one.
    Processors {
        /// The number of processors.
        processors: u32,
        /// The time slice in instructions.
        quantum: u64,
    },
    /// As if the threads ran at the same time, in turns of few instructions, as far as the trace does not say that one
    /// waited for another ([`trace::interleave`]).
    Interleaved(Schedule),
}

/// Consecutive records of one thread, from one chunk.
#[derive(Clone, Debug)]
pub struct RecordSlice {
    /// The thread: an index of [`Trace::streams`].
    pub stream: u32,
    /// The processor, unless the order is that of time.
    pub processor: Option<u32>,
    /// Their chunk.
    pub chunk: usize,
    /// Their range in [`RecordBatch::words`].
    words: Range<usize>,
}

/// Slices that are sent together.
#[derive(Debug, Default)]
pub struct RecordBatch {
    /// The words of all slices.
    words: Vec<u64>,
    /// The slices, in order.
    slices: Vec<RecordSlice>,
}

/// Words and slices at which a batch is sent.
const MAX_WORDS: usize = 1 << 18;
const MAX_SLICES: usize = 1 << 12;

/// Reads chunks in a thread, and sends batches, or the errors of chunks that cannot be read.
pub fn read<'scope, 'trace: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    trace: &'trace Trace,
    order: ReplayOrder,
    is_selected: impl Fn(&Chunk) -> bool + Send + 'scope,
) -> Receiver<Result<RecordBatch, Error>> {
    let (sender, receiver) = sync_channel(1);
    scope.spawn(move || match order {
        ReplayOrder::Time => {
            let mut slices = trace.ordered_where(is_selected);
            gather(&sender, |batch| {
                let slice = slices.next_run()?;
                Ok(slice.map(|slice| batch.add(slice.stream, None, slice.chunk, slice.words)).is_some())
            });
        }
        ReplayOrder::Processors { processors, quantum } => {
            let mut turns = trace.schedule_where(processors, quantum, is_selected);
            gather(&sender, |batch| Ok(turns.next_slice()?.map(|slice| batch.add_slice(slice)).is_some()));
        }
        ReplayOrder::Interleaved(schedule) => {
            let mut turns = trace.interleaved_where(schedule, is_selected);
            gather(&sender, |batch| Ok(turns.next_slice()?.map(|slice| batch.add_slice(slice)).is_some()));
        }
    });
    receiver
}

/// Sends the batches that `next` fills, until it adds no more or the receiver is gone.
fn gather(
    sender: &SyncSender<Result<RecordBatch, Error>>,
    mut next: impl FnMut(&mut RecordBatch) -> Result<bool, Error>,
) {
    let mut batch = RecordBatch::default();
    loop {
        let (is_more, error) = match next(&mut batch) {
            Ok(is_more) => (is_more, None),
            Err(error) => (true, Some(error)),
        };
        let is_full = batch.words.len() >= MAX_WORDS || batch.slices.len() >= MAX_SLICES;
        if (is_full || !is_more || error.is_some()) && sender.send(Ok(std::mem::take(&mut batch))).is_err() {
            return;
        }
        if error.is_some_and(|error| sender.send(Err(error)).is_err()) || !is_more {
            return;
        }
    }
}

impl RecordBatch {
    /// The slices with their words, in order.
    pub fn slices(&self) -> impl Iterator<Item = (&RecordSlice, &[u64])> {
        self.slices.iter().map(|slice| (slice, &self.words[slice.words.clone()]))
    }

    fn add_slice(&mut self, slice: TimeSlice) {
        self.add(slice.stream, Some(slice.processor), slice.chunk, slice.words);
    }

    fn add(&mut self, stream: u32, processor: Option<u32>, chunk: usize, words: &[u64]) {
        let start = self.words.len();
        self.words.extend_from_slice(words);
        self.slices.push(RecordSlice { stream, processor, chunk, words: start..self.words.len() });
    }
}
