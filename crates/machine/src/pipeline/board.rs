//! The scoreboard: when registers and units can be used.

use super::class::Class;
use super::cycles::Cause;
use super::memory::Misses;

/// What is known of a register's last producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Register {
    /// When it was issued; of a load that missed, when a load that hit would have been issued whose result can
    /// be used when this one's can.
    pub issued: u64,
    /// The cycle in which a consumer was to be issued if the load had hit.
    pub shadow: u64,
    pub class: u8,
    pub cause: u8,
}

impl Register {
    /// Of an instruction whose result takes as long as its class says.
    #[inline(always)]
    pub fn produced(class: u8, time: u64) -> Register {
        Register { issued: time, shadow: 0, class, cause: Cause::Operand.index() as u8 }
    }

    /// Of what was issued long ago.
    pub fn ready() -> Register {
        Register::produced(0, 0)
    }
}

/// When the last store was issued; and which access of the block it is, if it is one of those that are issued.
#[derive(Clone, Copy)]
pub(super) struct LastStore {
    pub time: u64,
    pub access: Option<u32>,
}

/// The scoreboard.
pub(super) struct Board {
    pub registers: [Register; 64],
    /// The registers that something is known of, a bit each.
    pub written: u64,
    /// When each unit that works on one at a time is free.
    pub free: [u64; Class::COUNT],
    /// Cycles in which units are blocked, and which.
    pub blocked: Vec<(u64, u16)>,
    /// The last cycle in which something is blocked, or held.
    pub blocked_until: u64,
    /// Before this nothing is issued.
    pub hold: u64,
    pub misses: Misses,
    /// Before this no load or store is issued.
    pub barrier: u64,
    pub last_store: Option<LastStore>,
    /// The next group does not arrive before, and why.
    pub restart: Option<(u64, Cause)>,
    /// The last cycle that something is known of. All cycles before are counted.
    pub last: u64,
    /// Instructions that were issued in it so far.
    pub open: usize,
    /// The units of those that are issued together.
    pub used: u16,
}

/// The cycle before the first one: what was never computed was computed long before.
pub(super) const BEGINNING: u64 = 1 << 10;

/// Stands for the units of no instruction: nothing is issued together with what was before.
pub(super) const FRESH: u16 = 1 << 15;

impl Board {
    /// On which nothing was ever issued.
    pub fn new(misses: Misses) -> Board {
        Board {
            registers: [Register::ready(); 64],
            written: 0,
            free: [0; Class::COUNT],
            blocked: Vec::new(),
            blocked_until: 0,
            hold: 0,
            misses,
            barrier: 0,
            last_store: None,
            restart: None,
            last: BEGINNING,
            open: 0,
            used: FRESH,
        }
    }

    /// A register is written.
    #[inline(always)]
    pub fn write(&mut self, register: u8, result: Register) {
        self.registers[register as usize % 64] = result;
        self.written |= 1 << (register % 64);
    }

    /// Units are blocked in a cycle.
    pub fn block(&mut self, cycle: u64, units: u16) {
        self.blocked.push((cycle, units));
        self.blocked_until = self.blocked_until.max(cycle);
    }

    /// Nothing is issued before `time`.
    pub fn hold_until(&mut self, time: u64) {
        self.hold = time;
        self.blocked_until = self.blocked_until.max(time.saturating_sub(1));
    }
}
