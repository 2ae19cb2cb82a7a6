//! The results of the study as tables.

use analysis::models::Rows;
use analysis::sharing::{self, SharingAnalysis, interconnect_operation_name};
use analysis::table::{Kind, Table, Value};
use machine::InterconnectOperation;
use trace::Trace;
use trace::interleave::Assignment;

use super::NumaStudy;
use super::simulation::NumaResult;

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

/// Each kind of operation before and after the changes.
pub(super) fn changes(study: &NumaStudy) -> Table {
    let columns = [
        ("operation", Kind::Text),
        ("before", Kind::Real(1)),
        ("after", Kind::Real(1)),
        ("change", Kind::Change(1)),
    ];
    let title = "Operations of a transaction before and after the changes to PostgreSQL";
    let mut table = Table::new("changes", title, &columns);
    let row = |name: &str, before: f64, after: f64| {
        let change = if before > 0.0 { Value::from(100.0 * (after / before - 1.0)) } else { Value::Missing };
        vec![name.into(), before.into(), after.into(), change]
    };
    let [before, after] = &study.changes;
    for operation in InterconnectOperation::ALL {
        let of = |result: &NumaResult| result.operations[operation as usize];
        table.row(row(interconnect_operation_name(operation), of(before), of(after)));
    }
    table.row(row("all operations", before.all(), after.all()));
    table.row(row("false sharing misses", before.false_misses, after.false_misses));
    table.row(row("instructions", before.instructions, after.instructions));
    let [before, after] = &study.timed;
    table.row(row("transactions a second", before.transactions_a_second, after.transactions_a_second));
    table.row(row("operations a second", before.operations_a_second, after.operations_a_second));
    table.row(row("waiting for other nodes, % of the time", before.waiting, after.waiting));
    table.row(row("use of the nodes' interfaces, %", before.interfaces, after.interfaces));
    table.notes.push(
        "a second: in time, from the first statement on, with cold caches; the other rows without that part."
            .into(),
    );
    table.notes.push(
        "Each build was recorded once. How far the clients' work overlapped on a busy host can change the operations more than the          layout does: compare recordings of an idle host, and several of them."
            .into(),
    );
    table
}

/// The kinds of operations that occur, for a chart.
pub(super) fn changes_by_kind(study: &NumaStudy) -> Table {
    let mut table = changes(study);
    table.rows.truncate(InterconnectOperation::ALL.len());
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
    let [before, after] = &study.changes;
    let own = [("at first", before.all()), ("after the changes, simulated", after.all())];
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
        sharing::by_code(model, Rows::Function, trace),
        "functions",
        "Functions that need the interconnect most",
    )
}

/// The data that move most.
pub(super) fn by_data(model: &SharingAnalysis, trace: &Trace, when: &str) -> Table {
    let title = format!("Data that move most between nodes, {when} the changes");
    shortened(sharing::by_cache_line(model, trace), &format!("lines-{when}"), &title)
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
