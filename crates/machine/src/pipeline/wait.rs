//! What an instruction waits for before it is issued, when it is not issued at once.

use super::board::{LastStore, Register};
use super::class::{Class, NONE};
use super::cycles::{Cause, LEVELS};
use super::issue::Issue;
use super::memory::Served;
use super::rules::{EMULATED, STORE, Step};

impl Issue {
    /// Waits until the operands can be used, and the destination can be written. An instruction that is issued
    /// as if a load had hit which has not is issued once more.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_operands(&mut self, step: &Step, index: usize, earliest: u64) -> u64 {
        // When it can be issued; and when it would be if all loads had hit.
        let (mut ready, mut cause, mut expected) = (earliest, Cause::Operand.index() as u8, earliest);
        let mut wait = |register: &Register, time: u64, as_if_hit: u64| {
            if time > ready {
                (ready, cause) = (time, register.cause);
            }
            expected = expected.max(as_if_hit);
        };
        let mut missed = [(0, 0); 2];
        for ((source, column), missed) in step.sources.into_iter().zip(step.columns).zip(&mut missed) {
            let register = &self.board.registers[source as usize % 64];
            let time = register.issued + self.rules.latency(register.class, column);
            *missed = (time, register.shadow);
            wait(register, time, if register.shadow == 0 { time } else { register.shadow.min(time) });
        }
        if step.destination != NONE {
            let register = &self.board.registers[step.destination as usize % 64];
            let time = register.issued + self.rules.order(register.class, step.class);
            wait(register, time, time);
        }
        self.stall_for(ready, cause, index);
        let mut late = missed.into_iter().filter(|&(time, shadow)| shadow != 0 && time > expected).peekable();
        let replay = u64::from(self.loads.use_replay);
        if replay > 0 && late.peek().is_some() && late.all(|(_, shadow)| shadow == expected) {
            self.board.replays += 1;
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

    /// Waits while a barrier holds everything, or one of the units is blocked.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_blocked(&mut self, mut time: u64, units: u16, index: usize) -> u64 {
        time = time.max(self.board.hold);
        self.stall(time, Cause::Barrier, index);
        while self.board.blocked.iter().any(|&(cycle, blocked)| cycle == time && blocked & units != 0) {
            time += 1;
        }
        self.stall(time, Cause::Unit, index);
        time
    }

    /// Waits until a unit is free that works on one at a time.
    #[inline(never)]
    pub(super) fn wait_for_unit(&mut self, step: &Step, index: usize, time: u64) -> u64 {
        let Some((unit, _)) = self.rules.classes[step.class as usize].occupies else { return time };
        let time = time.max(self.board.free[unit]);
        self.stall(time, Cause::Unit, index);
        time
    }

    /// What an instruction with special rules leaves behind. Says how much longer it takes than its class.
    #[inline(never)]
    pub(super) fn after(&mut self, step: &Step, time: u64) -> u64 {
        if step.flags & EMULATED != 0 {
            self.board.emulated += 1;
            self.front.restart(time + 1 + self.emulation, Cause::Emulation);
            return 0;
        }
        let longer = self.until_registers(step, time);
        let tables = &self.rules.classes[step.class as usize];
        if let Some((unit, cycles)) = tables.occupies {
            self.board.free[unit] = time + u64::from(cycles) + longer;
        }
        if let Some((units, after)) = &tables.blocks {
            for &after in after {
                let cycle = time + u64::from(after) + longer;
                self.board.blocked[self.board.blocked_next] = (cycle, *units);
                self.board.blocked_next = (self.board.blocked_next + 1) % self.board.blocked.len();
                self.board.blocked_until = self.board.blocked_until.max(cycle);
            }
        }
        match Class::ALL[step.class as usize] {
            Class::CallPal => self.front.restart(time + 1 + self.call_pal, Cause::CallPal),
            Class::MemoryBarrier => {
                let done = self.board.write_buffer.drain(time).max(self.board.misses.until);
                self.board.barrier = self.board.barrier.max(done).max(time + 1);
            }
            Class::TrapBarrier => {
                let done = |register: &Register| {
                    register.issued + u64::from(self.rules.classes[register.class as usize].latency)
                };
                let all_done = self.board.registers.iter().map(done).max().unwrap_or(0);
                self.board.hold = all_done;
                self.board.blocked_until = self.board.blocked_until.max(all_done - 1);
            }
            _ => {}
        }
        longer
    }

    /// Cycles until operands have reached their registers, if it has to take them from there.
    fn until_registers(&self, step: &Step, time: u64) -> u64 {
        if !self.rules.classes[step.class as usize].from_registers {
            return 0;
        }
        let sources = step.sources.into_iter().zip(step.columns).map(|(source, column)| {
            let register = &self.board.registers[source as usize % 64];
            let more = self.rules.classes[register.class as usize].to_register;
            register.issued + self.rules.latency(register.class, column) + u64::from(more)
        });
        sources.max().unwrap_or(0).saturating_sub(time)
    }

