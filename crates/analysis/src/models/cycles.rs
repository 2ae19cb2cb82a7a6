//! Cycles of pipelines.

use events::BlockId;
use machine::predictor::PredictionCount;
use machine::{Cause, Machine, PipelineSide, TimingModel, UnitCycles};

use super::sampled::sampled_times;
use super::{InstructionResults, SummedOverProcesses, UnitResults, file_stem, named, out_of_order};
use crate::units::sorted_by_number;
use table::{Column, Kind, Table, Value, separated};

/// Stalls, with DEC's words for them.
pub(super) const FRONT_END: &str = "front-end stall (dry)";
pub(super) const BACK_END: &str = "back-end stall (frozen)";

/// The time of machines, their cycles by cause, and their branch predictions; of samples, what they estimate.
pub fn times(machines: &[(&str, &Machine, SummedOverProcesses<TimingModel>)]) -> Vec<Table> {
    let sampled = machines.iter().map(|(name, machine, time)| Some((*name, *machine, time.sampled()?)));
    if let Some(sampled) = sampled.collect::<Option<Vec<_>>>() {
        return sampled_times(&sampled);
    }
    let mut tables = vec![summary(machines)];
    let both: Vec<_> = machines.iter().map(|(name, machine, time)| (*name, (*machine, time))).collect();
    let both: Vec<_> = both.iter().map(|(name, both)| (*name, both)).collect();
    tables.extend(named(&both, "cycles", "Cycles by cause on", |name, title, both| {
        causes(name, title, both.0, both.1)
    }));
    tables.extend(named(&both, "predictions", "Branch predictions on", |name, title, both| {
        predictions(name, title, both.1)
    }));
    let out_of_order: Vec<_> = both.into_iter().filter(|(_, both)| both.0.out_of_order.is_some()).collect();
    tables.extend(named(
        &out_of_order,
        "non-overlapped",
        "Cycles if nothing overlapped on",
        |name, title, both| out_of_order::non_overlapped(name, title, both.0, both.1),
    ));
    tables.extend(named(&out_of_order, "speculation", "Dispatch and wrong paths on", |name, title, both| {
        out_of_order::speculation(name, title, both.1)
    }));
    tables
}

/// The time of a machine in one row, which is not named; of a sample, what it estimates.
pub fn time_without_name(machine: &Machine, time: SummedOverProcesses<TimingModel>) -> Table {
    let mut table = times(&[("", machine, time)]).remove(0);
    table.columns.remove(0);
    table.rows.iter_mut().for_each(|row| drop(row.remove(0)));
    table
}

/// One row for each machine.
fn summary(machines: &[(&str, &Machine, SummedOverProcesses<TimingModel>)]) -> Table {
    let columns = [
        ("machine", Kind::Text),
        ("MHz", Kind::Real(0)),
        ("instructions", Kind::Count),
        ("cycles", Kind::Count),
        ("cycles per instruction", Kind::Real(2)),
        ("seconds", Kind::Real(4)),
        ("units", Kind::Count),
        ("instructions per unit", Kind::Real(1)),
        ("cycles per unit", Kind::Real(1)),
        ("units a second", Kind::Real(1)),
    ];
    let mut table = Table::new("time", "Time", &columns);
    for (name, machine, time) in machines {
        let cycles = time.cycles();
        let hertz = machine.processor.clock_mhz * 1e6;
        let units = time.units();
        let mean = |of: fn(&UnitCycles) -> u64| units.iter().map(of).sum::<u64>() as f64 / units.len() as f64;
        let (unit_instructions, unit_cycles) =
            (mean(|unit| unit.instructions), mean(|unit| unit.cycles.total()));
        let row = vec![
            file_stem(name).into(),
            machine.processor.clock_mhz.into(),
            cycles.instructions().into(),
            cycles.total().into(),
            ratio(cycles.total(), cycles.instructions()),
            (cycles.total() as f64 / hertz).into(),
            (units.len() as u64).into(),
            unit_instructions.into(),
            unit_cycles.into(),
            (hertz / unit_cycles).into(),
        ];
        table.row(row);
        table.notes.extend(emulation(&file_stem(name), machine, time.emulated()));
    }
    if machines.iter().all(|(_, _, time)| time.units().is_empty()) {
        let kept = table.columns.len() - 4;
        table.columns.truncate(kept);
        table.rows.iter_mut().for_each(|row| row.truncate(kept));
    }
    table
}

/// A note on emulated instructions, which the machine's processor lacks; None if there were none.
fn emulation(name: &str, machine: &Machine, emulated: u64) -> Option<String> {
    let (cpu, cost) = (machine.processor.cpu.as_ref()?, machine.emulation.as_ref()?);
    let (number, microseconds) = (separated(&emulated.to_string()), cost.microseconds);
    (emulated > 0).then(|| {
        format!(
            "{name}: {number} instructions that its processor lacks were emulated by the system, {microseconds} µs each; \
             a program compiled with -mcpu={cpu} has none."
        )
    })
}

