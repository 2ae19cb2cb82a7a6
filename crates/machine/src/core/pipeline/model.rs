//! The timing model of a machine: pipeline, branch predictor and memory system consume records.

use std::collections::BTreeMap;
use std::io;

use events::{Block, Consumer, MappedImage, Thread};

use super::accounting::{Accounting, UnitCycles};
use super::any_core::AnyCore;
use super::cached_memory::CachedMemory;
use super::core::Core;
#[cfg(doc)]
use super::cycles::Cause;
use super::cycles::{Cycles, LEVELS, PipelineSide, SampledCycles};
use super::issue::SiteCycles;
use super::memory::{MemorySystem, PerfectMemory, Timing};
use super::resolve::Resolver;
use super::worker::{BATCH_WORDS, Worker};
use crate::core::out_of_order::{NonOverlapped, OutOfOrderCore, OutOfOrderCounts};
use crate::core::predictor::{Predictions, PredictorState};
use crate::observe::sample_parts::SampleOwner;
use crate::observe::sampling::{SamplingPlan, WindowSampler, WindowSums};
use crate::{Cache, Machine, MergeableModel, Model, ModelNeeds};

/// Why a machine has no timing model.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TimingModelError {
    /// Its description lacks a section.
    #[error(
        "the machine {name:?} has no section [{section}], which the time of instructions depends on: \
         name another machine, as alphastation500"
    )]
    Missing {
        /// The machine.
        name: String,
        /// The missing section.
        section: &'static str,
    },
    /// Issue groups are longer than a line of the instruction cache.
    #[error("a group of {group} instructions does not fit a line of {line} bytes of the cache {cache:?}")]
    Group {
        /// Instructions of a group.
        group: u32,
        /// Bytes of a line.
        line: u64,
        /// The cache's name.
        cache: String,
    },
}

/// The timing model: how many cycles a machine takes for the records that it consumes.
///
/// The machine has one processor, which executes the records in the order in which they come.
///
/// ```
/// use pathlength_machine::{Cause, Machine, TimingModel};
/// use events::{Block, Consumer, Thread};
/// let mut time = TimingModel::new(&Machine::find("alphastation500").unwrap()).unwrap();
/// time.define(&Block::new(&isa::Alpha, 0x1_2000_0000, [0x4020_0401, 0x4040_0402, 0x6bfa_8001])); // addq, addq, ret
/// time.executed(Thread::default(), &[!0]); // block 0, without accesses
/// assert_eq!(time.cycles().instructions(), 3);
/// assert!(time.cycles().of(Cause::InstructionMiss(3)) > 0); // memory
/// ```
pub struct TimingModel<M = CachedMemory> {
    requests: Requests<M>,
    worker: Worker<M>,
}

/// When the memory requests of blocks are resolved: before the pipeline executes them; or by an out-of-order core itself,
/// because its wrong paths request lines, too.
enum Requests<M> {
    Ahead(Resolver<M>),
    ByCore(Resolver<PerfectMemory>),
}

/// The same for both.
macro_rules! either {
    ($requests:expr, $resolver:ident => $what:expr) => {
        match $requests {
            Requests::Ahead($resolver) => $what,
            Requests::ByCore($resolver) => $what,
        }
    };
}

impl TimingModel {
    /// Of a machine with empty caches.
    pub fn new(machine: &Machine) -> Result<TimingModel, TimingModelError> {
        TimingModel::with_memory(machine, CachedMemory::new(machine))
    }
}

