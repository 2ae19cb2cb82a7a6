//! A model for each process of a program.

use std::collections::BTreeMap;
use std::io;

use events::{Block, Consumer, Image, Thread};

use crate::Model;

/// A model for each process, as if each had a processor of its own: a process's caches and predictors begin empty, and know
/// nothing of other processes. The threads of a process share its processor.
pub struct PerProcess<M> {
    make: Box<dyn Fn() -> M + Send>,
    definitions: Vec<Definition>,
    /// By the number of the process.
    models: BTreeMap<u32, M>,
    has_worker_threads: bool,
}

/// What is defined for the models of later processes, too.
enum Definition {
    Image(Image),
    Block(Block),
}

impl<M: Model> PerProcess<M> {
    /// Models that `make` makes.
    pub fn new(make: impl Fn() -> M + Send + 'static) -> PerProcess<M> {
        let (definitions, models) = Default::default();
        PerProcess { make: Box::new(make), definitions, models, has_worker_threads: false }
    }

    /// The models of the processes that executed anything, by their numbers.
    pub fn models(&self) -> &BTreeMap<u32, M> {
        &self.models
    }

    /// A model that knows all definitions so far.
    fn begin(&self) -> M {
        let mut model = (self.make)();
        for definition in &self.definitions {
            match definition {
                Definition::Image(image) => model.map(image),
                Definition::Block(block) => model.define(block),
            }
        }
        if self.has_worker_threads {
            // Without it the model works on the caller's thread.
            let _ = model.use_worker_thread();
        }
        model
    }
}

impl<M: Model> Consumer for PerProcess<M> {
    fn map(&mut self, image: &Image) {
        self.models.values_mut().for_each(|model| model.map(image));
        self.definitions.push(Definition::Image(image.clone()));
    }

    fn define(&mut self, block: &Block) {
        self.models.values_mut().for_each(|model| model.define(block));
        self.definitions.push(Definition::Block(block.clone()));
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        if !self.models.contains_key(&thread.process) {
            let model = self.begin();
            self.models.insert(thread.process, model);
        }
        if let Some(model) = self.models.get_mut(&thread.process) {
            model.executed(thread, records);
        }
    }
}

impl<M: Model> Model for PerProcess<M> {
    fn reset_counts(&mut self) {
        self.models.values_mut().for_each(M::reset_counts);
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        self.has_worker_threads = true;
        self.models.values_mut().try_fold(false, |has_thread, one| Ok(one.use_worker_thread()? | has_thread))
    }

    fn wants_heap(&self) -> bool {
        (self.make)().wants_heap()
    }
}
