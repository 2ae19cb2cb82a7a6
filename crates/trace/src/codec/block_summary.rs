//! Summaries of the effect of each block on the registers, as far as addresses depend on it. Abstract interpretation
//! reduces a block once to a few accesses and assignments; each execution then evaluates these instead of every
//! instruction.

use isa::{
    ControlTransfer, InstructionSet, InstructionSummary, IntegerResult, MemoryAccess, SourceOperand,
    TransferKind, TransferTarget,
};

use super::value_step::ValueStep;
use crate::bytes::Malformed;
use events::BlockId;
use events::record::{RecordShape, word_of_address};

/// Number of registers. The first slots hold the values of the registers at the start of the block; the others hold
/// values that are loaded or computed in the block. The slot of the instruction set's zero register is always 0.
pub(crate) const REGISTERS: usize = 32;
/// Number of slots: the bits of one word.
pub(crate) const SLOTS: usize = 64;
/// The slot whose value is never known.
pub(crate) const UNKNOWN: u8 = 63;
/// No register.
pub(crate) const NONE: u8 = 32;

/// The value of a slot plus a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolicValue {
    pub slot: u8,
    pub constant: u64,
}

impl SymbolicValue {
    fn plus(self, constant: u64) -> SymbolicValue {
        SymbolicValue { constant: self.constant.wrapping_add(constant), ..self }
    }
}

/// The quadword that an access moves between memory and an integer register, since it may be an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerTransfer {
    /// The access moves no quadword, or none to or from an integer register.
    Other,
    /// Loads it into the slot of `data`, whose constant is 0.
    Load,
    /// Stores `data`.
    Store,
}

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SummaryAccess {
    /// Base register plus displacement.
    pub base: SymbolicValue,
    /// The slot whose value can be inferred from the recorded address if it was not known; [`UNKNOWN`] if there is
    /// none.
    pub inferred_slot: u8,
    pub data: SymbolicValue,
    pub transfer: PointerTransfer,
    /// Mask of the address bits: all, or all but the low three.
    pub mask: u64,
}

/// The value of a register at the end of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisterValue {
    pub register: u8,
    pub to: SymbolicValue,
    /// All bits set if the register equals the slot; else 0.
    pub is_copy: u64,
}

impl RegisterValue {
    fn new(register: u8, to: SymbolicValue) -> RegisterValue {
        RegisterValue { register, to, is_copy: if to.constant == 0 { u64::MAX } else { 0 } }
    }
}

/// The kind of transfer of control at the end of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ExitTransfer {
    #[default]
    Other,
    Call,
    Return,
}

/// The effect of executing a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSummary {
    pub address: u64,
    /// Index of its first access among all blocks' accesses, and their number; the same for assignments.
    accesses: (u32, u32),
    assignments: (u32, u8),
    pub instructions: u32,
    /// Words of its record.
    pub words: u32,
    /// Bit mask of the registers whose values are unknown at the end.
    pub unknown: u32,
    /// The register that holds the address of the next instruction to execute, or [`NONE`].
    pub jump: u8,
    pub exit: ExitTransfer,
}

/// The summaries of a process's blocks, by number.
#[derive(Debug)]
pub(crate) struct BlockSummaries {
    pub set: &'static dyn InstructionSet,
    pub has_values: bool,
    list: Vec<BlockSummary>,
    accesses: Vec<SummaryAccess>,
    assignments: Vec<RegisterValue>,
    /// If records have values: the instructions of all blocks, and the index of each block's first one.
    value_steps: Vec<ValueStep>,
    starts: Vec<u32>,
}

/// Stands for a block that is missing from the dictionary. Unlike every other block it has no instructions.
const UNDEFINED_BLOCK: BlockSummary = BlockSummary {
    address: 0,
    accesses: (0, 0),
    assignments: (0, 0),
    instructions: 0,
    words: 0,
    unknown: 0,
    jump: NONE,
    exit: ExitTransfer::Other,
};

