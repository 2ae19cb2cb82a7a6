//! Options of the commands that simulate models of machines.

use std::path::PathBuf;

use analysis::call_tree::{CallRows, CallSelection, EntryRows};
use analysis::models::OwnRows;
use anyhow::bail;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use machine::{HintedRegions, Holds, MachineSetting, Sweep};
use session::machines::SelectedMachines;
use session::program::ProgramSettings;
use session::simulation::{SimulatedPart, Simulation};
use session::tables::{CallsRequest, ResultRows};

use super::{
    EndingOptions, EnvironmentOptions, InputOptions, MachineName, ModeName, OutputOptions, PlanOptions,
    TableOptions,
};
use crate::console::CommandConsole;
use crate::ranges;

/// The machine of models if none is named.
const DEFAULT_MACHINE: &str = "alphastation500";

/// The execution that is simulated: of a trace, a program that is run, or one that runs already.
#[derive(Clone, Debug, Args)]
pub struct SimulationOptions {
    #[command(flatten)]
    pub plan: PlanOptions,
    /// Calls of the unit's function, after those of --skip, that warm the machine up: they are simulated and not
    /// counted.
    #[arg(long, value_name = "N", default_value_t = 0)]
    warm_up: u64,
    /// The processor that a program runs on, instead of the machine's: ev4, ev5, ev56, pca56, ev6 or ev67.
    #[arg(long)]
    cpu: Option<isa::Processors>,
    /// Where a program's libraries are searched first: by default in /usr/alpha-linux-gnu, or the like for the program's
    /// instruction set.
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    #[command(flatten)]
    environment: EnvironmentOptions,
    #[command(flatten)]
    ending: EndingOptions,
    /// Of a trace, only this thread, as process and thread, both counted from 0. Can be given several times.
    #[arg(long = "thread", value_name = "P.T", value_parser = ranges::thread)]
    threads: Vec<(u32, Option<u32>)>,
    /// Of a trace, only the threads of this process.
    #[arg(long = "process", value_name = "P")]
    processes: Vec<u32>,
    /// Of a trace of a whole system, only instructions of the program, the kernel or PALcode: user, kernel or pal. Can be
    /// given several times.
    #[arg(long = "mode", value_name = "MODE", value_delimiter = ',')]
    modes: Vec<ModeName>,
    /// Processors of the host to use for a program: 1 or 2; two by default if there are two.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2))]
    host_processors: Option<u32>,
    #[command(flatten)]
    pub input: InputOptions,
}

impl SimulationOptions {
    /// The execution, on these machines, with classes of units of work by these rules.
    pub fn simulation<'a>(
        &self,
        classes: &ClassOptions,
        machines: SelectedMachines,
        console: &'a CommandConsole<'a>,
    ) -> anyhow::Result<Simulation<'a>> {
        let processes = self.processes.iter().map(|&process| (process, None));
        let input = self.input.resolve()?;
        Ok(Simulation {
            is_recorded_with_classes: input.has_unit_classes(),
            input,
            program: ProgramSettings {
                cpu: isa::Processors::default(),
                sysroot: self.sysroot.clone(),
                environment: self.environment.environment(interpose::inherited()),
            },
            cpu: self.cpu,
            part: SimulatedPart {
                planned: self.plan.part(),
                warm_up: self.warm_up,
                threads: self.threads.iter().copied().chain(processes).collect(),
                modes: self.modes.iter().map(|mode| mode.mode()).collect(),
            },
            all_processes: self.input.has_all_processes(),
            host_processors: self.host_processors,
            class_rules: classes.classes.clone(),
            expected: self.ending.expected(),
            machines,
            console,
        })
    }
}

