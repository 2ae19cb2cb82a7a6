//! Consumers of what is executed, while a program runs or a trace is replayed.

use crate::{Block, BlockId, HitFilter, Image};

/// A thread that executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The number of its process, from 0.
    pub process: u32,
    /// Its own number among the threads of all processes, from 0.
    pub number: u32,
}

/// Consumes, in order, what is executed.
pub trait Consumer: Send {
    /// An image that blocks may be of from now on; the first is number 0.
    fn map(&mut self, _image: &Image) {}

    /// A block that records may name from now on; the first is number 0.
    fn define(&mut self, block: &Block);

    /// What a thread executed: [`record`](crate::record)s, whole ones, whose blocks are defined. Threads take
    /// turns; while a program runs there are no order marks.
    fn executed(&mut self, thread: Thread, records: &[u64]);

    /// The filter that compiled code may use, if the consumer has one. While one thread executes and reports to the
    /// consumer itself, compiled code may report only the accesses that the filter does not hold
    /// ([`FilterTable::on_unfiltered`](crate::FilterTable::on_unfiltered)), and how often each block was executed
    /// ([`Consumer::executed_filtered`]), instead of records. The consumer must then stay at its address.
    fn hit_filter(&mut self) -> Option<HitFilter> {
        None
    }

    /// The number that the consumer gives a block's first instruction; the others follow. Unfiltered accesses are
    /// reported by these numbers.
    fn first_instruction(&self, _block: BlockId) -> u32 {
        0
    }

    /// A block was executed so many times whose records were not reported, but for its unfiltered accesses. Reported
    /// before the marks of units that follow.
    fn executed_filtered(&mut self, _block: BlockId, _executions: u64) {}
}

/// Several consumers of the same execution.
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

    fn hit_filter(&mut self) -> Option<HitFilter> {
        // A line that one filter holds another does not.
        if let [one] = &mut self[..] { one.hit_filter() } else { None }
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        self.first().map_or(0, |one| one.first_instruction(block))
    }

    fn executed_filtered(&mut self, block: BlockId, executions: u64) {
        self.iter_mut().for_each(|one| one.executed_filtered(block, executions));
    }
}
