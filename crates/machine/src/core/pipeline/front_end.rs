//! The front end: when each group of instructions arrives at the issue stage.

use events::Block;

use super::cycles::{Cause, LEVELS};
use super::description::Pipeline;
use super::memory::{ServedBy, Timing};
use super::resolve::L1Miss;
use super::scoreboard::EPOCH;
use crate::core::predictor::{BlockEnd, PredictorState};

/// The number of no line.
const NOWHERE: u64 = u64::MAX;

/// The greatest distance of a prefetched line from the last demand miss.
const FARTHEST: u64 = 64;

/// How control leaves a block.
#[derive(Clone, Copy)]
pub(super) struct BlockExit {
    end: BlockEnd,
    /// The address of its last instruction.
    last: u64,
    /// The address after it.
    next: u64,
    /// The next instruction begins a new group, wherever it is.
    leaves_group: bool,
}

impl BlockExit {
    /// The exit of a block; `traps` says that its last instruction traps.
    pub fn of(block: &Block, traps: bool) -> BlockExit {
        let last = block.address_of(block.words.len().saturating_sub(1));
        let end = block.words.last();
        let end = end.map_or(BlockEnd::Falls, |&word| BlockEnd::of(block.instruction_set, word, last));
        BlockExit { end, last, next: block.end(), leaves_group: traps }
    }
}

/// How a block is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockEntry {
    /// Within the group of the last instruction.
    SameGroup,
    /// With the next group; anywhere after a discontinuity.
    NextGroup,
    /// By a taken branch, predicted correctly.
    Taken,
    /// By a misprediction.
    Mispredicted,
}

impl BlockEntry {
    /// The number of ways.
    pub const COUNT: u32 = 4;
}

/// The instruction prefetcher's stream: the last line requested.
#[derive(Clone, Copy)]
struct PrefetchStream {
    line: u64,
    arrives: u64,
    level: u8,
}

impl PrefetchStream {
    /// The stream after a prefetched line, if it reaches that far: lines arrive one after the other.
    fn followed_by(self, line: u64, interval: u64) -> Option<PrefetchStream> {
        let distance = line.wrapping_sub(self.line);
        (distance <= FARTHEST).then(|| PrefetchStream {
            line,
            arrives: self.arrives + distance * interval,
            ..self
        })
    }
}

/// The front end. Times are those at which a group could be issued first.
pub(crate) struct FrontEnd {
    pub(crate) predictor: PredictorState,
    group_shift: u32,
    line_shift: u32,
    fetch_cycles: [u32; LEVELS + 1],
    pub(super) taken: u64,
    mispredict: u64,
    interval: u64,
    /// When the current group arrived.
    pub(super) arrived: u64,
    /// How the last block was left.
    exit: BlockExit,
    stream: PrefetchStream,
}

impl FrontEnd {
    pub fn new(
        pipeline: &Pipeline,
        predictor: PredictorState,
        timing: &Timing,
        group_shift: u32,
    ) -> FrontEnd {
        FrontEnd {
            predictor,
            group_shift,
            line_shift: timing.fetch_line.ilog2(),
            fetch_cycles: timing.fetch,
            taken: pipeline.taken.into(),
            mispredict: u64::from(pipeline.mispredict) + u64::from(timing.fetch_hit),
            interval: pipeline.prefetch_interval.into(),
            arrived: EPOCH,
            exit: BlockExit { end: BlockEnd::Falls, last: 0, next: 0, leaves_group: true },
            stream: PrefetchStream { line: NOWHERE, arrives: 0, level: 1 },
        }
    }

    /// A discontinuity: control continues anywhere.
    pub fn divert(&mut self) {
        self.exit.end = BlockEnd::Falls;
        self.exit.leaves_group = true;
    }

    /// Forgets the stream, as the process changes.
    pub fn reset_stream(&mut self) {
        self.stream.line = NOWHERE;
    }

    /// Leaves a block.
    #[inline(always)]
    pub(super) fn leave(&mut self, exit: BlockExit) {
        self.exit = exit;
    }

    /// Enters a block at `address`.
    #[inline(always)]
    pub(super) fn enter(&mut self, address: u64) -> BlockEntry {
        let by_branch = if self.exit.end == BlockEnd::Falls { None } else { self.resolve(address) };
        match by_branch {
            Some(true) => BlockEntry::Taken,
            Some(false) => BlockEntry::Mispredicted,
            None if !self.exit.leaves_group && self.continues_group(address) => BlockEntry::SameGroup,
            None => BlockEntry::NextGroup,
        }
    }

