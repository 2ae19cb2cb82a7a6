//! The tables of the study of very large memory.

use table::{Kind, Table, Value};
use vlm::Size;
use vlm::study::{Backing, StudyRow};

use super::VlmStudy;

/// All kinds of memory, in the order of columns.
pub const BACKINGS: [Backing; 3] = [Backing::SmallPages, Backing::PrivateTables, Backing::SharedTables];

/// The heading of what Alpha needs by computation.
pub const ALPHA: &str = "Alpha, pages of 8 KiB (computed)";

/// A quantity of a row, by which the kinds of memory are compared.
#[derive(Clone, Copy)]
pub struct Measure {
    /// The name of its tables.
    pub name: &'static str,
    /// What it is, with its unit.
    pub title: &'static str,
    kind: Kind,
    of: fn(&StudyRow) -> Value,
}

/// How much page tables grow.
pub const PAGE_TABLES: Measure = Measure {
    name: "page-tables",
    title: "page tables, KiB",
    kind: Kind::Count,
    of: |row| (row.page_tables / 1024).into(),
};
/// The time to start, map and touch.
pub const START_UP: Measure = Measure {
    name: "start-up",
    title: "start-up, seconds",
    kind: Kind::Real(2),
    of: |row| row.start_up.as_secs_f64().into(),
};
/// The processor time for this.
pub const CPU: Measure = Measure {
    name: "cpu",
    title: "processor time, seconds",
    kind: Kind::Real(2),
    of: |row| row.cpu.as_secs_f64().into(),
};
/// The faults of a process.
pub const FAULTS: Measure = Measure {
    name: "faults",
    title: "minor faults of a process",
    kind: Kind::Count,
    of: |row| row.faults.into(),
};

/// The answer: what the most processes need.
pub fn summary(study: &VlmStudy) -> Vec<Table> {
    let most = most_processes(study);
    let mut tables = Vec::new();
    if let Some(processes) = most {
        let columns = [
            ("size", Kind::Text),
            ("memory", Kind::Text),
            (PAGE_TABLES.title, PAGE_TABLES.kind),
            (START_UP.title, START_UP.kind),
            (CPU.title, CPU.kind),
            (FAULTS.title, FAULTS.kind),
        ];
        let title = format!("{processes} processes that map and touch all memory");
        let mut table = Table::new("summary", &title, &columns);
        for row in study.rows.iter().filter(|row| row.processes == processes) {
            let measures = [PAGE_TABLES, START_UP, CPU, FAULTS].map(|measure| (measure.of)(row));
            let names = [row.size.to_string().into(), row.backing.title().into()];
            table.row(names.into_iter().chain(measures).collect());
        }
        table.notes.extend(ratios(study).map(|ratios| ratios.sentence()));
        tables.push(table);
    }
    tables.extend(postgresql(study));
    tables.extend(unmeasured(study));
    tables
}

/// Every table.
pub fn all(study: &VlmStudy) -> Vec<Table> {
    let figures = [PAGE_TABLES, START_UP, CPU, FAULTS].map(|measure| by_size_and_processes(study, measure));
    summary(study).into_iter().chain(figures.into_iter().filter(|table| !table.rows.is_empty())).collect()
}

/// The greatest number of processes that was measured.
pub fn most_processes(study: &VlmStudy) -> Option<usize> {
    study.rows.iter().map(|row| row.processes).max()
}