impl BlockSummaries {
    /// Summaries of no blocks.
    pub fn new(set: &'static dyn InstructionSet, has_values: bool) -> BlockSummaries {
        BlockSummaries {
            set,
            has_values,
            list: Vec::new(),
            accesses: Vec::new(),
            assignments: Vec::new(),
            value_steps: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Adds the summary of the next block; `words` is empty if the block is missing. Addresses are words of records here, as the
    /// records' are.
    pub fn push(&mut self, address: u64, words: &[u32]) {
        let address = word_of_address(address);
        let mut state = AbstractState::new(self.set.zero_register());
        let shape = RecordShape::new(self.set, words, self.has_values);
        let mut summary = BlockSummary {
            address,
            instructions: shape.instructions,
            words: shape.words(),
            ..UNDEFINED_BLOCK
        };
        let mut pc = address;
        for &word in words {
            let instruction = self.set.summary(word);
            if let Some(instruction) = &instruction {
                state.execute(instruction, pc);
                summary.exit = exit(instruction.transfer);
                summary.jump = state.jump(instruction.transfer);
            }
            pc = pc.wrapping_add(self.set.length(word));
        }
        let (assignments, unknown) = state.result();
        summary.unknown = unknown;
        summary.accesses = (self.accesses.len() as u32, state.accesses.len() as u32);
        summary.assignments = (self.assignments.len() as u32, assignments.len() as u8);
        self.accesses.extend(state.accesses);
        self.assignments.extend(assignments);
        if self.has_values {
            self.starts.push(self.value_steps.len() as u32);
            self.value_steps.extend(words.iter().map(|&word| ValueStep::new(self.set, word)));
        }
        self.list.push(summary);
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    #[inline(always)]
    pub fn get(&self, id: BlockId) -> Result<&BlockSummary, Malformed> {
        let summary = self.list.get(id as usize).filter(|summary| summary.instructions > 0);
        summary.ok_or(Malformed("it names a block that is not in the dictionary"))
    }

    #[inline(always)]
    pub fn accesses(&self, summary: &BlockSummary) -> &[SummaryAccess] {
        let (start, count) = summary.accesses;
        &self.accesses[start as usize..][..count as usize]
    }

    /// The instructions of a block, if records have values.
    pub fn value_steps(&self, id: BlockId) -> &[ValueStep] {
        let start = self.starts.get(id as usize).map_or(0, |&start| start as usize);
        let count = self.list[id as usize].instructions;
        self.value_steps.get(start..start + count as usize).unwrap_or_default()
    }

    /// The assignments, in the order in which they must be done.
    #[inline(always)]
    pub fn assignments(&self, summary: &BlockSummary) -> &[RegisterValue] {
        let (start, count) = summary.assignments;
        &self.assignments[start as usize..][..count as usize]
    }
}

fn exit(transfer: Option<ControlTransfer>) -> ExitTransfer {
    match transfer.map(|transfer| (transfer.kind, transfer.link)) {
        Some((TransferKind::Call, Some(_))) => ExitTransfer::Call,
        Some((TransferKind::Return, _)) => ExitTransfer::Return,
        _ => ExitTransfer::Other,
    }
}

/// The abstract state in the middle of a block: the symbolic values of the registers.
struct AbstractState {
    /// The slot that is always 0.
    zero: u8,
    registers: [SymbolicValue; REGISTERS],
    /// Bit mask of the slots whose values are known.
    known_slots: u64,
    accesses: Vec<SummaryAccess>,
}

impl AbstractState {
    fn new(zero: u8) -> AbstractState {
        let registers = std::array::from_fn(|register| SymbolicValue { slot: register as u8, constant: 0 });
        AbstractState { zero, registers, known_slots: u32::MAX.into(), accesses: Vec::new() }
    }

    fn constant(&self, constant: u64) -> SymbolicValue {
        SymbolicValue { slot: self.zero, constant }
    }

    fn write(&mut self, register: u8, sum: SymbolicValue) {
        if register != self.zero {
            self.registers[register as usize] = sum;
        }
    }

    /// Allocates a slot for a value that does not depend on others. There are more slots than registers that can
    /// refer to them.
    fn new_slot(&mut self) -> SymbolicValue {
        let used = self.registers.iter().fold(0u64, |used, sum| used | 1 << sum.slot);
        let slot = (REGISTERS as u8..UNKNOWN).find(|slot| used >> slot & 1 == 0).unwrap_or(UNKNOWN);
        self.known_slots &= !(1 << slot);
        SymbolicValue { slot, constant: 0 }
    }

    fn execute(&mut self, instruction: &InstructionSummary, pc: u64) {
        instruction.accesses().for_each(|access| self.access(&access));
        if let Some((register, result)) = instruction.result {
            let sum = self.result_of(result, pc).unwrap_or_else(|| self.new_slot());
            self.write(register, sum);
        }
        let mut unknown = instruction.unknown;
        while unknown != 0 {
            let sum = self.new_slot();
            self.write(unknown.trailing_zeros() as u8, sum);
            unknown &= unknown - 1;
        }
    }

    /// The result of an instruction, if it is a register plus a constant.
    fn result_of(&self, result: IntegerResult, pc: u64) -> Option<SymbolicValue> {
        let operand = |operand| match operand {
            SourceOperand::Register(register) => self.registers[register as usize],
            SourceOperand::Constant(constant) => self.constant(constant),
        };
        let constant = |sum: SymbolicValue| (sum.slot == self.zero).then_some(sum.constant);
        match result {
            IntegerResult::Sum(a, b) => {
                let (a, b) = (operand(a), operand(b));
                constant(b).map(|b| a.plus(b)).or_else(|| constant(a).map(|a| b.plus(a)))
            }
            IntegerResult::Difference(a, b) => {
                constant(operand(b)).map(|b| operand(a).plus(b.wrapping_neg()))
            }
            IntegerResult::Or(a, b) => match (operand(a), operand(b)) {
                (a, b) if a == b || constant(b) == Some(0) => Some(a),
                (a, b) if constant(a) == Some(0) => Some(b),
                _ => None,
            },
            IntegerResult::Relative(distance) => Some(self.constant(pc.wrapping_add_signed(distance))),
        }
    }

    /// The register that still holds the target address after a jump, or [`NONE`].
    fn jump(&self, transfer: Option<ControlTransfer>) -> u8 {
        match transfer {
            Some(ControlTransfer {
                target: TransferTarget::Register { base, displacement: 0 },
                link,
                ..
            }) if base != self.zero && link != Some(base) => base,
            _ => NONE,
        }
    }

    fn access(&mut self, access: &MemoryAccess) {
        let mut base = self.registers[access.base as usize].plus(access.displacement as u64);
        let is_rounded = access.mask != !0;
        let inferred_slot = if is_rounded || base.slot == self.zero { UNKNOWN } else { base.slot };
        if self.known_slots >> base.slot & 1 == 0 {
            base.slot = UNKNOWN;
        }
        self.known_slots |= 1 << inferred_slot;
        let (data, transfer) = match access.quadword {
            Some(register) if access.is_store => {
                (self.known(self.registers[register as usize]), PointerTransfer::Store)
            }
            Some(_) => (self.new_slot(), PointerTransfer::Load),
            None => (self.constant(0), PointerTransfer::Other),
        };
        if let (PointerTransfer::Load, Some(register)) = (transfer, access.quadword) {
            self.known_slots |= 1 << data.slot;
            self.write(register, data);
        }
        self.accesses.push(SummaryAccess { base, mask: access.mask, inferred_slot, data, transfer });
    }

    fn known(&self, sum: SymbolicValue) -> SymbolicValue {
        if self.known_slots >> sum.slot & 1 == 0 { SymbolicValue { slot: UNKNOWN, constant: 0 } } else { sum }
    }

    /// The values of the registers at the end: assignments in an order in which none overwrites the source of a later
    /// one, and the mask of registers with unknown values.
    fn result(&self) -> (Vec<RegisterValue>, u32) {
        let (mut pending, mut ordered, mut unknown) = (Vec::new(), Vec::new(), 0);
        for (register, &to) in (0..).zip(&self.registers).filter(|&(register, _)| register != self.zero) {
            if self.known(to).slot == UNKNOWN {
                unknown |= 1 << register;
            } else if to != (SymbolicValue { slot: register, constant: 0 }) {
                pending.push(RegisterValue::new(register, to));
            }
        }
        while !pending.is_empty() {
            let is_free = |one: &RegisterValue| {
                pending.iter().all(|other| other.register == one.register || other.to.slot != one.register)
            };
            match pending.iter().position(is_free) {
                Some(index) => ordered.push(pending.remove(index)),
                // The rest are a cycle: drop one assignment.
                None => unknown |= 1 << pending.remove(0).register,
            }
        }
        (ordered, unknown)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use isa::{Alpha, Flags, Instruction, InstructionFormat, Op, evaluate};

    /// Executes an instruction and returns the address it accesses. Results that are not modelled are taken from
    /// `values`.
    fn execute(
        instruction: Instruction,
        pc: u64,
        r: &mut [u64; 32],
        mut values: impl Iterator<Item = u64>,
    ) -> Option<u64> {
        let (op, ra, rb, rc) = (instruction.op, instruction.ra(), instruction.rb(), instruction.rc());
        let base = r[rb as usize];
        let is_access = instruction.access_size().is_some();
        let mut any = || values.next().unwrap();
        let written: &[(u8, u64)] = match op.format() {
            InstructionFormat::Memory if op == Op::Lda || op == Op::Ldah => {
                let shift = if op == Op::Ldah { 16 } else { 0 };
                &[(ra, base.wrapping_add_signed(i64::from(instruction.displacement()) << shift))]
            }
            InstructionFormat::Memory if op.is_float() || op.is(Flags::STORE) && !op.is(Flags::LOCKED) => &[],
            InstructionFormat::Memory => &[(ra, any())],
            InstructionFormat::Branch if op.is(Flags::CONDITIONAL) => &[],
            InstructionFormat::Branch | InstructionFormat::MemoryJump => &[(ra, pc.wrapping_add(4))],
            InstructionFormat::Operate => {
                let b = instruction.literal().map_or(base, u64::from);
                &[(rc, evaluate(op, r[ra as usize], b, r[rc as usize]).unwrap_or_else(any))]
            }
            InstructionFormat::FloatOperate if matches!(op, Op::Ftoit | Op::Ftois) => &[(rc, any())],
            InstructionFormat::MemoryFunction if matches!(op, Op::Rpcc | Op::Rc | Op::Rs) => &[(ra, any())],
            InstructionFormat::Pal => &[(0, any()), (19, any()), (20, any())],
            _ => &[],
        };
        for &(register, value) in written {
            r[register as usize] = value;
        }
        r[31] = 0;
        is_access.then(|| instruction.effective_address(base))
    }

    /// Random instructions over few registers, so that many depend on each other.
    fn word() -> impl Strategy<Value = u32> {
        let register = || prop_oneof![0u32..4, Just(30), Just(31)];
        let opcode = prop::sample::select(vec![0x08, 0x09, 0x0b, 0x0f, 0x28, 0x29, 0x29, 0x2d, 0x2f, 0x2a]);
        let memory = (opcode, register(), register(), -64i16..64)
            .prop_map(|(opcode, a, b, low)| opcode << 26 | a << 21 | b << 16 | u32::from(low as u16));
        let function =
            prop::sample::select(vec![(0x10, 0x20), (0x10, 0x29), (0x11, 0x20), (0x10, 0x2d), (0x12, 0x39)]);
        let operate = (function, register(), register(), register())
            .prop_map(|((opcode, function), a, b, c)| opcode << 26 | a << 21 | b << 16 | function << 5 | c);
        let literal =
            (operate, any::<bool>()).prop_map(|(word, is_literal)| word | u32::from(is_literal) << 12);
        prop_oneof![8 => memory, 6 => literal, 1 => Just(0xd340_0000), 1 => any::<u32>()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The addresses and registers that follow from a summary equal those of executing the instructions.
        #[test]
        fn summaries_have_the_effect_of_instructions(
            words in vec(word(), 1..80),
            registers: [u64; 32],
            values in vec(any::<u64>(), 240),
        ) {
            let mut summaries = BlockSummaries::new(&Alpha, false);
            summaries.push(0x1000, &words);
            let summary = summaries.get(0).unwrap();
            let mut slots = [None; SLOTS];
            let mut r = registers;
            r[31] = 0;
            for (slot, value) in slots.iter_mut().zip(r) {
                *slot = Some(value);
            }
            let mut accesses = summaries.accesses(summary).iter();
            for (index, &word) in words.iter().enumerate() {
                let Some(instruction) = isa::decode(word) else { continue };
                let pc = 0x1000 + 4 * index as u64;
                let Some(address) = execute(instruction, pc, &mut r, values[3 * index..].iter().copied()) else {
                    continue;
                };
                let access = accesses.next().unwrap();
                if let Some(base) = slots_value(&slots, access.base) {
                    prop_assert_eq!(base & access.mask, address, "access of instruction {}", index);
                }
                if access.inferred_slot != UNKNOWN {
                    slots[access.inferred_slot as usize] = Some(address.wrapping_sub(access.base.constant));
                }
                if access.transfer == PointerTransfer::Load {
                    slots[access.data.slot as usize] = Some(r[instruction.ra() as usize]);
                }
            }
            prop_assert!(accesses.next().is_none());
            for assignment in summaries.assignments(summary) {
                slots[assignment.register as usize] = slots_value(&slots, assignment.to);
            }
            for register in (0..31).filter(|register| summary.unknown >> register & 1 == 0) {
                prop_assert_eq!(slots[register], Some(r[register]), "register {}", register);
            }
        }
    }

    fn slots_value(slots: &[Option<u64>; SLOTS], sum: SymbolicValue) -> Option<u64> {
        slots[sum.slot as usize].map(|value| value.wrapping_add(sum.constant))
    }
}
