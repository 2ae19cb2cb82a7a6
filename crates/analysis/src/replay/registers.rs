//! Reconstructs the contents of integer registers from the records: from values if they were recorded, else from
//! addresses and from arithmetic on registers with known contents.

use events::record::Register;
use isa::{InstructionSet, InstructionSummary, IntegerResult, Operation, SourceOperand, ValuePrediction};

/// The effect of an instruction on the contents of integer registers. Made once for each instruction of a block, because a
/// summary is too large to be kept and read for each execution.
#[derive(Clone, Copy, Debug)]
pub struct RegisterEffect {
    source: ValueSource,
    /// The base register of its access and the displacement, unless the access clears bits of their sum.
    base: Option<(u8, i64)>,
    /// Bit mask of the registers that it writes. They become unknown, but for `destination`.
    written: u32,
    /// The register that gets the value.
    destination: Option<u8>,
    /// The number of low bits of the value that count: of a store, those that it stores.
    bits: u8,
}

/// The source of an instruction's value that was not recorded.
#[derive(Clone, Copy, Debug)]
enum ValueSource {
    /// Unknown.
    Recorded,
    /// The contents of a register, which it stores or tests.
    Register(u8),
    /// The same in each execution, such as a return address. Such a value is never recorded.
    Constant(u64),
    /// The result of an operation on a register, an operand, and the former contents of a third register.
    Operation(Operation, u8, SourceOperand, u8),
}

impl RegisterEffect {
    /// Of the instruction with this summary at an address.
    pub fn new(set: &dyn InstructionSet, summary: &InstructionSummary, pc: u64) -> RegisterEffect {
        let is_store = summary.access.is_some_and(|access| access.is_store);
        let is_conditional = summary.transfer.is_some_and(|transfer| transfer.is_conditional);
        let is_source = is_store || is_conditional;
        let source = match (summary.value, summary.result) {
            (Some(Register::Integer(register)), _) if is_source => ValueSource::Register(register),
            (None, Some((_, IntegerResult::Relative(distance)))) => {
                ValueSource::Constant(pc.wrapping_add_signed(distance))
            }
            _ => match summary.value_model.prediction {
                ValuePrediction::Operation(operation, a, b, old) => {
                    ValueSource::Operation(operation, a, b, old)
                }
                _ => ValueSource::Recorded,
            },
        };
        let integers = summary.written.into_iter().flatten().filter_map(|register| match register {
            Register::Integer(number) => Some(number),
            Register::Float(_) => None,
        });
        let result = summary.result.map(|(register, _)| Register::Integer(register));
        let destination = integers
            .clone()
            .find(|&number| !is_source && summary.value.or(result) == Some(Register::Integer(number)));
        let written = integers.fold(summary.unknown, |written, number| written | 1 << number);
        RegisterEffect {
            source,
            base: summary
                .access
                .filter(|access| access.mask == !0)
                .map(|access| (access.base, access.displacement)),
            written: written & !(1 << set.zero_register()),
            destination: destination.filter(|&number| number != set.zero_register()),
            bits: match (summary.access, summary.value) {
                (Some(access), Some(Register::Integer(_))) if is_store && access.size < 8 => 8 * access.size,
                _ => 64,
            },
        }
    }
}

/// The integer registers whose contents are known.
#[derive(Clone, Debug)]
pub struct KnownRegisters {
    values: [u64; 32],
    known: u32,
    /// The register that is always zero.
    zero: u8,
}

impl KnownRegisters {
    /// Registers of an instruction set. None is known but the zero register.
    pub fn new(set: &dyn InstructionSet) -> KnownRegisters {
        let zero = set.zero_register();
        KnownRegisters { values: [0; 32], known: 1 << zero, zero }
    }

    /// The contents of a register, if they are known.
    #[inline]
    pub fn get(&self, register: u8) -> Option<u64> {
        (self.known >> register & 1 != 0).then_some(self.values[register as usize])
    }

    #[inline]
    fn set(&mut self, register: u8, value: Option<u64>) {
        if register == self.zero {
            return;
        }
        self.known &= !(1 << register);
        if let Some(value) = value {
            self.values[register as usize] = value;
            self.known |= 1 << register;
        }
    }

    /// Follows an instruction, which accessed `address`, and whose `value` was recorded if it has one. Returns the value
    /// that it wrote, stored or tested: as recorded, or as computed from known registers.
    #[inline]
    pub fn step(&mut self, effect: &RegisterEffect, address: Option<u64>, value: Option<u64>) -> Option<u64> {
        if let (Some(address), Some((base, displacement))) = (address, effect.base) {
            self.set(base, Some(address.wrapping_sub(displacement as u64)));
        }
        let value = match effect.source {
            ValueSource::Constant(constant) => Some(constant),
            _ if value.is_some() => value,
            ValueSource::Recorded => None,
            ValueSource::Register(register) => self.get(register),
            ValueSource::Operation(operation, a, b, old) => self.compute(operation, a, b, old),
        };
        self.known &= !effect.written;
        if let Some(destination) = effect.destination {
            self.set(destination, value);
        }
        value.map(|value| value & u64::MAX >> (64 - effect.bits))
    }

    /// The result of an operation on known registers.
    fn compute(&self, operation: Operation, a: u8, b: SourceOperand, old: u8) -> Option<u64> {
        let b = match b {
            SourceOperand::Constant(constant) => constant,
            SourceOperand::Register(register) => self.get(register)?,
        };
        let a = self.get(a)?;
        match self.get(old) {
            Some(old) => Some(operation(a, b, old)),
            None => Some(operation(a, b, 0)).filter(|&result| operation(a, b, u64::MAX) == result),
        }
    }
}
