//! `pathlength profile --sample`: where programs are.

mod live;

use std::cmp::Reverse;
use std::process::ExitCode;

use analysis::call_tree::{CallRows, WithCallTree, call_tables};
use analysis::export::write_samples;
use analysis::models::{self, InstructionResults, Rows};
use analysis::names::{Names, file_name};
use analysis::replay::Dictionary;
use analysis::samples::{
    SampleCounts, SampleSummary, SampledInstructions, summary, system_calls, with_errors, without_calls,
};
use anyhow::{Context, bail};
use engine::Sampling;
use report::Format;
use session::console::Console;
use session::input::Input;
use session::measure::Ending;
use session::process_tree::{self, CountFolder};
use session::program::{check_ending, until};
use session::sampling::{self, SampleRequest, SampledFolder, SampledProcess, SampledProfile};
use session::simulation::{KnownProcesses, Simulated};
use session::tables::{CallsRequest, ResultRows};
use table::{Kind, Table};

use self::live::LiveView;
use crate::arguments::{ProfileOptions, SampleRows};
use crate::console::{CommandConsole, OutputApart};

/// Rows of each table in the summary.
const SUMMARY_ROWS: usize = 15;

/// Samples the program, and writes what the options say.
pub fn run(options: &ProfileOptions) -> anyhow::Result<ExitCode> {
    let (output, samples) = (&options.output, &options.samples);
    let is_firefox = is_firefox(options);
    output.check(samples.by.is_none() && !is_firefox)?;
    let rows = samples.by.and_then(|by| by.results(samples.inclusive));
    let columns = SampleCounts::default().columns();
    let (calls, console) = (options.calls.request(), CommandConsole::new(output, Some(&options.rows)));
    let is_tree = rows == Some(ResultRows::Calls(CallRows::Tree));
    let form = match is_firefox {
        true => None,
        false => calls.chain_form(&console, &columns, is_tree)?,
    };
    if samples.by.is_some() {
        calls.check_rows(rows)?;
    }
    let input = options.input.resolve()?;
    if options.input.children && input.attached().is_none() {
        text::message!(
            "note: all processes of a program that is run are sampled: --children is for --attach"
        );
    }
    let Sampled { profile, ending, notes } = sample(options, &input)?;
    if profile.summary.samples == 0 {
        bail!(
            "there are no samples: the program used less processor time, or fewer instructions, than --every says"
        );
    }
    let SampledProfile { calls: tree, instructions, trace, summary, processes, threads } = profile;
    let known = KnownProcesses::new();
    let simulated =
        Simulated { model: tree, trace, part: None, notes, processes: known, ending, is_whole: true };
    if let Some(output) = form {
        calls.write_chains(&simulated, &simulated.model.model, output)?;
    } else if let Some(path) = output.path.as_deref().filter(|_| is_firefox) {
        let names = Names::of_trace(&simulated.trace);
        let dictionary = Dictionary::new(&simulated.trace, &names);
        let (Sampling::Time(interval) | Sampling::Instructions(interval)) = samples.every;
        simulated.protect();
        report::write_file(path, |out| Ok(write_samples(&dictionary, &threads, interval, out).map(drop)?))?;
    } else {
        let made = SampleTables { options, calls, simulated: &simulated, instructions, summary, processes };
        made.write(rows, &console)?;
    }
    match &simulated.ending {
        Some(ending) => check_ending(ending, input.path().unwrap_or("".as_ref()), &options.ending.expected()),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Whether the samples are written for the Firefox Profiler.
fn is_firefox(options: &ProfileOptions) -> bool {
    let path = options.output.path.as_deref();
    let is_json = path.is_some_and(|path| path.extension().is_some_and(|extension| extension == "json"));
    is_json && options.output.format() == Format::Table
}

/// What was sampled.
struct Sampled {
    profile: SampledProfile,
    /// How the program ended, if one was run.
    ending: Option<Ending>,
    notes: Vec<String>,
}

/// Samples what the options say.
fn sample(options: &ProfileOptions, input: &Input) -> anyhow::Result<Sampled> {
    let sampling = options.samples.every;
    // Who counts the instructions between samples has the exact counts, too.
    let is_exact = options.samples.exact || matches!(sampling, Sampling::Instructions(_));
    let request = SampleRequest { sampling, is_exact };
    let folder = CountFolder::new(None)?;
    let mut view = if options.samples.live { Some(LiveView::new()?) } else { None };
    let mut show = |sampled: &SampledFolder| {
        if let Some(view) = &mut view {
            view.show(sampled);
        }
    };
    let (path, arguments) = match input {
        Input::Program { path, arguments } => (path, arguments),
        Input::Attached(attached) => {
            let profile = sampling::sample_running(attached, request, folder.path(), &mut show)?;
            let notes = vec![format!("Process {} was sampled while it ran.", attached.process)];
            return Ok(Sampled { profile, ending: None, notes });
        }
        Input::Trace(_) | Input::SavedCounts(_) => {
            bail!("{input} is no program: programs are sampled while they run")
        }
    };
    // Counts repeat if clock and random numbers do; samples by time never do.
    let repeats = matches!(sampling, Sampling::Instructions(_));
    let configuration = options.engine.program().configuration(path, arguments, repeats);
    let apart = OutputApart::begin(&options.output);
    let sampled = sampling::sample(&configuration, request, &folder, &mut show);
    drop(apart);
    let (profile, ending) = sampled?;
    let notes = ending.as_ref().and_then(until).into_iter().collect();
    Ok(Sampled { profile, ending, notes })
}

/// Everything that tables are made of.
struct SampleTables<'a> {
    options: &'a ProfileOptions,
    calls: CallsRequest,
    simulated: &'a Simulated<WithCallTree<SampleCounts>>,
    instructions: SampledInstructions,
    summary: SampleSummary,
    processes: Vec<SampledProcess>,
}

impl SampleTables<'_> {
    /// Writes the tables with these rows.
    fn write(&self, rows: Option<ResultRows>, console: &CommandConsole) -> anyhow::Result<()> {
        self.calls.selection.check(self.simulated.model.tree()).context("in the samples")?;
        let mut tables = match (self.options.samples.by, rows) {
            (_, Some(ResultRows::Own(rows))) => vec![self.own(rows)],
            (_, Some(ResultRows::Calls(rows))) => vec![self.calls(rows)],
            (Some(SampleRows::SystemCall), _) => vec![system_calls(&self.summary)],
            (Some(_), _) => vec![self.by_process()],
            (None, _) => {
                return Ok(self.simulated.write_as_they_are(console, self.short())?);
            }
        };
        let sorted = console.arrange(&mut tables);
        self.simulated.write_as_they_are(console, tables)?;
        sorted
    }

    /// A summary, and the first rows of some tables.
    fn short(&self) -> Vec<Table> {
        let mut functions = self.own(Rows::Function);
        let mut inclusive = Table { name: "inclusive".into(), ..self.calls(CallRows::Function) };
        let mut lines = self.own(Rows::Line);
        let hints = [
            (&mut functions, "--by function shows all functions"),
            (&mut inclusive, "--by function --inclusive shows all functions"),
            (&mut lines, "--by line shows all lines"),
        ];
        for (table, hint) in hints {
            let usual = self.options.output.summary_rows(SUMMARY_ROWS);
            self.options.rows.shorten(table, usual, hint);
        }
        vec![summary(&self.summary), self.by_process(), functions, inclusive, lines]
    }

    /// The samples of functions, lines or instructions themselves.
    fn own(&self, rows: Rows) -> Table {
        let mut tables = models::by(rows, &[("", &self.instructions)], &self.simulated.trace);
        let table = tables.remove(0);
        let title = table.title.trim_end().trim_end_matches(" on").to_string();
        with_errors(Table { title, ..table }, self.summary.samples)
    }

    /// The samples of calls, with all that is called. How often there were calls is not known.
    fn calls(&self, rows: CallRows) -> Table {
        let calls = &self.simulated.model;
        let table = call_tables(rows, &self.calls.selection, calls, &[("", &calls.model)]).remove(0);
        with_errors(without_calls(table), self.summary.samples)
    }

    /// A row for each process.
    fn by_process(&self) -> Table {
        let columns = [
            ("process", Kind::Text),
            ("PID", Kind::Text),
            ("program", Kind::Text),
            ("share", Kind::Percent(1)),
            ("samples", Kind::Count),
            ("end", Kind::Text),
        ];
        let mut table = Table::new("processes", "Samples by process", &columns);
        let mut processes: Vec<&SampledProcess> = self.processes.iter().collect();
        processes.sort_by_key(|process| Reverse(process.samples));
        for process in processes {
            let share = 100.0 * process.samples as f64 / self.summary.samples.max(1) as f64;
            table.row(vec![
                process.number.to_string().into(),
                process.host_process.to_string().into(),
                file_name(&process.program).into(),
                share.into(),
                process.samples.into(),
                process_tree::describe(&process.state).into(),
            ]);
        }
        with_errors(table, self.summary.samples)
    }
}
