//! Miss-ratio curves.

use std::collections::BTreeMap;

use machine::{Holds, MissRatioCurve};

use super::per_thousand;
use crate::table::{Kind, Table, Value, separated};

/// The columns: headings, and the number of ways, None for fully associative caches.
pub const WAYS: [(&str, Option<u32>); 5] = [
    ("fully associative", None),
    ("1 way", Some(1)),
    ("2 ways", Some(2)),
    ("4 ways", Some(4)),
    ("8 ways", Some(8)),
];

/// One row for each cache size, in misses per 1,000 instructions.
pub fn miss_ratio_curve(curve: &MissRatioCurve, line: u64, instructions: u64) -> Table {
    let (name, what) = match curve.holds {
        Holds::Instructions => ("code", "Code"),
        Holds::Data => ("data", "Data"),
        Holds::Both => ("both", "Code and data"),
    };
    let title = format!("{what}: misses per 1,000 instructions by cache size");
    let mut columns = vec![("size", Kind::Count)];
    columns.extend(WAYS.map(|(heading, _)| (heading, Kind::Real(3))));
    let mut table = Table::new(&format!("mrc-{name}"), title, &columns);
    let mut rows = BTreeMap::new();
    for point in &curve.points {
        let row = rows.entry(point.size).or_insert([const { Value::Missing }; WAYS.len()]);
        if let Some(column) = WAYS.iter().position(|(_, ways)| *ways == point.ways) {
            row[column] = per_thousand(point.misses, instructions);
        }
    }
    for (size, row) in rows {
        table.row([Value::from(size)].into_iter().chain(row).collect());
    }
    table.notes.push(format!(
        "Lines of {line} bytes, LRU replacement; {} instructions.",
        separated(&instructions.to_string())
    ));
    table
}