    /// A load or store. Says when it is issued, and what is known of the register that it writes.
    #[inline]
    pub(super) fn access(&mut self, step: &Step, index: usize, time: u64, address: u64) -> (u64, Register) {
        let time = time.max(self.board.barrier);
        self.stall(time, Cause::Barrier, index);
        if step.flags & STORE != 0 {
            self.store(step, index, time, address)
        } else {
            self.load(step, index, time, address)
        }
    }

    fn load(&mut self, step: &Step, index: usize, mut time: u64, address: u64) -> (u64, Register) {
        if self.board.misses.until > time
            && let Some(free) = self.board.misses.settle(time)
        {
            time = self.come_back(time, free, self.loads.outstanding_replay);
            self.stall(time, Cause::OutstandingMisses, index);
            self.board.misses.settle(time);
        }
        let served = self.served.next();
        time = self.translate(served, index, time);
        time = self.keep_from_store(index, time, address);
        let pending = if self.board.misses.until > time {
            self.board.misses.find(self.board.space, address)
        } else {
            None
        };
        let (as_if_issued, level) = match pending {
            Some(miss) => (miss.as_if_issued.max(time), miss.level),
            None if served.level == 0 => return (time, Register::produced(step.class, time)),
            None => {
                let level = served.level.min(LEVELS as u8);
                let as_if_issued = time + u64::from(self.load_cycles[level as usize]);
                self.board.misses.add(self.board.space, address, as_if_issued, level);
                (as_if_issued, level)
            }
        };
        let latency = u64::from(self.rules.classes[step.class as usize].latency);
        let cause = Cause::DataMiss(level).index() as u8;
        (time, Register { issued: as_if_issued, shadow: time + latency, class: step.class, cause })
    }

    fn store(&mut self, step: &Step, index: usize, mut time: u64, address: u64) -> (u64, Register) {
        let replay = self.stores.full_replay;
        if let Some(free) = self.board.write_buffer.full(self.board.space, address, time, replay == 0) {
            time = self.come_back(time, free, replay);
            self.stall(time, Cause::WriteBuffer, index);
        }
        let served = self.served.next();
        time = self.translate(served, index, time);
        self.finish_store(address, time, served);
        (time, Register::produced(step.class, time))
    }

    /// A store was issued.
    pub(super) fn finish_store(&mut self, address: u64, time: u64, served: Served) {
        let beyond = self.load_cycles[served.level.clamp(1, LEVELS as u8) as usize];
        let cycles = self.stores.drain_cycles.saturating_add(beyond.saturating_sub(self.load_cycles[1]));
        self.board.write_buffer.push(self.board.space, address, time, cycles.into());
        self.board.last_store = LastStore { time, address, is_hit: served.level == 0 };
    }

    /// When an instruction can be issued that found something full: when there is place, but if it was issued in
    /// vain not before it has come back.
    fn come_back(&mut self, time: u64, free: u64, replay: u32) -> u64 {
        self.board.replays += u64::from(replay > 0);
        free.max(time + u64::from(replay))
    }

    /// Waits for the translation of its address.
    fn translate(&mut self, served: Served, index: usize, time: u64) -> u64 {
        if served.translation == 0 {
            return time;
        }
        let until = time.max(self.board.last + 1) + u64::from(served.translation);
        self.stall(until, Cause::DataTranslation, index);
        until
    }

    /// Whether a load owes nothing to the last store.
    pub(super) fn is_far_from_store(&self, time: u64, address: u64) -> bool {
        let rules = &self.loads;
        let distance = time.saturating_sub(self.board.last_store.time);
        let is_next = rules.after_store_replay > 0 && distance == 1;
        !(rules.not_after_store > 0 && distance == u64::from(rules.not_after_store)
            || is_next && self.board.last_store.is_of(address))
    }

    /// What a load owes to a store shortly before it.
    fn keep_from_store(&mut self, index: usize, mut time: u64, address: u64) -> u64 {
        let store = self.board.last_store;
        let distance = time.saturating_sub(store.time);
        if self.loads.after_store_replay > 0 && distance == 1 && store.is_of(address) {
            self.board.replays += 1;
            time += u64::from(self.loads.after_store_replay);
            self.stall(time, Cause::Replay, index);
        } else if self.loads.not_after_store > 0 && distance == u64::from(self.loads.not_after_store) {
            time += 1;
            self.stall(time, Cause::Unit, index);
        }
        time
    }
}
