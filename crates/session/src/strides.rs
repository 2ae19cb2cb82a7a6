//! Strides: of a trace, or of a program while it runs.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use analysis::models::{ExecutionPart, tables_of_classes};
use analysis::names::Names;
use analysis::replay::{Dictionary, Replay, ReplayOrder, Selection};
use analysis::strides::{self, LiveStrides, Patterns, StrideRows, StrideSettings};
use anyhow::bail;
use engine::{ClassPlan, ClassRule, Configuration, Plan, UnitPlan};
use machine::Machine;
use report::{Error, Format, Page, PageBlock, PageSection};
use table::Table;
use trace::Trace;

use crate::console::Console;
use crate::input::Input;
use crate::measure::Ending;
use crate::program::{
    ExpectedEnding, ProgramSettings, check_ending, check_names, left_out, names_in, protect_images, until,
};
use crate::simulation::{is_parallel, process_notes};
use crate::startup::RequestedNames;
use crate::views::{replay_selected, replay_to, report_damage};
use crate::{live, process_tree};

/// Rows of the short table on a terminal, and charts of a page.
const ROWS: usize = 20;

/// The strides that are counted, and how they are shown.
pub struct StridesRequest<'a> {
    /// The trace, the program, or the process.
    pub input: Input,
    /// The surroundings of a program.
    pub program: ProgramSettings,
    /// How a program is to end.
    pub expected: ExpectedEnding,
    /// Whether all processes are observed.
    pub all_processes: bool,
    /// The part of a trace.
    pub selection: Selection,
    /// The functions of units of work of a program.
    pub units: &'a [String],
    /// The rules by which units get their classes.
    pub class_rules: &'a [ClassRule],
    /// Whether rows are classes of units.
    pub by_class: bool,
    /// The series that are compared.
    pub by: StrideRows,
    /// The variables whose references are counted, or all.
    pub arrays: &'a [String],
    /// How strides are counted.
    pub settings: StrideSettings,
    /// Whether complete histograms are shown.
    pub are_histograms: bool,
    /// The machine that advice is for, if advice is wanted.
    pub advice: Option<Machine>,
    /// Where progress and tables go.
    pub console: &'a dyn Console,
}

/// A program that was observed.
struct ObservedStrides {
    strides: Vec<LiveStrides>,
    trace: Trace,
    /// The names of processes, by their numbers, if all were observed.
    processes: Option<HashMap<u32, String>>,
    notes: Vec<String>,
    ending: Option<Ending>,
}

