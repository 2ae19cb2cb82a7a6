//! Models that hear something before what counts.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

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

/// Lets a model count from the beginning of a unit of work on, whichever thread does it.
///
/// Threads work on units at the same time: when the first unit begins that counts, others may be under way that do not.
/// What is left of those is not heard, so that nothing else than the units that count is counted.
#[derive(Debug)]
pub struct Warming<M> {
    /// What hears everything that warms it up, and everything that counts.
    pub model: M,
    /// The numbers of the units that warm it up.
    warm_up: Range<u64>,
    /// Whether nothing counts as yet.
    is_warming: bool,
    /// The threads that are in a unit that does not count.
    within: HashSet<u32>,
    /// How many of the units that do not count are not over.
    left: u64,
}

impl<M: Model> Warming<M> {
    /// Counts from the first unit on that has the number behind these or a larger one; if there are none, everything.
    pub fn new(model: M, warm_up: Range<u64>) -> Warming<M> {
        let left = warm_up.end.saturating_sub(warm_up.start);
        Warming { model, warm_up, is_warming: left > 0, within: HashSet::new(), left }
    }

    /// Whether nothing counts as yet.
    pub fn is_warming(&self) -> bool {
        self.is_warming
    }

    /// Whether some of what comes may not count.
    fn is_choosing(&self) -> bool {
        self.is_warming || self.left > 0
    }

    /// Lets the model hear what a thread executed, as far as that warms it up or counts.
    fn choose(&mut self, thread: Thread, records: &[u64]) {
        let mut start = 0;
        let marks = records.iter().enumerate().filter_map(|(at, word)| match Event::new(*word) {
            Event::Mark(mark) => Some((at, mark)),
            _ => None,
        });
        for (at, mark) in marks {
            match mark {
                Mark::UnitBegins(unit) if unit < self.warm_up.end => {
                    self.hear(thread, &records[start..at]);
                    start = at;
                    self.within.insert(thread.number);
                }
                Mark::UnitBegins(_) => {
                    self.hear(thread, &records[start..at]);
                    start = at;
                    self.within.remove(&thread.number);
                    if std::mem::take(&mut self.is_warming) {
                        self.model.forget_counts();
                    }
                }
                Mark::UnitEnds(unit) | Mark::UnitLeft(unit) if self.warm_up.contains(&unit) => {
                    self.hear(thread, &records[start..=at]);
                    start = at + 1;
                    self.within.remove(&thread.number);
                    self.left = self.left.saturating_sub(1);
                }
                _ => {}
            }
        }
        self.hear(thread, &records[start..]);
    }

    /// The same of records that are all of the same unit, or of none.
    fn hear(&mut self, thread: Thread, records: &[u64]) {
        if !records.is_empty() && (self.is_warming || !self.within.contains(&thread.number)) {
            self.model.executed(thread, records);
        }
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
        if self.is_choosing() {
            self.choose(thread, records);
        } else {
            self.model.executed(thread, records);
        }
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
