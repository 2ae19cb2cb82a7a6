//! The front end: which group of instructions arrives when.

use isa::{Flags, Op};

use super::ask::Far;
use super::board::BEGINNING;
use super::cycles::{Cause, LEVELS};
use super::description::Pipeline;
use super::memory::{Served, Timing};
use crate::predictor::Predicting;

/// No line.
const NOWHERE: u64 = u64::MAX;

/// Lines between one that is fetched ahead and the last that was asked for, at most.
const FARTHEST: u64 = 64;

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With the next instruction.
    Falls,
    /// With a conditional branch.
    Conditional { target: u64 },
    /// With a branch that is always taken.
    Branch { is_call: bool },
    /// With a jump to an address in a register.
    Jump { hinted: u64, is_call: bool },
    /// With a return.
    Return { is_call: bool },
}

impl End {
    /// Of a block's instructions.
    pub fn of(address: u64, words: &[u32]) -> End {
        let Some(instruction) = words.last().and_then(|&word| isa::decode(word)) else { return End::Falls };
        let at = address.wrapping_add(4 * (words.len() as u64 - 1));
        let op = instruction.op;
        if !op.is(Flags::BRANCH) {
            return End::Falls;
        }
        match op {
            Op::Br | Op::Bsr => End::Branch { is_call: op == Op::Bsr },
            Op::Ret | Op::JsrCoroutine => End::Return { is_call: op == Op::JsrCoroutine },
            Op::Jmp | Op::Jsr => {
                let hinted = at.wrapping_add(4).wrapping_add_signed(instruction.displacement().into());
                End::Jump { hinted, is_call: op == Op::Jsr }
            }
            _ => End::Conditional { target: instruction.target(at).unwrap_or(at) },
        }
    }
}

/// Where control left the last block.
#[derive(Clone, Copy)]
struct Exit {
    end: End,
    /// The address behind it.
    next: u64,
    /// The next instruction is in another group, wherever it is.
    leaves_group: bool,
}

/// How a block is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// In the group of the last instruction.
    SameGroup,
    /// In the next group, or anywhere if control was diverted.
    NextGroup,
    /// By a branch that is taken, as predicted.
    Taken,
    /// By a wrong prediction.
    Mispredicted,
}

impl Entry {
    /// How many there are.
    pub const COUNT: u32 = 4;
}

/// Lines that are fetched one after the other: the last one that was asked for.
#[derive(Clone, Copy)]
struct Stream {
    line: u64,
    arrives: u64,
    level: u8,
}

impl Stream {
    /// The same after a line that was fetched ahead, if this can be: it comes after the one before.
    fn followed_by(self, line: u64, interval: u64) -> Option<Stream> {
        let distance = line.wrapping_sub(self.line);
        (distance <= FARTHEST).then(|| Stream { line, arrives: self.arrives + distance * interval, ..self })
    }
}

/// The front end at work. Times are those at which a group could be issued first.
pub(crate) struct Front {
    pub(crate) predictor: Predicting,
    group_shift: u32,
    line_shift: u32,
    fetch_cycles: [u32; LEVELS + 1],
    pub(super) taken: u64,
    mispredict: u64,
    interval: u64,
    /// When the current group arrived.
    pub(super) arrived: u64,
    /// Where the last block was left.
    exit: Exit,
    stream: Stream,
}

impl Front {
    pub fn new(pipeline: &Pipeline, predictor: Predicting, timing: &Timing, group_shift: u32) -> Front {
        Front {
            predictor,
            group_shift,
            line_shift: timing.fetch_line.ilog2(),
            fetch_cycles: timing.fetch,
            taken: pipeline.taken.into(),
            mispredict: pipeline.mispredict.into(),
            interval: pipeline.prefetch_interval.into(),
            arrived: BEGINNING,
            exit: Exit { end: End::Falls, next: 0, leaves_group: true },
            stream: Stream { line: NOWHERE, arrives: 0, level: 1 },
        }
    }

    /// Control goes on anywhere.
    pub fn divert(&mut self) {
        self.exit.end = End::Falls;
        self.exit.leaves_group = true;
    }

    /// The process is another one.
    pub fn forget_stream(&mut self) {
        self.stream.line = NOWHERE;
    }

