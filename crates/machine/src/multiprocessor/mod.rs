//! Several processors on a snooping bus, in time: the one with the least time executes its next block, up to the next
//! transaction on the bus ([design](../../../../docs/design/multiprocessors.md)).

mod bus;
mod interconnect;
mod processor;
mod sampling;
mod unit_counts;

use std::collections::{BTreeMap, HashMap};

use events::record::{Event, Mark, RecordShape};
use events::{Block, BlockId, Thread};
use isa::InstructionClass;

pub use self::bus::{BusClock, BusUse, Transaction, TransactionCounts, picoseconds};
pub use self::interconnect::{InterconnectClock, InterconnectUse};
use self::processor::{OpenBlock, ProcessorState};
pub use self::processor::{ProcessorCause, ProcessorCounts};
pub use self::sampling::SampledTime;
use self::sampling::{ProcessorSampler, WARMING_TURN};
use self::unit_counts::ProcessorUnitCounts;
use crate::description::{Bus, BusProcessor, Coherence, Machine};
use crate::memory::coherence::{AddressSpaces, BusEvent, BusOperation, CoherentMemory, NodeMemory};
use crate::observe::sample_parts::SampleOwner;
use crate::observe::sampling::{SamplingPlan, WindowSums};

/// A block, as far as time is concerned.
#[derive(Clone, Debug)]
struct TimedBlock {
    instructions: u64,
    time: u64,
    barriers: u64,
    /// The instruction lines that it lies in.
    lines: std::ops::Range<u64>,
    /// The sizes of its accesses, and whether they store.
    accesses: Box<[(u8, bool)]>,
}

/// The next step of a machine's processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// They can continue: call [`Multiprocessor::step`].
    Continue,
    /// This processor needs records ([`Multiprocessor::feed`]), or has none to execute ([`Multiprocessor::idle`]).
    Feed(usize),
    /// All processors have nothing to execute.
    AllIdle,
}

/// The processors of a machine with their caches and their bus, or with the buses of their nodes.
#[derive(Debug)]
pub struct Multiprocessor {
    memory: CoherentMemory,
    spaces: AddressSpaces,
    /// One for each node.
    buses: Vec<BusClock>,
    interconnect: Option<InterconnectClock>,
    core: BusProcessor,
    /// Picoseconds of a cycle, and of an instruction.
    cycle: u64,
    instruction: f64,
    /// Logarithm of the bytes of an instruction line; None if fetches are not simulated.
    fetch_shift: Option<u32>,
    blocks: Vec<TimedBlock>,
    shapes: Vec<RecordShape>,
    processors: Vec<ProcessorState>,
    /// The windows that are executed in time; everything without it.
    sampler: Option<ProcessorSampler>,
    units: ProcessorUnitCounts,
    began: u64,
}

impl Multiprocessor {
    /// Processors that have executed nothing, with the caches and the bus of a machine.
    ///
    /// # Panics
    /// If there are no processors, or more than [`CoherentMemory::MOST_PROCESSORS`].
    pub fn new(
        machine: &Machine,
        coherence: &Coherence,
        bus: &Bus,
        processor: &BusProcessor,
        processors: usize,
    ) -> Multiprocessor {
        let clock = machine.processor.clock_mhz;
        let memory = CoherentMemory::new(machine, coherence, processors);
        let nodes = memory.nodes().map_or(1, NodeMemory::nodes);
        Multiprocessor {
            memory,
            spaces: AddressSpaces::new(),
            buses: vec![BusClock::new(bus); nodes],
            interconnect: coherence.nodes.as_ref().map(|it| InterconnectClock::new(it, nodes)),
            core: processor.clone(),
            cycle: picoseconds(clock),
            instruction: processor.cycles_per_instruction * picoseconds(clock) as f64,
            fetch_shift: coherence.instruction_cache(&machine.caches).map(|cache| cache.line.ilog2()),
            blocks: Vec::new(),
            shapes: Vec::new(),
            processors: vec![ProcessorState::default(); processors],
            sampler: None,
            units: ProcessorUnitCounts::new(processors),
            began: 0,
        }
    }

