//! In the place of the compiler on hosts that it does not write code for: nothing is ever compiled.

use alpha::block::{Block, BlockCache};
use alpha::cpu::Cpu;
use alpha::observer::InstrumentationLevel;
use events::{BlockId, HitFilter};
use memory::Memory;

/// As in the compiler.
pub const THRESHOLD: u32 = 0;

/// As in the compiler.
pub const UNWIND: u64 = 1;

/// As in the compiler.
pub enum Exit {
    /// Go on at this guest address.
    At(u64),
    /// The host instruction at this address faulted.
    Fault(usize),
}

/// A compiler that cannot be had.
pub enum Compiler {}

/// Where compiled code faulted: nowhere.
pub struct Site {
    /// The block.
    pub block: BlockId,
    /// The instruction in it.
    pub index: u32,
}

impl Site {
    /// Makes the registers what they are for the guest.
    pub fn complete(&self, _: &mut Cpu, _: &BlockCache) {}
}

impl Compiler {
    /// There is none for this host.
    pub fn new(_: &Memory, _: InstrumentationLevel, _: Option<&HitFilter>) -> Option<Compiler> {
        None
    }

    /// As in the compiler.
    pub fn compile(
        &mut self,
        _: BlockId,
        _: u32,
        _: &dyn Fn(&Block) -> bool,
        _: &dyn Fn(BlockId) -> u32,
        _: &mut BlockCache,
    ) {
        match *self {}
    }

    /// As in the compiler.
    pub fn prepare(&mut self, _: &Block, _: &mut Cpu) {
        match *self {}
    }

    /// As in the compiler.
    pub fn site(&self, _: usize) -> Site {
        match *self {}
    }

    /// As in the compiler.
    pub fn clear(&mut self) {
        match *self {}
    }
}

/// As in the compiler.
pub fn is_stack_full(_: &Cpu) -> bool {
    false
}

/// As in the compiler.
pub fn watch(_: &mut Cpu) {}

/// As in the compiler.
pub unsafe fn enter(_: &mut Cpu, _: *const u8, _: bool) -> Exit {
    unreachable!("nothing was compiled")
}
