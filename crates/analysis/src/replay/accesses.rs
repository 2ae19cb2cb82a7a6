//! The instructions of each block that access memory.

use events::BlockId;
use isa::{InstructionSet, MemoryAccess};
use trace::Trace;

/// An instruction that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessInstruction {
    /// Its index in its block.
    pub index: u32,
    /// Bytes that it reads or writes.
    pub size: u8,
    /// Whether it is a store.
    pub is_store: bool,
}

impl AccessInstruction {
    /// Those of an instruction.
    fn of(
        index: usize,
        set: &dyn InstructionSet,
        word: u32,
    ) -> impl Iterator<Item = AccessInstruction> + use<> {
        let access = move |MemoryAccess { size, is_store, .. }| AccessInstruction {
            index: index as u32,
            size,
            is_store,
        };
        set.summary(word).unwrap_or_default().accesses().map(access)
    }
}

/// The accesses of all blocks, in the order in which records have their addresses.
pub struct Accesses {
    all: Vec<AccessInstruction>,
    /// The index of each block's first access; and the number of all.
    starts: Vec<usize>,
}

impl Accesses {
    /// The accesses of a trace's blocks.
    pub fn new(trace: &Trace) -> Accesses {
        let mut all = Vec::new();
        let mut starts = vec![0];
        for block in trace.blocks() {
            let words = block.words.iter().enumerate();
            all.extend(
                words.flat_map(|(index, &word)| AccessInstruction::of(index, block.instruction_set, word)),
            );
            starts.push(all.len());
        }
        Accesses { all, starts }
    }

    /// The accesses of one block.
    #[inline]
    pub fn of(&self, block: BlockId) -> &[AccessInstruction] {
        &self.all[self.starts[block as usize]..self.starts[block as usize + 1]]
    }
}
