//! A pipeline at work on blocks.
//!
//! Memory was asked for all that a block needs before the block is issued. Where the block begins as it did before,
//! and hears the same of memory, it takes the same course (`memo.rs`); else its instructions are issued one by one.

use std::iter;

use isa::Cpu;

use super::accesses::Accesses;
use super::ask::Far;
use super::course::Sum;
use super::cycles::{Cause, Cycles};
use super::description::Pipeline;
use super::front::{End, Entry};
use super::issue::{Issue, SiteCycles};
use super::memo::{Beginning, Memo};
use super::memory::{Served, Timing};
use super::piece::Piece;
use super::rules::STORE;
use crate::predictor::Predicting;

/// A block that can be executed.
struct Block {
    whole: Piece,
    /// What is in each line but the last, and all that is behind it.
    lines: Box<[[Piece; 2]]>,
    /// Where its accesses are.
    first_access: u32,
    end: End,
    traps: bool,
}

/// A pipeline at work.
pub(crate) struct Core {
    pipeline: Remembering,
    cpu: Option<Cpu>,
    blocks: Vec<Block>,
    /// Whether they are stores, of all blocks.
    are_stores: Vec<bool>,
    /// Pieces so far.
    pieces: u32,
    /// A piece without instructions: its transitions are waits.
    nothing: Piece,
}

/// A pipeline that remembers what it did.
struct Remembering {
    issue: Issue,
    memo: Memo,
    sum: Sum,
    /// Cycles of the instructions, but those that pieces and transitions have.
    sites: Vec<SiteCycles>,
}

impl Core {
    /// A pipeline in which nothing was executed. An instruction that `cpu` has not costs so many cycles.
    pub fn new(
        pipeline: &Pipeline,
        predictor: Predicting,
        timing: &Timing,
        cpu: Option<Cpu>,
        emulation: u64,
    ) -> Core {
        let issue = Issue::new(pipeline, predictor, timing, emulation);
        let memo = Memo::new(issue.state().0);
        Core {
            pipeline: Remembering { issue, memo, sum: Sum::default(), sites: Vec::new() },
            cpu,
            blocks: Vec::new(),
            are_stores: Vec::new(),
            pieces: 0,
            nothing: Piece::new(0, 0, 0, &[], 0..0),
        }
    }

    /// A block that can be executed from now on.
    pub fn define(&mut self, address: u64, words: &[u32]) {
        let Remembering { issue, sites, .. } = &mut self.pipeline;
        let Issue { rules, steps, front, .. } = issue;
        let first = steps.len();
        rules.decode(address, words, self.cpu, steps);
        sites.resize(steps.len(), SiteCycles::default());
        let own = &steps[first..];
        let mut piece = |places| {
            self.pieces += 1;
            Piece::new(self.pieces, address, first, own, places)
        };
        let behind = front.lines_behind(address, words.len());
        let behind = behind.map(|line| (line.wrapping_sub(address) / 4) as usize);
        let bounds: Vec<usize> = iter::once(0).chain(behind).collect();
        let end = words.len();
        let whole = piece(0..end);
        let lines = bounds.windows(2).map(|line| [piece(line[0]..line[1]), piece(line[1]..end)]);
        let accesses = own.iter().filter(|step| step.accesses());
        self.blocks.push(Block {
            whole,
            lines: lines.collect(),
            first_access: self.are_stores.len() as u32,
            end: End::of(address, words),
            traps: own.last().is_some_and(|step| step.traps()),
        });
        self.are_stores.extend(accesses.map(|step| step.flags & STORE != 0));
    }

    /// The process whose blocks are executed from now on.
    pub fn enter(&mut self, space: u32) {
        let issue = &mut self.pipeline.issue;
        if space != issue.space {
            issue.space = space;
            issue.front.forget_stream();
            issue.front.divert();
        }
    }

    /// Control goes on elsewhere than the last instruction says.
    pub fn divert(&mut self) {
        self.pipeline.issue.front.divert();
    }

    /// Cycles but those of the last cycle, which may not be over.
    pub fn cycles(&self) -> Cycles {
        self.pipeline.sum.cycles()
    }

    /// All cycles so far, and instructions that were emulated, or issued in vain.
    pub fn sum(&self) -> Sum {
        let mut sum = self.pipeline.sum.clone();
        let open = self.pipeline.memo.open();
        sum.spend(open, u64::from(open > 0));
        sum
    }

