//! Runs a program in a process of its own, so that several can run at once without sharing file descriptors,
//! signals or a working directory, and with its output kept for the caller.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::descriptors::out_of_reach;

/// Why the run of another process failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A pipe, file or process could not be created.
    #[error("cannot start a process to run the program: {0}")]
    Start(std::io::Error),
    /// The error that the process reported.
    #[error("{0}")]
    Failed(String),
    /// It ended without a result.
    #[error("the process that ran the program ended unexpectedly ({0})")]
    Lost(String),
}

/// The messages of the process, one line of JSON each.
#[derive(Serialize, Deserialize)]
enum ForkedMessage<T, P> {
    Progress(P),
    Done(T),
    Failed(String),
}

/// A run in a forked process, which reports its progress as `P`, and returns a `T`.
pub struct ForkedRun<T, P> {
    process: libc::pid_t,
    messages: BufReader<File>,
    output: File,
    types: PhantomData<fn() -> (T, P)>,
}

/// Starts a process that runs a program. The program's standard output is kept, its standard input is empty.
pub fn start<T: Serialize, P: Serialize, E: ToString>(
    run: impl FnOnce(&mut (dyn FnMut(P) + Send)) -> Result<T, E>,
) -> Result<ForkedRun<T, P>, Error> {
    start_reading(Path::new("/dev/null"), run)
}

/// As [`start`], with a file as the standard input.
pub fn start_reading<T: Serialize, P: Serialize, E: ToString>(
    input: &Path,
    run: impl FnOnce(&mut (dyn FnMut(P) + Send)) -> Result<T, E>,
) -> Result<ForkedRun<T, P>, Error> {
    // The program in the child has none of these descriptors, nor those of concurrent runs.
    let output = out_of_reach(tempfile::tempfile().map_err(Error::Start)?);
    let input = out_of_reach(File::open(input).map_err(Error::Start)?);
    let (read, write) = std::io::pipe().map_err(Error::Start)?;
    let [read, write] = [OwnedFd::from(read), OwnedFd::from(write)].map(linux_user::out_of_reach);
    // SAFETY: the child only continues in `child`, which never returns; the parent has no other
    // thread that could hold a lock which the child would need.
    let process = unsafe { libc::fork() };
    match process {
        -1 => Err(Error::Start(std::io::Error::last_os_error())),
        0 => {
            drop(read);
            child(run, write.into(), &output, &input)
        }
        _ => {
            let messages = BufReader::new(File::from(read));
            Ok(ForkedRun { process, messages, output, types: PhantomData })
        }
    }
}

/// The other process: runs the program, sends messages, ends.
fn child<T: Serialize, P: Serialize, E: ToString>(
    run: impl FnOnce(&mut (dyn FnMut(P) + Send)) -> Result<T, E>,
    write: File,
    output: &File,
    input: &File,
) -> ! {
    // SAFETY: plain system calls on descriptors that are open.
    unsafe {
        libc::dup2(input.as_raw_fd(), 0);
        libc::dup2(output.as_raw_fd(), 1);
        // If the parent dies, the result is not needed.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    let mut out = BufWriter::new(write);
    let mut tell = |message: ForkedMessage<T, P>| {
        let mut line = serde_json::to_vec(&message).expect("messages are plain data");
        line.push(b'\n');
        // Errors are ignored: the parent may have closed the pipe.
        let _ = out.write_all(&line).and_then(|()| out.flush());
    };
    let message = match run(&mut |progress| tell(ForkedMessage::Progress(progress))) {
        Ok(result) => ForkedMessage::Done(result),
        Err(error) => ForkedMessage::Failed(error.to_string()),
    };
    tell(message);
    // SAFETY: ends the process at once; buffers of the parent's must not be written twice.
    unsafe { libc::_exit(0) }
}

/// The index of one of these that has told something that was not read, or has ended: the first of them. Waits until there is
/// one. Their results must be all that they tell.
pub fn first_done<T, P>(running: &[ForkedRun<T, P>]) -> usize {
    let poll = |one: &ForkedRun<T, P>| libc::pollfd {
        fd: one.messages.get_ref().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polled: Vec<libc::pollfd> = running.iter().map(poll).collect();
    // SAFETY: so many valid structures. If the call fails, waiting for the first one is as good.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
    polled.iter().position(|one| one.revents != 0).unwrap_or(0)
}

impl<T: DeserializeOwned, P: DeserializeOwned> ForkedRun<T, P> {
    /// Waits for the end, and calls `progress` meanwhile. Returns the result and the program's output.
    pub fn wait(self, progress: &mut dyn FnMut(P)) -> Result<(T, String), Error> {
        let (done, output) = self.wait_for_bytes(progress)?;
        Ok((done, String::from_utf8_lossy(&output).into_owned()))
    }

    /// As [`ForkedRun::wait`], for output that need not be text.
    pub fn wait_for_bytes(mut self, progress: &mut dyn FnMut(P)) -> Result<(T, Vec<u8>), Error> {
        let mut result = None;
        let mut line = Vec::new();
        while self.messages.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            match serde_json::from_slice(&line) {
                Ok(ForkedMessage::Progress(far)) => progress(far),
                Ok(ForkedMessage::Done(done)) => result = Some(Ok(done)),
                Ok(ForkedMessage::Failed(reason)) => result = Some(Err(Error::Failed(reason))),
                Err(error) => result = Some(Err(Error::Lost(error.to_string()))),
            }
            line.clear();
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(self.process, &mut status, 0) };
        let done = result.unwrap_or_else(|| Err(Error::Lost(format!("wait status {status:#x}"))))?;
        let mut output = Vec::new();
        let read = self.output.rewind().and_then(|()| self.output.read_to_end(&mut output));
        read.map_err(|error| Error::Lost(error.to_string()))?;
        Ok((done, output))
    }
}
