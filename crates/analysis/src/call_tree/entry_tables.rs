//! Results by mode, and by why the kernel was entered.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use trace::ExecutionMode;

use super::costs::add;
use super::entries::{EntryNodes, EntryRows};
use super::{NodeId, WithCallTree};
use crate::kernel_entries::EntryReason;
use crate::models::{InstructionResults, named};
use table::{Column, Kind, Table, Value};

/// One table of modes or reasons for each model; none if the execution distinguishes calls instead.
pub fn entry_tables<M, R: InstructionResults>(
    rows: EntryRows,
    execution: &WithCallTree<M>,
    models: &[(&str, &R)],
) -> Vec<Table> {
    let Some(entries) = execution.entries() else { return Vec::new() };
    let (name, what) = match rows {
        EntryRows::Mode => ("modes", "modes"),
        EntryRows::Reason => ("entries", "the kernel and PALcode, by why they were entered,"),
        EntryRows::SystemCall => ("system-calls", "system calls"),
    };
    let on_machine = if models.iter().all(|(model, _)| model.is_empty()) { "" } else { " on" };
    let title = format!("{} of {what}{on_machine}", R::WHAT);
    named(models, name, &title, |name, title, results| {
        let empty = Table::new(name, title.trim_end().trim_end_matches(','), &[]);
        table(rows, (execution, entries), results, empty)
    })
}

/// Fills a table: a row for each mode or reason, the most expensive first; and the total.
fn table<M, R: InstructionResults>(
    rows: EntryRows,
    (execution, entries): (&WithCallTree<M>, &EntryNodes),
    results: &R,
    empty: Table,
) -> Table {
    let columns = results.columns();
    let width = columns.len();
    let nodes = execution.tree().nodes();
    let reasons: HashMap<NodeId, Option<EntryReason>> =
        entries.nodes.iter().map(|(&reason, &node)| (node, reason)).collect();
    let mut sums: BTreeMap<String, (u64, Vec<u64>)> = BTreeMap::new();
    let mut total = (0, vec![0; width]);
    for (number, instance) in execution.instances().iter().enumerate() {
        let mode = entries.header.mode(execution.block(instance.block).address);
        for row in results.rows(number as u32).into_iter().flatten() {
            let name = entries.row(rows, reasons[&instance.node], mode);
            add(&mut sums.entry(name).or_insert_with(|| (0, vec![0; width])).1, &row);
            add(&mut total.1, &row);
        }
    }
    if rows != EntryRows::Mode {
        for (&node, &reason) in reasons.iter().filter(|(_, reason)| reason.is_some()) {
            let name = entries.row(rows, reason, ExecutionMode::Kernel);
            let calls = nodes[node as usize].calls;
            sums.entry(name).or_insert_with(|| (0, vec![0; width])).0 += calls;
            total.0 += calls;
        }
    }
    let (heading, count) = match rows {
        EntryRows::Mode => ("mode", None),
        EntryRows::Reason => ("entered by", Some("entries")),
        EntryRows::SystemCall => ("system call", Some("entries")),
    };
    let mut table = empty;
    let column = |name: &str, kind| Column { name: name.into(), kind };
    table.columns.push(column(heading, Kind::Text));
    table.columns.extend(count.map(|count| column(count, Kind::Count)));
    table.columns.push(column("share", Kind::Percent(1)));
    table.columns.extend(columns);
    let all = results.weight(&total.1).max(1);
    let cells = |name: &str, (entered, numbers): &(u64, Vec<u64>)| -> Vec<Value> {
        let entered_cell = count.map(|_| if *entered > 0 { (*entered).into() } else { Value::Missing });
        let share = 100.0 * results.weight(numbers) as f64 / all as f64;
        let numbers = numbers.iter().map(|&number| number.into());
        std::iter::once(name.into()).chain(entered_cell).chain([share.into()]).chain(numbers).collect()
    };
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, (_, numbers))| Reverse(results.weight(numbers)));
    rows.iter().for_each(|(name, sum)| table.row(cells(name, sum)));
    table.total_row(cells("total", &total));
    table
}