/// Sizes that were measured, ascending.
pub fn sizes(study: &VlmStudy) -> Vec<Size> {
    let mut sizes: Vec<Size> = study.rows.iter().map(|row| row.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// A measure of each size and number of processes, with a column for each kind of memory.
fn by_size_and_processes(study: &VlmStudy, measure: Measure) -> Table {
    let mut table = kinds(measure, &[("size", Kind::Text), ("processes", Kind::Count)]);
    table.title = format!("Size and number of processes: {}", measure.title);
    for size in sizes(study) {
        for processes in processes(study) {
            let first = [Value::from(size.to_string()), (processes as u64).into()];
            table.row(first.into_iter().chain(cells(study, measure, size, processes)).collect());
        }
    }
    table
}

/// A measure against the number of processes, of one size.
pub fn by_processes(study: &VlmStudy, measure: Measure, size: Size) -> Table {
    let mut table = kinds(measure, &[("processes", Kind::Count)]);
    table.name += "-by-processes";
    for processes in processes(study) {
        let first = [Value::from(processes as u64)];
        table.row(first.into_iter().chain(cells(study, measure, size, processes)).collect());
    }
    table
}

/// A measure against the size, of one number of processes.
pub fn by_size(study: &VlmStudy, measure: Measure, processes: usize) -> Table {
    let mut table = kinds(measure, &[("size, GiB", Kind::Real(2))]);
    table.name += "-by-size";
    for size in sizes(study) {
        let first = [Value::from(size.bytes() as f64 / (1_u64 << 30) as f64)];
        table.row(first.into_iter().chain(cells(study, measure, size, processes)).collect());
    }
    table
}

fn kinds(measure: Measure, first: &[(&str, Kind)]) -> Table {
    let kinds = BACKINGS.map(|backing| (backing.title(), measure.kind));
    let computed = (measure.name == PAGE_TABLES.name).then_some((ALPHA, Kind::Count));
    let columns: Vec<_> = first.iter().copied().chain(kinds).chain(computed).collect();
    Table::new(measure.name, measure.title, &columns)
}

/// The cells of a row: measured ones, and what is computed.
fn cells(study: &VlmStudy, measure: Measure, size: Size, processes: usize) -> Vec<Value> {
    let measured =
        BACKINGS.map(|backing| find(study, backing, size, processes).map_or(Value::Missing, measure.of));
    let computed =
        (measure.name == PAGE_TABLES.name).then(|| Value::from(alpha_page_tables(size, processes) >> 10));
    measured.into_iter().chain(computed).collect()
}

/// What page tables of their own take on Alpha, in bytes: entries of 8 bytes for pages of 8 KiB, in pages of 1,024 entries, with
/// two levels above them.
fn alpha_page_tables(size: Size, processes: usize) -> u64 {
    const PAGE: u64 = 8 << 10;
    const ENTRIES: u64 = PAGE / 8;
    let third_level = size.bytes().div_ceil(PAGE * ENTRIES);
    let second_level = third_level.div_ceil(ENTRIES);
    (third_level + second_level + 1) * PAGE * processes as u64
}

fn processes(study: &VlmStudy) -> Vec<usize> {
    let mut processes: Vec<usize> = study.rows.iter().map(|row| row.processes).collect();
    processes.sort_unstable();
    processes.dedup();
    processes
}

fn find(study: &VlmStudy, backing: Backing, size: Size, processes: usize) -> Option<&StudyRow> {
    study.rows.iter().find(|row| (row.backing, row.size, row.processes) == (backing, size, processes))
}

/// What shared page tables save, of the largest size and number of processes of which both were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratios {
    /// The processes.
    pub processes: usize,
    /// The size.
    pub size: Size,
    /// Page tables of pages of 4 KiB, in shared page tables.
    pub page_tables: f64,
    /// The same of the time to start.
    pub start_up: f64,
}

impl Ratios {
    /// The result in words.
    pub fn sentence(&self) -> String {
        let Ratios { processes, size, page_tables, start_up } = self;
        format!(
            "{processes} processes that share page tables map and touch {size} in 1/{start_up:.0} of the time and 1/{page_tables:.0} \
             of the page tables that pages of 4 KiB need."
        )
    }
}

/// The ratios, if both kinds of memory were measured.
pub fn ratios(study: &VlmStudy) -> Option<Ratios> {
    let pairs = study.rows.iter().filter(|row| row.backing == Backing::SmallPages).filter_map(|small| {
        let shared = find(study, Backing::SharedTables, small.size, small.processes)?;
        (shared.page_tables > 0).then_some((small, shared))
    });
    let (small, shared) = pairs.max_by_key(|(small, _)| (small.size, small.processes))?;
    Some(Ratios {
        processes: small.processes,
        size: small.size,
        page_tables: small.page_tables as f64 / shared.page_tables as f64,
        start_up: small.start_up.as_secs_f64() / shared.start_up.as_secs_f64(),
    })
}

/// PostgreSQL's servers, if any was measured.
pub fn postgresql(study: &VlmStudy) -> Option<Table> {
    let columns = [
        ("shared memory", Kind::Text),
        ("start, seconds", Kind::Real(2)),
        ("connect, seconds", Kind::Real(2)),
        ("connect and first touch, seconds", Kind::Real(2)),
        ("server's processor time, seconds", Kind::Real(2)),
        (PAGE_TABLES.title, Kind::Count),
    ];
    let title = "PostgreSQL: its start, its connections, and their first touch of all shared buffers";
    let mut table = Table::new("postgresql", title, &columns);
    for row in &study.postgresql {
        let times = [row.start, row.connect, row.touch, row.cpu].map(Value::from);
        let all = [Value::from(row.memory.clone())].into_iter().chain(times);
        table.row(all.chain([row.page_tables.into()]).collect());
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What could not be measured, if anything.
pub fn unmeasured(study: &VlmStudy) -> Option<Table> {
    let columns = [("what", Kind::Text), ("why", Kind::Text)];
    let mut table = Table::new("not-measured", "What could not be measured on this machine", &columns);
    for one in &study.unmeasured {
        table.row(vec![one.what.clone().into(), one.reason.clone().into()]);
    }
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Unmeasured;
    use super::*;

    fn row(backing: Backing, gib: u64, processes: usize, page_tables: i64, seconds: u64) -> StudyRow {
        let (start_up, cpu) = (Duration::from_secs(seconds), Duration::from_secs(seconds / 2));
        StudyRow { backing, size: Size::gib(gib), processes, start_up, cpu, page_tables, faults: 7 }
    }

    fn study(rows: Vec<StudyRow>) -> VlmStudy {
        let unmeasured = vec![Unmeasured { what: "8 GiB".into(), reason: "no rights".into() }];
        VlmStudy { rows, postgresql: Vec::new(), unmeasured, provenance: Vec::new() }
    }

    #[test]
    fn ratios_are_of_the_largest_that_both_have() {
        let study = study(vec![
            row(Backing::SmallPages, 1, 300, 500 << 20, 40),
            row(Backing::SmallPages, 2, 300, 900 << 20, 60),
            row(Backing::SharedTables, 1, 300, 5 << 20, 4),
            row(Backing::SharedTables, 2, 300, 3 << 20, 2),
            row(Backing::SharedTables, 4, 300, 3 << 20, 2),
        ]);
        let expected = Ratios { processes: 300, size: Size::gib(2), page_tables: 300.0, start_up: 30.0 };
        assert_eq!(ratios(&study), Some(expected));
        let tables = all(&study);
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["summary", "not-measured", "page-tables", "start-up", "cpu", "faults"]);
        // Of 4 GiB, only shared tables were measured.
        let last = tables[2].rows.last().unwrap();
        assert_eq!(last[2..5], [Value::Missing, Value::Missing, Value::Integer(3 << 10)]);
    }

    #[test]
    fn alphas_page_tables_are_a_thousandth_of_the_memory_and_two_levels_more() {
        assert_eq!(alpha_page_tables(Size::gib(8), 1), (8 << 20) + (8 << 10) + (8 << 10));
        assert_eq!(alpha_page_tables(Size::gib(8), 300), 300 * alpha_page_tables(Size::gib(8), 1));
    }
}
