//! Starts the translator, and waits for its end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use events::ProcessEnd;

use crate::process;
use crate::program::{Error, TranslatedProgram, TranslatedRun};
use crate::results::finished_counts;
use crate::shared::{FinishedResults, new_file};

/// The name by which the executable is started as a translator.
const NAME: &str = "pathlength-translator";
/// Interpreters that scripts name, of each other, as the kernel accepts.
const INTERPRETERS: usize = 5;
/// The machine of x86-64 in ELF headers, where it is, and the first bytes of 64-bit files of this order of bytes.
const EM_X86_64: [u8; 2] = [62, 0];
const MACHINE: std::ops::Range<usize> = 18..20;
const ELF_64: &[u8] = b"\x7fELF\x02\x01";
/// Bytes of a script's first line that the kernel reads.
const FIRST_LINE: u64 = 256;
/// Signals that the terminal sends to the program and to this process, which shows the counts nevertheless.
const TERMINAL_SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];
/// The personality of programs whose addresses are not randomized.
const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;

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

/// The program that the kernel would start, and all of its arguments: a script is started by its interpreter.
fn interpreted(program: &TranslatedProgram) -> Result<(PathBuf, Vec<OsString>), Error> {
    let mut path = program.path.clone();
    let mut arguments = vec![OsString::from(&path)];
    arguments.extend(program.arguments.iter().cloned());
    for _ in 0..INTERPRETERS {
        let start = start_of(&path).map_err(|error| Error::Program { path: path.clone(), error })?;
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

/// Whether a file is an x86-64 program, or a script that such a program interprets.
pub fn is_translatable(path: &Path) -> bool {
    let program = TranslatedProgram { path: path.into(), arguments: Vec::new(), environment: Vec::new() };
    let start = interpreted(&program).ok().and_then(|(path, _)| start_of(&path).ok());
    start.is_some_and(|start| start.starts_with(ELF_64) && start.get(MACHINE) == Some(&EM_X86_64))
}

/// The first bytes of a file.
fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(FIRST_LINE).read_to_end(&mut start)?;
    Ok(start)
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
