//! A trace on several processors of a described machine, in time; and the results as tables.

mod replay;
mod sampled;

use std::collections::HashMap;

use machine::{
    CoherenceState, Multiprocessor, ProcessorCause, ProcessorCounts, ProcessorRequest, Transaction,
    TransactionCounts,
};

pub use self::replay::{MultiprocessorReplay, ReplayProblems, replay};
use crate::models::{ExecutionPart, UnitClasses, part_columns};
use table::{Column, Kind, Table, Value};

fn cause_name(cause: ProcessorCause) -> &'static str {
    match cause {
        ProcessorCause::Busy => "busy",
        ProcessorCause::Memory => "memory",
        ProcessorCause::Transfer => "other caches",
        ProcessorCause::Instructions => "instruction misses",
        ProcessorCause::Remote => "other nodes",
        ProcessorCause::Outstanding => "outstanding misses",
        ProcessorCause::Barrier => "barriers",
        ProcessorCause::System => "system calls",
        ProcessorCause::Idle => "idle",
    }
}

/// The causes of a machine: only one with nodes waits for other nodes.
fn causes(model: &Multiprocessor) -> impl Iterator<Item = ProcessorCause> {
    let has_nodes = model.interconnect().is_some();
    ProcessorCause::ALL.into_iter().filter(move |&cause| has_nodes || cause != ProcessorCause::Remote)
}

/// The cycles of each processor per instruction, by what they were spent on. Idle time is not part of the sum.
pub fn by_processor(model: &Multiprocessor) -> Table {
    let mut table =
        Table::new("processors", "Cycles per instruction by processor", &[("processor", Kind::Text)]);
    table.columns.extend(columns(model));
    for (number, counts) in model.processors().enumerate() {
        table.row(cells(model, [number.to_string().into()], counts));
    }
    table.row(cells(model, ["all".into()], &all(model)));
    table
}

/// The same of each class of units of work, and of what is outside of units, which has all idle time; of a sample, estimates of the
/// cycles.
pub fn by_class(model: &Multiprocessor, classes: &UnitClasses) -> Table {
    let headings = [("class", Kind::Text), ("units", Kind::Count)];
    let mut sums: HashMap<Option<u32>, ProcessorCounts> = HashMap::new();
    for (unit, counts) in model.unit_counts() {
        sums.entry(unit.and_then(|unit| classes.of(unit))).or_default().add(counts);
    }
    let counts_of = |part: ExecutionPart| match part {
        ExecutionPart::Class(class) => sums.get(&Some(class)).copied().unwrap_or_default(),
        ExecutionPart::OutsideUnits => sums.get(&None).copied().unwrap_or_default(),
        ExecutionPart::Whole => all(model),
    };
    let mut table = Table::new("classes", "Cycles per instruction by class of units of work", &headings);
    let estimates = sampled::estimates_by_class(model, classes);
    let cells_of = |part: ExecutionPart, names: [Value; 2]| match &estimates {
        Some(estimates) => names.into_iter().chain(estimates.cells(model, part)).collect(),
        None => cells(model, names, &counts_of(part)),
    };
    match &estimates {
        Some(_) => {
            table.title.push_str(", from a sample");
            table.columns.extend(part_columns());
        }
        None => table.columns.extend(columns(model)),
    }
    for (class, part) in classes.parts(|part| counts_of(part).whole()) {
        let units = match part {
            ExecutionPart::Class(_) => counts_of(part).units.into(),
            _ => Value::Missing,
        };
        table.row(cells_of(part, [class.into(), units]));
    }
    let units = all(model).units.into();
    table.total_row(cells_of(ExecutionPart::Whole, ["total".into(), units]));
    table
}

/// The counts of all processors.
fn all(model: &Multiprocessor) -> ProcessorCounts {
    let mut whole = ProcessorCounts::default();
    model.processors().for_each(|counts| whole.add(counts));
    whole
}

/// The columns of counts of processors.
fn columns(model: &Multiprocessor) -> impl Iterator<Item = Column> {
    let counts = ["instructions", "cycles"].map(|name| (name, Kind::Count));
    let causes = causes(model).map(|cause| match cause {
        ProcessorCause::Idle => (cause_name(cause), Kind::Percent(1)),
        _ => (cause_name(cause), Kind::Real(3)),
    });
    let all = counts.into_iter().chain([("CPI", Kind::Real(3))]).chain(causes);
    all.map(|(name, kind)| Column { name: name.into(), kind })
}

