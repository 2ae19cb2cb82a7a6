//! Memory access patterns: how far apart the addresses are that an instruction accesses one time after another,
//! or a line, a function, or whoever accesses an array.
//!
//! A **series** is a sequence of references, loads or stores, whose addresses are compared: each one's with that
//! of the reference 1, 2, ... steps earlier in the same series and the same thread. For each of these steps there
//! is a histogram of the strides, from the earlier reference to the later one.
//!
//! ```
//! use pathlength_analysis::strides::{Options, Strides};
//! use trace::record::Event;
//! let mut strides = Strides::new(Options { depth: 2, threshold: 0, ..Options::default() });
//! strides.define(0x1000, &[0xa43e0000]); // ldq t0,0(sp)
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
mod counters;
mod heap;
mod history;
mod memory;
mod patterns;
mod tables;

use std::collections::{BTreeMap, HashMap};

use isa::Flags;
use trace::record::Event;

pub use advice::{ADVICE, advice};
pub use bins::{Bins, Range};
use counters::{Add, Counters, Sums};
use history::{Depth, History, Last, Run};
use memory::Memory;
pub use patterns::{By, Heard, Patterns};

/// Strides are counted to no earlier reference than this.
pub const DEEPEST: u32 = 64;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many steps back strides are counted to, each in a histogram of its own: up to [`DEEPEST`].
    pub depth: u32,
    /// Bytes: a shorter stride to the reference so many steps back keeps a reference out of the histograms of more
    /// steps. With 0 every reference is in every histogram.
    pub threshold: u64,
    /// How strides are put into bins.
    pub bins: Bins,
}

impl Default for Options {
    /// As the paper has it.
    #[inline(always)]
    fn default() -> Options {
        Options { depth: 5, threshold: 128, bins: Bins { is_signed: false, in_elements: false } }
    }
}

/// Counts strides.
#[derive(Clone, Debug)]
pub struct Strides {
    options: Options,
    depth: Depth,
    /// Where each block's accesses begin; and the end.
    starts: Vec<usize>,
    accesses: Vec<Access>,
    numbers: HashMap<Key, u32>,
    /// By series.
    keys: Vec<Key>,
    /// Groups that are single instructions, by address and word.
    instructions: HashMap<(u64, u32), u32>,
    histories: Vec<History>,
    counters: Counters,
}

/// What a series is of: a group of references; loads or stores.
pub(crate) type Key = (u32, bool);

/// An access of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// None if it is not counted.
    pub series: Option<u32>,
    /// The instruction's index in its block.
    pub index: u16,
    /// Bytes.
    pub size: u8,
    pub is_store: bool,
    /// The register that the address is relative to.
    pub base: u8,
}

/// An instruction that accesses memory, for whoever decides which group its references belong to.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Its index in its block.
    pub index: usize,
    /// Its run-time address.
    pub address: u64,
    /// The instruction.
    pub word: u32,
}

impl Strides {
    /// Nothing counted yet.
    ///
    /// # Panics
    /// If the depth is 0 or more than [`DEEPEST`].
    pub fn new(options: Options) -> Strides {
        assert!((1..=DEEPEST).contains(&options.depth), "a depth of 1 to {DEEPEST}");
        Strides {
            options,
            depth: Depth::new(options.depth),
            starts: vec![0],
            accesses: Vec::new(),
            numbers: HashMap::new(),
            keys: Vec::new(),
            instructions: HashMap::new(),
            histories: Vec::new(),
            counters: Counters::new(options.depth as usize * options.bins.count()),
        }
    }

    /// A block that records may name from now on; the first is number 0. Each instruction is a group: the same one
    /// in other blocks, too. Groups are numbered in the order in which they are defined.
    pub fn define(&mut self, address: u64, words: &[u32]) {
        let mut instructions = std::mem::take(&mut self.instructions);
        self.define_groups(address, words, |site| {
            let next = instructions.len() as u32;
            Some(*instructions.entry((site.address, site.word)).or_insert(next))
        });
        self.instructions = instructions;
    }

    /// The same, with other groups than single instructions. What has none is not counted.
    pub fn define_groups(&mut self, address: u64, words: &[u32], mut group: impl FnMut(Site) -> Option<u32>) {
        for (index, &word) in words.iter().enumerate() {
            let Some(instruction) = isa::decode(word) else { continue };
            // Loads whose result is dropped are prefetches, and have none.
            let Some(size) = instruction.access_size() else { continue };
            let site = Site { index, address: address.wrapping_add(4 * index as u64), word };
            let (base, is_store) = (instruction.rb(), instruction.op.is(Flags::STORE));
            let series = group(site).map(|group| self.number((group, is_store)));
            self.accesses.push(Access { series, index: index as u16, size, is_store, base });
        }
        self.starts.push(self.accesses.len());
    }

    /// What is counted.
    pub(crate) fn options(&self) -> Options {
        self.options
    }

    /// What a series is of.
    pub(crate) fn group(&self, series: u32) -> u32 {
        self.keys[series as usize].0
    }

