//! Which call of another thread a thread waited for in the system.
//!
//! A thread that waits in `futex` is woken by another thread's call of it. Both have used the word that they wait on by
//! load-locked or store-conditional shortly before: that is how the calls are matched, as traces have no arguments. The word that
//! was used last is most likely the one; and a call of the same instruction is another thread's wait rather than its wake-up:
//! threads that left one barrier wait at the next.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::{Chunk, Trace};
use events::BlockId;
use events::record::{Entries, Entry, Mark};

/// Words that were used last.
const WORDS: usize = 8;
/// Calls of another thread that are compared with one that waited.
const MOST_COMPARED: usize = 1000;
/// Those of them that had ended when the wait began: a thread does not sleep if the word changes before its call.
const MOST_ENDED: usize = 8;

/// A call of `futex`.
#[derive(Clone, Copy, Debug)]
struct FutexCall {
    /// The order number of the instructions before it, and of those after it.
    start: u64,
    end: u64,
    /// The instruction that made it, if its thread had executed one.
    instruction: Option<u64>,
    /// The words that its thread used by locked accesses since its last call, the last one first; 0 for none. A call that was
    /// interrupted and made again has those of the first time.
    words: [u64; WORDS],
}

/// How well a call of another thread explains that one continued: the largest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WakeMatch {
    /// Processes wake each other in shared memory, which they mostly map at the same address.
    is_same_process: bool,
    is_other_instruction: bool,
    /// How recently the thread that waited had used the common word.
    recency: Reverse<usize>,
    is_overlapping: bool,
    /// The order number of the instructions before the call.
    start: u64,
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
                let is_same_process = processes[other] == processes[stream];
                Some((waker(&calls[other].calls, call, is_same_process)?, other))
            });
            if let Some((found_match, other)) = wakers.max() {
                found.insert((stream, call.end), (other, found_match.start));
            }
        }
    }
    found
}

/// The call of a thread that best explains that one continued which waited.
fn waker(calls: &[FutexCall], waited: &FutexCall, is_same_process: bool) -> Option<WakeMatch> {
    let before = calls.partition_point(|call| call.start < waited.end);
    let mut ended = 0;
    let latest = calls[..before].iter().rev().take(MOST_COMPARED).take_while(|call| {
        ended += usize::from(call.end <= waited.start);
        ended <= MOST_ENDED
    });
    let matches = latest.filter_map(|call| {
        let is_common = |word: &u64| *word != 0 && call.words.contains(word);
        let recency = Reverse(waited.words.iter().position(is_common)?);
        let is_other_instruction = call.instruction.is_none() || call.instruction != waited.instruction;
        let (is_overlapping, start) = (call.end > waited.start, call.start);
        // Whether it slept is not known: other words are no sign of a call that had ended.
        let is_likely = is_overlapping || is_other_instruction && recency.0 == 0;
        is_likely.then_some(WakeMatch {
            is_same_process,
            is_other_instruction,
            recency,
            is_overlapping,
            start,
        })
    });
    matches.max()
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
    /// Whether they are those of a call.
    are_of_call: bool,
    /// The block that was executed last.
    block: Option<BlockId>,
    /// The call after which no order mark has come.
    open: Option<FutexCall>,
}

impl CallScan {
    fn chunk(&mut self, trace: &Trace, locked: &[Vec<usize>], mut order: u64, words: &[u64]) {
        let futex = trace.instruction_set().control_calls().futex;
        for entry in Entries::new(words, trace.shapes()) {
            match entry {
                Entry::Execution(one) => {
                    self.block = Some(one.block);
                    for &number in &locked[one.block as usize] {
                        self.used(one.addresses[number]);
                    }
                }
                Entry::Mark(Mark::Order(number)) => {
                    order = number;
                    self.calls.extend(self.open.take().map(|call| FutexCall { end: number, ..call }));
                }
                Entry::Mark(Mark::SystemCall(number)) if number == futex => {
                    let block = self.block.map(|block| &trace.blocks()[block as usize]);
                    let instruction =
                        block.map(|block| block.address_of(block.words.len().saturating_sub(1)));
                    self.open = Some(FutexCall { start: order, end: 0, instruction, words: self.words });
                    self.are_of_call = true;
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
        if std::mem::take(&mut self.are_of_call) {
            self.words = [0; WORDS];
        }
        // The word comes to the front, in instruction of an earlier use of it or of the last one.
        let at = self.words.iter().position(|&other| other == word).unwrap_or(WORDS - 1);
        self.words[..=at].rotate_right(1);
        self.words[0] = word;
    }
}
