//! Which data processors share: the operations on the bus of a coherent machine, by thread, instruction and accessed data.

mod advice;
mod code_tables;
mod data_tables;
mod devices;
mod groups;
mod node_tables;
mod partners;
mod tables;
mod transfers;

use std::collections::{BTreeMap, HashMap};

use events::record::{Entries, Entry, Execution, Mark, RecordShape};
use events::{Block, BlockId, Consumer, MappedImage, Thread};
use machine::{
    AddressSpaces, BusCounts, BusEvent, BusOperation, Coherence, CoherenceCheck, CoherentMemory, DataTlbs,
    Machine, Model, ModelNeeds, NodeMemory, SharingClass,
};

use crate::memory_layout::MemoryLayout;
use crate::models::{ExecutionPart, UnitClasses};
use crate::names::Names;
pub use code_tables::{by_class, by_code};
pub use data_tables::{by_cache_line, by_data, by_thread};
use devices::DeviceFunctions;
pub use node_tables::{by_interconnect_operation, by_node, interconnect_operation_name};
pub use partners::by_partner;
pub use tables::{state_changes, summary};

/// Simulates the private caches of several processors, and attributes what they need the bus for.
///
/// Threads run on the processors that [`Consumer::runs_on`] names, as in a replay by
/// [`ReplayOrder::Interleaved`](crate::replay::ReplayOrder::Interleaved).
pub struct SharingAnalysis {
    memory: CoherentMemory,
    tlbs: DataTlbs,
    spaces: AddressSpaces,
    /// The names of objects that processes share, by number; and the arrays for them.
    objects: BTreeMap<u32, String>,
    object_arrays: HashMap<u32, u32>,
    /// The processor that executes what follows.
    processor: u8,
    shapes: Vec<RecordShape>,
    blocks: Vec<AccessedBlock>,
    /// By class of units of work, or outside of units, and block, the counts of each access; empty until one needs the bus.
    by_access: BTreeMap<Option<u32>, Vec<Box<[SharingCounts]>>>,
    executions: Vec<u64>,
    instructions: u64,
    /// Those of each class, and those without a class.
    units: BTreeMap<Option<u32>, u64>,
    classes: UnitClasses,
    /// By thread, the class of the open unit.
    open: HashMap<u32, Option<u32>>,
    threads: Vec<u32>,
    layout: MemoryLayout,
    names: Names,
    accesses: Vec<SharedAccess>,
    numbers: HashMap<AccessKey, u32>,
    /// By line, the store that last made its copy the only one.
    writers: HashMap<u32, LineWriter>,
    /// Lines that move together.
    partners: partners::Partners,
    /// Operations of lines that moved which are in no [`SharedAccess`], as there were too many.
    not_attributed: u64,
    /// Checks each access, if that is wanted.
    check: Option<CoherenceCheck>,
    devices: DeviceFunctions,
    /// The line that a device moved last, and whether it wrote it.
    last_transfer: Option<(u64, bool)>,
}

/// A block, as far as its accesses are concerned.
#[derive(Debug)]
struct AccessedBlock {
    image: Option<u32>,
    instructions: u64,
    accesses: Box<[CodeAccess]>,
    /// The number of an access by the stack pointer.
    stack: Option<usize>,
    /// Whether its loads, and its stores, are a device's.
    is_device: Option<[bool; 2]>,
}

/// A load or a store of a block.
#[derive(Clone, Copy, Debug)]
struct CodeAccess {
    /// The index of its instruction in the block.
    index: u32,
    size: u8,
    is_store: bool,
    is_locked: bool,
    base: u8,
}

/// Counts of accesses that have something in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SharingCounts {
    /// By [`SharingClass`].
    misses: [u64; 4],
    reads: u64,
    reads_for_ownership: u64,
    upgrades: u64,
    /// Upgrades that invalidated only copies of false sharing misses.
    needless_upgrades: u64,
    transfers: u64,
    /// Dirty lines that were evicted for them.
    write_backs: u64,
    /// By [`InterconnectOperation`](machine::InterconnectOperation).
    interconnect: [u64; 7],
}

/// A load or a store of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ThreadAccess {
    thread: u32,
    block: BlockId,
    /// The number of the access in its block.
    access: u32,
}

/// The store that made a line's copy the only one.
type LineWriter = ThreadAccess;

/// Accesses of one instruction in one thread to one part of a line that moved between processors, from where it was
/// written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AccessKey {
    process: u32,
    address: u64,
    /// The number of the line.
    line: u32,
    by: ThreadAccess,
    /// The class of the unit of work in which they are, if it has one.
    class: Option<u32>,
    writer: Option<LineWriter>,
}

