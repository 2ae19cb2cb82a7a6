//! Memory access patterns: the strides between successive references of an instruction, a line or a function, or to an
//! array.
//!
//! A **series** is a sequence of references, loads or stores. The address of each reference is compared with that of
//! the reference 1, 2, ... steps earlier in the same series and thread. For each of these steps there
//! is a histogram of the strides, from the earlier reference to the later one.
//!
//! ```
//! use pathlength_analysis::strides::{StrideSettings, Strides};
//! use events::Block;
//! use events::record::Event;
//! let mut strides = Strides::new(StrideSettings { depth: 2, threshold: 0, ..StrideSettings::default() });
//! strides.define(&Block::new(&isa::Alpha, 0x1000, [0xa43e0000])); // ldq t0,0(sp)
//! for address in (0x8000..0x8040).step_by(8) {
//!     strides.executed(0, &[Event::Block(0).word(), Event::Access(address).word()]);
//! }
//! let series = strides.series().next().unwrap();
//! assert_eq!(series.references, 8);
//! let histogram: Vec<_> = series.strides().map(|one| (one.step, one.range.near, one.count)).collect();
//! assert_eq!(histogram, [(1, 8, 7), (2, 16, 6)]);
//! ```

mod advice;
mod bins;
mod classes;
mod counters;
mod history;
mod lockstep;
mod patterns;
mod sums;
mod tables;

use std::collections::{BTreeMap, HashMap};

use events::Block;
use events::record::Event;
use isa::MemoryAccess;

use crate::memory_layout::MemoryLayout;
use crate::models::ExecutionPart;
pub use advice::{ADVICE, advice};
pub use bins::{Bins, StrideRange};
use counters::{Add, CounterSums, SeriesCounters};
use history::{Depth, History, Last, StrideRun};
use lockstep::{CountedAccess, Lockstep, Origins, Relative, Splits};
pub use patterns::{LiveStrides, Patterns, StrideRows};
use sums::StrideSums;

/// The greatest number of steps back.
pub const DEEPEST: u32 = 64;

/// Options of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrideSettings {
    /// The number of steps back, each with a histogram of its own: up to [`DEEPEST`].
    pub depth: u32,
    /// In bytes: a reference whose stride to an earlier reference is shorter is not compared with those before that one.
    /// With 0, every reference is in every histogram.
    pub threshold: u64,
    /// The bins of the histograms.
    pub bins: Bins,
}

impl Default for StrideSettings {
    /// The paper's options.
    #[inline(always)]
    fn default() -> StrideSettings {
        StrideSettings { depth: 5, threshold: 128, bins: Bins { is_signed: false, in_elements: false } }
    }
}

/// Counts strides.
#[derive(Clone, Debug)]
pub struct Strides {
    options: StrideSettings,
    depth: Depth,
    /// The index of each block's first access; and the number of all.
    starts: Vec<usize>,
    accesses: Vec<BlockAccess>,
    numbers: HashMap<Key, u32>,
    /// By series.
    keys: Vec<Key>,
    /// Groups that are single instructions, by address and word.
    instructions: HashMap<(u64, u32), u32>,
    lockstep: Lockstep,
    /// By thread.
    histories: Vec<History>,
    /// By track.
    counters: SeriesCounters,
}

/// The key of a series: a group of references, and whether they are loads or stores.
pub(crate) type Key = (u32, bool);

/// An access of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockAccess {
    /// None if it is not counted.
    pub series: Option<u32>,
    /// The instruction's index in its block.
    pub index: u16,
    /// Bytes.
    pub size: u8,
    pub is_store: bool,
    /// The register that the address is relative to.
    pub base: u8,
    /// The base and offset of the address, if the series is a single instruction.
    pub relative: Option<Relative>,
}

/// An instruction that accesses memory, to be assigned to a group.
#[derive(Clone, Copy, Debug)]
pub struct AccessSite {
    /// Its index in its block.
    pub index: usize,
    /// Its run-time address.
    pub address: u64,
    /// The instruction.
    pub word: u32,
}

