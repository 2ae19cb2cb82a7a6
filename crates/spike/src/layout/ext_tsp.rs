//! The order of blocks that maximizes the extended-TSP score (Newell and Pupyrev, "Improved basic block reordering", 2020):
//! fall-throughs count fully, short jumps a little, the less the longer they are. Chains are merged greedily by the gain in
//! score, in either order and with one of them cut in two.

use std::collections::{BTreeMap, HashMap};

use crate::assemble::size;
use crate::program::{CodeBlockId, CodeExit, LENGTH, Program};

/// The weight of a jump, against that of a fall-through.
const JUMP: f64 = 0.1;
/// Bytes after which a jump forwards, and backwards, counts nothing.
const FORWARD: f64 = 1024.0;
const BACKWARD: f64 = 640.0;
/// Blocks of a chain that is cut at most.
const LONGEST_CUT: usize = 128;

/// Orders some blocks of a procedure. The entry, if it is among them, stays first, and the second entry behind it.
pub fn order(
    program: &Program,
    blocks: &[CodeBlockId],
    entry: CodeBlockId,
    second: Option<CodeBlockId>,
) -> Vec<CodeBlockId> {
    let graph = ExtTspGraph::new(program, blocks, entry, second);
    let mut chains =
        ExtTspChains::new(&graph, second.and_then(|id| blocks.iter().position(|&one| one == id)));
    while let Some((_, merge)) = chains.best() {
        chains.merge(merge);
    }
    let density = |chain: &Vec<usize>| {
        let sum = |of: &dyn Fn(usize) -> f64| chain.iter().map(|&at| of(at)).sum::<f64>();
        sum(&|at| graph.counts[at] * graph.sizes[at]) / sum(&|at| graph.sizes[at]).max(1.0)
    };
    let mut all: Vec<&Vec<usize>> = chains.members.iter().filter(|chain| !chain.is_empty()).collect();
    all.sort_by(|a, b| {
        let key = |chain: &[usize]| (Some(chain[0]) != graph.entry, chain[0]);
        key(a).0.cmp(&key(b).0).then(density(b).total_cmp(&density(a))).then(key(a).1.cmp(&key(b).1))
    });
    all.into_iter().flatten().map(|&at| blocks[at]).collect()
}

/// The blocks, numbered from 0.
struct ExtTspGraph {
    sizes: Vec<f64>,
    counts: Vec<f64>,
    /// Of each block: the target, how often, and whether it may follow without a branch.
    edges: Vec<Vec<(usize, f64, bool)>>,
    entry: Option<usize>,
}

impl ExtTspGraph {
    fn new(
        program: &Program,
        blocks: &[CodeBlockId],
        entry: CodeBlockId,
        second: Option<CodeBlockId>,
    ) -> ExtTspGraph {
        let position: HashMap<CodeBlockId, usize> = blocks.iter().copied().zip(0..).collect();
        let block = |id: &CodeBlockId| &program.blocks[*id as usize];
        let edges = |id: &CodeBlockId| {
            let may_follow = !matches!(block(id).exit, CodeExit::Jump { .. });
            let inner = block(id).edges().into_iter().filter(|edge| edge.1 > 0);
            let inner = inner.filter(|edge| edge.0 != entry && Some(edge.0) != second);
            inner.filter_map(|(to, count)| Some((*position.get(&to)?, count as f64, may_follow))).collect()
        };
        ExtTspGraph {
            sizes: blocks.iter().map(|&id| (size(program, id, None) * LENGTH) as f64).collect(),
            counts: blocks.iter().map(|id| block(id).count as f64).collect(),
            edges: blocks.iter().map(edges).collect(),
            entry: position.get(&entry).copied(),
        }
    }
}

/// Two chains as one: the first one up to the cut, the second one, and so on as [`MergeOrder`] says.
#[derive(Clone, Copy, Debug)]
struct Merge {
    first: usize,
    second: usize,
    cut: usize,
    shape: MergeOrder,
}

/// Orders of the parts X1 and X2 of a chain and another one, Y.
#[derive(Clone, Copy, Debug)]
enum MergeOrder {
    X1YX2,
    YX2X1,
    X2X1Y,
}

struct ExtTspChains<'a> {
    graph: &'a ExtTspGraph,
    /// The blocks of each chain; of one that was merged into another, none.
    members: Vec<Vec<usize>>,
    chain_of: Vec<usize>,
    scores: Vec<f64>,
    /// The best merge of each pair of chains with an edge between them.
    gains: BTreeMap<(usize, usize), (f64, Merge)>,
    /// The address of each block in the chain that is looked at, if it is in it.
    addresses: Vec<Option<f64>>,
}

