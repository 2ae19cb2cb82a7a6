//! Alignment faults: loads and stores at addresses that are not multiples of their size.
//!
//! A processor such as Alpha's raises an exception for each of them, and the operating system carries the access out, which takes
//! hundreds of instructions. Compilers avoid this for types that they know to be unaligned, by pairs of accesses to whole
//! quadwords; those are counted apart. OpenVMS's tool of this kind is FLT.

mod block;
mod fix_ups;
mod rates;
mod tables;

use std::collections::BTreeMap;

use events::record::{Entries, Entry, Execution, Mark, Shape, address_of_word};
use events::{Block, BlockId, Consumer, Image, Thread};
use machine::{Model, PerThread, Sums};

use crate::memory_layout::MemoryLayout;
use crate::names::Names;
use block::{CheckedAccess, CheckedBlock};
use fix_ups::FixUps;
use rates::FaultRates;
pub use tables::{FIX_UP_INSTRUCTIONS, by_data, by_line, over_time, summary};

/// Counts the alignment faults of an execution, by instruction, unit of work and accessed data.
#[derive(Default)]
pub struct AlignmentFaults {
    shapes: Vec<Shape>,
    blocks: Vec<CheckedBlock>,
    executions: Vec<u64>,
    /// By block; empty until an access of the block is unaligned.
    unaligned: Vec<Box<[Unaligned]>>,
    total: Totals,
    threads: PerThread<Totals>,
    units: Vec<UnitFaults>,
    rates: FaultRates,
    /// Those of a whole system's trace.
    fix_ups: FixUps,
    memory: MemoryLayout,
    names: Names,
}

/// What was counted of an access of a block.
#[derive(Clone, Debug, Default)]
struct Unaligned {
    /// Faults.
    faults: u64,
    /// How often a pair of accesses, of which this is the second one, accessed two quadwords.
    crossing: u64,
    /// Faults by what was accessed.
    data: BTreeMap<AccessedData, DataFaults>,
}

/// What is accessed: an index of [`MemoryLayout::arrays`], and a member of the structure.
type AccessedData = (u32, Option<usize>);

/// The faults of accesses to the same data.
#[derive(Clone, Copy, Debug, Default)]
struct DataFaults {
    faults: u64,
    offsets: Offsets,
}

/// A set of distances of addresses from the quadword before them: bit n for n bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offsets(u8);

impl Offsets {
    fn add(&mut self, address: u64) {
        self.0 |= 1 << (address % 8);
    }

    fn join(&mut self, other: Offsets) {
        self.0 |= other.0;
    }

    /// The largest power of two that all the addresses are multiples of.
    fn alignment(self) -> u64 {
        let all = (0..8u64).filter(|at| self.0 >> at & 1 != 0).fold(8, |bits, at| bits | at);
        1 << all.trailing_zeros()
    }

    /// The distance of all the addresses from the multiple of `size` before them, if it is always the same.
    fn always(self, size: u64) -> Option<u64> {
        let mut distances = (0..8u64).filter(|at| self.0 >> at & 1 != 0).map(|at| at % size);
        let first = distances.next()?;
        distances.all(|distance| distance == first).then_some(first)
    }
}

/// The counts of a unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitFaults {
    /// Its number.
    pub number: u64,
    /// The thread that it belongs to, among the threads of all processes.
    pub thread: u32,
    /// Its counts.
    pub totals: Totals,
}

/// Sums of an execution or a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Instructions executed.
    pub instructions: u64,
    /// Alignment faults.
    pub faults: u64,
    /// Accesses that the compiler made safe by pairs.
    pub safe: u64,
    /// Those of them whose data lay in two quadwords: without the pair they would have been faults.
    pub crossing: u64,
}

impl Sums for Totals {
    fn add(&mut self, other: &Totals) {
        self.instructions += other.instructions;
        self.faults += other.faults;
        self.safe += other.safe;
        self.crossing += other.crossing;
    }

    fn since(&self, earlier: &Totals) -> Totals {
        Totals {
            instructions: self.instructions - earlier.instructions,
            faults: self.faults - earlier.faults,
            safe: self.safe - earlier.safe,
            crossing: self.crossing - earlier.crossing,
        }
    }
}

impl AlignmentFaults {
    /// Nothing executed yet.
    pub fn new() -> AlignmentFaults {
        AlignmentFaults::default()
    }

    /// The sums of all that was executed.
    pub fn totals(&self) -> Totals {
        self.total
    }

