//! Instruction sets of which only the emulator knows the instructions: a word does not encode an instruction, but describes
//! what the emulator said of it. The code itself is in the block beside the words.
//!
//! | bits of a word | |
//! |---|---|
//! | 0 to 3 | the instruction's length in bytes, minus 1 |
//! | 4 to 7 | its kind ([`DescribedKind`]) |
//! | 8 to 31 | the signed distance in bytes from the instruction to its target, if the kind has a target |
//! | 8 to 12, 13 to 17 | otherwise its accesses to memory: whether there is one, whether it stores, log₂ of its size (3 bits) |

mod text;
mod x86_64;

use text::Disassembler;

pub use x86_64::x86_64_words;

use crate::instruction_set::{
    ControlCalls, ControlTransfer, InstructionSet, InstructionSummary, MemoryAccess, PipelineSummary,
    Register, ReturnStackUse, TransferKind, TransferTarget,
};
use crate::{CpuModel, Group};

/// An instruction set whose words are descriptions by an emulator.
#[derive(Debug)]
pub struct DescribedSet {
    name: &'static str,
    elf_machine: u16,
    code_alignment: u64,
    disassembler: Option<Disassembler>,
}

/// The sets, by the names of QEMU's emulators: `qemu-` and the architecture.
pub static DESCRIBED_SETS: [DescribedSet; 8] = [
    DescribedSet::new("qemu-x86_64", 62, 1, Some(text::x86_64)),
    DescribedSet::new("qemu-aarch64", 183, 4, Some(text::aarch64)),
    DescribedSet::new("qemu-riscv64", 243, 2, None),
    DescribedSet::new("qemu-i386", 3, 1, Some(text::i386)),
    DescribedSet::new("qemu-arm", 40, 2, None),
    DescribedSet::new("qemu-ppc64le", 21, 4, None),
    DescribedSet::new("qemu-s390x", 22, 2, None),
    DescribedSet::new("qemu-loongarch64", 258, 4, None),
];

impl DescribedSet {
    const fn new(
        name: &'static str,
        elf_machine: u16,
        code_alignment: u64,
        disassembler: Option<Disassembler>,
    ) -> DescribedSet {
        DescribedSet { name, elf_machine, code_alignment, disassembler }
    }
}

/// The transfer of control by an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DescribedKind {
    /// Control goes to the next instruction.
    #[default]
    Operation,
    /// It calls the system.
    SystemCall,
    /// A conditional branch to a target.
    Branch,
    /// A jump to a target.
    Jump,
    /// A call of a target.
    Call,
    /// A call of a target that stores the return address, a quadword.
    StoringCall,
    /// A jump to an address that the instruction computes.
    IndirectJump,
    /// A call of an address that the instruction computes.
    IndirectCall,
    /// A return.
    Return,
    /// It may be executed again instead of the next instruction: x86's string instructions.
    Repeat,
    /// Control goes to the next instruction, or to an address that is not known before.
    MayLeave,
}

/// The kinds, by their numbers in words.
const KINDS: [DescribedKind; 11] = [
    DescribedKind::Operation,
    DescribedKind::SystemCall,
    DescribedKind::Branch,
    DescribedKind::Jump,
    DescribedKind::Call,
    DescribedKind::StoringCall,
    DescribedKind::IndirectJump,
    DescribedKind::IndirectCall,
    DescribedKind::Return,
    DescribedKind::Repeat,
    DescribedKind::MayLeave,
];

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescribedAccess {
    /// Whether it stores.
    pub is_store: bool,
    /// Log₂ of its bytes, below 8.
    pub size_shift: u8,
}

/// An emulator's description of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstructionDescription {
    /// Bytes, 1 to 16.
    pub length: u8,
    /// Its transfer of control.
    pub kind: DescribedKind,
    /// The distance in bytes to its target, if the kind has one and it is known.
    pub distance: Option<i64>,
    /// Its accesses to memory, in order.
    pub accesses: [Option<DescribedAccess>; 2],
}

