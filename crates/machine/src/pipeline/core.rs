//! Issues blocks: when each instruction is issued, and what was waited for.
//!
//! There is no clock that ticks. A scoreboard says when each register can be used, and each instruction moves
//! the time on to the cycle in which it is issued.

use isa::Cpu;

use super::class::{Class, NONE};
use super::cycles::{Cause, Cycles, Side};
use super::description::{Loads, Pipeline, Stores, WIDEST};
use super::front::{End, Front};
use super::memory::{MemorySystem, Misses, Served, Timing, WriteBuffer};
use super::rules::{EMULATED, GROUP, LOAD, Rules, SPECIAL, SPLIT, STORE, Step};
use crate::predictor::Predicting;

/// What is known of a register's last producer.
#[derive(Clone, Copy)]
pub(super) struct Register {
    /// When it was issued; of a load that missed, when a load that hit would have been issued whose result can
    /// be used when this one's can.
    pub(super) issued: u64,
    /// The cycle in which a consumer was to be issued if the load had hit.
    pub(super) shadow: u64,
    pub(super) class: u8,
    pub(super) cause: u8,
}

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

impl Register {
    /// Of an instruction whose result takes as long as its class says.
    #[inline(always)]
    pub(super) fn produced(class: u8, time: u64) -> Register {
        Register { issued: time, shadow: 0, class, cause: Cause::Operand.index() as u8 }
    }
}

/// The cycle before the first one: what was never computed was computed long before.
pub(super) const BEGINNING: u64 = 1 << 10;

/// Stands for the units of no instruction: nothing is issued together with what was before.
const FRESH: u16 = 1 << 15;

/// Where a block's steps are.
#[derive(Clone, Copy)]
struct Block {
    address: u64,
    first: u32,
    length: u32,
    end: End,
}

/// A pipeline at work.
pub struct Core<M> {
    pub(super) rules: Rules,
    pub(super) loads: Loads,
    pub(super) stores: Stores,
    pub(super) load_cycles: [u32; super::cycles::LEVELS + 1],
    pub(super) call_pal: u64,
    pub(super) emulation: u64,
    cpu: Option<Cpu>,
    pub(crate) memory: M,
    pub(crate) front: Front,
    blocks: Vec<Block>,
    steps: Vec<Step>,
    sites: Vec<SiteCycles>,
    pub(super) registers: [Register; 64],
    /// When each unit that works on one at a time is free.
    pub(super) free: Vec<u64>,
    /// Cycles in which units are blocked, and which; the oldest are replaced.
    pub(super) blocked: [(u64, u16); 8],
    pub(super) blocked_next: usize,
    pub(super) blocked_until: u64,
    pub(super) misses: Misses,
    pub(super) write_buffer: WriteBuffer,
    /// Before this no load or store is issued.
    pub(super) barrier: u64,
    pub(super) last_store: LastStore,
    pub(super) space: u32,
    /// The last cycle that something is known of. All cycles before are counted.
    pub(super) last: u64,
    /// Instructions that were issued in it so far.
    open: usize,
    /// The units of those that are issued together.
    used: u16,
    /// Cycles but those of the last cycle, which may not be over.
    pub(crate) cycles: Cycles,
    /// Instructions that were emulated.
    pub(crate) emulated: u64,
    /// Instructions that were issued in vain.
    pub(crate) replays: u64,
}

/// What loads have to know of the last store.
#[derive(Clone, Copy, Default)]
pub(super) struct LastStore {
    pub(super) time: u64,
    pub(super) address: u64,
    pub(super) is_hit: bool,
}

impl<M: MemorySystem> Core<M> {
    /// A pipeline in which nothing was executed. An instruction that `cpu` has not costs so many cycles.
    pub(crate) fn new(
        pipeline: &Pipeline,
        predictor: Predicting,
        timing: &Timing,
        memory: M,
        cpu: Option<Cpu>,
        emulation: u64,
    ) -> Core<M> {
        let rules = Rules::new(pipeline);
        let loads = pipeline.loads.clone();
        let stores = pipeline.stores.clone();
        Core {
            front: Front::new(pipeline, predictor, timing, rules.group_shift),
            misses: Misses::new(timing.data_line, loads.outstanding),
            write_buffer: WriteBuffer::new(timing.write_buffer, stores.drain_from, timing.data_line),
            load_cycles: timing.load,
            call_pal: pipeline.call_pal.into(),
            free: vec![0; Class::COUNT],
            rules,
            loads,
            stores,
            emulation,
            cpu,
            memory,
            blocks: Vec::new(),
            steps: Vec::new(),
            sites: Vec::new(),
            registers: [Register::produced(0, 0); 64],
            blocked: [(0, 0); 8],
            blocked_next: 0,
            blocked_until: 0,
            barrier: 0,
            last_store: LastStore::default(),
            space: 0,
            last: BEGINNING,
            open: 0,
            used: 0,
            cycles: Cycles::default(),
            emulated: 0,
            replays: 0,
        }
    }

    /// A block that can be executed from now on.
    pub(crate) fn define(&mut self, address: u64, words: &[u32]) {
        let first = self.steps.len() as u32;
        self.rules.decode(address, words, self.cpu, &mut self.steps);
        self.sites.resize(self.steps.len(), SiteCycles::default());
        let end = End::of(address, words);
        self.blocks.push(Block { address, first, length: words.len() as u32, end });
    }

