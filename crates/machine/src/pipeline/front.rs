//! The front end: which group of instructions arrives when.

use isa::{Flags, Op};

use super::board::BEGINNING;
use super::cycles::{Cause, LEVELS};
use super::description::Pipeline;
use super::memory::{Served, Timing};
use crate::predictor::Predicting;

/// No group, no line.
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

/// Lines that are fetched one after the other: the last one that was asked for.
#[derive(Clone, Copy)]
struct Stream {
    line: u64,
    arrives: u64,
    level: u8,
}

/// The front end at work. Times are those at which a group could be issued first.
pub(crate) struct Front {
    pub(crate) predictor: Predicting,
    group_shift: u32,
    line_shift: u32,
    fetch_cycles: [u32; LEVELS + 1],
    taken: u64,
    mispredict: u64,
    interval: u64,
    pub(super) place: Place,
    /// How the last block ended, and the address behind it.
    end: (End, u64),
    stream: Stream,
}

/// Where the front end is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    group: u64,
    line: u64,
    /// When the current group arrived.
    arrived: u64,
    /// The next group does not arrive before, and why.
    restart: Option<(u64, Cause)>,
}

impl Place {
    /// When the current group arrived.
    pub fn arrived(self) -> u64 {
        self.arrived
    }
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
            place: Place { group: NOWHERE, line: NOWHERE, arrived: BEGINNING, restart: None },
            end: (End::Falls, 0),
            stream: Stream { line: NOWHERE, arrives: 0, level: 1 },
        }
    }

    /// In the group of an address, which arrived at a time.
    pub(super) fn first_of(&self, address: u64, arrived: u64) -> Place {
        let (group, line) = (address >> self.group_shift, address >> self.line_shift);
        Place { group, line, arrived, restart: None }
    }

    /// Control goes on anywhere.
    pub fn divert(&mut self) {
        self.end.0 = End::Falls;
        self.place.group = NOWHERE;
    }

    /// The process is another one.
    pub fn forget_line(&mut self) {
        self.place.line = NOWHERE;
        self.stream.line = NOWHERE;
    }

    /// Instructions are fetched anew.
    pub fn restart(&mut self, time: u64, cause: Cause) {
        self.place.restart = Some((time, cause));
        self.place.group = NOWHERE;
    }

    /// A block ended, behind which is `next`.
    #[inline(always)]
    pub(super) fn end(&mut self, end: End, next: u64) {
        self.end = (end, next);
    }

    /// Control went on at `address`; the branch was issued at `issued`.
    #[inline(always)]
    pub fn resolve(&mut self, address: u64, issued: u64) {
        let (end, next) = self.end;
        if end != End::Falls {
            self.resolve_branch(end, next, address, issued);
        }
    }

    #[inline]
    fn resolve_branch(&mut self, end: End, next: u64, address: u64, issued: u64) {
        let at = next.wrapping_sub(4);
        let is_right = match end {
            End::Falls => return,
            End::Conditional { target } => {
                let is_taken = address != next;
                if is_taken && address != target {
                    return self.divert();
                }
                let is_right = self.predictor.branch(at, target, is_taken);
                if is_right && !is_taken {
                    return;
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
        match is_right {
            true => self.restart(self.place.arrived + 1 + self.taken, Cause::TakenBranch),
            false => self.restart(issued + 1 + self.mispredict, Cause::Mispredict),
        }
    }

    /// Whether the group of an address is another one than that of the last instruction.
    #[inline(always)]
    pub fn begins_group(&self, address: u64) -> bool {
        address >> self.group_shift != self.place.group
    }

    /// A group is fetched: says when it arrives if its line is there, and why not earlier.
    #[inline(always)]
    pub fn fetch(&mut self, address: u64) -> (u64, Cause) {
        self.place.group = address >> self.group_shift;
        self.place.restart.take().unwrap_or((self.place.arrived + 1, Cause::TakenBranch))
    }

    /// Whether the group is in another line than the last one was.
    #[inline(always)]
    pub fn begins_line(&mut self, address: u64) -> bool {
        std::mem::replace(&mut self.place.line, address >> self.line_shift) != address >> self.line_shift
    }

    /// Whether an address is in another line than what was fetched last.
    #[inline(always)]
    pub(super) fn is_new_line(&self, address: u64) -> bool {
        address >> self.line_shift != self.place.line
    }

    /// The addresses of the other lines of a block.
    #[inline(always)]
    pub(super) fn lines_behind(&self, address: u64, length: usize) -> impl Iterator<Item = u64> + use<> {
        let shift = self.line_shift;
        let last = address.wrapping_add(4 * (length as u64 - 1)) >> shift;
        ((address >> shift) + 1..=last).map(move |line| line << shift)
    }

    /// The current line was missing, and asked for at `time`: says when it comes, and from where. What was
    /// fetched ahead was asked for with the line before, and comes after it from the same place.
    #[cold]
    pub fn miss(&mut self, time: u64, served: Served) -> (u64, u8) {
        self.predictor.refilled(self.place.line << self.line_shift, 1 << self.line_shift);
        let distance = self.place.line.wrapping_sub(self.stream.line);
        if served.is_ahead && distance <= FARTHEST {
            let arrives = self.stream.arrives + distance * self.interval;
            self.stream = Stream { line: self.place.line, arrives, ..self.stream };
        } else {
            let level = served.level.clamp(1, LEVELS as u8);
            let cycles = self.fetch_cycles[level as usize];
            self.stream = Stream { line: self.place.line, arrives: time + u64::from(cycles), level };
        }
        (self.stream.arrives.max(time), self.stream.level)
    }

    /// The current group arrived.
    #[inline(always)]
    pub fn arrive(&mut self, time: u64) {
        self.place.arrived = time;
    }
}
