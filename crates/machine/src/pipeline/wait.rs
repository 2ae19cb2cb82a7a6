//! What an instruction waits for before it is issued, when it is not issued at once.

use super::accesses::Accesses;
use super::board::{LastStore, Register};
use super::class::{Class, NONE};
use super::cycles::{Cause, LEVELS};
use super::hear::{Heard, NO_LINE};
use super::issue::Issue;
use super::memory::{Miss, Served, Stored};
use super::rules::{EMULATED, STORE, Step};

impl Issue {
    /// Waits until the operands can be used, and the destination can be written. An instruction that is issued
    /// as if a load had hit which has not is issued once more.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_operands(&mut self, step: &Step, place: usize, earliest: u64) -> u64 {
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
        self.stall_for(ready, cause, place);
        let mut late = missed.into_iter().filter(|&(time, shadow)| shadow != 0 && time > expected).peekable();
        let replay = u64::from(self.loads.use_replay);
        if replay > 0 && late.peek().is_some() && late.all(|(_, shadow)| shadow == expected) {
            self.course.costs.replay();
            ready = ready.max(expected + replay);
            self.stall(ready, Cause::Replay, place);
        }
        ready
    }

    fn stall_for(&mut self, until: u64, cause: u8, place: usize) {
        let level = (cause as usize).checked_sub(Cause::DataMiss(1).index());
        let cause = level.map_or(Cause::Operand, |level| Cause::DataMiss(level as u8 + 1));
        self.stall(until, cause, place);
    }

    /// Waits while a barrier holds everything, or one of the units is blocked.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_blocked(&mut self, mut time: u64, units: u16, place: usize) -> u64 {
        time = time.max(self.board.hold);
        self.stall(time, Cause::Barrier, place);
        while self.board.blocked.iter().any(|&(cycle, blocked)| cycle == time && blocked & units != 0) {
            time += 1;
        }
        self.stall(time, Cause::Unit, place);
        time
    }

    /// Waits until a unit is free that works on one at a time.
    #[inline(never)]
    pub(super) fn wait_for_unit(&mut self, step: &Step, place: usize, time: u64) -> u64 {
        let Some((unit, _)) = self.rules.classes[step.class as usize].occupies else { return time };
        let time = time.max(self.board.free[unit]);
        self.stall(time, Cause::Unit, place);
        time
    }

    /// What an instruction with special rules leaves behind. Says how much longer it takes than its class.
    #[inline(never)]
    pub(super) fn after(&mut self, step: &Step, time: u64) -> u64 {
        if step.flags & EMULATED != 0 {
            self.course.costs.emulate();
            self.board.restart = Some((time + 1 + self.emulation, Cause::Emulation));
            return 0;
        }
        let longer = self.until_registers(step, time);
        let tables = &self.rules.classes[step.class as usize];
        if let Some((unit, cycles)) = tables.occupies {
            self.board.free[unit] = time + u64::from(cycles) + longer;
        }
        if let Some((units, after)) = &tables.blocks {
            for &after in after {
                self.board.block(time + u64::from(after) + longer, *units);
            }
        }
        match Class::ALL[step.class as usize] {
            Class::CallPal => self.board.restart = Some((time + 1 + self.call_pal, Cause::CallPal)),
            Class::MemoryBarrier => {
                self.course.is_unique = true;
                let done = self.write_buffer.drain(time).max(self.board.misses.until);
                self.board.barrier = self.board.barrier.max(done).max(time + 1);
            }
            Class::TrapBarrier => {
                let done = |register: &Register| {
                    register.issued + u64::from(self.rules.classes[register.class as usize].latency)
                };
                let all_done = self.board.registers.iter().map(done).max().unwrap_or(0);
                self.board.hold_until(all_done);
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

    /// A load or store: an access of the block. Says when it is issued, and what is known of the register that it
    /// writes.
    #[inline]
    pub(super) fn access(
        &mut self,
        step: &Step,
        place: usize,
        time: u64,
        access: u32,
        accesses: Accesses,
    ) -> (u64, Register) {
        let time = time.max(self.board.barrier);
        self.stall(time, Cause::Barrier, place);
        let address = accesses.address(access);
        if step.flags & STORE != 0 {
            let time = self.store(place, time, access, accesses);
            (time, Register::produced(step.class, time))
        } else {
            self.load(step, place, time, access, address)
        }
    }

    fn load(
        &mut self,
        step: &Step,
        place: usize,
        mut time: u64,
        access: u32,
        address: u64,
    ) -> (u64, Register) {
        if self.board.misses.until > time
            && let Some(free) = self.board.misses.settle(time)
        {
            time = self.come_back(time, free, self.loads.outstanding_replay);
            self.stall(time, Cause::OutstandingMisses, place);
            self.board.misses.settle(time);
        }
        let (level, line, translation) = self.heard_of(access);
        time = self.translate(translation, place, time);
        time = self.keep_from_store(place, time, access, address);
        if line == NO_LINE {
            return (time, Register::produced(step.class, time));
        }
        let (as_if_issued, level) = match self.board.misses.find(line, time) {
            Some(miss) => (miss.as_if_issued, miss.level),
            None if level == 0 => return (time, Register::produced(step.class, time)),
            None => {
                let level = level.min(LEVELS as u8);
                let as_if_issued = time + u64::from(self.load_cycles[level as usize]);
                self.board.misses.add(Miss { line, as_if_issued, level });
                (as_if_issued, level)
            }
        };
        let latency = u64::from(self.rules.classes[step.class as usize].latency);
        let cause = Cause::DataMiss(level).index() as u8;
        (time, Register { issued: as_if_issued, shadow: time + latency, class: step.class, cause })
    }

    fn store(&mut self, place: usize, mut time: u64, access: u32, accesses: Accesses) -> u64 {
        let replay = self.stores.full_replay;
        let address = accesses.address(access);
        let line = self.line(address);
        if let Some(free) = self.write_buffer.full(line, time, replay == 0) {
            self.course.is_unique = true;
            time = self.come_back(time, free, replay);
            self.stall(time, Cause::WriteBuffer, place);
        }
        let (_, _, translation) = self.heard_of(access);
        time = self.translate(translation, place, time);
        self.finish_store(address, time, accesses.served(access));
        self.board.last_store = Some(LastStore { time, access: Some(access) });
        self.course.stores.push((access, time));
        time
    }

    /// From where the data of an access come, the number of their line if a load may find it on its way, and how
    /// long the translation takes.
    fn heard_of(&self, access: u32) -> (u8, u32, u32) {
        let of_access = |heard: &Heard| heard.as_data().filter(|data| data.access == access);
        let found = self.heard.iter().find_map(of_access);
        found.map_or((0, NO_LINE, 0), |data| (data.level, data.line, data.translation))
    }

    /// A store was issued.
    #[inline(always)]
    pub(super) fn finish_store(&mut self, address: u64, time: u64, served: Served) {
        self.write_buffer.push(self.line(address), time, self.drain_cycles(served));
        self.stored = Stored::new(address, served);
    }

    /// Cycles that it takes to write what was stored.
    #[inline(always)]
    pub(super) fn drain_cycles(&self, served: Served) -> u64 {
        let beyond = self.load_cycles[served.level.clamp(1, LEVELS as u8) as usize];
        self.stores.drain_cycles.saturating_add(beyond.saturating_sub(self.load_cycles[1])).into()
    }

    /// When an instruction can be issued that found something full: when there is place, but if it was issued in
    /// vain not before it has come back.
    fn come_back(&mut self, time: u64, free: u64, replay: u32) -> u64 {
        if replay > 0 {
            self.course.costs.replay();
        }
        free.max(time + u64::from(replay))
    }

    /// Waits for the translation of its address.
    fn translate(&mut self, translation: u32, place: usize, time: u64) -> u64 {
        if translation == 0 {
            return time;
        }
        let until = time.max(self.board.last + 1) + u64::from(translation);
        self.stall(until, Cause::DataTranslation, place);
        until
    }

    /// What a load owes to a store shortly before it.
    fn keep_from_store(&mut self, place: usize, mut time: u64, access: u32, address: u64) -> u64 {
        let Some(store) = self.board.last_store else { return time };
        let distance = time.saturating_sub(store.time);
        if self.loads.after_store_replay > 0 && distance == 1 {
            if self.stored.is_of(address) {
                self.course.is_unique = true;
                self.course.costs.replay();
                time += u64::from(self.loads.after_store_replay);
                self.stall(time, Cause::Replay, place);
                return time;
            }
            self.course.compared.push((store.access, access));
        }
        if self.loads.not_after_store > 0 && distance == u64::from(self.loads.not_after_store) {
            time += 1;
            self.stall(time, Cause::Unit, place);
        }
        time
    }
}
