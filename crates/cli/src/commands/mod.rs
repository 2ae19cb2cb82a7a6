//! One module a subcommand.

pub mod annotate;
pub mod attach;
pub mod branch_log;
pub mod build;
mod by_class;
pub mod caches;
pub mod calls;
pub mod check;
mod classes;
pub mod compare;
pub mod completions;
pub mod count;
pub mod doctor;
mod entries;
pub mod export;
mod family;
pub mod faults;
pub mod machines;
pub mod man;
pub mod mrc;
pub mod objects;
mod processes;
pub mod profile;
pub mod qemu;
mod recorded;
pub mod run;
mod samples;
mod selected_machines;
pub mod sharing;
pub mod show;
mod simulate;
pub mod spike;
mod spike_check;
mod spike_environment;
pub mod statics;
pub mod strides;
pub mod study;
mod sweep;
mod sweep_file;
pub mod system;
pub mod time;
pub mod trace;
pub mod units;

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::ExitCode;

use analysis::units::SteadyRules;
use engine::{Clock, Configuration, Plan, RandomSource, SystemSettings, UnitOfWork};
use lab::crash;
use lab::measure::Ending;
use lab::startup::{self, RequestedNames};
use report::{Destination, Format};
use table::{Table, separated};

use crate::arguments::{EndingOptions, EngineOptions, OutputOptions, UnitOptions};
use crate::messages::{self, Message};

/// The configuration of a run: repeatable for counting, or with the host's clock and random numbers.
fn configuration(
    engine: &EngineOptions,
    program: &Path,
    arguments: &[OsString],
    repeatable: bool,
) -> Configuration {
    let (clock, random) = if repeatable {
        (Clock::Virtual, RandomSource::Seeded(0))
    } else {
        (Clock::Host, RandomSource::Host)
    };
    let host_environment = host_environment(engine, &["run".into()]).unwrap_or_else(|error| {
        text::message!("note: host programs cannot start Alpha programs: {error}");
        Vec::new()
    });
    let settings = SystemSettings {
        sysroot: Some(engine.sysroot.clone()),
        clock,
        random,
        host_environment,
        ..SystemSettings::default()
    };
    Configuration {
        program: program.into(),
        name: None,
        arguments: arguments.to_vec(),
        environment: engine.environment.environment(interpose::inherited()),
        model: engine.cpu,
        settings,
    }
}

/// Environment variables that preload the interposition library into host programs, so that Alpha programs which those execute are run by
/// `pathlength` with these words.
fn host_environment(engine: &EngineOptions, words: &[OsString]) -> std::io::Result<Vec<OsString>> {
    let sysroot = std::path::absolute(&engine.sysroot)?;
    let options: [OsString; 5] =
        ["--cpu".into(), engine.cpu.to_string().into(), "--sysroot".into(), sysroot.into(), "--name".into()];
    let command = [&[std::env::current_exe()?.into()], words, &options].concat();
    Ok(interpose::environment(&command)?.into())
}

/// The unit of work and the rules of its measurement, if the options have one.
fn unit(options: &UnitOptions) -> Option<(UnitOfWork, SteadyRules)> {
    if options.unit.is_empty() {
        return None;
    }
    let gauges = options.cache.clone().unwrap_or_default();
    let hit_ratio = (!gauges.is_empty()).then_some(0.95);
    let rules = SteadyRules {
        window: options.window as usize,
        measure: options.units as usize,
        hit_ratio,
        ..SteadyRules::default()
    };
    Some((UnitOfWork { functions: options.unit.clone(), gauges, ..UnitOfWork::default() }, rules))
}

/// The names in a unit of work.
fn named_in_unit(unit: Option<&(UnitOfWork, SteadyRules)>) -> RequestedNames<'_> {
    unit.map_or(RequestedNames::default(), |(work, _)| RequestedNames {
        functions: work.functions.iter().map(String::as_str).collect(),
        variables: &work.gauges,
        ..RequestedNames::default()
    })
}

/// Writes tables of files. Notes for which a format has no place go to standard error.
pub fn write(tables: &[Table], output: &OutputOptions) -> Result<(), report::Error> {
    write_to(output.destination(), tables, output)
}

