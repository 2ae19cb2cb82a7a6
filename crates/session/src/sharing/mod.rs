//! Cache lines that move between the processors of a described machine, which execute a trace or a program; in time or without.

mod timed;

use std::process::ExitCode;

use analysis::models::{ExecutionPart, OwnRows};
use analysis::replay::ReplayOrder;
use analysis::sharing::{self, SharingAnalysis};
use anyhow::{anyhow, bail};
use machine::{Coherence, CoherentMemory, Machine};
use table::{Table, separated};
use trace::Trace;
use trace::interleave::{Assignment, Schedule};

use crate::console::check_output;
use crate::simulation::{RecordedInput, Simulated, Simulation};
use crate::tables::write_classes;

/// Cache lines in the short table.
const LINES: usize = 10;

/// The rows of a table of shared data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingRows {
    /// Cache lines.
    CacheLine,
    /// Variables and blocks of the heap.
    Data,
    /// Pairs of lines that move together.
    Partner,
    /// Pairs of threads.
    Thread,
    /// Functions, lines of source or instructions.
    Code(OwnRows),
    /// Classes of units of work.
    Class,
    /// Changes of the state of lines.
    State,
    /// Nodes and their processors.
    Node,
    /// Kinds of operations on the interconnect.
    Interconnect,
    /// In time: processors.
    Processor,
    /// In time: kinds of transactions on the bus.
    Transaction,
    /// In time: requests that reach the caches at the bus.
    Request,
}

impl SharingRows {
    /// Whether they are of a simulation in time.
    fn is_of_time(self) -> bool {
        matches!(self, SharingRows::Processor | SharingRows::Transaction | SharingRows::Request)
    }

    /// Whether they can be divided among classes of units of work.
    fn has_classes(self) -> bool {
        use SharingRows::{CacheLine, Class, Code, Data, Thread};
        matches!(self, CacheLine | Data | Thread | Code(_) | Class)
    }
}

/// A simulation of coherent caches, and the rows to show.
pub struct SharingRequest<'a> {
    /// The execution, and the machine.
    pub simulation: &'a Simulation<'a>,
    /// The rows; without, those of a summary.
    pub rows: Option<SharingRows>,
    /// The number of processors; one for each thread if none is given.
    pub processors: Option<u32>,
    /// Which processor executes what; of any number of them.
    pub schedule: Schedule,
    /// Whether it is simulated in time.
    pub is_timed: bool,
    /// The numbers of processors that are simulated in time, if there are several.
    pub scaling: &'a [u32],
    /// The distance of windows, if a sample is simulated in time.
    pub sample: Option<u64>,
    /// Whether the coherence of caches is checked.
    pub is_checked: bool,
    /// The functions whose loads are a device's.
    pub device_reads: &'a [String],
    /// The functions whose stores are a device's.
    pub device_writes: &'a [String],
}