fn cells<const N: usize>(model: &Multiprocessor, names: [Value; N], row: &ProcessorCounts) -> Vec<Value> {
    let idle = row.time[ProcessorCause::Idle as usize];
    let (all, cycle) = (row.whole(), model.cycle());
    let of = |time: u64| Value::from(time as f64 / cycle as f64 / row.instructions as f64);
    let numbers = [row.instructions.into(), ((all - idle) / cycle).into(), of(all - idle)];
    let causes = causes(model).map(|cause| match cause {
        ProcessorCause::Idle => (100.0 * idle as f64 / all as f64).into(),
        _ => of(row.time[cause as usize]),
    });
    names.into_iter().chain(numbers).chain(causes).collect()
}

/// Transactions on the bus: their number, their latency, and what they waited for each other.
pub fn transactions(model: &Multiprocessor) -> Table {
    let mut table = Table::new(
        "transactions",
        "Transactions on the bus",
        &[
            ("transaction", Kind::Text),
            ("count", Kind::Count),
            ("per 1,000 instructions", Kind::Real(3)),
            ("latency ns", Kind::Real(1)),
            ("on an idle bus ns", Kind::Real(1)),
            ("waited ns", Kind::Real(1)),
            ("longest ns", Kind::Real(1)),
        ],
    );
    let instructions = model.instructions();
    let nanoseconds = |picoseconds: u64, count: u64| picoseconds as f64 / 1000.0 / count as f64;
    for transaction in Transaction::ALL {
        let counts = transactions_of(model, transaction);
        if counts.count == 0 {
            continue;
        }
        table.row(vec![
            transaction_name(transaction).into(),
            counts.count.into(),
            Value::from(1000.0 * counts.count as f64 / instructions as f64),
            nanoseconds(counts.latency, counts.count).into(),
            nanoseconds(counts.latency - counts.waited, counts.count).into(),
            nanoseconds(counts.waited, counts.count).into(),
            nanoseconds(counts.longest, 1).into(),
        ]);
    }
    table
}

/// The requests that reach the caches at the bus, by the state in which their copy is found.
pub fn requests(model: &Multiprocessor) -> Table {
    let mut table = Table::new(
        "requests",
        "Requests to the caches at the bus, by the state of their line",
        &[("request", Kind::Text), ("count", Kind::Count), ("per 1,000 instructions", Kind::Real(2))],
    );
    let states = [
        ("modified", CoherenceState::Modified),
        ("owned", CoherenceState::Owned),
        ("exclusive", CoherenceState::Exclusive),
        ("shared", CoherenceState::Shared),
        ("invalid (miss)", CoherenceState::Invalid),
    ];
    let column = |name: &str| Column { name: name.into(), kind: Kind::Percent(1) };
    table.columns.extend(states.map(|(name, _)| column(name)));
    let instructions = model.instructions();
    let found = &model.memory().counts().requests;
    for request in ProcessorRequest::ALL {
        let all = found.all(request);
        let share = |state| Value::from(100.0 * found.get(request, state) as f64 / all as f64);
        let name = match request {
            ProcessorRequest::Fetch => "instruction fetches",
            ProcessorRequest::Load => "loads",
            ProcessorRequest::Store => "stores",
        };
        let row = vec![name.into(), all.into(), (1000.0 * all as f64 / instructions as f64).into()];
        table.row(row.into_iter().chain(states.map(|(_, state)| share(state))).collect());
    }
    table.notes.push("Requests that the innermost cache did not serve alone: misses, and stores to lines that others may have.".into());
    table
}

/// Counts of a kind of transactions, on all buses.
fn transactions_of(model: &Multiprocessor, transaction: Transaction) -> TransactionCounts {
    let counts = model.buses().iter().map(|bus| bus.used().transactions[transaction as usize]);
    counts.fold(TransactionCounts::default(), |sum, one| TransactionCounts {
        count: sum.count + one.count,
        latency: sum.latency + one.latency,
        waited: sum.waited + one.waited,
        longest: sum.longest.max(one.longest),
    })
}

