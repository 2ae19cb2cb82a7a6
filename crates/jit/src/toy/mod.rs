//! A guest of ten instructions, of two and of four bytes: what a second instruction set needs, and nothing else. It
//! proves that the interpreter, the compiler, counts, records and traces take any guest.
//!
//! A word has its opcode in bits 0 to 7, registers in bits 8 to 11 and 12 to 15, and an immediate in bits 16 to 31.
//! Instructions whose opcode does not end in two ones are two bytes long, and have no immediate.

use std::mem::offset_of;

use events::record::Register as Named;
use guest::{Break, DecodedBlock, Guest, HostSide, InstructionProperties};
use guest_memory::{Fault, Memory};
use isa::InstructionSet;

use crate::emit::{self, Emit};
use crate::host::assembler::*;
use crate::target::{Exits, GuestAccess, Target};

mod analysis_tests;
mod instruction_set;
mod interface_tests;
mod pipeline_tests;
mod tests;
mod trace_tests;

type Emitter<'a> = emit::Emitter<'a, Toy>;

/// Registers 0 to 7: 0 is zero, 1 by convention the return address.
const REGISTERS: usize = 8;

/// The state of the toy's processor.
#[derive(Clone, Debug, Default)]
#[repr(C)]
struct Toy {
    /// The last takes what is bound for register 0.
    registers: [u64; REGISTERS + 1],
    host: HostSide,
    pc: u64,
    instructions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Op {
    /// a = b + immediate
    AddImmediate = 0x03,
    /// a = memory at b + immediate
    Load = 0x07,
    /// memory at b + immediate = a
    Store = 0x0b,
    /// goes to pc + immediate if a is not zero
    BranchNotZero = 0x0f,
    /// calls pc + immediate; a gets where it returns to
    Call = 0x13,
    /// a system call
    SystemCall = 0x17,
    /// a = a + b
    Add = 0x00,
    /// a = a - b
    Subtract = 0x04,
    /// calls what b points to; a gets where it returns to
    CallRegister = 0x08,
    /// returns to where b points
    Return = 0x0c,
}

const OPS: [Op; 10] = {
    use Op::*;
    [AddImmediate, Load, Store, BranchNotZero, Call, SystemCall, Add, Subtract, CallRegister, Return]
};

#[derive(Clone, Copy, Debug)]
struct ToyInstruction {
    op: Op,
    /// A register that is read, or stored.
    source: u8,
    /// Another one, or a base.
    base: u8,
    /// The register of the result, [`Toy::SINK`] for none.
    result: u8,
    /// Or the address of a transfer.
    immediate: i64,
    /// Where the next instruction is.
    behind: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ToyException {
    Memory(Fault),
    Illegal,
}

impl From<Fault> for ToyException {
    fn from(fault: Fault) -> ToyException {
        ToyException::Memory(fault)
    }
}

impl Guest for Toy {
    type Model = ();
    type GuestInstruction = ToyInstruction;
    type Exception = ToyException;

    const INSTRUCTION_SET: &'static dyn InstructionSet = &instruction_set::ToySet;
    const ILLEGAL_INSTRUCTION: ToyException = ToyException::Illegal;

    fn is_completed(_: ToyException) -> bool {
        false
    }

    fn fetch(memory: &Memory, address: u64) -> Result<u32, Fault> {
        let low = memory.load::<2>(address)? as u32;
        if Toy::length(low) == 2 { Ok(low) } else { Ok(low | (memory.load::<2>(address + 2)? as u32) << 16) }
    }

    fn decode(word: u32, address: u64, (): ()) -> Option<ToyInstruction> {
        let op = OPS.into_iter().find(|&op| op as u32 == word & 0xff)?;
        let [source, base] = [8, 12].map(|shift| (word >> shift) as u8 % REGISTERS as u8);
        let immediate = i64::from((word >> 16) as i16);
        let has_result = !matches!(op, Op::Store | Op::BranchNotZero | Op::SystemCall | Op::Return);
        let result = if has_result && source != Toy::ZERO { source } else { Toy::SINK };
        let immediate = match op {
            Op::BranchNotZero | Op::Call => address.wrapping_add(immediate as u64) as i64,
            _ => immediate,
        };
        Some(ToyInstruction { op, source, base, result, immediate, behind: address + Toy::length(word) })
    }

    #[inline(always)]
    fn execute(&mut self, step: &ToyInstruction, memory: &Memory) -> Result<(), Break<ToyException>> {
        let [source, base] = [step.source, step.base].map(|number| self.registers[usize::from(number)]);
        let address = base.wrapping_add(step.immediate as u64);
        let result = &mut self.registers[usize::from(step.result)];
        match step.op {
            Op::AddImmediate => *result = address,
            Op::Load => *result = memory.load::<8>(address)?,
            Op::Store => memory.store::<8>(address, source)?,
            Op::BranchNotZero if source == 0 => {}
            Op::BranchNotZero => self.pc = step.immediate as u64,
            Op::Call => (*result, self.pc) = (step.behind, step.immediate as u64),
            Op::SystemCall => return Err(Break::SystemCall),
            Op::Add => *result = source.wrapping_add(base),
            Op::Subtract => *result = source.wrapping_sub(base),
            Op::CallRegister => (*result, self.pc) = (step.behind, base),
            Op::Return => self.pc = base,
        }
        Ok(())
    }

    fn pc(&self) -> u64 {
        self.pc
    }

    fn set_pc(&mut self, address: u64) {
        self.pc = address;
    }

    fn instructions(&mut self) -> &mut u64 {
        &mut self.instructions
    }

    fn executed(&self) -> u64 {
        self.instructions
    }