impl Strides {
    /// Without references.
    ///
    /// # Panics
    /// If the depth is 0 or more than [`DEEPEST`].
    pub fn new(options: StrideSettings) -> Strides {
        assert!((1..=DEEPEST).contains(&options.depth), "a depth of 1 to {DEEPEST}");
        Strides {
            options,
            depth: Depth::new(options.depth),
            starts: vec![0],
            accesses: Vec::new(),
            numbers: HashMap::new(),
            keys: Vec::new(),
            instructions: HashMap::new(),
            lockstep: Lockstep::default(),
            histories: Vec::new(),
            counters: SeriesCounters::new(options.depth as usize * options.bins.count()),
        }
    }

    /// A block that records may name from now on; the first is number 0. Each instruction is a group: the same one
    /// in other blocks, too. Groups are numbered in the order in which they are defined.
    pub fn define(&mut self, block: &Block) {
        let mut instructions = std::mem::take(&mut self.instructions);
        self.define_groups(block, true, |site| {
            let next = instructions.len() as u32;
            Some(*instructions.entry((site.address, site.word)).or_insert(next))
        });
        self.instructions = instructions;
    }

    /// The same with other groups. Instructions without a group are not counted. `are_instructions` says that each group is
    /// a single instruction.
    pub fn define_groups(
        &mut self,
        block: &Block,
        are_instructions: bool,
        mut group: impl FnMut(AccessSite) -> Option<u32>,
    ) {
        let mut origins = Origins::default();
        for (index, (address, &word)) in block.addresses().zip(&block.words).enumerate() {
            let Some(summary) = block.instruction_set.summary(word) else { continue };
            let element = |access: MemoryAccess| self.options.bins.element(access.size.into());
            let mut relative = origins.next(&summary, summary.access.map_or(1, element));
            for MemoryAccess { size, is_store, base, .. } in summary.accesses() {
                let site = AccessSite { index, address, word };
                let series = group(site).map(|group| self.number((group, is_store)));
                let relative = relative.take().filter(|_| are_instructions);
                self.accesses.push(BlockAccess {
                    series,
                    index: index as u16,
                    size,
                    is_store,
                    base,
                    relative,
                });
            }
        }
        self.starts.push(self.accesses.len());
    }

    /// Options of counting.
    pub(crate) fn options(&self) -> StrideSettings {
        self.options
    }

    /// The key of a series.
    pub(crate) fn group(&self, series: u32) -> u32 {
        self.keys[series as usize].0
    }

