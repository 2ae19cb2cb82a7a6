//! Alignment faults: loads and stores at addresses that are not multiples of their size.
//!
//! A processor such as Alpha's raises an exception for each of them, and the operating system carries the access out, which takes
//! hundreds of instructions. Compilers avoid this for types that they know to be unaligned, by pairs of accesses to whole
//! quadwords; those are counted apart. OpenVMS's tool of this kind is FLT.

mod block;
mod counts;
mod fix_ups;
mod rates;
mod tables;

use std::collections::BTreeMap;

use events::record::{Entries, Entry, Execution, Mark, RecordShape, address_of_word};
use events::{Block, BlockId, Consumer, MappedImage, Thread};
use machine::{Model, ModelNeeds};

use crate::memory_layout::MemoryLayout;
use crate::models::{Addable, ClassSums, ExecutionPart, UnitClasses};
use crate::names::Names;
pub use counts::{AlignmentTotals, FaultCounts, UnitFaults};
use rates::FaultRates;
pub use tables::{FIX_UP_INSTRUCTIONS, by_data, by_line, over_time, rates_by_class, summary};

/// Counts the alignment faults of an execution, by instruction, unit of work and accessed data; those by data and over time also by
/// class of units of work.
#[derive(Default)]
pub struct AlignmentFaults {
    /// By instruction and unit of work.
    pub counts: FaultCounts,
    /// The classes of units of work.
    pub classes: UnitClasses,
    shapes: Vec<RecordShape>,
    /// By block, number of the access in the block, and accessed data.
    data: ClassSums<(BlockId, usize, AccessedData), DataFaults>,
    rates: FaultRates,
    memory: MemoryLayout,
    names: Names,
}

type FaultsByData = BTreeMap<AccessedData, DataFaults>;

/// The accessed data: an index of [`MemoryLayout::arrays`], and a member of the structure.
type AccessedData = (u32, Option<usize>);

/// The faults of accesses to the same data.
#[derive(Clone, Copy, Debug, Default)]
struct DataFaults {
    faults: u64,
    offsets: Offsets,
}

impl Addable for DataFaults {
    fn add(&mut self, other: &DataFaults) {
        self.faults += other.faults;
        self.offsets.join(other.offsets);
    }
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

impl AlignmentFaults {
    /// Nothing executed yet.
    pub fn new() -> AlignmentFaults {
        AlignmentFaults::default()
    }

    /// The classes, the one with most faults first, and what is outside of units, with their names.
    pub fn parts(&self) -> Vec<(String, ExecutionPart)> {
        self.classes.parts(|part| self.rates.totals(part).faults)
    }

    /// The faults of a part of the execution: by block and number of the access in the block, those by data.
    fn accesses(&self, part: ExecutionPart) -> BTreeMap<(BlockId, usize), FaultsByData> {
        let mut accesses: BTreeMap<_, FaultsByData> = BTreeMap::new();
        for ((block, number, data), faults) in self.data.of_part(part) {
            accesses.entry((block, number)).or_default().entry(data).or_default().add(faults);
        }
        accesses
    }

    #[inline]
    fn execution(&mut self, thread: Thread, execution: &Execution) {
        let is_unaligned = self.counts.execution(thread.number, execution);
        let block = &self.counts.blocks[execution.block as usize];
        self.memory.block(thread.process, block.image, &self.names);
        if let Some(number) = block.stack {
            let address = address_of_word(execution.addresses[number]);
            self.memory.find(thread, block.accesses[number].base, address);
        }
        if is_unaligned {
            self.unaligned(thread, execution);
        }
        self.rates.reach(thread.number, self.counts.total);
    }

    #[cold]
    fn unaligned(&mut self, thread: Thread, execution: &Execution) {
        let block = &self.counts.blocks[execution.block as usize];
        for (number, address) in block.unaligned(execution.addresses) {
            let data = self.memory.find(thread, block.accesses[number].base, address);
            let member = self.memory.member(thread.process, address);
            let data = self.data.now(thread.number, (execution.block, number, (data, member)));
            data.faults += 1;
            data.offsets.add(address);
        }
    }

    fn mark(&mut self, thread: Thread, mark: Mark) {
        match mark {
            Mark::Heap(heap) => self.memory.heap(thread, heap, &self.names),
            _ => {
                self.counts.mark(thread.number, mark);
                self.data.mark(thread.number, mark, &self.classes);
                self.rates.mark(thread.number, mark, self.counts.total, &self.classes);
            }
        }
    }
}

impl Consumer for AlignmentFaults {
    fn map(&mut self, image: &MappedImage) {
        self.names.add(image);
        self.memory.add_image(image);
    }

    fn define(&mut self, block: &Block) {
        self.shapes.push(RecordShape::new(block.instruction_set, &block.words, false));
        self.counts.define(block);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.counts.enter(thread.number);
        let shapes = std::mem::take(&mut self.shapes);
        for entry in Entries::new(records, &shapes) {
            match entry {
                Entry::Execution(execution) => self.execution(thread, &execution),
                Entry::Mark(mark) => self.mark(thread, mark),
            }
        }
        self.shapes = shapes;
        self.rates.divide(thread.number, self.counts.total);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        self.classes.add(unit, class);
    }
}

impl Model for AlignmentFaults {
    fn reset_counts(&mut self) {
        self.counts.reset_counts();
        self.data = ClassSums::default();
        self.rates = FaultRates::default();
    }

    fn needs(&self) -> ModelNeeds {
        ModelNeeds { heap: true, ..ModelNeeds::default() }
    }
}