/// Changes of the machine.
#[derive(Clone, Debug, Args)]
pub struct MachineSettings {
    /// Change a field of the machine, by its name in the machine's file: dcache.size=16K, processor.clock_mhz=500; none
    /// removes an optional one. Can be given several times.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub settings: Vec<MachineSetting>,
    /// Simulate the machine with each of these values of a field, all in one pass: dcache.size=8K,16K,32K. With -o
    /// NAME.html, charts. Can be given twice, for each combination of two fields. With --by, the rows of each.
    #[arg(long = "sweep", value_name = "FIELD=VALUES")]
    pub sweeps: Vec<Sweep>,
    /// Keep the results of a sweep of a trace in this file while it runs: the same command goes on where it was interrupted.
    #[arg(long, value_name = "FILE", requires = "sweeps")]
    pub resume: Option<PathBuf>,
}

/// Options of `machines`.
#[derive(Debug, Args)]
pub struct MachinesOptions {
    #[command(flatten)]
    pub output: OutputOptions,
}

/// The rows of a table of misses or cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rows {
    /// Functions.
    Function,
    /// Lines of source.
    Line,
    /// Single instructions.
    Instruction,
    /// Units of work.
    Unit,
    /// Functions and their callers.
    Caller,
    /// Functions and their callees.
    Callee,
    /// Chains of calls.
    CallTree,
    /// Processes, with --children.
    Process,
    /// Of a trace of a whole system, modes: user, kernel, pal.
    Mode,
    /// Of a trace of a whole system, why the kernel was entered.
    Entry,
    /// Of a trace of a whole system, system calls.
    SystemCall,
    /// Classes of units of work (--unit, --class): all that is executed is simulated, and divided among them.
    Class,
}

/// The calls whose costs are shown.
#[derive(Clone, Debug, Args)]
pub struct CallOptions {
    /// With --by caller and callee, only this function: NAME or IMAGE!NAME. Can be given several times.
    #[arg(long = "function", value_name = "FUNCTION", value_parser = NonEmptyStringValueParser::new())]
    pub functions: Vec<String>,
    /// With --by call-tree, leave out calls that cost less than this share of the total [default: 1].
    #[arg(long, value_name = "PERCENT", value_parser = ranges::percent)]
    pub threshold: Option<f64>,
    /// For -o NAME.svg, .html or .folded, the column that is charted, by its heading: loads, 'dcache misses'. For
    /// NAME.pb.gz (pprof), which has all of them, the first one.
    #[arg(long, value_name = "COLUMN")]
    pub chart: Option<String>,
    /// For -o NAME.svg or .html, the collapsed stacks (-o NAME.folded) of another run, from which the differences are shown.
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
}

impl CallOptions {
    /// The calls, for a session.
    pub fn request(&self) -> CallsRequest {
        let selection = CallSelection { functions: self.functions.clone(), threshold: self.threshold };
        CallsRequest { selection, chart: self.chart.clone(), against: self.against.clone() }
    }
}

/// Whether rows can include what they call: only functions can. Callers and the call tree always do.
pub fn check_inclusive(is_inclusive: bool, are_functions: bool) -> anyhow::Result<()> {
    if is_inclusive && !are_functions {
        bail!("--inclusive adds what they call to functions: --by function");
    }
    Ok(())
}

impl Rows {
    /// What is shown; functions with all that they call if `is_inclusive`.
    pub fn results(self, is_inclusive: bool) -> ResultRows {
        match self {
            Rows::Function if is_inclusive => ResultRows::Calls(CallRows::Function),
            Rows::Function => ResultRows::Own(OwnRows::Function),
            Rows::Line => ResultRows::Own(OwnRows::Line),
            Rows::Instruction => ResultRows::Own(OwnRows::Instruction),
            Rows::Unit => ResultRows::Own(OwnRows::Unit),
            Rows::Caller => ResultRows::Calls(CallRows::Caller),
            Rows::Callee => ResultRows::Calls(CallRows::Callee),
            Rows::CallTree => ResultRows::Calls(CallRows::Tree),
            Rows::Process => ResultRows::Process,
            Rows::Mode => ResultRows::Entries(EntryRows::Mode),
            Rows::Entry => ResultRows::Entries(EntryRows::Reason),
            Rows::SystemCall => ResultRows::Entries(EntryRows::SystemCall),
            Rows::Class => ResultRows::Class,
        }
    }
}