    /// The same for a sample of the execution: [`Multiprocessor::sampled`] estimates what processors spend their time on. The
    /// plan's lengths are instructions of each processor.
    pub fn with_sampling(self, plan: SamplingPlan) -> Multiprocessor {
        let sampler = Some(ProcessorSampler::new(plan, self.processors.len()));
        Multiprocessor { sampler, ..self }
    }

    /// The measurements of a sample.
    pub fn sampled(&self) -> Option<&SampledTime> {
        self.sampler.as_ref().map(ProcessorSampler::sampled)
    }

    /// The measurements of a sample in the parts of the execution whose units of work have the same key: picoseconds that are not
    /// idle.
    pub fn sampled_by<K: Ord>(&self, key: impl Fn(SampleOwner) -> K) -> Option<BTreeMap<K, WindowSums<1>>> {
        Some(self.sampler.as_ref()?.sampled_by(&self.processors, key))
    }

    /// Between the windows of a sample, what a transaction takes.
    fn warming_stall(&self) -> Option<u64> {
        self.sampler.as_ref().filter(|sampler| !sampler.is_detailed()).map(ProcessorSampler::stall)
    }

    /// Defines the next block.
    pub fn define(&mut self, block: &Block) {
        let set = block.instruction_set;
        let accesses =
            block.words.iter().filter_map(|&word| set.summary(word)).flat_map(|one| one.accesses());
        let is_barrier = |word: &&u32| {
            set.pipeline_summary(**word)
                .is_some_and(|summary| summary.class == InstructionClass::MemoryBarrier)
        };
        let instructions = block.words.len() as u64;
        self.blocks.push(TimedBlock {
            instructions,
            time: (instructions as f64 * self.instruction).round() as u64,
            barriers: block.words.iter().filter(is_barrier).count() as u64,
            lines: self.fetch_shift.map_or(0..0, |shift| {
                let last = block.end().saturating_sub(1).max(block.address);
                block.address >> shift..(last >> shift) + 1
            }),
            accesses: accesses.map(|access| (access.size, access.is_store)).collect(),
        });
        self.shapes.push(RecordShape::new(set, &block.words, false));
    }

    /// The next step.
    pub fn next_step(&self) -> NextStep {
        let busy = self.processors.iter().enumerate().filter(|(_, processor)| !processor.is_idle);
        match busy.min_by_key(|(_, processor)| processor.time) {
            None => NextStep::AllIdle,
            Some((number, processor)) if processor.is_done() => NextStep::Feed(number),
            Some(_) => NextStep::Continue,
        }
    }

    /// A processor executes these records of a thread next, without values.
    pub fn feed(&mut self, number: usize, thread: Thread, words: &[u64]) {
        if self.processors[number].thread != thread {
            self.settle(number);
            self.report_to_sampler(number);
        }
        let processor = &mut self.processors[number];
        if processor.thread != thread {
            (processor.thread, processor.line) = (thread, None);
            self.memory.runs(number as u8, thread.process);
        }
        processor.words.clear();
        processor.words.extend_from_slice(words);
        processor.at = 0;
        // What others execute now may let an idle processor continue: at this time, if it does.
        let now = processor.time;
        for idle in self.processors.iter_mut().filter(|processor| processor.is_idle) {
            idle.is_idle = false;
            idle.wait_until(now, ProcessorCause::Idle);
        }
    }

    /// The last block that a processor has executed is complete, and is reported to the sampler before the thread or its unit of work
    /// changes.
    fn report_to_sampler(&mut self, number: usize) {
        let before = std::mem::take(&mut self.processors[number].not_sampled);
        if let Some(sampler) = &mut self.sampler {
            sampler.runs(self.processors[number].thread, &self.processors);
            sampler.executed(before, &self.processors);
        }
    }

