//! The inputs of commands: files, programs and processes. No output replaces one of them, as their types say what is an input.
//!
//! All that follows a program's name is the program's own, as with perf, valgrind and strace: neither an option nor a
//! `--` there is ours. A trace has no arguments: options may follow its name.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::bail;
use clap::error::{ErrorKind, Result};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use output_files::protect;
use session::attached_program::AttachedProgram;
use session::input::Input;
use trace::Trace;

use super::{Arguments, command_line};
use crate::ranges;

/// The name of the argument with the file of [`InputOptions`].
const FILE: &str = "file";

/// A trace, a program with its arguments, one that runs already, or saved counts.
#[derive(Clone, Debug, Args)]
pub struct InputOptions {
    /// A trace; or a program and its arguments: all that follows a program's name is its own, options too.
    #[arg(id = FILE, value_name = "FILE", required_unless_present = "attach", trailing_var_arg = true)]
    words: Vec<InputFile>,
    /// All processes: those that the program forks, and programs that they execute; or all of the trace. Each has caches, TLBs and
    /// predictors of its own, as if it had a processor to itself; tables are sums over the processes.
    #[arg(long)]
    pub children: bool,
    #[command(flatten)]
    attach: AttachOptions,
}

impl InputOptions {
    /// The input.
    pub fn resolve(&self) -> anyhow::Result<Input> {
        resolve(&self.words, &self.attach, self.children)
    }

    /// Whether all processes are observed: those of a program that runs already always are.
    pub fn has_all_processes(&self) -> bool {
        self.children || self.attach.process.is_some()
    }
}

/// A program with its arguments, or one that runs already; of which all processes are observed.
#[derive(Clone, Debug, Args)]
pub struct ObservedProgramOptions {
    /// The program, and its arguments: all that follows the program's name is its own, options too.
    #[arg(id = FILE, value_name = "PROGRAM", required_unless_present = "attach", trailing_var_arg = true)]
    words: Vec<InputFile>,
    /// With --attach, the processes that it has forked, too; those that it forks meanwhile always.
    #[arg(long)]
    children: bool,
    #[command(flatten)]
    attach: AttachOptions,
}

impl ObservedProgramOptions {
    /// The program. `purpose` says what it is needed for: "to sample".
    pub fn resolve(&self, purpose: &str) -> anyhow::Result<ObservedProgram> {
        if self.children && self.attach.process.is_none() {
            bail!("--children goes with --attach: of a program that is run, all processes are observed");
        }
        match resolve(&self.words, &self.attach, self.children)? {
            Input::Program { path, arguments } => Ok(ObservedProgram::Started { path, arguments }),
            Input::Attached(attached) => Ok(ObservedProgram::Running(attached)),
            input @ (Input::Trace(_) | Input::SavedCounts(_)) => {
                bail!("{input} is no program {purpose}, but the result of an earlier run: name a program")
            }
        }
    }
}

/// A program that is observed while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedProgram {
    /// A program that is started.
    Started {
        /// Its file.
        path: PathBuf,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
    /// A program that runs already.
    Running(AttachedProgram),
}

/// A program that runs already.
#[derive(Clone, Debug, Args)]
struct AttachOptions {
    /// Attach to a program that runs already, by the number of its process, as ps shows it: until Ctrl-C, for --duration, or until
    /// it ends. It must be run by pathlength run, and goes on. With --children, the processes that it has forked, too; those that
    /// it forks meanwhile always.
    #[arg(
        id = "attach",
        long,
        value_name = "PID",
        conflicts_with_all = [FILE, "cpu", "sysroot", "set", "unset", "clear_env", "statuses"]
    )]
    process: Option<ProcessId>,
    /// With --attach, for so long.
    #[arg(long, value_name = "SECONDS", value_parser = ranges::seconds)]
    duration: Option<Duration>,
}

/// The input that options name.
fn resolve(words: &[InputFile], attach: &AttachOptions, children: bool) -> anyhow::Result<Input> {
    let duration = attach.duration;
    if let Some(ProcessId(process)) = attach.process {
        return Ok(Input::Attached(AttachedProgram { process, children, duration }));
    }
    if duration.is_some() {
        bail!("--duration is for a program that runs already: name its process with --attach");
    }
    let (file, arguments) = words.split_first().expect("clap requires it unless there is --attach");
    Ok(Input::of_file(file, &words_of(arguments))?)
}

/// A trace, or a program with its arguments, which is run.
#[derive(Clone, Debug, Args)]
pub struct RecordedOrRunOptions {
    /// A trace; or a program and its arguments: all that follows a program's name is its own, options too.
    #[arg(id = FILE, value_name = "FILE", required = true, trailing_var_arg = true)]
    words: Vec<InputFile>,
}

impl RecordedOrRunOptions {
    /// The file that is named.
    pub fn path(&self) -> &Path {
        &self.words[0]
    }

    /// The input.
    pub fn resolve(&self) -> anyhow::Result<Input> {
        Ok(Input::of_file(&self.words[0], &words_of(&self.words[1..]))?)
    }
}

/// A program with its arguments.
#[derive(Clone, Debug, Args)]
pub struct ProgramOptions {
    /// The program, and its arguments: all that follows the program's name is its own, options too.
    #[arg(id = "program", value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    words: Vec<InputFile>,
}

impl ProgramOptions {
    /// The program.
    pub fn path(&self) -> &Path {
        &self.words[0]
    }

    /// Its arguments.
    pub fn arguments(&self) -> Vec<OsString> {
        words_of(&self.words[1..])
    }
}