/// The data of such accesses, and their counts.
#[derive(Clone, Debug)]
struct SharedAccess {
    key: AccessKey,
    /// An index of [`MemoryLayout::arrays`], and a member of the structure.
    data: (u32, Option<usize>),
    /// The distance from the beginning of the variable or block.
    offset: Option<u64>,
    counts: SharingCounts,
}

/// The greatest number of [`SharedAccess`]es: it bounds the memory that a damaged trace can take.
const MOST_ACCESSES: usize = 1 << 22;

impl SharingCounts {
    fn event(&mut self, event: &BusEvent) {
        match event.operation {
            BusOperation::Read => self.reads += 1,
            BusOperation::ReadForOwnership => self.reads_for_ownership += 1,
            BusOperation::Upgrade => {
                self.upgrades += 1;
                let is_needless = event.invalidated != 0 && event.invalidated == event.needless;
                self.needless_upgrades += u64::from(is_needless);
            }
        }
        self.transfers += u64::from(event.supplier.is_some());
        self.write_backs += u64::from(event.write_backs);
        let exchanged = self.interconnect.iter_mut().zip(event.exchange.operations);
        exchanged.for_each(|(sum, count)| *sum += u64::from(count));
        if let Some(class) = event.class {
            self.misses[class as usize] += 1;
        }
    }

    fn add(&mut self, other: &SharingCounts) {
        self.misses.iter_mut().zip(other.misses).for_each(|(sum, more)| *sum += more);
        self.reads += other.reads;
        self.reads_for_ownership += other.reads_for_ownership;
        self.upgrades += other.upgrades;
        self.needless_upgrades += other.needless_upgrades;
        self.transfers += other.transfers;
        self.write_backs += other.write_backs;
        self.interconnect.iter_mut().zip(other.interconnect).for_each(|(sum, more)| *sum += more);
    }

    /// Operations on the interconnect between nodes.
    fn exchanged(&self) -> u64 {
        self.interconnect.iter().sum()
    }

    /// Operations on the bus.
    fn operations(&self) -> u64 {
        self.reads + self.reads_for_ownership + self.upgrades
    }

    /// Operations that would not occur if no two processors used different bytes of the same line.
    fn needless(&self) -> u64 {
        self.misses[SharingClass::False as usize] + self.needless_upgrades
    }
}

impl SharingAnalysis {
    /// Nothing executed yet, on a machine with a number of processors from 1 to [`CoherentMemory::MOST_PROCESSORS`].
    /// `objects` are the names of what processes share, by number.
    pub fn new(
        machine: &Machine,
        coherence: &Coherence,
        processors: u32,
        objects: BTreeMap<u32, String>,
    ) -> SharingAnalysis {
        SharingAnalysis {
            memory: CoherentMemory::new(machine, coherence, processors as usize),
            tlbs: DataTlbs::new(machine, processors as usize),
            spaces: AddressSpaces::new(),
            objects,
            object_arrays: HashMap::new(),
            processor: 0,
            shapes: Vec::new(),
            blocks: Vec::new(),
            by_access: BTreeMap::new(),
            executions: Vec::new(),
            instructions: 0,
            units: BTreeMap::new(),
            classes: UnitClasses::default(),
            open: HashMap::new(),
            threads: Vec::new(),
            layout: MemoryLayout::new(),
            names: Names::default(),
            accesses: Vec::new(),
            numbers: HashMap::new(),
            writers: HashMap::new(),
            partners: partners::Partners::default(),
            not_attributed: 0,
            check: None,
            devices: DeviceFunctions::default(),
            last_transfer: None,
        }
    }

    /// The classes of units of work.
    pub fn classes(&self) -> &UnitClasses {
        &self.classes
    }

    /// The classes of units of work, those with most operations first, and what is outside of units, with their names.
    pub fn parts(&self) -> Vec<(String, ExecutionPart)> {
        self.classes.parts(|part| self.weight(&self.sum(part)))
    }

    /// The counts of all accesses of a part of the execution.
    fn sum(&self, part: ExecutionPart) -> SharingCounts {
        let mut sum = SharingCounts::default();
        let counts = (0..self.blocks.len()).flat_map(|block| self.counts_of(part, block));
        counts.for_each(|counts| sum.add(&counts));
        sum
    }

    /// Checks that each access finds what was stored last, and that stores leave no other copy. This takes longer.
    pub fn check_coherence(&mut self) {
        self.check = Some(CoherenceCheck::new());
    }

    /// The number of accesses that were checked, or the first one that violates an invariant; None if nothing was checked.
    pub fn checked(&self) -> Option<Result<u64, String>> {
        self.check.as_ref().map(CoherenceCheck::result)
    }

    /// The execution has ended: decides what was left open.
    pub fn end(&mut self) {
        self.memory.end();
        self.decide();
    }

    /// The counts of the machine.
    pub fn counts(&self) -> &BusCounts {
        self.memory.counts()
    }

