//! Static facts on each block of a trace, computed before the replay.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use events::{Block, BlockId};
use isa::{InstructionSummary, TransferKind, TransferTarget};
use trace::Trace;

use super::stack_pointer::StackUse;
use crate::names::{FunctionName, NamedCode, Names};

/// The blocks of a trace, with static facts from their instruction words and the images' symbols.
pub struct Dictionary<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its symbols and lines.
    pub names: &'a Names,
    /// The blocks, by number.
    pub blocks: Vec<BlockFacts>,
    /// The functions and sections that [`BlockFacts::region`] refers to.
    pub regions: Vec<ProgramRegion>,
}

/// Static facts on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFacts {
    /// Run-time address of its first instruction.
    pub address: u64,
    /// The address after its last instruction.
    pub end: u64,
    /// The index in [`Dictionary::regions`] of the region that it begins in.
    pub region: u32,
    /// Whether it begins at an entry of its function: at its first instruction, or at the second entry that functions of
    /// some instruction sets have.
    pub at_entry: bool,
    /// The transfer of control by its last instruction.
    pub transfer: Transfer,
    /// How it uses the stack pointer.
    pub(crate) stack: StackUse,
    /// The number of its instructions.
    instructions: u32,
    /// Bytes of the last of them.
    last_length: u8,
}

impl BlockFacts {
    /// Its instructions.
    #[inline]
    pub fn length(&self) -> u64 {
        self.instructions.into()
    }

    /// The address of its last instruction.
    #[inline]
    pub fn last(&self) -> u64 {
        self.end.wrapping_sub(self.last_length.into())
    }
}

/// How control leaves a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// By falling through to the next instruction (a truncated block).
    None,
    /// By a conditional branch.
    Conditional,
    /// By an unconditional branch.
    Branch,
    /// By a jump that neither calls nor returns.
    Jump,
    /// By a branch or a jump that calls.
    Call,
    /// By a return.
    Return,
    /// By a call of the system, or of another privileged function.
    System,
}

/// A function, a section without functions, or the unnamed code of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRegion {
    /// Its name; None for code without one.
    pub name: Option<Arc<FunctionName>>,
    /// The function's symbol, if it is a function.
    pub symbol: Option<Arc<str>>,
    /// The image's file name.
    pub image: String,
    /// Its first run-time address; 0 for code without a name.
    pub start: u64,
}

impl<'a> Dictionary<'a> {
    /// For all blocks of a trace.
    pub fn new(trace: &'a Trace, names: &'a Names) -> Dictionary<'a> {
        let mut regions = ProgramRegions::default();
        let blocks = trace.blocks().iter().map(|block| regions.facts(names, block)).collect();
        Dictionary { trace, names, blocks, regions: regions.regions }
    }

    /// Static facts on a block.
    #[inline]
    pub fn facts(&self, block: BlockId) -> &BlockFacts {
        &self.blocks[block as usize]
    }

    /// The name of a region, and the offset of an address in it: `image!function+0x10`.
    pub fn label(&self, region: u32, address: u64) -> String {
        self.regions[region as usize].label(address)
    }

    /// The name of an address in an image that has blocks.
    pub fn name_of(&self, image: Option<u32>, address: u64) -> Option<String> {
        label(self.names, image, address)
    }
}

/// The name of the code at an address, with its distance from the beginning of the function.
pub(crate) fn label(names: &Names, image: Option<u32>, address: u64) -> Option<String> {
    let NamedCode { name, symbol, start } = names.code(image, address)?;
    let image = name.image.clone();
    Some(ProgramRegion { name: Some(name), symbol, image, start }.label(address))
}

impl ProgramRegion {
    pub(crate) fn label(&self, address: u64) -> String {
        let Some(name) = &self.name else {
            let image = if self.image == NO_IMAGE { String::new() } else { format!("{}!", self.image) };
            return format!("{image}{address:#x}");
        };
        let mut text = format!("{}!{}", name.image, name.function);
        // The cold part of a function may lie before it.
        match address.cmp(&self.start) {
            Ordering::Less => _ = write!(text, "-{:#x}", self.start - address),
            Ordering::Equal => {}
            Ordering::Greater => _ = write!(text, "+{:#x}", address - self.start),
        }
        text
    }
}

/// The name by which [`Names::image`] refers to code outside images.
const NO_IMAGE: &str = "(none)";

/// The regions of blocks, numbered in the order in which they are first met.
#[derive(Default)]
pub(crate) struct ProgramRegions {
    /// The regions, by number.
    pub regions: Vec<ProgramRegion>,
    /// By image, first address, and whether it is a function: one can begin where its section does.
    numbers: HashMap<(Option<u32>, u64, bool), u32>,
}

impl ProgramRegions {
    /// Static facts on a block.
    pub fn facts(&mut self, names: &Names, block: &Block) -> BlockFacts {
        let region = self.number(names, block.image, block.address);
        let start = self.regions[region as usize].start;
        let (set, last) = (block.instruction_set, block.words.last());
        let entries = [start, start.wrapping_add(set.second_entry())];
        BlockFacts {
            address: block.address,
            end: block.end(),
            region,
            at_entry: entries.contains(&block.address),
            transfer: last.and_then(|&word| set.summary(word)).map_or(Transfer::None, Transfer::of),
            stack: StackUse::new(set, &block.words),
            instructions: block.words.len() as u32,
            last_length: last.map_or(0, |&word| set.length(word) as u8),
        }
    }

    fn number(&mut self, names: &Names, image: Option<u32>, address: u64) -> u32 {
        let found = names.code(image, address);
        let start = found.as_ref().map_or(0, |region| region.start);
        let (name, symbol) = found.map(|region| (region.name, region.symbol)).unzip();
        let symbol = symbol.flatten();
        *self.numbers.entry((image, start, symbol.is_some())).or_insert_with(|| {
            let region = ProgramRegion { name, symbol, image: names.image(image), start };
            self.regions.push(region);
            self.regions.len() as u32 - 1
        })
    }
}

impl Transfer {
    fn of(summary: InstructionSummary) -> Transfer {
        let Some(transfer) = summary.transfer else {
            return if summary.enters_system { Transfer::System } else { Transfer::None };
        };
        match (transfer.kind, transfer.target) {
            _ if transfer.is_conditional => Transfer::Conditional,
            (TransferKind::Call, _) => Transfer::Call,
            (TransferKind::Return, _) => Transfer::Return,
            (TransferKind::Jump, TransferTarget::Register { .. }) => Transfer::Jump,
            (TransferKind::Jump, TransferTarget::Relative(_)) => Transfer::Branch,
        }
    }

    /// Whether it ends a basic block: control may not continue with the next instruction.
    pub fn ends_basic_block(self) -> bool {
        self != Transfer::None
    }

    /// Whether control never falls through.
    pub fn is_always_taken(self) -> bool {
        matches!(self, Transfer::Branch | Transfer::Jump | Transfer::Call | Transfer::Return)
    }
}
