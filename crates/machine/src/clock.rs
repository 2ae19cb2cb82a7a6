//! A pipeline at work for processes, and what of its time each unit of work has.

use trace::record::{Event, Mark};
use trace::{Block, Thread};

use crate::Cycles;
use crate::per_thread::{PerThread, Sums};
use crate::pipeline::{Core, ResolvedBatch};

/// The cycles that one unit of work took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTime {
    /// The process that did it.
    pub space: u32,
    /// The unit's number.
    pub number: u64,
    /// Its instructions.
    pub instructions: u64,
    /// Its cycles, without those in which the processor worked for other threads. One at its beginning or its
    /// end, in which instructions beside its own are issued, belongs to what came before.
    pub cycles: Cycles,
}

/// Instructions, and the cycles that they took.
#[derive(Clone, Debug, Default)]
struct Spent {
    instructions: u64,
    cycles: Cycles,
}

impl Sums for Spent {
    fn add(&mut self, other: &Spent) {
        self.instructions += other.instructions;
        self.cycles.add(&other.cycles);
    }

    fn since(&self, earlier: &Spent) -> Spent {
        let cycles = self.cycles.since(&earlier.cycles);
        Spent { instructions: self.instructions - earlier.instructions, cycles }
    }
}

/// A processor's pipeline, and what it did for whom.
pub(crate) struct Clock {
    pub core: Core,
    /// The thread that is executed.
    thread: Thread,
    /// Instructions so far.
    instructions: u64,
    /// What each thread has had of the processor.
    threads: PerThread<Spent>,
    /// The units of work that ended as they should, in the order of their ends.
    pub units: Vec<UnitTime>,
}

impl Clock {
    /// Of a pipeline in which nothing was executed.
    pub fn new(core: Core) -> Clock {
        Clock {
            core,
            thread: Thread::default(),
            instructions: 0,
            threads: PerThread::default(),
            units: Vec::new(),
        }
    }

    /// A block that can be executed from now on.
    pub fn define(&mut self, block: &Block) {
        self.core.define(block.address, &block.words);
    }

    /// What a thread executed, and what memory said of it.
    pub fn execute(&mut self, thread: Thread, answered: &ResolvedBatch) {
        self.enter(thread);
        let (records, mut far) = (&answered.records, answered.misses());
        let mut word = 0;
        while let Some(&event) = records.get(word) {
            word += 1;
            match Event::new(event) {
                Event::Block(block) => {
                    let [accesses, instructions] = self.core.lengths(block);
                    let addresses = &records[word..][..accesses as usize];
                    word += addresses.len();
                    self.instructions += u64::from(instructions);
                    self.core.execute(block, addresses, far.next().unwrap_or_default());
                }
                Event::Mark(mark) => self.mark(mark),
                Event::Access(_) => {}
            }
        }
    }

    /// Forgets what was counted.
    pub fn forget_counts(&mut self) {
        self.core.forget_counts();
        self.instructions = 0;
        self.threads.forget();
        self.units.clear();
    }

    /// What all threads have had.
    fn spent(&self) -> Spent {
        Spent { instructions: self.instructions, cycles: self.core.cycles() }
    }

    fn enter(&mut self, thread: Thread) {
        if self.threads.is_other(thread.number) {
            self.threads.enter(thread.number, self.spent());
            self.core.divert();
        }
        if thread.process != self.thread.process {
            self.core.enter(thread.process);
        }
        self.thread = thread;
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::UnitBegins(number) => self.threads.begin_unit(number, &self.spent()),
            Mark::UnitLeft(number) => drop(self.threads.end_unit(number, &self.spent())),
            Mark::UnitEnds(number) => {
                if let Some(Spent { instructions, cycles }) = self.threads.end_unit(number, &self.spent()) {
                    self.units.push(UnitTime { space: self.thread.process, number, instructions, cycles });
                }
            }
            Mark::Gap | Mark::Diverted => self.core.divert(),
            Mark::Order(_) | Mark::SystemCall(_) | Mark::Heap(_) => {}
        }
    }
}
