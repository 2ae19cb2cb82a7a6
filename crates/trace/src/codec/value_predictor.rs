//! Predicts values by executing instructions with the recorded operands. That is mostly possible, since all values
//! are recorded.

use isa::{Flags, Format, Instruction, Op, evaluate};

use super::block_summary::BlockSummaries;
use super::coder::{Coder, Section};
use super::context_predictor::ContextPredictor;
use super::memory_model::MemoryModel;
use crate::bytes::Malformed;
use events::BlockId;
use events::record::has_value;

/// Number of registers: first the integer ones, then the floating-point ones.
const REGISTERS: usize = 64;
const FLOAT: usize = 32;
const ZERO: u8 = 31;

/// Models the contents of registers and memory.
pub(crate) struct ValuePredictor {
    registers: [u64; REGISTERS],
    memory: MemoryModel,
    context_predictor: ContextPredictor,
}

impl ValuePredictor {
    pub fn new() -> ValuePredictor {
        ValuePredictor {
            registers: [0; REGISTERS],
            memory: MemoryModel::new(),
            context_predictor: ContextPredictor::new(),
        }
    }

    /// The integer registers.
    pub fn integers(&self) -> &[u64] {
        &self.registers[..FLOAT]
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
        for instruction in summaries.instructions(id) {
            site = site.wrapping_add(1);
            pc = pc.wrapping_add(4);
            let Some(instruction) = *instruction else { continue };
            let is_access = instruction.access_size().is_some();
            let address = if is_access { addresses.next().unwrap_or(0) } else { 0 };
            let mut value = pc;
            if has_value(instruction) {
                let predicted = self.predict(instruction, address);
                value = match predicted {
                    Some(value) if coder.hit(Section::Values, value) => value,
                    _ => self.context_predictor.next(coder, Section::Values, site, predicted.is_some())?,
                };
            }
            self.executed(instruction, address, value);
        }
        Ok(())
    }

    fn integer(&self, register: u8) -> u64 {
        self.registers[register as usize]
    }

    /// The value of an instruction's first operand.
    fn first(&self, instruction: Instruction) -> u64 {
        let bank = if instruction.op.is_float() { FLOAT } else { 0 };
        self.registers[bank + instruction.ra() as usize]
    }

    fn predict(&mut self, instruction: Instruction, address: u64) -> Option<u64> {
        let op = instruction.op;
        let displacement = instruction.displacement();
        match op.format() {
            Format::Memory if op == Op::Lda || op == Op::Ldah => {
                let shift = if op == Op::Ldah { 16 } else { 0 };
                let displacement = i64::from(displacement) << shift;
                Some(self.integer(instruction.rb()).wrapping_add_signed(displacement))
            }
            Format::Memory if op.is(Flags::LOAD) => self.memory.get(address),
            Format::Memory | Format::Branch => Some(self.first(instruction)),
            Format::Operate => {
                let b = instruction.literal().map_or_else(|| self.integer(instruction.rb()), u64::from);
                evaluate(op, self.integer(instruction.ra()), b, self.integer(instruction.rc()))
            }
            Format::FloatOperate if matches!(op, Op::Cpys | Op::Ftoit) => Some(self.first(instruction)),
            Format::FloatOperate if op == Op::Itoft => Some(self.integer(instruction.ra())),
            _ => None,
        }
    }

    /// Applies the effect of an instruction with its actual value (or, without one, the next address).
    fn executed(&mut self, instruction: Instruction, address: u64, value: u64) {
        let op = instruction.op;
        let (ra, rc) = (instruction.ra(), instruction.rc());
        let (register, written) = match op.format() {
            Format::Memory if op.is(Flags::STORE) => {
                self.memory.set(address, loaded(op, value));
                if !op.is(Flags::LOCKED) {
                    return;
                }
                (ra, 1)
            }
            Format::Memory => {
                if op.is(Flags::LOAD) {
                    self.memory.set(address, value);
                }
                (if op.is_float() { FLOAT as u8 + ra } else { ra }, value)
            }
            Format::Branch if op.is(Flags::CONDITIONAL) => return,
            Format::Branch | Format::MemoryJump | Format::MemoryFunction => (ra, value),
            Format::Operate => (rc, value),
            Format::FloatOperate if matches!(op, Op::Ftoit | Op::Ftois) => (rc, value),
            Format::FloatOperate => (FLOAT as u8 + rc, value),
            Format::Pal => return,
        };
        if register % 32 != ZERO {
            self.registers[register as usize] = written;
        }
    }
}

/// The value that a load of the same size returns after a store.
fn loaded(op: Op, value: u64) -> u64 {
    match op {
        Op::Stb => value as u8 as u64,
        Op::Stw => value as u16 as u64,
        Op::Stl | Op::StlC => value as i32 as u64,
        _ => value,
    }
}
