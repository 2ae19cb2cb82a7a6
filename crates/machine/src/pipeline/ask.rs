//! Asks memory for all that blocks need. What it answers does not depend on when it is asked, only on the order, so that it
//! is asked for many blocks before the first of them is issued.

use trace::record::Event;

use super::memory::{MemorySystem, Served};
use crate::script::Scripts;

/// A use of memory that was not near.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Far {
    /// Its number among the block's lines of instructions, or among its accesses.
    pub number: u32,
    pub served: Served,
}

impl Far {
    /// A use that was served so, if that is far.
    #[inline(always)]
    fn new(number: u32, served: Served) -> Option<Far> {
        (served != Served::default()).then_some(Far { number, served })
    }
}

/// Records, and what memory says of them.
#[derive(Default)]
pub(crate) struct Answered {
    pub records: Vec<u64>,
    /// Of each block, how many lines of its instructions were not near, and how many of its accesses.
    counts: Vec<[u32; 2]>,
    far: Vec<Far>,
}

impl Answered {
    /// Nothing was asked for.
    pub fn clear(&mut self) {
        self.records.clear();
        self.counts.clear();
        self.far.clear();
    }

    /// What was not near from each block: lines of instructions, and accesses.
    pub fn far(&self) -> impl Iterator<Item = [&[Far]; 2]> {
        let mut behind = &self.far[..];
        self.counts.iter().map(move |counts| {
            counts.map(|count| {
                let (own, others) = behind.split_at(count as usize);
                behind = others;
                own
            })
        })
    }
}

/// No line.
const NOWHERE: u64 = u64::MAX;

/// Memory, and what blocks ask of it.
pub(crate) struct Asking<M> {
    pub memory: M,
    scripts: Scripts,
    line_shift: u32,
    space: u32,
    /// The line of the last instruction.
    line: u64,
}

impl<M: MemorySystem> Asking<M> {
    /// Of memory that has lines of instructions of so many bytes.
    pub fn new(memory: M, line: u64) -> Asking<M> {
        Asking { memory, scripts: Scripts::new(line), line_shift: line.ilog2(), space: 0, line: NOWHERE }
    }

    /// A block that can be executed from now on.
    pub fn define(&mut self, address: u64, words: &[u32]) {
        self.scripts.define(address, words);
    }

    /// The process whose records follow: its addresses are its own.
    pub fn enter(&mut self, space: u32) {
        if space != self.space {
            self.space = space;
            self.memory.enter(space);
            self.line = NOWHERE;
        }
    }

    /// Executions of a block that memory was asked for.
    pub fn executions(&self, block: u32) -> u64 {
        self.scripts.get(block).map_or(0, |script| script.executions.get())
    }

    /// Forgets what was counted.
    pub fn forget_counts(&mut self) {
        self.scripts.forget_executions();
        self.memory.forget_counts();
    }

    /// Asks for the first of these records, and puts them behind others, which have so many words then or a few more. Says
    /// how many words they are.
    pub fn ask(&mut self, records: &[u64], most: usize, answered: &mut Answered) -> usize {
        let most = records.len().min(most.saturating_sub(answered.records.len()));
        let mut at = 0;
        while at < most {
            match Event::new(records[at]) {
                Event::Block(block) => {
                    let Some(addresses) = self.addresses(block, &records[at + 1..]) else { break };
                    self.ask_for(block, addresses, answered);
                    at += 1 + addresses.len();
                }
                Event::Mark(_) => at += 1,
                Event::Access(_) => break,
            }
        }
        answered.records.extend_from_slice(&records[..at]);
        // What contradicts the blocks is left out.
        if at == 0 { records.len() } else { at }
    }

    /// The addresses of a block's accesses, if its record is whole.
    #[inline(always)]
    fn addresses<'a>(&self, block: u32, records: &'a [u64]) -> Option<&'a [u64]> {
        records.get(..self.scripts.get(block)?.accesses as usize)
    }

    /// Asks for a block.
    #[inline(always)]
    fn ask_for(&mut self, block: u32, addresses: &[u64], answered: &mut Answered) {
        let Asking { memory, scripts, line_shift, line, .. } = self;
        let Some(script) = scripts.get(block) else { return };
        script.executions.update(|times| times + 1);
        let Answered { counts, far, .. } = answered;
        let first = far.len();
        for number in 0..script.lines {
            let address = scripts.line_address(script, number);
            let before = std::mem::replace(line, address >> *line_shift);
            if before != *line {
                far.extend(memory.fetch(address).and_then(|served| Far::new(number, served)));
            }
        }
        let lines = far.len() - first;
        for (number, (&access, &address)) in (0..).zip(scripts.accesses(script).iter().zip(addresses)) {
            let served = memory.access(address, access.more() as u8 + 1, access.is_store());
            far.extend(served.and_then(|served| Far::new(number, served)));
        }
        let accesses = far.len() - first - lines;
        counts.push([lines, accesses].map(|count| count as u32));
    }
}