    /// Adds a processor's counts since the last change to its thread's present unit of work.
    fn settle(&mut self, number: usize) {
        let processor = &self.processors[number];
        self.units.settle(number, processor.thread.number, processor.counts);
    }

    /// The counts of all processors by unit of work; what is outside of units, with all idle time, at None. Complete after
    /// [`Multiprocessor::end`].
    pub fn unit_counts(&self) -> &HashMap<Option<u64>, ProcessorCounts> {
        self.units.counts()
    }

    /// A processor has nothing to execute until another one has executed something.
    pub fn idle(&mut self, number: usize) {
        self.processors[number].is_idle = true;
    }

    /// All idle processors look again for something to execute.
    pub fn wake(&mut self) {
        self.processors.iter_mut().for_each(|processor| processor.is_idle = false);
    }

    /// The processor with the least time executes a block, or continues it, up to the next transaction on the bus.
    ///
    /// # Panics
    /// If [`Multiprocessor::next_step`] does not say that they can continue.
    pub fn step(&mut self) {
        let busy = self.processors.iter().enumerate().filter(|(_, processor)| !processor.is_idle);
        let least = busy.min_by_key(|(_, processor)| processor.time).map(|(number, _)| number);
        let number = least.expect("a processor that is not idle");
        if let Some(sampler) = &mut self.sampler {
            sampler.runs(self.processors[number].thread, &self.processors);
        }
        if let Some(open) = self.processors[number].open.take() {
            return self.continue_block(number, open);
        }
        let end = self.processors[number].counts.instructions + WARMING_TURN;
        while let Some(open) = self.begin_block(number) {
            self.continue_block(number, open);
            if self.warming_stall().is_none() || self.processors[number].counts.instructions >= end {
                break;
            }
        }
    }

    /// Executes marks, and the instructions of the next block without its accesses.
    fn begin_block(&mut self, number: usize) -> Option<OpenBlock> {
        loop {
            let processor = &mut self.processors[number];
            let word = *processor.words.get(processor.at)?;
            processor.at += 1;
            match Event::new(word) {
                Event::Block(block) => return self.execute(number, block),
                Event::Mark(mark) => self.mark(number, mark),
                // The records do not match the blocks: nothing of them can be used.
                Event::Access(_) => processor.at = processor.words.len(),
            }
        }
    }

    fn execute(&mut self, number: usize, block: BlockId) -> Option<OpenBlock> {
        let processor = &mut self.processors[number];
        let known = self.blocks.get(block as usize).filter(|_| {
            let rest = processor.words.len() - processor.at;
            self.shapes[block as usize].accesses as usize <= rest
        });
        let Some(known) = known else {
            processor.at = processor.words.len();
            return None;
        };
        let before = std::mem::replace(&mut processor.not_sampled, known.instructions);
        if let Some(sampler) = &mut self.sampler {
            sampler.executed(before, &self.processors);
        }
        let processor = &mut self.processors[number];
        match &self.sampler {
            Some(sampler) if !sampler.is_detailed() => processor.warm(known.instructions, known.time),
            _ => {
                processor.execute(known.instructions, known.time, self.core.window);
                for _ in 0..known.barriers {
                    processor.drain(ProcessorCause::Barrier);
                    processor.spend(self.cycle * u64::from(self.core.barrier), ProcessorCause::Barrier);
                }
            }
        }
        let open = OpenBlock { block, line: known.lines.start, at: processor.at, access: 0 };
        processor.at += known.accesses.len();
        Some(open)
    }

