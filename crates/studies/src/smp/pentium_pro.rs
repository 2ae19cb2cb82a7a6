//! The quad Pentium Pro: its cores and its bus execute the database.

use machine::{Cause, OutOfOrderCounts, PipelineSide, TimingModel};

use super::machines::{self, L2_SIZES, MachineVariant, PROCESSORS, SPEEDS};
use super::measured::{self, BusJob, BusMeasured, in_parallel};
use super::workloads::RecordedWorkload;
use crate::database::StudyProgress;
use crate::error::Error;

/// A simulation of cores, each with a process of the server.
#[derive(Clone, Debug)]
struct CoreJob {
    l2: &'static str,
    speed: usize,
    /// The lines of data from memory that can be outstanding.
    outstanding: u32,
}

impl CoreJob {
    fn variant(&self) -> MachineVariant {
        let variant = machines::core(self.l2, SPEEDS[self.speed]);
        match self.outstanding {
            OUTSTANDING => variant,
            other => variant.with("out_of_order.loads.outstanding_memory", other),
        }
    }
}

/// A configuration of processors on a bus.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BusConfiguration {
    pub(super) l2: &'static str,
    pub(super) speed: usize,
    pub(super) processors: u32,
    pub(super) outstanding: u32,
    pub(super) protocol: &'static str,
}

/// The transactions that a Pentium Pro can have outstanding.
const OUTSTANDING: u32 = 4;
/// The base system: 1 MB, the fastest memory, four processors, MESI.
pub(super) const BASE: BusConfiguration =
    BusConfiguration { l2: "1M", speed: 0, processors: 4, outstanding: OUTSTANDING, protocol: "mesi" };
/// The configuration with which the study compared numbers of outstanding requests.
pub(super) const ALONE: BusConfiguration = BusConfiguration { l2: "256K", processors: 1, ..BASE };

/// What the cores of a configuration counted, per instruction.
#[derive(Clone, Debug)]
pub(super) struct CoreMeasured {
    pub(super) instructions: f64,
    pub(super) cycles: f64,
    pub(super) counts: OutOfOrderCounts,
    /// Cycles in which this number of instructions retired.
    pub(super) retired: [u64; 4],
    pub(super) branches: u64,
    pub(super) mispredicted: u64,
    pub(super) not_overlapped: NotOverlapped,
    /// Misses of the TLB of instructions in 1,000 instructions.
    pub(super) itlb_misses: f64,
    /// Cycles of an instruction without lines from memory.
    without_memory: f64,
}

/// Components of cycles per instruction if nothing overlapped.
#[derive(Clone, Debug)]
pub(super) struct NotOverlapped {
    pub(super) computation: f64,
    pub(super) resources: f64,
    pub(super) mispredictions: f64,
    /// Instructions from L2 and from memory, then data.
    pub(super) instructions: [f64; 2],
    pub(super) data: [f64; 2],
    /// Instructions, data.
    pub(super) translations: [f64; 2],
}

impl NotOverlapped {
    /// What the study calls instruction-related stalls.
    pub(super) fn instruction_stalls(&self) -> f64 {
        self.instructions.iter().sum::<f64>() + self.translations[0]
    }

    /// All components.
    pub(super) fn total(&self) -> f64 {
        let misses: f64 = self.instructions.iter().chain(&self.data).chain(&self.translations).sum();
        self.computation + self.resources + self.mispredictions + misses
    }
}

impl CoreMeasured {
    fn new(time: &TimingModel, variant: &MachineVariant) -> CoreMeasured {
        let (cycles, machine) = (time.cycles(), variant.machine());
        let instructions = cycles.instructions() as f64;
        let itlb = machine.translation_buffers.iter().find(|buffer| buffer.holds.has(true));
        let counts = time.out_of_order().expect("the core is out of order");
        let sum = time.non_overlapped().expect("the core is out of order");
        let predictions = time.predictions();
        let kinds = [predictions.branches, predictions.jumps, predictions.returns];
        let per = |cycles: u64| cycles as f64 / instructions;
        let levels = |served: &[(u64, u64)]| {
            [0, 1].map(|level| served.get(level).map_or(0.0, |&(number, each)| per(number * each)))
        };
        CoreMeasured {
            instructions,
            cycles: cycles.total() as f64,
            retired: [
                cycles.total() - cycles.of_side(PipelineSide::Issuing),
                cycles.of(Cause::Issued(1)),
                cycles.of(Cause::Issued(2)),
                cycles.of(Cause::Issued(3)),
            ],
            branches: kinds.iter().map(|kind| kind.executed).sum(),
            mispredicted: kinds.iter().map(|kind| kind.mispredicted).sum(),
            not_overlapped: NotOverlapped {
                computation: per(sum.computation),
                resources: per(sum.resources),
                mispredictions: per(sum.branches.0 * sum.branches.1),
                instructions: levels(&sum.instructions),
                data: levels(&sum.data),
                translations: sum.translations.map(per),
            },
            itlb_misses: itlb.map_or(0.0, |itlb| 1000.0 * per(sum.translations[0]) / itlb.miss_cycles),
            without_memory: measured::cycles_without_memory(time, &machine),
            counts,
        }
    }

    /// Cycles per instruction.
    pub(super) fn cpi(&self) -> f64 {
        self.cycles / self.instructions
    }

    /// Instructions that were dispatched, on all paths, for each that retired.
    pub(super) fn speculation(&self) -> f64 {
        let dispatched = (0u64..).zip(&self.counts.dispatched).map(|(number, cycles)| number * cycles);
        dispatched.sum::<u64>() as f64 / self.instructions
    }

