//! Alpha's instructions as models of pipelines need them.

use crate::alpha::ZERO;
use crate::instruction_set::{PipelineSummary, Register};
use crate::{Flags, Instruction, InstructionClass, Op, Operands};

/// The bits of a `call_pal` that name its function, and those that access the thread pointer.
const PAL_FUNCTION: u32 = 0x3ff_ffff;
const RDUNIQ: u32 = 0x9e;
const WRUNIQ: u32 = 0x9f;

impl Instruction {
    /// A summary for models of pipelines.
    pub(crate) fn pipeline_summary(self) -> PipelineSummary {
        let (sources, special, destination) = self.pipeline_registers();
        PipelineSummary { class: self.class(), sources, special, destination }
    }

    fn class(self) -> InstructionClass {
        use Op::*;
        let op = self.op;
        match op {
            LdqU if self.ra() == 31 => InstructionClass::Nothing,
            LdlL | LdqL => InstructionClass::LoadLocked,
            StlC | StqC => InstructionClass::StoreConditional,
            Mb => InstructionClass::MemoryBarrier,
            Wmb | Fetch | FetchM | Ecb | Wh64 | Wh64en => InstructionClass::MemoryHint,
            CallPal if matches!(self.word & PAL_FUNCTION, RDUNIQ | WRUNIQ) => InstructionClass::ThreadPointer,
            CallPal => InstructionClass::CallPal,
            Rpcc => InstructionClass::Miscellaneous,
            Trapb | Excb => InstructionClass::TrapBarrier,
            Rs | Rc => InstructionClass::ReadFlag,
            Lda | Ldah | Addl | Addq | Subl | Subq | Addlv | Addqv | Sublv | Subqv | S4addl | S4addq
            | S4subl | S4subq | S8addl | S8addq | S8subl | S8subq => InstructionClass::Add,
            Cmpeq | Cmplt | Cmple | Cmpult | Cmpule | Cmpbge => InstructionClass::Compare,
            And | Bic | Bis | Ornot | Xor | Eqv | Amask | Implver => InstructionClass::Logical,
            Mull | Mullv => InstructionClass::MultiplyLong,
            Mulq | Mulqv => InstructionClass::MultiplyQuad,
            Umulh => InstructionClass::MultiplyHigh,
            Mulf | Mulg | Muls | Mult => InstructionClass::FloatMultiply,
            Divf | Divs | Sqrtf | Sqrts => InstructionClass::FloatDivideSingle,
            Divg | Divt | Sqrtg | Sqrtt => InstructionClass::FloatDivideDouble,
            Cpys => InstructionClass::FloatCopy,
            _ if is_conditional_move(op) && !op.is_float() => InstructionClass::ConditionalMove,
            _ => class_by_flags(op),
        }
    }

    /// The registers that it reads, which of them it tests or stores, and the one that it writes.
    fn pipeline_registers(self) -> ([Option<Register>; 2], Option<usize>, Option<Register>) {
        use Operands::*;
        let op = self.op;
        let integer = |number: u8| Some(Register::Integer(number)).filter(|_| number != ZERO);
        let float = |number: u8| Some(Register::Float(number)).filter(|_| number != ZERO);
        let [ra, rb, rc] = [self.ra(), self.rb(), self.rc()].map(integer);
        let [fa, fb, fc] = [self.ra(), self.rb(), self.rc()].map(float);
        let second = if self.literal().is_some() { None } else { rb };
        let test = is_conditional_move(op).then_some(0);
        match op.row().operands {
            RaMemory | FaMemory => {
                let register = if op.row().operands == FaMemory { fa } else { ra };
                let success = if op.is(Flags::LOCKED) { register } else { None };
                match op.is(Flags::STORE) {
                    true => ([register, rb], Some(0), success),
                    false => ([None, rb], None, register),
                }
            }
            Jump => ([None, rb], None, ra),
            RaBranch if op.is(Flags::CONDITIONAL) => ([ra, None], Some(0), None),
            RaBranch => ([None; 2], None, ra),
            FaBranch => ([fa, None], Some(0), None),
            RaRbRc | RegistersRaRbRc => ([ra, second], test, rc),
            RbRc | RegisterRbRc => ([None, second], None, rc),
            Rc => ([None; 2], None, rc),
            FaFbFc => ([fa, fb], test, fc),
            FbFc => ([None, fb], None, fc),
            FaRc => ([fa, None], None, rc),
            RaFc => ([ra, None], None, fc),
            Fpcr if op == Op::MtFpcr => ([fa, None], None, None),
            Fpcr => ([None; 2], None, fa),
            Ra => ([None; 2], None, ra),
            RaRb => ([None, rb], None, ra),
            Address => ([None, rb], None, None),
            PalFunction if self.word & PAL_FUNCTION == RDUNIQ => ([None; 2], None, integer(0)),
            PalFunction if self.word & PAL_FUNCTION == WRUNIQ => ([integer(16), None], None, None),
            Nothing | PalFunction => ([None; 2], None, None),
        }
    }
}

fn class_by_flags(op: Op) -> InstructionClass {
    let of_kind = |integer, float| if op.is_float() { float } else { integer };
    if op.is(Flags::LOAD) {
        of_kind(InstructionClass::Load, InstructionClass::FloatLoad)
    } else if op.is(Flags::STORE) {
        of_kind(InstructionClass::Store, InstructionClass::FloatStore)
    } else if op.is(Flags::CONDITIONAL) {
        of_kind(InstructionClass::Branch, InstructionClass::FloatBranch)
    } else if op.is(Flags::BRANCH) {
        InstructionClass::Jump
    } else {
        of_kind(InstructionClass::Shift, InstructionClass::FloatAdd)
    }
}

fn is_conditional_move(op: Op) -> bool {
    op.mnemonic().starts_with("cmov") || op.mnemonic().starts_with("fcmov")
}
