//! Stubs: jumps over any distance, for branches that do not reach their targets. A stub needs a register: `$28`, which
//! compilers use between two instructions only.

use std::collections::{BTreeMap, HashSet};

use isa::{InstructionSet, Op, Register};

use crate::assemble::{with_high, with_low};
use crate::error::Problem;
use crate::program::{BranchTarget, CodeBlockId, CodeExit, LENGTH, LiftedInstruction, Program, RA, ZERO};
use crate::unwind::NO_ROW;

/// The register of stubs.
const SCRATCH: u8 = 28;

/// A jump to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stub {
    /// The target.
    pub target: BranchTarget,
    /// The state of the frame.
    pub frame: u32,
}

/// The stubs behind each fragment.
#[derive(Debug)]
pub struct Stubs {
    all: BTreeMap<usize, Vec<Stub>>,
}

impl Stubs {
    /// None yet.
    pub fn new() -> Stubs {
        Stubs { all: BTreeMap::new() }
    }

    /// Those behind a fragment.
    pub fn of(&self, fragment: usize) -> &[Stub] {
        self.all.get(&fragment).map(Vec::as_slice).unwrap_or_default()
    }

    /// Adds one, unless it is there.
    pub fn add(&mut self, fragment: usize, stub: Stub) {
        let own = self.all.entry(fragment).or_default();
        if !own.contains(&stub) {
            own.push(stub);
        }
    }
}

impl Stub {
    /// Its size.
    pub const BYTES: u64 = 4 * LENGTH;

    /// The stub for a branch; none if code at the target may read the register.
    pub fn new(program: &Program, branch: &LiftedInstruction, target: BranchTarget) -> Option<Stub> {
        let block = target.block().filter(|&block| is_free_at(program, block))?;
        let of_procedure = program.procedures[program.blocks[block as usize].procedure as usize].frame;
        let header = of_procedure.map(|frame| program.frames.tables[frame as usize].header);
        // At a call, the frame is already that of the called procedure's entry.
        let frame = match branch.is_call() {
            true => header.map_or(NO_ROW, |header| program.frames.headers[header as usize].row),
            false => branch.frame,
        };
        Some(Stub { target, frame })
    }

    /// The instructions at an address.
    pub fn words(&self, from: u64, to: u64) -> Result<[u32; 4], Problem> {
        let distance = to.wrapping_sub(from + LENGTH) as i64;
        if i32::try_from(distance).is_err() {
            return Err(Problem::OutOfReach { from, to });
        }
        let scratch = u32::from(SCRATCH);
        let word = |op: Op, ra: u32| u32::from(op.row().opcode) << 26 | ra << 21 | scratch << 16;
        Ok([
            // To the next instruction, whose address it leaves in the register.
            u32::from(Op::Br.row().opcode) << 26 | scratch << 21,
            with_high(word(Op::Ldah, scratch), distance),
            with_low(word(Op::Lda, scratch), distance),
            word(Op::Jmp, ZERO.into()),
        ])
    }
}

/// Whether the register is written before it is read on all paths from a block.
fn is_free_at(program: &Program, start: CodeBlockId) -> bool {
    let mut pending = vec![start];
    let mut seen = HashSet::new();
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        let block = &program.blocks[id as usize];
        match block.instructions.iter().find_map(uses) {
            Some(Use::Read) => return false,
            Some(Use::Written) => continue,
            None => {}
        }
        match &block.exit {
            // Returns and calls by the standard convention leave no value in it.
            CodeExit::Leave => {}
            CodeExit::Branch { target: BranchTarget::Address(_), .. }
            | CodeExit::Conditional { taken: BranchTarget::Address(_), .. } => {
                return false;
            }
            CodeExit::Jump { targets, .. } if targets.is_empty() => return false,
            exit => pending.extend(exit.successors()),
        }
    }
    true
}

enum Use {
    Read,
    Written,
}

/// The use of the register by an instruction, if it uses it.
fn uses(instruction: &LiftedInstruction) -> Option<Use> {
    let Some(one) = isa::Alpha.summary(instruction.word) else { return Some(Use::Read) };
    let has = |registers: &[Option<Register>]| registers.contains(&Some(Register::Integer(SCRATCH)));
    if has(&one.read) {
        return Some(Use::Read);
    }
    let is_standard_call = instruction.is_call() && one.written.contains(&Some(Register::Integer(RA)));
    (is_standard_call || has(&one.written)).then_some(Use::Written)
}