impl<M: MemorySystem + 'static> TimingModel<M> {
    /// Of a machine's processor with another memory system.
    pub fn with_memory(machine: &Machine, memory: M) -> Result<TimingModel<M>, TimingModelError> {
        let missing = |section| TimingModelError::Missing { name: machine.title.clone(), section };
        let predictor = |is_needed: bool| match &machine.predictor {
            Some(predictor) => Ok(PredictorState::new(predictor)),
            None if is_needed => Err(missing("predictor")),
            None => Err(missing("pipeline")),
        };
        let emulation = machine.emulation.as_ref().map(|emulation| {
            let cpu = machine.processor.cpu.as_ref().and_then(|cpu| cpu.parse().ok());
            (cpu, (emulation.microseconds * machine.processor.clock_mhz).round() as u64)
        });
        let (cpu, cycles) = emulation.unwrap_or_default();
        let timing = timing(machine);
        if let Some(core) = &machine.out_of_order {
            let requests = Requests::ByCore(Resolver::new(PerfectMemory, timing.fetch_line));
            let levels = machine.caches.iter().filter(|cache| cache.holds.has(false)).count();
            let memory_level = levels.min(LEVELS) as u8;
            let core =
                OutOfOrderCore::new(core, predictor(true)?, &timing, memory, (cpu, cycles), memory_level);
            let core = AnyCore::OutOfOrder(Box::new(core));
            return Ok(TimingModel { requests, worker: Worker::new(Accounting::new(core)) });
        }
        let predictor = predictor(machine.pipeline.is_some())?;
        let pipeline = machine.pipeline.as_ref().ok_or_else(|| missing("pipeline"))?;
        if let Some(cache) = l1(machine, true)
            && cache.line < 4 * u64::from(pipeline.group)
        {
            let (group, line, cache) = (pipeline.group, cache.line, cache.name.clone());
            return Err(TimingModelError::Group { group, line, cache });
        }
        let core = AnyCore::InOrder(Box::new(Core::new(pipeline, predictor, &timing, cpu, cycles)));
        let requests = Requests::Ahead(Resolver::new(memory, timing.fetch_line));
        Ok(TimingModel { requests, worker: Worker::new(Accounting::new(core)) })
    }

    /// Simulates only a sample of the execution in detail. The model's cycles are then those of the parts simulated in detail,
    /// and [`TimingModel::sampled`] estimates those of the whole.
    pub fn with_sampling(self, plan: SamplingPlan) -> TimingModel<M> {
        self.worker.drained().sampler = Some(WindowSampler::new(plan));
        self
    }

    /// The measurements of a sample.
    pub fn sampled(&self) -> Option<SampledCycles> {
        let accounting = self.worker.drained();
        let sampler = accounting.sampler.as_ref()?;
        Some(sampler.ended(accounting.core.cycles().with_total()))
    }

    /// The measurements of a sample in the parts of the execution whose processes and units of work have the same key.
    pub fn sampled_by<K: Ord>(&self, key: impl Fn(SampleOwner) -> K) -> Option<BTreeMap<K, WindowSums<1>>> {
        let accounting = self.worker.drained();
        let sampler = accounting.sampler.as_ref()?;
        Some(sampler.sums_by(accounting.core.cycles().with_total(), key))
    }

    /// All cycles so far.
    pub fn cycles(&self) -> Cycles {
        self.worker.drained().core.all_cycles()
    }

    /// The units of work that ended, in the order of their ends, each with the cycles of its own thread.
    pub fn units(&self) -> Vec<UnitCycles> {
        self.worker.drained().units.clone()
    }

    /// Executions of a block.
    pub fn executions(&self, block: u32) -> u64 {
        either!(&self.requests, resolver => resolver.executions(block))
    }

    /// The cycles of a block's instructions. The sum over all blocks is [`TimingModel::cycles`].
    pub fn sites(&self, block: u32) -> Vec<SiteCycles> {
        self.worker.drained().core.sites(block as usize)
    }

    /// Branches and jumps, and how many were mispredicted.
    pub fn predictions(&self) -> Predictions {
        self.worker.drained().core.predictor().counts()
    }

    /// Instructions that the system emulated.
    pub fn emulated(&self) -> u64 {
        self.worker.drained().core.emulated()
    }

    /// Instructions that were replayed (replay traps).
    pub fn replays(&self) -> u64 {
        self.worker.drained().core.replays()
    }

    /// Counts of an out-of-order core beside cycles.
    pub fn out_of_order(&self) -> Option<OutOfOrderCounts> {
        self.worker.drained().core.out_of_order().map(OutOfOrderCore::counts)
    }

    /// The cycles of an out-of-order core if nothing overlapped.
    pub fn non_overlapped(&self) -> Option<NonOverlapped> {
        self.worker.drained().core.out_of_order().map(OutOfOrderCore::non_overlapped)
    }
}

