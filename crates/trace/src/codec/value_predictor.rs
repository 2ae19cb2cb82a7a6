//! Predicts values by executing instructions with the recorded operands. That is mostly possible, since all values
//! are recorded.

use super::block_summary::BlockSummaries;
use super::coder::{ChunkSection, Coder};
use super::context_predictor::ContextPredictor;
use super::memory_model::MemoryModel;
use super::value_step::{FLOAT, PredictionSource, SLOTS, ValueStep};
use crate::bytes::Malformed;
use events::BlockId;

/// Models the contents of registers and memory.
pub(crate) struct ValuePredictor {
    registers: [u64; SLOTS],
    memory: MemoryModel,
    context_predictor: ContextPredictor,
}

impl ValuePredictor {
    pub fn new() -> ValuePredictor {
        ValuePredictor {
            registers: [0; SLOTS],
            memory: MemoryModel::new(),
            context_predictor: ContextPredictor::new(),
        }
    }

    /// The integer registers.
    pub fn integers(&self) -> &[u64] {
        &self.registers[..FLOAT as usize]
    }

    /// Codes the values of a block that was executed with these addresses. `first_site` is the index of its first
    /// instruction's predictor state.
    pub fn execution<C: Coder>(
        &mut self,
        coder: &mut C,
        summaries: &BlockSummaries,
        id: BlockId,
        first_site: u32,
        addresses: &[u64],
    ) -> Result<(), Malformed> {
        let mut addresses = addresses.iter().copied();
        let (mut site, mut pc) = (first_site, summaries.get(id)?.address);
        for step in summaries.value_steps(id) {
            site = site.wrapping_add(1);
            pc = pc.wrapping_add(step.length.into());
            let address = if step.has_access { addresses.next().unwrap_or(0) } else { 0 };
            let mut value = pc;
            if step.has_value {
                let predicted = self.predict(step, address);
                value = match predicted {
                    Some(value) if coder.hit(ChunkSection::Values, value) => value,
                    _ => {
                        self.context_predictor.next(coder, ChunkSection::Values, site, predicted.is_some())?
                    }
                };
            }
            self.executed(step, address, value);
        }
        Ok(())
    }

    fn register(&self, slot: u8) -> u64 {
        self.registers[slot as usize % SLOTS]
    }

    #[inline(always)]
    fn predict(&mut self, step: &ValueStep, address: u64) -> Option<u64> {
        let [first, second, old] = step.operands;
        match step.predictor {
            PredictionSource::History => None,
            PredictionSource::Register => Some(self.register(first)),
            PredictionSource::Memory => self.memory.get(address),
            PredictionSource::Operation => {
                let second = if step.has_constant { step.constant } else { self.register(second) };
                Some((step.operation)(self.register(first), second, self.register(old)))
            }
        }
    }

    /// Applies the effect of an instruction with its actual value (or, without one, the next address).
    #[inline(always)]
    fn executed(&mut self, step: &ValueStep, address: u64, value: u64) {
        if let Some(extension) = step.memory {
            self.memory.set(address, extension.apply(value));
        }
        self.registers[step.destination as usize % SLOTS] = step.success.map_or(value, u64::from);
    }
}
