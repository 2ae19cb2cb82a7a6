//! Models that hear something before what counts.

use std::io;

use trace::record::{Event, Mark};
use trace::{Block, BlockId, Consumer, Image, Lookaside, Thread};

/// A model of a machine, which counts.
pub trait Model: Consumer {
    /// Forgets what was counted, and nothing of what the machine holds: all that it has heard warmed it up.
    fn forget_counts(&mut self);

    /// From now on a thread of its own does a part of the work, behind the rest, if there is such a part. Nothing else
    /// changes. Says whether there is.
    fn work_aside(&mut self) -> io::Result<bool> {
        Ok(false)
    }
}

impl<M: Model> Model for Vec<M> {
    fn forget_counts(&mut self) {
        self.iter_mut().for_each(M::forget_counts);
    }

    fn work_aside(&mut self) -> io::Result<bool> {
        self.iter_mut().try_fold(false, |is_aside, one| Ok(one.work_aside()? | is_aside))
    }
}

/// Lets a model count from the beginning of a unit of work on, whichever process does it.
#[derive(Debug)]
pub struct Warming<M> {
    /// What hears everything.
    pub model: M,
    /// The unit's number, until it begins.
    awaited: Option<u64>,
}

impl<M: Model> Warming<M> {
    /// Counts from the first unit on that has this number or a larger one; without one everything.
    pub fn new(model: M, first: Option<u64>) -> Warming<M> {
        Warming { model, awaited: first }
    }

    /// Whether nothing counts as yet.
    pub fn is_warming(&self) -> bool {
        self.awaited.is_some()
    }

    /// Where the records of what counts begin.
    fn beginning(&self, records: &[u64]) -> Option<usize> {
        let first = self.awaited?;
        let begins =
            |word: &u64| matches!(Event::new(*word), Event::Mark(Mark::UnitBegins(unit)) if unit >= first);
        records.iter().position(begins)
    }
}

impl<M: Model> Consumer for Warming<M> {
    fn map(&mut self, image: &Image) {
        self.model.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.model.define(block);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let Some(beginning) = self.beginning(records) else { return self.model.executed(thread, records) };
        let (before, counted) = records.split_at(beginning);
        self.model.executed(thread, before);
        self.model.forget_counts();
        self.awaited = None;
        self.model.executed(thread, counted);
    }

    fn lookaside(&mut self) -> Option<Lookaside> {
        self.model.lookaside()
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        self.model.first_instruction(block)
    }

    fn passed(&mut self, block: BlockId, executions: u64) {
        self.model.passed(block, executions);
    }
}
