//! Commercial and technical workloads on an AlphaServer 4100: issuing and stalls, misses, requests on the bus, and where the
//! time goes.

use machine::{Cause, Machine, PipelineSide, ProcessorCause, TimingModel, Transaction};
use table::{Kind, Table, Value};

use super::machines::MachineVariant;
use super::measured::{self, BusJob, BusMeasured, CacheMisses, in_parallel};
use super::table_forms::{commands_table, table_of};
use super::workloads::{RecordedWorkload, WorkloadKind};
use crate::database::StudyProgress;
use crate::error::Error;

/// The machine.
const MACHINE: &str = "alphaserver4100";
/// Its processors.
const PROCESSORS: u32 = 4;
/// The levels of caches beyond the first, as causes of stalls: 1 is the one after L1.
const SCACHE: u8 = 1;
const BCACHE: u8 = 2;

/// What was counted of a workload.
pub(super) struct WorkloadMeasured {
    pub(super) name: String,
    pub(super) kind: WorkloadKind,
    pub(super) cores: PipelineMeasured,
    pub(super) caches: CacheMisses,
    pub(super) bus: BusMeasured,
}

/// Cycles of pipelines, per instruction.
pub(super) struct PipelineMeasured {
    /// All of them.
    pub(super) cpi: f64,
    /// Those in which one, two, three and four instructions were issued.
    pub(super) issued: [f64; 4],
    /// Stalls of the front end and of the back end.
    pub(super) dry: f64,
    pub(super) frozen: f64,
    /// Memory barriers, a part of the back end's.
    pub(super) barriers: f64,
    /// Instructions and data from the second and the third level.
    pub(super) scache: f64,
    pub(super) bcache: f64,
    /// Stalls of the front end and of the back end but for those of lines from other levels, and for barriers.
    pub(super) other_dry: f64,
    pub(super) other_frozen: f64,
    /// Without lines from memory, and barriers.
    without_memory: f64,
    /// In 1,000 instructions.
    pub(super) replays: f64,
    pub(super) mispredictions: f64,
}

impl PipelineMeasured {
    fn new(time: &TimingModel, machine: &Machine) -> PipelineMeasured {
        let cycles = time.cycles();
        let instructions = cycles.instructions() as f64;
        let per = |cycles: u64| cycles as f64 / instructions;
        let [dry, frozen] =
            [PipelineSide::FrontEnd, PipelineSide::BackEnd].map(|side| per(cycles.of_side(side)));
        let from = |is_level: &dyn Fn(Cause) -> bool| {
            per(cycles.iter().filter(|(cause, _)| is_level(*cause)).map(|(_, cycles)| cycles).sum())
        };
        let barriers = per(cycles.of(Cause::Barrier));
        let predictions = time.predictions();
        let kinds = [predictions.branches, predictions.jumps, predictions.returns];
        PipelineMeasured {
            cpi: per(cycles.total()),
            issued: [1, 2, 3, 4].map(|number| per(cycles.of(Cause::Issued(number)))),
            dry,
            frozen,
            barriers,
            scache: per(cycles.from_level(SCACHE)),
            bcache: per(cycles.from_level(BCACHE)),
            other_dry: dry - from(&|cause| matches!(cause, Cause::InstructionMiss(_))),
            other_frozen: frozen - from(&|cause| matches!(cause, Cause::DataMiss(_))) - barriers,
            without_memory: measured::cycles_without_memory(time, machine),
            replays: 1000.0 * per(time.replays()),
            mispredictions: 1000.0 * per(kinds.iter().map(|kind| kind.mispredicted).sum()),
        }
    }

    /// The cycles in which instructions were issued.
    pub(super) fn issuing(&self) -> f64 {
        self.issued.iter().sum()
    }
}

/// Everything that was found about the AlphaServer.
pub(super) struct AlphaServerResults {
    pub(super) workloads: Vec<WorkloadMeasured>,
    commands: Vec<[String; 2]>,
}

impl AlphaServerResults {
    /// Executes all workloads.
    pub(super) fn measure(
        commercial: &RecordedWorkload,
        technical: &[RecordedWorkload],
        progress: &(dyn Fn(StudyProgress) + Sync),
    ) -> Result<AlphaServerResults, Error> {
        let jobs: Vec<&RecordedWorkload> = std::iter::once(commercial).chain(technical).collect();
        let begun = |number: usize| {
            let what = format!("simulating {} on an AlphaServer", jobs[number].name);
            progress(StudyProgress::Doing(what));
        };
        let measured = in_parallel(&jobs, |workload| measure_one(workload), begun)?;
        let (workloads, commands): (Vec<_>, Vec<_>) = measured.into_iter().unzip();
        Ok(AlphaServerResults { workloads, commands: commands.into_iter().flatten().collect() })
    }

    /// All tables.
    pub(super) fn tables(&self) -> Vec<Table> {
        let commands =
            commands_table("alpha-commands", "The commands that have the same numbers", &self.commands);
        vec![self.issuing(), self.events(), self.requests(), self.allocation(), commands]
    }

    /// A table with a row for each workload.
    fn by_workload(
        &self,
        [name, title]: [&str; 2],
        columns: &[(&str, Kind)],
        of: impl Fn(&WorkloadMeasured) -> Vec<f64>,
    ) -> Table {
        let columns: Vec<_> = columns.iter().map(|(name, kind)| (name.to_string(), *kind)).collect();
        let mut table = table_of(name, title, "workload", &columns);
        for workload in &self.workloads {
            let name = Value::from(workload.name.clone());
            table.row(std::iter::once(name).chain(of(workload).into_iter().map(Value::from)).collect());
        }
        table
    }

