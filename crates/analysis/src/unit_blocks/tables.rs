//! Instructions that one unit of work executed and another one did not.

use std::collections::HashMap;

use trace::Trace;

use super::kept::{KeptUnits, NoSuchUnit, UnitBlocks};
use crate::distribution::thread_name;
use crate::models::{Grouping, RowKey, cells, headings, key};
use crate::names::Names;
use crate::replay::Dictionary;
use table::{Kind, Table, Value, separated};

/// A unit of work, as people choose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitChoice {
    /// The one with most instructions.
    Slowest,
    /// The median.
    Median,
    /// By its number.
    Number(u64),
}

impl UnitChoice {
    fn find(self, kept: &KeptUnits) -> Result<Option<&UnitBlocks>, NoSuchUnit> {
        match self {
            UnitChoice::Slowest => Ok(kept.slowest()),
            UnitChoice::Median => Ok(kept.median()),
            UnitChoice::Number(number) => kept.requested(number).map(Some),
        }
    }

    /// The heading of its column.
    fn heading(self) -> String {
        match self {
            UnitChoice::Slowest => "slowest call".into(),
            UnitChoice::Median => "median call".into(),
            UnitChoice::Number(number) => format!("call {number}"),
        }
    }
}

/// The two units that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedUnits {
    /// The one that is explained.
    pub unit: UnitChoice,
    /// The one that it is compared with.
    pub against: UnitChoice,
}

impl ComparedUnits {
    /// The numbers of units that must be kept.
    pub fn numbers(&self) -> Vec<u64> {
        let number = |choice| match choice {
            UnitChoice::Number(number) => Some(number),
            UnitChoice::Slowest | UnitChoice::Median => None,
        };
        [self.unit, self.against].into_iter().filter_map(number).collect()
    }
}

/// The functions and the lines of which two units of work executed different numbers of instructions, the largest
/// difference first. No tables if no unit ended.
pub fn difference_tables(
    compared: ComparedUnits,
    kept: &KeptUnits,
    trace: &Trace,
) -> Result<Vec<Table>, NoSuchUnit> {
    let (Some(unit), Some(against)) = (compared.unit.find(kept)?, compared.against.find(kept)?) else {
        return Ok(Vec::new());
    };
    let names = Names::of_trace(trace);
    let dictionary = Dictionary::new(trace, &names);
    let titles = [unit, against].map(|unit| describe(unit, trace));
    let title = format!("call {} against call {}", titles[0], titles[1]);
    let table = |grouping, name: &str, what: &str| {
        let title = format!("{what}: {title}");
        difference(name, &title, grouping, compared, [unit, against], &dictionary)
    };
    let mut tables = vec![
        table(Grouping::Function, "difference-by-function", "Functions"),
        table(Grouping::Line, "difference-by-line", "Lines"),
    ];
    if let Some(last) = tables.last_mut() {
        last.notes.extend(note(compared, kept));
    }
    Ok(tables)
}

/// The number of a unit, its length and its thread.
fn describe(unit: &UnitBlocks, trace: &Trace) -> String {
    let instructions = separated(&unit.instructions.to_string());
    format!("{} ({instructions} instructions, thread {})", unit.number, thread_name(trace, unit.thread))
}

/// Says it if the median was not kept.
fn note(compared: ComparedUnits, kept: &KeptUnits) -> Option<String> {
    let median = kept.lengths().percentile(50)?;
    let shown = kept.median()?.instructions;
    (compared.against == UnitChoice::Median && shown != median).then(|| {
        let median = separated(&median.to_string());
        format!("The median is {median} instructions; of the calls whose blocks were kept, this one is nearest to it.")
    })
}

fn difference(
    name: &str,
    title: &str,
    grouping: Grouping,
    compared: ComparedUnits,
    units: [&UnitBlocks; 2],
    dictionary: &Dictionary,
) -> Table {
    let trace = dictionary.trace;
    let mut sums: HashMap<RowKey, [u64; 2]> = HashMap::new();
    for (index, unit) in units.into_iter().enumerate() {
        for &(id, executions) in &unit.blocks {
            let block = &trace.blocks()[id as usize];
            for address in block.addresses() {
                let key = key(grouping, dictionary.names, block, address);
                sums.entry(key).or_default()[index] += executions;
            }
        }
    }
    let total = units.map(|unit| unit.instructions);
    let all = sums.len();
    let mut rows: Vec<(RowKey, [u64; 2])> = sums.into_iter().filter(|(_, [a, b])| a != b).collect();
    rows.sort_by(|(a, of_a), (b, of_b)| {
        of_b[0].abs_diff(of_b[1]).cmp(&of_a[0].abs_diff(of_a[1])).then_with(|| a.cmp(b))
    });
    let first = headings(grouping);
    let (unit, against) = (compared.unit.heading(), compared.against.heading());
    let mut columns = first.to_vec();
    columns.extend([(unit.as_str(), Kind::Count), (&against, Kind::Count), ("difference", Kind::Delta)]);
    let mut table = Table::new(name, title, &columns);
    let numbers = |[a, b]: [u64; 2]| [a.into(), b.into(), Value::Integer(a as i64 - b as i64)];
    let same = all - rows.len();
    let label = |block, address| Some(dictionary.label(dictionary.facts(block).region, address));
    for (key, pair) in rows {
        table.row(cells(&key, trace.blocks(), &label).into_iter().chain(numbers(pair)).collect());
    }
    let mut labels = vec![Value::Missing; first.len()];
    labels[0] = "total".into();
    table.total_row(labels.into_iter().chain(numbers(total)).collect());
    if same > 0 {
        let what = if grouping == Grouping::Function { "functions" } else { "lines" };
        let same = separated(&same.to_string());
        table
            .notes
            .push(format!("{same} other {what} executed the same number of instructions in both calls."));
    }
    table
}