    /// What the study computes from its counters: computation, full resources and instruction-related stalls.
    pub(super) fn computed(&self) -> f64 {
        let parts = &self.not_overlapped;
        parts.computation + parts.resources + parts.instruction_stalls()
    }
}

/// Everything that was found about the Pentium Pro.
pub(super) struct PentiumProResults {
    cores: Vec<(CoreJob, CoreMeasured)>,
    buses: Vec<(BusConfiguration, BusMeasured)>,
    /// What is simulated, and the command that has the same numbers.
    pub(super) commands: Vec<[String; 2]>,
}

impl PentiumProResults {
    /// Executes the database on all configurations.
    pub(super) fn measure(
        workload: &RecordedWorkload,
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<PentiumProResults, Error> {
        let jobs = core_jobs();
        let tell = |what: &str, number: usize, all: usize| {
            progress(StudyProgress::Doing(format!(
                "simulating {what} of Pentium Pros: {} of {all}",
                number + 1
            )));
        };
        let run = |job: &CoreJob| {
            let variant = job.variant();
            measured::cores(workload, &variant).map(|time| CoreMeasured::new(&time, &variant))
        };
        let cores = in_parallel(&jobs, run, |number| tell("cores", number, jobs.len()))?;
        let cores: Vec<_> = jobs.into_iter().zip(cores).collect();
        let mut results = PentiumProResults { cores, buses: Vec::new(), commands: Vec::new() };
        let configurations = bus_configurations();
        let jobs: Vec<BusJob> = configurations.iter().map(|one| results.bus_job(one)).collect();
        let buses = in_parallel(&jobs, |job| job.run(workload), |number| tell("buses", number, jobs.len()))?;
        results.commands = results.commands(workload, &configurations, &jobs);
        results.buses = configurations.into_iter().zip(buses).collect();
        Ok(results)
    }

    /// Processors that take as long for an instruction without the bus as the core does.
    fn bus_job(&self, configuration: &BusConfiguration) -> BusJob {
        let BusConfiguration { l2, speed, processors, outstanding, protocol } = *configuration;
        let cycles = self.core(l2, 0, OUTSTANDING).without_memory;
        let mut variant = machines::bus(l2, SPEEDS[speed], cycles);
        if outstanding != OUTSTANDING {
            variant = variant.with("coherence.processor.outstanding", outstanding);
        }
        if protocol != BASE.protocol {
            variant = variant.with("coherence.protocol", protocol);
        }
        BusJob { variant, processors }
    }

    fn commands(
        &self,
        workload: &RecordedWorkload,
        configurations: &[BusConfiguration],
        jobs: &[BusJob],
    ) -> Vec<[String; 2]> {
        let latency = |speed: usize| SPEEDS[speed].latency_ns;
        let cores = self.cores.iter().map(|(job, _)| {
            let CoreJob { l2, speed, outstanding } = *job;
            let what = format!("cores, {l2}, {} ns, {outstanding} outstanding", latency(speed));
            [what, measured::cores_command(workload, &job.variant())]
        });
        let buses = configurations.iter().zip(jobs).map(|(one, job)| {
            let BusConfiguration { l2, speed, processors, outstanding, protocol } = *one;
            let what = format!(
                "bus, {processors} processors, {l2}, {} ns, {outstanding} outstanding, {protocol}",
                latency(speed)
            );
            [what, job.command(workload)]
        });
        cores.chain(buses).collect()
    }

    /// The cores with a second-level cache, a speed of memory, and a number of outstanding lines.
    pub(super) fn core(&self, l2: &str, speed: usize, outstanding: u32) -> &CoreMeasured {
        let is_it = |job: &CoreJob| job.l2 == l2 && job.speed == speed && job.outstanding == outstanding;
        let found = self.cores.iter().find(|(job, _)| is_it(job));
        &found.expect("it was simulated").1
    }

    /// The base system's cores.
    pub(super) fn base_core(&self) -> &CoreMeasured {
        self.core(BASE.l2, BASE.speed, BASE.outstanding)
    }

    /// A configuration on its bus.
    pub(super) fn bus(&self, configuration: &BusConfiguration) -> &BusMeasured {
        let found = self.buses.iter().find(|(one, _)| one == configuration);
        &found.expect("it was simulated").1
    }
}

/// The cores of the tables: every size, and the smallest and the largest with each speed of memory.
fn core_jobs() -> Vec<CoreJob> {
    let mut jobs: Vec<CoreJob> = L2_SIZES.map(|l2| CoreJob { l2, speed: 0, outstanding: OUTSTANDING }).into();
    for l2 in FIGURES {
        jobs.extend((1..SPEEDS.len()).map(|speed| CoreJob { l2, speed, outstanding: OUTSTANDING }));
    }
    jobs.push(CoreJob { l2: ALONE.l2, speed: 0, outstanding: 1 });
    jobs
}

/// The sizes of Figures 2 and 3.
pub(super) const FIGURES: [&str; 2] = ["256K", "1M"];

/// The buses of the tables.
fn bus_configurations() -> Vec<BusConfiguration> {
    let sizes = L2_SIZES.into_iter().flat_map(|l2| PROCESSORS.map(|processors| (l2, processors)));
    let mut all: Vec<_> = sizes.map(|(l2, processors)| BusConfiguration { l2, processors, ..BASE }).collect();
    all.extend((1..SPEEDS.len()).map(|speed| BusConfiguration { speed, ..BASE }));
    all.push(BusConfiguration { outstanding: 1, ..ALONE });
    all.push(BusConfiguration { protocol: "msi", ..BASE });
    all
}
