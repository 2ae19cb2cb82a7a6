//! The fixed assignment of guest registers to host registers. It is the same in all compiled code, so that control can
//! pass from any code to any other, and to the interpreter, without moving registers.

use std::marker::PhantomData;

use events::HitFilter;

use guest::{HostSide, InstrumentationLevel};

use crate::host::assembler::*;
use crate::target::Target;

/// Points into the guest's state, so that a displacement of one byte reaches most integer registers and the fields behind
/// them.
pub(crate) const CPU: HostRegister = R15;

/// The offset that it points to: such that the displacement of the address limit is [`FAULTING`].
pub(crate) const fn bias<G: Target>() -> i32 {
    (G::HOST + HostSide::ADDRESS_LIMIT) as i32 - FAULTING as i32
}

/// The guest's part for the host, from what [`CPU`] points to.
pub(crate) fn host_side(cpu: usize) -> *mut HostSide {
    (cpu + FAULTING as usize - HostSide::ADDRESS_LIMIT) as *mut HostSide
}

/// An instruction of one byte that no user's program may execute: `ins`. A jump to the last byte of a comparison
/// with the address limit, its displacement, raises SIGSEGV.
const FAULTING: u8 = 0x6c;

/// The address limit.
pub(crate) fn address_limit<G: Target>() -> MemoryOperand {
    host_field::<G>(HostSide::ADDRESS_LIMIT)
}

/// The register of the instruction count in counting code, which has no guest register in it.
pub(crate) const INSTRUCTIONS: HostRegister = R14;

/// In code that looks up a hit filter, the register of the time (`FilterTable::now`) instead.
pub(crate) const TIME: HostRegister = INSTRUCTIONS;

/// The register of the address of the current record in tracing code, likewise.
pub(crate) const RECORD: HostRegister = R13;

/// The assignment of guest registers to host registers at a level of instrumentation.
pub(crate) struct RegisterMap<G> {
    held: [Option<HostRegister>; 32],
    level: InstrumentationLevel,
    is_limited: bool,
    /// The operand of the time, if accesses are looked up in a hit filter.
    time: Option<MemoryOperand>,
    guest: PhantomData<G>,
}

impl<G: Target> RegisterMap<G> {
    pub(crate) fn new(
        level: InstrumentationLevel,
        hit_filter: Option<&HitFilter>,
        is_limited: bool,
    ) -> RegisterMap<G> {
        let time = hit_filter.map(|hit_filter| beside_record(hit_filter, hit_filter.now));
        let mut registers = RegisterMap { held: [None; 32], level, is_limited, time, guest: PhantomData };
        for &(guest, host) in G::HELD {
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
        self.is_limited && self.counts_blocks() || self.level == InstrumentationLevel::Limited
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
    pub(crate) fn held(&self, guest: u8) -> Option<HostRegister> {
        self.held.get(usize::from(guest)).copied().flatten()
    }

    /// The host registers in use while compiled code runs, with the memory operands that they are stored to outside it.
    pub(crate) fn all(&self) -> impl Iterator<Item = (HostRegister, MemoryOperand)> + '_ {
        let guest = (0u8..).zip(self.held).filter_map(|(guest, host)| Some((host?, integer::<G>(guest))));
        let count = (INSTRUCTIONS, instructions::<G>());
        let count = (self.counts_instructions() && !self.is_timed()).then_some(count);
        let record = (RECORD, host_field::<G>(HostSide::RECORD));
        // The time is beside the record.
        let time = self.time.map(|operand| (TIME, operand));
        guest.chain(count).chain(self.traces().then_some(record)).chain(time)
    }
}

/// The memory operand of a field of the processor's state.
pub(crate) fn field<G: Target>(offset: usize) -> MemoryOperand {
    MemoryOperand { base: CPU, displacement: offset as i32 - bias::<G>() }
}

/// The memory operand of a field of [`HostSide`].
pub(crate) fn host_field<G: Target>(offset: usize) -> MemoryOperand {
    field::<G>(G::HOST + offset)
}

/// The memory operand of an integer register that is not held.
pub(crate) fn integer<G: Target>(number: u8) -> MemoryOperand {
    field::<G>(G::INTEGERS + 8 * usize::from(number))
}

/// The memory operand of the number of instructions.
pub(crate) fn instructions<G: Target>() -> MemoryOperand {
    field::<G>(G::INSTRUCTIONS)
}

/// The memory operand of a word of the hit filter, by its distance from the record that is written.
pub(crate) fn beside_record(hit_filter: &HitFilter, word: *mut u64) -> MemoryOperand {
    let distance = word as isize - hit_filter.records as isize;
    MemoryOperand { base: RECORD, displacement: i32::try_from(distance).expect("they lie together") }
}

/// The stack limit ([`HostSide::STACK_LIMIT`]).
pub(crate) fn stack_limit<G: Target>() -> MemoryOperand {
    host_field::<G>(HostSide::STACK_LIMIT)
}
