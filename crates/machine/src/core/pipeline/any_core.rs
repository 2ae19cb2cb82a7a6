//! The cores of machines: in order, whose memory requests are resolved before, or out of order, with a memory of their own.

use events::{Block, MappedImage};

use super::core::Core;
use super::cycles::Cycles;
use super::issue::SiteCycles;
use super::memory::MemorySystem;
use super::resolve::L1Miss;
use crate::core::out_of_order::OutOfOrderCore;
use crate::core::predictor::PredictorState;

/// A core of either kind.
pub(super) enum AnyCore<M> {
    InOrder(Box<Core>),
    OutOfOrder(Box<OutOfOrderCore<M>>),
}

/// The same of both kinds.
macro_rules! either {
    ($self:ident, $core:ident => $what:expr) => {
        match $self {
            AnyCore::InOrder($core) => $what,
            AnyCore::OutOfOrder($core) => $what,
        }
    };
}

impl<M: MemorySystem> AnyCore<M> {
    /// An image is mapped.
    pub fn map(&mut self, image: &MappedImage) {
        if let AnyCore::OutOfOrder(core) = self {
            core.map(image);
        }
    }

    /// Defines a block that can be executed from now on.
    pub fn define(&mut self, block: Block) {
        match self {
            AnyCore::InOrder(core) => core.define(&block),
            AnyCore::OutOfOrder(core) => core.define(block),
        }
    }

    /// Switches to a process.
    pub fn enter(&mut self, process: u32) {
        either!(self, core => core.enter(process))
    }

    /// A discontinuity: control continues elsewhere than the last instruction says.
    pub fn divert(&mut self) {
        either!(self, core => core.divert())
    }

    /// All cycles but the last one, which may not be over.
    pub fn cycles(&self) -> Cycles {
        either!(self, core => core.cycles())
    }

    /// All cycles so far.
    pub fn all_cycles(&self) -> Cycles {
        either!(self, core => core.totals().cycles())
    }

    /// Instructions that the system emulated.
    pub fn emulated(&self) -> u64 {
        match self {
            AnyCore::InOrder(core) => core.totals().emulated(),
            AnyCore::OutOfOrder(core) => core.emulated(),
        }
    }

    /// Instructions that were replayed.
    pub fn replays(&self) -> u64 {
        match self {
            AnyCore::InOrder(core) => core.totals().replays(),
            AnyCore::OutOfOrder(core) => core.counts().replays,
        }
    }

    /// The cycles of a block's instructions.
    pub fn sites(&self, block: usize) -> Vec<SiteCycles> {
        either!(self, core => core.sites(block))
    }

    /// The branch predictor.
    pub fn predictor(&self) -> &PredictorState {
        either!(self, core => core.predictor())
    }

    /// The core, if it is an out-of-order one.
    pub fn out_of_order(&self) -> Option<&OutOfOrderCore<M>> {
        match self {
            AnyCore::InOrder(_) => None,
            AnyCore::OutOfOrder(core) => Some(core),
        }
    }

    /// How many accesses a block makes that is executed next, and how many instructions it has.
    #[inline(always)]
    pub fn lengths(&mut self, block: u32) -> [u32; 2] {
        either!(self, core => core.lengths(block))
    }

    /// Executes a block. An in-order core is told its L1 misses: of instruction lines, and of accesses.
    #[inline(always)]
    pub fn execute(&mut self, block: u32, addresses: &[u64], misses: [&[L1Miss]; 2]) {
        match self {
            AnyCore::InOrder(core) => core.execute(block, addresses, misses),
            AnyCore::OutOfOrder(core) => core.execute(block, addresses),
        }
    }

    /// Updates caches and predictors by a block, without time. An in-order core is told its L1 misses of instruction lines.
    #[inline(always)]
    pub fn warm(&mut self, block: u32, addresses: &[u64], fetched: &[L1Miss]) {
        match self {
            AnyCore::InOrder(core) => core.warm(block, fetched),
            AnyCore::OutOfOrder(core) => core.warm(block, addresses),
        }
    }

    /// Adds the counts of another core of the same machine, which executes nothing any more.
    pub fn merge(&mut self, ended: &mut AnyCore<M>) {
        match (self, ended) {
            (AnyCore::InOrder(core), AnyCore::InOrder(ended)) => core.merge(ended),
            (AnyCore::OutOfOrder(core), AnyCore::OutOfOrder(ended)) => core.merge(ended),
            _ => unreachable!("both are of the same machine"),
        }
    }

    /// Resets the counts, but for the last cycle, which may not be over.
    pub fn reset_counts(&mut self) {
        either!(self, core => core.reset_counts())
    }
}
