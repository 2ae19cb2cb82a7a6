//! Results of models by class of units of work.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io;

use events::{Block, BlockId, Consumer, HitFilter, MappedImage, Object, Thread};
use machine::{MergeableModel, Model, ModelNeeds};

use super::{ExecutionPart, InstructionResults, SummedOverProcesses, named};
use crate::run_counts::OUTSIDE_UNITS;
use table::{Column, Kind, Table, Value};
use trace::Trace;

/// The classes of units of work, as a program gives them.
#[derive(Clone, Debug, Default)]
pub struct UnitClasses {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// By unit.
    of_units: HashMap<u64, u32>,
}

impl UnitClasses {
    /// Those of a trace.
    pub fn of_trace(trace: &Trace) -> UnitClasses {
        let mut classes = UnitClasses::default();
        trace.unit_classes().iter().for_each(|(&unit, class)| classes.add(unit, class));
        classes
    }

    /// A unit is of a class.
    pub fn add(&mut self, unit: u64, class: &str) {
        let number = match self.numbers.get(class) {
            Some(&number) => number,
            None => {
                let number = self.names.len() as u32;
                self.names.push(class.into());
                self.numbers.insert(class.into(), number);
                number
            }
        };
        self.of_units.insert(unit, number);
    }

    /// The number of a unit's class.
    pub fn of(&self, unit: u64) -> Option<u32> {
        self.of_units.get(&unit).copied()
    }

    /// The names of classes, by their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The parts of an execution with their names: classes, the one with the greatest weight first; and what is outside of units.
    pub fn parts<W: Ord>(&self, weight: impl Fn(ExecutionPart) -> W) -> Vec<(String, ExecutionPart)> {
        let classes = (0..).map(ExecutionPart::Class);
        let mut parts: Vec<_> = self.names.iter().cloned().zip(classes).collect();
        parts.sort_by_cached_key(|(name, part)| (Reverse(weight(*part)), name.clone()));
        parts.push((OUTSIDE_UNITS.into(), ExecutionPart::OutsideUnits));
        parts
    }
}

/// A model, and the classes of the units of work that it consumes. Models count each unit by itself, so that all that they count
/// of the units of a class is known once the units have their classes.
#[derive(Debug)]
pub struct WithClasses<M> {
    /// The model.
    pub model: M,
    /// The classes.
    pub classes: UnitClasses,
}

impl<M> WithClasses<M> {
    /// A model that has consumed nothing.
    pub fn new(model: M) -> WithClasses<M> {
        WithClasses { model, classes: UnitClasses::default() }
    }
}

impl<M: Consumer> Consumer for WithClasses<M> {
    fn map(&mut self, image: &MappedImage) {
        self.model.map(image);
    }

    fn define(&mut self, block: &Block) {
        self.model.define(block);
    }

    fn object(&mut self, object: &Object) {
        self.model.object(object);
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        self.model.executed(thread, records);
    }

    fn hit_filter(&mut self) -> Option<HitFilter> {
        self.model.hit_filter()
    }

    fn first_instruction(&self, block: BlockId) -> u32 {
        self.model.first_instruction(block)
    }

    fn executed_filtered(&mut self, block: BlockId, executions: u64) {
        self.model.executed_filtered(block, executions);
    }

    fn unit_class(&mut self, unit: u64, class: &str) {
        self.classes.add(unit, class);
    }

    fn process_ended(&mut self, process: u32) {
        self.model.process_ended(process);
    }
}

impl<M: Model> Model for WithClasses<M> {
    fn reset_counts(&mut self) {
        self.model.reset_counts();
    }

    fn use_worker_thread(&mut self) -> io::Result<bool> {
        self.model.use_worker_thread()
    }

    fn needs(&self) -> ModelNeeds {
        self.model.needs()
    }
}

/// A row for each class, one for what was executed outside of units, and their sum, which is all that the models counted; a table
/// for each machine.
pub fn by_class<M: InstructionResults + MergeableModel>(
    machines: &[(&str, SummedOverProcesses<M>)],
    classes: &UnitClasses,
) -> Vec<Table> {
    let machines: Vec<_> = machines.iter().map(|(name, models)| (*name, models)).collect();
    named(
        &machines,
        "classes",
        &format!("{} by class of units of work on", M::WHAT),
        |name, title, models| {
            let headings = [("class", Kind::Text), ("units", Kind::Count), ("share", Kind::Percent(1))];
            let mut table = Table::new(name, title, &headings);
            table.columns.extend(models.columns());
            let total = models.totals();
            let sums = class_sums(models, classes);
            let mut outside = total.clone();
            for class in &sums {
                outside.iter_mut().zip(&class.row).for_each(|(rest, own)| *rest -= own);
            }
            let cells = |name: &str, units: Value, row: &[u64]| {
                let share = 100.0 * models.weight(row) as f64 / models.weight(&total) as f64;
                let cells = [name.into(), units, share.into()].into_iter();
                cells.chain(row.iter().map(|&number| number.into())).collect::<Vec<Value>>()
            };
            let units = sums.iter().map(|class| class.units).sum::<u64>();
            for class in &sums {
                table.row(cells(class.name, class.units.into(), &class.row));
            }
            table.row(cells(OUTSIDE_UNITS, Value::Missing, &outside));
            table.total_row(cells("total", units.into(), &total));
            table
        },
    )
}

