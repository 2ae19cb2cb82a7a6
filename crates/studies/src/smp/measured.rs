//! Models of machines that execute the recorded workloads, several at a time.

use std::convert::Infallible;

use analysis::multiprocessor::{self, MultiprocessorReplay};
use analysis::names::Names;
use analysis::replay::{Dictionary, Filter, Replay, ReplayOrder, Selection};
use machine::{
    Caches, Cause, CoherenceState, Machine, MergeableModel, Multiprocessor, PerProcess, ProcessorCause,
    ProcessorCounts, ProcessorRequest, Structure, TimingModel, Transaction, UnitWindow,
};
use rayon::prelude::*;
use trace::Chunk;
use trace::interleave::{Assignment, Schedule};

use super::machines::MachineVariant;
use super::workloads::RecordedWorkload;
use crate::error::Error;

/// Instructions of a turn of a processor, as the command's.
const QUANTUM: u64 = 100;

/// Does jobs on all of the host's processors. The results are in the order of the jobs; `begun` is called with the number of
/// each.
pub(super) fn in_parallel<J: Sync, R: Send>(
    jobs: &[J],
    run: impl Fn(&J) -> Result<R, Error> + Sync,
    begun: impl Fn(usize) + Sync,
) -> Result<Vec<R>, Error> {
    let run = |(number, job)| {
        begun(number);
        run(job)
    };
    jobs.par_iter().enumerate().with_max_len(1).map(run).collect()
}

/// What is simulated: all units, of which the first ones warm the machine up.
fn selection(workload: &RecordedWorkload) -> Selection {
    let first = workload.trace.first_unit().unwrap_or(0);
    Selection { units: Some(first..=u64::MAX), ..Selection::default() }
}

fn unreadable(workload: &RecordedWorkload, reason: impl ToString) -> Error {
    Error::Trace { path: workload.path.clone(), reason: reason.to_string() }
}

/// A model for each process, with a processor of its own, executes a workload; their counts are added up.
fn replay<M: MergeableModel + 'static>(
    workload: &RecordedWorkload,
    make: impl Fn() -> M + Send + 'static,
) -> Result<M, Error> {
    let window = UnitWindow { warm_up: workload.warm_up, ..UnitWindow::default() };
    let simulated = Replay::of_part(&workload.trace, &selection(workload), ReplayOrder::Time, |replay| {
        replay.run_model(PerProcess::merging(make), window, &mut |_| Ok::<(), Infallible>(()))
    });
    let Ok((model, problems)) = simulated.map_err(|error| unreadable(workload, error))?;
    if let Some(problem) = problems.first() {
        return Err(unreadable(workload, problem));
    }
    model.model.into_merged().ok_or_else(|| unreadable(workload, "it has no units of work"))
}

/// The cores of a machine execute a workload.
pub(super) fn cores(workload: &RecordedWorkload, variant: &MachineVariant) -> Result<TimingModel, Error> {
    let machine = variant.machine();
    replay(workload, move || TimingModel::new(&machine).expect("machines of the study have cores"))
}

/// The command that has the same numbers as [`cores`].
pub(super) fn cores_command(workload: &RecordedWorkload, variant: &MachineVariant) -> String {
    let path = workload.path.display();
    format!("pathlength time --children --warm-up {} {} {path}", workload.warm_up, variant.options())
}

/// The caches of a machine's processors observe a workload.
pub(super) fn caches(workload: &RecordedWorkload, variant: &MachineVariant) -> Result<CacheMisses, Error> {
    let machine = variant.machine();
    let caches = replay(workload, move || Caches::new(&machine))?;
    Ok(CacheMisses { instructions: caches.instructions(), structures: caches.structures() })
}

/// The misses of caches and TLBs.
pub(super) struct CacheMisses {
    instructions: u64,
    structures: Vec<Structure>,
}

impl CacheMisses {
    /// Misses of a cache or a TLB in 1,000 instructions.
    pub(super) fn per_thousand(&self, name: &str) -> f64 {
        let misses = self.structures.iter().find(|one| one.name == name).map_or(0, |one| one.misses);
        1000.0 * misses as f64 / self.instructions as f64
    }
}

/// Cycles of an instruction while nothing comes from memory: what a processor on a bus takes when it does not wait for it.
/// Barriers are the bus's, too.
pub(super) fn cycles_without_memory(time: &TimingModel, machine: &Machine) -> f64 {
    let level = |is_code: bool| machine.caches.iter().filter(|cache| cache.holds.has(is_code)).count() as u8;
    let cycles = time.cycles();
    let of_bus = [Cause::InstructionMiss(level(true)), Cause::DataMiss(level(false)), Cause::Barrier];
    let of_bus: u64 = of_bus.iter().map(|&cause| cycles.of(cause)).sum();
    (cycles.total() - of_bus) as f64 / cycles.instructions() as f64
}

/// A number of processors of a machine on their bus.
#[derive(Clone, Debug)]
pub(super) struct BusJob {
    pub(super) variant: MachineVariant,
    pub(super) processors: u32,
}

