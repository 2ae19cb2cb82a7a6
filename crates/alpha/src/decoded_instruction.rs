//! Decoded instructions, as the interpreter and the compiler take them.

use guest::InstructionProperties;
use isa::{Flags, InstructionFormat, Op};

use crate::cpu::{Cpu, register::SINK};
use crate::pal;

/// A decoded instruction, its operands brought into one form.
#[derive(Clone, Copy, Debug)]
pub struct DecodedInstruction {
    /// Which instruction.
    pub op: Op,
    /// Register of the first operand, or of the value to store: 0 to 31.
    pub a: u8,
    /// Register of the second operand or base: 0 to 31; 31 where a literal stands instead.
    pub b: u8,
    /// Register of the result: 0 to 30, or [`SINK`].
    pub c: u8,
    /// Added to register `b`: the displacement (shifted for LDAH) or the literal. A branch: its
    /// target. A floating operate: its qualifiers. CALL_PAL: its function.
    pub immediate: i64,
}

impl DecodedInstruction {
    /// Brings the operands of an instruction, which is at an address, into this form.
    pub fn new(instruction: isa::Instruction, address: u64) -> DecodedInstruction {
        const ZERO: u8 = 31;
        let target = |register: u8| if register == ZERO { SINK as u8 } else { register };
        let (ra, rb, rc) = (instruction.ra(), instruction.rb(), instruction.rc());
        let op = instruction.op;
        let displacement = i64::from(instruction.displacement());
        match op.format() {
            // A load to register 31 is a prefetch or a no-operation: it never touches memory.
            InstructionFormat::Memory if op.is(Flags::LOAD) && !op.is(Flags::LOCKED) && ra == ZERO => {
                DecodedInstruction { op: Op::Lda, a: ZERO, b: ZERO, c: SINK as u8, immediate: 0 }
            }
            InstructionFormat::Memory => {
                let scale = if op == Op::Ldah { 16 } else { 0 };
                let c = if op.is(Flags::STORE) && !op.is(Flags::LOCKED) { SINK as u8 } else { target(ra) };
                DecodedInstruction { op, a: ra, b: rb, c, immediate: displacement << scale }
            }
            InstructionFormat::MemoryFunction | InstructionFormat::MemoryJump => {
                DecodedInstruction { op, a: ZERO, b: rb, c: target(ra), immediate: 0 }
            }
            InstructionFormat::Branch => {
                let immediate = address.wrapping_add(4).wrapping_add(displacement as u64) as i64;
                DecodedInstruction { op, a: ra, b: ZERO, c: target(ra), immediate }
            }
            InstructionFormat::Operate => match instruction.literal() {
                Some(literal) => {
                    DecodedInstruction { op, a: ra, b: ZERO, c: target(rc), immediate: i64::from(literal) }
                }
                None => DecodedInstruction { op, a: ra, b: rb, c: target(rc), immediate: 0 },
            },
            InstructionFormat::FloatOperate => {
                DecodedInstruction { op, a: ra, b: rb, c: target(rc), immediate: i64::from(instruction.word) }
            }
            InstructionFormat::Pal => {
                let immediate = i64::from(instruction.word & 0x3ff_ffff);
                DecodedInstruction { op, a: ZERO, b: ZERO, c: SINK as u8, immediate }
            }
        }
    }
}

impl InstructionProperties<Cpu> for DecodedInstruction {
    fn ends_block(&self) -> bool {
        match self.op.format() {
            InstructionFormat::Branch | InstructionFormat::MemoryJump => true,
            InstructionFormat::Pal => !matches!(self.immediate, pal::RDUNIQ | pal::WRUNIQ),
            _ => false,
        }
    }

    fn is_indirect_jump(&self) -> bool {
        matches!(self.op, Op::Jmp | Op::Jsr)
    }

    #[inline(always)]
    fn is_access(&self) -> bool {
        self.op.access_size().is_some()
    }

    fn access_size(&self) -> Option<u8> {
        self.op.access_size()
    }

    #[inline(always)]
    fn is_store(&self) -> bool {
        self.op.is(Flags::STORE)
    }

    #[inline(always)]
    fn address(&self, cpu: &Cpu) -> u64 {
        let sum = cpu.r[usize::from(self.b)].wrapping_add(self.immediate as u64);
        if self.op.is_rounded() { sum & !7 } else { sum }
    }
}
