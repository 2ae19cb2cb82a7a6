//! Floating-point operations.

use crate::cpu::{RiscvCpu, RiscvException};
use crate::decoded_instruction::RiscvDecodedInstruction;

/// Executes a floating-point operation.
pub(crate) fn execute(_step: &RiscvDecodedInstruction, _cpu: &mut RiscvCpu) -> Result<(), RiscvException> {
    Err(RiscvException::IllegalInstruction)
}
