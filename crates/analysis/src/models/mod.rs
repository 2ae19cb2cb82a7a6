//! The results of machine models as tables: of structures, functions, lines, instructions and units of work.

mod by_class;
mod class_sums;
mod cycles;
mod divided;
mod instructions;
mod misses;
mod mrc;
mod out_of_order;
mod sampled;
mod summed;
mod sweep;
mod totals_by_class;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use events::{Block, BlockId};
use machine::Machine;
use trace::Trace;

use crate::names::{FunctionName, Names};
use crate::replay::Dictionary;
use table::{Column, Kind, Table, Value};

pub use by_class::{
    ClassSum, UnitClasses, WithClasses, by_class, class_sums, mean_units, tables_of_classes, units_of_classes,
};
pub(crate) use class_sums::{Addable, ClassSums};
pub use cycles::{describe, time_without_name, times};
pub use divided::{ClassResults, DividedByClass};
pub use misses::{structures, structures_without_name};
pub use mrc::{
    ClassCurves, WAYS, class_curves, fully_associative_by_class, miss_ratio_curve, miss_ratio_curves_by_class,
};
pub(crate) use sampled::{part_cells, part_columns};
pub use sampled::{sampled_by_class, sampled_by_process};
pub use summed::{ProcessLabel, ProcessResults, SummedOverProcesses, by_process};
pub use sweep::{
    SweptCycles, SweptMisses, cross_table, main_causes, swept_cycles, swept_misses, swept_rows,
    varying_columns,
};
pub use totals_by_class::TotalsByClass;

/// The kind of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnRows {
    /// Functions.
    Function,
    /// Lines of source.
    Line,
    /// Single instructions.
    Instruction,
    /// Units of work.
    Unit,
}

/// The results of a model by unit of work and by instruction, in columns.
pub trait InstructionResults {
    /// The counted event: the first word of titles.
    const WHAT: &'static str;

    /// The index of the column that is shown of a unit of work where there is room for one.
    const UNIT_EVENT: usize = 0;

    /// The part of the execution whose results these are.
    fn part(&self) -> ExecutionPart {
        ExecutionPart::Whole
    }

    /// The results of each unit of work, in the order of their ends; none if the model does not know units.
    fn unit_results(&self) -> Vec<UnitResults> {
        Vec::new()
    }

    /// A row for each unit of work.
    fn units(&self, name: &str, title: &str) -> Table {
        Table::new(name, title, &[])
    }

    /// The columns of [`InstructionResults::rows`], whose values can be added up.
    fn columns(&self) -> Vec<Column>;

    /// The key by which rows are sorted, the largest first.
    fn weight(&self, row: &[u64]) -> u64;

    /// The results of each instruction of a block, one row each. None if the block was not executed.
    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>>;
}

/// A part of an execution, by classes of units of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionPart {
    /// Everything.
    Whole,
    /// The units of the class of this number.
    Class(u32),
    /// Executions outside of units.
    OutsideUnits,
}

impl ExecutionPart {
    /// Whether what is of this class, or outside of units, is in the part.
    pub(crate) fn has(self, class: Option<u32>) -> bool {
        match self {
            ExecutionPart::Whole => true,
            ExecutionPart::Class(number) => class == Some(number),
            ExecutionPart::OutsideUnits => class.is_none(),
        }
    }
}

/// The results of a unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitResults {
    /// Its number.
    pub number: u64,
    /// The thread that it belongs to, among the threads of all processes.
    pub thread: u32,
    /// A value for each of [`InstructionResults::columns`].
    pub row: Vec<u64>,
}

/// The row that an instruction is added to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RowKey {
    Function(Arc<FunctionName>),
    /// The file and the line, and the function.
    Line(Option<(String, u32)>, Arc<FunctionName>),
    /// The address and the word, and the block that has it.
    Instruction(u64, u32, BlockId),
}

/// One row for each machine that comes with `pathlength`: what it is, and which commands simulate it beside `caches`, which takes all.
pub fn machines() -> Table {
    let columns = [
        ("machine", Kind::Text),
        ("what it is", Kind::Text),
        ("MHz", Kind::Real(0)),
        ("time", Kind::Text),
        ("sharing", Kind::Text),
    ];
    let mut table = Table::new("machines", "Machines", &columns);
    for (name, machine) in Machine::all() {
        let time = match (&machine.pipeline, &machine.out_of_order) {
            (Some(_), _) => Value::from("in order"),
            (_, Some(_)) => Value::from("out of order"),
            _ => Value::Missing,
        };
        let sharing = machine.coherence.as_ref().map_or(Value::Missing, |coherence| match coherence.bus {
            Some(_) => Value::from("yes, --time"),
            None => Value::from("yes"),
        });
        let mhz = machine.processor.clock_mhz;
        table.row(vec![name.into(), machine.title.into(), mhz.into(), time, sharing]);
    }
    table
        .notes
        .push("pathlength caches takes every machine; time and sharing those of their columns.".into());
    table
}

/// One table of results for each model.
pub fn by<M: InstructionResults>(rows: OwnRows, models: &[(&str, &M)], trace: &Trace) -> Vec<Table> {
    let (grouping, name) = match rows {
        OwnRows::Unit => {
            let title = format!("{} of units of work on", M::WHAT);
            return named(models, "units", &title, |name, title, model| model.units(name, title));
        }
        OwnRows::Function => (Grouping::Function, "functions"),
        OwnRows::Line => (Grouping::Line, "lines"),
        OwnRows::Instruction => (Grouping::Instruction, "instructions"),
    };
    let names = Names::of_trace(trace);
    let dictionary = Dictionary::new(trace, &names);
    let title = format!("{} of {name} on", M::WHAT);
    named(models, name, &title, |name, title, model| grouped(name, title, grouping, &dictionary, model))
}

