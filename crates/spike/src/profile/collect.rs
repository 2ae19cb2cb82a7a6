//! Counts blocks and edges of an execution.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use events::record::{Entries, Entry, Mark, RecordShape};
use events::{Block, BlockId, Consumer, MappedImage, Thread};
use isa::Alpha;
use serde::{Deserialize, Serialize};

use super::IndirectCall;
use crate::program::{CodeExit, ExternalCall, LENGTH, Program};

/// A consumer of an execution, of a running program or of a trace, that counts blocks and successions of blocks.
#[derive(Debug, Default)]
pub struct EdgeCounter {
    counts: EdgeCounts,
    shapes: Vec<RecordShape>,
    /// The block that each thread executed last.
    last: HashMap<Thread, Option<BlockId>>,
}

/// How often blocks, and one after another, were executed, by one or several processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EdgeCounts {
    /// A file, and the distance of run-time from link-time addresses.
    images: Vec<(PathBuf, u64)>,
    blocks: Vec<CountedBlock>,
}

/// A block of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CountedBlock {
    address: u64,
    instructions: usize,
    image: Option<u32>,
    executions: u64,
    /// The blocks that were executed next, and how often; the last one first.
    next: Vec<(BlockId, u64)>,
}

impl Consumer for EdgeCounter {
    fn map(&mut self, image: &MappedImage) {
        self.counts.images.push((image.path.clone(), image.bias));
    }

    fn define(&mut self, block: &Block) {
        self.shapes.push(RecordShape::new(&Alpha, &block.words, false));
        let (address, image, instructions) = (block.address, block.image, block.words.len());
        let block = CountedBlock { address, instructions, image, executions: 0, next: Vec::new() };
        self.counts.blocks.push(block);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let mut last = self.last.get(&thread).copied().flatten();
        let blocks = &mut self.counts.blocks;
        for entry in Entries::new(records, &self.shapes) {
            match entry {
                Entry::Execution(execution) => {
                    let block = execution.block;
                    blocks[block as usize].executions += 1;
                    if let Some(last) = last {
                        count(&mut blocks[last as usize].next, block);
                    }
                    last = Some(block);
                }
                Entry::Mark(Mark::Gap | Mark::Discontinuity) => last = None,
                Entry::Mark(_) => {}
            }
        }
        self.last.insert(thread, last);
    }
}

fn count(next: &mut Vec<(BlockId, u64)>, block: BlockId) {
    match next.iter().position(|one| one.0 == block) {
        Some(0) => next[0].1 += 1,
        Some(at) => {
            next[at].1 += 1;
            next.swap(0, at);
        }
        None => {
            next.push((block, 1));
            let last = next.len() - 1;
            next.swap(0, last);
        }
    }
}

impl EdgeCounter {
    /// The counts.
    pub fn into_counts(self) -> EdgeCounts {
        self.counts
    }
}

impl EdgeCounts {
    /// Without the blocks that were not executed: a forked process has those of its parent.
    pub fn executed(self) -> EdgeCounts {
        let mut numbers = vec![BlockId::MAX; self.blocks.len()];
        let executed = self.blocks.iter().zip(&mut numbers).filter(|(block, _)| block.executions > 0);
        executed.zip(0..).for_each(|((_, number), next)| *number = next);
        let mut blocks = self.blocks;
        blocks.retain(|block| block.executions > 0);
        let next = blocks.iter_mut().flat_map(|block| &mut block.next);
        next.for_each(|next| next.0 = numbers[next.0 as usize]);
        EdgeCounts { blocks, ..self }
    }

    /// Adds the counts of another process, whose images may be at other addresses.
    pub fn add(&mut self, other: EdgeCounts) {
        let (images, blocks) = (self.images.len() as u32, self.blocks.len() as BlockId);
        self.images.extend(other.images);
        self.blocks.extend(other.blocks.into_iter().map(|block| CountedBlock {
            image: block.image.map(|image| image + images),
            next: block.next.into_iter().map(|(next, times)| (next + blocks, times)).collect(),
            ..block
        }));
    }

    /// The images of which code was executed.
    pub fn images(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for block in self.blocks.iter().filter(|block| block.executions > 0) {
            if let Some((path, _)) = block.image.and_then(|image| self.images.get(image as usize))
                && !paths.contains(path)
            {
                paths.push(path.clone());
            }
        }
        paths
    }

