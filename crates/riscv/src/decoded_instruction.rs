//! Decoded instructions, as the interpreter and the compiler take them.

use guest::InstructionProperties;
use isa::{CACHE_BLOCK, RiscvInstruction, RiscvOp, RiscvOperands};

use crate::cpu::{RiscvCpu, register, register::SINK};

/// A decoded instruction, its operands brought into one form.
#[derive(Clone, Copy, Debug)]
pub struct RiscvDecodedInstruction {
    /// Which instruction.
    pub op: RiscvOp,
    /// Destination: an integer register from 1 to 31, or [`SINK`]; or a floating-point register.
    pub rd: u8,
    /// First source, or base.
    pub rs1: u8,
    /// Second source; 0 where a constant stands instead.
    pub rs2: u8,
    /// Third source.
    pub rs3: u8,
    /// Rounding mode; 7 for the dynamic one.
    pub rounding: u8,
    /// The constant, added to register `rs2`, or to `rs1` if it is a base. A transfer of control: its target. `auipc`: its result.
    /// An access to a control register: its number.
    pub immediate: i64,
}

impl RiscvDecodedInstruction {
    /// Brings the operands of an instruction, which is at an address, into this form.
    pub fn new(instruction: RiscvInstruction, address: u64) -> RiscvDecodedInstruction {
        use RiscvOperands::*;
        let RiscvInstruction { op, rd, rs1, rs2, rs3, immediate, .. } = instruction;
        let immediate = i64::from(immediate);
        let immediate = match op.operands() {
            Branch | RdTarget => address.wrapping_add_signed(immediate) as i64,
            RdUpper if op == RiscvOp::Auipc => address.wrapping_add_signed(immediate) as i64,
            _ => immediate,
        };
        let rd = if rd == 0 && !op.has_float_result() { SINK as u8 } else { rd };
        RiscvDecodedInstruction { op, rd, rs1, rs2, rs3, rounding: instruction.rounding(), immediate }
    }

    /// Whether it puts a return address into a link register, ra or t0.
    pub fn is_call(&self) -> bool {
        matches!(self.op, RiscvOp::Jal | RiscvOp::Jalr) && is_link(self.rd)
    }

    /// Whether it jumps to the address in a link register, and puts none into one.
    pub fn is_return(&self) -> bool {
        self.op == RiscvOp::Jalr && is_link(self.rs1) && !is_link(self.rd)
    }
}

/// Whether jumps by a register are calls and returns.
fn is_link(register: u8) -> bool {
    matches!(usize::from(register), register::RA | register::T0)
}

impl InstructionProperties<RiscvCpu> for RiscvDecodedInstruction {
    fn ends_block(&self) -> bool {
        use RiscvOp::*;
        let is_transfer = matches!(
            self.op.operands(),
            RiscvOperands::Branch | RiscvOperands::RdTarget | RiscvOperands::RdRs1Jump
        );
        is_transfer || matches!(self.op, Ecall | Ebreak | FenceI)
    }

    fn is_indirect_jump(&self) -> bool {
        self.op == RiscvOp::Jalr && !self.is_return()
    }

    #[inline(always)]
    fn is_access(&self) -> bool {
        self.op.access_size().is_some()
    }

    fn access_size(&self) -> Option<u8> {
        self.op.access_size()
    }

    #[inline(always)]
    fn is_store(&self) -> bool {
        self.op.is_store()
    }

    #[inline(always)]
    fn address(&self, cpu: &RiscvCpu) -> u64 {
        let sum = cpu.x[usize::from(self.rs1)].wrapping_add(self.immediate as u64);
        if self.op == RiscvOp::CboZero { sum & !(u64::from(CACHE_BLOCK) - 1) } else { sum }
    }
}