/// The words of a command line.
pub fn words_of(words: &[InputFile]) -> Vec<OsString> {
    words.iter().map(|word| word.0.clone().into_os_string()).collect()
}

/// A file that a command reads, or a word of a program's command line, which may be or name one: no output may replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile(PathBuf);

impl InputFile {
    /// Protects the file; and that of a word such as `--option=file`.
    fn protect(&self, folder: &Path) {
        protect(&folder.join(&self.0));
        let bytes = self.0.as_os_str().as_bytes();
        if let Some(equals) = bytes.iter().position(|&byte| byte == b'=') {
            protect(&folder.join(OsStr::from_bytes(&bytes[equals + 1..])));
        }
    }
}

impl From<OsString> for InputFile {
    fn from(word: OsString) -> InputFile {
        InputFile(word.into())
    }
}

impl Deref for InputFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for InputFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// A machine: a name that `pathlength machines` lists, or a file, which is an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineName(String);

impl FromStr for MachineName {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<MachineName, Infallible> {
        Ok(MachineName(name.into()))
    }
}

impl AsRef<str> for MachineName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a process, whose program and the files in its command line are inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId(pub u32);

impl FromStr for ProcessId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<ProcessId, &'static str> {
        let number = text.parse().ok().filter(|&number| number > 0);
        number.map(ProcessId).ok_or("a process has a number from 1, as ps shows it")
    }
}

impl ProcessId {
    fn protect(self) {
        let folder = PathBuf::from(format!("/proc/{}", self.0));
        let command = std::fs::read(folder.join("cmdline")).unwrap_or_default();
        for word in command.split(|&byte| byte == 0) {
            InputFile(OsStr::from_bytes(word).into()).protect(&folder.join("cwd"));
        }
    }
}

/// Protects all that a command line names as inputs, before anything is opened.
fn protect_inputs(matches: &ArgMatches) {
    for id in matches.ids().map(clap::Id::as_str) {
        // Each of these is none if the values have another type.
        let files = matches.try_get_many::<InputFile>(id).ok().flatten();
        files.into_iter().flatten().for_each(|file| file.protect(Path::new("")));
        let machines = matches.try_get_many::<MachineName>(id).ok().flatten();
        machines.into_iter().flatten().for_each(|machine| protect(Path::new(&machine.0)));
        let processes = matches.try_get_many::<ProcessId>(id).ok().flatten();
        processes.into_iter().flatten().for_each(|process| process.protect());
    }
    if let Some((_, matches)) = matches.subcommand() {
        protect_inputs(matches);
    }
}

/// The options that are for a program that is run, by the names of their fields.
const OF_PROGRAMS: [(&str, &str); 10] = [
    ("cpu", "--cpu"),
    ("sysroot", "--sysroot"),
    ("set", "--env"),
    ("unset", "--unset-env"),
    ("clear_env", "--clear-env"),
    ("statuses", "--expect-status"),
    ("host_processors", "--host-processors"),
    ("from", "--from"),
    ("until", "--until"),
    ("time_dilation", "--time-dilation"),
];

/// Whether options for a program that is run have one. Without the check they would be ignored.
fn check_program_options(matches: &ArgMatches) -> anyhow::Result<()> {
    if let Some((_, matches)) = matches.subcommand() {
        return check_program_options(matches);
    }
    let first = |id| matches.try_get_many::<InputFile>(id).ok().flatten()?.next();
    let files: Vec<&InputFile> = [FILE, "program_a", "program_b"].into_iter().filter_map(first).collect();
    let mut inputs = files.iter().filter_map(|file| Input::of_file(file, &[]).ok());
    let is_given = |id| {
        matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let Some((_, option)) = OF_PROGRAMS.iter().find(|(id, _)| is_given(id)) else { return Ok(()) };
    match inputs.next() {
        Some(input @ (Input::Trace(_) | Input::SavedCounts(_)))
            if !inputs.any(|other| matches!(other, Input::Program { .. })) =>
        {
            let what = if input.is_trace() { "is a trace" } else { "holds saved counts" };
            bail!("{input} {what}: {option} is for a program that is run")
        }
        _ => Ok(()),
    }
}

/// Parses a command line.
pub fn parse(words: &[OsString]) -> Result<Arguments> {
    let mut command = command_line();
    // A first pass finds the file, whether the options are valid or not.
    let preview = command.clone().ignore_errors(true).try_get_matches_from(words);
    if let Ok(matches) = preview {
        command = with_options_after_trace(command, &matches);
    }
    let matches = command.try_get_matches_from_mut(words)?;
    check_program_options(&matches).map_err(|problem| {
        clap::Error::raw(ErrorKind::ArgumentConflict, format!("{problem}\n")).with_cmd(&command)
    })?;
    protect_inputs(&matches);
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The command with options allowed after the file of the chosen subcommand, if that is a trace.
fn with_options_after_trace(command: Command, matches: &ArgMatches) -> Command {
    match matches.subcommand() {
        Some((name, below)) => {
            command.mut_subcommand(name, |command| with_options_after_trace(command, below))
        }
        None if names_trace(matches) => command.mut_arg(FILE, |argument| argument.trailing_var_arg(false)),
        None => command,
    }
}

/// Whether the file is a trace, and not a program.
fn names_trace(options: &ArgMatches) -> bool {
    let words = options.try_get_many::<InputFile>(FILE).ok().flatten();
    words.and_then(|mut words| words.next()).is_some_and(|file| Trace::is_trace(file))
}
