//! The hot part of a procedure as a region of its own.
//!
//! Hot blocks keep their numbers, so that calls and pointers go to them. The cold part gets copies of the hot blocks that
//! it may go on to: control leaves the region through stubs, and never comes back. Only then may the region be changed at
//! the expense of the cold part.

use std::collections::{HashMap, HashSet};

use crate::dataflow::RegisterSet;
use crate::program::{
    Base, BranchTarget, CodeBlock, CodeBlockId, CodeExit, LiftedInstruction, ProcedureId, Program, Reference,
    branch_word,
};

/// The hot part of a procedure.
#[derive(Clone, Debug)]
pub struct HotRegion {
    /// The procedure.
    pub procedure: ProcedureId,
    /// Where control enters: the entry, or the block after the computation of the global pointer.
    pub head: CodeBlockId,
    /// The hot blocks, in the order of the original image.
    pub hot: Vec<CodeBlockId>,
    /// The blocks between hot and cold ones; none if the whole procedure is hot.
    pub stubs: Vec<ExitStub>,
    /// The registers that are live when the procedure returns.
    pub returns: RegisterSet,
}

/// A block through which control leaves the region.
#[derive(Clone, Copy, Debug)]
pub struct ExitStub {
    /// The block.
    pub block: CodeBlockId,
    /// The hot block before it.
    pub from: CodeBlockId,
    /// The cold block behind it.
    pub to: CodeBlockId,
}

/// The code to restore if a region is given up.
pub struct Undo {
    blocks: Vec<(CodeBlockId, CodeBlock)>,
    block_count: usize,
    global_pointer_count: usize,
    procedure: ProcedureId,
    order: Vec<CodeBlockId>,
}

impl Undo {
    fn new(program: &Program, procedure: ProcedureId) -> Undo {
        let order = program.procedures[procedure as usize].blocks.clone();
        Undo {
            blocks: order.iter().map(|&id| (id, program.blocks[id as usize].clone())).collect(),
            block_count: program.blocks.len(),
            global_pointer_count: program.global_pointers.len(),
            procedure,
            order,
        }
    }

    /// Restores the program.
    pub fn undo(self, program: &mut Program) {
        program.blocks.truncate(self.block_count);
        program.global_pointers.truncate(self.global_pointer_count);
        for (id, block) in self.blocks {
            program.blocks[id as usize] = block;
        }
        program.procedures[self.procedure as usize].blocks = self.order;
    }
}

/// A procedure whose hot blocks become a region.
#[derive(Clone, Copy)]
pub struct DividedProcedure<'f> {
    /// The procedure.
    pub procedure: ProcedureId,
    /// The registers that are live when it returns.
    pub returns: RegisterSet,
    /// Whether a block is hot.
    pub is_hot: &'f dyn Fn(&CodeBlock) -> bool,
}

