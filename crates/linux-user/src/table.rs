//! The form of a guest's table of system calls: a number, a name and an implementation each.

use crate::abi::Abi;
use crate::calls::call::{Argument, Call, CallOutcome, RestartRule};
use host::Errno;

/// The system calls of a guest.
pub trait SystemCalls: Abi {
    /// The row of a system call.
    fn row(number: u64) -> Option<&'static SystemCallRow<Self>>;
    /// The name of a system call without a row.
    fn unimplemented_name(number: u64) -> Option<&'static str>;
}

/// The implementation of a system call.
pub enum SystemCallAction<G: Abi> {
    /// Makes the host's call with the arguments converted as listed.
    Pass(libc::c_long, &'static [Argument]),
    /// As `Host`, for a call that may block.
    Wait(libc::c_long, &'static [Argument], RestartRule),
    /// Calls a function.
    Handle(fn(&mut Call<G>) -> CallOutcome),
    /// Calls the function of a call that takes a directory first, which is the working directory here.
    HandleHere(fn(&mut Call<G>) -> CallOutcome),
    /// Fails with ENOSYS, which programs can handle.
    Refuse,
}

impl<G: Abi> SystemCallAction<G> {
    /// Executes it.
    pub fn carry_out(&self, call: &mut Call<G>) -> CallOutcome {
        match self {
            SystemCallAction::Pass(number, arguments) => call.pass(*number, arguments),
            SystemCallAction::Wait(number, arguments, interrupted) => {
                call.pass_wait(*number, arguments, *interrupted)
            }
            SystemCallAction::Handle(handler) => handler(call),
            SystemCallAction::HandleHere(handler) => {
                call.arguments.rotate_right(1);
                call.arguments[0] = libc::AT_FDCWD as u64;
                handler(call)
            }
            SystemCallAction::Refuse => Err(Errno(libc::ENOSYS)),
        }
    }
}

/// A row of the table.
pub struct SystemCallRow<G: Abi> {
    /// The guest's number.
    pub number: u64,
    /// Its name in the kernel's header, without `__NR_`.
    pub name: &'static str,
    /// Its implementation.
    pub action: SystemCallAction<G>,
}
