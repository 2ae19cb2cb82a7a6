//! The cycles of threads and of units of work on one pipeline.

use events::record::{Event, Mark};
use events::{Block, MappedImage, Thread};

use super::any_core::AnyCore;
use super::cycles::{CAUSES, Cycles};
use super::memory::MemorySystem;
use super::resolve::ResolvedBatch;
use crate::observe::per_thread::{PerThread, Sums};
use crate::observe::sampling::WindowSampler;

/// The cycles that one unit of work took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitCycles {
    /// The process that executed it.
    pub process: u32,
    /// The thread that it belongs to, among the threads of all processes.
    pub thread: u32,
    /// The unit's number.
    pub number: u64,
    /// Its instructions.
    pub instructions: u64,
    /// Its cycles, without those of other threads. A cycle at its beginning or end in which other instructions
    /// are issued too belongs to the one of them that was issued first.
    pub cycles: Cycles,
}

/// Instructions and their cycles.
#[derive(Clone, Debug, Default)]
struct InstructionCycles {
    instructions: u64,
    cycles: Cycles,
}

impl Sums for InstructionCycles {
    fn add(&mut self, other: &InstructionCycles) {
        self.instructions += other.instructions;
        self.cycles.add(&other.cycles);
    }

    fn since(&self, earlier: &InstructionCycles) -> InstructionCycles {
        let cycles = self.cycles.since(&earlier.cycles);
        InstructionCycles { instructions: self.instructions - earlier.instructions, cycles }
    }
}

/// A pipeline, with the cycles of each thread and unit of work.
pub(super) struct Accounting<M> {
    pub core: AnyCore<M>,
    /// The windows that are simulated in detail; everything without it.
    pub sampler: Option<WindowSampler<CAUSES>>,
    /// The current thread.
    thread: Thread,
    /// Instructions of all threads.
    instructions: u64,
    /// The usage of each thread.
    threads: PerThread<InstructionCycles>,
    /// The units of work that ended, in the order of their ends; not those left otherwise than by a return.
    pub units: Vec<UnitCycles>,
}

impl<M: MemorySystem> Accounting<M> {
    /// For an idle pipeline.
    pub fn new(core: AnyCore<M>) -> Accounting<M> {
        Accounting {
            core,
            sampler: None,
            thread: Thread::default(),
            instructions: 0,
            threads: PerThread::default(),
            units: Vec::new(),
        }
    }

    /// An image is mapped.
    pub fn map(&mut self, image: &MappedImage) {
        self.core.map(image);
    }

    /// Defines a block that records may name from now on.
    pub fn define(&mut self, block: Block) {
        self.core.define(block);
    }

    /// Executes records of a thread, whose memory requests are resolved.
    pub fn execute(&mut self, thread: Thread, resolved: &ResolvedBatch) {
        self.enter(thread);
        if let Some(sampler) = &mut self.sampler {
            sampler.begin(thread, || self.core.cycles().with_total());
        }
        let (records, mut misses) = (&resolved.records, resolved.misses());
        let mut word = 0;
        while let Some(&event) = records.get(word) {
            word += 1;
            match Event::new(event) {
                Event::Block(block) => {
                    let [accesses, instructions] = self.core.lengths(block);
                    let addresses = &records[word..][..accesses as usize];
                    word += addresses.len();
                    self.instructions += u64::from(instructions);
                    let misses = misses.next().unwrap_or_default();
                    match &mut self.sampler {
                        None => self.core.execute(block, addresses, misses),
                        Some(sampler) => {
                            match sampler.is_detailed() {
                                true => self.core.execute(block, addresses, misses),
                                false => self.core.warm(block, addresses, misses[0]),
                            }
                            sampler.executed(instructions.into(), || self.core.cycles().with_total());
                        }
                    }
                }
                Event::Mark(mark) => self.mark(mark),
                Event::Access(_) => {}
            }
        }
    }

    /// Resets the counts.
    pub fn reset_counts(&mut self) {
        self.core.reset_counts();
        if let Some(sampler) = &mut self.sampler {
            sampler.reset_counts(self.core.cycles().with_total());
        }
        self.instructions = 0;
        self.threads.reset();
        self.units.clear();
    }

    /// Adds the counts of another pipeline of the same machine, which executes nothing any more.
    pub fn merge(&mut self, ended: &mut Accounting<M>) {
        if let (Some(own), Some(of_ended)) = (&mut self.sampler, &ended.sampler) {
            own.merge(of_ended, ended.core.cycles().with_total());
        }
        self.core.merge(&mut ended.core);
        self.instructions += ended.instructions;
        self.units.append(&mut ended.units);
    }

    /// The usage of all threads together.
    fn usage(&self) -> InstructionCycles {
        InstructionCycles { instructions: self.instructions, cycles: self.core.cycles() }
    }

    fn enter(&mut self, thread: Thread) {
        if self.threads.is_other(thread.number) {
            self.threads.enter(thread.number, self.usage());
            self.core.divert();
        }
        if thread.process != self.thread.process {
            self.core.enter(thread.process);
        }
        self.thread = thread;
    }

    fn mark(&mut self, mark: Mark) {
        if let Some(sampler) = &mut self.sampler {
            let unit = match mark {
                Mark::UnitBegins(unit) => Some(Some(unit)),
                Mark::UnitCut(_) | Mark::UnitEnds(_) | Mark::UnitLeft(_) => Some(None),
                _ => None,
            };
            if let Some(unit) = unit {
                sampler.enter_unit(unit, self.core.cycles().with_total());
            }
        }
        match mark {
            Mark::UnitBegins(number) => self.threads.begin_unit(number, &self.usage()),
            Mark::UnitCut(number) => drop(self.threads.end_unit(number, &self.usage())),
            Mark::UnitEnds(number) | Mark::UnitLeft(number) => {
                if let Some(InstructionCycles { instructions, cycles }) =
                    self.threads.end_unit(number, &self.usage())
                {
                    self.units.push(UnitCycles {
                        process: self.thread.process,
                        thread: self.thread.number,
                        number,
                        instructions,
                        cycles,
                    });
                }
            }
            // PALcode begins and ends with an empty pipeline.
            Mark::Gap | Mark::Discontinuity | Mark::Exception(_) | Mark::PalCall(_) | Mark::PalReturn => {
                self.core.divert();
            }
            Mark::Order(_) | Mark::SystemCall(_) | Mark::Heap(_) | Mark::Mapping(_) => {}
            Mark::ObjectEntered(_) | Mark::ObjectLeft(_) => {}
            Mark::LockAcquired(_) | Mark::LockReleased(_) | Mark::LockAwaited(_) => {}
        }
    }
}
