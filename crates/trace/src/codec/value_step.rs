//! The instructions of a block as the value predictor executes them.

use isa::{InstructionSet, LoadExtension, Operation, Register, SourceOperand, ValuePrediction};

/// Number of slots for values: first the integer registers, then the floating-point ones, then one for the results
/// that no register gets; the others are unused, so that any seven bits are a slot.
pub(super) const SLOTS: usize = 128;
pub(super) const FLOAT: u8 = 32;
const NOWHERE: u8 = 64;

/// An instruction as the predictor executes it: its [`ValueModel`](isa::ValueModel), in few bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueStep {
    pub predictor: PredictionSource,
    pub operation: Operation,
    pub constant: u64,
    /// The slots of the operation's operands, or of the register that is predicted to have the value.
    pub operands: [u8; 3],
    /// Whether the operation's second operand is the constant.
    pub has_constant: bool,
    /// The slot that gets the value, and what it gets instead.
    pub destination: u8,
    pub success: Option<u8>,
    pub memory: Option<LoadExtension>,
    pub length: u8,
    pub has_access: bool,
    pub has_value: bool,
}

/// The source of a prediction of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PredictionSource {
    History,
    Register,
    Memory,
    Operation,
}

impl ValueStep {
    /// The instruction with this word.
    pub fn new(set: &dyn InstructionSet, word: u32) -> ValueStep {
        let summary = set.summary(word).unwrap_or_default();
        let model = summary.value_model;
        let mut step = ValueStep {
            predictor: PredictionSource::History,
            operation: |_, _, _| 0,
            constant: 0,
            operands: [NOWHERE; 3],
            has_constant: false,
            destination: match model.destination {
                Some(register) if register != Register::Integer(set.zero_register()) => slot(register),
                _ => NOWHERE,
            },
            success: model.success,
            memory: model.memory,
            length: set.length(word) as u8,
            has_access: summary.access.is_some(),
            has_value: summary.value.is_some(),
        };
        match model.prediction {
            ValuePrediction::History => {}
            ValuePrediction::Register(register) => {
                (step.predictor, step.operands[0]) = (PredictionSource::Register, slot(register));
            }
            ValuePrediction::Memory => step.predictor = PredictionSource::Memory,
            ValuePrediction::Operation(operation, first, second, old) => {
                (step.predictor, step.operation) = (PredictionSource::Operation, operation);
                step.operands = [first, first, old];
                match second {
                    SourceOperand::Register(register) => step.operands[1] = register,
                    SourceOperand::Constant(constant) => {
                        (step.has_constant, step.constant) = (true, constant)
                    }
                }
            }
        }
        step
    }
}

fn slot(register: Register) -> u8 {
    match register {
        Register::Integer(number) => number,
        Register::Float(number) => FLOAT + number,
    }
}
