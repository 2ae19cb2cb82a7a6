//! A model for each process of a program.

use std::collections::BTreeMap;
use std::io;

use events::{Block, BlockId, Consumer, HitFilter, MappedImage, Thread};

use crate::{Model, ModelNeeds};

/// A model whose counts can be added to those of another one, of the same machine and with the same blocks.
pub trait MergeableModel: Model {
    /// Adds the counts of a model that observes nothing any more.
    fn merge(&mut self, ended: Self)
    where
        Self: Sized;

    /// The sums of the results of all instructions, in the columns in which they are shown.
    fn totals(&self) -> Vec<u64>;
}

/// Of several machines: their totals one after another.
impl<M: MergeableModel> MergeableModel for Vec<M> {
    fn merge(&mut self, ended: Vec<M>) {
        self.iter_mut().zip(ended).for_each(|(own, ended)| own.merge(ended));
    }

    fn totals(&self) -> Vec<u64> {
        self.iter().flat_map(M::totals).collect()
    }
}

/// A model for each process, as if each had a processor of its own: a process's caches and predictors begin empty, and know
/// nothing of other processes. The threads of a process share its processor.
pub struct PerProcess<M> {
    make: Box<dyn Fn() -> M + Send>,
    definitions: Vec<ProcessDefinition>,
    /// By the number of the process.
    models: BTreeMap<u32, M>,
    /// The counts of ended processes, unless each keeps its model.
    ended: Option<EndedProcesses<M>>,
    has_worker_threads: bool,
    /// Whether all processes share one model.
    is_shared: bool,
}

/// The number of the model that all processes share.
const SHARED: u32 = 0;

/// The counts of processes that have ended, in one model: a server may have very many.
struct EndedProcesses<M> {
    merge: fn(&mut M, M),
    totals_of: fn(&M) -> Vec<u64>,
    model: Option<M>,
    totals: BTreeMap<u32, Vec<u64>>,
}

/// A definition for the models of later processes, too.
enum ProcessDefinition {
    Image(MappedImage),
    Block(Block),
}

impl<M: Model> PerProcess<M> {
    /// Models that `make` makes. Each is kept.
    pub fn new(make: impl Fn() -> M + Send + 'static) -> PerProcess<M> {
        let (definitions, models) = Default::default();
        PerProcess {
            make: Box::new(make),
            definitions,
            models,
            ended: None,
            has_worker_threads: false,
            is_shared: false,
        }
    }

    /// One model, which `make` makes, for all processes: they share a processor.
    pub fn shared(make: impl Fn() -> M + Send + 'static) -> PerProcess<M> {
        let models = BTreeMap::from([(SHARED, make())]);
        PerProcess { models, is_shared: true, ..PerProcess::new(make) }
    }

    /// Whether all processes share one model.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The number of the model that observes a process.
    pub fn model_of(&self, process: u32) -> u32 {
        if self.is_shared { SHARED } else { process }
    }

    /// The models of the processes that executed anything, by their numbers; not of those that have ended, if these are merged.
    pub fn models(&self) -> &BTreeMap<u32, M> {
        &self.models
    }

    /// The same, for good.
    pub fn into_models(self) -> BTreeMap<u32, M> {
        self.models
    }

    /// Models with all counts: those of processes, and what was merged.
    pub fn all_models(&self) -> impl Iterator<Item = &M> {
        let merged = self.ended.as_ref().and_then(|ended| ended.model.as_ref());
        merged.into_iter().chain(self.models.values())
    }

    /// A model that knows all definitions so far.
    fn begin(&self) -> M {
        let mut model = (self.make)();
        for definition in &self.definitions {
            match definition {
                ProcessDefinition::Image(image) => model.map(image),
                ProcessDefinition::Block(block) => model.define(block),
            }
        }
        if self.has_worker_threads {
            // Without it the model works on the caller's thread.
            let _ = model.use_worker_thread();
        }
        model
    }

    /// The model that all processes share, if they do: only one has a hit filter.
    fn shared_model_mut(&mut self) -> Option<&mut M> {
        self.models.get_mut(&SHARED).filter(|_| self.is_shared)
    }

    /// All models, and the merged one.
    fn all_models_mut(&mut self) -> impl Iterator<Item = &mut M> {
        let merged = self.ended.as_mut().and_then(|ended| ended.model.as_mut());
        merged.into_iter().chain(self.models.values_mut())
    }
}

impl<M: MergeableModel> PerProcess<M> {
    /// Models that `make` makes. Those of processes that have ended are merged, so that there is room for very many processes.
    pub fn merging(make: impl Fn() -> M + Send + 'static) -> PerProcess<M> {
        let ended =
            EndedProcesses { merge: M::merge, totals_of: M::totals, model: None, totals: BTreeMap::new() };
        PerProcess { ended: Some(ended), ..PerProcess::new(make) }
    }

    /// A model with the counts of all processes, if any executed anything.
    pub fn into_merged(self) -> Option<M> {
        let merged = self.ended.and_then(|ended| ended.model);
        merged.into_iter().chain(self.models.into_values()).reduce(|mut all, model| {
            all.merge(model);
            all
        })
    }

    /// The totals of each process, by its number.
    pub fn totals(&self) -> BTreeMap<u32, Vec<u64>> {
        let mut totals = self.ended.as_ref().map_or_else(BTreeMap::new, |ended| ended.totals.clone());
        for (&process, model) in &self.models {
            let own = model.totals();
            match totals.get_mut(&process) {
                Some(sums) => sums.iter_mut().zip(own).for_each(|(sum, number)| *sum += number),
                None => drop(totals.insert(process, own)),
            }
        }
        totals
    }
}

impl<M: Model> Consumer for PerProcess<M> {
    fn map(&mut self, image: &MappedImage) {
        self.all_models_mut().for_each(|model| model.map(image));
        self.definitions.push(ProcessDefinition::Image(image.clone()));
    }

    fn define(&mut self, block: &Block) {
        self.all_models_mut().for_each(|model| model.define(block));
        self.definitions.push(ProcessDefinition::Block(block.clone()));
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let number = self.model_of(thread.process);
        if !self.models.contains_key(&number) {
            let model = self.begin();
            self.models.insert(number, model);
        }
        if let Some(model) = self.models.get_mut(&number) {
            model.executed(thread, records);
        }
    }

    fn hit_filter(&mut self) -> Option<HitFilter> {
        self.shared_model_mut()?.hit_filter()
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        let shared = self.models.get(&SHARED).filter(|_| self.is_shared);
        shared.map_or(0, |model| model.first_instruction(block))
    }

    fn executed_filtered(&mut self, block: BlockId, executions: u64) {
        if let Some(model) = self.shared_model_mut() {
            model.executed_filtered(block, executions);
        }
    }

    fn process_ended(&mut self, process: u32) {
        let Some(ended) = &mut self.ended else { return };
        let Some(model) = self.models.remove(&process) else { return };
        ended.totals.insert(process, (ended.totals_of)(&model));
        match &mut ended.model {
            Some(merged) => (ended.merge)(merged, model),
            none => *none = Some(model),
        }
    }
}

impl<M: Model> Model for PerProcess<M> {
    fn reset_counts(&mut self) {
        self.all_models_mut().for_each(M::reset_counts);
        if let Some(ended) = &mut self.ended {
            ended.totals.clear();
        }
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        self.has_worker_threads = true;
        self.models.values_mut().try_fold(false, |has_thread, one| Ok(one.use_worker_thread()? | has_thread))
    }

    fn needs(&self) -> ModelNeeds {
        (self.make)().needs()
    }
}
