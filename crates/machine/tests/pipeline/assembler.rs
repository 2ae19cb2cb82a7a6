//! Programs as text: `"addq r1,r2,r3; ldq r4,8(r5); beq r1,-8"`, consecutive instructions.

use isa::encode::{self, EncodeError, SecondOperand};
use isa::{InstructionFormat, Op, Operands, Qualifiers};

/// The words of a program.
pub fn assemble(text: &str) -> Vec<u32> {
    let lines = text.split(';').map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| instruction(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

fn instruction(line: &str) -> Result<u32, EncodeError> {
    let (mnemonic, operands) = line.split_once(' ').unwrap_or((line, ""));
    if mnemonic == "unop" {
        return encode::memory(Op::LdqU, 31, 30, 0);
    }
    let op = *Op::ALL.iter().find(|op| op.mnemonic() == mnemonic).unwrap_or_else(|| panic!("{line}"));
    let operands: Vec<&str> = operands.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
    let register = |index: usize| operands.get(index).map_or(31, |text| number(&text[1..]) as u8);
    match op.format() {
        InstructionFormat::Memory => {
            let (displacement, base) = operands[1].trim_end_matches(')').split_once('(').expect(line);
            encode::memory(op, register(0), number(&base[1..]) as u8, number(displacement) as i16)
        }
        InstructionFormat::MemoryFunction => encode::memory_function(op, register(0), register(1)),
        InstructionFormat::MemoryJump => {
            encode::jump(op, register(0), number(&operands[1][2..4]) as u8, hint(&operands))
        }
        InstructionFormat::Branch => encode::branch(op, register(0), number(operands[1])),
        InstructionFormat::Operate if op.row().operands == Operands::Rc => {
            encode::operate(op, 31, SecondOperand::Literal(1), register(0))
        }
        InstructionFormat::Operate if op.row().operands == Operands::RbRc => {
            encode::operate(op, 31, SecondOperand::Register(register(0)), register(1))
        }
        InstructionFormat::Operate => {
            encode::operate(op, register(0), SecondOperand::Register(register(1)), register(2))
        }
        InstructionFormat::FloatOperate if op.row().operands == Operands::FbFc => {
            encode::float_operate(op, Qualifiers::NONE, 31, register(0), register(1))
        }
        InstructionFormat::FloatOperate => {
            encode::float_operate(op, Qualifiers::NONE, register(0), register(1), register(2))
        }
        InstructionFormat::Pal => encode::call_pal(number(operands[0]) as u32),
    }
}

/// A jump's third operand: its displacement in bytes.
fn hint(operands: &[&str]) -> u16 {
    operands.get(2).map_or(0, |text| (number(text) >> 2) as u16 & 0x3fff)
}

fn number(text: &str) -> i64 {
    text.trim_start_matches('+').parse().unwrap_or_else(|_| panic!("{text} is no number"))
}
