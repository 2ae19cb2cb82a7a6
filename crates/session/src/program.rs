//! Programs to run: their processor, libraries and environment; and how they ended.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use engine::{Clock, Configuration, Plan, RandomSource, SystemSettings};
use table::separated;

use crate::measure::Ending;
use crate::startup::{self, RequestedNames};

/// The processor, the libraries and the environment of a program.
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// The processor, which decides the instructions that exist.
    pub cpu: isa::Processors,
    /// The folder in which the program's libraries are searched first; None for the usual one of its instruction set.
    pub sysroot: Option<PathBuf>,
    /// Its variables, as `NAME=VALUE`.
    pub environment: Vec<OsString>,
}

impl ProgramSettings {
    /// The configuration of a run: repeatable for counting, or with the host's clock and random numbers.
    pub fn configuration(&self, program: &Path, arguments: &[OsString], repeatable: bool) -> Configuration {
        let (clock, random) = if repeatable {
            (Clock::Virtual, RandomSource::Seeded(0))
        } else {
            (Clock::Host, RandomSource::Host)
        };
        let host_environment = self.host_environment(&["run".into()]).unwrap_or_else(|error| {
            text::message!("note: host programs cannot start programs of guests: {error}");
            Vec::new()
        });
        let settings = SystemSettings {
            sysroot: self.sysroot.clone(),
            clock,
            random,
            host_environment,
            ..SystemSettings::default()
        };
        Configuration {
            program: program.into(),
            name: None,
            arguments: arguments.to_vec(),
            environment: self.environment.clone(),
            model: self.cpu,
            settings,
        }
    }

    /// Environment variables that preload the interposition library into host programs, so that guests' programs which those
    /// execute are run by this command with these words.
    pub fn host_environment(&self, words: &[OsString]) -> std::io::Result<Vec<OsString>> {
        let mut options: Vec<OsString> = vec!["--cpu".into(), self.cpu.to_string().into()];
        if let Some(sysroot) = &self.sysroot {
            options.extend(["--sysroot".into(), std::path::absolute(sysroot)?.into()]);
        }
        options.push("--name".into());
        let command = [&[std::env::current_exe()?.into()], words, &options].concat();
        Ok(interpose::environment(&command)?.into())
    }
}

/// Checks before the program runs whether names exist in it. Names that it may load later are noted.
pub fn check_names(configuration: &Configuration, named: &RequestedNames) -> anyhow::Result<()> {
    if let Some(error) = startup::check(configuration, named)? {
        text::message!("note: so far {error}; the program may load it later");
    }
    Ok(())
}

/// The names in a plan.
pub fn names_in(plan: &Plan) -> RequestedNames<'_> {
    let of_classes = plan.classes.iter().flat_map(|classes| &classes.functions);
    RequestedNames {
        functions: plan
            .unit
            .iter()
            .map(|unit| &unit.function)
            .chain(of_classes)
            .map(String::as_str)
            .collect(),
        locations: plan.from.iter().chain(&plan.until).collect(),
        ..RequestedNames::default()
    }
}

/// Protects the images of a program, which are read for their symbols, from being overwritten.
pub fn protect_images<'a>(images: impl IntoIterator<Item = &'a Path>) {
    images.into_iter().for_each(output_files::protect);
}

/// The expectations of how a program ends.
#[derive(Clone, Debug)]
pub struct ExpectedEnding {
    /// The exit statuses of a program that did what it should.
    pub statuses: Vec<u8>,
    /// Whether the caller decides itself what another status means.
    pub is_judged_by_caller: bool,
}

/// Reports how the program ended, if not as expected. Returns our exit status: 1 if the program's was not an expected one, unless the
/// caller decides that. A crash is an error; any other signal that ended the program ends us, too.
pub fn check_ending(ending: &Ending, program: &Path, expected: &ExpectedEnding) -> anyhow::Result<ExitCode> {
    match ending {
        Ending::Exited(status) if expected.statuses.iter().any(|&one| i32::from(one) == *status) => {
            Ok(ExitCode::SUCCESS)
        }
        Ending::Exited(status) => {
            text::message!("note: {} exited with status {status}", program.display());
            Ok(if expected.is_judged_by_caller { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Ending::Killed { signal, is_crash: false, report } => {
            text::message!("{}: {report}", program.display());
            engine::die(*signal)
        }
        Ending::Killed { report, .. } => anyhow::bail!("{}: {report}", program.display()),
    }
}

/// The note on forked processes, which are not in the tables.
pub fn left_out(forked: u64) -> Option<String> {
    let who = match forked {
        0 => return None,
        1 => "A process that the program forked is".to_string(),
        _ => format!("{} processes that the program forked are", separated(&forked.to_string())),
    };
    Some(format!("{who} not in the tables, which have the first process only."))
}

/// The note on a program that was ended by a signal.
pub fn until(ending: &Ending) -> Option<String> {
    let is_killed = matches!(ending, Ending::Killed { .. });
    is_killed.then(|| "A signal ended the program: these are its results until then.".into())
}