/// The part of the time in percent for which the buses were occupied: their mean.
fn utilization(model: &Multiprocessor, of: impl Fn(&machine::BusUse) -> u64) -> f64 {
    let sum: u64 = model.buses().iter().map(|bus| of(bus.used())).sum();
    100.0 * sum as f64 / model.buses().len() as f64 / model.elapsed() as f64
}

/// The mean use of a bank of memory.
fn of_banks(used: &machine::BusUse) -> u64 {
    used.banks.iter().sum::<u64>() / used.banks.len().max(1) as u64
}

/// The operations on the interconnect.
fn exchanged(model: &Multiprocessor) -> u64 {
    model.memory().nodes().map_or(0, |nodes| nodes.counts().operations())
}

/// The part of the time in percent for which the interfaces of nodes, or their directories, were occupied: their mean.
fn occupied(model: &Multiprocessor, times: &[u64]) -> f64 {
    100.0 * times.iter().sum::<u64>() as f64 / times.len() as f64 / model.elapsed() as f64
}

fn transaction_name(transaction: Transaction) -> &'static str {
    match transaction {
        Transaction::Memory => "line from memory",
        Transaction::Transfer => "dirty line from another cache",
        Transaction::TransferAndUpdate => "dirty line from another cache, also to memory",
        Transaction::Upgrade => "upgrade",
        Transaction::WriteBack => "write-back",
        Transaction::Remote => "exchange with other nodes",
    }
}

/// How a machine of nodes was used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeUse {
    /// Units of work.
    pub units_a_second: f64,
    /// Operations on the interconnect.
    pub operations_a_second: f64,
    /// The part of the processors' time that was not idle in which they waited for other nodes, in percent.
    pub waiting: f64,
    /// The part of the time in which the nodes' interfaces were occupied, in percent: their mean.
    pub interfaces: f64,
}

impl NodeUse {
    /// How the nodes were used, if the machine has any.
    pub fn of(model: &Multiprocessor) -> Option<NodeUse> {
        let interconnect = model.interconnect()?;
        let sum = |of: &dyn Fn(&ProcessorCounts) -> u64| model.processors().map(of).sum::<u64>() as f64;
        let seconds = model.elapsed() as f64 / 1e12;
        let idle = sum(&|counts| counts.time[ProcessorCause::Idle as usize]);
        let remote = sum(&|counts| counts.time[ProcessorCause::Remote as usize]);
        Some(NodeUse {
            units_a_second: sum(&|counts| counts.units) / seconds,
            operations_a_second: exchanged(model) as f64 / seconds,
            waiting: 100.0 * remote / (sum(&ProcessorCounts::whole) - idle),
            interfaces: occupied(model, &interconnect.used().interfaces),
        })
    }
}

/// An estimate of the processors' cycles by a sample; None if everything was simulated in time.
pub fn sampled(model: &Multiprocessor) -> Option<Table> {
    Some(sampled::sampled_time(model, model.sampled()?))
}

/// Time, throughput, and how much the bus was used.
pub fn summary(model: &Multiprocessor) -> Table {
    let processors = model.processors().len();
    let plural = if processors == 1 { "" } else { "s" };
    let title = match model.memory().nodes() {
        Some(nodes) => format!("{processors} processor{plural}, nodes: {}", nodes.nodes()),
        None => format!("{processors} processor{plural} on a bus"),
    };
    let mut table = Table::new("bus", title, &[("what", Kind::Text), ("value", Kind::Real(3))]);
    let instructions = model.instructions();
    let units: u64 = model.processors().map(|processor| processor.units).sum();
    let elapsed = model.elapsed() as f64;
    let mut row = |what: &str, value: f64| table.row(vec![what.into(), value.into()]);
    row("time in ms", elapsed / 1e9);
    row("million instructions per second", instructions as f64 / (elapsed / 1e6));
    if units > 0 {
        row("units of work per second", units as f64 / (elapsed / 1e12));
    }
    row("utilization of the address bus in %", utilization(model, |used| used.address));
    row("utilization of the data bus in %", utilization(model, |used| used.data));
    row("utilization of the banks of memory in %", utilization(model, of_banks));
    if let Some(interconnect) = model.interconnect() {
        let operations = exchanged(model) as f64;
        if units > 0 {
            row("operations on the interconnect per unit", operations / units as f64);
        }
        row("operations on the interconnect per second", operations / (elapsed / 1e12));
        row("utilization of the nodes' interfaces in %", occupied(model, &interconnect.used().interfaces));
        row("utilization of the directories in %", occupied(model, &interconnect.used().directories));
    }
    table
}