    /// The number of a series.
    pub(crate) fn number(&mut self, key: Key) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.keys.len() as u32 - 1
        })
    }

    /// Another series of the same group.
    fn duplicate(&mut self, series: u32) -> u32 {
        self.keys.push(self.keys[series as usize]);
        self.keys.len() as u32 - 1
    }

    /// Counts executions ([`events::record`]) of a thread, whose blocks are defined, with the addresses of their accesses.
    pub fn executed(&mut self, thread: u32, mut records: &[u64]) {
        let StrideSettings { depth, bins, .. } = StrideSettings::default();
        let is_usual = self.options.depth == depth && self.options.bins == bins;
        loop {
            let new = if is_usual {
                self.count::<true>(thread, &mut records)
            } else {
                self.count::<false>(thread, &mut records)
            };
            match new {
                Some(block) => self.enter(thread, block),
                None => return,
            }
        }
    }

    /// The same, up to a block that is new to the thread.
    #[inline(always)]
    fn count<const USUAL: bool>(&mut self, thread: u32, records: &mut &[u64]) -> Option<u32> {
        let Strides { starts, accesses, histories, counters, options, .. } = self;
        let options = options.known::<USUAL>();
        let depth = Depth::new(options.depth);
        let history = history(histories, thread);
        while let Some((&word, rest)) = records.split_first() {
            let Event::Block(block) = Event::new(word) else {
                *records = rest;
                continue;
            };
            let Some(tracks) = history.of_block(block, depth) else { return Some(block) };
            let (addresses, rest) = rest.split_at(tracks.accesses);
            *records = rest;
            tracks.each(|CountedAccess { index, track, displacement }, mut last| {
                let size = || accesses[starts[block as usize] + index as usize].size;
                let element = if USUAL { 1 } else { options.bins.element(size().into()) };
                let address = addresses[index as usize].wrapping_sub(i64::from(displacement).cast_unsigned());
                if !last.repeat(address, element) {
                    options.count::<USUAL>(last, address, element, counters, track);
                }
            });
        }
        None
    }

    /// A thread executes a block for the first time since its counted accesses have changed.
    #[cold]
    fn enter(&mut self, thread: u32, block: u32) {
        let accesses = &self.accesses[self.starts[block as usize]..self.starts[block as usize + 1]];
        let Splits { tracks, blocks } = self.lockstep.add(block, accesses);
        self.counters.reach(self.lockstep.len());
        for history in &mut self.histories {
            tracks.iter().for_each(|&(from, to)| history.copy(from, to, self.depth));
            blocks.iter().for_each(|&block| history.leave(block));
        }
        tracks.iter().for_each(|&(from, to)| self.counters.copy(from, to));
        let counted = self.lockstep.counted(accesses);
        history(&mut self.histories, thread).enter(block, accesses.len(), &counted, self.depth);
    }

    /// The first reference of a series.
    #[cold]
    fn start(&mut self, series: u32) -> u32 {
        let track = self.lockstep.alone(series);
        self.counters.reach(self.lockstep.len());
        track
    }

    /// A reference of a series in a thread; `element` is the size of the access.
    #[inline]
    pub(crate) fn reference(&mut self, thread: u32, series: u32, address: u64, element: u64) {
        let element = self.options.bins.element(element);
        let track = self.lockstep.of(series).unwrap_or_else(|| self.start(series));
        let mut last = history(&mut self.histories, thread).of(track, self.depth);
        if !last.repeat(address, element) {
            self.options.count::<false>(last, address, element, &mut self.counters, track);
        }
    }

    /// The series of each access of a block, if it is counted, and the access's size.
    #[inline]
    pub(crate) fn of_block(&self, block: u32) -> &[BlockAccess] {
        &self.accesses[self.starts[block as usize]..self.starts[block as usize + 1]]
    }

    /// Every series with references, in the order of definition.
    pub fn series(&self) -> impl Iterator<Item = Series<'_>> {
        let all = (0..self.keys.len() as u32).map(|number| self.one(number));
        all.filter(|series| series.references > 0)
    }

    /// The series of this number.
    fn one(&self, number: u32) -> Series<'_> {
        let (group, is_store) = self.keys[number as usize];
        let counts = SeriesCounts::Counted(self, number);
        Series { group, is_store, part: ExecutionPart::Whole, references: self.references(number), counts }
    }

    /// The current runs of a track, one for each thread with references of it.
    fn states(&self, track: u32) -> impl Iterator<Item = Option<StrideRun>> {
        self.histories.iter().filter_map(move |history| history.state(track))
    }

    /// The number of references of a series: the first one of each thread, and those with a stride to the one before.
    fn references(&self, series: u32) -> u64 {
        let Some(track) = self.lockstep.of(series) else { return 0 };
        let depth = self.options.depth as usize;
        let strides = self.counters.of(track).into_iter().filter(|&(slot, _)| slot % depth == 0);
        let repeated = |run: Option<StrideRun>| 1 + run.map_or(0, |run| run.times);
        strides.map(|(_, count)| count).sum::<u64>() + self.states(track).map(repeated).sum::<u64>()
    }
}

/// The state of a thread.
#[inline]
fn history(histories: &mut Vec<History>, thread: u32) -> &mut History {
    let thread = thread as usize;
    if thread >= histories.len() {
        histories.resize_with(thread + 1, History::default);
    }
    &mut histories[thread]
}

impl StrideSettings {
    /// The same, compiled separately for the default options (`USUAL`), whatever the threshold.
    #[inline(always)]
    fn known<const USUAL: bool>(self) -> StrideSettings {
        let StrideSettings { threshold, .. } = self;
        if USUAL { StrideSettings { threshold, ..StrideSettings::default() } } else { self }
    }

