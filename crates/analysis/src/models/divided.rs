//! Results of models by instruction and by class of units of work.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

use events::record::{Entries, Entry, Event, Mark, RecordShape};
use events::{Block, BlockId, Consumer, MappedImage, Thread};
use machine::{MergeableModel, Model, ModelNeeds, PerProcess};

use super::{ExecutionPart, InstructionResults, SummedOverProcesses, UnitClasses, UnitResults};
use crate::run_counts::OUTSIDE_UNITS;
use table::{Column, Table};

/// Models of each machine, for each process or for all, whose results by instruction are divided among the classes of units of work.
///
/// The class of a unit is known at its end. Until then its blocks are executed as blocks of their own, for the models, which
/// further units of the process use again. What the models have counted of these since the unit began is then the class's.
pub struct DividedByClass<M> {
    /// The models. Their blocks are instances of those that are defined here.
    pub models: PerProcess<Vec<M>>,
    /// The classes.
    pub classes: UnitClasses,
    shapes: Vec<RecordShape>,
    blocks: Vec<Block>,
    instances: ModelInstances,
    /// By the number of the models that observe the process.
    processes: HashMap<u32, ProcessUnits>,
    /// For each machine, by class and block, the results of each instruction.
    results: Vec<HashMap<(u32, BlockId), InstructionRows>>,
    records: Vec<u64>,
}

/// A row of results for each instruction of a block.
type InstructionRows = Vec<Vec<u64>>;

/// The number of instances of what is executed outside of units; those of units are numbered from 1.
const OUTSIDE: usize = 0;

/// The instances of the models' blocks.
#[derive(Default)]
struct ModelInstances {
    /// By group and block.
    numbers: Vec<Vec<Option<BlockId>>>,
    /// By instance, the block.
    blocks: Vec<BlockId>,
}

/// The units of a process, or of all that share models.
#[derive(Default)]
struct ProcessUnits {
    /// The groups of instances, from 1 on.
    groups: Vec<UnitGroup>,
    /// By thread, the open unit and its group.
    open: HashMap<u32, (u64, usize)>,
    /// By instance, for each machine, the results that were divided already.
    taken: HashMap<BlockId, Vec<InstructionRows>>,
}

/// Instances in which one unit at a time is executed.
#[derive(Default)]
struct UnitGroup {
    state: UnitState,
    /// The instances that the unit has used.
    used: Vec<BlockId>,
    /// By instance, whether it is among those.
    is_used: Vec<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UnitState {
    Open,
    /// The unit has ended, and is of a class or of none. Its results are divided when the next one begins: the last of its instructions
    /// may still be in a pipeline.
    Ended(Option<u32>),
}

impl Default for UnitState {
    fn default() -> UnitState {
        UnitState::Ended(None)
    }
}

impl<M: InstructionResults + MergeableModel> DividedByClass<M> {
    /// With models of each machine that have observed nothing.
    pub fn new(models: PerProcess<Vec<M>>) -> DividedByClass<M> {
        DividedByClass {
            models,
            classes: UnitClasses::default(),
            shapes: Vec::new(),
            blocks: Vec::new(),
            instances: ModelInstances::default(),
            processes: HashMap::new(),
            results: Vec::new(),
            records: Vec::new(),
        }
    }

    /// Divides what is left, after everything was executed.
    pub fn finish(&mut self) {
        let numbers: Vec<u32> = self.processes.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.finish_models(number));
    }

