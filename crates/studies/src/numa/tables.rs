//! The results of the study as tables.

use analysis::models::{ExecutionPart, Rows};
use analysis::sharing::{self, SharingAnalysis, interconnect_operation_name};
use machine::InterconnectOperation;
use table::{Kind, Table, Value};
use trace::Trace;
use trace::interleave::Assignment;

use super::NumaStudy;
use super::simulation::{NumaResult, TimedResult};

/// What the talk's slides print, of a New-Order transaction of TPC-C.
pub(super) const PRINTED: [(&str, f64); 3] = [
    ("at first", 15_000.0),
    ("after the changes, simulated", 6_700.0),
    ("after the changes, measured", 6_600.0),
];
/// Rows of the tables of functions and data.
const SHOWN: usize = 15;

/// Columns of a table of results, after the one that tells them apart.
fn new_table(name: &str, title: &str, first: &[(&str, Kind)]) -> Table {
    let mut columns = first.to_vec();
    columns.push(("operations a transaction", Kind::Real(0)));
    columns.extend(InterconnectOperation::ALL.map(|one| (interconnect_operation_name(one), Kind::Real(0))));
    columns.push(("far cache hits", Kind::Percent(1)));
    Table::new(name, title, &columns)
}

fn cells(result: &NumaResult) -> Vec<Value> {
    let [hits, misses] = result.far;
    let mut cells = vec![Value::from(result.all())];
    cells.extend(result.operations.map(Value::from));
    cells.push(match hits + misses > 0.0 {
        true => Value::from(100.0 * hits / (hits + misses)),
        false => Value::Missing,
    });
    cells
}

/// The talk's machine, and a present-day one.
pub(super) fn machines(results: &[NumaResult]) -> Table {
    let first =
        [("machine", Kind::Text), ("nodes", Kind::Count), ("instructions a transaction", Kind::Real(0))];
    let mut table = new_table("machines", "Operations on the interconnect of a transaction of TPC-B", &first);
    for result in results {
        let nodes = result.nodes as u64;
        let machine = result.case.settings.iter().fold(String::from(result.case.machine), |name, setting| {
            format!("{name}, {}", setting.split('=').next_back().unwrap_or_default())
        });
        let row = [machine.into(), nodes.into(), Value::from(result.instructions)];
        table.row(row.into_iter().chain(cells(result)).collect());
    }
    let first = &results[0];
    table.notes.push(format!(
        "{} clients on {} processors, {:.0} transactions counted.",
        first.case.clients, first.case.processors, first.transactions
    ));
    if first.unread > 0 {
        table.notes.push(format!(
            "{} parts of the trace could not be read: of processes that recorded no statement.",
            first.unread
        ));
    }
    table
}

/// Numbers of nodes.
pub(super) fn nodes(results: &[NumaResult]) -> Table {
    let first = [("machine", Kind::Text), ("nodes", Kind::Count), ("processors of a node", Kind::Count)];
    let mut table = new_table("nodes", "The same processors in more and smaller nodes", &first);
    for result in results {
        let nodes = result.nodes as u64;
        let of_node = u64::from(result.case.processors) / nodes;
        let row = [result.case.machine.into(), nodes.into(), of_node.into()];
        table.row(row.into_iter().chain(cells(result)).collect());
    }
    table
}

/// Numbers of clients.
pub(super) fn clients(results: &[NumaResult]) -> Table {
    let first = [("clients", Kind::Count), ("instructions a transaction", Kind::Real(0))];
    let mut table = new_table("clients", "More clients, each with a process and a processor", &first);
    for result in results {
        let row = [u64::from(result.case.clients).into(), Value::from(result.instructions)];
        table.row(row.into_iter().chain(cells(result)).collect());
    }
    table.notes.push("Clients fill one node after another: four of them have one node.".into());
    table
}

/// Which processor executes which process, and where pages are.
pub(super) fn schedules(results: &[NumaResult]) -> Table {
    let first = [("scheduling", Kind::Text), ("pages", Kind::Text), ("processors", Kind::Count)];
    let mut table = new_table("schedules", "Scheduling, and the placement of pages", &first);
    for result in results {
        let scheduling = match result.case.assignment {
            Assignment::Affinity => "affinity",
            Assignment::RoundRobin => "round-robin",
            Assignment::RunToBlock => "run-to-block",
            Assignment::Recorded => "recorded",
        };
        let placement = result.case.settings.first().and_then(|setting| setting.split('=').nth(1));
        let row = [
            scheduling.into(),
            placement.unwrap_or("first-touch").into(),
            u64::from(result.case.processors).into(),
        ];
        table.row(row.into_iter().chain(cells(result)).collect());
    }
    table
}

