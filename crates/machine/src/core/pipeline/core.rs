//! The pipeline executes blocks.
//!
//! Memory requests of a block are resolved before it is issued (`resolve.rs`). A block segment that begins in
//! a state in which it began before, with the same responses from memory, has the same timing: its outcome is
//! taken from the transition cache (`transition_cache.rs`), as FastSim does (Schnarr and Larus, 1998).
//! Otherwise its instructions are issued one by one (`issue.rs`).

use std::iter;

use isa::CpuModel;

use super::accesses::BlockAccesses;
use super::cycles::{Cause, Cycles};
use super::description::Pipeline;
use super::front_end::{BlockEntry, FrontEndExit};
use super::issue::{Issue, SiteCycles};
use super::memory::{ServedBy, Timing};
use super::resolve::L1Miss;
use super::rules::STORE;
use super::segment::BlockSegment;
use super::timing_outcome::CycleTotals;
use super::transition_cache::{TransitionCache, TransitionKey};
use crate::core::predictor::PredictorState;

/// A block, as the pipeline sees it.
struct PipelineBlock {
    whole: BlockSegment,
    /// For each instruction line but the last: the segment within the line, and the one after it.
    lines: Box<[[BlockSegment; 2]]>,
    /// The index of its first access in `are_stores`.
    first_access: u32,
    exit: FrontEndExit,
}

/// A pipeline.
pub(crate) struct Core {
    pipeline: MemoizedPipeline,
    cpu: Option<CpuModel>,
    blocks: Vec<PipelineBlock>,
    /// Of the accesses of all blocks, whether they are stores, and their bytes.
    are_stores: Vec<bool>,
    access_bytes: Vec<u8>,
    /// Segments so far, which number the next one.
    segments: u32,
    /// A segment without instructions, whose transitions are waits for instruction lines.
    empty_segment: BlockSegment,
}

/// The issue stage with its transition cache.
struct MemoizedPipeline {
    issue: Issue,
    transitions: TransitionCache,
    totals: CycleTotals,
    /// Cycles by instruction, but for those that segments and transitions hold.
    sites: Vec<SiteCycles>,
}

impl Core {
    /// An idle pipeline. An instruction that `cpu` lacks costs `emulation` cycles.
    pub fn new(
        pipeline: &Pipeline,
        predictor: PredictorState,
        timing: &Timing,
        cpu: Option<CpuModel>,
        emulation: u64,
    ) -> Core {
        let issue = Issue::new(pipeline, predictor, timing, emulation);
        let transitions = TransitionCache::new(issue.state().0);
        Core {
            pipeline: MemoizedPipeline {
                issue,
                transitions,
                totals: CycleTotals::default(),
                sites: Vec::new(),
            },
            cpu,
            blocks: Vec::new(),
            are_stores: Vec::new(),
            access_bytes: Vec::new(),
            segments: 0,
            empty_segment: BlockSegment::new(0, (0, false), 0, &[], 0..0),
        }
    }

    /// Defines a block that can be executed from now on.
    pub fn define(&mut self, block: &events::Block) {
        let MemoizedPipeline { issue, sites, .. } = &mut self.pipeline;
        let Issue { rules, steps, front_end, .. } = issue;
        let first = steps.len();
        rules.decode(block, self.cpu, steps);
        sites.resize(steps.len(), SiteCycles::default());
        let own = &steps[first..];
        let (address, end) = (block.address, own.len());
        let mut segment = |at, range| {
            self.segments += 1;
            BlockSegment::new(self.segments, (at, at != address), first, own, range)
        };
        let lines = front_end.other_lines(address, block.end());
        let starts: Vec<(u64, usize)> = iter::once((address, 0))
            .chain(lines.map(|line| (line, instructions_before(block, line))))
            .collect();
        let whole = segment(address, 0..end);
        let lines = starts.windows(2).map(|lines| {
            let [(start, from), (next, to)] = [lines[0], lines[1]];
            [segment(start, from..to), segment(next, to..end)]
        });
        let accesses = own.iter().filter(|step| step.accesses());
        self.blocks.push(PipelineBlock {
            whole,
            lines: lines.collect(),
            first_access: self.are_stores.len() as u32,
            exit: FrontEndExit::of(block, own.last().is_some_and(|step| step.traps())),
        });
        for step in accesses {
            self.are_stores.push(step.flags & STORE != 0);
            self.access_bytes.push(step.bytes);
        }
    }