    /// The cycles of a block's instructions.
    pub fn sites(&self, block: usize) -> Vec<SiteCycles> {
        let Some(block) = self.blocks.get(block) else { return Vec::new() };
        let mut sites = self.pipeline.sites[block.whole.steps()].to_vec();
        for piece in block.pieces() {
            let own = &mut sites[(piece.first - block.whole.first) as usize..];
            own.iter_mut().take(1).for_each(|first| first.dry += piece.dry);
            self.pipeline.memo.add_sites(piece.newest, own);
        }
        sites
    }

    /// The branch predictor.
    pub fn predictor(&self) -> &Predicting {
        &self.pipeline.issue.front.predictor
    }

    /// How many accesses a block makes, and how many instructions it has.
    #[inline(always)]
    pub fn lengths(&self, block: u32) -> [u32; 2] {
        let whole = &self.blocks[block as usize].whole;
        [whole.accesses.end, whole.length]
    }

    /// A block was executed. Of all that it used these lines and accesses were far.
    #[inline(always)]
    pub fn execute(&mut self, block: u32, addresses: &[u64], far: [&[Far]; 2]) {
        if self.pipeline.memo.is_full() {
            self.forget();
        }
        let Block { whole, end, traps, .. } = &mut self.blocks[block as usize];
        if whole.length == 0 {
            return;
        }
        let pipeline = &mut self.pipeline;
        let entry = pipeline.issue.front.enter(whole.address);
        let (end, traps) = (*end, *traps);
        let next = whole.address.wrapping_add(4 * u64::from(whole.length));
        if far.iter().all(|far| far.is_empty()) && pipeline.issue.lines.is_empty() {
            pipeline.issue.heard.clear();
            pipeline.make_transition::<true>(whole, entry, Accesses::near(addresses));
        } else {
            self.execute_with(block, entry, addresses, far);
        }
        self.pipeline.issue.front.leave(end, next, traps);
    }

    /// The same, where something was far, or loads may find lines on their way.
    #[inline(never)]
    fn execute_with(
        &mut self,
        block: u32,
        entry: Entry,
        addresses: &[u64],
        [mut fetched, used]: [&[Far]; 2],
    ) {
        let Block { whole, lines, first_access, .. } = &mut self.blocks[block as usize];
        let (pipeline, nothing) = (&mut self.pipeline, &mut self.nothing);
        let are_stores = &self.are_stores[*first_access as usize..];
        let accesses = Accesses { addresses, far: used };
        let (block, mut entry, mut rest, mut lines) = (whole.address, entry, whole, lines.iter_mut());
        for number in 0.. {
            if let Some((far, others)) = fetched.split_first()
                && far.number == number
            {
                entry = pipeline.wait_for_line(nothing, rest, entry, far.served);
                fetched = others;
            }
            // A line that comes before control does is as good as near.
            let now = pipeline.issue.board.last + 1;
            let Some([line, behind]) =
                lines.next().filter(|_| !pipeline.issue.front.have_come(block, fetched, now))
            else {
                break;
            };
            pipeline.execute(line, entry, are_stores, accesses);
            (entry, rest) = (Entry::NextGroup, behind);
        }
        pipeline.execute(rest, entry, are_stores, accesses);
    }

    /// Forgets what was counted, but for a last cycle that may not be over.
    pub fn forget_counts(&mut self) {
        let Remembering { memo, sum, sites, issue } = &mut self.pipeline;
        memo.forget_executions();
        *sum = Sum::default();
        sites.fill(SiteCycles::default());
        self.blocks.iter_mut().flat_map(Block::pieces_mut).for_each(|piece| piece.dry = 0);
        issue.front.predictor.forget_counts();
    }

    /// Begins to remember anew: what all transitions cost is noted.
    #[cold]
    fn forget(&mut self) {
        let Remembering { memo, sites, .. } = &mut self.pipeline;
        for piece in self.blocks.iter_mut().flat_map(Block::pieces_mut).chain([&mut self.nothing]) {
            memo.add_sites(piece.newest, &mut sites[piece.first as usize..]);
            piece.newest = 0;
        }
        memo.forget();
    }
}

