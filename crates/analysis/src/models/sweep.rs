//! Misses and cycles of machines that differ in one or two fields.

use std::cmp::Reverse;

use machine::{Caches, Cause, Machine, PipelineSide, TimingModel};
use serde::{Deserialize, Serialize};

use super::SummedOverProcesses;
use super::cycles::{BACK_END, FRONT_END, describe, ratio};
use table::{Column, Kind, Table, Value, separated};

/// The cycles in which instructions were issued.
const ISSUING: &str = "issuing";

/// The results of a machine's caches that a sweep keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweptMisses {
    instructions: u64,
    /// By the name of the cache or TLB.
    misses: Vec<(String, u64)>,
}

impl From<&SummedOverProcesses<'_, Caches>> for SweptMisses {
    fn from(caches: &SummedOverProcesses<Caches>) -> SweptMisses {
        let misses = caches.structures().into_iter().map(|one| (one.name, one.misses));
        SweptMisses { instructions: caches.instructions(), misses: misses.collect() }
    }
}

/// The cycles of a machine that a sweep keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweptCycles(Vec<(Cause, u64)>);

impl From<&SummedOverProcesses<'_, TimingModel>> for SweptCycles {
    fn from(time: &SummedOverProcesses<TimingModel>) -> SweptCycles {
        SweptCycles(time.cycles().iter().collect())
    }
}

impl SweptCycles {
    fn total(&self) -> u64 {
        self.0.iter().map(|(_, cycles)| cycles).sum()
    }

    fn of_side(&self, side: PipelineSide) -> u64 {
        self.0.iter().filter(|(cause, _)| cause.side() == side).map(|(_, cycles)| cycles).sum()
    }

    fn instructions(&self) -> u64 {
        let issued = |&(cause, cycles): &(Cause, u64)| match cause {
            Cause::Issued(number) => u64::from(number) * cycles,
            _ => 0,
        };
        self.0.iter().map(issued).sum()
    }
}

/// A row for each machine: the values of the fields that differ, and the misses of each cache and TLB.
pub fn swept_misses(fields: &[String], machines: &[(Vec<String>, &SweptMisses)]) -> Table {
    let structures = machines.first().map_or(&[][..], |(_, swept)| &swept.misses);
    let mut table = Table::new("sweep", "Misses by configuration", &parameters(fields));
    let count = |name: String| Column { name, kind: Kind::Count };
    table.columns.extend(structures.iter().map(|(name, _)| count(format!("{name} misses"))));
    for (values, swept) in machines {
        let misses = |name: &str| swept.misses.iter().find(|(own, _)| own == name).map(|&(_, misses)| misses);
        let cells = structures.iter().map(|(name, _)| Value::from(misses(name)));
        table.row(values.iter().map(|value| value.as_str().into()).chain(cells).collect());
    }
    if let Some((_, swept)) = machines.first() {
        table.notes.push(executed(swept.instructions));
    }
    table
}

/// A row for each machine: the values of the fields that differ, and its cycles by cause. Causes that delay none of them
/// are left out.
pub fn swept_cycles(fields: &[String], machines: &[(Vec<String>, &Machine, &SweptCycles)]) -> Table {
    let mut columns = parameters(fields);
    columns.extend([
        ("cycles", Kind::Count),
        ("cycles per instruction", Kind::Real(2)),
        (ISSUING, Kind::Count),
        (FRONT_END, Kind::Count),
        (BACK_END, Kind::Count),
    ]);
    let mut table = Table::new("sweep", "Cycles by configuration", &columns);
    let causes = stalls(machines);
    table.columns.extend(causes.iter().map(|name| Column { name: name.clone(), kind: Kind::Count }));
    for (values, machine, swept) in machines {
        let side = |side| Value::from(swept.of_side(side));
        let mut row: Vec<Value> = values.iter().map(|value| value.as_str().into()).collect();
        row.extend([swept.total().into(), ratio(swept.total(), swept.instructions())]);
        row.extend([PipelineSide::Issuing, PipelineSide::FrontEnd, PipelineSide::BackEnd].map(side));
        for name in &causes {
            let of_cause = |(cause, _): &&(Cause, u64)| describe(*cause, machine) == *name;
            row.push(swept.0.iter().find(of_cause).map_or(0, |&(_, count)| count).into());
        }
        table.row(row);
    }
    if let Some((_, _, swept)) = machines.first() {
        table.notes.push(executed(swept.instructions()));
    }
    table
}