/// The references that a miss-ratio curve counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReferenceStream {
    /// Instructions.
    Code,
    /// Loads and stores.
    Data,
    /// Both together. This takes as long as the other two.
    Both,
}

impl From<ReferenceStream> for Holds {
    fn from(stream: ReferenceStream) -> Holds {
        match stream {
            ReferenceStream::Code => Holds::Instructions,
            ReferenceStream::Data => Holds::Data,
            ReferenceStream::Both => Holds::Both,
        }
    }
}

/// The caches of miss-ratio curves.
#[derive(Clone, Debug, Args)]
pub struct SizesOptions {
    /// What the caches hold: one table each.
    #[arg(long, value_delimiter = ',', default_value = "code,data,both")]
    pub streams: Vec<ReferenceStream>,
    /// Line size; a TLB's is that of a page: 8K.
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = ranges::curve_line_size)]
    pub line_size: u64,
    /// Size of the largest cache.
    #[arg(long, value_name = "BYTES", default_value = "4M", value_parser = ranges::cache_size)]
    pub largest: u64,
    /// Regions that the operating system maps with Alpha's granularity hints, so that a TLB's entry holds 8, 64 or 512 pages:
    /// program, mappings, large (MAP_HUGETLB), all, 0x4000000000-0x407fffffff or, with smaller blocks at most, mappings:64; several with + between
    /// them. Lines are pages then: --line-size 8K.
    #[arg(long, value_name = "REGIONS")]
    pub granularity_hints: Option<HintedRegions>,
}

/// Options of `mrc`.
#[derive(Debug, Args)]
pub struct MrcOptions {
    #[command(flatten)]
    pub sizes: SizesOptions,
    #[command(flatten)]
    pub classes: ClassOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub input: SimulationOptions,
}

/// Classes of units of work.
#[derive(Clone, Debug, Default, Args)]
pub struct ClassOptions {
    /// Take a unit's class from the first call of a function in it that names one, as count --class does: FUNCTION($1),
    /// FUNCTION($1) ~ PATTERN, FUNCTION() or MARK_*(). Can be given several times. Without, classes are the functions of --unit,
    /// which can then be given several times. All of the program is divided among classes, whatever rows are; with --skip and --units,
    /// all that is executed from the unit after the skipped ones on, until so many have ended. With -o NAME.pb.gz
    /// (pprof), samples have a label class; with -o NAME.callgrind, functions have their class behind their names.
    #[arg(long = "class", value_name = "RULE")]
    pub classes: Vec<engine::ClassRule>,
}

/// The results that are shown of an execution: by class of units of work or not, which rows, and where.
#[derive(Clone, Debug, Args)]
pub struct ResultOptions {
    #[command(flatten)]
    pub classes: ClassOptions,
    #[command(flatten)]
    pub show: TableOptions,
    #[command(flatten)]
    pub input: SimulationOptions,
}

impl ResultOptions {
    /// Where tables and progress go.
    pub fn console(&self) -> CommandConsole<'_> {
        CommandConsole::of_tables(&self.show)
    }

    /// The execution, on these machines.
    pub fn simulation<'a>(
        &self,
        machines: SelectedMachines,
        console: &'a CommandConsole<'a>,
    ) -> anyhow::Result<Simulation<'a>> {
        self.input.simulation(&self.classes, machines, console)
    }
}

/// A table of models of machines.
#[derive(Debug, Args)]
pub struct ModelOptions {
    /// The machine: a name that pathlength machines lists, or a file. Can be given several times.
    #[arg(long = "machine", value_name = "MACHINE", default_value = DEFAULT_MACHINE)]
    pub machines: Vec<MachineName>,
    #[command(flatten)]
    pub settings: MachineSettings,
    /// One table with a row for each of these, instead of a summary.
    #[arg(long, value_name = "ROWS")]
    by: Option<Rows>,
    /// With --by function, add to each function what it calls.
    #[arg(long, requires = "by")]
    pub inclusive: bool,
    #[command(flatten)]
    pub calls: CallOptions,
    #[command(flatten)]
    pub results: ResultOptions,
}

