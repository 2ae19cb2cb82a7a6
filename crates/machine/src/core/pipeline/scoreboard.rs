//! The scoreboard: when registers and units are ready.

use super::cycles::Cause;
use super::memory::MissAddressFile;
use isa::InstructionClass;

/// The last producer of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Register {
    /// When it was issued; for a load that missed, the issue time at which a hit would be ready when this one
    /// is.
    pub issued: u64,
    /// The cycle in which a consumer would have been issued had the load hit.
    pub shadow: u64,
    pub class: u8,
    pub cause: u8,
}

impl Register {
    /// For an instruction with the latency of its class.
    #[inline(always)]
    pub fn produced(class: u8, time: u64) -> Register {
        Register { issued: time, shadow: 0, class, cause: Cause::Operand.index() as u8 }
    }

    /// For a producer of long ago.
    pub fn ready() -> Register {
        Register::produced(0, 0)
    }
}

/// When the last store was issued, and which access of the block it was, if it is one of the current segment.
#[derive(Clone, Copy)]
pub(super) struct LastStore {
    pub time: u64,
    pub access: Option<u32>,
}

/// The scoreboard.
pub(super) struct Scoreboard {
    pub registers: [Register; 64],
    /// The registers with an entry, a bit each.
    pub written: u64,
    /// When each unit that works on one instruction at a time is free.
    pub free: [u64; InstructionClass::COUNT],
    /// Cycles in which units are blocked, and which.
    pub blocked: Vec<(u64, u16)>,
    /// The last cycle in which something is blocked, or held.
    pub blocked_until: u64,
    /// Nothing is issued before this.
    pub hold: u64,
    pub misses: MissAddressFile,
    /// No load or store is issued before this.
    pub barrier: u64,
    pub last_store: Option<LastStore>,
    /// The earliest arrival of the next group, and why.
    pub restart: Option<(u64, Cause)>,
    /// The last cycle. All cycles before are counted.
    pub last: u64,
    /// Instructions issued in the last cycle so far.
    pub open: usize,
    /// Units of the instructions that are issued together.
    pub used: u16,
}

/// The cycle before the first one, so large that earlier producers are ready.
pub(super) const EPOCH: u64 = 1 << 10;

/// Marks that nothing can be issued together with earlier instructions.
pub(super) const NO_GROUP: u16 = 1 << 15;

impl Scoreboard {
    /// Nothing was issued yet.
    pub fn new(misses: MissAddressFile) -> Scoreboard {
        Scoreboard {
            registers: [Register::ready(); 64],
            written: 0,
            free: [0; InstructionClass::COUNT],
            blocked: Vec::new(),
            blocked_until: 0,
            hold: 0,
            misses,
            barrier: 0,
            last_store: None,
            restart: None,
            last: EPOCH,
            open: 0,
            used: NO_GROUP,
        }
    }

    /// Records the producer of a register.
    #[inline(always)]
    pub fn write(&mut self, register: u8, result: Register) {
        self.registers[register as usize % 64] = result;
        self.written |= 1 << (register % 64);
    }

    /// Blocks units in a cycle.
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
