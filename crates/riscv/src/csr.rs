//! The control and status registers of user mode.

use isa::RiscvOp;

use crate::cpu::{RiscvCpu, RiscvException};
use crate::decoded_instruction::RiscvDecodedInstruction;

const FFLAGS: i64 = 1;
const FRM: i64 = 2;
const FCSR: i64 = 3;
const CYCLE: i64 = 0xc00;
const TIME: i64 = 0xc01;
const INSTRET: i64 = 0xc02;

/// Reads a register and, unless the instruction only reads, writes it. The counters of cycles, time and instructions are one
/// number: that of the executed instructions, so that a program's run repeats.
pub(crate) fn execute(step: &RiscvDecodedInstruction, cpu: &mut RiscvCpu) -> Result<(), RiscvException> {
    use RiscvOp::*;
    let source = match step.op {
        Csrrw | Csrrs | Csrrc => cpu.x[usize::from(step.rs1)],
        _ => u64::from(step.rs1),
    };
    let (shift, mask) = match step.immediate {
        FFLAGS => (0, 0x1f),
        FRM => (5, 7),
        FCSR => (0, 0xff),
        CYCLE | TIME | INSTRET => (0, 0),
        _ => return Err(RiscvException::IllegalInstruction),
    };
    let old = if mask == 0 { cpu.instructions } else { cpu.fcsr >> shift & mask };
    let new = match step.op {
        Csrrw | Csrrwi => Some(source),
        // Source register 0, or the constant 0, does not write.
        _ if step.rs1 == 0 => None,
        Csrrs | Csrrsi => Some(old | source),
        _ => Some(old & !source),
    };
    if let Some(new) = new {
        if mask == 0 {
            return Err(RiscvException::IllegalInstruction);
        }
        cpu.fcsr = cpu.fcsr & !(mask << shift) | (new & mask) << shift;
    }
    cpu.x[usize::from(step.rd)] = old;
    Ok(())
}
