//! Programs of the host that make a server's data, serve them and ask the server.

use std::fs;
use std::io::{self, Read, Seek};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::error::Error;
use ::host::interrupt::InterruptGuard;

/// The user and the group `nobody`, which servers have if the user is root.
const NOBODY: u32 = 65534;

/// A program that runs. What it prints goes to files, so that it never waits for a reader. It leads a process group, so that
/// Ctrl-C signals the study only, which ends its programs itself.
pub(super) struct HostProgram {
    /// What it is called in errors.
    what: &'static str,
    process: Child,
    printed: [fs::File; 2],
}

impl HostProgram {
    /// Starts it.
    pub(super) fn start(command: &mut Command, what: &'static str) -> Result<HostProgram, Error> {
        let mut start = || -> io::Result<HostProgram> {
            let printed = [tempfile::tempfile()?, tempfile::tempfile()?];
            let [stdout, stderr] = [printed[0].try_clone()?, printed[1].try_clone()?];
            command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
            Ok(HostProgram { what, process: command.spawn()?, printed })
        };
        start().map_err(|error| failed(what, &error))
    }

    /// Waits until it has ended with success, and returns what it printed. If the study is interrupted, the program
    /// is killed.
    pub(super) fn finish(mut self, interrupt: &InterruptGuard) -> Result<Output, Error> {
        let read = |mut file: fs::File| {
            let mut bytes = Vec::new();
            file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map(|_| bytes)
        };
        let status = interrupt.wait(&mut self.process).map_err(|error| failed(self.what, &error))?;
        if interrupt.is_interrupted() {
            return Err(Error::Interrupted);
        }
        let [stdout, stderr] = self.printed.map(|file| read(file).unwrap_or_default());
        let output = Output { status, stdout, stderr };
        if output.status.success() {
            return Ok(output);
        }
        let texts =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).trim().to_string());
        let hint =
            if is_root() { " (as root it runs as nobody, who must be able to read the builds)" } else { "" };
        Err(Error::Server(format!("{} failed{hint}: {}", self.what, texts.join("\n"))))
    }
}

/// Why a program does not run.
pub(super) fn failed(what: &str, error: &io::Error) -> Error {
    Error::Server(format!("{what} cannot be run: {error}"))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes a command's program run as the user that servers have: PostgreSQL does not run as root.
pub(super) fn as_user(command: &mut Command) -> &mut Command {
    if is_root() { command.uid(NOBODY).gid(NOBODY) } else { command }
}

/// The same for this process.
pub(super) fn become_user() -> io::Result<()> {
    if !is_root() {
        return Ok(());
    }
    // SAFETY: no pointer is used, as there are no groups.
    let done = unsafe {
        libc::setgroups(0, std::ptr::null()) == 0 && libc::setgid(NOBODY) == 0 && libc::setuid(NOBODY) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets that user write in a folder.
pub(super) fn give_to_user(folder: &Path) -> Result<(), Error> {
    if !is_root() {
        return Ok(());
    }
    chown(folder, Some(NOBODY), Some(NOBODY)).map_err(|error| Error::Files { path: folder.into(), error })
}
