//! Who hears what is executed, while a program runs or a trace is replayed.

use crate::{Block, BlockId, Image, Lookaside};

/// A thread that executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The number of its process, from 0.
    pub process: u32,
    /// Its own number among the threads of all processes, from 0.
    pub number: u32,
}

/// Hears, in order, what is executed.
pub trait Consumer: Send {
    /// An image that blocks may be of from now on; the first is number 0.
    fn map(&mut self, _image: &Image) {}

    /// A block that records may name from now on; the first is number 0.
    fn define(&mut self, block: &Block);

    /// What a thread executed: [`record`](crate::record)s, whole ones, whose blocks are defined. Threads take
    /// turns; while a program runs there are no order marks.
    fn executed(&mut self, thread: Thread, records: &[u64]);

    /// What is usual, if that can be said. While one thread executes, and tells the consumer itself what it does, it
    /// may tell of blocks whatever is not usual by [`Lookaside::unusual`], and how often they were executed by
    /// [`Consumer::passed`], instead of their records. The consumer must then stay where it is.
    fn lookaside(&mut self) -> Option<Lookaside> {
        None
    }

    /// The number of the first instruction of a block, by which it wants to be told of the block's: those of all blocks
    /// may be numbered, for one.
    fn first_instruction(&self, _block: BlockId) -> u32 {
        0
    }

    /// So many executions of a block have been passed over, as far as they were usual. Told before the marks of units
    /// that follow.
    fn passed(&mut self, _block: BlockId, _executions: u64) {}
}

/// Several that hear the same.
impl<C: Consumer> Consumer for Vec<C> {
    fn map(&mut self, image: &Image) {
        self.iter_mut().for_each(|one| one.map(image));
    }

    fn define(&mut self, block: &Block) {
        self.iter_mut().for_each(|one| one.define(block));
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.iter_mut().for_each(|one| one.executed(thread, records));
    }

    fn lookaside(&mut self) -> Option<Lookaside> {
        // What is usual for one is not for another.
        if let [one] = &mut self[..] { one.lookaside() } else { None }
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        self.first().map_or(0, |one| one.first_instruction(block))
    }

    fn passed(&mut self, block: BlockId, executions: u64) {
        self.iter_mut().for_each(|one| one.passed(block, executions));
    }
}
