//! Registers that inserted code may overwrite: those that hold nothing that is used later.
//!
//! The analysis is of single procedures, but for the registers that a procedure overwrites for its callers: compilers keep
//! values in scratch registers across calls of procedures that do not (`-fipa-ra`).

use isa::{Flags, InstructionSet, Op, Register};

use crate::program::{
    CodeBlock, CodeBlockId, CodeExit, GP, LiftedInstruction, PV, Procedure, ProcedureId, Program, RA,
    Reference, SP,
};

/// A set of integer registers, one bit each.
pub type Set = u32;

const ALL: Set = !0;
/// The registers that inserted code may use: those that no convention preserves, except the return address, which
/// unwinders need. The first ones are preferred.
pub const CANDIDATES: [u8; 21] = [28, 25, 24, 23, 22, 8, 7, 6, 5, 4, 3, 2, 1, 27, 21, 20, 19, 18, 17, 16, 0];
/// The registers that calls by the standard calling convention overwrite.
const SCRATCH: Set = 0x1fff_0000 | 0x1ff;
/// The argument registers of the standard calling convention: a0 to a5, the static chain and pv.
const ARGUMENTS: Set = 0x3f << 16 | 1 << 1 | 1 << PV | 1 << GP | 1 << SP;
/// The registers that a caller finds unchanged, and its result.
const AFTER_RETURN: Set = 1 | 0x7f << 9 | 1 << RA | 1 << GP | 1 << SP;

/// For each procedure the registers that it overwrites in the eyes of its callers.
#[derive(Clone, Debug)]
pub struct Overwritten(Vec<Set>);

impl Overwritten {
    /// Finds those of all procedures.
    pub fn new(program: &Program) -> Overwritten {
        let mut sets: Vec<Set> = program.procedures.iter().map(|one| own(program, one)).collect();
        let called: Vec<Vec<ProcedureId>> =
            program.procedures.iter().map(|one| called(program, one)).collect();
        let is_private: Vec<bool> =
            program.procedures.iter().map(|one| has_private_return(program, one)).collect();
        loop {
            let mut is_changed = false;
            for number in 0..sets.len() {
                let more = called[number].iter().fold(sets[number], |all, &one| all | sets[one as usize]);
                let more = if is_private[number] { 0 } else { more };
                is_changed |= std::mem::replace(&mut sets[number], more) != more;
            }
            if !is_changed {
                return Overwritten(sets);
            }
        }
    }
}

fn instructions<'a>(
    program: &'a Program,
    procedure: &'a Procedure,
) -> impl Iterator<Item = &'a LiftedInstruction> {
    procedure.blocks.iter().flat_map(|&block| &program.blocks[block as usize].instructions)
}

fn own(program: &Program, procedure: &Procedure) -> Set {
    let each = |one: &LiftedInstruction| match one.op() {
        Some(Op::Jsr) if is_unknown_call(program, one) => SCRATCH,
        _ => written(one) & SCRATCH,
    };
    instructions(program, procedure).map(each).fold(0, |all, one| all | one)
}

