//! Miss-ratio curves.

use std::collections::BTreeMap;

use machine::{Holds, MissRatioCurve, MissRatioCurves};

use super::{per_thousand, tables_of_classes};
use table::{Column, Kind, Table, Value, separated};

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

/// The name of all classes, and what is outside of them, together.
const ALL: &str = "(all)";

/// The curves of a class of units of work.
#[derive(Clone, Debug)]
pub struct ClassCurves {
    /// The name of the class.
    pub class: String,
    /// The instructions that it executes.
    pub instructions: u64,
    /// By stream, the misses of its accesses, in caches that all classes use.
    pub curves: Vec<MissRatioCurve>,
}

/// The curves of the parts of an execution, which have these totals, and of the whole.
pub fn class_curves(whole: &MissRatioCurves, parts: Vec<(String, Vec<u64>)>) -> Vec<ClassCurves> {
    let part = |(class, totals): (String, Vec<u64>)| ClassCurves {
        class,
        instructions: totals.first().copied().unwrap_or(0),
        curves: whole.curves_of(&totals),
    };
    let all = ClassCurves { class: ALL.into(), instructions: whole.instructions(), curves: whole.curves() };
    parts.into_iter().map(part).chain([all]).collect()
}

/// One row for each class and cache size, in misses per 1,000 instructions of the class; a table for each stream.
pub fn miss_ratio_curves_by_class(classes: &[ClassCurves], line: u64) -> Vec<Table> {
    let of_stream = |stream: usize| {
        let table = |one: &ClassCurves| miss_ratio_curve(&one.curves[stream], line, one.instructions);
        let whole = table(classes.last()?);
        let parts = classes.iter().map(|one| (one.class.clone(), table(one)));
        let mut table = tables_of_classes(parts.collect(), whole);
        table.notes.push(
            "All classes use the same caches. A miss is of the class of the unit that made the access, whichever class replaced the \
             line; it counts per 1,000 instructions of that class."
                .into(),
        );
        Some(table)
    };
    let streams = classes.first().map_or(0, |one| one.curves.len());
    (0..streams).filter_map(of_stream).collect()
}

/// One row for each cache size, and a column for each class: misses of fully associative caches per 1,000 instructions of the
/// class; a table for each stream.
pub fn fully_associative_by_class(classes: &[ClassCurves]) -> Vec<Table> {
    let of_stream = |curve: &MissRatioCurve, stream: usize| {
        let title = "Misses per 1,000 instructions by size of fully associative caches";
        let mut table = Table::new(&format!("mrc-classes-{stream}"), title, &[("size", Kind::Count)]);
        let column = |one: &ClassCurves| Column { name: one.class.clone(), kind: Kind::Real(3) };
        table.columns.extend(classes.iter().map(column));
        for (number, point) in curve.points.iter().enumerate().filter(|(_, point)| point.ways.is_none()) {
            let misses =
                |one: &ClassCurves| per_thousand(one.curves[stream].points[number].misses, one.instructions);
            table.row([Value::from(point.size)].into_iter().chain(classes.iter().map(misses)).collect());
        }
        table
    };
    let streams = classes.first().into_iter().flat_map(|one| &one.curves);
    streams.enumerate().map(|(stream, curve)| of_stream(curve, stream)).collect()
}
