//! The paper's three schemes, each a build on a machine, and the time of a transaction in them.

use engine::{Configuration, Plan, UnitPlan};
use machine::{Cause, Cycles, Demand, Machine, Storage, TimingModel, WarmUp};
use serde::{Deserialize, Serialize};
use table::{Kind, Table, Value};

use super::{BytewordSetting, Error, ModeResult, Study, StudyRun};
use session::live;

/// A build, and how it is executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    /// Its name, as the paper has it.
    pub name: &'static str,
    /// The build: 0 is the original one, 1 the one with byte and word instructions.
    pub build: usize,
    /// The machine, by its name.
    pub machine: &'static str,
    /// Transactions a second in 1997.
    pub measured: f64,
}

/// The machine that has byte and word instructions.
const WITH: &str = "alphastation500";
/// The one that traps to a system that emulates them.
const WITHOUT: &str = "alphastation500-ev5";

/// The paper's schemes, with the throughputs that it measured in cached mode.
pub const SCHEMES: [Scheme; 3] = [
    Scheme { name: "original", build: 0, machine: WITH, measured: 444.0 },
    Scheme { name: "byte/word", build: 1, machine: WITH, measured: 460.0 },
    Scheme { name: "emulation", build: 1, machine: WITHOUT, measured: 116.0 },
];

/// The time to emulate an instruction in microseconds, with its source: the least and the greatest figure in the text
/// of the paper, and the figure implied by its measured throughputs: a transaction took 6.4 milliseconds more under emulation,
/// for 2.7 % of 106,521 instructions.
const EMULATION: [(f64, &str); 3] = [(5.0, "5 \u{b5}s"), (7.0, "7 \u{b5}s"), (2.3, IMPLIED)];
const IMPLIED: &str = "2.3 \u{b5}s";

/// Warm-up transactions, which are simulated before the measured ones.
const WARMING: u64 = 250;

/// The ratio of scaled to cached throughput in the paper's experience.
const SHARE: f64 = 0.8;

/// The time of the measured transactions in one scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemeTime {
    /// Transactions.
    pub units: u64,
    /// Instructions, of all of them.
    pub instructions: u64,
    /// Cycles of all of them by cause; without emulation.
    pub causes: Vec<(Cause, u64)>,
    /// Instructions that are emulated.
    pub emulated: u64,
}

impl Scheme {
    /// The service demand of a scaled transaction in 1997: the processor time of a cached one, and, according to the paper,
    /// a read, a write, and a write to the log.
    fn demand(&self) -> Demand {
        Demand { processor: 1.0 / self.measured, reads: 1.0, writes: 1.0, log_writes: 1.0 }
    }
}

impl SchemeTime {
    fn new(machine: &Machine, time: &TimingModel) -> SchemeTime {
        let (units, mut instructions, mut all) = (time.units(), 0, Cycles::default());
        for unit in &units {
            instructions += unit.instructions;
            all.add(&unit.cycles);
        }
        let cost =
            machine.emulation.as_ref().map_or(0.0, |one| one.microseconds * machine.processor.clock_mhz);
        let emulated = all.of(Cause::Emulation).checked_div(cost.round() as u64).unwrap_or(0);
        let causes = all.iter().filter(|(cause, _)| *cause != Cause::Emulation).collect();
        SchemeTime { units: units.len() as u64, instructions, causes, emulated }
    }

    /// Cycles of a transaction if each emulated instruction takes this number of cycles.
    fn cycles(&self, emulation: f64) -> f64 {
        let cycles: u64 = self.causes.iter().map(|(_, cycles)| cycles).sum();
        (cycles as f64 + self.emulated as f64 * emulation) / self.units as f64
    }

    fn each(&self, sum: u64) -> f64 {
        sum as f64 / self.units as f64
    }
}