impl SharingRequest<'_> {
    /// Simulates the coherent caches of several processors, and writes the tables. Returns the exit status.
    pub fn write(&self) -> anyhow::Result<ExitCode> {
        let simulation = self.simulation;
        let (name, machine) = (&simulation.machines.names[0], &simulation.machines.machines[0]);
        let is_one_table = !self.scaling.is_empty() || self.sample.is_some();
        let several = self.rows.is_none() && (!is_one_table || simulation.asks_for_classes());
        check_output(simulation.console, several)?;
        let Some(coherence) = &machine.coherence else {
            bail!(
                "the machine {name} has one processor: add coherence.protocol = \"mesi\" to its file, or --set coherence.protocol=mesi"
            );
        };
        let is_of_nodes = matches!(self.rows, Some(SharingRows::Node | SharingRows::Interconnect));
        if is_of_nodes && coherence.nodes.is_none() {
            bail!("the machine {name} has no nodes: add [coherence.nodes] to its file, or use av20000");
        }
        let is_timed = self.is_timed || is_one_table || self.rows.is_some_and(SharingRows::is_of_time);
        let bus = if is_timed { Some(self.timed_bus(coherence)?) } else { None };
        // Of a trace that has classes, other rows are those of everything, and so are samples and several numbers of processors.
        let can_have_classes = !is_one_table && self.rows.is_none_or(SharingRows::has_classes);
        let has_classes = self.rows == Some(SharingRows::Class)
            || simulation.asks_for_classes()
            || can_have_classes && simulation.has_classes();
        if has_classes {
            self.check_classes()?;
        }
        if self.schedule.is_saturated && self.schedule.assignment == Assignment::Recorded {
            bail!(
                "--saturated threads do not wait, as they did in the recorded order: leave out one of both"
            );
        }
        let recorded = simulation.record(has_classes)?;
        let most = CoherentMemory::MOST_PROCESSORS as u32;
        let threads = u32::try_from(recorded.trace.streams().len()).unwrap_or(most);
        let processors = self.processors.unwrap_or(threads.clamp(1, most));
        let schedule = Schedule { processors, ..self.schedule };
        match bus {
            Some(bus) => self.write_timed(recorded, schedule, has_classes, (machine, coherence, bus)),
            None => self.write_moves(recorded, schedule, has_classes, (machine, coherence)),
        }
    }

    /// Whether the tables can have classes.
    fn check_classes(&self) -> anyhow::Result<()> {
        if self.rows.is_some_and(|rows| !rows.has_classes()) {
            bail!(
                "with classes of units, rows are classes, cache lines, data, threads, functions, lines or instructions: --by class, --by \
                 data, or no --by for a summary"
            );
        }
        self.simulation.check_classes()
    }

    /// Simulates the caches without time, and writes the tables of the lines that move.
    fn write_moves(
        &self,
        recorded: RecordedInput,
        schedule: Schedule,
        has_classes: bool,
        (machine, coherence): (&Machine, &Coherence),
    ) -> anyhow::Result<ExitCode> {
        let simulation = self.simulation;
        let objects = recorded.trace.mapped_objects().clone();
        let mut model = SharingAnalysis::new(machine, coherence, schedule.processors, objects);
        if self.is_checked {
            model.check_coherence();
        }
        if coherence.nodes.is_some() && !(self.device_reads.is_empty() && self.device_writes.is_empty()) {
            bail!(
                "the machine {} has nodes, and devices are simulated on machines with one bus",
                simulation.machines.names[0]
            );
        }
        model.set_devices(self.device_reads, self.device_writes);
        let mut simulated =
            simulation.replay_recorded(recorded, ReplayOrder::Interleaved(schedule), model)?;
        simulated.model.end();
        simulated.model.check_devices()?;
        if let Some(checked) = simulated.model.checked() {
            let checked =
                checked.map_err(|error| anyhow!("the simulated caches are not coherent: {error}"))?;
            let count = separated(&checked.to_string());
            simulated.notes.push(format!(
                "{count} accesses were checked: each found what was stored last, and no store left another copy."
            ));
        }
        simulated.notes.extend(simulation.machines.note());
        if has_classes {
            simulated.check_classes(simulation, simulated.model.classes())?;
            if let Some(rows) = self.rows.filter(|rows| *rows != SharingRows::Class) {
                let table = |part| table(rows, part, &simulated.model, &simulated.trace);
                let parts = simulated.model.parts().into_iter().map(|(name, part)| (name, table(part)));
                return write_classes(simulation, &simulated, parts, table(ExecutionPart::Whole));
            }
        }
        self.write_tables(has_classes, &simulated)
    }

    fn write_tables(
        &self,
        has_classes: bool,
        simulated: &Simulated<SharingAnalysis>,
    ) -> anyhow::Result<ExitCode> {
        let (simulation, whole) = (self.simulation, ExecutionPart::Whole);
        if let Some(rows) = self.rows {
            return simulated.write(simulation, vec![table(rows, whole, &simulated.model, &simulated.trace)]);
        }
        let lines = sharing::by_cache_line(&simulated.model, whole, &simulated.trace);
        let classes = has_classes.then(|| sharing::by_class(&simulated.model));
        let tables: Vec<Table> =
            std::iter::once(sharing::summary(&simulated.model)).chain(classes).chain([lines]).collect();
        let last = tables.len() - 1;
        simulated.write_summary(simulation, tables, (last, LINES, "--by cache-line shows all lines"))
    }
}

fn table(rows: SharingRows, part: ExecutionPart, model: &SharingAnalysis, trace: &Trace) -> Table {
    match rows {
        SharingRows::CacheLine => sharing::by_cache_line(model, part, trace),
        SharingRows::Data => sharing::by_data(model, part, trace),
        SharingRows::Thread => sharing::by_thread(model, part, trace),
        SharingRows::Code(rows) => sharing::by_code(model, part, rows, trace),
        SharingRows::Class => sharing::by_class(model),
        SharingRows::Partner => sharing::by_partner(model, trace),
        SharingRows::State => sharing::state_changes(model),
        SharingRows::Node => sharing::by_node(model),
        SharingRows::Interconnect => sharing::by_interconnect_operation(model),
        SharingRows::Processor | SharingRows::Transaction | SharingRows::Request => {
            unreachable!("they are of a simulation in time")
        }
    }
}
