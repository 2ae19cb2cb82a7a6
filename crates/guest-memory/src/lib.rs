//! A guest program's address space inside the host's: a reserved window, the list of what is mapped in it, and loads
//! and stores whose faults are values.

mod access;
mod layout;
mod memory;
mod regions;

pub use layout::{ADDRESS_SPACE, Fault, MAP_BASE, PAGE, Protection, SEGV_ACCERR, SEGV_MAPERR};
pub use memory::Memory;
pub use regions::{Backing, Region};

impl From<Fault> for host::Errno {
    fn from(_: Fault) -> host::Errno {
        host::Errno(libc::EFAULT)
    }
}