    /// Switches to a process.
    pub fn enter(&mut self, process: u32) {
        let issue = &mut self.pipeline.issue;
        if process != issue.process {
            issue.process = process;
            issue.front_end.reset_stream();
            issue.front_end.divert();
        }
    }

    /// A discontinuity: control continues elsewhere than the last instruction says.
    pub fn divert(&mut self) {
        self.pipeline.issue.front_end.divert();
    }

    /// All cycles but the last one, which may not be over.
    pub fn cycles(&self) -> Cycles {
        self.pipeline.totals.cycles()
    }

    /// All cycles so far, with the numbers of instructions emulated and replayed.
    pub fn totals(&self) -> CycleTotals {
        let mut totals = self.pipeline.totals.clone();
        let open = self.pipeline.transitions.open();
        totals.spend(open, u64::from(open > 0));
        totals
    }

    /// The cycles of a block's instructions.
    pub fn sites(&self, block: usize) -> Vec<SiteCycles> {
        let Some(block) = self.blocks.get(block) else { return Vec::new() };
        let mut sites = self.pipeline.sites[block.whole.steps()].to_vec();
        for segment in block.segments() {
            let own = &mut sites[(segment.first - block.whole.first) as usize..];
            own.iter_mut().take(1).for_each(|first| first.front_end_stall += segment.front_end_stall);
            self.pipeline.transitions.add_sites(segment.newest, own);
        }
        sites
    }

    /// The branch predictor.
    pub fn predictor(&self) -> &PredictorState {
        &self.pipeline.issue.front_end.predictor
    }

    /// How many accesses a block makes, and how many instructions it has.
    #[inline(always)]
    pub fn lengths(&self, block: u32) -> [u32; 2] {
        let whole = &self.blocks[block as usize].whole;
        [whole.accesses.end, whole.length]
    }

    /// Executes a block, which had these L1 misses: of instruction lines, and of accesses.
    #[inline(always)]
    pub fn execute(&mut self, block: u32, addresses: &[u64], misses: [&[L1Miss]; 2]) {
        if self.pipeline.transitions.is_full() {
            self.clear_cache();
        }
        let PipelineBlock { whole, exit, first_access, .. } = &mut self.blocks[block as usize];
        if whole.length == 0 {
            return;
        }
        let bytes = &self.access_bytes[*first_access as usize..];
        let pipeline = &mut self.pipeline;
        let entry = pipeline.issue.front_end.enter(whole.address);
        let exit = *exit;
        if misses.iter().all(|misses| misses.is_empty()) && pipeline.issue.lines.is_empty() {
            pipeline.issue.responses.clear();
            pipeline.transition::<true>(whole, entry, BlockAccesses::all_hits(addresses, bytes));
        } else {
            self.execute_with_misses(block, entry, addresses, misses);
        }
        self.pipeline.issue.front_end.leave(exit);
    }

    /// Updates the predictor by a block, which had these L1 misses of instruction lines. No time passes.
    #[inline(always)]
    pub fn warm(&mut self, block: u32, fetched: &[L1Miss]) {
        let PipelineBlock { whole, exit, .. } = &self.blocks[block as usize];
        if whole.length > 0 {
            self.pipeline.issue.front_end.warm(whole.address, fetched, *exit);
        }
    }

