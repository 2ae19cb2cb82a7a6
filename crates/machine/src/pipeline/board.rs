//! The scoreboard: when registers and units can be used, and the cycles so far.

use super::class::Class;
use super::cycles::{Cause, Cycles};
use super::memory::{Misses, WriteBuffer};

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

impl Register {
    /// Of an instruction whose result takes as long as its class says.
    #[inline(always)]
    pub(super) fn produced(class: u8, time: u64) -> Register {
        Register { issued: time, shadow: 0, class, cause: Cause::Operand.index() as u8 }
    }
}

/// What loads have to know of the last store.
#[derive(Clone, Copy, Default)]
pub(super) struct LastStore {
    pub(super) time: u64,
    pub(super) address: u64,
    pub(super) is_hit: bool,
}

impl LastStore {
    /// The bits of an address that say whether a load is of what was just stored.
    pub const COMPARED: u64 = 0x1ffc;

    /// Whether what it stored is in the first cache, at an address that looks like this one.
    pub fn is_of(&self, address: u64) -> bool {
        self.is_hit && (address ^ self.address) & LastStore::COMPARED == 0
    }
}

/// The scoreboard.
#[derive(Clone)]
pub(super) struct Board {
    pub(super) registers: [Register; 64],
    /// When nothing waits for any register.
    pub(super) ready: u64,
    /// When each unit that works on one at a time is free.
    pub(super) free: Vec<u64>,
    /// Cycles in which units are blocked, and which; the oldest are replaced.
    pub(super) blocked: [(u64, u16); 8],
    pub(super) blocked_next: usize,
    /// The last cycle in which something is blocked, or held.
    pub(super) blocked_until: u64,
    /// Before this nothing is issued.
    pub(super) hold: u64,
    pub(super) misses: Misses,
    pub(super) write_buffer: WriteBuffer,
    /// Before this no load or store is issued.
    pub(super) barrier: u64,
    pub(super) last_store: LastStore,
    pub(super) space: u32,
    /// The last cycle that something is known of. All cycles before are counted.
    pub(super) last: u64,
    /// Instructions that were issued in it so far.
    pub(super) open: usize,
    /// The units of those that are issued together.
    pub(super) used: u16,
    /// Cycles but those of the last cycle, which may not be over.
    pub(super) cycles: Cycles,
    /// Instructions that were emulated.
    pub(super) emulated: u64,
    /// Instructions that were issued in vain.
    pub(super) replays: u64,
}

/// The cycle before the first one: what was never computed was computed long before.
pub(super) const BEGINNING: u64 = 1 << 10;

/// Stands for the units of no instruction: nothing is issued together with what was before.
pub(super) const FRESH: u16 = 1 << 15;

impl Board {
    /// On which nothing was ever issued.
    pub fn new(misses: Misses, write_buffer: WriteBuffer) -> Board {
        Board {
            registers: [Register::produced(0, 0); 64],
            ready: 0,
            free: vec![0; Class::COUNT],
            blocked: [(0, 0); 8],
            blocked_next: 0,
            blocked_until: 0,
            hold: 0,
            misses,
            write_buffer,
            barrier: 0,
            last_store: LastStore::default(),
            space: 0,
            last: BEGINNING,
            open: 0,
            used: FRESH,
            cycles: Cycles::default(),
            emulated: 0,
            replays: 0,
        }
    }
}
