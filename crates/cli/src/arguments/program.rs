//! The program to run, or the trace to read, and what belongs to it.
//!
//! All that follows a program's name is the program's own, as with perf, valgrind and strace: neither an option nor a
//! `--` there is ours. A trace has no arguments: options may follow its name.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::error::Result;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches};
use trace::Trace;

use super::{Arguments, SimulationOptions};
use crate::ranges;

/// A program with its arguments.
#[derive(Clone, Debug, Args)]
pub struct ProgramOptions {
    /// The program, and its arguments: all that follows the program's name is its own, options too.
    #[arg(id = "program", value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    words: Vec<OsString>,
}

/// A program with its arguments, or one that runs already.
#[derive(Clone, Debug, Args)]
pub struct CountedProgram {
    /// The program, and its arguments: all that follows the program's name is its own, options too.
    #[arg(
        id = "program",
        value_name = "PROGRAM",
        required_unless_present = "attach",
        trailing_var_arg = true
    )]
    words: Vec<OsString>,
    /// Count a program that runs already, by the number of its process, as ps shows it: until Ctrl-C, for --duration, or until it
    /// ends. It must be run by pathlength run, and goes on. With --children, the processes that it has forked, too; those that
    /// it forks meanwhile are always counted.
    #[arg(long, value_name = "PID", conflicts_with = "program", value_parser = clap::value_parser!(u32).range(1..))]
    pub attach: Option<u32>,
    /// With --attach, count for so long.
    #[arg(long, value_name = "SECONDS", requires = "attach", value_parser = ranges::seconds)]
    pub duration: Option<Duration>,
}

/// A trace, or a program with its arguments.
#[derive(Clone, Debug, Args)]
pub struct FileOptions {
    /// A trace; or a program and its arguments: all that follows a program's name is its own, options too.
    #[arg(id = FILE, value_name = "FILE", required = true, trailing_var_arg = true)]
    words: Vec<OsString>,
}

/// A program that runs already, instead of one that is started.
#[derive(Clone, Debug, Args)]
pub struct RunningProgram {
    /// Observe a program that runs already, by the number of its process, as ps shows it: until Ctrl-C, for --duration, or until it
    /// ends. It must be run by pathlength run, and goes on. With --children, the processes that it has forked, too; those that
    /// it forks meanwhile are always observed.
    #[arg(long, value_name = "PID", conflicts_with = FILE, value_parser = clap::value_parser!(u32).range(1..))]
    pub attach: Option<u32>,
    /// With --attach, observe for so long.
    #[arg(long, value_name = "SECONDS", value_parser = ranges::seconds)]
    pub duration: Option<Duration>,
}

/// A program to attach to.
#[derive(Clone, Debug)]
pub struct AttachedProgram {
    /// The number of its process.
    pub process: u32,
    /// Whether the processes that it has forked belong to it.
    pub children: bool,
    /// How long it is observed, if not until Ctrl-C.
    pub duration: Option<Duration>,
}

impl RunningProgram {
    /// What is simulated: this program, or what the other options say.
    pub fn input(&self, options: &SimulationOptions, children: bool) -> anyhow::Result<SimulationOptions> {
        Ok(SimulationOptions { attached: self.attached(children)?, ..options.clone() })
    }

    /// The program to attach to, if there is one; with the processes that it has forked, if they are asked for.
    pub fn attached(&self, children: bool) -> anyhow::Result<Option<AttachedProgram>> {
        if self.duration.is_some() && self.attach.is_none() {
            anyhow::bail!("--duration is for a program that runs already: name its process with --attach");
        }
        let attached = |process| AttachedProgram { process, children, duration: self.duration };
        Ok(self.attach.map(attached))
    }
}

/// A trace, a program with its arguments, or one that runs already.
#[derive(Clone, Debug, Args)]
pub struct ProfiledProgram {
    /// A trace; or a program and its arguments: all that follows a program's name is its own, options too.
    #[arg(id = FILE, value_name = "FILE", required_unless_present = "attach", trailing_var_arg = true)]
    words: Vec<OsString>,
    /// Sample a program that runs already, by the number of its process, as ps shows it: until Ctrl-C, for --duration, or until
    /// it ends. It must be run by pathlength run, and goes on. With --children, the processes that it has forked, too; those that
    /// it forks meanwhile are always sampled.
    #[arg(
        long, value_name = "PID", conflicts_with = FILE, requires = "sample",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub attach: Option<u32>,
    /// With --attach, sample for so long.
    #[arg(long, value_name = "SECONDS", requires = "attach", value_parser = ranges::seconds)]
    pub duration: Option<Duration>,
}

impl ProfiledProgram {
    /// The trace or the program; without one, as it runs already, an empty path.
    pub fn path(&self) -> &Path {
        self.words.first().map_or(Path::new(""), Path::new)
    }

    /// Its arguments.
    pub fn arguments(&self) -> &[OsString] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// The name of the argument of [`FileOptions`].
const FILE: &str = "file";

impl ProgramOptions {
    /// The program.
    pub fn path(&self) -> &Path {
        path(&self.words)
    }

    /// Its arguments.
    pub fn arguments(&self) -> &[OsString] {
        &self.words[1..]
    }
}

impl CountedProgram {
    /// The program; without one, as it runs already, an empty path.
    pub fn path(&self) -> &Path {
        self.words.first().map_or(Path::new(""), Path::new)
    }

    /// Its arguments.
    pub fn arguments(&self) -> &[OsString] {
        self.words.get(1..).unwrap_or_default()
    }
}

impl FileOptions {
    /// The trace, or the program; without one, as it runs already, an empty path.
    pub fn path(&self) -> &Path {
        self.words.first().map_or(Path::new(""), Path::new)
    }

    /// The program's arguments.
    pub fn arguments(&self) -> &[OsString] {
        self.words.get(1..).unwrap_or_default()
    }
}

fn path(words: &[OsString]) -> &Path {
    Path::new(words.first().expect("the name is required"))
}

/// The commands with [`RunningProgram`] beside a file.
const ATTACHING: [&str; 5] = ["caches", "time", "strides", "sharing", "objects"];

/// Parses a command line.
pub fn parse(words: &[OsString]) -> Result<Arguments> {
    let mut command = Arguments::command();
    // The options of `mrc` belong to `caches --curves`, the old name of the command, too.
    command = command.mut_subcommand("caches", |caches| {
        ["streams", "line_size", "largest", "granularity_hints"].into_iter().fold(caches, |caches, option| {
            caches.mut_arg(option, |argument| argument.hide(true).requires("curves"))
        })
    });
    for name in ATTACHING {
        command = command.mut_subcommand(name, |command| {
            command.mut_arg(FILE, |file| file.required(false).required_unless_present("attach"))
        });
    }
    // A first pass finds the file, whether the options are valid or not.
    let preview = command.clone().ignore_errors(true).try_get_matches_from(words);
    if let Ok(Some((name, options))) = preview.as_ref().map(ArgMatches::subcommand)
        && names_trace(options)
    {
        command = command.mut_subcommand(name, |command| {
            command.mut_arg(FILE, |argument| argument.trailing_var_arg(false))
        });
    }
    let matches = command.try_get_matches_from_mut(words)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Whether the file is a trace, and not a program.
fn names_trace(options: &ArgMatches) -> bool {
    let words = options.try_get_many::<OsString>(FILE).ok().flatten();
    words.and_then(|mut words| words.next()).is_some_and(|file| Trace::is_trace(Path::new(file)))
}