impl Block {
    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.lines.as_flattened().iter().chain([&self.whole])
    }

    fn pieces_mut(&mut self) -> impl Iterator<Item = &mut Piece> {
        self.lines.as_flattened_mut().iter_mut().chain([&mut self.whole])
    }
}

impl Remembering {
    /// Issues a piece, whose line is near or has come.
    #[inline(always)]
    fn execute(&mut self, piece: &mut Piece, entry: Entry, are_stores: &[bool], accesses: Accesses) {
        self.issue.hear_data(piece, are_stores, accesses);
        self.make_transition::<false>(piece, entry, accesses);
    }

    /// Waits until the first group of a piece arrives, whose line is far. Says how the piece is entered then. Mostly the
    /// wait is none, or so long that nothing is left of what was before. Else it is a transition of its own, of `nothing`:
    /// there are few, and what they lead to is mostly the same.
    #[inline(never)]
    fn wait_for_line(
        &mut self,
        nothing: &mut Piece,
        piece: &mut Piece,
        entry: Entry,
        fetched: Served,
    ) -> Entry {
        let Remembering { issue, memo, sum, .. } = self;
        let last = issue.board.last;
        let (begin, cause) = issue.front.begin(entry, last, memo.restart_after(last));
        let translated = begin + u64::from(fetched.translation);
        let (mut comes, mut level) = (translated, 0);
        if fetched.level > 0 || fetched.is_ahead {
            (comes, level) = issue.front.miss(piece.address, translated, fetched);
        }
        if comes <= begin.max(last + 1) {
            return entry;
        }
        let open = memo.open();
        if memo.settle(comes - (last + 1)) {
            sum.spend(open, u64::from(open > 0));
            let miss = if level > 0 { Cause::InstructionMiss(level) } else { Cause::InstructionTranslation };
            let waits = [(begin, cause), (translated, Cause::InstructionTranslation), (comes, miss)];
            let mut next = last + 1;
            for (until, cause) in waits {
                sum.spend(cause.index(), until.saturating_sub(next));
                next = next.max(until);
            }
            issue.lines.clear();
            issue.front.arrived = comes;
            issue.board.last = comes - 1;
        } else {
            issue.hear_line(translated, comes, level);
            self.make_transition::<false>(nothing, entry, Accesses::near(&[]));
        }
        piece.dry += self.issue.board.last - last;
        Entry::SameGroup
    }

    /// A piece is issued, as it was from this beginning on if it was. If `NEAR` nothing was heard, and nothing of its
    /// block was far.
    #[inline(always)]
    fn make_transition<const NEAR: bool>(&mut self, piece: &mut Piece, entry: Entry, accesses: Accesses) {
        let Remembering { issue, memo, sum, .. } = self;
        let beginning = memo.beginning(entry, piece.number);
        let has_heard = !NEAR && !issue.heard.is_empty();
        let heard = if NEAR { &[] } else { &issue.heard[..] };
        let recent = &mut piece.recent[usize::from(has_heard)];
        let found = memo.find(beginning, heard, *recent);
        if let Some(number) = found {
            let known = memo.known(number);
            if issue.repeats(known, accesses) {
                issue.repeat(known, accesses);
                match known.costs {
                    None => sum.add_short(known.course),
                    Some(costs) => sum.add(costs),
                }
                return memo.repeat(number, has_heard, recent);
            }
        }
        self.find_course(piece, entry, accesses, found.is_none().then_some(beginning));
    }

    /// Issues a piece in a way in which it never was, or which depends on addresses. The former is remembered.
    #[cold]
    #[inline(never)]
    fn find_course(&mut self, piece: &mut Piece, entry: Entry, accesses: Accesses, new: Option<Beginning>) {
        let Remembering { issue, memo, sum, sites } = self;
        let details = issue.execute(piece, memo.state(), entry, accesses);
        sum.add(&details.costs);
        let (state, settles_in) = issue.state();
        memo.enter(state, settles_in);
        let remembered = match new {
            Some(beginning) => memo.add(beginning, &issue.heard, details, piece.newest),
            None => Err(details.costs),
        };
        match remembered {
            Ok(number) => piece.newest = number + 1,
            Err(costs) => costs.add_sites(1, &mut sites[piece.first as usize..]),
        }
    }
}
