//! Several models of the same execution on several of the host's processors.

use std::io;

use events::{Block, Consumer, MappedImage, Thread};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{Model, ModelNeeds};

/// Words of records in a batch: enough that threads rarely wait for each other.
const BATCH_WORDS: usize = 64 << 10;

/// Models that observe the same execution, each on one processor at a time. Their counts are those of a model that
/// observes it alone.
#[derive(Debug)]
pub struct ParallelModels<M> {
    models: Vec<M>,
    /// The records that the models have not observed.
    batch: Vec<u64>,
    /// The thread of each part of the batch, and where the part ends.
    parts: Vec<(Thread, usize)>,
    /// Without it, models take turns on the caller's processor.
    pool: Option<ThreadPool>,
}

impl<M: Model> ParallelModels<M> {
    /// These models, which take turns until [`Model::use_worker_thread`] is called.
    pub fn new(models: Vec<M>) -> ParallelModels<M> {
        ParallelModels { models, batch: Vec::new(), parts: Vec::new(), pool: None }
    }

    /// The models, after they have observed everything.
    pub fn into_models(mut self) -> Vec<M> {
        self.drain();
        self.models
    }

    /// Lets the models observe what is left.
    fn drain(&mut self) {
        let ParallelModels { models, batch, parts, pool } = self;
        let observe = |model: &mut M| {
            let mut start = 0;
            for &(thread, end) in &*parts {
                model.executed(thread, &batch[start..end]);
                start = end;
            }
        };
        match pool {
            Some(pool) => pool.install(|| models.par_iter_mut().with_max_len(1).for_each(observe)),
            None => models.iter_mut().for_each(observe),
        }
        batch.clear();
        parts.clear();
    }
}

impl<M: Model> Consumer for ParallelModels<M> {
    fn map(&mut self, image: &MappedImage) {
        self.models.iter_mut().for_each(|model| model.map(image));
    }

    fn define(&mut self, block: &Block) {
        self.models.iter_mut().for_each(|model| model.define(block));
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.batch.extend_from_slice(records);
        match self.parts.last_mut() {
            Some((last, end)) if *last == thread => *end = self.batch.len(),
            _ => self.parts.push((thread, self.batch.len())),
        }
        if self.batch.len() >= BATCH_WORDS {
            self.drain();
        }
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        // It may be known before the records of the unit are observed.
        self.models.iter_mut().for_each(|model| model.unit_class(unit, class));
    }

    fn process_ended(&mut self, process: u32) {
        self.drain();
        self.models.iter_mut().for_each(|model| model.process_ended(process));
    }
}

impl<M: Model> Model for ParallelModels<M> {
    fn reset_counts(&mut self) {
        self.drain();
        self.models.iter_mut().for_each(M::reset_counts);
    }

    /// Starts a thread for each of the host's processors, but not more than there are models.
    fn use_worker_thread(&mut self) -> io::Result<bool> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = ThreadPoolBuilder::new().num_threads(processors.min(self.models.len()));
        self.pool = Some(threads.build().map_err(io::Error::other)?);
        Ok(true)
    }

    fn needs(&self) -> ModelNeeds {
        ModelNeeds::of_all(&self.models)
    }
}
