//! Alpha, as the engine takes an instruction set.

use events::record::Register;
use guest::{Break, Guest, HostSide};
use isa::InstructionSet;
use memory::Memory;

use crate::cpu::{Cpu, Exception};
use crate::decoded_instruction::DecodedInstruction;
use crate::semantics;

impl Guest for Cpu {
    type Model = isa::Cpu;
    type Instruction = DecodedInstruction;
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

    fn decode(word: u32, address: u64, model: isa::Cpu) -> Option<DecodedInstruction> {
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
}
