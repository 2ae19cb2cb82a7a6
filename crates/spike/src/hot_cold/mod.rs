//! Hot-cold optimization: the hot part of a procedure is made shorter at the expense of the cold part.
//!
//! A procedure with both is separated into a [`HotRegion`] of its hot blocks and the rest, which control reaches through stubs
//! and never leaves for the region. Then instructions whose results only the cold part needs move to the stubs, and so do
//! saves of registers and the adjustments of the stack pointer.

mod copies;
mod frame;
mod inline;
mod region;
mod sink;

use std::collections::HashMap;

use crate::dataflow::{Liveness, RegisterSet, Summaries};
use crate::program::{BranchTarget, CodeBlock, CodeBlockId, ProcedureId, Program, Reference};
use frame::{HotFrame, Unsuited};
use inline::Body;
use region::DividedProcedure;
pub use region::{ExitStub, HotRegion};

/// The share of all executed instructions below which a procedure is not worth the effort.
const SMALLEST_SHARE: f64 = 0.000_1;
/// A block is cold if control comes to it less often than once in so many calls of its procedure.
const COLD_RATIO: u64 = 100;

/// The outcome of a procedure (the paper's Figure 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HotColdCategory {
    /// Its hot part is shorter now.
    Optimized,
    /// It is executed too seldom.
    Infrequent,
    /// It has no cold part, or one that cannot be separated.
    NoSplit,
    /// It changes the stack pointer after its beginning.
    StackPointerModified,
    /// It has a cold part, but nothing could be removed.
    NoAdvantage,
    /// Its code must stay as it is.
    Frozen,
}

impl HotColdCategory {
    /// All categories, as the paper orders them.
    pub const ALL: [HotColdCategory; 6] = [
        HotColdCategory::Optimized,
        HotColdCategory::Infrequent,
        HotColdCategory::NoSplit,
        HotColdCategory::StackPointerModified,
        HotColdCategory::NoAdvantage,
        HotColdCategory::Frozen,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            HotColdCategory::Optimized => "optimized",
            HotColdCategory::Infrequent => "infrequent",
            HotColdCategory::NoSplit => "no split",
            HotColdCategory::StackPointerModified => "sp modified",
            HotColdCategory::NoAdvantage => "no advantage",
            HotColdCategory::Frozen => "frozen",
        }
    }
}

impl HotColdCategory {
    /// Why procedures are in it, for tables.
    pub fn reason(self) -> &'static str {
        match self {
            HotColdCategory::Optimized => "its hot part is shorter",
            HotColdCategory::Infrequent => "less than 0.01 % of the executed instructions",
            HotColdCategory::NoSplit => "no cold part that can be separated",
            HotColdCategory::StackPointerModified => "the stack pointer changes after the beginning",
            HotColdCategory::NoAdvantage => "its hot part needs all that it does",
            HotColdCategory::Frozen => "its code must stay as it is",
        }
    }
}

/// Executions that were removed from the profiled run (the paper's Figure 16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotColdReduction {
    /// Partially dead instructions.
    pub dead_code: u64,
    /// Saves and restores of preserved registers and the return address.
    pub saves: u64,
    /// Adjustments of the stack pointer.
    pub adjustments: u64,
    /// Copies of a register to itself.
    pub peephole: u64,
    /// Calls and returns of inlined procedures.
    pub inlining: u64,
}

impl HotColdReduction {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.dead_code + self.saves + self.adjustments + self.peephole + self.inlining
    }
}

/// The outcome of a procedure.
#[derive(Clone, Debug)]
pub struct ProcedureOutcome {
    /// The procedure.
    pub procedure: ProcedureId,
    /// The category.
    pub category: HotColdCategory,
    /// Instructions that it executed in the profiled run.
    pub executed: u64,
    /// Instructions of the whole procedure before.
    pub size: usize,
    /// The blocks of the hot part, if there is one.
    pub hot: Vec<CodeBlockId>,
    /// Instructions of the hot part.
    pub hot_size: usize,
    /// Instructions of the stubs.
    pub stub_size: usize,
    /// The executions that were removed.
    pub reduction: HotColdReduction,
}

/// Optimizes all procedures that are worth it. Blocks with at most `threshold` executions are cold.
pub fn optimize(program: &mut Program, threshold: u64, is_inlining: bool) -> Vec<ProcedureOutcome> {
    let summaries = Summaries::new(program);
    let executed: Vec<u64> =
        (0..program.procedures.len()).map(|number| executed(program, number as ProcedureId)).collect();
    let total = executed.iter().fold(0u64, |sum, &one| sum.saturating_add(one));
    let least = (total as f64 * SMALLEST_SHARE) as u64;
    let mut bodies = HashMap::new();
    let mut outcomes = Vec::new();
    for procedure in callees_first(program) {
        let executed = executed[procedure as usize];
        let size = size(program, &program.procedures[procedure as usize].blocks);
        let mut outcome = ProcedureOutcome {
            procedure,
            category: HotColdCategory::Infrequent,
            executed,
            size,
            hot: Vec::new(),
            hot_size: 0,
            stub_size: 0,
            reduction: HotColdReduction::default(),
        };
        let calls = entries(program, procedure);
        let is_hot = |block: &CodeBlock| block.count > threshold && block.count >= calls / COLD_RATIO;
        outcome.category = match () {
            () if !program.may_change(procedure) => HotColdCategory::Frozen,
            () if executed <= least => HotColdCategory::Infrequent,
            () => {
                let inlined = inline::inline(program, procedure, &bodies, is_hot);
                outcome.reduction.inlining = inlined;
                let category = optimize_one(program, procedure, &is_hot, &summaries, &mut outcome);
                if inlined > 0 { HotColdCategory::Optimized } else { category }
            }
        };
        if is_inlining
            && outcome.category != HotColdCategory::Infrequent
            && let Some(body) = Body::find(program, procedure, is_hot)
        {
            bodies.insert(procedure, body);
        }
        outcomes.push(outcome);
    }
    outcomes.sort_by_key(|outcome| outcome.procedure);
    outcomes
}