    /// The nodes of the machine, if it has any.
    pub fn nodes(&self) -> Option<&NodeMemory> {
        self.memory.nodes()
    }

    /// The number of instructions.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The number of units of work that ended.
    pub fn units(&self) -> u64 {
        self.units_of(ExecutionPart::Whole)
    }

    /// The same of a part of the execution.
    pub fn units_of(&self, part: ExecutionPart) -> u64 {
        self.units.iter().filter(|(class, _)| part.has(**class)).map(|(_, units)| units).sum()
    }

    /// Operations on the interconnect in a part of the execution, by [`InterconnectOperation`](machine::InterconnectOperation).
    pub fn interconnect(&self, part: ExecutionPart) -> [u64; 7] {
        self.sum(part).interconnect
    }

    /// The counts of each access of a block in a part of the execution.
    fn counts_of(&self, part: ExecutionPart, block: usize) -> Vec<SharingCounts> {
        let mut sums = vec![SharingCounts::default(); self.blocks[block].accesses.len()];
        for (_, blocks) in self.by_access.iter().filter(|(class, _)| part.has(**class)) {
            let counts = blocks.get(block).into_iter().flatten();
            sums.iter_mut().zip(counts).for_each(|(sum, more)| sum.add(more));
        }
        sums
    }

    /// The count by which rows are sorted: operations on the interconnect, or on the bus of a machine that has only one.
    fn weight(&self, counts: &SharingCounts) -> u64 {
        match self.nodes() {
            Some(_) => counts.exchanged(),
            None => counts.operations(),
        }
    }

    /// The number of threads that executed something.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    fn execution(&mut self, thread: Thread, processor: u8, execution: &Execution) {
        let block = &self.blocks[execution.block as usize];
        if let Some(is_device) = block.is_device {
            return self.transfer(thread, processor, execution, is_device);
        }
        self.executions[execution.block as usize] += 1;
        self.instructions += block.instructions;
        self.layout.block(thread.process, block.image, &self.names);
        if let Some(number) = block.stack {
            self.layout.find(thread, block.accesses[number].base, execution.addresses[number]);
        }
        let line = self.memory.line_size();
        for (number, &address) in execution.addresses.iter().enumerate() {
            let CodeAccess { size, is_store, .. } = self.blocks[execution.block as usize].accesses[number];
            self.tlbs.access(processor, thread.process, address);
            let (mut at, end) = (address, address.saturating_add(size.into()));
            while at < end {
                // An access that is not aligned may use two lines.
                let part = (end - at).min(line - at % line) as u8;
                let physical = self.spaces.physical_address(thread.process, at, is_store);
                let event = self.memory.access(processor, physical, part, is_store);
                if let Some(check) = &mut self.check {
                    check.accessed(&mut self.memory, (processor, physical, is_store), event.as_ref());
                }
                if let Some(event) = event {
                    self.event(thread, processor, execution.block, number, at, &event);
                }
                at += u64::from(part);
            }
        }
    }

    /// An access needed the bus.
    #[cold]
    fn event(
        &mut self,
        thread: Thread,
        processor: u8,
        block: BlockId,
        access: usize,
        address: u64,
        event: &BusEvent,
    ) {
        let class = self.open.get(&thread.number).copied().flatten();
        let blocks = self.by_access.entry(class).or_default();
        if blocks.len() <= block as usize {
            blocks.resize(self.blocks.len(), Box::default());
        }
        let counts = &mut blocks[block as usize];
        if counts.is_empty() {
            *counts = vec![SharingCounts::default(); self.blocks[block as usize].accesses.len()].into();
        }
        counts[access].event(event);
        let by = ThreadAccess { thread: thread.number, block, access: access as u32 };
        let has_moved = event.is_undecided()
            || event.class == Some(SharingClass::True)
            || event.supplier.is_some()
            || event.invalidated != 0
            || event.exchange.count() != 0;
        if has_moved {
            let writer = self.writers.get(&event.line).copied();
            let key = AccessKey { process: thread.process, address, line: event.line, by, class, writer };
            self.partners.moved(thread.number, event.line, self.instructions);
            self.moved(thread, processor, key, event);
        }
        if event.operation != BusOperation::Read {
            self.writers.insert(event.line, by);
        }
        self.decide();
    }

    /// A line has moved between processors or nodes, or copies of it were invalidated.
    fn moved(&mut self, thread: Thread, processor: u8, key: AccessKey, event: &BusEvent) {
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None if self.accesses.len() == MOST_ACCESSES => {
                self.not_attributed += 1;
                return;
            }
            None => self.add_access(thread, key),
        };
        self.accesses[number as usize].counts.event(event);
        if event.is_undecided() {
            self.memory.set_token(processor, event.line, number);
        }
    }

    fn add_access(&mut self, thread: Thread, key: AccessKey) -> u32 {
        let number = self.accesses.len() as u32;
        let CodeAccess { base, .. } = self.code_access(key.by);
        let mut array = self.layout.find(thread, base, key.address);
        let member = self.layout.member(key.process, key.address);
        let mut offset = self.layout.offset(key.process, array, key.address);
        if self.layout.is_other(array)
            && let Some((object, at)) = self.spaces.shared_object(key.process, key.address)
        {
            (array, offset) = (self.object_array(object), Some(at));
        }
        let counts = SharingCounts::default();
        self.accesses.push(SharedAccess { key, data: (array, member), offset, counts });
        self.numbers.insert(key, number);
        number
    }

    /// The array of an object that processes share.
    fn object_array(&mut self, object: u32) -> u32 {
        let (objects, layout) = (&self.objects, &mut self.layout);
        *self.object_arrays.entry(object).or_insert_with(|| {
            let name = objects.get(&object).map_or("shared memory", String::as_str);
            layout.add_object(&format!("({name})"))
        })
    }

    /// Counts the misses whose class was decided.
    fn decide(&mut self) {
        for decision in self.memory.take_decisions() {
            let class = if decision.is_true { SharingClass::True } else { SharingClass::False };
            let access = &mut self.accesses[decision.token as usize];
            access.counts.misses[class as usize] += 1;
            let AccessKey { by: ThreadAccess { block, access, .. }, class: of_unit, .. } = access.key;
            let counts = self.by_access.get_mut(&of_unit).and_then(|blocks| blocks.get_mut(block as usize));
            if let Some(counts) = counts.and_then(|counts| counts.get_mut(access as usize)) {
                counts.misses[class as usize] += 1;
            }
        }
    }

    fn code_access(&self, access: ThreadAccess) -> CodeAccess {
        self.blocks[access.block as usize].accesses[access.access as usize]
    }

    fn mark(&mut self, thread: Thread, mark: Mark) {
        match mark {
            Mark::UnitBegins(unit) => drop(self.open.insert(thread.number, self.classes.of(unit))),
            Mark::UnitEnds(unit) => {
                *self.units.entry(self.classes.of(unit)).or_default() += 1;
                self.open.remove(&thread.number);
            }
            Mark::UnitLeft(_) => drop(self.open.remove(&thread.number)),
            Mark::Heap(heap) => self.layout.heap(thread, heap, &self.names),
            Mark::Mapping(mapping) => self.spaces.mark(thread.process, mapping),
            _ => {}
        }
    }
}

