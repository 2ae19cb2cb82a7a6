//! Cycles that are estimated from a sample of an execution.

use machine::{Estimate, Machine, SampleOwner, SampledCycles, TimingModel, WindowSums};

use super::cycles::{describe, side};
use super::{ExecutionPart, ProcessLabel, SummedOverProcesses, UnitClasses, file_stem, named};
use table::{Column, Kind, Table, Value, separated};

/// Half of an interval that contains the exact value with a confidence of 99 %.
const ERROR: &str = "± (99 %)";

/// Time and cycles by cause of machines, from samples of the same execution.
pub(super) fn sampled_times(machines: &[(&str, &Machine, SampledCycles)]) -> Vec<Table> {
    let mut tables = vec![summary(machines)];
    let both: Vec<_> = machines.iter().map(|(name, machine, sampled)| (*name, (*machine, sampled))).collect();
    let both: Vec<_> = both.iter().map(|(name, both)| (*name, both)).collect();
    tables.extend(named(&both, "cycles", "Cycles by cause on", |name, title, both| {
        causes(name, title, both.0, both.1)
    }));
    tables
}

/// One row for each machine.
fn summary(machines: &[(&str, &Machine, SampledCycles)]) -> Table {
    let columns = [
        ("machine", Kind::Text),
        ("MHz", Kind::Real(0)),
        ("instructions", Kind::Count),
        ("cycles", Kind::Count),
        ("cycles per instruction", Kind::Real(4)),
        (ERROR, Kind::Real(4)),
        ("error", Kind::Percent(2)),
        ("seconds", Kind::Real(4)),
        ("windows", Kind::Count),
        ("measured", Kind::Percent(2)),
    ];
    let mut table = Table::new("time", "Time, from a sample", &columns);
    for (name, machine, sampled) in machines {
        let Estimate { value, error } = sampled.per_instruction();
        let about = if machines.len() > 1 { format!("{}: ", file_stem(name)) } else { String::new() };
        table.notes.push(about + &note(sampled));
        let cycles = value * sampled.instructions as f64;
        let share = |part: f64, whole: f64| Value::from(100.0 * part / whole);
        table.row(vec![
            file_stem(name).into(),
            machine.processor.clock_mhz.into(),
            sampled.instructions.into(),
            (cycles.round() as u64).into(),
            value.into(),
            error.into(),
            share(error, value),
            (cycles / (machine.processor.clock_mhz * 1e6)).into(),
            sampled.windows.into(),
            share(sampled.measured as f64, sampled.instructions as f64),
        ]);
    }
    table
}

/// The columns of estimates of a part of an execution.
const PART_COLUMNS: [(&str, Kind); 6] = [
    ("instructions", Kind::Count),
    ("cycles", Kind::Count),
    ("cycles per instruction", Kind::Real(4)),
    (ERROR, Kind::Real(4)),
    ("error", Kind::Percent(2)),
    ("windows", Kind::Count),
];

/// The estimates of a part, whose counts are of so many in a cycle. An error needs two windows.
pub(crate) fn part_cells<const N: usize>(sums: &WindowSums<N>, cycle: u64) -> Vec<Value> {
    let Estimate { value, error } = sums.per_instruction();
    let (value, error) = (value / cycle as f64, error / cycle as f64);
    let missing_if = |is_missing: bool, value: Value| if is_missing { Value::Missing } else { value };
    let (has_none, has_one) = (sums.windows == 0, sums.windows < 2);
    vec![
        sums.instructions.into(),
        missing_if(has_none, ((value * sums.instructions as f64).round() as u64).into()),
        missing_if(has_none, value.into()),
        missing_if(has_one, error.into()),
        missing_if(has_one, (100.0 * error / value).into()),
        sums.windows.into(),
    ]
}

