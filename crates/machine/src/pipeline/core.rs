//! A pipeline at work on blocks.
//!
//! Memory is asked for all that a block needs before the block is issued. What most blocks find is near, and their
//! operands are ready: then the schedule of an earlier time holds (`schedule.rs`).

use isa::Cpu;

use super::cycles::Cycles;
use super::description::Pipeline;
use super::front::End;
use super::issue::{Issue, SiteCycles};
use super::memory::{MemorySystem, Served, Timing};
use super::rules::{EMULATED, LOAD, SPECIAL, STORE};
use super::schedule::Schedule;
use crate::predictor::Predicting;

/// A block that can be executed.
pub(super) struct Block {
    pub address: u64,
    /// Where its steps are.
    pub first: usize,
    pub length: usize,
    end: End,
    /// Bytes of each access, and whether it is a store.
    pub accesses: Box<[(u8, bool)]>,
    /// Nothing in it has rules that schedules do not know.
    is_plain: bool,
    pub schedules: Vec<Schedule>,
}

/// A pipeline at work.
pub(crate) struct Core<M> {
    issue: Issue,
    cpu: Option<Cpu>,
    pub memory: M,
    blocks: Vec<Block>,
}

impl<M: MemorySystem> Core<M> {
    /// A pipeline in which nothing was executed. An instruction that `cpu` has not costs so many cycles.
    pub fn new(
        pipeline: &Pipeline,
        predictor: Predicting,
        timing: &Timing,
        memory: M,
        cpu: Option<Cpu>,
        emulation: u64,
    ) -> Core<M> {
        Core { issue: Issue::new(pipeline, predictor, timing, emulation), cpu, memory, blocks: Vec::new() }
    }

    /// A block that can be executed from now on.
    pub fn define(&mut self, address: u64, words: &[u32]) {
        let Issue { rules, steps, sites, .. } = &mut self.issue;
        let first = steps.len();
        rules.decode(address, words, self.cpu, steps);
        sites.resize(steps.len(), SiteCycles::default());
        let accesses = steps[first..].iter().filter(|step| step.flags & (LOAD | STORE) != 0);
        self.blocks.push(Block {
            address,
            first,
            length: words.len(),
            end: End::of(address, words),
            accesses: accesses.map(|step| (step.bytes, step.flags & STORE != 0)).collect(),
            is_plain: steps[first..].iter().all(|step| step.flags & (SPECIAL | EMULATED) == 0),
            schedules: Vec::new(),
        });
    }

    /// The process whose blocks are executed from now on.
    pub fn enter(&mut self, space: u32) {
        if space != self.issue.board.space {
            self.issue.board.space = space;
            self.memory.enter(space);
            self.issue.front.forget_line();
            self.issue.front.divert();
        }
    }

    /// Control goes on elsewhere than the last instruction says.
    pub fn divert(&mut self) {
        self.issue.front.divert();
    }

    /// Cycles but those of the last cycle, which may not be over.
    pub fn cycles(&self) -> &Cycles {
        &self.issue.board.cycles
    }

    /// Cycles so far, all of them.
    pub fn all_cycles(&self) -> Cycles {
        let board = &self.issue.board;
        let mut cycles = board.cycles.clone();
        cycles.0[board.open] += u64::from(board.open > 0);
        cycles
    }

    /// The cycles of a block's instructions.
    pub fn sites(&self, block: usize) -> Vec<SiteCycles> {
        let Some(block) = self.blocks.get(block) else { return Vec::new() };
        let mut sites = self.issue.sites[block.first..][..block.length].to_vec();
        block.schedules.iter().for_each(|schedule| schedule.add_sites(&mut sites));
        sites
    }

    /// Instructions that were emulated, and those that were issued in vain.
    pub fn emulated_and_replayed(&self) -> (u64, u64) {
        (self.issue.board.emulated, self.issue.board.replays)
    }

    /// The branch predictor.
    pub fn predictor(&self) -> &Predicting {
        &self.issue.front.predictor
    }

    /// A block was executed.
    #[inline]
    pub fn execute(&mut self, block: u32, addresses: &[u64]) {
        let block = &mut self.blocks[block as usize];
        let issue = &mut self.issue;
        if block.length == 0 {
            return;
        }
        issue.front.resolve(block.address, issue.board.last);
        let is_near = ask(&mut self.memory, block, issue, addresses);
        if issue.front.begins_group(block.address) {
            issue.begin_group(block.address, block.first);
        }
        let is_done = is_near && block.is_plain && issue.apply_one_of(block, addresses);
        if !is_done {
            let mut rest = addresses.iter().copied();
            for place in 0..block.length {
                let address = block.address.wrapping_add(4 * place as u64);
                issue.execute(block.first + place, address, place, &mut rest);
            }
        }
        issue.front.end(block.end, block.address.wrapping_add(4 * block.length as u64));
    }
}

/// Asks memory for a block's instructions and data. Says whether they were near, but for its first line and for
/// where stores go, which nothing in the block waits for.
#[inline(always)]
fn ask<M: MemorySystem>(memory: &mut M, block: &Block, issue: &mut Issue, addresses: &[u64]) -> bool {
    let mut is_near = true;
    issue.fetched.clear();
    issue.served.clear();
    if issue.front.is_new_line(block.address) {
        issue.fetched.push(memory.fetch(block.address));
    }
    for address in issue.front.lines_behind(block.address, block.length) {
        let served = memory.fetch(address);
        is_near &= served == Served::default();
        issue.fetched.push(served);
    }
    for (&address, &(bytes, is_store)) in addresses.iter().zip(&block.accesses) {
        let served = if is_store {
            let served = memory.store(address, bytes);
            is_near &= served.translation == 0;
            served
        } else {
            let served = memory.load(address, bytes);
            is_near &= served == Served::default();
            served
        };
        issue.served.push(served);
    }
    is_near
}
