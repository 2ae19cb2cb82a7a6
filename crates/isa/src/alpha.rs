//! Alpha as an [`InstructionSet`]: summaries of its instructions, which follow from the table.

use crate::instruction_set::{
    ControlTransfer, InstructionSet, InstructionSummary, IntegerResult, LoadExtension, MemoryAccess,
    Register, SourceOperand, TransferKind, TransferTarget, ValueModel, ValuePrediction,
};
use crate::{Flags, Format, Instruction, Op, Operands, decode, operation};

/// The Alpha instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Alpha;

/// Bytes of each instruction.
const LENGTH: u8 = 4;
const V0: u8 = 0;
const A0: u8 = 16;
const A3: u8 = 19;
const A4: u8 = 20;
const SP: u8 = 30;
/// The zero registers, integer and floating-point.
const ZERO: u8 = 31;

impl InstructionSet for Alpha {
    fn name(&self) -> &'static str {
        "alpha"
    }

    fn length(&self, _word: u32) -> u64 {
        LENGTH.into()
    }

    fn summary(&self, word: u32) -> Option<InstructionSummary> {
        decode(word).map(Instruction::summary)
    }

    fn zero_register(&self) -> u8 {
        ZERO
    }

    fn stack_pointer(&self) -> u8 {
        SP
    }

    fn code_alignment(&self) -> u64 {
        LENGTH.into()
    }
}

impl Instruction {
    /// The register whose value is recorded ([`InstructionSummary::value`]).
    pub fn value_register(self) -> Option<Register> {
        let op = self.op;
        let register = match op.format() {
            Format::Memory => self.ra(),
            Format::Branch if op.is(Flags::CONDITIONAL) => self.ra(),
            Format::MemoryFunction if reads_counter(op) => self.ra(),
            Format::Operate => self.rc(),
            Format::FloatOperate if op != Op::MtFpcr => self.rc(),
            _ => return None,
        };
        let is_dropped = register == ZERO && !op.is(Flags::STORE) && op.format() != Format::Branch;
        let is_float = op.is_float() && op.row().operands != Operands::FaRc;
        (!is_dropped).then_some(if is_float {
            Register::Float(register)
        } else {
            Register::Integer(register)
        })
    }

    fn summary(self) -> InstructionSummary {
        let transfer = self.transfer();
        let (written, read) = self.registers();
        InstructionSummary {
            access: self.memory_access(),
            value: self.value_register(),
            result: self.integer_result(),
            unknown: self.unknown_registers(),
            transfer,
            is_system_call: self.name() == "callsys",
            written,
            read,
            value_model: self.value_model(),
        }
    }

    fn memory_access(self) -> Option<MemoryAccess> {
        let (op, ra) = (self.op, self.ra());
        let is_store = op.is(Flags::STORE);
        let is_quadword = matches!(op, Op::Ldq | Op::Stq | Op::LdqL | Op::StqC) && (is_store || ra != ZERO);
        Some(MemoryAccess {
            size: self.access_size()?,
            is_store,
            base: self.rb(),
            displacement: self.displacement().into(),
            mask: if op.is_rounded() { !7 } else { !0 },
            quadword: is_quadword.then_some(ra),
        })
    }

    /// The second operand of an integer operation.
    fn second(self) -> SourceOperand {
        match self.literal() {
            Some(literal) => SourceOperand::Constant(literal.into()),
            None => SourceOperand::Register(self.rb()),
        }
    }

    /// What `lda` and `ldah` add to the base register.
    fn address_constant(self) -> Option<SourceOperand> {
        let displacement = i64::from(self.displacement());
        match self.op {
            Op::Lda => Some(SourceOperand::Constant(displacement as u64)),
            Op::Ldah => Some(SourceOperand::Constant((displacement << 16) as u64)),
            _ => None,
        }
    }

