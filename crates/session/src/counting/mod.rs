//! Counts of a program, of all of its processes, of a process that runs already, of a trace, or saved ones; as tables, or saved.

mod classes;
mod process_tree;
mod tables;

use std::path::Path;
use std::process::ExitCode;

use analysis::code_counts::{CodeRows, code_table};
use analysis::components::Components;
use analysis::environment::describe_environment;
use analysis::names::Names;
use analysis::run_counts::{self, RunCounts, RunDescription, TraceCounts};
use analysis::units::SteadyRules;
use anyhow::bail;
use engine::{Configuration, UnitOfWork};
use report::FileForm;
use table::Table;
use trace::{EnvironmentSummary, Trace};

use crate::console::{Console, check_output_or};
use crate::input::Input;
use crate::measure::{self, CountRequest, Counted};
use crate::process_tree::is_folder;
use crate::program::{
    ExpectedEnding, ProgramSettings, check_ending, check_names, left_out, protect_images, until,
};
use crate::startup::RequestedNames;
use crate::translated;
use crate::views::report_damage;

/// The rows of a table of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountRows {
    /// Rows of a profile.
    Profile(ProfileRows),
    /// Lines of source, or single instructions.
    Code(CodeRows),
    /// Units of work.
    Unit,
    /// Processes.
    Process,
    /// Components, in columns for who executed them.
    Owner,
}

/// The rows of a profile, of everything or in columns for classes of units of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileRows {
    /// Mnemonics.
    Mnemonic,
    /// Groups of instructions.
    Group,
    /// Functions.
    Function,
    /// Executables and shared libraries.
    Image,
    /// Parts of the program that functions belong to, by rules.
    Component,
}

/// What is counted, and which tables are written.
pub struct Counting<'a> {
    /// The program, the process, or what was counted before.
    pub input: Input,
    /// The surroundings of a program.
    pub program: ProgramSettings,
    /// The factor by which timeouts take longer.
    pub dilation: u32,
    /// The units of work, and the rules of their measurement.
    pub unit: Option<(UnitOfWork, SteadyRules)>,
    /// Whether all processes of a program are counted.
    pub all_processes: bool,
    /// The rows; without, those of a summary.
    pub rows: Option<CountRows>,
    /// The rules by which functions belong to components; otherwise those for a database among the images.
    pub components: Option<Components>,
    /// How a program is to end.
    pub expected: ExpectedEnding,
    /// Where tables and progress go.
    pub console: &'a dyn Console,
}

impl Counting<'_> {
    /// Counts, or reads the counts, and writes tables or a file of counts. Returns the exit status.
    pub fn write(&self) -> anyhow::Result<ExitCode> {
        if let Input::Trace(path) | Input::SavedCounts(path) = &self.input
            && self.unit.is_some()
        {
            bail!(
                "{} was recorded or counted before: --unit and --class are for a program that is run",
                path.display()
            );
        }
        match &self.input {
            Input::Trace(path) => self.of_trace(path),
            Input::SavedCounts(path) if is_folder(path) => self.of_folder(path),
            Input::SavedCounts(path) => {
                self.write_earlier(path, RunCounts::open(path)?, None)?;
                Ok(ExitCode::SUCCESS)
            }
            Input::Attached(attached) => {
                self.check_units()?;
                self.of_running_tree(attached)
            }
            Input::Program { path, arguments } => {
                self.check_units()?;
                let mut configuration = self.program.configuration(path, arguments, true);
                configuration.settings.dilation = self.dilation;
                if self.all_processes && translated::is_translated(&configuration) {
                    bail!(
                        "{}: --children is for programs of Alpha and RISC-V; of an x86-64 program the first process is counted",
                        path.display()
                    );
                }
                match self.all_processes {
                    true => self.of_tree(configuration),
                    false => self.of_first_process(configuration),
                }
            }
        }
    }

    /// The functions of the units of work.
    fn functions(&self) -> &[String] {
        self.unit.as_ref().map_or(&[], |(work, _)| &work.functions)
    }

    /// Whether there are rules of classes.
    fn has_class_rules(&self) -> bool {
        self.unit.as_ref().is_some_and(|(work, _)| !work.classes.is_empty())
    }

    /// Whether rows that need units of work have them.
    fn check_units(&self) -> anyhow::Result<()> {
        if self.functions().is_empty() {
            if self.rows == Some(CountRows::Unit) {
                bail!("--by unit needs a unit of work: name its function with --unit FUNCTION");
            }
            if self.has_class_rules() {
                bail!("--class is the class of units of work: name their function with --unit FUNCTION");
            }
        }
        Ok(())
    }

    /// Before the work: whether the tables can be written.
    fn check_output(&self) -> Result<(), report::Error> {
        check_output_or(self.console, self.rows.is_none(), &[FileForm::SavedCounts])
    }

    /// Checks before a program runs whether the functions and variables of units exist in it.
    fn check_names(&self, configuration: &Configuration) -> anyhow::Result<()> {
        let named = self.unit.as_ref().map_or(RequestedNames::default(), |(work, _)| names_in_work(work));
        check_names(configuration, &named)
    }

    fn of_first_process(&self, configuration: Configuration) -> anyhow::Result<ExitCode> {
        if self.rows == Some(CountRows::Process) {
            bail!("--by process needs the counts of all processes: add --children");
        }
        if self.functions().len() > 1 || self.has_class_rules() {
            return self.of_classes(configuration);
        }
        if self.rows == Some(CountRows::Owner) {
            bail!("--by owner needs several owners: add --children, a second --unit, or --class");
        }
        self.check_output()?;
        self.check_names(&configuration)?;
        let (configuration, counted) = count_steady(self.console, configuration, self.unit.clone())?;
        if self.console.takes_counts(&counted) && self.saved_path().is_none() {
            return Ok(ExitCode::SUCCESS);
        }
        let names = Names::of_counts(&counted.counts);
        let code = self
            .code_rows()
            .map(|rows| code_table(rows, &counted.counts, &names, counted.measurement.as_ref()));
        let ending = counted.ending.clone();
        let counts = run_counts_of(&configuration, self.functions().first(), counted);
        match self.saved_path() {
            Some(path) => save(&counts, path)?,
            None => self.write_tables(&counts, code, true)?,
        }
        check_ending(&ending, &configuration.program, &self.expected)
    }

    /// The counts of a trace.
    fn of_trace(&self, path: &Path) -> anyhow::Result<ExitCode> {
        let (TraceCounts { counts, code, .. }, is_whole) =
            counts_of_trace(self.console, path, self.code_rows())?;
        self.write_earlier(path, counts, code)?;
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Writes counts that were made before.
    fn write_earlier(&self, path: &Path, mut counts: RunCounts, code: Option<Table>) -> anyhow::Result<()> {
        let path = path.display();
        match self.rows {
            Some(CountRows::Process) if counts.processes().is_empty() => {
                bail!("{path} has one process: save all with count --children")
            }
            Some(CountRows::Unit) if counts.measurement().is_none() => bail!(
                "{path} has no single units of work: save it with count --unit FUNCTION of one process, without classes"
            ),
            Some(CountRows::Owner) if !counts.has_owners() => bail!(
                "{path} says nothing of who executed the instructions: save it with count --children, or with classes of units"
            ),
            Some(CountRows::Code(_)) if code.is_none() => {
                bail!("{path} has functions, but no lines and addresses: count the program again")
            }
            _ if counts.has_classes() => self.check_class_rows()?,
            _ => {}
        }
        if let Some(path) = self.saved_path() {
            return save(&counts, path);
        }
        let environment = counts.description.environment.as_ref().map(describe_environment);
        counts.description.notes.extend(environment.map(|it| format!("The environment of the run: {it}.")));
        self.write_tables(&counts, code, false)
    }

    /// The rows, if they are lines or instructions. Saved counts do not have those.
    fn code_rows(&self) -> Option<CodeRows> {
        match self.rows {
            Some(CountRows::Code(rows)) => Some(rows),
            _ => None,
        }
    }

    /// The file, if its name asks for saved counts.
    fn saved_path(&self) -> Option<&Path> {
        self.console.file_of(FileForm::SavedCounts)
    }
}