fn called(program: &Program, procedure: &Procedure) -> Vec<ProcedureId> {
    let calls = instructions(program, procedure).filter(|one| is_usual_call(one));
    let mut all: Vec<ProcedureId> = calls.filter_map(|one| callee(program, one)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether it returns otherwise than to the address in ra, as procedures with conventions of their own do. They restore
/// what they overwrite.
fn has_private_return(program: &Program, procedure: &Procedure) -> bool {
    instructions(program, procedure)
        .filter_map(|one| isa::decode(one.word))
        .any(|one| one.op.is(Flags::RETURN) && one.rb() != RA)
}

fn is_usual_call(call: &LiftedInstruction) -> bool {
    isa::decode(call.word).is_some_and(|one| matches!(one.op, Op::Jsr | Op::Bsr) && one.ra() == RA)
}

/// The procedure of this image that an instruction calls, if that is certain.
pub fn callee(program: &Program, call: &LiftedInstruction) -> Option<ProcedureId> {
    let block = match call.reference {
        Reference::Branch(target) => target.block()?,
        Reference::CallThrough(slot) => program.data_at(slot)?,
        _ => return None,
    };
    Some(program.blocks[block as usize].procedure)
}

/// Whether a call may go to code outside the image, which follows the standard calling convention only.
fn is_unknown_call(program: &Program, call: &LiftedInstruction) -> bool {
    is_usual_call(call) && callee(program, call).is_none()
}

fn set(registers: impl IntoIterator<Item = Option<Register>>) -> Set {
    registers.into_iter().flatten().fold(0, |all, one| match one {
        Register::Integer(number) => all | 1 << number,
        Register::Float(_) => all,
    })
}

fn written(instruction: &LiftedInstruction) -> Set {
    isa::Alpha.summary(instruction.word).map_or(0, |one| set(one.written))
}

/// The registers that are live where the blocks of a procedure begin.
#[derive(Clone, Debug)]
pub struct BlockLiveness {
    first: Vec<Set>,
    after_return: Set,
}

impl BlockLiveness {
    /// Analyses a procedure.
    pub fn new(
        program: &Program,
        overwritten: &Overwritten,
        procedure: ProcedureId,
        local: impl Fn(CodeBlockId) -> Option<usize>,
    ) -> BlockLiveness {
        let one = &program.procedures[procedure as usize];
        let own = overwritten.0[procedure as usize];
        let after_return = if has_private_return(program, one) { ALL } else { AFTER_RETURN | SCRATCH & !own };
        let mut liveness = BlockLiveness { first: vec![0; one.blocks.len()], after_return };
        loop {
            let mut is_changed = false;
            for at in (0..one.blocks.len()).rev() {
                let block = &program.blocks[one.blocks[at] as usize];
                let first = liveness.within(program, overwritten, block, &local)[0];
                is_changed |= std::mem::replace(&mut liveness.first[at], first) != first;
            }
            if !is_changed {
                return liveness;
            }
        }
    }

    /// Where a block begins; everything outside the procedure.
    pub fn at_block(&self, at: Option<usize>) -> Set {
        at.map_or(ALL, |at| self.first[at])
    }

    /// Before each instruction of a block, and behind the last one.
    pub fn within(
        &self,
        program: &Program,
        overwritten: &Overwritten,
        block: &CodeBlock,
        local: impl Fn(CodeBlockId) -> Option<usize>,
    ) -> Vec<Set> {
        let mut live = self.after(block, local);
        let mut all = vec![live; block.instructions.len() + 1];
        for (instruction, registers) in block.instructions.iter().zip(&mut all).rev() {
            live = before(program, overwritten, instruction, live);
            *registers = live;
        }
        all
    }

    fn after(&self, block: &CodeBlock, local: impl Fn(CodeBlockId) -> Option<usize>) -> Set {
        let at = |to: CodeBlockId| self.at_block(local(to));
        let branch = |branch: &LiftedInstruction| {
            isa::Alpha.summary(branch.word).map_or((ALL, 0), |one| (set(one.read), set(one.written)))
        };
        match &block.exit {
            CodeExit::Next(next) => at(*next),
            CodeExit::Branch { branch: one, target } => {
                let (read, written) = branch(one);
                target.block().map_or(ALL, at) & !written | read
            }
            CodeExit::Conditional { branch: one, taken, next, .. } => {
                taken.block().map_or(ALL, at) | at(*next) | branch(one).0
            }
            CodeExit::Jump { targets, .. } if targets.is_empty() => ALL,
            CodeExit::Jump { targets, .. } => targets.iter().fold(0, |all, &to| all | at(to)),
            CodeExit::Leave => {
                let last = block.instructions.last().and_then(|last| isa::decode(last.word));
                match last.map(|last| (last.op, last.rb())) {
                    Some((Op::Ret, RA)) => self.after_return,
                    Some((Op::Jmp, PV)) => self.after_return | ARGUMENTS,
                    _ => ALL,
                }
            }
        }
    }
}

fn before(program: &Program, overwritten: &Overwritten, instruction: &LiftedInstruction, after: Set) -> Set {
    let Some(summary) = isa::Alpha.summary(instruction.word) else { return ALL };
    if summary.is_system_call || instruction.op() == Some(Op::CallPal) {
        return ALL;
    }
    let (read, written) = (set(summary.read), set(summary.written));
    if instruction.is_call() {
        let Some(overwrites) = overwrites(program, overwritten, instruction) else { return ALL };
        return after & !overwrites & !(1 << RA) | ARGUMENTS | read;
    }
    after & !written | read
}

/// The registers that hold nothing of use after a call; `None` if it has a convention of its own.
fn overwrites(program: &Program, overwritten: &Overwritten, call: &LiftedInstruction) -> Option<Set> {
    if !is_usual_call(call) {
        return None;
    }
    Some(match callee(program, call) {
        Some(procedure) => overwritten.0[procedure as usize],
        None if call.op() == Some(Op::Jsr) => SCRATCH,
        // A branch to code that does not move.
        None => 0,
    })
}
