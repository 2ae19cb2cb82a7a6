//! The toy's instructions, as records and traces need them.

use isa::{
    ControlTransfer, InstructionSet, InstructionSummary, IntegerResult, LoadExtension, MemoryAccess,
    Register, SourceOperand, TransferKind, TransferTarget, ValueModel, ValuePrediction,
};

use super::{Decoded, Guest, Instruction, Op, Target, Toy};

/// The toy's instruction set.
#[derive(Debug)]
pub(super) struct ToySet;

impl InstructionSet for ToySet {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn length(&self, word: u32) -> u64 {
        if word & 3 == 3 { 4 } else { 2 }
    }

    fn summary(&self, word: u32) -> Option<InstructionSummary> {
        Toy::decode(word, 0, ()).map(Decoded::summary)
    }

    fn zero_register(&self) -> u8 {
        Toy::ZERO
    }

    /// By convention: the toy's programs have no stack.
    fn stack_pointer(&self) -> u8 {
        4
    }

    fn code_alignment(&self) -> u64 {
        2
    }
}

/// Instructions that were decoded at address 0.
impl Decoded {
    fn summary(self) -> InstructionSummary {
        let written = Some(self.result).filter(|&result| result != Toy::SINK).map(Register::Integer);
        let (a, b) = (self.source, self.base);
        let (value, read) = match self.op {
            Op::AddImmediate | Op::Load => (written, [None, Some(b)]),
            Op::Add | Op::Subtract => (written, [Some(a), Some(b)]),
            Op::Store => (Some(Register::Integer(a)), [Some(a), Some(b)]),
            Op::BranchNotZero => (Some(Register::Integer(a)), [Some(a), None]),
            Op::CallRegister | Op::Return => (None, [None, Some(b)]),
            Op::Call | Op::SystemCall => (None, [None; 2]),
        };
        let [first, second] =
            read.map(|one| one.filter(|&register| register != Toy::ZERO).map(Register::Integer));
        InstructionSummary {
            access: self.memory_access(),
            value,
            result: self.integer_result(),
            unknown: 0,
            transfer: self.transfer(),
            is_system_call: self.op == Op::SystemCall,
            written: [written, None],
            read: [first, second, None, None],
            value_model: ValueModel {
                prediction: self.prediction(),
                destination: written,
                success: None,
                memory: self.is_access().then_some(LoadExtension::WHOLE),
            },
        }
    }

    fn memory_access(self) -> Option<MemoryAccess> {
        self.is_access().then_some(MemoryAccess {
            size: 8,
            is_store: self.is_store(),
            base: self.base,
            displacement: self.immediate,
            mask: !0,
            quadword: Some(self.source).filter(|&register| self.is_store() || register != Toy::ZERO),
        })
    }

    fn integer_result(self) -> Option<(u8, IntegerResult)> {
        let [a, b] = [self.source, self.base].map(SourceOperand::Register);
        let result = match self.op {
            Op::AddImmediate => IntegerResult::Sum(b, SourceOperand::Constant(self.immediate as u64)),
            Op::Add => IntegerResult::Sum(a, b),
            Op::Subtract => IntegerResult::Difference(a, b),
            Op::Call | Op::CallRegister => IntegerResult::Relative(self.behind as i64),
            _ => return None,
        };
        Some((self.source, result))
    }

    fn transfer(self) -> Option<ControlTransfer> {
        let (kind, target) = match self.op {
            Op::BranchNotZero => (TransferKind::Jump, TransferTarget::Relative(self.immediate)),
            Op::Call => (TransferKind::Call, TransferTarget::Relative(self.immediate)),
            Op::CallRegister => (TransferKind::Call, TransferTarget::Register(self.base)),
            Op::Return => (TransferKind::Return, TransferTarget::Register(self.base)),
            _ => return None,
        };
        let link = Some(self.source).filter(|&register| kind == TransferKind::Call && register != Toy::ZERO);
        Some(ControlTransfer { kind, is_conditional: self.op == Op::BranchNotZero, target, link })
    }

    fn prediction(self) -> ValuePrediction {
        let (a, b) = (self.source, self.base);
        match self.op {
            Op::AddImmediate => {
                let constant = SourceOperand::Constant(self.immediate as u64);
                ValuePrediction::Operation(|b, constant, _| b.wrapping_add(constant), b, constant, Toy::ZERO)
            }
            Op::Add => ValuePrediction::Operation(
                |a, b, _| a.wrapping_add(b),
                a,
                SourceOperand::Register(b),
                Toy::ZERO,
            ),
            Op::Subtract => ValuePrediction::Operation(
                |a, b, _| a.wrapping_sub(b),
                a,
                SourceOperand::Register(b),
                Toy::ZERO,
            ),
            Op::Load => ValuePrediction::Memory,
            Op::Store | Op::BranchNotZero => ValuePrediction::Register(Register::Integer(a)),
            _ => ValuePrediction::History,
        }
    }
}
