//! The order of blocks and procedures, after Pettis and Hansen ("Profile guided code positioning", 1990), in three steps
//! of which each can be left out: blocks are chained so that the frequent path falls through; procedures are split into a
//! hot and a cold part; the parts are placed so that frequent callers and callees are neighbours.

mod call_graph;
mod chain;
mod cluster;
mod ext_tsp;
mod order;
mod split;

use std::collections::HashSet;

pub use split::threshold;

use crate::assemble::{CodeLayout, Fragment, size};
use crate::profile::IndirectCall;
use crate::program::{CodeBlockId, LENGTH, ProcedureId, Program};

/// Bytes of which the addresses of procedures are multiples, as the compiler aligns them.
pub const ALIGN: u64 = 16;
/// Bytes of which the address of a cold part is a multiple.
const COLD_ALIGN: u64 = LENGTH;
/// Half of what a branch reaches: hot code stands in the middle of larger images, so that it reaches everything.
const REACH: u64 = 1 << 22;

/// The steps of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutSteps {
    /// Blocks in chains; otherwise as in the original image.
    pub chain: bool,
    /// Procedures in hot and cold parts.
    pub split: bool,
    /// Parts by the call graph; otherwise as in the original image.
    pub order: bool,
    /// How blocks are chained.
    pub blocks: BlockOrder,
    /// How parts are ordered.
    pub procedures: ProcedureOrder,
}

/// Algorithms that chain blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockOrder {
    /// The paper's: the most frequent edges first.
    #[default]
    Greedy,
    /// The extended-TSP score.
    ExtTsp,
}

/// Algorithms that order procedures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcedureOrder {
    /// The paper's: the call graph is collapsed along its most frequent edges.
    #[default]
    Collapse,
    /// Call-chain clustering.
    Cluster,
}

impl LayoutSteps {
    /// All of them.
    pub const ALL: LayoutSteps = LayoutSteps { chain: true, split: true, order: true, ..LayoutSteps::NONE };
    /// None of them.
    pub const NONE: LayoutSteps = LayoutSteps {
        chain: false,
        split: false,
        order: false,
        blocks: BlockOrder::Greedy,
        procedures: ProcedureOrder::Collapse,
    };
}

/// Everything in the order of the original image.
pub fn original(program: &Program) -> CodeLayout {
    let fragments = (0..program.procedures.len()).map(|number| whole(program, number as ProcedureId));
    CodeLayout { fragments: fragments.collect() }
}

fn whole(program: &Program, procedure: ProcedureId) -> Fragment {
    Fragment { procedure, blocks: program.procedures[procedure as usize].blocks.clone(), align: ALIGN }
}

/// The layout for the program's counts.
pub fn layout(program: &Program, calls: &[IndirectCall], steps: LayoutSteps) -> CodeLayout {
    let threshold = if steps.split { split::threshold(program) } else { 0 };
    let (mut hot, mut cold) = (Vec::new(), Vec::new());
    for number in 0..program.procedures.len() as ProcedureId {
        let procedure = &program.procedures[number as usize];
        let mut fragment = whole(program, number);
        if procedure.frozen.is_some() {
            hot.push(fragment);
            continue;
        }
        let entry = fragment.blocks[0];
        // Calls within the image pass by the computation of the global pointer, which yet stays before the rest: debuggers,
        // linkers and the engine rely on the distance of 8 bytes between both entries.
        let second = program.second_entry(number);
        let is_hot = |block: &CodeBlockId| {
            let counted = second.filter(|_| *block == entry).unwrap_or(*block);
            program.blocks[counted as usize].count > threshold
        };
        let (mut warm, mut rest): (Vec<CodeBlockId>, Vec<CodeBlockId>) =
            match steps.split && fragment.blocks.iter().any(is_hot) {
                true => fragment.blocks.iter().copied().partition(is_hot),
                false => (fragment.blocks.clone(), Vec::new()),
            };
        if steps.chain {
            let order = match steps.blocks {
                BlockOrder::Greedy => chain::chain,
                BlockOrder::ExtTsp => ext_tsp::order,
            };
            warm = order(program, &warm, entry, second);
            rest = chain::chain(program, &rest, entry, second);
        }
        fragment.blocks = warm;
        hot.push(fragment);
        if !rest.is_empty() {
            cold.push(Fragment { procedure: number, blocks: rest, align: COLD_ALIGN });
        }
    }
    if !steps.order {
        // Each cold part follows the hot parts, as without a call graph there is no better position.
        hot.extend(cold);
        return CodeLayout { fragments: hot };
    }
    let is_executed =
        |fragment: &Fragment| fragment.blocks.iter().any(|&block| program.blocks[block as usize].count > 0);
    let (hot, never): (Vec<Fragment>, Vec<Fragment>) = hot.into_iter().partition(is_executed);
    let order = match steps.procedures {
        ProcedureOrder::Collapse => order::order,
        ProcedureOrder::Cluster => cluster::order,
    };
    let hot = order(program, calls, hot);
    let position: std::collections::HashMap<ProcedureId, usize> =
        hot.iter().enumerate().map(|(at, fragment)| (fragment.procedure, at)).collect();
    cold.sort_by_key(|fragment| (!is_executed(fragment), position.get(&fragment.procedure).copied()));
    CodeLayout { fragments: around(program, hot, cold, never) }
}

/// Puts code that was not executed behind the rest; in an image so large that branches would not reach across it, some of
/// it before the rest.
fn around(program: &Program, hot: Vec<Fragment>, cold: Vec<Fragment>, never: Vec<Fragment>) -> Vec<Fragment> {
    let bytes =
        |fragments: &[Fragment]| -> u64 { fragments.iter().map(|one| fragment_size(program, one)).sum() };
    let total = bytes(&hot) + bytes(&cold) + bytes(&never);
    let mut before = Vec::new();
    let mut after = never;
    if total >= REACH {
        let mut room = (total / 2).saturating_sub(bytes(&hot) / 2);
        let count = after.iter().take_while(|one| {
            let size = fragment_size(program, one);
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        });
        let count = count.count();
        before = after.drain(..count).collect();
    }
    before.into_iter().chain(hot).chain(cold).chain(after).collect()
}

/// Executed instructions.
fn executed(program: &Program, fragment: &Fragment) -> u64 {
    let counts = fragment.blocks.iter().map(|&block| &program.blocks[block as usize]);
    counts
        .map(|block| block.count.saturating_mul(block.instructions.len() as u64))
        .fold(0, u64::saturating_add)
}

/// Bytes.
fn fragment_size(program: &Program, fragment: &Fragment) -> u64 {
    let next = fragment.blocks.iter().skip(1).map(|&block| Some(block)).chain([None]);
    fragment.blocks.iter().zip(next).map(|(&block, next)| size(program, block, next) * LENGTH).sum()
}

/// Checks that a layout has each of these blocks once.
pub fn is_complete(layout: &CodeLayout, blocks: impl IntoIterator<Item = CodeBlockId>) -> bool {
    let all: Vec<CodeBlockId> =
        layout.fragments.iter().flat_map(|fragment| fragment.blocks.iter().copied()).collect();
    let distinct: HashSet<CodeBlockId> = all.iter().copied().collect();
    distinct.len() == all.len() && blocks.into_iter().all(|block| distinct.contains(&block))
}
