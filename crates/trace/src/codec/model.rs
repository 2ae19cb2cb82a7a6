//! Predicts the next word of the records from the preceding ones. Encoder and decoder run the same model on the same
//! words, so that only mispredictions need to be written.

use super::block_summary::{
    BlockSummaries, BlockSummary, ExitTransfer, NONE, PointerTransfer, RegisterValue, SLOTS, SummaryAccess,
    UNKNOWN,
};
use super::coder::{ChunkSection, Coder};
use super::context_predictor::ContextPredictor;
use super::memory_model::MemoryModel;
use super::table::{CodecTable, is_determined, mixed, table};
use super::value_predictor::ValuePredictor;
use crate::bytes::Malformed;
use events::BlockId;
use events::record::Event;

/// Derives addresses from register contents where it can, and predicts the others by stride and context.
pub(super) struct AddressModel {
    block_predictor: BlockPredictor,
    registers: RegisterModel,
    context_predictor: ContextPredictor,
    values: Option<Box<ValuePredictor>>,
}

/// A block whose number and addresses have been coded.
pub(super) struct CodedBlock {
    pub id: BlockId,
    first_site: u32,
}

impl AddressModel {
    /// A model of blocks that have these summaries.
    pub fn new(summaries: &BlockSummaries) -> AddressModel {
        let values = summaries.has_values.then(|| Box::new(ValuePredictor::new()));
        let (block_predictor, registers, context_predictor) = (
            BlockPredictor::new(),
            RegisterModel::new(summaries.set.zero_register()),
            ContextPredictor::new(),
        );
        AddressModel { block_predictor, registers, context_predictor, values }
    }

    /// Control was transferred by a signal or a new program, and the registers have other contents.
    pub fn reset_registers(&mut self) {
        self.registers.reset();
    }

    /// Codes the next block's number and its addresses.
    #[inline(always)]
    pub fn execution<C: Coder>(
        &mut self,
        coder: &mut C,
        summaries: &BlockSummaries,
    ) -> Result<CodedBlock, Malformed> {
        let id = self.block_predictor.next(coder, summaries)?;
        let summary = summaries.get(id)?;
        let accesses = summaries.accesses(summary);
        let first_site = self.block_predictor.coded(id, summary.exit, summary.instructions);
        self.registers.begin(summary);
        for (site, access) in (first_site..).zip(accesses) {
            let mut address = self.registers.predict(access);
            if !coder.hit_if_determined(ChunkSection::Addresses, address) {
                address = self.context_predictor.next(
                    coder,
                    ChunkSection::Addresses,
                    site,
                    is_determined(address),
                )?;
                self.registers.infer_base(access, address);
            }
            self.registers.apply_transfer(access, address);
        }
        self.registers.end(summary, summaries.assignments(summary));
        Ok(CodedBlock { id, first_site })
    }

    /// Codes the values of the block, if the trace has values.
    #[inline(always)]
    pub fn values<C: Coder>(
        &mut self,
        coder: &mut C,
        summaries: &BlockSummaries,
        coded: &CodedBlock,
        addresses: &[u64],
    ) -> Result<(), Malformed> {
        let Some(values) = &mut self.values else { return Ok(()) };
        values.execution(coder, summaries, coded.id, coded.first_site, addresses)?;
        self.registers.set(values.integers());
        Ok(())
    }
}

/// Predicts the next block.
struct BlockPredictor {
    last: BlockId,
    /// Hash of the most recent blocks.
    history: u64,
    /// By a hash of the history: the rest of the hash as a tag, and the block that followed the last time.
    contexts: CodecTable<(u32, BlockId), { 1 << CONTEXT_BITS }>,
    blocks: Vec<BlockHistory>,
    /// Number of instructions of all blocks seen so far. Each instruction has its own predictor state.
    sites: u32,
    /// A stack of the histories at calls that have not returned.
    calls: [u64; CALLS],
    depth: usize,
    /// The number that a new block would have.
    newest: BlockId,
}

/// The prediction state of a block.
#[derive(Clone, Copy, Default)]
struct BlockHistory {
    /// The blocks that followed it: the last one and the one before that.
    successors: [BlockId; 2],
    /// The index of its first instruction's predictor state.
    first_site: u32,
    was_executed: bool,
}

const CONTEXT_BITS: u32 = 12;
const HISTORY_SHIFT: u32 = 11;
const CALLS: usize = 64;

impl BlockPredictor {
    fn new() -> BlockPredictor {
        BlockPredictor {
            last: 0,
            history: 0,
            contexts: table((0, 0)),
            blocks: Vec::new(),
            sites: 0,
            calls: [0; CALLS],
            depth: 0,
            newest: 0,
        }
    }

