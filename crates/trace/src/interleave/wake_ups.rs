//! Which call of another thread a thread waited for in the system.
//!
//! A thread that waits in `futex` is woken by another thread's call of it. Both have used the word that they wait on by
//! load-locked or store-conditional shortly before: that is how the calls are matched, as traces have no arguments.

use std::collections::BTreeMap;

use crate::{Chunk, Trace};
use events::record::{Entries, Entry, Mark};

/// Words that were used last.
const WORDS: usize = 8;
/// Calls of another thread that are compared with one that waited.
const MOST_COMPARED: usize = 1000;

/// A call of `futex`.
#[derive(Clone, Copy, Debug)]
struct FutexCall {
    /// The order number of the instructions before it, and of those after it.
    start: u64,
    end: u64,
    /// The words that its thread used last by locked accesses; 0 for none.
    words: [u64; WORDS],
}

/// By stream and order number of the instructions after a call: the stream that woke the thread, and the order number of
/// the instructions before its call.
pub(super) type WakeUps = BTreeMap<(usize, u64), (usize, u64)>;

/// Finds the wake-ups of the selected chunks. Those in chunks that cannot be read are not found.
pub(super) fn wake_ups(trace: &Trace, is_wanted: impl Fn(&Chunk) -> bool) -> WakeUps {
    let mut calls: Vec<CallScan> = trace.streams().iter().map(|_| CallScan::default()).collect();
    let locked = locked_accesses(trace);
    let mut words = Vec::new();
    for (index, chunk) in trace.chunks().iter().enumerate().filter(|(_, chunk)| is_wanted(chunk)) {
        // The error is reported when the chunk is read again.
        if let (Ok(()), Some(scan)) = (trace.read(index, &mut words), calls.get_mut(chunk.stream as usize)) {
            scan.chunk(trace, &locked, chunk.order, &words);
        }
    }
    calls.iter_mut().for_each(CallScan::end);
    let processes: Vec<u32> = trace.streams().iter().map(|stream| stream.process).collect();
    let mut found = WakeUps::new();
    for (stream, scan) in calls.iter().enumerate() {
        for call in &scan.calls {
            let wakers = (0..calls.len()).filter(|&other| other != stream).filter_map(|other| {
                Some((processes[other] == processes[stream], waker(&calls[other].calls, call)?, other))
            });
            // Processes wake each other in shared memory, which they mostly map at the same address.
            if let Some((_, start, other)) = wakers.max() {
                found.insert((stream, call.end), (other, start));
            }
        }
    }
    found
}

/// The last of a thread's calls that can have woken one that waited: its order number.
fn waker(calls: &[FutexCall], waited: &FutexCall) -> Option<u64> {
    let before = calls.partition_point(|call| call.start < waited.end);
    let overlapping =
        calls[..before].iter().rev().take(MOST_COMPARED).take_while(|call| call.end > waited.start);
    let matches = |call: &&FutexCall| call.words.iter().any(|word| *word != 0 && waited.words.contains(word));
    overlapping.into_iter().find(matches).map(|call| call.start)
}

/// By block, the numbers of its locked accesses.
fn locked_accesses(trace: &Trace) -> Vec<Vec<usize>> {
    let of_block = |block: &events::Block| {
        let accesses = block
            .words
            .iter()
            .filter_map(|&word| block.instruction_set.summary(word))
            .flat_map(|one| one.accesses());
        accesses.enumerate().filter(|(_, access)| access.is_locked).map(|(number, _)| number).collect()
    };
    trace.blocks().iter().map(of_block).collect()
}

/// The calls of a stream, in the course of reading it.
#[derive(Debug, Default)]
struct CallScan {
    calls: Vec<FutexCall>,
    words: [u64; WORDS],
    next: usize,
    /// The call after which no order mark has come.
    open: Option<FutexCall>,
}

impl CallScan {
    fn chunk(&mut self, trace: &Trace, locked: &[Vec<usize>], mut order: u64, words: &[u64]) {
        let futex = trace.instruction_set().control_calls().futex;
        for entry in Entries::new(words, trace.shapes()) {
            match entry {
                Entry::Execution(one) => {
                    for &number in &locked[one.block as usize] {
                        self.used(one.addresses[number]);
                    }
                }
                Entry::Mark(Mark::Order(number)) => {
                    order = number;
                    self.calls.extend(self.open.take().map(|call| FutexCall { end: number, ..call }));
                }
                Entry::Mark(Mark::SystemCall(number)) if number == futex => {
                    self.open = Some(FutexCall { start: order, end: 0, words: self.words });
                    self.words = [0; WORDS];
                }
                Entry::Mark(_) => {}
            }
        }
    }

    /// The stream ends: its last call may have woken others.
    fn end(&mut self) {
        self.calls.extend(self.open.take().map(|call| FutexCall { end: u64::MAX, ..call }));
    }

    fn used(&mut self, address: u64) {
        let word = address & !7;
        if !self.words.contains(&word) {
            self.words[self.next] = word;
            self.next = (self.next + 1) % WORDS;
        }
    }
}
