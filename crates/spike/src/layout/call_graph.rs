//! The call graph of parts of procedures, with counts.

use std::collections::HashMap;

use crate::assemble::Fragment;
use crate::profile::IndirectCall;
use crate::program::{CodeExit, Program, Reference};

/// How often control goes from one part to another by calls and tail calls: the source and the target by their index.
pub fn call_graph(
    program: &Program,
    calls: &[IndirectCall],
    fragments: &[Fragment],
) -> HashMap<(usize, usize), u64> {
    let mut fragment_of = HashMap::new();
    for (fragment, index) in fragments.iter().zip(0..) {
        fragment.blocks.iter().for_each(|&block| _ = fragment_of.insert(block, index));
    }
    let mut edges = HashMap::new();
    let mut add = |from: usize, target: u32, count: u64| {
        if let Some(&to) = fragment_of.get(&target).filter(|&&to| to != from && count > 0) {
            *edges.entry((from, to)).or_insert(0) += count;
        }
    };
    for (fragment, index) in fragments.iter().zip(0..) {
        for &block in &fragment.blocks {
            let block = &program.blocks[block as usize];
            if let Some(Reference::Branch(target)) = block.call().map(|call| call.reference) {
                target.block().into_iter().for_each(|target| add(index, target, block.count));
            }
            if !matches!(block.exit, CodeExit::Jump { .. }) {
                block.edges().into_iter().for_each(|(target, count)| add(index, target, count));
            }
        }
    }
    for call in calls {
        if let (Some(&from), Some(&target)) =
            (fragment_of.get(&call.block), program.procedures[call.procedure as usize].blocks.first())
        {
            add(from, target, call.count);
        }
    }
    edges
}