impl<'a> ExtTspChains<'a> {
    fn new(graph: &'a ExtTspGraph, second: Option<usize>) -> ExtTspChains<'a> {
        let count = graph.sizes.len();
        let mut chains = ExtTspChains {
            graph,
            members: (0..count).map(|at| vec![at]).collect(),
            chain_of: (0..count).collect(),
            scores: vec![0.0; count],
            gains: BTreeMap::new(),
            addresses: vec![None; count],
        };
        if let (Some(first), Some(second)) = (graph.entry, second) {
            chains.members[first].push(second);
            chains.members[second].clear();
            chains.chain_of[second] = first;
        }
        for chain in 0..count {
            chains.scores[chain] = chains.score(&chains.members[chain].clone());
        }
        for from in 0..count {
            for &(to, ..) in &graph.edges[from] {
                chains.evaluate(chains.chain_of[from], chains.chain_of[to]);
            }
        }
        chains
    }

    /// The score of the edges within some blocks in this order.
    fn score(&mut self, order: &[usize]) -> f64 {
        let mut address = 0.0;
        for &block in order {
            self.addresses[block] = Some(address);
            address += self.graph.sizes[block];
        }
        let mut sum = 0.0;
        for &block in order {
            let end = self.addresses[block].unwrap_or_default() + self.graph.sizes[block];
            for &(to, count, may_follow) in &self.graph.edges[block] {
                let Some(target) = self.addresses[to] else { continue };
                let distance = target - end;
                sum += count
                    * match distance {
                        0.0 if may_follow => 1.0,
                        0.0.. => JUMP * (1.0 - distance / FORWARD).max(0.0),
                        _ => JUMP * (1.0 + distance / BACKWARD).max(0.0),
                    };
            }
        }
        order.iter().for_each(|&block| self.addresses[block] = None);
        sum
    }

    fn evaluate(&mut self, a: usize, b: usize) {
        if a == b {
            return;
        }
        let key = (a.min(b), a.max(b));
        let mut best: Option<(f64, Merge)> = None;
        for (first, second) in [key, (key.1, key.0)] {
            for (cut, shape) in self.candidates(first, second) {
                let merge = Merge { first, second, cut, shape };
                let order = self.merged(merge);
                if self.graph.entry.is_some_and(|entry| order[1..].contains(&entry)) {
                    continue;
                }
                let gain = self.score(&order) - self.scores[first] - self.scores[second];
                if gain > best.as_ref().map_or(0.0, |best| best.0) {
                    best = Some((gain, merge));
                }
            }
        }
        match best {
            Some(best) => self.gains.insert(key, best),
            None => self.gains.remove(&key),
        };
    }

    /// The first chain before the second one, and the cuts at which an edge to or from the second one could fall through.
    fn candidates(&self, first: usize, second: usize) -> Vec<(usize, MergeOrder)> {
        let (x, y) = (&self.members[first], &self.members[second]);
        let mut all = vec![(x.len(), MergeOrder::X1YX2)];
        if x.len() > LONGEST_CUT {
            return all;
        }
        let leads = |from: usize, to: usize| self.graph.edges[from].iter().any(|edge| edge.0 == to);
        let is_pair = |at: usize| self.graph.entry == Some(x[at - 1]);
        for cut in (1..x.len()).filter(|&cut| !is_pair(cut)) {
            if leads(x[cut - 1], y[0]) {
                all.extend([(cut, MergeOrder::X1YX2), (cut, MergeOrder::X2X1Y)]);
            }
            if leads(y[y.len() - 1], x[cut]) {
                all.extend([(cut, MergeOrder::X1YX2), (cut, MergeOrder::YX2X1)]);
            }
        }
        all
    }

    fn merged(&self, merge: Merge) -> Vec<usize> {
        let (x1, x2) = self.members[merge.first].split_at(merge.cut);
        let y = self.members[merge.second].as_slice();
        match merge.shape {
            MergeOrder::X1YX2 => [x1, y, x2].concat(),
            MergeOrder::YX2X1 => [y, x2, x1].concat(),
            MergeOrder::X2X1Y => [x2, x1, y].concat(),
        }
    }

    fn best(&self) -> Option<(f64, Merge)> {
        let better = |best: Option<(f64, Merge)>, one: &(f64, Merge)| match best {
            Some(best) if best.0 >= one.0 => Some(best),
            _ => Some(*one),
        };
        self.gains.values().fold(None, better)
    }

    fn merge(&mut self, merge: Merge) {
        let order = self.merged(merge);
        let Merge { first, second, .. } = merge;
        self.scores[first] = self.score(&order);
        order.iter().for_each(|&block| self.chain_of[block] = first);
        self.members[first] = order;
        self.members[second].clear();
        let touches = |key: &(usize, usize)| [key.0, key.1].iter().any(|one| [first, second].contains(one));
        let others: Vec<usize> =
            self.gains.keys().filter(|key| touches(key)).flat_map(|key| [key.0, key.1]).collect();
        self.gains.retain(|key, _| !touches(key));
        let mut others: Vec<usize> =
            others.into_iter().filter(|other| ![first, second].contains(other)).collect();
        others.sort_unstable();
        others.dedup();
        others.into_iter().for_each(|other| self.evaluate(first, other));
    }
}
