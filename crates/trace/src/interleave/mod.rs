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

use crate::order::{Cursor, RunEnd, TimeSlice};
use crate::{Chunk, Error, Trace};
use events::record::{Entries, Entry, MappingEvent, Mark};

/// Which processor executes which stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assignment {
    /// Each stream has one processor ([`Trace::assignment`]), on which it alternates with others.
    #[default]
    Affinity,
    /// As with affinity, but in the recorded order: one stream at a time.
    Recorded,
    /// All streams that can run wait in one queue. A processor takes the first one, and puts it back after a time slice.
    RoundRobin,
    /// As round robin, but a stream keeps its processor until it waits.
    RunToBlock,
}

/// How streams are executed as if at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The number of processors.
    pub processors: u32,
    /// Processors take turns of this many instructions.
    pub quantum: u64,
    /// Which processor executes which stream.
    pub assignment: Assignment,
    /// The number of instructions after which a stream makes room for another one on its processor.
    pub time_slice: u64,
    /// Streams that have begun never wait, as if clients always asked the next question at once. Where a unit of work ends, a
    /// stream makes room for another one. Without effect on the recorded order.
    pub is_saturated: bool,
}

impl Schedule {
    /// The time slice unless the caller names one.
    pub const TIME_SLICE: u64 = 100_000;

    /// With affinity, in turns of `quantum` instructions.
    pub fn new(processors: u32, quantum: u64) -> Schedule {
        Schedule {
            processors,
            quantum,
            assignment: Assignment::Affinity,
            time_slice: Schedule::TIME_SLICE,
            is_saturated: false,
        }
    }

    /// Whether streams that have begun are executed without waiting for what wakes them.
    fn never_waits(&self) -> bool {
        self.is_saturated || self.assignment == Assignment::Recorded
    }
}

impl Trace {
    /// The processor of each stream, if it has only one: in the order of processes and of the threads in them, one after the
    /// other. Streams without instructions, which say only what processes share, take none of their own.
    pub fn assignment(&self, processors: u32) -> Vec<u32> {
        let streams = self.streams();
        let has_instructions = |&stream: &usize| {
            self.stream_chunks(stream as u32).iter().any(|&chunk| self.chunks()[chunk].instructions > 0)
        };
        let mut order: Vec<usize> = (0..streams.len()).filter(has_instructions).collect();
        order.sort_by_key(|&stream| (streams[stream].process, streams[stream].thread));
        let mut assignment = vec![0; streams.len()];
        for (stream, processor) in order.into_iter().zip((0..processors.max(1)).cycle()) {
            assignment[stream] = processor;
        }
        assignment
    }

    /// All records of the selected chunks as if the streams ran at the same time on a number of processors.
    pub fn interleaved_where(
        &self,
        schedule: Schedule,
        is_wanted: impl Fn(&Chunk) -> bool,
    ) -> Interleaved<'_> {
        let cursors = self.cursors(&is_wanted);
        let schedule =
            Schedule { processors: schedule.processors.max(1), quantum: schedule.quantum.max(1), ..schedule };
        let is_fixed = matches!(schedule.assignment, Assignment::Affinity | Assignment::Recorded);
        let queue_of = match is_fixed {
            true => self.assignment(schedule.processors),
            false => vec![0; cursors.len()],
        };
        let mut queues = vec![VecDeque::new(); schedule.processors as usize];
        for (stream, queue) in queue_of.into_iter().enumerate() {
            if !cursors[stream].chunks.is_empty() {
                queues[queue as usize].push_back(stream);
            }
        }
        let processor = |number: u32| SimulatedProcessor {
            queue: if is_fixed { number as usize } else { 0 },
            ..SimulatedProcessor::default()
        };
        Interleaved {
            trace: self,
            waits: self.streams().iter().map(|_| Waits::ToBegin).collect(),
            has_ended: vec![false; cursors.len()],
            orders: vec![0; cursors.len()],
            cursors,
            next: schedule.processors as usize,
            queues,
            processors: (0..schedule.processors).map(processor).collect(),
            lowest: 0,
            // They are found by reading everything once more: only where streams wait for each other.
            wake_ups: match schedule.never_waits() {
                true => WakeUps::new(),
                false => wake_ups::wake_ups(self, &is_wanted),
            },
            parents: parents(self, is_wanted),
            created: HashMap::new(),
            schedule,
        }
    }
}

