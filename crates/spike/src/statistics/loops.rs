//! Natural loops of a procedure, and how often they are executed for each time that control enters them.

use std::collections::HashMap;

use crate::program::{CodeBlockId, Program};

/// The flow graph of some blocks. Node 0 stands before all entries.
struct LoopGraph {
    /// Successors, and how often control went there.
    after: Vec<Vec<(usize, u64)>>,
    before: Vec<Vec<usize>>,
    counts: Vec<u64>,
}

/// The average trip count of the most frequently executed loop, if a loop was executed.
pub fn trip_count(program: &Program, blocks: &[CodeBlockId]) -> Option<f64> {
    let graph = LoopGraph::new(program, blocks);
    let order = graph.reverse_postorder();
    let dominators = graph.dominators(&order);
    let mut repeated: HashMap<usize, u64> = HashMap::new();
    for &tail in &order {
        for &(head, count) in
            graph.after[tail].iter().filter(|&&(head, _)| dominates(&dominators, head, tail))
        {
            *repeated.entry(head).or_default() += count;
        }
    }
    let executed = repeated.into_iter().filter(|&(head, _)| graph.counts[head] > 0);
    let (head, repeated) = executed.max_by_key(|&(head, repeated)| (graph.counts[head], repeated, head))?;
    let count = graph.counts[head];
    // A loop that was not left, or interrupted counts: at least one entry.
    let entries = count.saturating_sub(repeated).max(1);
    Some(count as f64 / entries as f64)
}

impl LoopGraph {
    fn new(program: &Program, blocks: &[CodeBlockId]) -> LoopGraph {
        let nodes: HashMap<CodeBlockId, usize> = blocks.iter().copied().zip(1..).collect();
        let mut graph = LoopGraph {
            after: vec![Vec::new(); blocks.len() + 1],
            before: vec![Vec::new(); blocks.len() + 1],
            counts: vec![0; blocks.len() + 1],
        };
        for (&id, node) in blocks.iter().zip(1..) {
            let block = &program.blocks[id as usize];
            graph.counts[node] = block.count;
            for (to, count) in block.edges() {
                if let Some(&to) = nodes.get(&to) {
                    graph.add(node, to, count);
                }
            }
            if node == 1 || block.is_address_taken {
                graph.add(0, node, 0);
            }
        }
        graph
    }

    fn add(&mut self, from: usize, to: usize, count: u64) {
        self.after[from].push((to, count));
        self.before[to].push(from);
    }

    fn reverse_postorder(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.after.len());
        let mut is_seen = vec![false; self.after.len()];
        let mut open = vec![(0, 0)];
        is_seen[0] = true;
        while let Some((node, next)) = open.pop() {
            match self.after[node].get(next) {
                Some(&(to, _)) => {
                    open.push((node, next + 1));
                    if !std::mem::replace(&mut is_seen[to], true) {
                        open.push((to, 0));
                    }
                }
                None => order.push(node),
            }
        }
        order.reverse();
        order
    }

    /// The immediate dominator of each node (Cooper, Harvey, Kennedy: "A simple, fast dominance algorithm").
    fn dominators(&self, order: &[usize]) -> Vec<Option<usize>> {
        let mut rank = vec![usize::MAX; self.after.len()];
        order.iter().zip(0..).for_each(|(&node, at)| rank[node] = at);
        let mut dominators: Vec<Option<usize>> = vec![None; self.after.len()];
        dominators[0] = Some(0);
        let mut is_changed = true;
        while std::mem::take(&mut is_changed) {
            for &node in &order[1..] {
                let known = self.before[node].iter().copied().filter(|&one| dominators[one].is_some());
                let common = known.reduce(|mut a, mut b| {
                    while a != b {
                        let later = if rank[a] > rank[b] { &mut a } else { &mut b };
                        *later = dominators[*later].unwrap_or(0);
                    }
                    a
                });
                is_changed |= std::mem::replace(&mut dominators[node], common) != common;
            }
        }
        dominators
    }
}

fn dominates(dominators: &[Option<usize>], head: usize, mut node: usize) -> bool {
    while node != head && node != 0 {
        let Some(next) = dominators[node] else { return false };
        node = next;
    }
    node == head
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of edges from, to, count; node 1 is entered `entries` times.
    fn graph(edges: &[(usize, usize, u64)], counts: &[u64]) -> LoopGraph {
        let nodes = counts.len();
        let mut graph = LoopGraph {
            after: vec![Vec::new(); nodes],
            before: vec![Vec::new(); nodes],
            counts: counts.to_vec(),
        };
        graph.add(0, 1, 0);
        edges.iter().for_each(|&(from, to, count)| graph.add(from, to, count));
        graph
    }

    #[test]
    fn dominators_of_a_diamond_and_of_an_irreducible_graph() {
        let diamond = graph(&[(1, 2, 1), (1, 3, 1), (2, 4, 1), (3, 4, 1)], &[0; 5]);
        let order = diamond.reverse_postorder();
        assert_eq!(diamond.dominators(&order), [Some(0), Some(0), Some(1), Some(1), Some(1)]);
        // Two entries of the same cycle: neither dominates the other, so that it is no natural loop.
        let cycle = graph(&[(1, 2, 1), (1, 3, 1), (2, 3, 9), (3, 2, 9)], &[0; 4]);
        let dominators = cycle.dominators(&cycle.reverse_postorder());
        assert!(
            !dominates(&dominators, 2, 3) && !dominates(&dominators, 3, 2) && dominates(&dominators, 1, 3)
        );
    }
}
