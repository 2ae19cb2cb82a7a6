//! A pipeline at work for processes, and what of its time each unit of work has.

use std::collections::HashMap;

use trace::Block;
use trace::record::{Event, Mark};

use crate::Cycles;
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

/// A processor's pipeline, and what it did for whom.
pub(crate) struct Clock {
    pub core: Core,
    space: u32,
    /// The cycles of the processes that are not executed now, and those before the current one was.
    others: HashMap<u32, Spent>,
    since: Spent,
    /// Instructions so far.
    instructions: u64,
    /// The units that are not over: what their process had spent when they began.
    begun: HashMap<(u32, u64), Spent>,
    /// The units of work that ended as they should, in the order of their ends.
    pub units: Vec<UnitTime>,
}

impl Clock {
    /// Of a pipeline in which nothing was executed.
    pub fn new(core: Core) -> Clock {
        Clock {
            core,
            space: 0,
            others: HashMap::new(),
            since: Spent::default(),
            instructions: 0,
            begun: HashMap::new(),
            units: Vec::new(),
        }
    }

    /// A block that can be executed from now on.
    pub fn define(&mut self, block: &Block) {
        self.core.define(block.address, &block.words);
    }

    /// What a process executed, and what memory said of it.
    pub fn execute(&mut self, process: u32, answered: &ResolvedBatch) {
        self.enter(process);
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
        self.others.clear();
        self.since = Spent::default();
        self.begun.clear();
        self.units.clear();
    }

    /// What all processes have had.
    fn spent(&self) -> Spent {
        Spent { instructions: self.instructions, cycles: self.core.cycles() }
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
