//! Functional warming: caches, TLBs and predictors between the windows of a sample, where no time passes and nothing is speculated.

use super::base_registers::BaseRegisters;
use super::core::OutOfOrderCore;
use crate::core::pipeline::MemorySystem;
use crate::core::predictor::BlockEnd;

impl<M: MemorySystem> OutOfOrderCore<M> {
    /// Updates caches and predictors by a block, whose accesses have these addresses.
    pub fn warm(&mut self, block: u32, addresses: &[u64]) {
        let block = &self.blocks[block as usize];
        if block.instructions.is_empty() {
            return;
        }
        let last = std::mem::replace(&mut self.exit, block.exit);
        if last.end != BlockEnd::Falls && last.can_lead_to(block.address) {
            self.predictor.execute(last.end, last.last, last.next, block.address);
        }
        let fetched = block.address..block.exit.next;
        self.fetch.warm(&mut self.window.fetch, fetched, &mut self.memory);
        for (&(bytes, is_store), &address) in block.accesses.iter().zip(addresses) {
            self.memory.access(address, bytes, is_store);
        }
        // What registers hold is learnt anew before the next window.
        self.registers = BaseRegisters::default();
    }
}