impl Consumer for SharingAnalysis {
    fn map(&mut self, image: &MappedImage) {
        self.names.add(image);
        self.layout.add_image(image);
    }

    fn define(&mut self, block: &Block) {
        let set = block.instruction_set;
        self.shapes.push(RecordShape::new(set, &block.words, false));
        let summaries = block.words.iter().map(|&word| set.summary(word).unwrap_or_default());
        let accesses: Box<[CodeAccess]> = summaries
            .zip(0..)
            .flat_map(|(summary, index)| summary.accesses().map(move |access| (access, index)))
            .map(|(access, index)| {
                let isa::MemoryAccess { size, is_store, is_locked, base, .. } = access;
                CodeAccess { index, size, is_store, is_locked, base }
            })
            .collect();
        let stack = accesses.iter().position(|access| access.base == set.stack_pointer());
        let instructions = block.words.len() as u64;
        let is_device = self.devices.of(&self.names, block);
        self.blocks.push(AccessedBlock { image: block.image, instructions, accesses, stack, is_device });
        self.executions.push(0);
    }

    fn runs_on(&mut self, _: Thread, processor: u32) {
        self.processor = (processor as usize).min(self.memory.processors() - 1) as u8;
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        if !self.threads.contains(&thread.number) {
            self.threads.push(thread.number);
        }
        let processor = self.processor;
        self.memory.runs(processor, thread.process);
        self.tlbs.runs(processor, thread.process);
        let shapes = std::mem::take(&mut self.shapes);
        for entry in Entries::new(records, &shapes) {
            match entry {
                Entry::Execution(execution) => self.execution(thread, processor, &execution),
                Entry::Mark(mark) => self.mark(thread, mark),
            }
        }
        self.shapes = shapes;
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        self.classes.add(unit, class);
    }
}

impl Model for SharingAnalysis {
    fn reset_counts(&mut self) {
        self.memory.reset_counts();
        self.tlbs.reset_counts();
        self.by_access.clear();
        self.units.clear();
        self.executions.fill(0);
        (self.instructions, self.not_attributed) = (0, 0);
        self.accesses.clear();
        self.numbers.clear();
        self.partners.reset_counts();
    }

    fn needs(&self) -> ModelNeeds {
        ModelNeeds { heap: true, ..ModelNeeds::default() }
    }
}