    fn mark(&mut self, number: usize, mark: Mark) {
        let unit = match mark {
            Mark::UnitBegins(unit) => Some(Some(unit)),
            Mark::UnitEnds(_) | Mark::UnitLeft(_) | Mark::UnitCut(_) => Some(None),
            _ => None,
        };
        if matches!(mark, Mark::UnitEnds(_) | Mark::UnitLeft(_)) {
            self.processors[number].counts.units += 1;
        }
        if let Some(unit) = unit {
            self.settle(number);
            self.units.enter(self.processors[number].thread.number, unit);
            self.report_to_sampler(number);
            if let Some(sampler) = &mut self.sampler {
                sampler.enter_unit(unit, &self.processors);
            }
        }
        let processor = &mut self.processors[number];
        match mark {
            Mark::Mapping(mapping) => self.spaces.mark(processor.thread.process, mapping),
            Mark::SystemCall(_) => {
                processor.spend(self.cycle * u64::from(self.core.system_call), ProcessorCause::System);
            }
            _ => {}
        }
    }

    /// Fetches the lines of a block and makes its accesses, up to one that needs the bus.
    fn continue_block(&mut self, number: usize, mut open: OpenBlock) {
        let (lines, count) = {
            let block = &self.blocks[open.block as usize];
            (block.lines.end, block.accesses.len())
        };
        while open.line < lines {
            open.line += 1;
            if self.fetch(number, open.line - 1) && (open.line < lines || count > 0) {
                self.processors[number].open = Some(open);
                return;
            }
        }
        while open.access < count {
            let (size, is_store) = self.blocks[open.block as usize].accesses[open.access];
            let address = self.processors[number].words[open.at];
            (open.at, open.access) = (open.at + 1, open.access + 1);
            if self.access(number, address, size, is_store) && open.access < count {
                self.processors[number].open = Some(open);
                return;
            }
        }
    }

    /// Fetches an instruction line, unless it was the last one. Returns whether it needed the bus.
    fn fetch(&mut self, number: usize, line: u64) -> bool {
        let (Some(shift), processor) = (self.fetch_shift, &mut self.processors[number]) else { return false };
        if processor.line.replace(line) == Some(line) {
            return false;
        }
        let physical = self.spaces.physical_address(processor.thread.process, line << shift, false);
        let size = (1u64 << shift).min(128) as u8;
        let Some(event) = self.memory.fetch(number as u8, physical, size) else { return false };
        self.memory.take_decisions();
        if let Some(stall) = self.warming_stall() {
            self.processors[number].spend(stall, ProcessorCause::Instructions);
            return false;
        }
        // Instructions are clean, unless the program has just written them.
        let transaction = match event.supplier {
            _ if event.exchange.hops > 0 => Transaction::Remote,
            Some(_) => Transaction::TransferAndUpdate,
            None => Transaction::Memory,
        };
        let line = physical / self.memory.line_size();
        self.processors[number].admit(self.core.outstanding);
        let end = self.request(number, transaction, line, &event);
        self.processors[number].fetch(end);
        true
    }

    /// Makes an access, which may use two lines. Returns whether it needed the bus.
    fn access(&mut self, number: usize, address: u64, size: u8, is_store: bool) -> bool {
        let (line, process) = (self.memory.line_size(), self.processors[number].thread.process);
        let (mut at, end) = (address, address.saturating_add(size.into()));
        let mut used_bus = false;
        while at < end {
            let part = (end - at).min(line - at % line) as u8;
            let physical = self.spaces.physical_address(process, at, is_store);
            let updates = self.memory.counts().memory_updates;
            if let Some(event) = self.memory.access(number as u8, physical, part, is_store) {
                self.memory.take_decisions();
                if let Some(stall) = self.warming_stall() {
                    self.processors[number].spend(stall, ProcessorCause::Memory);
                } else {
                    let has_updated = self.memory.counts().memory_updates > updates;
                    self.transaction(number, physical / line, &event, has_updated, is_store);
                    used_bus = true;
                }
            }
            at += u64::from(part);
        }
        used_bus
    }