    /// Issuing and stall time.
    pub(super) fn issuing(&self) -> Table {
        let columns = [
            ("CPI", Kind::Real(2)),
            ("one issued", Kind::Percent(1)),
            ("two", Kind::Percent(1)),
            ("three or four", Kind::Percent(1)),
            ("front-end stalls (dry)", Kind::Percent(1)),
            ("back-end stalls (frozen)", Kind::Percent(1)),
            ("of them barriers", Kind::Percent(1)),
        ];
        let names = [
            "alpha-issuing",
            "Issuing and stall time, of all cycles, each process on a processor of its own",
        ];
        self.by_workload(names, &columns, |one| {
            let cores = &one.cores;
            let share = |cycles: f64| 100.0 * cycles / cores.cpi;
            let [single, dual, triple, quad] = cores.issued;
            let shares = [single, dual, triple + quad, cores.dry, cores.frozen, cores.barriers].map(share);
            std::iter::once(cores.cpi).chain(shares).collect()
        })
    }

    /// Misses, mispredictions and replays.
    pub(super) fn events(&self) -> Table {
        let structures = ["icache", "dcache", "scache", "bcache", "itb", "dtb"];
        let mut columns = structures.map(|name| (name, Kind::Real(2))).to_vec();
        columns.extend([("mispredictions", Kind::Real(2)), ("replays", Kind::Real(2))]);
        let names = ["alpha-events", "Misses, mispredictions and replay traps in 1,000 instructions"];
        self.by_workload(names, &columns, |one| {
            let misses = structures.iter().map(|name| one.caches.per_thousand(name));
            misses.chain([one.cores.mispredictions, one.cores.replays]).collect()
        })
    }

    /// Requests on the bus.
    pub(super) fn requests(&self) -> Table {
        let columns = [
            ("lines from memory", Kind::Real(2)),
            ("dirty lines of other caches", Kind::Real(3)),
            ("invalidations", Kind::Real(3)),
            ("victims", Kind::Real(2)),
            ("shared requests", Kind::Percent(1)),
            ("bus utilization", Kind::Percent(1)),
            ("idle processors", Kind::Percent(1)),
        ];
        let names = ["alpha-bus", "Requests on the bus of four processors, in 1,000 instructions"];
        self.by_workload(names, &columns, |one| {
            let bus = &one.bus;
            vec![
                bus.per_thousand(Transaction::Memory),
                bus.in_thousand(bus.dirty_misses() as u64),
                bus.per_thousand(Transaction::Upgrade),
                bus.per_thousand(Transaction::WriteBack),
                shared_requests(bus),
                bus.utilization(),
                bus.idle(),
            ]
        })
    }

    /// Where the time goes: cycles per instruction of four processors.
    pub(super) fn allocation(&self) -> Table {
        let columns = ALLOCATION.map(|name| (name, Kind::Real(3)));
        let names = ["allocation", "Time-allocation: cycles per instruction of four processors"];
        let mut table = self.by_workload(names, &columns, |one| allocation(one).into());
        table.notes.push(
            "Issuing and stalls within the processor are those of its pipeline; what comes from beyond its board cache is that of the bus \
             with four processors. Idle time is not part of it."
                .into(),
        );
        table
    }
}

/// The components of the time-allocation.
pub(super) const ALLOCATION: [&str; 8] = [
    "issuing",
    "front end",
    "back end",
    "from the Scache",
    "from the Bcache",
    "from memory",
    "from other caches",
    "barriers",
];

/// The cycles of each component of a workload.
pub(super) fn allocation(one: &WorkloadMeasured) -> [f64; 8] {
    let (cores, bus) = (&one.cores, &one.bus);
    let memory = [ProcessorCause::Memory, ProcessorCause::Instructions, ProcessorCause::Outstanding];
    [
        cores.issuing(),
        cores.other_dry,
        cores.other_frozen,
        cores.scache,
        cores.bcache,
        memory.iter().map(|&cause| bus.cause(cause)).sum(),
        bus.cause(ProcessorCause::Transfer),
        bus.cause(ProcessorCause::Barrier),
    ]
}

/// The share of the requests on the bus that other caches have a part in, in percent.
pub(super) fn shared_requests(bus: &BusMeasured) -> f64 {
    let shared = bus.dirty_misses() + bus.transactions(Transaction::Upgrade);
    let others = bus.transactions(Transaction::Memory) + bus.transactions(Transaction::WriteBack);
    100.0 * shared / (shared + others)
}

fn measure_one(workload: &RecordedWorkload) -> Result<(WorkloadMeasured, [[String; 2]; 2]), Error> {
    let variant = MachineVariant::new(MACHINE);
    let cores = PipelineMeasured::new(&measured::cores(workload, &variant)?, &variant.machine());
    let cycles = format!("{:.3}", cores.without_memory);
    let variant_of_bus =
        MachineVariant::new(MACHINE).with("coherence.processor.cycles_per_instruction", cycles);
    let job = BusJob { variant: variant_of_bus, processors: PROCESSORS };
    let commands = [
        [format!("{}, cores", workload.name), measured::cores_command(workload, &variant)],
        [format!("{}, bus", workload.name), job.command(workload)],
    ];
    let measured = WorkloadMeasured {
        name: workload.name.clone(),
        kind: workload.kind,
        caches: measured::caches(workload, &variant)?,
        bus: job.run(workload)?,
        cores,
    };
    Ok((measured, commands))
}