    /// The number of a series.
    pub(crate) fn number(&mut self, key: Key) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.counters.reach(self.keys.len());
            self.keys.len() as u32 - 1
        })
    }

    /// Executions and marks ([`trace::record`]) of a thread, whole ones, whose blocks are defined.
    pub fn executed(&mut self, thread: u32, records: &[u64]) {
        let Options { depth, bins, .. } = Options::default();
        if self.options.depth == depth && self.options.bins == bins {
            self.count::<true>(thread, records);
        } else {
            self.count::<false>(thread, records);
        }
    }

    /// The same. If all but the threshold is as usual, what follows from that is known when this is compiled.
    #[inline(always)]
    fn count<const USUAL: bool>(&mut self, thread: u32, records: &[u64]) {
        let Strides { starts, accesses, histories, counters, options, .. } = self;
        let Options { threshold, .. } = *options;
        let options = if USUAL { Options { threshold, ..Options::default() } } else { *options };
        let depth = Depth::new(options.depth);
        let history = history(histories, thread);
        let mut words = records;
        while let Some((&word, rest)) = words.split_first() {
            words = rest;
            let Event::Block(block) = Event::new(word) else { continue };
            let accesses = || &accesses[starts[block as usize]..starts[block as usize + 1]];
            let series = history.of_block(block, depth, || accesses().iter().map(|access| access.series));
            let (addresses, rest) = words.split_at(series.len());
            words = rest;
            series.each(addresses, |index, mut last, address| {
                let element = if USUAL { 1 } else { options.bins.element(accesses()[index].size.into()) };
                if !last.repeat(address, element) {
                    let series = accesses()[index].series.expect("only these are told");
                    options.count(last, address, element, counters.sums(series));
                }
            });
        }
    }

    /// A reference of a series in a thread; `element` is the size of what it accesses.
    #[inline]
    pub(crate) fn reference(&mut self, thread: u32, series: u32, address: u64, element: u64) {
        let element = self.options.bins.element(element);
        let mut last = history(&mut self.histories, thread).of(series, self.depth);
        if !last.repeat(address, element) {
            self.options.count(last, address, element, self.counters.sums(series));
        }
    }

    /// The series of each access of a block, if it is counted, and the access's size.
    #[inline]
    pub(crate) fn of_block(&self, block: u32) -> &[Access] {
        &self.accesses[self.starts[block as usize]..self.starts[block as usize + 1]]
    }

    /// Every series that occurred, in the order in which they were defined.
    pub fn series(&self) -> impl Iterator<Item = Series<'_>> {
        let all = (0..).zip(&self.keys).map(|(number, &(group, is_store))| Series {
            group,
            is_store,
            references: self.references(number),
            number,
            strides: self,
        });
        all.filter(|series| series.references > 0)
    }

    /// The run that a series is in, thread by thread, of those that have references of it.
    fn states(&self, series: u32) -> impl Iterator<Item = Option<Run>> {
        self.histories.iter().filter_map(move |history| history.state(series))
    }

    /// The references of a series: each thread's first one, and those that have a stride to the one before.
    fn references(&self, series: u32) -> u64 {
        let depth = self.options.depth as usize;
        let strides = self.counters.of(series).into_iter().filter(|&(slot, _)| slot % depth == 0);
        let repeated = |run: Option<Run>| 1 + run.map_or(0, |run| run.times);
        strides.map(|(_, count)| count).sum::<u64>() + self.states(series).map(repeated).sum::<u64>()
    }
}

/// What is known of a thread.
#[inline]
fn history(histories: &mut Vec<History>, thread: u32) -> &mut History {
    let thread = thread as usize;
    if thread >= histories.len() {
        histories.resize_with(thread + 1, History::default);
    }
    &mut histories[thread]
}

impl Options {
    /// Counts the strides from the last addresses of a series to its next one.
    #[inline(always)]
    fn count(self, last: Last, address: u64, element: u32, sums: Sums) {
        match sums {
            Sums::Many(all) => self.count_in(last, address, element, all),
            Sums::Few(few) => self.count_in(last, address, element, few),
        }
    }

    #[inline(always)]
    fn count_in(self, mut last: Last, address: u64, element: u32, sums: &mut (impl Add + ?Sized)) {
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

    /// The counter of a bin: its steps are side by side.
    #[inline(always)]
    fn slot(self, step: usize, bin: usize) -> usize {
        bin * self.depth as usize + step
    }

    /// The strides of each reference of a run: steps and bins.
    #[inline(always)]
    fn strides(self, run: Run, mut tell: impl FnMut(usize, usize)) {
        for step in 0..self.depth as usize {
            let stride = run.stride.wrapping_mul(step as i64 + 1);
            tell(step, self.bins.bin(stride, run.element));
            if stride.unsigned_abs() < self.threshold {
                break;
            }
        }
    }
}

/// References whose strides were counted.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// What they are of.
    pub group: u32,
    /// Stores, or else loads.
    pub is_store: bool,
    /// How many.
    pub references: u64,
    number: u32,
    strides: &'a Strides,
}

/// How often the strides of a bin occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// To the reference so many steps earlier, from 1.
    pub step: u32,
    /// The strides.
    pub range: Range,
    /// How often.
    pub count: u64,
}

impl Series<'_> {
    /// The strides that occurred, by steps, the shortest first.
    pub fn strides(&self) -> impl Iterator<Item = Count> + use<> {
        let Strides { options, counters, .. } = self.strides;
        let mut counts = BTreeMap::new();
        let mut add = |step: usize, bin: usize, times| *counts.entry((step, bin)).or_insert(0) += times;
        let depth = options.depth as usize;
        let counted = counters.of(self.number).into_iter();
        counted.for_each(|(slot, count)| add(slot % depth, slot / depth, count));
        for run in self.strides.states(self.number).flatten() {
            options.strides(run, |step, bin| add(step, bin, run.times));
        }
        let bins = options.bins;
        let count =
            move |((step, bin), count)| Count { step: step as u32 + 1, range: bins.range(bin), count };
        counts.into_iter().map(count)
    }
}
