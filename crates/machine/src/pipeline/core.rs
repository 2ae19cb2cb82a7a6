//! A pipeline at work on blocks.
//!
//! Memory is asked for all that a block needs before the block is issued. What most blocks find is near, and their
//! operands are ready: then the schedule of an earlier time holds (`schedule.rs`).

use std::iter;

use isa::Cpu;

use super::cycles::Cycles;
use super::description::Pipeline;
use super::front::End;
use super::issue::{Issue, SiteCycles};
use super::memory::{MemorySystem, Served, Timing};
use super::piece::Piece;
use crate::predictor::Predicting;

/// A block that can be executed.
struct Block {
    whole: Piece,
    /// What is in each line, if there are several.
    lines: Box<[Piece]>,
    end: End,
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
        let Issue { rules, steps, sites, front, .. } = &mut self.issue;
        let first = steps.len();
        rules.decode(address, words, self.cpu, steps);
        sites.resize(steps.len(), SiteCycles::default());
        let piece = |places| Piece::new(address, first, &steps[first..], places);
        let behind = front.lines_behind(address, words.len());
        let behind = behind.map(|line| (line.wrapping_sub(address) / 4) as usize);
        let bounds: Vec<usize> = iter::once(0).chain(behind).chain([words.len()]).collect();
        let lines = bounds.windows(2).map(|bounds| piece(bounds[0]..bounds[1]));
        self.blocks.push(Block {
            whole: piece(0..words.len()),
            lines: if bounds.len() > 2 { lines.collect() } else { Box::default() },
            end: End::of(address, words),
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
        let first = block.whole.first;
        let mut sites = self.issue.sites[first..][..block.whole.length].to_vec();
        for piece in block.lines.iter().chain([&block.whole]) {
            let own = &mut sites[piece.first - first..];
            piece.schedules.iter().for_each(|schedule| schedule.add_sites(own));
        }
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
        let Block { whole, lines, end } = &mut self.blocks[block as usize];
        let issue = &mut self.issue;
        if whole.length == 0 {
            return;
        }
        issue.front.resolve(whole.address, issue.board.last);
        let is_near = ask(&mut self.memory, whole, issue, addresses);
        if issue.front.begins_group(whole.address) {
            issue.begin_group(whole.address, whole.first);
        }
        if !(is_near && issue.apply_one_of(whole, addresses)) {
            match lines.split_first_mut() {
                None => issue.execute_all(whole, addresses),
                Some((first, others)) => {
                    issue.execute_piece(first, addresses);
                    for piece in others {
                        issue.begin_group(piece.address, piece.first);
                        issue.execute_piece(piece, addresses);
                    }
                }
            }
        }
        issue.front.end(*end, whole.address.wrapping_add(4 * whole.length as u64));
    }
}

impl Issue {
    /// Issues what is in a line that has arrived.
    fn execute_piece(&mut self, piece: &mut Piece, addresses: &[u64]) {
        if !self.apply_one_of(piece, addresses) {
            self.execute_all(piece, addresses);
        }
    }

    /// Issues instructions one by one, the first of which has arrived.
    fn execute_all(&mut self, piece: &Piece, addresses: &[u64]) {
        self.served.go_to(piece.first_access);
        let mut rest = piece.own(addresses).iter().copied();
        for place in 0..piece.length {
            let address = piece.address.wrapping_add(4 * place as u64);
            self.execute(piece.first + place, address, place, &mut rest);
        }
    }
}

/// Asks memory for a block's instructions and data. Says whether its lines but the first were near.
#[inline(always)]
fn ask<M: MemorySystem>(memory: &mut M, block: &Piece, issue: &mut Issue, addresses: &[u64]) -> bool {
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
        let served = if is_store { memory.store(address, bytes) } else { memory.load(address, bytes) };
        issue.served.push(served);
    }
    is_near
}
