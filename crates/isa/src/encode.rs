//! From an instruction and its operands to a word: one function a format.

use crate::decode::{LITERAL, decode_op};
use crate::qualifiers::Qualifiers;
use crate::table::{InstructionFormat, Op};

/// The second operand of an integer operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SecondOperand {
    /// A register.
    Register(u8),
    /// An 8-bit literal, zero-extended.
    Literal(u8),
}

/// Why there is no such instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The wrong function was called.
    #[error("{} has the format {:?}, not {given:?}", .op.mnemonic(), .op.format())]
    Format {
        /// The instruction.
        op: Op,
        /// The format that was to be encoded.
        given: InstructionFormat,
    },
    /// No such register.
    #[error("there is no register {0}: they are numbered from 0 to 31")]
    Register(u8),
    /// A displacement, hint or function does not fit its field.
    #[error("{value} does not fit the {bits} bits that {} has for it", .op.mnemonic())]
    Range {
        /// The instruction.
        op: Op,
        /// The value that does not fit.
        value: i64,
        /// The width of the field.
        bits: u32,
    },
    /// A branch displacement that is not a multiple of 4.
    #[error("a branch by {0} bytes does not reach an instruction: it must be a multiple of 4")]
    Misaligned(i64),
    /// The operands or qualifiers are not those the instruction has.
    #[error("{} does not take these operands or qualifiers", .0.mnemonic())]
    Operands(Op),
}

/// A load, store or address computation: `op ra,displacement(rb)`.
pub fn memory(op: Op, ra: u8, rb: u8, displacement: i16) -> Result<u32, EncodeError> {
    finish(op, InstructionFormat::Memory, registers(ra, rb, 0)? | u32::from(displacement as u16))
}

/// A barrier, hint or counter: `op ra,(rb)`. Registers that it has not are 31.
pub fn memory_function(op: Op, ra: u8, rb: u8) -> Result<u32, EncodeError> {
    finish(op, InstructionFormat::MemoryFunction, registers(ra, rb, 0)? | u32::from(op.row().function))
}

/// A jump through a register: `op ra,(rb),hint`. The hint is the 14-bit field itself: of `jmp` and
/// `jsr` the low bits of the displacement in instructions.
pub fn jump(op: Op, ra: u8, rb: u8, hint: u16) -> Result<u32, EncodeError> {
    let hint = unsigned(op, hint.into(), 14)?;
    finish(
        op,
        InstructionFormat::MemoryJump,
        registers(ra, rb, 0)? | u32::from(op.row().function) << 14 | hint,
    )
}

/// A branch by this number of bytes from the instruction after it.
pub fn branch(op: Op, ra: u8, displacement: i64) -> Result<u32, EncodeError> {
    if displacement % 4 != 0 {
        return Err(EncodeError::Misaligned(displacement));
    }
    let instructions = displacement / 4;
    if !(-(1 << 20)..1 << 20).contains(&instructions) {
        return Err(EncodeError::Range { op, value: instructions, bits: 21 });
    }
    finish(op, InstructionFormat::Branch, registers(ra, 0, 0)? | instructions as u32 & 0x1f_ffff)
}

/// An integer operation: `op ra,rb,rc`. Registers that it has not are 31.
pub fn operate(op: Op, ra: u8, rb: SecondOperand, rc: u8) -> Result<u32, EncodeError> {
    let fields = match rb {
        SecondOperand::Register(rb) => registers(ra, rb, rc)?,
        SecondOperand::Literal(value) => registers(ra, 0, rc)? | u32::from(value) << 13 | LITERAL,
    };
    finish(op, InstructionFormat::Operate, fields | u32::from(op.row().function) << 5)
}

/// A floating-point operation or a move between the register files: `op fa,fb,fc`. Registers that
/// it has not are 31.
pub fn float_operate(op: Op, qualifiers: Qualifiers, fa: u8, fb: u8, fc: u8) -> Result<u32, EncodeError> {
    let row = op.row();
    let function = row.qualifiers.encode(row.function, qualifiers).ok_or(EncodeError::Operands(op))?;
    finish(op, InstructionFormat::FloatOperate, registers(fa, fb, fc)? | u32::from(function) << 5)
}

/// A call of the privileged architecture library.
pub fn call_pal(function: u32) -> Result<u32, EncodeError> {
    finish(Op::CallPal, InstructionFormat::Pal, unsigned(Op::CallPal, function, 26)?)
}

fn registers(a: u8, b: u8, c: u8) -> Result<u32, EncodeError> {
    match [a, b, c].into_iter().find(|register| *register > 31) {
        Some(register) => Err(EncodeError::Register(register)),
        None => Ok(u32::from(a) << 21 | u32::from(b) << 16 | u32::from(c)),
    }
}

fn unsigned(op: Op, value: u32, bits: u32) -> Result<u32, EncodeError> {
    if value >> bits == 0 { Ok(value) } else { Err(EncodeError::Range { op, value: value.into(), bits }) }
}

/// The word, if it decodes to the instruction: only the decoder decides which words are legal.
fn finish(op: Op, given: InstructionFormat, fields: u32) -> Result<u32, EncodeError> {
    if op.format() != given {
        return Err(EncodeError::Format { op, given });
    }
    let word = u32::from(op.row().opcode) << 26 | fields;
    if decode_op(word) == Some(op) { Ok(word) } else { Err(EncodeError::Operands(op)) }
}
