//! The machines of the study on a trace of the server.

use std::convert::Infallible;

use analysis::models::{ExecutionPart, OwnRows};
use analysis::multiprocessor::{self, MultiprocessorReplay};
use analysis::replay::{Replay, ReplayOrder, Selection};
use analysis::sharing::{self, SharingAnalysis};
use machine::{Machine, MachineSetting, Multiprocessor, SharingClass, UnitWindow};
use table::{Table, Value};
use trace::Trace;
use trace::interleave::{Assignment, Schedule};

use super::benchmarks::NumaBenchmark;
use crate::tpcc::class_name;

/// The turns of processors, in instructions.
const QUANTUM: u64 = 100;

/// A half of the transactions warms up caches and is not counted.
const WARM_UP: u32 = 2;

/// The functions in which PostgreSQL's processes wait for each other, or wake each other up: how often depends on the order in which the
/// recording host executed them.
const WAITING: [&str; 16] = [
    "s_lock",
    "perform_spin_delay",
    "LWLockQueueSelf",
    "LWLockDequeueSelf",
    "LWLockWakeup",
    "LWLockWaitListLock",
    "LWLockWaitForVar",
    "LWLockAcquireOrWait",
    "PGSemaphoreLock",
    "PGSemaphoreUnlock",
    "ProcSleep",
    "ProcWakeup",
    "ProcLockWakeup",
    "DeadLockCheck",
    "WaitLatch",
    "SetLatch",
];

/// The recorded transactions of a server.
pub(super) struct ServerTrace {
    pub benchmark: NumaBenchmark,
    pub trace: Trace,
    pub transactions: u32,
}

impl ServerTrace {
    /// Transactions that warm up.
    fn warm_up(&self) -> u64 {
        u64::from(self.transactions / WARM_UP)
    }
}

/// A machine and how it is used.
#[derive(Clone, Debug)]
pub(super) struct NumaCase {
    pub machine: &'static str,
    /// Changes of the machine, as `--set` has them.
    pub settings: Vec<String>,
    pub clients: u32,
    pub processors: u32,
    pub assignment: Assignment,
}

/// What a transaction needs of the interconnect.
#[derive(Clone, Debug)]
pub(super) struct NumaResult {
    pub case: NumaCase,
    pub nodes: usize,
    pub transactions: f64,
    /// Chunks of the trace that could not be read: those of processes that recorded nothing but what they map.
    pub unread: usize,
    pub instructions: f64,
    /// By kind, of a transaction.
    pub operations: [f64; 7],
    /// Those of them in functions that wait.
    pub waiting: f64,
    /// By class of transactions: their number, and the operations of one of them.
    pub classes: Vec<(String, u64, f64)>,
    /// Requests of a transaction for lines of other nodes' memory that the far cache served, and those that it did not.
    pub far: [f64; 2],
    /// Misses of a transaction, by class.
    pub true_misses: f64,
    pub false_misses: f64,
    pub cold_misses: f64,
    /// Operations on the buses that would not occur if no two processors used different bytes of a line.
    pub avoidable: f64,
}

/// The same machine in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedResult {
    pub transactions_a_second: f64,
    pub operations_a_second: f64,
    /// The part of the processors' time that is not idle in which they wait for other nodes, in percent.
    pub waiting: f64,
    /// The use of the nodes' interfaces, in percent.
    pub interfaces: f64,
}

impl NumaCase {
    /// A short description.
    pub fn label(&self) -> String {
        let settings: String = self.settings.iter().map(|setting| format!(", {setting}")).collect();
        format!("{} with {} processors, {} clients{settings}", self.machine, self.processors, self.clients)
    }

    fn machine(&self) -> Result<Machine, String> {
        let settings: Vec<MachineSetting> =
            self.settings.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        Machine::find_with(self.machine, &settings).map_err(|error| error.to_string())
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            assignment: self.assignment,
            is_saturated: true,
            ..Schedule::new(self.processors, QUANTUM)
        }
    }
}

impl NumaResult {
    /// All operations of a transaction.
    pub fn all(&self) -> f64 {
        self.operations.iter().sum()
    }

    /// Those of the transaction that is compared: of its class, or of all if there are no classes.
    pub fn of_unit(&self, benchmark: NumaBenchmark) -> f64 {
        let class = self.classes.iter().find(|(name, ..)| name == benchmark.unit());
        class.map_or_else(|| self.all(), |(_, _, operations)| *operations)
    }
}

