//! Nodes with a part of the memory each: which operations on the interconnect keep them coherent
//! ([design](../../../../../../docs/design/multiprocessors.md)).

mod directory;
mod interconnect;

use std::collections::HashMap;

pub use self::directory::Directory;
use self::directory::{DirectoryEntry, DirectoryEntryState};
pub use self::interconnect::{Exchange, InterconnectOperation};
use super::line_numbers::{LineNumbers, bit, processors};
use crate::description::{Nodes, Placement};
use crate::memory::hierarchy::Tags;

/// Logarithm of the size of a page, all of which is in one node's memory: Alpha's.
const PAGE_SHIFT: u32 = 13;

/// The nodes of a machine: their far caches, and the directory.
#[derive(Debug)]
pub struct NodeMemory {
    directory: Directory,
    placement: Placement,
    fixed_home: u8,
    processors_of_node: u32,
    line_shift: u32,
    far_caches: Vec<Tags>,
    numbers: LineNumbers,
    lines: Vec<NodeLine>,
    /// The home nodes of pages.
    homes: HashMap<u64, u8>,
    now: u64,
    counts: NodeCounts,
}

/// Counts of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Operations on the interconnect by the processor whose access needed them, and by [`InterconnectOperation`].
    pub by_processor: Vec<[u64; 7]>,
    /// Requests by node that found a line of another node's memory in the far cache.
    pub far_hits: Vec<u64>,
    /// Those that did not.
    pub far_misses: Vec<u64>,
    /// Requests by node for lines of its own memory.
    pub local: Vec<u64>,
    /// Operations on lines of a node's memory.
    pub by_home: Vec<u64>,
}

impl NodeCounts {
    fn new(processors: usize, nodes: usize) -> NodeCounts {
        NodeCounts {
            by_processor: vec![[0; 7]; processors],
            far_hits: vec![0; nodes],
            far_misses: vec![0; nodes],
            local: vec![0; nodes],
            by_home: vec![0; nodes],
        }
    }

    /// Operations by [`InterconnectOperation`].
    pub fn by_operation(&self) -> [u64; 7] {
        let mut sums = [0; 7];
        for counts in &self.by_processor {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sums
    }

    /// All operations on the interconnect.
    pub fn operations(&self) -> u64 {
        self.by_operation().iter().sum()
    }
}

/// A line between nodes.
#[derive(Clone, Debug)]
struct NodeLine {
    home: u8,
    /// Its copies in other nodes.
    copies: DirectoryEntryState,
}

/// The changes because a node needed a line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Obtained {
    pub exchange: Exchange,
    /// No other node has a copy: a processor may store without asking.
    pub is_alone: bool,
    /// The line that the node's far cache evicted.
    pub evicted: Option<u64>,
}

impl NodeMemory {
    /// The nodes of a number of processors, with empty far caches.
    pub(super) fn new(nodes: &Nodes, processors: usize) -> NodeMemory {
        let count = processors.div_ceil(nodes.processors as usize);
        let far = &nodes.far_cache;
        NodeMemory {
            directory: nodes.directory,
            placement: nodes.placement,
            fixed_home: (nodes.home as usize % count) as u8,
            processors_of_node: nodes.processors,
            line_shift: far.line.ilog2(),
            far_caches: (0..count).map(|_| Tags::new(far.sets(), far.ways, far.replacement, false)).collect(),
            numbers: LineNumbers::new(),
            lines: Vec::new(),
            homes: HashMap::new(),
            now: 0,
            counts: NodeCounts::new(processors, count),
        }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.far_caches.len()
    }

    /// The node of a processor.
    pub fn node_of(&self, processor: u8) -> u8 {
        (u32::from(processor) / self.processors_of_node) as u8
    }

    /// The processors of a node, as a mask.
    pub(super) fn processors_of(&self, node: u8) -> u64 {
        let width = self.processors_of_node;
        let first = u32::from(node) * width;
        (u64::MAX >> (64 - width)) << first
    }

    /// Logarithm of the size of a line.
    pub(super) fn line_shift(&self) -> u32 {
        self.line_shift
    }

    /// The counts.
    pub fn counts(&self) -> &NodeCounts {
        &self.counts
    }

    pub(super) fn reset_counts(&mut self) {
        self.counts = NodeCounts::new(self.counts.by_processor.len(), self.nodes());
    }

    /// The number of a line, whose page has a home node from its first access on.
    fn number(&mut self, node: u8, line: u64) -> usize {
        let number = self.numbers.number(line) as usize;
        if self.lines.len() == number {
            let next = match self.placement {
                Placement::FirstTouch => node,
                Placement::RoundRobin => (self.homes.len() % self.nodes()) as u8,
                Placement::Fixed => self.fixed_home,
            };
            let page = line >> (PAGE_SHIFT - self.line_shift);
            let home = *self.homes.entry(page).or_insert(next);
            let copies = DirectoryEntryState::new(self.directory);
            self.lines.push(NodeLine { home, copies });
        }
        number
    }

