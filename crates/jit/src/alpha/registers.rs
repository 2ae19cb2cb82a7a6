//! Where compiled code keeps the guest's registers: the same place everywhere, so that any code can go on
//! with any other, and the interpreter with both, without moving anything.

use std::mem::offset_of;

use events::HitFilter;

use crate::host::assembler::*;
use alpha::cpu::{Cpu, HostSide};
use alpha::observer::InstrumentationLevel;

/// Points into the Cpu, so that a displacement of one byte reaches most integer registers and what lies
/// behind them.
pub(crate) const CPU: Register = R15;
/// How far into it: so that the displacement of the address limit is [`FAULTING`].
pub(crate) const BIAS: usize = ADDRESS_LIMIT - FAULTING as usize;

const ADDRESS_LIMIT: usize = offset_of!(Cpu, host) + offset_of!(HostSide, address_limit);

/// An instruction of one byte that no user's program may execute: `ins`. A jump to the last byte of a comparison
/// with the address limit, its displacement, raises SIGSEGV.
const FAULTING: u8 = 0x6c;

/// The address limit.
pub(crate) fn address_limit() -> Place {
    field(ADDRESS_LIMIT)
}

/// Integer registers that live in the host's: those that compilers' code uses most. All others, and the
/// floating-point registers, live in the Cpu.
const HELD: [(u8, Register); 12] = [
    (1, RBX),
    (2, RSI),
    (3, RDI),
    (4, R8),
    (5, R11),
    (9, R9),
    (10, R12),
    (11, R14),
    (12, R13),
    (16, RDX),
    (29, R10),
    (30, RBP),
];

/// Where counting code has the number of instructions, instead of a register of the guest.
pub(crate) const INSTRUCTIONS: Register = R14;

/// In code that looks up a hit filter, the register of the time (`FilterTable::now`) instead.
pub(crate) const TIME: Register = INSTRUCTIONS;

/// Where tracing code has the place of the record that it writes, likewise.
pub(crate) const RECORD: Register = R13;

/// Which registers of the guest are in which of the host's.
pub(crate) struct Registers {
    held: [Option<Register>; 32],
    level: InstrumentationLevel,
    /// The place of the time, if accesses are looked up in a hit filter.
    time: Option<Place>,
}

impl Registers {
    pub(crate) fn new(level: InstrumentationLevel, hit_filter: Option<&HitFilter>) -> Registers {
        let time = hit_filter.map(|hit_filter| beside_record(hit_filter, hit_filter.now));
        let mut registers = Registers { held: [None; 32], level, time };
        for (guest, host) in HELD {
            let is_taken = host == INSTRUCTIONS && registers.counts_instructions()
                || host == RECORD && registers.traces();
            registers.held[usize::from(guest)] = Some(host).filter(|_| !is_taken);
        }
        registers
    }

    /// Whether instructions are counted.
    pub(crate) fn counts_instructions(&self) -> bool {
        self.level != InstrumentationLevel::Off
    }

    /// Whether [`TIME`] is in use, and instructions are counted in the Cpu.
    pub(crate) fn is_timed(&self) -> bool {
        self.time.is_some()
    }

    /// Whether accesses that are not aligned are counted.
    pub(crate) fn checks_alignment(&self) -> bool {
        matches!(self.level, InstrumentationLevel::Counts | InstrumentationLevel::Accesses)
    }

    /// Whether the number of instructions is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.level == InstrumentationLevel::Limited
    }

    /// Whether executions of blocks are counted.
    pub(crate) fn counts_blocks(&self) -> bool {
        self.level == InstrumentationLevel::Counts
    }

    /// Whether blocks have counters.
    pub(crate) fn has_counters(&self) -> bool {
        matches!(self.level, InstrumentationLevel::Counts | InstrumentationLevel::Unfiltered)
    }

    /// Whether [`RECORD`] is in use.
    pub(crate) fn traces(&self) -> bool {
        matches!(self.level, InstrumentationLevel::Accesses | InstrumentationLevel::Unfiltered)
    }

    /// The host's register that holds an integer register of the guest.
    pub(crate) fn held(&self, guest: u8) -> Option<Register> {
        self.held[usize::from(guest)]
    }

    /// What is in host registers while compiled code runs, and its place in the Cpu.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Register, Place)> + '_ {
        let guest = (0u8..).zip(self.held).filter_map(|(guest, host)| Some((host?, integer(guest))));
        let count = (INSTRUCTIONS, instructions());
        let count = (self.counts_instructions() && !self.is_timed()).then_some(count);
        let record = (RECORD, host_field(offset_of!(HostSide, record)));
        // The time is beside the record.
        let time = self.time.map(|place| (TIME, place));
        guest.chain(count).chain(self.traces().then_some(record)).chain(time)
    }
}

/// The place of a field of the Cpu.
pub(crate) fn field(offset: usize) -> Place {
    Place { base: CPU, displacement: offset as i32 - BIAS as i32 }
}

/// The place of a field of [`HostSide`].
pub(crate) fn host_field(offset: usize) -> Place {
    field(offset_of!(Cpu, host) + offset)
}

/// The place in the Cpu of an integer register.
pub(crate) fn integer(number: u8) -> Place {
    field(offset_of!(Cpu, r) + 8 * usize::from(number))
}

/// The place of a floating-point register.
pub(crate) fn float(number: u8) -> Place {
    field(offset_of!(Cpu, f) + 8 * usize::from(number))
}

/// The place of the number of instructions.
pub(crate) fn instructions() -> Place {
    field(offset_of!(Cpu, instructions))
}

/// The place of a word of the hit filter, by its distance from the record that is written.
pub(crate) fn beside_record(hit_filter: &HitFilter, word: *mut u64) -> Place {
    let distance = word as isize - hit_filter.records as isize;
    Place { base: RECORD, displacement: i32::try_from(distance).expect("they lie together") }
}

/// Where calls must not go deeper.
pub(crate) fn stack_limit() -> Place {
    host_field(offset_of!(HostSide, stack_limit))
}