/// Writes tables of a program that was run, where they do not mix with its output.
pub fn write_after_run(tables: &[Table], output: &OutputOptions) -> Result<(), report::Error> {
    write_to(output.destination_after_run(), tables, output)
}

/// Writes tables, or sends them to a calling program.
fn write_to(destination: Destination, tables: &[Table], output: &OutputOptions) -> Result<(), report::Error> {
    if messages::is_connected() {
        messages::send(&Message::Tables(tables));
        return Ok(());
    }
    report::write_to(tables, output.format(), destination)?;
    if matches!(output.format(), Format::Csv | Format::Parquet) {
        for table in tables {
            let which = if tables.len() > 1 { format!("{}: ", table.name) } else { String::new() };
            table.notes.iter().for_each(|note| text::message!("note: {which}{note}"));
        }
    }
    Ok(())
}

/// Runs a program. What it writes to standard output goes to standard error, if tables have standard output for
/// themselves.
fn with_output_apart<T>(output: &OutputOptions, run: impl FnOnce() -> T) -> T {
    let is_apart = output.takes_standard_output() && !messages::is_connected();
    let kept = is_apart.then(|| linux::high_copy(libc::STDOUT_FILENO)).flatten();
    let move_output = |from: i32| {
        // SAFETY: a plain system call on numbers.
        unsafe { libc::dup2(from, libc::STDOUT_FILENO) };
    };
    if kept.is_some() {
        move_output(libc::STDERR_FILENO);
    }
    let result = run();
    if let Some(kept) = kept {
        move_output(kept.as_raw_fd());
    }
    result
}

/// The note on forked processes, which are not in the tables.
fn left_out(forked: u64) -> Option<String> {
    let who = match forked {
        0 => return None,
        1 => "A process that the program forked is".to_string(),
        _ => format!("{} processes that the program forked are", separated(&forked.to_string())),
    };
    Some(format!("{who} not in the tables, which have the first process only."))
}

/// The note on a program that was ended by a signal.
fn until(ending: &Ending) -> Option<String> {
    let is_killed = matches!(ending, Ending::Killed { .. });
    is_killed.then(|| "A signal ended the program: these are its results until then.".into())
}

/// Checks before the program runs whether names exist in it. Names that it may load later are noted.
fn check_names(configuration: &Configuration, named: &RequestedNames) -> anyhow::Result<()> {
    if let Some(error) = startup::check(configuration, named)? {
        text::message!("note: so far {error}; the program may load it later");
    }
    Ok(())
}

/// Protects the images of a program, which are read for their symbols, from being overwritten.
fn protect_images<'a>(images: impl IntoIterator<Item = &'a Path>) {
    images.into_iter().for_each(report::protect);
}

/// The names in a plan.
fn named(plan: &Plan) -> RequestedNames<'_> {
    let of_classes = plan.classes.iter().flat_map(|classes| &classes.functions);
    RequestedNames {
        functions: plan
            .unit
            .iter()
            .map(|unit| &unit.function)
            .chain(of_classes)
            .map(String::as_str)
            .collect(),
        places: plan.from.iter().chain(&plan.until).collect(),
        ..RequestedNames::default()
    }
}

/// Reports how the program ended, if not as expected. Returns our exit status: 1 if the program's was not an expected one, unless a
/// calling program is connected. A crash is an error; any other signal that ended the program ends us, too.
fn check_ending(ending: &Ending, program: &Path, options: &EndingOptions) -> anyhow::Result<ExitCode> {
    match ending {
        Ending::Exited(status) if options.expected.iter().any(|&one| i32::from(one) == *status) => {
            Ok(ExitCode::SUCCESS)
        }
        Ending::Exited(status) => {
            text::message!("note: {} exited with status {status}", program.display());
            Ok(if messages::is_connected() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Ending::Killed { signal, report } if !crash::is_crash(*signal) => {
            text::message!("{}: {report}", program.display());
            engine::die(*signal)
        }
        Ending::Killed { report, .. } => anyhow::bail!("{}: {report}", program.display()),
    }
}