/// The cycles of a machine by cause.
fn causes(name: &str, title: &str, machine: &Machine, time: &SummedOverProcesses<TimingModel>) -> Table {
    let columns = [
        ("side", Kind::Text),
        ("cause", Kind::Text),
        ("cycles", Kind::Count),
        ("share", Kind::Percent(1)),
        ("per instruction", Kind::Real(3)),
    ];
    let mut table = Table::new(name, title, &columns);
    let cycles = time.cycles();
    let (total, instructions) = (cycles.total(), cycles.instructions());
    let numbers = |count: u64| [count.into(), percent(count, total), ratio(count, instructions)];
    for (cause, count) in cycles.iter() {
        let words = [side(cause.side()).into(), describe(cause, machine).into()];
        table.row(words.into_iter().chain(numbers(count)).collect());
    }
    table.total_row(["total".into(), Value::Missing].into_iter().chain(numbers(total)).collect());
    table
}

/// The branch predictions of a machine.
fn predictions(name: &str, title: &str, time: &SummedOverProcesses<TimingModel>) -> Table {
    let columns = [
        ("kind", Kind::Text),
        ("executed", Kind::Count),
        ("mispredicted", Kind::Count),
        ("share", Kind::Percent(2)),
    ];
    let mut table = Table::new(name, title, &columns);
    let kinds = ["conditional branches", "jumps", "returns"];
    for (kind, PredictionCount { executed, mispredicted }) in kinds.into_iter().zip(time.predictions()) {
        table.row(vec![kind.into(), executed.into(), mispredicted.into(), percent(mispredicted, executed)]);
    }
    table
}

impl InstructionResults for TimingModel {
    const WHAT: &str = "Cycles";

    fn unit_results(&self) -> Vec<UnitResults> {
        let sides = [PipelineSide::Issuing, PipelineSide::FrontEnd, PipelineSide::BackEnd];
        let results = |unit: &UnitCycles| UnitResults {
            number: unit.number,
            thread: unit.thread,
            row: [unit.cycles.total(), unit.instructions]
                .into_iter()
                .chain(sides.map(|side| unit.cycles.of_side(side)))
                .collect(),
        };
        TimingModel::units(self).iter().map(results).collect()
    }

    fn units(&self, name: &str, title: &str) -> Table {
        let columns = [
            ("unit", Kind::Count),
            ("instructions", Kind::Count),
            ("cycles", Kind::Count),
            ("cycles per instruction", Kind::Real(2)),
            ("issuing", Kind::Count),
            (FRONT_END, Kind::Count),
            (BACK_END, Kind::Count),
        ];
        let mut table = Table::new(name, title, &columns);
        let units = TimingModel::units(self);
        for unit in sorted_by_number(&units, |unit| unit.number) {
            let cycles = &unit.cycles;
            let mut row = vec![
                unit.number.into(),
                unit.instructions.into(),
                cycles.total().into(),
                ratio(cycles.total(), unit.instructions),
            ];
            row.extend(
                [PipelineSide::Issuing, PipelineSide::FrontEnd, PipelineSide::BackEnd]
                    .map(|side| Value::from(cycles.of_side(side))),
            );
            table.row(row);
        }
        table
    }

    fn columns(&self) -> Vec<Column> {
        let headings = ["cycles", "instructions", "issuing", FRONT_END, BACK_END];
        headings.map(|name| Column { name: name.into(), kind: Kind::Count }).into()
    }

    fn weight(&self, row: &[u64]) -> u64 {
        row[0]
    }

    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>> {
        let sites = self.sites(block);
        let executions = self.executions(block);
        let row = |site: &machine::SiteCycles| {
            let all = site.issuing + site.front_end_stall + site.back_end_stall;
            vec![all, executions, site.issuing, site.front_end_stall, site.back_end_stall]
        };
        let rows: Vec<Vec<u64>> = sites.iter().map(row).collect();
        (executions > 0).then_some(rows)
    }
}

pub(super) fn side(side: PipelineSide) -> &'static str {
    match side {
        PipelineSide::Issuing => "issuing",
        PipelineSide::FrontEnd => FRONT_END,
        PipelineSide::BackEnd => BACK_END,
    }
}

/// A cause in words; levels have the names that the machine gives them.
pub fn describe(cause: Cause, machine: &Machine) -> String {
    let words = match cause {
        Cause::Issued(number) => {
            let what = if machine.out_of_order.is_some() { "retired" } else { "issued" };
            let plural = if number == 1 { "" } else { "s" };
            return format!("{number} instruction{plural} {what}");
        }
        Cause::TakenBranch => "taken branch",
        Cause::Mispredict => "misprediction",
        Cause::Misfetch => "target known when decoded",
        Cause::InstructionTranslation => "instruction TLB miss",
        Cause::InstructionMiss(depth) => {
            return format!("instructions from {}", machine.level_name(true, depth));
        }
        Cause::CallPal => "PALcode",
        Cause::Emulation => "emulated instruction",
        Cause::Operand if machine.out_of_order.is_some() => "execution latency",
        Cause::Operand => "operand not ready",
        Cause::Unit => "unit busy, or instructions not issued together",
        Cause::DataMiss(depth) => return format!("data from {}", machine.level_name(false, depth)),
        Cause::DataTranslation => "data TLB miss",
        Cause::OutstandingMisses => "too many outstanding misses",
        Cause::WriteBuffer => "write buffer full",
        Cause::Barrier => "memory barrier",
        Cause::Replay => "replay trap",
        Cause::Forwarding => "data of an older store",
    };
    words.into()
}

pub(super) fn ratio(part: u64, whole: u64) -> Value {
    Value::from(part as f64 / whole as f64)
}

pub(super) fn percent(part: u64, whole: u64) -> Value {
    Value::from(100.0 * part as f64 / whole as f64)
}
