//! The results of the study as tables.

use analysis::models::{ExecutionPart, OwnRows};
use analysis::sharing::{self, SharingAnalysis, interconnect_operation_name};
use machine::InterconnectOperation;
use table::{Kind, Table, Value};
use trace::Trace;
use trace::interleave::Assignment;

use super::benchmarks::{NumaBenchmark, STEPS};
use super::difference::MeanDifference;
use super::simulation::NumaResult;
use super::{ACCURACY, BenchmarkResult};

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
pub(super) fn machines(results: &[NumaResult], benchmark: NumaBenchmark) -> Table {
    let first =
        [("machine", Kind::Text), ("nodes", Kind::Count), ("instructions a transaction", Kind::Real(0))];
    let title = format!("Operations on the interconnect of a transaction of {}", benchmark.title());
    let mut table = new_table("machines", &title, &first);
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

/// The counts of a recording that are compared, with their names.
fn counted(result: &NumaResult) -> Vec<(String, f64)> {
    let kinds = InterconnectOperation::ALL
        .map(|one| (interconnect_operation_name(one).to_owned(), result.operations[one as usize]));
    let sums = [
        ("all operations", result.all()),
        ("of them waiting", result.waiting),
        ("without waiting", result.all() - result.waiting),
        ("true sharing misses", result.true_misses),
        ("false sharing misses", result.false_misses),
        ("avoidable operations on the buses", result.avoidable),
        ("cold misses", result.cold_misses),
        ("instructions", result.instructions),
    ];
    let classes = result.classes.iter().filter(|_| result.classes.len() > 1);
    let classes = classes.map(|(name, _, operations)| (format!("all operations of {name}"), *operations));
    kinds.into_iter().chain(sums.map(|(name, count)| (name.to_owned(), count))).chain(classes).collect()
}

/// Each kind of operation in all steps: the means of the recordings.
pub(super) fn changes(result: &BenchmarkResult) -> Table {
    let mut columns = vec![("of a transaction", Kind::Text)];
    columns.extend(STEPS.iter().map(|step| (step.name, Kind::Real(1))));
    columns.extend([("least at first", Kind::Real(1)), ("most at first", Kind::Real(1))]);
    columns.extend([("least in the end", Kind::Real(1)), ("most in the end", Kind::Real(1))]);
    columns.extend([("change", Kind::Change(1)), ("of changed PostgreSQL", Kind::Change(1))]);
    let benchmark = result.benchmark;
    let title = format!("Operations of a transaction of {} in each step", benchmark.title());
    let mut table = Table::new(&format!("changes-{}", benchmark.name()), title, &columns);
    let last = STEPS.len() - 1;
    for (name, _) in counted(&result.steps[0].recordings[0]) {
        let of = |one: &NumaResult| {
            let found = counted(one).into_iter().find(|(other, _)| *other == name);
            found.map_or(0.0, |(_, count)| count)
        };
        let values: Vec<Vec<f64>> = (0..STEPS.len()).map(|step| result.values(step, of)).collect();
        let means: Vec<f64> = values.iter().map(|values| mean(values)).collect();
        let mut row = vec![Value::from(name.as_str())];
        row.extend(means.iter().map(|&mean| Value::from(mean)));
        for values in [&values[0], &values[last]] {
            row.push(values.iter().copied().fold(f64::INFINITY, f64::min).into());
            row.push(values.iter().copied().fold(0.0, f64::max).into());
        }
        row.extend([change(means[0], means[last]), change(means[last - 1], means[last])]);
        table.row(row);
    }
    let mut in_time = |name: &str, of: [f64; STEPS.len()]| {
        let mut row = vec![Value::from(name)];
        row.extend(of.map(Value::from));
        row.extend([Value::Missing, Value::Missing, Value::Missing, Value::Missing]);
        row.extend([change(of[0], of[last]), change(of[last - 1], of[last])]);
        table.row(row);
    };
    let timed: [_; STEPS.len()] = std::array::from_fn(|step| result.steps[step].timed);
    in_time("transactions a second", timed.map(|timed| timed.transactions_a_second));
    in_time("operations a second", timed.map(|timed| timed.operations_a_second));
    in_time("waiting for other nodes, % of the time", timed.map(|timed| timed.waiting));
    in_time("use of the nodes' interfaces, %", timed.map(|timed| timed.interfaces));
    table.notes.push(format!(
        "Means of {} recordings of each step; in time, the first one. The first half of the transactions warms up. Waiting is what functions need in \
         which processes wait for each other.",
        result.steps[0].recordings.len()
    ));
    table
}

/// The mean.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn change(before: f64, after: f64) -> Value {
    if before > 0.0 { Value::from(100.0 * (after / before - 1.0)) } else { Value::Missing }
}

