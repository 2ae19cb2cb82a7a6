//! What is compiled together: the blocks that ran, reached from an entry without calls, and those of
//! small functions that they call.

use std::collections::{HashMap, HashSet, VecDeque};

use isa::{Flags, Op};
use trace::BlockId;

use crate::alpha::block::{Block, BlockCache};
use crate::alpha::meaning::pal;

/// A block in its place: that of a function which is inlined twice is there twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) id: BlockId,
    /// Which function's blocks it belongs to.
    pub(super) frame: usize,
    /// The frame of the function that is inlined in place of the call at the block's end.
    pub(super) inlined: Option<usize>,
}

/// One function: the region's own is the first, the others are inlined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Where it begins.
    pub(super) entry: u64,
    /// Who calls it, and the address to which it returns.
    pub(super) caller: Option<(usize, u64)>,
    depth: usize,
}

/// A way from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) to: usize,
    /// Between them other code runs.
    pub(super) through_call: bool,
}

/// Nodes, the entry first, and how control flows among them.
pub(super) struct Region {
    /// Each before what is behind it, but for loops.
    pub(super) nodes: Vec<Node>,
    pub(super) frames: Vec<Frame>,
    /// From each node.
    pub(super) edges: Vec<Vec<Edge>>,
    /// Whether it calls other code, though it may never have come back from there.
    pub(super) calls: bool,
    by_place: HashMap<(usize, u64), usize>,
}

/// Instructions in a region, at most.
const LARGEST: usize = 4000;
/// Instructions of a function that is inlined, at most.
const SMALL: usize = 40;
/// Functions inlined in one another, at most.
const DEEPEST: usize = 4;
/// Instructions that inlined functions add to a region, at most.
const INLINED: usize = 400;

impl Region {
    /// The node of a frame at an address.
    pub(super) fn node(&self, frame: usize, address: u64) -> Option<usize> {
        self.by_place.get(&(frame, address)).copied()
    }
}

/// Finds the region that begins with `entry`. Code that ran less often than `least` is left out: it is
/// compiled when it runs often; and what an observer `wants`.
pub(super) fn find(entry: BlockId, least: u32, wants: &dyn Fn(&Block) -> bool, cache: &BlockCache) -> Region {
    let root = Frame { entry: cache.block(entry).address, caller: None, depth: 0 };
    let mut finder = Finder {
        cache,
        least,
        wants,
        nodes: Vec::new(),
        frames: vec![root],
        by_place: HashMap::new(),
        queue: VecDeque::new(),
        instructions: 0,
        inlined: 0,
    };
    finder.add(0, entry);
    while let Some(index) = finder.queue.pop_front() {
        finder.follow(index);
    }
    finder.in_order()
}

struct Finder<'a> {
    cache: &'a BlockCache,
    /// Executions that make a block worth its compilation.
    least: u32,
    /// Blocks that must be left out.
    wants: &'a dyn Fn(&Block) -> bool,
    nodes: Vec<Node>,
    frames: Vec<Frame>,
    by_place: HashMap<(usize, u64), usize>,
    queue: VecDeque<usize>,
    instructions: usize,
    inlined: usize,
}

