//! Merges the streams of a trace as if their threads ran at the same time, each on its processor, at the same speed.
//!
//! A trace has the order of threads only where it has order marks: at each system call, and otherwise every few thousand
//! instructions. It was recorded on few processors of the host, on which a thread may have run alone for milliseconds.
//! Here all threads that can run take turns of few instructions. Two things make a thread wait:
//!
//! - it begins when the call that created it was made, or else where the trace has its beginning;
//! - after a call of `futex` that another thread's call ended, it continues when that call was made;
//! - after another system call in which it may have waited for others, and after instructions that were not recorded, it
//!   continues when all others have executed what they executed before, by the trace's order marks.
//!
//! All else, such as the order in which threads take a free lock, follows from the turns: it is a possible execution's as
//! far as memory is concerned, not the recorded one's.

mod wake_ups;

use std::collections::{HashMap, VecDeque};

use wake_ups::WakeUps;

use crate::order::{Cursor, End, TimeSlice};
use crate::{Chunk, Error, Trace};
use events::record::{Entry, Mark};

/// The number of instructions after which a thread makes room for another one on its processor.
pub const TIME_SLICE: u64 = 100_000;

impl Trace {
    /// The processor of each stream: in the order of processes and of the threads in them, one after the other.
    pub fn assignment(&self, processors: u32) -> Vec<u32> {
        let streams = self.streams();
        let mut order: Vec<usize> = (0..streams.len()).collect();
        order.sort_by_key(|&stream| (streams[stream].process, streams[stream].thread));
        let mut assignment = vec![0; streams.len()];
        for (stream, processor) in order.into_iter().zip((0..processors.max(1)).cycle()) {
            assignment[stream] = processor;
        }
        assignment
    }

    /// All records of the selected chunks as if the streams ran at the same time on a number of processors. Each stream has
    /// one processor ([`Trace::assignment`]). Processors take turns of `quantum` instructions; streams on the same processor
    /// alternate after [`TIME_SLICE`] instructions, or where one waits.
    pub fn interleaved_where(
        &self,
        processors: u32,
        quantum: u64,
        is_wanted: impl Fn(&Chunk) -> bool,
    ) -> Interleaved<'_> {
        let cursors = self.cursors(&is_wanted);
        let mut queues = vec![Queue::default(); processors.max(1) as usize];
        for (stream, processor) in self.assignment(processors).into_iter().enumerate() {
            if !cursors[stream].chunks.is_empty() {
                queues[processor as usize].streams.push_back(stream);
            }
        }
        Interleaved {
            trace: self,
            waits: self.streams().iter().map(|_| Waits::ToBegin).collect(),
            has_ended: vec![false; cursors.len()],
            orders: vec![0; cursors.len()],
            cursors,
            next: queues.len(),
            processors: queues,
            quantum: quantum.max(1),
            lowest: 0,
            wake_ups: wake_ups::wake_ups(self, is_wanted),
            created: HashMap::new(),
        }
    }
}

/// What a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Nothing.
    No,
    /// It has not begun.
    ToBegin,
    /// After a call that may have waited, or after instructions that were not recorded: for the call that woke it, or until
    /// no other stream has earlier records.
    ForOthers,
}

/// A processor with its streams.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The streams that have not ended; the first one runs.
    streams: VecDeque<usize>,
    /// Number of instructions executed.
    time: u64,
    /// Instructions of the first stream since it came first.
    of_first: u64,
}

/// See [`Trace::interleaved_where`].
#[derive(Debug)]
pub struct Interleaved<'a> {
    trace: &'a Trace,
    cursors: Vec<Cursor>,
    /// By stream.
    waits: Vec<Waits>,
    has_ended: Vec<bool>,
    processors: Vec<Queue>,
    /// The processor whose turn is next in this round.
    next: usize,
    quantum: u64,
    /// By stream, the order number of its next instructions, when the round began.
    orders: Vec<u64>,
    /// The lowest of them.
    lowest: u64,
    wake_ups: WakeUps,
    /// By process, the calls that have created threads.
    created: HashMap<u32, u32>,
}