/// The rows of each machine's table, behind the values of the fields that differ; without totals.
pub fn swept_rows(fields: &[String], machines: Vec<(Vec<String>, Table)>) -> Table {
    let mut columns: Vec<Column> = Vec::new();
    for (_, table) in &machines {
        let known = |column: &Column| columns.iter().any(|other| other.name == column.name);
        let new: Vec<Column> = table.columns.iter().filter(|column| !known(column)).cloned().collect();
        columns.extend(new);
    }
    let title = machines.first().map_or("", |(_, table)| &table.title);
    let mut all = Table::new("sweep", format!("{title}, by configuration"), &parameters(fields));
    all.columns.extend(columns.iter().cloned());
    for (values, table) in machines {
        let cells: Vec<Option<usize>> = columns
            .iter()
            .map(|column| table.columns.iter().position(|other| other.name == column.name))
            .collect();
        let own = table.rows.len() - usize::from(table.total);
        for row in &table.rows[..own] {
            let cell = |cell: &Option<usize>| cell.map_or(Value::Missing, |cell| row[cell].clone());
            all.row(values.iter().map(|value| value.as_str().into()).chain(cells.iter().map(cell)).collect());
        }
        for note in table.notes {
            if !all.notes.contains(&note) {
                all.notes.push(note);
            }
        }
    }
    all
}

/// The cycles of a table of [`swept_cycles`] by cause, for a chart of so many causes at most: those that are less are one
/// column together. The sum of each row is all cycles.
pub fn main_causes(table: &Table, most: usize) -> Table {
    let column = |name: &str| table.columns.iter().position(|column| column.name == name);
    let (Some(issuing), Some(last_side)) = (column(ISSUING), column(BACK_END)) else { return table.clone() };
    let cell = |row: &[Value], column: usize| match row[column] {
        Value::Integer(cycles) => cycles,
        _ => 0,
    };
    let largest = |column: &usize| table.rows.iter().map(|row| cell(row, *column)).max();
    let mut causes: Vec<usize> = (last_side + 1..table.columns.len()).collect();
    causes.sort_by_key(|column| Reverse(largest(column)));
    let others = causes.split_off(causes.len().min(most.saturating_sub(2)));
    causes.sort_unstable();
    let kept: Vec<usize> = std::iter::once(issuing).chain(causes).collect();
    let mut shown = Table { columns: vec![table.columns[0].clone()], rows: Vec::new(), ..table.clone() };
    shown.title = "Cycles by cause".into();
    shown.columns.extend(kept.iter().map(|&column| table.columns[column].clone()));
    if !others.is_empty() {
        shown.columns.push(Column { name: "other causes".into(), kind: Kind::Count });
    }
    for row in &table.rows {
        let mut cells = vec![row[0].clone()];
        cells.extend(kept.iter().map(|&column| row[column].clone()));
        if !others.is_empty() {
            cells.push(others.iter().map(|&column| cell(row, column)).sum::<i64>().into());
        }
        shown.row(cells);
    }
    shown
}

/// The columns of numbers, but for those that are the same whatever values the first columns, of `fields`, have, unless all are.
pub fn varying_columns(table: &Table, fields: usize) -> Vec<&str> {
    let numbers: Vec<usize> =
        (0..table.columns.len()).filter(|&column| table.columns[column].kind == Kind::Count).collect();
    let texts: Vec<usize> =
        (fields..table.columns.len()).filter(|&column| table.columns[column].kind == Kind::Text).collect();
    let is_same = |a: &[Value], b: &[Value]| texts.iter().all(|&column| a[column] == b[column]);
    let is_varying = |column: &usize| {
        let first = |row: &Vec<Value>| table.rows.iter().find(|other| is_same(other, row));
        table.rows.iter().any(|row| first(row).is_some_and(|first| first[*column] != row[*column]))
    };
    let varying: Vec<usize> = numbers.iter().copied().filter(is_varying).collect();
    let shown = if varying.is_empty() { numbers } else { varying };
    shown.into_iter().map(|column| table.columns[column].name.as_str()).collect()
}

