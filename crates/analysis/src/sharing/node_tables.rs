//! Tables of the operations on the interconnect between nodes.

use machine::InterconnectOperation;

use super::SharingAnalysis;
use table::{Column, Kind, Table, Value};

/// Columns of all operations, and of each kind.
pub(super) const INTERCONNECT_COLUMNS: [&str; 8] = [
    "interconnect",
    "remote reads",
    "remote reads for ownership",
    "remote upgrades",
    "forwards",
    "remote invalidations",
    "far write-backs",
    "directory updates",
];

/// What a kind of operation is called in a row.
pub fn interconnect_operation_name(operation: InterconnectOperation) -> &'static str {
    INTERCONNECT_COLUMNS[1 + operation as usize]
}

/// The operations on the interconnect by kind.
pub fn by_interconnect_operation(sharing: &SharingAnalysis) -> Table {
    let mut columns = vec![
        ("operation", Kind::Text),
        ("count", Kind::Count),
        ("share", Kind::Percent(1)),
        ("per 1,000 instructions", Kind::Real(3)),
    ];
    columns.extend((sharing.units() > 0).then_some(("per unit", Kind::Real(1))));
    let mut table = Table::new("interconnect", "Operations on the interconnect between nodes", &columns);
    let Some(nodes) = sharing.nodes() else { return table };
    let counts = nodes.counts().by_operation();
    let all = nodes.counts().operations();
    let row = |name: &str, count: u64| {
        let mut row = vec![name.into(), count.into(), Value::from(100.0 * count as f64 / all as f64)];
        row.push(Value::from(1000.0 * count as f64 / sharing.instructions as f64));
        row.extend((sharing.units() > 0).then(|| Value::from(count as f64 / sharing.units() as f64)));
        row
    };
    for operation in InterconnectOperation::ALL {
        table.row(row(interconnect_operation_name(operation), counts[operation as usize]));
    }
    table.total_row(row("total", all));
    table.notes.push(
        "an operation: a message from one node to another one, with its answer; forwards: the node that has changed a line sends \
         it; directory updates: nodes that enter lists or leave them, and give up lines that they might have changed."
            .into(),
    );
    table
}

/// The operations on the interconnect by the processor whose access needed them; and for nodes, how they were served.
pub fn by_node(sharing: &SharingAnalysis) -> Table {
    let mut table = Table::new("nodes", "Operations on the interconnect by node and processor", &[]);
    let Some(nodes) = sharing.nodes() else { return table };
    table.columns.push(Column { name: "node".into(), kind: Kind::Text });
    table.columns.push(Column { name: "processor".into(), kind: Kind::Text });
    let counted = INTERCONNECT_COLUMNS.iter().chain(&["served as home", "far hits", "far misses", "local"]);
    table.columns.extend(counted.map(|&name| Column { name: name.into(), kind: Kind::Count }));
    let counts = nodes.counts();
    for node in 0..nodes.nodes() {
        let mut sums = [0; 7];
        let mut rows = Vec::new();
        for (processor, by_operation) in (0u8..).zip(&counts.by_processor) {
            if usize::from(nodes.node_of(processor)) != node {
                continue;
            }
            sums.iter_mut().zip(by_operation).for_each(|(sum, count)| *sum += count);
            let mut row = vec![node.to_string().into(), processor.to_string().into()];
            row.extend(operation_cells(by_operation));
            row.extend([Value::Missing, Value::Missing, Value::Missing, Value::Missing]);
            rows.push(row);
        }
        let mut row = vec![node.to_string().into(), "all".into()];
        row.extend(operation_cells(&sums));
        let of_node = [&counts.by_home, &counts.far_hits, &counts.far_misses, &counts.local];
        row.extend(of_node.map(|counts| Value::from(counts[node])));
        table.row(row);
        rows.into_iter().for_each(|row| table.row(row));
    }
    table.notes.push(
        "served as home: operations on lines of the node's memory; far hits, far misses: requests for lines of other nodes' memory that \
         the far cache served or not; local: requests for lines of the node's own memory."
            .into(),
    );
    table
}

fn operation_cells(by_operation: &[u64; 7]) -> impl Iterator<Item = Value> {
    let all = by_operation.iter().sum::<u64>();
    std::iter::once(Value::from(all)).chain(by_operation.map(Value::from))
}
