//! Regions, the units of compilation: the executed blocks of a function that are reached from an entry without calls.

use std::collections::{HashMap, VecDeque};

use events::BlockId;
use guest::flow::{FlowBlock, FlowCounters};
use guest::{BlockCache, DecodedBlock};

use crate::target::Target;

/// An edge of the control-flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionEdge {
    pub(crate) to: usize,
    /// Whether control may also arrive there from outside the region: after a call, or by an indirect jump.
    pub(crate) is_open: bool,
}

/// Blocks, the entry first, and how control flows among them.
pub(crate) struct CodeRegion {
    /// In reverse postorder.
    pub(crate) blocks: Vec<BlockId>,
    /// From each block.
    pub(crate) edges: Vec<Vec<RegionEdge>>,
    /// Whether control may enter the region at each block.
    pub(crate) is_entry: Vec<bool>,
    by_address: HashMap<u64, usize>,
}

/// The maximum number of instructions in a region.
const LARGEST: usize = 16_000;

impl CodeRegion {
    /// The block at an address.
    pub(crate) fn at(&self, address: u64) -> Option<usize> {
        self.by_address.get(&address).copied()
    }

    /// The flow graph, for the selection of counters.
    pub(crate) fn flow<G: Target>(&self, cache: &BlockCache<G>) -> FlowCounters {
        let flow_block = |(index, &id): (usize, &BlockId)| {
            let next = self.edges[index].iter().map(|edge| edge.to).collect();
            FlowBlock { is_entry: self.is_entry[index], next, weight: cache.block(id).execution_count }
        };
        FlowCounters::new(&self.blocks.iter().enumerate().map(flow_block).collect::<Vec<_>>())
    }
}

/// Finds the region that begins with `entry`. Code that ran less often than `least` is left out: it is
/// compiled when it runs often. Blocks for which the observer `must_report` is true are left out, too.
pub(crate) fn find<G: Target>(
    entry: BlockId,
    least: u32,
    must_report: &dyn Fn(&DecodedBlock<G>) -> bool,
    cache: &BlockCache<G>,
) -> CodeRegion {
    let mut blocks = vec![entry];
    let mut by_address = HashMap::from([(cache.block(entry).address, 0)]);
    let mut queue = VecDeque::from([entry]);
    let mut instructions = 0;
    while let Some(id) = queue.pop_front() {
        for address in G::exits(cache.block(id)).to {
            let next = cache.executed_at(address, least).filter(|&next| !must_report(cache.block(next)));
            let Some(next) = next.filter(|_| !by_address.contains_key(&address)) else { continue };
            instructions += cache.block(next).instructions.len();
            if instructions > LARGEST {
                break;
            }
            by_address.insert(address, blocks.len());
            blocks.push(next);
            queue.push_back(next);
        }
    }
    in_order(&blocks, &by_address, cache)
}

/// Brings the blocks into reverse postorder.
fn in_order<G: Target>(
    blocks: &[BlockId],
    by_address: &HashMap<u64, usize>,
    cache: &BlockCache<G>,
) -> CodeRegion {
    let edges: Vec<Vec<RegionEdge>> = blocks.iter().map(|&id| edges(cache.block(id), by_address)).collect();
    let mut seen = vec![false; blocks.len()];
    let mut order = Vec::with_capacity(blocks.len());
    let mut path = vec![(0, edges[0].clone())];
    seen[0] = true;
    while let Some((index, rest)) = path.last_mut() {
        match rest.pop() {
            Some(edge) if seen[edge.to] => {}
            Some(edge) => {
                seen[edge.to] = true;
                path.push((edge.to, edges[edge.to].clone()));
            }
            None => {
                order.push(*index);
                path.pop();
            }
        }
    }
    order.reverse();
    let mut position = vec![0; blocks.len()];
    order.iter().enumerate().for_each(|(new, &old)| position[old] = new);
    let renumbered = |&old: &usize| {
        edges[old].iter().map(|edge| RegionEdge { to: position[edge.to], ..*edge }).collect::<Vec<_>>()
    };
    let edges: Vec<Vec<RegionEdge>> = order.iter().map(renumbered).collect();
    let mut is_entry = vec![false; blocks.len()];
    is_entry[0] = true;
    edges.iter().flatten().filter(|edge| edge.is_open).for_each(|edge| is_entry[edge.to] = true);
    CodeRegion {
        blocks: order.iter().map(|&old| blocks[old]).collect(),
        edges,
        is_entry,
        by_address: by_address.iter().map(|(&address, &old)| (address, position[old])).collect(),
    }
}

fn edges<G: Target>(block: &DecodedBlock<G>, by_address: &HashMap<u64, usize>) -> Vec<RegionEdge> {
    let exits = G::exits(block);
    let to = |address| Some(RegionEdge { to: *by_address.get(&address)?, is_open: exits.is_open });
    exits.to.into_iter().filter_map(to).collect()
}
