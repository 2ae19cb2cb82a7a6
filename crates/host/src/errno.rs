//! Error numbers of the host, which the engine uses inside; the guest's ABI converts them.

/// An error of a system call, in the host's numbering, or one of the restart requests below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// A signal interrupted the call: repeat it, unless a handler without SA_RESTART runs. The three
    /// requests have the numbers of Linux's own (`include/linux/errno.h`) and never reach a program.
    pub const RESTART: Errno = Errno(512);
    /// A signal came before the call began: repeat it whatever the handler wants.
    pub const RESTART_ALWAYS: Errno = Errno(513);
    /// A signal interrupted the call: repeat it only if no handler runs.
    pub const RESTART_UNHANDLED: Errno = Errno(514);

    /// The host's number of the last failure of a C library call.
    pub fn last() -> Errno {
        std::io::Error::last_os_error().into()
    }

    /// True for the three requests to restart.
    pub fn is_restart(self) -> bool {
        (512..=514).contains(&self.0)
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}
