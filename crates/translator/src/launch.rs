//! Starts the translator, and waits for its end.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};

use events::ProcessEnd;

use crate::executable::{ADDR_NO_RANDOMIZE, NAME, interpreted, is_executable};
use crate::process;
use crate::program::{Error, TranslatedProgram, TranslatedRun};
use crate::results::finished_counts;
use crate::shared::{FinishedResults, new_file};

/// Signals that the terminal sends to the program and to this process, which shows the counts nevertheless.
const TERMINAL_SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Runs the program, with this process's input and output, and counts what it executes.
pub fn count(program: &TranslatedProgram) -> Result<TranslatedRun, Error> {
    let (path, arguments) = interpreted(program)?;
    if !is_executable(&path) {
        return Err(Error::Program { path, error: io::Error::from_raw_os_error(libc::EACCES) });
    }
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
    let former = ignore_terminal();
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            libc::fcntl(descriptor, libc::F_SETFD, 0);
            let personality = libc::personality(0xffff_ffff);
            // Where it is forbidden, addresses are random, and counts may differ a little between runs.
            libc::personality(personality as libc::c_ulong | ADDR_NO_RANDOMIZE);
            // The program ends with this process, whose death a kill may cause.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            for (signal, former) in TERMINAL_SIGNALS.iter().zip(&former) {
                libc::signal(*signal, *former);
            }
            Ok(())
        });
    }
    let status = command.status();
    for (signal, former) in TERMINAL_SIGNALS.iter().zip(former) {
        // SAFETY: what was before.
        unsafe { libc::signal(*signal, former) };
    }
    status
}

/// Ignores the signals of the terminal, which are the program's. Returns what they did before.
fn ignore_terminal() -> [libc::sighandler_t; TERMINAL_SIGNALS.len()] {
    // SAFETY: ignores a signal.
    TERMINAL_SIGNALS.map(|signal| unsafe { libc::signal(signal, libc::SIG_IGN) })
}

/// Runs a program, and does not return, if this process was started as a translator. It must be the first call of `main`: nothing has
/// started a thread yet.
pub fn run_if_translator() {
    let mut words = std::env::args_os();
    if words.next().is_some_and(|name| name == NAME) {
        process::run(std::env::args_os().collect());
    }
}

/// The processor's level by the psABI of x86-64: the features by which C libraries choose their functions, so that counts depend on it.
pub fn processor_level() -> &'static str {
    macro_rules! has {
        ($($feature:tt),*) => { $(std::is_x86_feature_detected!($feature))&&* };
    }
    if !has!("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt") {
        "x86-64"
    } else if !has!("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe") {
        "x86-64-v2"
    } else if !has!("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl") {
        "x86-64-v3"
    } else {
        "x86-64-v4"
    }
}
