//! Models of machines that observe the same run.

use events::{Block, Consumer, MappedImage, Thread};
use machine::{Caches, MergeableModel, Model, TimingModel};

/// The caches and the pipelines of machines.
pub(crate) struct Models {
    pub(crate) caches: Vec<Caches>,
    pub(crate) times: Vec<TimingModel>,
}

impl Consumer for Models {
    fn map(&mut self, image: &MappedImage) {
        self.caches.map(image);
        self.times.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.caches.define(block);
        self.times.define(block);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.caches.executed(thread, records);
        self.times.executed(thread, records);
    }
}

impl Model for Models {
    fn reset_counts(&mut self) {
        self.caches.reset_counts();
        self.times.reset_counts();
    }
}

/// Totals are those of the caches, then those of the pipelines.
impl MergeableModel for Models {
    fn merge(&mut self, ended: Models) {
        self.caches.merge(ended.caches);
        self.times.merge(ended.times);
    }

    fn totals(&self) -> Vec<u64> {
        [self.caches.totals(), self.times.totals()].concat()
    }
}
