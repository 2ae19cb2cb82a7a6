//! What models of machines found out, as tables: of structures, functions, lines, instructions and units of
//! work.

mod curves;
mod cycles;
mod misses;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use events::{Block, BlockId};
use machine::Machine;
use trace::Trace;

use crate::names::{FunctionName, Names};
use crate::replay::Dictionary;
use crate::table::{Column, Kind, Table, Value};

pub use curves::{WAYS, curve};
pub use cycles::{describe, times};
pub use misses::structures;

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Functions.
    Function,
    /// Lines of source.
    Line,
    /// Single instructions.
    Instruction,
    /// Units of work.
    Unit,
}

/// What a model found out of units of work, and of each instruction of a program, in columns.
pub trait Sites {
    /// What it is, as titles begin.
    const WHAT: &str;

    /// A row for each unit of work.
    fn units(&self, name: &str, title: &str) -> Table;

    /// The headings: of what can be added up.
    fn columns(&self) -> Vec<Column>;

    /// The most of this comes first.
    fn weight(&self, row: &[u64]) -> u64;

    /// The numbers of each instruction of a block, a row an instruction. None if the block was not executed.
    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>>;
}

/// Where an instruction is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Function(Arc<FunctionName>),
    /// The file and the line, and the function.
    Line(Option<(String, u32)>, Arc<FunctionName>),
    /// The address and the word, and the block that has it.
    Instruction(u64, u32, BlockId),
}

/// A row for each machine that comes with `pathlength`.
pub fn machines() -> Table {
    let columns = [("machine", Kind::Text), ("what it is", Kind::Text), ("MHz", Kind::Real(0))];
    let mut table = Table::new("machines", "Machines that are described", &columns);
    for (name, machine) in Machine::all() {
        table.row(vec![name.into(), machine.title.into(), machine.processor.clock_mhz.into()]);
    }
    table
}

/// What models found out, each in a table.
pub fn by<M: Sites>(rows: Rows, models: &[(&str, &M)], trace: &Trace) -> Vec<Table> {
    let (place, name) = match rows {
        Rows::Unit => {
            let title = format!("{} of units of work on", M::WHAT);
            return named(models, "units", &title, |name, title, model| model.units(name, title));
        }
        Rows::Function => (Place::Function, "functions"),
        Rows::Line => (Place::Line, "lines"),
        Rows::Instruction => (Place::Instruction, "instructions"),
    };
    let names = Names::of_trace(trace);
    let dictionary = Dictionary::new(trace, &names);
    let title = format!("{} of {name} on", M::WHAT);
    named(models, name, &title, |name, title, model| places(name, title, place, &dictionary, model))
}

/// What instructions are told together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Function,
    Line,
    Instruction,
}

/// A row for each place, what has most first; and the total.
fn places(name: &str, title: &str, place: Place, dictionary: &Dictionary, sites: &impl Sites) -> Table {
    let trace = dictionary.trace;
    let mut sums: HashMap<Key, Vec<u64>> = HashMap::new();
    let mut first_block = HashMap::new();
    let columns = sites.columns();
    let mut total = vec![0; columns.len()];
    for (id, block) in trace.blocks().iter().enumerate() {
        let Some(rows) = sites.rows(id as BlockId) else { continue };
        for ((address, &word), row) in block.addresses().zip(&block.words).zip(rows) {
            // Blocks overlap where control comes to their middle.
            let key = match place {
                Place::Instruction => {
                    let id = *first_block.entry((address, word)).or_insert(id as BlockId);
                    Key::Instruction(address, word, id)
                }
                _ => key(place, dictionary.names, block, address),
            };
            let sum = sums.entry(key).or_insert_with(|| vec![0; columns.len()]);
            sum.iter_mut().zip(&row).for_each(|(sum, number)| *sum += number);
            total.iter_mut().zip(&row).for_each(|(sum, number)| *sum += number);
        }
    }
    let headings = headings(place);
    let mut table = Table::new(name, title, headings);
    table.columns.extend(columns);
    let mut rows: Vec<(Key, Vec<u64>)> = sums.into_iter().collect();
    rows.sort_by(|(a, of_a), (b, of_b)| sites.weight(of_b).cmp(&sites.weight(of_a)).then_with(|| a.cmp(b)));
    for (key, numbers) in rows {
        let cells = cells(&key, dictionary).into_iter();
        table.row(cells.chain(numbers.into_iter().map(Value::from)).collect());
    }
    let mut cells = vec![Value::Missing; headings.len()];
    cells[usize::from(place == Place::Instruction)] = "total".into();
    table.total_row(cells.into_iter().chain(total.into_iter().map(Value::from)).collect());
    table
}

/// A table of each machine, named after it if there are several.
fn named<M>(
    machines: &[(&str, &M)],
    name: &str,
    title: &str,
    make: impl Fn(&str, &str, &M) -> Table,
) -> Vec<Table> {
    let table = |&(machine, model): &(&str, &M)| {
        let own = format!("{name}-{}", file_stem(machine));
        make(if machines.len() > 1 { &own } else { name }, &format!("{title} {machine}"), model)
    };
    machines.iter().map(table).collect()
}

/// What a table of a machine that is in a file is called after.
fn file_stem(machine: &str) -> String {
    let stem = Path::new(machine).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn headings(place: Place) -> &'static [(&'static str, Kind)] {
    match place {
        Place::Function => &[("function", Kind::Text), ("image", Kind::Text)],
        Place::Line => &[("line", Kind::Text), ("function", Kind::Text), ("image", Kind::Text)],
        Place::Instruction => {
            &[("address", Kind::Address), ("instruction", Kind::Text), ("where", Kind::Text)]
        }
    }
}

fn key(place: Place, names: &Names, block: &Block, address: u64) -> Key {
    let function = names.name(block.image, address);
    match place {
        Place::Line => {
            let location = names.location(block.image, address);
            Key::Line(location.map(|at| (at.file, at.line.unwrap_or(0))), function)
        }
        _ => Key::Function(function),
    }
}

fn cells(key: &Key, dictionary: &Dictionary) -> Vec<Value> {
    match key {
        Key::Function(name) => vec![name.function.clone().into(), name.image.clone().into()],
        Key::Line(location, name) => {
            let location = location.as_ref().map(|(file, line)| format!("{file}:{line}"));
            vec![location.into(), name.function.clone().into(), name.image.clone().into()]
        }
        &Key::Instruction(address, word, block) => {
            let text = isa::decode(word).map(|instruction| instruction.disassemble(address).to_string());
            let place = dictionary.label(dictionary.facts(block).place, address);
            vec![address.into(), text.into(), place.into()]
        }
    }
}

/// How often something happened in a thousand instructions.
fn per_thousand(count: u64, instructions: u64) -> Value {
    Value::from(1000.0 * count as f64 / instructions as f64)
}
