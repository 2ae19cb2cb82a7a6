//! Tables of samples.

use std::collections::BTreeMap;

use super::error::{interval, standard_error};
use super::{INSTRUCTIONS, SAMPLES};
use table::{Column, Kind, Table, Value, separated};

/// A summary of the samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleSummary {
    /// All samples.
    pub samples: u64,
    /// How was sampled: `every 4 ms of processor time`.
    pub interval: String,
    /// Samples in compiled code.
    pub compiled: u64,
    /// Samples in the interpreter and the compiler.
    pub interpreted: u64,
    /// Samples in system calls, by name.
    pub system_calls: BTreeMap<String, u64>,
    /// Processes and threads that have samples.
    pub processes: u64,
    /// Threads.
    pub threads: u64,
    /// Samples whose chain of calls ends in a function that starts programs or threads.
    pub complete: u64,
    /// Samples for which there was no room.
    pub lost: u64,
    /// All instructions executed, if they were counted.
    pub instructions: Option<u64>,
}

/// A summary of the samples.
pub fn summary(sampled: &SampleSummary) -> Table {
    let columns = [("samples of", Kind::Text), ("samples", Kind::Count), ("share", Kind::Percent(1))];
    let mut table = Table::new("summary", "What was sampled", &columns);
    let all = sampled.samples;
    let in_system: u64 = sampled.system_calls.values().sum();
    let mut row = |what: &str, samples: u64| {
        table.row(vec![what.into(), samples.into(), share(samples, all).into()]);
    };
    if sampled.compiled + sampled.interpreted + in_system > 0 {
        row("the program: compiled code", sampled.compiled);
        row("the program: interpreter and compiler", sampled.interpreted);
        row("the operating system: system calls", in_system);
    } else {
        row("instructions of the program", all);
    }
    table.total_row(vec!["all".into(), all.into(), share(all, all).into()]);
    table.notes.push(format!(
        "Sampled {}, in {} and {}.",
        sampled.interval,
        number(sampled.processes, "process", "processes"),
        number(sampled.threads, "thread", "threads")
    ));
    if sampled.samples > 0 {
        let complete = 100.0 * sampled.complete as f64 / sampled.samples as f64;
        table.notes.push(format!(
            "{complete:.1} % of the chains of calls reach the first function of their thread."
        ));
    }
    if sampled.lost > 0 {
        table.notes.push(format!(
            "{} samples are lost: there was no room for them.",
            separated(&sampled.lost.to_string())
        ));
    }
    table
}

fn number(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", separated(&count.to_string()), if count == 1 { one } else { many })
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { 100.0 * part as f64 / all as f64 }
}

/// A row for each system call in which there were samples.
pub fn system_calls(sampled: &SampleSummary) -> Table {
    let columns = [
        ("system call", Kind::Text),
        ("share", Kind::Percent(1)),
        ("from", Kind::Percent(1)),
        ("to", Kind::Percent(1)),
        ("samples", Kind::Count),
    ];
    let mut table = Table::new("system-calls", "Samples in system calls", &columns);
    let mut calls: Vec<(&String, u64)> = sampled.system_calls.iter().map(|(name, &n)| (name, n)).collect();
    calls.sort_by_key(|&(name, samples)| (std::cmp::Reverse(samples), name));
    for (name, samples) in calls {
        let (low, high) = interval(samples, sampled.samples);
        table.row(vec![
            name.clone().into(),
            share(samples, sampled.samples).into(),
            (100.0 * low).into(),
            (100.0 * high).into(),
            samples.into(),
        ]);
    }
    table
}

/// A table of calls without how often there were any, which samples do not say.
pub fn without_calls(mut table: Table) -> Table {
    if let Some(calls) = table.columns.iter().position(|column| column.name == "calls") {
        table.columns.remove(calls);
        table.rows.iter_mut().for_each(|row| drop(row.remove(calls)));
    }
    table
}

/// Adds the error of each share to a table with samples, and, if it has executed instructions, their share and the difference.
pub fn with_errors(mut table: Table, samples: u64) -> Table {
    let column = |table: &Table, name: &str| table.columns.iter().position(|column| column.name == name);
    let (Some(hits), Some(shares)) = (column(&table, SAMPLES), column(&table, "share")) else { return table };
    let executed = column(&table, INSTRUCTIONS);
    let count = |row: &[Value], column: usize| match row[column] {
        Value::Integer(number) => u64::try_from(number).unwrap_or(0),
        _ => 0,
    };
    let body = table.rows.len() - usize::from(table.total);
    let all: u64 = executed.map_or(0, |column| table.rows[..body].iter().map(|row| count(row, column)).sum());
    let (mut within, mut compared) = (0, 0);
    for (index, row) in table.rows.iter_mut().enumerate() {
        let (found, is_total) = (count(row, hits), index >= body);
        let (low, high) = interval(found, samples);
        let mut added = match is_total {
            true => vec![Value::Missing; 2],
            false => vec![(100.0 * low).into(), (100.0 * high).into()],
        };
        if let Some(column) = executed {
            let exact = count(row, column) as f64 / all as f64;
            let difference = found as f64 / samples as f64 - exact;
            let error = standard_error(exact, samples);
            let deviations = if error > 0.0 { Value::from(difference / error) } else { Value::Missing };
            // Where the samples expected are few, what was found is no normal distribution.
            if !is_total && exact * samples as f64 >= 5.0 {
                compared += 1;
                within += u64::from((low..=high).contains(&exact));
            }
            added.extend(match is_total {
                true => vec![Value::from(100.0 * exact), Value::Missing, Value::Missing],
                false => vec![Value::from(100.0 * exact), (100.0 * difference).into(), deviations],
            });
        }
        row.splice(shares + 1..shares + 1, added);
    }
    let mut columns = vec![("from", Kind::Percent(2)), ("to", Kind::Percent(2))];
    if executed.is_some() {
        columns.extend([
            ("exact share", Kind::Percent(2)),
            ("difference", Kind::Percent(2)),
            ("standard deviations", Kind::Real(1)),
        ]);
    }
    let columns = columns.into_iter().map(|(name, kind)| Column { name: name.into(), kind });
    table.columns.splice(shares + 1..shares + 1, columns);
    table.notes.push("The true share is between the columns from and to 95 times in 100.".into());
    if compared > 0 {
        table.notes.push(format!(
            "Of {} with 5 or more samples expected, {} have their exact share of the instructions in the interval.",
            number(compared, "row", "rows"),
            separated(&within.to_string())
        ));
    }
    table
}
