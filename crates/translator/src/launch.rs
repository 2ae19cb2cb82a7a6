//! Starts the translator, and waits for its end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use events::{Counts, ProcessEnd};

use crate::process;
use crate::results::finished_counts;
use crate::shared::{FinishedResults, new_file};

/// The name by which the executable is started as a translator.
const NAME: &str = "pathlength-translator";
/// Interpreters that scripts name, of each other, as the kernel accepts.
const INTERPRETERS: usize = 5;
/// Bytes of a script's first line that the kernel reads.
const FIRST_LINE: u64 = 256;
/// The personality of programs whose addresses are not randomized.
const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;

/// Why a program could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program cannot be read.
    #[error("{}: {error}", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The translator could not begin, or met what it cannot translate.
    #[error("the program cannot be translated: {0}")]
    Translator(String),
    /// Processes and shared memory.
    #[error("cannot start the translator: {0}")]
    Start(io::Error),
    /// The results cannot be read.
    #[error("cannot read the translator's counts: {0}")]
    Results(io::Error),
}

/// A program to run.
#[derive(Clone, Debug)]
pub struct TranslatedProgram {
    /// Its file: an x86-64 executable, or a script.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Its variables, as `NAME=VALUE`.
    pub environment: Vec<OsString>,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct TranslatedRun {
    /// Exact counts of the whole run.
    pub counts: Counts,
    /// How the program ended.
    pub end: ProcessEnd,
    /// Processes that it forked; they are not counted.
    pub forked: u64,
}

/// Runs the program, with this process's input and output, and counts what it executes.
pub fn count(program: &TranslatedProgram) -> Result<TranslatedRun, Error> {
    let (path, arguments) = interpreted(program)?;
    let file = new_file().map_err(Error::Start)?;
    let status = start(&file, &path, &arguments, &program.environment).map_err(Error::Start)?;
    let results = FinishedResults::new(file).map_err(Error::Results)?;
    if let Some(message) = results.message() {
        return Err(Error::Translator(message));
    }
    if !results.has_started() {
        return Err(Error::Translator(format!("the translator ended with {status}")));
    }
    let end = match (status.code(), status.signal()) {
        (Some(code), _) => ProcessEnd::Exited(code),
        (None, signal) => ProcessEnd::Killed(signal.unwrap_or_default()),
    };
    let counts = finished_counts(&results).map_err(Error::Results)?;
    Ok(TranslatedRun { counts, end, forked: results.forked() })
}

/// Starts the translator, and waits for it.
fn start(
    file: &File,
    path: &Path,
    arguments: &[OsString],
    environment: &[OsString],
) -> io::Result<ExitStatus> {
    let descriptor = file.as_raw_fd();
    let mut command = Command::new("/proc/self/exe");
    command.arg0(NAME).arg(descriptor.to_string()).arg(path).args(arguments).env_clear();
    for variable in environment {
        let bytes = variable.clone().into_vec();
        // A name may begin with the separator.
        let end = bytes.iter().skip(1).position(|&byte| byte == b'=').map(|at| at + 1);
        if let Some(end) = end {
            command.env(
                OsString::from_vec(bytes[..end].to_vec()),
                OsString::from_vec(bytes[end + 1..].to_vec()),
            );
        }
    }
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            libc::fcntl(descriptor, libc::F_SETFD, 0);
            let personality = libc::personality(0xffff_ffff);
            // Where it is forbidden, addresses are random, and counts may differ a little between runs.
            libc::personality(personality as libc::c_ulong | ADDR_NO_RANDOMIZE);
            Ok(())
        });
    }
    command.status()
}

/// The program that the kernel would start, and all of its arguments: a script is started by its interpreter.
fn interpreted(program: &TranslatedProgram) -> Result<(PathBuf, Vec<OsString>), Error> {
    let mut path = program.path.clone();
    let mut arguments = vec![OsString::from(&path)];
    arguments.extend(program.arguments.iter().cloned());
    for _ in 0..INTERPRETERS {
        let failed = |error| Error::Program { path: path.clone(), error };
        let mut start = Vec::new();
        let file = File::open(&path).map_err(failed)?;
        file.take(FIRST_LINE).read_to_end(&mut start).map_err(failed)?;
        let Some(line) = start.strip_prefix(b"#!") else { return Ok((path, arguments)) };
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
        let mut words = line.splitn(2, is_space).map(|word| OsString::from_vec(word.trim_ascii().to_vec()));
        let Some(interpreter) = words.next().filter(|word| !word.is_empty()) else {
            return Ok((path, arguments));
        };
        let before: Vec<OsString> =
            std::iter::once(interpreter.clone()).chain(words.filter(|word| !word.is_empty())).collect();
        arguments[0] = path.into();
        arguments.splice(0..0, before);
        path = interpreter.into();
    }
    Err(Error::Program { path, error: io::Error::from_raw_os_error(libc::ELOOP) })
}

/// Runs a program, and does not return, if this process was started as a translator. It must be the first call of `main`: nothing has
/// started a thread yet.
pub fn run_if_translator() {
    let mut words = std::env::args_os();
    if words.next().is_some_and(|name| name == NAME) {
        process::run(std::env::args_os().collect());
    }
}
