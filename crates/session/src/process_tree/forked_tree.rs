//! Runs a program in a forked process, so that this one sees the end of all processes of the program, however they end.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};

use super::forwarding::Forwarding;
use super::watcher::Watcher;
use crate::measure::{Ending, Error};

/// The result of the process that ran the program.
#[derive(Debug, Serialize, Deserialize)]
enum RunResult {
    Ended(Ending),
    Failed(String),
}

/// A program whose first process is forked from this one.
pub struct ForkedTree {
    process: libc::pid_t,
    /// The end of a pipe, whose other end each process of the program holds.
    alive: OwnedFd,
    /// Where the process leaves its result.
    result: File,
    signals: Forwarding,
    /// The status of the process, once it has ended.
    status: Option<i32>,
    /// Ends the program's processes if this one is killed.
    _watcher: Option<Watcher>,
}

impl ForkedTree {
    /// Begins to run a program, by `body`. This process must have no other thread. Signals by which users end commands are
    /// the program's from now on. With `ends_too`, the program's processes end if this one is killed.
    pub fn run(ends_too: bool, body: impl FnOnce() -> Result<Ending, Error>) -> Result<ForkedTree, Error> {
        let (alive, lives) = io::pipe().map_err(Error::Simulation)?;
        let [alive, lives] = [OwnedFd::from(alive), OwnedFd::from(lives)].map(linux_user::out_of_reach);
        let result = rustix::fs::memfd_create("result", MemfdFlags::CLOEXEC);
        let result =
            File::from(linux_user::out_of_reach(result.map_err(|error| Error::Simulation(error.into()))?));
        let close = || {
            // SAFETY: both are closed once, in a process of its own that uses neither.
            unsafe { (libc::close(alive.as_raw_fd()), libc::close(lives.as_raw_fd())) };
        };
        let watcher =
            ends_too.then(|| Watcher::begin(&lives, close)).transpose().map_err(Error::Simulation)?;
        let signals = Forwarding::begin();
        // SAFETY: the child only continues in `body`, and ends here; this process has no other thread that could hold a lock
        // which the child would need.
        let process = unsafe { libc::fork() };
        match process {
            -1 => return Err(Error::Simulation(io::Error::last_os_error())),
            0 => {
                if let Some(watcher) = watcher {
                    watcher.leave();
                }
                drop((alive, signals));
                let ended = match body() {
                    Ok(ending) => RunResult::Ended(ending),
                    Err(error) => RunResult::Failed(error.to_string()),
                };
                // Without it, the status says how the program ended.
                let _ = result.write_all_at(&serde_json::to_vec(&ended).unwrap_or_default(), 0);
                // SAFETY: ends the process at once; buffers of the parent's must not be written twice.
                unsafe { libc::_exit(0) }
            }
            _ => drop(lives),
        }
        signals.to(process);
        Ok(ForkedTree { process, alive, result, signals, status: None, _watcher: watcher })
    }

    /// Whether all processes have ended, or the user has enough: by a signal after the first process has ended, or by a
    /// second one. Waits for that so long.
    pub fn is_over(&mut self, pause: Duration) -> bool {
        let mut poll = libc::pollfd { fd: self.alive.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid structure.
        let is_over = unsafe { libc::poll(&mut poll, 1, pause.as_millis() as i32) } > 0;
        if self.status.is_none() {
            let mut ended = 0;
            let option = if is_over { 0 } else { libc::WNOHANG };
            // SAFETY: waits for our own child.
            if unsafe { libc::waitpid(self.process, &mut ended, option) } == self.process {
                self.status = Some(ended);
                self.signals.to(0);
                self.signals.forget();
            }
        }
        let enough = if self.status.is_some() { 1 } else { 2 };
        is_over || self.signals.seen() >= enough
    }

    /// How the first process has ended, if it has.
    pub fn ending(self) -> Result<Option<Ending>, Error> {
        let mut text = Vec::new();
        let length = self.result.metadata().map_or(0, |file| file.len());
        text.resize(length as usize, 0);
        let read = self.result.read_exact_at(&mut text, 0).ok();
        Ok(match (read.and_then(|()| serde_json::from_slice(&text).ok()), self.status) {
            (Some(RunResult::Failed(reason)), _) => return Err(Error::Simulation(io::Error::other(reason))),
            (Some(RunResult::Ended(ending)), _) => Some(ending),
            (None, Some(status)) if libc::WIFSIGNALED(status) => {
                Some(Ending::of_host_signal(libc::WTERMSIG(status)))
            }
            (None, Some(status)) => Some(Ending::Exited(libc::WEXITSTATUS(status))),
            (None, None) => None,
        })
    }
}
