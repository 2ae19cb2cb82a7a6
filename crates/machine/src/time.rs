//! Cycles: a pipeline, its branch predictor and its memory hear what was executed.

use std::collections::HashMap;

use trace::record::{Entries, Entry, Mark, Shape};
use trace::{Block, Consumer, Thread};

#[cfg(doc)]
use crate::Cause;
use crate::pipeline::{Attached, Core, LEVELS, MemorySystem, Timing};
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

/// The cycles that one unit of work took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTime {
    /// The process that did it.
    pub space: u32,
    /// The unit's number.
    pub number: u64,
    /// Its instructions.
    pub instructions: u64,
    /// Its cycles, without those in which the processor worked for other processes. One at its beginning or its
    /// end, in which instructions beside its own are issued, belongs to what came before.
    pub cycles: Cycles,
}

/// What a process has had of the processor.
#[derive(Clone, Debug, Default)]
struct Spent {
    instructions: u64,
    cycles: Cycles,
}

impl Spent {
    fn since(&self, earlier: &Spent) -> Spent {
        let cycles = self.cycles.since(&earlier.cycles);
        Spent { instructions: self.instructions - earlier.instructions, cycles }
    }
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
pub struct Time<M = Attached> {
    core: Core<M>,
    shapes: Vec<Shape>,
    /// Executions of each block.
    executions: Vec<u64>,
    space: u32,
    /// The cycles of the processes that are not executed now, and those before the current one was.
    others: HashMap<u32, Spent>,
    since: Spent,
    /// Instructions so far.
    instructions: u64,
    /// The units that are not over: what their process had spent when they began.
    begun: HashMap<(u32, u64), Spent>,
    units: Vec<UnitTime>,
}

impl Time {
    /// A machine, with empty caches.
    pub fn new(machine: &Machine) -> Result<Time, TimeError> {
        Time::with_memory(machine, Attached::new(machine))
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
        let core =
            Core::new(pipeline, Predicting::new(predictor), &timing(machine), memory, cpu, cycles.into());
        Ok(Time {
            core,
            shapes: Vec::new(),
            executions: Vec::new(),
            space: 0,
            others: HashMap::new(),
            since: Spent::default(),
            instructions: 0,
            begun: HashMap::new(),
            units: Vec::new(),
        })
    }

    /// All cycles so far.
    pub fn cycles(&self) -> Cycles {
        self.core.sum().cycles
    }

    /// The units of work that ended as they should, in the order of their ends.
    pub fn units(&self) -> &[UnitTime] {
        &self.units
    }

    /// Executions of each block, in the order of their definitions.
    pub fn executions(&self) -> &[u64] {
        &self.executions
    }

    /// The cycles of a block's instructions. Those of all blocks together are all cycles.
    pub fn sites(&self, block: u32) -> Vec<SiteCycles> {
        self.core.sites(block as usize)
    }

    /// Branches and jumps, and how they were predicted.
    pub fn predictions(&self) -> Predictions {
        self.core.predictor().counts()
    }

    /// Instructions that the system emulated.
    pub fn emulated(&self) -> u64 {
        self.core.sum().emulated
    }

    /// Instructions that were issued in vain, and once more (replay traps).
    pub fn replays(&self) -> u64 {
        self.core.sum().replays
    }

    /// Memory, with what it counted.
    pub fn memory(&self) -> &M {
        &self.core.memory
    }

    /// What all processes have had.
    fn spent(&self) -> Spent {
        Spent { instructions: self.instructions, cycles: self.core.cycles().clone() }
    }

    /// What the current one has had.
    fn own(&self) -> Spent {
        let mut own = self.spent().since(&self.since);
        if let Some(before) = self.others.get(&self.space) {
            own.instructions += before.instructions;
            own.cycles.add(&before.cycles);
        }
        own
    }

    fn enter(&mut self, space: u32) {
        if space != self.space {
            self.others.insert(self.space, self.own());
            self.since = self.spent();
            self.space = space;
            self.core.enter(space);
        }
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::UnitBegins(number) => {
                self.begun.insert((self.space, number), self.own());
            }
            Mark::UnitLeft(number) => drop(self.begun.remove(&(self.space, number))),
            Mark::UnitEnds(number) => {
                if let Some(before) = self.begun.remove(&(self.space, number)) {
                    let Spent { instructions, cycles } = self.own().since(&before);
                    self.units.push(UnitTime { space: self.space, number, instructions, cycles });
                }
            }
            Mark::Gap | Mark::Diverted => self.core.divert(),
            Mark::Order(_) | Mark::SystemCall(_) | Mark::Heap(_) => {}
        }
    }
}

impl<M: MemorySystem> Consumer for Time<M> {
    fn define(&mut self, block: &Block) {
        self.shapes.push(Shape::new(&block.words, false));
        self.executions.push(0);
        self.core.define(block.address, &block.words);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.enter(thread.process);
        let shapes = std::mem::take(&mut self.shapes);
        for entry in Entries::new(records, &shapes) {
            match entry {
                Entry::Execution(execution) => {
                    self.executions[execution.block as usize] += 1;
                    self.instructions += u64::from(shapes[execution.block as usize].instructions);
                    self.core.execute(execution.block, execution.addresses);
                }
                Entry::Mark(mark) => self.mark(mark),
            }
        }
        self.shapes = shapes;
    }
}

impl<M: MemorySystem> Model for Time<M> {
    fn forget_counts(&mut self) {
        self.core.forget_counts();
        self.executions.fill(0);
        self.instructions = 0;
        self.others.clear();
        self.since = Spent::default();
        self.begun.clear();
        self.units.clear();
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