    /// A block was left, which ends so, before `next`, and whose last instruction traps or not.
    #[inline(always)]
    pub(super) fn leave(&mut self, end: End, next: u64, traps: bool) {
        self.exit = Exit { end, next, leaves_group: traps };
    }

    /// Control went on at `address`.
    #[inline(always)]
    pub(super) fn enter(&mut self, address: u64) -> Entry {
        let by_branch = if self.exit.end == End::Falls { None } else { self.resolve(address) };
        match by_branch {
            Some(true) => Entry::Taken,
            Some(false) => Entry::Mispredicted,
            None if !self.exit.leaves_group && self.is_near_exit(address, self.group_shift) => {
                Entry::SameGroup
            }
            None => Entry::NextGroup,
        }
    }

    /// Whether a branch, or what is fetched instead, was predicted; nothing if control fell through it.
    #[inline]
    fn resolve(&mut self, address: u64) -> Option<bool> {
        let Exit { end, next, .. } = self.exit;
        let at = next.wrapping_sub(4);
        let is_right = match end {
            End::Falls => return None,
            End::Conditional { target } => {
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
            End::Branch { .. } => true,
            End::Jump { hinted, .. } => self.predictor.jump(at, hinted, address),
            End::Return { .. } => self.predictor.ret(at, address),
        };
        if let End::Branch { is_call: true }
        | End::Jump { is_call: true, .. }
        | End::Return { is_call: true } = end
        {
            self.predictor.call(at);
        }
        Some(is_right)
    }

    /// When a group arrives if its line is there, and why not earlier. The last cycle is `last`; if the last
    /// instruction trapped, `restart` says the same.
    #[inline]
    pub(super) fn begin(&self, entry: Entry, last: u64, restart: Option<(u64, Cause)>) -> (u64, Cause) {
        match entry {
            Entry::Taken => (self.arrived + 1 + self.taken, Cause::TakenBranch),
            Entry::Mispredicted => (last + 1 + self.mispredict, Cause::Mispredict),
            _ => restart.unwrap_or((self.arrived + 1, Cause::TakenBranch)),
        }
    }

    /// Whether an address agrees with that of the last instruction in all but so many bits.
    #[inline(always)]
    fn is_near_exit(&self, address: u64, shift: u32) -> bool {
        address >> shift == self.exit.next.wrapping_sub(4) >> shift
    }

    /// The addresses of the other lines of a block.
    #[inline(always)]
    pub(super) fn lines_behind(&self, address: u64, length: usize) -> impl Iterator<Item = u64> + use<> {
        let shift = self.line_shift;
        let last = address.wrapping_add(4 * (length as u64 - 1)) >> shift;
        ((address >> shift) + 1..=last).map(move |line| line << shift)
    }

    /// The line of an address was missing, and asked for at `time`: says when it comes, and from where. What was
    /// fetched ahead was asked for with the line before, and comes after it from the same place.
    pub(super) fn miss(&mut self, address: u64, time: u64, served: Served) -> (u64, u8) {
        let line = address >> self.line_shift;
        self.refilled(line);
        let ahead = self.stream.followed_by(line, self.interval).filter(|_| served.is_ahead);
        self.stream = ahead.unwrap_or_else(|| {
            let level = served.level.clamp(1, LEVELS as u8);
            let cycles = self.fetch_cycles[level as usize];
            Stream { line, arrives: time + u64::from(cycles), level }
        });
        (self.stream.arrives.max(time), self.stream.level)
    }

    /// Whether all these lines of a block were missing but fetched ahead, so that they are there at `time`, before they
    /// are asked for. If so, they are.
    pub(super) fn have_come(&mut self, block: u64, lines: &[Far], time: u64) -> bool {
        let first = block >> self.line_shift;
        let mut stream = self.stream;
        for far in lines {
            let line = first.wrapping_add(far.number.into());
            match stream.followed_by(line, self.interval) {
                Some(next) if far.served.is_ahead && far.served.translation == 0 && next.arrives <= time => {
                    stream = next;
                }
                _ => return false,
            }
        }
        self.stream = stream;
        lines.iter().for_each(|far| self.refilled(first.wrapping_add(far.number.into())));
        true
    }

    /// A line came into the cache.
    fn refilled(&mut self, line: u64) {
        self.predictor.refilled(line << self.line_shift, 1 << self.line_shift);
    }
}
