//! The tables of the study.

use table::{Column, Kind, Table, Value};
use trace::ExecutionMode;

use super::measure::{CACHES, CountedScopes, KINDS, Scope, ScopeCounts};
use super::{BuildsResult, SystemStudy};

/// The slides' source, and that of the composition that they were shown with.
pub(super) const CVETANOVIC: &str = "Commercial workloads: Z. Cvetanovic, \"Analysis of Commercial and Technical Workloads on AlphaServer Platforms\", 1998, \
     whose slides print about 25 % loads, 10 % stores, 50 % integer, 15 % branches and no floating point.";

/// The tables for the terminal.
pub fn summary(study: &SystemStudy) -> Vec<Table> {
    let all = [instructions(study), block_sizes(study), byte_word(study)];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// Every table.
pub fn all(study: &SystemStudy) -> Vec<Table> {
    let all = [
        instructions(study),
        block_sizes(study),
        miss_rates(study),
        composition(study),
        byte_word(study),
        workloads(study),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn column(name: impl Into<String>, kind: Kind) -> Column {
    Column { name: name.into(), kind }
}

fn percent(part: u64, whole: u64) -> Value {
    if whole == 0 { Value::Missing } else { (100.0 * part as f64 / whole as f64).into() }
}

/// Per unit of work, rounded.
fn each(count: u64, counted: &CountedScopes) -> Value {
    ((count as f64 / counted.units as f64).round() as u64).into()
}

/// What the programs are.
pub(super) fn workloads(study: &SystemStudy) -> Table {
    let columns = ["program", "what it is, and what it stands for", "sources", "counted"];
    let mut table = Table::new("workloads", "The programs", &columns.map(|name| (name, Kind::Text)));
    for result in &study.programs {
        let program = &result.program;
        let counted = match program.unit {
            Some(unit) => format!("a {}: mean of {}", unit.name, result.counted.units),
            None => "the whole run".into(),
        };
        table.row(vec![
            program.name.into(),
            program.kind.into(),
            program.workload.title.into(),
            counted.into(),
        ]);
    }
    table
}

/// Instructions of each scope, and the operating system's share.
pub(super) fn instructions(study: &SystemStudy) -> Table {
    let mut table = Table::new("instructions", "Instructions of a unit of work", &[("program", Kind::Text)]);
    table.columns.push(column("unit", Kind::Text));
    table.columns.extend(Scope::ALL.map(|scope| column(scope.name(), Kind::Count)));
    table.columns.push(column("kernel", Kind::Percent(1)));
    table.columns.push(column("PALcode", Kind::Percent(1)));
    for result in &study.programs {
        let CountedScopes { scopes, modes, .. } = &result.counted;
        let all: u64 = modes.iter().sum();
        let unit = result.program.unit.map_or("run", |unit| unit.name);
        let mut row: Vec<Value> = vec![result.program.name.into(), unit.into()];
        row.extend(scopes.iter().map(|counts| each(counts.instructions, &result.counted)));
        row.extend(
            [ExecutionMode::Kernel, ExecutionMode::Pal].map(|mode| percent(modes[mode as usize], all)),
        );
        table.row(row);
    }
    table.notes.push("kernel, PALcode: of all instructions.".into());
    table
}

/// The parts that all instructions are of.
pub(super) const PARTS: [&str; 4] = ["application", "libraries", "kernel", "PALcode"];

/// Where the instructions of each program are executed.
pub(super) fn shares(study: &SystemStudy) -> Table {
    let mut table = Table::new("shares", "Where instructions are executed", &[("program", Kind::Text)]);
    table.columns.extend(PARTS.map(|part| column(part, Kind::Percent(1))));
    for result in &study.programs {
        let CountedScopes { scopes, modes, .. } = &result.counted;
        let [user, kernel, pal] = *modes;
        let application = scopes[Scope::Application as usize].instructions;
        let parts = [application, user.saturating_sub(application), kernel, pal];
        let shares = parts.map(|part| percent(part, user + kernel + pal));
        table.row(std::iter::once(result.program.name.into()).chain(shares).collect());
    }
    table
}

/// A table with a column for each scope.
fn by_scope(
    study: &SystemStudy,
    (name, title): (&str, &str),
    kind: Kind,
    value: impl Fn(&ScopeCounts) -> Value,
) -> Table {
    let mut table = Table::new(name, title, &[("program", Kind::Text)]);
    table.columns.extend(Scope::ALL.map(|scope| column(scope.name(), kind)));
    for result in &study.programs {
        let values = result.counted.scopes.iter().map(&value);
        table.row(std::iter::once(result.program.name.into()).chain(values).collect());
    }
    table
}

/// Mean sizes of basic blocks.
pub(super) fn block_sizes(study: &SystemStudy) -> Table {
    let title = ("block-sizes", "Instructions of a basic block, in the mean");
    by_scope(study, title, Kind::Real(2), |counts| counts.block.into())
}

/// Miss rates of one size.
pub(super) fn miss_rate(study: &SystemStudy, cache: usize) -> Table {
    let size = CACHES[cache];
    let (name, title) = (format!("misses-{size}k"), format!("Misses of an instruction cache of {size} KiB"));
    by_scope(study, (&name, &title), Kind::Percent(2), |counts| {
        percent(counts.misses[cache], counts.instructions)
    })
}

/// Miss rates of all sizes.
pub(super) fn miss_rates(study: &SystemStudy) -> Table {
    let mut table = Table::new(
        "miss-rates",
        "Misses of instruction caches, of instructions",
        &[("program", Kind::Text), ("scope", Kind::Text)],
    );
    table.columns.extend(CACHES.map(|size| column(format!("{size} KiB"), Kind::Percent(2))));
    rows_by_scope(study, &mut table, |counts| {
        counts.misses.map(|misses| percent(misses, counts.instructions)).into()
    });
    table.notes.push("Direct-mapped, lines of 32 bytes, as the 21064's of 8 KiB; empty at first.".into());
    table
}

/// Adds a row for each program and scope.
fn rows_by_scope(study: &SystemStudy, table: &mut Table, values: impl Fn(&ScopeCounts) -> Vec<Value>) {
    for result in &study.programs {
        for (scope, counts) in Scope::ALL.into_iter().zip(&result.counted.scopes) {
            let mut row = vec![result.program.name.into(), scope.name().into()];
            row.extend(values(counts));
            table.row(row);
        }
    }
}

/// Shares of kinds of instructions.
pub(super) fn composition(study: &SystemStudy) -> Table {
    let title = "Percent composition";
    let mut table = Table::new("composition", title, &[("program", Kind::Text), ("scope", Kind::Text)]);
    table.columns.extend(KINDS.map(|kind| column(kind, Kind::Percent(1))));
    let printed = [25.0, 10.0, 15.0, 50.0, 0.0].map(Value::from);
    let missing = [Value::Missing, Value::Missing];
    let row = ["commercial workloads, 1998".into(), "whole system".into()];
    table.row(row.into_iter().chain(printed).chain(missing).collect());
    rows_by_scope(study, &mut table, |counts| {
        counts.kinds.map(|count| percent(count, counts.instructions)).into()
    });
    table.notes.push(CVETANOVIC.into());
    table.notes.push("PALcode: calls of it, and instructions that only it has.".into());
    table
}

/// What byte and word instructions are worth in the program and in the kernel.
pub(super) fn byte_word(study: &SystemStudy) -> Table {
    let columns = [
        ("program", Kind::Text),
        ("kernel's build", Kind::Text),
        ("program's build", Kind::Text),
        ("user", Kind::Count),
        ("kernel", Kind::Count),
        ("PALcode", Kind::Count),
        ("all", Kind::Count),
        ("change", Kind::Change(2)),
        ("kernel's change", Kind::Change(2)),
    ];
    let mut table = Table::new("byte-word", "Byte and word instructions in kernel and program", &columns);
    let of = |result: &BuildsResult, mode: ExecutionMode| {
        result.counted.modes[mode as usize] as f64 / result.counted.units as f64
    };
    for result in &study.builds {
        let original = study.builds.iter().find(|other| {
            other.program.name == result.program.name
                && other.builds == [workloads::toolchain::ORIGINAL.name; 2]
        });
        let all =
            |result: &BuildsResult| -> f64 { ExecutionMode::ALL.map(|mode| of(result, mode)).iter().sum() };
        let change = |count: &dyn Fn(&BuildsResult) -> f64| {
            original.map(|original| 100.0 * (count(result) / count(original) - 1.0))
        };
        let mut row: Vec<Value> =
            vec![result.program.name.into(), result.builds[0].into(), result.builds[1].into()];
        row.extend(ExecutionMode::ALL.map(|mode| Value::from(of(result, mode).round() as u64)));
        row.push((all(result).round() as u64).into());
        row.push(change(&all).into());
        row.push(change(&|result| of(result, ExecutionMode::Kernel)).into());
        table.row(row);
    }
    table.notes.push("Instructions of a unit of work; changes from both builds original.".into());
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{SystemProgramResult, programs};

    fn counted(kernel: u64, units: u64) -> CountedScopes {
        let scope = |instructions: u64| ScopeCounts {
            instructions,
            block: 6.0,
            kinds: [instructions / 4, 0, 0, instructions - instructions / 4, 0, 0, 0],
            misses: [instructions / 100; CACHES.len()],
        };
        CountedScopes {
            scopes: [scope(100), scope(400), scope(420 + kernel)],
            modes: [400, kernel, 20],
            units,
        }
    }

    fn study() -> SystemStudy {
        let programs = programs();
        let sqlite = *programs.iter().find(|program| program.name == "sqlite").unwrap();
        let builds =
            |names, kernel| BuildsResult { program: sqlite, builds: names, counted: counted(kernel, 2) };
        SystemStudy {
            programs: programs
                .iter()
                .map(|&program| SystemProgramResult { program, counted: counted(580, 2) })
                .collect(),
            builds: vec![
                builds(["byte-word", "byte-word"], 540),
                builds(["original", "byte-word"], 600),
                builds(["original", "original"], 600),
            ],
            provenance: Vec::new(),
        }
    }

    #[test]
    fn counts_are_of_a_unit_and_shares_of_all() {
        let table = instructions(&study());
        let row = table.rows.iter().find(|row| row[0] == "sqlite".into()).unwrap();
        assert_eq!(row[..2], ["sqlite".into(), "transaction".into()]);
        assert_eq!(row[2..5], [50_u64.into(), 200_u64.into(), 500_u64.into()]);
        assert_eq!(row[5..], [58.0.into(), 2.0.into()]);
        let shares = shares(&study());
        assert_eq!(shares.rows[0][1..], [10.0, 30.0, 58.0, 2.0].map(Value::from));
        let composed = composition(&study());
        assert_eq!(composed.rows[3][2..6], [25.0.into(), 0.0.into(), 0.0.into(), 75.0.into()]);
    }

    #[test]
    fn changes_are_from_both_builds_original() {
        let table = byte_word(&study());
        let change = |row: usize, column: usize| match table.rows[row][column] {
            Value::Real(change) => (change * 1000.0).round(),
            ref other => panic!("{other:?}"),
        };
        assert_eq!([change(2, 7), change(2, 8)], [0.0, 0.0]);
        // 960 instructions instead of 1,020, and 270 of the kernel instead of 300.
        assert_eq!([change(0, 7), change(0, 8)], [-5882.0, -10_000.0]);
    }

    #[test]
    fn a_page_has_every_program() {
        let study = study();
        let mut html = Vec::new();
        study.report().unwrap().page.write(&mut html).unwrap();
        let html = String::from_utf8(html).unwrap();
        assert!(html.contains("The operating system executes 60 % of the instructions"));
        assert!(study.programs.iter().all(|result| html.contains(result.program.name)));
        // Without programs that are built both ways there is no such table.
        let none = SystemStudy { builds: Vec::new(), ..study };
        assert!(all(&none).iter().all(|table| table.name != "byte-word"));
    }
}
