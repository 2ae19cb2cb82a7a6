//! Tables of the code that needs the bus: functions, lines and instructions.

use std::collections::HashMap;

use events::BlockId;
use machine::SharingClass;
use trace::Trace;

use super::node_tables::INTERCONNECT_COLUMNS;
use super::{SharingAnalysis, SharingCounts};
use crate::models::{ExecutionPart, Grouping, OwnRows, cells, headings, instruction_key, key};
use crate::names::Names;
use crate::replay::Dictionary;
use table::{Column, Kind, Table, Value};

/// The counts of a row.
const COLUMNS: [&str; 11] = [
    "operations",
    "cold",
    "capacity and conflict",
    "true sharing",
    "false sharing",
    "reads",
    "reads for ownership",
    "upgrades",
    "write-backs",
    "transfers",
    "avoidable",
];

fn numbers(counts: &SharingCounts) -> [u64; 11] {
    let of = |class: SharingClass| counts.misses[class as usize];
    [
        counts.operations(),
        of(SharingClass::Cold),
        of(SharingClass::Replacement),
        of(SharingClass::True),
        of(SharingClass::False),
        counts.reads,
        counts.reads_for_ownership,
        counts.upgrades,
        counts.write_backs,
        counts.transfers,
        counts.needless(),
    ]
}

/// The columns of counts.
fn columns(sharing: &SharingAnalysis) -> impl Iterator<Item = Column> {
    let has_nodes = sharing.nodes().is_some();
    let counted = COLUMNS.iter().chain(INTERCONNECT_COLUMNS.iter().filter(move |_| has_nodes));
    counted.map(|&name| Column { name: name.into(), kind: Kind::Count })
}

/// The cells of these columns, after that of the share in all operations.
fn cells_of<'a>(
    sharing: &SharingAnalysis,
    counts: &'a SharingCounts,
    all: &SharingCounts,
) -> impl Iterator<Item = Value> + use<'a> {
    let has_nodes = sharing.nodes().is_some();
    let share = 100.0 * sharing.weight(counts) as f64 / sharing.weight(all) as f64;
    let exchanged = std::iter::once(counts.exchanged()).chain(counts.interconnect);
    let numbers = numbers(counts).into_iter().chain(exchanged.filter(move |_| has_nodes));
    std::iter::once(Value::from(share)).chain(numbers.map(Value::from))
}

/// A row for each class of units of work, those with most operations first, one for what was executed outside of units, and the
/// total.
pub fn by_class(sharing: &SharingAnalysis) -> Table {
    let headings = [("class", Kind::Text), ("units", Kind::Count), ("share", Kind::Percent(1))];
    let mut table = Table::new("classes", "Operations on the bus by class of units of work", &headings);
    table.columns.extend(columns(sharing));
    let total = sharing.sum(ExecutionPart::Whole);
    for (name, part) in sharing.parts() {
        let is_outside = part == ExecutionPart::OutsideUnits;
        let units = if is_outside { Value::Missing } else { sharing.units_of(part).into() };
        let cells = cells_of(sharing, &sharing.sum(part), &total).collect::<Vec<_>>();
        table.row([name.into(), units].into_iter().chain(cells).collect());
    }
    let cells = cells_of(sharing, &total, &total);
    table.total_row(["total".into(), sharing.units().into()].into_iter().chain(cells).collect());
    table
}

/// Functions, lines or instructions that needed the bus in a part of the execution, those with most operations first; and the total.
pub fn by_code(sharing: &SharingAnalysis, part: ExecutionPart, rows: OwnRows, trace: &Trace) -> Table {
    let (grouping, name) = match rows {
        OwnRows::Line => (Grouping::Line, "lines"),
        OwnRows::Instruction => (Grouping::Instruction, "instructions"),
        OwnRows::Function | OwnRows::Unit => (Grouping::Function, "functions"),
    };
    let names = Names::of_trace(trace);
    let dictionary = Dictionary::new(trace, &names);
    let mut sums: HashMap<_, SharingCounts> = HashMap::new();
    let (mut first_block, mut total) = (HashMap::new(), SharingCounts::default());
    for (id, block) in trace.blocks().iter().enumerate().take(sharing.blocks.len()) {
        let counted = sharing.counts_of(part, id);
        let accesses = sharing.blocks[id].accesses.iter().zip(&counted);
        for (access, counts) in accesses.filter(|(_, counts)| counts.operations() > 0) {
            let address = block.address_of(access.index as usize);
            let word = block.words[access.index as usize];
            let key = match grouping {
                Grouping::Instruction => instruction_key(&mut first_block, address, word, id as BlockId),
                _ => key(grouping, &names, block, address),
            };
            sums.entry(key).or_default().add(counts);
            total.add(counts);
        }
    }
    let mut table = Table::new(name, format!("Operations on the bus of {name}"), headings(grouping));
    table.columns.push(Column { name: "share".into(), kind: Kind::Percent(1) });
    table.columns.extend(columns(sharing));
    let label = |block, address| Some(dictionary.label(dictionary.facts(block).region, address));
    let weight = |counts: &SharingCounts| sharing.weight(counts);
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by(|(a, of_a), (b, of_b)| weight(of_b).cmp(&weight(of_a)).then_with(|| a.cmp(b)));
    for (key, counts) in rows {
        let cells = cells(&key, trace.blocks(), &label).into_iter();
        table.row(cells.chain(cells_of(sharing, &counts, &total)).collect());
    }
    let mut cells = vec![Value::Missing; headings(grouping).len()];
    cells[usize::from(grouping == Grouping::Instruction)] = "total".into();
    table.total_row(cells.into_iter().chain(cells_of(sharing, &total, &total)).collect());
    table
}
