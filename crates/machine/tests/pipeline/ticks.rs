//! The timed part of the reference model: every rule is evaluated in every cycle.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use pathlength_machine::pipeline::{InstructionClass, OperandRole, Pipeline};
use pathlength_machine::{Cause, Machine};

use super::memory::{LINE, serve};
use super::slots::{Executed, Reached, Slotted, rules, slot};

/// The state of a register.
struct Result {
    issued: u64,
    class: InstructionClass,
    /// For a load that missed, the level that serves it, and the cycle in which it still seems to have hit.
    missed: Option<(u8, u64)>,
}

/// The rules that the next instruction has to pass, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Fetch,
    Operands,
    TrapBarrier,
    Blocked,
    Occupied,
    Barrier,
    Full,
    Translation,
    Store,
    Ready,
}

pub struct Ticks<'a> {
    pipeline: &'a Pipeline,
    /// Latencies beyond L1's, of instructions and of data.
    beyond: [Vec<u64>; 2],
    /// The latencies of the first caches, of instructions and of data.
    hits: [u64; 2],
    entries: usize,
    now: u64,
    /// The cycle in which the last instruction was issued.
    last: u64,
    /// The waits of the next instruction, each with its end and its cause; and the rules that it has passed.
    holds: VecDeque<(u64, Cause)>,
    stage: Stage,
    /// When the group of the last instruction arrived, and in which line it is.
    arrived: u64,
    line: Option<u64>,
    /// The last instruction line that missed, when it arrives, and from which level.
    missed: Option<(u64, u64, u8)>,
    registers: HashMap<u8, Result>,
    free: HashMap<&'a str, u64>,
    blocked: HashSet<(&'a str, u64)>,
    /// Outstanding lines of data: when a load of them would be issued to hit, and the level that serves them.
    missing: Vec<(u64, u64, u8)>,
    barrier: u64,
    trap_barrier: u64,
    /// The write buffer: blocks and the cycles to write them; and when the current write is finished.
    waiting: VecDeque<(u64, u64)>,
    writing: Option<u64>,
    store: Option<(u64, (u64, u8), bool)>,
}

const BEGINNING: u64 = 1 << 12;

