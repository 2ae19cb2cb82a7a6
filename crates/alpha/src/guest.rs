//! Alpha, as the engine takes an instruction set.

use events::record::Register;
use guest::{Break, CallingConvention, Guest, HostSide};
use guest_memory::Memory;
use isa::{InstructionSet, Op};

use crate::cpu::{Cpu, Exception, register};
use crate::decoded_instruction::DecodedInstruction;
use crate::semantics;

impl Guest for Cpu {
    type Model = isa::CpuModel;
    type GuestInstruction = DecodedInstruction;
    type Exception = Exception;

    const INSTRUCTION_SET: &'static dyn InstructionSet = &isa::Alpha;
    const ILLEGAL_INSTRUCTION: Exception = Exception::IllegalInstruction;

    fn is_completed(exception: Exception) -> bool {
        use Exception::*;
        match exception {
            Memory(_) | Unaligned(_) | IllegalInstruction => false,
            Arithmetic { .. } | Breakpoint | Bugcheck | Gentrap => true,
        }
    }

    fn decode(word: u32, address: u64, model: isa::CpuModel) -> Option<DecodedInstruction> {
        let instruction = isa::decode(word).filter(|found| model.has(found.op.extension()))?;
        Some(DecodedInstruction::new(instruction, address))
    }

    #[inline(always)]
    fn execute(&mut self, instruction: &DecodedInstruction, memory: &Memory) -> Result<(), Break<Exception>> {
        semantics::execute(instruction, self, memory, self.model)
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

    fn set_model(&mut self, model: isa::CpuModel) {
        self.model = model;
    }

    #[inline(always)]
    fn value(&self, register: Register) -> u64 {
        match register {
            Register::Integer(number) => self.r[usize::from(number)],
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

impl CallingConvention for Cpu {
    const STACK_POINTER: u8 = register::SP as u8;
    const FRAME_POINTER: u8 = register::FP as u8;
    const RETURN_ADDRESS: u8 = register::RA as u8;

    /// `ldah gp` and `lda gp`.
    fn has_second_entry(first: u32, second: u32) -> bool {
        let is = |word, op, base| {
            isa::decode(word)
                .is_some_and(|i| (i.op, usize::from(i.ra()), usize::from(i.rb())) == (op, register::GP, base))
        };
        is(first, Op::Ldah, register::PV) && is(second, Op::Lda, register::GP)
    }

    #[inline(always)]
    fn stack_pointer(&self) -> u64 {
        self.r[register::SP]
    }

    fn return_address(&self) -> u64 {
        self.r[register::RA] & !3
    }

    fn argument(&self, number: usize) -> u64 {
        self.r[register::A0 + number]
    }

    fn result(&self) -> u64 {
        self.r[register::V0]
    }

    fn jump_target(&self, word: u32) -> Option<u64> {
        isa::decode(word).map(|jump| self.r[usize::from(jump.rb())] & !3)
    }
}
