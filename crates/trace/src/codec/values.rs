//! Values: predicted by executing instructions one by one, as far as their operands are known. That is often, as
//! every value is.

use isa::{Flags, Format, Instruction, Op};

use super::coder::{Coder, Section};
use super::guesses::Guesses;
use super::memory::Memory;
use super::recipe::Recipes;
use crate::BlockId;
use crate::bytes::Malformed;
use crate::record::has_value;

/// The registers: the integer ones, then the floating-point ones.
const REGISTERS: usize = 64;
const FLOAT: usize = 32;
const ZERO: u8 = 31;

/// Follows values through registers and memory.
pub(crate) struct Values {
    registers: [u64; REGISTERS],
    memory: Memory,
    guesses: Guesses,
}

impl Values {
    pub fn new() -> Values {
        Values { registers: [0; REGISTERS], memory: Memory::new(), guesses: Guesses::new() }
    }

    /// The integer registers.
    pub fn integers(&self) -> &[u64] {
        &self.registers[..FLOAT]
    }

    /// The values of a block that was executed with these addresses; the first of its instructions is the
    /// site `first_site`.
    pub fn execution<C: Coder>(
        &mut self,
        coder: &mut C,
        recipes: &Recipes,
        id: BlockId,
        first_site: u32,
        addresses: &[u64],
    ) -> Result<(), Malformed> {
        let mut addresses = addresses.iter().copied();
        let (mut site, mut pc) = (first_site, recipes.get(id)?.address);
        for instruction in recipes.instructions(id) {
            site = site.wrapping_add(1);
            pc = pc.wrapping_add(4);
            let Some(instruction) = *instruction else { continue };
            let is_access = instruction.access_size().is_some();
            let address = if is_access { addresses.next().unwrap_or(0) } else { 0 };
            let mut value = pc;
            if has_value(instruction) {
                let predicted = self.predict(instruction, address);
                value = match predicted {
                    Some(value) if coder.hit(Section::Values, value) => value,
                    _ => self.guesses.next(coder, Section::Values, site, predicted.is_some())?,
                };
            }
            self.executed(instruction, address, value);
        }
        Ok(())
    }

    fn integer(&self, register: u8) -> u64 {
        self.registers[register as usize]
    }

    /// The register that an instruction names as its first operand.
    fn first(&self, instruction: Instruction) -> u64 {
        let bank = if instruction.op.is_float() { FLOAT } else { 0 };
        self.registers[bank + instruction.ra() as usize]
    }

    fn predict(&mut self, instruction: Instruction, address: u64) -> Option<u64> {
        let op = instruction.op;
        let displacement = instruction.displacement();
        match op.format() {
            Format::Memory if op == Op::Lda || op == Op::Ldah => {
                let shift = if op == Op::Ldah { 16 } else { 0 };
                let displacement = i64::from(displacement) << shift;
                Some(self.integer(instruction.rb()).wrapping_add_signed(displacement))
            }
            Format::Memory if op.is(Flags::LOAD) => self.memory.get(address),
            Format::Memory | Format::Branch => Some(self.first(instruction)),
            Format::Operate => {
                let b = instruction.literal().map_or_else(|| self.integer(instruction.rb()), u64::from);
                evaluate(op, self.integer(instruction.ra()), b, self.integer(instruction.rc()))
            }
            Format::FloatOperate if matches!(op, Op::Cpys | Op::Ftoit) => Some(self.first(instruction)),
            Format::FloatOperate if op == Op::Itoft => Some(self.integer(instruction.ra())),
            _ => None,
        }
    }

    /// What an instruction does with its value, or the address behind it.
    fn executed(&mut self, instruction: Instruction, address: u64, value: u64) {
        let op = instruction.op;
        let (ra, rc) = (instruction.ra(), instruction.rc());
        let (register, written) = match op.format() {
            Format::Memory if op.is(Flags::STORE) => {
                self.memory.set(address, loaded(op, value));
                if !op.is(Flags::LOCKED) {
                    return;
                }
                (ra, 1)
            }
            Format::Memory => {
                if op.is(Flags::LOAD) {
                    self.memory.set(address, value);
                }
                (if op.is_float() { FLOAT as u8 + ra } else { ra }, value)
            }
            Format::Branch if op.is(Flags::CONDITIONAL) => return,
            Format::Branch | Format::MemoryJump | Format::MemoryFunction => (ra, value),
            Format::Operate => (rc, value),
            Format::FloatOperate if matches!(op, Op::Ftoit | Op::Ftois) => (rc, value),
            Format::FloatOperate => (FLOAT as u8 + rc, value),
            Format::Pal => return,
        };
        if register % 32 != ZERO {
            self.registers[register as usize] = written;
        }
    }
}

