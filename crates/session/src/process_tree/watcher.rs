//! A process that ends the processes of a program when the command that counts them is killed: nobody would read what
//! they count.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// The watching process. It ends, and ends nobody, when this is dropped.
pub struct Watcher {
    process: libc::pid_t,
    /// A byte in this pipe means that the command ends by itself; the pipe's end without one that it was killed.
    farewell: Option<fs::File>,
}

impl Watcher {
    /// Begins to watch for processes that hold `lives`, the end of a pipe, which this process is about to hand on. This
    /// process must have no other thread. `close` closes what the watching process must not hold.
    pub fn begin(lives: &OwnedFd, close: impl FnOnce()) -> io::Result<Watcher> {
        let pipe = fs::read_link(format!("/proc/self/fd/{}", lives.as_raw_fd()))?;
        let (told, farewell) = io::pipe()?;
        let farewell = linux::out_of_reach(farewell.into());
        // SAFETY: the child only watches, and ends here; this process has no other thread that could hold a lock which the
        // child would need.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(farewell);
                close();
                ignore_signals();
                if matches!(fs::File::from(OwnedFd::from(told)).read(&mut [0]), Ok(0)) {
                    end_holders(&pipe);
                }
                // SAFETY: ends the process at once; buffers of the parent's must not be written.
                unsafe { libc::_exit(0) }
            }
            process => Ok(Watcher { process, farewell: Some(farewell.into()) }),
        }
    }

    /// For a process that has been forked: it must not hold the pipe.
    pub fn leave(mut self) {
        self.farewell = None;
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let Some(mut farewell) = self.farewell.take() else { return };
        let _ = farewell.write_all(&[1]);
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
    }
}

/// The terminal's signals are not meant for this process.
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Kills every process that holds a pipe, until there is none.
fn end_holders(pipe: &Path) {
    /// What has not ended by then cannot be killed.
    const ROUNDS: usize = 100;
    for _ in 0..ROUNDS {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::pid_t>().ok());
        let holds = |process: &libc::pid_t| {
            let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
            open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|link| link == pipe)
        };
        let own = std::process::id() as libc::pid_t;
        let holders: Vec<libc::pid_t> = numbers.filter(|&process| process != own).filter(holds).collect();
        if holders.is_empty() {
            return;
        }
        for process in holders {
            // SAFETY: no pointers are passed.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
