//! Reconstructs the contents of integer registers from the records: from values if they were recorded, else from
//! addresses and from arithmetic on registers with known contents.

use isa::{Flags, Format, Instruction, Op, evaluate};

/// The register that is always zero.
const ZERO: u8 = 31;
/// The registers that a system call writes: its result, its error flag, and a second result (v0, a3, a4).
const SYSTEM_RESULTS: [u8; 3] = [0, 19, 20];

/// The integer registers whose contents are known.
#[derive(Clone, Debug)]
pub struct KnownRegisters {
    values: [u64; 32],
    known: u32,
}

impl Default for KnownRegisters {
    fn default() -> KnownRegisters {
        KnownRegisters { values: [0; 32], known: 1 << ZERO }
    }
}

impl KnownRegisters {
    /// The contents of a register, if they are known.
    #[inline]
    pub fn get(&self, register: u8) -> Option<u64> {
        (self.known >> register & 1 != 0).then_some(self.values[register as usize])
    }

    #[inline]
    fn set(&mut self, register: u8, value: Option<u64>) {
        if register == ZERO {
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
        instruction: Instruction,
        pc: u64,
        address: Option<u64>,
        value: Option<u64>,
    ) -> Option<u64> {
        let op = instruction.op;
        if let Some(address) = address {
            self.learn_base(instruction, address);
        }
        match op.format() {
            Format::Memory if op.is(Flags::STORE) => self.store(instruction, value),
            Format::Memory => {
                let computed = value.or_else(|| self.constant(instruction));
                if !op.is_float() {
                    self.set(instruction.ra(), computed);
                }
                computed
            }
            Format::Branch if op.is(Flags::CONDITIONAL) => {
                value.or_else(|| if op.is_float() { None } else { self.get(instruction.ra()) })
            }
            Format::Branch | Format::MemoryJump => {
                self.set(instruction.ra(), Some(pc.wrapping_add(4)));
                self.get(instruction.ra())
            }
            Format::Operate => {
                let computed = value.or_else(|| self.operate(instruction));
                self.set(instruction.rc(), computed);
                computed
            }
            Format::FloatOperate => {
                if matches!(op, Op::Ftoit | Op::Ftois) {
                    self.set(instruction.rc(), value);
                }
                value
            }
            Format::MemoryFunction => {
                if matches!(op, Op::Rpcc | Op::Rc | Op::Rs) {
                    self.set(instruction.ra(), value);
                }
                value
            }
            Format::Pal => {
                SYSTEM_RESULTS.into_iter().for_each(|register| self.set(register, None));
                None
            }
        }
    }

    /// Computes the base register from the address, unless the access clears the low bits of the address.
    fn learn_base(&mut self, instruction: Instruction, address: u64) {
        if !instruction.op.is_rounded() {
            let base = address.wrapping_sub(i64::from(instruction.displacement()) as u64);
            self.set(instruction.rb(), Some(base));
        }
    }

    fn store(&mut self, instruction: Instruction, value: Option<u64>) -> Option<u64> {
        let op = instruction.op;
        let stored = value.or_else(|| if op.is_float() { None } else { self.get(instruction.ra()) });
        if op.is(Flags::LOCKED) {
            // Its success flag.
            self.set(instruction.ra(), None);
        }
        match op.access_size() {
            Some(size @ 1..8) if !op.is_float() => stored.map(|value| value & ((1 << (8 * size)) - 1)),
            _ => stored,
        }
    }

    /// The result of `lda` and `ldah`.
    fn constant(&self, instruction: Instruction) -> Option<u64> {
        let displacement = i64::from(instruction.displacement());
        let added = match instruction.op {
            Op::Lda => displacement,
            Op::Ldah => displacement << 16,
            _ => return None,
        };
        Some(self.get(instruction.rb())?.wrapping_add_signed(added))
    }

    fn operate(&self, instruction: Instruction) -> Option<u64> {
        let b = match instruction.literal() {
            Some(literal) => u64::from(literal),
            None => self.get(instruction.rb())?,
        };
        let (op, a) = (instruction.op, self.get(instruction.ra())?);
        match self.get(instruction.rc()) {
            Some(old) => evaluate(op, a, b, old),
            None => evaluate(op, a, b, 0).filter(|&result| evaluate(op, a, b, u64::MAX) == Some(result)),
        }
    }
}