/// The estimates of a machine's time for each class of units of work, for what is outside of units, and for all; a table for each
/// machine.
pub fn sampled_by_class(
    machines: &[(&str, SummedOverProcesses<TimingModel>)],
    classes: &UnitClasses,
) -> Vec<Table> {
    let machines: Vec<_> = machines.iter().map(|(name, models)| (*name, models)).collect();
    named(&machines, "classes", "Time by class of units of work, from a sample, on", |name, title, models| {
        let mut table = Table::new(name, title, &[("class", Kind::Text), ("units", Kind::Count)]);
        table.columns.extend(part_columns());
        let class_of = |owner: SampleOwner| owner.unit.and_then(|unit| classes.of(unit));
        let parts = models.sampled_by(class_of);
        let none = WindowSums::default();
        let units = |number: u32| {
            models.units().iter().filter(|unit| classes.of(unit.number) == Some(number)).count() as u64
        };
        let of_classes = classes.parts(|part| match part {
            ExecutionPart::Class(number) => parts.get(&Some(number)).map(|sums| sums.instructions),
            _ => None,
        });
        for (class, part) in of_classes {
            let (number, units) = match part {
                ExecutionPart::Class(number) => (Some(number), units(number).into()),
                _ => (None, Value::Missing),
            };
            let estimates = part_cells(parts.get(&number).unwrap_or(&none), 1);
            table.row([class.into(), units].into_iter().chain(estimates).collect());
        }
        total(&mut table, models, 2)
    })
}

/// The estimates of a machine's time for each process, and for all together; a table for each machine.
pub fn sampled_by_process(
    machines: &[(&str, SummedOverProcesses<TimingModel>)],
    processes: &[ProcessLabel],
) -> Vec<Table> {
    let machines: Vec<_> = machines.iter().map(|(name, models)| (*name, models)).collect();
    named(&machines, "processes", "Time of processes, from a sample, on", |name, title, models| {
        let mut table = Table::new(name, title, &ProcessLabel::HEADINGS);
        table.columns.extend(part_columns());
        let parts = models.sampled_by(|owner| owner.process);
        for label in processes {
            let Some(sums) = parts.get(&label.process) else { continue };
            table.row(label.cells().into_iter().chain(part_cells(sums, 1)).collect());
        }
        total(&mut table, models, 3)
    })
}

/// The columns of [`part_cells`].
pub(crate) fn part_columns() -> impl Iterator<Item = Column> {
    PART_COLUMNS.into_iter().map(|(name, kind)| Column { name: name.into(), kind })
}

/// Adds the row of the whole execution, with so many cells before the estimates, and the note on the sample.
fn total(table: &mut Table, models: &SummedOverProcesses<TimingModel>, texts: usize) -> Table {
    if let Some(sampled) = models.sampled() {
        let mut cells = vec![Value::Missing; texts];
        cells[0] = "total".into();
        table.total_row(cells.into_iter().chain(part_cells(&sampled, 1)).collect());
        table.notes.push(note(&sampled));
    }
    table.clone()
}

/// Cycles per instruction by cause.
fn causes(name: &str, title: &str, machine: &Machine, sampled: &SampledCycles) -> Table {
    let columns = [("side", Kind::Text), ("cause", Kind::Text), ("share", Kind::Percent(1))];
    let mut table = Table::new(name, title, &columns);
    let per_instruction = [("cycles per instruction", Kind::Real(4)), (ERROR, Kind::Real(4))];
    table.columns.extend(per_instruction.map(|(name, kind)| Column { name: name.into(), kind }));
    let total = sampled.per_instruction();
    let numbers = |one: Estimate| [100.0 * one.value / total.value, one.value, one.error].map(Value::from);
    for (cause, estimate) in sampled.causes() {
        let words = [side(cause.side()).into(), describe(cause, machine).into()];
        table.row(words.into_iter().chain(numbers(estimate)).collect());
    }
    table.total_row(["total".into(), Value::Missing].into_iter().chain(numbers(total)).collect());
    table
}

/// A note for readers of a sample's tables: how far to trust it, and how to get an error of 1 %.
fn note(sampled: &SampledCycles) -> String {
    let number = |number: u64| separated(&number.to_string());
    let needed = sampled.windows_for(0.01);
    let advice = match sampled.instructions / needed.max(1) {
        _ if sampled.per_instruction().error <= 0.01 * sampled.per_instruction().value => String::new(),
        0..3000 => " For an error of 1 % the run is too short: simulate all of it, without --sample.".into(),
        period => format!(" For an error of 1 %: --sample {}.", round_down(period)),
    };
    format!(
        "Cycles are estimates from {} windows; {} instructions were simulated in detail. An exact value differs from its \
         estimate by at most the error, with a confidence of 99 %, as far as a sample can tell.{advice}",
        number(sampled.windows),
        number(sampled.detailed)
    )
}

/// A number with two digits that is not larger.
fn round_down(number: u64) -> u64 {
    let scale = 10u64.pow(number.max(10).ilog10() - 1);
    number / scale * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_rounded_down() {
        assert_eq!([7, 42, 1999, 123_456].map(round_down), [7, 42, 1900, 120_000]);
    }
}