impl Interleaved<'_> {
    /// The next turn. After an error, the next call continues after the chunk that could not be read.
    pub fn next_slice(&mut self) -> Result<Option<TimeSlice<'_>>, Error> {
        let (number, stream) = loop {
            if self.next == self.processors.len() && !self.begin_round()? {
                return Ok(None);
            }
            let number = self.next;
            self.next += 1;
            if let Some(stream) = self.choose(number) {
                break (number, stream);
            }
        };
        let (instructions, slice) = self.turn(stream);
        let processor = &mut self.processors[number];
        let time = processor.time;
        processor.time += instructions;
        processor.of_first += instructions;
        let Cursor { chunk, ref words, .. } = self.cursors[stream];
        let (processor, stream) = (number as u32, stream as u32);
        Ok(Some(TimeSlice { processor, stream, time, chunk, words: &words[slice] }))
    }

    /// Reads what streams need, and removes those that have ended. False if all have.
    fn begin_round(&mut self) -> Result<bool, Error> {
        let mut lowest = None;
        for processor in &mut self.processors {
            let mut index = 0;
            while let Some(&stream) = processor.streams.get(index) {
                let cursor = &mut self.cursors[stream];
                if cursor.fill(self.trace)? {
                    self.orders[stream] = next_order(cursor, self.trace);
                    lowest = Some(self.orders[stream].min(lowest.unwrap_or(u64::MAX)));
                    index += 1;
                } else {
                    self.has_ended[stream] = true;
                    processor.streams.remove(index);
                    processor.of_first = if index == 0 { 0 } else { processor.of_first };
                }
            }
        }
        self.next = 0;
        self.lowest = lowest.unwrap_or(0);
        Ok(lowest.is_some())
    }

    /// The stream that runs on a processor: the first one that does not wait.
    fn choose(&mut self, number: usize) -> Option<usize> {
        let processor = &self.processors[number];
        let skipped = usize::from(processor.of_first >= TIME_SLICE);
        let count = processor.streams.len();
        let order = (0..count).map(|index| (index + skipped) % count);
        let chosen = order.into_iter().find(|&index| self.can_run(processor.streams[index]))?;
        let processor = &mut self.processors[number];
        if chosen != 0 || skipped != 0 {
            processor.streams.rotate_left(chosen);
            processor.of_first = 0;
        }
        processor.streams.front().copied()
    }

    fn can_run(&self, stream: usize) -> bool {
        let is_lowest = self.orders[stream] <= self.lowest;
        match self.waits[stream] {
            Waits::No => true,
            Waits::ToBegin => is_lowest || self.is_created(stream),
            Waits::ForOthers => is_lowest || self.is_awake(stream),
        }
    }

    /// Whether the call was made that woke a stream.
    fn is_awake(&self, stream: usize) -> bool {
        let Some(&(waker, start)) = self.wake_ups.get(&(stream, self.orders[stream])) else { return false };
        self.has_ended[waker] || self.orders[waker] > start
    }

    /// Whether the thread was created by its process: the first thread is not, the next one is by the first call.
    fn is_created(&self, stream: usize) -> bool {
        let stream = &self.trace.streams()[stream];
        let created = self.created.get(&stream.process).copied().unwrap_or(0);
        (1..=created).contains(&stream.thread)
    }

    /// Takes a turn of a stream: the number of its instructions, and its words.
    fn turn(&mut self, stream: usize) -> (u64, std::ops::Range<usize>) {
        let calls = self.trace.instruction_set().control_calls();
        let shapes = self.trace.shapes();
        let (mut instructions, mut created) = (0, 0);
        let cursor = &mut self.cursors[stream];
        let (mut order, mut waits) = (cursor.order, self.waits[stream]);
        let quantum = self.quantum;
        let range = cursor.take(self.trace, |entry| match entry {
            Entry::Execution(one) => {
                waits = Waits::No;
                instructions += u64::from(shapes[one.block as usize].instructions);
                if instructions >= quantum { End::Behind } else { End::No }
            }
            Entry::Mark(Mark::Order(number)) => {
                order = number;
                // It has waited long enough for what follows.
                waits = if waits == Waits::ForOthers { Waits::No } else { waits };
                End::No
            }
            Entry::Mark(Mark::SystemCall(number)) => {
                created += u32::from(number == calls.creates_thread);
                if calls.may_wait.contains(&number) {
                    waits = Waits::ForOthers;
                    return End::Behind;
                }
                End::No
            }
            // A stream may begin with a gap: it was created, and did nothing before.
            Entry::Mark(Mark::Gap) if waits != Waits::ToBegin => {
                waits = Waits::ForOthers;
                End::Behind
            }
            Entry::Mark(_) => End::No,
        });
        cursor.order = order;
        self.waits[stream] = waits;
        *self.created.entry(self.trace.streams()[stream].process).or_default() += created;
        (instructions, range)
    }
}

/// The order number of the next instructions at a cursor.
fn next_order(cursor: &Cursor, trace: &Trace) -> u64 {
    let mut marks = cursor.entries(trace).map_while(|entry| match entry {
        Entry::Mark(mark) => Some(mark),
        Entry::Execution(_) => None,
    });
    let order = marks.find_map(|mark| match mark {
        Mark::Order(number) => Some(number),
        _ => None,
    });
    order.unwrap_or(cursor.order)
}
