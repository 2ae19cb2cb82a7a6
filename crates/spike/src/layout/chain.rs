//! Chains of blocks: the greedy algorithm of the paper. Edges are taken in the order of their counts, and an edge makes its
//! target follow its source if nothing follows the source yet and the target follows nothing.

use std::collections::HashMap;

use crate::program::{CodeBlockId, CodeExit, Program};

/// Orders some blocks of a procedure. The entry, if it is among them, stays first, and the second entry behind it.
pub fn chain(
    program: &Program,
    blocks: &[CodeBlockId],
    entry: CodeBlockId,
    second: Option<CodeBlockId>,
) -> Vec<CodeBlockId> {
    let position: HashMap<CodeBlockId, usize> = blocks.iter().copied().zip(0..).collect();
    let mut edges = Vec::new();
    for (&block, from) in blocks.iter().zip(0..) {
        let source = &program.blocks[block as usize];
        if matches!(source.exit, CodeExit::Jump { .. }) {
            continue;
        }
        for (target, count) in source.edges() {
            if let Some(&to) = position.get(&target).filter(|_| target != entry) {
                // Among equals, what followed in the original image follows still.
                edges.push((std::cmp::Reverse(count), to != from + 1, from, to));
            }
        }
    }
    edges.sort_unstable();
    let mut chains = Chains::new(blocks.len());
    if let (Some(&first), Some(&second)) =
        (position.get(&entry), second.and_then(|second| position.get(&second)))
    {
        chains.join(first, second);
    }
    edges.iter().for_each(|&(_, _, from, to)| chains.join(from, to));
    let heads = chains.ordered(|head| {
        let count = chains.members(head).map(|at| program.blocks[blocks[at] as usize].count).max();
        (blocks[head] != entry, std::cmp::Reverse(count), head)
    });
    heads.into_iter().flat_map(|head| chains.members(head)).map(|at| blocks[at]).collect()
}

struct Chains {
    next: Vec<Option<usize>>,
    before: Vec<Option<usize>>,
    /// By union: the chain of each block.
    parent: Vec<usize>,
}

impl Chains {
    fn new(count: usize) -> Chains {
        Chains { next: vec![None; count], before: vec![None; count], parent: (0..count).collect() }
    }

    fn find(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    fn join(&mut self, from: usize, to: usize) {
        let (a, b) = (self.find(from), self.find(to));
        if a != b && self.next[from].is_none() && self.before[to].is_none() {
            self.next[from] = Some(to);
            self.before[to] = Some(from);
            self.parent[b] = a;
        }
    }

    fn members(&self, head: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(head), |&at| self.next[at])
    }

    fn ordered<K: Ord>(&self, key: impl FnMut(usize) -> K) -> Vec<usize> {
        let mut keys = key;
        let mut heads: Vec<usize> = (0..self.next.len()).filter(|&at| self.before[at].is_none()).collect();
        heads.sort_by_cached_key(|&head| keys(head));
        heads
    }
}