/// The most bytes that an instruction can have.
const LONGEST: u8 = 16;
/// Where a word's target and accesses begin.
const REST: u32 = 8;
/// Bits of an access.
const ACCESS_BITS: u32 = 5;
/// Bits of a distance.
const DISTANCE_BITS: u32 = 24;
/// The access of [`DescribedKind::StoringCall`].
const STORED_RETURN_ADDRESS: DescribedAccess = DescribedAccess { is_store: true, size_shift: 3 };

/// No register is known: all addresses are sums of this one, which every instruction changes.
const BASE: u8 = 0;
/// The register that calls nominally write their return addresses to.
const LINK: u8 = 30;
/// A register of which nothing follows.
const ZERO: u8 = 31;
/// The stack pointer, which no instruction is known to use.
const STACK_POINTER: u8 = 29;

impl DescribedKind {
    /// Whether its words have the distance to a target.
    fn has_distance(self) -> bool {
        matches!(
            self,
            DescribedKind::Branch | DescribedKind::Jump | DescribedKind::Call | DescribedKind::StoringCall
        )
    }

    /// The kind of an instruction of this kind with a target that a word cannot hold.
    fn without_distance(self) -> DescribedKind {
        match self {
            DescribedKind::Branch => DescribedKind::MayLeave,
            DescribedKind::Jump => DescribedKind::IndirectJump,
            DescribedKind::Call | DescribedKind::StoringCall => DescribedKind::IndirectCall,
            other => other,
        }
    }

    fn implied_accesses(self) -> [Option<DescribedAccess>; 2] {
        [(self == DescribedKind::StoringCall).then_some(STORED_RETURN_ADDRESS), None]
    }

    fn transfer(self, distance: i64) -> Option<ControlTransfer> {
        let (computed, relative) =
            (TransferTarget::Register { base: ZERO, displacement: 0 }, TransferTarget::Relative(distance));
        let (kind, is_conditional, target) = match self {
            DescribedKind::Operation | DescribedKind::SystemCall => return None,
            DescribedKind::Branch | DescribedKind::Repeat => (TransferKind::Jump, true, relative),
            DescribedKind::Jump => (TransferKind::Jump, false, relative),
            DescribedKind::Call | DescribedKind::StoringCall => (TransferKind::Call, false, relative),
            DescribedKind::IndirectJump => (TransferKind::Jump, false, computed),
            DescribedKind::IndirectCall => (TransferKind::Call, false, computed),
            DescribedKind::Return => (TransferKind::Return, false, computed),
            DescribedKind::MayLeave => (TransferKind::Jump, true, computed),
        };
        let (pushes, pops) = (kind == TransferKind::Call, kind == TransferKind::Return);
        let link = pushes.then_some(LINK);
        let return_stack = ReturnStackUse { pops, pushes };
        Some(ControlTransfer { kind, is_conditional, target, link, hint: None, return_stack })
    }

    /// The name of instructions of this kind; None if their accesses name them.
    fn name(self) -> Option<&'static str> {
        match self {
            DescribedKind::Operation => None,
            DescribedKind::SystemCall => Some("system-call"),
            DescribedKind::Branch => Some("branch"),
            DescribedKind::Jump | DescribedKind::IndirectJump => Some("jump"),
            DescribedKind::Call | DescribedKind::StoringCall | DescribedKind::IndirectCall => Some("call"),
            DescribedKind::Return => Some("return"),
            DescribedKind::Repeat => Some("repeat"),
            DescribedKind::MayLeave => Some("end-of-block"),
        }
    }
}

impl DescribedAccess {
    fn bits(self) -> u32 {
        1 | u32::from(self.is_store) << 1 | u32::from(self.size_shift & 7) << 2
    }

    fn of_bits(bits: u32) -> Option<DescribedAccess> {
        let access = DescribedAccess { is_store: bits & 2 != 0, size_shift: (bits >> 2 & 7) as u8 };
        (bits & 1 != 0).then_some(access)
    }