impl<'a> Ticks<'a> {
    pub fn new(machine: &'a Machine) -> Ticks<'a> {
        let beyond = [true, false].map(|side| {
            let path = machine.caches.iter().filter(|cache| cache.holds.has(side));
            let path: Vec<f64> = path.map(|cache| cache.latency).collect();
            let memory = machine.memory.latency_ns * machine.processor.clock_mhz / 1000.0;
            let hidden = if side { 1.0 } else { path[0] };
            (0..8).map(|level| (path.get(level).unwrap_or(&memory) - hidden).round() as u64).collect()
        });
        let hit =
            |side: bool| machine.caches.iter().find(|cache| cache.holds.has(side)).unwrap().latency as u64;
        let first = machine.caches.iter().find(|cache| cache.holds.has(false)).unwrap();
        Ticks {
            pipeline: machine.pipeline.as_ref().unwrap(),
            beyond,
            hits: [hit(true), hit(false)],
            entries: first.write_buffer.unwrap().entries as usize,
            now: BEGINNING + 1,
            last: BEGINNING,
            holds: VecDeque::new(),
            stage: Stage::Fetch,
            arrived: BEGINNING,
            line: None,
            missed: None,
            registers: HashMap::new(),
            free: HashMap::new(),
            blocked: HashSet::new(),
            missing: Vec::new(),
            barrier: 0,
            trap_barrier: 0,
            waiting: VecDeque::new(),
            writing: None,
            store: None,
        }
    }

    /// The cycles of a program by cause.
    pub fn run(mut self, machine: &Machine, program: &[Executed]) -> BTreeMap<Cause, u64> {
        let mut cycles = BTreeMap::new();
        let slotted = slot(machine, program);
        let mut next = 0;
        while next < program.len() {
            self.write();
            let mut issued = 0;
            let mut hindrance = None;
            while next < program.len() && hindrance.is_none() {
                hindrance = self.stall(&program[next], &slotted[next], issued);
                if hindrance.is_none() {
                    self.issue(&program[next]);
                    (next, issued) = (next + 1, issued + 1);
                }
            }
            let cause = if issued > 0 { Cause::Issued(issued) } else { hindrance.unwrap() };
            *cycles.entry(cause).or_default() += 1;
            self.now += 1;
        }
        cycles
    }

    /// Why the next instruction is not issued in this cycle. A rule that it has passed is not evaluated again.
    fn stall(&mut self, one: &Executed, slotted: &Slotted, issued: u8) -> Option<Cause> {
        let is_joining = issued > 0;
        if is_joining && slotted.is_later || u32::from(issued) == self.pipeline.group {
            return Some(Cause::Unit);
        }
        loop {
            while let Some(&(until, cause)) = self.holds.front() {
                if self.now < until {
                    return Some(cause);
                }
                self.holds.pop_front();
            }
            match self.stage {
                Stage::Fetch => slotted.fetches.iter().for_each(|&fetch| self.fetch(fetch)),
                Stage::Operands => self.operands(one)?,
                Stage::TrapBarrier => self.holds.push_back((self.trap_barrier, Cause::Barrier)),
                Stage::Blocked => {
                    let mut units = slotted.units.iter();
                    if units.any(|unit| self.blocked.contains(&(unit.as_str(), self.now))) {
                        return Some(Cause::Unit);
                    }
                }
                Stage::Occupied => {
                    let occupied = rules(self.pipeline, one.class).occupies.as_ref();
                    let free = occupied.and_then(|occupied| self.free.get(occupied.unit.as_str()));
                    self.holds.extend(free.map(|&free| (free, Cause::Unit)));
                }
                Stage::Ready => return None,
                _ => self.memory(one, is_joining),
            }
            self.stage = match self.stage {
                Stage::Fetch => Stage::Operands,
                Stage::Operands => Stage::TrapBarrier,
                Stage::TrapBarrier => Stage::Blocked,
                Stage::Blocked => Stage::Occupied,
                Stage::Occupied if one.access.is_some() => Stage::Barrier,
                Stage::Barrier => Stage::Full,
                Stage::Full => Stage::Translation,
                Stage::Translation => Stage::Store,
                _ => Stage::Ready,
            };
        }
    }

    /// Fetches a group of an instruction.
    fn fetch(&mut self, (reached, address): (Reached, u64)) {
        let (mut time, cause) = match reached {
            Reached::InSequence => (self.arrived + 1, Cause::TakenBranch),
            Reached::ByBranch => (self.arrived + 1 + u64::from(self.pipeline.taken), Cause::TakenBranch),
            Reached::ByMisprediction => {
                (self.last + 1 + self.hits[0] + u64::from(self.pipeline.mispredict), Cause::Mispredict)
            }
            Reached::AfterCall => {
                (self.last + 1 + self.hits[0] + u64::from(self.pipeline.call_pal), Cause::CallPal)
            }
        };
        self.holds.push_back((time, cause));
        let line = address / LINE;
        if self.line.replace(line) != Some(line) {
            let served = serve(address);
            time += u64::from(served.translation);
            self.holds.push_back((time, Cause::InstructionTranslation));
            if served.level > 0 || served.is_ahead {
                let before = self
                    .missed
                    .filter(|before| served.is_ahead && (before.0..=before.0 + 64).contains(&line));
                let missed = before.map_or_else(
                    || {
                        let level = served.level.max(1);
                        (line, time + self.beyond[0][level as usize], level)
                    },
                    |(before, comes, level)| {
                        (line, comes + (line - before) * u64::from(self.pipeline.prefetch_interval), level)
                    },
                );
                self.missed = Some(missed);
                time = time.max(missed.1);
                self.holds.push_back((time, Cause::InstructionMiss(missed.2)));
            }
        }
        self.arrived = time.max(self.last + 1);
    }

    fn latency(&self, from: InstructionClass, to: InstructionClass, is_special: bool) -> u64 {
        let mut latency = self.own_latency(from);
        for bypass in &self.pipeline.bypasses {
            let operand = matches!(bypass.operand, None | Some(OperandRole::Tested | OperandRole::Stored) if is_special)
                || bypass.operand.is_none();
            if operand && bypass.from.contains(&from) && bypass.to.contains(&to) {
                latency = bypass.latency.into();
            }
        }
        latency
    }

    /// The latency of a class, of loads that hit.
    fn own_latency(&self, class: InstructionClass) -> u64 {
        let rules = rules(self.pipeline, class);
        match class {
            InstructionClass::Load | InstructionClass::FloatLoad | InstructionClass::LoadLocked => {
                self.hits[1] + u64::from(rules.beyond_cache)
            }
            _ => rules.latency.unwrap_or(1).into(),
        }
    }

    /// Waits for operands. An instruction in the shadow of a load that missed is replayed. Evaluated again in each cycle.
    fn operands(&mut self, one: &Executed) -> Option<()> {
        let mut waits: Vec<(u64, Cause, Option<u64>)> = Vec::new();
        let cause =
            |result: &Result| result.missed.map_or(Cause::Operand, |(level, _)| Cause::DataMiss(level));
        for &(register, is_special) in &one.sources {
            if let Some(result) = self.registers.get(&register) {
                let time = result.issued + self.latency(result.class, one.class, is_special);
                waits.push((time, cause(result), result.missed.map(|(_, seems)| seems)));
            }
        }
        if let Some(result) = one.destination.and_then(|register| self.registers.get(&register)) {
            let [before, own] = [result.class, one.class].map(|class| {
                let rules = rules(self.pipeline, class);
                rules.write.map_or(self.own_latency(class), u64::from)
            });
            let time = result.issued + (before + 1).saturating_sub(own).max(1);
            waits.push((time, cause(result), None));
        }
        self.wait_or_replay(&waits);
        Some(())
    }

    /// Cycles pass until all operands are ready, or the instruction is replayed.
    fn wait_or_replay(&mut self, waits: &[(u64, Cause, Option<u64>)]) {
        let Some(&(last, cause, _)) = waits.iter().rev().max_by_key(|wait| wait.0) else { return };
        let replay = u64::from(self.pipeline.loads.use_replay);
        for now in self.now.. {
            let mut late = waits.iter().filter(|wait| wait.0 > now).peekable();
            if late.peek().is_none() {
                self.holds.push_back((last, cause));
                return;
            }
            if replay > 0 && late.all(|wait| wait.2 == Some(now)) {
                self.holds.push_back((last, cause));
                self.holds.push_back((last.max(now + replay), Cause::Replay));
                return;
            }
        }
    }

    /// Memory's rules.
    fn memory(&mut self, one: &Executed, is_joining: bool) {
        let Some((address, bytes, is_store)) = one.access else { return };
        let (loads, stores) = (&self.pipeline.loads, &self.pipeline.stores);
        let hold = match self.stage {
            Stage::Barrier => Some((self.barrier, Cause::Barrier)),
            Stage::Full if is_store => self
                .full(address)
                .map(|free| (free.max(self.now + u64::from(stores.full_replay)), Cause::WriteBuffer)),
            Stage::Full => self.all_missing().map(|free| {
                (free.max(self.now + u64::from(loads.outstanding_replay)), Cause::OutstandingMisses)
            }),
            Stage::Translation => {
                let translation = u64::from(serve(address).translation);
                let start = self.now + u64::from(is_joining);
                (translation > 0).then_some((start + translation, Cause::DataTranslation))
            }
            Stage::Store if !is_store => self.store.and_then(|(time, stored, is_hit)| {
                // Longwords of both, by bits 2 to 12 of their addresses.
                let longwords =
                    |from: u64, bytes: u8| (from..from + u64::from(bytes)).map(|byte| byte >> 2 & 0x7ff);
                let same = longwords(stored.0, stored.1)
                    .any(|one| longwords(address, bytes).any(|other| one == other));
                if time + 1 == self.now && same && is_hit && loads.after_store_replay > 0 {
                    Some((self.now + u64::from(loads.after_store_replay), Cause::Replay))
                } else if loads.not_after_store > 0 && time + u64::from(loads.not_after_store) == self.now {
                    Some((self.now + 1, Cause::Unit))
                } else {
                    None
                }
            }),
            _ => None,
        };
        self.holds.extend(hold);
    }

    /// When the miss address file has room for a load, if it is full now.
    fn all_missing(&self) -> Option<u64> {
        let late: Vec<u64> = self.missing.iter().map(|miss| miss.1).filter(|&time| time > self.now).collect();
        let is_full = late.len() >= self.pipeline.loads.outstanding as usize;
        if is_full { late.into_iter().min() } else { None }
    }

    /// When the write buffer has room for a store, if it is full now.
    fn full(&self, address: u64) -> Option<u64> {
        let used = self.waiting.len() + self.writing.iter().count();
        let joins = self.pipeline.stores.full_replay == 0 && self.is_waiting(address);
        self.writing.filter(|_| used >= self.entries && !joins)
    }

    fn is_waiting(&self, address: u64) -> bool {
        self.waiting.iter().any(|waiting| waiting.0 == address / 32)
    }

    /// Advances the write buffer.
    fn write(&mut self) {
        if self.writing == Some(self.now) {
            self.writing = None;
        }
        if self.writing.is_none() && self.waiting.len() >= self.pipeline.stores.drain_from as usize {
            self.writing = self.waiting.pop_front().map(|(_, cycles)| self.now + cycles);
        }
    }

    /// Issues an instruction in this cycle.
    fn issue(&mut self, one: &Executed) {
        let own = rules(self.pipeline, one.class);
        let mut issued = self.now;
        if own.from_registers {
            let arrive = |&(register, is_special): &(u8, bool)| {
                let Some(result) = self.registers.get(&register) else { return 0 };
                let more = rules(self.pipeline, result.class).to_register;
                result.issued + self.latency(result.class, one.class, is_special) + u64::from(more)
            };
            issued = issued.max(one.sources.iter().map(arrive).max().unwrap_or(0));
        }
        if let Some(occupies) = &own.occupies {
            self.free.insert(&occupies.unit, issued + u64::from(occupies.cycles));
        }
        if let Some(blocks) = &own.blocks {
            let cycles =
                blocks.before.iter().map(|&before| issued + u64::from(own.latency.unwrap_or(1) - before));
            self.blocked.extend(cycles.map(|cycle| (blocks.unit.as_str(), cycle)));
        }
        let mut missed = None;
        if let Some((address, bytes, is_store)) = one.access {
            let level = serve(address).level;
            if is_store {
                self.store(address, bytes, level);
            } else if let Some(late) = self.load(address, level) {
                issued = late.0;
                missed = Some((late.1, self.now + self.own_latency(one.class)));
            }
        }
        self.barriers(one.class);
        if let Some(destination) = one.destination {
            self.registers.insert(destination, Result { issued, class: one.class, missed });
        }
        self.last = self.now;
        self.stage = Stage::Fetch;
    }

    fn load(&mut self, address: u64, level: u8) -> Option<(u64, u8)> {
        let pending = self.missing.iter().find(|miss| miss.0 == address / 32 && miss.1 > self.now);
        if let Some(&(_, time, level)) = pending {
            return Some((time, level));
        }
        let time = self.now + self.beyond[1][level as usize];
        (level > 0).then(|| self.missing.push((address / 32, time, level)))?;
        Some((time, level))
    }

    fn store(&mut self, address: u64, bytes: u8, level: u8) {
        let more = self.beyond[1][level.max(1) as usize] - self.beyond[1][1];
        if !self.is_waiting(address) {
            self.waiting.push_back((address / 32, u64::from(self.pipeline.stores.drain_cycles) + more));
            self.write();
        }
        self.store = Some((self.now, (address, bytes), level == 0));
    }

    fn barriers(&mut self, class: InstructionClass) {
        if class == InstructionClass::MemoryBarrier {
            let written = self.writing.take().unwrap_or(self.now);
            let written = written + self.waiting.drain(..).map(|waiting| waiting.1).sum::<u64>();
            let loaded = self.missing.iter().map(|miss| miss.1).max().unwrap_or(0);
            self.barrier = self.barrier.max(written).max(loaded).max(self.now + 1);
        }
        if class == InstructionClass::TrapBarrier {
            let done = |result: &Result| result.issued + self.own_latency(result.class);
            let done = self.registers.values().map(done).max().unwrap_or(0);
            self.trap_barrier = done;
        }
    }
}
