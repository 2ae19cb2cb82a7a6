//! Issues instructions one by one: the cycle of each, and the causes of stalls.
//!
//! No clock ticks: the scoreboard says when each register and unit is ready, and each instruction moves time
//! on to the cycle in which it is issued.

use std::mem;

use super::accesses::BlockAccesses;
use super::cycles::{Cause, LEVELS, PipelineSide};
use super::description::{Loads, Pipeline, Stores};
use super::front_end::{BlockEntry, FrontEnd};
use super::memory::{LastStoreData, MissAddressFile, Timing, WriteBufferModel};
use super::memory_response::{LineResponse, MemoryResponse};
use super::registers::NONE;
use super::rules::{EMULATED, GROUP, LOAD, PipelineInstruction, Rules, SPECIAL, SPLIT, STORE};
use super::scoreboard::{NO_GROUP, RegisterProducer, Scoreboard};
use super::segment::BlockSegment;
use super::state::{Horizon, PipelineState};
use super::timing_outcome::OutcomeDetails;
use crate::core::predictor::PredictorState;

/// The cycles of one instruction of a program: those in which it was the first to be issued, and those that
/// were spent waiting for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCycles {
    /// It was issued, before others of the same cycle.
    pub issuing: u64,
    /// Front-end stalls ("dry"): it had not arrived at the issue stage.
    pub front_end_stall: u64,
    /// Back-end stalls ("frozen"): it was there, and could not be issued.
    pub back_end_stall: u64,
}

impl SiteCycles {
    /// Adds the cycles of the same instruction elsewhere.
    pub(crate) fn add(&mut self, other: &SiteCycles) {
        self.issuing += other.issuing;
        self.front_end_stall += other.front_end_stall;
        self.back_end_stall += other.back_end_stall;
    }
}

/// The issue stage with its scoreboard, front end and memory interface.
pub(super) struct Issue {
    pub rules: Rules,
    pub loads: Loads,
    pub stores: Stores,
    pub load_cycles: [u32; LEVELS + 1],
    /// The most instructions that are issued in a cycle.
    width: usize,
    pub call_pal: u64,
    pub emulation: u64,
    pub front_end: FrontEnd,
    pub steps: Vec<PipelineInstruction>,
    pub scoreboard: Scoreboard,
    pub write_buffer: WriteBufferModel,
    pub process: u32,
    pub stored: LastStoreData,
    /// Shift from an address to a line of data.
    line_shift: u32,
    /// Lines of data that loads may find outstanding.
    pub lines: Vec<u64>,
    /// A buffer for [`Issue::keep_outstanding`].
    pub kept_lines: Vec<u64>,
    /// The responses of memory to the segment being issued.
    pub responses: Vec<MemoryResponse>,
    /// The next access of the block.
    access: u32,
    /// The outcome of the segment being issued, so far.
    pub outcome: OutcomeDetails,
}

impl Issue {
    pub fn new(pipeline: &Pipeline, predictor: PredictorState, timing: &Timing, emulation: u64) -> Issue {
        let rules = Rules::new(pipeline, timing.load_hit);
        let loads = pipeline.loads.clone();
        let stores = pipeline.stores.clone();
        Issue {
            front_end: FrontEnd::new(pipeline, predictor, timing, rules.group_shift),
            load_cycles: timing.load,
            width: pipeline.group as usize,
            call_pal: u64::from(pipeline.call_pal) + u64::from(timing.fetch_hit),
            emulation,
            rules,
            steps: Vec::new(),
            scoreboard: Scoreboard::new(MissAddressFile::new(loads.outstanding)),
            write_buffer: WriteBufferModel::new(timing.write_buffer, stores.drain_from),
            loads,
            stores,
            process: 0,
            stored: LastStoreData::default(),
            line_shift: timing.data_line.ilog2(),
            lines: Vec::new(),
            kept_lines: Vec::new(),
            responses: Vec::new(),
            access: 0,
            outcome: OutcomeDetails::default(),
        }
    }

    /// The state that the segments issued so far leave, and the cycles until it has drained.
    pub fn state(&self) -> (PipelineState, Option<u64>) {
        let store = u64::from(self.loads.not_after_store).max(1);
        let horizon = Horizon { rules: &self.rules, store, arrival: self.front_end.taken };
        let state = PipelineState::new(&self.scoreboard, self.front_end.arrived, &horizon);
        let drains_in = state.drains_in(&horizon);
        (state, drains_in)
    }

    /// The line of data of an address.
    #[inline(always)]
    pub fn line(&self, address: u64) -> u64 {
        address >> self.line_shift ^ u64::from(self.process) << 44
    }

    /// Issues the instructions of a segment one by one, beginning in a state. Returns the outcome.
    #[inline(never)]
    pub fn execute(
        &mut self,
        segment: &BlockSegment,
        state: &PipelineState,
        entry: BlockEntry,
        accesses: BlockAccesses,
    ) -> OutcomeDetails {
        let start = self.scoreboard.last;
        state.restore(&mut self.scoreboard);
        self.outcome.costs.sites = vec![SiteCycles::default(); segment.length as usize].into();
        self.access = segment.accesses.start;
        if entry != BlockEntry::SameGroup {
            self.begin_group(entry, 0);
        }
        for (index, step) in segment.steps().enumerate() {
            let step = self.steps[step];
            // The entry of a later line is that of its first group.
            if step.flags & GROUP != 0 && !(index == 0 && segment.is_later) {
                self.begin_group(BlockEntry::NextGroup, index);
            }
            self.step(step, index, accesses);
        }
        self.scoreboard.misses.advance(self.scoreboard.last);
        let mut outcome = mem::take(&mut self.outcome);
        outcome.lines = self.scoreboard.misses.renumber();
        outcome.cycles = self.scoreboard.last - start;
        outcome.arrived = outcome.arrived.saturating_sub(start);
        outcome.stores.iter_mut().for_each(|store| store.1 -= start);
        self.keep_outstanding(&outcome.lines);
        outcome
    }