    /// The units of work that ended, in the order of their ends, each with the counts of its own thread.
    pub fn units(&self) -> &[UnitFaults] {
        &self.units
    }

    /// The accesses of a block that were unaligned or that end pairs, with what was counted of them.
    fn accesses(&self, block: BlockId) -> impl Iterator<Item = (CheckedAccess, &Unaligned)> {
        let accesses = self.blocks[block as usize].accesses.iter().copied();
        accesses.zip(&self.unaligned[block as usize])
    }

    #[inline]
    fn execution(&mut self, thread: Thread, execution: &Execution) {
        let id = execution.block as usize;
        let block = &self.blocks[id];
        let carried_out = self.fix_ups.executed(thread.number, execution.block, block.instructions);
        self.executions[id] += 1;
        self.total.instructions += block.instructions;
        self.total.safe += block.pairs.len() as u64;
        self.memory.block(thread.process, block.image, &self.names);
        if let Some(number) = block.stack {
            let address = address_of_word(execution.addresses[number]);
            self.memory.find(thread, block.accesses[number].base, address);
        }
        let low_bits = execution
            .addresses
            .iter()
            .zip(&block.masks)
            .fold(0, |bits, (address, mask)| bits | address & mask);
        if low_bits != 0 || !block.pairs.is_empty() {
            self.unaligned(thread, execution);
        }
        self.total.faults += carried_out;
        self.rates.reach(self.total.instructions, self.total.faults);
    }

    #[cold]
    fn unaligned(&mut self, thread: Thread, execution: &Execution) {
        let block = &self.blocks[execution.block as usize];
        let addresses = execution.addresses;
        let counted = &mut self.unaligned[execution.block as usize];
        if counted.is_empty() {
            *counted = vec![Unaligned::default(); addresses.len()].into();
        }
        for (number, (&word, &mask)) in addresses.iter().zip(&block.masks).enumerate() {
            let address = address_of_word(word);
            if address & mask != 0 {
                let data = self.memory.find(thread, block.accesses[number].base, address);
                self.total.faults += 1;
                counted[number].faults += 1;
                let member = self.memory.member(thread.process, address);
                let data = counted[number].data.entry((data, member)).or_default();
                data.faults += 1;
                data.offsets.add(address);
            }
        }
        for pair in &block.pairs {
            let [first, second] = pair.accesses;
            let is_crossing = u64::from(addresses[first] != addresses[second]);
            self.total.crossing += is_crossing;
            counted[second].crossing += is_crossing;
        }
    }

    fn mark(&mut self, thread: Thread, mark: Mark) {
        match mark {
            Mark::UnitBegins(number) => self.threads.begin_unit(number, &self.total),
            Mark::UnitEnds(number) => {
                let ended = self.threads.end_unit(number, &self.total);
                let thread = thread.number;
                self.units.extend(ended.map(|totals| UnitFaults { number, thread, totals }));
            }
            Mark::UnitLeft(number) => drop(self.threads.end_unit(number, &self.total)),
            Mark::Heap(heap) => self.memory.heap(thread, heap, &self.names),
            Mark::Exception(_) | Mark::PalCall(_) | Mark::PalReturn | Mark::Gap => {
                self.fix_ups.mark(thread.number, mark);
            }
            _ => {}
        }
    }
}

impl Consumer for AlignmentFaults {
    fn map(&mut self, image: &Image) {
        self.names.add(image);
        self.memory.add_image(image);
    }

    fn define(&mut self, block: &Block) {
        self.shapes.push(Shape::new(block.instruction_set, &block.words, false));
        self.blocks.push(CheckedBlock::new(block));
        self.executions.push(0);
        self.unaligned.push(Box::default());
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.threads.enter(thread.number, self.total);
        let shapes = std::mem::take(&mut self.shapes);
        for entry in Entries::new(records, &shapes) {
            match entry {
                Entry::Execution(execution) => self.execution(thread, &execution),
                Entry::Mark(mark) => self.mark(thread, mark),
            }
        }
        self.shapes = shapes;
    }
}

impl Model for AlignmentFaults {
    fn reset_counts(&mut self) {
        self.executions.fill(0);
        self.unaligned.fill(Box::default());
        self.total = Totals::default();
        self.threads.reset();
        self.units.clear();
        self.rates = FaultRates::default();
        self.fix_ups.reset();
    }

    fn wants_heap(&self) -> bool {
        true
    }
}
