//! Tables of the code that needs the bus: functions, lines and instructions.

use std::collections::HashMap;

use events::BlockId;
use machine::SharingClass;
use trace::Trace;

use super::node_tables::INTERCONNECT_COLUMNS;
use super::{SharingAnalysis, SharingCounts};
use crate::models::{Grouping, Rows, cells, headings, instruction_key, key};
use crate::names::Names;
use crate::replay::Dictionary;
use crate::table::{Column, Kind, Table, Value};

/// The counts of a row.
const COLUMNS: [&str; 9] = [
    "operations",
    "cold",
    "capacity and conflict",
    "true sharing",
    "false sharing",
    "reads for ownership",
    "upgrades",
    "transfers",
    "avoidable",
];

fn numbers(counts: &SharingCounts) -> [u64; 9] {
    let of = |class: SharingClass| counts.misses[class as usize];
    [
        counts.operations(),
        of(SharingClass::Cold),
        of(SharingClass::Replacement),
        of(SharingClass::True),
        of(SharingClass::False),
        counts.reads_for_ownership,
        counts.upgrades,
        counts.transfers,
        counts.needless(),
    ]
}

/// Functions, lines or instructions that needed the bus, those with most operations first; and the total.
pub fn by_code(sharing: &SharingAnalysis, rows: Rows, trace: &Trace) -> Table {
    let (grouping, name) = match rows {
        Rows::Line => (Grouping::Line, "lines"),
        Rows::Instruction => (Grouping::Instruction, "instructions"),
        Rows::Function | Rows::Unit => (Grouping::Function, "functions"),
    };
    let names = Names::of_trace(trace);
    let dictionary = Dictionary::new(trace, &names);
    let mut sums: HashMap<_, SharingCounts> = HashMap::new();
    let (mut first_block, mut total) = (HashMap::new(), SharingCounts::default());
    for (id, block) in trace.blocks().iter().enumerate() {
        let Some(counted) = sharing.by_access.get(id) else { continue };
        let accesses = sharing.blocks[id].accesses.iter().zip(counted);
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
    let has_nodes = sharing.nodes().is_some();
    let counted = COLUMNS.iter().chain(INTERCONNECT_COLUMNS.iter().filter(|_| has_nodes));
    table.columns.extend(counted.map(|&name| Column { name: name.into(), kind: Kind::Count }));
    let label = |block, address| Some(dictionary.label(dictionary.facts(block).place, address));
    let weight = |counts: &SharingCounts| sharing.weight(counts);
    let share = |counts: &SharingCounts| Value::from(100.0 * weight(counts) as f64 / weight(&total) as f64);
    let numbers = |counts: &SharingCounts| {
        let exchanged = std::iter::once(counts.exchanged()).chain(counts.interconnect);
        numbers(counts).into_iter().chain(exchanged.filter(move |_| has_nodes))
    };
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by(|(a, of_a), (b, of_b)| weight(of_b).cmp(&weight(of_a)).then_with(|| a.cmp(b)));
    for (key, counts) in rows {
        let cells = cells(&key, trace.blocks(), &label).into_iter().chain([share(&counts)]);
        table.row(cells.chain(numbers(&counts).map(Value::from)).collect());
    }
    let mut cells = vec![Value::Missing; headings(grouping).len()];
    cells[usize::from(grouping == Grouping::Instruction)] = "total".into();
    cells.push(share(&total));
    table.total_row(cells.into_iter().chain(numbers(&total).map(Value::from)).collect());
    table
}