    /// The results of everything that was executed, on a machine with this index.
    pub fn whole(&self, machine: usize) -> ClassResults<'_, M> {
        let models: Vec<&M> = self.models.all_models().map(|models| &models[machine]).collect();
        let models = SummedOverProcesses(models);
        let mut all: HashMap<BlockId, InstructionRows> = HashMap::new();
        for (instance, &block) in self.instances.blocks.iter().enumerate() {
            if let Some(rows) = models.rows(instance as BlockId) {
                add(all.entry(block).or_default(), &rows);
            }
        }
        ClassResults { name: String::new(), part: ExecutionPart::Whole, models, rows: all }
    }

    /// The results of each class, the greatest first; and those of what was executed outside of units.
    pub fn parts(&self, machine: usize) -> Vec<ClassResults<'_, M>> {
        let mut outside = self.whole(machine);
        outside.name = OUTSIDE_UNITS.into();
        outside.part = ExecutionPart::OutsideUnits;
        let names = (0..).zip(self.classes.names());
        let mut parts: Vec<_> = names
            .map(|(class, name)| ClassResults {
                name: name.clone(),
                part: ExecutionPart::Class(class),
                models: outside.models.clone(),
                rows: HashMap::new(),
            })
            .collect();
        for (&(class, block), rows) in self.results.get(machine).into_iter().flatten() {
            subtract(outside.rows.entry(block).or_default(), rows);
            parts[class as usize].rows.insert(block, rows.clone());
        }
        // Blocks that units alone execute.
        outside.rows.retain(|_, rows| rows.iter().flatten().any(|number| *number > 0));
        parts.sort_by_cached_key(|part| (Reverse(part.total()), part.name.clone()));
        parts.push(outside);
        parts
    }

    /// The models with this number observe nothing any more.
    fn finish_models(&mut self, number: u32) {
        let Some(ProcessUnits { groups, mut taken, .. }) = self.processes.remove(&number) else { return };
        groups.iter().for_each(|group| self.divide(number, group, &mut taken));
    }

    /// Counts by the models with this number of a group since its unit began belong to the unit's class, if the unit has ended.
    fn divide(&mut self, number: u32, group: &UnitGroup, taken: &mut HashMap<BlockId, Vec<InstructionRows>>) {
        let (UnitState::Ended(class), Some(models)) = (group.state, self.models.models().get(&number)) else {
            return;
        };
        self.results.resize_with(models.len(), HashMap::new);
        for &instance in &group.used {
            let block = self.instances.blocks[instance as usize];
            let taken = taken.entry(instance).or_insert_with(|| vec![Vec::new(); models.len()]);
            for ((model, results), taken) in models.iter().zip(&mut self.results).zip(taken) {
                let Some(rows) = model.rows(instance) else { continue };
                if let Some(class) = class {
                    let own = results.entry((class, block)).or_default();
                    add(own, &rows);
                    subtract(own, taken);
                }
                *taken = rows;
            }
        }
    }

    /// Passes rewritten records on.
    fn pass_on(&mut self, thread: Thread) {
        if !self.records.is_empty() {
            self.models.executed(thread, &self.records);
            self.records.clear();
        }
    }

    /// A unit of a process begins in a thread. Returns its group.
    fn begin(&mut self, thread: Thread, units: &mut ProcessUnits, unit: u64) -> usize {
        self.end(thread, units, None);
        self.pass_on(thread);
        let is_open = |group: &UnitGroup| group.state == UnitState::Open;
        let index = units.groups.iter().position(|group| !is_open(group)).unwrap_or_else(|| {
            units.groups.push(UnitGroup::default());
            units.groups.len() - 1
        });
        let group = &mut units.groups[index];
        self.divide(self.models.model_of(thread.process), group, &mut units.taken);
        group.state = UnitState::Open;
        group.used.drain(..).for_each(|instance| group.is_used[instance as usize] = false);
        units.open.insert(thread.number, (unit, index + 1));
        index + 1
    }

    /// The open unit of a thread ends. Unless it is this one, it belongs to no class.
    fn end(&self, thread: Thread, units: &mut ProcessUnits, ended: Option<u64>) {
        let Some((unit, group)) = units.open.remove(&thread.number) else { return };
        let class = ended.filter(|ended| *ended == unit).and_then(|unit| self.classes.of(unit));
        units.groups[group - 1].state = UnitState::Ended(class);
    }

    /// The instance of a block in a group.
    #[inline]
    fn instance(&mut self, group: usize, block: BlockId) -> BlockId {
        let ModelInstances { numbers, blocks } = &mut self.instances;
        if numbers.len() <= group {
            numbers.resize_with(group + 1, Vec::new);
        }
        let numbers = &mut numbers[group];
        if numbers.len() <= block as usize {
            numbers.resize(self.blocks.len(), None);
        }
        *numbers[block as usize].get_or_insert_with(|| {
            self.models.define(&self.blocks[block as usize]);
            blocks.push(block);
            blocks.len() as BlockId - 1
        })
    }
}