impl<M: MemorySystem + 'static> Consumer for TimingModel<M> {
    fn map(&mut self, image: &MappedImage) {
        self.worker.map(image);
    }

    fn define(&mut self, block: &Block) {
        either!(&mut self.requests, resolver => resolver.define(block));
        self.worker.define(block);
    }

    fn executed(&mut self, thread: Thread, mut records: &[u64]) {
        either!(&mut self.requests, resolver => resolver.enter(thread.process));
        while !records.is_empty() {
            let batch = self.worker.batch(thread);
            let words =
                either!(&mut self.requests, resolver => resolver.resolve(records, BATCH_WORDS, batch));
            records = &records[words..];
        }
    }
}

impl<M: MemorySystem + 'static> MergeableModel for TimingModel<M> {
    fn merge(&mut self, ended: TimingModel<M>) {
        match (&mut self.requests, &ended.requests) {
            (Requests::Ahead(own), Requests::Ahead(ended)) => own.add_executions(ended),
            (Requests::ByCore(own), Requests::ByCore(ended)) => own.add_executions(ended),
            _ => unreachable!("both are of the same machine"),
        }
        self.worker.drained().merge(&mut ended.worker.drained());
    }

    fn totals(&self) -> Vec<u64> {
        let cycles = self.cycles();
        let sides = [PipelineSide::Issuing, PipelineSide::FrontEnd, PipelineSide::BackEnd];
        let of_sides = sides.map(|side| cycles.of_side(side));
        [cycles.total(), cycles.instructions()].into_iter().chain(of_sides).collect()
    }
}

impl<M: MemorySystem + 'static> Model for TimingModel<M> {
    fn reset_counts(&mut self) {
        either!(&mut self.requests, resolver => resolver.reset_counts());
        self.worker.drained().reset_counts();
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        self.worker.start_thread()?;
        Ok(true)
    }

    fn needs(&self) -> ModelNeeds {
        ModelNeeds { pipelines: true, ..ModelNeeds::default() }
    }
}

/// The L1 cache of instructions, or of data.
fn l1(machine: &Machine, instructions: bool) -> Option<&Cache> {
    machine.caches.iter().find(|cache| cache.holds.has(instructions))
}

/// The latencies of a machine's caches and memory in cycles, by level. Levels beyond the last cache have the
/// latency of memory.
fn timing(machine: &Machine) -> Timing {
    let memory = machine.memory.latency_ns * machine.processor.clock_mhz / 1000.0;
    let latencies = |instructions: bool| {
        let path = machine.caches.iter().filter(move |cache| cache.holds.has(instructions));
        let latencies = path.map(|cache| cache.latency).chain(std::iter::repeat(memory));
        latencies.map(|latency| latency.round() as u32)
    };
    let hit = |instructions: bool| latencies(instructions).next().unwrap_or_default();
    let beyond = |instructions: bool, hidden: u32| {
        let mut cycles = [0; LEVELS + 1];
        for (level, latency) in cycles[1..].iter_mut().zip(latencies(instructions).skip(1)) {
            *level = latency.saturating_sub(hidden);
        }
        cycles
    };
    let line = |instructions: bool| l1(machine, instructions).map_or(32, |cache| cache.line);
    let write_buffer = l1(machine, false).and_then(|cache| cache.write_buffer);
    Timing {
        fetch_line: line(true),
        data_line: line(false),
        fetch_hit: hit(true),
        load_hit: hit(false),
        fetch: beyond(true, 1),
        load: beyond(false, hit(false)),
        write_buffer: write_buffer.map_or(0, |buffer| buffer.entries),
    }
}