/// The same execution on different numbers of processors: throughput, cycles per instruction, and the use of the bus.
pub fn scaling(models: &[Multiprocessor]) -> Table {
    let has_units = models.iter().any(|model| model.processors().any(|processor| processor.units > 0));
    let rate = if has_units { "units per second" } else { "million instructions per second" };
    let mut table = Table::new(
        "scaling",
        "The same execution on different numbers of processors",
        &[
            ("processors", Kind::Count),
            ("time in ms", Kind::Real(3)),
            (rate, Kind::Real(1)),
            ("speed-up", Kind::Real(2)),
            ("CPI", Kind::Real(3)),
            ("memory", Kind::Real(3)),
            ("other caches", Kind::Real(3)),
            ("idle", Kind::Percent(1)),
            ("address bus", Kind::Percent(1)),
            ("data bus", Kind::Percent(1)),
            ("memory latency ns", Kind::Real(1)),
            ("dirty misses", Kind::Percent(1)),
        ],
    );
    let has_nodes = models.iter().any(|model| model.interconnect().is_some());
    if has_nodes {
        let per_unit = if has_units { "operations per unit" } else { "operations per 1,000 instructions" };
        let columns = [
            ("nodes", Kind::Count),
            ("other nodes", Kind::Real(3)),
            (per_unit, Kind::Real(1)),
            ("operations per second", Kind::Count),
            ("interfaces", Kind::Percent(1)),
        ];
        table.columns.extend(columns.map(|(name, kind)| Column { name: name.into(), kind }));
    }
    let first = models.first().map_or(0, Multiprocessor::elapsed) as f64;
    for model in models {
        let elapsed = model.elapsed() as f64;
        let sum = |of: fn(&ProcessorCounts) -> u64| model.processors().map(of).sum::<u64>() as f64;
        let (instructions, units) = (sum(|one| one.instructions), sum(|one| one.units));
        let cause = |cause: ProcessorCause| {
            model.processors().map(|processor| processor.time[cause as usize]).sum::<u64>() as f64
        };
        let (all, idle) = (sum(ProcessorCounts::whole), cause(ProcessorCause::Idle));
        let cpi = |time: f64| Value::from(time / model.cycle() as f64 / instructions);
        let of = |transaction: Transaction| transactions_of(model, transaction);
        let memory = of(Transaction::Memory);
        let dirty = of(Transaction::Transfer).count + of(Transaction::TransferAndUpdate).count;
        let mut row = vec![
            (model.processors().len() as u64).into(),
            (elapsed / 1e9).into(),
            Value::from(if has_units { units / (elapsed / 1e12) } else { instructions / (elapsed / 1e6) }),
            (first / elapsed).into(),
            cpi(all - idle),
            cpi(cause(ProcessorCause::Memory)),
            cpi(cause(ProcessorCause::Transfer)),
            Value::from(100.0 * idle / all),
            utilization(model, |used| used.address).into(),
            utilization(model, |used| used.data).into(),
            Value::from(memory.latency as f64 / 1000.0 / memory.count as f64),
            Value::from(100.0 * dirty as f64 / (dirty + memory.count) as f64),
        ];
        if let Some(interconnect) = model.interconnect() {
            let operations = exchanged(model) as f64;
            let whole = if has_units { units } else { instructions / 1000.0 };
            row.extend([
                (interconnect.used().interfaces.len() as u64).into(),
                cpi(cause(ProcessorCause::Remote)),
                Value::from(operations / whole),
                ((operations / (elapsed / 1e12)).round() as u64).into(),
                occupied(model, &interconnect.used().interfaces).into(),
            ]);
        }
        table.row(row);
    }
    if has_nodes {
        table.notes.push(
            "operations: on the interconnect; interfaces: the part of the time in which nodes sent them."
                .into(),
        );
    }
    table.notes.push(
        "address bus, data bus: the part of the time in which they were occupied; dirty misses: lines that another cache supplied."
            .into(),
    );
    table
}
