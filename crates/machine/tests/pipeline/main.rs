//! Pipelines: sequences computed by hand from the manuals' rules.

mod assembler;
mod memory;
mod mixed_lengths;
mod model;
mod random;
mod sequences;
mod slots;
mod ticks;

use events::{Block, Consumer, Thread};
use isa::InstructionSet;
use pathlength_machine::{Machine, TimingModel};

use memory::ByAddress;

/// Where programs begin.
pub const START: u64 = 0x10000;

/// Executes ranges of a program's instructions in this order, each with the addresses of its accesses.
pub fn run(
    machine: &str,
    start: u64,
    words: &[u32],
    path: &[(usize, usize)],
    data: &[u64],
) -> TimingModel<ByAddress> {
    run_instructions(machine, &isa::Alpha, start, words, path, data)
}

/// The same for any instruction set with Alpha's words.
pub fn run_instructions(
    machine: &str,
    set: &'static dyn InstructionSet,
    start: u64,
    words: &[u32],
    path: &[(usize, usize)],
    data: &[u64],
) -> TimingModel<ByAddress> {
    let program = Block::new(set, start, words);
    let machine = Machine::find(machine).unwrap();
    let mut time = TimingModel::with_memory(&machine, ByAddress).unwrap();
    let mut data = data.iter().copied();
    for (number, &(from, to)) in path.iter().enumerate() {
        let words = &words[from..to];
        time.define(&Block::new(set, program.address_of(from), words));
        let accesses = words.iter().filter(|&&word| isa::decode(word).unwrap().access_size().is_some());
        let addresses = accesses.map(|_| data.next().unwrap_or(0x8000));
        let record: Vec<u64> = std::iter::once(!(number as u64)).chain(addresses).collect();
        time.executed(Thread::default(), &record);
    }
    time
}