impl DividedProcedure<'_> {
    /// Separates the hot blocks from the others. None if it cannot be done.
    pub fn separate(self, program: &mut Program) -> Option<(HotRegion, Undo)> {
        let DividedProcedure { procedure, is_hot, .. } = self;
        let all = program.procedures[procedure as usize].blocks.clone();
        let head = program.head(procedure)?;
        let hot = reachable(program, [head], |block| {
            let block = &program.blocks[block as usize];
            block.procedure == procedure && is_hot(block)
        });
        if hot.is_empty() || !is_separable(program, head, &hot) {
            return None;
        }
        let targets: Vec<(CodeBlockId, CodeBlockId)> = hot
            .iter()
            .flat_map(|&from| {
                program.blocks[from as usize].exit.successors().into_iter().map(move |to| (from, to))
            })
            .filter(|(_, to)| !hot.contains(to) && program.blocks[*to as usize].procedure == procedure)
            .collect();
        let is_entered =
            |id: &CodeBlockId| program.blocks[*id as usize].is_address_taken && !hot.contains(id);
        let entered = all.iter().skip(1).copied().filter(is_entered);
        let cold = reachable(program, targets.iter().map(|&(_, to)| to).chain(entered), |block| {
            program.blocks[block as usize].procedure == procedure
        });
        let undo = Undo::new(program, procedure);
        let Some(copies) = copy(program, &all, &hot, &cold) else {
            undo.undo(program);
            return None;
        };
        let in_order = all.iter().copied().filter(|id| hot.contains(id)).collect();
        let region = self.region(program, head, in_order, targets);
        let own = &mut program.procedures[procedure as usize].blocks;
        // Nothing leads to the other blocks.
        own.retain(|id| Some(id) == all.first() || hot.contains(id) || cold.contains(id));
        own.extend(copies.into_iter().chain(region.stubs.iter().map(|stub| stub.block)));
        Some((region, undo))
    }

    /// The hot blocks if they cannot be separated, with stubs on the edges to the others. Control comes back
    /// from the cold part, so that only what is right on each edge for itself may be done.
    pub fn split_edges(self, program: &mut Program) -> Option<(HotRegion, Undo)> {
        let DividedProcedure { procedure, is_hot, .. } = self;
        let all = program.procedures[procedure as usize].blocks.clone();
        let head = program.head(procedure)?;
        let hot: Vec<CodeBlockId> =
            all.iter().copied().filter(|&id| is_hot(&program.blocks[id as usize])).collect();
        let is_in: HashSet<CodeBlockId> = hot.iter().copied().collect();
        let undo = Undo::new(program, procedure);
        let mut edges: Vec<(CodeBlockId, CodeBlockId)> = Vec::new();
        for &from in &hot {
            // A table has no edge that a stub could split.
            if !matches!(program.blocks[from as usize].exit, CodeExit::Jump { .. }) {
                let successors = program.blocks[from as usize].exit.successors().into_iter();
                let is_cold = |to: &CodeBlockId| {
                    !is_in.contains(to) && program.blocks[*to as usize].procedure == procedure
                };
                edges.extend(successors.filter(is_cold).map(|to| (from, to)));
            }
        }
        let region = self.region(program, head, hot, edges);
        let own = &mut program.procedures[procedure as usize].blocks;
        own.extend(region.stubs.iter().map(|stub| stub.block));
        Some((region, undo))
    }

    /// The region of these blocks, with stubs on the edges out of it.
    fn region(
        self,
        program: &mut Program,
        head: CodeBlockId,
        hot: Vec<CodeBlockId>,
        mut edges: Vec<(CodeBlockId, CodeBlockId)>,
    ) -> HotRegion {
        let DividedProcedure { procedure, returns, .. } = self;
        edges.sort_unstable();
        edges.dedup();
        let mut region = HotRegion { procedure, head, hot, stubs: Vec::new(), returns };
        edges.into_iter().for_each(|(from, to)| region.add_stub(program, from, to));
        region
    }
}

impl HotRegion {
    fn add_stub(&mut self, program: &mut Program, from: CodeBlockId, to: CodeBlockId) {
        let edges = program.blocks[from as usize].edges();
        let count = edges.iter().filter(|edge| edge.0 == to).map(|edge| edge.1).sum();
        let frame = first_frame(program, to);
        let branch = LiftedInstruction::new(branch_word(), frame);
        let block = program.add_block(CodeBlock {
            procedure: self.procedure,
            instructions: Vec::new(),
            exit: CodeExit::Branch { branch, target: BranchTarget::Block(to) },
            is_address_taken: false,
            call_site: None,
            count,
        });
        program.blocks[from as usize].exit.redirect(|target| if target == to { block } else { target });
        self.stubs.push(ExitStub { block, from, to });
    }

    /// The hot blocks and the stubs.
    pub fn blocks(&self) -> Vec<CodeBlockId> {
        self.hot.iter().copied().chain(self.stubs.iter().map(|stub| stub.block)).collect()
    }

    /// The hot instructions.
    pub fn instructions<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = &'a LiftedInstruction> {
        self.hot.iter().flat_map(|&block| &program.blocks[block as usize].instructions)
    }

    /// Whether the hot part makes calls.
    pub fn has_calls(&self, program: &Program) -> bool {
        self.instructions(program).any(LiftedInstruction::is_call)
    }
}

/// The only predecessor of each block that has one. Blocks that pointers lead to have others.
pub fn only_predecessors(program: &Program, region: &HotRegion) -> HashMap<CodeBlockId, Option<CodeBlockId>> {
    let mut before = HashMap::new();
    for &block in &program.procedures[region.procedure as usize].blocks {
        for next in program.blocks[block as usize].exit.successors() {
            before.entry(next).and_modify(|one| *one = None).or_insert(Some(block));
        }
        if program.blocks[block as usize].is_address_taken {
            before.insert(block, None);
        }
    }
    before.insert(region.head, None);
    before
}

/// The frame at the beginning of a block.
pub fn first_frame(program: &Program, block: CodeBlockId) -> u32 {
    let block = &program.blocks[block as usize];
    let branch = match &block.exit {
        CodeExit::Branch { branch, .. } | CodeExit::Conditional { branch, .. } => Some(branch.frame),
        _ => None,
    };
    block.instructions.first().map(|first| first.frame).or(branch).unwrap_or(crate::unwind::NO_ROW)
}