/// The names in units of work.
pub fn names_in_work(work: &UnitOfWork) -> RequestedNames<'_> {
    RequestedNames {
        functions: work.functions.iter().map(String::as_str).collect(),
        variables: &work.gauges,
        ..RequestedNames::default()
    }
}

/// Runs a program, and counts the run and a unit of work in its steady state. Returns the configuration, too.
pub fn count_steady(
    console: &dyn Console,
    mut configuration: Configuration,
    unit: Option<(UnitOfWork, SteadyRules)>,
) -> Result<(Configuration, Counted), measure::Error> {
    let run = console.begin_run(true);
    configuration.settings.executed = run.instructions();
    let request = CountRequest { configuration, unit };
    let counted = measure::count(&request, &mut |seen, phase| run.unit(seen, phase));
    drop(run);
    let counted = counted?;
    protect_images(counted.counts.images.iter().map(|image| image.path.as_path()));
    Ok((request.configuration, counted))
}

/// The counts of a run by function and image.
pub fn run_counts_of(configuration: &Configuration, unit: Option<&String>, counted: Counted) -> RunCounts {
    let processor = translated::processor_note(configuration);
    let notes = until(&counted.ending).into_iter().chain(left_out(counted.forked)).chain(processor).collect();
    let description = describe_run(configuration, notes);
    RunCounts::new(description, &counted.counts, unit.map(String::as_str).zip(counted.measurement))
}

/// The counts of a trace, also by line or instruction if these rows are given; and whether all of it could be read.
pub fn counts_of_trace(
    console: &dyn Console,
    path: &Path,
    code: Option<CodeRows>,
) -> anyhow::Result<(TraceCounts, bool)> {
    let trace = Trace::open(path)?;
    let counts = run_counts::of_trace(&trace, code)?;
    let problems = &counts.problems;
    report_damage(console, &trace, path);
    problems.iter().for_each(|problem| console.report_problem(&problem.to_string()));
    protect_images(trace.images().iter().map(|image| image.path.as_path()));
    let is_whole = problems.is_empty() && trace.problems().is_empty();
    Ok((counts, is_whole))
}

/// Saves counts.
fn save(counts: &RunCounts, path: &Path) -> anyhow::Result<()> {
    let bytes = counts.encode()?;
    Ok(report::write_file(path, |out| Ok(out.write_all(&bytes)?))?)
}

/// The description of a run, with notes.
fn describe_run(configuration: &Configuration, notes: Vec<String>) -> RunDescription {
    RunDescription {
        program: configuration.program.to_string_lossy().into_owned(),
        arguments: configuration.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        cpu: translated::processor(configuration),
        environment: Some(EnvironmentSummary::new(&configuration.environment)),
        notes,
    }
}
