//! The instructions of a run, or of a mean unit of work, by line of source and by address.

use std::collections::{BTreeMap, HashMap};

use events::{BlockId, Counts};

use crate::models::{Grouping, RowKey, cells, headings, instruction_key, key};
use crate::names::Names;
use crate::replay::label;
use crate::unit_class::UnitClass;
use crate::units::Measurement;
use table::{Kind, Table, Value};

/// The kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeRows {
    /// Lines of source.
    Line,
    /// Single instructions, by their address.
    Instruction,
}

/// One row for each line or instruction that was executed, the most frequent first: of the whole run, or the mean of the
/// units of work.
pub fn code_table(rows: CodeRows, counts: &Counts, names: &Names, units: Option<&Measurement>) -> Table {
    let span = if units.is_some() { "a unit of work" } else { "the run" };
    let (grouping, name, what) = rows.words();
    let (executions, divisor) = executions(counts, units);
    let mut sums: HashMap<RowKey, u64> = HashMap::new();
    rows.each(counts, names, &mut HashMap::new(), executions, |key, times| {
        *sums.entry(key).or_default() += times;
    });
    let total: u64 = sums.values().sum();
    let mut sorted: Vec<(RowKey, u64)> = sums.into_iter().collect();
    sorted.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
    let first = headings(grouping);
    let mut columns = first.to_vec();
    columns.extend([("instructions", Kind::Count), ("share", Kind::Percent(1))]);
    let mut table = Table::new(name, format!("{what} of {span}"), &columns);
    let numbers = |count: u64| {
        let mean = (count as f64 / divisor as f64).round() as i64;
        [Value::Integer(mean), (100.0 * count as f64 / total as f64).into()]
    };
    let label = |block: BlockId, address| label(names, counts.blocks[block as usize].image, address);
    for (key, count) in sorted {
        table.row(cells(&key, &counts.blocks, &label).into_iter().chain(numbers(count)).collect());
    }
    let mut labels = vec![Value::Missing; first.len()];
    labels[usize::from(rows == CodeRows::Instruction)] = "total".into();
    table.total_row(labels.into_iter().chain(numbers(total)).collect());
    table
}

/// The instructions of a mean unit of work of each class by line or address; what costs most in the run comes first.
pub fn code_by_class(rows: CodeRows, counts: &Counts, names: &Names, classes: &[UnitClass]) -> Table {
    let (grouping, name, what) = rows.words();
    let mut sums: HashMap<RowKey, Vec<u64>> = HashMap::new();
    let mut first_block = HashMap::new();
    for (number, class) in classes.iter().enumerate() {
        let executions = class.executions().iter().map(|(&id, &times)| (id, times));
        rows.each(counts, names, &mut first_block, executions, |key, times| {
            sums.entry(key).or_insert_with(|| vec![0; classes.len()])[number] += times;
        });
    }
    let mut sorted: Vec<(RowKey, Vec<u64>)> = sums.into_iter().collect();
    sorted.sort_by(|(a, of_a), (b, of_b)| {
        of_b.iter().sum::<u64>().cmp(&of_a.iter().sum()).then_with(|| a.cmp(b))
    });
    let first = headings(grouping);
    let of_classes = classes.iter().map(|class| (class.name.as_str(), Kind::Count));
    let columns: Vec<_> = first.iter().copied().chain(of_classes).collect();
    let mut table = Table::new(name, format!("{what} of a unit of work, by class"), &columns);
    let means = |sums: &[u64]| {
        let means = sums.iter().zip(classes).map(|(&sum, class)| (sum as f64 / class.units() as f64).round());
        means.map(|mean| Value::Integer(mean as i64)).collect::<Vec<_>>()
    };
    let label = |block: BlockId, address| label(names, counts.blocks[block as usize].image, address);
    for (key, sums) in sorted {
        table.row(cells(&key, &counts.blocks, &label).into_iter().chain(means(&sums)).collect());
    }
    let mut labels = vec![Value::Missing; first.len()];
    labels[usize::from(rows == CodeRows::Instruction)] = "total".into();
    let totals: Vec<u64> = classes.iter().map(UnitClass::instructions).collect();
    table.total_row(labels.into_iter().chain(means(&totals)).collect());
    table
}

impl CodeRows {
    /// How instructions are grouped, the name of the table, and what is in its title.
    fn words(self) -> (Grouping, &'static str, &'static str) {
        match self {
            CodeRows::Line => (Grouping::Line, "lines", "Lines"),
            CodeRows::Instruction => (Grouping::Instruction, "addresses", "Instructions, by address,"),
        }
    }

    /// Calls `add` with the row of each instruction of these blocks, and how often it was executed.
    fn each(
        self,
        counts: &Counts,
        names: &Names,
        first_block: &mut HashMap<(u64, u32), BlockId>,
        executions: impl IntoIterator<Item = (BlockId, u64)>,
        mut add: impl FnMut(RowKey, u64),
    ) {
        for (id, times) in executions {
            let block = &counts.blocks[id as usize];
            for (address, &word) in block.addresses().zip(&block.words) {
                let key = match self {
                    CodeRows::Instruction => instruction_key(first_block, address, word, id),
                    CodeRows::Line => key(Grouping::Line, names, block, address),
                };
                add(key, times);
            }
        }
    }
}

/// The executions of blocks, and the number of units that they are divided by.
fn executions(counts: &Counts, units: Option<&Measurement>) -> (BTreeMap<BlockId, u64>, u64) {
    let Some(measurement) = units else {
        let executed = (0..).zip(counts.executions.iter().copied());
        return (executed.filter(|(_, times)| *times > 0).collect(), 1);
    };
    let mut sums: BTreeMap<BlockId, u64> = BTreeMap::new();
    for &(block, times) in measurement.units.iter().flat_map(|unit| &unit.blocks) {
        *sums.entry(block).or_default() += times;
    }
    (sums, measurement.units.len() as u64)
}
