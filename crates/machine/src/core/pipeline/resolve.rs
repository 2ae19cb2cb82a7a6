//! Resolves the memory requests of blocks. Responses depend on the order of requests only, not on their
//! times, so that many blocks are resolved before the first of them is issued.

use events::Block;
use events::record::Event;

use super::memory::{MemorySystem, ServedBy};
use crate::memory::block_template::BlockTemplates;

/// A request that L1 did not serve at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct L1Miss {
    /// Its number among the block's instruction lines, or among its accesses.
    pub number: u32,
    pub served: ServedBy,
}

impl L1Miss {
    /// The miss of the request with this number, by where it was served; none for an L1 hit.
    #[inline(always)]
    fn new(number: u32, served: ServedBy) -> Option<L1Miss> {
        (served != ServedBy::default()).then_some(L1Miss { number, served })
    }
}

/// Records with the responses of memory.
#[derive(Default)]
pub(crate) struct ResolvedBatch {
    pub records: Vec<u64>,
    /// Per block, the number of instruction lines that missed, and of accesses.
    counts: Vec<[u32; 2]>,
    misses: Vec<L1Miss>,
}

impl ResolvedBatch {
    /// Empties the batch.
    pub fn clear(&mut self) {
        self.records.clear();
        self.counts.clear();
        self.misses.clear();
    }

    /// The misses of each block: of instruction lines, and of accesses.
    pub fn misses(&self) -> impl Iterator<Item = [&[L1Miss]; 2]> {
        let mut cold = &self.misses[..];
        self.counts.iter().map(move |counts| {
            counts.map(|count| {
                let (own, others) = cold.split_at(count as usize);
                cold = others;
                own
            })
        })
    }
}

/// The number of no line.
const NOWHERE: u64 = u64::MAX;

/// The memory system, and the requests of blocks.
pub(crate) struct Resolver<M> {
    pub memory: M,
    templates: BlockTemplates,
    line_shift: u32,
    process: u32,
    /// The line of the last instruction.
    line: u64,
}

impl<M: MemorySystem> Resolver<M> {
    /// For a memory system with instruction lines of this number of bytes.
    pub fn new(memory: M, line: u64) -> Resolver<M> {
        Resolver {
            memory,
            templates: BlockTemplates::new(line),
            line_shift: line.ilog2(),
            process: 0,
            line: NOWHERE,
        }
    }

    /// Defines a block that can be executed from now on.
    pub fn define(&mut self, block: &Block) {
        self.templates.define(block);
    }

    /// Switches to a process, whose records follow.
    pub fn enter(&mut self, process: u32) {
        if process != self.process {
            self.process = process;
            self.memory.enter(process);
            self.line = NOWHERE;
        }
    }

    /// Executions of a block that were resolved.
    pub fn executions(&self, block: u32) -> u64 {
        self.templates.get(block).map_or(0, |template| template.executions.get())
    }

    /// Adds the executions of another one with the same blocks.
    pub fn add_executions(&self, other: &Resolver<M>) {
        self.templates.add_executions(&other.templates);
    }

    /// Resets the counts.
    pub fn reset_counts(&mut self) {
        self.templates.reset_executions();
        self.memory.reset_counts();
    }

    /// Resolves the first of these records and appends them to a batch, until that has `most` words or a few
    /// more. Returns how many words were taken.
    pub fn resolve(&mut self, records: &[u64], most: usize, batch: &mut ResolvedBatch) -> usize {
        let most = records.len().min(most.saturating_sub(batch.records.len()));
        let mut at = 0;
        while at < most {
            match Event::new(records[at]) {
                Event::Block(block) => {
                    let Some(addresses) = self.addresses(block, &records[at + 1..]) else { break };
                    self.resolve_block(block, addresses, batch);
                    at += 1 + addresses.len();
                }
                Event::Mark(_) => at += 1,
                Event::Access(_) => break,
            }
        }
        batch.records.extend_from_slice(&records[..at]);
        // Records that contradict the blocks are skipped.
        if at == 0 { records.len() } else { at }
    }

    /// The addresses of a block's accesses, if its record is complete.
    #[inline(always)]
    fn addresses<'a>(&self, block: u32, records: &'a [u64]) -> Option<&'a [u64]> {
        records.get(..self.templates.get(block)?.accesses as usize)
    }

    /// Resolves one execution of a block.
    #[inline(always)]
    fn resolve_block(&mut self, block: u32, addresses: &[u64], batch: &mut ResolvedBatch) {
        let Resolver { memory, templates, line_shift, line, .. } = self;
        let Some(template) = templates.get(block) else { return };
        template.executions.update(|times| times + 1);
        let ResolvedBatch { counts, misses, .. } = batch;
        let first = misses.len();
        for number in 0..template.lines {
            let address = templates.line_address(template, number);
            let before = std::mem::replace(line, address >> *line_shift);
            if before != *line {
                misses.extend(memory.fetch(address).and_then(|served| L1Miss::new(number, served)));
            }
        }
        let lines = misses.len() - first;
        for (number, (&access, &address)) in (0..).zip(templates.accesses(template).iter().zip(addresses)) {
            let served = memory.access(address, access.last_byte() as u8 + 1, access.is_store());
            misses.extend(served.and_then(|served| L1Miss::new(number, served)));
        }
        let accesses = misses.len() - first - lines;
        counts.push([lines, accesses].map(|count| count as u32));
    }
}
