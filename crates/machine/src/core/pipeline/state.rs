//! The state of the pipeline between two segments.

use super::cycles::Cause;
use super::memory::OutstandingMiss;
use super::rules::Rules;
use super::scoreboard::{EPOCH, LastStore, Register, Scoreboard};

/// All of the scoreboard that matters to what follows, and nothing else: from equal states, whatever follows
/// has the same timing. Times are relative, as if the last cycle were [`EPOCH`]; events that are over by then
/// are left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PipelineState {
    pub open: usize,
    used: u16,
    registers: Vec<(u8, Register)>,
    free: Vec<(usize, u64)>,
    blocked: Vec<(u64, u16)>,
    hold: u64,
    misses: Vec<OutstandingMiss>,
    barrier: u64,
    /// Cycles since the last store.
    since_store: Option<u64>,
    /// Cycles since the current group arrived, at most the horizon's.
    since_arrival: u64,
    restart: Option<(u64, Cause)>,
}

/// How long past events matter.
pub(super) struct Horizon<'a> {
    pub rules: &'a Rules,
    /// Cycles after a store.
    pub store: u64,
    /// Cycles after the arrival of a group.
    pub arrival: u64,
}

impl PipelineState {
    /// The state of a scoreboard whose current group arrived at a time.
    pub fn new(scoreboard: &Scoreboard, arrived: u64, horizon: &Horizon) -> PipelineState {
        let last = scoreboard.last;
        let passed = last - EPOCH;
        let is_ahead = |time: u64| time > last;
        let ahead = |time: u64| if is_ahead(time) { time - passed } else { 0 };
        let mut registers = Vec::new();
        let mut written = scoreboard.written;
        while written != 0 {
            let number = written.trailing_zeros() as u8;
            let register = scoreboard.registers[number as usize];
            if is_ahead(register.issued + horizon.rules.horizon(register.class)) {
                // No instruction is issued before the last cycle.
                let shadow = if register.shadow == 0 { 0 } else { register.shadow.max(last - 1) - passed };
                registers.push((number, Register { issued: register.issued - passed, shadow, ..register }));
            }
            written &= written - 1;
        }
        let since_store = scoreboard.last_store.map(|store| last.saturating_sub(store.time));
        let free = scoreboard.free.iter().copied().enumerate().filter(|unit| is_ahead(unit.1));
        let blocked = scoreboard.blocked.iter().filter(|blocked| blocked.0 >= last);
        let misses = scoreboard.misses.iter();
        let misses = misses.map(|miss| OutstandingMiss { as_if_issued: miss.as_if_issued - passed, ..*miss });
        PipelineState {
            open: scoreboard.open,
            used: scoreboard.used,
            registers,
            free: free.map(|(unit, time)| (unit, time - passed)).collect(),
            blocked: blocked.map(|&(cycle, units)| (cycle - passed, units)).collect(),
            hold: ahead(scoreboard.hold),
            misses: misses.collect(),
            barrier: ahead(scoreboard.barrier),
            since_store: since_store.filter(|&since| since <= horizon.store),
            since_arrival: last.saturating_sub(arrived).min(horizon.arrival),
            restart: scoreboard.restart.map(|(time, cause)| (time - passed, cause)),
        }
    }

    /// Restores it to a scoreboard, whose last cycle stays.
    pub fn restore(&self, scoreboard: &mut Scoreboard) {
        let passed = scoreboard.last - EPOCH;
        let ahead = |time: u64| if time == 0 { 0 } else { time + passed };
        let mut written = scoreboard.written;
        while written != 0 {
            scoreboard.registers[written.trailing_zeros() as usize] = Register::ready();
            written &= written - 1;
        }
        scoreboard.written = 0;
        for &(number, register) in &self.registers {
            let (issued, shadow) = (register.issued + passed, ahead(register.shadow));
            scoreboard.write(number, Register { issued, shadow, ..register });
        }
        scoreboard.free.fill(0);
        for &(unit, time) in &self.free {
            scoreboard.free[unit] = time + passed;
        }
        scoreboard.blocked.clear();
        scoreboard.blocked_until = 0;
        for &(cycle, units) in &self.blocked {
            scoreboard.block(cycle + passed, units);
        }
        scoreboard.hold_until(ahead(self.hold));
        let shifted =
            |miss: &OutstandingMiss| OutstandingMiss { as_if_issued: miss.as_if_issued + passed, ..*miss };
        scoreboard.misses.replace(self.misses.iter().map(shifted));
        scoreboard.barrier = ahead(self.barrier);
        scoreboard.last_store =
            self.since_store.map(|since| LastStore { time: scoreboard.last - since, access: None });
        scoreboard.restart = self.restart_after(scoreboard.last);
        scoreboard.open = self.open;
        scoreboard.used = self.used;
    }

    /// Cycles until the pipeline has drained; None if a restart is pending.
    pub fn drains_in(&self, horizon: &Horizon) -> Option<u64> {
        let last = EPOCH;
        let reaches = |register: &Register| register.issued + horizon.rules.horizon(register.class);
        let ends = (self.registers.iter().map(|(_, register)| reaches(register)))
            .chain(self.free.iter().map(|&(_, time)| time))
            .chain(self.blocked.iter().map(|&(cycle, _)| cycle + 1))
            .chain(self.misses.iter().map(|miss| miss.as_if_issued))
            .chain(self.since_store.map(|since| last + horizon.store + 1 - since))
            .chain([self.hold, self.barrier, last]);
        self.restart.is_none().then(|| ends.max().unwrap_or(last) - last)
    }

    /// The earliest arrival of the next group, and why, where the last cycle is `last`.
    pub fn restart_after(&self, last: u64) -> Option<(u64, Cause)> {
        self.restart.map(|(time, cause)| (time + last - EPOCH, cause))
    }
}