    /// A processor needs a line that its node has, or gets from another one. `others_have_copies` says whether
    /// processors of other nodes have copies in their private caches.
    pub(super) fn obtain(
        &mut self,
        processor: u8,
        line: u64,
        is_store: bool,
        others_have_copies: bool,
    ) -> Obtained {
        let node = self.node_of(processor);
        let number = self.number(node, line);
        let NodeLine { home, copies } = &mut self.lines[number];
        let (home, remote) = (*home, (node != *home).then_some(node));
        self.now += 1;
        let far_cache = &mut self.far_caches[usize::from(node)];
        let has_copy = match remote {
            Some(_) => far_cache.touch(line, false, self.now),
            None => copies.is_memory_valid(),
        };
        let mut exchange = Exchange { home, ..Exchange::default() };
        if is_store && !copies.is_alone(remote) {
            let lost = copies.write(remote, has_copy, &mut exchange);
            for other in processors(lost) {
                self.far_caches[usize::from(other)].remove(line);
            }
        } else if !is_store && !has_copy {
            copies.read(remote, others_have_copies, &mut exchange);
        }
        if is_store {
            copies.store();
        }
        let is_alone = copies.is_alone(remote);
        self.count_request(node, remote.is_some(), has_copy);
        self.counts.by_home[usize::from(home)] += exchange.count();
        let mut evicted = None;
        if remote.is_some() && !has_copy {
            evicted = self.fill(node, line, &mut exchange);
        }
        let sums = &mut self.counts.by_processor[usize::from(processor)];
        sums.iter_mut().zip(exchange.operations).for_each(|(sum, count)| *sum += u64::from(count));
        Obtained { exchange, is_alone, evicted }
    }

    fn count_request(&mut self, node: u8, is_remote: bool, has_copy: bool) {
        let counts = match (is_remote, has_copy) {
            (true, true) => &mut self.counts.far_hits,
            (true, false) => &mut self.counts.far_misses,
            (false, _) => &mut self.counts.local,
        };
        counts[usize::from(node)] += 1;
    }

    /// A line comes into a node's far cache. Returns the one that it evicts.
    fn fill(&mut self, node: u8, line: u64, exchange: &mut Exchange) -> Option<u64> {
        let evicted = self.far_caches[usize::from(node)].fill(line, false, self.now)?.key;
        let number = self.number(node, evicted);
        let NodeLine { home, copies } = &mut self.lines[number];
        let before = exchange.count();
        copies.evict(node, exchange);
        self.counts.by_home[usize::from(*home)] += exchange.count() - before;
        Some(evicted)
    }

    /// The nodes with a copy of the line at an address in their far caches, in the order of the list, if the directory has lists;
    /// and whether memory has the line as it is.
    pub fn copies(&self, address: u64) -> (Vec<u8>, bool) {
        let line = address >> self.line_shift;
        let Some(number) = self.numbers.find(line) else { return (Vec::new(), true) };
        let copies = &self.lines[number as usize].copies;
        let nodes = copies.list().map_or_else(|| self.holders(line).collect(), <[u8]>::to_vec);
        (nodes, copies.is_memory_valid())
    }

    /// The nodes whose far caches have a line.
    fn holders(&self, line: u64) -> impl Iterator<Item = u8> {
        (0..).zip(&self.far_caches).filter(move |(_, cache)| cache.find(line).is_some()).map(|(node, _)| node)
    }

    /// Checks what the directory and the far caches know of a line: which processors have copies, and which one may store.
    pub(super) fn check(&self, line: u64, holders: u64, writer: Option<u8>) -> Result<(), String> {
        let Some(number) = self.numbers.find(line) else { return Ok(()) };
        let NodeLine { home, copies } = &self.lines[number as usize];
        let cached = self.holders(line).fold(0, |mask, node| mask | bit(node));
        let nodes = processors(holders).fold(0, |mask, processor| mask | bit(self.node_of(processor)));
        let is_included = nodes & !bit(*home) & !cached == 0;
        let is_known = cached & !copies.sharers() == 0;
        let is_exact = !copies.is_exact() || cached == copies.sharers();
        let may_store = writer.is_none_or(|writer| {
            let node = self.node_of(writer);
            copies.is_alone((node != *home).then_some(node))
        });
        match is_included && is_known && is_exact && may_store {
            true => Ok(()),
            false => Err(format!("line {line:#x} of node {home}, cached by {cached:#b}: {copies:?}")),
        }
    }
}