/// Simulates a machine on a trace; its first transactions warm it up.
pub(super) fn simulate(
    recorded: &ServerTrace,
    case: &NumaCase,
) -> Result<(NumaResult, SharingAnalysis), String> {
    let trace = &recorded.trace;
    let machine = case.machine()?;
    let coherence = machine.coherence.as_ref().ok_or("the machine has one processor")?;
    let objects = trace.mapped_objects().clone();
    let model = SharingAnalysis::new(&machine, coherence, case.processors, objects);
    let order = ReplayOrder::Interleaved(case.schedule());
    let window = UnitWindow { warm_up: recorded.warm_up(), ..UnitWindow::default() };
    let simulated = Replay::of_part(trace, &Selection::default(), order, |replay| {
        replay.run_model(model, window, &mut |_| Ok::<(), Infallible>(()))
    });
    let Ok((model, problems)) = simulated.map_err(|error| error.to_string())?;
    let mut model = model.model;
    model.end();
    let transactions = model.units() as f64;
    let per_transaction = |count: u64| count as f64 / transactions;
    let nodes = model.nodes().ok_or("the machine has no nodes")?;
    let counts = nodes.counts();
    let misses_of = |class: SharingClass| per_transaction(model.counts().misses_of(class));
    let result = NumaResult {
        case: case.clone(),
        nodes: nodes.nodes(),
        transactions,
        unread: problems.len(),
        instructions: per_transaction(model.instructions()),
        operations: counts.by_operation().map(per_transaction),
        waiting: waiting(&model, trace) / transactions,
        classes: classes_of(&model),
        far: [&counts.far_hits, &counts.far_misses].map(|counts| per_transaction(counts.iter().sum())),
        true_misses: misses_of(SharingClass::True),
        false_misses: misses_of(SharingClass::False),
        cold_misses: misses_of(SharingClass::Cold),
        avoidable: per_transaction(model.counts().needless()),
    };
    Ok((result, model))
}

/// Operations in functions that wait.
fn waiting(model: &SharingAnalysis, trace: &Trace) -> f64 {
    let functions = sharing::by_code(model, ExecutionPart::Whole, OwnRows::Function, trace);
    let rows = texts_and_counts(&functions, "function");
    rows.filter(|(name, _)| WAITING.contains(name)).map(|(_, count)| count).sum()
}

/// The classes of transactions, with their numbers and the operations of one of them.
fn classes_of(model: &SharingAnalysis) -> Vec<(String, u64, f64)> {
    let mut classes = Vec::new();
    for (name, part) in model.parts() {
        let units = model.units_of(part);
        if units > 0 && part != ExecutionPart::OutsideUnits {
            let operations = model.interconnect(part).iter().sum::<u64>() as f64;
            classes.push((class_name(&name).to_owned(), units, operations / units as f64));
        }
    }
    classes.sort_by(|a, b| a.0.cmp(&b.0));
    classes
}

/// The texts of a column, with the operations on the interconnect beside, without the row of totals.
pub(super) fn texts_and_counts<'a>(
    table: &'a Table,
    name: &str,
) -> impl Iterator<Item = (&'a str, f64)> + use<'a> {
    let column = |name: &str| table.columns.iter().position(|column| column.name == name);
    let columns = column(name).zip(column("interconnect"));
    let rows = &table.rows[..table.rows.len() - usize::from(table.total)];
    rows.iter().filter_map(move |row| match columns.map(|(name, count)| (&row[name], &row[count]))? {
        (Value::Text(name), Value::Integer(count)) => Some((name.as_str(), *count as f64)),
        _ => None,
    })
}

/// The same in time.
pub(super) fn simulate_in_time(recorded: &ServerTrace, case: &NumaCase) -> Result<TimedResult, String> {
    let machine = case.machine()?;
    let coherence = machine.coherence.as_ref().ok_or("the machine has one processor")?;
    let (bus, processor) =
        coherence.bus.as_ref().zip(coherence.processor.as_ref()).ok_or("the machine has no timed bus")?;
    let mut model = Multiprocessor::new(&machine, coherence, bus, processor, case.processors as usize);
    let whole =
        MultiprocessorReplay { schedule: case.schedule(), warm_up: recorded.warm_up(), selected: None };
    // What cannot be read was counted by the simulation without time.
    multiprocessor::replay(&recorded.trace, whole, |_| true, &mut model, &mut |_| {});
    let summary = multiprocessor::NodeUse::of(&model).ok_or("the machine has no nodes")?;
    Ok(TimedResult {
        transactions_a_second: summary.units_a_second,
        operations_a_second: summary.operations_a_second,
        waiting: summary.waiting,
        interfaces: summary.interfaces,
    })
}