fn reachable(
    program: &Program,
    from: impl IntoIterator<Item = CodeBlockId>,
    is_within: impl Fn(CodeBlockId) -> bool,
) -> HashSet<CodeBlockId> {
    let mut open: Vec<CodeBlockId> = from.into_iter().filter(|&block| is_within(block)).collect();
    let mut found: HashSet<CodeBlockId> = open.iter().copied().collect();
    while let Some(block) = open.pop() {
        for next in program.blocks[block as usize].exit.successors() {
            if is_within(next) && found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

/// Whether no pointer leads into the middle of the hot blocks, and no table out of them.
fn is_separable(program: &Program, head: CodeBlockId, hot: &HashSet<CodeBlockId>) -> bool {
    hot.iter().all(|&id| {
        let block = &program.blocks[id as usize];
        let is_entered = block.is_address_taken && id != head;
        let has_link = matches!(&block.exit, CodeExit::Branch { branch, .. } if branch.is_call());
        !is_entered && !has_link && !matches!(block.exit, CodeExit::Jump { .. })
    })
}

/// Copies the hot blocks that cold ones go on to, and redirects the cold ones. Returns the copies; none if it cannot be done.
fn copy(
    program: &mut Program,
    all: &[CodeBlockId],
    hot: &HashSet<CodeBlockId>,
    cold: &HashSet<CodeBlockId>,
) -> Option<Vec<CodeBlockId>> {
    let originals: Vec<CodeBlockId> =
        all.iter().copied().filter(|id| hot.contains(id) && cold.contains(id)).collect();
    // A table of the cold part cannot be redirected.
    let is_table = |id: &&CodeBlockId| matches!(program.blocks[**id as usize].exit, CodeExit::Jump { .. });
    let mut jumps =
        cold.iter().filter(is_table).flat_map(|&id| program.blocks[id as usize].exit.successors());
    if jumps.any(|to| hot.contains(&to)) {
        return None;
    }
    let mut copies = HashMap::new();
    for &id in &originals {
        let mut block = program.blocks[id as usize].clone();
        (block.count, block.is_address_taken) = (0, false);
        if let CodeExit::Conditional { count, .. } = &mut block.exit {
            *count = 0;
        }
        copies.insert(id, program.add_block(block));
    }
    let to = |id: CodeBlockId| copies.get(&id).copied().unwrap_or(id);
    for &id in cold.difference(hot).chain(copies.values()) {
        program.blocks[id as usize].exit.redirect(to);
    }
    let mut made: Vec<CodeBlockId> = copies.values().copied().collect();
    made.sort_unstable();
    copy_global_pointers(program, all, hot, &copies)?;
    Some(made)
}

/// Gives copies computations of the global pointer of their own: their base is after the copied call.
fn copy_global_pointers(
    program: &mut Program,
    all: &[CodeBlockId],
    hot: &HashSet<CodeBlockId>,
    copies: &HashMap<CodeBlockId, CodeBlockId>,
) -> Option<()> {
    let mut pairs: HashMap<u32, u32> = HashMap::new();
    for &copy in copies.values() {
        for at in 0..program.blocks[copy as usize].instructions.len() {
            let reference = program.blocks[copy as usize].instructions[at].reference;
            let (Reference::GlobalPointerHigh(pair) | Reference::GlobalPointerLow(pair)) = reference else {
                continue;
            };
            let number = match (pairs.get(&pair), program.global_pointers[pair as usize].base) {
                (Some(&number), _) => number,
                (None, Base::Block(_)) => return None,
                (None, Base::AfterCall(call)) => {
                    let mut one = program.global_pointers[pair as usize];
                    one.base = Base::AfterCall(copies.get(&call).copied().unwrap_or(call));
                    program.global_pointers.push(one);
                    let number = program.global_pointers.len() as u32 - 1;
                    pairs.insert(pair, number);
                    number
                }
            };
            program.blocks[copy as usize].instructions[at].reference = match reference {
                Reference::GlobalPointerHigh(_) => Reference::GlobalPointerHigh(number),
                _ => Reference::GlobalPointerLow(number),
            };
        }
    }
    // A computation must stay on the same side as the call before it.
    let is_apart = |id: CodeBlockId, one: &LiftedInstruction| match one.reference {
        Reference::GlobalPointerHigh(pair) => match program.global_pointers[pair as usize].base {
            Base::AfterCall(call) if hot.contains(&id) && !hot.contains(&call) => true,
            Base::AfterCall(call) => copies.contains_key(&call) && !pairs.contains_key(&pair),
            Base::Block(_) => false,
        },
        _ => false,
    };
    let mut blocks = all.iter().map(|&id| (id, &program.blocks[id as usize].instructions));
    match blocks.any(|(id, instructions)| instructions.iter().any(|one| is_apart(id, one))) {
        true => None,
        false => Some(()),
    }
}