    /// The transaction that an access needs. A line that is evicted for it has the same bank: lines that evict each other are a
    /// multiple of the sets of a cache apart.
    fn transaction(&mut self, number: usize, line: u64, event: &BusEvent, has_updated: bool, is_store: bool) {
        let transaction = match (event.operation, event.supplier) {
            _ if event.exchange.hops > 0 => Transaction::Remote,
            (BusOperation::Upgrade, _) => Transaction::Upgrade,
            (_, Some(_)) if has_updated => Transaction::TransferAndUpdate,
            (_, Some(_)) => Transaction::Transfer,
            (_, None) => Transaction::Memory,
        };
        let BusProcessor { outstanding, window, .. } = self.core;
        self.processors[number].admit(outstanding);
        let end = self.request(number, transaction, line, event);
        self.processors[number].begin(end, transaction, !is_store, window);
    }

    /// Requests the bus of a processor's node, and the interconnect, also for a line that was evicted for it. Returns when the
    /// processor can continue.
    fn request(&mut self, number: usize, transaction: Transaction, line: u64, event: &BusEvent) -> u64 {
        let now = self.processors[number].time;
        let node = self.memory.nodes().map_or(0, |nodes| usize::from(nodes.node_of(number as u8)));
        let bus = &mut self.buses[node];
        let end = match (&mut self.interconnect, transaction) {
            (Some(interconnect), Transaction::Remote) => {
                bus.request_remote(now, node, &event.exchange, interconnect)
            }
            _ => bus.request(now, transaction, line),
        };
        if event.write_backs > 0 {
            bus.request(now, Transaction::WriteBack, line);
        }
        end
    }

    /// Resets the counts; caches keep their contents. Processors that have less time than others wait for them.
    pub fn reset_counts(&mut self) {
        self.began = self.now();
        for processor in &mut self.processors {
            processor.wait_until(self.began, ProcessorCause::Idle);
            processor.counts = ProcessorCounts::default();
        }
        self.units.reset();
        self.sampler.iter_mut().for_each(|sampler| sampler.reset_counts(&self.processors));
        self.memory.reset_counts();
        self.buses.iter_mut().for_each(BusClock::reset_counts);
        self.interconnect.iter_mut().for_each(InterconnectClock::reset_counts);
    }

    /// The instructions of all processors.
    pub fn instructions(&self) -> u64 {
        self.processors.iter().map(|processor| processor.counts.instructions).sum()
    }

    /// Units of work that ended on all processors.
    pub fn units(&self) -> u64 {
        self.processors.iter().map(|processor| processor.counts.units).sum()
    }

    /// Everything was executed: processors that have less time than others were idle at the end.
    pub fn end(&mut self) {
        self.processors.iter_mut().for_each(|processor| processor.drain(ProcessorCause::Memory));
        let last = self.now();
        self.processors.iter_mut().for_each(|processor| processor.wait_until(last, ProcessorCause::Idle));
        for number in 0..self.processors.len() {
            self.settle(number);
            self.report_to_sampler(number);
        }
        self.memory.end();
    }

    /// The greatest time of a processor in picoseconds.
    fn now(&self) -> u64 {
        self.processors.iter().map(|processor| processor.time).max().unwrap_or(0)
    }

    /// The time that was counted, in picoseconds.
    pub fn elapsed(&self) -> u64 {
        self.now() - self.began
    }

    /// The counts of each processor.
    pub fn processors(&self) -> impl ExactSizeIterator<Item = &ProcessorCounts> {
        self.processors.iter().map(|processor| &processor.counts)
    }

    /// The bus, or one for each node.
    pub fn buses(&self) -> &[BusClock] {
        &self.buses
    }

    /// The interconnect between nodes.
    pub fn interconnect(&self) -> Option<&InterconnectClock> {
        self.interconnect.as_ref()
    }

    /// The private caches.
    pub fn memory(&self) -> &CoherentMemory {
        &self.memory
    }

    /// Picoseconds of a processor's cycle.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }
}