impl StridesRequest<'_> {
    /// Counts the strides, and writes the table or the page. Returns the exit status.
    pub fn write(&self) -> anyhow::Result<ExitCode> {
        report::check(false, self.console.format(), self.console.path())?;
        match &self.input {
            Input::Trace(path) => self.of_trace(path),
            Input::SavedCounts(path) => bail!("{} holds saved counts, and no addresses", path.display()),
            Input::Program { .. } | Input::Attached(_) => self.of_program(),
        }
    }

    /// Counts the strides of a trace. Parts that cannot be read are reported, and make the exit status 1.
    fn of_trace(&self, path: &Path) -> anyhow::Result<ExitCode> {
        let file = path.display();
        if !self.units.is_empty() || !self.class_rules.is_empty() {
            bail!(
                "{file} is a trace, whose units and classes are those of its recording: leave out --unit and --class"
            );
        }
        let trace = Trace::open(path)?;
        if self.by_class && trace.unit_classes().is_empty() {
            bail!(
                "{file} is a trace without classes of units: record it with several --unit, or with --class"
            );
        }
        self.check_advice()?;
        protect_images(trace.images().iter().map(|image| image.path.as_path()));
        let written = Replay::of_part(&trace, &self.selection, ReplayOrder::Time, |replay| {
            let (all, is_whole) = self.patterns_of(replay)?;
            self.write_patterns(&all, Vec::new(), false)?;
            anyhow::Ok(is_whole)
        });
        let is_whole = written??;
        report_damage(self.console, &trace, path);
        let is_whole = is_whole && trace.problems().is_empty();
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// The strides of a replay, and whether all of it could be read. By class, those are counted as of a program that runs.
    fn patterns_of<'a>(&self, replay: &Replay<'a>) -> anyhow::Result<(Vec<Patterns<'a>>, bool)> {
        let counted = self.counted().into_iter();
        if self.by_class {
            let of_classes = |(by, arrays, settings)| LiveStrides::new(by, arrays, settings).with_classes();
            let mut strides: Vec<LiveStrides> = counted.map(of_classes).collect();
            let is_whole = replay_to(self.console, replay, &mut strides);
            let patterns = strides.into_iter().map(|one| Patterns::of_program(replay.dictionary, one));
            return Ok((patterns.collect(), is_whole));
        }
        let patterns =
            counted.map(|(by, arrays, settings)| Patterns::new(replay.dictionary, by, arrays, settings));
        let mut all: Vec<Patterns> = patterns.collect();
        let mut is_whole = true;
        for patterns in &mut all {
            let has_units = self.selection.units.is_some();
            is_whole &= replay_selected(self.console, replay, has_units, patterns, true)?;
        }
        Ok((all, is_whole))
    }

    /// Counts the strides of a program while it runs.
    fn of_program(&self) -> anyhow::Result<ExitCode> {
        if self.selection != Selection::default() {
            bail!(
                "{} is a program: while it runs, --unit is the only selection; for others record a trace first",
                self.input
            );
        }
        let none = Vec::new();
        let (path, arguments) = match &self.input {
            Input::Program { path, arguments } => (path.as_path(), arguments),
            _ => (Path::new(""), &none),
        };
        let configuration = self.program.configuration(path, arguments, true);
        let units = self.plan()?;
        let live_strides = self.counted().into_iter().map(|(by, arrays, settings)| {
            let strides = LiveStrides::new(by, arrays, settings);
            if units.classes.is_some() { strides.with_classes() } else { strides }
        });
        let live_strides: Vec<LiveStrides> = live_strides.collect();
        let plan = Plan { heap: live_strides.iter().any(LiveStrides::wants_heap), ..units };
        if self.input.attached().is_none() {
            check_names(&configuration, &RequestedNames { arrays: self.arrays, ..names_in(&plan) })?;
        }
        let observed = match self.all_processes {
            true => self.observe_processes(&configuration, &plan, live_strides)?,
            false => self.observe_first_process(configuration, &plan, live_strides)?,
        };
        protect_images(observed.trace.images().iter().map(|image| image.path.as_path()));
        let names = Names::of_trace(&observed.trace);
        let dictionary = Dictionary::new(&observed.trace, &names);
        let patterns = observed.strides.into_iter().map(|strides| {
            let patterns = Patterns::of_program(&dictionary, strides);
            match &observed.processes {
                Some(names) => patterns.with_process_names(names.clone()),
                None => patterns,
            }
        });
        self.write_patterns(&patterns.collect::<Vec<_>>(), observed.notes, true)?;
        match &observed.ending {
            Some(ending) => check_ending(ending, path, &self.expected),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    fn observe_first_process(
        &self,
        mut configuration: Configuration,
        plan: &Plan,
        strides: Vec<LiveStrides>,
    ) -> anyhow::Result<ObservedStrides> {
        if self.by == StrideRows::Process {
            bail!("--by process needs the strides of all processes: add --children");
        }
        let run = self.console.begin_run(true);
        configuration.settings.executed = run.instructions();
        let live = live::run(&configuration, plan, strides, is_parallel(None));
        drop(run);
        let live = live?;
        let notes = until(&live.ending).into_iter().chain(left_out(live.forked)).collect();
        let (strides, trace, ending) = (live.model, live.trace, Some(live.ending));
        Ok(ObservedStrides { strides, trace, processes: None, notes, ending })
    }

    fn observe_processes(
        &self,
        configuration: &Configuration,
        plan: &Plan,
        strides: Vec<LiveStrides>,
    ) -> anyhow::Result<ObservedStrides> {
        let attached = self.input.attached();
        let observed = match attached {
            Some(attached) => process_tree::observe_running(attached, plan, strides, |_| ())?,
            None => {
                let _run = self.console.begin_run(false);
                process_tree::observe(configuration, plan, strides, |_| ())?
            }
        };
        let names = observed.processes.iter().map(|process| (process.process, process.number.to_string()));
        let processes = Some(names.collect());
        let mut notes: Vec<String> = observed.ending.as_ref().and_then(until).into_iter().collect();
        notes.extend(process_notes(attached, &observed.processes, observed.left_out));
        let (strides, trace, ending) = (observed.model, observed.trace, observed.ending);
        Ok(ObservedStrides { strides, trace, processes, notes, ending })
    }

    /// Whether tables are to have classes of units of work.
    fn has_classes(&self) -> bool {
        self.by_class || !self.class_rules.is_empty() || self.units.len() > 1
    }

    /// Whether advice is asked for of what can have it.
    fn check_advice(&self) -> anyhow::Result<()> {
        if self.has_classes() && self.advice.is_some() {
            bail!(
                "--advice is on a whole program: leave out --class, and name at most one function with --unit"
            );
        }
        Ok(())
    }

    /// The units of work that are counted, or whose classes are wanted.
    fn plan(&self) -> anyhow::Result<Plan> {
        self.check_advice()?;
        if self.has_classes() {
            if self.units.is_empty() {
                bail!("classes are those of units of work: name their function with --unit FUNCTION");
            }
            let classes = ClassPlan { functions: self.units.to_vec(), rules: self.class_rules.to_vec() };
            return Ok(Plan { classes: Some(classes), ..Plan::default() });
        }
        let unit = self.units.first().cloned();
        let unit = unit.map(|function| UnitPlan { function, skip: 0, units: None });
        Ok(Plan { unit, ..Plan::default() })
    }

    /// The sets of strides to count, each with its series, variables and settings.
    fn counted(&self) -> Vec<(StrideRows, &[String], StrideSettings)> {
        match self.advice {
            Some(_) => [StrideRows::Walk, StrideRows::Array].map(|by| (by, &[][..], strides::ADVICE)).into(),
            None => vec![(self.by, self.arrays, self.settings)],
        }
    }

    /// Writes the requested tables or page, with notes.
    fn write_patterns(&self, all: &[Patterns], notes: Vec<String>, has_run: bool) -> anyhow::Result<()> {
        let patterns = match all {
            [lines, arrays] => {
                let mut tables = [strides::advice(lines, arrays, self.advice.as_ref())];
                tables[0].notes.extend(notes);
                let sorted = self.console.arrange(&mut tables);
                self.console.write(&tables, has_run)?;
                return sorted;
            }
            [patterns, ..] => patterns,
            [] => return Ok(()),
        };
        let file = self.input.path().unwrap_or(Path::new(""));
        if let Some(name) = patterns.missing() {
            let file = file.display();
            bail!(
                "no variable '{name}' is known in {file}; pathlength strides {file} lists those that are accessed"
            );
        }
        if let Some(path) = self.console.page() {
            let page = page(patterns, file, notes)?;
            return Ok(report::write_file(path, |out| page.write(out))?);
        }
        let is_for_people = self.console.path().is_none() && self.console.format() == Format::Table;
        let usual = (is_for_people && !self.are_histograms).then_some(ROWS);
        let mut sorted = Ok(());
        let mut table = table(patterns, self.are_histograms, |table| {
            let again = self.console.sort(std::slice::from_mut(table));
            sorted = std::mem::replace(&mut sorted, Ok(())).and(again);
            self.console.shorten(table, usual, "-o FILE writes all");
        });
        table.notes.extend(notes);
        self.console.write(&[table], has_run)?;
        sorted
    }
}

/// A table of series, or of all their strides; `shorten` is given that of each class of units of work.
fn table(patterns: &Patterns, are_histograms: bool, mut shorten: impl FnMut(&mut Table)) -> Table {
    let table = |part| if are_histograms { patterns.histograms(part) } else { patterns.table(part) };
    let mut whole = table(ExecutionPart::Whole);
    if !patterns.has_classes() {
        shorten(&mut whole);
        return whole;
    }
    let parts = patterns.parts().into_iter().map(|(name, part)| {
        let mut table = table(part);
        shorten(&mut table);
        (name, table)
    });
    tables_of_classes(parts.collect(), whole)
}

/// A page with a chart for each of the first series.
fn page(patterns: &Patterns, trace: &Path, notes: Vec<String>) -> Result<Page, Error> {
    let charts = report::histograms(&patterns.charts(&patterns.frequent(ROWS)))?;
    let how_to_read = PageBlock::Paragraph(HOW_TO_READ.into());
    let blocks = std::iter::once(how_to_read).chain(charts.into_iter().map(PageBlock::Chart)).collect();
    let mut table = self::table(patterns, false, |_| ());
    table.notes.extend(notes);
    let name = trace.file_name().unwrap_or(trace.as_os_str()).to_string_lossy();
    Ok(Page {
        title: "Memory access patterns".into(),
        headline: format!("How far apart the addresses are that {name} accesses"),
        sections: vec![
            PageSection { heading: "Strides".into(), blocks },
            PageSection {
                heading: "Numbers".into(),
                blocks: vec![PageBlock::Table(table), PageBlock::Table(self::table(patterns, true, |_| ()))],
            },
        ],
        ..Page::default()
    })
}

/// An explanation of the charts.
const HOW_TO_READ: &str = "A chart for each series of loads or stores, the one with most references first. A bar is as \
    high as the share of the references that are so far, as is written below it, from the one *1 back*, *2 back* and \
    so on. A stride of one element again and again is what caches like best; long ones use little of each line.";