/// How instructions are grouped into rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grouping {
    Function,
    Line,
    Instruction,
}

/// One row for each group of instructions, the largest first; and the total.
fn grouped(
    name: &str,
    title: &str,
    grouping: Grouping,
    dictionary: &Dictionary,
    results: &impl InstructionResults,
) -> Table {
    let trace = dictionary.trace;
    let mut sums: HashMap<RowKey, Vec<u64>> = HashMap::new();
    let mut first_block = HashMap::new();
    let columns = results.columns();
    let mut total = vec![0; columns.len()];
    for (id, block) in trace.blocks().iter().enumerate() {
        let Some(rows) = results.rows(id as BlockId) else { continue };
        for ((address, &word), row) in block.addresses().zip(&block.words).zip(rows) {
            let key = match grouping {
                Grouping::Instruction => instruction_key(&mut first_block, address, word, id as BlockId),
                _ => key(grouping, dictionary.names, block, address),
            };
            let sum = sums.entry(key).or_insert_with(|| vec![0; columns.len()]);
            sum.iter_mut().zip(&row).for_each(|(sum, number)| *sum += number);
            total.iter_mut().zip(&row).for_each(|(sum, number)| *sum += number);
        }
    }
    let headings = headings(grouping);
    let label = |block, address| Some(dictionary.label(dictionary.facts(block).region, address));
    let mut table = Table::new(name, title, headings);
    table.columns.push(Column { name: "share".into(), kind: Kind::Percent(1) });
    table.columns.extend(columns);
    let all = results.weight(&total);
    let share = |row: &[u64]| Value::from(100.0 * results.weight(row) as f64 / all as f64);
    let mut rows: Vec<(RowKey, Vec<u64>)> = sums.into_iter().collect();
    rows.sort_by(|(a, of_a), (b, of_b)| {
        results.weight(of_b).cmp(&results.weight(of_a)).then_with(|| a.cmp(b))
    });
    for (key, numbers) in rows {
        let cells = cells(&key, trace.blocks(), &label).into_iter();
        let cells = cells.chain([share(&numbers)]);
        table.row(cells.chain(numbers.into_iter().map(Value::from)).collect());
    }
    let mut cells = vec![Value::Missing; headings.len()];
    cells[usize::from(grouping == Grouping::Instruction)] = "total".into();
    cells.push(share(&total));
    table.total_row(cells.into_iter().chain(total.into_iter().map(Value::from)).collect());
    table
}

/// One table for each machine, named after it if there are several.
pub(crate) fn named<M>(
    machines: &[(&str, &M)],
    name: &str,
    title: &str,
    make: impl Fn(&str, &str, &M) -> Table,
) -> Vec<Table> {
    let table = |&(machine, model): &(&str, &M)| {
        let own = format!("{name}-{}", file_stem(machine));
        let title = match machine {
            "" => title.trim_end_matches(" on").trim_end_matches(',').to_string(),
            machine => format!("{title} {machine}"),
        };
        make(if machines.len() > 1 { &own } else { name }, &title, model)
    };
    machines.iter().map(table).collect()
}

/// The machine's name in the names of tables: without folder and extension, if it is a file.
fn file_stem(machine: &str) -> String {
    let stem = Path::new(machine).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

pub(crate) fn headings(grouping: Grouping) -> &'static [(&'static str, Kind)] {
    match grouping {
        Grouping::Function => &[("function", Kind::Text), ("image", Kind::Text)],
        Grouping::Line => &[("line", Kind::Text), ("function", Kind::Text), ("image", Kind::Text)],
        Grouping::Instruction => {
            &[("address", Kind::Address), ("instruction", Kind::Text), ("where", Kind::Text)]
        }
    }
}

pub(crate) fn key(grouping: Grouping, names: &Names, block: &Block, address: u64) -> RowKey {
    let function = names.name(block.image, address);
    match grouping {
        Grouping::Line => {
            let location = names.location(block.image, address);
            RowKey::Line(location.map(|at| (at.file, at.line.unwrap_or(0))), function)
        }
        _ => RowKey::Function(function),
    }
}

/// The row of an instruction. Blocks overlap where control enters in the middle of one; the first one stands for all.
pub(crate) fn instruction_key(
    first_block: &mut HashMap<(u64, u32), BlockId>,
    address: u64,
    word: u32,
    block: BlockId,
) -> RowKey {
    RowKey::Instruction(address, word, *first_block.entry((address, word)).or_insert(block))
}

/// The cells of a row. `label` names the address of an instruction in one of `blocks`.
pub(crate) fn cells(
    key: &RowKey,
    blocks: &[Block],
    label: &dyn Fn(BlockId, u64) -> Option<String>,
) -> Vec<Value> {
    match key {
        RowKey::Function(name) => vec![name.function.clone().into(), name.image.clone().into()],
        RowKey::Line(location, name) => {
            let location = location.as_ref().map(|(file, line)| format!("{file}:{line}"));
            vec![location.into(), name.function.clone().into(), name.image.clone().into()]
        }
        &RowKey::Instruction(address, word, block) => {
            let text = blocks[block as usize].disassemble(word, address);
            vec![address.into(), text.into(), label(block, address).into()]
        }
    }
}

/// A count per thousand instructions.
fn per_thousand(count: u64, instructions: u64) -> Value {
    Value::from(1000.0 * count as f64 / instructions as f64)
}