/// The procedures in an order in which callees come before callers, as far as there is no recursion.
fn callees_first(program: &Program) -> Vec<ProcedureId> {
    let mut callees: Vec<Vec<ProcedureId>> = vec![Vec::new(); program.procedures.len()];
    for block in program.blocks.iter().filter(|block| block.count > 0) {
        if let Some(Reference::Branch(BranchTarget::Block(target))) = block.call().map(|call| call.reference)
        {
            callees[block.procedure as usize].push(program.blocks[target as usize].procedure);
        }
    }
    let mut order = Vec::with_capacity(callees.len());
    let mut is_seen = vec![false; callees.len()];
    for root in 0..callees.len() {
        let mut open = vec![(root, 0)];
        while let Some((procedure, next)) = open.pop() {
            if next == 0 && std::mem::replace(&mut is_seen[procedure], true) {
                continue;
            }
            match callees[procedure].get(next) {
                Some(&callee) => {
                    open.push((procedure, next + 1));
                    open.push((callee as usize, 0));
                }
                None => order.push(procedure as ProcedureId),
            }
        }
    }
    order
}

fn executed(program: &Program, procedure: ProcedureId) -> u64 {
    let blocks =
        program.procedures[procedure as usize].blocks.iter().map(|&block| &program.blocks[block as usize]);
    blocks
        .map(|block| block.count.saturating_mul(block.instructions.len() as u64))
        .fold(0, u64::saturating_add)
}

fn size(program: &Program, blocks: &[CodeBlockId]) -> usize {
    blocks.iter().map(|&block| program.blocks[block as usize].instructions.len()).sum()
}

fn optimize_one(
    program: &mut Program,
    procedure: ProcedureId,
    is_hot: &dyn Fn(&CodeBlock) -> bool,
    summaries: &Summaries,
    outcome: &mut ProcedureOutcome,
) -> HotColdCategory {
    let all = program.procedures[procedure as usize].blocks.clone();
    let returns = summaries.returned(procedure);
    let liveness = Liveness::new(program, &all, returns, |_| RegisterSet::ALL);
    let outside = move |block: CodeBlockId| liveness.before(block).unwrap_or(RegisterSet::ALL);
    let mut reduction = HotColdReduction::default();
    let mut is_modified = false;
    let divided = DividedProcedure { procedure, returns, is_hot };
    let (region, undo) = match divided.separate(program) {
        Some((region, undo)) => {
            reduction.dead_code += sink::sink(program, &region, &outside);
            frame::rename(program, &region, summaries.clobbered(procedure), &outside);
            match HotFrame::find(program, &region) {
                Ok(frame) => {
                    let removed = frame.eliminate(program, &region);
                    reduction.saves += removed.saves;
                    reduction.adjustments += removed.adjustments;
                }
                Err(Unsuited::StackPointerModified) => is_modified = true,
                Err(Unsuited::NoFrame) => {}
            }
            (region, undo)
        }
        None => match divided.split_edges(program) {
            Some(split) => split,
            None => return HotColdCategory::NoSplit,
        },
    };
    copies::propagate(program, &region);
    reduction.peephole += copies::remove_self_copies(program, &region);
    reduction.dead_code += sink::sink(program, &region, &outside);
    if reduction.total() == 0 {
        let has_cold = !region.stubs.is_empty();
        undo.undo(program);
        return match is_modified {
            true => HotColdCategory::StackPointerModified,
            false if has_cold => HotColdCategory::NoAdvantage,
            false => HotColdCategory::NoSplit,
        };
    }
    let stubs: Vec<CodeBlockId> = region.stubs.iter().map(|stub| stub.block).collect();
    (outcome.hot_size, outcome.stub_size) = (size(program, &region.hot), size(program, &stubs));
    outcome.hot = region.hot;
    outcome.reduction = HotColdReduction { inlining: outcome.reduction.inlining, ..reduction };
    HotColdCategory::Optimized
}

/// How often a procedure was entered.
fn entries(program: &Program, procedure: ProcedureId) -> u64 {
    let blocks = program.procedures[procedure as usize].blocks.iter().take(2);
    blocks.map(|&block| program.blocks[block as usize].count).max().unwrap_or(0)
}
