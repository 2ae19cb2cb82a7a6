//! The stalls of an instruction that cannot be issued at once.

use super::accesses::BlockAccesses;
use super::cycles::{Cause, LEVELS};
use super::issue::Issue;
use super::memory::{LastStoreData, OutstandingMiss, ServedBy};
use super::memory_response::{MemoryResponse, NO_LINE};
use super::registers::NONE;
use super::rules::{CALL, EMULATED, PipelineInstruction, STORE};
use super::scoreboard::{LastStore, RegisterProducer};
use isa::InstructionClass;

impl Issue {
    /// Waits for operands, and for the destination's previous write. An instruction issued in the shadow of a
    /// load that turned out to miss is replayed.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_operands(
        &mut self,
        step: &PipelineInstruction,
        index: usize,
        earliest: u64,
    ) -> u64 {
        // The issue time, and what it would be if all loads had hit.
        let (mut ready, mut cause, mut expected) = (earliest, Cause::Operand.index() as u8, earliest);
        let mut wait = |register: &RegisterProducer, time: u64, as_if_hit: u64| {
            if time > ready {
                (ready, cause) = (time, register.cause);
            }
            expected = expected.max(as_if_hit);
        };
        let mut missed = [(0, 0); 2];
        for ((source, column), missed) in step.sources.into_iter().zip(step.columns).zip(&mut missed) {
            let register = &self.scoreboard.registers[source as usize % 64];
            let time = register.issued + self.rules.latency(register.class, column);
            *missed = (time, register.shadow);
            wait(register, time, if register.shadow == 0 { time } else { register.shadow.min(time) });
        }
        if step.destination != NONE {
            let register = &self.scoreboard.registers[step.destination as usize % 64];
            let time = register.issued + self.rules.order(register.class, step.class);
            wait(register, time, time);
        }
        self.stall_for(ready, cause, index);
        let mut late = missed.into_iter().filter(|&(time, shadow)| shadow != 0 && time > expected).peekable();
        let replay = u64::from(self.loads.use_replay);
        if replay > 0 && late.peek().is_some() && late.all(|(_, shadow)| shadow == expected) {
            self.outcome.costs.replay();
            ready = ready.max(expected + replay);
            self.stall(ready, Cause::Replay, index);
        }
        ready
    }

    fn stall_for(&mut self, until: u64, cause: u8, index: usize) {
        let level = (cause as usize).checked_sub(Cause::DataMiss(1).index());
        let cause = level.map_or(Cause::Operand, |level| Cause::DataMiss(level as u8 + 1));
        self.stall(until, cause, index);
    }

    /// Waits while a barrier holds everything, or one of its units is blocked.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_blocked(&mut self, mut time: u64, units: u16, index: usize) -> u64 {
        time = time.max(self.scoreboard.hold);
        self.stall(time, Cause::Barrier, index);
        while self.scoreboard.blocked.iter().any(|&(cycle, blocked)| cycle == time && blocked & units != 0) {
            time += 1;
        }
        self.stall(time, Cause::Unit, index);
        time
    }

    /// Waits for a unit that works on one instruction at a time.
    #[inline(never)]
    pub(super) fn wait_for_unit(&mut self, step: &PipelineInstruction, index: usize, time: u64) -> u64 {
        let Some((unit, _)) = self.rules.classes[step.class as usize].occupies else { return time };
        let time = time.max(self.scoreboard.free[unit]);
        self.stall(time, Cause::Unit, index);
        time
    }

    /// The after-effects of an instruction with special rules. Returns how much longer than its class's
    /// latency it takes.
    #[inline(never)]
    pub(super) fn after(&mut self, step: &PipelineInstruction, time: u64) -> u64 {
        if step.flags & EMULATED != 0 {
            self.outcome.costs.emulate();
            self.scoreboard.restart = Some((time + 1 + self.emulation, Cause::Emulation));
            return 0;
        }
        let longer = self.until_registers(step, time);
        let tables = &self.rules.classes[step.class as usize];
        if let Some((unit, cycles)) = tables.occupies {
            self.scoreboard.free[unit] = time + u64::from(cycles) + longer;
        }
        if let Some((units, after)) = &tables.blocks {
            for &after in after {
                self.scoreboard.block(time + u64::from(after) + longer, *units);
            }
        }
        match InstructionClass::ALL[step.class as usize] {
            _ if step.flags & CALL != 0 => {
                self.scoreboard.restart = Some((time + 1 + self.call_pal, Cause::CallPal))
            }
            InstructionClass::MemoryBarrier => {
                self.outcome.is_unique = true;
                let done = self.write_buffer.drain(time).max(self.scoreboard.misses.until);
                self.scoreboard.barrier = self.scoreboard.barrier.max(done).max(time + 1);
            }
            InstructionClass::TrapBarrier if !self.rules.has_precise_traps => {
                let done = |register: &RegisterProducer| {
                    register.issued + u64::from(self.rules.classes[register.class as usize].latency)
                };
                let all_done = self.scoreboard.registers.iter().map(done).max().unwrap_or(0);
                self.scoreboard.hold_until(all_done);
            }
            _ => {}
        }
        longer
    }

    /// Cycles until its operands have reached their registers, where it cannot take them from bypasses.
    fn until_registers(&self, step: &PipelineInstruction, time: u64) -> u64 {
        if !self.rules.classes[step.class as usize].from_registers {
            return 0;
        }
        let sources = step.sources.into_iter().zip(step.columns).map(|(source, column)| {
            let register = &self.scoreboard.registers[source as usize % 64];
            let more = self.rules.classes[register.class as usize].to_register;
            register.issued + self.rules.latency(register.class, column) + u64::from(more)
        });
        sources.max().unwrap_or(0).saturating_sub(time)
    }

    /// Issues a load or store. Returns its time, and the scoreboard entry of the register that it writes.
    #[inline]
    pub(super) fn access(
        &mut self,
        step: &PipelineInstruction,
        index: usize,
        time: u64,
        access: u32,
        accesses: BlockAccesses,
    ) -> (u64, RegisterProducer) {
        let time = time.max(self.scoreboard.barrier);
        self.stall(time, Cause::Barrier, index);
        let address = accesses.address(access);
        if step.flags & STORE != 0 {
            let time = self.store(index, time, access, accesses);
            (time, RegisterProducer::produced(step.class, time))
        } else {
            self.load(step, index, time, access, address)
        }
    }

    fn load(
        &mut self,
        step: &PipelineInstruction,
        index: usize,
        mut time: u64,
        access: u32,
        address: u64,
    ) -> (u64, RegisterProducer) {
        if self.scoreboard.misses.until > time
            && let Some(free) = self.scoreboard.misses.advance(time)
        {
            time = self.replay_time(time, free, self.loads.outstanding_replay);
            self.stall(time, Cause::OutstandingMisses, index);
            self.scoreboard.misses.advance(time);
        }
        let (level, line, translation) = self.response_of(access);
        time = self.translate(translation, index, time);
        time = self.wait_for_store(index, time, access, (address, step.bytes));
        if line == NO_LINE {
            return (time, RegisterProducer::produced(step.class, time));
        }
        let (as_if_issued, level) = match self.scoreboard.misses.find(line, time) {
            Some(miss) => (miss.as_if_issued, miss.level),
            None if level == 0 => return (time, RegisterProducer::produced(step.class, time)),
            None => {
                let level = level.min(LEVELS as u8);
                let as_if_issued = time + u64::from(self.load_cycles[level as usize]);
                self.scoreboard.misses.add(OutstandingMiss { line, as_if_issued, level });
                (as_if_issued, level)
            }
        };
        let latency = u64::from(self.rules.classes[step.class as usize].latency);
        let cause = Cause::DataMiss(level).index() as u8;
        (time, RegisterProducer { issued: as_if_issued, shadow: time + latency, class: step.class, cause })
    }

    fn store(&mut self, index: usize, mut time: u64, access: u32, accesses: BlockAccesses) -> u64 {
        let replay = self.stores.full_replay;
        let address = accesses.address(access);
        let line = self.line(address);
        if let Some(free) = self.write_buffer.full(line, time, replay == 0) {
            self.outcome.is_unique = true;
            time = self.replay_time(time, free, replay);
            self.stall(time, Cause::WriteBuffer, index);
        }
        let (_, _, translation) = self.response_of(access);
        time = self.translate(translation, index, time);
        self.finish_store((address, accesses.bytes(access)), time, accesses.served(access));
        self.scoreboard.last_store = Some(LastStore { time, access: Some(access) });
        self.outcome.stores.push((access, time));
        time
    }

    /// The response to an access: the level that served it, the number of its line if that may be
    /// outstanding, and the cycles of the translation.
    fn response_of(&self, access: u32) -> (u8, u32, u32) {
        let of_access = |responses: &MemoryResponse| responses.as_data().filter(|data| data.access == access);
        let found = self.responses.iter().find_map(of_access);
        found.map_or((0, NO_LINE, 0), |data| (data.level, data.line, data.translation))
    }

    /// Completes a store.
    #[inline(always)]
    pub(super) fn finish_store(&mut self, (address, bytes): (u64, u8), time: u64, served: ServedBy) {
        self.write_buffer.push(self.line(address), time, self.drain_cycles(served));
        self.stored = LastStoreData::new(address, bytes, served);
    }

    /// Cycles that the write buffer takes to write a store.
    #[inline(always)]
    pub(super) fn drain_cycles(&self, served: ServedBy) -> u64 {
        let beyond = self.load_cycles[served.level.clamp(1, LEVELS as u8) as usize];
        self.stores.drain_cycles.saturating_add(beyond.saturating_sub(self.load_cycles[1])).into()
    }

    /// When an instruction that found a resource full can be issued: when there is room, but not before it
    /// has been replayed.
    fn replay_time(&mut self, time: u64, free: u64, replay: u32) -> u64 {
        if replay > 0 {
            self.outcome.costs.replay();
        }
        free.max(time + u64::from(replay))
    }

    /// Waits for the translation of its address.
    fn translate(&mut self, translation: u32, index: usize, time: u64) -> u64 {
        if translation == 0 {
            return time;
        }
        let until = time.max(self.scoreboard.last + 1) + u64::from(translation);
        self.stall(until, Cause::DataTranslation, index);
        until
    }

    /// The delay of a load shortly after a store.
    fn wait_for_store(&mut self, index: usize, mut time: u64, access: u32, loaded: (u64, u8)) -> u64 {
        let Some(store) = self.scoreboard.last_store else { return time };
        let distance = time.saturating_sub(store.time);
        if self.loads.after_store_replay > 0 && distance == 1 {
            if self.stored.overlaps(loaded.0, loaded.1) {
                self.outcome.is_unique = true;
                self.outcome.costs.replay();
                time += u64::from(self.loads.after_store_replay);
                self.stall(time, Cause::Replay, index);
                return time;
            }
            self.outcome.store_load_pairs.push((store.access, access));
        }
        if self.loads.not_after_store > 0 && distance == u64::from(self.loads.not_after_store) {
            time += 1;
            self.stall(time, Cause::Unit, index);
        }
        time
    }
}
