//! The registers that an instruction reads and writes.

use isa::{InstructionFormat, InstructionSet, Op};

use super::RegisterSet;
use crate::program::{BranchTarget, CodeBlockId, GP, LiftedInstruction, Program, RA, Reference, SP};
use crate::unwind::{FrameAddress, UnwindRule};

/// The effects of an instruction on registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The registers that it may read.
    pub reads: RegisterSet,
    /// The registers that it certainly writes, or whose contents nothing depends on after it.
    pub kills: RegisterSet,
    /// The registers that it may write.
    pub writes: RegisterSet,
}

/// Routines that divide are called by this register, and change only it, `$27`, the result, and `$28`.
const DIVIDE_LINK: u8 = 23;

/// The effects of an instruction. Those of a call are what the called procedure may do. What unwinders read at an instruction is
/// read by it: an exception, a signal or a call of `backtrace` may make them look at any frame.
pub fn effects(program: &Program, instruction: &LiftedInstruction) -> Effects {
    let own = executed(program, instruction);
    Effects { reads: own.reads | unwound(program, instruction), ..own }
}

/// The registers from which unwinders compute where the caller's frame and registers are, except the stack pointer: who
/// changes its adjustments changes the rows, too.
pub fn unwound(program: &Program, instruction: &LiftedInstruction) -> RegisterSet {
    let Some(row) = program.frames.rows.get(instruction.frame as usize) else { return RegisterSet::NONE };
    let column = |number: u16| match number {
        0..=30 => RegisterSet::integer(number as u8),
        32..=62 => RegisterSet::floats(number as u8 - 32, number as u8 - 32),
        _ => RegisterSet::NONE,
    };
    let frame = match row.frame_address {
        FrameAddress::Register(register, _) => column(register),
        FrameAddress::Expression(_) => RegisterSet::ALL,
    };
    let rules = row.registers.iter().map(|(_, rule)| match rule {
        UnwindRule::Register(other) => column(*other),
        UnwindRule::Expression(_) | UnwindRule::ValueExpression(_) => RegisterSet::ALL,
        UnwindRule::Undefined | UnwindRule::Offset(_) | UnwindRule::ValueOffset(_) => RegisterSet::NONE,
    });
    rules.fold(frame, |set, one| set | one) - RegisterSet::integer(SP)
}

/// The effects of executing an instruction.
fn executed(program: &Program, instruction: &LiftedInstruction) -> Effects {
    let Some(one) = isa::decode(instruction.word) else {
        return Effects { reads: RegisterSet::ALL, kills: RegisterSet::NONE, writes: RegisterSet::ALL };
    };
    if one.op.format() == InstructionFormat::Pal {
        return Effects { reads: RegisterSet::ALL, kills: RegisterSet::NONE, writes: RegisterSet::CLOBBERED };
    }
    if instruction.is_call() {
        return call(program, instruction, one);
    }
    let Some(summary) = isa::Alpha.summary(instruction.word) else { return Effects::default() };
    let set = |registers: &[Option<isa::Register>]| {
        registers.iter().flatten().fold(RegisterSet::NONE, |set, &register| set | register.into())
    };
    let writes = set(&summary.written);
    Effects { reads: set(&summary.read), kills: writes, writes }
}

fn call(program: &Program, instruction: &LiftedInstruction, one: isa::Instruction) -> Effects {
    let link = RegisterSet::integer(one.ra());
    let through = if one.op.format() == InstructionFormat::MemoryJump {
        RegisterSet::integer(one.rb())
    } else {
        RegisterSet::NONE
    };
    if one.op == Op::Br {
        return Effects { reads: RegisterSet::NONE, kills: link, writes: link };
    }
    if one.ra() == DIVIDE_LINK {
        let changed = link | RegisterSet::integers(27, 28);
        let reads = RegisterSet::integers(24, 25) | RegisterSet::integer(27) | RegisterSet::integer(30);
        return Effects { reads: reads | through, kills: link, writes: changed };
    }
    // Into the middle of a procedure, by inlined code: anything may be needed there.
    if let Reference::Branch(BranchTarget::Block(target)) = instruction.reference
        && !is_entry(program, target)
    {
        return Effects {
            reads: RegisterSet::ALL - link,
            kills: link,
            writes: RegisterSet::CLOBBERED | link,
        };
    }
    let results = RegisterSet::integer(0) | RegisterSet::floats(0, 0);
    let (reads, kills) = match is_local(program, instruction) || one.ra() != RA {
        // The compiler may know what the procedure leaves as it is (-fipa-ra).
        true => (RegisterSet::ENTRY, link | results),
        // Others compute the global pointer for themselves.
        false => (RegisterSet::ENTRY - RegisterSet::integer(GP), RegisterSet::CLOBBERED),
    };
    Effects { reads: reads | through, kills, writes: RegisterSet::CLOBBERED | link }
}

/// Whether a call may be to a procedure of the program that the compiler knew.
fn is_local(program: &Program, call: &LiftedInstruction) -> bool {
    match call.reference {
        Reference::Branch(target) => matches!(target, BranchTarget::Block(_)),
        Reference::CallThrough(slot) => program.data.binary_search_by_key(&slot, |one| one.address).is_ok(),
        _ => false,
    }
}

fn is_entry(program: &Program, block: CodeBlockId) -> bool {
    let procedure = program.blocks[block as usize].procedure;
    program.procedures[procedure as usize].blocks.first() == Some(&block)
        || program.second_entry(procedure) == Some(block)
}
