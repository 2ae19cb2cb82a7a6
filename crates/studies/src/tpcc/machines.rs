//! The transactions on machines: their misses and cycles, and how many a machine executes in a second, relative to the original build.

use std::path::Path;

use analysis::models::{SummedOverProcesses, WithClasses, class_sums};
use engine::{Configuration, Plan};
use machine::{Caches, Machine, PerProcess, TimingModel};
use serde::{Deserialize, Serialize};
use table::{Column, Kind, Table, Value};

use super::{CLASSES, DatabaseSystem, TpccStudySettings, class_name};
use crate::models::Models;
use session::measure::Ending;
use session::process_tree;

/// The machines on which transactions are simulated unless others are named: two of the nineties, of which one was measured with
/// TPC-C, and one of today.
pub(super) const MACHINES: [&str; 3] = ["alphastation500", STUDIED_IN_1998, "present-day-core"];

/// The machine of a study of 1998, which is shown beside.
const STUDIED_IN_1998: &str = "pentium-pro-core";
const FIGURES_OF_1998: &str = "In 1998 K. Keeton and others measured a TPC-C-like workload on Informix and four such processors (Tables 3 and 5): the \
    database took 2.52 cycles an instruction with 1 MB of L2, 2.89 with 512 KB, 3.41 with 256 KB; of the 2.52, 0.97 were computation, 0.45 \
    resource stalls, 1.13 stalls for instructions. Instructions were x86's, which take more work each than the Alpha's here.";

/// How many transactions are simulated: models take some thirty times as long as counts, and a server's log and locks are executed, too.
/// Each terminal draws from a deck of 23 cards, so that there are some of most kinds.
pub(super) fn simulated(system: DatabaseSystem, transactions: u32) -> u32 {
    const LEAST: u32 = 46;
    let share = match system {
        DatabaseSystem::Sqlite => 10,
        DatabaseSystem::Postgresql => 40,
    };
    (transactions / share).max(LEAST).min(transactions)
}

/// What a build's transactions cost on a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OnMachine {
    /// The names of caches and TLBs.
    structures: Vec<String>,
    /// The transactions that were executed, in the order of [`CLASSES`].
    transactions: Vec<SimulatedClass>,
}

/// The sums of a kind of transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SimulatedClass {
    name: String,
    units: u64,
    instructions: u64,
    cycles: u64,
    /// Of each cache and TLB.
    misses: Vec<u64>,
}

/// Runs the program with models of the machines, all of which have a timing model, of what the plan says, and divides what they find among the classes of units of work.
pub(super) fn observe(
    configuration: &Configuration,
    machines: &[(String, Machine)],
    plan: &Plan,
) -> Result<(Vec<OnMachine>, Option<Ending>), String> {
    let own = machines.to_vec();
    let models = PerProcess::merging(move || Models {
        caches: own.iter().map(|(_, machine)| Caches::new(machine)).collect(),
        times: own.iter().map(|(_, machine)| TimingModel::new(machine).expect("it was checked")).collect(),
    });
    let observed = process_tree::observe(configuration, plan, WithClasses::new(models), |_| ());
    let observed = observed.map_err(|error| error.to_string())?;
    let WithClasses { model, classes } = &observed.model;
    let on_machine = |index: usize| {
        let structures = names(&machines[index].1);
        let caches = SummedOverProcesses(model.all_models().map(|models| &models.caches[index]).collect());
        let times = SummedOverProcesses(model.all_models().map(|models| &models.times[index]).collect());
        let (misses, cycles) = (class_sums(&caches, classes), class_sums(&times, classes));
        let transaction = |(_, name): &(&str, &str)| {
            let misses = misses.iter().find(|class| class_name(class.name) == *name)?;
            let cycles = cycles.iter().find(|class| class.name == misses.name)?;
            Some(SimulatedClass {
                name: (*name).into(),
                units: misses.units,
                instructions: misses.row[0],
                cycles: cycles.row[0],
                // Lines that the caches moved follow.
                misses: misses.row[1..=structures.len()].to_vec(),
            })
        };
        let transactions = CLASSES.iter().filter_map(transaction).collect();
        OnMachine { structures, transactions }
    };
    Ok(((0..machines.len()).map(on_machine).collect(), observed.ending))
}