impl ModelOptions {
    /// The rows of the tables, if it is no summary.
    pub fn result_rows(&self) -> anyhow::Result<Option<ResultRows>> {
        check_inclusive(self.inclusive, self.by == Some(Rows::Function))?;
        Ok(self.by.map(|by| by.results(self.inclusive)))
    }
}

/// Options of `caches`.
#[derive(Debug, Args)]
pub struct CachesOptions {
    /// Classify misses as compulsory, capacity or conflict misses. This takes several times as long.
    #[arg(long)]
    pub classify: bool,
    #[command(flatten)]
    pub models: ModelOptions,
}

/// Options of `time`.
#[derive(Debug, Args)]
pub struct TimeOptions {
    /// Simulate the core for a sample of the execution only: for windows of 1,000 instructions, one in each PERIOD of them.
    /// Between windows every instruction updates caches, TLBs and predictors. Results are estimates, with their errors, of everything,
    /// or of classes or processes (--by).
    #[arg(long, value_name = "PERIOD", value_parser = clap::value_parser!(u64).range(1..))]
    pub sample: Option<u64>,
    #[command(flatten)]
    pub models: ModelOptions,
}

/// Options of `calls`.
#[derive(Debug, Args)]
pub struct CallsOptions {
    /// One table with a row for each of these, instead of the most expensive functions and the call tree.
    #[arg(long, value_name = "ROWS")]
    pub by: Option<Rows>,
    #[command(flatten)]
    pub calls: CallOptions,
    #[command(flatten)]
    pub results: ResultOptions,
}

/// The events that a program's or a machine's model counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MeasuredEvent {
    /// Executed instructions, loads and stores.
    Instructions,
    /// Misses of the machine's caches and TLBs.
    Misses,
    /// The machine's cycles.
    Cycles,
}

/// The events that are shown, and the machine that has them.
#[derive(Clone, Debug, Args)]
pub struct EventOptions {
    /// The events to show: of the program alone, or of a machine that executes it.
    #[arg(long, value_name = "EVENT", default_value = "instructions")]
    event: MeasuredEvent,
    /// With --event misses or cycles, the machine: a name that pathlength machines lists, or a file [default: alphastation500].
    #[arg(long, value_name = "MACHINE")]
    machine: Option<MachineName>,
    /// Change a field of that machine: dcache.size=16K. Can be given several times.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    settings: Vec<MachineSetting>,
}

impl EventOptions {
    /// The events, and the machine that has them, if one has.
    pub fn selected(&self) -> anyhow::Result<(MeasuredEvent, SelectedMachines)> {
        let has_machine = self.machine.is_some() || !self.settings.is_empty();
        let machine = match (self.event, &self.machine) {
            (MeasuredEvent::Instructions, _) if has_machine => {
                bail!(
                    "--machine and --set are for --event misses and --event cycles: instructions are those of the program"
                )
            }
            (MeasuredEvent::Instructions, _) => None,
            (_, Some(name)) => Some(name.as_ref()),
            (_, None) => Some(DEFAULT_MACHINE),
        };
        Ok((self.event, SelectedMachines::find(&machine, &self.settings)?))
    }
}

/// Options of `annotate`.
#[derive(Debug, Args)]
pub struct AnnotateOptions {
    /// The function: NAME or IMAGE!NAME. Can be given several times.
    #[arg(long = "function", value_name = "FUNCTION", value_parser = NonEmptyStringValueParser::new())]
    pub functions: Vec<String>,
    /// Without --function, this many of the most expensive functions.
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "functions")]
    pub top: usize,
    #[command(flatten)]
    pub events: EventOptions,
    /// A folder with source files that are not where they were compiled. Can be given several times.
    #[arg(long = "source", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub input: SimulationOptions,
}