impl BusJob {
    /// They execute a workload.
    pub(super) fn run(&self, workload: &RecordedWorkload) -> Result<BusMeasured, Error> {
        let machine = self.variant.machine();
        let coherence = machine.coherence.as_ref().expect("machines of the study are coherent");
        let (Some(bus), Some(processor)) = (&coherence.bus, &coherence.processor) else {
            unreachable!("their buses are timed");
        };
        let mut model = Multiprocessor::new(&machine, coherence, bus, processor, self.processors as usize);
        let names = Names::of_trace(&workload.trace);
        let dictionary = Dictionary::new(&workload.trace, &names);
        let filter =
            Filter::new(&selection(workload), &dictionary).map_err(|error| unreadable(workload, error))?;
        let assignment = Assignment::RunToBlock;
        let schedule = Schedule { assignment, is_saturated: true, ..Schedule::new(self.processors, QUANTUM) };
        let part = MultiprocessorReplay { schedule, warm_up: workload.warm_up, selected: None };
        let is_wanted = |chunk: &Chunk| filter.chunk(chunk);
        let replayed = multiprocessor::replay(&workload.trace, part, is_wanted, &mut model, &mut |_| ());
        match replayed.errors.first() {
            Some(error) => Err(unreadable(workload, error)),
            None if replayed.is_warming => Err(unreadable(workload, "it has too few units of work")),
            None => Ok(BusMeasured(model)),
        }
    }

    /// The command that has the same numbers.
    pub(super) fn command(&self, workload: &RecordedWorkload) -> String {
        format!(
            "pathlength sharing --time --saturated --assign run-to-block --processors {} --warm-up {} {} {}",
            self.processors,
            workload.warm_up,
            self.variant.options(),
            workload.path.display()
        )
    }
}

/// What processors on a bus did.
pub(super) struct BusMeasured(pub(super) Multiprocessor);

impl BusMeasured {
    fn sum(&self, of: impl Fn(&ProcessorCounts) -> u64) -> f64 {
        self.0.processors().map(of).sum::<u64>() as f64
    }

    /// Instructions of all processors.
    pub(super) fn instructions(&self) -> f64 {
        self.sum(|one| one.instructions)
    }

    /// Instructions in a cycle of all processors, while all have something to execute. Transactions are of very different lengths,
    /// so that the number of them says less about the work, and processors wait for the last ones of the recording.
    pub(super) fn throughput(&self) -> f64 {
        self.0.processors().count() as f64 / self.cpi()
    }

    /// Cycles per instruction, without idle ones.
    pub(super) fn cpi(&self) -> f64 {
        self.sum(ProcessorCounts::whole) / self.0.cycle() as f64 / self.instructions()
            - self.cause(ProcessorCause::Idle)
    }

    /// Cycles per instruction of a cause.
    pub(super) fn cause(&self, cause: ProcessorCause) -> f64 {
        self.sum(|one| one.time[cause as usize]) / self.0.cycle() as f64 / self.instructions()
    }

    /// The share of the time in which processors had nothing to execute, in percent.
    pub(super) fn idle(&self) -> f64 {
        let idle = self.sum(|one| one.time[ProcessorCause::Idle as usize]);
        100.0 * idle / self.sum(ProcessorCounts::whole)
    }

    /// The share of the time in which the data lines of the bus were occupied, in percent.
    pub(super) fn utilization(&self) -> f64 {
        100.0 * self.0.buses()[0].used().data as f64 / self.0.elapsed() as f64
    }

    /// A number of events in 1,000 instructions.
    pub(super) fn in_thousand(&self, events: u64) -> f64 {
        1000.0 * events as f64 / self.instructions()
    }

    /// Operations on the bus in 1,000 instructions.
    pub(super) fn operations(&self) -> f64 {
        self.in_thousand(self.0.memory().counts().operations())
    }

    /// Requests to the caches at the bus that found their line in these states, in 1,000 instructions.
    pub(super) fn requests(&self, requests: &[ProcessorRequest], states: &[CoherenceState]) -> f64 {
        let found = &self.0.memory().counts().requests;
        let of_states =
            |&request: &ProcessorRequest| states.iter().map(move |&state| found.get(request, state));
        self.in_thousand(requests.iter().flat_map(of_states).sum())
    }

    /// Transactions of a kind.
    pub(super) fn transactions(&self, transaction: Transaction) -> f64 {
        self.0.buses()[0].used().transactions[transaction as usize].count as f64
    }

    /// Transactions of a kind in 1,000 instructions.
    pub(super) fn per_thousand(&self, transaction: Transaction) -> f64 {
        1000.0 * self.transactions(transaction) / self.instructions()
    }

    /// The mean latency of a line from memory, in processor cycles.
    pub(super) fn memory_latency(&self) -> f64 {
        let counts = self.0.buses()[0].used().transactions[Transaction::Memory as usize];
        counts.latency as f64 / self.0.cycle() as f64 / counts.count as f64
    }

    /// Lines that another cache supplied because its copy was dirty.
    pub(super) fn dirty_misses(&self) -> f64 {
        self.transactions(Transaction::Transfer) + self.transactions(Transaction::TransferAndUpdate)
    }

    /// The same, of all lines, in percent.
    pub(super) fn dirty_share(&self) -> f64 {
        100.0 * self.dirty_misses() / (self.dirty_misses() + self.transactions(Transaction::Memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_results_in_their_order() {
        let jobs: Vec<usize> = (0..100).collect();
        let done = in_parallel(&jobs, |&job| Ok(3 * job), |_| ()).unwrap();
        assert_eq!(done, jobs.iter().map(|job| 3 * job).collect::<Vec<_>>());
        let failed = |&job: &usize| match job {
            7 => Err(Error::Server("no".into())),
            job => Ok(job),
        };
        assert_eq!(in_parallel(&jobs, failed, |_| ()).unwrap_err().to_string(), "PostgreSQL: no");
    }
}
