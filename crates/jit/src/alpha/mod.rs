//! Alpha as a target of the compiler: its registers, control flow and accesses; in the files below, the translation of
//! each instruction.

use std::mem::offset_of;

use alpha::cpu::{Cpu, register};
use alpha::pal;
use alpha::{DecodedBlock, DecodedInstruction};
use guest_memory::Memory;
use isa::{Flags, Op};

use crate::emit::{self, Emit, OperateOperand, OperateOperands, OutOfLine};
use crate::host::assembler::*;
use crate::host::code::Label;
use crate::registers::field;
use crate::target::{Exits, GuestAccess, Target};

mod bytes;
mod control;
mod floats;
mod memory;
mod operate;

type Emitter<'a> = emit::Emitter<'a, Cpu>;

impl Target for Cpu {
    const HELD: &'static [(u8, HostRegister)] = &[
        (1, RBX),
        (2, RSI),
        (3, RDI),
        (4, R8),
        (5, R11),
        (9, R9),
        (10, R12),
        (11, R14),
        (12, R13),
        (16, RDX),
        (29, R10),
        (30, RBP),
    ];
    const ZERO: u8 = register::ZERO as u8;
    const SINK: u8 = register::SINK as u8;
    const INTEGERS: usize = offset_of!(Cpu, r);
    const HOST: usize = offset_of!(Cpu, host);
    const INSTRUCTIONS: usize = offset_of!(Cpu, instructions);
    const ADDRESS_MASK: i32 = !3;

    fn integers(&mut self) -> &mut [u64] {
        &mut self.r[..register::ZERO]
    }

    fn exits(block: &DecodedBlock) -> Exits {
        let Some(last) = block.instructions.last() else { return Exits { to: Vec::new(), is_open: false } };
        let is_system_call = last.op == Op::CallPal && last.immediate == pal::CALLSYS;
        let target = last.immediate as u64;
        let to = match last.op {
            Op::Br => vec![target],
            Op::Ret | Op::JsrCoroutine => Vec::new(),
            Op::CallPal if !is_system_call && !matches!(last.immediate, pal::RDUNIQ | pal::WRUNIQ) => {
                Vec::new()
            }
            Op::Jmp => block.jump_targets.clone(),
            op if op.is(Flags::CONDITIONAL) => vec![block.end(), target],
            _ => vec![block.end()],
        };
        Exits { to, is_open: is_system_call || matches!(last.op, Op::Bsr | Op::Jsr | Op::Jmp) }
    }

    fn access(step: &DecodedInstruction) -> Option<GuestAccess> {
        Some(GuestAccess {
            base: step.b,
            displacement: step.immediate as i32,
            size: step.op.access_size()?,
            is_store: step.op.is(Flags::STORE),
            is_rounded: step.op.is_rounded(),
        })
    }

    fn checked_base(step: &DecodedInstruction) -> Option<u8> {
        use Op::*;
        let is_compiled = matches!(
            step.op,
            Ldbu | Ldwu | Ldl | Ldq | LdqU | Lds | Ldt | Stb | Stw | Stl | Stq | StqU | Stt
        );
        // At a fixed address below 32 KB there is nothing.
        (is_compiled && step.b != Cpu::ZERO).then_some(step.b)
    }

    fn changed(step: &DecodedInstruction) -> Option<u8> {
        match step.op {
            Op::CallPal if step.immediate == pal::RDUNIQ => Some(register::V0 as u8),
            // That of a floating-point result counts too.
            _ => Some(step.c).filter(|&register| register < Cpu::ZERO),
        }
    }
}

/// An operation whose result may be inexact, which is to be recorded.
pub struct Inexact {
    label: Label,
    step: DecodedInstruction,
    operation: Vector,
    back: Label,
    slow_path: Label,
}

impl Emit for Cpu {
    type OutOfLine = Inexact;

    fn emit(emitter: &mut Emitter, block: &DecodedBlock, at: usize) -> Option<usize> {
        let step = &block.instructions[at];
        if emitter.compare_and_branch(block, at) || emitter.transfer(step, at, block) {
            return None;
        }
        if emitter.load_long_address(&block.instructions[at..]) {
            return Some(2);
        }
        if !emitter.access(step, at) && !emitter.operate(step) && !emitter.float_operate(step, at) {
            emitter.by_interpreter(step, at);
        }
        Some(1)
    }

    fn emit_out_of_line(emitter: &mut Emitter, inexact: Inexact) {
        emitter.assembler.bind(inexact.label);
        emitter.compute_noted(&inexact.step, inexact.operation, inexact.back, inexact.slow_path);
    }

    fn execute_or_undo(&mut self, step: &DecodedInstruction, memory: &Memory) -> bool {
        let result = usize::from(step.c);
        let before = (self.r[result], self.f[result], self.lock, self.fpcr, self.ieee_control, self.pc);
        let is_done = alpha::semantics::execute(step, self, memory, self.model).is_ok();
        if !is_done {
            (self.r[result], self.f[result], self.lock, self.fpcr, self.ieee_control, self.pc) = before;
        }
        is_done
    }
}