    /// Gives the blocks of a program, the image at `path`, their counts. Returns the indirect calls.
    pub fn apply(&self, program: &mut Program, path: &Path) -> Vec<IndirectCall> {
        let executions = self.instruction_counts(program, path);
        for block in &mut program.blocks {
            let branch = match &block.exit {
                CodeExit::Branch { branch, .. } | CodeExit::Conditional { branch, .. } => Some(branch.origin),
                _ => None,
            };
            let first = block.instructions.first().map(|first| first.origin).or(branch);
            block.count = first.and_then(|first| executions.get(first as usize)).copied().unwrap_or(0);
        }
        self.apply_edges(program, path)
    }

    /// The image of a block, if it is this one: the number of its first instruction in the program.
    fn index(&self, program: &Program, path: &Path, block: &CountedBlock, address: u64) -> Option<u32> {
        let (_, bias) = self.images.get(block.image? as usize).filter(|image| image.0 == path)?;
        program.code.index(address.wrapping_sub(*bias))
    }

    /// How often each instruction was executed.
    fn instruction_counts(&self, program: &Program, path: &Path) -> Vec<u64> {
        let length = program.code.words.len();
        let mut changes = vec![0u64; length + 1];
        for block in &self.blocks {
            let executions = block.executions;
            let Some(first) = self.index(program, path, block, block.address) else { continue };
            let end = (first as usize + block.instructions).min(length);
            changes[first as usize] = changes[first as usize].wrapping_add(executions);
            changes[end] = changes[end].wrapping_sub(executions);
        }
        changes
            .iter()
            .scan(0u64, |sum, change| {
                *sum = sum.wrapping_add(*change);
                Some(*sum)
            })
            .collect()
    }

    fn apply_edges(&self, program: &mut Program, path: &Path) -> Vec<IndirectCall> {
        let mut calls = Vec::new();
        let mut external: BTreeMap<(u32, u16), u64> = BTreeMap::new();
        let ends = block_ends(program);
        for block in &self.blocks {
            let last = block.address.wrapping_add(LENGTH * (block.instructions as u64).saturating_sub(1));
            let Some(last) = self.index(program, path, block, last) else { continue };
            let Some(from) = ends[last as usize] else { continue };
            for &(next, times) in &block.next {
                let next = &self.blocks[next as usize];
                let to = self.index(program, path, next, next.address);
                if to.is_none() && program.blocks[from as usize].jump().is_some() {
                    *external.entry((from, next.address as u16)).or_default() += times;
                }
                let Some(to) = to.and_then(|to| program.code.block_at[to as usize]) else { continue };
                let procedure = program.blocks[to as usize].procedure;
                let source = &mut program.blocks[from as usize];
                let is_indirect =
                    source.call().is_some_and(|call| isa::decode_op(call.word) == Some(isa::Op::Jsr));
                match &mut source.exit {
                    CodeExit::Conditional { taken, count, .. } if taken.block() == Some(to) => {
                        *count += times
                    }
                    CodeExit::Jump { targets, counts } => {
                        if let Some(at) = targets.iter().position(|&target| target == to) {
                            counts[at] += times;
                        }
                    }
                    _ if is_indirect => calls.push(IndirectCall { block: from, procedure, count: times }),
                    _ => {}
                }
            }
        }
        let external = external.into_iter().map(|((block, low), count)| ExternalCall { block, low, count });
        program.external_calls = external.collect();
        merge(calls)
    }
}

/// The block that ends with each instruction.
fn block_ends(program: &Program) -> Vec<Option<u32>> {
    let mut ends = vec![None; program.code.words.len()];
    for (block, number) in program.blocks.iter().zip(0..) {
        let last = match &block.exit {
            CodeExit::Branch { branch, .. } | CodeExit::Conditional { branch, .. } => Some(branch),
            _ => block.instructions.last(),
        };
        if let Some(end) = last.and_then(|last| ends.get_mut(last.origin as usize)) {
            *end = Some(number);
        }
    }
    ends
}

/// One entry for each block and procedure.
fn merge(mut calls: Vec<IndirectCall>) -> Vec<IndirectCall> {
    calls.sort_by_key(|call| (call.block, call.procedure));
    calls.dedup_by(|next, call| {
        let is_same = (call.block, call.procedure) == (next.block, next.procedure);
        if is_same {
            call.count += next.count;
        }
        is_same
    });
    calls
}