    fn integer_result(self) -> Option<(u8, IntegerResult)> {
        use IntegerResult::*;
        if let Some(constant) = self.address_constant() {
            return Some((self.ra(), Sum(SourceOperand::Register(self.rb()), constant)));
        }
        let (a, b) = (SourceOperand::Register(self.ra()), self.second());
        match self.op {
            Op::Addq => Some((self.rc(), Sum(a, b))),
            Op::Subq => Some((self.rc(), Difference(a, b))),
            Op::Bis => Some((self.rc(), Or(a, b))),
            _ => self.transfer()?.link.map(|link| (link, Relative(LENGTH.into()))),
        }
    }

    fn unknown_registers(self) -> u32 {
        let (op, ra, rc) = (self.op, self.ra(), self.rc());
        match op.format() {
            // A store-conditional writes its success. Quadwords that are loaded are results of the access.
            Format::Memory
                if self.memory_access().is_some_and(|one| !one.is_store && one.quadword.is_some()) =>
            {
                0
            }
            Format::Memory if !op.is_float() && (op.is(Flags::LOAD) || op.is(Flags::LOCKED)) => 1 << ra,
            Format::Operate if !matches!(op, Op::Addq | Op::Subq | Op::Bis) => 1 << rc,
            Format::FloatOperate if op.row().operands == Operands::FaRc => 1 << rc,
            Format::MemoryFunction if reads_counter(op) => 1 << ra,
            // A system call returns in v0, a3 and a4; other PAL calls at most in v0.
            Format::Pal => 1 << V0 | 1 << A3 | 1 << A4,
            _ => 0,
        }
    }

    fn transfer(self) -> Option<ControlTransfer> {
        let op = self.op;
        if !op.is(Flags::BRANCH) {
            return None;
        }
        let kind = match () {
            () if op.is(Flags::CALL) => TransferKind::Call,
            () if op.is(Flags::RETURN) => TransferKind::Return,
            () => TransferKind::Jump,
        };
        let target = match op.format() {
            Format::MemoryJump => TransferTarget::Register(self.rb()),
            _ => TransferTarget::Relative(i64::from(LENGTH) + i64::from(self.displacement())),
        };
        let is_conditional = op.is(Flags::CONDITIONAL);
        let link = Some(self.ra()).filter(|&ra| !is_conditional && ra != ZERO);
        Some(ControlTransfer { kind, is_conditional, target, link })
    }

    fn value_model(self) -> ValueModel {
        let (op, ra, rb, rc) = (self.op, self.ra(), self.rb(), self.rc());
        let is_float = op.is_float();
        let first = if is_float { Register::Float(ra) } else { Register::Integer(ra) };
        let (prediction, destination) = match op.format() {
            Format::Memory if op.is(Flags::STORE) => {
                (ValuePrediction::Register(first), op.is(Flags::LOCKED).then_some(first))
            }
            Format::Memory if op.is(Flags::LOAD) => (ValuePrediction::Memory, Some(first)),
            Format::Memory => {
                let constant = self.address_constant().unwrap_or(SourceOperand::Constant(0));
                (ValuePrediction::Operation(|a, b, _| a.wrapping_add(b), rb, constant, ZERO), Some(first))
            }
            Format::Branch if op.is(Flags::CONDITIONAL) => (ValuePrediction::Register(first), None),
            // The model takes barriers and `mt_fpcr`, too, for writers of their register: that is part of the format.
            Format::Branch | Format::MemoryJump | Format::MemoryFunction => {
                (ValuePrediction::History, Some(first))
            }
            Format::Operate => {
                let prediction = |operation| ValuePrediction::Operation(operation, ra, self.second(), rc);
                (operation(op).map_or(ValuePrediction::History, prediction), Some(Register::Integer(rc)))
            }
            Format::FloatOperate => {
                let prediction = match op {
                    Op::Cpys | Op::Ftoit => ValuePrediction::Register(Register::Float(ra)),
                    Op::Itoft => ValuePrediction::Register(Register::Integer(ra)),
                    _ => ValuePrediction::History,
                };
                let is_integer = op.row().operands == Operands::FaRc;
                (prediction, Some(if is_integer { Register::Integer(rc) } else { Register::Float(rc) }))
            }
            Format::Pal => (ValuePrediction::History, None),
        };
        let is_zero =
            |register: &Register| matches!(register, Register::Integer(ZERO) | Register::Float(ZERO));
        ValueModel {
            prediction,
            destination: destination.filter(|register| !is_zero(register)),
            success: (op.is(Flags::STORE) && op.is(Flags::LOCKED)).then_some(1),
            memory: loaded(op),
        }
    }

