//! Loops that are executed until they are steady, and measured then.

use events::{Block, Consumer, Thread};
use pathlength_machine::TimingModel;
use pathlength_machine::pipeline::{MemorySystem, ServedBy};

use super::Described;
use super::assembler::assemble;

/// Where code begins, and where data do: at no multiple of a cache's size.
const CODE: u64 = 0x1_2000_0000;
pub const DATA: u64 = 0x1_4000_1000;

/// Executions before the measurement, and in it.
const WARM: usize = 60;
const MEASURED: usize = 60;

/// Memory in which all fetches, and all accesses, are served alike.
pub struct Alike {
    pub fetch: ServedBy,
    pub access: ServedBy,
}

impl MemorySystem for Alike {
    fn enter(&mut self, _process: u32) {}
    fn fetch(&mut self, _address: u64) -> Option<ServedBy> {
        Some(self.fetch).filter(|served| *served != ServedBy::default())
    }
    fn access(&mut self, _address: u64, _bytes: u8, _is_store: bool) -> Option<ServedBy> {
        Some(self.access).filter(|served| *served != ServedBy::default())
    }
    fn probe(&self, _address: u64, is_fetch: bool) -> ServedBy {
        if is_fetch { self.fetch } else { self.access }
    }
}

/// A program on a model: blocks, and the addresses of their accesses.
pub struct Program<M> {
    pub time: TimingModel<M>,
    /// Of each block, the displacements of its accesses.
    accesses: Vec<Vec<i64>>,
    /// The base address of each access, by its number.
    address: Box<dyn Fn(u64) -> u64>,
    accessed: u64,
}

impl<M: MemorySystem + 'static> Program<M> {
    /// Of blocks at these distances from the beginning of the code.
    pub fn new(
        mut time: TimingModel<M>,
        blocks: &[(u64, String)],
        address: impl Fn(u64) -> u64 + 'static,
    ) -> Program<M> {
        let mut accesses = Vec::new();
        for (distance, text) in blocks {
            let words = assemble(text);
            let access = |&word: &u32| isa::InstructionSet::summary(&isa::Alpha, word)?.access;
            accesses.push(words.iter().filter_map(access).map(|access| access.displacement).collect());
            time.define(&Block::new(&isa::Alpha, CODE + distance, words));
        }
        Program { time, accesses, address: Box::new(address), accessed: 0 }
    }

    /// Executes blocks one after the other.
    pub fn execute(&mut self, path: &[usize]) {
        for &block in path {
            let displacements = self.accesses[block].iter().zip(self.accessed..);
            let addresses =
                displacements.map(|(&more, number)| (self.address)(number).wrapping_add_signed(more));
            let record: Vec<u64> = std::iter::once(!(block as u64)).chain(addresses).collect();
            self.accessed += self.accesses[block].len() as u64;
            self.time.executed(Thread::default(), &record);
        }
    }

    /// The cycles of an execution of a path in a steady loop.
    pub fn cycles(&mut self, path: &[usize]) -> f64 {
        (0..WARM).for_each(|_| self.execute(path));
        let before = self.time.cycles().total();
        (0..MEASURED).for_each(|_| self.execute(path));
        (self.time.cycles().total() - before) as f64 / MEASURED as f64
    }
}

/// The cycles of each of `copies` copies of a text in a loop: what a loop of twice as many takes more, so that its branch does not
/// count. `NUMBER` in the text is the number of the copy in a cycle of eight, from 1.
pub fn each<M: MemorySystem + 'static>(
    model: impl Fn() -> TimingModel<M>,
    text: &str,
    copies: usize,
    address: impl Fn(u64) -> u64 + Copy + 'static,
) -> f64 {
    let cycles = |copies: usize| {
        let body: Vec<String> =
            (0..copies).map(|number| text.replace("NUMBER", &(number % 8 + 1).to_string())).collect();
        let body = body.join("; ");
        let instructions = assemble(&body).len() as i64;
        let text = format!("{body}; br r31,{}", -4 * (instructions + 1));
        Program::new(model(), &[(0, text)], address).cycles(&[0])
    };
    (cycles(2 * copies) - cycles(copies)) / copies as f64
}

/// The same on a machine with its caches and TLBs, all accesses to one quadword.
pub fn each_of(described: &Described, text: &str, copies: usize) -> f64 {
    each(|| TimingModel::new(&described.machine).unwrap(), text, copies, |_| DATA)
}
