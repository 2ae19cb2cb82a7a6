//! The text of an instruction, as GNU objdump writes it, its pseudo-instructions included, so that
//! objdump can check it and its readers feel at home.

use crate::decode::{Instruction, PAL_NAMES};
use crate::qualifiers::{QualifierSet, Qualifiers, Rounding};
use crate::table::{Op, Operands};
use std::fmt;

/// The integer registers' names in the calling convention. Floating-point registers are `$f0` to `$f31`.
pub const REGISTER_NAMES: [&str; 32] = [
    "v0", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "s0", "s1", "s2", "s3", "s4", "s5", "fp", "a0",
    "a1", "a2", "a3", "a4", "a5", "t8", "t9", "t10", "t11", "ra", "t12", "at", "gp", "sp", "zero",
];

impl Instruction {
    /// The text of the instruction at an address: mnemonic, space, operands.
    pub fn disassemble(&self, pc: u64) -> impl fmt::Display {
        InstructionText { instruction: *self, pc }
    }

    /// Writes the qualifiers as `/su` and the like.
    fn write_qualifiers(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Qualifiers { rounding, underflow, software, inexact } = self.qualifiers();
        let set = self.op.row().qualifiers;
        let letters = [
            software.then_some('s'),
            underflow.then_some(set.underflow_letter()),
            inexact.then_some('i'),
            match rounding {
                Rounding::Chopped => Some('c'),
                Rounding::MinusInfinity => Some('m'),
                Rounding::Dynamic => Some('d'),
                Rounding::Normal => None,
            },
        ];
        for (i, letter) in letters.into_iter().flatten().enumerate() {
            write!(f, "{}{letter}", if i == 0 { "/" } else { "" })?;
        }
        Ok(())
    }
}

/// An instruction at an address, to be written.
struct InstructionText {
    instruction: Instruction,
    pc: u64,
}

/// The syntax of an operand.
struct Integer(u8);
struct Float(u8);
/// The second operand of an integer operation.
struct WrittenOperand(Instruction);
/// An unsigned constant: C's `%#x`.
struct Constant(u32);

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REGISTER_NAMES[usize::from(self.0)])
    }
}

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$f{}", self.0)
    }
}

impl fmt::Display for WrittenOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.literal() {
            Some(value) => Constant(value.into()).fmt(f),
            None => Integer(self.0.rb()).fmt(f),
        }
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { f.write_str("0") } else { write!(f, "{:#x}", self.0) }
    }
}

impl fmt::Display for InstructionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pseudo) = pseudo(self.instruction) {
            return self.write_pseudo(pseudo, f);
        }
        let op = self.instruction.op;
        // objdump's names where they are not the manual's.
        f.write_str(match op {
            Op::Bis => "or",
            Op::Bic => "andnot",
            Op::JsrCoroutine => "jcr",
            _ => self.instruction.name(),
        })?;
        self.instruction.write_qualifiers(f)?;
        self.write_operands(f)
    }
}

impl InstructionText {
    fn write_operands(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = self.instruction;
        let (ra, rb, rc) = (Integer(i.ra()), Integer(i.rb()), Integer(i.rc()));
        let (fa, fb, fc) = (Float(i.ra()), Float(i.rb()), Float(i.rc()));
        match i.op.row().operands {
            // An address computed from no base is a constant.
            Operands::RaMemory if matches!(i.op, Op::Lda | Op::Ldah) && i.rb() == 31 => {
                write!(f, " {ra},{}", i.displacement())
            }
            Operands::RaMemory => write!(f, " {ra},{}({rb})", i.displacement()),
            Operands::FaMemory => write!(f, " {fa},{}({rb})", i.displacement()),
            Operands::Jump => {
                write!(f, " {ra},({rb}),")?;
                match i.op {
                    Op::Jmp | Op::Jsr => write!(f, "{:#x}", self.relative()),
                    _ => write!(f, "{}", Constant(i.word & 0x3fff)),
                }
            }
            Operands::RaBranch => write!(f, " {ra},{:#x}", self.relative()),
            Operands::FaBranch => write!(f, " {fa},{:#x}", self.relative()),
            Operands::RaRbRc => write!(f, " {ra},{},{rc}", WrittenOperand(i)),
            Operands::RegistersRaRbRc => write!(f, " {ra},{rb},{rc}"),
            Operands::RbRc => write!(f, " {},{rc}", WrittenOperand(i)),
            Operands::RegisterRbRc => write!(f, " {rb},{rc}"),
            Operands::Rc => write!(f, " {rc}"),
            Operands::FaFbFc => write!(f, " {fa},{fb},{fc}"),
            Operands::FbFc => write!(f, " {fb},{fc}"),
            Operands::FaRc => write!(f, " {fa},{rc}"),
            Operands::RaFc => write!(f, " {ra},{fc}"),
            Operands::Fpcr => write!(f, " {fa}"),
            Operands::Nothing => Ok(()),
            Operands::Ra => write!(f, " {ra}"),
            Operands::RaRb if i.rb() == 31 => write!(f, " {ra}"),
            Operands::RaRb => write!(f, " {ra},{rb}"),
            Operands::Address => write!(f, " ({rb})"),
            Operands::PalFunction if PAL_NAMES.iter().any(|(function, _)| *function == i.word) => Ok(()),
            Operands::PalFunction => write!(f, " {:#x}", i.function()),
        }
    }