/// The mean unit of each class; a table for each machine.
pub fn mean_units<M: InstructionResults>(
    machines: &[(&str, SummedOverProcesses<M>)],
    classes: &UnitClasses,
) -> Vec<Table> {
    let machines: Vec<_> = machines.iter().map(|(name, models)| (*name, models)).collect();
    let title = format!("{} of a unit of work, by class, on", M::WHAT);
    named(&machines, "units", &title, |name, title, models| {
        let mut table = Table::new(name, title, &[("class", Kind::Text), ("units", Kind::Count)]);
        let mean = |column: Column| Column { kind: Kind::Real(1), ..column };
        table.columns.extend(models.columns().into_iter().map(mean));
        for class in class_sums(models, classes) {
            let means = class.row.iter().map(|&sum| Value::from(sum as f64 / class.units as f64));
            table.row([class.name.into(), class.units.into()].into_iter().chain(means).collect());
        }
        table
    })
}

/// A row for each unit of work, with its class; a table for each machine.
pub fn units_of_classes<M: InstructionResults + MergeableModel>(
    machines: &[(&str, SummedOverProcesses<M>)],
    classes: &UnitClasses,
) -> Vec<Table> {
    let machines: Vec<_> = machines.iter().map(|(name, models)| (*name, models)).collect();
    let title = format!("{} of units of work on", M::WHAT);
    named(&machines, "units", &title, |name, title, models| {
        let mut table = models.units(name, title);
        table.columns.insert(1, Column { name: "class".into(), kind: Kind::Text });
        for row in &mut table.rows {
            let class = match row[0] {
                Value::Integer(unit) => classes.of(unit as u64),
                _ => None,
            };
            row.insert(1, class.map(|class| classes.names()[class as usize].clone()).into());
        }
        table
    })
}

/// One table of the tables of parts of an execution, each with the name of its class; `whole` is the same of everything, and has the
/// title and the total.
pub fn tables_of_classes(parts: Vec<(String, Table)>, whole: Table) -> Table {
    let class = Column { name: "class".into(), kind: Kind::Text };
    let columns = std::iter::once(class).chain(whole.columns.iter().cloned()).collect();
    let title = format!("{}, by class", whole.title);
    let (name, notes) = (whole.name.clone(), whole.notes.clone());
    let mut table = Table { name, title, columns, rows: Vec::new(), total: false, notes };
    for (class, part) in parts {
        let own = part.rows.len() - usize::from(part.total);
        for row in part.rows.into_iter().take(own) {
            table.row(std::iter::once(class.as_str().into()).chain(row).collect());
        }
        let notes = part.notes.into_iter().filter(|note| !whole.notes.contains(note));
        table.notes.extend(notes.map(|note| format!("{class}: {note}")));
    }
    if let Some(total) = whole.rows.into_iter().next_back().filter(|_| whole.total) {
        table.total_row(std::iter::once(Value::Missing).chain(total).collect());
    }
    table
}

/// The units of a class, and the sum of their results.
#[derive(Clone, Debug)]
pub struct ClassSum<'a> {
    /// The name of the class.
    pub name: &'a str,
    /// How many units ended.
    pub units: u64,
    /// A value for each of [`InstructionResults::columns`].
    pub row: Vec<u64>,
}

/// The classes, the one with the greatest results first.
pub fn class_sums<'a, M: InstructionResults>(
    models: &SummedOverProcesses<M>,
    classes: &'a UnitClasses,
) -> Vec<ClassSum<'a>> {
    let mut sums: BTreeMap<u32, ClassSum> = BTreeMap::new();
    for unit in models.unit_results() {
        let Some(class) = classes.of(unit.number) else { continue };
        let none =
            || ClassSum { name: &classes.names()[class as usize], units: 0, row: vec![0; unit.row.len()] };
        let sum = sums.entry(class).or_insert_with(none);
        sum.units += 1;
        sum.row.iter_mut().zip(&unit.row).for_each(|(sum, number)| *sum += number);
    }
    let mut sums: Vec<ClassSum> = sums.into_values().collect();
    sums.sort_by(|a, b| models.weight(&b.row).cmp(&models.weight(&a.row)).then_with(|| a.name.cmp(b.name)));
    sums
}
