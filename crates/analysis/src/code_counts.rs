//! The instructions of a run, or of a mean unit of work, by line of source and by address.

use std::collections::{BTreeMap, HashMap};

use events::{BlockId, Counts};

use crate::models::{Grouping, RowKey, cells, headings, instruction_key, key};
use crate::names::Names;
use crate::replay::label;
use crate::table::{Kind, Table, Value};
use crate::units::Measurement;

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeRows {
    /// Lines of source.
    Line,
    /// Single instructions.
    Address,
}

/// One row for each line or instruction that was executed, the most frequent first: of the whole run, or the mean of the
/// units of work.
pub fn code_table(rows: CodeRows, counts: &Counts, units: Option<&Measurement>) -> Table {
    let span = if units.is_some() { "a unit of work" } else { "the run" };
    let names = Names::of_counts(counts);
    let (grouping, name, what) = match rows {
        CodeRows::Line => (Grouping::Line, "lines", "Lines"),
        CodeRows::Address => (Grouping::Instruction, "addresses", "Instructions, by address,"),
    };
    let (executions, divisor) = executions(counts, units);
    let mut sums: HashMap<RowKey, u64> = HashMap::new();
    let mut first_block = HashMap::new();
    for (id, times) in executions {
        let block = &counts.blocks[id as usize];
        for (address, &word) in block.addresses().zip(&block.words) {
            let key = match rows {
                CodeRows::Address => instruction_key(&mut first_block, address, word, id),
                CodeRows::Line => key(grouping, &names, block, address),
            };
            *sums.entry(key).or_default() += times;
        }
    }
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
    let label = |block: BlockId, address| label(&names, counts.blocks[block as usize].image, address);
    for (key, count) in sorted {
        table.row(cells(&key, &counts.blocks, &label).into_iter().chain(numbers(count)).collect());
    }
    let mut labels = vec![Value::Missing; first.len()];
    labels[usize::from(rows == CodeRows::Address)] = "total".into();
    table.total_row(labels.into_iter().chain(numbers(total)).collect());
    table
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
