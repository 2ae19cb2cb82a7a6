//! RISC-V, as the engine takes an instruction set.

use events::record::Register;
use guest::{Break, CallingConvention, Guest, HostSide};
use guest_memory::{Fault, Memory};
use isa::{InstructionSet, RiscvExtensions, RiscvOp};

use crate::cpu::{RiscvCpu, RiscvException, register};
use crate::decoded_instruction::RiscvDecodedInstruction;
use crate::semantics;

/// The last address of a page at which an instruction of two bytes may be, if it is the last one of the page: pages are of
/// 4096 bytes at least.
const LAST_IN_PAGE: u64 = 0xffe;

impl Guest for RiscvCpu {
    type Model = RiscvExtensions;
    type GuestInstruction = RiscvDecodedInstruction;
    type Exception = RiscvException;

    const INSTRUCTION_SET: &'static dyn InstructionSet = &isa::Riscv;
    const ILLEGAL_INSTRUCTION: RiscvException = RiscvException::IllegalInstruction;

    fn is_completed(_exception: RiscvException) -> bool {
        false
    }

    /// At the end of a page, the next page is read only if the instruction continues there.
    #[inline(always)]
    fn fetch(memory: &Memory, address: u64) -> Result<u32, Fault> {
        if address & LAST_IN_PAGE != LAST_IN_PAGE {
            let word = memory.load::<4>(address)? as u32;
            return Ok(if isa::riscv_length(word) == 4 { word } else { word & 0xffff });
        }
        let low = memory.load::<2>(address)? as u32;
        if isa::riscv_length(low) == 2 {
            return Ok(low);
        }
        Ok(low | (memory.load::<2>(address + 2)? as u32) << 16)
    }

    fn length(word: u32) -> u64 {
        isa::riscv_length(word)
    }

    fn decode(word: u32, address: u64, model: RiscvExtensions) -> Option<RiscvDecodedInstruction> {
        // The compare-and-swap of 16 bytes is not implemented.
        let instruction =
            isa::decode_riscv(word).filter(|found| found.is_in(model) && found.op != RiscvOp::AmocasQ)?;
        Some(RiscvDecodedInstruction::new(instruction, address))
    }

    #[inline(always)]
    fn execute(
        &mut self,
        instruction: &RiscvDecodedInstruction,
        memory: &Memory,
    ) -> Result<(), Break<RiscvException>> {
        semantics::execute(instruction, self, memory)
    }

    #[inline(always)]
    fn pc(&self) -> u64 {
        self.pc
    }

    #[inline(always)]
    fn set_pc(&mut self, address: u64) {
        self.pc = address;
    }

    #[inline(always)]
    fn instructions(&mut self) -> &mut u64 {
        &mut self.instructions
    }

    #[inline(always)]
    fn executed(&self) -> u64 {
        self.instructions
    }

    fn unaligned(&self) -> u64 {
        self.unaligned
    }

    fn set_model(&mut self, model: RiscvExtensions) {
        self.extensions = model;
    }

    #[inline(always)]
    fn value(&self, register: Register) -> u64 {
        match register {
            Register::Integer(number) => self.x[usize::from(number)],
            Register::Float(number) => self.f[usize::from(number)],
        }
    }

    #[inline(always)]
    fn host(&mut self) -> &mut HostSide {
        &mut self.host
    }

    #[inline(always)]
    fn host_side(&self) -> &HostSide {
        &self.host
    }
}

impl CallingConvention for RiscvCpu {
    const STACK_POINTER: u8 = register::SP as u8;
    const FRAME_POINTER: u8 = register::S0 as u8;
    const RETURN_ADDRESS: u8 = register::RA as u8;

    fn has_second_entry(_first: u32, _second: u32) -> bool {
        false
    }

    #[inline(always)]
    fn stack_pointer(&self) -> u64 {
        self.x[register::SP]
    }

    fn return_address(&self) -> u64 {
        self.x[register::RA] & !1
    }

    fn argument(&self, number: usize) -> u64 {
        self.x[register::A0 + number]
    }

    fn result(&self) -> u64 {
        self.x[register::A0]
    }

    fn jump_target(&self, word: u32) -> Option<u64> {
        let jump = isa::decode_riscv(word)?;
        Some(self.x[usize::from(jump.rs1)].wrapping_add_signed(jump.immediate.into()) & !1)
    }
}
