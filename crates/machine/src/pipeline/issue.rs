//! Issues instructions: when each one is issued, and what was waited for.
//!
//! There is no clock that ticks. A scoreboard says when each register can be used, and each instruction moves
//! the time on to the cycle in which it is issued.

use std::mem;

use super::accesses::Accesses;
use super::board::{Board, FRESH, Register};
use super::class::NONE;
use super::course::Details;
use super::cycles::{Cause, LEVELS, Side};
use super::description::{Loads, Pipeline, Stores, WIDEST};
use super::front::{Entry, Front};
use super::hear::{Heard, HeardLine};
use super::memory::{Misses, Stored, Timing, WriteBuffer};
use super::piece::Piece;
use super::rules::{EMULATED, GROUP, LOAD, Rules, SPECIAL, SPLIT, STORE, Step};
use super::state::{Reach, State};
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
    pub board: Board,
    pub write_buffer: WriteBuffer,
    pub space: u32,
    pub stored: Stored,
    /// Logarithm of the bytes of a line of data.
    line_shift: u32,
    /// Lines of data that loads may find on their way.
    pub lines: Vec<u64>,
    /// Room for those that remain.
    pub kept: Vec<u64>,
    /// What the piece that is issued hears of memory.
    pub heard: Vec<Heard>,
    /// The next access of the block.
    access: u32,
    /// What is known of the course of the piece that is issued.
    pub course: Details,
}

impl Issue {
    pub fn new(pipeline: &Pipeline, predictor: Predicting, timing: &Timing, emulation: u64) -> Issue {
        let rules = Rules::new(pipeline);
        let loads = pipeline.loads.clone();
        let stores = pipeline.stores.clone();
        Issue {
            front: Front::new(pipeline, predictor, timing, rules.group_shift),
            load_cycles: timing.load,
            call_pal: pipeline.call_pal.into(),
            emulation,
            rules,
            steps: Vec::new(),
            board: Board::new(Misses::new(loads.outstanding)),
            write_buffer: WriteBuffer::new(timing.write_buffer, stores.drain_from),
            loads,
            stores,
            space: 0,
            stored: Stored::default(),
            line_shift: timing.data_line.ilog2(),
            lines: Vec::new(),
            kept: Vec::new(),
            heard: Vec::new(),
            access: 0,
            course: Details::default(),
        }
    }

    /// What is left to those that follow, and for how long.
    pub fn state(&self) -> (State, Option<u64>) {
        let store = u64::from(self.loads.not_after_store).max(1);
        let reach = Reach { rules: &self.rules, store, arrival: self.front.taken };
        let state = State::new(&self.board, self.front.arrived, &reach);
        let settles_in = state.settles_in(&reach);
        (state, settles_in)
    }

    /// The line of data that has an address.
    #[inline(always)]
    pub fn line(&self, address: u64) -> u64 {
        address >> self.line_shift ^ u64::from(self.space) << 44
    }

    /// Issues the instructions of a piece one by one in a state. Says which course they take.
    #[inline(never)]
    pub fn execute(&mut self, piece: &Piece, state: &State, entry: Entry, accesses: Accesses) -> Details {
        let start = self.board.last;
        state.restore(&mut self.board);
        self.course.costs.sites = vec![SiteCycles::default(); piece.length as usize].into();
        self.access = piece.accesses.start;
        if entry != Entry::SameGroup {
            self.begin_group(entry, 0);
        }
        for (place, step) in piece.steps().enumerate() {
            let step = self.steps[step];
            if place > 0 && step.flags & GROUP != 0 {
                self.begin_group(Entry::NextGroup, place);
            }
            self.step(step, place, accesses);
        }
        self.board.misses.settle(self.board.last);
        let mut course = mem::take(&mut self.course);
        course.lines = self.board.misses.renumber();
        course.cycles = self.board.last - start;
        course.arrived = course.arrived.saturating_sub(start);
        course.stores.iter_mut().for_each(|store| store.1 -= start);
        self.keep_lines(&course.lines);
        course
    }

    /// A group arrives, and its first instruction waits for it.
    fn begin_group(&mut self, entry: Entry, place: usize) {
        let next = self.board.last + 1;
        let (mut time, cause) = self.front.begin(entry, self.board.last, self.board.restart.take());
        self.stall(time, cause, place);
        if place == 0
            && let Some(HeardLine { translated, comes, level }) =
                self.heard.first().and_then(|heard| heard.as_line())
        {
            time = next + u64::from(translated);
            self.stall(time, Cause::InstructionTranslation, place);
            if level > 0 {
                time = next + u64::from(comes);
                self.stall(time, Cause::InstructionMiss(level), place);
            }
        }
        self.front.arrived = time.max(self.board.last + 1);
        self.course.arrived = self.front.arrived;
        self.board.used = FRESH;
    }

    #[inline(always)]
    fn step(&mut self, step: Step, place: usize, accesses: Accesses) {
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
            time = self.wait_for_operands(&step, place, time);
        }
        if time <= self.board.blocked_until {
            time = self.wait_for_blocked(time, units, place);
        }
        let mut result = Register::produced(step.class, time);
        if step.flags & (SPECIAL | LOAD | STORE | EMULATED) == 0 {
            self.issue(time, place);
        } else {
            result = self.issue_special(&step, place, time, accesses);
        }
        if step.destination != NONE {
            self.board.write(step.destination, result);
        }
    }

    /// Issues what does more than to compute a result in a fixed time. Says what is known of the result.
    #[inline]
    fn issue_special(&mut self, step: &Step, place: usize, mut time: u64, accesses: Accesses) -> Register {
        if step.flags & SPECIAL != 0 {
            time = self.wait_for_unit(step, place, time);
        }
        let mut result = Register::produced(step.class, time);
        if step.accesses() {
            let access = self.access;
            self.access += 1;
            (time, result) = self.access(step, place, time, access, accesses);
        }
        self.issue(time, place);
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
        if self.board.open > 0 {
            self.course.costs.spend(self.board.open, 1);
        }
        self.board.open = 0;
    }

    #[inline(always)]
    fn issue(&mut self, time: u64, place: usize) {
        debug_assert!(time == self.board.last || time == self.board.last + 1);
        if time > self.board.last {
            self.close();
            self.course.costs.sites[place].issuing += 1;
            self.board.last = time;
        }
        self.board.open = (self.board.open + 1).min(WIDEST);
    }

    /// Nothing is issued before `until`. Cycles that are counted stay what they are.
    #[inline(always)]
    pub(super) fn stall(&mut self, until: u64, cause: Cause, place: usize) {
        if until > self.board.last + 1 {
            self.count_stall(until, cause, place);
        }
    }

    #[cold]
    fn count_stall(&mut self, until: u64, cause: Cause, place: usize) {
        let cycles = until - self.board.last - 1;
        self.close();
        self.board.last = until - 1;
        self.course.costs.spend(cause.index(), cycles);
        let Some(site) = self.course.costs.sites.get_mut(place) else { return };
        match cause.side() {
            Side::Dry => site.dry += cycles,
            _ => site.frozen += cycles,
        }
    }
}
