//! The fetch stage: in which cycle each instruction is fetched.

use std::ops::Range;

use super::counts::OutOfOrderCounts;
use super::description::Fetch;
use crate::core::pipeline::{Cause, LEVELS, MemorySystem, Timing};

/// What an instruction waits for in turn: until which cycle, and for what cause.
pub(super) type Wait = (u64, Cause);

/// The fetch stage, as far as a wrong path changes it and the right path does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct FetchState {
    /// The cycle of the last instruction.
    pub cycle: u64,
    /// Instructions that were fetched in it.
    slots: u32,
    /// The address of the last byte, and the line.
    last: u64,
    line: u64,
    /// The next instruction is fetched from this cycle on, in a cycle of its own, and what it waited for.
    restart: Option<Wait>,
    /// What the last instruction that began a cycle waited for.
    pub waits: [Wait; 3],
}

/// The rules of the fetch stage, and instruction lines that wrong paths have requested.
pub(super) struct FetchStage {
    width: u32,
    /// Cycles from the fetch of an instruction to its dispatch.
    stages: u64,
    chunk_shift: Option<u32>,
    line_shift: u32,
    interval: u64,
    cycles: [u32; LEVELS + 1],
    /// Lines that have not arrived: line, cycle, level.
    outstanding: Vec<(u64, u64, u8)>,
    /// The last line that was requested on demand: line, cycle, level. Prefetched lines arrive after it.
    stream: (u64, u64, u8),
}

/// The line of no address.
const NOWHERE: u64 = u64::MAX;

impl FetchState {
    pub fn new() -> FetchState {
        FetchState {
            cycle: 0,
            slots: 0,
            last: 0,
            line: NOWHERE,
            restart: None,
            waits: [(0, Cause::TakenBranch); 3],
        }
    }

    /// The next instruction is fetched in a new cycle, from `cycle` on.
    pub fn restart(&mut self, cycle: u64, cause: Cause) {
        self.restart = Some((cycle, cause));
    }

    /// The next instruction is fetched in a new cycle.
    pub fn begin_cycle(&mut self) {
        self.restart = self.restart.or(Some((0, Cause::TakenBranch)));
    }

    /// Forgets the line, as the process changes.
    pub fn forget_line(&mut self) {
        self.line = NOWHERE;
    }
}

impl FetchStage {
    /// With this number of cycles from the fetch of an instruction to its dispatch.
    pub fn new(fetch: &Fetch, stages: u32, timing: &Timing) -> FetchStage {
        FetchStage {
            width: fetch.width,
            stages: stages.into(),
            chunk_shift: fetch.aligned.then_some(fetch.width.ilog2() + 2),
            line_shift: timing.fetch_line.ilog2(),
            interval: fetch.prefetch_interval.into(),
            cycles: timing.fetch,
            outstanding: Vec::new(),
            stream: (NOWHERE, 0, 1),
        }
    }

    /// Fetches an instruction; there is room for it from cycle `room` on, and it can retire from cycle `retires` on. Returns false,
    /// and does nothing, if it would not be fetched before cycle `until`.
    #[inline(always)]
    pub fn fetch<M: MemorySystem>(
        &mut self,
        state: &mut FetchState,
        address: u64,
        length: u8,
        [room, until, retires]: [u64; 3],
        memory: &mut M,
        counts: &mut OutOfOrderCounts,
    ) -> bool {
        let last = address.wrapping_add(u64::from(length) - 1);
        let leaves_chunk = self.chunk_shift.is_some_and(|shift| (last ^ state.last) >> shift != 0);
        let line = last >> self.line_shift;
        let begins =
            state.restart.is_some() || state.slots == self.width || leaves_chunk || line != state.line;
        if !begins && room <= state.cycle {
            state.slots += 1;
            state.last = last;
            return state.cycle < until;
        }
        let (from, cause) = state.restart.unwrap_or((0, Cause::TakenBranch));
        let cycle = from.max(room).max(state.cycle + u64::from(begins));
        if cycle >= until {
            return false;
        }
        (state.restart, state.slots, state.last) = (None, 1, last);
        state.waits = [(cycle, cause); 3];
        state.cycle = cycle;
        if line != state.line {
            if (address ^ last) >> self.line_shift != 0 && address >> self.line_shift != state.line {
                self.line(state, address, retires, memory, counts);
            }
            let from = if line == address >> self.line_shift { address } else { line << self.line_shift };
            self.line(state, from, retires, memory, counts);
            state.line = line;
        }
        state.cycle < until
    }

    /// Whether the fetch of an instruction with this last byte begins another line.
    #[inline(always)]
    pub fn begins_line(&self, state: &FetchState, last: u64) -> bool {
        last >> self.line_shift != state.line
    }

    /// Requests the lines of a block, without time.
    pub fn warm<M: MemorySystem>(&self, state: &mut FetchState, block: Range<u64>, memory: &mut M) {
        for line in block.start >> self.line_shift..=block.end.wrapping_sub(1) >> self.line_shift {
            if std::mem::replace(&mut state.line, line) != line {
                memory.fetch(block.start.max(line << self.line_shift));
            }
        }
    }

    /// Fetches a line. If software has to fill a TLB, the trap is taken when all older instructions have retired, and this one has
    /// passed the stages to its dispatch.
    fn line<M: MemorySystem>(
        &mut self,
        state: &mut FetchState,
        address: u64,
        retires: u64,
        memory: &mut M,
        counts: &mut OutOfOrderCounts,
    ) {
        let served = memory.fetch(address);
        let line = address >> self.line_shift;
        if served.is_none() && self.outstanding.is_empty() {
            return;
        }
        let served = served.unwrap_or_default();
        let begin = state.cycle;
        let trap = if served.traps { retires.max(begin + self.stages) } else { begin };
        let translated = trap + u64::from(served.translation);
        counts.translations[0] += u64::from(served.translation);
        self.outstanding.retain(|&(_, arrives, _)| arrives > begin);
        let outstanding = self.outstanding.iter().find(|one| one.0 == line).copied();
        let (mut arrives, mut level) = (translated, 0);
        if served.is_ahead && line.wrapping_sub(self.stream.0) <= FARTHEST {
            let distance = line.wrapping_sub(self.stream.0);
            self.stream = (line, self.stream.1 + distance * self.interval, self.stream.2);
            (arrives, level) = (self.stream.1.max(translated), self.stream.2);
        } else if served.level > 0 || served.is_ahead {
            level = served.level.clamp(1, LEVELS as u8);
            arrives = translated + u64::from(self.cycles[level as usize]);
            counts.fetched_from[level as usize] += 1;
            self.stream = (line, arrives, level);
        }
        if let Some((_, earlier, from)) = outstanding {
            // Requested by a wrong path: it arrives as it was requested then.
            (arrives, level) = match level {
                0 => (translated.max(earlier), from),
                _ => (translated.max(earlier).min(arrives), from),
            };
        }
        if arrives > translated {
            self.outstanding.push((line, arrives, level));
        }
        let miss = if level > 0 { Cause::InstructionMiss(level) } else { Cause::InstructionTranslation };
        state.waits[1] = (translated, Cause::InstructionTranslation);
        state.waits[2] = (arrives, miss);
        state.cycle = arrives.max(begin);
    }

    /// Forgets lines of another process.
    pub fn forget(&mut self) {
        self.outstanding.clear();
        self.stream.0 = NOWHERE;
    }
}

/// The greatest distance of a prefetched line from the last demand miss.
const FARTHEST: u64 = 64;
