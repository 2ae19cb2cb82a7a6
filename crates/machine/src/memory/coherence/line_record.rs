//! The record of a coherence line: which processors have copies, and which bytes each has written that others have not used since.

use super::CoherenceState;
use super::line_numbers::bit;

/// The bit of a token that says that the miss is a store's.
pub const STORE: u32 = 1 << 31;
/// A miss without a token.
pub const NO_TOKEN: u32 = STORE - 1;
/// A miss before the counts were reset.
pub const NOT_COUNTED: u32 = STORE - 2;

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
    /// The index of its [`SharedBytes`], if several processors have used the line.
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
        let index = self.foreign.len() / self.processors;
        self.foreign.resize(self.foreign.len() + self.processors, 0);
        self.tokens.resize(self.foreign.len(), 0);
        index as u32
    }

    /// The bytes of others that a processor has not used.
    pub fn foreign(&mut self, index: u32, processor: u8) -> &mut u64 {
        &mut self.foreign[index as usize * self.processors + usize::from(processor)]
    }

    /// The token of a processor's undecided miss.
    pub fn token(&mut self, index: u32, processor: u8) -> &mut u32 {
        &mut self.tokens[index as usize * self.processors + usize::from(processor)]
    }
}