    /// A group arrives; its first instruction waits for it.
    fn begin_group(&mut self, entry: BlockEntry, index: usize) {
        let next = self.scoreboard.last + 1;
        let (mut time, cause) =
            self.front_end.begin(entry, self.scoreboard.last, self.scoreboard.restart.take());
        self.stall(time, cause, index);
        if index == 0
            && let Some(LineResponse { translated, comes, level }) =
                self.responses.first().and_then(|responses| responses.as_line())
        {
            time = next + u64::from(translated);
            self.stall(time, Cause::InstructionTranslation, index);
            if level > 0 {
                time = next + u64::from(comes);
                self.stall(time, Cause::InstructionMiss(level), index);
            }
        }
        self.front_end.arrived = time.max(self.scoreboard.last + 1);
        self.outcome.arrived = self.front_end.arrived;
        self.scoreboard.used = NO_GROUP;
    }

    #[inline(always)]
    fn step(&mut self, step: PipelineInstruction, index: usize, accesses: BlockAccesses) {
        let (fits, units) = self.slot(&step);
        let joins = fits && (1..self.width).contains(&self.scoreboard.open);
        let mut time = self.scoreboard.last + u64::from(!joins);
        let mut ready = 0;
        for (source, column) in step.sources.into_iter().zip(step.columns) {
            let register = &self.scoreboard.registers[source as usize % 64];
            ready = ready.max(register.issued + self.rules.latency(register.class, column));
        }
        if step.destination != NONE {
            let register = &self.scoreboard.registers[step.destination as usize % 64];
            ready = ready.max(register.issued + self.rules.order(register.class, step.class));
        }
        if ready > time {
            time = self.wait_for_operands(&step, index, time);
        }
        if time <= self.scoreboard.blocked_until {
            time = self.wait_for_blocked(time, units, index);
        }
        let mut result = RegisterProducer::produced(step.class, time);
        if step.flags & (SPECIAL | LOAD | STORE | EMULATED) == 0 {
            self.issue(time, index);
        } else {
            result = self.issue_special(&step, index, time, accesses);
        }
        if step.destination != NONE {
            self.scoreboard.write(step.destination, result);
        }
    }

    /// Issues an instruction with rules of its own. Returns the result's entry in the scoreboard.
    #[inline]
    fn issue_special(
        &mut self,
        step: &PipelineInstruction,
        index: usize,
        mut time: u64,
        accesses: BlockAccesses,
    ) -> RegisterProducer {
        if step.flags & SPECIAL != 0 {
            time = self.wait_for_unit(step, index, time);
        }
        let mut result = RegisterProducer::produced(step.class, time);
        if step.accesses() {
            let access = self.access;
            self.access += 1;
            (time, result) = self.access(step, index, time, access, accesses);
        }
        self.issue(time, index);
        if step.flags & (SPECIAL | EMULATED) != 0 {
            result.issued += self.after(step, time);
        }
        result
    }

    /// Allocates units, and returns them. Also returns whether they were free among the instructions issued
    /// together; if not, a new set of instructions issued together begins.
    #[inline(always)]
    fn slot(&mut self, step: &PipelineInstruction) -> (bool, u16) {
        let [first, second] = step.units;
        let units = if self.scoreboard.used & first == 0 { first } else { second };
        let fits = self.scoreboard.used & (units | NO_GROUP) == 0 && step.flags & SPLIT == 0;
        let units = if fits { units } else { first };
        self.scoreboard.used = units | if fits { self.scoreboard.used } else { 0 };
        (fits, units)
    }

    /// Closes the last cycle.
    #[inline(always)]
    fn close(&mut self) {
        if self.scoreboard.open > 0 {
            self.outcome.costs.spend(self.scoreboard.open, 1);
        }
        self.scoreboard.open = 0;
    }

    #[inline(always)]
    fn issue(&mut self, time: u64, index: usize) {
        debug_assert!(time == self.scoreboard.last || time == self.scoreboard.last + 1);
        if time > self.scoreboard.last {
            self.close();
            self.outcome.costs.sites[index].issuing += 1;
            self.scoreboard.last = time;
        }
        self.scoreboard.open += 1;
    }

    /// Stalls until a time. Cycles counted already stay as they are.
    #[inline(always)]
    pub(super) fn stall(&mut self, until: u64, cause: Cause, index: usize) {
        if until > self.scoreboard.last + 1 {
            self.count_stall(until, cause, index);
        }
    }

    #[cold]
    fn count_stall(&mut self, until: u64, cause: Cause, index: usize) {
        let cycles = until - self.scoreboard.last - 1;
        self.close();
        self.scoreboard.last = until - 1;
        self.outcome.costs.spend(cause.index(), cycles);
        let Some(site) = self.outcome.costs.sites.get_mut(index) else { return };
        match cause.side() {
            PipelineSide::FrontEnd => site.front_end_stall += cycles,
            _ => site.back_end_stall += cycles,
        }
    }
}
