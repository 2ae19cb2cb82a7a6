//! Blocks, as an out-of-order core sees them.

use events::Block;

use super::base_registers::BlockEffect;
use super::rules::{Access, CoreInstruction, CoreRules};
use crate::core::predictor::BlockEnd;

/// A block.
pub(super) struct CoreBlock {
    /// The block itself, until it is executed the first time: what follows from it is not known before, as a process of a server
    /// executes few of the blocks of all.
    pub definition: Option<Box<Block>>,
    pub address: u64,
    pub instructions: Box<[CoreInstruction]>,
    /// The bytes of each access, and whether it stores.
    pub accesses: Box<[(u8, bool)]>,
    /// The index of its first instruction among those of all blocks.
    pub first_site: usize,
    pub effect: BlockEffect,
    pub exit: BlockExit,
}

/// How control leaves a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockExit {
    pub end: BlockEnd,
    /// The address of its last instruction, and the address after it.
    pub last: u64,
    pub next: u64,
}

impl BlockExit {
    /// Whether the block's last instruction can lead there; otherwise something else has moved control.
    #[inline]
    pub fn can_lead_to(&self, address: u64) -> bool {
        match self.end {
            BlockEnd::Falls => address == self.next,
            BlockEnd::Conditional { target } => address == self.next || address == target,
            _ => true,
        }
    }
}

impl CoreBlock {
    /// A block that was not executed yet.
    pub fn unknown(block: Block, first_site: usize) -> CoreBlock {
        CoreBlock {
            address: block.address,
            instructions: Box::default(),
            accesses: Box::default(),
            first_site,
            effect: BlockEffect::default(),
            exit: BlockExit { end: BlockEnd::Falls, last: block.address, next: block.address },
            definition: Some(Box::new(block)),
        }
    }

    /// A block that is executed.
    pub fn new(block: &Block, rules: &CoreRules, first_site: usize) -> CoreBlock {
        let set = block.instruction_set;
        let instructions: Box<[CoreInstruction]> =
            block.words.iter().map(|&word| rules.instruction(set, word)).collect();
        let accessing = instructions.iter().filter(|one| one.access != Access::None);
        let accesses = accessing.map(|one| (one.bytes, one.access == Access::Store));
        let last = block.address_of(block.words.len().saturating_sub(1));
        let end = block.words.last().map_or(BlockEnd::Falls, |&word| BlockEnd::of(set, word, last));
        CoreBlock {
            address: block.address,
            accesses: accesses.collect(),
            instructions,
            first_site,
            effect: BlockEffect::of(block),
            exit: BlockExit { end, last, next: block.end() },
            definition: None,
        }
    }
}
