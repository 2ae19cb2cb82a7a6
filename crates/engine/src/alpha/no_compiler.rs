//! Stands where the compiler would, if it is not built in: there is none, and so none is ever used.

use trace::BlockId;

use super::block::BlockCache;
use super::cpu::Cpu;
use crate::memory::Memory;

/// Executions after which a block would be compiled.
pub(super) const THRESHOLD: u32 = u32::MAX;

/// A compiler: there is no value of this type.
pub enum Compiler {}

/// What comes out of compiled code.
#[allow(dead_code)]
pub(crate) enum Left {
    /// Go on at this guest address.
    At(u64),
    /// The host instruction at this address faulted.
    Fault(usize),
}

impl Compiler {
    /// None.
    pub fn new(_: &Memory) -> Option<Compiler> {
        None
    }

    /// Never called.
    pub fn compile(&mut self, _: BlockId, _: &mut BlockCache) {
        match *self {}
    }

    /// Never called.
    pub fn site(&self, _: usize) -> Option<u64> {
        match *self {}
    }

    /// Never called.
    pub fn clear(&mut self) {
        match *self {}
    }
}

/// Never called, for there is no code.
///
/// # Safety
/// Nothing is required.
pub(crate) unsafe fn enter(cpu: &mut Cpu, _: *const u8) -> Left {
    debug_assert!(false, "no code can exist");
    Left::At(cpu.pc)
}