impl Finder<'_> {
    /// The block at an address, if it is worth its compilation.
    fn ran(&self, address: u64) -> Option<BlockId> {
        self.cache.ran(address, self.least).filter(|&id| !(self.wants)(self.cache.block(id)))
    }

    fn add(&mut self, frame: usize, id: BlockId) {
        let block = self.cache.block(id);
        self.instructions += block.steps.len();
        self.by_place.insert((frame, block.address), self.nodes.len());
        self.queue.push_back(self.nodes.len());
        self.nodes.push(Node { id, frame, inlined: None });
    }

    /// Adds what is behind a node.
    fn follow(&mut self, index: usize) {
        let Node { id, frame, .. } = self.nodes[index];
        if let Some(callee) = self.inlinable(index) {
            let caller = Some((frame, self.cache.block(id).end()));
            let depth = self.frames[frame].depth + 1;
            self.nodes[index].inlined = Some(self.frames.len());
            self.frames.push(Frame { entry: callee, caller, depth });
            self.reach(self.frames.len() - 1, callee);
        }
        for address in successors(self.cache.block(id)) {
            self.reach(frame, address);
        }
    }

    fn reach(&mut self, frame: usize, address: u64) {
        if self.by_place.contains_key(&(frame, address)) {
            return;
        }
        let Some(id) = self.ran(address) else { return };
        if self.instructions + self.cache.block(id).steps.len() <= LARGEST {
            self.add(frame, id);
        }
    }

    /// The function called at a node's end if it is small, and known.
    fn inlinable(&mut self, index: usize) -> Option<u64> {
        let Node { id, frame, .. } = self.nodes[index];
        let block = self.cache.block(id);
        let callee = callee(block)?;
        if self.frames[frame].depth == DEEPEST || self.instructions > LARGEST / 2 {
            return None;
        }
        // A function that calls itself is not inlined in itself.
        let mut outer = Some(frame);
        while let Some(around) = outer {
            if self.frames[around].entry == callee {
                return None;
            }
            outer = self.frames[around].caller.map(|(caller, _)| caller);
        }
        // It returns here.
        self.ran(block.end())?;
        let size = self.size(callee)?;
        if self.inlined + size > INLINED {
            return None;
        }
        self.inlined += size;
        Some(callee)
    }

    /// Instructions of a function; None if they are many or do what an inlined function must not do.
    fn size(&self, entry: u64) -> Option<usize> {
        let (mut seen, mut rest, mut size) = (HashSet::from([entry]), vec![entry], 0);
        let mut returns = false;
        while let Some(address) = rest.pop() {
            let Some(id) = self.ran(address) else {
                if address == entry {
                    return None;
                }
                continue;
            };
            let block = self.cache.block(id);
            size += block.steps.len();
            match last(block) {
                Some(Op::Ret) => returns = true,
                Some(Op::Jmp | Op::JsrCoroutine | Op::CallPal) => return None,
                _ => {}
            }
            if size > SMALL {
                return None;
            }
            rest.extend(successors(block).into_iter().filter(|&next| seen.insert(next)));
        }
        returns.then_some(size)
    }

    fn edges(&self, index: usize) -> Vec<Edge> {
        let Node { id, frame, inlined } = self.nodes[index];
        let block = self.cache.block(id);
        let at = |frame, address| self.by_place.get(&(frame, address)).copied();
        let mut edges = Vec::new();
        let mut to = |place: Option<usize>, through_call| {
            edges.extend(place.map(|to| Edge { to, through_call }));
        };
        if let Some(inner) = inlined {
            to(at(inner, self.frames[inner].entry), false);
        }
        if let (Some(Op::Ret), Some((caller, back))) = (last(block), self.frames[frame].caller) {
            to(at(caller, back), false);
        }
        // An inlined call to a fixed address is no call any more.
        if inlined.is_none() || last(block) == Some(Op::Jsr) {
            let through_call = self.calls(index);
            successors(block).into_iter().for_each(|address| to(at(frame, address), through_call));
        }
        edges
    }

    /// Whether other code is called at a node's end.
    fn calls(&self, index: usize) -> bool {
        let Node { id, inlined, .. } = self.nodes[index];
        let block = self.cache.block(id);
        match last(block) {
            Some(Op::Bsr) => inlined.is_none(),
            Some(Op::Jsr) => true,
            _ => pal_call(block) == Some(pal::CALLSYS),
        }
    }

    /// Brings the nodes into reverse postorder.
    fn in_order(self) -> Region {
        let edges: Vec<Vec<Edge>> = (0..self.nodes.len()).map(|index| self.edges(index)).collect();
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
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
        let mut place = vec![usize::MAX; self.nodes.len()];
        order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
        let renumbered = |&old: &usize| {
            edges[old].iter().map(|edge| Edge { to: place[edge.to], ..*edge }).collect::<Vec<_>>()
        };
        let calls = |&old: &usize| self.calls(old);
        let reached = self.by_place.iter().filter(|(_, old)| place[**old] != usize::MAX);
        Region {
            nodes: order.iter().map(|&old| self.nodes[old]).collect(),
            edges: order.iter().map(renumbered).collect(),
            calls: order.iter().any(calls),
            by_place: reached.map(|(&key, &old)| (key, place[old])).collect(),
            frames: self.frames,
        }
    }
}

/// The function called at the block's end, as far as it is known.
pub(super) fn callee(block: &Block) -> Option<u64> {
    let step = block.steps.last()?;
    match (step.op, &block.jumps[..]) {
        (Op::Bsr, _) => Some(step.immediate as u64),
        (Op::Jsr, &[known]) => Some(known),
        _ => None,
    }
}

fn last(block: &Block) -> Option<Op> {
    block.steps.last().map(|step| step.op)
}

/// The function of PALcode that is called at the block's end.
fn pal_call(block: &Block) -> Option<i64> {
    let last = block.steps.last().filter(|step| step.op == Op::CallPal)?;
    Some(last.immediate)
}

/// Where control may go from a block without leaving its function: behind a call to the place it
/// returns to.
fn successors(block: &Block) -> Vec<u64> {
    let target = block.steps.last().map_or(0, |step| step.immediate as u64);
    match last(block) {
        Some(Op::Br) => vec![target],
        Some(Op::Ret | Op::JsrCoroutine) | None => Vec::new(),
        Some(Op::CallPal) if !matches!(pal_call(block), Some(pal::CALLSYS | pal::RDUNIQ | pal::WRUNIQ)) => {
            Vec::new()
        }
        Some(Op::Jmp) => block.jumps.clone(),
        Some(op) if op.is(Flags::CONDITIONAL) => vec![block.end(), target],
        Some(_) => vec![block.end()],
    }
}
