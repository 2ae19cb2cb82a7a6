//! Reconstructs the contents of integer registers from the records: from values if they were recorded, else from
//! addresses and from arithmetic on registers with known contents.

use events::record::Register;
use isa::{InstructionSet, InstructionSummary, IntegerResult, SourceOperand, ValuePrediction};

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
    pub fn step(
        &mut self,
        summary: &InstructionSummary,
        pc: u64,
        address: Option<u64>,
        value: Option<u64>,
    ) -> Option<u64> {
        if let (Some(address), Some(access)) = (address, summary.access)
            && access.mask == !0
        {
            self.set(access.base, Some(address.wrapping_sub(access.displacement as u64)));
        }
        let is_store = summary.access.is_some_and(|access| access.is_store);
        let is_conditional = summary.transfer.is_some_and(|transfer| transfer.is_conditional);
        let is_source = is_store || is_conditional;
        let value = match (summary.value, summary.result) {
            (Some(Register::Integer(register)), _) if is_source => value.or_else(|| self.get(register)),
            (None, Some((_, IntegerResult::Relative(distance)))) => Some(pc.wrapping_add_signed(distance)),
            _ => value.or_else(|| self.compute(summary)),
        };
        self.write(summary, value.filter(|_| !is_source));
        match (summary.access, summary.value) {
            (Some(access), Some(Register::Integer(_))) if is_store && access.size < 8 => {
                value.map(|value| value & ((1 << (8 * access.size)) - 1))
            }
            _ => value,
        }
    }

    /// Forgets the registers that an instruction writes, and sets the one that gets its value.
    fn write(&mut self, summary: &InstructionSummary, value: Option<u64>) {
        let mut unknown = summary.unknown;
        while unknown != 0 {
            self.set(unknown.trailing_zeros() as u8, None);
            unknown &= unknown - 1;
        }
        let destination = match summary.value {
            Some(register) => Some(register),
            None => summary.result.map(|(register, _)| Register::Integer(register)),
        };
        for written in summary.written.into_iter().flatten() {
            if let Register::Integer(register) = written {
                self.set(register, value.filter(|_| destination == Some(written)));
            }
        }
    }

    /// The result of an operation on known registers.
    fn compute(&self, summary: &InstructionSummary) -> Option<u64> {
        let ValuePrediction::Operation(operation, a, b, old) = summary.value_model.prediction else {
            return None;
        };
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
