//! What instructions leave to those behind them.

use super::board::{BEGINNING, Board, LastStore, Register};
use super::cycles::Cause;
use super::memory::Miss;
use super::rules::Rules;

/// All of a scoreboard that matters to what follows, and nothing else: states are equal if whatever follows takes
/// the same course. Times are as if the last cycle were [`BEGINNING`]. What is over by then is left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub open: usize,
    used: u16,
    registers: Vec<(u8, Register)>,
    free: Vec<(usize, u64)>,
    blocked: Vec<(u64, u16)>,
    hold: u64,
    misses: Vec<Miss>,
    barrier: u64,
    /// Cycles since the last store.
    since_store: Option<u64>,
    /// Cycles since the current group arrived; so many, if it is of no account.
    since_arrival: u64,
    restart: Option<(u64, Cause)>,
}

/// What says how long things matter.
pub(super) struct Reach<'a> {
    pub rules: &'a Rules,
    /// Cycles after a store.
    pub store: u64,
    /// Cycles after the arrival of a group.
    pub arrival: u64,
}

impl State {
    /// What a scoreboard leaves, whose current group arrived at a time.
    pub fn new(board: &Board, arrived: u64, reach: &Reach) -> State {
        let last = board.last;
        let passed = last - BEGINNING;
        let is_ahead = |time: u64| time > last;
        let ahead = |time: u64| if is_ahead(time) { time - passed } else { 0 };
        let mut registers = Vec::new();
        let mut written = board.written;
        while written != 0 {
            let number = written.trailing_zeros() as u8;
            let register = board.registers[number as usize];
            if is_ahead(register.issued + reach.rules.reach(register.class)) {
                // No instruction is to be issued before the last cycle.
                let shadow = if register.shadow == 0 { 0 } else { register.shadow.max(last - 1) - passed };
                registers.push((number, Register { issued: register.issued - passed, shadow, ..register }));
            }
            written &= written - 1;
        }
        let since_store = board.last_store.map(|store| last.saturating_sub(store.time));
        let free = board.free.iter().copied().enumerate().filter(|unit| is_ahead(unit.1));
        let blocked = board.blocked.iter().filter(|blocked| blocked.0 >= last);
        let misses = board.misses.iter();
        let misses = misses.map(|miss| Miss { as_if_issued: miss.as_if_issued - passed, ..*miss });
        State {
            open: board.open,
            used: board.used,
            registers,
            free: free.map(|(unit, time)| (unit, time - passed)).collect(),
            blocked: blocked.map(|&(cycle, units)| (cycle - passed, units)).collect(),
            hold: ahead(board.hold),
            misses: misses.collect(),
            barrier: ahead(board.barrier),
            since_store: since_store.filter(|&since| since <= reach.store),
            since_arrival: last.saturating_sub(arrived).min(reach.arrival),
            restart: board.restart.map(|(time, cause)| (time - passed, cause)),
        }
    }

    /// Puts it on a scoreboard, whose last cycle stays what it is.
    pub fn restore(&self, board: &mut Board) {
        let passed = board.last - BEGINNING;
        let ahead = |time: u64| if time == 0 { 0 } else { time + passed };
        let mut written = board.written;
        while written != 0 {
            board.registers[written.trailing_zeros() as usize] = Register::ready();
            written &= written - 1;
        }
        board.written = 0;
        for &(number, register) in &self.registers {
            let (issued, shadow) = (register.issued + passed, ahead(register.shadow));
            board.write(number, Register { issued, shadow, ..register });
        }
        board.free.fill(0);
        for &(unit, time) in &self.free {
            board.free[unit] = time + passed;
        }
        board.blocked.clear();
        board.blocked_until = 0;
        for &(cycle, units) in &self.blocked {
            board.block(cycle + passed, units);
        }
        board.hold_until(ahead(self.hold));
        let later = |miss: &Miss| Miss { as_if_issued: miss.as_if_issued + passed, ..*miss };
        board.misses.replace(self.misses.iter().map(later));
        board.barrier = ahead(self.barrier);
        board.last_store = self.since_store.map(|since| LastStore { time: board.last - since, access: None });
        board.restart = self.restart_after(board.last);
        board.open = self.open;
        board.used = self.used;
    }

    /// Cycles until nothing is left that matters; nothing if a restart is.
    pub fn settles_in(&self, reach: &Reach) -> Option<u64> {
        let last = BEGINNING;
        let reaches = |register: &Register| register.issued + reach.rules.reach(register.class);
        let ends = (self.registers.iter().map(|(_, register)| reaches(register)))
            .chain(self.free.iter().map(|&(_, time)| time))
            .chain(self.blocked.iter().map(|&(cycle, _)| cycle + 1))
            .chain(self.misses.iter().map(|miss| miss.as_if_issued))
            .chain(self.since_store.map(|since| last + reach.store + 1 - since))
            .chain([self.hold, self.barrier, last]);
        self.restart.is_none().then(|| ends.max().unwrap_or(last) - last)
    }

    /// Before when the next group does not arrive, and why, if the last cycle is this.
    pub fn restart_after(&self, last: u64) -> Option<(u64, Cause)> {
        self.restart.map(|(time, cause)| (time + last - BEGINNING, cause))
    }
}
