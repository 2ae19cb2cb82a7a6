//! The record of a coherence line: which processors have copies, and which bytes each has written that others have not used since.

use std::collections::HashMap;

use super::CoherenceState;

/// A line, for all processors. Sets of processors are masks.
#[derive(Clone, Debug)]
pub struct LineRecord {
    /// Processors with a copy.
    pub holders: u64,
    /// Processors that have used the line.
    pub touched: u64,
    /// Processors that lost their last copy by eviction.
    pub evicted: u64,
    /// Processors whose copy was fetched by a sharing miss of which it is not decided whether it is true or false.
    pub undecided: u64,
    /// Bytes that the processor with the state Modified has written, since it has it.
    pub written: u64,
    /// The processor whose copy has `state`; all other copies are Shared.
    pub owner: Option<u8>,
    /// Exclusive, Owned or Modified.
    pub state: CoherenceState,
    /// The place of its [`SharedBytes`], if several processors have used the line.
    pub shared: Option<u32>,
}

impl LineRecord {
    pub fn new() -> LineRecord {
        LineRecord {
            holders: 0,
            touched: 0,
            evicted: 0,
            undecided: 0,
            written: 0,
            owner: None,
            state: CoherenceState::Invalid,
            shared: None,
        }
    }

    /// The state of a processor's copy.
    pub fn state_of(&self, processor: u8) -> CoherenceState {
        if self.owner == Some(processor) {
            self.state
        } else if self.holders & bit(processor) != 0 {
            CoherenceState::Shared
        } else {
            CoherenceState::Invalid
        }
    }
}

/// The bit of a processor in a mask.
pub fn bit(processor: u8) -> u64 {
    1 << processor
}

/// The processors in a mask.
pub fn processors(mut mask: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let next = (mask != 0).then(|| mask.trailing_zeros() as u8);
        mask &= mask.wrapping_sub(1);
        next
    })
}

/// For each processor that uses a line: the bytes that others wrote since its last miss that was not false, and the
/// token of its undecided miss.
#[derive(Debug, Default)]
pub struct SharedBytes {
    processors: usize,
    foreign: Vec<u64>,
    tokens: Vec<u32>,
}

impl SharedBytes {
    pub fn new(processors: usize) -> SharedBytes {
        SharedBytes { processors, ..SharedBytes::default() }
    }

    /// Adds a line.
    pub fn add(&mut self) -> u32 {
        let place = self.foreign.len() / self.processors;
        self.foreign.resize(self.foreign.len() + self.processors, 0);
        self.tokens.resize(self.foreign.len(), 0);
        place as u32
    }

    /// The bytes of others that a processor has not used.
    pub fn foreign(&mut self, place: u32, processor: u8) -> &mut u64 {
        &mut self.foreign[place as usize * self.processors + usize::from(processor)]
    }

    /// The token of a processor's undecided miss.
    pub fn token(&mut self, place: u32, processor: u8) -> &mut u32 {
        &mut self.tokens[place as usize * self.processors + usize::from(processor)]
    }
}

/// Numbers lines from 0 in the order of their first use, so that each has one record, however far apart they are.
#[derive(Debug)]
pub struct LineNumbers {
    numbers: HashMap<u64, u32>,
    /// A direct-mapped cache of `numbers`.
    recent: Box<[(u64, u32); RECENT]>,
}

const RECENT: usize = 1024;

impl LineNumbers {
    pub fn new() -> LineNumbers {
        LineNumbers { numbers: HashMap::new(), recent: Box::new([(u64::MAX, 0); RECENT]) }
    }

    /// The number of a line.
    pub fn number(&mut self, line: u64) -> u32 {
        let recent = &mut self.recent[line as usize % RECENT];
        if recent.0 != line {
            let next = self.numbers.len() as u32;
            *recent = (line, *self.numbers.entry(line).or_insert(next));
        }
        recent.1
    }

    /// The same, if the line has been used.
    pub fn find(&self, line: u64) -> Option<u32> {
        self.numbers.get(&line).copied()
    }
}