    /// The sum of registers is never known, and nothing follows from the address for them.
    fn memory_access(self) -> MemoryAccess {
        MemoryAccess {
            size: 1 << self.size_shift,
            is_store: self.is_store,
            base: BASE,
            displacement: 0,
            mask: u64::MAX >> 1,
            is_locked: false,
            quadword: None,
        }
    }
}

impl InstructionDescription {
    /// The word. A target that is too far away is not in it.
    ///
    /// # Panics
    /// If the length is not 1 to 16.
    pub fn word(self) -> u32 {
        assert!((1..=LONGEST).contains(&self.length), "an instruction of {} bytes", self.length);
        let reach = 1 << (DISTANCE_BITS - 1);
        let distance = self.distance.filter(|distance| (-reach..reach).contains(distance));
        let is_direct = self.kind.has_distance() && self.accesses == self.kind.implied_accesses();
        let (kind, rest) = match distance.filter(|_| is_direct) {
            Some(distance) => (self.kind, distance as u32),
            None => {
                let [first, second] = self.accesses.map(|access| access.map_or(0, DescribedAccess::bits));
                (self.kind.without_distance(), first | second << ACCESS_BITS)
            }
        };
        let number = KINDS.iter().position(|&one| one == kind).unwrap_or_default() as u32;
        u32::from(self.length - 1) | number << 4 | rest << REST
    }

    /// The description in a word.
    pub fn of_word(word: u32) -> Option<InstructionDescription> {
        let kind = *KINDS.get((word >> 4 & 15) as usize)?;
        let rest = word >> REST;
        let (distance, accesses) = if kind.has_distance() {
            (Some(i64::from(word as i32 >> REST)), kind.implied_accesses())
        } else {
            (None, [rest, rest >> ACCESS_BITS].map(DescribedAccess::of_bits))
        };
        Some(InstructionDescription { length: length(word), kind, distance, accesses })
    }

    fn mnemonic(self) -> &'static str {
        self.kind.name().unwrap_or_else(|| match self.accesses {
            [None, None] => OPERATION,
            [Some(access), None] | [None, Some(access)] => {
                ONE_ACCESS[usize::from(access.is_store)][usize::from(access.size_shift)]
            }
            [Some(first), Some(second)] => {
                TWO_ACCESSES[usize::from(first.is_store)][usize::from(second.is_store)]
            }
        })
    }
}

const OPERATION: &str = "operation";
/// The names of instructions with one access: loads and stores, by log₂ of the size.
const ONE_ACCESS: [[&str; 8]; 2] = [
    ["load.1", "load.2", "load.4", "load.8", "load.16", "load.32", "load.64", "load.128"],
    ["store.1", "store.2", "store.4", "store.8", "store.16", "store.32", "store.64", "store.128"],
];
/// The names of those with two: by whether the first, and the second, stores.
const TWO_ACCESSES: [[&str; 2]; 2] = [["load-load", "load-store"], ["store-load", "store-store"]];

fn length(word: u32) -> u8 {
    (word & 15) as u8 + 1
}

impl InstructionSet for DescribedSet {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describes(&self) -> bool {
        true
    }

    fn length(&self, word: u32) -> u64 {
        length(word).into()
    }

    fn summary(&self, word: u32) -> Option<InstructionSummary> {
        let description = InstructionDescription::of_word(word)?;
        let [access, second_access] =
            description.accesses.map(|access| access.map(DescribedAccess::memory_access));
        let is_system_call = description.kind == DescribedKind::SystemCall;
        Some(InstructionSummary {
            access: access.or(second_access),
            second_access: access.and(second_access),
            unknown: 1 << BASE | 1 << LINK,
            transfer: description.kind.transfer(description.distance.unwrap_or(0)),
            is_system_call,
            enters_system: is_system_call,
            ..InstructionSummary::default()
        })
    }

    fn zero_register(&self) -> u8 {
        ZERO
    }

    fn stack_pointer(&self) -> u8 {
        STACK_POINTER
    }

    fn code_alignment(&self) -> u64 {
        self.code_alignment
    }

    fn elf_machine(&self) -> u16 {
        self.elf_machine
    }

