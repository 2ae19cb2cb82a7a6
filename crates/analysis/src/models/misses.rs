//! Accesses and misses of caches and TLBs.

use events::BlockId;
use machine::{Caches, LineTraffic, MissClass, UnitMisses};

use super::{InstructionResults, SummedOverProcesses, UnitResults, file_stem, per_thousand};
use crate::units::sorted_by_number;
use table::{Column, Kind, Table, Value};

/// The classes of misses that have columns.
const CLASSES: [(MissClass, &str); 3] = [
    (MissClass::Compulsory, "compulsory"),
    (MissClass::Capacity, "capacity"),
    (MissClass::Conflict, "conflict"),
];

/// The kinds of lines that caches of data move, in columns.
const TRAFFIC: [&str; LineTraffic::COUNT] = ["load fills", "store fills", "write-backs"];

/// One row for each cache and TLB of each machine; with the classes of its misses if the models are classified.
pub fn structures(machines: &[(&str, SummedOverProcesses<Caches>)], has_classes: bool) -> Table {
    let mut columns = vec![
        ("machine", Kind::Text),
        ("structure", Kind::Text),
        ("accesses", Kind::Count),
        ("misses", Kind::Count),
        ("miss ratio", Kind::Percent(2)),
        ("misses per 1,000 instructions", Kind::Real(2)),
    ];
    let has_units = machines.iter().any(|(_, caches)| caches.units().next().is_some());
    if has_units {
        columns.push(("misses per unit", Kind::Real(1)));
    }
    if has_classes {
        columns.extend(CLASSES.map(|(_, name)| (name, Kind::Count)));
    }
    columns.extend(TRAFFIC.map(|name| (name, Kind::Count)));
    let mut table = Table::new("structures", "Caches and TLBs (translation buffers)", &columns);
    for (name, caches) in machines {
        let executed = caches.instructions();
        for (index, one) in caches.structures().into_iter().enumerate() {
            let traffic = match one.traffic {
                Some(lines) => lines.map(Value::from),
                None => [const { Value::Missing }; LineTraffic::COUNT],
            };
            let mut row = vec![
                file_stem(name).into(),
                one.name.into(),
                one.accesses.into(),
                one.misses.into(),
                Value::from(100.0 * one.misses as f64 / one.accesses as f64),
                per_thousand(one.misses, executed),
            ];
            if has_units {
                let misses: u64 = caches.units().map(|unit| unit.misses[index]).sum();
                row.push(Value::from(misses as f64 / caches.units().count() as f64));
            }
            if has_classes {
                row.extend(CLASSES.map(|(class, _)| Value::from(one.classes[class as usize])));
            }
            row.extend(traffic);
            table.row(row);
        }
    }
    table
}

/// The same of one machine, without its name.
pub fn structures_without_name(caches: &SummedOverProcesses<Caches>, has_classes: bool) -> Table {
    let mut table = structures(&[("", caches.clone())], has_classes);
    table.columns.remove(0);
    table.rows.iter_mut().for_each(|row| drop(row.remove(0)));
    table
}

/// The misses of each structure, the lines that each cache of data moved, and the classes of misses if they are classified.
fn columns(caches: &Caches) -> impl Iterator<Item = Column> {
    let structures = caches.structures();
    let misses = structures.iter().map(|one| format!("{} misses", one.name));
    let data = structures.iter().filter(|one| one.traffic.is_some());
    let traffic = data.flat_map(|one| TRAFFIC.map(|traffic| format!("{} {traffic}", one.name)));
    let classified = structures.iter().filter(|_| caches.is_classified());
    let classes = classified.flat_map(|one| CLASSES.map(|(_, class)| format!("{} {class}", one.name)));
    let names: Vec<_> = misses.chain(traffic).chain(classes).collect();
    names.into_iter().map(|name| Column { name, kind: Kind::Count })
}

/// All that a unit of work has of the columns.
fn numbers(unit: &UnitMisses) -> impl Iterator<Item = u64> {
    unit.misses.iter().chain(&unit.traffic).chain(&unit.classes).copied()
}

impl InstructionResults for Caches {
    const WHAT: &str = "Misses";
    const UNIT_EVENT: usize = 1;

    fn unit_results(&self) -> Vec<UnitResults> {
        let results = |unit: &UnitMisses| UnitResults {
            number: unit.number,
            thread: unit.thread,
            row: std::iter::once(unit.instructions).chain(numbers(unit)).collect(),
        };
        self.units().iter().map(results).collect()
    }

    fn units(&self, name: &str, title: &str) -> Table {
        let mut table = Table::new(
            name,
            title,
            &[("unit", Kind::Count), ("instructions", Kind::Count), ("accesses", Kind::Count)],
        );
        table.columns.extend(columns(self));
        for unit in sorted_by_number(self.units(), |unit| unit.number) {
            let mut row = vec![unit.number.into(), unit.instructions.into(), unit.accesses.into()];
            row.extend(numbers(unit).map(Value::from));
            table.row(row);
        }
        table
    }

    fn columns(&self) -> Vec<Column> {
        let executed = Column { name: "instructions".into(), kind: Kind::Count };
        std::iter::once(executed).chain(columns(self)).collect()
    }

    fn weight(&self, row: &[u64]) -> u64 {
        row[1..=self.structure_count()].iter().sum()
    }

    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>> {
        let executed = Some(self.executions(block)).filter(|&times| times > 0)?;
        let data_caches = self.data_caches();
        let first_class = 1 + self.structure_count() + LineTraffic::COUNT * data_caches.len();
        let classes = if self.is_classified() { CLASSES.len() } else { 0 };
        let columns = first_class + classes * self.structure_count();
        let mut rows: Vec<Vec<u64>> = Vec::new();
        for structure in 0..self.structure_count() {
            for class in MissClass::ALL {
                for (index, misses) in self.misses_of(structure, class, block).enumerate() {
                    if rows.len() == index {
                        rows.push(vec![0; columns]);
                        rows[index][0] = executed;
                    }
                    rows[index][structure + 1] += misses;
                    if classes > 0 && class != MissClass::Unknown {
                        rows[index][first_class + structure * classes + class as usize - 1] = misses;
                    }
                }
            }
        }
        let kinds = data_caches.iter().flat_map(|&cache| LineTraffic::ALL.map(|kind| (cache, kind)));
        for ((cache, kind), column) in kinds.zip(1 + self.structure_count()..) {
            for (row, lines) in rows.iter_mut().zip(self.traffic_of(cache, kind, block)) {
                row[column] = lines;
            }
        }
        Some(rows)
    }
}