/// What a load of the same size would load that a store stored.
fn loaded(op: Op, value: u64) -> u64 {
    match op {
        Op::Stb => value as u8 as u64,
        Op::Stw => value as u16 as u64,
        Op::Stl | Op::StlC => value as i32 as u64,
        _ => value,
    }
}

/// The bytes of a value whose bits are set.
fn keep(value: u64, bits: u64) -> u64 {
    (0..8).map(|byte| value & (0xff << (8 * byte)) & (bits >> byte & 1).wrapping_neg()).sum()
}

/// The result of an integer operation, if it is a common one. `old` is what its destination held.
pub(super) fn evaluate(op: Op, a: u64, b: u64, old: u64) -> Option<u64> {
    let long = |value: u64| value as i32 as u64;
    let (signed_a, signed_b) = (a as i64, b as i64);
    let choose = |condition| if condition { b } else { old };
    let (right, left) = (8 * (b & 7), (64 - 8 * (b & 7)) & 63);
    let covered = |size: u32| ((1u64 << size) - 1) << (b & 7);
    Some(match op {
        Op::Addl | Op::Addlv => long(a.wrapping_add(b)),
        Op::Addq | Op::Addqv => a.wrapping_add(b),
        Op::Subl | Op::Sublv => long(a.wrapping_sub(b)),
        Op::Subq | Op::Subqv => a.wrapping_sub(b),
        Op::S4addl => long((a << 2).wrapping_add(b)),
        Op::S4addq => (a << 2).wrapping_add(b),
        Op::S4subl => long((a << 2).wrapping_sub(b)),
        Op::S4subq => (a << 2).wrapping_sub(b),
        Op::S8addl => long((a << 3).wrapping_add(b)),
        Op::S8addq => (a << 3).wrapping_add(b),
        Op::S8subl => long((a << 3).wrapping_sub(b)),
        Op::S8subq => (a << 3).wrapping_sub(b),
        Op::Mull | Op::Mullv => long(a.wrapping_mul(b)),
        Op::Mulq | Op::Mulqv => a.wrapping_mul(b),
        Op::Umulh => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        Op::Cmpeq => u64::from(a == b),
        Op::Cmplt => u64::from(signed_a < signed_b),
        Op::Cmple => u64::from(signed_a <= signed_b),
        Op::Cmpult => u64::from(a < b),
        Op::Cmpule => u64::from(a <= b),
        Op::And => a & b,
        Op::Bis => a | b,
        Op::Xor => a ^ b,
        Op::Bic => a & !b,
        Op::Ornot => a | !b,
        Op::Eqv => a ^ !b,
        Op::Sll => a << (b & 63),
        Op::Srl => a >> (b & 63),
        Op::Sra => (signed_a >> (b & 63)) as u64,
        Op::Cmoveq => choose(a == 0),
        Op::Cmovne => choose(a != 0),
        Op::Cmovlt => choose(signed_a < 0),
        Op::Cmovle => choose(signed_a <= 0),
        Op::Cmovgt => choose(signed_a > 0),
        Op::Cmovge => choose(signed_a >= 0),
        Op::Cmovlbc => choose(a & 1 == 0),
        Op::Cmovlbs => choose(a & 1 != 0),
        Op::Zap => keep(a, !b),
        Op::Zapnot => keep(a, b),
        Op::Extbl => keep(a >> right, 1),
        Op::Extwl => keep(a >> right, 3),
        Op::Extll => keep(a >> right, 0xf),
        Op::Extql => a >> right,
        Op::Extwh => keep(a << left, 3),
        Op::Extlh => keep(a << left, 0xf),
        Op::Extqh => a << left,
        Op::Insbl => keep(a << right, covered(1)),
        Op::Inswl => keep(a << right, covered(2)),
        Op::Insll => keep(a << right, covered(4)),
        Op::Insql => a << right,
        Op::Mskbl => keep(a, !covered(1)),
        Op::Mskwl => keep(a, !covered(2)),
        Op::Mskll => keep(a, !covered(4)),
        Op::Mskql => keep(a, !covered(8)),
        Op::Sextb => b as i8 as u64,
        Op::Sextw => b as i16 as u64,
        _ => return None,
    })
}
