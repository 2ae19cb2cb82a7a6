//! Cycles that are estimated from a sample of an execution.

use machine::{Estimate, Machine, SampledCycles};

use super::cycles::{describe, side};
use super::{file_stem, named};
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

/// What readers of a sample's tables must know: how far to trust it, and how to get an error of 1 %.
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