impl BytewordSetting<'_> {
    /// Times the measured transactions in all schemes.
    pub(super) fn time(&self, runs: &[StudyRun; 2]) -> Result<[SchemeTime; 3], Error> {
        let time = |configuration: Configuration, build: usize, _: &mut (dyn FnMut(()) + Send)| {
            let units = &runs[build].measurement.units;
            let first = units.first().map_or(0, |unit| unit.number);
            let skip = first.saturating_sub(WARMING);
            let unit = UnitPlan {
                function: self.database.workload.unit.into(),
                skip,
                units: Some(first - skip + units.len() as u64),
            };
            let machines: Vec<Machine> = SCHEMES
                .iter()
                .filter(|scheme| scheme.build == build)
                .map(|scheme| machine(scheme.machine))
                .collect();
            let times = machines.iter().map(TimingModel::new).collect::<Result<Vec<TimingModel>, _>>();
            let times = times.map_err(|error| error.to_string())?;
            let plan = Plan { unit: Some(unit), ..Plan::default() };
            let times = WarmUp::new(times, skip..first);
            let live = live::run(&configuration, &plan, times, false).map_err(|error| error.to_string())?;
            let both = machines.iter().zip(&live.model.model);
            Ok::<_, String>(both.map(|(machine, time)| SchemeTime::new(machine, time)).collect::<Vec<_>>())
        };
        let [original, byte_word] = self.both(time, &mut |()| {})?.map(|(times, _)| times);
        let times: Vec<SchemeTime> = original.into_iter().chain(byte_word).collect();
        Ok(times.try_into().unwrap_or_else(|_| unreachable!("each scheme has a time")))
    }
}

/// A machine that comes with the crate.
fn machine(name: &str) -> Machine {
    Machine::find(name).expect("the machine comes with the crate")
}

/// The rows of a mode: the scheme's name, its build, its time, and the cycles of an emulated instruction.
fn rows(result: &ModeResult) -> Vec<(String, usize, &SchemeTime, f64)> {
    let mut rows = Vec::new();
    for (scheme, time) in SCHEMES.iter().zip(&result.times) {
        if time.emulated == 0 {
            rows.push((scheme.name.to_string(), scheme.build, time, 0.0));
            continue;
        }
        let clock = machine(scheme.machine).processor.clock_mhz;
        let named = |(cost, name)| (format!("{}, {name}", scheme.name), scheme.build, time, cost * clock);
        rows.extend(EMULATION.map(named));
    }
    rows
}

/// By how many percent something changed.
fn change(before: f64, now: f64) -> Value {
    Value::from(100.0 * (now / before - 1.0))
}

/// The paper's result and ours: transactions a second in each scheme, limited by the processor alone.
pub(crate) fn throughput(study: &Study) -> Table {
    let columns = [
        ("study", Kind::Text),
        ("mode", Kind::Text),
        ("scheme", Kind::Text),
        ("instructions", Kind::Count),
        ("cycles", Kind::Count),
        ("cycles per instruction", Kind::Real(2)),
        ("transactions a second", Kind::Real(0)),
        ("% change", Kind::Change(1)),
    ];
    let mut table = Table::new("schemes", "Transactions a second in the three schemes", &columns);
    for scheme in SCHEMES {
        let missing = [Value::Missing, Value::Missing, Value::Missing];
        let words = ["1997, SQL Server".into(), "cached".into(), scheme.name.into()];
        let numbers = [scheme.measured.into(), change(SCHEMES[0].measured, scheme.measured)];
        table.row(words.into_iter().chain(missing).chain(numbers).collect());
    }
    let clock = machine(WITH).processor.clock_mhz * 1e6;
    for result in &study.modes {
        let rows = rows(result);
        let first = rows[0].2.cycles(0.0);
        for (name, _, time, emulation) in rows {
            let (instructions, cycles) = (time.each(time.instructions), time.cycles(emulation));
            table.row(vec![
                "today, SQLite".into(),
                result.mode.name.into(),
                name.into(),
                (instructions.round() as u64).into(),
                (cycles.round() as u64).into(),
                (cycles / instructions).into(),
                (clock / cycles).into(),
                change(1.0 / first, 1.0 / cycles),
            ]);
        }
    }
    table.notes.extend([
        format!("A processor that does nothing else: {}.", machine(WITH).title),
        "Emulated instructions at the costs that the paper states (5 to 7 \u{b5}s) and implies (2.3 \u{b5}s).".into(),
        "1997's transactions include the operating system's work; today's are the database's own instructions."
            .into(),
    ]);
    table
}