    fn disassemble(&self, word: u32, address: u64) -> Option<String> {
        let description = InstructionDescription::of_word(word)?;
        let mnemonic = description.mnemonic();
        Some(match description.distance {
            Some(distance) => format!("{mnemonic} {:#x}", address.wrapping_add_signed(distance)),
            None => mnemonic.into(),
        })
    }

    fn disassemble_code(&self, code: &[u8], address: u64) -> Option<String> {
        self.disassembler?(code, address)
    }

    fn register_name(&self, _register: Register) -> &'static str {
        "register"
    }

    fn mnemonic(&self, word: u32) -> Option<&'static str> {
        InstructionDescription::of_word(word).map(InstructionDescription::mnemonic)
    }

    fn mnemonics(&self) -> Vec<(&'static str, Group)> {
        let [loads, stores] = ONE_ACCESS;
        let controls = KINDS.iter().filter(|kind| kind.transfer(0).is_some()).filter_map(|kind| kind.name());
        let mut all = vec![(OPERATION, Group::Other), ("system-call", Group::Other)];
        all.extend(controls.map(|name| (name, Group::IntegerControl)));
        all.extend(loads.map(|name| (name, Group::IntegerLoad)));
        all.extend(stores.map(|name| (name, Group::IntegerStore)));
        all.extend(TWO_ACCESSES.as_flattened().iter().map(|&name| (name, Group::Other)));
        all.sort_unstable();
        all.dedup();
        all
    }

    fn is_implemented(&self, word: u32, _cpu: CpuModel) -> bool {
        InstructionDescription::of_word(word).is_some()
    }

    /// An emulator does not tell of registers and operations.
    fn pipeline_summary(&self, _word: u32) -> Option<PipelineSummary> {
        None
    }

    /// Traces of these sets have no marks of system calls.
    fn control_calls(&self) -> ControlCalls {
        const NONE: u32 = u32::MAX;
        ControlCalls { execute: NONE, signal_returns: &[], creates_thread: NONE, may_wait: &[], futex: NONE }
    }

    fn second_entry(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(random: &mut fastrand::Rng) -> InstructionDescription {
        let kind = KINDS[random.usize(..KINDS.len())];
        let mut access = || {
            let access = DescribedAccess { is_store: random.bool(), size_shift: random.u8(..8) };
            random.bool().then_some(access)
        };
        let accesses = if kind.has_distance() { kind.implied_accesses() } else { [access(), access()] };
        let distance = kind.has_distance().then(|| i64::from(random.i32(-(1 << 23)..1 << 23)));
        InstructionDescription { length: random.u8(1..=16), kind, distance, accesses }
    }

    #[test]
    fn words_have_the_descriptions() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100_000 {
            let description = any(&mut random);
            assert_eq!(InstructionDescription::of_word(description.word()), Some(description));
        }
    }

    #[test]
    fn a_target_that_is_too_far_away_is_unknown() {
        let set = &DESCRIBED_SETS[0];
        for (distance, is_known) in [(1 << 23, false), ((1 << 23) - 1, true), (-(1 << 23), true)] {
            let call = InstructionDescription {
                length: 5,
                kind: DescribedKind::StoringCall,
                distance: Some(distance),
                accesses: DescribedKind::StoringCall.implied_accesses(),
            };
            let summary = set.summary(call.word()).unwrap();
            let transfer = summary.transfer.unwrap();
            assert_eq!(transfer.target == TransferTarget::Relative(distance), is_known, "{distance}");
            assert_eq!(transfer.kind, TransferKind::Call);
            assert!(summary.access.is_some_and(|access| access.is_store && access.size == 8));
        }
    }

    #[test]
    fn every_name_has_a_group() {
        let mut random = fastrand::Rng::with_seed(2);
        let all = DESCRIBED_SETS[1].mnemonics();
        for _ in 0..10_000 {
            let name = DESCRIBED_SETS[1].mnemonic(any(&mut random).word()).unwrap();
            assert_eq!(all.iter().filter(|one| one.0 == name).count(), 1, "{name}");
        }
    }
}
