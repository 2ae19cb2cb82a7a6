//! The toy's instructions, as records, traces, models and analysis need them.

use isa::{
    ControlCalls, ControlTransfer, CpuModel, Group, InstructionClass, InstructionSet, InstructionSummary,
    IntegerResult, LoadExtension, MemoryAccess, PipelineSummary, Register, ReturnStackUse, SourceOperand,
    TransferKind, TransferTarget, ValueModel, ValuePrediction,
};

use super::{Guest, InstructionProperties, OPS, Op, REGISTERS, Target, Toy, ToyInstruction};

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
        Toy::decode(word, 0, ()).map(ToyInstruction::summary)
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

    /// No machine has it.
    fn elf_machine(&self) -> u16 {
        0xfffe
    }

    fn disassemble(&self, word: u32, address: u64) -> Option<String> {
        let ToyInstruction { op, source, base, immediate, .. } = Toy::decode(word, address, ())?;
        let operands = match op {
            Op::AddImmediate => format!("r{source},r{base},{immediate}"),
            Op::Load | Op::Store => format!("r{source},{immediate}(r{base})"),
            Op::BranchNotZero | Op::Call => format!("r{source},{immediate:#x}"),
            Op::SystemCall => return Some(op.mnemonic().into()),
            Op::Add | Op::Subtract => format!("r{source},r{base}"),
            Op::CallRegister => format!("r{source},(r{base})"),
            Op::Return => format!("(r{base})"),
        };
        Some(format!("{} {operands}", op.mnemonic()))
    }

    fn register_name(&self, register: Register) -> &'static str {
        const NAMES: [&str; REGISTERS] = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"];
        match register {
            Register::Integer(number) => NAMES[usize::from(number)],
            Register::Float(_) => unreachable!("the toy has none"),
        }
    }

    fn mnemonic(&self, word: u32) -> Option<&'static str> {
        Toy::decode(word, 0, ()).map(|instruction| instruction.op.mnemonic())
    }

    fn mnemonics(&self) -> Vec<(&'static str, Group)> {
        OPS.map(|op| (op.mnemonic(), op.group())).into()
    }

    fn is_implemented(&self, word: u32, _: CpuModel) -> bool {
        Toy::decode(word, 0, ()).is_some()
    }

    fn pipeline_summary(&self, word: u32) -> Option<PipelineSummary> {
        let instruction = Toy::decode(word, 0, ())?;
        let class = match instruction.op {
            Op::AddImmediate | Op::Add | Op::Subtract => InstructionClass::Add,
            Op::Load => InstructionClass::Load,
            Op::Store => InstructionClass::Store,
            Op::BranchNotZero => InstructionClass::Branch,
            Op::Call | Op::CallRegister | Op::Return => InstructionClass::Jump,
            Op::SystemCall => InstructionClass::CallPal,
        };
        let summary = instruction.summary();
        let special = matches!(instruction.op, Op::Store | Op::BranchNotZero).then_some(0);
        let [first, second, ..] = summary.read;
        Some(PipelineSummary { class, sources: [first, second], special, destination: summary.written[0] })
    }

    /// Those of Linux's generic table.
    fn control_calls(&self) -> ControlCalls {
        ControlCalls {
            execute: 221,
            signal_returns: &[139],
            creates_thread: 220,
            may_wait: &[98, 260],
            futex: 98,
        }
    }

    fn second_entry(&self) -> u64 {
        0
    }
}

impl Op {
    fn mnemonic(self) -> &'static str {
        match self {
            Op::AddImmediate => "addi",
            Op::Load => "ld",
            Op::Store => "st",
            Op::BranchNotZero => "bnz",
            Op::Call => "call",
            Op::SystemCall => "sys",
            Op::Add => "add",
            Op::Subtract => "sub",
            Op::CallRegister => "callr",
            Op::Return => "ret",
        }
    }

    fn group(self) -> Group {
        match self {
            Op::AddImmediate | Op::Add | Op::Subtract => Group::IntegerArithmetic,
            Op::Load => Group::IntegerLoad,
            Op::Store => Group::IntegerStore,
            Op::BranchNotZero | Op::Call | Op::CallRegister | Op::Return => Group::IntegerControl,
            Op::SystemCall => Group::Other,
        }
    }
}

/// Instructions that were decoded at address 0.
impl ToyInstruction {
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
            second_access: None,
            value,
            result: self.integer_result(),
            unknown: 0,
            transfer: self.transfer(),
            is_system_call: self.op == Op::SystemCall,
            enters_system: self.op == Op::SystemCall,
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
            is_locked: false,
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
        let register = TransferTarget::Register { base: self.base, displacement: 0 };
        let (kind, target) = match self.op {
            Op::BranchNotZero => (TransferKind::Jump, TransferTarget::Relative(self.immediate)),
            Op::Call => (TransferKind::Call, TransferTarget::Relative(self.immediate)),
            Op::CallRegister => (TransferKind::Call, register),
            Op::Return => (TransferKind::Return, register),
            _ => return None,
        };
        let link = Some(self.source).filter(|&register| kind == TransferKind::Call && register != Toy::ZERO);
        Some(ControlTransfer {
            kind,
            is_conditional: self.op == Op::BranchNotZero,
            target,
            link,
            hint: None,
            return_stack: ReturnStackUse {
                pops: kind == TransferKind::Return,
                pushes: kind == TransferKind::Call,
            },
        })
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
