//! Counts of alignment faults by instruction and unit of work.

use events::record::{Entries, Entry, Execution, Mark, RecordShape};
use events::{Block, BlockId, Consumer, Thread};
use machine::{MergeableModel, Model, PerThread, Sums};

use super::block::{CheckedAccess, CheckedBlock};
use super::fix_ups::FixUps;

/// Counts the alignment faults of an execution, by instruction and unit of work.
#[derive(Default)]
pub struct FaultCounts {
    shapes: Vec<RecordShape>,
    pub(super) blocks: Vec<CheckedBlock>,
    pub(super) executions: Vec<u64>,
    /// By block; empty until an access of the block is unaligned or ends a pair.
    accesses: Vec<Box<[AccessFaults]>>,
    pub(super) total: AlignmentTotals,
    threads: PerThread<AlignmentTotals>,
    pub(super) units: Vec<UnitFaults>,
    /// Those of a whole system's trace.
    pub(super) fix_ups: FixUps,
}

/// Counts of an access of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AccessFaults {
    /// Faults.
    pub faults: u64,
    /// How often a pair of accesses, of which this is the second one, accessed two quadwords.
    pub crossing: u64,
}

/// The counts of a unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitFaults {
    /// Its number.
    pub number: u64,
    /// The thread that it belongs to, among the threads of all processes.
    pub thread: u32,
    /// Its counts.
    pub totals: AlignmentTotals,
}

/// Sums of an execution or a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlignmentTotals {
    /// Instructions executed.
    pub instructions: u64,
    /// Alignment faults.
    pub faults: u64,
    /// Accesses that the compiler made safe by pairs.
    pub safe: u64,
    /// Those of them whose data lay in two quadwords: without the pair they would have been faults.
    pub crossing: u64,
}

impl Sums for AlignmentTotals {
    fn add(&mut self, other: &AlignmentTotals) {
        self.instructions += other.instructions;
        self.faults += other.faults;
        self.safe += other.safe;
        self.crossing += other.crossing;
    }

    fn since(&self, earlier: &AlignmentTotals) -> AlignmentTotals {
        AlignmentTotals {
            instructions: self.instructions - earlier.instructions,
            faults: self.faults - earlier.faults,
            safe: self.safe - earlier.safe,
            crossing: self.crossing - earlier.crossing,
        }
    }
}

impl FaultCounts {
    /// Nothing executed yet.
    pub fn new() -> FaultCounts {
        FaultCounts::default()
    }

    /// The sums of all that was executed.
    pub fn totals(&self) -> AlignmentTotals {
        self.total
    }

    /// The accesses of a block of which one was unaligned or ended a pair, with what was counted of them.
    pub(super) fn accesses(&self, block: BlockId) -> impl Iterator<Item = (CheckedAccess, AccessFaults)> {
        let accesses = self.blocks[block as usize].accesses.iter().copied();
        accesses.zip(self.accesses[block as usize].iter().copied())
    }

    /// Executions that follow belong to a thread.
    pub(super) fn enter(&mut self, thread: u32) {
        self.threads.enter(thread, self.total);
    }

    /// A thread executes a block. Returns whether an access of it is unaligned.
    #[inline]
    pub(super) fn execution(&mut self, thread: u32, execution: &Execution) -> bool {
        let id = execution.block as usize;
        let block = &self.blocks[id];
        self.total.faults += self.fix_ups.executed(thread, execution.block, block.instructions);
        self.executions[id] += 1;
        self.total.instructions += block.instructions;
        self.total.safe += block.pairs.len() as u64;
        let bits = execution.addresses.iter().zip(&block.masks);
        let is_unaligned = bits.fold(0, |bits, (word, mask)| bits | word & mask) != 0;
        if is_unaligned || !block.pairs.is_empty() {
            self.unaligned(execution);
        }
        is_unaligned
    }

    #[cold]
    fn unaligned(&mut self, execution: &Execution) {
        let block = &self.blocks[execution.block as usize];
        let addresses = execution.addresses;
        let counted = &mut self.accesses[execution.block as usize];
        if counted.is_empty() {
            *counted = vec![AccessFaults::default(); addresses.len()].into();
        }
        for (number, _) in block.unaligned(addresses) {
            self.total.faults += 1;
            counted[number].faults += 1;
        }
        for pair in &block.pairs {
            let [first, second] = pair.accesses;
            let is_crossing = u64::from(addresses[first] != addresses[second]);
            self.total.crossing += is_crossing;
            counted[second].crossing += is_crossing;
        }
    }

    pub(super) fn mark(&mut self, thread: u32, mark: Mark) {
        match mark {
            Mark::UnitBegins(number) => self.threads.begin_unit(number, &self.total),
            Mark::UnitEnds(number) | Mark::UnitLeft(number) => {
                let ended = self.threads.end_unit(number, &self.total);
                self.units.extend(ended.map(|totals| UnitFaults { number, thread, totals }));
            }
            Mark::UnitCut(number) => drop(self.threads.end_unit(number, &self.total)),
            Mark::Exception(_) | Mark::PalCall(_) | Mark::PalReturn | Mark::Gap => {
                self.fix_ups.mark(thread, mark);
            }
            _ => {}
        }
    }
}

impl Consumer for FaultCounts {
    fn define(&mut self, block: &Block) {
        self.shapes.push(RecordShape::new(block.instruction_set, &block.words, false));
        self.blocks.push(CheckedBlock::new(block));
        self.executions.push(0);
        self.accesses.push(Box::default());
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.enter(thread.number);
        let shapes = std::mem::take(&mut self.shapes);
        for entry in Entries::new(records, &shapes) {
            match entry {
                Entry::Execution(execution) => drop(self.execution(thread.number, &execution)),
                Entry::Mark(mark) => self.mark(thread.number, mark),
            }
        }
        self.shapes = shapes;
    }
}

impl MergeableModel for FaultCounts {
    fn merge(&mut self, ended: FaultCounts) {
        self.executions.iter_mut().zip(ended.executions).for_each(|(own, ended)| *own += ended);
        for (own, ended) in self.accesses.iter_mut().zip(ended.accesses) {
            if own.is_empty() {
                *own = ended;
                continue;
            }
            for (own, ended) in own.iter_mut().zip(&ended) {
                own.faults += ended.faults;
                own.crossing += ended.crossing;
            }
        }
        self.total.add(&ended.total);
        self.units.extend(ended.units);
        self.fix_ups.merge(ended.fix_ups);
    }

    fn totals(&self) -> Vec<u64> {
        self.total.row().into()
    }
}

impl Model for FaultCounts {
    fn reset_counts(&mut self) {
        self.executions.fill(0);
        self.accesses.fill(Box::default());
        self.total = AlignmentTotals::default();
        self.threads.reset();
        self.units.clear();
        self.fix_ups.reset();
    }
}