    /// The same where something missed, or where loads may find lines that are outstanding.
    #[inline(never)]
    fn execute_with_misses(
        &mut self,
        block: u32,
        entry: BlockEntry,
        addresses: &[u64],
        [mut fetched, used]: [&[L1Miss]; 2],
    ) {
        let PipelineBlock { whole, lines, first_access, .. } = &mut self.blocks[block as usize];
        let (pipeline, empty_segment) = (&mut self.pipeline, &mut self.empty_segment);
        let are_stores = &self.are_stores[*first_access as usize..];
        let bytes = &self.access_bytes[*first_access as usize..];
        let accesses = BlockAccesses { addresses, bytes, misses: used };
        let (block, mut entry, mut rest, mut lines) = (whole.address, entry, whole, lines.iter_mut());
        for number in 0.. {
            if let Some((misses, others)) = fetched.split_first()
                && misses.number == number
            {
                entry = pipeline.wait_for_fetch(empty_segment, rest, entry, misses.served);
                fetched = others;
            }
            // A prefetched line that arrives in time counts as an L1 hit.
            let now = pipeline.issue.scoreboard.last + 1;
            let Some([line, cold]) =
                lines.next().filter(|_| !pipeline.issue.front_end.arrive_in_time(block, fetched, now))
            else {
                break;
            };
            let last = pipeline.issue.scoreboard.last;
            pipeline.execute(line, entry, are_stores, accesses);
            if line.length == 0 {
                cold.front_end_stall += pipeline.issue.scoreboard.last - last;
            }
            (entry, rest) = (BlockEntry::NextGroup, cold);
        }
        pipeline.execute(rest, entry, are_stores, accesses);
    }

    /// Resets the counts, but for the last cycle, which may not be over.
    pub fn reset_counts(&mut self) {
        let MemoizedPipeline { transitions, totals, sites, issue } = &mut self.pipeline;
        transitions.reset_executions();
        *totals = CycleTotals::default();
        sites.fill(SiteCycles::default());
        self.blocks
            .iter_mut()
            .flat_map(PipelineBlock::segments_mut)
            .for_each(|segment| segment.front_end_stall = 0);
        issue.front_end.predictor.reset_counts();
    }

    /// Adds the counts of another pipeline with the same blocks, which executes nothing any more.
    pub fn merge(&mut self, ended: &mut Core) {
        let totals = ended.totals();
        // Then its counts by instruction are all in `sites`, but for waits for instruction lines.
        ended.clear_cache();
        let MemoizedPipeline { sites, totals: own, issue, .. } = &mut self.pipeline;
        own.merge(&totals);
        sites.iter_mut().zip(&ended.pipeline.sites).for_each(|(own, ended)| own.add(ended));
        let segments = self.blocks.iter_mut().flat_map(PipelineBlock::segments_mut);
        for (own, ended) in segments.zip(ended.blocks.iter().flat_map(PipelineBlock::segments)) {
            own.front_end_stall += ended.front_end_stall;
        }
        issue.front_end.predictor.add_counts(ended.predictor());
    }

    /// Clears the transition cache; what its transitions cost is added up first.
    #[cold]
    fn clear_cache(&mut self) {
        let MemoizedPipeline { transitions, sites, .. } = &mut self.pipeline;
        for segment in
            self.blocks.iter_mut().flat_map(PipelineBlock::segments_mut).chain([&mut self.empty_segment])
        {
            transitions.add_sites(segment.newest, &mut sites[segment.first as usize..]);
            segment.newest = 0;
        }
        transitions.clear();
    }
}

/// The number of a block's instructions that end before an instruction line, by its address.
fn instructions_before(block: &events::Block, line: u64) -> usize {
    let bytes = line.wrapping_sub(block.address);
    let ends = block.addresses().skip(1).chain([block.end()]);
    ends.take_while(|end| end.wrapping_sub(block.address) <= bytes).count()
}

impl PipelineBlock {
    fn segments(&self) -> impl Iterator<Item = &BlockSegment> {
        self.lines.as_flattened().iter().chain([&self.whole])
    }

    fn segments_mut(&mut self) -> impl Iterator<Item = &mut BlockSegment> {
        self.lines.as_flattened_mut().iter_mut().chain([&mut self.whole])
    }
}

impl MemoizedPipeline {
    /// Executes a segment whose instruction line is present.
    #[inline(always)]
    fn execute(
        &mut self,
        segment: &mut BlockSegment,
        entry: BlockEntry,
        are_stores: &[bool],
        accesses: BlockAccesses,
    ) {
        self.issue.collect_data_responses(segment, are_stores, accesses);
        self.transition::<false>(segment, entry, accesses);
    }

