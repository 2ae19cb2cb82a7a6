//! How blocks end, as predictors see it.

use isa::{InstructionSet, TransferTarget};

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockEnd {
    /// By falling through to the next instruction.
    Falls,
    /// With a conditional branch.
    Conditional { target: u64 },
    /// With an unconditional branch.
    Branch { target: u64, is_call: bool },
    /// With a jump to an address in a register.
    Jump { hinted: u64, is_call: bool },
    /// With a return.
    Return { is_call: bool },
}

impl BlockEnd {
    /// The end of a block whose last instruction, at `at`, is this word.
    pub fn of(set: &dyn InstructionSet, word: u32, at: u64) -> BlockEnd {
        let summary = set.summary(word);
        let Some(transfer) = summary.and_then(|summary| summary.transfer) else { return BlockEnd::Falls };
        let is_call = transfer.return_stack.pushes;
        match transfer.target {
            TransferTarget::Relative(distance) => {
                let target = at.wrapping_add_signed(distance);
                if transfer.is_conditional {
                    BlockEnd::Conditional { target }
                } else {
                    BlockEnd::Branch { target, is_call }
                }
            }
            TransferTarget::Register { .. } if transfer.return_stack.pops => BlockEnd::Return { is_call },
            TransferTarget::Register { .. } => {
                BlockEnd::Jump { hinted: at.wrapping_add_signed(transfer.hint.unwrap_or(0)), is_call }
            }
        }
    }

    /// Whether it pushes a return address.
    pub fn is_call(self) -> bool {
        use BlockEnd::{Branch, Jump, Return};
        matches!(self, Branch { is_call: true, .. } | Jump { is_call: true, .. } | Return { is_call: true })
    }
}
