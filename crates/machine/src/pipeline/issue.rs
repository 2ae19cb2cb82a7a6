//! Issues instructions: when each one is issued, and what was waited for.
//!
//! There is no clock that ticks. A scoreboard says when each register can be used, and each instruction moves
//! the time on to the cycle in which it is issued.

use std::ops::Range;

use super::board::{Board, FRESH, Register};
use super::class::NONE;
use super::cycles::{Cause, LEVELS, Side};
use super::description::{Loads, Pipeline, Stores, WIDEST};
use super::front::Front;
use super::memory::{Misses, Served, Timing, WriteBuffer};
use super::rules::{EMULATED, GROUP, LOAD, Rules, SPECIAL, SPLIT, STORE, Step};
use crate::predictor::Predicting;

/// Cycles that were spent for one instruction of a program: those in which it was the first to be issued, and
/// those in which it was waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCycles {
    /// It was issued, before others of the same cycle.
    pub issuing: u64,
    /// It had not arrived.
    pub dry: u64,
    /// It could not be issued.
    pub frozen: u64,
}

/// What memory said, in the order in which it was asked: all but what was near.
#[derive(Default)]
pub(super) struct Answers {
    far: Vec<(usize, Served)>,
    asked: usize,
    used: usize,
}

impl Answers {
    /// Nothing was asked.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.far.clear();
        (self.asked, self.used) = (0, 0);
    }

    #[inline(always)]
    pub fn push(&mut self, served: Served) {
        if served != Served::default() {
            self.far.push((self.asked, served));
        }
        self.asked += 1;
    }

    /// The answer to a question. What was not asked is near.
    #[inline]
    pub fn get(&self, place: usize) -> Served {
        self.far.iter().find(|far| far.0 == place).map_or(Served::default(), |far| far.1)
    }

    /// The questions go on with this one.
    #[inline]
    pub fn go_to(&mut self, place: usize) {
        self.used = place;
    }

    /// What was not near of questions one behind the other, with their numbers from the first on.
    #[inline(always)]
    pub fn far(&self, questions: Range<usize>) -> impl Iterator<Item = (usize, Served)> {
        let start = questions.start;
        let own = self.far.iter().filter(move |far| questions.contains(&far.0));
        own.map(move |far| (far.0 - start, far.1))
    }

    /// The answer to the next question.
    #[inline]
    pub fn next(&mut self) -> Served {
        self.used += 1;
        self.get(self.used - 1)
    }
}

/// The addresses of a block's accesses that were not used yet.
pub(super) type Addresses<'a> = std::iter::Copied<std::slice::Iter<'a, u64>>;

/// The issue stage, and what is before and behind it.
pub(super) struct Issue {
    pub rules: Rules,
    pub loads: Loads,
    pub stores: Stores,
    pub load_cycles: [u32; LEVELS + 1],
    pub call_pal: u64,
    pub emulation: u64,
    pub front: Front,
    pub steps: Vec<Step>,
    pub sites: Vec<SiteCycles>,
    pub board: Board,
    /// What memory said of the lines and the data of the block that is executed.
    pub fetched: Answers,
    pub served: Answers,
}

impl Issue {
    pub fn new(pipeline: &Pipeline, predictor: Predicting, timing: &Timing, emulation: u64) -> Issue {
        let rules = Rules::new(pipeline);
        let loads = pipeline.loads.clone();
        let stores = pipeline.stores.clone();
        let misses = Misses::new(timing.data_line, loads.outstanding);
        let write_buffer = WriteBuffer::new(timing.write_buffer, stores.drain_from, timing.data_line);
        Issue {
            front: Front::new(pipeline, predictor, timing, rules.group_shift),
            load_cycles: timing.load,
            call_pal: pipeline.call_pal.into(),
            emulation,
            rules,
            loads,
            stores,
            steps: Vec::new(),
            sites: Vec::new(),
            board: Board::new(misses, write_buffer),
            fetched: Answers::default(),
            served: Answers::default(),
        }
    }

    /// Issues an instruction of a block, at its place.
    #[inline(always)]
    pub fn execute(&mut self, index: usize, address: u64, place: usize, addresses: &mut Addresses) {
        let step = self.steps[index];
        if step.flags & GROUP != 0 && place > 0 {
            self.begin_group(address, index);
        }
        self.step(step, index, addresses);
    }