/// A table of two swept fields as one with a row for each value of the first field, and a column for each value of the
/// second.
pub fn cross_table(table: &Table, value: &str) -> Option<Table> {
    let column = table.columns.iter().position(|column| column.name == value)?;
    let text = |cell: &Value| match cell {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    };
    let distinct = |column: usize| {
        let mut values: Vec<String> = Vec::new();
        for row in &table.rows {
            let value = text(&row[column]);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let [first, second] = [&table.columns[0], &table.columns[1]];
    let mut cross = Table::new(&format!("sweep-{value}"), value, &[(&first.name, first.kind)]);
    let others = distinct(1);
    let heading = |other: &String| format!("{} = {other}", second.name);
    let kind = table.columns[column].kind;
    cross.columns.extend(others.iter().map(|other| Column { name: heading(other), kind }));
    for one in distinct(0) {
        let cell = |other: &String| {
            let row = table.rows.iter().find(|row| text(&row[0]) == one && text(&row[1]) == *other);
            row.map_or(Value::Missing, |row| row[column].clone())
        };
        cross.row(std::iter::once(one.as_str().into()).chain(others.iter().map(cell)).collect());
    }
    Some(cross)
}

/// The columns of the fields that differ.
fn parameters(fields: &[String]) -> Vec<(&str, Kind)> {
    fields.iter().map(|field| (field.as_str(), Kind::Text)).collect()
}

/// The causes of stalls that delay any of the machines, in words.
fn stalls(machines: &[(Vec<String>, &Machine, &SweptCycles)]) -> Vec<String> {
    let mut names = Vec::new();
    for (_, machine, swept) in machines {
        for &(cause, count) in &swept.0 {
            let name = describe(cause, machine);
            if cause.side() != PipelineSide::Issuing && count > 0 && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn executed(instructions: u64) -> String {
    format!("{} instructions in each configuration.", separated(&instructions.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(words: &[&str], numbers: &[i64]) -> Vec<Value> {
        let words = words.iter().map(|&word| Value::from(word));
        words.chain(numbers.iter().map(|&number| number.into())).collect()
    }

    #[test]
    fn small_causes_are_one_column() {
        let names = ["cycles", ISSUING, FRONT_END, BACK_END, "a", "b", "c", "d"];
        let columns: Vec<_> =
            std::iter::once(("size", Kind::Text)).chain(names.map(|name| (name, Kind::Count))).collect();
        let mut table = Table::new("sweep", "Cycles", &columns);
        table.row(row(&["1K"], &[100, 50, 20, 30, 1, 20, 2, 27]));
        table.row(row(&["2K"], &[90, 50, 20, 20, 1, 3, 16, 20]));
        let shown = main_causes(&table, 4);
        let names: Vec<&str> = shown.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["size", ISSUING, "b", "d", "other causes"]);
        assert_eq!(shown.rows, [row(&["1K"], &[50, 20, 27, 3]), row(&["2K"], &[50, 3, 20, 17])]);
        let all = main_causes(&table, 12);
        assert_eq!(all.columns.len(), 6);
        assert_eq!(all.rows[0], row(&["1K"], &[50, 1, 20, 2, 27]));
        assert_eq!(varying_columns(&table, 1), ["cycles", BACK_END, "b", "c", "d"]);
    }

    #[test]
    fn a_second_field_becomes_columns() {
        let columns = [("size", Kind::Text), ("ways", Kind::Text), ("misses", Kind::Count)];
        let mut table = Table::new("sweep", "Misses", &columns);
        for (size, ways, misses) in [("8K", "1", 7), ("8K", "2", 5), ("16K", "1", 4), ("16K", "2", 3)] {
            table.row(row(&[size, ways], &[misses]));
        }
        let cross = cross_table(&table, "misses").unwrap();
        let names: Vec<&str> = cross.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["size", "ways = 1", "ways = 2"]);
        assert_eq!(cross.rows, [row(&["8K"], &[7, 5]), row(&["16K"], &[4, 3])]);
        assert_eq!(varying_columns(&table, 2), ["misses"]);
        // By class, what differs between classes alone does not vary.
        let columns =
            [("size", Kind::Text), ("class", Kind::Text), ("units", Kind::Count), ("misses", Kind::Count)];
        let mut classes = Table::new("classes", "Misses by class", &columns[1..]);
        classes.row(row(&["a"], &[2, 5]));
        classes.row(row(&["b"], &[3, 4]));
        classes.total_row(row(&["total"], &[5, 9]));
        let mut more = classes.clone();
        more.rows[1] = row(&["b"], &[3, 2]);
        let machines = vec![(vec!["8K".into()], classes), (vec!["16K".into()], more)];
        let swept = swept_rows(&["size".into()], machines);
        let rows = [("8K", "a", 2, 5), ("8K", "b", 3, 4), ("16K", "a", 2, 5), ("16K", "b", 3, 2)];
        assert_eq!(
            swept.rows,
            rows.map(|(size, class, units, misses)| row(&[size, class], &[units, misses]))
        );
        assert_eq!(varying_columns(&swept, 1), ["misses"]);
        assert!(cross_table(&table, "cycles").is_none());
    }
}
