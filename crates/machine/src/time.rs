//! Cycles: a pipeline, its branch predictor and its memory hear what was executed.

use std::io;

use trace::{Block, Consumer, Thread};

#[cfg(doc)]
use crate::Cause;
use crate::aside::{Aside, MOST};
use crate::clock::{Clock, UnitTime};
use crate::pipeline::{CachedMemory, Core, LEVELS, MemorySystem, Resolver, Timing};
use crate::predictor::Predicting;
use crate::{Cache, Cycles, Machine, Model, Predictions, SiteCycles};

/// Why a machine has no time.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TimeError {
    /// Its description says nothing of its pipeline or its predictor.
    #[error(
        "the machine {name:?} has no section [{section}], so that it is not known how long anything takes: \
         name another machine, as alphastation500"
    )]
    Missing {
        /// The machine.
        name: String,
        /// What its description lacks.
        section: &'static str,
    },
    /// Groups of instructions are longer than the lines that hold them.
    #[error("a group of {group} instructions does not fit a line of {line} bytes of the cache {cache:?}")]
    Group {
        /// Instructions.
        group: u32,
        /// Bytes.
        line: u64,
        /// Which cache.
        cache: String,
    },
}

/// How long a machine takes for what it hears.
///
/// The machine has one processor, which executes what it hears in that order.
///
/// ```
/// use pathlength_machine::{Cause, Machine, Time};
/// use trace::{Block, Consumer, Thread};
/// let mut time = Time::new(&Machine::find("alphastation500").unwrap()).unwrap();
/// time.define(&Block::new(0x1_2000_0000, [0x4020_0401, 0x4040_0402, 0x6bfa_8001])); // addq, addq, ret
/// time.executed(Thread::default(), &[!0]); // block 0, without accesses
/// assert_eq!(time.cycles().instructions(), 3);
/// assert!(time.cycles().of(Cause::InstructionMiss(3)) > 0); // memory
/// ```
pub struct Time<M = CachedMemory> {
    memory: Resolver<M>,
    aside: Aside,
}

impl Time {
    /// A machine, with empty caches.
    pub fn new(machine: &Machine) -> Result<Time, TimeError> {
        Time::with_memory(machine, CachedMemory::new(machine))
    }
}

impl<M: MemorySystem> Time<M> {
    /// A machine's processor, with memory that answers as `memory` does.
    pub fn with_memory(machine: &Machine, memory: M) -> Result<Time<M>, TimeError> {
        let missing = |section| TimeError::Missing { name: machine.title.clone(), section };
        let pipeline = machine.pipeline.as_ref().ok_or_else(|| missing("pipeline"))?;
        let predictor = machine.predictor.as_ref().ok_or_else(|| missing("predictor"))?;
        if let Some(cache) = first(machine, true)
            && cache.line < 4 * u64::from(pipeline.group)
        {
            let (group, line, cache) = (pipeline.group, cache.line, cache.name.clone());
            return Err(TimeError::Group { group, line, cache });
        }
        let emulation = machine.emulation.as_ref().map(|emulation| {
            let cpu = machine.processor.cpu.as_ref().and_then(|cpu| cpu.parse().ok());
            (cpu, (emulation.microseconds * machine.processor.clock_mhz).round() as u32)
        });
        let (cpu, cycles) = emulation.unwrap_or_default();
        let timing = timing(machine);
        let core = Core::new(pipeline, Predicting::new(predictor), &timing, cpu, cycles.into());
        let memory = Resolver::new(memory, timing.fetch_line);
        Ok(Time { memory, aside: Aside::new(Clock::new(core)) })
    }

    /// All cycles so far.
    pub fn cycles(&self) -> Cycles {
        self.aside.clock().core.totals().cycles()
    }

    /// The units of work that ended as they should, in the order of their ends; each with what its own thread did.
    pub fn units(&self) -> Vec<UnitTime> {
        self.aside.clock().units.clone()
    }

    /// Executions of a block.
    pub fn executions(&self, block: u32) -> u64 {
        self.memory.executions(block)
    }

    /// The cycles of a block's instructions. Those of all blocks together are all cycles.
    pub fn sites(&self, block: u32) -> Vec<SiteCycles> {
        self.aside.clock().core.sites(block as usize)
    }

    /// Branches and jumps, and how they were predicted.
    pub fn predictions(&self) -> Predictions {
        self.aside.clock().core.predictor().counts()
    }

    /// Instructions that the system emulated.
    pub fn emulated(&self) -> u64 {
        self.aside.clock().core.totals().emulated()
    }

    /// Instructions that were issued in vain, and once more (replay traps).
    pub fn replays(&self) -> u64 {
        self.aside.clock().core.totals().replays()
    }

    /// Memory, with what it counted.
    pub fn memory(&self) -> &M {
        &self.memory.memory
    }
}

impl<M: MemorySystem> Consumer for Time<M> {
    fn define(&mut self, block: &Block) {
        self.memory.define(block.address, &block.words);
        self.aside.define(block);
    }

    fn executed(&mut self, thread: Thread, mut records: &[u64]) {
        self.memory.enter(thread.process);
        while !records.is_empty() {
            let words = self.memory.resolve(records, MOST, self.aside.next(thread));
            records = &records[words..];
        }
    }
}

impl<M: MemorySystem> Model for Time<M> {
    fn forget_counts(&mut self) {
        self.memory.forget_counts();
        self.aside.clock().forget_counts();
    }

    fn work_aside(&mut self) -> io::Result<bool> {
        self.aside.begin_thread()?;
        Ok(true)
    }
}

/// The first cache of instructions, or of data.
fn first(machine: &Machine, instructions: bool) -> Option<&Cache> {
    machine.caches.iter().find(|cache| cache.holds.has(instructions))
}

/// What the names of caches and the latencies of a machine are to its pipeline: the latency of memory stands
/// for all levels behind the last cache.
fn timing(machine: &Machine) -> Timing {
    let memory = machine.memory.latency_ns * machine.processor.clock_mhz / 1000.0;
    let cycles = |instructions: bool| {
        let path = machine.caches.iter().filter(|cache| cache.holds.has(instructions));
        let mut latencies = path.map(|cache| cache.latency).chain(std::iter::repeat(memory));
        let nearest = latencies.next().unwrap_or_default();
        let mut cycles = [0; LEVELS + 1];
        for (level, latency) in cycles[1..].iter_mut().zip(latencies) {
            *level = (latency - nearest).max(0.0).round() as u32;
        }
        cycles
    };
    let line = |instructions: bool| first(machine, instructions).map_or(32, |cache| cache.line);
    let write_buffer = first(machine, false).and_then(|cache| cache.write_buffer);
    Timing {
        fetch_line: line(true),
        data_line: line(false),
        fetch: cycles(true),
        load: cycles(false),
        write_buffer: write_buffer.map_or(0, |buffer| buffer.entries),
    }
}