/// The names of a machine's caches and TLBs.
fn names(machine: &Machine) -> Vec<String> {
    let caches = machine.caches.iter().map(|cache| cache.name.clone());
    caches.chain(machine.translation_buffers.iter().map(|buffer| buffer.name.clone())).collect()
}

/// What both builds' transactions cost: a table for each machine, with a row for each transaction and build; and how many a machine
/// executes in a second.
pub(super) fn tables(
    settings: &TpccStudySettings,
    machines: &[(String, Machine)],
    builds: [&str; 2],
    simulated: &[Vec<OnMachine>; 2],
) -> Vec<Table> {
    let mut tables = vec![throughput(machines, builds, simulated)];
    for (index, machine) in machines.iter().enumerate() {
        tables.push(transactions(machine, builds, simulated.each_ref().map(|build| &build[index])));
    }
    let (last, all) = (settings.simulated(), settings.transactions);
    let note = format!(
        "The last {last} of {all} transactions are simulated: what the database keeps is there from the others, and caches and TLBs of the \
         machine begin empty."
    );
    tables.iter_mut().for_each(|table| table.notes.push(note.clone()));
    tables
}

fn throughput(machines: &[(String, Machine)], builds: [&str; 2], simulated: &[Vec<OnMachine>; 2]) -> Table {
    let columns = [
        ("machine", Kind::Text),
        ("build", Kind::Text),
        ("transactions", Kind::Count),
        ("cycles a transaction", Kind::Count),
        ("transactions a second", Kind::Real(1)),
        ("relative to the original", Kind::Real(3)),
    ];
    let mut table = Table::new("throughput", "Transactions of the mix that a machine executes", &columns);
    for (index, (_, machine)) in machines.iter().enumerate() {
        let mut base = None;
        for (build, of_build) in builds.iter().zip(simulated) {
            let transactions = &of_build[index].transactions;
            let units: u64 = transactions.iter().map(|one| one.units).sum();
            let cycles = transactions.iter().map(|one| one.cycles).sum::<u64>() as f64 / units as f64;
            let base = *base.get_or_insert(cycles);
            table.row(vec![
                machine.title.clone().into(),
                (*build).into(),
                units.into(),
                (cycles.round() as u64).into(),
                (hertz(machine) / cycles).into(),
                (base / cycles).into(),
            ]);
        }
    }
    table.notes.push(
        "The time of a processor that executes transactions only, one after another: nothing waits for terminals, disks or locks, and \
         what a server's other processes do is left out."
            .into(),
    );
    table
}

fn transactions((name, machine): &(String, Machine), builds: [&str; 2], simulated: [&OnMachine; 2]) -> Table {
    let columns = [
        ("transaction", Kind::Text),
        ("build", Kind::Text),
        ("transactions", Kind::Count),
        ("instructions", Kind::Count),
        ("cycles", Kind::Count),
        ("cycles per instruction", Kind::Real(2)),
        ("microseconds", Kind::Real(1)),
    ];
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    let (name, is_studied) = (format!("on-{stem}"), stem == STUDIED_IN_1998);
    let title = format!("Cycles and misses of a transaction: {}", machine.title);
    let mut table = Table::new(&name, title, &columns);
    table.notes.extend(is_studied.then(|| FIGURES_OF_1998.into()));
    let misses = simulated[0].structures.iter();
    table.columns.extend(misses.map(|one| Column { name: format!("{one} misses"), kind: Kind::Count }));
    for (_, name) in CLASSES {
        for (build, of_build) in builds.iter().zip(simulated) {
            let Some(one) = of_build.transactions.iter().find(|one| one.name == name) else { continue };
            let mean = |sum: u64| sum as f64 / one.units as f64;
            let count = |sum: &u64| Value::from(mean(*sum).round() as u64);
            let mut row = vec![name.into(), (*build).into(), one.units.into()];
            row.extend([&one.instructions, &one.cycles].map(count));
            row.push((one.cycles as f64 / one.instructions as f64).into());
            row.push((1e6 * mean(one.cycles) / hertz(machine)).into());
            row.extend(one.misses.iter().map(count));
            table.row(row);
        }
    }
    table
}

fn hertz(machine: &Machine) -> f64 {
    machine.processor.clock_mhz * 1e6
}
