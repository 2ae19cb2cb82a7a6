//! Handles Ctrl-C and the like during a recording, a build or the run of a server: what it started is ended, and this process
//! continues, to remove partial results.

use std::io;
use std::mem;
use std::process::{Child, ExitStatus};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The signals by which users, closed terminals and other programs end a command.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Whether a signal came since the first of the present [`InterruptGuard`] values was made.
static SEEN: AtomicBool = AtomicBool::new(false);

/// The number of [`InterruptGuard`] values, and the signals' actions before the first.
static USERS: Mutex<(usize, Vec<(libc::c_int, libc::sigaction)>)> = Mutex::new((0, Vec::new()));

/// While a value exists, those signals do not end this process.
pub struct InterruptGuard(());

impl InterruptGuard {
    /// Handles the signals from now on.
    #[allow(clippy::new_without_default)]
    pub fn new() -> InterruptGuard {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        users.0 += 1;
        if users.0 == 1 {
            SEEN.store(false, Ordering::Relaxed);
            users.1 = SIGNALS.into_iter().filter_map(|signal| Some((signal, install(signal)?))).collect();
        }
        InterruptGuard(())
    }

    /// Whether a signal came.
    pub fn is_interrupted(&self) -> bool {
        SEEN.load(Ordering::Relaxed)
    }

    /// Undoes the handling in a process that was forked, and which others end.
    pub fn restore(&self) {
        restore(&USERS.lock().unwrap_or_else(PoisonError::into_inner).1);
    }

    /// Waits for a command that leads a process group. After a signal the whole group is killed at
    /// once: some of its processes may have missed the signal.
    pub fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        const PAUSE: Duration = Duration::from_millis(10);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if self.is_interrupted() {
                // SAFETY: no memory is involved; the child has not been waited for, so the group is its.
                unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
                return child.wait();
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        users.0 -= 1;
        if users.0 == 0 {
            restore(&mem::take(&mut users.1));
        }
    }
}

fn restore(formers: &[(libc::c_int, libc::sigaction)]) {
    for (signal, former) in formers {
        // SAFETY: the action is the one that the system returned.
        unsafe { libc::sigaction(*signal, former, ptr::null_mut()) };
    }
}

extern "C" fn note(_: libc::c_int) {
    SEEN.store(true, Ordering::Relaxed);
}

/// Installs the handler, unless the signal is ignored (nohup): then it stays so. Returns the old action.
fn install(signal: libc::c_int) -> Option<libc::sigaction> {
    // SAFETY: both structures are valid as zeros, and the handler does nothing but store.
    unsafe {
        let mut former: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut former);
        if former.sa_sigaction == libc::SIG_IGN {
            return None;
        }
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, ptr::null_mut());
        Some(former)
    }
}
