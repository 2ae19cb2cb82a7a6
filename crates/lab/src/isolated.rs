//! Counts a program in a process of its own, so that several can run at once without sharing file
//! descriptors, signals or a working directory, and with its output kept for the caller.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd};

use analysis::units::Phase;
use serde::{Deserialize, Serialize};

use crate::measure::{self, Counted, Request};

/// Why the run of another process gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No pipe, file or process to be had.
    #[error("cannot start a process to run the program: {0}")]
    Start(std::io::Error),
    /// As the process told it.
    #[error("{0}")]
    Failed(String),
    /// It ended without telling.
    #[error("the process that ran the program ended unexpectedly ({0})")]
    Lost(String),
}

/// What the process tells, one line of JSON each.
#[derive(Serialize, Deserialize)]
enum Message {
    /// So many units of work; what the last was to the measurement.
    Units(u64, Phase),
    Done(Box<Counted>),
    Failed(String),
}

/// A run that is under way.
pub struct Running {
    process: libc::pid_t,
    messages: BufReader<File>,
    output: File,
}

/// Starts counting. The program's standard output is kept, its standard input is empty.
pub fn start(request: &Request) -> Result<Running, Error> {
    let output = tempfile::tempfile().map_err(Error::Start)?;
    let nothing = File::open("/dev/null").map_err(Error::Start)?;
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors, which the two Files then own.
    let (read, write) = unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(Error::Start(std::io::Error::last_os_error()));
        }
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    };
    // SAFETY: the child only continues in `child`, which never returns; the parent has no other
    // thread that could hold a lock which the child would need.
    let process = unsafe { libc::fork() };
    match process {
        -1 => Err(Error::Start(std::io::Error::last_os_error())),
        0 => {
            drop(read);
            child(request, write, &output, &nothing)
        }
        _ => Ok(Running { process, messages: BufReader::new(read), output }),
    }
}

/// The other process: counts, tells, ends.
fn child(request: &Request, write: File, output: &File, nothing: &File) -> ! {
    // SAFETY: plain system calls on descriptors that are open.
    unsafe {
        libc::dup2(nothing.as_raw_fd(), 0);
        libc::dup2(output.as_raw_fd(), 1);
        // If whoever waits for us dies, nobody wants the result.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    let mut out = BufWriter::new(write);
    let mut tell = |message: &Message| {
        let mut line = serde_json::to_vec(message).expect("messages are plain data");
        line.push(b'\n');
        // If nobody listens any more there is nobody to tell so.
        let _ = out.write_all(&line).and_then(|()| out.flush());
    };
    let progress = &mut |seen: u64, phase| {
        if seen.is_multiple_of(64) || phase == Phase::Done {
            tell(&Message::Units(seen, phase));
        }
    };
    let message = match measure::count(request, progress) {
        Ok(counted) => Message::Done(Box::new(counted)),
        Err(error) => Message::Failed(error.to_string()),
    };
    tell(&message);
    // SAFETY: ends the process at once; buffers of the parent's must not be written twice.
    unsafe { libc::_exit(0) }
}

impl Running {
    /// Waits for the end. `progress` hears how many units of work there were and what the last was to
    /// the measurement. Returns the counts and what the program wrote.
    pub fn wait(mut self, progress: &mut dyn FnMut(u64, Phase)) -> Result<(Counted, String), Error> {
        let mut result = None;
        let mut line = Vec::new();
        while self.messages.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            match serde_json::from_slice(&line) {
                Ok(Message::Units(seen, phase)) => progress(seen, phase),
                Ok(Message::Done(counted)) => result = Some(Ok(*counted)),
                Ok(Message::Failed(reason)) => result = Some(Err(Error::Failed(reason))),
                Err(error) => result = Some(Err(Error::Lost(error.to_string()))),
            }
            line.clear();
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(self.process, &mut status, 0) };
        let counted = result.unwrap_or_else(|| Err(Error::Lost(format!("wait status {status:#x}"))))?;
        let mut text = Vec::new();
        let read = self.output.rewind().and_then(|()| self.output.read_to_end(&mut text));
        read.map_err(|error| Error::Lost(error.to_string()))?;
        Ok((counted, String::from_utf8_lossy(&text).into_owned()))
    }
}