    /// A group arrives, and its first instruction waits for it.
    #[inline]
    pub fn begin_group(&mut self, address: u64, index: usize) {
        let (mut time, cause) = self.front.fetch(address);
        self.stall(time, cause, index);
        if self.front.begins_line(address) {
            let served = self.fetched.next();
            if served != Served::default() {
                time += u64::from(served.translation);
                self.stall(time, Cause::InstructionTranslation, index);
                if served.level > 0 || served.is_ahead {
                    let level;
                    (time, level) = self.front.miss(time, served);
                    self.stall(time, Cause::InstructionMiss(level), index);
                }
            }
        }
        self.front.arrive(time.max(self.board.last + 1));
        self.board.used = FRESH;
    }

    #[inline(always)]
    fn step(&mut self, step: Step, index: usize, addresses: &mut Addresses) {
        let (fits, units) = self.slot(&step);
        let mut time = self.board.last + u64::from(!(fits && self.board.open > 0));
        let mut ready = 0;
        for (source, column) in step.sources.into_iter().zip(step.columns) {
            let register = &self.board.registers[source as usize % 64];
            ready = ready.max(register.issued + self.rules.latency(register.class, column));
        }
        if step.destination != NONE {
            let register = &self.board.registers[step.destination as usize % 64];
            ready = ready.max(register.issued + self.rules.order(register.class, step.class));
        }
        if ready > time {
            time = self.wait_for_operands(&step, index, time);
        }
        if time <= self.board.blocked_until {
            time = self.wait_for_blocked(time, units, index);
        }
        let mut result = Register::produced(step.class, time);
        if step.flags & (SPECIAL | LOAD | STORE | EMULATED) == 0 {
            self.issue(time, index);
        } else {
            result = self.issue_special(&step, index, time, addresses);
        }
        if step.destination != NONE {
            self.board.registers[step.destination as usize % 64] = result;
            self.board.ready = self.board.ready.max(result.issued + self.rules.longest(step.class));
        }
    }

    /// Issues what does more than to compute a result in a fixed time. Says what is known of the result.
    #[inline]
    fn issue_special(
        &mut self,
        step: &Step,
        index: usize,
        mut time: u64,
        addresses: &mut Addresses,
    ) -> Register {
        if step.flags & SPECIAL != 0 {
            time = self.wait_for_unit(step, index, time);
        }
        let mut result = Register::produced(step.class, time);
        if step.flags & (LOAD | STORE) != 0
            && let Some(address) = addresses.next()
        {
            (time, result) = self.access(step, index, time, address);
        }
        self.issue(time, index);
        if step.flags & (SPECIAL | EMULATED) != 0 {
            result.issued += self.after(step, time);
        }
        result
    }

    /// Takes units, and says which. Says also whether they were free among those that are issued together; if
    /// not, the next ones that are issued together begin.
    #[inline(always)]
    fn slot(&mut self, step: &Step) -> (bool, u16) {
        let [first, second] = step.units;
        let units = if self.board.used & first == 0 { first } else { second };
        let fits = self.board.used & (units | FRESH) == 0 && step.flags & SPLIT == 0;
        let units = if fits { units } else { first };
        self.board.used = units | if fits { self.board.used } else { 0 };
        (fits, units)
    }

    /// The last cycle is over.
    #[inline(always)]
    fn close(&mut self) {
        self.board.cycles.0[self.board.open] += 1;
        self.board.open = 0;
    }

    #[inline(always)]
    fn issue(&mut self, time: u64, index: usize) {
        debug_assert!(time == self.board.last || time == self.board.last + 1);
        if time > self.board.last {
            self.close();
            self.sites[index].issuing += 1;
            self.board.last = time;
        }
        self.board.open = (self.board.open + 1).min(WIDEST);
    }

    /// Nothing is issued before `until`. Cycles that are counted stay what they are.
    #[inline(always)]
    pub(super) fn stall(&mut self, until: u64, cause: Cause, index: usize) {
        if until > self.board.last + 1 {
            self.count_stall(until, cause, index);
        }
    }

    #[cold]
    fn count_stall(&mut self, until: u64, cause: Cause, index: usize) {
        let cycles = until - self.board.last - 1;
        self.close();
        self.board.last = until - 1;
        self.board.cycles.0[cause.index()] += cycles;
        let site = &mut self.sites[index];
        match cause.side() {
            Side::Dry => site.dry += cycles,
            _ => site.frozen += cycles,
        }
    }
}