    /// Updates the predictor by a block at `address` with these misses of its lines. The prefetcher's stream ends.
    #[inline(always)]
    pub(super) fn warm(&mut self, address: u64, fetched: &[L1Miss], exit: BlockExit) {
        self.enter(address);
        let first = address >> self.line_shift;
        for miss in fetched.iter().filter(|miss| miss.served.level > 0 || miss.served.is_ahead) {
            self.refilled(first.wrapping_add(miss.number.into()));
        }
        self.reset_stream();
        self.leave(exit);
    }

    /// Whether a branch or jump was predicted correctly; None if control fell through it.
    #[inline]
    fn resolve(&mut self, address: u64) -> Option<bool> {
        let BlockExit { end, last: at, next, .. } = self.exit;
        let is_right = match end {
            BlockEnd::Falls => return None,
            BlockEnd::Conditional { target } => {
                let is_taken = address != next;
                if is_taken && address != target {
                    self.divert();
                    return None;
                }
                let is_right = self.predictor.branch(at, target, is_taken);
                if is_right && !is_taken {
                    return None;
                }
                is_right
            }
            BlockEnd::Branch { .. } => true,
            BlockEnd::Jump { hinted, .. } => self.predictor.jump(at, hinted, address),
            BlockEnd::Return { .. } => self.predictor.ret(at, address),
        };
        if end.is_call() {
            self.predictor.call(next);
        }
        Some(is_right)
    }

    /// When a group arrives if its line is present, and what delays it. `last` is the last cycle; `restart`
    /// is the earliest arrival after a trap.
    #[inline]
    pub(super) fn begin(&self, entry: BlockEntry, last: u64, restart: Option<(u64, Cause)>) -> (u64, Cause) {
        match entry {
            BlockEntry::Taken => (self.arrived + 1 + self.taken, Cause::TakenBranch),
            BlockEntry::Mispredicted => (last + 1 + self.mispredict, Cause::Mispredict),
            _ => restart.unwrap_or((self.arrived + 1, Cause::TakenBranch)),
        }
    }

    /// Whether an address is in the group of the last instruction, which is that of its last byte.
    #[inline(always)]
    fn continues_group(&self, address: u64) -> bool {
        address >> self.group_shift == self.exit.next.wrapping_sub(1) >> self.group_shift
    }

    /// The addresses of the lines, after the first, of a block that ends before `end`.
    pub(super) fn other_lines(&self, address: u64, end: u64) -> impl Iterator<Item = u64> + use<> {
        let shift = self.line_shift;
        let last = end.wrapping_sub(1) >> shift;
        ((address >> shift) + 1..=last).map(move |line| line << shift)
    }

    /// The line of an address missed, and is requested at `time`: returns when it arrives, and from which
    /// level. A prefetched line was requested with the line before, and arrives after it, from the same
    /// level.
    pub(super) fn miss(&mut self, address: u64, time: u64, served: ServedBy) -> (u64, u8) {
        let line = address >> self.line_shift;
        self.refilled(line);
        let ahead = self.stream.followed_by(line, self.interval).filter(|_| served.is_ahead);
        self.stream = ahead.unwrap_or_else(|| {
            let level = served.level.clamp(1, LEVELS as u8);
            let cycles = self.fetch_cycles[level as usize];
            PrefetchStream { line, arrives: time + u64::from(cycles), level }
        });
        (self.stream.arrives.max(time), self.stream.level)
    }

    /// Whether all these lines of a block were prefetched and arrive by `time`, before they are needed. If
    /// so, the stream moves on past them.
    pub(super) fn arrive_in_time(&mut self, block: u64, lines: &[L1Miss], time: u64) -> bool {
        let first = block >> self.line_shift;
        let mut stream = self.stream;
        for misses in lines {
            let line = first.wrapping_add(misses.number.into());
            match stream.followed_by(line, self.interval) {
                Some(next)
                    if misses.served.is_ahead && misses.served.translation == 0 && next.arrives <= time =>
                {
                    stream = next;
                }
                _ => return false,
            }
        }
        self.stream = stream;
        lines.iter().for_each(|misses| self.refilled(first.wrapping_add(misses.number.into())));
        true
    }

    /// A line was filled into L1, which may reset its branch counters.
    fn refilled(&mut self, line: u64) {
        self.predictor.refilled(line << self.line_shift, 1 << self.line_shift);
    }
}