impl UnitGroup {
    /// The unit uses an instance.
    #[inline]
    fn uses(&mut self, instance: BlockId) {
        let index = instance as usize;
        if self.is_used.len() <= index {
            self.is_used.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.is_used[index], true) {
            self.used.push(instance);
        }
    }
}

impl<M: InstructionResults + MergeableModel> Consumer for DividedByClass<M> {
    fn map(&mut self, image: &MappedImage) {
        self.models.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.shapes.push(RecordShape::new(block.instruction_set, &block.words, false));
        self.blocks.push(block.clone());
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let number = self.models.model_of(thread.process);
        let mut units = self.processes.remove(&number).unwrap_or_default();
        let mut group = units.open.get(&thread.number).map_or(OUTSIDE, |(_, group)| *group);
        let shapes = std::mem::take(&mut self.shapes);
        for entry in Entries::new(records, &shapes) {
            match entry {
                Entry::Execution(execution) => {
                    let instance = self.instance(group, execution.block);
                    if group != OUTSIDE {
                        units.groups[group - 1].uses(instance);
                    }
                    self.records.push(Event::Block(instance).word());
                    self.records.extend_from_slice(execution.addresses);
                }
                Entry::Mark(mark) => {
                    match mark {
                        Mark::UnitBegins(unit) => group = self.begin(thread, &mut units, unit),
                        Mark::UnitEnds(unit) | Mark::UnitLeft(unit) => {
                            self.end(thread, &mut units, Some(unit));
                            group = OUTSIDE;
                        }
                        Mark::UnitCut(_) => {
                            self.end(thread, &mut units, None);
                            group = OUTSIDE;
                        }
                        _ => {}
                    }
                    self.records.push(Event::Mark(mark).word());
                }
            }
        }
        self.shapes = shapes;
        self.pass_on(thread);
        self.processes.insert(number, units);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        self.classes.add(unit, class);
    }

    fn process_ended(&mut self, process: u32) {
        if !self.models.is_shared() {
            self.finish_models(process);
        }
        self.models.process_ended(process);
    }
}

impl<M: InstructionResults + MergeableModel> Model for DividedByClass<M> {
    /// Units that have begun are divided with all that was counted of them before.
    fn reset_counts(&mut self) {
        self.models.reset_counts();
        self.results.clear();
        self.processes.values_mut().for_each(|units| units.taken.clear());
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        self.models.use_worker_thread()
    }

    fn needs(&self) -> ModelNeeds {
        self.models.needs()
    }
}

/// The results of models of a machine, of a part of the execution.
pub struct ClassResults<'a, M> {
    /// The name of the class; empty for the whole.
    pub name: String,
    part: ExecutionPart,
    models: SummedOverProcesses<'a, M>,
    rows: HashMap<BlockId, InstructionRows>,
}

impl<M: InstructionResults> ClassResults<'_, M> {
    /// The weight of all rows together.
    fn total(&self) -> u64 {
        self.rows.values().flatten().map(|row| self.weight(row)).sum()
    }
}

impl<M: InstructionResults> InstructionResults for ClassResults<'_, M> {
    const WHAT: &'static str = M::WHAT;
    const UNIT_EVENT: usize = M::UNIT_EVENT;

    fn part(&self) -> ExecutionPart {
        self.part
    }

    fn unit_results(&self) -> Vec<UnitResults> {
        self.models.unit_results()
    }

    fn units(&self, name: &str, title: &str) -> Table {
        self.models.units(name, title)
    }

    fn columns(&self) -> Vec<Column> {
        self.models.columns()
    }

    fn weight(&self, row: &[u64]) -> u64 {
        self.models.weight(row)
    }

    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>> {
        self.rows.get(&block).cloned()
    }
}

/// Adds rows to others, which have none yet, or as many.
fn add(sums: &mut InstructionRows, more: &InstructionRows) {
    if sums.is_empty() {
        sums.clone_from(more);
        return;
    }
    sums.iter_mut().flatten().zip(more.iter().flatten()).for_each(|(sum, more)| *sum += more);
}

/// Subtracts rows of which nothing is subtracted if there are none.
fn subtract(sums: &mut InstructionRows, less: &InstructionRows) {
    sums.iter_mut().flatten().zip(less.iter().flatten()).for_each(|(sum, less)| *sum -= less);
}