/// The service demand of a transaction: reads and appends from its system calls, writes from the checkpoints between
/// transactions.
fn demand(run: &StudyRun, transactions: u32, seconds: f64) -> Demand {
    let set = run.counted.counts.instruction_set();
    let count = |calls: &mut dyn Iterator<Item = &(u32, u64)>, name: &str| -> f64 {
        let named = calls.filter(|call| engine::system_call_name(set, call.0) == name);
        named.map(|call| call.1).sum::<u64>() as f64
    };
    let units = &run.measurement.units;
    let unit = |name| count(&mut units.iter().flat_map(|unit| &unit.system_calls), name) / units.len() as f64;
    let all = |name| count(&mut run.counted.counts.system_calls.iter(), name);
    let writes = (all("pwrite64") / f64::from(transactions) - unit("pwrite64")).max(0.0);
    Demand { processor: seconds, reads: unit("pread64"), writes, log_writes: unit("fsync") }
}

/// Scaled throughput: the processor and the disks together. 1997's transactions are put through the model, too.
pub(crate) fn disks(study: &Study) -> Option<Table> {
    let result = study.modes.iter().find(|result| result.mode.name == "scaled")?;
    let machine = machine(WITH);
    let storage = machine.storage.as_ref()?;
    let columns = [
        ("study", Kind::Text),
        ("scheme", Kind::Text),
        ("disks", Kind::Count),
        ("reads", Kind::Real(2)),
        ("writes", Kind::Real(2)),
        ("log writes", Kind::Real(2)),
        ("transactions a second", Kind::Real(0)),
        ("% change", Kind::Change(1)),
        ("processor busy", Kind::Percent(0)),
        ("busiest disk busy", Kind::Percent(0)),
    ];
    let title = "Scaled transactions a second, with disks";
    let mut table = Table::new("scaled-throughput", title, &columns);
    let hertz = machine.processor.clock_mhz * 1e6;
    let today = rows(result).into_iter().map(|(name, build, time, emulation)| {
        let seconds = time.cycles(emulation) / hertz;
        (name, demand(&result.runs[build], result.mode.transactions, seconds))
    });
    add_disks(
        &mut table,
        "1997, SQL Server",
        storage,
        &SCHEMES.map(|scheme| (scheme.name.into(), scheme.demand())),
    );
    add_disks(&mut table, "today, SQLite", storage, &today.collect::<Vec<_>>());
    let Storage { transactions_per_disk, read_ms, write_ms, log_write_ms, .. } = storage;
    table.notes.extend([
        format!(
            "A model: {transactions_per_disk} transactions under way for each disk, each waiting for its own reads \
             and writes; {read_ms} ms a read, {write_ms} a write, {log_write_ms} an append to the log."
        ),
        "With the disk of the paper's machine, and with as many as let the original build reach 80 % of its cached \
         throughput, which is what the paper expects of a scaled system."
            .into(),
    ]);
    Some(table)
}

/// Adds rows: with the machine's own disks, and with enough of them.
fn add_disks(table: &mut Table, study: &str, storage: &Storage, demands: &[(String, Demand)]) {
    let (_, original) = &demands[0];
    for disks in [Some(storage.disks), storage.disks_for(original, SHARE)].into_iter().flatten() {
        let storage = Storage { disks, ..storage.clone() };
        let first = storage.throughput(original).per_second;
        for (name, demand) in demands {
            let now = storage.throughput(demand);
            table.row(vec![
                study.into(),
                name.clone().into(),
                u64::from(disks).into(),
                demand.reads.into(),
                demand.writes.into(),
                demand.log_writes.into(),
                now.per_second.into(),
                change(first, now.per_second),
                (100.0 * now.processor).into(),
                (100.0 * now.disk).into(),
            ]);
        }
    }
}

