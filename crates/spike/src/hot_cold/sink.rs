//! Partial dead code elimination: an instruction whose result is needed on some paths only is moved onto those, into stubs
//! above all.

use std::collections::HashMap;

use isa::{Flags, InstructionFormat, Op};

use super::region::HotRegion;
use crate::dataflow::{Effects, Liveness, RegisterSet, effects};
use crate::program::{CodeBlockId, GP, LiftedInstruction, Program, Reference, SP};

/// How often all blocks are visited at most.
const ROUNDS: usize = 8;

/// Moves instructions down. Returns how many executions of instructions that saves.
pub fn sink(program: &mut Program, region: &HotRegion, outside: &dyn Fn(CodeBlockId) -> RegisterSet) -> u64 {
    let blocks = region.blocks();
    let liveness = Liveness::new(program, &blocks, region.returns, outside);
    let mut live: HashMap<CodeBlockId, RegisterSet> =
        blocks.iter().filter_map(|&block| Some((block, liveness.before(block)?))).collect();
    let predecessors = predecessors(program, &program.procedures[region.procedure as usize].blocks);
    let mut saved = 0;
    for _ in 0..ROUNDS {
        let before = saved;
        for &block in &region.hot {
            let at_exit = liveness.after(program, block, outside);
            saved += sink_from(program, block, region, &mut live, &predecessors, at_exit);
        }
        if saved == before {
            break;
        }
    }
    saved
}

fn predecessors(program: &Program, blocks: &[CodeBlockId]) -> HashMap<CodeBlockId, usize> {
    let mut count = HashMap::new();
    for &block in blocks {
        let mut successors = program.blocks[block as usize].exit.successors();
        successors.sort_unstable();
        successors.dedup();
        successors.into_iter().for_each(|successor| *count.entry(successor).or_insert(0) += 1);
    }
    count
}

/// Moves instructions out of a block, the last ones first.
fn sink_from(
    program: &mut Program,
    block: CodeBlockId,
    region: &HotRegion,
    live: &mut HashMap<CodeBlockId, RegisterSet>,
    predecessors: &HashMap<CodeBlockId, usize>,
    at_exit: RegisterSet,
) -> u64 {
    let successors: Vec<CodeBlockId> = {
        let mut all = program.blocks[block as usize].exit.successors();
        all.sort_unstable();
        all.dedup();
        all
    };
    let mut saved = 0;
    // What the instructions behind the one that is looked at do, the branch included.
    let mut later = Later::of_exit(program, block);
    let mut at = program.blocks[block as usize].instructions.len();
    while at > 0 {
        at -= 1;
        let instruction = program.blocks[block as usize].instructions[at];
        let own = effects(program, &instruction);
        let is_load = instruction.op().is_some_and(|op| op.is(Flags::LOAD));
        let is_dead_later = |set: RegisterSet| !own.writes.meets(set);
        if is_movable(&instruction) && !later.conflicts(own, is_load) {
            let is_needed_at_exit = successors.is_empty() && !is_dead_later(at_exit);
            let needing: Vec<CodeBlockId> = successors
                .iter()
                .copied()
                .filter(|next| !is_dead_later(live.get(next).copied().unwrap_or(RegisterSet::ALL)))
                .collect();
            let can_enter = |next: &CodeBlockId| {
                live.contains_key(next) && predecessors.get(next) == Some(&1) && *next != region.head
            };
            let cost: u64 = needing.iter().map(|&next| program.blocks[next as usize].count).sum();
            let count = program.blocks[block as usize].count;
            if needing.iter().all(can_enter) && cost < count && !is_needed_at_exit {
                program.blocks[block as usize].instructions.remove(at);
                for next in needing {
                    let frame = super::region::first_frame(program, next);
                    program.blocks[next as usize]
                        .instructions
                        .insert(0, LiftedInstruction { frame, ..instruction });
                    let before = live.get_mut(&next).map(|set| *set = own.reads | (*set - own.kills));
                    debug_assert!(before.is_some());
                }
                saved += count - cost;
                continue;
            }
        }
        later.add(own, &instruction);
    }
    saved
}

/// The effect of a sequence of instructions.
struct Later {
    reads: RegisterSet,
    writes: RegisterSet,
    has_store: bool,
}

impl Later {
    fn of_exit(program: &Program, block: CodeBlockId) -> Later {
        let mut later = Later { reads: RegisterSet::NONE, writes: RegisterSet::NONE, has_store: false };
        match &program.blocks[block as usize].exit {
            crate::program::CodeExit::Branch { branch, .. }
            | crate::program::CodeExit::Conditional { branch, .. } => {
                later.add(effects(program, branch), branch);
            }
            _ => {}
        }
        later
    }

    /// Whether an instruction before it cannot be moved behind it.
    fn conflicts(&self, own: Effects, is_load: bool) -> bool {
        self.reads.meets(own.writes) || self.writes.meets(own.writes | own.reads) || self.has_store && is_load
    }

    fn add(&mut self, effects: Effects, instruction: &LiftedInstruction) {
        self.reads |= effects.reads;
        self.writes |= effects.writes;
        self.has_store |= orders_memory(instruction);
    }
}

/// Whether a load may not be moved across it.
pub fn orders_memory(instruction: &LiftedInstruction) -> bool {
    instruction.is_call()
        || instruction.op().is_none_or(|op| {
            op.is(Flags::STORE)
                || op.is(Flags::LOCKED)
                || matches!(op.format(), InstructionFormat::Pal | InstructionFormat::MemoryFunction)
        })
}

/// Whether an instruction does nothing but write a register, so that it can be executed later or not at all.
pub fn is_movable(instruction: &LiftedInstruction) -> bool {
    let Some(one) = isa::decode(instruction.word) else { return false };
    if !matches!(instruction.reference, Reference::None | Reference::Slot(_)) {
        return false;
    }
    let destination = match one.op.format() {
        InstructionFormat::Memory if one.op.is(Flags::STORE) || one.op.is(Flags::LOCKED) => return false,
        // Loads of floating-point registers may convert, and loads without a result are prefetches.
        InstructionFormat::Memory if one.op.is_float() || one.ra() == 31 => return false,
        InstructionFormat::Memory => one.ra(),
        // Arithmetic that traps on overflow is not moved past what orders traps.
        InstructionFormat::Operate if one.op.is(Flags::OVERFLOW) || one.op.is_float() => return false,
        InstructionFormat::Operate => one.rc(),
        _ => return false,
    };
    destination != GP && destination != SP && !matches!(one.op, Op::Implver | Op::Amask)
}
