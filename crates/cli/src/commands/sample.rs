//! `pathlength sample`: where programs are.

mod live;

use std::process::ExitCode;

use analysis::call_tree::CallRows;
use analysis::export::write_samples;
use analysis::models::InstructionResults;
use analysis::names::Names;
use analysis::replay::Dictionary;
use analysis::samples::SampleCounts;
use anyhow::bail;
use engine::Sampling;
use report::{FileForm, Format};
use session::console::Console;
use session::measure::Ending;
use session::process_tree::CountFolder;
use session::program::{check_ending, until};
use session::sampled_tables::{SampledRows, SampledTables};
use session::sampling::{self, SampleRequest, SampledFolder, SampledProfile};
use session::simulation::{KnownProcesses, Simulated};
use session::tables::{ResultRows, check_chain_output};

use self::live::LiveView;
use crate::arguments::{ObservedProgram, SampleOptions, SampleRows, check_inclusive};
use crate::console::{CommandConsole, SeparatedOutput};

/// Samples the program, and writes what the options say.
pub fn run(options: &SampleOptions) -> anyhow::Result<ExitCode> {
    check_inclusive(options.inclusive, options.by == Some(SampleRows::Function))?;
    let rows = options.by.map(|by| by.results(options.inclusive));
    let results = match rows {
        Some(SampledRows::Results(rows)) => Some(rows),
        _ => None,
    };
    let columns = SampleCounts::default().columns();
    let (calls, console) = (options.calls.request(), CommandConsole::of_tables(&options.show));
    let is_tree = results == Some(ResultRows::Calls(CallRows::Tree));
    // The Firefox Profiler reads JSON: tables in JSON have an explicit format.
    let is_explicit = console.explicit_format().is_some();
    let firefox = console.file_of(FileForm::Tables(Format::Json)).filter(|_| !is_explicit);
    check_chain_output(&console, options.by.is_none() && firefox.is_none(), is_tree)?;
    let form = match firefox {
        Some(_) => None,
        None => calls.chain_form(&console, &columns, is_tree)?,
    };
    if options.by.is_some() {
        calls.check_rows(results)?;
    }
    let program = options.program.resolve("to sample")?;
    let Sampled { profile, ending, notes } = sample(options, &program)?;
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
        calls.write_chains(&simulated, &simulated.model, &simulated.model.model, output)?;
    } else if let Some(path) = firefox {
        let names = Names::of_trace(&simulated.trace);
        let dictionary = Dictionary::new(&simulated.trace, &names);
        let (Sampling::Time(interval) | Sampling::Instructions(interval)) = options.every;
        simulated.protect();
        report::write_file(path, |out| Ok(write_samples(&dictionary, &threads, interval, out).map(drop)?))?;
    } else {
        let console = &console;
        let tables =
            SampledTables { calls, simulated: &simulated, instructions, summary, processes, console };
        tables.write(rows)?;
    }
    match (&simulated.ending, &program) {
        (Some(ending), ObservedProgram::Started { path, .. }) => {
            check_ending(ending, path, &options.execution.ending.expected())
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// What was sampled.
struct Sampled {
    profile: SampledProfile,
    /// How the program ended, if one was run.
    ending: Option<Ending>,
    notes: Vec<String>,
}

/// Samples what the options say.
fn sample(options: &SampleOptions, program: &ObservedProgram) -> anyhow::Result<Sampled> {
    let sampling = options.every;
    // Who counts the instructions between samples has the exact counts, too.
    let is_exact = options.exact || matches!(sampling, Sampling::Instructions(_));
    let request = SampleRequest { sampling, is_exact };
    let folder = CountFolder::new(None)?;
    let mut view = if options.live { Some(LiveView::new()?) } else { None };
    let mut show = |sampled: &SampledFolder| {
        if let Some(view) = &mut view {
            view.show(sampled);
        }
    };
    let (path, arguments) = match program {
        ObservedProgram::Started { path, arguments } => (path, arguments),
        ObservedProgram::Running(attached) => {
            let profile = sampling::sample_running(attached, request, folder.path(), &mut show)?;
            let notes = vec![format!("Process {} was sampled while it ran.", attached.process)];
            return Ok(Sampled { profile, ending: None, notes });
        }
    };
    // Counts repeat if clock and random numbers do; samples by time never do.
    let repeats = matches!(sampling, Sampling::Instructions(_));
    let configuration = options.execution.engine.program().configuration(path, arguments, repeats);
    let separated = SeparatedOutput::begin(&options.show.output);
    let sampled = sampling::sample(&configuration, request, &folder, &mut show);
    drop(separated);
    let (profile, ending) = sampled?;
    let notes = ending.as_ref().and_then(until).into_iter().collect();
    Ok(Sampled { profile, ending, notes })
}