    /// Waits for the instruction line of a segment, which missed. Returns how the segment is entered then.
    /// Most waits are empty, or so long that the pipeline drains. The others are transitions of their own, of
    /// `empty_segment`: there are few, and they mostly lead to the same state.
    #[inline(never)]
    fn wait_for_fetch(
        &mut self,
        empty_segment: &mut BlockSegment,
        segment: &mut BlockSegment,
        entry: BlockEntry,
        fetched: ServedBy,
    ) -> BlockEntry {
        let MemoizedPipeline { issue, transitions, totals, .. } = self;
        let last = issue.scoreboard.last;
        let (begin, cause) = issue.front_end.begin(entry, last, transitions.restart_after(last));
        let translated = begin + u64::from(fetched.translation);
        let (mut comes, mut level) = (translated, 0);
        if fetched.level > 0 || fetched.is_ahead {
            (comes, level) = issue.front_end.miss(segment.address, translated, fetched);
        }
        if comes <= begin.max(last + 1) {
            return entry;
        }
        let open = transitions.open();
        if transitions.advance(comes - (last + 1)) {
            totals.spend(open, u64::from(open > 0));
            let miss = if level > 0 { Cause::InstructionMiss(level) } else { Cause::InstructionTranslation };
            let waits = [(begin, cause), (translated, Cause::InstructionTranslation), (comes, miss)];
            let mut next = last + 1;
            for (until, cause) in waits {
                totals.spend(cause.index(), until.saturating_sub(next));
                next = next.max(until);
            }
            issue.lines.clear();
            issue.front_end.arrived = comes;
            issue.scoreboard.last = comes - 1;
        } else {
            issue.set_line_response(translated, comes, level);
            self.transition::<false>(empty_segment, entry, BlockAccesses::all_hits(&[], &[]));
        }
        segment.front_end_stall += self.issue.scoreboard.last - last;
        BlockEntry::SameGroup
    }

    /// Executes a segment: by its cached outcome, if there is one. `ALL_HITS` says that its block had no miss,
    /// and no line is outstanding.
    #[inline(always)]
    fn transition<const ALL_HITS: bool>(
        &mut self,
        segment: &mut BlockSegment,
        entry: BlockEntry,
        accesses: BlockAccesses,
    ) {
        let MemoizedPipeline { issue, transitions, totals, .. } = self;
        let key = transitions.key(entry, segment.number);
        let has_responses = !ALL_HITS && !issue.responses.is_empty();
        let responses = if ALL_HITS { &[] } else { &issue.responses[..] };
        let recent = &mut segment.recent[usize::from(has_responses)];
        let found = transitions.find(key, responses, *recent);
        if let Some(number) = found {
            let cached = transitions.cached(number);
            if issue.applies(cached, accesses) {
                issue.apply(cached, accesses);
                match cached.costs {
                    None => totals.add_inline(cached.outcome),
                    Some(costs) => totals.add(costs),
                }
                return transitions.apply(number, has_responses, recent);
            }
        }
        self.issue_segment(segment, entry, accesses, found.is_none().then_some(key));
    }

    /// Issues a segment for which the transition cache has no outcome, or one that depends on addresses. A
    /// new outcome is cached.
    #[cold]
    #[inline(never)]
    fn issue_segment(
        &mut self,
        segment: &mut BlockSegment,
        entry: BlockEntry,
        accesses: BlockAccesses,
        new: Option<TransitionKey>,
    ) {
        let MemoizedPipeline { issue, transitions, totals, sites } = self;
        let details = issue.execute(segment, transitions.state(), entry, accesses);
        totals.add(&details.costs);
        let (state, drains_in) = issue.state();
        transitions.enter(state, drains_in);
        let remembered = match new {
            Some(key) => transitions.add(key, &issue.responses, details, segment.newest),
            None => Err(details.costs),
        };
        match remembered {
            Ok(number) => segment.newest = number + 1,
            Err(costs) => costs.add_sites(1, &mut sites[segment.first as usize..]),
        }
    }
}