    fn unaligned(&self) -> u64 {
        0
    }

    fn set_model(&mut self, (): ()) {}

    fn value(&self, register: Named) -> u64 {
        match register {
            Named::Integer(number) => self.registers[usize::from(number)],
            Named::Float(_) => unreachable!("the toy has none"),
        }
    }

    fn host(&mut self) -> &mut HostSide {
        &mut self.host
    }

    fn host_side(&self) -> &HostSide {
        &self.host
    }
}

impl InstructionProperties<Toy> for ToyInstruction {
    fn ends_block(&self) -> bool {
        matches!(self.op, Op::BranchNotZero | Op::Call | Op::SystemCall | Op::CallRegister | Op::Return)
    }

    fn is_indirect_jump(&self) -> bool {
        self.op == Op::CallRegister
    }

    fn is_access(&self) -> bool {
        matches!(self.op, Op::Load | Op::Store)
    }

    fn access_size(&self) -> Option<u8> {
        self.is_access().then_some(8)
    }

    fn is_store(&self) -> bool {
        self.op == Op::Store
    }

    fn address(&self, toy: &Toy) -> u64 {
        toy.registers[usize::from(self.base)].wrapping_add(self.immediate as u64)
    }
}

impl Target for Toy {
    const HELD: &'static [(u8, HostRegister)] = &[(1, RBX), (2, RSI), (3, R13), (4, R14)];
    const ZERO: u8 = 0;
    const SINK: u8 = REGISTERS as u8;
    const INTEGERS: usize = offset_of!(Toy, registers);
    const HOST: usize = offset_of!(Toy, host);
    const INSTRUCTIONS: usize = offset_of!(Toy, instructions);
    const ADDRESS_MASK: i32 = !1;

    fn integers(&mut self) -> &mut [u64] {
        &mut self.registers[..REGISTERS]
    }

    fn exits(block: &DecodedBlock<Toy>) -> Exits {
        let Some(last) = block.instructions.last() else { return Exits { to: Vec::new(), is_open: false } };
        let to = match last.op {
            Op::BranchNotZero => vec![block.end(), last.immediate as u64],
            Op::Return => Vec::new(),
            _ => vec![block.end()],
        };
        Exits { to, is_open: matches!(last.op, Op::Call | Op::CallRegister | Op::SystemCall) }
    }

    fn access(step: &ToyInstruction) -> Option<GuestAccess> {
        step.is_access().then_some(GuestAccess {
            base: step.base,
            displacement: step.immediate as i32,
            size: 8,
            is_store: step.is_store(),
            is_rounded: false,
        })
    }

    fn checked_base(step: &ToyInstruction) -> Option<u8> {
        (step.is_access() && step.base != Toy::ZERO).then_some(step.base)
    }

    fn changed(step: &ToyInstruction) -> Option<u8> {
        (step.result != Toy::SINK).then_some(step.result)
    }
}

impl Emit for Toy {
    type OutOfLine = std::convert::Infallible;

    fn emit(emitter: &mut Emitter, block: &DecodedBlock<Toy>, at: usize) -> Option<usize> {
        let step = &block.instructions[at];
        match step.op {
            Op::AddImmediate => {
                let base = emitter.read(OperandSize::Quad, step.base, RAX);
                emitter.assembler.address(
                    OperandSize::Quad,
                    RAX,
                    MemoryOperand { base, displacement: step.immediate as i32 },
                );
                emitter.write(step.result, RAX);
            }
            Op::Add | Op::Subtract => {
                let operation = if step.op == Op::Add { Alu::Add } else { Alu::Sub };
                emitter.read_into(OperandSize::Quad, step.source, RAX);
                let other = emitter.read(OperandSize::Quad, step.base, RCX);
                emitter.assembler.alu(operation, OperandSize::Quad, RAX, other);
                emitter.write(step.result, RAX);
            }
            Op::Load | Op::Store => match Toy::access(step).filter(|access| access.base != Toy::ZERO) {
                Some(access) => emitter.load_or_store(step, access, at),
                None => emitter.by_interpreter(step, at),
            },
            _ => {
                emitter.transfer(step, block);
                return None;
            }
        }
        Some(1)
    }

    fn emit_out_of_line(_: &mut Emitter, never: std::convert::Infallible) {
        match never {}
    }

    fn execute_or_undo(&mut self, step: &ToyInstruction, memory: &Memory) -> bool {
        self.execute(step, memory).is_ok()
    }
}

impl Emitter<'_> {
    fn load_or_store(&mut self, step: &ToyInstruction, access: GuestAccess, at: usize) {
        let operand = self.memory_operand(access, at);
        if access.is_store {
            let value = self.read(OperandSize::Quad, step.source, RCX);
            self.may_fault(self.index, at, self.unextended);
            self.assembler.store(OperandSize::Quad, operand, value);
        } else {
            self.may_fault(self.index, at, self.unextended);
            self.assembler.load(OperandSize::Quad, RAX, operand);
            self.write(step.result, RAX);
        }
    }

    fn transfer(&mut self, step: &ToyInstruction, block: &DecodedBlock<Toy>) {
        if step.op != Op::SystemCall {
            self.end_record(block);
        }
        match step.op {
            Op::BranchNotZero => {
                self.test(step.source);
                self.branch(Condition::NotEqual, step.immediate as u64, block.end());
            }
            Op::Call => self.call(step.immediate as u64, step.result, block.end()),
            Op::CallRegister => self.call_register(step.base.into(), step.result, block),
            Op::Return => self.return_to(step.base.into(), Toy::SINK, block.end()),
            Op::SystemCall => self.system_call(block),
            _ => unreachable!("{step:?} does not end a block"),
        }
    }
}
