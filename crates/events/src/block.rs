//! Basic blocks, to which counts and records refer.

use isa::InstructionSet;
use serde::{Deserialize, Serialize};

/// Index of a block in [`Counts::blocks`](crate::Counts::blocks).
pub type BlockId = u32;

/// A straight run of instructions with one entry, ended by a transfer of control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Run-time address of the first instruction.
    pub address: u64,
    /// The instruction words, in order; a short one in the low half.
    pub words: Vec<u32>,
    /// The code in bytes, if the words only describe it ([`InstructionSet::describes`]); otherwise empty.
    #[serde(default)]
    pub code: Vec<u8>,
    /// Index into [`Counts::images`](crate::Counts::images), if the block lies in an image.
    pub image: Option<u32>,
    /// The instruction set of the words.
    #[serde(with = "isa::by_name")]
    pub instruction_set: &'static dyn InstructionSet,
}

impl Block {
    /// A block outside images.
    pub fn new(
        instruction_set: &'static dyn InstructionSet,
        address: u64,
        words: impl Into<Vec<u32>>,
    ) -> Block {
        Block { address, words: words.into(), code: Vec::new(), image: None, instruction_set }
    }

    /// The run-time address of each instruction. Those of a damaged trace may wrap around.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        self.words.iter().scan(self.address, |next, &word| {
            let address = *next;
            *next = address.wrapping_add(self.instruction_set.length(word));
            Some(address)
        })
    }

    /// The run-time address of an instruction, or of the end of the block.
    pub fn address_of(&self, index: usize) -> u64 {
        let length = |&word: &u32| self.instruction_set.length(word);
        self.words.iter().take(index).map(length).fold(self.address, u64::wrapping_add)
    }

    /// The text of an instruction of the block: of its code if there is any, and otherwise of its word.
    pub fn disassemble(&self, word: u32, address: u64) -> Option<String> {
        let start = usize::try_from(address.wrapping_sub(self.address)).ok();
        let length = self.instruction_set.length(word) as usize;
        let code = start.and_then(|start| self.code.get(start..start.checked_add(length)?));
        let text = code.and_then(|code| self.instruction_set.disassemble_code(code, address));
        text.or_else(|| self.instruction_set.disassemble(word, address))
    }

    /// The address after the last instruction.
    pub fn end(&self) -> u64 {
        self.address_of(self.words.len())
    }
}
