//! RISC-V as a target of the compiler: its registers, control flow and accesses; in the files below, the translation of each
//! instruction. What is rare calls the interpreter.

use std::mem::offset_of;

use guest_memory::Memory;
use isa::{RiscvOp, RiscvOperands};
use riscv::{RiscvBlock, RiscvCpu, RiscvDecodedInstruction, register};

use crate::emit::{self, CodePointer, Emit, OperateOperand, OperateOperands};
use crate::host::assembler::*;
use crate::registers::field;
use crate::target::{Exits, GuestAccess, Target};

mod control;
mod floats;
mod memory;
mod operate;
#[cfg(test)]
mod tests;

type Emitter<'a> = emit::Emitter<'a, RiscvCpu>;

/// The bits of a number of bits to shift by, of double words and of words.
const SHIFT_BITS: i32 = 63;
const WORD_SHIFT_BITS: i32 = 31;

impl Target for RiscvCpu {
    /// The registers that compilers' code names most often; the last two are not held in code that counts or records.
    const HELD: &'static [(u8, HostRegister)] = &[
        (2, RBP),
        (8, RBX),
        (9, R12),
        (10, RDI),
        (11, RSI),
        (12, RDX),
        (13, R8),
        (14, R9),
        (15, R10),
        (17, R11),
        (16, R13),
        (6, R14),
    ];
    const ZERO: u8 = register::ZERO as u8;
    const SINK: u8 = register::SINK as u8;
    const INTEGERS: usize = offset_of!(RiscvCpu, x);
    const HOST: usize = offset_of!(RiscvCpu, host);
    const INSTRUCTIONS: usize = offset_of!(RiscvCpu, instructions);
    const ADDRESS_MASK: i32 = !1;

    fn integers(&mut self) -> &mut [u64] {
        &mut self.x[..register::SINK]
    }

    fn exits(block: &RiscvBlock) -> Exits {
        let Some(last) = block.instructions.last() else { return Exits { to: Vec::new(), is_open: false } };
        let direct = control::pair_target(&block.instructions);
        let target = last.immediate as u64;
        let to = match last.op {
            RiscvOp::Ebreak | RiscvOp::FenceI => Vec::new(),
            _ if last.is_call() => vec![block.end()],
            RiscvOp::Jal => vec![target],
            RiscvOp::Jalr if last.is_return() => Vec::new(),
            RiscvOp::Jalr => direct.map_or_else(|| block.jump_targets.clone(), |target| vec![target]),
            op if op.operands() == RiscvOperands::Branch => vec![block.end(), target],
            _ => vec![block.end()],
        };
        let is_open =
            last.is_call() || last.op == RiscvOp::Ecall || last.op == RiscvOp::Jalr && direct.is_none();
        Exits { to, is_open }
    }

    fn access(step: &RiscvDecodedInstruction) -> Option<GuestAccess> {
        Some(GuestAccess {
            base: step.rs1,
            displacement: step.immediate as i32,
            size: step.op.access_size()?,
            is_store: step.op.is_store(),
            is_rounded: false,
        })
    }

    fn checked_base(step: &RiscvDecodedInstruction) -> Option<u8> {
        use RiscvOp::*;
        let is_compiled = matches!(
            step.op,
            Lb | Lh | Lw | Ld | Lbu | Lhu | Lwu | Sb | Sh | Sw | Sd | Flw | Fld | Fsw | Fsd
        );
        // At a fixed address below 2 KiB there is nothing, nor above the address space.
        (is_compiled && step.rs1 != RiscvCpu::ZERO).then_some(step.rs1)
    }

    fn changed(step: &RiscvDecodedInstruction) -> Option<u8> {
        Some(step.rd).filter(|&register| register < RiscvCpu::SINK && !step.op.has_float_result())
    }
}

impl Emit for RiscvCpu {
    type OutOfLine = floats::FirstInexact;

    fn emit(emitter: &mut Emitter, block: &RiscvBlock, at: usize) -> Option<usize> {
        let step = &block.instructions[at];
        if emitter.pair(block, at) || emitter.transfer(step, at, block) {
            return None;
        }
        if !emitter.access(step, at) && !emitter.operate(step) && !emitter.float_operate(step, at) {
            emitter.by_interpreter(step, at);
        }
        Some(1)
    }

    fn emit_out_of_line(emitter: &mut Emitter, first: floats::FirstInexact) {
        emitter.compute_first(first);
    }

    fn execute_or_undo(&mut self, step: &RiscvDecodedInstruction, memory: &Memory) -> bool {
        let result = usize::from(step.rd);
        let float = step.op.has_float_result();
        let old = if float { self.f[result] } else { self.x[result] };
        let before = (self.reservation, self.fcsr, self.pc);
        let is_done = guest::Guest::execute(self, step, memory).is_ok();
        if !is_done {
            (self.reservation, self.fcsr, self.pc) = before;
            if float {
                self.f[result] = old;
            } else {
                self.x[result] = old;
            }
        }
        is_done
    }
}