/// The cycles of a transaction by cause in each scheme.
pub(crate) fn causes(study: &Study) -> Table {
    let (names, times): (Vec<String>, Vec<&SchemeTime>) = timed(study).unzip();
    let mut columns = vec![("spent for", Kind::Text)];
    columns.extend(names.iter().map(|name| (name.as_str(), Kind::Real(0))));
    let mut table = Table::new("cycles", "Cycles of a transaction by cause", &columns);
    let machine = machine(WITH);
    for cause in Cause::all() {
        let of = |time: &SchemeTime| {
            time.causes.iter().find(|(one, _)| *one == cause).map_or(0, |(_, cycles)| *cycles)
        };
        if times.iter().all(|time| of(time) == 0) {
            continue;
        }
        let name = analysis::models::describe(cause, &machine).into();
        let values = times.iter().map(|time| Value::from(time.each(of(time))));
        table.row(std::iter::once(name).chain(values).collect());
    }
    let totals = times.iter().map(|time| Value::from(time.cycles(0.0)));
    table.total_row(std::iter::once("total".into()).chain(totals).collect());
    table
}

/// The causes of cycles in a chart.
pub(crate) const KINDS: [&str; 8] = [
    "1 instruction issued",
    "2 instructions issued",
    "3 or 4 instructions issued",
    "operands and units awaited",
    "branches",
    "instructions missing",
    "data missing",
    "other",
];

/// Which of [`KINDS`] a cause belongs to.
pub(crate) fn kind(cause: Cause) -> usize {
    match cause {
        Cause::Issued(1) => 0,
        Cause::Issued(2) => 1,
        Cause::Issued(_) => 2,
        Cause::Operand | Cause::Unit => 3,
        Cause::TakenBranch | Cause::Mispredict => 4,
        Cause::InstructionMiss(_) | Cause::InstructionTranslation => 5,
        Cause::DataMiss(_) | Cause::DataTranslation | Cause::OutstandingMisses => 6,
        _ => 7,
    }
}

/// Every mode and scheme whose cycles do not depend on a cost of emulation.
fn timed(study: &Study) -> impl Iterator<Item = (String, &SchemeTime)> {
    study.modes.iter().flat_map(|result| {
        let both = SCHEMES.iter().zip(&result.times).filter(|(_, time)| time.emulated == 0);
        both.map(|(scheme, time)| (format!("{}, {}", result.mode.name, scheme.name), time))
    })
}

/// The cycles of a transaction in a few kinds, for a chart.
pub(crate) fn allocation(study: &Study) -> Table {
    let mut columns = vec![("run", Kind::Text)];
    columns.extend(KINDS.map(|name| (name, Kind::Real(0))));
    let mut table = Table::new("cycles-by-kind", "Cycles of a transaction", &columns);
    for (name, time) in timed(study) {
        let mut sums = [0; KINDS.len()];
        time.causes.iter().for_each(|&(cause, cycles)| sums[kind(cause)] += cycles);
        let values = sums.map(|sum| Value::from(time.each(sum)));
        table.row(std::iter::once(name.into()).chain(values).collect());
    }
    table
}

/// Throughputs as shares of the original build's, for a chart.
pub(crate) fn relative(study: &Study) -> Table {
    let mut columns =
        vec![("scheme".to_string(), Kind::Text), ("1997, cached".to_string(), Kind::Percent(1))];
    columns
        .extend(study.modes.iter().map(|result| (format!("today, {}", result.mode.name), Kind::Percent(1))));
    let columns: Vec<(&str, Kind)> = columns.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let mut table = Table::new("relative-throughput", "Transactions a second, relative", &columns);
    for (number, (name, ..)) in rows(&study.modes[0]).iter().enumerate() {
        let mut row = vec![name.clone().into()];
        // The measured emulation is in the row of the cost that it implies.
        let is_measured = |scheme: &&Scheme| {
            name == scheme.name || name.ends_with(IMPLIED) && name.starts_with(scheme.name)
        };
        let measured = SCHEMES.iter().find(is_measured).map(|scheme| scheme.measured);
        row.push(measured.map_or(Value::Missing, |measured| (100.0 * measured / SCHEMES[0].measured).into()));
        for result in &study.modes {
            let rows = rows(result);
            let first = rows[0].2.cycles(0.0);
            let (.., time, emulation) = &rows[number];
            row.push((100.0 * first / time.cycles(*emulation)).into());
        }
        table.row(row);
    }
    table
}