/// By process, the process that forked it, as far as its first records say so.
fn parents(trace: &Trace, is_wanted: impl Fn(&Chunk) -> bool) -> HashMap<u32, u32> {
    let mut words = Vec::new();
    let mut parents = HashMap::new();
    for (number, stream) in trace.streams().iter().enumerate() {
        let first = trace.stream_chunks(number as u32).first().copied();
        let Some(first) = first.filter(|&first| is_wanted(&trace.chunks()[first])) else { continue };
        // The error is reported when the chunk is read again.
        if trace.read(first, &mut words).is_err() {
            continue;
        }
        let marks = Entries::new(&words, trace.shapes()).map_while(|entry| match entry {
            Entry::Mark(mark) => Some(mark),
            Entry::Execution(_) => None,
        });
        for mark in marks {
            if let Mark::Mapping(MappingEvent::Copied(parent)) = mark {
                parents.insert(stream.process, parent);
            }
        }
    }
    parents
}

/// The reason for which a stream waits.
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

/// The action of a processor in its turn.
#[derive(Debug)]
pub enum Turn<'a> {
    /// It executes these records.
    Slice(TimeSlice<'a>),
    /// All of its streams wait for others.
    Idle,
    /// All streams have ended.
    Over,
}

/// The part of a stream that was executed in a turn.
struct TurnTaken {
    instructions: u64,
    /// A unit of work has ended, and the stream makes room for others.
    has_ended_unit: bool,
    /// The range of its words.
    words: std::ops::Range<usize>,
}

/// A processor.
#[derive(Clone, Debug, Default)]
struct SimulatedProcessor {
    /// Its queue of streams.
    queue: usize,
    /// The stream that it executes, which is in no queue.
    current: Option<usize>,
    /// Number of instructions executed.
    time: u64,
    /// Instructions of the current stream since it got the processor.
    of_current: u64,
    /// The current stream makes room for others, as its unit of work has ended.
    has_ended_unit: bool,
}