/// Each kind of operation before and after the changes: the means of the recordings, and their ranges.
pub(super) fn changes(study: &NumaStudy) -> Table {
    let columns = [
        ("operation", Kind::Text),
        ("before", Kind::Real(1)),
        ("least before", Kind::Real(1)),
        ("most before", Kind::Real(1)),
        ("after", Kind::Real(1)),
        ("least after", Kind::Real(1)),
        ("most after", Kind::Real(1)),
        ("change", Kind::Change(1)),
    ];
    let title = "Operations of a transaction before and after the changes to PostgreSQL";
    let mut table = Table::new("changes", title, &columns);
    let mut counted = |name: &str, of: &dyn Fn(&NumaResult) -> f64| {
        table.row(changed(name, study.changes.each_ref().map(|results| range(results.iter().map(of)))));
    };
    for operation in InterconnectOperation::ALL {
        counted(interconnect_operation_name(operation), &|result| result.operations[operation as usize]);
    }
    counted("all operations", &NumaResult::all);
    counted("true sharing misses", &|result| result.true_misses);
    counted("false sharing misses", &|result| result.false_misses);
    counted("avoidable operations on the buses", &|result| result.avoidable);
    counted("cold misses", &|result| result.cold_misses);
    counted("instructions", &|result| result.instructions);
    let mut in_time = |name: &str, of: &dyn Fn(&TimedResult) -> f64| {
        table.row(changed(name, study.timed.each_ref().map(|results| range(results.iter().map(of)))));
    };
    in_time("transactions a second", &|result| result.transactions_a_second);
    in_time("operations a second", &|result| result.operations_a_second);
    in_time("waiting for other nodes, % of the time", &|result| result.waiting);
    in_time("use of the nodes' interfaces, %", &|result| result.interfaces);
    table.notes.push(format!(
        "Means of {} recordings of each build, the least and the most of them. The first half of the transactions warms up.",
        study.changes[0].len()
    ));
    table
}

/// The mean of several values, the least and the most.
fn range(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let values: Vec<f64> = values.collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    [values.iter().sum::<f64>() / values.len() as f64, least, most]
}

/// A row of what was before and after.
fn changed(name: &str, ranges: [[f64; 3]; 2]) -> Vec<Value> {
    let [[before, ..], [after, ..]] = ranges;
    let change = if before > 0.0 { Value::from(100.0 * (after / before - 1.0)) } else { Value::Missing };
    let values = ranges.into_iter().flatten().map(Value::from);
    std::iter::once(name.into()).chain(values).chain([change]).collect()
}

/// All operations of a transaction before and after the changes: the means of the recordings.
pub(super) fn steps_here(study: &NumaStudy) -> [f64; 2] {
    study.changes.each_ref().map(|results| range(results.iter().map(NumaResult::all))[0])
}

/// The kinds of operations that occur, for a chart.
pub(super) fn changes_by_kind(study: &NumaStudy) -> Table {
    let mut table = changes(study);
    table.rows.truncate(InterconnectOperation::ALL.len());
    let shown = |name: &str| ["operation", "before", "after"].contains(&name);
    let is_shown: Vec<bool> = table.columns.iter().map(|column| shown(&column.name)).collect();
    let kept = |number: &usize| is_shown[*number];
    table.columns = (0..is_shown.len()).filter(kept).map(|number| table.columns[number].clone()).collect();
    for row in &mut table.rows {
        *row = (0..row.len()).filter(kept).map(|number| row[number].clone()).collect();
    }
    table
}

/// The talk's steps, and ours.
pub(super) fn steps(study: &NumaStudy) -> Table {
    let columns = [
        ("whose", Kind::Text),
        ("when", Kind::Text),
        ("operations a transaction", Kind::Real(0)),
        ("change", Kind::Change(1)),
    ];
    let mut table = Table::new("steps", "The scaling steps of 1998, and here", &columns);
    let [before, after] = steps_here(study);
    let own = [("at first", before), ("after the changes, simulated", after)];
    let slides = "slides: Oracle and DG/UX, New-Order of TPC-C";
    let here = "here: PostgreSQL's own code, TPC-B";
    for (whose, steps) in [(slides, &PRINTED[..]), (here, &own[..])] {
        for (number, &(when, operations)) in steps.iter().enumerate() {
            let change = 100.0 * (operations / steps[0].1 - 1.0);
            let change = if number == 0 { Value::Missing } else { Value::from(change) };
            table.row(vec![whose.into(), when.into(), operations.into(), change]);
        }
    }
    table
}

/// The functions that need the interconnect most.
pub(super) fn by_function(model: &SharingAnalysis, trace: &Trace) -> Table {
    shortened(
        sharing::by_code(model, ExecutionPart::Whole, Rows::Function, trace),
        "functions",
        "Functions that need the interconnect most",
    )
}

/// The data that move most.
pub(super) fn by_data(model: &SharingAnalysis, trace: &Trace, when: &str) -> Table {
    let title = format!("Data that move most between nodes, {when} the changes");
    shortened(sharing::by_cache_line(model, ExecutionPart::Whole, trace), &format!("lines-{when}"), &title)
}

/// Data that would move together.
pub(super) fn partners(model: &SharingAnalysis, trace: &Trace) -> Table {
    shortened(
        sharing::by_partner(model, trace),
        "partners",
        "Partner data: what would move together in one line",
    )
}

fn shortened(table: Table, name: &str, title: &str) -> Table {
    let mut table = Table { name: name.into(), title: title.into(), total: false, ..table };
    table.rows.truncate(SHOWN);
    table
}