    /// The process whose blocks are executed from now on.
    pub(crate) fn enter(&mut self, space: u32) {
        if space != self.space {
            self.space = space;
            self.memory.enter(space);
            self.front.forget_line();
            self.front.divert();
        }
    }

    /// Control goes on elsewhere than the last instruction says.
    pub(crate) fn divert(&mut self) {
        self.front.divert();
    }

    /// Cycles so far, all of them.
    pub(crate) fn all_cycles(&self) -> Cycles {
        let mut cycles = self.cycles.clone();
        cycles.0[self.open] += u64::from(self.open > 0);
        cycles
    }

    /// The cycles of a block's instructions.
    pub(crate) fn sites(&self, block: usize) -> &[SiteCycles] {
        let Some(&Block { first, length, .. }) = self.blocks.get(block) else { return &[] };
        &self.sites[first as usize..][..length as usize]
    }

    /// A block was executed.
    #[inline]
    pub(crate) fn execute(&mut self, block: u32, addresses: &[u64]) {
        let Block { address, first, length, end } = self.blocks[block as usize];
        if length == 0 {
            return;
        }
        let mut addresses = addresses.iter().copied();
        self.front.resolve(address, self.last);
        if self.front.begins_group(address) {
            self.begin_group(address, first as usize);
        }
        for place in 0..length as usize {
            let index = first as usize + place;
            let step = self.steps[index];
            if step.flags & GROUP != 0 && place > 0 {
                self.begin_group(address.wrapping_add(4 * place as u64), index);
            }
            self.step(step, index, &mut addresses);
        }
        self.front.end(end, address.wrapping_add(4 * u64::from(length)));
    }

    /// A group arrives, and its first instruction waits for it.
    #[inline]
    fn begin_group(&mut self, address: u64, index: usize) {
        let (mut time, cause) = self.front.fetch(address);
        self.stall(time, cause, index);
        if self.front.begins_line(address) {
            let served = self.memory.fetch(address);
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
        self.front.arrive(time.max(self.last + 1));
        self.used = FRESH;
    }

    #[inline(always)]
    fn step(&mut self, step: Step, index: usize, addresses: &mut impl Iterator<Item = u64>) {
        let (fits, units) = self.slot(&step);
        let mut time = self.last + u64::from(!(fits && self.open > 0));
        let mut ready = 0;
        for (source, column) in step.sources.into_iter().zip(step.columns) {
            let register = &self.registers[source as usize % 64];
            ready = ready.max(register.issued + self.rules.latency(register.class, column));
        }
        if step.destination != NONE {
            let register = &self.registers[step.destination as usize % 64];
            ready = ready.max(register.issued + self.rules.order(register.class, step.class));
        }
        if ready > time {
            time = self.wait_for_operands(&step, index, time);
        }
        if time <= self.blocked_until {
            time = self.wait_for_blocked(time, units, index);
        }
        let mut result = Register::produced(step.class, time);
        if step.flags & (SPECIAL | LOAD | STORE | EMULATED) == 0 {
            self.issue(time, index);
        } else {
            result = self.issue_special(&step, index, time, addresses);
        }
        if step.destination != NONE {
            self.registers[step.destination as usize % 64] = result;
        }
    }

    /// Issues what does more than to compute a result in a fixed time. Says what is known of the result.
    #[inline]
    fn issue_special(
        &mut self,
        step: &Step,
        index: usize,
        mut time: u64,
        addresses: &mut impl Iterator<Item = u64>,
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
            result.issued += self.after(step, index, time);
        }
        result
    }

    /// Takes units, and says which. Says also whether they were free among those that are issued together; if
    /// not, the next ones that are issued together begin.
    #[inline(always)]
    fn slot(&mut self, step: &Step) -> (bool, u16) {
        let [first, second] = step.units;
        let units = if self.used & first == 0 { first } else { second };
        let fits = self.used & (units | FRESH) == 0 && step.flags & SPLIT == 0;
        let units = if fits { units } else { first };
        self.used = units | if fits { self.used } else { 0 };
        (fits, units)
    }

    #[inline(always)]
    fn issue(&mut self, time: u64, index: usize) {
        debug_assert!(time == self.last || time == self.last + 1);
        if time > self.last {
            self.cycles.0[self.open] += 1;
            self.sites[index].issuing += 1;
            self.last = time;
            self.open = 0;
        }
        self.open = (self.open + 1).min(WIDEST);
    }

    /// Nothing is issued before `until`. Cycles that are counted stay what they are.
    #[inline(always)]
    pub(super) fn stall(&mut self, until: u64, cause: Cause, index: usize) {
        if until > self.last + 1 {
            self.count_stall(until, cause, index);
        }
    }

    #[cold]
    fn count_stall(&mut self, until: u64, cause: Cause, index: usize) {
        let cycles = until - self.last - 1;
        self.cycles.0[self.open] += 1;
        self.open = 0;
        self.last = until - 1;
        self.cycles.0[cause.index()] += cycles;
        let site = &mut self.sites[index];
        match cause.side() {
            Side::Dry => site.dry += cycles,
            _ => site.frozen += cycles,
        }
    }
}
