//! Routines that add one to the counter of the address that they return to: where control seldom comes, one call is shorter
//! than a counter's instructions.
//!
//! The counter of an address lies as far from the first counter of this kind as the address, a multiple of 8, does from the
//! first byte of the code.

use isa::Op;
use isa::encode::{self, EncodeError, SecondOperand::Literal as L};

use super::Update;
use super::registers::{CANDIDATES, Set};
use crate::assemble::Fragment;
use crate::layout::ALIGN;
use crate::program::{
    Anchor, BranchTarget, CodeBlock, CodeBlockId, CodeExit, Frozen, ImageCounter, LiftedInstruction,
    NO_ORIGIN, ProcedureId, Program, Reference, SP, ZERO,
};
use crate::unwind::NO_ROW;

/// A routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Routine {
    block: CodeBlockId,
    /// The register with the return address.
    link: u8,
    /// The registers that it uses.
    scratch: [u8; 2],
    /// Whether it saves them.
    is_saving: bool,
}

/// The routines of a part of the code, within its reach: one for each set of registers that is needed.
#[derive(Clone, Debug)]
pub struct CounterRoutines {
    procedure: ProcedureId,
    all: Vec<Routine>,
}

impl CounterRoutines {
    /// Adds their procedure to a program. [`CounterRoutines::complete`] must follow.
    pub fn new(program: &mut Program) -> CounterRoutines {
        let procedure = program.add_procedure("pathlength_count", Frozen::NoSymbol);
        CounterRoutines { procedure, all: Vec::new() }
    }

    /// Where they are to be put.
    pub fn fragment(&self) -> Fragment {
        let blocks = self.all.iter().map(|routine| routine.block).collect();
        Fragment { procedure: self.procedure, blocks, align: ALIGN }
    }

    /// A call that can be inserted where these registers are live, and whether the routine saves registers. There is none
    /// where all registers are live.
    pub fn call(
        &mut self,
        program: &mut Program,
        live: Set,
        frame: u32,
    ) -> Option<(LiftedInstruction, bool)> {
        let free: Vec<u8> = CANDIDATES.into_iter().filter(|register| live & 1 << register == 0).collect();
        let fits = |one: &&Routine| {
            free.contains(&one.link)
                && one.is_saving == (free.len() < 3)
                && (one.is_saving || one.scratch.iter().all(|register| free.contains(register)))
        };
        let routine = match self.all.iter().find(fits) {
            Some(routine) => *routine,
            None => self.add(program, &free)?,
        };
        let word = u32::from(Op::Bsr.row().opcode) << 26 | u32::from(routine.link) << 21;
        let reference = Reference::Branch(BranchTarget::Block(routine.block));
        Some((LiftedInstruction { reference, ..LiftedInstruction::new(word, frame) }, routine.is_saving))
    }

    fn add(&mut self, program: &mut Program, free: &[u8]) -> Option<Routine> {
        let &link = free.first()?;
        let mut others = free.iter().chain(&CANDIDATES).copied().filter(|&register| register != link);
        let scratch = [others.next()?, others.next()?];
        let block = CodeBlock::new(self.procedure, Vec::new(), CodeExit::Leave);
        let routine = Routine { block: program.add_block(block), link, scratch, is_saving: free.len() < 3 };
        program.procedures[self.procedure as usize].blocks.push(routine.block);
        self.all.push(routine);
        Some(routine)
    }

    /// Writes the instructions, for counters from this offset on.
    pub fn complete(&self, program: &mut Program, offset: u32, update: Update) {
        for one in &self.all {
            match instructions(one, ImageCounter { offset, anchor: Anchor::Code }, update) {
                Ok(instructions) => program.blocks[one.block as usize].instructions = instructions,
                Err(error) => unreachable!("the routines' instructions have legal operands: {error}"),
            }
        }
    }
}

/// Whether an instruction is a call of a routine.
pub fn is_call(instruction: &LiftedInstruction) -> bool {
    instruction.origin == NO_ORIGIN && instruction.op() == Some(Op::Bsr)
}

fn instructions(
    routine: &Routine,
    counter: ImageCounter,
    update: Update,
) -> Result<Vec<LiftedInstruction>, EncodeError> {
    let Routine { link, scratch: [address, value], is_saving, .. } = *routine;
    let mut words = Vec::new();
    if is_saving {
        words.push(encode::memory(Op::Lda, SP, SP, -16)?);
        words.push(encode::memory(Op::Stq, address, SP, 0)?);
        words.push(encode::memory(Op::Stq, value, SP, 8)?);
    }
    let base = words.len();
    words.push(encode::memory(Op::Ldah, address, link, 0)?);
    words.push(encode::memory(Op::Lda, address, address, 0)?);
    words.push(encode::operate(Op::Bic, address, L(7), address)?);
    words.extend(update.instructions(value, address)?);
    if is_saving {
        words.push(encode::memory(Op::Ldq, address, SP, 0)?);
        words.push(encode::memory(Op::Ldq, value, SP, 8)?);
        words.push(encode::memory(Op::Lda, SP, SP, 16)?);
    }
    words.push(encode::jump(Op::Ret, ZERO, link, 1)?);
    let mut all: Vec<LiftedInstruction> =
        words.into_iter().map(|word| LiftedInstruction::new(word, NO_ROW)).collect();
    all[base].reference = Reference::CounterHigh(counter);
    all[base + 1].reference = Reference::CounterLow(counter);
    Ok(all)
}