    /// Counts the strides of a reference that does not continue the run of its track. Not inlined: the loop over references,
    /// most of which continue a run, is faster without this code.
    #[inline(never)]
    fn count<const USUAL: bool>(
        self,
        last: Last,
        address: u64,
        element: u32,
        counters: &mut SeriesCounters,
        track: u32,
    ) {
        let options = self.known::<USUAL>();
        let (last, element) = (last.of(Depth::new(options.depth)), if USUAL { 1 } else { element });
        match counters.sums(track) {
            CounterSums::Many(mut all) => options.count_in(last, address, element, &mut all),
            CounterSums::Few(few) => options.count_in(last, address, element, few),
        }
    }

    #[inline(always)]
    fn count_in(self, mut last: Last, address: u64, element: u32, sums: &mut impl Add) {
        if let Some(run) = last.end_run() {
            self.strides(run, |step, bin| sums.add(self.slot(step, bin), run.times));
        }
        let mut step = 0;
        last.push(address, element, |earlier| {
            let stride = address.wrapping_sub(earlier).cast_signed();
            sums.add(self.slot(step, self.bins.bin(stride, element)), 1);
            step += 1;
            stride.unsigned_abs() >= self.threshold
        });
    }

    /// The counter of a bin. Counters of the same bin are adjacent.
    #[inline(always)]
    fn slot(self, step: usize, bin: usize) -> usize {
        bin * self.depth as usize + step
    }

    /// The strides of each reference of a run: steps and bins.
    #[inline(always)]
    fn strides(self, run: StrideRun, mut tell: impl FnMut(usize, usize)) {
        for step in 0..self.depth as usize {
            let stride = run.stride.wrapping_mul(step as i64 + 1);
            tell(step, self.bins.bin(stride, run.element));
            if stride.unsigned_abs() < self.threshold {
                break;
            }
        }
    }
}

/// A series with its strides.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// Its group.
    pub group: u32,
    /// Stores, or else loads.
    pub is_store: bool,
    /// The part of the execution whose references these are.
    pub part: ExecutionPart,
    /// The number of its references.
    pub references: u64,
    counts: SeriesCounts<'a>,
}

/// Where the counts of a series are.
#[derive(Clone, Copy, Debug)]
enum SeriesCounts<'a> {
    /// With those of all series, under its number.
    Counted(&'a Strides, u32),
    /// Added up.
    Summed(&'a StrideSums),
}

/// The count of a bin of strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The step: the number of references back, from 1.
    pub step: u32,
    /// The strides of the bin.
    pub range: StrideRange,
    /// The count.
    pub count: u64,
}

impl<'a> Series<'a> {
    /// With counts that were added up.
    fn summed((group, is_store): Key, part: ExecutionPart, sums: &'a StrideSums) -> Series<'a> {
        Series { group, is_store, part, references: sums.references, counts: SeriesCounts::Summed(sums) }
    }

    /// Its counts, to add up.
    fn sums(&self) -> StrideSums {
        let strides = self.strides().map(|one| ((one.step, one.range), one.count)).collect();
        StrideSums { references: self.references, strides }
    }

    /// The strides that occurred, by step, the shortest first.
    pub fn strides(&self) -> impl Iterator<Item = Count> + use<> {
        let counts: Vec<Count> = match self.counts {
            SeriesCounts::Counted(strides, number) => strides.counts(number),
            SeriesCounts::Summed(sums) => {
                let counts = sums.strides.iter();
                counts.map(|(&(step, range), &count)| Count { step, range, count }).collect()
            }
        };
        counts.into_iter()
    }
}

impl Strides {
    /// The strides of a series that occurred, by step, the shortest first.
    fn counts(&self, series: u32) -> Vec<Count> {
        let Strides { options, counters, lockstep, .. } = self;
        let Some(track) = lockstep.of(series) else { return Vec::new() };
        let mut counts = BTreeMap::new();
        let mut add = |step: usize, bin: usize, times| *counts.entry((step, bin)).or_insert(0) += times;
        let depth = options.depth as usize;
        let counted = counters.of(track).into_iter();
        counted.for_each(|(slot, count)| add(slot % depth, slot / depth, count));
        for run in self.states(track).flatten() {
            options.strides(run, |step, bin| add(step, bin, run.times));
        }
        let bins = options.bins;
        let count = |((step, bin), count)| Count { step: step as u32 + 1, range: bins.range(bin), count };
        counts.into_iter().map(count).collect()
    }
}