/// The kinds of operations that occur in each step, for a chart.
pub(super) fn changes_by_kind(result: &BenchmarkResult) -> Table {
    let mut table = changes(result);
    table.rows.truncate(InterconnectOperation::ALL.len());
    table.columns.truncate(1 + STEPS.len());
    table.rows.iter_mut().for_each(|row| row.truncate(1 + STEPS.len()));
    table
}

/// The talk's steps, and ours with the intervals of their differences.
pub(super) fn steps(results: &[BenchmarkResult]) -> Table {
    let columns = [
        ("whose", Kind::Text),
        ("when", Kind::Text),
        ("operations", Kind::Real(0)),
        ("change", Kind::Change(1)),
        ("plus or minus", Kind::Real(1)),
        ("since the step before", Kind::Change(1)),
        ("plus or minus, of that", Kind::Real(1)),
        ("recordings", Kind::Count),
    ];
    let mut table = Table::new("steps", "The scaling steps of 1998, and here", &columns);
    for (number, &(when, operations)) in PRINTED.iter().enumerate() {
        let changed = if number == 0 { Value::Missing } else { change(PRINTED[0].1, operations) };
        let mut row = vec!["slides: Oracle and DG/UX, New-Order of TPC-C".into(), when.into()];
        row.extend([operations.into(), changed]);
        row.resize(columns.len(), Value::Missing);
        table.row(row);
    }
    for result in results {
        let benchmark = result.benchmark;
        let whose = format!("here: PostgreSQL's own code, {} of {}", benchmark.unit(), benchmark.title());
        for (number, step) in STEPS.iter().enumerate() {
            let operations = result.operations(number);
            let mut row = vec![whose.as_str().into(), step.name.into(), mean(&operations).into()];
            for from in [0, number.saturating_sub(1)] {
                let difference = (from < number).then(|| result.change(from, number));
                row.extend(interval(difference));
            }
            row.push((operations.len() as u64).into());
            table.row(row);
        }
        if !result.is_accurate() {
            let title = benchmark.title();
            table.notes.push(format!(
                "{title}: there were not enough recordings for intervals of {ACCURACY} percent points."
            ));
        }
    }
    let note = "Changes in percent, and half of the interval that has the true one with a confidence of 95 %, by the variation of \
                recordings (Welch).";
    table.notes.push(note.into());
    table
}

fn interval(difference: Option<MeanDifference>) -> [Value; 2] {
    let percent = difference.map(|difference| Value::from(difference.percent));
    let half = difference.and_then(|difference| difference.half_width).map(Value::from);
    [percent, half].map(|value| value.unwrap_or(Value::Missing))
}

/// The functions that need the interconnect most.
pub(super) fn by_function(model: &SharingAnalysis, trace: &Trace, benchmark: NumaBenchmark) -> Table {
    shortened(
        sharing::by_code(model, ExecutionPart::Whole, OwnRows::Function, trace),
        format!("functions-{}", benchmark.name()),
        format!("Functions that need the interconnect most: {}", benchmark.title()),
    )
}

/// The lines that move most.
pub(super) fn by_line(model: &SharingAnalysis, trace: &Trace, benchmark: NumaBenchmark, when: &str) -> Table {
    shortened(
        sharing::by_cache_line(model, ExecutionPart::Whole, trace),
        format!("lines-{}-{when}", benchmark.name()),
        format!("Lines that move most between nodes, {when} the changes: {}", benchmark.title()),
    )
}

/// Data that would move together.
pub(super) fn partners(model: &SharingAnalysis, trace: &Trace, benchmark: NumaBenchmark) -> Table {
    shortened(
        sharing::by_partner(model, trace),
        format!("partners-{}", benchmark.name()),
        format!("Partner data: what would move together in one line: {}", benchmark.title()),
    )
}

fn shortened(table: Table, name: String, title: String) -> Table {
    let mut table = Table { name, title, total: false, ..table };
    table.rows.truncate(SHOWN);
    table
}
