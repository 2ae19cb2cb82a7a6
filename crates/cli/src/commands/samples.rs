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
use analysis::table::{Kind, Table};
use anyhow::{Context, bail};
use engine::Sampling;
use lab::family::{self, CountFolder};
use lab::measure::Ending;
use lab::sampling::{self, SampleRequest, SampledFolder, SampledProcess, SampledProfile};
use report::{FileForm, Format};

use self::live::LiveView;
use super::calls::{chain_form, check_functions, check_output, write_chains};
use super::simulate::Simulated;
use super::{check_ending, configuration, until, with_output_apart};
use crate::arguments::{ProfileOptions, ResultRows, RowOptions, SampleRows};

/// Rows of each table in the summary.
const SUMMARY_ROWS: usize = 15;

/// Samples the program, and writes what the options say.
pub fn run(options: &ProfileOptions) -> anyhow::Result<ExitCode> {
    let (output, samples) = (&options.output, &options.samples);
    let is_firefox = is_firefox(options);
    let rows = samples.by.and_then(|by| by.results(samples.inclusive));
    check_output(output, samples.by.is_none() && !is_firefox, rows)?;
    let columns = SampleCounts::default().columns();
    let form = match is_firefox {
        true => None,
        false => chain_form(&columns, &options.calls, output, rows)?,
    };
    if samples.by.is_some() {
        check_functions(&options.calls, rows)?;
    }
    if samples.children && options.file.attach.is_none() {
        text::message!(
            "note: all processes of a program that is run are sampled: --children is for --attach"
        );
    }
    let Sampled { profile, ending, notes } = sample(options)?;
    if profile.summary.samples == 0 {
        bail!(
            "there are no samples: the program used less processor time, or fewer instructions, than --every says"
        );
    }
    let SampledProfile { calls, instructions, trace, summary, processes, threads } = profile;
    let simulated = Simulated { model: calls, trace, part: None, notes, ending, is_whole: true };
    if let Some((form, path)) = form {
        write_chains(&simulated, &simulated.model.model, &options.calls, form, path)?;
    } else if let Some(path) = output.path.as_deref().filter(|_| is_firefox) {
        let names = Names::of_trace(&simulated.trace);
        let dictionary = Dictionary::new(&simulated.trace, &names);
        let (Sampling::Time(interval) | Sampling::Instructions(interval)) = samples.every;
        simulated.protect();
        report::write_file(path, |out| Ok(write_samples(&dictionary, &threads, interval, out).map(drop)?))?;
    } else {
        let made = SampleTables { options, simulated: &simulated, instructions, summary, processes };
        made.write(rows)?;
    }
    match &simulated.ending {
        Some(ending) => check_ending(ending, options.file.path(), &options.ending),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Whether the samples are written for the Firefox Profiler.
fn is_firefox(options: &ProfileOptions) -> bool {
    let is_json = options.output.file_of(FileForm::Tables(Format::Json)).is_some();
    is_json && options.output.explicit_format().is_none()
}

/// What was sampled.
struct Sampled {
    profile: SampledProfile,
    /// How the program ended, if one was run.
    ending: Option<Ending>,
    notes: Vec<String>,
}

/// Samples what the options say.
fn sample(options: &ProfileOptions) -> anyhow::Result<Sampled> {
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
    if let Some(process) = options.file.attach {
        let place = (folder.path(), options.file.duration);
        let children = options.samples.children;
        let profile = sampling::sample_running(process, children, request, place, &mut show)?;
        let notes = vec![format!("Process {process} was sampled while it ran.")];
        return Ok(Sampled { profile, ending: None, notes });
    }
    // Counts repeat if clock and random numbers do; samples by time never do.
    let repeats = matches!(sampling, Sampling::Instructions(_));
    let (path, arguments) = (options.file.path(), options.file.arguments());
    let configuration = configuration(&options.engine, path, arguments, repeats);
    let (profile, ending) =
        with_output_apart(&options.output, || sampling::sample(&configuration, request, &folder, &mut show))?;
    let notes = ending.as_ref().and_then(until).into_iter().collect();
    Ok(Sampled { profile, ending, notes })
}

/// Everything that tables are made of.
struct SampleTables<'a> {
    options: &'a ProfileOptions,
    simulated: &'a Simulated<WithCallTree<SampleCounts>>,
    instructions: SampledInstructions,
    summary: SampleSummary,
    processes: Vec<SampledProcess>,
}

impl SampleTables<'_> {
    /// Writes the tables with these rows.
    fn write(&self, rows: Option<ResultRows>) -> anyhow::Result<()> {
        let selection = self.options.calls.selection();
        selection.check(self.simulated.model.tree()).context("in the samples")?;
        let tables = match (self.options.samples.by, rows) {
            (_, Some(ResultRows::Own(rows))) => vec![self.own(rows)],
            (_, Some(ResultRows::Calls(rows))) => vec![self.calls(rows)],
            (Some(SampleRows::SystemCall), _) => vec![system_calls(&self.summary)],
            (Some(_), _) => vec![self.by_process()],
            (None, _) => {
                let tables = self.short();
                return self.simulated.write(tables, &RowOptions::default(), &self.options.output);
            }
        };
        self.simulated.write(tables, &self.options.rows, &self.options.output)
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
        let (calls, selection) = (&self.simulated.model, self.options.calls.selection());
        let table = call_tables(rows, &selection, calls, &[("", &calls.model)]).remove(0);
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
                family::describe(&process.state).into(),
            ]);
        }
        with_errors(table, self.summary.samples)
    }
}
