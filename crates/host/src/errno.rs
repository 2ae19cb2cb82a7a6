//! The host's error numbers, which the engine uses internally. The guest's ABI converts them.

/// An error of a system call, in the host's numbering, or one of the restart requests below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// A signal interrupted the call: restart it, unless a handler without SA_RESTART runs. The three restart
    /// requests have Linux's internal numbers (`include/linux/errno.h`) and are never returned to a program.
    pub const RESTART: Errno = Errno(512);
    /// A signal arrived before the call began: restart it in any case.
    pub const RESTART_ALWAYS: Errno = Errno(513);
    /// A signal interrupted the call: restart it only if no handler runs.
    pub const RESTART_UNHANDLED: Errno = Errno(514);

    /// The error number of the last failed call of a C library function.
    pub fn last() -> Errno {
        std::io::Error::last_os_error().into()
    }

    /// True for the three restart requests.
    pub fn is_restart(self) -> bool {
        (512..=514).contains(&self.0)
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}
