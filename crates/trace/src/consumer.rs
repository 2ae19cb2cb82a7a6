//! Who hears what is executed, while a program runs or a trace is replayed.

use crate::{Block, Image};

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
}