    #[inline(always)]
    fn next<C: Coder>(&mut self, coder: &mut C, summaries: &BlockSummaries) -> Result<BlockId, Malformed> {
        if self.blocks.len() < summaries.len() {
            self.blocks.resize(summaries.len(), BlockHistory::default());
        }
        let hash = mixed(self.history);
        let context = &mut self.contexts[(hash >> (64 - CONTEXT_BITS)) as usize];
        let last = self.blocks.get_mut(self.last as usize).ok_or(Malformed("it has no dictionary"))?;
        let successors = &mut last.successors;
        let check = hash as u32;
        let is_determined = context.0 == check;
        let predicted = if is_determined { context.1 } else { successors[0] };
        let word = |id| Event::Block(id).word();
        let id = if coder.hit(ChunkSection::Blocks, word(predicted)) {
            predicted
        } else {
            let other = successors[usize::from(successors[0] == predicted)];
            let others = [other, self.newest, successors[1]].map(word);
            let actual = coder.miss(ChunkSection::Blocks, others, word(self.last))?;
            BlockId::try_from(!actual).map_err(|_| Malformed("a block is none"))?
        };
        *context = (check, id);
        if successors[0] != id {
            *successors = [id, successors[0]];
        }
        self.newest = self.newest.max(id.saturating_add(1));
        Ok(id)
    }

    /// Updates the state after a block. Returns the index of its first instruction's predictor state.
    #[inline(always)]
    fn coded(&mut self, id: BlockId, exit: ExitTransfer, sites: u32) -> u32 {
        self.last = id;
        self.history = self.history << HISTORY_SHIFT ^ mixed(id.into()) >> 32;
        match exit {
            ExitTransfer::Other => {}
            ExitTransfer::Call => {
                self.depth = (self.depth + 1) % CALLS;
                self.calls[self.depth] = self.history;
            }
            ExitTransfer::Return => {
                self.history = self.calls[self.depth] ^ mixed(id.into()) << 8;
                self.depth = (self.depth + CALLS - 1) % CALLS;
            }
        }
        let state = &mut self.blocks[id as usize];
        if !state.was_executed {
            (state.was_executed, state.first_site) = (true, self.sites);
            self.sites = self.sites.wrapping_add(sites);
        }
        state.first_site
    }
}

/// Models the contents of registers. They can be wrong, since memory can change without a record.
struct RegisterModel {
    slots: [ModelSlot; SLOTS],
    /// The slot that is always 0.
    zero: u8,
    /// The register that holds the address of the next instruction to execute, or [`NONE`].
    jump: u8,
    memory: MemoryModel,
}

/// A value.
#[derive(Clone, Copy)]
struct ModelSlot {
    value: u64,
    /// The address that it was loaded from, or 0.
    origin: u64,
}

/// An unknown value: with its highest bit set it is no address.
const UNKNOWN_VALUE: ModelSlot = ModelSlot { value: 3 << 62, origin: 0 };

impl RegisterModel {
    fn new(zero: u8) -> RegisterModel {
        let (slots, memory) = ([UNKNOWN_VALUE; SLOTS], MemoryModel::new());
        let mut registers = RegisterModel { slots, zero, jump: NONE, memory };
        registers.reset();
        registers
    }

    fn reset(&mut self) {
        self.slots = [UNKNOWN_VALUE; SLOTS];
        self.slots[self.zero as usize].value = 0;
        self.jump = NONE;
    }

    #[inline(always)]
    fn begin(&mut self, summary: &BlockSummary) {
        if self.jump != NONE {
            self.set_value(self.jump, summary.address);
        }
    }

    /// Sets a slot to the actual value, which it did not hold.
    #[inline(always)]
    fn set_value(&mut self, slot: u8, value: u64) {
        let slot = &mut self.slots[slot as usize % SLOTS];
        slot.value = value;
        if slot.origin != 0 {
            self.memory.set(slot.origin, value);
        }
    }

    /// Sets all registers to their recorded values.
    fn set(&mut self, integers: &[u64]) {
        for (slot, &value) in self.slots.iter_mut().zip(integers) {
            *slot = ModelSlot { value, origin: 0 };
        }
    }

    #[inline(always)]
    fn predict(&self, access: &SummaryAccess) -> u64 {
        let base = self.slots[access.base.slot as usize % SLOTS].value;
        base.wrapping_add(access.base.constant) & access.mask
    }

    #[inline(always)]
    fn infer_base(&mut self, access: &SummaryAccess, address: u64) {
        if access.inferred_slot != UNKNOWN {
            self.set_value(access.inferred_slot, address.wrapping_sub(access.base.constant));
        }
    }

    /// Applies the access's load or store to slots and memory.
    #[inline(always)]
    fn apply_transfer(&mut self, access: &SummaryAccess, address: u64) {
        let slot = &mut self.slots[access.data.slot as usize % SLOTS];
        match access.transfer {
            PointerTransfer::Other => {}
            PointerTransfer::Load => {
                let value = self.memory.get(address).unwrap_or(UNKNOWN_VALUE.value);
                *slot = ModelSlot { value, origin: address };
            }
            PointerTransfer::Store => self.memory.set(address, slot.value.wrapping_add(access.data.constant)),
        }
    }

    #[inline(always)]
    fn end(&mut self, summary: &BlockSummary, assignments: &[RegisterValue]) {
        for assignment in assignments {
            let from = self.slots[assignment.to.slot as usize % SLOTS];
            let value = from.value.wrapping_add(assignment.to.constant);
            let origin = from.origin & assignment.is_copy;
            self.slots[assignment.register as usize % SLOTS] = ModelSlot { value, origin };
        }
        let mut unknown = summary.unknown;
        while unknown != 0 {
            self.slots[unknown.trailing_zeros() as usize] = UNKNOWN_VALUE;
            unknown &= unknown - 1;
        }
        self.jump = summary.jump;
    }
}