/// See [`Trace::interleaved_where`].
#[derive(Debug)]
pub struct Interleaved<'a> {
    trace: &'a Trace,
    cursors: Vec<Cursor>,
    /// By stream.
    waits: Vec<Waits>,
    has_ended: Vec<bool>,
    processors: Vec<SimulatedProcessor>,
    /// Streams that no processor executes at present, the next one first.
    queues: Vec<VecDeque<usize>>,
    /// The processor whose turn is next in this round.
    next: usize,
    schedule: Schedule,
    /// By stream, the order number of its next instructions, when the round began.
    orders: Vec<u64>,
    /// The lowest of them.
    lowest: u64,
    wake_ups: WakeUps,
    parents: HashMap<u32, u32>,
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
        Ok(Some(self.slice(number, stream)))
    }

    /// The next turn of a processor, for those who know which one is next: each call looks at all streams.
    pub fn next_of(&mut self, processor: u32) -> Result<Turn<'_>, Error> {
        let is_over = !self.begin_round()?;
        let number = (processor as usize).min(self.processors.len() - 1);
        Ok(match self.choose(number) {
            Some(stream) => Turn::Slice(self.slice(number, stream)),
            None if is_over => Turn::Over,
            None => Turn::Idle,
        })
    }

    /// Takes the turn of a stream.
    fn slice(&mut self, number: usize, stream: usize) -> TimeSlice<'_> {
        let TurnTaken { instructions, has_ended_unit, words: slice } = self.turn(stream);
        let processor = &mut self.processors[number];
        processor.has_ended_unit = has_ended_unit;
        let time = processor.time;
        processor.time += instructions;
        processor.of_current += instructions;
        let Cursor { chunk, ref words, .. } = self.cursors[stream];
        let (processor, stream) = (number as u32, stream as u32);
        TimeSlice { processor, stream, time, chunk, words: &words[slice] }
    }

    /// Reads what streams need, and removes those that have ended. False if all have.
    fn begin_round(&mut self) -> Result<bool, Error> {
        let mut lowest = None;
        for (stream, cursor) in self.cursors.iter_mut().enumerate() {
            if self.has_ended[stream] {
                continue;
            }
            if cursor.fill(self.trace)? {
                self.orders[stream] = next_order(cursor, self.trace);
                lowest = Some(self.orders[stream].min(lowest.unwrap_or(u64::MAX)));
                continue;
            }
            self.has_ended[stream] = true;
            self.queues.iter_mut().for_each(|queue| queue.retain(|&other| other != stream));
            for processor in self.processors.iter_mut().filter(|one| one.current == Some(stream)) {
                processor.current = None;
            }
        }
        self.next = 0;
        self.lowest = lowest.unwrap_or(0);
        Ok(lowest.is_some())
    }

    /// The stream that runs on a processor: the current one, or the first one in the queue that does not wait.
    fn choose(&mut self, number: usize) -> Option<usize> {
        let SimulatedProcessor { queue, current, of_current, has_ended_unit, .. } = self.processors[number];
        let has_time_slices = self.schedule.assignment != Assignment::RunToBlock;
        let is_over = has_ended_unit || has_time_slices && of_current >= self.schedule.time_slice;
        let current = current.filter(|&stream| self.can_run(stream));
        if current.is_some() && !is_over {
            return current;
        }
        let next = self.queues[queue].iter().position(|&stream| self.can_run(stream));
        let Some(next) = next.and_then(|next| self.queues[queue].remove(next)) else { return current };
        let processor = &mut self.processors[number];
        processor.of_current = 0;
        self.queues[queue].extend(processor.current.replace(next));
        Some(next)
    }

    fn can_run(&self, stream: usize) -> bool {
        let is_lowest = self.orders[stream] <= self.lowest;
        match self.waits[stream] {
            _ if self.schedule.assignment == Assignment::Recorded => is_lowest,
            Waits::No => true,
            Waits::ToBegin => is_lowest || self.is_created(stream) || self.is_forked(stream),
            Waits::ForOthers => is_lowest || self.is_awake(stream),
        }
    }

    /// Whether the process was forked: all streams of its parent have executed what comes before.
    fn is_forked(&self, stream: usize) -> bool {
        let (streams, order) = (self.trace.streams(), self.orders[stream]);
        let Some(&parent) = self.parents.get(&streams[stream].process) else { return false };
        let mut of_parent = (0..streams.len()).filter(|&other| streams[other].process == parent);
        streams[stream].thread == 0
            && of_parent.all(|other| self.has_ended[other] || self.orders[other] >= order)
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

    /// Takes a turn of a stream.
    fn turn(&mut self, stream: usize) -> TurnTaken {
        let calls = self.trace.instruction_set().control_calls();
        let shapes = self.trace.shapes();
        let (mut instructions, mut created, mut has_ended_unit) = (0, 0, false);
        let cursor = &mut self.cursors[stream];
        let (mut order, mut waits) = (cursor.order, self.waits[stream]);
        let Schedule { quantum, assignment, .. } = self.schedule;
        let is_saturated = self.schedule.is_saturated && assignment != Assignment::Recorded;
        let words = cursor.take(self.trace, |entry| match entry {
            Entry::Execution(one) => {
                waits = Waits::No;
                instructions += u64::from(shapes[one.block as usize].instructions);
                if instructions >= quantum { RunEnd::After } else { RunEnd::No }
            }
            Entry::Mark(Mark::Order(number)) => {
                order = number;
                // It has waited long enough for what follows.
                waits = if waits == Waits::ForOthers { Waits::No } else { waits };
                // What another stream has executed in between comes first.
                if assignment == Assignment::Recorded { RunEnd::Before } else { RunEnd::No }
            }
            Entry::Mark(Mark::SystemCall(number)) => {
                created += u32::from(number == calls.creates_thread);
                if !is_saturated && calls.may_wait.contains(&number) {
                    waits = Waits::ForOthers;
                    return RunEnd::After;
                }
                RunEnd::No
            }
            // A stream may begin with a gap: it was created, and did nothing before.
            Entry::Mark(Mark::Gap) if !is_saturated && waits != Waits::ToBegin => {
                waits = Waits::ForOthers;
                RunEnd::After
            }
            Entry::Mark(Mark::UnitEnds(_) | Mark::UnitLeft(_) | Mark::UnitCut(_)) if is_saturated => {
                has_ended_unit = true;
                RunEnd::After
            }
            Entry::Mark(_) => RunEnd::No,
        });
        cursor.order = order;
        self.waits[stream] = waits;
        *self.created.entry(self.trace.streams()[stream].process).or_default() += created;
        TurnTaken { instructions, has_ended_unit, words }
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
