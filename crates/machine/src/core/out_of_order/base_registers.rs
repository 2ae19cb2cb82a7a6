//! The knowledge of integer registers: traces have no values, but the address of each access, and so its base register; sums with
//! constants follow. Loads of wrong paths access the cache if their base register is known.

use events::Block;
use isa::{InstructionSet, IntegerResult, MemoryAccess, SourceOperand};

const REGISTERS: usize = 32;

/// The effect of one instruction on integer registers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BaseEffect {
    result: Option<(u8, IntegerResult)>,
    unknown: u32,
}

/// A value that follows from what is known before a block, or from the addresses of its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BaseOrigin {
    Constant(u64),
    /// A register before the block, plus a constant.
    Register(u8, u64),
    /// The address of an access of the block, plus a constant.
    Access(u32, u64),
}

/// The effect of a block on integer registers.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockEffect {
    known: Box<[(u8, BaseOrigin)]>,
    unknown: u32,
}

/// The registers whose contents are known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BaseRegisters {
    values: [u64; REGISTERS],
    known: u32,
}

impl BaseEffect {
    pub fn of(set: &dyn InstructionSet, word: u32) -> BaseEffect {
        let summary = set.summary(word);
        summary.map_or_else(BaseEffect::default, |summary| BaseEffect {
            result: summary.result,
            unknown: summary.unknown,
        })
    }
}

impl BaseOrigin {
    fn plus(self, number: u64) -> BaseOrigin {
        match self {
            BaseOrigin::Constant(value) => BaseOrigin::Constant(value.wrapping_add(number)),
            BaseOrigin::Register(register, offset) => {
                BaseOrigin::Register(register, offset.wrapping_add(number))
            }
            BaseOrigin::Access(access, offset) => BaseOrigin::Access(access, offset.wrapping_add(number)),
        }
    }
}

/// The result of an instruction at an address, by what is known of operands.
fn evaluate(
    result: IntegerResult,
    address: u64,
    operand: impl Fn(SourceOperand) -> Option<BaseOrigin>,
) -> Option<BaseOrigin> {
    match result {
        IntegerResult::Relative(distance) => {
            Some(BaseOrigin::Constant(address.wrapping_add_signed(distance)))
        }
        IntegerResult::Sum(one, other) => match (operand(one)?, operand(other)?) {
            (one, BaseOrigin::Constant(number)) => Some(one.plus(number)),
            (BaseOrigin::Constant(number), other) => Some(other.plus(number)),
            _ => None,
        },
        IntegerResult::Difference(one, other) => match (operand(one)?, operand(other)?) {
            (one, BaseOrigin::Constant(number)) => Some(one.plus(number.wrapping_neg())),
            _ => None,
        },
        IntegerResult::Or(one, other) => match (operand(one)?, operand(other)?) {
            (one, BaseOrigin::Constant(0)) => Some(one),
            (BaseOrigin::Constant(0), other) => Some(other),
            (BaseOrigin::Constant(one), BaseOrigin::Constant(other)) => {
                Some(BaseOrigin::Constant(one | other))
            }
            _ => None,
        },
    }
}

impl BlockEffect {
    pub fn of(block: &Block) -> BlockEffect {
        let set = block.instruction_set;
        let before: [Option<BaseOrigin>; REGISTERS] = std::array::from_fn(|register| match register as u8 {
            zero if zero == set.zero_register() => Some(BaseOrigin::Constant(0)),
            register => Some(BaseOrigin::Register(register, 0)),
        });
        let mut registers = before;
        let mut accesses = 0;
        for (&word, address) in block.words.iter().zip(block.addresses()) {
            let Some(summary) = set.summary(word) else { continue };
            if let Some(access) = summary.access {
                if access.mask == !0 && access.base != set.zero_register() {
                    let offset = (access.displacement as u64).wrapping_neg();
                    registers[access.base as usize % REGISTERS] = Some(BaseOrigin::Access(accesses, offset));
                }
                accesses += 1;
            }
            let operand = |operand| match operand {
                SourceOperand::Constant(number) => Some(BaseOrigin::Constant(number)),
                SourceOperand::Register(register) => registers[register as usize % REGISTERS],
            };
            let result =
                summary.result.map(|(register, result)| (register, evaluate(result, address, operand)));
            for register in (0..REGISTERS).filter(|register| summary.unknown >> register & 1 != 0) {
                registers[register] = None;
            }
            if let Some((register, value)) = result {
                registers[register as usize % REGISTERS] = value;
            }
            registers[set.zero_register() as usize % REGISTERS] = Some(BaseOrigin::Constant(0));
        }
        let changed = || (0..REGISTERS).filter(|&register| registers[register] != before[register]);
        BlockEffect {
            known: changed().filter_map(|register| Some((register as u8, registers[register]?))).collect(),
            unknown: changed()
                .filter(|&register| registers[register].is_none())
                .fold(0, |mask, register| mask | 1 << register),
        }
    }
}

impl BaseRegisters {
    #[inline(always)]
    fn get(&self, register: u8) -> Option<u64> {
        let index = register as usize % REGISTERS;
        (self.known >> index & 1 != 0).then(|| self.values[index])
    }

    #[inline(always)]
    fn set(&mut self, register: u8, value: Option<u64>) {
        let index = register as usize % REGISTERS;
        self.known = self.known & !(1 << index) | u32::from(value.is_some()) << index;
        self.values[index] = value.unwrap_or(0);
    }

    /// A block was executed, with these addresses of its accesses.
    #[inline]
    pub fn execute_block(&mut self, effect: &BlockEffect, addresses: &[u64]) {
        let before = *self;
        self.known &= !effect.unknown;
        for &(register, origin) in &effect.known {
            let value = match origin {
                BaseOrigin::Constant(value) => Some(value),
                BaseOrigin::Register(from, offset) => {
                    before.get(from).map(|value| value.wrapping_add(offset))
                }
                BaseOrigin::Access(access, offset) => {
                    addresses.get(access as usize).map(|address| address.wrapping_add(offset))
                }
            };
            self.set(register, value);
        }
    }

    /// An instruction at an address is executed.
    pub fn execute(&mut self, effect: &BaseEffect, address: u64) {
        let operand = |operand| match operand {
            SourceOperand::Constant(number) => Some(BaseOrigin::Constant(number)),
            SourceOperand::Register(register) => self.get(register).map(BaseOrigin::Constant),
        };
        let result = effect.result.map(|(register, result)| (register, evaluate(result, address, operand)));
        self.known &= !effect.unknown;
        if let Some((register, value)) = result {
            let value = match value {
                Some(BaseOrigin::Constant(value)) => Some(value),
                _ => None,
            };
            self.set(register, value);
        }
    }

    /// Says which register is always 0.
    pub fn know_zero(&mut self, zero: u8) {
        self.set(zero, Some(0));
    }

    /// The address of an access, if its base register is known.
    pub fn address(&self, access: &MemoryAccess) -> Option<u64> {
        self.get(access.base).map(|base| base.wrapping_add_signed(access.displacement) & access.mask)
    }
}
