//! Restores the state of this process after a program has run in it: the program may have
//! closed or redirected the standard streams, changed the working directory or set a timer.

use std::os::fd::IntoRawFd;

/// Runs `program`, then restores standard output, standard error, the working directory, the file
/// mode mask, the timers, and SIGPIPE, which Rust's runtime ignores.
pub fn keep<T>(program: impl FnOnce() -> T) -> T {
    let streams = [libc::STDOUT_FILENO, libc::STDERR_FILENO].map(KeptStream::keep);
    let directory = std::env::current_dir();
    let mask = file_mode_mask(0);
    file_mode_mask(mask);
    let result = program();
    streams.iter().flatten().for_each(KeptStream::put_back);
    if let Ok(directory) = directory {
        // If the directory was removed, relative paths fail with errors that name them.
        let _ = std::env::set_current_dir(directory);
    }
    file_mode_mask(mask);
    stop_timers();
    // SAFETY: no handler, so nothing to uphold.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    result
}

/// A standard stream as it was. The copy is no `OwnedFd`, for the program may close it.
struct KeptStream {
    number: libc::c_int,
    copy: libc::c_int,
    flags: libc::c_int,
}

impl KeptStream {
    /// None if the stream is closed, or the limit of descriptors is low.
    fn keep(number: libc::c_int) -> Option<KeptStream> {
        let copy = linux_user::high_copy(number)?.into_raw_fd();
        // SAFETY: a plain system call on a number.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
        Some(KeptStream { number, copy, flags })
    }

    /// If the program closed the copy too, the stream stays as the program left it.
    fn put_back(&self) {
        // SAFETY: plain system calls on numbers.
        unsafe {
            if libc::dup2(self.copy, self.number) == self.number {
                libc::fcntl(self.number, libc::F_SETFL, self.flags);
                libc::close(self.copy);
            }
        }
    }
}

fn file_mode_mask(mask: libc::mode_t) -> libc::mode_t {
    // SAFETY: no preconditions.
    unsafe { libc::umask(mask) }
}

fn stop_timers() {
    // SAFETY: an itimerval of zeros is valid and stops the timer.
    unsafe {
        let never: libc::itimerval = std::mem::zeroed();
        for timer in [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF] {
            libc::setitimer(timer, &never, std::ptr::null_mut());
        }
    }
}