    /// The registers that it writes and reads. Of a system call: it takes its number and first arguments in v0, a0, a1
    /// and a2, and returns in v0 and a3.
    fn registers(self) -> ([Option<Register>; 2], [Option<Register>; 4]) {
        let op = self.op;
        let integer = |number: u8| Some(Register::Integer(number)).filter(|_| number != ZERO);
        let float = |number: u8| Some(Register::Float(number)).filter(|_| number != ZERO);
        let [a, b, c] = [self.ra(), self.rb(), self.rc()];
        let second = if self.literal().is_some() { None } else { integer(b) };
        match op.row().operands {
            operands @ (Operands::RaMemory | Operands::FaMemory) => {
                let data = if operands == Operands::FaMemory { float(a) } else { integer(a) };
                let (loaded, stored) = if op.is(Flags::STORE) { (None, data) } else { (data, None) };
                // A store-conditional writes its success.
                let loaded = if op.is(Flags::LOCKED) { data } else { loaded };
                ([loaded, None], [integer(b), stored, None, None])
            }
            Operands::RaRbRc | Operands::RegistersRaRbRc => {
                // A conditional move reads its destination.
                let kept = if op.mnemonic().starts_with("cmov") { integer(c) } else { None };
                ([integer(c), None], [integer(a), second, kept, None])
            }
            Operands::RbRc | Operands::RegisterRbRc => ([integer(c), None], [second, None, None, None]),
            Operands::Rc => ([integer(c), None], [None; 4]),
            Operands::FaFbFc => {
                let kept = if op.mnemonic().starts_with("fcmov") { float(c) } else { None };
                ([float(c), None], [float(a), float(b), kept, None])
            }
            Operands::FbFc => ([float(c), None], [float(b), None, None, None]),
            Operands::FaRc => ([integer(c), None], [float(a), None, None, None]),
            Operands::RaFc => ([float(c), None], [integer(a), None, None, None]),
            Operands::Fpcr if op == Op::MtFpcr => ([None; 2], [float(a), None, None, None]),
            Operands::Fpcr => ([float(a), None], [None; 4]),
            Operands::Ra | Operands::RaRb => ([integer(a), None], [None; 4]),
            Operands::Address => ([None; 2], [integer(b), None, None, None]),
            Operands::PalFunction => ([V0, A3].map(integer), [V0, A0, A0 + 1, A0 + 2].map(integer)),
            Operands::Jump => ([integer(a), None], [integer(b), None, None, None]),
            Operands::RaBranch if op.is(Flags::CONDITIONAL) => ([None; 2], [integer(a), None, None, None]),
            Operands::RaBranch => ([integer(a), None], [None; 4]),
            Operands::FaBranch => ([None; 2], [float(a), None, None, None]),
            Operands::Nothing => ([None; 2], [None; 4]),
        }
    }
}

/// Whether it is a miscellaneous instruction that writes a register.
fn reads_counter(op: Op) -> bool {
    matches!(op, Op::Rpcc | Op::Rc | Op::Rs)
}

/// What memory holds after a load or a store in the model of values. A load that drops its result counts, too.
fn loaded(op: Op) -> Option<LoadExtension> {
    let (bits, is_signed) = match op {
        Op::Stb => (8, false),
        Op::Stw => (16, false),
        Op::Stl | Op::StlC => (32, true),
        _ if op.is(Flags::LOAD) || op.is(Flags::STORE) => return Some(LoadExtension::WHOLE),
        _ => return None,
    };
    Some(LoadExtension { bits, is_signed })
}