    /// The target of a branch, and of a jump by its hint.
    fn relative(&self) -> u64 {
        self.pc.wrapping_add(4).wrapping_add_signed(self.instruction.displacement().into())
    }

    fn write_pseudo(&self, (name, shape): (&str, OperandShape), f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = self.instruction;
        f.write_str(name)?;
        if shape == OperandShape::FloatUnary {
            i.write_qualifiers(f)?;
        }
        match shape {
            OperandShape::Bare => Ok(()),
            OperandShape::Target => write!(f, " {:#x}", self.relative()),
            OperandShape::Register => write!(f, " ({})", Integer(i.rb())),
            OperandShape::Destination => write!(f, " {}", Integer(i.rc())),
            OperandShape::Unary => write!(f, " {},{}", WrittenOperand(i), Integer(i.rc())),
            OperandShape::FloatDestination => write!(f, " {}", Float(i.rc())),
            OperandShape::FloatUnary => write!(f, " {},{}", Float(i.rb()), Float(i.rc())),
        }
    }
}

/// The operands that a pseudo-instruction is written with.
#[derive(Clone, Copy, PartialEq)]
enum OperandShape {
    Bare,
    Target,
    Register,
    Destination,
    Unary,
    FloatDestination,
    FloatUnary,
}

/// The pseudo-instruction that objdump sees in an instruction, if any.
fn pseudo(i: Instruction) -> Option<(&'static str, OperandShape)> {
    use OperandShape::*;
    let (ra, rb, rc) = (i.ra(), i.rb(), i.rc());
    let no_source = ra == 31 && rb == 31 && i.literal().is_none();
    Some(match i.op {
        Op::Cpys if ra == 31 && rb == 31 && rc == 31 => ("fnop", Bare),
        Op::Cpys if no_source => ("fclr", FloatDestination),
        Op::Cpys if ra == rb => ("fmov", FloatUnary),
        Op::Cpysn if ra == rb => ("fneg", FloatUnary),
        Op::Bis if ra == rb && ra != 31 && i.literal().is_none() => ("mov", Unary),
        _ if ra != 31 => return None,
        Op::LdqU => ("unop", Bare),
        Op::Br => ("br", Target),
        Op::Ret if i.word == 0x6bfa_8001 => ("ret", Bare),
        Op::Jmp if i.displacement() == 0 => ("jmp", Register),
        Op::Bis if no_source && rc == 31 => ("nop", Bare),
        Op::Bis if no_source => ("clr", Destination),
        Op::Bis => ("mov", Unary),
        Op::Ornot => ("not", Unary),
        Op::Addl => ("sextl", Unary),
        Op::Subl => ("negl", Unary),
        Op::Sublv => ("negl/v", Unary),
        Op::Subq => ("negq", Unary),
        Op::Subqv => ("negq/v", Unary),
        Op::Cpys => ("fabs", FloatUnary),
        Op::Subf | Op::Subg | Op::Subs | Op::Subt if negates(i) => (negation(i.op), FloatUnary),
        _ => return None,
    })
}

/// Whether objdump takes a subtraction from zero as a negation: only with some qualifiers.
fn negates(i: Instruction) -> bool {
    let Qualifiers { rounding, underflow, software, .. } = i.qualifiers();
    let complete = match i.op.row().qualifiers {
        QualifierSet::VaxArithmetic => !underflow,
        _ => underflow == software,
    };
    rounding == Rounding::Normal && complete
}

fn negation(op: Op) -> &'static str {
    match op {
        Op::Subf => "negf",
        Op::Subg => "negg",
        Op::Subs => "negs",
        _ => "negt",
    }
}
